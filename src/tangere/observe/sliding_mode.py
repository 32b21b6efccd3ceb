"""Sliding-mode observer: the super-twisting algorithm on the momentum, in its implicit discrete form."""

from __future__ import annotations

from math import copysign, sqrt

import numpy as np
from numpy.typing import ArrayLike

from tangere.observe.balance import MomentumBalance
from tangere.observe.filter import BalanceFilter
from tangere.observe.inputs import per_joint
from tangere.observe.momentum import GAIN
from tangere.robots import Robot
from tangere.types import Array, Friction, State

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
