"""A long log as its own rows at which something is least or most: enough to draw it, and small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tangere.logs.log import Log, StoredColumns, concatenate
from tangere.types import Array

SPANS = 300  # of equal numbers of rows in which extremes are looked for: three pixels of a wide figure each
# columns whose difference a page shows: its extremes count, too
PAIRS = (("q", "q_des"), ("T_true", "T_des"), ("residual", "tau_ext_true"))


def thinned(log: Log, spans: int = SPANS) -> Log:
    """Of a log that stays in its file: every row at which a number of it is least or most in its span, and the ends.

    Rows are whole and in their order, so that curves against time, paths in space and differences between columns keep
    every peak; means over these rows are not those of the log. A log in memory is returned as it is.
    """
    if not isinstance(log.columns, StoredColumns):
        return log
    size = max(len(log) // spans, 1)
    found = []
    for part in log.pieces():
        rows = np.unique(_extremes(part, size))
        found.append(Log({name: values[rows] for name, values in part.columns.items()}, log.units))
    return replace(log, columns=concatenate(found).columns)


def _extremes(log: Log, size: int) -> NDArray[np.intp]:
    """Numbers of the rows that count, in spans of `size` rows."""
    table = log.table()
    pairs = [log[a] - log[b] for a, b in PAIRS if a in log and b in log]
    table = np.concatenate([table, *pairs, *(_sizes(values) for values in pairs)], axis=1)
    out: list[NDArray[np.intp]] = [np.array([0, len(table) - 1], dtype=np.intp)]
    for first in range(0, len(table), size):
        span = table[first : first + size]
        for unknown, find in ((np.inf, np.argmin), (-np.inf, np.argmax)):
            out.append(first + find(np.where(np.isfinite(span), span, unknown), axis=0))
    return np.concatenate(out)


def _sizes(values: Array) -> Array:
    """(N, 1): how large a difference is; of poses that of the position."""
    place = values[:, 3::4] if values.shape[1] == 12 else values
    return np.asarray(np.linalg.norm(place, axis=1)[:, None])
