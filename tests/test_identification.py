"""Logs for identification: which are used, which judge, and what is said of logs that look touched."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion, identify, prior_drive
from tangere.identification.findings import Finding
from tangere.identification.identify_logs import left_touched, looks_touched, possible, split
from tangere.identification.touch_logs import TouchLog

ROBOT = tangere.robot("ur10e")
START = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3])


def _log(name: str, size: float = 0.3, push: float = 0.0) -> TouchLog:
    """12 s; size 0: the arm stands. push: Nm on joint 2 from 4 to 6 s."""
    t = 80.0 + np.arange(2400) / 200.0
    speed = np.linspace(0.6, 1.1, 6)
    angle = (t[:, None] - t[0]) * speed + np.arange(6)
    q, qd, qdd = START + size * np.sin(angle), size * speed * np.cos(angle), -size * speed**2 * np.sin(angle)
    tau = ROBOT.inverse_dynamics(q, qd, qdd) + prior_drive(ROBOT).friction(q, qd, ROBOT.gravity_torque(q))
    tau[(t >= 84.0) & (t < 86.0), 1] -= push
    return TouchLog(name, Motion(t, q, qd, tau, name), np.full(6, np.nan), ("torque",) * 6, ())


def _names(parts: tuple[list[TouchLog], list[TouchLog]]) -> tuple[str, str]:
    used, judges = parts
    return "".join(log.name for log in used), "".join(log.name for log in judges)


def test_the_only_log_that_moves_is_used() -> None:
    for at in range(4):
        logs = [_log("abcd"[k], 0.3 if k == at else 0.0) for k in range(4)]
        assert _names(split(logs, None)) == ("abcd", "")


def test_judges_move_and_some_that_move_are_used() -> None:
    logs = [_log(name, size) for name, size in zip("abcdef", (0.0, 0.3, 0.0, 0.3, 0.0, 0.3), strict=True)]
    assert _names(split(logs, None)) == ("acdef", "b")
    assert _names(split(logs, 0.5)) == ("acde", "bf")
    assert _names(split(logs, 0.0)) == ("abcdef", "")
    assert _names(split([_log(name) for name in "abcdefgh"], None)) == ("bcdfgh", "ae")


def test_what_is_wrong_with_holdout_is_said_in_its_name() -> None:
    logs = [_log("a"), _log("b")]
    for wrong in ("c", "1.5", "a,b"):
        with pytest.raises(InvalidValue, match="--holdout"):
            split(logs, wrong)


def test_a_touched_log_is_said_to_look_touched() -> None:
    assert looks_touched(ROBOT, _log("free")) == []
    (found,) = looks_touched(ROBOT, _log("push", push=40.0))
    assert "push: looks touched: joint 2 from 4.0" in found.sentence
    assert (found.kind, found.joint) == ("touched", 2)


def test_a_push_on_a_standing_arm_is_not_its_stiction() -> None:
    still = _log("still", size=0.0, push=60.0)
    for pushed, log in ((False, _log("still", size=0.0)), (True, still)):
        model = identify(ROBOT, [_log("free").motion, log.motion], inertial="none")
        said = left_touched(ROBOT, model, log)
        assert bool(said) == pushed
        assert left_touched(ROBOT, model, _log("free")) == []
    assert "joint 2 from 4.0" in said[0].sentence
    assert any("identified with a doubt" in text for text in _with(model, said).doubts)


def _with(model: IdentifiedModel, said: list[Finding]) -> IdentifiedModel:
    return dataclasses.replace(model, findings=tuple(said))


def test_only_few_samples_are_impossible() -> None:
    """A spike goes, a log in another unit stays whole: findings tell of that."""
    log = _log("a")
    assert possible(ROBOT, log) is log
    tau = log.motion.tau.copy()
    tau[[100, 900], 2] = (1e6, -1e6)
    spikes = possible(ROBOT, dataclasses.replace(log, motion=dataclasses.replace(log.motion, tau=tau)))
    assert len(spikes.motion.time) == len(log.motion.time) - 2
    assert np.abs(spikes.motion.tau).max() < 3.0 * ROBOT.tau_max.max()
    assert "2 samples left out" in spikes.problems[-1]
    unit = dataclasses.replace(log, motion=dataclasses.replace(log.motion, tau=100.0 * log.motion.tau))
    assert possible(ROBOT, unit) is unit


def test_a_singular_system_is_an_error_of_ours() -> None:
    log = _log("a")
    tau = log.motion.tau.copy()
    tau[1000, 2] = 1e7
    with pytest.raises(InvalidValue, match="spikes"):
        identify(ROBOT, [dataclasses.replace(log.motion, tau=tau)], inertial="links")
