"""Tuning on logs that should be free: what clearly looks touched is left out, and most of it refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion, identify, prior_drive
from tangere.identification.belief import belief
from tangere.identification.touch_logs import TouchLog
from tangere.identification.touched_spans import MARGIN, untouched
from tangere.loop.tuning import Tuned, tuning
from tangere.loop.watching import watch

ROBOT = tangere.robot("ur10e")
START = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3])
NOISE = np.array([2.3, 2.0, 0.9, 0.29, 0.43, 0.30])  # Nm per sample at 100 Hz, as a UR10e has it


def _log(name: str, push: float = 0.0, start: float = 8.0, end: float = 10.0) -> TouchLog:
    """20 s of motion. push: Nm on joint 3 from start to end [s]."""
    t = np.arange(2000) / 100.0
    speed = np.linspace(0.6, 1.1, 6)
    angle = t[:, None] * speed + np.arange(6)
    q, qd, qdd = START + 0.3 * np.sin(angle), 0.3 * speed * np.cos(angle), -0.3 * speed**2 * np.sin(angle)
    drive = prior_drive(ROBOT)
    tau = ROBOT.inverse_dynamics(q, qd, qdd) + drive.rotor_inertia * qdd
    tau += drive.friction(q, qd, ROBOT.gravity_torque(q)) + NOISE * np.random.default_rng(3).normal(size=q.shape)
    tau[(t >= start) & (t < end), 2] -= push
    return TouchLog(name, Motion(100.0 + t, q, qd, tau, name), np.full(6, np.nan), ("torque",) * 6, ())


@pytest.fixture(scope="module")
def model() -> IdentifiedModel:
    return identify(ROBOT, [_log("model").motion], inertial="none")


def _tuned(model: IdentifiedModel, log: TouchLog) -> Tuned:
    return tuning(ROBOT, [log], belief(ROBOT, model), 0.1)


def test_thresholds_are_those_without_the_push(model: IdentifiedModel) -> None:
    free, pushed = _tuned(model, _log("free")), _tuned(model, _log("pushed", push=60.0))
    assert not any("touched" in text for text in free.doubts)
    (text,) = (text for text in pushed.doubts if "looks touched" in text)
    assert "8.0" in text
    assert "are left out" in text
    # a seventh of the motion less: tails are of fewer peaks, and more of the untuned thresholds is kept; learned from
    # the push, the level of joint 3 is above its 60 Nm
    assert np.all(pushed.thresholds.level < 1.5 * free.thresholds.level)
    assert len(pushed.logs[0].alarms) == 1
    assert len(free.logs[0].alarms) == 0


def test_what_is_left_out_is_the_push_and_a_margin(model: IdentifiedModel) -> None:
    log = _log("pushed", push=60.0)
    keep, _ = untouched(log.name, log.motion.time, watch(log, belief(ROBOT, model), isolate=False).alarms)
    t = log.motion.time - log.motion.time[0]
    assert not np.any(keep[(t >= 8.0 - 0.5 * MARGIN) & (t <= 10.0 + 0.5 * MARGIN)])
    assert np.all(keep[(t < 8.0 - 2.0 * MARGIN) | (t > 10.0 + 3.0 * MARGIN)])


def test_a_mild_alarm_is_said_and_learned_from(model: IdentifiedModel) -> None:
    """As friction of this arm may be: thresholds below it would alarm on free motion."""
    seen = watch(_log("free"), belief(ROBOT, model), isolate=False)
    pushed = watch(_log("pushed", push=60.0), belief(ROBOT, model), isolate=False)
    time = pushed.log.motion.time
    mild = [dataclasses.replace(event, score=1.95) for event in pushed.alarms]
    keep, said = untouched("pushed", time, mild)
    assert np.all(keep)
    assert [finding.kind for finding in said] == ["hardly touched"]
    assert untouched("free", time, seen.alarms)[1] == []
    sure, said = untouched("pushed", time, [dataclasses.replace(event, score=2.05) for event in mild])
    assert not np.all(sure)
    assert [finding.kind for finding in said] == ["touched"]


def test_a_log_that_is_mostly_touched_is_refused(model: IdentifiedModel) -> None:
    with pytest.raises(InvalidValue, match="look touched: thresholds need motion that nobody touches"):
        _tuned(model, _log("pushed", push=60.0, start=4.0, end=16.0))
