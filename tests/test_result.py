"""A run made in Python leaves the same folder and the same page as the command line's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.control.guard import Guarded
from tangere.errors import InvalidValue
from tangere.logs.mcap_read import read_mcap
from tangere.loop.result import RunResult
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


def made(push: bool = True) -> RunResult:
    robot = tangere.robot("ur10e")
    motion = Sine(robot, READY, 0.1, 1.0, ramp=0.3, duration=1.0, joints=(1, 2, 3, 4, 5, 6))
    pushes = (Push(3, -15.0, 0.5, 0.25),) if push else ()
    plant = RigidPlant(robot, 1e-3, pushes=pushes)
    return run(
        plant, Guarded(Springs(robot, motion), robot, period=1e-3), {"momentum": MomentumObserver(robot)},
        trajectory=motion, detector=Detector(Thresholds.constant(5.0)),
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

    words = "run sine --plant rigid --set duration=1 ramp=0.3 amplitude=0.1 frequency=1 drives=off"
    words += " --push joint=3,torque=-15,start=0.5,duration=0.25"
    assert main([*words.split(), "--out", str(tmp_path / "theirs")]) == 0
    assert result.save(tmp_path / "mine") == tmp_path / "mine"
    assert {file.name for file in (tmp_path / "mine").iterdir()} == FILES
    mine, theirs = ((tmp_path / name / "report.html").read_text() for name in ("mine", "theirs"))
    assert form(mine) == form(theirs)
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
    assert result.robot is result.setup.robot is not None
    path = result.report(tmp_path / "a page.html", name="Springs & dampers")
    assert "Springs &amp; dampers" in path.read_text()
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
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
