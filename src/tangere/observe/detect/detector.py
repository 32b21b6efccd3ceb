"""The detector: samples in, events out."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import sqrt

import numpy as np

from tangere.errors import InvalidValue
from tangere.observe.detect.classify import History, Judgement, early, judged
from tangere.observe.detect.event import Event
from tangere.observe.detect.felt import Felt, felt
from tangere.observe.detect.masks import PayloadChange, Wanted
from tangere.observe.detect.onset import WINDOW, onset
from tangere.observe.detect.signals import CHANGE, CHANNELS, IMPACT, LEVEL, Signals
from tangere.observe.detect.stops import StopWatch
from tangere.observe.detect.thresholds import Thresholds
from tangere.observe.isolation import Candidate, ContactIsolator, Isolation
from tangere.robot import Robot
from tangere.types import Array

# An event ends where every signal is below OFF of its threshold, or below FALLEN of what it was at its largest (and
# below the threshold): stiction leaves something behind
OFF, FALLEN = 0.5, 0.35
RELEASE = 0.25  # s below before it is over: what was pushed swings back, and is one event with its swing
AFTER_MOVING, AFTER_STANDING = 0.3, 1.0  # s after an event in which joints count as turning: stiction settles
LONG = 10.0  # s after which an event is part of the world: the mean is learned anew, later touches are found again
REFINED = (0.1, 0.5, 2.5)  # s after the onset at which kind and link are judged again: 5 time constants, a push, a mass
PENDING = 0.012  # s that an alarm waits while the arm brakes abruptly, and one sample at least: a stop shows by then
# s before a stop shows in the velocities in which an alarm belongs to it: the drives' current jumps one to three
# samples sooner. A controller that stops because of a contact needs longer to notice it
FORERUNNER = 0.025
# Probability from which an event names its link: more likely than all else together. An isolator's own limit asks for
# near certainty, which a log with friction and model error seldom gives; the probability stands beside the name.
# Simulated logs of a UR10e: 0.7 of all contacts named, 0.8 of these right; with the isolator's 0.84: 0.25 and 0.97
NAMED = 0.5
ARM = len(CHANNELS)  # number of the channel of all joints together
# time, raw, residual, q, tau, mean before, qd
_Sample = tuple[float, Array, Array, Array, Array | None, Array, Array]


class Detector:
    """Raises events from a residual, one sample at a time, in a control loop or over a log. Not a safety function.

    thresholds: tuned, or Thresholds.of_drive(drive). robot: for telling payloads; None: not told. isolator: link, point
    and force of each event, at REFINED times after its onset and at its end (some 20 ms each: for logs, not for a
    loop). stiction (n,) [Nm]: of the drive model, what a standing joint may hide from isolation.
    masks: `wanted` and `payload_change`, settable at any time. Costs some 17 us per sample without isolator.
    """

    def __init__(
        self,
        thresholds: Thresholds,
        *,
        robot: Robot | None = None,
        isolator: ContactIsolator | None = None,
        stiction: Array | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.robot = robot if robot is not None else None if isolator is None else isolator.robot
        self.isolator = isolator
        n = thresholds.dof
        if self.robot is not None and self.robot.dof != n:
            raise InvalidValue(f"thresholds of {n} joints, {self.robot.name} has {self.robot.dof}")
        self.stiction = np.zeros(n) if stiction is None else np.asarray(stiction, dtype=np.float64)
        self._table = np.concatenate((thresholds.table, thresholds.spread[None]))
        # whitening: |half z| = sqrt(z^T correlation^-1 z)
        self._half = np.linalg.inv(np.linalg.cholesky(thresholds.correlation)) / thresholds.arm
        self.wanted: Wanted | None = None
        self.payload_change: PayloadChange | None = None
        self._version = -1  # of the signals' weights that the next three belong to
        self._sigma = thresholds.spread[0]
        self._inverse, self._white = 1.0 / thresholds.table[:, 0], self._half / self._sigma
        self.signals = Signals(n, thresholds.gain, thresholds.standstill)
        self.stops = StopWatch(thresholds.standstill)
        self.reset()

    def reset(self) -> None:
        """Forget every event and sample; masks stay."""
        self.signals.reset()
        self.stops.reset()
        self._events: list[Event] = []
        self._open = False
        self._past: deque[_Sample] = deque()
        self._pending: float | None = None
        self._clear()

    def restart(self) -> None:
        """Nothing before can be connected to what follows (the clock was set back): an open event ends, events stay."""
        if self._open:
            self._finish(self._past[-1][0] if self._past else self._events[-1].time_s)
        self.signals.reset()
        self.stops.reset()
        self._past.clear()
        self._pending = None
        self._clear()

    def _clear(self) -> None:
        self._peak, self._next = 0.0, 0
        self._below: float | None = None
        self._during: list[_Sample] = []
        self._noise = np.ones(self.thresholds.dof)

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far in its newest form; the last has end_s None while it lasts."""
        return tuple(self._events)

    @property
    def touching(self) -> bool:
        """Whether an event that alarms is going on."""
        return self._open and self._events[-1].alarm

    def update(
        self,
        time: float,
        residual: Array,
        q: Array,
        qd: Array,
        tau: Array | None = None,
        target_qd: Array | None = None,
    ) -> Event | None:
        """The event that this sample raises, or that it turns into an alarm; else None.

        residual (n,) [Nm] of an observer with the thresholds' gain; tau, target_qd: where known. Arrays are kept for
        some seconds and must not be written to.
        """
        signals, stops = self.signals, self.stops
        stopping = stops.update(time, qd, target_qd)
        watched = signals.update(time, residual, qd)
        if not watched:
            if self._open and signals.h == 0.0:
                self._finish(time)
            return None
        past = self._past
        past.append((time, signals.raw, signals.change, q, tau, signals.baseline, qd))
        while time - past[0][0] > WINDOW:
            past.popleft()
        if self._version != signals.version:
            self._version, weights = signals.version, signals.weights
            bound = (self._table * weights).sum(axis=1)
            self._sigma = bound[-1]
            self._inverse, self._white = 1.0 / bound[:-1], self._half / self._sigma
        values = signals.values
        ratio = np.abs(values * self._inverse)
        whole = self._white @ values[CHANGE]
        arm = sqrt(float(whole.dot(whole)))
        score = max(float(np.maximum.reduce(ratio, axis=None)), arm)
        if self._open:
            return self._follow(time, ratio, score, stopping)
        if score <= 1.0:
            self._pending = None
            return None
        if not stopping and (self._pending is not None or stops.braking()):
            if self._pending is None:
                self._pending = time
                return None
            if time - self._pending < PENDING:
                return None
        return self._raise(time, ratio, arm, values[CHANGE] / self._sigma, stopping)

    def _raise(self, time: float, ratio: Array, arm: float, z: Array, stopping: bool) -> Event:
        signals = self.signals
        base = signals.baseline
        self._clear()
        self._noise = self._sigma
        past = list(self._past)
        stamps = np.array([entry[0] for entry in past])
        raw = np.array([entry[1] for entry in past]) - base
        began = onset(stamps, raw, self._noise)
        top = ratio.max(axis=1)
        channel = ARM if arm > top.max() else int(np.argmax(top))
        joint = int(np.argmax(np.abs(z) if channel == ARM else ratio[channel]))
        slope = max(float(top.max()), arm) / max(time - began, signals.h)
        kind = early(slope, IMPACT <= channel < ARM)
        masked = True
        wanted, change = self.wanted, self.payload_change
        if stopping:
            kind = Judgement("stop", 0.95, ((kind.kind, 0.05),), 0.0)
            began = self.stops.began if self.stops.began is not None else began
        elif change is not None and change.start <= time <= change.end:
            kind = Judgement("payload", 0.9, ((kind.kind, 0.1),), 0.0)
        elif wanted is not None and wanted.start <= time <= wanted.end and (ratio / wanted.factor).max() <= 1.0:
            kind = Judgement("wanted", 0.9, ((kind.kind, 0.1),), 0.0)
        else:
            masked = False
        if not stopping:
            base = past[int(np.searchsorted(stamps, began))][5]
        added = past[-1][2] - base
        event = Event(
            len(self._events) + 1, time, began, kind.kind, joint + 1, float(added[joint]), added, time,
            kind.confidence, (*CHANNELS, "arm")[channel], alternatives=kind.alternatives, masked=masked, peak_nm=added,
        )  # fmt: skip
        self._events.append(event)
        self._open, self._pending, self._peak = True, None, max(float(top.max()), arm)
        self._during = [entry for entry in past if entry[0] >= began]
        signals.hold(base)
        return event

    def _follow(self, time: float, ratio: Array, score: float, stopping: bool) -> Event | None:
        event = self._events[-1]
        self._during.append(self._past[-1])
        if stopping and event.kind != "stop" and time - event.time_s <= FORERUNNER:
            self._events[-1] = replace(
                event, kind="stop", confidence=0.9, alternatives=((event.kind, 0.1),), masked=True,
                first_kind=event.kind,
            )  # fmt: skip
            return None
        if stopping and event.kind != "stop":  # the touch ends where the stop begins
            self._finish(self.stops.began if self.stops.began is not None else time)
            z = self.signals.values[CHANGE] / self._noise
            return self._raise(time, ratio, 0.0, z, True) if ratio.max() > 1.0 else None
        if event.kind == "stop":
            if not stopping:
                self._finish(time)
            return None
        self._peak = max(self._peak, score)
        # a joint that stands keeps what the touch has pressed into its stiction: that is no reason for an event to last
        bound = 1.0 / self._inverse[: CHANGE + 1]
        stuck = np.where(np.abs(self._during[-1][6]) > self.thresholds.standstill, 0.0, self.stiction)
        current = float((ratio[: CHANGE + 1] * bound / (bound + stuck)).max())
        if current < min(1.0, max(OFF, FALLEN * self._peak)):
            if self._below is None:
                self._below = time
            if time - self._below >= RELEASE:
                self._finish(self._below)
                return None
        else:
            self._below = None
        age = time - event.onset_s
        if age > LONG:
            self._finish(None)
            return None
        if self._next < len(REFINED) and age >= REFINED[self._next]:
            self._next += 1
            return self._refine(ended=False)
        if event.masked and event.kind == "wanted":
            wanted = self.wanted
            if wanted is None or (ratio / wanted.factor).max() > 1.0:  # more than was wanted
                self._events[-1] = replace(event, kind="push", masked=False, confidence=0.5, first_kind="wanted")
                return self._events[-1]
        return None

    def _refine(self, ended: bool) -> Event | None:
        """Judge the open event again; the event if it alarms only now."""
        before = self._events[-1]
        base = self.signals.baseline
        time = np.array([entry[0] for entry in self._during])
        added = np.array([entry[2] for entry in self._during]) - base
        q = np.array([entry[3] for entry in self._during])
        tau = None if self._during[0][4] is None else np.array([entry[4] for entry in self._during])
        qd = np.array([entry[6] for entry in self._during])
        top = int(np.argmax(np.linalg.norm(added / self._noise, axis=1)))
        best = felt(time, added, qd, self._noise, self.stiction)
        event = replace(
            before, residual_nm=best.added, residual_s=best.time, torque_nm=float(best.added[before.joint - 1]),
            peak_nm=added[top],
        )  # fmt: skip
        explained = None
        if self.isolator is not None:
            event, explained = self._isolated(event, q[best.at], best)
        if not event.masked:
            history = History(time, added, q, tau, self._noise, ended, before.channel == CHANNELS[LEVEL])
            kind = judged(history, self.robot, explained)
            event = replace(
                event, kind=kind.kind, confidence=kind.confidence, alternatives=kind.alternatives, rise_s=kind.rise,
                mass_kg=kind.mass, first_kind=before.first_kind or before.kind,
            )  # fmt: skip
        self._events[-1] = event
        return event if event.alarm and not before.alarm else None

    def _isolated(self, event: Event, q: Array, best: Felt) -> tuple[Event, float]:
        assert self.isolator is not None
        scale = np.sqrt(best.variance)
        found = self.isolator.isolate(q, best.added, np.outer(scale, scale) * self.thresholds.correlation)
        links = [(c.link, c.probability) for c in found.alternatives]
        answer: Isolation | Candidate = found
        if found.link is None and found.alternatives and found.alternatives[0].probability >= NAMED:
            answer = found.alternatives[0]
            del links[0]
        return replace(
            event, link=answer.link, link_probability=answer.probability, links=tuple(links), point=answer.point,
            force=answer.force, isolated_s=best.time, why_no_link=found.reason if answer.link is None else "",
        ), found.explained  # fmt: skip

    def _finish(self, end: float | None) -> None:
        """Close the event; end None: it lasts too long to be watched further."""
        if self._during and self._events[-1].kind != "stop":
            self._refine(ended=end is not None)
        last = self._during[-1][0] if self._during else self._events[-1].time_s
        if end is None:
            self.signals.zero = self.signals.zero + self.signals.values[LEVEL]
        self._events[-1] = replace(self._events[-1], end_s=last if end is None else end)
        self._open = False
        self.signals.settle(AFTER_MOVING, AFTER_STANDING)
        self._clear()
