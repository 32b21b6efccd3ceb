"""How the tool turns along a path: not at all, evenly between two orientations, or from waypoint to waypoint.

Every orientation is a function of u in [0, 1], the share of the path's length that is behind. `at(u)` gives the
rotation R_base_tcp (k, 3, 3), its angular velocity per unit of u, w = (dR/du R^T)^vee (k, 3) in base axes, and dw/du.
Each piece turns about an axis that is fixed in the base, so dw/du lies along w and nothing has to be differentiated
numerically.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.rotation import checked_rotation, matrix_from_rotation_vector, rotation_error
from tangere.types import Array

# Two orientations that differ by more than this [rad] have no unique shortest turn: at exactly half a turn both ways
# are equally long, and rounding would choose. 1e-6 is far above the rounding of a rotation (1e-15).
HALF_TURN = np.pi - 1e-6


@runtime_checkable
class Orientation(Protocol):
    """R(u) with its first two derivatives, u in [0, 1]."""

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R (k, 3, 3), w (k, 3) [rad per unit of u], dw/du (k, 3)."""


class Constant:
    """The tool keeps one orientation R_base_tcp (3, 3)."""

    __slots__ = ("R",)

    def __init__(self, R: ArrayLike) -> None:
        self.R = _one(R)

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R repeated, no turning."""
        k = len(u)
        zero = np.zeros((k, 3))
        return np.broadcast_to(self.R, (k, 3, 3)), zero, zero


class Slerp:
    """The shortest turn from R_start to R_end, evenly over the length: R(u) = exp(u phi) R_start.

    phi = log(R_end R_start^T), so w = phi is constant (spherical linear interpolation). At constant path speed the
    tool turns at constant rate; it starts and stops with the path.
    """

    __slots__ = ("R_start", "phi")

    def __init__(self, R_start: ArrayLike, R_end: ArrayLike) -> None:
        self.R_start = _one(R_start)
        self.phi = _turn(self.R_start, _one(R_end), "R_start and R_end")

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R, w = phi, dw/du = 0."""
        R = matrix_from_rotation_vector(u[:, None] * self.phi) @ self.R_start
        return R, np.broadcast_to(self.phi, (len(u), 3)), np.zeros((len(u), 3))


class Waypoints:
    """Orientations R (m, 3, 3) at the shares `knots` (m,) of the length, joined by turns that start and end softly.

        between knots i and i+1:  R = exp(f(x) phi_i) R_i,  x = (u - u_i)/(u_{i+1} - u_i),  f = 10 x^3 - 15 x^4 + 6 x^5

    f' and f'' vanish at both ends, so that the angular velocity is continuously differentiable across the knots (an
    even turn would jump there). The price: its peak is 15/8 of the even rate.
    """

    __slots__ = ("R", "knots", "phi")

    def __init__(self, R: Sequence[ArrayLike] | Array, knots: ArrayLike) -> None:
        self.R = checked_rotation(np.asarray(R, dtype=np.float64))
        self.knots = np.asarray(knots, dtype=np.float64)
        if self.R.ndim != 3 or self.knots.shape != (len(self.R),) or len(self.R) < 2:
            raise InvalidValue(f"need as many knots as orientations, two or more: {self.R.shape}, {self.knots.shape}")
        if not (np.all(np.diff(self.knots) > 0.0) and self.knots[0] == 0.0 and self.knots[-1] == 1.0):
            raise InvalidValue(f"knots: must increase from 0 to 1, got {self.knots.tolist()}")
        self.phi = np.array(
            [_turn(self.R[i], self.R[i + 1], f"orientations {i} and {i + 1}") for i in range(len(self.R) - 1)]
        )

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R, w = f' phi, dw/du = f'' phi."""
        i = np.clip(np.searchsorted(self.knots, u, side="right") - 1, 0, len(self.phi) - 1)
        width = np.diff(self.knots)[i]
        x = np.clip((u - self.knots[i]) / width, 0.0, 1.0)
        f = x**3 * (10.0 + x * (-15.0 + 6.0 * x))
        f1 = 30.0 * x**2 * (1.0 - x) ** 2 / width
        f2 = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / width**2
        phi = self.phi[i]
        R = matrix_from_rotation_vector(f[:, None] * phi) @ self.R[i]
        return R, f1[:, None] * phi, f2[:, None] * phi


def orientation_from(value: Orientation | ArrayLike) -> Orientation:
    """An orientation as it is; a matrix (3, 3) as a constant one."""
    if isinstance(value, Orientation):
        return value
    return Constant(value)


def _one(R: ArrayLike) -> Array:
    R = checked_rotation(R)
    if R.shape != (3, 3):
        raise InvalidValue(f"R: one rotation (3, 3) is needed, got shape {R.shape}")
    return R


def _turn(R_start: Array, R_end: Array, names: str) -> Array:
    phi = rotation_error(R_end, R_start)
    angle = float(np.linalg.norm(phi))
    if angle > HALF_TURN:
        raise InvalidValue(f"{names}: half a turn apart, the way round is not unique; put an orientation between them")
    return phi
