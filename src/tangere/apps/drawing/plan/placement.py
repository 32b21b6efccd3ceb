"""Where a drawing would fit, if it does not where it was asked for.

Everything is decided before anything moves: reach, singularities, joint limits, the links' distance from the surface
and from each other, and the force that the joints can bear there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.fit import FACING_DOWN, assess
from tangere.apps.drawing.plan.reach import arm_length, paper_points, pen_orientation, postures, tip_poses
from tangere.errors import NoSolution
from tangere.robots import Robot
from tangere.types import Array

# Room that an offered placement has, so that it is not refused for the last digit
OFFERED = 1.1
# Scales that are tried where no place is found for the whole
SCALES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
# Places that are made sure of before the search gives up (some tenths of a second each)
ATTEMPTS = 12


@dataclass(frozen=True)
class Placement:
    """Where a drawing would fit: the canvas, and how it differs from the one asked for."""

    canvas: Canvas
    shift: Array  # (3,) m along the asked canvas's x, y, z
    turn: float = 0.0  # rad about its normal
    scale: float = 1.0  # of the drawing
    flipped: bool = False  # turned half round about its y axis: the robot stood behind the paper

    def __str__(self) -> str:
        parts = []
        names = (("right", "left"), ("up", "down"), ("out of the paper's plane", "into the paper's plane"))
        for value, (plus, minus) in zip(self.shift, names, strict=True):
            if abs(value) > 5e-4:
                parts.append(f"{1e3 * abs(value):.0f} mm {plus if value > 0 else minus}")
        text = "move it " + ", ".join(parts) if parts else "leave it where it is"
        if self.turn:
            text += f", turn it by {math.degrees(self.turn):.0f} degrees"
        if self.scale != 1.0:
            text += f", scale it to {100 * self.scale:.0f} %"
        if self.flipped:
            more = f"; then {text}" if parts or self.turn or self.scale != 1.0 else ""
            text = f"with z the other way round: the robot stands behind the paper, z must point out of it{more}"
        return text + " (canvas " + ",".join(f"{round(x, 6) + 0.0:.4g}" for x in self.canvas.as_pose()) + ")"


class DoesNotFit(NoSolution):
    """A drawing that the arm cannot draw there; `problems` say why, `offers` where it would fit (may be empty)."""

    def __init__(self, problems: tuple[str, ...], offers: tuple[Placement, ...] | None = None) -> None:
        """offers: None where none were looked for."""
        self.problems, self.offers = problems, offers or ()
        text = "the drawing does not fit there: " + "; ".join(problems)
        if offers:
            text += ". It would fit: " + "; or ".join(str(offer) for offer in offers)
        elif offers is not None:
            text += ". No place was found by moving, turning or scaling it"
        super().__init__(text)

    @property
    def suggestion(self) -> Placement | None:
        """The first offer."""
        return self.offers[0] if self.offers else None


@dataclass(frozen=True)
class Box:
    """A drawing as the search for a place sees it: its box on the canvas, and points to make sure with."""

    low: Array  # (2,) m
    high: Array  # (2,) m
    points: Array  # (k, 3) m, as for `assess`
    force: float  # N
    hover: float  # m
    lean: float = 0.0  # rad
    towards: float = -0.5 * math.pi

    def fits(self, robot: Robot, place: Placement) -> bool:
        """Whether `assess` finds no fault with it there."""
        points = self.points * np.array((place.scale, place.scale, 1.0))
        fit = assess(robot, place.canvas, points, self.force, lean=self.lean, towards=self.towards)
        return not fit.problems and min(fit.room.values()) >= OFFERED

    def rooms(self, robot: Robot, T_base_canvas: Array, canvas: Canvas, scale: float, clear: bool) -> Array:
        """(c,) room of the scaled box on canvases T_base_canvas (c, 4, 4); with `clear` the links' clearance too."""
        size = (scale * float(self.high[0] - self.low[0]), scale * float(self.high[1] - self.low[1]))
        middle = 0.5 * scale * (self.low + self.high)
        points = paper_points(size, self.hover) + np.array((*middle, 0.0))
        T = tip_poses(T_base_canvas, pen_orientation(self.lean, self.towards), points)
        return postures(robot, T, T_base_canvas if clear else None, canvas.size, canvas.border).best()[1]


def offers(robot: Robot, canvas: Canvas, box: Box) -> tuple[Placement, ...]:
    """Placements near the asked one where a drawing fits, made sure of by `assess`; at most two.

    First from the other side of the paper, where the robot stands behind it. Then by moving (and a quarter turn) on the
    same plane, then off it; where nothing fits in full size, the largest scale that does. Last, if that is no less than
    half, by scaling alone where it is.
    """
    flipped = False
    if canvas.from_base(robot.link_poses(np.zeros(robot.dof))[0, :3, 3])[2] < 0.0:
        round_y = canvas.T_base_canvas @ np.diag([-1.0, 1.0, -1.0, 1.0])
        place = Placement(Canvas(round_y, canvas.size, canvas.border), np.zeros(3), flipped=True)
        if box.fits(robot, place):
            return (place,)
        if canvas.normal[2] < FACING_DOWN:  # drawn on from above whatever was meant
            canvas, flipped = place.canvas, True
    found: list[Placement] = []
    # on the plane down to half the size, then off it, then on it as small as a tenth
    attempts = 0
    searches = [(scale, False) for scale in SCALES[:6]] + [(1.0, True), (0.5, True)]
    for scale, off in searches + [(scale, False) for scale in SCALES[6:]]:
        for place in islice(_fitting(robot, canvas, scale, box, off), ATTEMPTS - attempts):
            attempts += 1
            if box.fits(robot, place):
                found.append(place)
                break
        if found or attempts >= ATTEMPTS:
            break
    for scale in SCALES[1:6]:  # down to a half
        place = Placement(canvas.moved(scale=scale), np.zeros(3), 0.0, scale)
        if box.fits(robot, place):
            if not found or np.any(found[0].shift) or found[0].turn:
                found.append(place)
            break
    return tuple(replace(place, flipped=flipped) for place in found)


def _fitting(robot: Robot, canvas: Canvas, scale: float, box: Box, off: bool) -> Iterator[Placement]:
    """Placements whose box fits, the smallest shift first: on the plane, or off it."""
    length = arm_length(robot)
    shoulder = canvas.from_base(robot.link_poses(np.zeros(robot.dof))[0, :3, 3])
    span = np.arange(-1.3, 1.31, 0.1) * length
    heights = np.arange(-1.3, 1.31, 0.2) * length + shoulder[2]
    grid = np.stack(np.meshgrid(span + shoulder[0], span + shoulder[1], indexing="ij"), axis=-1).reshape(-1, 2)
    for height in sorted(heights, key=abs) if off else (0.0,):
        shifts = np.column_stack([grid, np.full(len(grid), height)])
        shifts = shifts[np.argsort(np.linalg.norm(shifts, axis=1), kind="stable")]
        for turn in (0.0, 0.5 * math.pi):
            T = _moved(canvas, shifts, turn)
            good = np.nonzero(box.rooms(robot, T, canvas, scale, False) >= OFFERED)[0][:60]
            if len(good):
                good = good[box.rooms(robot, T[good], canvas, scale, True) >= OFFERED]
            for i in good[np.unique(np.linspace(0, len(good) - 1, 3).astype(int))] if len(good) else ():
                shift = _shortened(robot, canvas, shifts[i], turn, scale, box)
                yield Placement(canvas.moved(shift, turn, scale), shift, turn, scale)


def _shortened(robot: Robot, canvas: Canvas, shift: Array, turn: float, scale: float, box: Box) -> Array:
    """The shift without what is not needed: the grid is coarse, so go back towards the start while it fits."""
    shares = np.linspace(0.0, 1.0, 21)
    good = box.rooms(robot, _moved(canvas, shares[:, None] * shift, turn), canvas, scale, True) >= OFFERED
    bad = np.nonzero(~good[:-1])[0]
    best = shares[bad[-1] + 1] if len(bad) else 0.0
    # whole millimetres, away from the start: never less than needed (1e-6 mm is rounding)
    return np.asarray(np.sign(shift) * np.ceil(np.abs(best * shift) * 1e3 - 1e-6) * 1e-3)


def _moved(canvas: Canvas, shifts: Array, turn: float) -> Array:
    """(c, 4, 4) T_base_canvas of the canvas moved by shifts (c, 3) and turned, as Canvas.moved."""
    T = np.repeat(canvas.moved(turn=turn).T_base_canvas[None], len(shifts), axis=0)
    T[:, :3, 3] = shifts @ canvas.R.T + canvas.origin
    return T
