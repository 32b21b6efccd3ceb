"""Observers beside the momentum observer, to compare it with.

DisturbanceObserver: a constant gain matrix on the velocity instead of the momentum. SlidingModeObserver: the
super-twisting algorithm on the momentum, in its implicit discrete form. FilteredDynamicsObserver: the equation of
motion passed through a low-pass filter, so that no acceleration is needed. KalmanObserver: on the momentum, external
torque as a random walk, with the noise of the sensors in torque units.
"""

from __future__ import annotations

from math import copysign, cos, exp, expm1, isfinite, nan, sin, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.observe.balance import BalanceFilter, MomentumBalance, TorqueBalance
from tangere.observe.inputs import per_joint
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


# Levant's gains of the robust differentiator (Automatica 34, 1998): finite-time convergence for any tau_ext that
# changes no faster than L: sigma' = 1.1 L sign, e' = ... 1.5 sqrt(L |e|)
_INTEGRAL = 1.1
_ROOT = 1.5
# share of tau_max that a push is expected to have where no step is given: 33 Nm at the shoulder of a UR10e, 5.6 Nm at
# its wrist, about the size of what its logs show (20-47 Nm)
_STEP = 0.1


class SlidingModeObserver(BalanceFilter):
    """Super-twisting momentum observer (Garofalo, Mansfeld, Jankowski, Ott, ICRA 2019), sigma -> tau_ext.

        d(p_hat)/dt = tau + beta + sigma + T sqrt|e| sign(e),   d(sigma)/dt in S sign(e),   e = p - p_hat

    Without noise sigma equals tau_ext after a finite time if |d(tau_ext)/dt| < L = S / 1.1. With noise it cannot: it
    climbs and falls by S h at each sample, whatever the size of the error.

    There is no bandwidth in it. To stand beside the others at gain K [1/s], L = K step: a push of `step` Nm is climbed
    in about 1/K, a smaller one sooner, a larger one proportionally later. step: Nm, one or one per joint; None: a
    tenth of tau_max.

    What is usually wrong: the sign is integrated explicitly, which chatters by S h even on perfect data, and is then
    smoothed by a tanh whose steepness hides the loss of finite-time convergence. Here both signs are taken at the end
    of the period (implicit Euler: Brogliato, Polyakov, Efimov, IEEE TAC 65, 2020). With nu = e_{k-1} + h (y_k -
    sigma_{k-1}), y_k the balance of momentum, per joint:

        |nu| <= h^2 S:  e_k = 0, sigma_k = y_k where e_{k-1} = 0                        (sliding: exact, no chatter)
        else:           e_k = x^2 sign(nu),  x^2 + h T x = |nu| - h^2 S,  sigma_k = sigma_{k-1} + h S sign(nu)

    Stable for every h > 0, and h may change. There is no exact discrete form as for the linear observers: while it
    climbs it errs by O(h).

    robot, friction, residual: as MomentumObserver. A sample that is not usable holds everything.
    """

    __slots__ = ("_e", "_r", "_rate", "_root", "step")

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        step: ArrayLike | None = None,
        residual: ArrayLike | None = None,
    ) -> None:
        super().__init__(robot, MomentumBalance(robot, friction), gain, residual)
        self.step = per_joint(_STEP * robot.tau_max if step is None else step, robot.dof, "step", "Nm")
        self.step.flags.writeable = False
        slope = self._gain * self.step  # L, Nm/s
        self._rate: list[float] = (_INTEGRAL * slope).tolist()  # S
        self._root: list[float] = (_ROOT * np.sqrt(slope)).tolist()  # T
        self._r: list[float] = self._start.tolist()
        self._e = [0.0] * robot.dof

    def _begun(self, state: State) -> None:
        self._r = self._start.tolist()
        self._e = [0.0] * self.robot.dof

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        r, errors = [], []
        for y_j, r_j, e_j, S, T in zip(y, self._r, self._e, self._rate, self._root, strict=True):
            nu = e_j + h * (y_j - r_j)
            beyond = abs(nu) - h * h * S
            if beyond <= 0.0:
                errors.append(0.0)
                r.append(r_j + nu / h)
            else:
                half = 0.5 * h * T
                # the positive root of x^2 + 2 half x = beyond, written without cancellation
                x = beyond / (half + sqrt(half * half + beyond))
                errors.append(copysign(x * x, nu))
                r.append(r_j + copysign(h * S, nu))
        self._r, self._e = r, errors
        return np.array(r)


class FilteredDynamicsObserver(BalanceFilter):
    """External torque as F(s) [dp/dt - tau - beta], with dp/dt inside the filter (Van Damme et al., ICRA 2011).

        F(s) [s p - tau - beta],   p = M qd,   beta = C^T qd - g - friction(qd)
        order 1: F = K / (s + K)                     order 2: F = K^2 / (s^2 + sqrt(2) K s + K^2)   (Butterworth)

    Both pass half the power at K [rad/s]; a step is felt 1/K later with order 1, sqrt(2)/K with order 2. In return
    order 2 passes 0.71 of the power of white torque noise (equivalent bandwidth 1.11 K, not 1.57 K), and it rolls off
    the noise of qd, which passes s F: order 1 lets it through undamped, K M sigma at each sample.
    Order 1 is the momentum observer, algebraically: the two names stand for one estimate.

    What is usually wrong: s F acting on p is started at zero, so that an arm already moving gets a kick of K p(0); F
    and s F are discretised by different rules (Tustin here, Euler there), so that free motion does not cancel; and
    their coefficients belong to one fixed period. Here s p is the mean over the period, as tau is, and both pass one
    filter, exact for an input constant over the period h, any h:

        x = (r, rd / K),   x_k = (y_k, 0) + exp(A h) (x_{k-1} - (y_k, 0)),   A = K [0 1; -1 -sqrt(2)]
        exp(A h) = e^-s [cos s + sin s, sqrt(2) sin s; -sqrt(2) sin s, cos s - sin s],   s = K h / sqrt(2)

    robot, friction, residual: as MomentumObserver. gain: K [1/s], one or one per joint. A sample that is not usable
    holds the filter.
    """

    __slots__ = ("_h", "_order", "_r", "_rate", "_weights")

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        order: Literal[1, 2] = 2,
        residual: ArrayLike | None = None,
    ) -> None:
        if order not in (1, 2):
            raise InvalidValue(f"order: must be 1 or 2, got {order!r}")
        super().__init__(robot, MomentumBalance(robot, friction), gain, residual)
        self._order = order
        self._h = -1.0  # the period that _weights belong to: none yet
        self._weights: list[tuple[float, float, float, float]] = []  # exp(A h) by rows
        self._r: list[float] = self._start.tolist()
        self._rate = [0.0] * robot.dof

    def _begun(self, state: State) -> None:
        self._r = self._start.tolist()
        self._rate = [0.0] * self.robot.dof

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        if h != self._h:
            self._h = h
            self._weights = [_transition(k * h, self._order) for k in self._gain.tolist()]
        r, rate = [], []
        for y_j, r_j, v_j, (a, b, c, d) in zip(y, self._r, self._rate, self._weights, strict=True):
            e = r_j - y_j
            r.append(y_j + a * e + b * v_j)
            rate.append(c * e + d * v_j)
        self._r, self._rate = r, rate
        return np.array(r)


def _transition(kh: float, order: int) -> tuple[float, float, float, float]:
    """exp(A h) by rows for K h; order 1 has no second state."""
    if order == 1:
        return 1.0 + expm1(-kh), 0.0, 0.0, 0.0
    s = kh / sqrt(2.0)
    decay, c, d = exp(-s), cos(s), sin(s)
    return decay * (c + d), decay * sqrt(2.0) * d, -decay * sqrt(2.0) * d, decay * (c - d)


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
