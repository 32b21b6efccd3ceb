"""Logs as csv: written with the names of RTDE, read whole or line by line, whoever wrote them."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import numpy as np

from tangere import foreign
from tangere.errors import CannotWrite, InvalidValue
from tangere.logs.columns import NEEDED, RENAME, RTDE_NAMES, Arrangement, listed, named
from tangere.logs.files import InUse, locked, replacing
from tangere.logs.log import CUT, NO_END, WORST, Log, Note
from tangere.types import Array, Event

_BLOCK = 1 << 21  # [characters] that are turned into numbers at once: text takes ten times the room of its numbers
_LINES_NAMED = 5  # lines that a sentence about bad ones names: enough to look at, short enough to read


def write_csv(log: Log, path: str | os.PathLike[str], *, names: Mapping[str, str] = RTDE_NAMES) -> None:
    """Write the columns, comma-separated, every number in the shortest form that reads back to the same bits.

    names: our names -> those in the header; a name that is not there stays. Notes and units are not in it (MCAP has
    them). The file appears when it is complete.
    """
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        file.write(_header(log.shapes(), names))
        for part in log.pieces():
            file.writelines(",".join(map(repr, row.tolist())) + "\n" for row in part.table())


def _header(columns: Mapping[str, int], names: Mapping[str, str] = RTDE_NAMES) -> str:
    """The first line; columns: name -> k, 0 for a column (N,)."""
    header: list[str] = []
    for name, k in columns.items():
        label = names.get(name, name)
        header += [f"{label}_{i}" for i in range(k)] if k else [label]
    return ",".join(header) + "\n"


class CsvSink:
    """Writes rows that a Recorder hands on, as write_csv does: into unfinished-NAME while it grows, NAME at the end.

    A kill leaves the unfinished file. `error` says what went wrong (a full disk); nothing more is written then, and the
    file keeps its unfinished name. Notes and events have no place in a csv.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Mapping[str, int]) -> None:
        self.error = ""
        self._target = Path(path)
        self._part = self._target.with_name(f"unfinished-{self._target.name}")
        try:
            self._file = self._part.open("a", newline="", encoding="utf-8")
            if not locked(self._file.fileno()) or not self._there():
                self._file.close()
                raise InUse(self._target, "log file")
            self._file.truncate(0)  # what a kill left
            self._file.write(_header(columns))
        except OSError as problem:
            raise CannotWrite(f"cannot write {self._part}: {problem.strerror or problem}") from problem

    def rows(self, block: Array) -> None:
        """Write these rows."""

        def lines() -> None:
            self._file.writelines(",".join(map(repr, row)) + "\n" for row in block.tolist())
            self._file.flush()

        self._try(lines)

    def note(self, note: Note) -> None:
        """Nothing."""

    def event(self, event: Event) -> None:
        """Nothing."""

    def when_idle(self, call: Callable[[], None]) -> None:
        """Nothing: rows are written when they are handed on."""

    def close(self) -> None:
        """The file gets its name; may be called twice."""
        if not self._file.closed:
            self._try(self._file.flush)
            self._try(lambda: self._part.replace(self._target))  # before the lock goes
            self._try(self._file.close)

    def drop(self) -> None:
        """Nobody needs the file any more."""
        self._file.close()
        self._part.unlink(missing_ok=True)

    def _there(self) -> bool:
        """Whether the file still has the name under which it was opened, not its final one by another run."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self._part.stat())
        except FileNotFoundError:
            return False

    def _try(self, write: Callable[[], object]) -> None:
        if not self.error:
            try:
                write()
            except OSError as problem:
                why = problem.strerror or problem
                self.error = f"the log could not be written: {why}; what there is is {self._part.name}"
                with suppress(OSError):
                    self._file.close()


def read_csv(
    path: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Log:  # fmt: skip
    """Read a csv log: ours, bit by bit, or a recording of a robot, with commas, semicolons, tabs or blanks between.

    Names become ours where we know them (logs.columns); columns that hold no numbers (dates) are left out. columns: a
    list for a file without a header (a header is skipped where it is given); rate [1/s]: for one without stamps. Stamps
    stay as they are: a robot's count from its power-on. Lines that cannot be read cost those lines and stand in
    log.problems. A last line without a line end may be cut inside its last number: that is nan, log.complete False.
    progress: is given the share of the file that is read.
    """
    rows = CsvRows(str(path), columns=columns, rate=rate)
    size = csv_size(path)
    if size > foreign.allowed():
        raise foreign.too_large(path, size, foreign.allowed())
    with foreign.reading(path, size):
        table = np.concatenate(list(csv_tables(path, rows, progress)))
    return Log(
        rows.columns(table, 0), rows.arrangement.units if rows.arrangement else {}, complete=not rows.cut,
        problems=rows.all_told(path),
    )  # fmt: skip


def csv_size(path: str | os.PathLike[str]) -> int:
    """[bytes] of a csv."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError) as problem:
        raise InvalidValue(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from problem


def csv_tables(
    path: str | os.PathLike[str], rows: CsvRows, progress: Callable[[float], None] | None = None
) -> Iterator[Array]:
    """The numbers of a csv, some rows (k, width) at a time and at least once; what is wrong is in `rows`."""
    size, last = csv_size(path), ""
    with foreign.reading(path, size), Path(path).open(encoding="utf-8-sig") as file:  # any line ends; a byte order mark
        begun = False
        while block := _block(file):
            if progress is not None:
                progress(min(1.0, os.lseek(file.fileno(), 0, os.SEEK_CUR) / max(size, 1)))
            if not block[-1].endswith("\n"):  # the file's last: a writer that was killed, or one that ends without
                last = block.pop()
            while block and not rows.rows:  # the header, and the first line that can be used
                begun, numbers = True, rows.numbers(block.pop(0))
                if numbers is not None:
                    yield numbers[None]
            if not block:
                continue
            table = rows.plain(block)
            if table is None:
                usable = [numbers for line in block if (numbers := rows.numbers(line)) is not None]
                table = np.reshape(usable, (len(usable), rows.width))
            yield table
        if not begun and last.strip():
            rows.numbers(last)  # a header alone, or one row without: what is wrong with it is said
        elif last.strip():
            numbers, rows.cut = rows.unfinished(last)
            if numbers is not None:
                yield numbers[None]
        if rows.arrangement is None:
            raise InvalidValue(f"{path}: is empty")
        yield np.zeros((0, rows.width))


class CsvRows:
    """Lines of csv into numbers, one line after the other: the first says which cell is what."""

    def __init__(self, name: str = "-", *, columns: str | None = None, rate: float | None = None) -> None:
        if rate is not None and not (np.isfinite(rate) and rate > 0.0):
            raise InvalidValue(f"rate: must be positive [1/s], got {rate!r}")
        self.name = name
        self.arrangement: Arrangement | None = None
        self.lines = 0  # seen so far, the header and empty ones too
        self.rows = 0  # that could be used
        self.cut = ""  # what is to say where the last line has no end
        self.bad: dict[str, list[int]] = {}  # what is wrong with lines that were left out -> their numbers, from 1
        self.odd: dict[str, list[int]] = {}  # what is odd about lines that were used
        self._columns, self._rate = columns, rate
        self._delimiter: str | None = None
        self._text: set[int] = set()  # cells that hold words
        self._needed: list[int] = []

    @property
    def width(self) -> int:
        """Cells of a line; 0 before the first."""
        return 0 if self.arrangement is None else self.arrangement.width

    @property
    def short(self) -> list[int]:
        """Numbers of the lines that had too few or too many cells."""
        return self.bad.setdefault(f"lines with another number of cells than {self.width}", [])

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in sentences with the numbers of the lines."""
        out = []
        for what, kinds in (("left out", self.bad), ("kept", self.odd)):
            for why, lines in kinds.items():
                some = ", ".join(map(str, lines[:_LINES_NAMED])) + (" ..." if len(lines) > _LINES_NAMED else "")
                out += [f"{len(lines)} {why} were {what} (line {some})"] if lines else []
        return tuple(out)

    def all_told(self, path: object) -> tuple[str, ...]:
        """What is wrong with the whole file; raises where most of its lines are."""
        problems, lost = self.problems, sum(map(len, self.bad.values()))
        if lost > WORST * (lost + self.rows):
            whole = lost + self.rows
            raise InvalidValue(f"{path}: only {self.rows} of {whole} lines can be used: {'; '.join(problems)}")
        return (*problems, *([self.cut] if self.cut else []))

    def take(self, line: str) -> dict[str, Array] | None:
        """The row in a line; None for the header, an empty line and one that cannot be used."""
        numbers = self.numbers(line)
        return None if numbers is None else self.columns(numbers, self.rows - 1)

    def columns(self, table: Array, first: int) -> dict[str, Array]:
        """Columns of numbers (..., width); first: number of the first row, from 0, for stamps by the rate."""
        assert self.arrangement is not None
        found = self.arrangement.columns(table)
        if "time" not in found:
            count = np.arange(first, first + len(table)) if table.ndim == 2 else np.array(first)
            found["time"] = count / (self._rate or 1.0)
        return found

    def table(self, table: Array) -> Log:
        """A table (N, k) that has no header, as the log that the column list makes of it."""
        self._arrange([""] * table.shape[1])
        assert self.arrangement is not None
        return Log(self.columns(table, 0), self.arrangement.units)

    def numbers(self, line: str) -> Array | None:
        """The numbers of a line (width,), nan for an empty cell; None where there are none, or it cannot be used."""
        self.lines += 1
        line = line.strip("\r\n \ufeff")
        if not line:
            return None
        if self._delimiter is None:
            self._delimiter = max(",;\t", key=line.count) if any(sign in line for sign in ",;\t") else " "
        try:
            cells = cells_of(line, self._delimiter)
        except InvalidValue:
            if self.arrangement is None:
                raise
            self.bad.setdefault("lines that are no csv", []).append(self.lines)
            return None
        if not any(cells):
            return None
        if self.arrangement is None:
            while not cells[-1]:  # some recorders end every line with a comma
                cells.pop()
            if self._arrange(cells):
                return None
        if len(cells) == self.width + 1 and not cells[-1]:
            cells = cells[:-1]
        if len(cells) != self.width:
            self.short.append(self.lines)
            return None
        if self.rows == 0:
            self._settle(cells)
        return self._parsed(cells)

    def unfinished(self, line: str) -> tuple[Array | None, str]:
        """As `numbers`, of a last line that has no end, and what is to say: that the file is cut there, or may be.

        Its last cell may be cut, -1.2e-05 to -1.2, and is nan then, unless a delimiter closes it or it holds words.
        """
        numbers = self.numbers(line)
        if numbers is None:
            if self.short and self.short[-1] == self.lines:
                self.short.pop()
            return None, CUT
        closed = self._delimiter not in (None, " ") and line.rstrip().endswith(str(self._delimiter))
        if closed or self.width - 1 in self._text:
            return numbers, ""
        numbers[-1] = np.nan
        return numbers, NO_END

    def plain(self, lines: Sequence[str]) -> Array | None:
        """The numbers (N, width) of lines that all can be used, at once; None where one of them cannot."""
        if self.arrangement is None or not lines or self._text:
            return None
        delimiter = self._delimiter if self._delimiter != " " else None
        cells = self.width - 1
        if delimiter and any(line.count(delimiter) != cells or '"' in line for line in lines):
            return None
        try:
            table = np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
        except ValueError:
            return None
        if table.shape != (len(lines), self.width):
            return None
        self.lines += len(lines)
        self.rows += len(lines)
        return table

    def _arrange(self, cells: Sequence[str]) -> bool:
        """Which cells are what, by the column list or the first line; True if that line was a header."""
        header = number_of(cells[0], self._delimiter) is None or not cells[0]
        if self._columns is not None:
            self.arrangement = listed(self._columns, len(cells), self.name)
        elif header:
            self.arrangement = named(cells, self.name)
        else:
            raise InvalidValue(
                f"{self.name}: has no header; say what its {len(cells)} columns are, such as --columns t,q,qd,current"
            )
        if "time" not in self.arrangement.where and self._rate is None:
            if self._columns is None:
                known = foreign.names(cells)
                raise InvalidValue(
                    f"{self.name}: no column 'timestamp' (or 'time') of numbers among {known}; {RENAME}"
                )
            raise InvalidValue(f"{self.name}: has no stamps; give a column t or the rate in samples per second")
        return header

    def _settle(self, cells: Sequence[str]) -> None:
        """Leave out the columns that hold words in the first line of data, unless a line is no use without them."""
        assert self.arrangement is not None
        where = self.arrangement.where
        words = {k for k, cell in enumerate(cells) if number_of(cell, self._delimiter) is None}
        kept = {name: at for name, at in where.items() if name in NEEDED or not words & set(_cells(at))}
        self._needed = [k for name, at in kept.items() if name in NEEDED for k in _cells(at)]
        self._text = words - set(self._needed)
        self.arrangement = Arrangement(self.width, kept, self.arrangement.units, self.arrangement.factors)

    def _parsed(self, cells: Sequence[str]) -> Array | None:
        numbers = [float("nan") if k in self._text else number_of(c, self._delimiter) for k, c in enumerate(cells)]
        if any(numbers[k] is None for k in self._needed):
            self.bad.setdefault("lines with a cell that is no number", []).append(self.lines)
            return None
        if None in numbers:
            self.odd.setdefault("lines with a word for a number, read as nan,", []).append(self.lines)
        self.rows += 1
        return np.array([np.nan if number is None else number for number in numbers])


def cells_of(line: str, delimiter: str) -> list[str]:
    """Cells of one line; an empty cell stays one, but for blanks between."""
    if delimiter == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error as problem:
        raise InvalidValue(f"not a line of csv: {problem}: {line[:60]!r}") from problem


def number_of(cell: str, delimiter: str | None = None) -> float | None:
    """The number in a cell, None for words; nan for an empty cell. Decimal commas where they do not stand between."""
    if not cell:
        return float("nan")
    try:
        return float(cell if delimiter == "," else cell.replace(",", "."))
    except ValueError:
        return None


def _block(file: TextIO) -> list[str]:
    """The next lines of a file, some 100 000 numbers; a line that is too long for a log is cut."""
    found: list[str] = []
    size = 0
    while size < _BLOCK and (line := file.readline(foreign.LONGEST)):
        if len(line) == foreign.LONGEST and not line.endswith("\n"):
            while (rest := file.readline(foreign.LONGEST)) and not rest.endswith("\n"):
                pass
            line = line[:100] + "\n"  # what is left has too few cells, and is counted as such
        found.append(line)
        size += len(line)
    return found


def _cells(at: int | Sequence[int]) -> Sequence[int]:
    return [at] if isinstance(at, int) else at
