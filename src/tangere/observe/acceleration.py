"""The acceleration residual: what 000 section 5.1 argues against, as a baseline for the momentum observer."""

from __future__ import annotations

from math import isinf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.balance import BalanceFilter, PositionBalance, TorqueBalance
from tangere.robots import Robot
from tangere.types import Array, Friction, State


class AccelerationObserver(BalanceFilter):
    """External torque by inverse dynamics of a numerically differentiated acceleration.

        y_k = M(q) qdd_hat + C(q, qd) qd + g(q) + friction(qd) - tau_{k-1}
        qdd_hat = (qd_k - qd_{k-1}) / h                       differentiate="velocity"
        qdd_hat = 2 (v_k - v_{k-1}) / (h_k + h_{k-1})         differentiate="position", v_k = (q_k - q_{k-1}) / h_k

    Everything is evaluated in the middle of the interval that qdd_hat belongs to (the newest two samples, or the middle
    one of three), so that with a perfect sensor the two residuals agree to O(h^2). Noise of standard deviation s on
    qd becomes M s sqrt(2) / h of torque (s = 2e-3 rad/s, h = 2 ms, M = 7 kg m2: 10 Nm), noise on q M s sqrt(6) / h^2.
    gain: None for the raw y; K [1/s] to pass it through the momentum observer's filter, for a fair comparison.
    friction: as MomentumObserver. Held where the sample is not usable, as the momentum observer does.
    """

    __slots__ = ()

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
        kind = PositionBalance if differentiate == "position" else TorqueBalance
        super().__init__(robot, kind(robot, friction), gain, None)

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        if isinf(self._gain[0]):
            return np.array(y)
        return np.asarray(self.residual - np.expm1(-h * self._gain) * (y - self.residual))
