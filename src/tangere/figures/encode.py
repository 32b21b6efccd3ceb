"""Columns as short text inside a page: base64 of little-endian floats, thinned where a plot cannot show them all."""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Samples up to which a column is embedded whole: a 10 s run at 1 kHz, with room. Above it every bucket of samples keeps
# its smallest and its largest, so that no peak is lost: a third as many, with a time of their own each, so that a long
# run is no larger than a short one.
WHOLE = 12_000
# Largest value that a 4-byte float holds, with room; columns beyond it take 8 bytes.
_LARGEST = 3e38


def floats(values: Array) -> dict[str, str]:
    """{"f4": ...} or, where 4 bytes would overflow, {"f8": ...}: base64 of the little-endian numbers, NaN included."""
    finite = values[np.isfinite(values)]
    kind = "f8" if finite.size and float(np.max(np.abs(finite))) > _LARGEST else "f4"
    return {kind: base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode("ascii")}


def decode(block: dict[str, str]) -> Array:
    """The numbers of `floats` (what the page's script does, for tests and for whoever wants them back)."""
    ((kind, raw),) = ((k, v) for k, v in block.items() if k in ("f4", "f8"))
    return np.frombuffer(base64.b64decode(raw), dtype=f"<{kind}").astype(np.float64)


def thinned(values: Array, limit: int = WHOLE) -> NDArray[np.intp]:
    """Indices worth keeping: all; without the inside of constant stretches; or per bucket the two extremes.

    First and last sample always stay. NaN counts as a value of its own (a gap starts and ends where it did).
    """
    count = len(values)
    if count < 3:
        return np.arange(count)
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    keep = np.ones(count, dtype=bool)
    keep[1:-1] = ~(same[:-1] & same[1:])
    indices = np.flatnonzero(keep)
    if len(indices) <= min(count, limit) // 2:  # a time for every value: worth it from half of them on
        return indices
    if count <= limit:
        return np.arange(count)
    buckets = limit // 6
    edges = np.linspace(0, count, buckets + 1).astype(int)
    low = np.where(np.isfinite(values), values, np.inf)
    high = np.where(np.isfinite(values), values, -np.inf)
    chosen = [0, count - 1]
    for start, stop in pairwise(edges):
        chosen += [start + int(np.argmin(low[start:stop])), start + int(np.argmax(high[start:stop]))]
    return np.unique(np.array(chosen))


def series(time: Array, values: Array, limit: int = WHOLE) -> dict[str, Any]:
    """A column as {"v": floats} on the shared time, or with times of its own as {"t": floats, "v": floats}."""
    indices = thinned(values, limit)
    if len(indices) == len(values) and len(values) <= limit:
        return {"v": floats(values)}
    return {"t": floats(time[indices]), "v": floats(values[indices])}


def strided(count: int, limit: int) -> NDArray[np.intp]:
    """At most about `limit` evenly spread indices of `count` samples, the last one included: for smooth columns."""
    step = max(1, -(-count // limit))
    indices = np.arange(0, count, step)
    return indices if count == 0 or indices[-1] == count - 1 else np.append(indices, count - 1)
