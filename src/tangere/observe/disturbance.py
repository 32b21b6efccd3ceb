"""The nonlinear disturbance observer: a constant gain matrix on the velocity instead of the momentum."""

from __future__ import annotations

from math import isfinite, nan

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.observe.inputs import Friction, initial_residual, per_joint
from tangere.observe.momentum import GAIN
from tangere.robot import Robot
from tangere.types import Array, State


class DisturbanceObserver:
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

    __slots__ = (
        "_factor", "_friction", "_gain", "_inverse", "_posture", "_q", "_qd", "_start", "_time", "residual", "robot",
    )  # fmt: skip

    residual: Array  # (n,) Nm, d_hat; a new array at each sample

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        posture: ArrayLike | None = None,
        residual: ArrayLike | None = None,
    ) -> None:
        self.robot = robot
        self._gain = per_joint(gain, robot.dof, "gain", "1/s")
        self._gain.flags.writeable = False
        self._friction = friction
        self._posture = None if posture is None else np.array(checked(posture, (robot.dof,), "posture"))
        self._start = initial_residual(residual, robot.dof)
        self._factor: Array | None = None  # G
        self._inverse = np.eye(robot.dof)  # G^-1
        if self._posture is not None:
            self._design(self._posture)
        self._q = self._qd = self._start
        self._time = nan
        self.residual = self._start

    @property
    def gain(self) -> Array:
        """K (n,) [1/s], at the posture of the design."""
        return self._gain

    def reset(self, state: State) -> None:
        """Start again from this sample, with the residual given at construction; Y belongs to it if no posture does."""
        self.residual = self._start
        self._q, self._qd, self._time = state.q, state.qd, state.time
        if self._posture is None:
            self._factor = None
            self._design(state.q)

    def update(self, state: State) -> Array:
        """The residual (n,) [Nm] after a new sample; not to be written to."""
        if state.time == self._time:  # a lost sample: the one before was handed out again
            return self.residual
        h, q0, qd0 = state.period, self._q, self._qd
        self._q, self._qd, self._time = state.q, state.qd, state.time
        if not h > 0.0:
            return self.residual
        if self._factor is None:
            self._design(state.q)
            return self.residual
        q, qd = 0.5 * (q0 + state.q), 0.5 * (qd0 + state.qd)
        try:
            y = self.robot.inverse_dynamics(q, qd, (state.qd - qd0) / h) - state.tau
            M = self.robot.mass_matrix(q)
        except InvalidValue:  # the kernels refuse what is not finite
            return self.residual
        if self._friction is not None:
            y += self._friction.torque(qd)
        if not isfinite(y.dot(y)):
            return self.residual
        mu, V = np.linalg.eigh(self._inverse.dot(M).dot(self._inverse.T))
        modes = self._inverse.dot(y - self.residual).dot(V)
        modes *= -np.expm1(-h / mu)
        self.residual = self.residual + self._factor.dot(V.dot(modes))
        return self.residual

    def _design(self, q: Array) -> None:
        """G, G^-1 for Y at this posture; none if it is not finite."""
        try:
            M = self.robot.mass_matrix(q)
        except InvalidValue:
            return
        root = np.sqrt(self._gain)
        factor: Array = np.linalg.cholesky(root[:, None] * M * root).astype(np.float64, copy=False)
        self._factor, self._inverse = factor, np.linalg.inv(factor).astype(np.float64, copy=False)
