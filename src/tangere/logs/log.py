"""The record of a run: columns over time, with units; long ones stay in their file, with an overview in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tangere.errors import InvalidValue, UnknownName, extra
from tangere.logs.columns import unit_of
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.figures.plots import Figure

PLOTTED = ("q", "qd", "tau", "residual")  # what a log is looked at for first
WORST = 0.1  # share of samples that may be unusable; beyond, the file is not what it is said to be
CUT = "the end of the file is cut off"
NO_END = "the last line has no line end and may be cut"  # of a csv: many programs leave it out


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
        if isinstance(self.columns, StoredColumns):
            units = {name: self.units.get(name, unit_of(name)) for name in self.columns}
            object.__setattr__(self, "units", MappingProxyType(units))
            return
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

    def pieces(self) -> Iterator[Log]:
        """The log in parts, one behind the other: of one whose file holds the rows never more than PIECE rows of them.

        A log in memory is one part.
        """
        if not isinstance(self.columns, StoredColumns):
            yield self
            return
        for columns in self.columns.parts(PIECE):
            yield Log(columns, self.units)

    def each(self, of: Callable[[Log], Array]) -> Array:
        """What a function makes of the rows (N, ...), part by part."""
        return np.concatenate([of(part) for part in self.pieces()])

    def _rows(self, which: slice) -> Log:
        """The rows of a slice; notes stay where their time lies within them."""
        if isinstance(self.columns, StoredColumns):
            columns: Mapping[str, Array] = self.columns.rows(which)
        else:
            columns = {name: array[which] for name, array in self.columns.items()}
        time = columns["time"]
        low, high = (time.min(), time.max()) if len(time) else (np.inf, -np.inf)
        notes = tuple(note for note in self.notes if low <= note.time <= high)
        return replace(self, columns=columns, notes=notes)

    def between(self, start: float, end: float) -> Log:
        """The rows with start <= time < end [s]. Time must not run backwards, as it does not in a run."""
        first, last = np.searchsorted(self.time, [start, end], side="left")
        return self._rows(slice(int(first), int(last)))

    def shapes(self) -> dict[str, int]:
        """Name -> k of every column, 0 for a column (N,)."""
        if isinstance(self.columns, StoredColumns):
            return dict(self.columns.widths)
        return {name: array.shape[1] if array.ndim == 2 else 0 for name, array in self.columns.items()}

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
        with extra("log.to_pandas() needs pandas: pip install pandas"):
            pandas = import_module("pandas")
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


# Samples that a run keeps in memory whose file holds them, once they take more than WHOLE; of a log that is read, from
# which on they stay in the file: 50 MB at some 0.8 kB each, one minute at 1 kHz. What a page or a summary computes of
# them takes several times that.
LONG = 60_000
TOGETHER = ("cost", "cost_log", "lateness", "cpu")  # columns (N,) that are asked for one after the other
PIECE = 20_000  # rows of such a log that are read at once: 16 MB
# bytes of columns up to which a run keeps all of its rows, and such a log is read once, when the first is asked for,
# and stays: two or three minutes at 1 kHz. A page asks for some forty columns, and to read one is to unpack the file.
WHOLE = 128 << 20
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
        widths = {name: k for name, k in log.shapes().items() if name != "time"}
        shape = {name: (len(first), k) if k else len(first) for name, k in widths.items()}
        low, high = ({name: np.full(shape[name], np.nan) for name in widths} for _ in range(2))
        at = 0
        for part in log.pieces():
            bin0 = max(int(np.searchsorted(first, at, side="right")) - 1, 0)  # in which the part begins
            here = first[bin0 : np.searchsorted(first, at + len(part))] - at
            here[:1] = 0
            into = slice(bin0, bin0 + len(here))
            for name in widths if len(here) else ():
                known = np.where(np.isfinite(part[name]), part[name], np.nan)
                low[name][into] = np.fmin(low[name][into], np.fmin.reduceat(known, here, axis=0))
                high[name][into] = np.fmax(high[name][into], np.fmax.reduceat(known, here, axis=0))
            at += len(part)
        return cls(log.time[first], low, high)

    def __repr__(self) -> str:
        return f"Overview({len(self.time)} bins: {', '.join(self.low)})"


class StoredColumns(Mapping[str, Array]):
    """Columns of a log whose MCAP file holds them: time stays in memory, any other is read when it is asked for.

    widths: name -> k, 0 for a column (N,). If all take no more than WHOLE bytes they are read at once and stay until
    `release`; of a larger log those of TOGETHER are read at once, and each stays until it is asked for.
    """

    def __init__(self, path: str | os.PathLike[str], widths: Mapping[str, int], time: Array, own: bool = True) -> None:
        self._path, self._own, self._time = Path(path), own, time
        self.widths = dict(widths)
        self._held: dict[str, Array] = {}
        numbers = len(time) * sum(max(width, 1) for width in self.widths.values())
        others = [name for name in self.widths if name != "time"]
        self._whole = 8 * numbers <= WHOLE
        self._stays = others if self._whole else [name for name in others if name in TOGETHER]

    @property
    def held(self) -> tuple[str, ...]:
        """Names of the columns that are in memory beside the time."""
        return tuple(self._held)

    def release(self) -> None:
        """Let the columns go; the next use reads the file."""
        self._held = {}

    def parts(self, rows: int) -> Iterator[dict[str, Array]]:
        """All columns, at most so many rows at a time."""
        if len(self._stays) + 1 < len(self.widths):
            yield from self._unpacked(rows)
            return
        for at in range(0, len(self._time), rows):
            yield {name: self[name][at : at + rows] for name in self.widths}

    def _unpacked(self, rows: int) -> Iterator[dict[str, Array]]:
        """The same from the file."""
        from tangere.logs.mcap_read import pieces_of

        waiting: list[dict[str, Array]] = []
        count = total = 0
        for part in pieces_of(self._path, own=self._own):
            if set(part) != set(self.widths):
                raise self._other()
            waiting.append(part)
            count += len(part["time"])
            if count >= rows:
                total += count
                yield {name: np.concatenate([one[name] for one in waiting]) for name in self.widths}
                waiting, count = [], 0
        if waiting:
            total += count
            yield {name: np.concatenate([one[name] for one in waiting]) for name in self.widths}
        if total != len(self._time):
            raise self._other()

    def rows(self, which: slice) -> dict[str, Array]:
        """All columns of these rows."""
        start, stop, step = which.indices(len(self._time))
        if step < 0:
            raise InvalidValue(f"rows of a log that stays in its file go forwards, got a step of {step}")
        found: list[dict[str, Array]] = []
        at = 0
        for part in self.parts(PIECE):
            first = start - at if at <= start else (start - at) % step
            inside = slice(first, max(stop - at, 0), step)
            found.append({name: values[inside].copy() for name, values in part.items()})
            at += len(part["time"])
            if at >= stop:
                break
        return {name: np.concatenate([part[name] for part in found]) for name in self.widths}

    def _other(self) -> InvalidValue:
        return InvalidValue(f"{self._path} is no longer the log of this run")

    def __getitem__(self, name: str) -> Array:
        if name == "time":
            return self._time
        if name in self._held:
            return self._held[name] if self._whole else self._held.pop(name)
        size, names = len(self._time), self._stays if name in self._stays else [name]
        found = {one: np.empty((size, self.widths[one]) if self.widths[one] else size) for one in names}
        at = 0
        for part in self._unpacked(PIECE):
            to = min(at + len(part["time"]), size)
            for one, values in found.items():
                values[at:to] = part[one][: to - at]
            at = to
        for values in found.values():
            values.flags.writeable = False
        if name in self._stays:
            self._held |= found if self._whole else {one: found[one] for one in names if one != name}
        return found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.widths)

    def __contains__(self, name: object) -> bool:
        return name in self.widths  # without reading it

    def __len__(self) -> int:
        return len(self.widths)


def stored(log: Log, path: str | os.PathLike[str]) -> Log:
    """The same log; its rows are read again from the MCAP file `path` when they are asked for."""
    columns: Any = StoredColumns(path, log.shapes(), log.time)
    return replace(log, columns=columns)
