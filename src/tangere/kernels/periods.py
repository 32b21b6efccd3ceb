"""What a control loop does in every period beside the kernels: compiled where it was built, else in numpy.

A small numpy call takes half a microsecond, a period of a simulated arm some ten: these take the place of several each.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere import types
from tangere.kernels import backend
from tangere.types import Array

__all__ = ["Records", "Track", "below", "clipped", "fill", "finite", "held", "messages", "plus", "put", "squared"]

if TYPE_CHECKING:
    from tangere._periods import Records, Track, below, clipped, fill, finite, held, messages, plus, put, squared
else:
    try:
        if not backend.COMPILED:
            raise ImportError
        from tangere._periods import Records, Track, below, clipped, fill, finite, held, messages, plus, put, squared
        from tangere._periods import quick as quick
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

        def below(*triples: Any) -> bool:
            """Of each x, scale, y (or None) whether x is a vector and the sum of ((x - y) scale)^2 is 1 at most."""
            for x, scale, y in zip(*[iter(triples)] * 3, strict=True):
                if not isinstance(x, np.ndarray) or x.ndim != 1 or not squared(x, scale, y) <= 1.0:
                    return False
            return True

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

        def messages(rows: Array, ns: Any, sequence: int, template: Any, numbers: Any, stamps: Any) -> Any:
            """The template once for each row, with numbers by (column, byte) and what is counted by (what, byte)."""
            out = np.empty((len(rows), len(template)), dtype=np.uint8)
            out[:] = template
            sec, nanosec = np.divmod(ns, 1_000_000_000)
            counted = (np.arange(sequence, sequence + len(rows)), ns, sec, nanosec)
            forms = ("<u4", "<u8", "<u4", "<u4")
            holes = [(at, "<f8", rows[:, column]) for column, at in numbers.tolist()]
            holes += [(at, forms[what], counted[what]) for what, at in stamps.tolist()]
            for at, form, values in holes:
                made = np.ascontiguousarray(values.astype(form))
                out[:, at : at + made.itemsize] = made.view(np.uint8).reshape(len(rows), -1)
            return out.reshape(-1)

        def put(out: Array, x: Array, y: Array | None) -> None:
            """out[:] = x + y, of vectors; without y: x."""
            out[:] = x if y is None else x + y

        def plus(x: Array, row: Array, at: int = 0) -> Array:
            """x + row[at : at + len(x)], of vectors, a new one."""
            return x + row[at : at + len(x)]

        class Track:
            """Samples (time, v, v . v) of the last `span` seconds, oldest first; none from before a gap [s]."""

            def __init__(self, gap: float, span: float) -> None:
                self._gap, self._span = gap, span
                self._rows: deque[tuple[float, Array, float]] = deque()

            def add(self, time: float, v: Array, share: float) -> bool:
                """One more; whether v . v is below that share of one before's, of the oldest's or of half way's."""
                rows, before = self._rows, 0.0
                if rows and 0.0 <= time - rows[-1][0] <= self._gap:
                    before = rows[-1][2]
                else:
                    rows.clear()
                speed = squared(v)
                rows.append((time, v, speed))
                while time - rows[0][0] > self._span:
                    rows.popleft()
                return max(before, rows[0][2], rows[len(rows) // 2][2]) > speed / share

            def clear(self) -> None:
                """Nothing before belongs to what follows."""
                self._rows.clear()

            def __len__(self) -> int:
                return len(self._rows)

            def __getitem__(self, k: int) -> tuple[float, Array, float]:
                return self._rows[k]

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
