"""Time laws: how far along its path a motion is at a time. s(t) with its first two derivatives, s in m (or rad).

`SmoothRate` is a smooth start, as a circle needs it; `along` the fastest jerk-limited law for a path. Jerk-limited
motion from state to state is computed by ruckig and kept without it, as pieces of cubic polynomials. Only ruckig's
state-to-state solver is used, which runs on this machine; its waypoints (intermediate positions) are sent to a service
elsewhere and never used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, NoSolution, extra
from tangere.planning.paths import Path, Piece, positive
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

    def first(self) -> Callable[[float], float]:
        """Its first value as a function of one time [s], in plain numbers: for a search."""
        knots, last, end = self.knots.tolist(), len(self.jerk) - 1, self.duration
        rows = [part[:, 0].tolist() for part in (self.position, self.velocity, self.acceleration, self.jerk)]

        def value(time: float) -> float:
            t = min(max(time, 0.0), end)
            i = min(max(bisect_right(knots, t) - 1, 0), last)
            d, (x, v, a, j) = t - knots[i], (row[i] for row in rows)
            return float(x + d * (v + d * (a / 2 + d * j / 6)))

        return value

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
    states = [
        [[float(x)] if isinstance(x, float) else np.atleast_1d(np.asarray(x, dtype=np.float64)).tolist() for x in state]
        for state in (start, end)
    ]
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
    end = float(found.duration)
    times = {0.0, end}
    for profile in found.profiles[0]:
        times |= {min(t, end) for t in accumulate((*profile.brake.t, *profile.t, *profile.accel.t))}
    ordered = sorted(times)  # plain numbers: there are few, and numpy would take most of the time
    knots = [0.0, *(later for before, later in pairwise(ordered) if later - before > SAME_TIME)]
    knots[-1] = end
    if len(knots) == 1:  # already there: one piece of no consequence
        knots = [0.0, SAME_TIME]
    states = np.array([found.at_time(t)[:3] for t in knots]).reshape(len(knots), 3, -1)
    return PiecewiseCubic(np.array(knots), states[:, 0], states[:, 1], states[:, 2])


def _limit(value: Any, n: int, name: str) -> list[float]:
    if isinstance(value, float) and value > 0.0:
        return [float(value)] * n
    limit = np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
    if not np.all(limit > 0.0):
        raise InvalidValue(f"{name}_max: must be positive, got {np.asarray(value).tolist()}")
    return [float(x) for x in limit]


def _ruckig() -> Any:
    with extra("jerk-limited timing needs ruckig: pip install 'tangere[plan]'"):
        import ruckig
    return ruckig


# A speed at a joint of two pieces is searched to this share of itself; a thousandth would already be invisible.
SPEED_TOLERANCE = 1e-9
# Share of a piece that is kept in reserve for its change of speed. Without any, one change in five has no solution by
# its last digit, and ruckig goes back and forth instead (2000 random ones; none from 1e-12 on).
LENGTH_RESERVE = 1e-6


class TimeLaw(Protocol):
    """s(t), t from 0 to duration."""

    @property
    def duration(self) -> float:
        """Seconds."""

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """s, sd, sdd, each (k,), at times (k,)."""


def smooth_ramp(time: Array, ramp: float) -> tuple[Array, Array, Array]:
    """Unit rate with a smooth start (000 eq 88 has none: it jumps to full speed at t = 0).

        u = t/Tr < 1:  thd = 10 u^3 - 15 u^4 + 6 u^5,  th = Tr (2.5 u^4 - 3 u^5 + u^6),  thdd = 30 u^2 (1 - u)^2 / Tr
        u >= 1:        th = t - Tr/2, thd = 1, thdd = 0

    Rate and acceleration are continuous; the peak acceleration is 15/8 of rate/Tr, at Tr/2. time (k,), ramp Tr >= 0.
    """
    t = np.maximum(time, 0.0)
    if ramp == 0.0:
        return t, np.ones_like(t), np.zeros_like(t)
    u = np.minimum(t / ramp, 1.0)
    th = ramp * u**4 * (2.5 + u * (u - 3.0)) + np.maximum(t - ramp, 0.0)
    return th, u**3 * (10.0 + u * (6.0 * u - 15.0)), 30.0 * u**2 * (1.0 - u) ** 2 / ramp


class SmoothRate:
    """Smooth start within `ramp`, then a constant rate; with `stop` the mirror image of the start at the end.

    rate: m/s along a path (radius times w on a circle) or rad/s. duration [s]: from rest to rest; without `stop` the
    law just goes on, and the duration only says until when it is asked. Distance: rate (duration - ramp) with stop.
    """

    __slots__ = ("duration", "ramp", "rate", "stop")

    def __init__(self, rate: float, ramp: float, duration: float, *, stop: bool = True) -> None:
        self.rate = positive(rate, "rate", "m/s or rad/s")
        self.duration = positive(duration, "duration", "s")
        if not (np.isfinite(ramp) and ramp >= 0.0):
            raise InvalidValue(f"ramp: must be finite and not negative [s], got {ramp!r}")
        if stop and duration < 2.0 * ramp:
            raise InvalidValue(f"duration: {duration:g} s is too short for two ramps of {ramp:g} s")
        self.ramp, self.stop = float(ramp), stop

    @classmethod
    def over(cls, distance: float, rate: float, ramp: float) -> SmoothRate:
        """The law that goes `distance` at `rate` and stops; the duration follows. The ramp is shortened if need be."""
        cruise = positive(distance, "distance", "m or rad") / positive(rate, "rate", "m/s or rad/s")
        return cls(rate, min(ramp, cruise), cruise + min(ramp, cruise))

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """s, sd, sdd (k,)."""
        time = np.asarray(time, dtype=np.float64)
        if not self.stop:
            s, sd, sdd = smooth_ramp(time, self.ramp)
            return self.rate * s, self.rate * sd, self.rate * sdd
        t = np.minimum(time, self.duration)
        s, sd, sdd = smooth_ramp(t, self.ramp)
        back, back_d, back_dd = smooth_ramp(self.duration - t, self.ramp)
        late = t > self.duration / 2
        s = np.where(late, self.duration - self.ramp - back, s)
        return self.rate * s, self.rate * np.where(late, back_d, sd), self.rate * np.where(late, -back_dd, sdd)


class Stretched:
    """The same law, `factor` times slower: s(t/k), so speeds fall by k and accelerations by k^2."""

    __slots__ = ("duration", "factor", "law")

    def __init__(self, law: TimeLaw, factor: float) -> None:
        self.law, self.factor = law, positive(factor, "factor", "1")
        self.duration = law.duration * self.factor

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """s, sd, sdd (k,)."""
        s, sd, sdd = self.law.at(np.asarray(time) / self.factor)
        return s, sd / self.factor, sdd / self.factor**2


class JerkLimited:
    """The fastest law along a path within limits of speed, acceleration and jerk, from rest to rest.

    Each piece of the path gets its own top speed: v <= speed, curvature v^2 <= centripetal, sharpness v^3 <= jerk, so
    that bends are passed slowly and straights fast. The speeds where pieces meet are lowered until every piece is long
    enough to change from one to the other; between them ruckig goes from state to state. Limits hold along the path
    and across it separately: while speeding up inside a bend the sum may reach sqrt(2) of the acceleration.
    """

    __slots__ = ("_law", "duration")

    def __init__(
        self, path: Path, speed: float, acceleration: float, jerk: float, centripetal: float | None = None
    ) -> None:
        """speed [m/s], acceleration [m/s2], jerk [m/s3]; centripetal [m/s2]: None is the acceleration; all positive."""
        bend = 1.0 if centripetal is None else acceleration / positive(centripetal, "centripetal", "m/s2")
        positive(speed, "speed", "m/s")
        positive(acceleration, "acceleration", "m/s2")
        positive(jerk, "jerk", "m/s3")
        pieces = path.pieces
        top = np.array([_top_speed(piece, speed, acceleration, jerk, bend) for piece in pieces])
        joints = _joint_speeds(pieces, top, acceleration, jerk)
        limit = 1.0 + SPEED_TOLERANCE  # a speed that is met exactly must not be refused for its last digit
        parts = []
        for piece, v_top, v_in, v_out in zip(pieces, top, joints[:-1], joints[1:], strict=True):
            start, end = (0.0, v_in, 0.0), (piece.end - piece.start, v_out, 0.0)
            part = jerk_limited(start, end, v_top * limit, acceleration, jerk)
            part.position += piece.start
            parts.append(part)
        self._law = PiecewiseCubic.joined(parts)
        if self._law.velocity.min() < -SPEED_TOLERANCE * speed:  # ruckig's way out where a piece is too short
            raise NoSolution(f"no law that only goes forward at {speed:g} m/s, {acceleration:g} m/s2, {jerk:g} m/s3")
        self.duration = self._law.duration

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """s, sd, sdd (k,); at rest after the end."""
        s, sd, sdd = self._law.at(np.asarray(time, dtype=np.float64))
        return s[:, 0], sd[:, 0], sdd[:, 0]


def _top_speed(piece: Piece, speed: float, acceleration: float, jerk: float, bend: float) -> float:
    """bend: how many times the curvature counts."""
    top = speed
    if piece.curvature > 0.0:
        top = min(top, float(np.sqrt(acceleration / (bend * piece.curvature))))
    if piece.sharpness > 0.0:
        top = min(top, float(np.cbrt(jerk / piece.sharpness)))
    return top


def change_distance(v_0: float, v_1: float, acceleration: float, jerk: float) -> float:
    """Distance [m] that a change of speed takes, from zero to zero acceleration: the mean speed times the time.

    T = dv/a + a/j where the acceleration limit is reached (dv >= a^2/j), else 2 sqrt(dv/j).
    """
    dv = abs(v_1 - v_0)
    time = dv / acceleration + acceleration / jerk if dv >= acceleration**2 / jerk else 2.0 * np.sqrt(dv / jerk)
    return float(0.5 * (v_0 + v_1) * time)


def _joint_speeds(pieces: tuple[Piece, ...], top: Array, acceleration: float, jerk: float) -> Array:
    """Speed (m+1,) at the start, where pieces meet, and at the end; zero at both ends.

    Once backwards and once forwards: each piece must be long enough for its change of speed.
    """
    joints = np.concatenate([[0.0], np.minimum(top[:-1], top[1:]), [0.0]])
    lengths = [piece.end - piece.start for piece in pieces]
    for i in reversed(range(len(pieces))):
        joints[i] = _reachable(joints[i + 1], joints[i], lengths[i], acceleration, jerk)
    for i in range(len(pieces)):
        joints[i + 1] = _reachable(joints[i], joints[i + 1], lengths[i], acceleration, jerk)
    return joints


def _reachable(v_known: float, v_wanted: float, length: float, acceleration: float, jerk: float) -> float:
    """The speed nearest to v_wanted (from below, at least v_known if that is less) that `length` allows."""
    length *= 1.0 - LENGTH_RESERVE
    if v_wanted <= v_known or change_distance(v_known, v_wanted, acceleration, jerk) <= length:
        return v_wanted
    low, high = v_known, v_wanted
    while high - low > SPEED_TOLERANCE * v_wanted:
        middle = 0.5 * (low + high)
        if change_distance(v_known, middle, acceleration, jerk) <= length:
            low = middle
        else:
            high = middle
    return low
