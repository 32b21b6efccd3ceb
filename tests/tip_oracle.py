"""Hybrid force-motion control of a tip in numpy, written by hand: what the traced laws are compared with."""

from __future__ import annotations

import math

import numpy as np

import tangere
from tangere.apps.drawing.force.hybrid_force import WILD
from tangere.control.task_space import pose_error
from tangere.types import Array, Reference, State


class VelocityFilter:
    """The filter of the joint speeds, in numpy."""

    def __init__(self, robot: tangere.Robot, bandwidth: Array) -> None:
        self.robot, self.bandwidth = robot, bandwidth

    def start(self, state: State) -> None:
        self._q, self.qd = state.q, state.qd
        self._d = np.zeros(len(state.q))
        self._time, self._h = state.time, -1.0

    def update(self, state: State, external: Array | None) -> Array:
        h = state.period
        if state.time == self._time or not h > 0.0:
            return self.qd
        self._time = state.time
        tau = state.tau if external is None else state.tau + external
        predicted = self.robot.forward_dynamics(self._q, self.qd, tau)
        predicted += self._d
        predicted *= h
        predicted += self.qd
        innovation = state.qd - predicted
        if h != self._h:
            self._h = h
            self._fast, self._slow = np.minimum(2.0 * self.bandwidth * h, 1.0), self.bandwidth**2 * h
        self._d = self._d + self._slow * innovation
        innovation *= self._fast
        predicted += innovation
        self._q, self.qd = state.q, predicted
        return predicted


class Oracle:
    """tip_sense and tip_torque, in numpy over the robot's methods."""

    def __init__(
        self, robot: tangere.Robot, bandwidth: Array, T: Array, gains: tuple[float, float, float], limit: Array
    ) -> None:
        self.robot, self._filter = robot, VelocityFilter(robot, bandwidth)
        self._axes, self._normal, self._origin = T[:3, :3].T, T[:3, 2], T[:3, 3]
        self._kp, self._kv, self._ki = gains
        self._limit = limit
        self._square = self.robot.dof == 6

    def start(self, state: State) -> None:
        self._filter.start(state)
        self.qd = state.qd  # (n,) filtered
        self.b = np.zeros(6)  # m/s2, rad/s2
        self.full = False  # whether b is at its limit

    def sense(self, state: State, F: Array | None) -> tuple[float, float, float, float, float, float]:
        self._q, n = state.q, self._normal
        self._J, self._T = self.robot.jacobian(state.q), self.robot.pose(state.q)
        external = None if F is None else F.dot(self._J)
        self.external: Array = np.zeros(len(state.q)) if external is None else external  # (n,) J^T F
        self.qd = self._filter.update(state, external)
        self._v = self._J.dot(self.qd)
        W, push = (0.0, 0.0) if F is None else (float(n.dot(F[:3])), math.sqrt(float(F[:3].dot(F[:3]))))
        x, y, z = self._axes.dot(self._T[:3, 3] - self._origin).tolist()
        return W, push, x, y, z, float(n.dot(self._v[:3]))

    def torque(self, reference: Reference, h: float, pressing: bool, along: float, integral: float) -> Array | None:
        robot, n = self.robot, self._normal
        assert reference.T is not None
        assert reference.v is not None
        assert reference.a is not None
        error = pose_error(reference.T, self._T)
        pull = reference.a + self._kp * error + self._kv * (reference.v - self._v)
        if pressing:
            error[:3] -= n.dot(error[:3]) * n
            along -= float(n.dot(pull[:3]))
        pull[:3] += along * n
        self.b += self._ki * h * error
        self.b[:3] += integral * n
        self.full = bool(np.any(np.abs(self.b) >= self._limit))
        np.clip(self.b, -self._limit, self._limit, out=self.b)
        pull += self.b
        self.pull: Array = pull - robot.jacobian_rate_times_velocity(self._q, self.qd)
        if not self._square:
            return None
        try:
            qdd = np.linalg.solve(self._J, self.pull)
        except np.linalg.LinAlgError:
            return None  # exactly singular
        if not qdd.dot(qdd) < WILD:
            return None
        return robot.inverse_dynamics(self._q, self.qd, qdd) - self.external
