"""The nonlinear disturbance observer: a constant gain matrix on the velocity instead of the momentum."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.observe.balance import TorqueBalance
from tangere.observe.filter import BalanceFilter
from tangere.observe.momentum import GAIN
from tangere.robots import Robot
from tangere.types import Array, Friction, State


class DisturbanceObserver(BalanceFilter):
    """Disturbance observer with gain L(q) = Y M(q)^-1 (Chen et al. 2000; Mohammadi et al., Control Eng. Pract. 2013).

        d_hat = z + Y qd,   dz/dt = -L z - L (Y qd + tau - C qd - g - friction(qd))
        <=>   d(d_hat)/dt = Y M(q)^-1 (tau_ext - d_hat)

    Only Y = K^1/2 M(q_0) K^1/2 is constant: at the posture q_0, with one gain for all, every joint has the lag 1/K of
    the momentum observer; elsewhere, and with unequal gains, the speed changes with M and a push on one joint is felt,
    for a while, on others. That is the price of a gain that acts on qd alone. (With Y = K M(q) the estimate is the
    momentum observer's.) The eigenvalues of L are positive, so it converges while M changes slowly against K
    (Mohammadi's condition bounds dM/dt).

    What is usually wrong: z is integrated by forward Euler, which diverges where Y M^-1 h passes 2; Y is a multiple of
    1, so that joint 6 of a UR10e, with 4e-5 of the inertia of joint 2, is 2.7e4 times as fast; M is inverted. Here the
    step is exact for M and tau_ext constant over the period, and stable for every h > 0:

        y_k = M (qd_k - qd_{k-1}) / h + C qd + g + friction(qd) - tau_{k-1}     in the middle of the period
        d_k = d_{k-1} + (1 - exp(-Y M^-1 h)) (y_k - d_{k-1})
        Y = G G^T,  G^-1 M G^-T = V mu V^T   =>   1 - exp(-Y M^-1 h) = G V diag(1 - exp(-h / mu)) V^T G^-1

    robot, friction, residual: as MomentumObserver. gain: K [1/s], one or one per joint. posture: q_0 (n,) [rad]; None:
    that of the first sample. Sample not usable (period <= 0, anything not finite): d_hat is held.
    """

    __slots__ = ("_factor", "_inverse", "_middle", "_posture")

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        posture: ArrayLike | None = None,
        residual: ArrayLike | None = None,
    ) -> None:
        self._middle = TorqueBalance(robot, friction)
        super().__init__(robot, self._middle, gain, residual)
        self._posture = None if posture is None else np.array(checked(posture, (robot.dof,), "posture"))
        self._factor: Array | None = None  # G
        self._inverse = np.eye(robot.dof)  # G^-1
        if self._posture is not None:
            self._design(self._posture)

    def _begun(self, state: State) -> None:
        """Y belongs to this sample if no posture was given."""
        if self._posture is None:
            self._factor = None
            self._design(state.q)

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        if self._factor is None:
            self._design(state.q)
        if self._factor is None:
            return self.residual
        M = self.robot.mass_matrix(self._middle.q)
        mu, V = np.linalg.eigh(self._inverse.dot(M).dot(self._inverse.T))
        modes = self._inverse.dot(np.array(y) - self.residual).dot(V)
        modes *= -np.expm1(-h / mu)
        return np.asarray(self.residual + self._factor.dot(V.dot(modes)))

    def _design(self, q: Array) -> None:
        """G, G^-1 for Y at this posture; none if it is not finite."""
        try:
            M = self.robot.mass_matrix(q)
        except InvalidValue:
            return
        root = np.sqrt(self._gain)
        factor: Array = np.linalg.cholesky(root[:, None] * M * root).astype(np.float64, copy=False)
        self._factor, self._inverse = factor, np.linalg.inv(factor).astype(np.float64, copy=False)
