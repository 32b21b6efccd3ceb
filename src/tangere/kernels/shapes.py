"""Arguments of the kernels: arrays of real numbers with leading batch axes, checked with errors of our own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.polynomials import ANGLE_MAX
from tangere.errors import InvalidValue
from tangere.model.model import Array


def broadcast(*arrays: Array) -> list[Array]:
    """The arrays with equal leading axes (numpy's rules), contiguous; the last axis of each stays as it is."""
    try:
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InvalidValue(f"leading axes do not fit together: shapes {shapes}") from None
    return [np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays]


def checked(value: ArrayLike, name: str, tail: tuple[int, ...]) -> Array:
    """The value as a float64 array whose last axes are `tail`; finite, and a joint angle not beyond ANGLE_MAX."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"its type is {array.dtype}")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as problem:
        raise InvalidValue(f"{name} cannot be read as an array of real numbers: {problem}") from None
    if array.shape[array.ndim - len(tail) :] != tail or array.ndim < len(tail):
        wanted = ", ".join(["...", *map(str, tail)])
        raise InvalidValue(f"{name} has shape {array.shape}, expected ({wanted})")
    if not np.all(np.abs(array) <= (ANGLE_MAX if name in ("q", "reference") else np.finfo(np.float64).max)):
        limit = "1e6 rad" if name in ("q", "reference") else "the largest double"
        raise InvalidValue(f"{name} contains a value that is NaN, infinite or beyond {limit}")
    return array
