"""Recording in the loop: rows into preallocated blocks, handed on five times a second or so; limits that they reach."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from time import perf_counter
from typing import Any, Protocol
from weakref import finalize

import numpy as np

from tangere.errors import BeyondLimits, InvalidValue, TangereError
from tangere.kernels.periods import fill
from tangere.logs import log as logs  # LONG is looked up when it is needed
from tangere.logs.log import Log, Note, StoredColumns
from tangere.logs.mcap_log import mcap_sink
from tangere.logs.mcap_read import read_mcap
from tangere.robots import Robot
from tangere.types import Array, Controller, Event, State, Trajectory, Truth

# rows per block: 2 s of a run at 1 kHz, some 2 MB; a new block costs less than a row of numbers
BLOCK = 2048
# [s] of wall time after which rows are handed on although the block is not full: with what the writer then needs, some
# ms, what a kill may cost at most
HAND_ON = 0.2
# rows that a run without a log file holds in memory, 200 MB: four minutes at 1 kHz. Then a temporary file takes them.
HELD = 240_000


class Writer(Protocol):
    """Takes finished rows away from the loop; must return at once."""

    def rows(self, block: Array) -> None:
        """Rows (k, width), columns in the order of the recorder; never changed again."""

    def note(self, note: Note) -> None:
        """A note that belongs to rows handed on before or after."""

    def event(self, event: Event) -> None:
        """An event in one of its phases."""

    def when_idle(self, call: Callable[[], None]) -> None:
        """What to call where nothing came for HAND_ON seconds: rows may wait while a source or a controller is slow."""


class Recorder:
    """A table that grows by a row at a time; below 1 us a row.

    scalars: names of (N,) columns; vectors: name -> k of (N, k) columns, in the order in which they are given to
    `append`. sink: where rows go as well, about five times a second. keep: False for a run without end, whose rows only
    the sink gets; `log` then holds the newest. Where there is a sink and rows take more than WHOLE bytes, those before
    the newest LONG are let go, but for their time; `gone` is given them then. spill: makes a sink, where there is none,
    once HELD rows are in memory.
    """

    def __init__(
        self,
        scalars: Sequence[str],
        vectors: Mapping[str, int],
        sink: Writer | None = None,
        keep: bool = True,
        gone: Callable[[Log], None] = lambda log: None,
        spill: Callable[[], Writer | None] = lambda: None,
    ) -> None:
        names = [*scalars, *vectors]
        if "time" not in scalars or len(set(names)) != len(names):
            raise InvalidValue(f"columns: 'time' among the scalars and no name twice, got {names}")
        self._scalars = tuple(scalars)
        self._vectors = dict(vectors)
        self._first = len(self._scalars)
        self._width = self._first + sum(vectors.values())
        self.sink, self._keep, self._gone, self._spill = sink, keep, gone, spill
        self._blocks: deque[Array] = deque()  # full ones
        self._times: list[Array] = []  # of those that were let go
        self._notes: list[Note] = []
        self._made: tuple[int, Log] | None = None  # with how many rows, without notes
        self._handed = self._full = self._refused = 0
        self._due = perf_counter() + HAND_ON
        self._lock = Lock()
        self._new_block()
        if sink is not None:
            sink.when_idle(self.flush)

    @property
    def layout(self) -> dict[str, slice]:
        """Where each column lies in a row."""
        widths = [1] * self._first + list(self._vectors.values())
        edges = [0, *np.cumsum(widths).tolist()]
        return {n: slice(*e) for n, e in zip([*self._scalars, *self._vectors], pairwise(edges), strict=True)}

    @property
    def scalars(self) -> tuple[str, ...]:
        """Names of the columns of shape (N,)."""
        return self._scalars

    @property
    def samples(self) -> int:
        """Rows so far."""
        return self._full * BLOCK + self._count

    def append(self, scalars: Sequence[float], vectors: Sequence[Array], now: float = 0.0) -> None:
        """Add a row: the scalars, then the vectors, as declared; now: the caller's perf_counter().

        Of a pose (4, 4) the upper three rows, 12 numbers.
        """
        fill(self._block, self._count, scalars, vectors)
        self._count += 1
        if self._count == BLOCK or now > self._due:
            self._hand_on()
            self._due = now + HAND_ON

    def note(self, time: float, text: str) -> None:
        """Add a note."""
        note = Note(time, text)
        self._notes.append(note)
        if self.sink is not None:
            self.sink.note(note)

    def event(self, event: Event) -> None:
        """Hand on an event, in each of its phases; the result of a run has them itself."""
        if self.sink is not None:
            self.sink.event(event)

    def log(self, start_ns: int = 0) -> Log:
        """Everything so far that was not let go, as a log of its own, whose time 0 is start_ns [ns since 1970]."""
        if self._made is None or self._made[0] != self.samples:
            self._made = self.samples, self._log([*self._blocks, self._block[: self._count]])
        return replace(self._made[1], notes=tuple(self._notes), start_ns=start_ns)

    def times(self) -> Array | None:
        """Time (N,) [s] of all rows, where some were let go."""
        if not self._times:
            return None
        at = self._scalars.index("time")
        held = [block[:, at] for block in (*self._blocks, self._block[: self._count])]
        return np.concatenate([*self._times, *held])

    def kept(self, path: str | os.PathLike[str] | None, start_ns: int) -> Log:
        """All rows: in memory, or of a long run read from its file when they are asked for; notes are all there."""
        log, times = self.log(start_ns), self.times()
        if times is None or path is None:
            return log
        if getattr(self.sink, "error", ""):  # as far as it goes
            return replace(read_mcap(path, own=True, long=True), notes=log.notes)
        widths = dict.fromkeys(self._scalars, 0) | self._vectors
        return replace(log, columns=StoredColumns(path, widths, times))

    def _log(self, blocks: Sequence[Array]) -> Log:
        columns = {}
        for name, where in self.layout.items():
            part = where.start if name in self._scalars else where
            columns[name] = np.concatenate([block[:, part] for block in blocks])
        return Log(columns)

    def flush(self) -> None:
        """Hand on what has not been; the sink may call it too, where no row has come for a while."""
        with self._lock:
            count = self._count  # rows before it are finished, whatever the loop does meanwhile
            if self.sink is not None and count > self._handed:
                self.sink.rows(self._block[self._handed : count])
            self._handed = count

    def close(self) -> None:
        """Hand on the rest and end the sink, where it can be ended; may be called twice."""
        self.flush()
        getattr(self.sink, "close", lambda: None)()

    def _hand_on(self) -> None:
        self.flush()
        if self._count == BLOCK:
            with self._lock:
                self._full += 1
                if self._keep:
                    self._blocks.append(self._block)
                self._new_block()
            if self.sink is None and self.samples >= HELD * (1 + self._refused):
                self.sink = self._spill()
                self._refused += 1
                if self.sink is not None:
                    for block in self._blocks:
                        self.sink.rows(block)
                    for note in self._notes:
                        self.sink.note(note)
                    self.sink.when_idle(self.flush)
            # what fits is kept whole: to read it again would cost a tenth of the run
            large = bool(self._times) or len(self._blocks) * self._block.nbytes > logs.WHOLE
            while self.sink is not None and large and len(self._blocks) * BLOCK > logs.LONG:
                old = self._blocks.popleft()
                self._times.append(old[:, self._scalars.index("time")].copy())
                self._gone(self._log([old]))

    def _new_block(self) -> None:
        self._block: Array = np.zeros((BLOCK, self._width))  # zeros: pages are mapped when they are first written
        self._count = self._handed = 0


class Spilled:
    """Makes the temporary log file of a run that was given none and has become long; it goes with whoever reads it."""

    def __init__(self, columns: Mapping[str, int], how: Mapping[str, Any]) -> None:
        self._columns, self._how = columns, how
        self.path: Path | None = None  # None: there is no file

    def __call__(self) -> Writer | None:
        """A writer; None where none can be had, as where there is no temporary folder."""
        try:
            self.path = Path(mkdtemp(prefix="tangere-")) / "log.mcap"
            self._gone = finalize(self, rmtree, self.path.parent, ignore_errors=True)
            return mcap_sink(self.path, self._columns, **self._how)
        except (OSError, TangereError):
            self.path = None
            return None

    def belongs_to(self, log: Log) -> None:
        """The file is removed with these columns, and when the program ends."""
        if isinstance(log.columns, StoredColumns) and self.path is not None:
            self._gone.detach()
            finalize(log.columns, rmtree, self.path.parent, ignore_errors=True)


class Parts:
    """Which columns a row has: fixed by the first sample, so that every row has the same."""

    def __init__(
        self,
        state: State,
        controller: Controller | None,
        trajectory: Trajectory | None,
        residuals: list[str],
        truth: Callable[[], Truth] | None,
        scorer: Any = None,
    ) -> None:
        self.wrench = state.wrench is not None
        self.command = controller is not None
        self.reference = trajectory is not None
        self.pose = trajectory is not None and trajectory.at(0.0).T is not None
        self.residuals = residuals
        self.truth = truth
        self.extra: Callable[[], Mapping[str, Any]] | None = getattr(controller, "columns", None)
        values = {} if self.extra is None else dict(self.extra())
        known = {"time", "period", "cost", "cost_log", "lateness", "cpu", "score", *self._own(len(state.q))}
        if twice := sorted(known & set(values)):
            raise InvalidValue(f"columns of the controller: {', '.join(twice)} are the loop's own")
        self.scorer = scorer if hasattr(scorer, "score") else None
        self.extra_scalars = [name for name, value in values.items() if np.ndim(value) == 0]
        self.extra_vectors = {name: len(value) for name, value in values.items() if np.ndim(value)}
        self.more_scalars, self.more_vectors = picker(self.extra_scalars), picker(list(self.extra_vectors))

    def columns(self, n: int) -> dict[str, int]:
        """Name -> width of the vectors, in the order of a row."""
        return self._own(n) | self.extra_vectors

    def _own(self, n: int) -> dict[str, int]:
        columns = {"q": n, "qd": n, "tau": n}
        columns |= {"wrench": 6} if self.wrench else {}
        columns |= dict.fromkeys(self.residuals, n)
        columns |= {"tau_cmd": n} if self.command else {}
        columns |= {"q_des": n, "qd_des": n, "qdd_des": n} if self.reference else {}
        columns |= {"T_des": 12} if self.pose else {}
        if self.truth is not None:
            columns |= {"q_true": n, "qd_true": n, "tau_ext_true": n, "T_true": 12, "wrench_true": 6}
        return columns


def picker(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What gives the values of these names, in their order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


AT_TORQUE = "at its torque"


@dataclass(frozen=True, order=True)
class Reached:
    """A limit that a joint reached or went beyond."""

    time: float  # [s] when first
    text: str  # joint 6 beyond its speed of 3.14 rad/s
    periods: int
    beyond: bool
    cut: int = 0  # the joint (from 1) whose torque lay at its limit: a controller may have cut it off itself


class Limits:
    """Which limits were reached, from the rows of a run in their order."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._found: dict[str, Reached] = {}  # by their text

    def take(self, log: Log) -> None:
        """Look at some rows."""
        robot = self._robot
        torque = np.abs(log["tau_cmd"])
        reached = {
            "beyond its speed": (np.abs(log["qd"]) > robot.qd_max, robot.qd_max, "rad/s"),
            "beyond its torque": (torque > robot.tau_max, robot.tau_max, "Nm"),
            AT_TORQUE: (torque == robot.tau_max, robot.tau_max, "Nm"),
            "beyond its lower end": (log["q"] < robot.q_min, robot.q_min, "rad"),
            "beyond its upper end": (log["q"] > robot.q_max, robot.q_max, "rad"),
        }
        for what, (beyond, limit, turning) in reached.items():
            for j in np.flatnonzero(beyond.any(axis=0)).tolist():
                text = f"joint {j + 1} {what} of {limit[j]:.4g} {robot.unit(j + 1, turning)}"
                first, at = float(log.time[int(np.argmax(beyond[:, j]))]), what == AT_TORQUE
                one = self._found.get(text, Reached(first, text, 0, not at, j + 1 if at else 0))
                self._found[text] = replace(one, periods=one.periods + int(beyond[:, j].sum()))

    def told(self, recorder: Recorder, said: Mapping[str, int]) -> list[Reached]:
        """Note the limits in the log, warn of the first that was exceeded. said: what the controller noted."""
        reached = self.reached(said)
        for one in reached:
            recorder.note(one.time, one.text)
        if beyond := next((one.text for one in reached if one.beyond), ""):
            warnings.warn(
                f"{beyond}, and the run went on; its page and result.interventions say how often. "
                "Often gains that are too large for the period",
                BeyondLimits,
                stacklevel=3,
            )
        return reached

    def reached(self, said: Mapping[str, int]) -> list[Reached]:
        """In their order; not what the controller itself said of a joint's torque."""
        return sorted(x for x in self._found.values() if not any(f"torque of joint {x.cut} " in note for note in said))


def by_joint(said: Mapping[str, int]) -> dict[str, int]:
    """What was said of a run, in the order of its words, joint 2 before joint 10."""
    return dict(sorted(said.items(), key=lambda one: [w.zfill(3) if w.isdigit() else w for w in one[0].split()]))
