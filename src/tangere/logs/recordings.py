"""Recordings of robots as logs: RTDE csv, csv without names, arrays in npz, our MCAP; what is wrong is said."""

from __future__ import annotations

import csv
import fnmatch
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.csv_log import RTDE_NAMES, read_csv
from tangere.logs.log import Log
from tangere.types import Array

# What people call the columns, and what a log calls them; names of RTDE are understood as well.
_ALIASES = {
    "t": "time", "timestamp": "time", "current": "actual_current", "effort": "tau", "torque": "tau",
    "target_moment": "tau_cmd", "position": "q", "velocity": "qd",
} | {rtde: ours for ours, rtde in RTDE_NAMES.items()}  # fmt: skip
DEFAULT_COLUMNS = "q,qd,current"  # of an array in an npz with 18 columns
GAP = 3.0  # median periods without a sample; less is jitter (a UR's 100 Hz stream has up to three periods)
WORST = 0.1  # share of samples that may be unusable; beyond, the file is not what it is said to be


@dataclass(frozen=True)
class Recording:
    """One log of a file, with what was left out of it and the file's hash."""

    name: str
    log: Log  # stamps rise, all numbers are finite
    problems: tuple[str, ...]  # sentences: gaps, repeated stamps, a clock that went backwards, NaN
    digest: str  # sha256 of the file


def recordings(
    source: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None
) -> list[Recording]:
    """All logs of `source`: FILE.csv, FILE.mcap, FILE.npz or FILE.npz:KEY-GLOB.

    columns: names for a csv without a header, or for the arrays of an npz: "t,q,qd,current,_:6" - every name but t
    stands for six columns, NAME:K for K, `_` for columns to skip, `...` at the end for all that follow. A header is
    skipped where columns are given.
    rate: samples per second, for data without stamps. A pickled npz is refused: it could run code.
    """
    text = os.fspath(source)
    path, _, pattern = text.partition(".npz:")
    if pattern:
        path += ".npz"
    file = Path(path)
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as problem:
        raise InvalidValue(f"cannot read {file}: {problem.strerror or problem}") from problem
    if file.suffix == ".npz":
        logs = _from_npz(file, pattern or "*", columns or DEFAULT_COLUMNS, rate)
    elif file.suffix == ".mcap":
        from tangere.logs.mcap_read import read_mcap

        logs = [(file.name, read_mcap(file))]
    else:
        logs = [(file.name, _from_csv(file, columns, rate))]
    return [cleaned(name, log, digest) for name, log in logs]


def layout_of(columns: str, where: str) -> list[tuple[str, int]]:
    """Names and widths of a column list."""
    layout: list[tuple[str, int]] = []
    for entry in columns.split(","):
        name, _, width = entry.strip().partition(":")
        name = _ALIASES.get(name, name)
        if not name or (width and not width.isdigit()):
            raise InvalidValue(f"{where}: columns are NAME or NAME:COUNT with commas between, got {columns!r}")
        if name != "_" and name in (known for known, _ in layout):
            raise InvalidValue(f"{where}: column {name!r} is named twice in {columns!r}")
        layout.append((name, int(width) if width else 1 if name in ("time", "_") else 6))
    return layout


def _split(table: Array, columns: str, rate: float | None, where: str) -> Log:
    named, rest = (columns[:-3].rstrip(", "), True) if columns.rstrip().endswith("...") else (columns, False)
    layout = layout_of(named, where)
    total = sum(width for _, width in layout)
    if rest and table.ndim == 2 and table.shape[1] > total:
        table = table[:, :total]
    if table.ndim != 2 or table.shape[1] != total:
        raise InvalidValue(f"{where}: {columns!r} stands for {total} columns, the data has shape {table.shape}")
    out: dict[str, Array] = {}
    at = 0
    for name, width in layout:
        if name != "_":
            out[name] = table[:, at] if name == "time" else table[:, at : at + width]
        at += width
    if "time" not in out:
        if rate is None:
            raise InvalidValue(f"{where}: has no stamps; give a column t or the rate in samples per second")
        if not (np.isfinite(rate) and rate > 0.0):
            raise InvalidValue(f"rate: must be positive [1/s], got {rate!r}")
        out["time"] = np.arange(len(table)) / rate
    return Log(out)


def _from_npz(file: Path, pattern: str, columns: str, rate: float | None) -> list[tuple[str, Log]]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            keys = [key for key in archive.files if fnmatch.fnmatchcase(key, pattern)]
            if not keys:
                known = ", ".join(archive.files[:8]) + (" ..." if len(archive.files) > 8 else "")
                raise InvalidValue(f"{file}: no array is called {pattern!r}; it has {known or 'none'}")
            arrays = {key: np.asarray(archive[key]) for key in keys}
    except InvalidValue:
        raise
    except (ValueError, OSError, AttributeError) as problem:  # a pickle is a ValueError with allow_pickle=False
        raise InvalidValue(f"{file}: refused: not a plain npz of numbers (pickled data is never loaded)") from problem
    for key, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise InvalidValue(f"{file}:{key}: must hold real numbers, got {array.dtype}")
    return [(key, _split(np.asarray(a, np.float64), columns, rate, f"{file}:{key}")) for key, a in arrays.items()]


def _from_csv(file: Path, columns: str | None, rate: float | None) -> Log:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidValue(f"cannot read {file}: {problem}") from problem
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InvalidValue(f"{file}: is empty")
    named = not is_number(re.split(r"[,;\t ]+", lines[0].strip())[0])
    if columns is None and named:
        columns = columns_of_header(lines[0])
        if columns is None:
            return read_csv(file)
    if columns is None:
        count = len(without_end(cells_of(lines[0])))
        raise InvalidValue(f"{file}: has no header; say what its {count} columns are, such as --columns t,q,qd,current")
    return _split(_table(lines[1:] if named else lines, file, 2 if named else 1), columns, rate, str(file))


def columns_of_header(header: str) -> str | None:
    """A header such as t,q0,...,q5,qd0,... as a column list; None where the names are RTDE's or others."""
    names = without_end(cells_of(header))
    if any(re.fullmatch(r".+_\d+", name) for name in names) or not {"t", "time", "timestamp"} & set(names):
        return None
    bare = [re.sub(r"\d+$", "", name) or "_" for name in names]  # a column without a name is an index
    groups: list[list[str]] = []
    for name in bare:
        if groups and groups[-1][0] == name:
            groups[-1].append(name)
        else:
            groups.append([name])
    if len({group[0] for group in groups}) != len(groups) or "q" not in bare:
        return None
    return ",".join(f"{group[0]}:{len(group)}" for group in groups)


def _table(lines: Sequence[str], file: Path, first: int) -> Array:
    rows = [cells_of(line) for line in lines]
    if rows and not any(row[-1] for row in rows if row):
        rows = [without_end(row) if len(row) == len(rows[0]) else row for row in rows]
    width = len(rows[0]) if rows else 0
    if rows and len(rows[-1]) < width:
        rows = rows[:-1]  # the last line of a recording that was cut off
    for i, row in enumerate(rows):
        if len(row) != width:
            raise InvalidValue(f"{file}, line {i + first}: {len(row)} cells, the lines before have {width}")
    try:
        return np.array([[number_of(cell) for cell in row] for row in rows]).reshape(len(rows), width)
    except ValueError as problem:
        raise InvalidValue(f"{file}: a cell is no number: {problem}") from problem


def cells_of(line: str) -> list[str]:
    """Cells of one line; commas, semicolons or tabs between, else blanks. An empty cell stays one."""
    line = line.strip("\r\n \ufeff")
    delimiter = max(",;\t", key=line.count)
    if delimiter not in line:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error as problem:
        raise InvalidValue(f"not a line of csv: {problem}: {line[:60]!r}") from problem


def without_end(cells: list[str]) -> list[str]:
    """Cells of a first line without empty ones at its end: some recorders end every line with a comma."""
    while cells and not cells[-1]:
        cells = cells[:-1]
    return cells


def number_of(cell: str) -> float:
    """The number in a cell; NaN for an empty one. Raises ValueError."""
    return float(cell) if cell else float("nan")


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def cleaned(name: str, log: Log, digest: str) -> Recording:
    """Leave out what no observer can use, and say so."""
    problems: list[str] = []
    if not log.complete:
        problems.append("the end of the file is cut off")
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
    return Recording(name, Log(columns, log.units, log.notes, log.complete), tuple(problems), digest)
