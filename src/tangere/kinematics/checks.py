"""One helper that turns what a caller hands over into a float array, or says what is wrong with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue

Array = NDArray[np.float64]


def checked(value: ArrayLike, tail: tuple[int | None, ...], name: str) -> Array:
    """`value` as a finite float array whose last axes are `tail`; None in `tail` stands for any length.

    Leading axes are batch axes and pass through. Raises InvalidValue naming the argument, its shape or the first
    entry that is not a finite real number.
    """
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            raise TypeError
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name}: expected real numbers of shape {shape_text(tail)}, got {value!r}") from None
    got = array.shape[array.ndim - len(tail) :] if array.ndim >= len(tail) else None
    if got is None or any(want is not None and want != have for want, have in zip(tail, got, strict=True)):
        raise InvalidValue(f"{name}: expected shape {shape_text(tail)}, got {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InvalidValue(f"{name}: every entry must be finite, got {array[index]} at index {index}")
    return array


def shape_text(tail: tuple[int | None, ...]) -> str:
    """The wanted shape in words: (..., 3, n)."""
    return "(..., " + ", ".join("n" if size is None else str(size) for size in tail) + ")" if tail else "(...)"
