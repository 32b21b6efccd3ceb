"""The servo that an industrial arm has below its programs: every joint follows its target, whatever is in the way."""

from __future__ import annotations

import numpy as np

from tangere.errors import InvalidValue
from tangere.robots import Robot
from tangere.types import Array, Friction, State

# [1/s] three equal poles of the error. A stiff arm: 1 Nm of disturbance on 1 kg m2 moves it by 1 / 150**3 rad s before
# the integral takes it over; at steps of 1 ms the loop keeps a margin of six to where it would become unstable.
POLE = 150.0


class JointServo:
    """Computed torque with an integral:

        tau = ID(q, qd, qdd_des + 3 p (qd_des - qd) + 3 p^2 e + p^3 int e) + friction(qd_des),   e = q_des - q

    The integral makes up for friction and payload that the model does not know. Torques stay within robot.tau_max;
    while one is cut, the integral of that joint waits.
    """

    def __init__(self, robot: Robot, friction: Friction | None = None, pole: float = POLE) -> None:
        if not 0.0 < pole < 1e4:
            raise InvalidValue(f"pole: positive, below 1e4 [1/s], got {pole!r}")
        self.robot, self.friction, self._p = robot, friction, pole
        self._sum = self._nothing = np.zeros(robot.dof)
        self._last: tuple[Array, Array, Array, Array] | None = None  # q, qd, qdd_des, torque without friction

    def release(self) -> None:
        """Forget the integral: somebody else moves the arm."""
        self._sum = self._nothing

    @property
    def effort(self) -> Array:
        """What of the last torque (n,) [Nm] goes beyond the model's torque for the target."""
        if self._last is None:
            return self._nothing
        q, qd, qdd, tau = self._last
        return tau - self.robot.inverse_dynamics(q, qd, qdd)

    def torque(self, state: State, q: Array, qd: Array, qdd: Array, period: float) -> Array:
        """The torque (n,) [Nm] for the coming period [s] towards the target (n,) each."""
        p, error = self._p, q - state.q
        wanted = qdd + (3.0 * p) * (qd - state.qd) + (3.0 * p * p) * error + p**3 * self._sum
        tau = self.robot.inverse_dynamics(state.q, state.qd, wanted)
        self._last = (state.q, state.qd, qdd, tau)
        if self.friction is not None:
            tau = tau + self.friction.torque(qd)
        limit = self.robot.tau_max
        cut: Array = np.minimum(np.maximum(tau, -limit), limit)
        self._sum = self._sum + (tau == cut) * (error * period)
        return cut
