"""Rows of csv as they are being written: a pipe, or a file that grows."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.logs.csv_log import grouped_columns
from tangere.logs.recordings import cells_of, columns_of_header, is_number, layout_of, number_of, without_end
from tangere.types import Array

POLL = 0.05  # [s] between two looks at a file that grows
# without these a row is no use; of what the controller wanted some may be missing
_NEEDED = ("time", "q", "qd", "tau", "actual_current", "actual_current_as_torque")
_WANTED = (*_NEEDED, "qd_des", "tau_cmd", "target_current", "payload", "payload_cog")


def lines_of(path: str | Path, *, patience: float = np.inf) -> Iterator[str]:
    """Lines of a file, those that are still to be written included; ends after `patience` seconds without any."""
    try:
        file = Path(path).open(encoding="utf-8-sig")  # noqa: SIM115  closed below, at the generator's end
    except OSError as problem:
        raise InvalidValue(f"cannot read {path}: {problem.strerror or problem}") from problem
    with file:
        part, waited = "", 0.0
        while True:
            got = file.readline()
            if not got:
                if waited >= patience:
                    break
                clock.sleep(POLL)
                waited += POLL
                continue
            waited = 0.0
            part += got
            if part.endswith("\n"):
                yield part
                part = ""
        if part.strip():
            yield part


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One usable row."""

    time: float  # [s] its stamp
    values: dict[str, Array]  # name -> (k,), by the names of a Log
    anew: bool = False  # the clock was set back before it: nothing before belongs to it


class CsvStream:
    """Rows of lines of csv (RTDE names, or `columns`), one by one.

    Lines that cannot be used (NaN, a stamp that repeats, a single one that goes back, a wrong number of cells) are left
    out and counted in `problems`. Where the clock stays behind, the recording has begun anew. rate [1/s]: of rows
    without stamps.
    """

    def __init__(
        self, lines: Iterable[str], *, name: str = "-", columns: str | None = None, rate: float | None = None
    ) -> None:
        self.name = name
        self.problems: Counter[str] = Counter()
        self._lines, self._columns, self._rate = lines, columns, rate
        self._where: dict[str, NDArray[np.int64]] = {}  # cells of each quantity
        self._width = 0
        self._number = 0  # of usable rows
        self._last = -np.inf
        self._back: float | None = None  # the stamp before, where it was smaller than the largest

    def __iter__(self) -> Iterator[StreamRow]:
        for text in self._lines:
            for line in text.splitlines():  # a pipe does not translate the line ends of other systems
                row = self._row(line)
                if row is not None:
                    yield row

    def _row(self, line: str) -> StreamRow | None:
        try:
            cells = cells_of(line)
        except InvalidValue:
            if not self._where:
                raise
            self.problems["lines that are no csv"] += 1
            return None
        if not any(cells):
            return None
        if not self._where:
            cells = without_end(cells)
            named = not is_number(cells[0])
            self._arrange(line, cells, named)
            if named:
                return None
        return self._usable(cells)

    def _arrange(self, line: str, cells: Sequence[str], named: bool) -> None:
        """Which cells are what, from the column list or the header."""
        columns = self._columns
        if columns is None and named:
            columns = columns_of_header(line)
        if columns is not None:
            rest = columns.rstrip().endswith("...")
            at = 0
            for name, width in layout_of(columns.rstrip()[:-3].rstrip(", ") if rest else columns, self.name):
                if name != "_":
                    self._where[name] = np.arange(at, at + width)
                at += width
            if at > len(cells) or (at < len(cells) and not rest):
                raise InvalidValue(f"{self.name}: {columns!r} stands for {at} columns, the first line has {len(cells)}")
        elif named:
            grouped = grouped_columns({name: np.array([float(k)]) for k, name in enumerate(cells)})
            self._where = {name: at.ravel().astype(int) for name, at in grouped.items()}
        else:
            raise InvalidValue(
                f"{self.name}: has no header; say what its {len(cells)} columns are, such as --columns t,q,qd,current"
            )
        self._width = len(cells)
        self._where = {name: self._where[name] for name in _WANTED if name in self._where}
        if "time" not in self._where and self._rate is None:
            raise InvalidValue(f"{self.name}: has no stamps; give a column t or the rate in samples per second")

    def _usable(self, cells: Sequence[str]) -> StreamRow | None:
        if len(cells) == self._width + 1 and not cells[-1]:
            cells = cells[:-1]  # a comma at the end of the lines, not of the header
        if len(cells) != self._width:
            self.problems[f"lines with another number of cells than {self._width}"] += 1
            return None
        try:
            values = {name: np.array([number_of(cells[k]) for k in at]) for name, at in self._where.items()}
        except ValueError:
            self.problems["lines with a cell that is no number"] += 1
            return None
        if not all(np.all(np.isfinite(values[name])) for name in _NEEDED if name in values):
            self.problems["samples with NaN or infinity"] += 1
            return None
        t = float(values.pop("time")[0]) if "time" in values else self._number / (self._rate or np.nan)
        anew = False
        if t == self._last:
            self.problems["stamps that repeat"] += 1
            return None
        if t < self._last:
            # a single row may be late; a second one behind it means that the clock, and the recording, began anew
            if self._back is None or t <= self._back:
                self._back = t
                self.problems["stamps that go backwards"] += 1
                return None
            anew = True
            self.problems["times that the clock was set back"] += 1
        self._back = None
        self._number += 1
        self._last = t
        return StreamRow(t, values, anew)
