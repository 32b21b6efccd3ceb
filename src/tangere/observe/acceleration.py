"""The acceleration residual: what 000 section 5.1 argues against, as a baseline for the momentum observer."""

from __future__ import annotations

from math import isfinite
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.inputs import Friction, per_joint
from tangere.robot import Robot
from tangere.types import Array, State


class AccelerationObserver:
    """External torque by inverse dynamics of a numerically differentiated acceleration.

        y_k = M(q) qdd_hat + C(q, qd) qd + g(q) + friction(qd) - tau_{k-1}
        qdd_hat = (qd_k - qd_{k-1}) / h                       differentiate="velocity"
        qdd_hat = 2 (v_k - v_{k-1}) / (h_k + h_{k-1})         differentiate="position", v_k = (q_k - q_{k-1}) / h_k

    Everything is evaluated in the middle of the interval that qdd_hat belongs to (the newest two samples, or the middle
    one of three), so that with a perfect sensor the two residuals agree to O(h^2). Noise of standard deviation s on
    qd becomes M s sqrt(2) / h of torque (s = 2e-3 rad/s, h = 2 ms, M = 7 kg m2: 10 Nm), noise on q M s sqrt(6) / h^2.
    gain: None for the raw y; K [1/s] to pass it through the momentum observer's filter, for a fair comparison.
    """

    __slots__ = ("_friction", "_gain", "_h", "_position", "_q", "_qd", "_tau", "_time", "_v", "residual", "robot")

    residual: Array

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike | None = None,
        friction: Friction | None = None,
        *,
        differentiate: Literal["velocity", "position"] = "velocity",
    ) -> None:
        if differentiate not in ("velocity", "position"):
            raise InvalidValue(f"differentiate: must be 'velocity' or 'position', got {differentiate!r}")
        self.robot = robot
        self._gain = None if gain is None else per_joint(gain, robot.dof, "gain", "1/s")
        self._friction = friction
        self._position = differentiate == "position"
        self.residual = np.zeros(robot.dof)
        self._q = self._qd = self._tau = np.zeros(robot.dof)
        self._h = 0.0
        self._v: Array | None = None

    def reset(self, state: State) -> None:
        """Start again from this sample, with a residual of zero."""
        self.residual = np.zeros(self.robot.dof)
        self._keep(state, None, 0.0)

    def update(self, state: State) -> Array:
        """The residual (n,) [Nm] after a new sample; held where the sample is not usable."""
        h = state.period
        if not h > 0.0 or state.time == self._time:  # the same sample again: one was lost
            return self.residual
        if self._position:
            v: Array | None = (state.q - self._q) / h
            before, h_before, q_mid, tau = self._v, self._h, self._q, self._tau
            self._keep(state, v, h)
            if before is None or v is None:
                return self.residual
            whole = h + h_before
            qdd = (v - before) * (2.0 / whole)
            qd_mid = (v * h_before + before * h) / whole
            tau = (tau * h_before + state.tau * h) / whole
        else:
            qdd = (state.qd - self._qd) / h
            q_mid, qd_mid, tau = 0.5 * (state.q + self._q), 0.5 * (state.qd + self._qd), state.tau
            self._keep(state, None, h)
        try:
            y = self.robot.inverse_dynamics(q_mid, qd_mid, qdd) - tau
        except InvalidValue:  # the kernels refuse what is not finite
            return self.residual
        if self._friction is not None:
            y += self._friction.torque(qd_mid)
        if not isfinite(y.dot(y)):
            return self.residual
        if self._gain is not None:
            y = self.residual - np.expm1(-h * self._gain) * (y - self.residual)
        self.residual = y
        return y

    def _keep(self, state: State, v: Array | None, h: float) -> None:
        self._q, self._qd, self._tau, self._v, self._h = state.q, state.qd, state.tau, v, h
        self._time = state.time
