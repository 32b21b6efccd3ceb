"""What a control loop does in every period beside the kernels: compiled where it was built, else in numpy.

A small numpy call takes half a microsecond, a period of a simulated arm some ten: these take the place of several each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tangere import types
from tangere.kernels import backend
from tangere.types import Array

__all__ = ["Records", "clipped", "fill", "finite", "held", "plus", "put", "squared"]

if TYPE_CHECKING:
    from tangere._periods import Records, clipped, fill, finite, held, plus, put, squared
else:
    try:
        if not backend.COMPILED:
            raise ImportError
        from tangere._periods import Records, clipped, fill, finite, held, plus, put, quick, squared
    except ImportError:

        def fill(block: Array, k: int, *things: Any) -> None:
            """Numbers, arrays and lists of them side by side into row k of the block; a pose (4, 4): three rows."""
            flat = [one for thing in things for one in (thing if isinstance(thing, list | tuple) else (thing,))]
            np.concatenate([np.ravel(one[:3] if np.shape(one) == (4, 4) else one) for one in flat], out=block[k])

        def squared(x: Array, scale: Array | None = None, y: Array | None = None) -> float:
            """Sum of ((x - y) scale)^2: whether anything is too large or no number; (n,) each."""
            value = x if y is None else x - y
            value = value if scale is None else value * scale
            return float(value.dot(value))

        def finite(*arrays: Array) -> bool:
            """Whether all of their numbers are."""
            return all(np.isfinite(array).all() for array in arrays)

        def clipped(x: Array, most: Array) -> Array:
            """x (n,) within +-most (n,)."""
            return np.minimum(np.maximum(x, -most), most)

        def held(*arrays: Array) -> tuple[Array, ...]:
            """Of each vector a copy that may not be written to."""
            copies = tuple(array.copy() for array in arrays)
            for copy in copies:
                copy.setflags(write=False)
            return copies

        def put(out: Array, x: Array, y: Array | None) -> None:
            """out[:] = x + y, of vectors; without y: x."""
            out[:] = x if y is None else x + y

        def plus(x: Array, row: Array, at: int = 0) -> Array:
            """x + row[at : at + len(x)], of vectors, a new one."""
            return x + row[at : at + len(x)]

        class Records:
            """Called with i it is cls(array[i], ...) of each of the arrays (N, ...)."""

            def __init__(self, cls: Any, *arrays: Array) -> None:
                self._cls, self._arrays = cls, arrays

            def __call__(self, i: int) -> Any:
                return self._cls(*[array[i] for array in self._arrays])

    else:
        # values of which a loop makes one or two in every period: a frozen dataclass costs a setattr for each field
        for one in (types.State, types.Reference, types.Command, types.Truth):
            quick(one)
