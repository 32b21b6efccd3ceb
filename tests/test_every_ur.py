"""Every UR arm that comes with the package: checked, inverse kinematics, a run; in the long form a drawing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.apps.scenarios.execute import execute
from tangere.cli.main import main
from tangere.kernels import ur
from tangere.model.loading import names

ARMS = [name for name in names() if ur.is_ur(tangere.robot(name).model)]


def test_there_are_fourteen() -> None:
    newer = {"ur7e", "ur8long", "ur12e", "ur15", "ur18"}
    assert {"ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "ur16e", "ur20", "ur30"} | newer == set(ARMS)


@pytest.mark.parametrize("name", ARMS)
def test_checked_and_reached(name: str, capsys: pytest.CaptureFixture[str], rng: np.random.Generator) -> None:
    """`check` names every number's source, and inverse kinematics finds the joint positions that made the pose."""
    assert main(["check", name]) == 0
    told = capsys.readouterr().out
    assert "vendor" in told or "approximated" in told
    robot = tangere.robot(name)
    for q in rng.uniform(-3.0, 3.0, (20, 6)):
        found = robot.inverse_kinematics(robot.pose(q)).q
        away = np.abs((found - q + np.pi) % (2.0 * np.pi) - np.pi).max(axis=1)
        assert away.min() < 1e-6
        assert np.allclose(robot.pose(found), robot.pose(q), atol=1e-9)


@pytest.mark.parametrize("name", ARMS)
def test_runs(name: str, tmp_path: Path) -> None:
    """A push on a holding arm, felt with its size."""
    push = "joint=2,torque=20,start=0.2,duration=0.3"
    given = {"robot": name, "duration": 0.6, "period": 2e-3, "plant": "rigid", "push": push}
    done = execute("hold", given, out=tmp_path, csv=False)
    assert done.result.aborted == ""
    event = done.summary["events"][0]
    assert event["joint"] == 2
    assert event["torque_nm"] == pytest.approx(20.0, abs=0.2)


@pytest.mark.skipif("TANGERE_SOAK" not in os.environ, reason="a drawing by every arm takes minutes; TANGERE_SOAK=1")
@pytest.mark.parametrize("name", ARMS)
def test_draws(name: str, tmp_path: Path) -> None:
    assert main(["write", "a", "--height", "20mm", "--robot", name, "--out", str(tmp_path)]) == 0
