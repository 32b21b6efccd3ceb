"""Watching a long file: row by row as a stream, so that memory does not grow with its length."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.identification.belief import Belief
from tangere.identification.findings import Finding
from tangere.logs.log import NO_END, PIECE
from tangere.logs.mcap_read import is_own, pieces_of
from tangere.logs.recordings import LONG_FILE, READERS, CsvStream, StreamRow
from tangere.logs.thinned import Thinner
from tangere.loop.follow import StreamSource, ran, watching
from tangere.loop.watching import SHORTEST, Progress, Traced, Watched
from tangere.model.model import Payload
from tangere.robots import Robot
from tangere.types import Array, Event, State

_NAMES = ("time", "q", "qd", "tau", "actual_current", "actual_current_as_torque", "qd_des", "q_des", "payload")


def is_long(path: str | os.PathLike[str]) -> bool:
    """Whether a file is watched row by row."""
    file = Path(path)
    if file.suffix == ".npz" or ".npz:" in file.name or not file.is_file() or file.stat().st_size <= LONG_FILE:
        return False
    return file.suffix not in READERS or (file.suffix == ".mcap" and is_own(file))


class LongFile:
    """The rows of a csv or of an mcap that tangere wrote, one by one; `problems` counts what could not be used."""

    def __init__(
        self, path: str | os.PathLike[str], *, columns: str | None = None, rate: float | None = None,
        progress: Progress = lambda share: None,
    ) -> None:  # fmt: skip
        self.path, self.name = Path(path), Path(path).name
        self.cut = False  # its last line has no end
        self.digest = ""
        self._progress, self._size = progress, max(self.path.stat().st_size, 1)
        self._csv = CsvStream(self._lines(), name=self.name, columns=columns, rate=rate)
        self.problems: Counter[str] = self._csv.problems

    def __iter__(self) -> Iterator[StreamRow]:
        return iter(self._csv) if self.path.suffix != ".mcap" else self._messages()

    def _lines(self) -> Iterator[str]:
        digest, done = hashlib.sha256(), 0
        long = f"lines of more than {foreign.LONGEST} characters, which were cut"
        with self.path.open("rb") as file:
            for k, text in enumerate(foreign.lines(file, lambda: self.problems.update((long,)))):
                raw = text.encode()
                digest.update(raw)
                done += len(raw)
                if k % 1000 == 0:
                    self._progress(min(done / self._size, 1.0))
                if text.endswith("\n"):
                    yield text
                else:
                    self.cut = True
        self.digest = digest.hexdigest()

    def _messages(self) -> Iterator[StreamRow]:
        rows = 0
        for part in pieces_of(self.path):
            columns = {name: part[name] for name in _NAMES if name in part}
            for k in range(len(part["time"])):
                row = self._csv.usable({name: values[k] for name, values in columns.items()})
                if row is not None:
                    yield row
            rows += len(part["time"])
            self._progress(1.0 - 1.0 / (1.0 + rows / 1e6))  # how many there are is not known before the end
        with self.path.open("rb") as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()


def watch_file(
    file: LongFile, robot: Robot, believed: Belief, payload: Payload | None = None,
    *, masks: Callable[[float], dict[str, Any]] = lambda first: {},
) -> Watched:  # fmt: skip
    """A long file with its events, as the same rows from a pipe tell them.

    masks(first stamp): wanted and payload_changes, as `watch_recording` takes them. Of the samples those stay at which
    something is least or most (Thinner): what a page draws.
    """
    source = StreamSource(iter(file), robot, believed, payload, name=file.name, problems=file.problems)
    keeper = _Kept(lambda: watcher.detector.events)
    watcher = watching(source, traced=keeper.take, **masks(source.first))
    result = ran(source, watcher)
    if result.abort is not None:
        raise result.abort
    watcher.finish()
    time, q, qd, tau, *traces = keeper.columns(robot.dof)
    if time[-1] - time[0] < SHORTEST:
        raise InvalidValue(f"{file.name}: too short to watch: {time[-1] - time[0]:.3g} s, {SHORTEST:g} s at least")
    motion = replace(source.log.motion, time=time, q=q, qd=qd, tau=tau, name=file.name, digest=file.digest, free=None)
    log = replace(source.log, motion=motion, q_des=None, qd_des=None, qdd_des=None)
    counted = [f"{count} {what}" for what, count in file.problems.items()] + ([NO_END] if file.cut else [])
    said = tuple(Finding("recording", text) for text in counted)
    seen = watcher.watched_as(log, source.belief, (*source.belief.findings, *said), *traces)
    return replace(seen, period=source.period)


class _Kept:
    """The samples of a watch that a page draws: those of a Thinner, and the one that each event is shown at."""

    def __init__(self, events: Callable[[], Sequence[Event]]) -> None:
        self._thinner, self._events = Thinner(), events
        self._rows: list[Array] = []
        self._shown: list[Array] = []

    def take(self, state: State, seen: Traced) -> None:
        """One sample."""
        residual, values, bounds, score, joint = seen
        parts = ([state.time], state.q, state.qd, state.tau, residual, values.ravel(), bounds.ravel(), [score, joint])
        self._rows.append(np.concatenate(parts))
        if len(self._rows) >= PIECE:
            self._fold()

    def _fold(self) -> None:
        if not self._rows:
            return
        rows = np.array(self._rows)
        self._rows = []
        self._thinner.add(rows)
        for event in reversed(self._events()):
            if event.residual_s < rows[0, 0]:
                break
            self._shown.append(rows[int(np.argmin(np.abs(rows[:, 0] - event.residual_s)))])

    def columns(self, n: int) -> list[Array]:
        """Time, q, qd, tau, then what `Watcher.watched_as` takes."""
        self._fold()
        rows = np.array([*self._thinner.rows(), *self._shown])
        rows = rows[np.unique(rows[:, 0], return_index=True)[1]]
        edges = np.cumsum([1, n, n, n, n, 2 * n, 2 * n, 1]).tolist()
        time, q, qd, tau, residual, values, bounds, score, joint = np.split(rows, edges, axis=1)
        pairs = (values.reshape(-1, 2, n), bounds.reshape(-1, 2, n))
        return [time[:, 0], q, qd, tau, residual, *pairs, score[:, 0], joint[:, 0]]
