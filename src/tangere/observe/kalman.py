"""Kalman filter on the momentum: external torque as a random walk, with the noise of the sensors in torque units."""

from __future__ import annotations

from math import isfinite, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.balance import MomentumBalance
from tangere.observe.filter import BalanceFilter
from tangere.observe.inputs import per_joint
from tangere.observe.momentum import GAIN
from tangere.robots import Robot
from tangere.types import Array, Friction, State

VELOCITY_NOISE = 0.002  # [rad/s] standard deviation per sample seen in recordings of a resting UR10e
# Nm / sqrt(Hz) per Nm of tau_max: density of the torque noise of a UR10e (2.3 2.0 .9 .29 .43 .30 Nm at 100 Hz) over
# its tau_max (330 330 150 56 56 56) lies between 5.2e-4 and 7.7e-4 for all six joints
_TORQUE_NOISE = 6.3e-4
PERIOD = 2e-3  # [s] the nominal period (500 Hz) that turns noise per sample into a density for the design


class KalmanObserver(BalanceFilter):
    """Disturbance Kalman filter (Wahrburg et al., CASE 2015 and T-ASE 2018; Hu and Xiong, TIE 2018), per joint.

        dp/dt = tau + beta + f + w_p,   df/dt = w_f,   measured p + v,   f_hat -> tau_ext
        var v = sum_i M_ji^2 sigma_i^2 =: R_j  per sample,   w_p of density q_p = torque_noise^2,   w_f of density q_f

    sigma: velocity noise; w_p: noise of the measured torque. q_f, how fast a push may come, is all that remains to be
    chosen; with r = R period it follows from the bandwidth asked for:

        q_f = K^2 (r K^2 + q_p)   =>   |f_hat / tau_ext| = 1/sqrt(2) at K rad/s in the steady state, in every posture

    (steady-state gains l2 = sqrt(q_f / r), l1 = sqrt(q_p / r + 2 l2); f_hat = l2 / (s^2 + l1 s + l2) tau_ext). Without
    torque noise it is then the Butterworth filter of second order, with much of it the momentum observer.

    What is usually wrong: F = 1 + A h and Q = diag(.) h, which tie the tuning to one period; R constant, though the
    noise of p = M qd grows with M (on a UR10e 1 to 13 kg m2 at joint 1, 3e-4 at joint 6); f started as exactly known.
    Here, per joint, F = [1 h; 0 1], Q = [q_p h + q_f h^3/3, q_f h^2/2; q_f h^2/2, q_f h] exactly for every h, R follows
    M, and the covariance starts in its steady state. Left out: that noise of one velocity enters the momenta of all
    joints together (R is full; a filter of 12 states would use it).

    velocity_noise [rad/s], one or one per joint; torque_noise [Nm/sqrt(Hz)]: noise per sample times sqrt(period);
    None: 6.3e-4 tau_max. Others as MomentumObserver. A sample that is not usable holds f_hat, and the variance grows by
    what was missed.
    """

    __slots__ = ("_e", "_last", "_noise", "_period", "_q_p", "_r", "_variance")

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        velocity_noise: ArrayLike = VELOCITY_NOISE,
        torque_noise: ArrayLike | None = None,
        period: float = PERIOD,
        residual: ArrayLike | None = None,
    ) -> None:
        if not (isfinite(period) and period > 0.0):
            raise InvalidValue(f"period: must be positive and finite [s], got {period!r}")
        n = robot.dof
        super().__init__(robot, MomentumBalance(robot, friction), gain, residual)
        self._noise = per_joint(velocity_noise, n, "velocity_noise", "rad/s") ** 2
        density = _TORQUE_NOISE * robot.tau_max if torque_noise is None else torque_noise
        self._q_p: list[float] = (per_joint(density, n, "torque_noise", "Nm/sqrt(Hz)") ** 2).tolist()
        self._period = period
        self._r: list[float] = self._start.tolist()
        self._e = [0.0] * n  # p - p_hat after the newest sample
        self._variance: list[tuple[float, float, float]] = []  # of (p, p), (p, f), (f, f); empty: not yet begun
        self._last = nan  # stamp of the newest sample that was used

    @property
    def variance(self) -> Array:
        """Variance (n,) [Nm2] that the filter gives its own estimate; inf before the first sample."""
        return np.array([c for _, _, c in self._variance] or [np.inf] * self.robot.dof)

    def _begun(self, state: State) -> None:
        self._r = self._start.tolist()
        self._e = [0.0] * self.robot.dof
        self._last = float(state.time)
        self._variance = []
        try:
            self._settle(self._momentum_noise(state.q))
        except InvalidValue:  # not finite: begun with the first sample that is
            return

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        R = self._momentum_noise(state.q)
        if not self._variance:
            self._settle(R)
        missed = float(state.time) - self._last - h
        missed = missed if missed > 0.5 * h else 0.0  # [s] without a sample; below half a period: jitter
        self._last = float(state.time)
        f, errors, variance = [], [], []
        joints = zip(y, self._r, self._e, self._variance, R, self._q_p, self._gain.tolist(), strict=True)
        for y_j, f_j, e_j, (a, b, c), R_j, q_p, K in joints:
            q_f = K * K * (R_j * self._period * K * K + q_p)
            c += q_f * missed
            a += h * (2.0 * b + h * (c + q_f * h / 3.0) + q_p)
            b += h * (c + 0.5 * h * q_f)
            c += h * q_f
            nu = e_j + h * (y_j - f_j)
            seen = R_j / (a + R_j)  # 1 - gain of p, without cancellation
            k = b / (a + R_j)
            f.append(f_j + k * nu)
            errors.append(seen * nu)
            variance.append((a * seen, b * seen, c - k * b))
        self._r, self._e, self._variance = f, errors, variance
        return np.array(f)

    def _momentum_noise(self, q: Array) -> list[float]:
        """R (n,): variance of p = M qd at one sample."""
        M = self.robot.mass_matrix(q)
        M *= M
        noise: list[float] = M.dot(self._noise).tolist()
        return noise

    def _settle(self, R: list[float]) -> None:
        """The covariance of the steady state, in continuous time."""
        for R_j, q_p, K in zip(R, self._q_p, self._gain.tolist(), strict=True):
            r = R_j * self._period
            l2 = K * sqrt(K * K + q_p / r)
            l1 = sqrt(q_p / r + 2.0 * l2)
            self._variance.append((l1 * r, l2 * r, l1 * l2 * r))
