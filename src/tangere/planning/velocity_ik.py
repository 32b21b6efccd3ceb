"""Following a path by velocities, without inverse kinematics of poses: what 002 does, with feedback and damping.

    qd = J^D (v_d + K e),   e = (p_d - p, sin(angle) axis of R_d R^T),   q = integral of qd

002 takes J^-1 and no feedback (K = 0): it drifts, and its own pose has no J^-1. The damped inverse J^D always exists,
and the feedback brings back what damping and integration lose. This is the way through singular poses, where
PathTrajectory refuses or asks for joint speeds that no arm has; what it costs is a path error, which is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.kinematics.rotation import rotation_error
from tangere.model.conventions import official_from_flipped_elbow
from tangere.planning.path_trajectory import grid
from tangere.planning.paths import Circle, Path, positive
from tangere.planning.samples import Limits, Sampled, refuse_violations
from tangere.planning.timing import SmoothRate, TimeLaw
from tangere.robots import Robot
from tangere.types import Array

# Feedback [1/s]: an error is halved in 0.14 s, slow against the integration (K step = 0.1: no ringing), fast against
# the seconds over which damping pulls off the path.
GAIN = 5.0
# Integration step [s]; the motions of this file are slow (3 mm/s), so a step is 0.06 mm.
STEP = 0.02
# Damping and the singular value where it sets in, both in m (rad): at 3 mm/s joints stay below 3e-3/(2 * 2e-3) =
# 0.8 rad/s, whatever the pose; a regular direction (singular value 0.1 and more) loses less than 4e-4 of its speed.
DAMPING = 2e-3

# 002's circle, its base: centre (0, 356.1, 1328) mm, radius 100 mm, 200 s; the pen is part of d6.
CIRCLE_CENTRE = (0.0, 0.3561, 1.328)
CIRCLE_RADIUS = 0.1
CIRCLE_TIME = 200.0
# 002's initial joints, its own angles: small but not zero.
CIRCLE_START = (0.0002, 0.0001, -0.0001, 0.0001, 0.0004, 0.00001)


class FollowedPath(Sampled):
    """What came out of following: a trajectory, and how far it is off its path at every sample."""

    __slots__ = ("path_error", "sigma_min", "turn_error")

    path_error: Array  # (k,) m, distance of the tool from where the path wants it at that time
    turn_error: Array  # (k,) rad
    sigma_min: Array  # (k,) smallest singular value of J


def follow(
    robot: Robot, path: Path, law: TimeLaw, q_start: ArrayLike, *, gain: float = GAIN, damping: float = DAMPING,
    step: float = STEP, limits: Limits | None = None,
) -> FollowedPath:  # fmt: skip
    """Follow a path from q_start (n,) by damped inverse velocities with feedback; midpoint rule, one step a sample.

    gain K [1/s] with K step < 1; damping: largest lam, and the singular value below which it sets in. The
    start need not lie on the path: the feedback leads there, at most as fast as the damping allows. Joint limits are
    checked on the samples (NoSolution). qdd is the difference of qd over a step, so it is as smooth as qd is.
    """
    q0 = checked(q_start, (robot.dof,), "q_start")
    step, damping = positive(step, "step", "s"), positive(damping, "damping", "m")
    if not 0.0 <= gain * step < 1.0:
        raise InvalidValue(f"gain: must be from 0 to below 1/step = {1.0 / step:g} 1/s, got {gain!r}")
    times = grid(law.duration, step)
    nodes = np.arange(2 * len(times) - 1, dtype=np.float64) * (0.5 * step)  # samples and midpoints
    s, sd, _ = law.at(nodes)
    points = path.at(s)
    v = points.first * sd[:, None]

    def rate(q: Array, i: int) -> Array:
        T, T_des = robot.pose(q), points.T[i]
        E = T_des[:3, :3] @ T[:3, :3].T
        w = v[i].copy()
        w[:3] += gain * (T_des[:3, 3] - T[:3, 3])
        w[3:] += 0.5 * gain * np.array((E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]))
        return _damped(robot.jacobian(q), w, damping)

    q, qd = np.empty((len(times), robot.dof)), np.empty((len(times), robot.dof))
    q[0] = q0
    for k in range(len(times)):
        qd[k] = rate(q[k], 2 * k)
        if k + 1 < len(times):
            q[k + 1] = q[k] + step * rate(q[k] + 0.5 * step * qd[k], 2 * k + 1)
    qdd = np.asarray(np.gradient(qd, step, axis=0))
    refuse_violations(robot, limits, step, q, qd, qdd)
    followed = FollowedPath(robot, q, qd, qdd, step, law.duration)
    T, T_des = robot.pose(q), points.T[::2]
    followed.path_error = np.sqrt(np.sum((T[:, :3, 3] - T_des[:, :3, 3]) ** 2, axis=1))
    followed.turn_error = np.sqrt(np.sum(rotation_error(T_des[:, :3, :3], T[:, :3, :3]) ** 2, axis=1))
    followed.sigma_min = np.asarray(np.linalg.svd(robot.jacobian(q), compute_uv=False)[:, -1], dtype=np.float64)
    return followed


def _damped(J: Array, w: Array, threshold: float) -> Array:
    """damped_inverse(J, damping_schedule(J, threshold, threshold)) @ w, with one decomposition for both."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    lam_squared = max(0.0, threshold**2 - s[-1] ** 2)
    return np.asarray((s / (s * s + lam_squared) * (w @ U)) @ Vt)


def singular_circle_path() -> Circle:
    """002's circle in the official base (002's is yawed by 180 degrees), the pen as it points at 002's zero pose.

    x = r sin th, z = z_c + r cos th in 002's base; the 6-vector Xdot that 002 prints has sine and cosine exchanged.
    """
    yaw = np.array([-1.0, -1.0, 1.0])
    pen = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    return Circle(yaw * CIRCLE_CENTRE, CIRCLE_RADIUS, pen, x_axis=(0.0, 0.0, 1.0), y_axis=(-1.0, 0.0, 0.0))


def singular_circle(robot: Robot, *, ramp: float = 2.0, **how: Any) -> FollowedPath:
    """002's upright circle in 002's own pose, which is singular all along: tangere.robot("ur10", parameters="002").

    The pen axis is parallel to axes 2, 3 and 4 (wrist singularity) for the whole circle, and at the top the arm is
    stretched with the wrist over the shoulder as well: rank 3. From 002's q_init, once round in 200 s plus the ramp.
    how: as `follow` has it.
    """
    path = singular_circle_path()
    law = SmoothRate.over(path.length, path.length / CIRCLE_TIME, ramp)
    return follow(robot, path, law, official_from_flipped_elbow(CIRCLE_START), **how)
