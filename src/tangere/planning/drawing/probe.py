"""Where and how to touch the paper before drawing, to find out where it really is."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.planning.drawing.canvas import Canvas
from tangere.planning.drawing.drawing_plan import DrawingPlan
from tangere.planning.drawing.plan import SETTLE, TOUCH_SPEED_MAX, plan_drawing
from tangere.planning.drawing.strokes import Strokes
from tangere.planning.paths import positive
from tangere.robot import Robot
from tangere.types import Array

# m: the surface is looked for this far above and below where it should be: 3 mm of offset and 2 degrees over a paper of
# 200 mm (3.5 mm at its edges, 5 mm at its corners) stay within
SEARCH = 0.008
# Share of the paper's half sizes at which the corners are touched: on the paper even where it was put down 10 % off
INSET = 0.8
# N: enough to be told from noise (0.1 N per sample) and from the drives' friction, little enough to leave no mark
FORCE = 3.0


def probe_points(size: tuple[float, float], inset: float = INSET) -> Array:
    """(5, 2) m: four corners, drawn in by `inset`, counter-clockwise from the lower left, and the middle."""
    if not 0.0 < inset <= 1.0:
        raise InvalidValue(f"inset: above 0, at most 1, got {inset!r}")
    w, h = 0.5 * inset * size[0], 0.5 * inset * size[1]
    return np.array(((-w, -h), (w, -h), (w, h), (-w, h), (0.0, 0.0)))


def probe_plan(
    robot: Robot,
    canvas: Canvas,
    *,
    area: tuple[Array, Array] | None = None,
    search: float = SEARCH,
    force: float = FORCE,
    touch_speed: float = TOUCH_SPEED_MAX,
    inset: float = INSET,
    **options: Any,
) -> DrawingPlan:
    """A plan of five dots, one per touch: corners and middle of the paper, or of the drawing's box `area` (low, high).

    Each is approached slowly from `search` [m] above the nominal paper. On it the pen waits long enough for a force
    controller to go on down at touch_speed [m/s] for another `search`, and to settle. Where the tip stands at the end
    of each wait (stroke_times[:, 1]), in contact, is a touched point: Canvas.corrected takes them. options: as for
    plan_drawing.
    """
    positive(search, "search", "m")
    low, high = area if area is not None else (-0.5 * np.asarray(canvas.size), 0.5 * np.asarray(canvas.size))
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    middle = 0.5 * (low + high)
    # a drawing that is one line still gives a plane: not narrower than a tenth of the paper
    width, height = np.maximum(high - low, 0.1 * np.asarray(canvas.size))
    points = probe_points((float(width), float(height)), inset) + middle
    half = 0.5 * np.asarray(canvas.size)
    points = np.clip(points, -half, half)
    dots = Strokes(tuple(np.repeat(p[None], 2, axis=0) for p in points), canvas.size)
    options = {"settle": search / touch_speed + SETTLE, "lift": 2.5 * search, **options}
    return plan_drawing(
        robot, dots, canvas, force=force, touch_speed=touch_speed, touch_height=search, **options
    )
