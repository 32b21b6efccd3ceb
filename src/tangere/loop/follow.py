"""Following a log that is still being written: lines of csv in, events out as they happen."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tangere.errors import InvalidValue
from tangere.identification.belief import Belief, believed_of, read
from tangere.identification.findings import Finding, promised_at
from tangere.identification.touch_logs import TouchLog
from tangere.logs.log import Log
from tangere.logs.recordings import GAP, CsvStream, Recording, StreamRow, cleaned
from tangere.loop.aside import Aside
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.loop.sinks import Sink
from tangere.loop.watching import TICK, Progress, Watched, Watcher, long_enough, watch
from tangere.model.model import Payload
from tangere.observe.detect import PayloadChange, Wanted
from tangere.observe.momentum import MomentumObserver
from tangere.robots import Robot
from tangere.types import Array, Event, State

# [s] of samples before the first can be judged: gains are read from 50 samples at rest, and the period must be known
HEAD = 1.0
FEWEST = 20  # samples in the head at least: less tell no period
# [s] after which the samples so far are looked at again, by a stream and by a file alike, and at the end: whether they
# are of this arm, and without a model what friction and tool they show. In its first second an arm mostly moves too
# little for either; later looks would make a pipe wait for longer than it can hold
LOOKS = (5.0, 15.0)
LOOKED_AT = 8e-3  # [s] between rows that a look takes: at 125 Hz it tells as much as at 500 Hz, in a third of the time
# [s] before a look that observer and detector go through once more with what it taught: both have settled then
REPLAYED = 1.0


@runtime_checkable
class Rows(Protocol):
    """Rows that come one by one: lines of csv (CsvStream), a live arm (RtdeRows), messages of ROS 2."""

    problems: Counter[str]  # what could not be used, counted

    def __iter__(self) -> Iterator[StreamRow]:
        """Until there are no more."""


class StreamSource:
    """Rows of a stream or a recording as samples, and the momentum observer that belongs to them.

    The first second is kept until gains and period are known. Torque is taken as a mean over each period and as much
    later as the drive model's delay says: a sample is held until its torque is known. Where the clock was set back or a
    gap lies between two samples, the period is nan and the observer starts again.

    Without a model friction, gains and tool are what the samples so far tell: of the head, then of all samples at each
    of the LOOKS, a moment after any event; where that changes anything, the observer goes through the last moment again
    with it and `changed` is told.
    Nothing of later samples is used: a pipe and a file tell the same. log: beside it is kept what comes during a look.
    """

    def __init__(
        self,
        rows: Iterable[StreamRow],
        robot: Robot,
        believed: Belief,
        payload: Payload | None = None,
        *,
        name: str = "-",
        problems: Counter[str] | None = None,
        log: str | os.PathLike[str] | None = None,
    ) -> None:
        self.dof, self.robot = robot.dof, robot
        self.said: list[Finding] = []  # what became known since they were last taken away
        self.newest = -np.inf  # [s] stamp of the newest row
        self.busy: Callable[[], bool] = lambda: False  # a look waits for the end of an event
        self.changed: Callable[[Belief, list[tuple[State, Array]]], None] = lambda belief, past: None
        self._name, self._given, self._payload = name, believed, payload
        self._problems: Counter[str] = Counter() if problems is None else problems
        self._rows: Iterator[StreamRow] = iter(rows)
        self._held: deque[tuple[float, Array, Array, Array, Array | None]] = deque()  # samples without their torque yet
        self._ready: deque[tuple[State, Array]] = deque()  # samples with it
        self._past: deque[tuple[State, Array]] = deque()  # those of the last moment that were handed out
        self._q: Array | None = None  # of the newest row
        self._tau = np.zeros(robot.dof)
        self._before: float | None = None  # stamp of the sample that became ready last
        self._seen: list[StreamRow] = []  # rows so far, until the last look
        self._known: set[str] = set(believed.notes)  # sentences, and kinds of findings that were said
        self._looks = list(LOOKS)  # still to come
        self._log, self._asides = log, list[Aside]()  # of the looks
        self._ended = False
        head = self._head()
        self.first = head[0].time  # [s] the first usable stamp
        self.period = float(np.median(np.diff([row.time for row in head])))
        self._learn(head)
        self.said += promised_at(self.belief.thresholds, np.array([row.time for row in head]))
        self.observer = _StreamObserver(self)
        self._rows = chain(head, self._rows)

    def start(self) -> State:
        """The first sample."""
        state = self.read()
        assert state is not None  # the head has FEWEST of them
        return state

    def read(self) -> State | None:
        """The next sample whose torque is known; None at the end of the lines."""
        while not self._ready and not self._ended:
            row = next(self._rows, None)
            if row is None:
                self._end()
            else:
                self._take(row)
        if not self._ready:
            return None
        state, self.late = self._ready.popleft()
        self._past.append((state, self.late))
        while state.time - self._past[0][0].time > REPLAYED:
            self._past.popleft()
        return state

    def close(self) -> None:
        """The lines belong to whoever gave them; what was kept during a look goes."""
        for aside in self._asides:
            aside.close()

    def _head(self) -> list[StreamRow]:
        head: list[StreamRow] = []
        for row in self._rows:
            if row.anew:
                self._say_anew(head[-1].time if head else np.nan, row.time)
                head.clear()
                row = replace(row, anew=False)
            head.append(row)
            if row.time - head[0].time >= HEAD and len(head) >= FEWEST:
                return head
        if len(head) < FEWEST:
            raise InvalidValue(f"{self._name}: too short to watch: {len(head)} samples, {FEWEST} at least")
        return head

    def _recording(self, rows: Sequence[StreamRow]) -> Recording:
        columns = {name: np.array([row.values[name] for row in rows]) for name in rows[0].values}
        columns["time"] = np.array([row.time for row in rows])
        if "payload" in columns:
            columns["payload"] = columns["payload"].reshape(-1)
        return cleaned(self._name, Log(columns), "")

    def _learn(self, rows: Sequence[StreamRow]) -> None:
        """Believe what a file that ends with these rows tells."""
        self.log, self.belief, said = believed_of(self._recording(rows), self.robot, self._given, self._payload)
        model = self._given.model
        self._scale = np.ones(self.dof) if model is None or model.scale.shape != (self.dof,) else model.scale
        self._say(self.log, said)

    @property
    def _learned(self) -> Array:
        """What a look may change: friction, and gains or a tool with it."""
        return np.concatenate((self.belief.drive.coulomb, self.belief.drive.viscous, self.log.gain))

    def _say(self, log: TouchLog, said: Sequence[Finding] = ()) -> None:
        """What is new: of findings in the log each kind once."""
        told = [(finding.kind, finding) for finding in log.findings if finding.kind != "recording"]
        for key, finding in (*told, *((finding.sentence, finding) for finding in said)):
            if key not in self._known:
                self._known.add(key)
                self.said.append(finding)

    def _look(self) -> None:
        """Once more over all that was seen so far."""
        if self._given.model is None:
            before = self._learned
            self._learn(self._seen[:: max(round(LOOKED_AT / self.period), 1)])
            if not np.array_equal(self._learned, before, equal_nan=True):
                self.changed(self.belief, self.observer.believe(self.belief, self._past))
        else:
            self._say(read(self._recording(self._seen), self.robot, self._given.model, self._payload))
        if not self._looks:
            self._seen.clear()

    def _take(self, row: StreamRow) -> None:
        """A row of the stream; samples whose torque is now known are ready."""
        due = self._looks and len(self._seen) >= FEWEST and self.newest - self._seen[0].time >= self._looks[0]
        if due and not self.busy():
            del self._looks[0]
            self._asides.append(Aside(self._rows, self._log, len(self._asides)))
            self._look()
            self._rows = self._asides[-1].rest()
        if row.anew:
            self._say_anew(self.newest, row.time)
            for rows in (self._held, self._seen, self._past):
                rows.clear()
            self._before, self.newest, self._q, self._tau = None, -np.inf, None, np.zeros(self.dof)
        t, q, tau, delay = row.time, row.values["q"], self._torque(row.values), self.belief.drive.delay
        qd = row.values.get("qd")
        if qd is None:  # as touch_log says: differences, here of the sample before
            qd = np.zeros_like(q) if self._q is None else (q - self._q) / (t - self.newest)
        self._held.append((t, q, qd, tau, row.values.get("qd_des")))
        if self._looks:
            self._seen.append(row)
        last_t, last_tau, self.newest, self._q, self._tau = self.newest, self._tau, t, q, tau
        while self._held and self._held[0][0] + delay <= t + TICK:
            share = 1.0 if delay == 0.0 else (self._held[0][0] + delay - last_t) / (t - last_t)
            self._now_ready(tau if share >= 1.0 else last_tau + share * (tau - last_tau))

    def _now_ready(self, late: Array) -> None:
        t, q, qd, tau, target = self._held.popleft()
        h = np.nan if self._before is None else t - self._before
        if h > GAP * self.period:
            h = np.nan
            self._problems["gaps"] += 1
        self._before = t
        self._ready.append((State(t, h, q, qd, tau, qd_target=target), late))

    def _end(self) -> None:
        """No more lines: the last samples have no later torque, they keep the last."""
        self._ended = True
        if len(self._seen) >= FEWEST:
            self._say(read(self._recording(self._seen), self.robot, self._given.model, self._payload))
        while self._held:
            self._now_ready(self._tau)

    def _say_anew(self, last: float, t: float) -> None:
        text = f"the clock went back from {last:.6g} s to {t:.6g} s: watched anew from there"
        self.said.append(Finding("clock", text))

    def _torque(self, values: dict[str, Array]) -> Array:
        """As touch_log turns a recording into torque."""
        if not self.log.torque:
            return np.asarray(values["actual_current"] * self.log.gain)
        if "tau" in values:
            return np.asarray(values["tau"] * self._scale)
        free = values["actual_current_as_torque"]
        return np.asarray((free + self.belief.robot.gravity_torque(values["q"])) * self._scale)


class _StreamObserver:
    """The momentum observer of a stream: with the torque as it is known later, nan after a gap."""

    def __init__(self, source: StreamSource) -> None:
        believed = source.belief
        self._source = source
        self._nothing = np.full(believed.robot.dof, np.nan)
        self.residual: Array = self._nothing
        self.believe(believed, ())

    def believe(self, believed: Belief, past: Iterable[tuple[State, Array]]) -> list[tuple[State, Array]]:
        """Another arm: the residuals that it has in the past samples, up to now."""
        gain = believed.thresholds.gain
        self._core = MomentumObserver(believed.robot, gain, believed.drive, start="first", delay=0.0)
        done: list[tuple[State, Array]] = []
        for state, late in past:
            done.append((state, self._step(state if done else replace(state, period=np.nan), late)))
        return done

    def reset(self, state: State) -> None:
        """Start with this sample, which has no residual yet."""
        self._step(replace(state, period=np.nan), self._source.late)

    def update(self, state: State) -> Array:
        return self._step(state, self._source.late)

    def _step(self, state: State, late: Array) -> Array:
        if not np.isfinite(state.period):
            self._core.reset(State(state.time, 0.0, state.q, state.qd, late))
            self._late, self.residual = late, self._nothing
            return self.residual
        mean = 0.5 * (self._late + late)
        self._late = late
        self.residual = self._core.update(State(state.time, state.period, state.q, state.qd, mean)).copy()
        return self.residual


def watching(source: StreamSource, **options: Any) -> Watcher:
    """The detector of a source, which goes along with what the source learns; options: of a Watcher."""
    watcher = Watcher(source.belief, known_at=lambda time: source.newest, **options)
    source.busy, source.changed = lambda: watcher.busy(REPLAYED), watcher.believe
    return watcher


def watch_recording(
    recording: Recording,
    robot: Robot,
    believed: Belief,
    payload: Payload | None = None,
    *,
    wanted: Sequence[Wanted] = (),
    payload_changes: Sequence[PayloadChange] = (),
    progress: Progress = lambda share: None,
) -> Watched:
    """A recording with its residual and events; without a model as the same rows from a pipe tell them.

    payload: what is mounted, where it is said. With a model the log is looked at as a whole, which tells the same.
    """
    masks: dict[str, Any] = {"wanted": wanted, "payload_changes": payload_changes}
    if believed.model is not None:
        log, own, said = believed_of(recording, robot, believed, payload)
        seen = watch(log, own, progress=progress, **masks)
        return replace(seen, findings=(*seen.findings, *said))
    log = read(recording, robot)
    duration = long_enough(log)
    source = StreamSource(recording.rows(), robot, believed, payload, name=recording.name)
    watcher = watching(source, traced=True, **masks)
    result = ran(source, watcher, progress=lambda done, _: progress(done / duration))
    if result.abort is not None:
        raise result.abort
    return watcher.watched(log, source.belief, source.belief.findings)


def ran(source: StreamSource, watcher: Watcher, **options: Any) -> RunResult:
    """The loop over a source to its end; `abort` of what it gives says what ended it early."""
    return run(source, observers=[source.observer], detector=watcher, keep=False, **options)


class Follower:
    """Follows rows, or lines of csv (RTDE names, or `columns`), and tells of events: the loop over a StreamSource.

    Lines that cannot be used are left out and counted in `problems` (CsvStream).
    """

    def __init__(
        self,
        robot: Robot,
        believed: Belief,
        *,
        name: str = "-",
        columns: str | None = None,
        rate: float | None = None,
        wanted: Sequence[Wanted] = (),
        payload_changes: Sequence[PayloadChange] = (),
        payload: Payload | None = None,
    ) -> None:
        self.name, self.robot, self.belief, self._payload = name, robot, believed, payload
        self.problems: Counter[str] = Counter()
        self.log_error = ""  # why the log that is written meanwhile is not complete
        self.source: StreamSource | None = None
        self._columns, self._rate = columns, rate
        self._masks: dict[str, Any] = {"wanted": tuple(wanted), "payload_changes": tuple(payload_changes)}
        self._watcher: Watcher | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far, in its newest form."""
        return () if self._watcher is None else self._watcher.events

    @property
    def seconds(self) -> float:
        """That were watched so far."""
        return 0.0 if self._watcher is None else self._watcher.seconds

    @property
    def first(self) -> float:
        """[s] the first usable stamp."""
        return float("nan") if self.source is None else self.source.first

    @property
    def said(self) -> list[Finding]:
        """What became known since they were last taken away (`said.clear()`)."""
        return [] if self.source is None else self.source.said

    def follow(
        self,
        lines: Iterable[str] | Rows,
        tell: Callable[[Event], None] = lambda event: None,
        *,
        log: str | os.PathLike[str] | None = None,
        max_log: float | None = None,
        durable: bool = False,
        sinks: Sequence[Sink] = (),
    ) -> list[Event]:
        """Tell of every event in each of its phases as the lines tell it, at last of one that is open; all of them.

        log: an .mcap file that is written meanwhile: samples, residual and events; max_log, durable, sinks: as
        for run.
        """
        told: list[Event] = []

        def both(event: Event) -> None:
            told.append(event)
            tell(event)

        rows: Rows
        if isinstance(lines, Rows):
            rows = lines
        else:
            rows = CsvStream(lines, name=self.name, columns=self._columns, rate=self._rate)
        self.problems = rows.problems
        self.source = source = StreamSource(
            rows, self.robot, self.belief, self._payload, name=self.name, problems=rows.problems, log=log
        )
        self._watcher = watching(source, tell=both, **self._masks)
        result = ran(source, self._watcher, log=log, max_log=max_log, durable=durable, sinks=sinks)
        self.log_error = result.log_error
        self._watcher.finish()
        if result.abort is not None:
            raise result.abort
        return told
