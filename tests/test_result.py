"""A run made in Python leaves the same folder and the same page as the command line's."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.control.guard import Guarded
from tangere.errors import InvalidValue
from tangere.logs.mcap_read import read_mcap
from tangere.loop.result import RunResult, Setup
from tangere.loop.run import run
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.planning.joint_motions import Sine
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.types import Command, State

READY = np.deg2rad([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
FILES = {"log.mcap", "log.csv", "manifest.json", "summary.json", "report.html"}


class Springs:
    """A controller of one's own: gravity, and a spring and a damper on every joint."""

    def __init__(self, robot: tangere.Robot, trajectory: Sine) -> None:
        self.robot, self.trajectory = robot, trajectory

    def start(self, state: State) -> None:
        self.begin = state.time

    def step(self, state: State) -> Command:
        wanted = self.trajectory.at(state.time - self.begin)
        qdd = wanted.qdd + 20.0 * (wanted.qd - state.qd) + 100.0 * (wanted.q - state.q)
        return Command(self.robot.inverse_dynamics(state.q, state.qd, qdd))

    def stop(self) -> None:
        pass


def made(push: bool = True, log: Path | None = None) -> RunResult:
    robot = tangere.robot("ur10e")
    motion = Sine(robot, READY, 0.1, 1.0, ramp=0.3, duration=1.0, joints=(1, 2, 3, 4, 5, 6))
    pushes = (Push(3, -15.0, 0.5, 0.25),) if push else ()
    plant = RigidPlant(robot, 1e-3, pushes=pushes)
    return run(
        plant, Guarded(Springs(robot, motion), robot, period=1e-3), {"momentum": MomentumObserver(robot)},
        trajectory=motion, detector=Detector(Thresholds.constant(5.0)), log=log,
    )  # fmt: skip


@pytest.fixture(scope="module")
def result() -> RunResult:
    return made()


def form(page: str) -> dict[str, list[str]]:
    """What a page is made of, without its numbers."""
    return {
        "sections": re.findall(r'<section id="([^"]*)"', page),
        "figures": re.findall(r'<figure id="([^"]*)"', page),
        "tiles": re.findall(r"<dt>(.*?)</dt>", page),
        "links": re.findall(r'<a href="#([^"]*)"', page),
        "boxes": re.findall(r'class="box (\w+)"', page),
        "heads": re.findall(r"<h[23]>(.*?)</h[23]>", page),
    }


def test_the_page_has_the_form_of_the_command_lines(result: RunResult, tmp_path: Path) -> None:
    from tangere.cli.main import main

    words = "run sine --plant rigid --set duration=1 ramp=0.3 amplitude=0.1 frequency=1 drives=off threshold=5"
    words += " --push joint=3,torque=-15,start=0.5,duration=0.25"
    assert main([*words.split(), "--out", str(tmp_path / "theirs")]) == 0
    assert result.save(tmp_path / "mine") == tmp_path / "mine"
    assert {file.name for file in (tmp_path / "mine").iterdir()} == FILES
    mine, theirs = ((tmp_path / name / "report.html").read_text() for name in ("mine", "theirs"))
    # which settings are not at their defaults is known of a command only
    other = re.sub(r'<section id="settings">.*?</section>', "", theirs, flags=re.DOTALL)
    other = re.sub(r'<a href="#settings"', "<a", other)
    assert other != theirs
    assert form(mine) == form(other)
    assert "<title>mine – Tangere</title>" in mine
    # the parts by the names of their classes
    for name in ("Springs in Guarded", "RigidPlant", "MomentumObserver", "Detector", "Sine"):
        assert f"<title>{name}</title>" in mine
    assert "-15 Nm at joint 3" in mine
    assert "UR10e" in mine
    # what the controller and the simulator do is the same: so are the figures
    ours, others = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("mine", "theirs"))
    assert ours["tracking_push_max_mm"] == pytest.approx(others["tracking_push_max_mm"], rel=1e-6)
    assert [event["joint"] for event in ours["events"]] == [event["joint"] for event in others["events"]]
    assert ours["events"][0]["delay_ms"] == pytest.approx(others["events"][0]["delay_ms"])


def test_the_folder_makes_the_same_page_again(result: RunResult, tmp_path: Path) -> None:
    from tangere.cli.main import main

    result.save(tmp_path / "mine")
    first = (tmp_path / "mine" / "report.html").read_text()
    assert main(["report", str(tmp_path / "mine")]) == 0
    again = (tmp_path / "mine" / "report.html").read_text()
    assert form(again) == form(first)
    assert read_mcap(tmp_path / "mine" / "log.mcap") == result.log


def test_summary_report_and_show(result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    assert result.summary["events"][0]["joint"] == 3
    assert result.summary["events"][0]["delay_ms"] is not None  # the push that the plant was told of
    assert result.summary is result.summary  # computed once
    assert result.data().robot is result.robot is result.setup.robot is not None  # itself, not one of the same name
    path = result.report(tmp_path / "a page.html", name="Springs & dampers")
    assert "Springs &amp; dampers" in path.read_text()
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # without the extra: the page
    shown = result.show()
    assert opened == [shown.as_uri()]
    assert form(shown.read_text()) == form(path.read_text())


def test_a_folder_of_others_is_left_alone(result: RunResult, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("mine")
    with pytest.raises(InvalidValue, match="no manifest"):
        result.save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]
    other = tmp_path / "other"
    made(push=False).save(other)
    result.save(other)  # what an earlier run left is replaced
    assert json.loads((other / "summary.json").read_text())["events"]


@pytest.mark.parametrize("small", [False, True])
def test_a_long_run_leaves_its_rows_in_the_file(
    result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """Summary, page, overview and rows are those of the same run in memory, though few rows are ever held.

    small: of a log that is not too large all columns are read at once, not the file for each of them.
    """
    from tangere.logs import log as stored
    from tangere.logs import mcap_read
    from tangere.logs.thinned import thinned
    from tangere.loop import recorder

    monkeypatch.setattr(stored, "LONG", 300)
    monkeypatch.setattr(stored, "PIECE", 130)
    fits = stored.WHOLE
    monkeypatch.setattr(stored, "WHOLE", 0)
    passes = []
    unpacked = mcap_read.pieces_of
    monkeypatch.setattr(mcap_read, "pieces_of", lambda *a, **k: passes.append(1) or unpacked(*a, **k))
    monkeypatch.setattr(recorder, "BLOCK", 100)
    held = []
    concatenated = recorder.Recorder._log
    monkeypatch.setattr(
        recorder.Recorder, "_log", lambda self, blocks: held.append(sum(map(len, blocks))) or concatenated(self, blocks)
    )
    long = made(log=tmp_path / "log.mcap")
    columns = long.log.columns
    assert isinstance(columns, stored.StoredColumns)
    assert max(held) <= 400
    assert not columns.held  # nothing stays of what the run itself looked at
    if small:
        monkeypatch.setattr(stored, "WHOLE", fits)
        long = replace(long, log=stored.stored(long.log, tmp_path / "log.mcap"))
        columns = long.log.columns
        assert isinstance(columns, stored.StoredColumns)
        passes.clear()
    measured = {"realtime_factor", "period_us", "step_us"}
    same(*({k: v for k, v in one.summary.items() if k not in measured} for one in (long, result)))
    long.report(tmp_path / "page.html")
    assert "touch" in (tmp_path / "page.html").read_text().lower()
    assert len(long.log) == 1000
    assert all(len(part) <= 130 + 512 for part in long.log.pieces())
    for name in ("q", "residual", "T_true", "time"):
        np.testing.assert_array_equal(long.log[name], result.log[name])  # read from the file
    some = long.log[203:800:7]
    np.testing.assert_array_equal(some["tau"], result.log["tau"][203:800:7])
    np.testing.assert_array_equal(long.log.between(0.2, 0.31)["q"], result.log.between(0.2, 0.31)["q"])
    few, whole = thinned(long.log, 600), result.log
    assert 100 < len(few) <= 600
    for name in ("q", "tau", "residual"):
        for k in range(2):  # every peak of a span is among the rows that a page draws
            there, all_ = few.between(0.4 * k, 0.4 * k + 0.4), whole.between(0.4 * k, 0.4 * k + 0.4)
            np.testing.assert_array_equal(there[name].max(axis=0), all_[name].max(axis=0))
            np.testing.assert_array_equal(there[name].min(axis=0), all_[name].min(axis=0))
    for name in ("q", "qd"):
        np.testing.assert_array_equal(long.overview.low[name], result.overview.low[name])
        np.testing.assert_array_equal(long.overview.high[name], result.overview.high[name])
    assert (len(passes) < 4) is small
    assert not small or set(columns.held) == set(columns) - {"time"}
    columns.release()
    (tmp_path / "log.mcap").unlink()
    with pytest.raises(InvalidValue, match=r"log\.mcap"):
        long.log["q"]


def test_a_run_that_fits_stays_in_memory(
    result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows: up to WHOLE bytes nobody reads the file; the first block beyond it lets the oldest rows go."""
    from tangere.logs import log as stored
    from tangere.loop import recorder

    monkeypatch.setattr(stored, "LONG", 300)
    monkeypatch.setattr(recorder, "BLOCK", 100)
    numbers = sum(max(k, 1) for k in result.log.shapes().values())
    for rows, kept in ((1000, True), (900, False)):
        monkeypatch.setattr(stored, "WHOLE", 8 * numbers * rows)
        log = made(log=tmp_path / f"{rows}.mcap").log
        assert isinstance(log.columns, stored.StoredColumns) is not kept
        np.testing.assert_array_equal(log["q"], result.log["q"])


def same(one: object, other: object) -> None:
    """Figures of a summary agree to 12 digits, all else wholly."""
    if isinstance(other, dict):
        assert isinstance(one, dict)
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(other, list):
        assert isinstance(one, list)
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            same(*pair)
    else:
        assert one == (pytest.approx(other, rel=1e-12) if isinstance(other, float) else other)


def test_a_long_run_without_a_file_has_a_temporary_one(
    result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond HELD rows the rest goes into a file that lives as long as its result does; without room, memory serves."""
    from tangere.logs import log as stored
    from tangere.loop import recorder

    monkeypatch.setattr(stored, "LONG", 200)
    monkeypatch.setattr(stored, "WHOLE", 0)
    monkeypatch.setattr(recorder, "BLOCK", 100)
    monkeypatch.setattr(recorder, "HELD", 500)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long = made()
    assert isinstance(long.log.columns, stored.StoredColumns)
    assert [file.name for file in tmp_path.rglob("*.mcap")] == ["log.mcap"]
    assert (long.log_file, long.log_error, len(long.log), long.log.notes) == (None, "", 1000, result.log.notes)
    for name in ("q", "residual", "time"):
        np.testing.assert_array_equal(long.log[name], result.log[name])
    saved = long.save(tmp_path / "kept", report=False)
    assert len(tangere.read(saved / "log.mcap")) == 1000
    log = long.log
    del long
    assert len(log["tau"]) == 1000
    del log
    assert list(tmp_path.glob("tangere-*")) == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    held = made()
    assert isinstance(held.log["q"], np.ndarray)
    assert not isinstance(held.log.columns, stored.StoredColumns)
    np.testing.assert_array_equal(held.log["tau"], result.log["tau"])


def test_an_overview_holds_every_peak() -> None:
    from tangere.logs.log import Log, Overview

    time = np.arange(10_007) * 1e-3
    q = np.stack([np.sin(time), np.cos(time)], axis=1)
    q[5003, 1], q[17, 0], q[2000:2100, 0] = 9.0, np.nan, np.inf
    seen = Overview.of(Log({"time": time, "q": q, "cost": np.full(len(time), 2.0)}), bins=100)
    assert seen.time.shape == (100,)
    assert seen.low["q"].shape == seen.high["q"].shape == (100, 2)
    np.testing.assert_array_equal(seen.high["cost"], 2.0)
    assert seen.high["q"][:, 1].max() == 9.0
    assert not np.isinf(seen.high["q"]).any()  # what is not finite does not count
    assert np.isfinite(seen.low["q"][0, 0])  # one bad sample hides no bin
    rows = slice(int(np.searchsorted(time, seen.time[40])), int(np.searchsorted(time, seen.time[41])))
    np.testing.assert_array_equal(seen.low["q"][40], q[rows].min(axis=0))
    np.testing.assert_array_equal(seen.high["q"][40], q[rows].max(axis=0))
    few = Overview.of(Log({"time": time[:3], "q": q[:3]}))
    np.testing.assert_array_equal(few.low["q"], q[:3])
    assert Overview.of(Log({"time": time[:0], "q": q[:0]})).time.shape == (0,)


def test_parts_of_ones_own_may_mean_other_things_by_our_names() -> None:
    """A run that has ended must not be lost because a part has an attribute of ours with something else in it."""

    class Odd:
        robot, pushes, gain, thresholds = "mine", 3, "high", np.ones(6)

    setup = Setup.of(Odd(), Odd(), [Odd()], Odd(), None)
    assert (setup.robot, setup.pushes, setup.gain, setup.thresholds) == (None, (), Setup().gain, None)
    assert setup.parts == {"controller": "Odd", "plant": "Odd", "observer": "Odd", "detection": "Odd"}
    assert Setup.of(None, None, [], None, None) == Setup()
