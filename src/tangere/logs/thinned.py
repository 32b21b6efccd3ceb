"""A long log as its own rows at which something is least or most: enough to draw it, and small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tangere.logs.log import Log, StoredColumns
from tangere.types import Array

MOST = 20_000  # rows that stay at most, 30 MB of a run: a hundred spans or more, and ten rows for a pixel of a figure
SPAN = 0.1  # [s] in which extremes are looked for at first; doubled until the rows are few enough
# columns whose difference a page shows: its extremes count, too
PAIRS = (("q", "q_des"), ("T_true", "T_des"), ("residual", "tau_ext_true"))


class Thinner:
    """Takes rows in their order and keeps those at which a number is least or most in its span of time.

    Rows stay whole and in their order, so that curves against time, paths in space and differences between columns keep
    every peak; means over these rows are not those of all. `more`: numbers per row that count beside its own.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most, self._span, self._width = most, SPAN, 0
        self._kept: list[Array] = []  # rows, and behind each what counts beside it
        self._count = 0

    def add(self, rows: Array, more: Array | None = None) -> None:
        """Rows (k, width) whose first column is the time [s]."""
        if len(rows):
            self._width = rows.shape[1]
            self._keep(rows if more is None else np.concatenate([rows, more], axis=1))
        while self._count > self._most:
            self._span *= 2.0
            table = np.concatenate(self._kept)
            self._kept, self._count = [], 0
            self._keep(table)

    def rows(self) -> Array:
        """What was kept."""
        return np.concatenate([table[:, : self._width] for table in self._kept]) if self._kept else np.zeros((0, 0))

    def _keep(self, table: Array) -> None:
        which = _extremes(table, self._span)
        self._kept.append(table[which])
        self._count += len(which)


def thinned(log: Log, most: int = MOST) -> Log:
    """Of a log that stays in its file: the rows that a Thinner keeps. A log in memory is returned as it is."""
    if not isinstance(log.columns, StoredColumns):
        return log
    keeper = Thinner(most)
    order = ["time", *(name for name in log.columns if name != "time")]
    for part in log.pieces():
        pairs = [part[a] - part[b] for a, b in PAIRS if a in part and b in part]
        more = np.concatenate([*pairs, *map(_sizes, pairs)], axis=1) if pairs else None
        keeper.add(Log({name: part[name] for name in order}).table(), more)
    rows, at, columns = keeper.rows(), 0, {}
    for name in order:
        k = log.shapes()[name]
        columns[name] = rows[:, at : at + k] if k else rows[:, at]
        at += max(k, 1)
    return replace(log, columns={name: columns[name] for name in log.columns})


def _extremes(table: Array, span: float) -> NDArray[np.intp]:
    """Numbers of the rows that count, in their order."""
    known = np.isfinite(table)
    spans = np.floor(np.where(known[:, 0], table[:, 0], 0.0) / span)
    first = np.flatnonzero(np.diff(spans, prepend=np.nan) != 0.0)
    out: list[NDArray[np.intp]] = [first, np.array([len(table) - 1])]
    for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(table)], strict=True):
        here, there = table[begin:end], known[begin:end]
        out += [
            begin + np.argmin(np.where(there, here, np.inf), axis=0),
            begin + np.argmax(np.where(there, here, -np.inf), axis=0),
        ]
    return np.unique(np.concatenate(out))


def _sizes(values: Array) -> Array:
    """(N, 1): how large a difference is; of poses that of the position."""
    place = values[:, 3::4] if values.shape[1] == 12 else values
    return np.asarray(np.linalg.norm(place, axis=1)[:, None])
