"""One helper that turns what a caller hands over into a float array, or says what is wrong with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere import foreign
from tangere.codegen.functions import ANGLE_MAX
from tangere.errors import InvalidValue

Array = NDArray[np.float64]
LENGTH_MAX = 1e6  # [m] squares of squares of positions must stay far from overflow
# of velocities, torques and all else: far beyond any arm, and far from where products of four of them overflow
NUMBER_MAX = 1e50
AXES_MAX = 24  # of an array: numpy's own functions take 32, and answers have up to three more (TG_AXES_MAX in core.c)
_ANGLES = ("q", "q_ref", "reference")  # names of arguments that are joint positions


def checked(value: ArrayLike, tail: tuple[int | None, ...], name: str) -> Array:
    """`value` as a finite float array whose last axes are `tail`; None in `tail` stands for any length.

    Leading axes are batch axes and pass through. Raises InvalidValue naming the argument, its shape or the first
    entry that is not a finite real number; joint positions (q, q_ref, reference) beyond ANGLE_MAX and poses (T) beyond
    LENGTH_MAX are refused as well, and any number beyond NUMBER_MAX: finite input has a finite answer.
    """
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            raise TypeError
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # also whole numbers and axes beyond what numpy takes
        text = f"{name}: expected real numbers of shape {shape_text(tail)}, got {foreign.shown(value)}"
        raise InvalidValue(text) from None
    if array.ndim > AXES_MAX:
        raise InvalidValue(f"{name}: at most {AXES_MAX} axes, got {array.ndim}")
    got = array.shape[array.ndim - len(tail) :] if array.ndim >= len(tail) else None
    if got is None or any(want is not None and want != have for want, have in zip(tail, got, strict=True)):
        raise InvalidValue(f"{name}: expected shape {shape_text(tail)}, got {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InvalidValue(f"{name}: every entry must be finite, got {array[index]} at index {index}")
    most = ANGLE_MAX if name in _ANGLES else LENGTH_MAX if name == "T" else NUMBER_MAX
    if not np.all(np.abs(array) <= most):
        worst = float(array.flat[np.argmax(np.abs(array))])
        said = f"{worst:g} is beyond what can be computed with (at most {most:g})"
        if name == "T":
            said = f"{worst:g} m is no place for an arm (at most {most:g} m)"
        if name in _ANGLES:
            said = f"{worst:g} rad is no joint position (exact only up to {most:g} rad)"
        raise InvalidValue(f"{name}: {said}")
    return array


def shape_text(tail: tuple[int | None, ...]) -> str:
    """The wanted shape in words: (..., 3, n)."""
    return "(..., " + ", ".join("n" if size is None else str(size) for size in tail) + ")" if tail else "(...)"
