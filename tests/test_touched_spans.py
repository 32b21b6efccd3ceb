"""Tuning on logs that should be free: what clearly looks touched is left out, and most of it refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from watched_logs import columns_of, log_of, model_of

import tangere
from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion, identify, prior_drive
from tangere.identification.belief import belief
from tangere.identification.touch_logs import TouchLog
from tangere.identification.touched_spans import MARGIN, before_stops, untouched
from tangere.loop.tuning import Tuned, tuning
from tangere.loop.watching import watch
from tangere.observe.detect.stops import LOOK_BACK, stopped_for_good

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


def test_a_log_that_ends_in_a_stop_teaches_nothing_beside_others() -> None:
    """Two free logs and one whose arm is stopped within 30 ms, and then held by brakes."""
    columns = columns_of(31.0, 100.0, seed=4)
    at = int(np.searchsorted(columns["time"], 70.0))
    share = np.clip(1.0 - np.arange(len(columns["time"]) - at) / 3.0, 0.0, 1.0)[:, None]
    columns["qd"][at:] *= share
    columns["q"][at:] = columns["q"][at]
    columns["tau"][at:] += 40.0 * (1.0 - share)
    model = model_of()
    free = [log_of(columns_of(31.0, 100.0, seed=seed), model, f"free_{seed}") for seed in (2, 3)]
    stopped = log_of(columns, model, "stopped")
    assert stopped_for_good(stopped.motion.time, stopped.motion.qd) == pytest.approx(70.0, abs=0.02)
    motions = [log.motion for log in (*free, stopped)]
    assert all(stopped_for_good(motion.time, motion.qd) is None for motion in motions[:2])
    *rest, (cut, said) = before_stops(motions)
    assert [found for _, found in rest] == [(), ()]
    assert cut.free is not None
    assert not cut.free.any()
    assert [finding.kind for finding in said] == ["stopped"]
    ((alone, _),) = before_stops([stopped.motion])  # there is nothing else: up to the stop
    assert alone.free is not None
    assert float(np.mean(alone.free)) == pytest.approx(19.9 / 31.0, abs=0.01)
    began = stopped_for_good(stopped.motion.time, stopped.motion.qd) or 0.0
    assert 0.0 < began - LOOK_BACK - stopped.motion.time[alone.free][-1] < 0.02  # and some time before it
    known = belief(ROBOT, model)
    without, with_it = (tuning(ROBOT, logs, known, 0.1) for logs in (free, [*free, stopped]))
    np.testing.assert_array_equal(with_it.thresholds.table, without.thresholds.table)
    assert "stopped" in [finding.kind for finding in with_it.findings]
