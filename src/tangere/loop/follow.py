"""Following a log that is still being written: lines of csv in, events out as they happen."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion
from tangere.identification.belief import Belief, with_own_friction, with_stated_payload
from tangere.identification.findings import promised_at, sentences
from tangere.identification.touch_logs import TouchLog, arm_findings, touch_log
from tangere.logs.log import Log
from tangere.logs.recordings import GAP, CsvStream, StreamRow, cleaned
from tangere.loop.run import run
from tangere.loop.watching import TICK, Watcher
from tangere.observe.detect import PayloadChange, Wanted
from tangere.observe.momentum import MomentumObserver
from tangere.robots import Robot
from tangere.types import Array, Event, State

# [s] of samples before the first can be judged: gains are read from 50 samples at rest, and the period must be known
HEAD = 1.0
FEWEST = 20  # samples in the head at least: less tell no period
# [s] after which the samples so far are held against the arm's gravity, as those of a file are (and at the end of a
# shorter stream): in its first second an arm mostly moves too little to be told from another
LOOKS = (5.0, 15.0)


class StreamSource:
    """Rows of a stream as samples, and the momentum observer that belongs to them.

    The first second is kept until gains and period are known. Torque is taken as a mean over each period and as much
    later as the drive model's delay says: a sample is held until its torque is known. Where the clock was set back or a
    gap lies between two samples, the period is nan and the observer starts again. Residual and events are those of
    `watch` over the same file.
    """

    def __init__(self, rows: CsvStream, robot: Robot, believed: Belief) -> None:
        self.dof, self.robot = robot.dof, robot
        self.said: list[str] = []  # sentences that became known since they were last taken away
        self.newest = -np.inf  # [s] stamp of the newest row
        self._stream = rows
        self._rows: Iterator[StreamRow] = iter(rows)
        self._held: deque[tuple[float, Array, Array, Array, Array | None]] = deque()  # samples without their torque yet
        self._ready: deque[tuple[State, Array]] = deque()  # samples with it
        self._tau = np.zeros(robot.dof)  # of the newest row
        self._before: float | None = None  # stamp of the sample that became ready last
        self._seen: list[tuple[float, Array, Array, Array]] = []  # time, q, qd, tau until it is known whether they fit
        self._looks = list(LOOKS)  # still to come
        self._ended = False
        head = self._head()
        self.first = head[0].time  # [s] the first usable stamp
        self._begin(head, robot, believed)
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
        return state

    def close(self) -> None:
        """Nothing to release: the lines belong to whoever gave them."""

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
            raise InvalidValue(f"{self._stream.name}: too short to watch: {len(head)} samples, {FEWEST} at least")
        return head

    def _begin(self, head: list[StreamRow], robot: Robot, believed: Belief) -> None:
        """The head is there: gains, period, payload."""
        columns = {name: np.array([row.values[name] for row in head]) for name in head[0].values}
        columns["time"] = np.array([row.time for row in head])
        if "payload" in columns:
            columns["payload"] = columns["payload"].reshape(-1)
        model: IdentifiedModel | None = believed.model
        arm = robot if model is None else believed.robot
        self.log: TouchLog = touch_log(cleaned(self._stream.name, Log(columns), ""), arm, model=model)
        before = believed.notes
        self.belief, said = with_stated_payload(with_own_friction(believed, self.log), self.log)
        self.said += [*self.log.problems, *self.belief.notes[len(before) :], *said]
        self.said += promised_at(self.belief.thresholds, columns["time"])
        if self.log.misfit:
            self._looks.clear()
        self._gap = GAP * float(np.median(np.diff(columns["time"])))
        self._scale = np.ones(arm.dof) if model is None or model.scale.shape != (arm.dof,) else model.scale

    def _take(self, row: StreamRow) -> None:
        """A row of the stream; samples whose torque is now known are ready."""
        if row.anew:
            self._say_anew(self.newest, row.time)
            self._held.clear()
            self._seen.clear()
            self._before, self.newest, self._tau = None, -np.inf, np.zeros(self.dof)
        t, q, tau, delay = row.time, row.values["q"], self._torque(row.values), self.belief.drive.delay
        qd = row.values.get("qd")
        if qd is None:  # as touch_log says: differences, here of the sample before
            previous = self._held[-1] if self._held else None
            qd = np.zeros_like(q) if previous is None else (q - previous[1]) / (t - previous[0])
        self._held.append((t, q, qd, tau, row.values.get("qd_des")))
        if self._looks:
            self._seen.append((t, q, qd, tau))
            if t - self._seen[0][0] >= self._looks[0]:
                del self._looks[0]
                self._look()
        last_t, last_tau, self.newest, self._tau = self.newest, self._tau, t, tau
        while self._held and self._held[0][0] + delay <= t + TICK:
            share = 1.0 if delay == 0.0 else (self._held[0][0] + delay - last_t) / (t - last_t)
            self._now_ready(tau if share >= 1.0 else last_tau + share * (tau - last_tau))

    def _now_ready(self, late: Array) -> None:
        t, q, qd, tau, target = self._held.popleft()
        h = np.nan if self._before is None else t - self._before
        if h > self._gap:
            h = np.nan
            self._stream.problems["gaps"] += 1
        self._before = t
        self._ready.append((State(t, h, q, qd, tau, qd_target=target), late))

    def _end(self) -> None:
        """No more lines: the last samples have no later torque, they keep the last."""
        self._ended = True
        self._look()
        while self._held:
            self._now_ready(self._tau)

    def _say_anew(self, last: float, t: float) -> None:
        self.said.append(f"the clock went back from {last:.6g} s to {t:.6g} s: watched anew from there")

    def _look(self) -> None:
        """Whether what was seen so far is of this arm; once something is said, or after the last look, no more."""
        if len(self._seen) >= FEWEST:
            time, q, qd, tau = (np.array(values) for values in zip(*self._seen, strict=True))
            motion = Motion(time, q, qd, tau)
            found = arm_findings(self.belief.robot, motion, None if self.log.torque else self.log.gain)
            self.said += sentences(found)
            if found:
                self._looks.clear()
        if not self._looks:
            self._seen.clear()

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
        gain, drive = believed.thresholds.gain, believed.drive
        self._core = MomentumObserver(believed.robot, gain, drive, start="first", delay=0.0)
        self._nothing = np.full(believed.robot.dof, np.nan)
        self.residual: Array = self._nothing

    def reset(self, state: State) -> None:
        """Start with this sample, which has no residual yet."""
        self._core.reset(State(state.time, 0.0, state.q, state.qd, self._source.late))
        self._late, self.residual = self._source.late, self._nothing

    def update(self, state: State) -> Array:
        if not np.isfinite(state.period):
            self.reset(state)
            return self.residual
        mean = 0.5 * (self._late + self._source.late)
        self._late = self._source.late
        self.residual = self._core.update(State(state.time, state.period, state.q, state.qd, mean)).copy()
        return self.residual


class Follower:
    """Follows lines of csv (RTDE names, or `columns`) and tells of events: the loop over a StreamSource.

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
    ) -> None:
        self.name, self.robot, self.belief = name, robot, believed
        self.problems: Counter[str] = Counter()
        self.source: StreamSource | None = None
        self._columns, self._rate = columns, rate
        self._masks = (tuple(wanted), tuple(payload_changes))
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
    def said(self) -> list[str]:
        """Sentences that became known since they were last taken away (`said.clear()`)."""
        return [] if self.source is None else self.source.said

    def follow(
        self,
        lines: Iterable[str],
        tell: Callable[[Event], None] = lambda event: None,
        *,
        log: str | os.PathLike[str] | None = None,
    ) -> list[Event]:
        """Tell of every event in each of its phases as the lines tell it, at last of one that is open; all of them.

        log: an .mcap file that is written meanwhile: samples, residual and events.
        """
        told: list[Event] = []

        def both(event: Event) -> None:
            told.append(event)
            tell(event)

        rows = CsvStream(lines, name=self.name, columns=self._columns, rate=self._rate)
        self.problems = rows.problems
        self.source = source = StreamSource(rows, self.robot, self.belief)
        self.belief = source.belief
        wanted, changes = self._masks
        self._watcher = watcher = Watcher(
            self.belief, wanted=wanted, payload_changes=changes, known_at=lambda time: source.newest, tell=both
        )
        result = run(source, observers=[source.observer], detector=watcher, keep=False, log=log)
        if result.abort is not None:
            raise result.abort
        watcher.finish()
        return told
