"""What observers share: gains per joint, and the friction they believe in."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.types import Array


class Friction(Protocol):
    """Anything with a friction torque, such as dynamics.friction.JointFriction."""

    def torque(self, qd: Array) -> Array:
        """Torque (n,) that opposes the motion qd (n,): M qdd + C qd + g + friction = tau + tau_ext."""


def per_joint(value: ArrayLike, n: int, name: str, unit: str) -> Array:
    """One number for all joints or one for each, all positive -> (n,) of its own."""
    array = np.array(value, dtype=np.float64)
    if array.shape not in ((), (n,)) or not np.all(np.isfinite(array) & (array > 0.0)):
        raise InvalidValue(f"{name}: one number > 0 or {n} of them [{unit}], got {value!r}")
    return np.ascontiguousarray(np.broadcast_to(array, (n,))).copy()


def initial_residual(residual: ArrayLike | None, n: int) -> Array:
    """Zeros, or the residual that an observer shall start from (n,) [Nm]."""
    if residual is None:
        return np.zeros(n)
    array = np.array(residual, dtype=np.float64)
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise InvalidValue(f"residual: {n} finite numbers [Nm], got {residual!r}")
    return array
