"""Filtered dynamics: the equation of motion passed through a low-pass filter, so that no acceleration is needed."""

from __future__ import annotations

from math import cos, exp, expm1, sin, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.balance import MomentumBalance
from tangere.observe.filter import BalanceFilter
from tangere.observe.momentum import GAIN
from tangere.robots import Robot
from tangere.types import Array, Friction, State


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
