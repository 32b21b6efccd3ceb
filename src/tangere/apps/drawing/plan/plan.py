"""From strokes to a motion: pen down, draw, pen up, over to the next stroke; checked as a whole before it starts.

Where the drawing goes: the canvas asked for, or a placement or size that fits; what is offered was planned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.fit import Box, DoesNotFit, Placement, assess, offers
from tangere.apps.drawing.plan.motion import DrawingPlan, Pace, stretches_of
from tangere.apps.drawing.plan.pen_joints import joint_samples, refuse_through_surface, start_joints, whole_check
from tangere.apps.drawing.plan.pen_path import TOLERANCE, pen_curves
from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue, NoSolution, UnknownName
from tangere.planning.joint_motions import JointMove
from tangere.planning.paths import positive
from tangere.planning.samples import PERIOD, Limits
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
# m above the paper where a joint motion from elsewhere ends: such a motion sags by some centimetres on its way
ENTRY = 0.06
# s: the force has settled after a few time constants of any of the force loops (20 to 50 ms)
SETTLE = 0.2
# Force overshoot at touch-down, as a share of the force; and the most a touch may be fast [m/s]
OVERSHOOT, TOUCH_SPEED_MAX = 0.3, 0.01
# N/m: stiffness of pen and paper together that the touch speed is reckoned with
STIFFNESS = DrawingSettings.stiffness
# rad/s2: half of what UR accepts for its own joint moves at most (40 rad/s2); ten times its default
JOINT_ACCELERATION = 14.0
# Most samples of a plan: 220 MB
SAMPLES = 600_000
# Most points of the strokes that decide about the placement
POINTS = 150


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

    def pace(self, mass: float) -> Pace:
        """The speeds of a motion with `mass` [kg] felt at the tip."""
        touch_speed = self.touch_speed
        if touch_speed is None:
            touch_speed = min(OVERSHOOT * self.force / math.sqrt(self.stiffness * mass), TOUCH_SPEED_MAX)
        return Pace(
            self.speed, self.acceleration, self.centripetal, self.jerk, self.travel_speed, TRAVEL_ACCELERATION,
            TRAVEL_JERK, touch_speed, self.lift, self.touch_height, self.settle,
        )  # fmt: skip


def plan_drawing(
    robot: Robot,
    strokes: Strokes,
    canvas: Canvas,
    how: PenMotion | None = None,
    *,
    q_start: ArrayLike | None = None,
    period: float | None = None,
    offer: bool = True,
) -> DrawingPlan:
    """The motion that draws `strokes` on `canvas`, from rest above the first point to rest above the last, lifted.

    how: speeds, heights and force; None: PenMotion(). q_start (n,): a joint motion from there to 60 mm above the first
    point comes first. Where joints would be too fast, that part goes slower. period [s] of the samples (default 1 ms,
    doubled until a long drawing has at most 600 000).

    Raises DoesNotFit where the arm cannot draw it there: it says why and, with `offer`, offers placements (`assess`
    finds no fault with them; the whole motion there is not planned).
    """
    _check_strokes(strokes, canvas)
    how = PenMotion() if how is None else how
    force, lift, lean, towards = how.force, how.lift, how.lean, how.lean_towards
    points = _sampled_points(strokes, lift)
    box = Box(*strokes.bounds, points, force, lift, lean, towards)
    fit = assess(robot, canvas, points, force, lean=lean, towards=towards, spin=how.spin)
    if fit.problems:
        raise DoesNotFit(fit.problems, offers(robot, canvas, box) if offer and not fit.only_force else None)
    pace = how.pace(fit.tip_mass)
    height = lift if q_start is None else max(lift, ENTRY)
    curves = [pen_curves(line, how.tolerance) for line in strokes.lines]
    ends = [(line[0], line[-1]) for line in strokes.lines]
    stretches = stretches_of([list(c) for c in curves], ends, pace, height)
    if period is None:
        duration = sum(stretch.duration for stretch in stretches)
        period = PERIOD * 2 ** max(0, math.ceil(math.log2(duration / PERIOD / SAMPLES)))
    limits = Limits.of(robot, acceleration=how.joint_acceleration)
    q_0 = start_joints(robot, canvas, fit, strokes.lines[0][0], height, fit.q[0])
    q, qd, qdd, sigma, stretches = joint_samples(robot, canvas, fit.R_canvas_tcp, stretches, q_0, limits, period)
    deviation = max((c.deviation for many in curves for c in many), default=0.0)
    check = whole_check(robot, canvas, fit, stretches, (q, qd, qdd), sigma, limits, period, force, deviation)
    if isinstance(check, tuple):
        raise DoesNotFit(check, offers(robot, canvas, box) if offer else None)
    start = 0.0
    if q_start is not None:
        move = JointMove(robot, q_start, q[0], period=period)
        refuse_through_surface(robot, canvas, move)
        start = (len(move.q) - 1) * period
        q, qd, qdd = (np.concatenate([a[:-1], b]) for a, b in ((move.q, q), (move.qd, qd), (move.qdd, qdd)))
    samples = (q, qd, qdd)
    return DrawingPlan(robot, strokes, canvas, stretches, samples, period, start, fit.R_canvas_tcp, pace, force, check)


def _check_strokes(strokes: Strokes, canvas: Canvas) -> None:
    if not len(strokes.lines):
        raise InvalidValue("nothing to draw: the drawing has no strokes")
    low, high = strokes.bounds
    half = 0.5 * np.asarray(canvas.size) + 1e-6  # a micrometre of rounding
    if np.any(low < -half) or np.any(high > half):
        raise InvalidValue(
            f"the drawing goes from {(1e3 * low).round(1).tolist()} to {(1e3 * high).round(1).tolist()} mm, the canvas "
            f"is {1e3 * canvas.size[0]:g} x {1e3 * canvas.size[1]:g} mm about its middle: scale it (Strokes.fitted)"
        )


def _sampled_points(strokes: Strokes, lift: float) -> Array:
    """(k, 3) points that decide whether a drawing fits: along the pen's way, pen up and down, and the outermost."""
    up = [np.column_stack([line[[0, -1]], (lift, lift)]) for line in strokes.lines]
    way = []
    for line, above in zip(strokes.lines, up, strict=True):
        way += [above[:1], np.column_stack([line, np.zeros(len(line))]), above[1:]]
    corners = np.concatenate(way)
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    at = np.linspace(0.0, s[-1], POINTS)
    along = np.stack([np.interp(at, s, corners[:, i]) for i in range(3)], axis=1)
    # the outermost points in 16 directions: corners of the convex hull
    every = np.concatenate(strokes.lines)
    angles = np.arange(16) * (math.pi / 8.0)
    outer = every[np.argmax(every @ np.stack([np.cos(angles), np.sin(angles)]), axis=0)]
    return np.concatenate([along, *(np.column_stack([outer, np.full(16, z)]) for z in (0.0, lift))])


# deg: a board may lean from a table to beyond a wall; nothing hangs from the ceiling by an angle alone
TILT_MAX = 135.0
# The largest size that fits is found to this share, and what is offered is smaller by as much: traced at another size
# the lines differ by their tolerance
FINE = 0.02

Whole = tuple[Strokes, Canvas, DrawingPlan, tuple[str, ...]]


def canvas_of(text: str, robot: Robot, size: tuple[float, float]) -> Canvas:
    """table, wall, an angle to which a board leans (30deg), or x,y,z,rx,ry,rz [m, rad] of the paper's middle."""
    word = text.strip().lower()
    if word == "table":
        return Canvas.table(robot, size)
    if word == "wall":
        return Canvas.wall(robot, size)
    if word.endswith("deg") and "," not in word:
        try:
            tilt = float(word.removesuffix("deg"))
        except ValueError:
            raise InvalidValue(f"canvas {text!r}: an angle such as 30deg") from None
        if not 0.0 <= tilt <= TILT_MAX:
            raise InvalidValue(f"canvas {text!r}: 0deg (a table) to 90deg (a wall), at most {TILT_MAX:g}deg")
        return Canvas.tilted(robot, math.radians(tilt), size)
    if word.count(",") != 5 and len(word.split()) != 6:
        raise UnknownName(
            f"unknown canvas {text!r}; known: table, wall, an angle such as 30deg, "
            "or x,y,z,rx,ry,rz of its middle in m and rad (z axis out of the paper, y axis up)"
        )
    return Canvas.from_pose(text, size)


def placed(robot: Robot, strokes: Strokes, settings: DrawingSettings, tell: Callable[[str], None]) -> Whole:
    """Strokes, canvas, plan and notes, where it was asked for; with settings.place where it fits.

    DoesNotFit or NoSolution says what would fit: placements and sizes that were planned, not guessed.
    """
    tell("placing")
    try:
        canvas = _canvas(settings, robot, strokes.size)
    except NoSolution as problem:
        return _smaller(robot, strokes, settings, problem)
    tell("planning")
    try:
        return strokes, canvas, _plan(robot, strokes, canvas, settings), ()
    except DoesNotFit as problem:
        good: list[tuple[Placement, Whole]] = []
        for offer in problem.offers:
            scaled = strokes if offer.scale == 1.0 else strokes.transformed(scale=offer.scale)
            note = f"placed elsewhere: {'; '.join(problem.problems)}: {offer}"
            try:
                plan = _plan(robot, scaled, offer.canvas, settings, offer=False)
            except NoSolution:
                continue
            good.append((offer, (scaled, offer.canvas, plan, (note,))))
            if settings.place:
                return good[0][1]
        if not good and problem.offers:
            return _smaller(robot, strokes, settings, DoesNotFit(problem.problems))
        if len(good) < len(problem.offers):
            raise DoesNotFit(problem.problems, tuple(offer for offer, _ in good)) from problem
        raise


def _canvas(settings: DrawingSettings, robot: Robot, size: tuple[float, float]) -> Canvas:
    if settings.canvas_points is not None:
        return Canvas.from_points(settings.canvas_points, size)
    return canvas_of(settings.canvas, robot, size)


def _plan(robot: Robot, strokes: Strokes, canvas: Canvas, settings: DrawingSettings, offer: bool = True) -> DrawingPlan:
    return plan_drawing(robot, strokes, canvas, PenMotion(settings.speed, force=settings.force), offer=offer)


def _smaller(robot: Robot, strokes: Strokes, settings: DrawingSettings, problem: NoSolution) -> Whole:
    """The drawing as large as it fits, in whole millimetres; raises the problem with that size unless it is taken."""
    longest = max(strokes.size)

    def whole(share: float) -> Whole | None:
        scaled = strokes.transformed(scale=share)
        try:
            canvas = _canvas(settings, robot, scaled.size)
            plan = _plan(robot, scaled, canvas, settings, offer=False)
        except NoSolution:
            return None
        return scaled, canvas, plan, (f"scaled to {1e3 * share * longest:.0f} mm of {1e3 * longest:.0f}: {problem}",)

    low, high = 0.0, 1.0
    while high - low > FINE * high and high > FINE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if whole(middle) is not None else (low, middle)
    millimetres = math.floor(1e3 * (1.0 - FINE) * low * longest)
    best = whole(1e-3 * millimetres / longest) if millimetres >= 1 else None
    if best is None:
        raise problem
    if not settings.place:
        raise NoSolution(f"{problem}: {millimetres} mm of {1e3 * longest:.0f} would fit") from problem
    return best
