"""The arithmetic of a period of hybrid force-motion control: what is felt at the tip, and the torque that answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.drawing.force.velocity import VelocityFilter
from tangere.control.task_space import pose_error
from tangere.kernels import backend
from tangere.types import Array, Reference, State

if TYPE_CHECKING:
    from tangere.robots import Robot

WILD = 1e4  # (rad/s2)^2 over all joints: beyond 100 rad/s2 the pose is singular, or nearly


class TipLaw:
    """The equations of HybridForce, which says what they mean; the state is the filtered speed and the integral b.

        wdot* = (1 - S) [a_d + kp e + kv ed] + n along + b,      S = n n^T where the pen presses, else 0
        bdot h = ki h (1 - S) e + n integral
        tau   = M J^-1 (wdot* - Jdot qd) + C qd + g - J^T F

    In each period first `sense`, then `torque`. filter: of the joint speeds; axes (3, 3): rows x, y, n of the canvas
    frame; origin (3,) of it; gains (kp, kv, ki); limit (6,): of b. A UR has the same compiled, see tip_law.
    """

    def __init__(
        self, filter: VelocityFilter, axes: Array, origin: Array, gains: tuple[float, float, float], limit: Array
    ) -> None:
        self.robot, self._filter = filter.robot, filter
        self._axes, self._normal, self._origin = axes, axes[2], origin
        self._kp, self._kv, self._ki = gains
        self._limit = limit
        self._square = self.robot.dof == 6

    def start(self, state: State) -> None:
        """Begin with the measured speed, and no integral."""
        self._filter.start(state)
        self.qd = state.qd  # (n,) filtered
        self.b = np.zeros(6)  # m/s2, rad/s2
        self.full = False  # whether b is at its limit

    def sense(self, state: State, F: Array | None) -> tuple[float, float, float, float, float, float]:
        """Force along the normal, its whole size [N]; x, y, height of the tip [m]; its speed along the normal [m/s].

        F (6,): what is felt of the environment at the tcp, None where nothing is known.
        """
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
        """tau (n,), or None where the pose is singular or nearly; `pull` (6,) then says what J qdd was to be.

        along [m/s2]: in the normal's place where the pen presses, else on top; integral [m/s2]: what b gains along it.
        """
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


def tip_law(
    robot: Robot,
    filter: VelocityFilter,
    T_canvas: Array,
    gains: tuple[float, float, float],
    limit: Array,
) -> Any:
    """TipLaw of the arm: compiled for a UR (3 us a period), else as above (some 40 us)."""
    axes, origin = np.array(T_canvas[:3, :3].T), np.array(T_canvas[:3, 3])
    if robot.compiled:
        return backend.TipLaw(robot, filter.bandwidth, axes, origin, gains, limit, WILD)
    return TipLaw(filter, axes, origin, gains, limit)
