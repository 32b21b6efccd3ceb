"""Watching for touches: a log or a stream run through observer and detector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification import momentum_residual
from tangere.identification.belief import Belief
from tangere.identification.findings import Finding, promised_at, sentences
from tangere.identification.touch_logs import TouchLog
from tangere.loop.mounting import Mounting
from tangere.loop.run import run
from tangere.observe.detect import Detector, PayloadChange, Wanted
from tangere.observe.friction_state import FrictionState
from tangere.observe.isolation import ContactIsolator
from tangere.types import Array, Event, State

TICK = 1e-9  # [s]: sums of stamps and delays must not miss a sample by their rounding
SHORTEST = 0.5  # [s]: the first 0.3 s settle, and an event needs some samples before it
Progress = Callable[[float], None]
Traced = tuple[Array, Array, Array, float, int]  # of one sample, see Watcher


@dataclass(frozen=True)
class Traces:
    """What the detector looked at, sample by sample (N, n) [Nm]; nan where nothing was watched."""

    level: Array
    change: Array
    level_bound: Array  # thresholds as the regime of each joint has them
    change_bound: Array
    score: Array  # (N,) the largest signal of all against its threshold, 1 is an alarm
    joint: NDArray[np.int64]  # (N,) counted from 1: which it is of

    @property
    def nearest(self) -> tuple[float, int] | None:
        """The largest score and its joint: how near it came to an alarm; None where nothing was watched."""
        if not np.isfinite(self.score).any():
            return None
        most = int(np.nanargmax(self.score))
        return float(self.score[most]), int(self.joint[most])


@dataclass(frozen=True)
class Watched:
    """One log with its residual and events."""

    log: TouchLog
    belief: Belief
    residual: Array  # (N, n) Nm, friction's memory taken off, nan where there is none
    seconds: float  # that were watched: without the start, gaps and what settles after them
    events: tuple[Event, ...]
    traces: Traces
    findings: tuple[Finding, ...] = ()  # beyond those of the log itself
    period: float | None = None  # [s] of a long file, of which only some samples are here; None: all are

    @property
    def said(self) -> tuple[str, ...]:
        """The findings as sentences."""
        return sentences(self.findings)

    @property
    def alarms(self) -> tuple[Event, ...]:
        """Events that a reaction would have been told of."""
        return tuple(event for event in self.events if event.alarm)

    @property
    def masked(self) -> float:
        """Share of the time in which a stop keeps alarms away."""
        last = float(self.log.motion.time[-1])
        stops = [(last if e.end_s is None else e.end_s) - e.onset_s for e in self.events if e.kind == "stop"]
        return sum(stops) / max(self.seconds, 1e-9)

    @property
    def near(self) -> tuple[tuple[float, int, float], ...]:
        """Near misses, the largest first: stamp [s], joint and score that came near an alarm without an event."""
        return near_misses(self.log.motion.time, self.traces.score, self.traces.joint, self.events)


def near_misses(
    time: Array, score: Array, joint: NDArray[np.int64], events: Sequence[Event]
) -> tuple[tuple[float, int, float], ...]:
    """Where a score (N,) came near an alarm beside all events, the largest first: stamp [s], joint and score."""
    from tangere.report.section import near_rows

    return tuple((stamp, int(joint[k]), value) for stamp, value, k in near_rows(time, score, events))


class Watcher:
    """A detector for logs and streams: with masks, isolation, and what friction remembers taken off the residual.

    During an event nothing is learned of friction (FrictionState). What is mounted and nobody told of is named and
    taken off (Mounting). An event's time_s is the stamp of the newest sample that there was when it was raised:
    known_at(time) says it, where a residual is known later than its stamp. tell: is given every event in each of its
    phases (raised, changed, refined where it is named a payload, ended; `finish` tells of one that is open).
    traced: keep what the detector looked at, sample by sample; or who is given it with each sample: residual, level
    and change (2, n), their thresholds, score, joint.
    """

    def __init__(
        self,
        believed: Belief,
        *,
        wanted: Sequence[Wanted] = (),
        payload_changes: Sequence[PayloadChange] = (),
        isolate: bool = True,
        known_at: Callable[[float], float] = float,
        tell: Callable[[Event], None] | None = None,
        traced: bool | Callable[[State, Traced], None] = False,
    ) -> None:
        isolator = ContactIsolator(believed.robot) if isolate else None
        self.detector = Detector(
            believed.thresholds, robot=believed.robot, isolator=isolator, stiction=believed.drive.stiction,
            memory=FrictionState(believed.drive), drives_fail=True,
        )  # fmt: skip
        self._nothing = np.full((2, believed.robot.dof), np.nan)
        self._wanted, self._payload = tuple(wanted), tuple(payload_changes)
        # between the windows thresholds are as ever, and nothing begins as wanted; what began so and still fades is
        # not an alarm before it exceeds them
        self._none = Wanted(np.ones(believed.robot.dof), np.inf, np.inf)
        self._known_at, self._tell, self._traced = known_at, tell, traced
        self._mounting = Mounting(believed)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.detector.reset()
        self._last = -np.inf
        self.seconds = 0.0  # watched so far
        self._known: dict[int, Event] = {}  # as told last
        self._mounting.reset()
        # residual, values and bounds of level and change, score, joint
        self._rows: list[Traced] = []

    def busy(self, seconds: float) -> bool:
        """Whether an event of any kind is going on, or has ended within the last seconds."""
        ends = [np.inf if event.end_s is None else event.end_s for event in self.detector.events[-1:]]
        return any(self._last - end <= seconds for end in ends)

    def believe(self, believed: Belief, past: Sequence[tuple[State, Array]] = ()) -> None:
        """Another drive and other thresholds from the next sample on; past: samples before it with their residual."""
        self.detector.believe(believed.thresholds, FrictionState(believed.drive))
        self._mounting = Mounting(believed)
        for state, residual in past:
            self._last = state.time
            self.detector.update(state, residual)

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far in its newest form."""
        return tuple(self._told(event) for event in self.detector.events)

    @property
    def residual(self) -> Array:
        """What is watched (n,) [Nm]: the newest residual without what friction remembers."""
        return self.detector.residual

    @property
    def score(self) -> float:
        """The largest signal against its threshold now; 1 is an alarm."""
        return self.detector.score

    @property
    def touching(self) -> bool:
        """Whether an event that alarms is going on."""
        return self.detector.touching

    def update(self, state: State, residual: Array) -> Event | None:
        """As Detector.update; masks are those that hold at this time. A clock that was set back starts it again."""
        detector, time = self.detector, state.time
        if time < self._last:
            detector.restart()
        if self._wanted:
            detector.wanted = next((mask for mask in self._wanted if mask.start <= time <= mask.end), self._none)
        if self._payload:
            detector.payload_change = next((mask for mask in self._payload if mask.start <= time <= mask.end), None)
        self._last = time
        residual = self._mounting.less(state, residual)
        event = detector.update(state, residual)
        newest = detector.events[-1] if detector.events else None
        named = self._mounting.look(state, residual, newest)
        if named and newest is not None and self._tell is not None and newest.number in self._known:
            self._tell(dataclasses.replace(self._told(newest), phase="refined"))
        if detector.signals.ready and isfinite(detector.residual[0]):
            self.seconds += detector.signals.h
        if self._traced:
            seen = self._seen(detector.residual)
            if callable(self._traced):
                self._traced(state, seen)
            else:
                self._rows.append(seen)
        return self._changes(event)

    def finish(self) -> None:
        """The log has ended: tell of the event that is still open."""
        for event in self.detector.events[-1:]:
            if event.end_s is None and self._tell is not None:
                self._tell(dataclasses.replace(self._told(event), phase="open"))

    def watched(self, log: TouchLog, believed: Belief, said: tuple[Finding, ...]) -> Watched:
        """What was seen in a log that has ended."""
        return self.watched_as(log, believed, said, *(np.array(rows) for rows in zip(*self._rows, strict=True)))

    def watched_as(
        self, log: TouchLog, believed: Belief, said: tuple[Finding, ...],
        residual: Array, values: Array, bounds: Array, scores: Array, joints: Array,
    ) -> Watched:  # fmt: skip
        """As `watched`, of the samples that somebody else has kept."""
        traces = Traces(values[:, 0], values[:, 1], bounds[:, 0], bounds[:, 1], scores, joints.astype(np.int64))
        if not self.seconds:
            text = "nothing could be watched: samples lie further apart than 0.1 s (stamps in s, not ms?), or only gaps"
            said = (*said, Finding("unwatched", text))
        return Watched(log, believed, residual, self.seconds, self.events, traces, said)

    def _seen(self, residual: Array) -> Traced:
        signals = self.detector.signals
        values = bounds = self._nothing
        score, joint = np.nan, 0
        if signals.ready:
            values = signals.values[:2].copy()
            bounds = signals.bound * signals.excess**2
            score = signals.score
            joint = 1 + int(np.argmax(np.maximum(signals.ratio.max(axis=0), signals.arm.max(axis=0))))
        return residual, values, bounds, score, joint

    def _told(self, event: Event) -> Event:
        known = self._known.get(event.number)
        return self._mounting.named(event if known is None else dataclasses.replace(event, time_s=known.time_s))

    def _changes(self, changed: Event | None) -> Event | None:
        """What is new, told in its phase: at most the newest two events can have changed with one sample."""
        for event in self.detector.events[-2:]:
            known = self._known.get(event.number)
            if known is None:
                told = dataclasses.replace(event, time_s=self._known_at(event.time_s))
            else:
                told = self._told(event)
            self._known[event.number] = told
            if self._tell is None:
                continue
            if known is None:
                self._tell(dataclasses.replace(told, phase="raised"))
            elif changed is not None and event.number == changed.number and event.alarm and not known.alarm:
                self._tell(dataclasses.replace(told, phase="changed"))
            if event.end_s is not None and (known is None or known.end_s is None):
                self._tell(dataclasses.replace(told, phase="ended"))
        return None if changed is None else self._told(changed)


class _Recorded:
    """A recording as a source, with the residual of its momentum observer computed beforehand for all samples."""

    def __init__(self, log: TouchLog, believed: Belief) -> None:
        motion = log.motion
        self.dof, self._motion, self._delay = motion.q.shape[1], motion, believed.drive.delay
        self._time = motion.time.tolist()
        # without the controller's own velocities everywhere a stop is told from the measured ones
        whole = log.qd_des is not None and bool(np.all(np.isfinite(log.qd_des)))
        self._target = log.qd_des if whole else None
        self._residual = momentum_residual(believed.robot, believed.drive, motion, believed.thresholds.gain)
        self._k = 0

    def start(self) -> State:
        self._k = 0
        return self._sample()

    def read(self) -> State | None:
        self._k += 1
        return self._sample() if self._k < len(self._time) else None

    def close(self) -> None:
        """Nothing to release."""

    def known_at(self, time: float) -> float:
        """Stamp of the sample that completes the residual of a time."""
        late = int(np.searchsorted(self._motion.time, time + self._delay - TICK))
        return float(self._time[min(late, len(self._time) - 1)])

    # as an observer
    @property
    def residual(self) -> Array:
        row: Array = self._residual[self._k]
        return row

    def reset(self, state: State) -> None:
        """It begins with the recording."""

    def update(self, state: State) -> Array:
        return self.residual

    def _sample(self) -> State:
        k, motion = self._k, self._motion
        h = self._time[k] - self._time[max(k - 1, 0)]
        target = None if self._target is None else self._target[k]
        return State(self._time[k], h, motion.q[k], motion.qd[k], motion.tau[k], qd_target=target)


def watch(
    log: TouchLog,
    believed: Belief,
    *,
    wanted: Sequence[Wanted] = (),
    payload_changes: Sequence[PayloadChange] = (),
    isolate: bool = True,
    progress: Progress = lambda share: None,
) -> Watched:
    """Run a log through observer and detector. time_s is the stamp of the sample that completed the evidence."""
    masks: dict[str, Any] = {"wanted": wanted, "payload_changes": payload_changes}
    watcher = _ran(log, believed, progress, isolate=isolate, traced=True, **masks)
    return watcher.watched(log, believed, promised_at(believed.thresholds, log.motion.time, log.motion.qd))


def alarms(log: TouchLog, believed: Belief) -> tuple[Event, ...]:
    """Only the events of `watch` that alarm: what the detector looked at is not kept."""
    return tuple(event for event in _ran(log, believed, isolate=False).events if event.alarm)


def _ran(log: TouchLog, believed: Belief, progress: Progress = lambda share: None, **how: Any) -> Watcher:
    """The watcher of a log that has ended."""
    duration = long_enough(log)
    source = _Recorded(log, believed)
    watcher = Watcher(believed, known_at=source.known_at, **how)
    result = run(
        source, observers=[source], detector=watcher, progress=lambda done, _: progress(done / duration), keep=False
    )
    if result.abort is not None:
        raise result.abort
    progress(1.0)
    return watcher


def long_enough(log: TouchLog) -> float:
    """How long a log is [s]; refused where that is too little to watch, or where units are certainly others."""
    for finding in log.findings:
        if finding.kind == "units":
            raise InvalidValue(f"{log.name}: {finding}; nothing was watched")
    duration = float(log.motion.time[-1] - log.motion.time[0])
    if duration < SHORTEST:
        raise InvalidValue(f"{log.name}: too short to watch: {duration:.3g} s, {SHORTEST:g} s needed at least")
    return duration
