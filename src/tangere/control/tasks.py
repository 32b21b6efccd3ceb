"""Inverse dynamics with several tasks: the first is done exactly, the next within what that leaves, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import Goal, critical, gain, started, trajectory_of
from tangere.control.task_space import Bounds, tool_reference
from tangere.errors import InvalidValue
from tangere.kernels.step import step
from tangere.kinematics.resolution import THRESHOLD, TOLERANCE
from tangere.types import Array, Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

KP = 100.0  # 1/s2, as in ComputedTorque
REST = 5.0  # 1/s: joint speed that no task asks for dies out with this rate
ROWS = {"pose": range(6), "position": range(3), "orientation": range(3, 6)}


class AccelerationTask(Protocol):
    """A wish J qdd = b, every period anew. One's own: a center of mass, an elbow height, a distance to a wall."""

    def start(self, robot: Robot, state: State) -> None:
        """Prepare."""

    def wish(self, robot: Robot, state: State, time: float) -> tuple[Array | None, Array]:
        """(J (m, n), b (m,)) with b = wdot* - Jdot qd; J None means all joints (the identity). time since the start."""


class ToolTask:
    """The tcp follows a trajectory: wdot* = wdot_d + kp (r_d - r; dphi) + kv (w_d - w), all rows or some.

    rows: "pose", "position", "orientation", or numbers 0 ... 5 (x, y, z, and turning about them; base axes).
    """

    def __init__(
        self, goal: Goal, rows: str | Sequence[int] = "pose", *, kp: ArrayLike = KP, kv: ArrayLike | None = None
    ) -> None:
        if isinstance(rows, str) and rows not in ROWS:
            raise InvalidValue(f"rows: got {rows!r}, valid are {', '.join(ROWS)} or numbers 0 to 5")
        chosen = list(ROWS[rows] if isinstance(rows, str) else rows)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(6)):
            raise InvalidValue(f"rows: different numbers 0 to 5, at least one, got {chosen}")
        self.rows = np.array(chosen)
        self.kp = gain(kp, 6, "kp")
        self.kv = critical(self.kp) if kv is None else gain(kv, 6, "kv")
        self._goal = goal
        self._error = step("pose_error", 6, np.zeros(0))

    def start(self, robot: Robot, state: State) -> None:
        """Take the trajectory, or the present pose."""
        self._trajectory = started(robot, trajectory_of(robot, self._goal), state)

    def wish(self, robot: Robot, state: State, time: float) -> tuple[Array, Array]:
        """J and wdot* - Jdot qd of the chosen rows."""
        q, qd = state.q, state.qd
        T_des, v_des, wdot = tool_reference(robot, self._trajectory.at(time))
        J = robot.jacobian(q)
        self._error.update(T_des, robot.pose(q))
        b = self.kp * self._error.after
        b += self.kv * (v_des - J.dot(qd))
        b += wdot
        b -= robot.jacobian_rate_times_velocity(q, qd)
        return (J, b) if len(self.rows) == 6 else (J[self.rows], b[self.rows])


class JointTask:
    """Joints follow a trajectory: qdd* = qdd_d + kp (q_d - q) + kv (qd_d - qd), all or some (counted from 1)."""

    def __init__(
        self, goal: Goal, joints: Sequence[int] | None = None, *, kp: ArrayLike = KP, kv: ArrayLike | None = None
    ) -> None:
        self.joints = None if joints is None else list(joints)
        self._goal, self._kp, self._kv = goal, kp, kv

    def start(self, robot: Robot, state: State) -> None:
        """Take the trajectory, or the present joint angles."""
        n = robot.dof
        joints = list(range(1, n + 1)) if self.joints is None else self.joints
        if not joints or not set(joints) <= set(range(1, n + 1)):
            raise InvalidValue(f"joints: numbers 1 to {n}, at least one, got {joints}")
        self._index = np.array(joints) - 1
        self._J = None if joints == list(range(1, n + 1)) else np.eye(n)[self._index]
        self.kp = gain(self._kp, n, "kp")
        self.kv = critical(self.kp) if self._kv is None else gain(self._kv, n, "kv")
        self._trajectory = started(robot, trajectory_of(robot, self._goal), state)

    def wish(self, robot: Robot, state: State, time: float) -> tuple[Array | None, Array]:
        """Rows of the identity and qdd*."""
        reference = self._trajectory.at(time)
        b = self.kp * (reference.q - state.q)
        b += self.kv * (reference.qd - state.qd)
        b += reference.qdd
        return (None, b) if self._J is None else (self._J, b[self._index])


class PrioritisedTasks:
    """Torque that does the tasks in their order of priority: 003, "Inverse Dynamics Control with Multiple Tasks".

        qdd = 0, Z = I;  for each task:  J Z = U s V^T,  qdd += Z V f(s) U^T (b - J qdd),  Z = Z V_0
        qdd -= REST Z Z^T qd,  tau = M qdd + C qd + g + friction(qd)

    003's prioritised tasks (corrected, see kinematics.resolution) on the level of accelerations; Z spans what the tasks
    before have left. f(s) = 1/s for s >= THRESHOLD, s / THRESHOLD^2 below (the damping schedule of
    kinematics.resolution, per direction): tasks that are compatible and regular are met exactly, one that loses a
    direction or contradicts those before asks for bounded accelerations. V_0 are the directions with s < TOLERANCE: a
    task keeps the directions it is still losing, so that a later one does not jump in. What is left at the end is
    damped. Joint speeds and torques are kept within the arm's, see Bounds.
    """

    def __init__(
        self,
        robot: Robot,
        tasks: Sequence[AccelerationTask],
        *,
        rest_damping: float = REST,
        friction: Friction | None = None,
    ) -> None:
        if not tasks:
            raise InvalidValue("tasks: at least one is needed, got none")
        self.robot = robot
        self.tasks = tuple(tasks)
        self._bounds = Bounds(robot)
        self.friction = friction
        self.rest_damping = float(gain(rest_damping, 1, "rest_damping")[0])

    def start(self, state: State) -> None:
        """Start every task; time counts from here."""
        self._t0 = state.time
        for task in self.tasks:
            task.start(self.robot, state)

    def step(self, state: State) -> Command:
        """The torque for the coming period; the note says which task lost a direction."""
        qdd, note = self._accelerations(state)
        tau = self.robot.inverse_dynamics(state.q, state.qd, qdd)
        if self.friction is not None:
            tau += self.friction.torque(state.qd)
        return self._bounds.command(state.q, state.qd, tau, note)

    def stop(self) -> None:
        """Nothing to release."""

    def _accelerations(self, state: State) -> tuple[Array, str]:
        time, n = state.time - self._t0, self.robot.dof
        qdd, Z, note = np.zeros(n), np.eye(n), ""
        for priority, task in enumerate(self.tasks, start=1):
            J, b = task.wish(self.robot, state, time)
            if J is None:
                qdd += Z.dot(b.dot(Z))  # Z^T qdd is zero: qdd so far lies in what the tasks before have taken
                return qdd, note
            U, s, Vt = np.linalg.svd(J.dot(Z))
            rank = int(np.count_nonzero(s >= TOLERANCE))
            if rank < len(b) or s[-1] < THRESHOLD:
                note = note or f"task {priority} has lost a direction"
            f = 1.0 / np.maximum(s[:rank], THRESHOLD)
            f *= np.minimum(s[:rank] / THRESHOLD, 1.0)
            qdd += Z.dot((f * (b - J.dot(qdd)).dot(U[:, :rank])).dot(Vt[:rank]))
            Z = Z.dot(Vt[rank:].T)
            if Z.shape[1] == 0:
                return qdd, note
        qdd -= Z.dot(self.rest_damping * state.qd.dot(Z))
        return qdd, note
