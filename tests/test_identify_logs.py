"""Logs for identification: which are used, which judge, and what is said of logs that look touched."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion, identify, prior_drive
from tangere.identification.findings import Finding
from tangere.identification.free_run import starts
from tangere.identification.identify_logs import alarms_left, possible, split
from tangere.identification.recorder import moving_rms
from tangere.identification.samples import midpoints
from tangere.identification.touch_logs import TouchLog
from tangere.identification.touched_spans import MARGIN, Span, surely_touched, touched, without
from tangere.robots import Robot

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


@pytest.mark.parametrize("stands", [0, 400, 3000, 24000])
@pytest.mark.parametrize("first", [False, True])
def test_a_quarter_of_the_motion_of_one_log_judges_however_long_it_stands(stands: int, first: bool) -> None:
    log = _log("a")
    moving = np.repeat((False, True) if first else (True, False), (stands, 2400) if first else (2400, stands))
    qd = np.zeros((len(moving), 6))
    qd[moving] = 0.3
    motion = Motion(np.arange(len(moving)) / 200.0, np.zeros_like(qd), qd, np.zeros_like(qd), "a")
    (used,), (judge,) = split([dataclasses.replace(log, motion=motion)], 0.25)
    assert len(used.motion.time) + len(judge.motion.time) == len(moving)
    part = np.mean(np.any(judge.motion.qd != 0.0, axis=1)) * len(judge.motion.time) / 2400
    assert 0.12 < part < 0.38


def test_what_is_wrong_with_holdout_is_said_in_its_name() -> None:
    logs = [_log("a"), _log("b")]
    for wrong in ("c", "1.5", "a,b"):
        with pytest.raises(InvalidValue, match="--holdout"):
            split(logs, wrong)


def test_a_touched_log_is_said_to_look_touched() -> None:
    free, log = _log("free").motion, _log("push", push=40.0).motion
    assert without(free, touched(ROBOT, free)) == (free, ())
    rest, (found,) = without(log, touched(ROBOT, log))
    assert "looks touched: joint 2 from 4.0" in found.sentence
    assert "s around it are left out" in found.sentence
    assert (found.kind, found.joint) == ("touched", 2)
    assert rest.free is not None
    time = log.time - log.time[0]
    assert not np.any(rest.free[(time > 4.0 - MARGIN + 0.1) & (time < 6.0 + MARGIN - 0.1)])
    assert np.all(rest.free[(time < 4.0 - MARGIN - 0.1) | (time > 6.0 + MARGIN + 0.1)])


def test_a_log_that_looks_touched_for_most_of_its_time_is_kept() -> None:
    motion = _log("push").motion
    first = float(motion.time[0])
    rest, (found,) = without(motion, (Span(2, first + 2.0, first + 6.5),))  # with its margins 5.5 of 12 s
    assert "5.5 s around it are left out" in found.sentence
    assert rest.free is not None
    rest, (found,) = without(motion, (Span(2, first + 2.0, first + 7.5),))  # 6.5 of 12 s
    assert "all of it counts" in found.sentence
    assert rest is motion


def test_what_is_left_out_counts_nowhere() -> None:
    """Neither in the rows of a fit, nor in its figures, nor in windows of a free run."""
    whole = _log("whole").motion
    time = whole.time - whole.time[0]
    mark = dataclasses.replace(whole, free=(time < 4.0) | (time > 6.0), tau=whole.tau.copy())
    mark.tau[(time > 4.0) & (time < 6.0)] = 1e3
    used = midpoints(mark, 0.004)
    assert np.all(np.abs(used.tau) < 900.0)
    np.testing.assert_array_equal(np.unique(np.diff(used.index)), [1, len(whole.time) - len(used.index)])
    drive = prior_drive(ROBOT)
    rms = moving_rms(Robot(ROBOT.model, drive.rotor_inertia), drive, [mark])
    assert np.all(rms < 5.0)
    found = starts(drive, [mark])
    inside = found.time - whole.time[0]
    assert not np.any((inside > 3.8) & (inside < 6.0))
    assert np.any(inside < 3.8)
    assert np.any(inside > 6.0)
    part = mark.rows(slice(0, 900), "part")
    assert part.free is not None
    assert part.free.shape == part.time.shape


def test_a_push_on_a_standing_arm_is_not_its_stiction() -> None:
    still = _log("still", size=0.0, push=60.0)
    for pushed, log in ((False, _log("still", size=0.0)), (True, still)):
        model = identify(ROBOT, [_log("free").motion, log.motion], inertial="none")
        spans = surely_touched(alarms_left(ROBOT, model, log.motion), float(log.motion.time[-1]))
        assert bool(spans) == pushed
        assert alarms_left(ROBOT, model, _log("free").motion) == ()
    _, said = without(still.motion, spans)
    assert "joint 2 from 3.99 to 6.0" in said[0].sentence
    assert any("identified with a doubt" in text for text in _with(model, said).doubts)


def _with(model: IdentifiedModel, said: tuple[Finding, ...]) -> IdentifiedModel:
    return dataclasses.replace(model, findings=said)


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


@pytest.mark.parametrize("joints", [(2,), (0, 5)])
def test_a_log_in_which_some_joints_stand_moves(joints: tuple[int, ...]) -> None:
    """Two of three move, in one joint or two; the third one stands: one of those that move judges."""
    logs = []
    for k in range(3):
        log = _log(f"log {k}")
        qd = np.zeros_like(log.motion.qd)
        if k < 2:
            qd[:, list(joints)] = 0.3 * np.cos(log.motion.time)[:, None]
        logs.append(dataclasses.replace(log, motion=dataclasses.replace(log.motion, qd=qd)))
    used, judges = split(logs, 0.5)
    assert ([log.name for log in used], [log.name for log in judges]) == (["log 1", "log 2"], ["log 0"])
