"""The pen's motion over the paper, stretch after stretch, and the planned drawing that is made of them.

Canvas axes. Every stretch (down, draw, up, over to the next stroke) starts and ends at rest and gives position,
velocity and acceleration (k, 3) of the tip at times (k,). The plan is a trajectory that knows what the pen is meant to
do at a time, and what was checked.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.pen_path import TOLERANCE
from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue
from tangere.planning.paths import Path, positive
from tangere.planning.samples import Sampled
from tangere.planning.timing import JerkLimited, PiecewiseCubic, TimeLaw, jerk_limited
from tangere.robots import Robot
from tangere.types import Array

# m/s above the paper: UR's own default for linear moves
TRAVEL_SPEED = 0.25
# m/s2 along the line, m/s2 across it, m/s3: at 50 mm/s circles of 10 mm radius are drawn at full speed; 1.5 N for the 5
# kg felt at a UR5e's tip; the acceleration builds up over 50 ms, slower than a UR's first bending mode (10 to 15 Hz)
ACCELERATION, CENTRIPETAL, JERK = 0.5, 0.25, 10.0
# m/s2 and m/s3 with the pen in the air, where nothing but time is lost: UR's default 1.2 m/s2, reached within 50 ms
TRAVEL_ACCELERATION, TRAVEL_JERK = 1.2, 24.0
# m: pen-up height; the pen moves sideways above half of it only, which leaves 5 mm for bumps and canvas error
LIFT = 0.010
# m above the paper where the slow descent begins; after probing the canvas is known to some 0.1 mm
TOUCH_HEIGHT = 0.002
# s: the force has settled after a few time constants of any of the force loops (20 to 50 ms)
SETTLE = 0.2
# Force overshoot at touch-down, as a share of the force; and the most a touch may be fast [m/s]
OVERSHOOT, TOUCH_SPEED_MAX = 0.3, 0.01
# N/m: stiffness of pen and paper together that the touch speed is reckoned with
STIFFNESS = DrawingSettings.stiffness
# rad/s2: half of what UR accepts for its own joint moves at most (40 rad/s2); ten times its default
JOINT_ACCELERATION = 14.0
# Share of the lift height that is reached before the pen moves sideways, and below which it has stopped doing so
SIDEWAYS = 0.5


@dataclass(frozen=True)
class PenMotion:
    """How a pen is moved and held: speeds, heights, the force it is to press with, and the way it leans.

    Without a touch_speed it is the one whose impact overshoots the force by 30 % at most,
    v = 0.3 F / sqrt(stiffness m), m the inertia felt at the tip.
    """

    speed: float = DrawingSettings.speed  # m/s on the paper
    travel_speed: float = TRAVEL_SPEED  # m/s above it
    lift: float = LIFT  # m between two strokes
    centripetal: float = CENTRIPETAL  # m/s2 across a line: v <= sqrt(centripetal / curvature)
    acceleration: float = ACCELERATION  # m/s2 along it
    jerk: float = JERK  # m/s3
    tolerance: float = TOLERANCE  # m: how far the pen's way may stray from the strokes
    force: float = DrawingSettings.force  # N
    stiffness: float = STIFFNESS  # N/m
    touch_speed: float | None = None  # m/s, down onto the paper
    touch_height: float = TOUCH_HEIGHT  # m above the paper, from where the pen comes down at touch_speed
    settle: float = SETTLE  # s that it rests on the paper before it draws
    lean: float = 0.0  # rad, see reach.pen_orientation
    lean_towards: float = -0.5 * math.pi  # rad
    spin: float | None = None  # rad; None: what suits the arm
    joint_acceleration: ArrayLike = JOINT_ACCELERATION  # rad/s2

    def __post_init__(self) -> None:
        for name, unit in (
            ("speed", "m/s"), ("travel_speed", "m/s"), ("lift", "m"), ("force", "N"), ("centripetal", "m/s2"),
            ("acceleration", "m/s2"), ("jerk", "m/s3"), ("stiffness", "N/m"), ("touch_height", "m"),
        ):  # fmt: skip
            positive(getattr(self, name), name, unit)
        if self.touch_speed is not None:
            positive(self.touch_speed, "touch_speed", "m/s")
        if not (math.isfinite(self.settle) and self.settle >= 0.0):
            raise InvalidValue(f"settle: must be finite and not negative [s], got {self.settle!r}")
        if self.touch_height > 0.5 * self.lift:
            half = f"{500 * self.lift:g} mm"
            raise InvalidValue(f"touch_height: at most half the lift ({half}), got {1e3 * self.touch_height:g} mm")

    def paced(self, mass: float) -> PenMotion:
        """With the touch speed that suits `mass` [kg], felt at the tip."""
        gentle = min(OVERSHOOT * self.force / math.sqrt(self.stiffness * mass), TOUCH_SPEED_MAX)
        return replace(self, touch_speed=self.touch_speed or gentle)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of the drawing."""

    phase: str  # "travel", "approach", "draw", "lift"
    stroke: int  # from 0: the stroke being drawn, or to be drawn next (after the last: the last)
    contact: bool  # the pen should touch
    course: TimeLaw  # p, v, a (k, 3) of the tip at times (k,), from rest to rest
    slower: float = 1.0  # so many times slower than the motion says, for the joints' sake

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.slower * self.course.duration

    def on_grid(self, period: float) -> Stretch:
        """As much slower as it takes to last a whole number of periods [s]: the next stretch starts on a sample."""
        # a millionth of a period too long is rounding, not another period
        whole = max(1, math.ceil(self.duration / period - 1e-6)) * period
        return replace(self, slower=whole / self.course.duration)

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, v, a (k, 3)."""
        p, v, a = self.course.at(time / self.slower)
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
        gone = self.profile.first()
        for _ in range(40):  # 1 s / 2^40: below a picosecond
            middle = 0.5 * (low + high)
            if gone(middle) < length:
                low = middle
            else:
                high = middle
        return high


class Hop:
    """Up from the paper, over, and down to the touch height; sideways only above half the lift.

    Three jerk-limited straight motions that overlap in time: the sideways one begins when the upward one has passed
    half the lift, and has ended when the downward one comes below it.
    """

    __slots__ = ("_down", "_over", "_t_down", "_t_over", "duration", "up")

    def __init__(self, start: Array, end: Array, pace: PenMotion) -> None:
        """start, end (2,) on the paper [m]."""
        limits = (pace.travel_speed, TRAVEL_ACCELERATION, TRAVEL_JERK)
        zero = np.zeros(3)
        over = np.array((*(end - start), 0.0))
        self.up = Straight(np.array((*start, 0.0)), np.array((*start, pace.lift)), *limits)
        self._over = Straight(zero, over, *limits)
        self._down = Straight(zero, np.array((0.0, 0.0, pace.touch_height - pace.lift)), *limits)
        self._t_over = self.up.time_at(SIDEWAYS * pace.lift)
        early = self._down.time_at((1.0 - SIDEWAYS) * pace.lift) if pace.touch_height < SIDEWAYS * pace.lift else 0.0
        # not before it is all the way up: one axis never has two motions at once
        self._t_down = max(self.up.duration, self._t_over + self._over.duration - early)
        self.duration = self._t_down + self._down.duration

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p, v, a (k, 3): the sum of the three."""
        up, over, down = self.up.at(time), self._over.at(time - self._t_over), self._down.at(time - self._t_down)
        return up[0] + over[0] + down[0], up[1] + over[1] + down[1], up[2] + over[2] + down[2]


class AlongCurve:
    """A curve on the paper, slow in its bends."""

    __slots__ = ("duration", "law", "path")

    def __init__(self, path: Path, pace: PenMotion) -> None:
        self.path = path
        self.law = JerkLimited(path, pace.speed, pace.acceleration, pace.jerk, pace.centripetal)
        self.duration = self.law.duration

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """p = X(s), v = X' sd, a = X' sdd + X'' sd^2."""
        s, sd, sdd = self.law.at(time)
        on = self.path.at(np.clip(s, 0.0, self.path.length))
        v = on.first[:, :3] * sd[:, None]
        return on.T[:, :3, 3], v, on.first[:, :3] * sdd[:, None] + on.second[:, :3] * (sd**2)[:, None]


def stretches_of(
    curves: list[list[Path]], ends: list[tuple[Array, Array]], pace: PenMotion, height: float
) -> list[Stretch]:
    """The whole drawing: it begins at rest `height` [m] above the first point and ends at lift height above the last.

    curves: of each stroke in order; ends: first and last point (2,) of each stroke [m] (a dot has no curve).
    """
    fast = (pace.travel_speed, TRAVEL_ACCELERATION, TRAVEL_JERK)
    assert pace.touch_speed is not None  # PenMotion.paced
    # the acceleration at touch-down: half a millimetre to reach the touch speed and to stop
    slow = (pace.touch_speed, pace.acceleration, pace.jerk)
    first, last = ends[0][0], ends[-1][1]
    found = [Stretch("travel", 0, False, Straight(_at(first, height), _at(first, pace.touch_height), *fast))]
    for i, (start, end) in enumerate(ends):
        found.append(Stretch("approach", i, True, Straight(_at(start, pace.touch_height), _at(start, 0.0), *slow)))
        if pace.settle > 0.0:
            found.append(Stretch("approach", i, True, Resting(_at(start, 0.0), pace.settle)))
        found += [Stretch("draw", i, True, AlongCurve(curve, pace)) for curve in curves[i]]
        if i + 1 < len(ends):
            found.append(Stretch("lift", i, False, Hop(end, ends[i + 1][0], pace)))
    found.append(Stretch("lift", len(ends) - 1, False, Straight(_at(last, 0.0), _at(last, pace.lift), *fast)))
    return found


def _at(point: Array, height: float) -> Array:
    return np.array((point[0], point[1], height))


@dataclass(frozen=True)
class PlanCheck:
    """What the checks of a whole drawing found."""

    room: dict[str, float]  # by kind (wrist, elbow, shoulder, joints, surface, self): 1 is just enough
    force_max: float  # N that the joints can press with everywhere
    sigma_min: float  # smallest singular value of J (a lower bound far from singularities)
    surface_distance: float  # m, links 2 to 6 to the surface, smallest
    joint_margin: float  # rad to the nearest joint limit
    velocity_share: float  # of the joints' limits, largest
    acceleration_share: float
    torque_share: float  # of the torque limits, with the pen's force while it draws
    tip_mass: float  # kg felt along the normal
    deviation: float  # m, of the pen's way from the strokes


class DrawingPlan(Sampled):
    """The motion of a drawing. A Trajectory (`duration`, `at`), with what the pen is meant to do at a time.

    The reference lies on the nominal paper; where the real one is found to be is the force controller's business.
    """

    __slots__ = (
        "R_canvas_tcp", "_spans", "_starts", "canvas", "check", "pace", "start", "stretches", "stroke_times", "strokes",
    )  # fmt: skip

    def __init__(
        self, robot: Robot, strokes: Strokes, canvas: Canvas, stretches: list[Stretch],
        samples: tuple[Array, Array, Array], period: float, start: float, R_canvas_tcp: Array, pace: PenMotion,
        check: PlanCheck,
    ) -> None:  # fmt: skip
        self.strokes, self.canvas, self.stretches = strokes, canvas, tuple(stretches)
        self.R_canvas_tcp, self.pace, self.check, self.start = R_canvas_tcp, pace, check, start
        spans = [(0.0, "travel", False, 0)]  # start [s], phase, whether the pen should touch, stroke
        times = np.zeros((len(strokes.lines), 2))
        clock = start
        for stretch in stretches:
            spans.append((clock, stretch.phase, stretch.contact, stretch.stroke))
            if isinstance(stretch.course, Hop):
                clear = clock + stretch.slower * stretch.course.up.time_at(pace.touch_height)
                spans.append((clear, "travel", False, stretch.stroke + 1))
            clock += stretch.duration
            if stretch.phase == "approach":
                times[stretch.stroke] = clock
            elif stretch.phase == "draw":
                times[stretch.stroke, 1] = clock
        self._starts, self._spans = [span[0] for span in spans], spans
        self.stroke_times = times  # (m, 2) s: drawing begins (after the pen has settled) and ends
        super().__init__(robot, *samples, period, clock)

    def phase(self, time: float) -> str:
        """ "travel" (pen in the air), "approach" (slowly down, then resting), "draw" or "lift" at that time [s]."""
        return self._span(time)[1]

    def contact_wanted(self, time: float) -> bool:
        """Whether the pen should touch: from the start of the slow descent to the end of the stroke."""
        return self._span(time)[2]

    def stroke(self, time: float) -> int:
        """The stroke (from 0) that is drawn at that time, or will be next."""
        return self._span(time)[3]

    def _span(self, time: float) -> tuple[float, str, bool, int]:
        return self._spans[-1 if time > self.duration else max(bisect_right(self._starts, time) - 1, 0)]

    @property
    def draw_length(self) -> float:
        """Length [m] of what is drawn, as the pen goes."""
        return sum(s.course.path.length for s in self.stretches if isinstance(s.course, AlongCurve))

    @property
    def phase_times(self) -> dict[str, float]:
        """Seconds that it "draw"s, comes down onto the paper ("touch") and moves in the air ("travel")."""
        found = {"draw": 0.0, "touch": 0.0, "travel": self.start}
        for stretch in self.stretches:
            found[{"draw": "draw", "approach": "touch"}.get(stretch.phase, "travel")] += stretch.duration
        return found

    def polylines(self, spacing: float = 0.25e-3) -> tuple[Array, ...]:
        """The pen's way for each stroke, (k, 2) [m] on the canvas, a point every `spacing`: what to score against."""
        found: list[list[Array]] = [[] for _ in self.strokes.lines]
        for stretch in self.stretches:
            if isinstance(stretch.course, AlongCurve):
                path = stretch.course.path
                count = max(2, math.ceil(path.length / spacing) + 1)
                found[stretch.stroke].append(path.at(np.linspace(0.0, path.length, count)).T[:, :2, 3])
        return tuple(
            np.concatenate(parts) if parts else self.strokes.lines[i][:1].copy() for i, parts in enumerate(found)
        )
