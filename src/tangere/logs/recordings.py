"""One way in for data: files as logs, lines of csv as they are being written; what is wrong with them is said."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.logs.columns import our_names
from tangere.logs.csv_log import CsvRows, csv_tables, read_csv
from tangere.logs.growing import lines_of as lines_of
from tangere.logs.log import CUT, WORST, Log, StoredColumns, concatenate
from tangere.types import Array

DEFAULT_COLUMNS = "q,qd,current"  # of an array in an npz with 18 columns
LONG_FILE = 20_000_000  # [bytes] of a csv or an mcap from which on it need not be read whole: it takes ten times that
STRETCH = 30.0  # [s] of a long log that are learned from at a time: what `identify` asks for at least
TAKEN = 2600  # [bytes] for each row that is learned from: identify took 1.4 kB, tune 2.3
# columns that are learned from
LEARNED = (
    "time", "q", "qd", "tau", "actual_current", "actual_current_as_torque", "q_des", "qd_des", "qdd_des", "tau_cmd",
    "target_current", "payload", "payload_cog",
)  # fmt: skip
GAP = 3.0  # median periods without a sample; less is jitter (a UR's 100 Hz stream has up to three periods)

# a row of a stream is no use without finite numbers in these; of what the controller wanted some may be missing
_FINITE = ("time", "q", "qd", "tau", "actual_current", "actual_current_as_torque")


def _mcap(file: Path, long: bool) -> Log:
    from tangere.logs.mcap_read import read_mcap

    return read_mcap(file, long=long)


def _db3(file: Path, long: bool) -> Log:
    from tangere.logs.mcap_bag import read_db3

    return read_db3(file)


# Formats by ending, each with what reads a file of it; whether rows of a long one may stay there. A file .npz may hold
# many logs; every other file is text in columns, csv.
READERS: dict[str, Callable[[Path, bool], Log]] = {".mcap": _mcap, ".db3": _db3}
LOGS = f"FILE.csv, {', '.join(f'FILE{ending}' for ending in READERS)}, FILE.npz or FILE.npz:KEY-GLOB"


@dataclass(frozen=True)
class Recording:
    """One log of a file, with what was left out of it and the file's hash."""

    name: str
    log: Log  # stamps rise, all numbers are finite
    problems: tuple[str, ...]  # sentences: gaps, repeated stamps, a clock that went backwards, NaN
    digest: str  # sha256 of the file

    def rows(self) -> Iterator[StreamRow]:
        """Its samples one by one, as a stream of them would come."""
        others = {name: column for name, column in self.log.columns.items() if name != "time"}
        for k, time in enumerate(self.log.time.tolist()):
            yield StreamRow(time, {name: column[k] for name, column in others.items()})


def read(
    source: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None, long: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Log:  # fmt: skip
    """The log in a file: FILE.csv, FILE.mcap (ours), a ROS 2 bag of anybody (FILE.mcap, FILE.db3 or its folder),
    FILE.npz:KEY; every number as it is.

    columns, rate: as for `recordings`. long: rows of a long .mcap of ours stay in the file (read_mcap). progress: is
    given the share of a csv that is read, now and then. What could not be read, and which columns hold NaN, is in
    log.problems.
    """
    logs = _logs(source, columns, rate, progress, long)
    if len(logs) != 1:
        known = ", ".join(name for name, _ in logs[:8]) + (" ..." if len(logs) > 8 else "")
        raise InvalidValue(f"{os.fspath(source)}: holds {len(logs)} logs, name one as FILE.npz:KEY; it has {known}")
    log = logs[0][1]
    return replace(log, problems=(*log.problems, *_not_finite(log)))


def _not_finite(log: Log) -> list[str]:
    """Which cells are NaN or infinite, in a sentence for each column that has some."""
    found: dict[str, tuple[int, int, NDArray[np.bool_]]] = {}  # column -> first row, how many, which of its cells
    at = 0
    for part in log.pieces():
        for name, values in part.columns.items():
            bad = ~np.isfinite(values)
            rows = np.flatnonzero(bad if values.ndim == 1 else bad.any(axis=1))
            if len(rows):
                first, count, cells = found.get(name, (at + int(rows[0]), 0, np.zeros(values.shape[1:], dtype=bool)))
                found[name] = first, count + len(rows), cells | bad.any(axis=0)
        at += len(part)
    said = []
    for name in log.columns:
        if name in found:
            first, count, cells = found[name]
            where = f" ({', '.join(map(str, np.flatnonzero(cells) + 1))})" if cells.ndim else ""
            said.append(f"{name}{where}: NaN or infinity in {count} rows, the first is row {first + 1}")
    return said


def recordings(
    source: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None, share: float | None = None
) -> list[Recording]:
    """All logs of `source`, FILE.csv, FILE.mcap, FILE.db3, FILE.npz or FILE.npz:KEY-GLOB, without useless samples.

    columns: names for a csv without a header, or for the arrays of an npz: "t,q,qd,current,_:6" - every name but t
    stands for six columns, NAME:K for K, `_` for columns to skip, `...` at the end for all that follow. A header is
    skipped where columns are given.
    rate: samples per second, for data without stamps. A pickled npz is refused: it could run code.
    share: of the memory that may be taken (foreign.allowed), that all which is learned from this file may take. Of a
    longer csv, or mcap of ours, stretches of STRETCH are read, spread evenly over it, each a log of its own.
    """
    path = _parts(source)[0]
    if share is not None and path.suffix in (".csv", ".mcap") and path.is_file() and path.stat().st_size > LONG_FILE:
        logs = _stretches(path, columns, rate, int(share * foreign.allowed() / TAKEN))
    else:
        logs = _logs(source, columns, rate)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [cleaned(name, log, digest) for name, log in logs]


def all_recordings(
    sources: Sequence[str | os.PathLike[str] | Recording], *, columns: str | None = None, rate: float | None = None,
    progress: Callable[[str, float], None] = lambda source, share: None,
) -> list[Recording]:  # fmt: skip
    """The logs of all sources, each with a name of its own (every run's log is called log.mcap)."""
    found: list[Recording] = []
    for k, source in enumerate(sources):
        if isinstance(source, Recording):
            found.append(source)
        else:
            progress(f"reading {source}", k / len(sources))
            found += recordings(source, columns=columns, rate=rate, share=1.0 / len(sources))
    names = counted([one.name for one in found])
    return [replace(one, name=name) for one, name in zip(found, names, strict=True)]


def counted(names: Sequence[str]) -> list[str]:
    """Names as they are; of equal ones each with its number behind it: log.mcap (1), log.mcap (2)."""
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def _stretches(file: Path, columns: str | None, rate: float | None, most: int) -> list[tuple[str, Log]]:
    """A log of at most so many rows whole; of a longer one stretches, which have no more rows together."""
    if file.suffix == ".mcap":
        from tangere.logs.mcap_read import read_mcap

        whole = read_mcap(file, long=True)
        if not isinstance(whole.columns, StoredColumns):
            return [(file.name, whole)]
        found, problems = _taken(whole.pieces(), len(whole), most), whole.problems
        if len(whole) <= most:
            return [(file.name, replace(found[0], problems=problems))]
    else:
        with file.open("rb") as opened:
            total = sum(block.count(b"\n") for block in iter(lambda: opened.read(1 << 20), b""))
        if total <= most:
            return [(file.name, read_csv(file, columns=columns, rate=rate))]
        rows = CsvRows(str(file), columns=columns, rate=rate)
        found = _taken(_csv_pieces(file, rows), total, most)
        problems = rows.all_told(file)
    said = f"{len(found)} stretches of {STRETCH:g} s are used, spread over all of it: all would take more than the "
    said += f"{foreign.allowed() / foreign.MB:.0f} MB that may be taken; --memory allows more"
    found[0] = replace(found[0], problems=(said, *problems))
    return [(f"{file.name} ({log.time[0]:.0f} to {log.time[-1]:.0f} s)", log) for log in found]


def _csv_pieces(file: Path, rows: CsvRows) -> Iterator[Log]:
    at = 0
    for table in csv_tables(file, rows):
        assert rows.arrangement is not None
        yield Log(rows.columns(table, at), rows.arrangement.units)
        at += len(table)


def _taken(pieces: Iterable[Log], total: int, most: int) -> list[Log]:
    """Of a log in pieces, about `total` rows, those of evenly spread stretches; only columns that are learned from."""
    parts: list[list[Log]] = []
    starts, size, at = np.zeros(0), 0, 0
    for piece in pieces:
        if not size and len(piece) > 1:
            size = max(2, round(STRETCH / max(float(np.median(np.diff(piece.time))), 1e-6)))
            count, size = (1, total) if total <= most else (max(1, most // size), size)
            starts = np.linspace(0, max(total - size, 0), count).astype(int)
            parts = [[] for _ in starts]
        for k, start in enumerate(starts.tolist()):
            inside = slice(max(start - at, 0), max(start + size - at, 0))
            if inside.start < min(inside.stop, len(piece)):
                names = [name for name in LEARNED if name in piece]
                parts[k].append(Log({name: piece[name][inside].copy() for name in names}, piece.units))
        at += len(piece)
    return [concatenate(part) for part in parts if sum(map(len, part)) > 1]


def _parts(source: str | os.PathLike[str]) -> tuple[Path, str]:
    """The file of FILE, of a bag's folder or of FILE.npz:GLOB, and the glob ("" where there is none)."""
    path, _, pattern = os.fspath(source).partition(".npz:")
    return Path(f"{path}.npz") if pattern else bag_file(Path(path)), pattern


def bag_file(path: Path) -> Path:
    """The file of a ROS 2 bag, which is a folder; anything else as it is."""
    if not path.is_dir():
        return path
    found = sorted([*path.glob("*.mcap"), *path.glob("*.db3")])
    if len(found) > 1:
        raise InvalidValue(f"{path}: holds {len(found)} logs, name one: {foreign.names((f.name for f in found), 4)}")
    return found[0] if found else path


def _logs(
    source: str | os.PathLike[str], columns: str | None, rate: float | None,
    progress: Callable[[float], None] | None = None, long: bool = False,
) -> list[tuple[str, Log]]:  # fmt: skip
    """Name and log of everything that is in a file."""
    file, pattern = _parts(source)
    if file.suffix == ".npz":
        return _from_npz(file, pattern or "*", columns, rate)
    if file.suffix in READERS:
        return [(file.name, READERS[file.suffix](file, long))]
    return [(file.name, read_csv(file, columns=columns, rate=rate, progress=progress))]


def _from_npz(file: Path, pattern: str, columns: str | None, rate: float | None) -> list[tuple[str, Log]]:
    """Tables (N, k) as logs of their own; where arrays are named as quantities (q, qd, t, ...), all are one log."""
    arrays = _arrays(file, pattern)
    ours = our_names(list(arrays))
    if pattern == "*" and columns is None and ("time" in ours.values() or "q" in ours.values()):
        if single := [key for key in ours if arrays[key].ndim == 0]:
            raise InvalidValue(f"{file}:{foreign.names(single)}: a column of numbers is needed, not a single one")
        found = {ours[key]: array.astype(np.float64) for key, array in arrays.items() if key in ours}
        found = {name: array[:, 0] if name == "time" and array.ndim == 2 else array for name, array in found.items()}
        if "time" not in found:
            if rate is None:
                raise InvalidValue(f"{file}: has no stamps; add an array t, or give the rate in samples per second")
            found = {"time": np.arange(len(found["q"])) / rate, **found}
        return [(file.name, Log(found))]
    logs = []
    for key, array in arrays.items():
        if array.ndim != 2:
            raise InvalidValue(f"{file}:{key}: a table (N, k) is needed, the data has shape {array.shape}")
        rows = CsvRows(f"{file}:{key}", columns=columns or DEFAULT_COLUMNS, rate=rate)
        logs.append((key, rows.table(np.asarray(array, np.float64))))
    return logs


def _arrays(file: Path, pattern: str) -> dict[str, Array]:
    """The arrays of an npz file whose names fit; each header is read, and judged, before its numbers are."""
    refused = f"{file}: refused: not a plain npz of numbers (pickled data is never loaded)"
    try:
        archive = foreign.archive(file)
    except InvalidValue as problem:
        raise problem if problem.__cause__ is None or isinstance(problem.__cause__, OSError) else InvalidValue(
            f"{refused}: {foreign.shown(problem.__cause__)}"
        ) from problem  # fmt: skip
    with archive:
        every = [name.removesuffix(".npy") for name in archive.namelist()]
        keys = [key for key in every if fnmatch.fnmatchcase(key, pattern)]
        if not keys:
            raise InvalidValue(f"{file}: no array is called {pattern!r}; it has {foreign.names(every, 8) or 'none'}")
        arrays = {}
        for key in keys:
            entry = key if key in archive.namelist() else f"{key}.npy"
            data = io.BytesIO(foreign.member(archive, entry, file))
            try:
                with foreign.reading(f"{file}:{key}", len(data.getbuffer())):
                    major, _ = np.lib.format.read_magic(data)
                    header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
                    shape, _, dtype = header[min(major, 2)](data)
                    rest = len(data.getbuffer()) - data.tell()
                    if dtype.kind not in "fiu":
                        why = " (pickled data is never loaded)" if dtype.hasobject else ""
                        raise InvalidValue(f"{file}:{key}: must hold real numbers, got {foreign.shown(dtype)}{why}")
                    if math.prod(shape) * dtype.itemsize != rest or math.prod(shape) * 8 > foreign.allowed():
                        raise InvalidValue(f"{refused}: {key} says {foreign.shown(shape)} and has {rest} bytes")
                    data.seek(0)
                    arrays[foreign.clean(key)] = np.asarray(np.load(data, allow_pickle=False))
            except InvalidValue as problem:
                if problem.__cause__ is None:
                    raise
                raise InvalidValue(f"{refused}: {foreign.clean(key)} is none") from problem
    return arrays


def cleaned(name: str, log: Log, digest: str) -> Recording:
    """Leave out what no observer can use, and say so."""
    problems = list(log.problems)
    if not log.complete and not problems:
        problems.append(CUT)
    finite = np.ones(len(log), dtype=bool)
    for column in ("time", "q", "qd", "tau", "actual_current"):
        values = log.get(column)
        if values is not None:
            finite &= np.isfinite(values if values.ndim == 1 else values.sum(axis=1))
    if not finite.all():
        problems.append(f"{int((~finite).sum())} samples hold NaN or infinity and were left out")
    keep = np.flatnonzero(finite)
    time = log.time[keep]
    newest = np.maximum.accumulate(time) if len(time) else time
    before = np.concatenate(([-np.inf], newest[:-1]))
    repeated, backwards = int(np.sum(time == before)), int(np.sum(time < before))
    if repeated:
        problems.append(f"{repeated} samples repeat the stamp before and were left out")
    if backwards:
        at = float(time[int(np.argmax(time < before))])
        problems.append(f"the clock goes backwards (first to {at:.6g} s): {backwards} samples were left out")
    keep = keep[time > before]
    if len(keep) < 2 or len(keep) < (1.0 - WORST) * len(log):
        why = "; ".join(problems) or "a log has two samples at least"
        raise InvalidValue(f"{name}: only {len(keep)} of {len(log)} samples can be used: {why}")
    time = log.time[keep]
    period = np.diff(time)
    gaps = np.flatnonzero(period > GAP * np.median(period))
    if len(gaps):
        worst = int(gaps[np.argmax(period[gaps])])
        problems.append(f"{len(gaps)} gaps, the longest {period[worst]:.3g} s at {time[worst]:.6g} s")
    columns = {key: values[keep] for key, values in log.columns.items()}
    return Recording(name, replace(log, columns=columns), tuple(problems), digest)


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One usable row."""

    time: float  # [s] its stamp
    values: dict[str, Array]  # name -> () or (k,), by the names of a Log, without the time
    anew: bool = False  # the clock was set back before it: nothing before belongs to it


def follow(
    lines: Iterable[str], *, name: str = "-", columns: str | None = None, rate: float | None = None
) -> CsvStream:
    """The rows of lines that come one by one (a pipe, a file that grows: lines_of), as read_csv would read them."""
    return CsvStream(lines, name=name, columns=columns, rate=rate)


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
                row = None if values is None else self.usable(values)
                if row is not None:
                    yield row
                elif values is None:
                    self.problems |= Counter({why: len(lines) for why, lines in self._rows.bad.items()})

    def usable(self, values: dict[str, Array]) -> StreamRow | None:
        """A row as it was read; None where it is of no use, which is counted."""
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
        del values["time"]
        return StreamRow(t, values, anew)
