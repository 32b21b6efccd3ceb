"""Replay: a whole log at once gives what the observer gives sample by sample, whatever the log looks like."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.observe import replay
from tangere.observe.momentum import MomentumObserver
from tangere.observe.replay import replay_momentum
from tangere.types import State

GAIN = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0])
# Nm. Residuals of these logs reach some 500 Nm: 1e-16 of that, a few hundred roundings that decay with the lag
SAME = 1e-12


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


def log(rng, n, jitter=0.9):
    """A smooth motion with torques of any kind at irregular times: t, q, qd, tau."""
    t = 3.0 + np.cumsum(2e-3 * (1.0 + jitter * rng.uniform(-1.0, 1.0, n)))
    phase = t[:, None] * rng.uniform(2.0, 5.0, 6) + rng.uniform(0.0, 6.0, 6)
    return t, 0.5 * np.sin(phase) - 0.8, np.cos(phase), 20.0 * np.sin(2.3 * phase)


def stepwise(observer, t, q, qd, tau, period=None):
    h = np.diff(t, prepend=np.nan) if period is None else period
    samples = [State(*values) for values in zip(t, h, q, qd, tau, strict=True)]
    observer.reset(samples[0])
    return np.array([observer.residual, *(observer.update(s) for s in samples[1:])])


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 2049, 9000])
def test_equal_to_the_observer_on_an_irregular_log_of_any_length(robot, rng, n):
    data = log(rng, n)
    r = replay_momentum(robot, *data, GAIN)
    assert r.shape == (n, 6)
    assert np.abs(r - stepwise(MomentumObserver(robot, GAIN), *data)).max() < SAME
    assert n < 3 or np.abs(r).max() > 1.0


def test_equal_with_friction_warm_start_and_periods_of_their_own(robot, rng):
    data = log(rng, 700)
    period = np.diff(data[0], prepend=0.0) * rng.uniform(0.9, 1.1, 700)
    friction = JointFriction(np.full(6, 5.0), np.full(6, 8.0), width=0.05)
    start = np.arange(6.0) - 2.0
    ours = replay_momentum(robot, *data, 50.0, friction, period=period, residual=start)
    theirs = stepwise(MomentumObserver(robot, 50.0, friction, residual=start), *data, period)
    assert np.abs(ours - theirs).max() < SAME
    assert np.array_equal(ours[0], start)
    assert np.abs(ours - replay_momentum(robot, *data, 50.0, friction, residual=start)).max() > 0.1
    assert np.abs(ours - replay_momentum(robot, *data, 50.0, period=period, residual=start)).max() > 1.0


@pytest.mark.parametrize("gain", [1e-3, 2100.0, 1e6])
def test_equal_for_every_gain(robot, rng, gain):
    data = log(rng, 3000)
    r = replay_momentum(robot, *data, gain)
    assert np.abs(r - stepwise(MomentumObserver(robot, gain), *data)).max() < SAME


@pytest.mark.parametrize("seed", range(6))
def test_equal_on_logs_with_every_kind_of_fault(robot, seed):
    """Lost samples, gaps, a clock that goes back or is not a number, and values that are not, alone and in runs."""
    rng = np.random.default_rng(seed)
    n = 600
    t, q, qd, tau = log(rng, n)
    for array in (q, qd, tau):
        for k in rng.integers(0, n, 8):
            array[k : k + rng.integers(1, 4), rng.integers(6)] = rng.choice([np.nan, np.inf])
    for k in rng.integers(1, n, 8):
        t[k:] += 0.3  # a gap
    for k in rng.integers(1, n, 4):
        t[k:] -= 0.5  # the clock goes back
    for k in rng.integers(1, n - 3, 8):
        t[k : k + rng.integers(1, 4)] = t[k - 1]  # lost samples
    t[rng.integers(1, n, 3)] = np.nan
    if seed % 2:
        q[0] = np.nan
    ours, theirs = replay_momentum(robot, t, q, qd, tau, GAIN), stepwise(MomentumObserver(robot, GAIN), t, q, qd, tau)
    assert np.isfinite(ours).all()
    assert np.abs(ours - theirs).max() < SAME
    held = np.all(theirs[1:] == theirs[:-1], axis=1).sum()
    assert 30 < held < 300  # faults there are, and they are not all there is


def test_a_torque_that_is_not_a_number_is_found_though_the_kernels_never_see_it(robot, rng):
    data = log(rng, 300)
    data[3][100, 2] = np.nan
    ours, theirs = replay_momentum(robot, *data), stepwise(MomentumObserver(robot), *data)
    assert np.abs(ours - theirs).max() < SAME
    assert np.array_equal(ours[100], ours[99])
    assert np.array_equal(ours[101], ours[99])  # the observer takes that one as a new beginning


def test_a_clock_that_goes_back_is_seen_on_a_log_without_other_faults(robot, rng):
    data = log(rng, 300)
    data[0][100:] -= 0.5
    ours, theirs = replay_momentum(robot, *data), stepwise(MomentumObserver(robot), *data)
    assert np.abs(ours - theirs).max() < SAME
    assert np.array_equal(ours[100], ours[99])
    assert not np.array_equal(ours[101], ours[100])


def test_the_cut_into_stretches_does_not_show(robot, rng, monkeypatch):
    data = log(rng, 3000)
    whole = replay_momentum(robot, *data, GAIN)
    monkeypatch.setattr(replay, "_ROWS", 7)
    monkeypatch.setattr(replay, "_STRETCH", 50)
    assert np.abs(replay_momentum(robot, *data, GAIN) - whole).max() < SAME


def test_the_log_is_left_as_it_was(robot, rng):
    data = log(rng, 200)
    data[1][50] = np.nan
    copies = [array.copy() for array in data]
    replay_momentum(robot, *data)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(data, copies, strict=True))


def test_equal_on_a_recording_of_a_real_arm(robot, data_dir):
    file = data_dir / "ur10e_contacts" / "link4.csv"
    if not file.is_file():
        pytest.skip(f"no {file}")
    rows = np.loadtxt(file, delimiter=",")
    gains = np.array([11.976, 11.976, 9.839, 10.763, 10.763, 10.763])  # Nm/A, from target moment over target current
    data = rows[:, 0], rows[:, 1:7], rows[:, 7:13], rows[:, 13:19] * gains
    friction = JointFriction(np.array([16.8, 16.9, 7.2, 2.8, 3.4, 2.7]), np.array([22.8, 18.7, 9.3, 3.5, 2.2, 3.0]))
    ours = replay_momentum(robot, *data, 50.0, friction)
    assert np.abs(ours - stepwise(MomentumObserver(robot, 50.0, friction), *data)).max() < SAME
    assert np.abs(ours).max() > 10.0


def test_misuse_is_refused(robot, rng):
    t, q, qd, tau = log(rng, 50)
    with pytest.raises(InvalidValue, match=r"tau: must have shape \(50, 6\)"):
        replay_momentum(robot, t, q, qd, tau[:-1])
    with pytest.raises(InvalidValue, match=r"time: .* got shape \(0,\)"):
        replay_momentum(robot, t[:0], q[:0], qd[:0], tau[:0])
    with pytest.raises(InvalidValue, match="period"):
        replay_momentum(robot, t, q, qd, tau, period=0.002)
    with pytest.raises(InvalidValue, match="gain"):
        replay_momentum(robot, t, q, qd, tau, 0.0)
