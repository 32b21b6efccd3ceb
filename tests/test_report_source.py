"""From what a run left to the values of its report."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.figures.markup import decode
from tangere.logs.log import Log, Note
from tangere.report.data import RunData
from tangere.report.page import write_report
from tangere.report.section import stamp


def a_log() -> Log:
    """A second of a joint that swings, with two residuals and the cost of each period."""
    time = np.linspace(0.0, 1.0, 100)
    swing = np.outer(np.sin(6.0 * time), np.ones(6))
    columns = {"time": time, "q": swing, "qd": 6.0 * swing, "tau": 30.0 * swing, "residual": swing}
    columns |= {"residual_other": 2.0 * swing, "cost": np.full(100, 2e-5), "cost_log": np.full(100, 1e-6)}
    return Log(columns, notes=(Note(0.5, "touch"),))


def test_a_folder_becomes_a_report(tmp_path: Path) -> None:
    from tangere.logs.mcap_log import write_mcap
    from tangere.loop.folder import Manifest, write_json, write_manifest

    log = a_log()
    write_mcap(log, tmp_path / "log.mcap")
    told = {"robot": "ur10e", "push": {"joint": 2}, "radius": 0.1}
    write_manifest(Manifest.of(["tangere", "run", "a b"], told, units={"radius": "m"}), tmp_path)
    write_json(
        {
            "aborted": "stopped",
            "blocks": {"controller": "mine"},
            "thresholds_nm": [2.0] * 6,
            "events": [{"time_s": 1.0, "joint": 2, "torque_nm": 20.0},
                       {"time_s": 2.0, "joint": 3, "kind": "stop", "alarm": False}, {"joint": 1}],
        },
        tmp_path / "summary.json",
    )
    found = RunData.of(tmp_path)
    assert found.command == "tangere run 'a b'"
    assert found.parameters["push joint"] == 2
    assert found.parameters["radius [m]"] == 0.1
    assert found.robot == "ur10e"
    assert found.aborted == "stopped"
    assert found.blocks["controller"] == "mine"
    assert found.thresholds is not None
    np.testing.assert_array_equal(found.thresholds, 2.0)
    event, stop = found.events
    assert (stop.kind, stop.alarm, event.kind, event.alarm) == ("stop", False, "unknown", True)
    assert (event.time_s, event.joint, event.end_s, event.torque_nm) == (1.0, 2, None, 20.0)
    assert list(found.residuals) == ["", "other"]
    assert found.q is not None
    np.testing.assert_array_equal(found.q, log["q"])
    assert found.timing_us is not None
    np.testing.assert_allclose(found.timing_us[:-1], 21.0)
    path = write_report(tmp_path, tmp_path / "report.html", thresholds=np.full(6, 3.0))
    page = path.read_text()
    assert "stopped" in page[: page.index("<section")]
    assert page.count("<section ") == 9


def test_a_log_that_was_not_closed_is_said() -> None:
    log = a_log()
    cut = Log(log.columns, log.units, log.notes, complete=False)
    assert "not closed" in RunData.of(cut).aborted
    assert RunData.of(log, name="mine").name == "mine"
    with pytest.raises(InvalidValue, match="no such fields: \\['nmae'\\]"):
        RunData.of(log, nmae="mine")


def test_a_csv_whose_last_line_has_no_end_may_be_cut_and_no_run_ended(tmp_path: Path) -> None:
    """Many programs leave the last line end out: that is amber, and no claim about a run that nobody knows of."""
    rows = "\n".join(f"{0.01 * k:.2f},{','.join(['0.1'] * 6)}" for k in range(50))
    file = tmp_path / "log.csv"
    file.write_text("timestamp," + ",".join(f"actual_q_{i}" for i in range(6)) + "\n" + rows)
    page = write_report(file, tmp_path / "open.html").read_text()
    assert "The run ended early" not in page
    assert '<div class="alarm caution"><b>The end may be missing</b>' in page
    assert "The last line has no line end and may be cut: its last number was left out." in page
    file.write_text(file.read_text() + "\n")
    assert "The end may be missing" not in write_report(file, tmp_path / "whole.html").read_text()


@pytest.mark.parametrize("began", [0.0, 12.0, 1.5e6, 1.7e9])
def test_stamps_of_a_clock_keep_their_samples_apart(began: float, tmp_path: Path) -> None:
    """Figures count from the first stamp where 4 bytes would merge samples; tables keep the stamps."""
    time = began + 0.002 * np.arange(1000)
    raised = {"time_s": float(time[500]), "end_s": float(time[600]), "joint": 2, "torque_nm": 20.0}
    swing = np.outer(np.sin(6.0 * (time - began)), np.ones(6))
    columns = {"time": time, "q": swing, "residual": swing, "score": np.abs(swing[:, 0])}
    log = Log(columns, notes=(Note(float(time[500]), "touched"),), events=(raised,))
    page = write_report(log, tmp_path / "a.html", robot="ur10e").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])  # type: ignore[index]
    counted = began if began < 1e3 else 0.0
    times = decode(data["t"])
    np.testing.assert_allclose(times, time - began + counted, atol=2e-6)
    assert np.diff(times) == pytest.approx(0.002, rel=1e-2)
    figures = {figure["id"]: figure for figure in data["figures"]}
    assert figures["score"]["bands"][0][:2] == pytest.approx([counted + 1.0, counted + 1.2], abs=1e-6)
    assert decode(figures["motion"]["times"])[-1] == pytest.approx(counted + 1.998, abs=2e-6)
    assert f"at {counted + 1.0:.3g} s was felt" in page
    assert ("where the figures' time is 0" in html.unescape(page)) == (began > 1e3)
    assert f"<td>{stamp(float(time[500]))}</td>" in page
    if began > 1e3:
        assert stamp(float(time[500])) == f"{began + 1.0:.3f}"


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no run at"):
        RunData.of(tmp_path / "missing")
    with pytest.raises(InvalidValue, match="no run in"):
        RunData.of(tmp_path)
    with pytest.raises(InvalidValue, match="got int"):
        RunData.of(3)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(InvalidValue, match="cannot read"):
        RunData.of(tmp_path)
