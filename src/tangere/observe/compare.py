"""Observers side by side on the same samples: how soon, how wrong, how costly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.alternatives import (
    DisturbanceObserver,
    FilteredDynamicsObserver,
    KalmanObserver,
    SlidingModeObserver,
)
from tangere.observe.momentum import GAIN, MomentumObserver
from tangere.robots import Robot
from tangere.types import Array, Friction, Observer, State

# [s] after reset and after the onset that count neither for errors nor for the quiet level: five time constants of
# 20 ms, after which 1 % of a step is left of a first-order lag, 4 % of a Butterworth filter of second order
SETTLE = 0.1
ROUNDS = 3  # times that each observer is run for its cost; the best counts, the others met another process


@dataclass(frozen=True, slots=True)
class Comparison:
    """One observer on one run with one push, on the joint that was pushed where not said otherwise."""

    name: str
    delay: float  # [s] from the onset until |r| exceeds its largest value before the push; inf: never (no false alarm)
    half_rise: float  # [s] until r has changed by half the push, counted from its mean over `settle` before; inf: never
    peak_error: float  # [Nm] largest |r - tau_ext|, the first `settle` seconds of the run and of the push left out
    rms: float  # [Nm] of the same
    rms_all: Array  # (n,) [Nm], of the same for every joint
    cost: float  # [s] per update, best of some rounds


def all_observers(robot: Robot, gain: ArrayLike = GAIN, friction: Friction | None = None) -> dict[str, Observer]:
    """The five observers of equal bandwidth K [1/s], and the acceleration residual raw and through the same lag."""
    return {
        "momentum": MomentumObserver(robot, gain, friction),
        "disturbance": DisturbanceObserver(robot, gain, friction),
        "sliding mode": SlidingModeObserver(robot, gain, friction),
        "kalman": KalmanObserver(robot, gain, friction),
        "filtered dynamics": FilteredDynamicsObserver(robot, gain, friction),
        "acceleration, filtered": AccelerationObserver(robot, gain, friction),
        "acceleration, raw": AccelerationObserver(robot, None, friction),
    }


def compare(
    observers: Mapping[str, Observer],
    samples: Sequence[State],
    tau_ext: Array,
    *,
    joint: int,
    onset: float,
    settle: float = SETTLE,
    rounds: int = ROUNDS,
) -> list[Comparison]:
    """One row per observer, in their order.

    samples: of one run, regular or not; tau_ext (N, n) [Nm]: what acted on average in the period that ended with each.
    joint (from 1) is pushed from `onset` [s] on, by a constant torque up to the end, and by nothing before. For the
    cost the observers take turns, `rounds` times.
    """
    if not samples or tau_ext.shape != (len(samples), samples[0].q.size):
        raise InvalidValue(f"tau_ext: one row per sample and joint, got {tau_ext.shape} for {len(samples)} samples")
    n = tau_ext.shape[1]
    if not 1 <= joint <= n:
        raise InvalidValue(f"joint: from 1 to {n}, got {joint!r}")
    times = np.array([state.time for state in samples])
    late = times - 1e-9  # a nanosecond: how sums of periods are rounded must decide nothing
    quiet = (late > times[0] + settle) & (late <= onset)
    pushed, settled = late > onset, late > onset + settle
    if not quiet.any() or not settled.any():
        raise InvalidValue(f"onset: at least {settle} s after the first and before the last sample, got {onset!r} s")
    residuals: dict[str, Array] = {}
    costs = dict.fromkeys(observers, inf)
    for _ in range(rounds):
        for name, observer in observers.items():
            residuals[name], cost = _run(observer, samples)
            costs[name] = min(costs[name], cost)
    judged, before = quiet | settled, quiet & (late > onset - settle)
    rows = []
    for name, r in residuals.items():
        error = (r - tau_ext)[judged]
        mine, push = r[:, joint - 1], tau_ext[-1, joint - 1]
        change = (mine - mine[before].mean()) / push
        rows.append(
            Comparison(
                name,
                _first(times, pushed & (np.abs(mine) > np.abs(mine[quiet]).max())) - onset,
                _first(times, pushed & (change >= 0.5)) - onset,
                float(np.abs(error[:, joint - 1]).max()),
                float(np.sqrt(np.mean(error[:, joint - 1] ** 2))),
                np.sqrt(np.mean(error**2, axis=0)),
                costs[name],
            )
        )
    return rows


def _run(observer: Observer, samples: Sequence[State]) -> tuple[Array, float]:
    """Residuals (N, n) and seconds per update."""
    n = samples[0].q.size
    observer.reset(samples[0])
    start = perf_counter()
    found = [observer.update(state) for state in samples[1:]]
    cost = (perf_counter() - start) / max(1, len(found))
    return np.concatenate((np.zeros((1, n)), np.array(found).reshape(-1, n))), cost


def _first(times: Array, where: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return float(times[np.argmax(where)]) if where.any() else inf
