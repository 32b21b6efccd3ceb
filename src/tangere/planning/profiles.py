"""Jerk-limited motion from state to state, as pieces of cubic polynomials; computed by ruckig, kept without it.

Only ruckig's state-to-state solver is used, which runs on this machine. Its waypoints (intermediate positions) are
never used: they are sent to a service elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, MissingExtra, NoSolution
from tangere.types import Array

# Knots closer together than this [s] are one: ruckig gives phases of zero length as 0 or as rounding of a few 1e-16.
SAME_TIME = 1e-12
# Shares of the jerk that are tried in turn. Where a motion just touches its largest acceleration (6 mm with 1.2 m/s2
# and 24 m/s3), rounding leaves ruckig between two of its cases and it gives up; a millionth less jerk is clearly one.
SHY = (1.0, 1.0 - 1e-6, 1.0 - 1e-4)


class PiecewiseCubic:
    """x(t) (n values) with constant jerk between knots: x = x_i + v_i d + a_i d^2/2 + j_i d^3/6, d = t - t_i.

    Before the first knot the start and after the last one the end is held.
    """

    __slots__ = ("acceleration", "duration", "jerk", "knots", "position", "velocity")

    def __init__(self, knots: Array, position: Array, velocity: Array, acceleration: Array) -> None:
        """knots (m+1,) from 0, the others (m+1, n): the state at each; the jerk follows from the acceleration."""
        self.knots, self.position, self.velocity, self.acceleration = knots, position, velocity, acceleration
        self.jerk = np.diff(acceleration, axis=0) / np.diff(knots)[:, None]
        self.duration = float(knots[-1])

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """x, xd, xdd, each (k, n), at times (k,) [s]; held at both ends means: clipped, not at rest."""
        t = np.clip(time, 0.0, self.duration)
        i = np.clip(np.searchsorted(self.knots, t, side="right") - 1, 0, len(self.jerk) - 1)
        d = (t - self.knots[i])[:, None]
        x, v, a, j = self.position[i], self.velocity[i], self.acceleration[i], self.jerk[i]
        return x + d * (v + d * (a / 2 + d * j / 6)), v + d * (a + d * j / 2), a + d * j

    @classmethod
    def joined(cls, parts: Sequence[PiecewiseCubic]) -> PiecewiseCubic:
        """One after another; each begins in the state in which the one before ends."""
        starts = np.cumsum([0.0, *(part.duration for part in parts[:-1])])
        first = parts[0]
        return cls(
            np.concatenate([first.knots, *(t + p.knots[1:] for t, p in zip(starts[1:], parts[1:], strict=True))]),
            np.concatenate([first.position, *(part.position[1:] for part in parts[1:])]),
            np.concatenate([first.velocity, *(part.velocity[1:] for part in parts[1:])]),
            np.concatenate([first.acceleration, *(part.acceleration[1:] for part in parts[1:])]),
        )


def jerk_limited(
    start: tuple[ArrayLike, ArrayLike, ArrayLike],
    end: tuple[ArrayLike, ArrayLike, ArrayLike],
    velocity_max: ArrayLike,
    acceleration_max: ArrayLike,
    jerk_max: ArrayLike,
    duration_min: float = 0.0,
) -> PiecewiseCubic:
    """The fastest motion of n values from one state (x, xd, xdd) to another, all arriving together.

    Every argument n numbers; limits are symmetric. duration_min [s] asks for a slower one.
    """
    ruckig = _ruckig()
    states = [[np.atleast_1d(np.asarray(x, dtype=np.float64)).tolist() for x in state] for state in (start, end)]
    n = len(states[0][0])
    inputs = ruckig.InputParameter(n)
    for prefix, state in zip(("current", "target"), states, strict=True):
        for name, values in zip(("position", "velocity", "acceleration"), state, strict=True):
            setattr(inputs, f"{prefix}_{name}", values)
    for name, limit in (("velocity", velocity_max), ("acceleration", acceleration_max), ("jerk", jerk_max)):
        setattr(inputs, f"max_{name}", _limit(limit, n, name))
    if duration_min > 0.0:
        inputs.minimum_duration = duration_min
    found = ruckig.Trajectory(n)
    jerk = inputs.max_jerk
    for less in SHY:
        inputs.max_jerk = [less * x for x in jerk]
        try:
            result = ruckig.Ruckig(n).calculate(inputs, found)
            break
        except ruckig.RuckigError as error:
            problem = error
    else:
        raise InvalidValue(f"no jerk-limited motion from {states[0]} to {states[1]}: {problem}") from None
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise NoSolution(f"no jerk-limited motion from {states[0]} to {states[1]}: {result.name}")
    return _pieces(found)


def _pieces(found: Any) -> PiecewiseCubic:
    """Knots where any value changes its jerk, and the states there."""
    times = [0.0, found.duration]
    for profile in found.profiles[0]:
        phases: Sequence[float] = [*profile.brake.t, *profile.t, *profile.accel.t]
        times.extend(np.cumsum(phases).tolist())
    ordered = np.unique(np.clip(times, 0.0, found.duration))
    knots = ordered[np.concatenate([[True], np.diff(ordered) > SAME_TIME])]
    knots[-1] = found.duration
    if len(knots) == 1:  # already there: one piece of no consequence
        knots = np.array([0.0, SAME_TIME])
    states = [np.array([np.atleast_1d(x) for x in found.at_time(float(t))[:3]]) for t in knots]
    position, velocity, acceleration = np.swapaxes(np.array(states), 0, 1)
    return PiecewiseCubic(knots, position, velocity, acceleration)


def _limit(value: ArrayLike, n: int, name: str) -> list[float]:
    limit = np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
    if not np.all(limit > 0.0):
        raise InvalidValue(f"{name}_max: must be positive, got {np.asarray(value).tolist()}")
    return [float(x) for x in limit]


def _ruckig() -> Any:
    try:
        import ruckig
    except ImportError:
        raise MissingExtra("jerk-limited timing needs ruckig: pip install 'tangere[plan]'") from None
    return ruckig
