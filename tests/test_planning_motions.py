"""Motions of joints and what a trajectory's samples are: moves, sines, sequences, holding, pages of long ones."""

from __future__ import annotations

import pickle
from dataclasses import asdict
from math import inf

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, NoSolution
from tangere.planning import (
    Hold,
    JointMove,
    Sampled,
    Sequence,
    Sine,
    moved_to,
    path_trajectory,
    ramped_circle,
    samples,
)
from tangere.types import Reference

ROBOT = tangere.robot("ur10e")
CIRCLE = ramped_circle(ROBOT)
HOME = np.array([0.3, -1.2, 1.4, -0.9, -1.2, 0.5])


def test_joint_move_reaches_its_end_within_limits(rng: np.random.Generator) -> None:
    """All joints arrive together; the slowest joint's time is that of its own seven phases."""
    pytest.importorskip("ruckig")
    for _ in range(10):
        a, b = rng.uniform(-2.0, 2.0, (2, 6))
        motion = JointMove(ROBOT, a, b)
        assert motion.at(0.0).q == pytest.approx(a, abs=1e-12)
        assert motion.at(motion.duration).q == pytest.approx(b, abs=1e-12)
        assert motion.at(motion.duration).qd == pytest.approx(np.zeros(6), abs=1e-9)
        assert np.max(np.abs(motion.qd)) <= 1.05 * (1 + 1e-9)
        assert np.max(np.abs(motion.qdd)) <= 1.4 * (1 + 1e-9)
        assert np.max(np.abs(np.diff(motion.qdd, axis=0))) / motion.period <= 14.0 * (1 + 1e-6)
        farthest = np.max(np.abs(b - a))
        fastest = farthest / 1.05 + 1.05 / 1.4 + 1.4 / 14.0
        assert fastest - 1e-9 <= motion.duration < fastest + motion.period  # rounded up to a sample
    with pytest.raises(NoSolution, match="joint 3 would need a position"):
        JointMove(ROBOT, np.zeros(6), [0, 0, 3.3, 0, 0, 0])
    for velocity, top in ((50.0, ROBOT.qd_max[0]), (0.5, 0.5)):  # as asked for, but never faster than the arm can
        far = JointMove(ROBOT, HOME, HOME + [4.0, 0, 0, 0, 0, 0], velocity=velocity, acceleration=20.0, jerk=2000.0)
        assert np.abs(far.qd).max() == pytest.approx(top, rel=1e-3)  # a little less, so that it ends on a sample
        assert np.abs(far.qd).max() <= top
    slow = JointMove(ROBOT, np.zeros(6), np.ones(6), duration_min=9.0)
    assert slow.duration == pytest.approx(9.0, rel=1e-9)
    assert JointMove(ROBOT, HOME, HOME).at(0.5).q == pytest.approx(HOME, abs=0.0)


def test_sine_is_a_sine_after_its_ramp() -> None:
    motion = Sine(ROBOT, HOME, 0.2, 0.5, [2], ramp=1.0)
    assert motion.duration == inf
    w = 2 * np.pi * 0.5
    for t in (1.0, 2.3, 100.7):
        r = motion.at(t)
        assert r.q - HOME == pytest.approx(0.2 * np.sin(w * (t - 0.5)) * np.eye(6)[1], abs=1e-12)
        assert r.qd[1] == pytest.approx(0.2 * w * np.cos(w * (t - 0.5)), abs=1e-12)
        assert r.qdd[1] == pytest.approx(-0.2 * w * w * np.sin(w * (t - 0.5)), abs=1e-11)
    start = motion.at(0.0)
    assert np.max(np.abs([start.q - HOME, start.qd, start.qdd])) == 0.0
    with pytest.raises(InvalidValue, match="from 1 to 6"):
        Sine(ROBOT, HOME, 0.2, 0.5, [0])
    with pytest.raises(NoSolution, match=r"joint 2 would need .* rad/s"):
        Sine(ROBOT, HOME, 1.0, 0.5, [2])


def test_sequence_passes_on() -> None:
    pytest.importorskip("ruckig")
    q = HOME.copy()
    motion = moved_to(ROBOT, q, CIRCLE)
    first = motion.trajectories[0]
    assert motion.at(0.0).q == pytest.approx(q, abs=1e-12)
    begin = np.ceil(first.duration / 1e-3 - 1e-6) * 1e-3
    assert motion.duration == pytest.approx(begin + 10.0)
    for k in range(0, 10000, 997):
        t = k * 1e-3
        assert motion.at(begin + t).q is not None
        assert motion.at(begin + t).q == pytest.approx(CIRCLE.at(t).q, abs=0.0)  # on the grid, not interpolated
    steps = np.diff([motion.at(t).q for t in np.arange(begin - 0.05, begin + 0.05, 1e-3)], axis=0)
    assert np.max(np.abs(steps)) < 1e-3
    with pytest.raises(InvalidValue, match=r"trajectory 2 begins .* rad away"):
        Sequence([Hold(ROBOT, HOME, 1.0), CIRCLE])
    with pytest.raises(InvalidValue, match="never ends"):
        Sequence([Hold(ROBOT, HOME), CIRCLE])
    on = ramped_circle(ROBOT, stop=False, duration=4.0)
    with pytest.raises(InvalidValue, match=r"trajectory 1 ends with joint \d moving"):
        Sequence([on, Hold(ROBOT, on.at(4.1).q)])


def test_hold_holds() -> None:
    motion = Hold(ROBOT, HOME)
    for t in (-1.0, 0.0, 1e9):
        r = motion.at(t)
        assert r.q == pytest.approx(HOME, abs=0.0)
        assert np.max(np.abs([r.qd, r.qdd])) == 0.0
        assert r.T == pytest.approx(ROBOT.pose(HOME), abs=0.0)


def test_samples_cannot_be_written_and_travel() -> None:
    r: Reference = CIRCLE.at(1.0)
    for array in (r.q, r.qd, r.qdd, r.T, r.v, r.a, CIRCLE.q):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    copy = pickle.loads(pickle.dumps(CIRCLE))
    assert copy.at(1.2345).q == pytest.approx(CIRCLE.at(1.2345).q, abs=0.0)


@pytest.mark.parametrize("told", [True, False])
def test_a_long_motion_is_made_page_by_page(monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    """Above LONG samples nothing but the beginnings of pages is kept; every reference has the same bits."""
    arm = tangere.robot("ur5e")
    how = {"centre": (0.4, 0.1, 0.3), "radius": 0.1, "rate": 3.0, "duration": 2.5}
    whole = ramped_circle(arm, **how)
    start = whole.q[0] + [0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * np.pi] if told else None
    whole = ramped_circle(arm, q_start=start, **how)
    for module in (samples, path_trajectory):
        monkeypatch.setattr(module, "LONG", 1000)
    paged = ramped_circle(arm, q_start=start, **how)
    assert len(paged._on_grid.pair(0)) == 2
    assert paged._on_grid._samples.shape[0] <= samples.PAGE + 1 < len(paged.times)
    for name in ("q", "qd", "qdd", "sigma_min", "mismatch"):
        assert np.array_equal(getattr(paged, name), getattr(whole, name)), name
    edge = samples.PAGE * 1e-3
    for time in (0.0, edge, 2 * edge - 0.5e-3, edge - 0.3e-3, 1.7, 2.5, 3.0, -1.0, 0.2):
        for mine, theirs in zip(asdict(paged.at(time)).values(), asdict(whole.at(time)).values(), strict=True):
            assert np.array_equal(mine, theirs), time
    with pytest.raises(NoSolution, match=r"joint \d would need a velocity") as short:
        ramped_circle(arm, q_start=start, **how | {"rate": 30.0})
    monkeypatch.undo()
    with pytest.raises(NoSolution) as long:
        ramped_circle(arm, q_start=start, **how | {"rate": 30.0})
    assert str(short.value) == str(long.value)
    held = Sampled(arm, whole.q, whole.qd, whole.qdd, whole.period, whole.duration)
    monkeypatch.setattr(samples, "LONG", 1000)
    paged_too = Sampled(arm, whole.q, whole.qd, whole.qdd, whole.period, whole.duration)
    assert np.array_equal(paged_too.q, whole.q)
    assert np.array_equal(paged_too.at(1.7).a, held.at(1.7).a)
