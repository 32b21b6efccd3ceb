"""The pen's motion over the paper, piece after piece: down, draw, up, over to the next stroke; in canvas axes.

Every section starts and ends at rest and gives position, velocity and acceleration (k, 3) of the tip at times (k,).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.planning.paths import Path, PathPoints, Piece
from tangere.planning.profiles import PiecewiseCubic, jerk_limited
from tangere.planning.timing import JerkLimited
from tangere.types import Array

# Share of the lift height that is reached before the pen moves sideways, and below which it has stopped doing so
SIDEWAYS = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the pen moves."""

    speed: float  # m/s on the paper
    acceleration: float  # m/s2 along the line
    centripetal: float  # m/s2 across it: v <= sqrt(centripetal/curvature)
    jerk: float  # m/s3
    travel_speed: float  # m/s, pen up
    travel_acceleration: float
    travel_jerk: float
    touch_speed: float  # m/s, down onto the paper
    lift: float  # m, height of the moves between strokes
    touch_height: float  # m, above the paper: below it the pen goes down at touch_speed
    settle: float  # s, the pen rests on the paper before it draws


class Motion(Protocol):
    """Position over time, from rest to rest."""

    @property
    def duration(self) -> float:
        """Seconds."""

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, v, a (k, 3) at times (k,)."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of the drawing."""

    phase: str  # "travel", "approach", "draw", "lift"
    stroke: int  # from 0: the stroke being drawn, or to be drawn next (after the last: the last)
    contact: bool  # the pen should touch
    motion: Motion
    slower: float = 1.0  # so many times slower than the motion says, for the joints' sake

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.slower * self.motion.duration

    def on_grid(self, period: float) -> Section:
        """As much slower as it takes to last a whole number of periods [s]: the next section starts on a sample."""
        # a millionth of a period too long is rounding, not another period
        whole = max(1, math.ceil(self.duration / period - 1e-6)) * period
        return replace(self, slower=whole / self.motion.duration)

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, v, a (k, 3)."""
        p, v, a = self.motion.at(time / self.slower)
        return p, v / self.slower, a / self.slower**2


class Resting:
    """The pen stays where it is."""

    __slots__ = ("duration", "point")

    def __init__(self, point: Array, duration: float) -> None:
        self.point, self.duration = point, duration

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, 0, 0."""
        p = np.broadcast_to(self.point, (len(time), 3))
        return p, np.zeros_like(p), np.zeros_like(p)


class Straight:
    """From one point to another, jerk-limited; with start and end times of its own within a longer motion."""

    __slots__ = ("duration", "profile", "start", "way")

    def __init__(self, start: Array, end: Array, speed: float, acceleration: float, jerk: float) -> None:
        self.start, self.way = start, end - start
        length = float(np.linalg.norm(self.way))
        self.profile: PiecewiseCubic | None = None
        self.duration = 0.0
        if length > 0.0:
            self.way = self.way / length
            self.profile = jerk_limited((0.0, 0.0, 0.0), (length, 0.0, 0.0), speed, acceleration, jerk)
            self.duration = self.profile.duration

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, v, a (k, 3); held before and after."""
        if self.profile is None:
            return Resting(self.start, 0.0).at(time)
        s, sd, sdd = self.profile.at(time)
        moving = (time > 0.0) & (time < self.duration)
        sd, sdd = np.where(moving[:, None], sd, 0.0), np.where(moving[:, None], sdd, 0.0)
        return self.start + s * self.way, sd * self.way, sdd * self.way

    def time_at(self, length: float) -> float:
        """When it has gone so far [m], by bisection (it only goes forward)."""
        low, high = 0.0, self.duration
        assert self.profile is not None
        for _ in range(40):  # 1 s / 2^40: below a picosecond
            middle = 0.5 * (low + high)
            if self.profile.at(np.array([middle]))[0][0, 0] < length:
                low = middle
            else:
                high = middle
        return high


class Hop:
    """Up from the paper, over, and down to the touch height; sideways only above half the lift.

    Three jerk-limited straight motions that overlap in time: the sideways one begins when the upward one has passed
    half the lift, and has ended when the downward one comes below it.
    """

    __slots__ = ("_down", "_over", "_t_down", "_t_over", "_up", "duration")

    def __init__(self, start: Array, end: Array, pace: Pace) -> None:
        """start, end (2,) on the paper [m]."""
        limits = (pace.travel_speed, pace.travel_acceleration, pace.travel_jerk)
        zero = np.zeros(3)
        over = np.array((*(end - start), 0.0))
        self._up = Straight(np.array((*start, 0.0)), np.array((*start, pace.lift)), *limits)
        self._over = Straight(zero, over, *limits)
        self._down = Straight(zero, np.array((0.0, 0.0, pace.touch_height - pace.lift)), *limits)
        self._t_over = self._up.time_at(SIDEWAYS * pace.lift)
        early = self._down.time_at((1.0 - SIDEWAYS) * pace.lift) if pace.touch_height < SIDEWAYS * pace.lift else 0.0
        # not before it is all the way up: one axis never has two motions at once
        self._t_down = max(self._up.duration, self._t_over + self._over.duration - early)
        self.duration = self._t_down + self._down.duration

    def clear_time(self, height: float) -> float:
        """When the pen has risen to `height` [m]."""
        return self._up.time_at(height)

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, v, a (k, 3): the sum of the three."""
        up, over, down = self._up.at(time), self._over.at(time - self._t_over), self._down.at(time - self._t_down)
        return up[0] + over[0] + down[0], up[1] + over[1] + down[1], up[2] + over[2] + down[2]


class Drawn:
    """A curve on the paper, slow in its bends."""

    __slots__ = ("duration", "law", "path")

    def __init__(self, path: Path, pace: Pace) -> None:
        self.path = path
        ratio = pace.acceleration / pace.centripetal
        self.law = JerkLimited(_Bent(path, ratio), pace.speed, pace.acceleration, pace.jerk)
        self.duration = self.law.duration

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p = X(s), v = X' sd, a = X' sdd + X'' sd^2."""
        s, sd, sdd = self.law.at(time)
        on = self.path.at(np.clip(s, 0.0, self.path.length))
        v = on.first[:, :3] * sd[:, None]
        return on.T[:, :3, 3], v, on.first[:, :3] * sdd[:, None] + on.second[:, :3] * (sd**2)[:, None]


class _Bent:
    """A path whose curvature counts `ratio` times: the law's one acceleration limit becomes two."""

    __slots__ = ("path", "pieces")
    closed = False

    def __init__(self, path: Path, ratio: float) -> None:
        self.path = path
        self.pieces = tuple(Piece(p.start, p.end, ratio * p.curvature, p.sharpness) for p in path.pieces)

    @property
    def length(self) -> float:
        return self.path.length

    def at(self, s: ArrayLike) -> PathPoints:
        return self.path.at(s)


def sections_of(
    curves: list[list[Path]], ends: list[tuple[Array, Array]], pace: Pace, height: float
) -> list[Section]:
    """The whole drawing: it begins at rest `height` [m] above the first point and ends at lift height above the last.

    curves: of each stroke in order; ends: first and last point (2,) of each stroke [m] (a dot has no curve).
    """
    fast = (pace.travel_speed, pace.travel_acceleration, pace.travel_jerk)
    # the acceleration at touch-down: half a millimetre to reach the touch speed and to stop
    slow = (pace.touch_speed, pace.acceleration, pace.jerk)
    first, last = ends[0][0], ends[-1][1]
    found = [Section("travel", 0, False, Straight(_at(first, height), _at(first, pace.touch_height), *fast))]
    for i, (start, end) in enumerate(ends):
        found.append(Section("approach", i, True, Straight(_at(start, pace.touch_height), _at(start, 0.0), *slow)))
        if pace.settle > 0.0:
            found.append(Section("approach", i, True, Resting(_at(start, 0.0), pace.settle)))
        found += [Section("draw", i, True, Drawn(curve, pace)) for curve in curves[i]]
        if i + 1 < len(ends):
            found.append(Section("lift", i, False, Hop(end, ends[i + 1][0], pace)))
    found.append(Section("lift", len(ends) - 1, False, Straight(_at(last, 0.0), _at(last, pace.lift), *fast)))
    return found


def _at(point: Array, height: float) -> Array:
    return np.array((point[0], point[1], height))
