"""Arguments of the kernels: arrays of real numbers with leading batch axes, checked with errors of our own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.polynomials import ANGLE_MAX
from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.model.model import Array

LENGTH_MAX = 1e6  # m; squares of squares of positions must stay far from overflow
_ANGLES = ("q", "q_ref", "reference")  # arguments that are joint positions


def broadcast(*arrays: Array) -> list[Array]:
    """The arrays with equal leading axes (numpy's rules), contiguous; the last axis of each stays as it is."""
    try:
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InvalidValue(f"leading axes do not fit together: shapes {shapes}") from None
    return [np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays]


def argument(value: ArrayLike, name: str, tail: tuple[int, ...]) -> Array:
    """The value as a finite float64 array whose last axes are `tail`; joint positions not beyond ANGLE_MAX."""
    array = checked(value, tail, name)
    if name in _ANGLES and not np.all(np.abs(array) <= ANGLE_MAX):
        worst = float(array.flat[np.argmax(np.abs(array))])
        raise InvalidValue(f"{name}: {worst:g} rad is no joint position (exact only up to {ANGLE_MAX:g} rad)")
    if name == "T" and not np.all(np.abs(array) <= LENGTH_MAX):
        worst = float(array.flat[np.argmax(np.abs(array))])
        raise InvalidValue(f"T: {worst:g} m is no place for an arm (at most {LENGTH_MAX:g} m)")
    return array


def refuse(value: ArrayLike, name: str, *tail: int) -> None:
    """Raise for an argument that the compiled kernels did not accept, with the sentence that says why."""
    argument(value, name, tail)
    raise InvalidValue(f"{name}: cannot be used as an array of float64 with shape (..., {', '.join(map(str, tail))})")
