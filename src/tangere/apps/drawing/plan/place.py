"""Where a drawing goes: the canvas asked for, or a placement or size that fits; what is offered was planned."""

from __future__ import annotations

import math
from collections.abc import Callable

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.drawing_plan import DrawingPlan
from tangere.apps.drawing.plan.placement import DoesNotFit, Placement
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue, NoSolution, UnknownName
from tangere.robots import Robot

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
    return plan_drawing(robot, strokes, canvas, speed=settings.speed, force=settings.force, offer=offer)


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
