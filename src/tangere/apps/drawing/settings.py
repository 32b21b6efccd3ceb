"""What a drawing may be told, checked before anything is planned or written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from tangere.apps.drawing.drawing import MODEL_ERROR, CanvasError, Controllers, SensorName
from tangere.apps.drawing.strokes.make import TOLERANCE
from tangere.errors import InvalidValue, UnknownName
from tangere.plants.scene.paper import Bump, Hole

BOTH = ("hybrid", "height-pi")
STIFFNESS = (2e3, 1e5)  # N/m: a soft pad, and a hard pen on a table: what the controllers are made and tested for
OFFSET_MAX = 0.02  # m: as far below the plan as the pen looks for paper; above, the pen's way to the paper is no longer
TILT_MAX = 20.0  # deg: beyond, a pen upright on the plan is no longer upright on the paper, nor the paper where it was
SIZE = (0.01, 3.0)  # m: ten widths of a pen's line and more; nothing reaches farther
TOLERANCES = (1e-5, 2e-3)  # m: what a UR repeats; four widths of a pen's line
FORCE_MAX = 1e4  # N: a slip of the keys; what the arm can press with there is checked, and said, by the plan
SPEED_MAX = 0.5  # m/s: twice the travel in the air
NOISE_MAX = 20.0  # times the default: 2 N and 0.04 rad/s per sample, beyond which no pen touches anything gently


@dataclass(frozen=True)
class DrawingSettings:
    """Everything that a drawing may be told; the values are the defaults of `tangere draw`."""

    robot: str = "ur5e"
    force: float = 5.0  # N
    size: float | tuple[float, float] = 0.2  # m: the longer side, or width and height in which the picture is centred
    canvas: str = "table"  # table, wall, an angle such as 30deg, or x,y,z,rx,ry,rz
    controller: str = "hybrid"  # hybrid, height-pi or both
    sensor: SensorName = "ideal"
    stiffness: float = 2e4  # N/m of pen and paper together
    model_error: float = 0.05  # share by which all masses and inertias are larger than believed
    noise: float = 1.0  # times 0.1 N and 0.002 rad/s per sample of 1 kHz
    canvas_error: tuple[float, float] = (0.0, 0.0)  # m and rad, unknown to planner and controller
    bump: tuple[float, float, float, float] | None = None  # x, y, height, radius [m] of a cap on the paper; likewise
    hole: tuple[float, float, float, float] | None = None  # x, y, width, height [m] of a hole in it; likewise
    seed: int = 0
    style: str = "auto"
    speed: float = 0.05  # m/s on the paper
    margin: float = 0.0  # m of empty paper all round
    friction: float = 0.3  # of pen and paper
    place: bool = False  # accept the placement that is offered where the drawing does not fit
    tolerance: float = TOLERANCE  # m, of the simplification of the lines
    thresholds: tuple[float, float] | None = None  # low, high [grey levels per pixel] of Canny's; None: found by itself
    # m, base axes: lower left, lower right, upper left corner of the paper, touched; instead of `canvas`
    canvas_points: tuple[tuple[float, ...], ...] | None = None
    probe: bool = False  # touch the paper at five points first, and plan on the plane that was found

    def __post_init__(self) -> None:
        if self.controller not in (*BOTH, "both"):
            raise UnknownName(f"unknown controller {self.controller!r}; known: hybrid, height-pi, both")
        if self.sensor not in get_args(SensorName):
            raise UnknownName(f"unknown sensor {self.sensor!r}; known: {', '.join(get_args(SensorName))}")
        self._within("force", self.force, 0.0, FORCE_MAX, "N")
        self._within("speed", self.speed, 0.0, SPEED_MAX, "m/s")
        self._within("stiffness", self.stiffness, *STIFFNESS, "N/m")
        self._within("model_error", self.model_error, *MODEL_ERROR, "")
        self._within("noise", self.noise, 0.0, NOISE_MAX, "", zero=True)
        self._within("tolerance", self.tolerance, *TOLERANCES, "m")
        self._within("margin", self.margin, 0.0, SIZE[1], "m", zero=True)
        self._within("friction", self.friction, 0.0, 2.0, "", zero=True)
        sides = (self.size,) if isinstance(self.size, (int, float)) else tuple(self.size)
        for side in sides:
            self._within("size", side, *SIZE, "m")
        offset, tilt = self.canvas_error
        self._within("canvas_error", 1e3 * offset, -1e3 * OFFSET_MAX, 1e3 * OFFSET_MAX, "mm")
        self._within("canvas_error", math.degrees(tilt), -TILT_MAX, TILT_MAX, "deg")
        if self.thresholds is not None:
            low, high = self.thresholds
            if not 0.0 < low <= high < 255.0:
                raise InvalidValue(f"thresholds: 0 < low <= high < 255 grey levels per pixel, got {low:g}, {high:g}")
        if self.canvas_points is not None and self.canvas != "table":
            raise InvalidValue(f"canvas: either three touched points or {self.canvas!r}, not both")
        if self.seed < 0:
            raise InvalidValue(f"seed: a whole number from 0 on, got {self.seed!r}")
        self.surface  # noqa: B018 - raises for a bump or hole that cannot be, before anything is planned

    def _within(self, name: str, value: float, low: float, high: float, unit: str, *, zero: bool = False) -> None:
        """low <= value <= high; a low of 0 is itself refused unless `zero`."""
        if math.isfinite(value) and low <= value <= high and (value > 0.0 or low != 0.0 or zero):
            return
        least = "above 0" if low == 0.0 and not zero else f"{low:g}"
        raise InvalidValue(f"{name}: {least} to {high:g}{f' {unit}' if unit else ''}, got {value:g}")

    @property
    def surface(self) -> CanvasError:
        """How the real paper differs from the planned one."""
        bumps = () if self.bump is None else (Bump(*self.bump),)
        return CanvasError(*self.canvas_error, bumps=bumps, hole=None if self.hole is None else Hole(*self.hole))

    @property
    def controllers(self) -> tuple[Controllers, ...]:
        """The controllers that draw, one after the other."""
        return get_args(Controllers) if self.controller == "both" else (self.controller,)
