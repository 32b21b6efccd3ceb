"""The joints that carry the pen along its way, and the checks of the whole motion as it will be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.plan import reach
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.fit import Fit
from tangere.apps.drawing.plan.motion import PlanCheck, Stretch
from tangere.apps.drawing.plan.reach import LinkSpheres, closed_form, polished, surface_distance
from tangere.errors import NoSolution
from tangere.kernels.solutions import IKSolutions
from tangere.planning.branches import joint_path
from tangere.planning.joint_motions import JointMove
from tangere.planning.path_trajectory import JUMP, grid, softened_inverse
from tangere.planning.samples import MARGIN, Limits, violations
from tangere.robots import Robot
from tangere.types import Array

# Samples that are turned into joints at once: 50 MB of inverse kinematics
CHUNK = 40_000
# s: fine checks of clearance and torque look every so often; a link moves 5 mm meanwhile at most
LOOK = 0.02
# Passes of slowing down; the second is already a formality
PASSES = 4


def start_joints(robot: Robot, canvas: Canvas, fit: Fit, start: Array, lift: float, q_near: Array) -> Array:
    """Joints above the first point, on the chosen branch."""
    T = reach.tip_poses(canvas.T_base_canvas, fit.R_canvas_tcp, np.array([(start[0], start[1], lift)]))[0]
    solver = closed_form(robot)
    found = solver.inverse_kinematics(T, q_near)
    assert isinstance(found, IKSolutions)
    q = found.nearest(q_near)
    return q if solver is robot else polished(robot, T[None], q[None])[0][0]


def joint_samples(
    robot: Robot, canvas: Canvas, R_tool: Array, stretches: list[Stretch], q_0: Array, limits: Limits, period: float
) -> tuple[Array, Array, Array, Array, list[Stretch]]:
    """Samples (k, n) of the whole drawing, slowed down stretch by stretch until the joints' limits hold.

    Every stretch begins on a sample, so that one who waits between two of them stays on the grid.
    """
    for _ in range(PASSES):
        stretches = [stretch.on_grid(period) for stretch in stretches]
        ends = np.cumsum([stretch.duration for stretch in stretches])
        times = grid(float(ends[-1]), period)
        owner = np.minimum(np.searchsorted(ends, times, side="right"), len(stretches) - 1)
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
        T = reach.tip_poses(canvas.T_base_canvas, R_tool, p[here])
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


def whole_check(
    robot: Robot, canvas: Canvas, fit: Fit, stretches: list[Stretch], samples: tuple[Array, Array, Array], sigma: Array,
    limits: Limits, period: float, force: float, deviation: float,
) -> PlanCheck | tuple[str, ...]:  # fmt: skip
    """The whole motion once more, as it will be: limits on every sample, clearance and torque every LOOK seconds."""
    q, qd, qdd = samples
    broken = violations(robot, limits, period, q, qd, qdd)
    if broken:
        return tuple(v.text(v.index * period, robot.pose(q[v.index])) for v in broken)
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
    owner = np.minimum(np.searchsorted(ends, np.arange(len(q))[some] * period, side="right"), len(stretches) - 1)
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


def refuse_through_surface(robot: Robot, canvas: Canvas, move: JointMove) -> None:
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
