"""How an arm stands to a drawing at one place, and where the drawing would fit if it does not there.

Everything is decided before anything moves: posture, reach, singularities, joint limits, the links' distance from the
surface and from each other, and the force that the joints can bear there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tangere.apps.drawing.plan import reach
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import PenMotion
from tangere.apps.drawing.plan.reach import LinkSpheres, arm_length, paper_points, pen_orientation, postures, tip_poses
from tangere.errors import NoSolution
from tangere.robots import Robot
from tangere.types import Array

# Share of a joint's torque that gravity and the pen's force may take: the rest is for friction of the drives (10 to
# 20 % of the limit on URs), acceleration and control
TORQUE_SHARE = 0.7
# Coulomb friction of a pen on paper that is reckoned with, at its upper end (felt and pencil: 0.2 to 0.4)
FRICTION = 0.4
# z of the normal below which a paper faces down: with the shoulder above it, the z axis was most likely that of a tool
# which stood on the paper, pointing into it
FACING_DOWN = -0.5
# m and sine: a tool this near to the last joint's axis is on it
ON_AXIS = 1e-9
# What the kinds of room mean, for people: name, its measure, unit factor, unit
_WORDS = {
    "wrist": ("too near a wrist singularity: |sin q5| = {0:.3f}, at least {1:.3f} is needed", reach.WRIST, 1.0),
    "elbow": ("the arm is stretched or folded too far: |sin q3| = {0:.3f}, at least {1:.3f} is needed",
              reach.ELBOW, 1.0),
    "shoulder": ("too near the robot's own axis: lever of {0:.3f} arm lengths, at least {1:.3f} is needed",
                 reach.SHOULDER, 1.0),
    "joints": ("a joint comes within {0:.1f} degrees of its limit, {1:.1f} are needed", reach.JOINT, 180.0 / math.pi),
    "surface": ("a link comes within {0:.0f} mm of the surface or into it, {1:.0f} mm are needed", reach.SURFACE, 1e3),
    "self": ("links come within {0:.0f} mm of each other, {1:.0f} mm are needed", reach.SELF, 1e3),
}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """What was found at a placement: posture, rooms, force."""

    q: Array  # (k, 6) joints at the points asked for, of the chosen branch
    R_canvas_tcp: Array  # (3, 3)
    room: dict[str, float]  # by kind, smallest over the points; 1 is just enough
    force_max: float  # N, what the joints can press with everywhere
    tip_mass: float  # kg, largest inertia felt at the tip along the normal
    problems: tuple[str, ...]
    only_force: bool = False  # the force is the only problem: another one would do


def assess(robot: Robot, canvas: Canvas, points: Array, how: PenMotion) -> Fit:
    """The best posture for points (k, 3) of a canvas [m], in the pen's order: which branch, which turn about the pen.

    Without a `how.spin`: where the pen is the last joint's own axis it turns that joint only, and is chosen so that the
    joint stays about zero; else the best of 24, every 15 degrees.
    """
    spheres = LinkSpheres.of(robot)
    R = _oriented(robot, canvas, points, spheres, how)
    force = how.force
    T_tip = tip_poses(canvas.T_base_canvas, R, points)
    found = postures(robot, T_tip, canvas.T_base_canvas, canvas.size, canvas.border, spheres)
    lane_of, _ = found.best()
    lane = int(lane_of)
    if not found.valid[:, lane].all():
        lane = int(np.argmax(found.valid.sum(axis=0)))
    rooms: dict[str, float] = {}
    problems = []
    behind = float(canvas.from_base(robot.link_poses(np.zeros(robot.dof))[0, :3, 3])[2])
    if behind < 0.0 and canvas.normal[2] < FACING_DOWN:
        problems.append(f"the paper faces down and the robot's shoulder is {-1e3 * behind:.0f} mm behind it")
    ok = found.valid[:, lane]
    if not ok.all():
        worst = int(np.argmax(np.where(ok, -1.0, found.distance)))
        problems.append(
            f"it leaves the arm's reach by {1e3 * found.distance[worst]:.0f} mm at {_on_paper(points[worst])}"
            if found.distance[worst] > 0.0
            else f"no one posture reaches all of it, not {_on_paper(points[worst])}"
        )
    q = found.q[:, lane]
    limit, mass = 0.0, math.inf
    if ok.all():
        for kind, values in found.room.items():
            at = values[:, lane]
            worst = int(np.argmin(at))
            rooms[kind] = float(at[worst])
            if at[worst] < 1.0:
                words, needed, factor = _WORDS[kind]
                have = at[worst] * needed * factor
                problems.append(words.format(have, needed * factor) + f", at {_on_paper(points[worst])}")
        # as the pen goes, without whole turns: against the nearest turns of each point by itself
        step = np.diff(q, axis=0)
        wound_up = np.abs(np.cumsum(step - reach.TURN * np.rint(step / reach.TURN), axis=0) + q[0] - q[1:])
        if np.any(wound_up > math.pi):
            joint = int(np.argmax(wound_up.max(axis=0))) + 1
            problems.append(f"it goes all around the robot: joint {joint} would have to turn once round")
        limit, joint, where = force_limit(robot, q, canvas.normal)
        mass = float(np.max(tip_mass(robot, q, canvas.normal)))
        if force > limit:
            problems.append(
                f"a force of {force:g} N is more than the arm can exert there: {max(limit, 0.0):.0f} N at most "
                f"(joint {joint}, at {_on_paper(points[where])})"
            )
    return Fit(q, R, rooms, limit, mass, tuple(problems), bool(ok.all()) and force > limit and len(problems) == 1)


def _oriented(robot: Robot, canvas: Canvas, points: Array, spheres: LinkSpheres, how: PenMotion) -> Array:
    """R_canvas_tcp (3, 3), with the best turn about the pen where none is given."""
    lean, towards, spin = how.lean, how.lean_towards, how.spin
    if spin is not None:
        return pen_orientation(lean, towards, spin)
    tool = robot.model.T_flange_tcp
    on_axis = np.hypot(*tool[:2, 3]) < ON_AXIS and np.hypot(*tool[:2, 2]) < ON_AXIS
    spins = np.zeros(1) if on_axis else np.arange(24) * (math.pi / 12.0)
    orientations = np.array([pen_orientation(lean, towards, float(s)) for s in spins])
    some = points[np.unique(np.linspace(0, len(points) - 1, 12).round().astype(int))]
    T = np.stack([tip_poses(canvas.T_base_canvas, R, some) for R in orientations])
    T_canvas = np.broadcast_to(canvas.T_base_canvas, (len(spins), 4, 4))
    rough = postures(robot, T, T_canvas, canvas.size, canvas.border, spheres)
    lanes, room = rough.best()
    if on_axis:
        last = rough.q[0, :, int(lanes[0]), -1]
        middle = 0.5 * float(last.min() + last.max())
        return pen_orientation(lean, towards, -middle * float(np.sign(tool[2, 2])))
    wound = np.array([np.abs(rough.q[i, :, lane]).max() for i, lane in enumerate(lanes)])
    return np.asarray(orientations[int(np.argmax(np.minimum(room, reach.PLENTY) - 1e-3 * wound))])


def force_limit(robot: Robot, q: Array, normal: Array) -> tuple[float, int, int]:
    """Largest force [N] with which the tip can press against `normal` (3,); joint (from 1) and sample that limit it.

        |g_i - F a_i| + F b_i <= share tau_max_i,   a = J^T (n, 0),  b_i = mu |(J^T t)_i|, t across n

    quasi-static; friction mu of the pen pulls in any direction along the paper. q (k, n).
    """
    J = robot.jacobian(q)[:, :3]
    a = np.einsum("kin,i->kn", J, normal)
    across = J - normal[:, None] * a[:, None, :]
    b = FRICTION * np.linalg.norm(across, axis=1)
    g = robot.gravity_torque(q)
    room = TORQUE_SHARE * robot.tau_max
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(b - a > 1e-12, (room - g) / (b - a), np.inf)
        above = np.where(b + a > 1e-12, (room + g) / (b + a), np.inf)
    limit = np.minimum(below, above)
    limit = np.where(np.abs(g) > room, 0.0, limit)
    k, joint = np.unravel_index(int(np.argmin(limit)), limit.shape)
    return float(limit[k, joint]), int(joint) + 1, int(k)


def tip_mass(robot: Robot, q: Array, normal: Array) -> Array:
    """(k,) kg: inertia felt at the tip along `normal` (3,), 1/(n^T J M^-1 J^T n); q (k, n)."""
    along = np.einsum("kin,i->kn", robot.jacobian(q)[:, :3], normal)
    moved = np.linalg.solve(robot.mass_matrix(q), along[:, :, None])[..., 0]
    return np.asarray(1.0 / np.einsum("kn,kn->k", along, moved))


def _on_paper(point: Array) -> str:
    return f"({1e3 * point[0]:.0f}, {1e3 * point[1]:.0f}) mm"


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


@dataclass(frozen=True)
class Box:
    """A drawing as the search for a place sees it: its box on the canvas, and points to make sure with."""

    low: Array  # (2,) m
    high: Array  # (2,) m
    points: Array  # (k, 3) m, as for `assess`
    how: PenMotion

    def fits(self, robot: Robot, place: Placement) -> bool:
        """Whether `assess` finds no fault with it there."""
        points = self.points * np.array((place.scale, place.scale, 1.0))
        fit = assess(robot, place.canvas, points, replace(self.how, spin=None))
        return not fit.problems and min(fit.room.values()) >= OFFERED

    def rooms(self, robot: Robot, T_base_canvas: Array, canvas: Canvas, scale: float, clear: bool) -> Array:
        """(c,) room of the scaled box on canvases T_base_canvas (c, 4, 4); with `clear` the links' clearance too."""
        size = (scale * float(self.high[0] - self.low[0]), scale * float(self.high[1] - self.low[1]))
        middle = 0.5 * scale * (self.low + self.high)
        points = paper_points(size, self.how.lift) + np.array((*middle, 0.0))
        T = tip_poses(T_base_canvas, pen_orientation(self.how.lean, self.how.lean_towards), points)
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
