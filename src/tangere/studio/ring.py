"""Rows of a running simulation in memory that two processes see: one writes, anybody reads, nobody waits."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.types import Array

ROWS = 16384  # 32 s at 500 Hz: more than the curves show
_HEAD = 8  # numbers before the rows; the first is how many rows were ever written


@dataclass(frozen=True)
class Layout:
    """Which numbers a row has, for an arm of `dof` joints."""

    dof: int

    @property
    def fields(self) -> dict[str, slice]:
        """Name -> columns of a row."""
        n, at = self.dof, 0
        found = {}
        for name, width in (
            ("run", 1), ("time", 1), ("wall", 1), ("lateness", 1), ("score", 1), ("q", n), ("qd", n), ("tau", n),
            ("residual", n), ("tau_ext", n), ("force", 3), ("point", 3), ("body", 3),
        ):  # fmt: skip
            found[name] = slice(at, at + width)
            at += width
        return found

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return int(self.fields["body"].stop)


class Ring:
    """The newest ROWS rows of a simulation, in a file that is mapped into memory.

    A row is written before it is counted, and the reader leaves out what may be overwritten while it reads.
    """

    def __init__(self, dof: int, path: str | os.PathLike[str] | None = None) -> None:
        self.layout = Layout(dof)
        self.fields = self.layout.fields
        size = 8 * (_HEAD + ROWS * self.layout.width)
        if path is None:
            memory = Path("/dev/shm")  # a folder in memory, where there is one: nothing is ever written to a disk
            handle, name = tempfile.mkstemp(prefix="tangere-studio-", dir=memory if memory.is_dir() else None)
            os.ftruncate(handle, size)
        else:
            handle, name = os.open(path, os.O_RDWR), os.fspath(path)
        self.path = Path(name)
        self._map = mmap.mmap(handle, size)
        os.close(handle)
        every = np.frombuffer(self._map, dtype=np.float64)
        float(every.sum())  # every page is taken now, so that memory is flat from here on
        self._head, self._rows = every[:_HEAD], every[_HEAD:].reshape(ROWS, self.layout.width)

    @property
    def count(self) -> int:
        """Rows that were ever written."""
        return int(self._head[0])

    def append(self, row: Array) -> None:
        """One more row (width,)."""
        count = int(self._head[0])
        self._rows[count % ROWS] = row
        self._head[0] = count + 1

    def newest(self, since: int) -> tuple[Array, int]:
        """Rows (k, width) from number `since` on, as far as they are still there, and the number to go on from."""
        end = self.count
        first = max(since, end - ROWS // 2)  # the older half may be overwritten meanwhile
        return self._rows[np.arange(first, end) % ROWS], end

    def forget_file(self) -> None:
        """Remove the file's name: both sides have it open, and nothing is left behind whatever ends them."""
        self.path.unlink(missing_ok=True)
