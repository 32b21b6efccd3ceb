"""From strokes to a motion: pen down, draw, pen up, over to the next stroke; checked as a whole before it starts.

Where the drawing goes: the canvas asked for, or a placement or size that fits; what is offered was planned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.fit import Box, DoesNotFit, Fit, Placement, assess, offers
from tangere.apps.drawing.plan.motion import DrawingPlan, PenMotion, PlanCheck, Stretch, stretches_of
from tangere.apps.drawing.plan.pen_path import pen_curves
from tangere.apps.drawing.plan.reach import LinkSpheres, closed_form, polished, surface_distance, tip_poses
from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue, NoSolution, UnknownName
from tangere.kernels.solutions import IKSolutions
from tangere.planning.branches import joint_path
from tangere.planning.joint_motions import JointMove
from tangere.planning.path_trajectory import JUMP, grid, softened_inverse
from tangere.planning.samples import MARGIN, PERIOD, Limits, violations
from tangere.robots import Robot
from tangere.types import Array

# m above the paper where a joint motion from elsewhere ends: such a motion sags by some centimetres on its way
ENTRY = 0.06
# Samples that are turned into joints at once: 50 MB of inverse kinematics
CHUNK = 40_000
# s: fine checks of clearance and torque look every so often; a link moves 5 mm meanwhile at most
LOOK = 0.02
# Passes of slowing down; the second is already a formality
PASSES = 4
# Most samples of a plan: 220 MB
SAMPLES = 600_000
# Most points of the strokes that decide about the placement
POINTS = 150


def plan_drawing(
    robot: Robot, strokes: Strokes, canvas: Canvas, how: PenMotion | None = None, *, q_start: ArrayLike | None = None,
    period: float | None = None, offer: bool = True,
) -> DrawingPlan:  # fmt: skip
    """The motion that draws `strokes` on `canvas`, from rest above the first point to rest above the last, lifted.

    how: speeds, heights and force; None: PenMotion(). q_start (n,): a joint motion from there to 60 mm above the first
    point comes first. Where joints would be too fast, that part goes slower. period [s] of the samples (default 1 ms,
    doubled until a long drawing has at most 600 000).

    Raises DoesNotFit where the arm cannot draw it there: it says why and, with `offer`, offers placements (`assess`
    finds no fault with them; the whole motion there is not planned).
    """
    _check_strokes(strokes, canvas)
    how = PenMotion() if how is None else how
    points = _sampled_points(strokes, how.lift)
    box = Box(*strokes.bounds, points, how)
    fit = assess(robot, canvas, points, how)
    if fit.problems:
        raise DoesNotFit(fit.problems, offers(robot, canvas, box) if offer and not fit.only_force else None)
    pace = how.paced(fit.tip_mass)
    height = how.lift if q_start is None else max(how.lift, ENTRY)
    curves = [pen_curves(line, how.tolerance) for line in strokes.lines]
    ends = [(line[0], line[-1]) for line in strokes.lines]
    stretches = stretches_of([list(c) for c in curves], ends, pace, height)
    if period is None:
        duration = sum(stretch.duration for stretch in stretches)
        period = PERIOD * 2 ** max(0, math.ceil(math.log2(duration / PERIOD / SAMPLES)))
    limits = Limits.of(robot, acceleration=how.joint_acceleration)
    q_0 = _start_joints(robot, canvas, fit, strokes.lines[0][0], height, fit.q[0])
    q, qd, qdd, sigma, stretches = _joint_samples(robot, canvas, fit.R_canvas_tcp, stretches, q_0, limits, period)
    deviation = max((c.deviation for many in curves for c in many), default=0.0)
    check = _whole_check(robot, canvas, fit, stretches, (q, qd, qdd), sigma, limits, period, how.force, deviation)
    if isinstance(check, tuple):
        raise DoesNotFit(check, offers(robot, canvas, box) if offer else None)
    start = 0.0
    if q_start is not None:
        move = JointMove(robot, q_start, q[0], period=period)
        _refuse_through_surface(robot, canvas, move)
        start = (len(move.q) - 1) * period
        q, qd, qdd = (np.concatenate([a[:-1], b]) for a, b in ((move.q, q), (move.qd, qd), (move.qdd, qdd)))
    samples = (q, qd, qdd)
    return DrawingPlan(robot, strokes, canvas, stretches, samples, period, start, fit.R_canvas_tcp, pace, check)


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


def _start_joints(robot: Robot, canvas: Canvas, fit: Fit, start: Array, lift: float, q_near: Array) -> Array:
    """Joints above the first point, on the chosen branch."""
    T = tip_poses(canvas.T_base_canvas, fit.R_canvas_tcp, np.array([(start[0], start[1], lift)]))[0]
    solver = closed_form(robot)
    found = solver.inverse_kinematics(T, q_near)
    assert isinstance(found, IKSolutions)
    q = found.nearest(q_near)
    return q if solver is robot else polished(robot, T[None], q[None])[0][0]


def _joint_samples(
    robot: Robot, canvas: Canvas, R_tool: Array, stretches: list[Stretch], q_0: Array, limits: Limits, period: float
) -> tuple[Array, Array, Array, Array, list[Stretch]]:
    """Samples (k, n) of the whole drawing, slowed down stretch by stretch until the joints' limits hold.

    Every stretch begins on a sample, so that one who waits between two of them stays on the grid.
    """
    for _ in range(PASSES):
        stretches = [stretch.on_grid(period) for stretch in stretches]
        ends = np.cumsum([stretch.duration for stretch in stretches])
        times = grid(float(ends[-1]), period)
        owner = _owner(ends, times)
        p, v, a = _tip(stretches, times, owner, ends)
        q, qd, qdd, sigma = _inverse(robot, canvas, R_tool, p, v, a, times, q_0, period)
        share = np.max(np.abs(qd) / limits.velocity, axis=1)
        assert limits.acceleration is not None
        share = np.maximum(share, np.sqrt(np.max(np.abs(qdd) / limits.acceleration, axis=1)))
        worst = np.zeros(len(stretches))
        np.maximum.at(worst, owner, share)
        if worst.max() <= 1.0:
            return q, qd, qdd, sigma, stretches
        stretches = [
            replace(s, slower=s.slower * w * (1.0 + MARGIN)) if w > 1.0 else s
            for s, w in zip(stretches, worst, strict=True)
        ]
    raise NoSolution(f"the joints stay too fast after slowing down {PASSES} times: the arm is near a singularity")


def _owner(ends: Array, times: Array) -> NDArray[np.intp]:
    """The stretch that each time [s] falls into; ends: of the stretches."""
    return np.minimum(np.searchsorted(ends, times, side="right"), len(ends) - 1)


def _tip(
    stretches: list[Stretch], times: Array, owner: NDArray[np.intp], ends: Array
) -> tuple[Array, Array, Array]:
    """Position, velocity, acceleration (k, 3) of the tip in canvas axes at `times`, of the stretches in `owner`."""
    p, v, a = (np.empty((len(times), 3)) for _ in range(3))
    edges = np.searchsorted(owner, np.arange(len(stretches) + 1))
    for i, stretch in enumerate(stretches):
        here = slice(edges[i], edges[i + 1])
        if edges[i] < edges[i + 1]:
            p[here], v[here], a[here] = stretch.at(times[here] - (ends[i] - stretch.duration))
    return p, v, a


def _inverse(
    robot: Robot, canvas: Canvas, R_tool: Array, p: Array, v: Array, a: Array, times: Array, q_0: Array, period: float
) -> tuple[Array, Array, Array, Array]:
    """q = IK(T), qd = J^-1 (v, 0), qdd = J^-1 ((a, 0) - Jdot qd), in chunks; the tool does not turn."""
    n = robot.dof
    q, qd, qdd, sigma = np.empty((len(p), n)), np.empty((len(p), n)), np.empty((len(p), n)), np.empty(len(p))
    R, solver = canvas.R, closed_form(robot)
    for first in range(0, len(p), CHUNK):
        here = slice(first, min(first + CHUNK, len(p)))
        T = tip_poses(canvas.T_base_canvas, R_tool, p[here])
        q[here] = joint_path(solver, T, times[here], q_0, JUMP * robot.qd_max * period)
        if solver is not robot:
            q[here], reached = polished(robot, T, q[here])
            if not reached.all():
                raise NoSolution(f"no joints found for the tool at {T[np.argmin(reached), :3, 3]} m")
        q_0 = q[here][-1]
        inverse, sigma[here] = softened_inverse(robot.jacobian(q[here]))
        linear = inverse[:, :, :3] @ R
        qd[here] = (linear @ v[here][:, :, None])[:, :, 0]
        drift = robot.jacobian_rate_times_velocity(q[here], qd[here])
        qdd[here] = (linear @ a[here][:, :, None])[:, :, 0] - (inverse @ drift[:, :, None])[:, :, 0]
    return q, qd, qdd, sigma


def _whole_check(
    robot: Robot, canvas: Canvas, fit: Fit, stretches: list[Stretch], samples: tuple[Array, Array, Array], sigma: Array,
    limits: Limits, period: float, force: float, deviation: float,
) -> PlanCheck | tuple[str, ...]:  # fmt: skip
    """The whole motion once more, as it will be: limits on every sample, clearance and torque every LOOK seconds."""
    q, qd, qdd = samples
    broken = violations(robot, limits, period, q, qd, qdd)
    if broken:
        return tuple(v.text(robot, period, q[v.index]) for v in broken)
    step = max(1, round(LOOK / period))
    some = slice(None, None, step)
    spheres = LinkSpheres.of(robot)
    clear = np.inf
    coarse = q[some]
    for first in range(0, len(coarse), CHUNK // 4):
        places = spheres.places(robot.link_poses(coarse[first : first + CHUNK // 4]))
        distance, _ = surface_distance(spheres, places, canvas.T_base_canvas, canvas.size, canvas.border)
        clear = min(clear, float(distance.min()))
    ends = np.cumsum([s.duration for s in stretches])
    owner = _owner(ends, np.arange(len(q), dtype=np.float64)[some] * period)
    touching = np.array([s.contact for s in stretches])[owner]
    push = np.einsum("kin,i->kn", robot.jacobian(coarse)[:, :3], canvas.normal) * (force * touching)[:, None]
    tau = robot.inverse_dynamics(coarse, qd[some], qdd[some]) - push
    margin = float(np.min(np.minimum(q - robot.q_min, robot.q_max - q)))
    assert limits.acceleration is not None
    check = PlanCheck(
        fit.room, fit.force_max, float(sigma.min()), clear, margin,
        float(np.max(np.abs(qd) / limits.velocity)), float(np.max(np.abs(qdd) / limits.acceleration)),
        float(np.max(np.abs(tau) / robot.tau_max)), fit.tip_mass, deviation,
    )  # fmt: skip
    problems = []
    if clear < 0.0:
        problems.append(f"a link would go {-1e3 * clear:.0f} mm into the surface")
    if check.torque_share > 1.0:
        problems.append(f"a joint would need {check.torque_share:.2f} times its torque limit")
    return tuple(problems) if problems else check


def _refuse_through_surface(robot: Robot, canvas: Canvas, move: JointMove) -> None:
    """Refuses a first joint motion that takes a link or the tip through the surface."""
    spheres = LinkSpheres.of(robot)
    q = move.q[:: max(1, round(LOOK / move.period))]
    distance, link = surface_distance(
        spheres, spheres.places(robot.link_poses(q)), canvas.T_base_canvas, canvas.size, canvas.border
    )
    tip = canvas.from_base(robot.pose(q)[:, :3, 3])
    over = np.all(np.abs(tip[:, :2]) < 0.5 * np.asarray(canvas.size) + canvas.border, axis=1)
    worst = int(np.argmin(distance))
    if distance[worst] < 0.0 or np.any(tip[over, 2] < 0.0):
        what = f"link {link[worst] + 1}" if distance[worst] < 0.0 else "the pen"
        raise NoSolution(f"on the way from q_start {what} would go through the surface: start from another place")


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

    DoesNotFit or NoSolution says what would fit: placements that were planned, and sizes that `assess` finds no fault
    with.
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
    """The drawing as large as it fits, in whole millimetres; raises the problem with that size unless it is taken.

    `assess` decides, which takes some hundredths of a second; the whole motion is planned where the size is taken.
    """
    longest = max(strokes.size)
    how = PenMotion(settings.speed, force=settings.force)

    def canvas(share: float) -> Canvas | None:
        """The paper at that scale, None where the drawing does not fit on it."""
        scaled = strokes.transformed(scale=share)
        try:
            place = _canvas(settings, robot, scaled.size)
        except NoSolution:
            return None
        return None if assess(robot, place, _sampled_points(scaled, how.lift), how).problems else place

    low, high = 0.0, 1.0
    while high - low > FINE * high and high > FINE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if canvas(middle) is not None else (low, middle)
    millimetres = math.floor(1e3 * (1.0 - FINE) * low * longest)
    share = 1e-3 * millimetres / longest
    place = canvas(share) if millimetres >= 1 else None
    if place is None:
        raise problem
    if not settings.place:
        raise NoSolution(f"{problem}: {millimetres} mm of {1e3 * longest:.0f} would fit") from problem
    scaled = strokes.transformed(scale=share)
    note = f"scaled to {1e3 * share * longest:.0f} mm of {1e3 * longest:.0f}: {problem}"
    return scaled, place, _plan(robot, scaled, place, settings, offer=False), (note,)
