"""One way in for data: csv, npz and MCAP as logs; recordings of robots cleaned, and what is wrong with them said."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.csv_log import CsvRows, read_csv
from tangere.logs.log import CUT, WORST, Log

DEFAULT_COLUMNS = "q,qd,current"  # of an array in an npz with 18 columns
GAP = 3.0  # median periods without a sample; less is jitter (a UR's 100 Hz stream has up to three periods)


@dataclass(frozen=True)
class Recording:
    """One log of a file, with what was left out of it and the file's hash."""

    name: str
    log: Log  # stamps rise, all numbers are finite
    problems: tuple[str, ...]  # sentences: gaps, repeated stamps, a clock that went backwards, NaN
    digest: str  # sha256 of the file


def read(source: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None) -> Log:
    """The log in a file: FILE.csv, FILE.mcap (ours, or a ROS 2 bag of anybody), FILE.npz:KEY; every number as it is.

    columns, rate: as for `recordings`. What could not be read is in log.problems.
    """
    logs = _logs(source, columns, rate)
    if len(logs) != 1:
        known = ", ".join(name for name, _ in logs[:8]) + (" ..." if len(logs) > 8 else "")
        raise InvalidValue(f"{os.fspath(source)}: holds {len(logs)} logs, name one as FILE.npz:KEY; it has {known}")
    return logs[0][1]


def recordings(
    source: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None
) -> list[Recording]:
    """All logs of `source`, FILE.csv, FILE.mcap, FILE.npz or FILE.npz:KEY-GLOB, without samples that are no use.

    columns: names for a csv without a header, or for the arrays of an npz: "t,q,qd,current,_:6" - every name but t
    stands for six columns, NAME:K for K, `_` for columns to skip, `...` at the end for all that follow. A header is
    skipped where columns are given.
    rate: samples per second, for data without stamps. A pickled npz is refused: it could run code.
    """
    logs = _logs(source, columns, rate)
    digest = hashlib.sha256(_parts(source)[0].read_bytes()).hexdigest()
    return [cleaned(name, log, digest) for name, log in logs]


def _parts(source: str | os.PathLike[str]) -> tuple[Path, str]:
    """The file of FILE or FILE.npz:GLOB, and the glob ("" where there is none)."""
    path, _, pattern = os.fspath(source).partition(".npz:")
    return Path(f"{path}.npz" if pattern else path), pattern


def _logs(source: str | os.PathLike[str], columns: str | None, rate: float | None) -> list[tuple[str, Log]]:
    """Name and log of everything that is in a file."""
    file, pattern = _parts(source)
    if file.suffix == ".npz":
        return _from_npz(file, pattern or "*", columns, rate)
    if file.suffix == ".mcap":
        from tangere.logs.mcap_read import read_mcap

        return [(file.name, read_mcap(file))]
    return [(file.name, read_csv(file, columns=columns, rate=rate))]


def _from_npz(file: Path, pattern: str, columns: str | None, rate: float | None) -> list[tuple[str, Log]]:
    """Tables (N, k) as logs of their own; where "time" is among the arrays of a file, all of it is one log."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            if "time" in archive.files and pattern == "*" and columns is None:
                return [(file.name, Log({key: archive[key] for key in archive.files}))]
            keys = [key for key in archive.files if fnmatch.fnmatchcase(key, pattern)]
            if not keys:
                known = ", ".join(archive.files[:8]) + (" ..." if len(archive.files) > 8 else "")
                raise InvalidValue(f"{file}: no array is called {pattern!r}; it has {known or 'none'}")
            arrays = {key: np.asarray(archive[key]) for key in keys}
    except InvalidValue:
        raise
    except FileNotFoundError as problem:
        raise InvalidValue(f"cannot read {file}: {problem.strerror}") from problem
    except (ValueError, OSError, AttributeError) as problem:  # a pickle is a ValueError with allow_pickle=False
        raise InvalidValue(f"{file}: refused: not a plain npz of numbers (pickled data is never loaded)") from problem
    logs = []
    for key, array in arrays.items():
        where = f"{file}:{key}"
        if array.dtype.kind not in "fiu":
            raise InvalidValue(f"{where}: must hold real numbers, got {array.dtype}")
        if array.ndim != 2:
            raise InvalidValue(f"{where}: a table (N, k) is needed, the data has shape {array.shape}")
        rows = CsvRows(where, columns=columns or DEFAULT_COLUMNS, rate=rate)
        logs.append((key, rows.table(np.asarray(array, np.float64))))
    return logs


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
