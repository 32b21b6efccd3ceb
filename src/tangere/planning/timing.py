"""Time laws: how far along its path a motion is at a time. s(t) with its first two derivatives, s in m (or rad).

`SmoothRate` is a smooth start, as a circle needs it; `along` the fastest jerk-limited law for a path.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tangere.errors import InvalidValue, NoSolution
from tangere.planning.paths import Path, Piece, positive
from tangere.planning.profiles import PiecewiseCubic, jerk_limited
from tangere.types import Array

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

    Each piece of the path gets its own top speed: v <= speed, curvature v^2 <= acceleration, sharpness v^3 <= jerk, so
    that bends are passed slowly and straights fast. The speeds where pieces meet are lowered until every piece is long
    enough to change from one to the other; between them ruckig goes from state to state. Limits hold along the path
    and across it separately: while speeding up inside a bend the sum may reach sqrt(2) of the acceleration.
    """

    __slots__ = ("_law", "duration")

    def __init__(self, path: Path, speed: float, acceleration: float, jerk: float) -> None:
        """speed [m/s], acceleration [m/s2], jerk [m/s3]; all positive."""
        for value, name, unit_name in (
            (speed, "speed", "m/s"), (acceleration, "acceleration", "m/s2"), (jerk, "jerk", "m/s3")
        ):  # fmt: skip
            positive(value, name, unit_name)
        pieces = path.pieces
        top = np.array([_top_speed(piece, speed, acceleration, jerk) for piece in pieces])
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


def _top_speed(piece: Piece, speed: float, acceleration: float, jerk: float) -> float:
    top = speed
    if piece.curvature > 0.0:
        top = min(top, float(np.sqrt(acceleration / piece.curvature)))
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
