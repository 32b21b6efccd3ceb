"""The record of a run: columns over time, with units; long ones stay in their file, with an overview in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tangere.errors import InvalidValue, MissingExtra, UnknownName
from tangere.logs.columns import unit_of
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.figures.plots import Figure

PLOTTED = ("q", "qd", "tau", "residual")  # what a log is looked at for first
WORST = 0.1  # share of samples that may be unusable; beyond, the file is not what it is said to be
CUT = "the end of the file is cut off"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened: a controller intervened, a touch, the reason for an end."""

    time: float  # s
    text: str


@dataclass(frozen=True, repr=False, eq=False)
class Log:
    """Columns name -> (N,) or (N, k), all of one length N = len(log) and read-only; `time` is always there.

    log["q"] is a column; log.between(1.0, 2.0) and log[100:200] are logs; log + other joins two of one kind;
    log == other if every bit of every column, and every note, is the same.
    """

    columns: Mapping[str, Array]
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    complete: bool = True  # False: the file it was read from was not closed, the end of the run is missing
    problems: tuple[str, ...] = ()  # sentences: what could not be read, and why
    events: tuple[Mapping[str, Any], ...] = ()  # one entry per phase of an event, as event.record() gives it
    start_ns: int = 0  # [ns] since 1970: what time 0 is; 0 where not known

    def __post_init__(self) -> None:
        columns: dict[str, Array] = {}
        for name, values in self.columns.items():
            array = np.asarray(values, dtype=np.float64)
            if array.ndim not in (1, 2):
                raise InvalidValue(f"column {name!r}: must be (N,) or (N, k), got shape {array.shape}")
            array = array.view()  # the caller's own array stays as writeable as it was
            array.flags.writeable = False
            columns[name] = array
        if "time" not in columns or columns["time"].ndim != 1:
            raise InvalidValue(f"a log needs a column 'time' of shape (N,), got {sorted(columns)}")
        lengths = {name: len(array) for name, array in columns.items()}
        if len(set(lengths.values())) != 1:
            raise InvalidValue(f"columns of one length, got {lengths}")
        units = {name: self.units.get(name, unit_of(name)) for name in columns}
        object.__setattr__(self, "columns", MappingProxyType(columns))
        object.__setattr__(self, "units", MappingProxyType(units))

    @property
    def time(self) -> Array:
        """(N,) s."""
        return self.columns["time"]

    @property
    def duration(self) -> float:
        """Seconds from the first sample to the last."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    @overload
    def __getitem__(self, key: str) -> Array: ...

    @overload
    def __getitem__(self, key: slice) -> Log: ...

    def __getitem__(self, key: str | slice) -> Array | Log:
        if isinstance(key, slice):
            return self._rows(key)
        try:
            return self.columns[key]
        except KeyError:
            raise self._missing(key) from None

    def unit(self, name: str) -> str:
        """Unit of a column, "" where not known."""
        if name not in self.columns:
            raise self._missing(name)
        return self.units[name]

    def _missing(self, name: str) -> MissingColumn:
        return MissingColumn(f"no column {name!r} in this log; it has {', '.join(self.columns)}")

    def get(self, name: str) -> Array | None:
        """The column, None where there is none."""
        return self.columns.get(name)

    __iter__ = None  # rows or columns? log.columns says which

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return f"Log({len(self)} samples, {self.duration:g} s: {', '.join(self.columns)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log):
            return NotImplemented
        mine, theirs = self.columns, other.columns
        return (
            list(mine) == list(theirs)
            and all(mine[k].shape == theirs[k].shape and mine[k].tobytes() == theirs[k].tobytes() for k in mine)
            and self.notes == other.notes
            and dict(self.units) == dict(other.units)
        )

    __hash__ = None  # type: ignore[assignment]

    def _rows(self, which: slice) -> Log:
        """The rows of a slice; notes stay where their time lies within them."""
        columns = {name: array[which] for name, array in self.columns.items()}
        time = columns["time"]
        low, high = (time.min(), time.max()) if len(time) else (np.inf, -np.inf)
        notes = tuple(note for note in self.notes if low <= note.time <= high)
        return replace(self, columns=columns, notes=notes)

    def between(self, start: float, end: float) -> Log:
        """The rows with start <= time < end [s]. Time must not run backwards, as it does not in a run."""
        first, last = np.searchsorted(self.time, [start, end], side="left")
        return self._rows(slice(int(first), int(last)))

    def table(self) -> Array:
        """All columns (N, width) side by side, in their order."""
        return np.concatenate([a if a.ndim == 2 else a[:, None] for a in self.columns.values()], axis=1)

    def position(self, column: str) -> Array:
        """Position (N, 3) [m] of the tcp in a column of poses ("T_des", "T_true")."""
        return self[column][:, 3::4]

    def without(self, names: Sequence[str]) -> Log:
        """The same log without these columns."""
        return replace(self, columns={k: v for k, v in self.columns.items() if k not in names})

    def to_pandas(self) -> Any:
        """A pandas.DataFrame over time [s]; the columns of a vector are numbered from 0: q_0, q_1, ..."""
        try:
            pandas = import_module("pandas")
        except ImportError as problem:
            raise MissingExtra("log.to_pandas() needs pandas: pip install pandas") from problem
        table: dict[str, Array] = {}
        for name, array in self.columns.items():
            table |= {name: array} if array.ndim == 1 else {f"{name}_{i}": array[:, i] for i in range(array.shape[1])}
        return pandas.DataFrame(table).set_index("time")

    def plot(self, *names: str) -> Figure:
        """Columns over time, a panel each: log.plot("q", "residual"); without names those of PLOTTED that there are."""
        from tangere.figures.plots import columns_figure

        chosen = names or [name for name in PLOTTED if name in self] or [n for n in self.columns if n != "time"]
        columns = {name: (self[name], self.unit(name)) for name in chosen}
        return columns_figure(f"{', '.join(chosen)} over {self.duration:g} s", self.time, columns)

    def _repr_html_(self) -> str:
        from tangere.figures.plots import columns_table

        return f"{len(self)} samples, {self.duration:g} s" + columns_table(
            {name: (values, self.units[name]) for name, values in self.columns.items()}
        )

    def __add__(self, other: Log) -> Log:
        if not isinstance(other, Log):
            return NotImplemented
        return concatenate([self, other])


class MissingColumn(UnknownName, KeyError):
    """A column that the log does not have; the message lists those that it has."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return str(self.args[0])


def concatenate(logs: Sequence[Log]) -> Log:
    """One log of several, one after the other, all with the same columns."""
    if not logs:
        raise InvalidValue("concatenate: at least one log")
    for log in logs[1:]:
        if _kind(log) != _kind(logs[0]):
            raise InvalidValue(f"logs of one kind: {_kind(logs[0])} against {_kind(log)}")
    columns = {name: np.concatenate([log[name] for log in logs]) for name in logs[0].columns}
    notes, problems, events = (
        tuple(item for log in logs for item in getattr(log, name)) for name in ("notes", "problems", "events")
    )
    complete = all(log.complete for log in logs)
    return replace(logs[0], columns=columns, notes=notes, complete=complete, problems=problems, events=events)


def _kind(log: Log) -> dict[str, tuple[int, ...]]:
    return {name: array.shape[1:] for name, array in log.columns.items()}


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

            read = read_mcap(self._path, own=True).columns
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
