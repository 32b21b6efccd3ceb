"""Rows of csv as they are being written: a pipe, or a file that grows."""

from __future__ import annotations

import time as clock
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.columns import NEEDED
from tangere.logs.csv_log import CsvRows
from tangere.types import Array

POLL = 0.05  # [s] between two looks at a file that grows
# without these a row is no use; of what the controller wanted some may be missing
_FINITE = ("time", "q", "qd", "tau", "actual_current", "actual_current_as_torque")


def follow(
    lines: Iterable[str], *, name: str = "-", columns: str | None = None, rate: float | None = None
) -> Iterator[dict[str, Array]]:
    """The rows of lines that come one by one (a pipe, a file that grows), as read_csv reads them.

    Each row is name -> number () or vector (k,), under our names. Lines that cannot be read are left out; CsvStream
    tells of them.
    """
    rows = CsvRows(name, columns=columns, rate=rate)
    for text in lines:
        for line in text.splitlines():  # a pipe does not translate the line ends of other systems
            row = rows.take(line)
            if row is not None:
                yield row


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
        self._lines, self._rows = lines, CsvRows(name, columns=columns, rate=rate)
        self._last = -np.inf
        self._back: float | None = None  # the stamp before, where it was smaller than the largest

    def __iter__(self) -> Iterator[StreamRow]:
        for text in self._lines:
            for line in text.splitlines():  # a pipe does not translate the line ends of other systems
                values = self._rows.take(line)
                row = None if values is None else self._usable(values)
                if row is not None:
                    yield row
                elif values is None:
                    self.problems |= Counter({why: len(lines) for why, lines in self._rows.bad.items()})

    def _usable(self, values: dict[str, Array]) -> StreamRow | None:
        if not all(np.all(np.isfinite(values[name])) for name in _FINITE if name in values):
            self.problems["samples with NaN or infinity"] += 1
            return None
        t, anew = float(values["time"]), False
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
        self._last = t
        kept = {name: value for name, value in values.items() if name in NEEDED and name != "time"}
        return StreamRow(t, kept, anew)
