"""The paper is found by touch before the drawing: five short marks, a plane through them, and a plan on that plane."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.apps.drawing.drawing import DrawingResult, Stage, draw
from tangere.apps.drawing.force.task import MODES
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.plan import PenMotion, plan_drawing
from tangere.apps.drawing.strokes.make import DOT
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import NoSolution
from tangere.robots import Robot
from tangere.types import Array

# Share of the half sizes at which the corners are touched: on the paper even where it was put down 10 % off
INSET = 0.8
# N: enough to be told from noise (0.1 N per sample) and from the drives' friction, little enough to leave no mark
FORCE = 3.0
LIFT = 0.02  # m above the planned paper between two touches: higher than any paper that is looked for


@dataclass(frozen=True)
class Probed:
    """The paper as it was found."""

    canvas: Canvas  # the planned one, corrected
    points: Array  # (5, 3) m, touched, in the frame of the planned canvas
    offset: float  # m along the planned normal, at the middle
    tilt: float  # rad
    rms: float  # m, of the points off the plane: how uneven the paper is
    result: DrawingResult

    @property
    def summary(self) -> dict[str, Any]:
        """For summary.json."""
        return {
            "offset_mm": 1e3 * self.offset,
            "tilt_deg": math.degrees(self.tilt),
            "uneven_rms_mm": 1e3 * self.rms,
            "duration_s": self.result.run.duration,
            "force_max_n": self.result.figures.force_touch_max_n,
        }


def probe_points(size: tuple[float, float]) -> Array:
    """(5, 2) m: four corners, drawn in by INSET, counter-clockwise from the lower left, and the middle."""
    w, h = 0.5 * INSET * size[0], 0.5 * INSET * size[1]
    return np.array(((-w, -h), (w, -h), (w, h), (-w, h), (0.0, 0.0)))


def probe(
    robot: Robot,
    canvas: Canvas,
    stage: Stage | None = None,
    area: tuple[float, float] | None = None,
    *,
    force: float = FORCE,
    progress: Callable[[float, float], None] | None = None,
) -> Probed:
    """Touch the paper at the corners and the middle of `area` (width, height) [m] about the canvas's middle.

    Each touch is a mark of 0.3 mm, pressed with `force` [N]. The height is that of the pen's tip by the joints and the
    robot that is believed in, less what the paper gives way: force / stiffness found. stage: where, as for draw.
    Raises NoSolution where the paper is not found.
    """
    middle = probe_points(canvas.size if area is None else area)
    way = 0.5 * np.array((DOT, 0.0))
    marks = Strokes(tuple(np.stack((p - way, p + way)) for p in middle), canvas.size)
    plan = plan_drawing(robot, marks, canvas, PenMotion(force=force, lift=LIFT), offer=False)
    result = draw(robot, plan, stage, force=force, progress=progress)
    log = result.log
    drawing = log["mode"] == MODES.index("draw")
    strokes = log["stroke"]
    if result.aborted:
        raise NoSolution(f"the paper was not found by touch: {result.aborted}")
    tip = canvas.from_base(robot.pose(log["q"][drawing])[:, :3, 3])
    points = np.array([tip[strokes[drawing] == i + 1].mean(axis=0) for i in range(len(middle))])
    points[:, 2] += force / result.figures.stiffness_hat
    touched = canvas.to_base(points)
    fit = canvas.touched(touched)
    return Probed(canvas.corrected(touched), points, fit.height, fit.tilt, fit.rms, result)
