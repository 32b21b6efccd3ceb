"""From what a run left to the values of its report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.logs.log import Log, Note
from tangere.report.data import RunData
from tangere.report.page import write_report


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
