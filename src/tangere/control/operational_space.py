"""Operational-space motion control: the tool follows its path with its own mass-spring-damper, singular or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import Follower, Goal, critical, gain
from tangere.control.task_space import Bounds, ToolInertia, tool_reference
from tangere.kernels.step import step
from tangere.types import Array, Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

KP = 100.0  # 1/s2, as in ComputedTorque
# fastest correction of an error, m/s and rad/s: 0.25 m/s is what a collaborative arm is allowed near people, at 0.2 m
# per rad the same for turning; beyond, the arm comes back at this speed instead of with kp times a large error
CORRECTION = (0.25, 1.25)
# rad/s, the same for the posture that takes over where the task has lost a direction: half of a UR10e's slowest joint
POSTURE_SPEED = 1.0
LOST = 0.5  # a direction of which the task commands less than this share is reported as nearly lost


class OperationalSpace(Follower):
    """Follows a tool trajectory with linear error dynamics in task space: 003, "End-effector Control", corrected.

        wdot* = wdot_d + kp (r_d - r; dphi) + kv (w_d - w)
        y     = qdd_d + kp_n (q_d - q) + kv_n (qd_d - qd)
        tau   = J^T Lambda (wdot* - Jdot qd - J y) + M y + C qd + g + friction(qd)

    For regular poses of a six-joint arm this is tau = J^T (Lambda wdot* + mu + p) whatever y is; with more joints y
    moves the dynamically consistent null space. 003 prints Jdot^T for J^T and kd (wdot_d - wdot) for kv (w_d - w).
    Near a singularity Lambda is capped (see ToolInertia: mass_max): directions the tool has lost are handed over to y,
    the joint reference, continuously. So torques stay bounded, the arm goes through on the side where the reference
    goes, and nothing of the arm is left undamped. Corrections are limited in speed (CORRECTION, POSTURE_SPEED): from
    far away the tool comes back straight, not with kp times a large error.

    goal: trajectory (its tool path T, v, a where it has one, else the path of its joints), joint angles, or None.
    kp, kv [1/s2, 1/s]: one number or 6 (linear, angular; base axes); posture_kp, posture_kv: one or n. `posture=False`
    only damps the lost directions (y = -kv_n qd): for trajectories whose q means nothing.
    """

    def __init__(
        self,
        robot: Robot,
        goal: Goal,
        *,
        posture: bool = True,
        kp: ArrayLike = KP,
        kv: ArrayLike | None = None,
        posture_kp: ArrayLike = KP,
        posture_kv: ArrayLike | None = None,
        mass_max: float | None = None,
        friction: Friction | None = None,
    ) -> None:
        super().__init__(robot, goal, friction)
        self.kp = gain(kp, 6, "kp")
        self.kv = critical(self.kp) if kv is None else gain(kv, 6, "kv")
        self.posture_kp = gain(posture_kp, robot.dof, "posture_kp")
        self.posture_kv = critical(self.posture_kp) if posture_kv is None else gain(posture_kv, robot.dof, "posture_kv")
        self.posture = posture
        self.inertia = ToolInertia(robot, mass_max)
        self._bounds = Bounds(robot)
        self._error = step("pose_error", 6, np.zeros(0))
        # kp e is limited to kv times the correction speed
        self._pull = self.posture_kv * POSTURE_SPEED
        self._linear = float(self.kv[:3].min()) * CORRECTION[0]
        self._angular = float(self.kv[3:].min()) * CORRECTION[1]

    def step(self, state: State) -> Command:
        """The torque for the coming period; the note says where the arm is near a singularity."""
        robot, q, qd = self.robot, state.q, state.qd
        reference = self.trajectory.at(state.time - self._t0)
        T_des, v_des, wdot = tool_reference(robot, reference)
        J = robot.jacobian(q)
        self._error.update(T_des, robot.pose(q))
        pull = self.kp * self._error.after
        limit(pull, self._linear, self._angular)
        pull += self.kv * (v_des - J.dot(qd))
        pull += wdot
        if self.posture:
            y = self.posture_kp * (reference.q - q)
            np.minimum(np.maximum(y, -self._pull, out=y), self._pull, out=y)
            y += self.posture_kv * (reference.qd - qd)
            y += reference.qdd
        else:
            y = -self.posture_kv * qd
        Lambda, share = self.inertia.capped(q, J)
        pull -= robot.jacobian_rate_times_velocity(q, qd)
        pull -= J.dot(y)
        tau = robot.inverse_dynamics(q, qd, y)
        tau += Lambda.dot(pull).dot(J)
        if self.friction is not None:
            tau += self.friction.torque(qd)
        return self._bounds.command(q, qd, tau, "" if share >= LOST else "near a singularity")


def limit(pull: Array, linear: float, angular: float) -> None:
    """Shorten the linear and the angular half of pull (6,) in place to those lengths, direction kept."""
    x, y, z, rx, ry, rz = pull.tolist()
    moved, turned = math.sqrt(x * x + y * y + z * z), math.sqrt(rx * rx + ry * ry + rz * rz)
    if moved > linear:
        pull[:3] *= linear / moved
    if turned > angular:
        pull[3:] *= angular / turned
