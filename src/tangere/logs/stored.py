"""Long logs kept small: the least and the most of every column, bin by bin, and rows that stay in their file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.types import Array

# Samples from which on a run whose file holds its rows does not keep them in memory: 160 MB at some 0.8 kB each, three
# minutes at 1 kHz.
LONG = 200_000
BINS = 2000  # of an overview: about two per pixel of a wide figure


@dataclass(frozen=True)
class Overview:
    """A log in at most so many bins of equally many samples. What is not finite does not count; NaN: nothing was."""

    time: Array  # (B,) [s] of the first sample of each bin
    low: Mapping[str, Array]  # column -> (B,) or (B, k), the smallest value in each bin
    high: Mapping[str, Array]  # the largest

    @classmethod
    def of(cls, log: Log, bins: int = BINS) -> Overview:
        """Of every column but the time."""
        first = np.unique(np.linspace(0, len(log), min(bins, len(log)), endpoint=False).astype(int))
        low, high = {}, {}
        for name, column in log.columns.items():
            if name != "time":
                known = np.where(np.isfinite(column), column, np.nan)
                low[name] = np.fmin.reduceat(known, first, axis=0) if len(first) else known
                high[name] = np.fmax.reduceat(known, first, axis=0) if len(first) else known
        return cls(log.time[first], low, high)

    def __repr__(self) -> str:
        return f"Overview({len(self.time)} bins: {', '.join(self.low)})"


class StoredColumns(Mapping[str, Array]):
    """Columns of a log whose file holds them: time stays in memory, the others are read when one is asked for.

    columns: those in memory now; they stay until `release`.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Mapping[str, Array]) -> None:
        self._path = Path(path)
        self._names, self._time = tuple(columns), columns["time"]
        self._held: Mapping[str, Array] | None = columns

    @property
    def held(self) -> bool:
        """Whether the rows are in memory now."""
        return self._held is not None

    def release(self) -> None:
        """Let the rows go; the next use reads the file."""
        self._held = None

    def __getitem__(self, name: str) -> Array:
        if name == "time":
            return self._time
        if name not in self._names:
            raise KeyError(name)
        if self._held is None:
            from tangere.logs.mcap_read import read_mcap

            read = read_mcap(self._path).columns
            if set(read) != set(self._names) or len(read["time"]) != len(self._time):
                raise InvalidValue(f"{self._path} is no longer the log of this run")
            self._held = read
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def stored(log: Log, path: str | os.PathLike[str]) -> Log:
    """The same log; its rows are read again from the MCAP file `path` once they were released."""
    same = copy(log)
    object.__setattr__(same, "columns", StoredColumns(path, log.columns))
    return same
