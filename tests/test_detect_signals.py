"""Signals of detection: what a step, a drift, a wrong sample and a start from standstill make of level and change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tangere.kernels.laws.detection import (
    BASELINE,
    CHANGE,
    FADE,
    FAST,
    FORGET,
    GAP,
    HARMLESS,
    HOLD,
    IMPACT,
    LEVEL,
    MOVING,
    SETTLING,
    SHOCK,
    SLOW,
    STANDING,
    TURN_BASELINE,
    TURNING,
)  # fmt: skip
from tangere.observe.detect.signals import GAIN, Signals
from tangere.observe.detect.stops import StopWatch

N = 6


def _run(time: np.ndarray, y: np.ndarray, qd: np.ndarray, gain: float = GAIN) -> tuple[np.ndarray, np.ndarray, list]:
    """Signals of a raw torque y through an observer of that gain; values, weights, ready."""
    signals = Signals(N, gain)
    r = np.zeros(N)
    values, weights, ready = [], [], []
    for k, t in enumerate(time):
        h = 0.0 if k == 0 else time[k] - time[k - 1]
        r = r + (1.0 - np.exp(-gain * h)) * (y[k] - r)
        ready.append(signals.update(float(t), r, qd[k]))
        values.append(signals.values.copy())
        weights.append(signals.weights.copy())
    return np.array(values), np.array(weights), ready


def _stamps(rng: np.random.Generator, seconds: float, low: float, high: float) -> np.ndarray:
    return np.cumsum(rng.uniform(low, high, int(seconds / (0.5 * (low + high)))))


@pytest.mark.parametrize(("low", "high"), [(0.001, 0.001), (0.002, 0.002), (0.008, 0.008), (0.002, 0.034)])
def test_a_step_gives_the_first_order_lags(rng: np.random.Generator, low: float, high: float) -> None:
    """For a torque that is constant over each period the lags are exact, whatever the periods."""
    time = _stamps(rng, 2.0, low, high)
    k = len(time) // 2
    y = np.zeros((len(time), N))
    y[k:, 2] = 7.0
    values, _, _ = _run(time, y, np.full((len(time), N), 0.3))
    after = time[k:] - time[k - 1]
    # 1e-9 Nm: rounding of y recovered from r, divided by 1 - exp(-K h) = 0.05 at 1 kHz
    np.testing.assert_allclose(values[k:, LEVEL, 2], 7.0 * -np.expm1(-SLOW * after), atol=1e-9)
    early = after < 0.01  # b has hardly followed
    # b follows by at most after / BASELINE of the signal
    room = 7.0 * after[early] / BASELINE + 1e-9
    f = 7.0 * -np.expm1(-FAST * after[early])
    g, twice = 0.0, []
    for value, h in zip(f, np.diff(after[early], prepend=0.0), strict=True):  # the second lag, period by period
        g += -np.expm1(-FAST * h) * (value - g)
        twice.append(g)
    assert np.all(np.abs(values[k:, SHOCK, 2][early] - twice) <= room)
    assert np.all(np.abs(values[k + 1 :, IMPACT, 2][early[1:]] - f[:-1]) <= room[1:])  # one sample later
    assert not np.any(np.abs(values[:, :, [0, 1, 3, 4, 5]]) > 1e-9)


def test_one_wrong_sample_is_a_shock_and_no_impact(rng: np.random.Generator) -> None:
    """A wrong velocity makes two raw torques of opposite sign."""
    time = _stamps(rng, 3.0, 0.009, 0.011)
    y = np.zeros((len(time), N))
    y[200, 1], y[201, 1] = 60.0, -60.0
    values, _, _ = _run(time, y, np.full((len(time), N), 0.3))
    assert values[200, SHOCK, 1] > 30.0  # 60 Nm through two lags of 0.78
    assert np.abs(values[:, IMPACT, 1]).max() < 0.25 * np.abs(values[:, SHOCK, 1]).max()
    assert np.abs(values[:, CHANGE, 1]).max() < 0.25 * np.abs(values[:, SHOCK, 1]).max()


def test_slow_change_stays_out_of_the_change_channel() -> None:
    time = np.arange(0.0, 10.0, 0.002)
    y = np.zeros((len(time), N))
    y[:, 1] = 2.0 * time  # 2 Nm/s, up to 20 Nm
    values, _, _ = _run(time, y, np.full((len(time), N), 0.3))
    assert values[-1, LEVEL, 1] > 19.0
    # b lags c by BASELINE, d by 1/FAST
    assert values[-1, CHANGE, 1] == pytest.approx(2.0 * (BASELINE - 1.0 / FAST), rel=0.01)


def test_regimes_and_their_hold_time() -> None:
    time = np.arange(0.0, 3.0, 0.002)
    qd = np.zeros((len(time), N))
    qd[(time > 1.0) & (time < 2.0), 0] = 0.3
    _, weights, _ = _run(time, np.zeros((len(time), N)), qd)
    np.testing.assert_allclose(weights[1:].sum(axis=1), 1.0)

    def at(t: float) -> np.ndarray:
        return weights[np.searchsorted(time, t)]

    assert np.all(at(0.9)[STANDING] == 1.0)
    assert at(1.05)[TURNING, 0] == 1.0
    assert 0.0 < at(1.0 + HOLD - 0.5 * FADE)[TURNING, 0] < 1.0  # fades
    assert at(1.5)[MOVING, 0] == 1.0
    assert np.all(at(1.5)[TURNING, 1:] == 1.0)  # stand beside a moving joint: stiction may jump
    assert at(2.05)[TURNING, 0] == 1.0
    assert np.all(at(2.5)[STANDING] == 1.0)


def test_reversal_counts_as_turning() -> None:
    time = np.arange(0.0, 2.0, 0.01)
    qd = np.full((len(time), N), 0.3)
    qd[time > 1.0, 3] = -0.3
    _, weights, _ = _run(time, np.zeros((len(time), N)), qd)
    assert weights[105, TURNING, 3] == 1.0
    assert weights[105, TURNING, 2] == 0.0
    assert weights[150, MOVING, 3] == 1.0


def test_gap_repeated_stamp_and_nan_restart() -> None:
    signals = Signals(N)
    zero, moving = np.zeros(N), np.full(N, 0.3)
    for t in np.arange(0.0, 1.0, 0.01):
        ready = signals.update(float(t), zero, moving)
    assert ready
    assert not signals.update(float(t), zero + 9.0, moving)  # the same stamp again: ignored
    assert signals.update(float(t) + 0.01, zero, moving)
    assert not signals.update(float(t) + 0.5, zero + 5.0, moving)  # a gap
    assert not signals.update(float(t) + 0.51, zero + 5.0, moving)  # settles again
    assert np.all(signals.values[CHANGE:] == 0.0)  # what came over the gap is no change
    assert not signals.update(float(t) + 0.52, zero * np.nan, moving)
    assert not signals.update(float(t) + 0.53, zero, moving)
    assert not signals.update(float(t) - 5.0, zero, moving)  # the clock goes backwards


@pytest.mark.parametrize("size", [1e160, np.inf, np.nan])
def test_a_number_that_is_none_leaves_nothing_behind(size: float) -> None:
    """Nor one whose square is none: the filters would keep it for ever."""
    for residual, qd in ((size, 0.3), (0.0, size)):
        signals = Signals(N)
        for t in np.arange(0.0, 2.0, 0.01):
            broken = abs(t - 1.0) < 1e-9
            signals.update(float(t), np.full(N, residual if broken else 0.0), np.full(N, qd if broken else 0.3))
        assert signals.ready
        assert np.abs(signals.values).max() == 0.0


def _stop_at(time: np.ndarray, when: float, within: float, rate: float = 0.0) -> np.ndarray:
    qd = np.array([0.3, -0.2, 0.1, 0.0, 0.4, -0.1]) * np.clip(1.0 - (time[:, None] - when) / within, 0.0, 1.0)
    return qd + rate


@pytest.mark.parametrize("h", [0.002, 0.008, 0.01])
def test_stops_are_told_from_planned_ends_and_reversals(h: float) -> None:
    time = np.arange(0.0, 3.0, h)

    def first(qd: np.ndarray) -> float | None:
        watch = StopWatch()
        hits = [t for t, v in zip(time, qd, strict=True) if watch.update(float(t), v)]
        return hits[0] if hits else None

    found = first(_stop_at(time, 1.0, 0.05))
    assert found is not None
    assert 1.0 < found <= 1.05
    assert first(_stop_at(time, 1.0, 0.6)) is None  # a planned end: 0.9 rad/s2 over all joints
    assert first(0.4 * np.cos(2.0 * time)[:, None] * np.ones(6)) is None  # reversals at 0.8 rad/s2 per joint
    bent = _stop_at(time, 9.0, 1.0)
    bent[(time > 1.0) & (time < 1.2), 1] = -0.02  # a contact brakes one joint of five
    assert first(bent) is None


@pytest.mark.parametrize("h", [0.002, 0.01])
def test_brisk_smooth_motion_is_no_stop_and_a_stop_in_it_is(h: float) -> None:
    """Six joints that turn round together, with up to 13 rad/s2: harder than many stops, but foreseeable."""
    time = np.arange(0.0, 6.0, h)
    for amplitude, frequency in ((0.6, 0.3), (0.4, 0.5), (0.8, 0.3), (0.3, 0.67)):
        w = 2.0 * np.pi * frequency
        qd = np.outer(amplitude * w * np.cos(w * time), np.ones(6))
        watch = StopWatch()
        assert not any(watch.update(t, v) for t, v in zip(time, qd, strict=True))
        at = 1.1 / frequency  # past the full speed: the arm brakes already
        halted = qd * np.clip(1.0 - (time - at) / 0.05, 0.0, 1.0)[:, None]
        watch = StopWatch()
        stopping = np.array([watch.update(t, v) for t, v in zip(time, halted, strict=True)])
        assert at < time[np.argmax(stopping)] < at + 0.06


@pytest.mark.parametrize("h", [0.002, 0.01])
def test_speed_that_a_knock_gave_is_none_to_be_stopped_from(h: float) -> None:
    """An arm that stands or creeps is knocked and swings back, 6 rad/s2: no stop. One that moved so fast stops."""
    time, way = np.arange(0.0, 3.0, h), np.array([1.0, -0.5, 0.3, 0.0, 0.2, 0.0])
    knock = 0.15 * np.clip(1.0 - np.abs(time - 1.5) / 0.03, 0.0, 1.0)
    for before, after, told in ((0.0, 0.0, False), (0.01, 0.01, False), (0.15, 0.0, True)):
        watch = StopWatch()
        speed = np.maximum(np.where(time < 1.5, before, after), knock)
        stopping = [watch.update(t, v) for t, v in zip(time.tolist(), np.outer(speed, way), strict=True)]
        assert any(stopping) == told


def test_target_velocity_tells_a_stop_before_the_arm_does() -> None:
    watch = StopWatch()
    qd = np.full(6, 0.3)
    for k in range(100):
        assert not watch.update(0.01 * k, qd, qd)
    assert watch.update(1.0, qd, np.zeros(6))
    assert watch.began == pytest.approx(0.99)


def test_a_noisy_first_residual_is_no_part_of_the_mean_before() -> None:
    """An observer that starts with its first input of 50 Nm forgets it with its own lag; so does what is watched."""
    signals = Signals(1)
    for k in range(200):
        t = 0.002 * k
        watching = signals.update(t, np.array([50.0 * np.exp(-50.0 * t)]), np.array([0.5]))
        assert watching == (t > 0.3 + 1e-9)
        if watching:
            # of 50 Nm e^-5 are left when the mean begins, over 0.2 s a tenth of that; a mean from the start on had 3 Nm
            assert abs(float(signals.baseline[0])) < 0.1
            assert np.abs(signals.values).max() < 0.2


def _two(new: float, old: float) -> float:
    """The smaller of both, 0 where their signs differ."""
    if new * old <= 0.0:
        return 0.0
    return min(new, old, key=abs)


def signals_reference(
    time: np.ndarray, residual: np.ndarray, qd: np.ndarray, gain: float = GAIN, standstill: float = 0.02
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signals as their docstring has them, joint by joint and without any shortcut: values, weights, ready."""
    count, n = residual.shape
    values, weights, ready = np.zeros((count, 4, n)), np.zeros((count, 3, n)), np.zeros(count, dtype=bool)
    last, age = -math.inf, 0.0
    s = f = g = d = b = before = np.zeros(n)
    way, turn = np.zeros(n), np.zeros(n)
    for k in range(count):
        r, h = residual[k], time[k] - last
        if h == 0.0:
            continue
        if not np.isfinite([*r, *qd[k]]).all():
            last = -math.inf
            continue
        last, was = time[k], way
        way = np.where(np.abs(qd[k]) > standstill, np.sign(qd[k]), 0.0)
        fresh = not 0.0 < h <= GAP
        if fresh:
            s = f = g = d = b = before = r
            was, turn, age, h = way, np.zeros(n), 0.0, 0.0
        turn = np.where(way != was, HOLD, turn - h)
        if way.any():
            turn = np.where(way == 0.0, np.maximum(turn, FADE), turn)
        share = np.clip(turn, 0.0, FADE) / FADE
        weights[k] = (1.0 - share) * (way != 0.0), share, (1.0 - share) * (way == 0.0)
        if fresh:
            continue
        age += h
        part = max(1.0 - math.exp(-h / BASELINE), h / max(age - FORGET, h))
        quick = max(1.0 - math.exp(-h / TURN_BASELINE), part)
        b = b + np.where(turn > 0.0, quick, part) * (r - b)
        y = before + (r - before) / (1.0 - math.exp(-gain * h))
        slow, fast = 1.0 - math.exp(-SLOW * h), 1.0 - math.exp(-FAST * h)
        s, f_old, d_old = s + slow * (y - s), f, d
        f, d = f + fast * (y - f), d + fast * (r - d)
        g, before = g + fast * (f - g), r
        change = d - b
        if gain * h >= HARMLESS:
            change = np.array([_two(*pair) for pair in zip(d - b, d_old - b, strict=True)])
        impact = [_two(*pair) for pair in zip(f - b, f_old - b, strict=True)]
        values[k] = s, change, impact, g - b
        ready[k] = age > SETTLING
    return values, weights, ready


@pytest.mark.parametrize(("low", "high"), [(0.001, 0.001), (0.002, 0.012), (0.008, 0.008)])
def test_signals_are_those_of_the_plain_form(rng: np.random.Generator, low: float, high: float) -> None:
    """Joints that turn round, stand alone and together; a gap, a stamp that repeats, samples that are not finite."""
    time = _stamps(rng, 6.0, low, high)
    count = len(time)
    qd = 0.3 * np.sin(np.outer(time, [1.0, 2.0, 3.0, 0.5, 5.0, 0.1])) + 0.002 * rng.standard_normal((count, N))
    qd[(time > 3.0) & (time < 3.8)] = 0.0
    qd[(time > 1.0) & (time < 1.4), 2] = 0.0
    r = np.cumsum(rng.standard_normal((count, N)), axis=0) * np.sqrt(high)
    time[count // 2 :] += 0.2
    time[count // 3] = time[count // 3 - 1]
    r[3 * count // 4, 1] = np.nan
    values, weights, ready = signals_reference(time, r, qd)
    signals = Signals(N)
    for k, t in enumerate(time.tolist()):
        told = signals.update(t, r[k], qd[k])
        assert told == ready[k]
        if told:
            np.testing.assert_allclose(signals.values, values[k], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(signals.weights, weights[k], rtol=1e-9, atol=1e-9)
    assert ready.mean() > 0.6
    assert (weights[ready] > 0.0).any(axis=(0, 2)).all()
