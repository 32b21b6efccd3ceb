"""The detector: samples in, events out."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import inf

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.laws.detection import CHANNELS, IMPACT, LEVEL, OFF
from tangere.observe.detect.classify import Judgement, early
from tangere.observe.detect.hysteresis import Crossing
from tangere.observe.detect.past import Onset, Past
from tangere.observe.detect.refine import GAIN_ERROR, NAMED, Evidence, Refiner
from tangere.observe.detect.signals import ARM, Signals
from tangere.observe.detect.stops import EARLIER, LOOK_BACK, RINGS, StopWatch, from_outside
from tangere.observe.detect.thresholds import PayloadChange, Thresholds, Wanted
from tangere.observe.friction_state import FrictionState
from tangere.observe.isolation import ContactIsolator
from tangere.robots import Robot
from tangere.types import Array, Event, State

LONG = 10.0  # s after which an event is part of the world: the mean is learned anew, later touches are found again
REFINED = (0.1, 0.5, 2.5)  # s after the onset at which kind and link are judged again: 5 time constants, a push, a mass
# s that an alarm waits while the arm brakes abruptly, and one sample at least: a stop shows by then. What works against
# the motion does not wait: it brakes the arm itself, and at 100 Hz a knock is over by then
PENDING = 0.012
# s before a stop shows in the velocities in which an alarm belongs to it: the drives' current jumps one to three
# samples sooner. A controller that stops because of a contact needs longer to notice it
FORERUNNER = 0.025
# times its threshold: what is felt so clearly while the arm wants to go on, or after a stop has rung, is none of a stop
FELT_CLEARLY = 2.0
NEWEST = 100  # samples that are looked at for who stops the arm: those of RINGS seconds at 1 kHz


class Detector:
    """Raises events from a residual, one sample at a time, in a control loop or over a log. Not a safety function.

    thresholds: tuned, Thresholds.of_drive(drive) or Thresholds.constant(5.0), with which the residual itself is
    watched. robot: for telling payloads; None: not told. isolator: link, point and force of each event, at REFINED
    times after its onset and at its end (some 20 ms each, in a run outside its periods). stiction (n,) [Nm]: of the
    drive model, what a standing joint may hide from isolation. gain_error: of a torque, standard deviation of what
    drive gains make uncertain in it. memory: what friction remembers, taken off the residual before; None: nothing.
    answered: whether alarms have somebody who may stop the arm, as in a run: such a stop is no explanation of the alarm
    before it, what another joint feels while the first swings out is an event of its own, and what no single force
    explains is still a touch. drives_fail: whether a steady torque on one joint of a moving arm is a drive's.
    named: probability from which an event names its link; below it says "ambiguous" and which links it may be.
    deferred: set where others refine (Refiner, `deliver`), as in a control loop: what is to be refined; None: in place.
    masks: `wanted` and `payload_change`, settable at any time. Costs some 4 us per sample, without isolator and memory.
    """

    def __init__(
        self,
        thresholds: Thresholds,
        *,
        robot: Robot | None = None,
        isolator: ContactIsolator | None = None,
        stiction: Array | None = None,
        gain_error: float = GAIN_ERROR,
        memory: FrictionState | None = None,
        answered: bool = False,
        drives_fail: bool = False,
        named: float = NAMED,
    ) -> None:
        self.thresholds = thresholds
        self.robot = robot if robot is not None else None if isolator is None else isolator.robot
        self.isolator = isolator
        n = thresholds.dof
        if self.robot is not None and self.robot.dof != n:
            raise InvalidValue(f"thresholds of {n} joints, {self.robot.name} has {self.robot.dof}")
        self.gain_error, self.memory, self.answered = gain_error, memory, answered
        self.stiction = np.zeros(n) if stiction is None else np.asarray(stiction, dtype=np.float64)
        self.refiner = Refiner(self.robot, isolator, self.stiction, gain_error, answered, drives_fail, named)
        self.deferred: deque[Evidence] | None = None
        self.wanted: Wanted | None = None
        self.payload_change: PayloadChange | None = None
        self.signals = Signals(n, thresholds.gain, thresholds.standstill, thresholds, self.stiction)
        self.stops = StopWatch(thresholds.standstill)
        self._crossing = None if thresholds.hysteresis is None else Crossing(thresholds.hysteresis)
        self.score = 0.0  # the largest signal against its threshold at the newest sample that was watched
        self._past, self._onset = Past(n), Onset(n)
        self.reset()

    def reset(self) -> None:
        """Forget every event and sample; masks stay."""
        self.signals.reset()
        self.stops.reset()
        if self._crossing is not None:
            self._crossing.reset()
        self.score, self._last = 0.0, -inf
        self.residual = np.full(self.thresholds.dof, np.nan)  # (n,) [Nm] that was watched last, without its memory
        if self.memory is not None:
            self.memory.reset()
        self._events: list[Event] = []
        if self.deferred is not None:
            self.deferred.clear()
        self._open = False
        self._past.clear()
        self._pending: float | None = None
        self._now = -inf  # s, stamp of the newest sample that was watched
        self._clear()

    def restart(self) -> None:
        """Nothing before can be connected to what follows (the clock was set back): an open event ends, events stay."""
        if self._open:
            self._finish(max(self._now, self._events[-1].time_s))
        if self._crossing is not None:
            self._crossing.reset()
        self.signals.reset()
        self.stops.reset()
        self._past.clear()
        self._pending = None
        self._clear()

    def believe(self, thresholds: Thresholds, memory: FrictionState | None) -> None:
        """Other thresholds and another memory from the next sample on, as after `restart`."""
        self.restart()
        self.thresholds, self.memory, self._last = thresholds, memory, -inf
        self.signals = Signals(thresholds.dof, thresholds.gain, thresholds.standstill, thresholds, self.stiction)

    def _clear(self) -> None:
        self._peak, self._next = 0.0, 0  # the largest score so far, of constant thresholds
        self._highest = np.zeros(0)  # (n,) [Nm] residual at that peak, of constant thresholds
        self._below: float | None = None
        self._began = self._first = 0  # numbers of the samples at the onset, and a second before the alarm
        self._noise = self._base = self.stiction
        self._past.keep = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far in its newest form; the last has end_s None while it lasts."""
        return tuple(self._events)

    @property
    def excess(self) -> Array:
        """Speed (n,) against the fastest known to the thresholds, fading; its square multiplies them."""
        return np.asarray(self.signals.excess)

    @property
    def touching(self) -> bool:
        """Whether an event that alarms is going on."""
        return self._open and self._events[-1].alarm

    def update(self, state: State, residual: Array) -> Event | None:
        """The event that this sample raises, or that it turns into an alarm; else None.

        residual (n,) [Nm] of an observer with the thresholds' gain. Arrays are kept for some seconds and must not be
        written to.
        """
        if self._crossing is not None:
            return self._cross(self._crossing, state.time, residual)
        time, qd = state.time, state.qd
        if self.memory is not None:
            residual = self.memory.update(time - self._last, residual, qd, hold=self.signals.frozen)
            self._last = time
        self.residual = residual
        signals, stops = self.signals, self.stops
        stopping = stops.update(time, qd, state.qd_target)
        watched = signals.update(time, residual, qd)
        if not watched:
            if self._open and signals.h == 0.0:
                self._finish(time)
            return None
        score = self.score = signals.score
        self._past.append(time, signals.given, signals.raw, signals.baseline, state.q, state.tau)
        self._now = time
        if stopping and score > 1.0:
            goes_on = stops.resumed and (score > FELT_CLEARLY or self.touching)
            stopping = not (goes_on or self._touched_while_it_stops(time, score))
        if self._open:
            return self._follow(time, score, stopping)
        if self.answered and score <= 1.0 and state.qd_target is not None:
            stopping = False  # as planned, however briskly it brakes
        least = FELT_CLEARLY if stops.held else 1.0
        if score <= least and not stopping:  # a stop is told even where wide thresholds do not feel it
            self._pending = None
            return None
        if not stopping and (self._pending is not None or stops.braking()):
            if self._pending is None:
                self._pending = time
            if time - self._pending < PENDING and (state.qd_target is not None or not self._outside(self._pending)):
                return None
        return self._raise(time, stopping, signals.arm)

    def _touched_while_it_stops(self, time: float, score: float) -> bool:
        """Whether what is felt is none of the stop that goes on: clear after it has rung, or what stops the arm."""
        stops = self.stops
        assert stops.began is not None
        if score > FELT_CLEARLY and time - stops.began > RINGS:
            return True
        if stops.commanded or time - stops.began > LOOK_BACK:
            return False
        outside = self._outside(stops.began)
        if outside:
            stops.dismiss(time)
        return outside

    def _outside(self, since: float) -> bool:
        """Whether what is felt works against the motion from EARLIER before `since` [s] on: it comes from outside."""
        past = self._past
        seen = past.part(past.since(since - EARLIER, max(past.first, past.count - NEWEST))).samples()
        return from_outside(seen.raw - self.signals.baseline, seen.qd)

    def _cross(self, crossing: Crossing, time: float, residual: Array) -> Event | None:
        """One sample against constant thresholds."""
        changed, self.score = crossing.update(time, residual), crossing.score
        if self._open and self.score > self._peak:
            self._peak, self._highest = self.score, residual
        if not changed:
            return None
        since, crossing.since = crossing.since, None
        self._open = crossing.touching
        if not self._open:
            highest = self._highest.copy()
            self._events[-1] = replace(
                self._events[-1], end_s=time, phase="ended", score=self._peak, peak_nm=highest
            )
            return None
        self._peak, self._highest = self.score, residual
        joint = crossing.joint
        unit = self._unit(joint)
        reason = f"joint {joint}: residual of {residual[joint - 1]:.3g} {unit}, {_times(self.score)} its threshold of "
        reason += f"{crossing.limits.on[joint - 1]:.3g} {unit}"
        event = Event.sample(
            time, joint, residual.copy(), len(self._events) + 1, onset_s=since, score=self.score, reason=reason
        )
        self._events.append(event)
        return event

    def _raise(self, time: float, stopping: bool, arm: Array | None = None) -> Event:
        """Begin an event with this sample; arm (3, n): |arm z| where it counts beside the joints."""
        signals, ratio = self.signals, self.signals.ratio
        self._clear()
        self._noise = signals.sigma.copy()
        past = self._past
        lines = past.lines()
        newest = past.count - 1
        self._first, self._began = newest, newest - self._onset.search(lines, signals.baseline, self._noise)
        for line in lines:
            self._first -= len(line)
        began = past.stamp(self._began)
        channel, joint = divmod(int(ratio.argmax()), ratio.shape[1])
        score = float(ratio[channel, joint])
        if arm is not None and (whole := float(arm.max())) > score:
            channel, joint, score = ARM, int(arm.argmax()) % ratio.shape[1], whole
        slope = score / max(time - began, signals.h)
        kind = early(slope, IMPACT <= channel < ARM)
        masked = True
        wanted, change = self.wanted, self.payload_change
        if stopping:
            kind = Judgement("stop", 0.95, ((kind.kind, 0.05),), 0.0)
            began = self.stops.began if self.stops.began is not None else began
            self._began = past.since(began, self._first)
        elif change is not None and change.start <= time <= change.end:
            kind = Judgement("payload", 0.9, ((kind.kind, 0.1),), 0.0)
        elif wanted is not None and wanted.start <= time <= wanted.end and (ratio / wanted.factor).max() <= 1.0:
            kind = Judgement("wanted", 0.9, ((kind.kind, 0.1),), 0.0)
        else:
            masked = False
        self._base = (signals.baseline if stopping else past.baseline(self._began)).copy()
        added = signals.change - self._base
        event = Event(
            len(self._events) + 1, time, began, kind.kind, joint + 1, float(added[joint]), added, time,
            kind.confidence, (*CHANNELS, "arm")[channel], alternatives=kind.alternatives, masked=masked, peak_nm=added,
            score=score, reason=self._reason(joint, channel, score, time - began, stopping),
        )  # fmt: skip
        self._events.append(event)
        self._open, self._pending = True, None
        past.keep = self._first
        if not stopping:  # the mean before a stop is none of an arm that stands
            signals.hold(self._base, score)
        return event

    def _reason(self, joint: int, channel: int, score: float, seconds: float, stopping: bool) -> str:
        """Why an event is raised, in a sentence."""
        if stopping and score <= 1.0:
            return "the whole arm brakes at once"
        size = f"{_times(score)} its threshold {1e3 * seconds:.0f} ms after the onset"
        if channel == ARM:
            return f"joint {joint + 1}: what the other joints do not explain of it, {size}"
        what = f"{CHANNELS[channel]} of {self.signals.values[channel, joint]:.3g} {self._unit(joint + 1)}"
        return f"joint {joint + 1}: {what}, {size}"

    def _unit(self, joint: int) -> str:
        return "Nm" if self.robot is None else self.robot.unit(joint, "Nm")

    def _follow(self, time: float, score: float, stopping: bool) -> Event | None:
        event, signals = self._events[-1], self.signals
        stopping = stopping and not (self.answered and event.alarm)
        if stopping and event.kind != "stop" and time - event.time_s <= FORERUNNER:
            began = event.onset_s if self.stops.began is None else max(event.onset_s, self.stops.began - EARLIER)
            self._events[-1] = replace(
                event, kind="stop", confidence=0.9, alternatives=((event.kind, 0.1),), masked=True,
                first_kind=event.kind, phase="changed", onset_s=began,
            )  # fmt: skip
            return None
        if stopping and event.kind != "stop":  # the touch ends where the stop begins
            self._finish(self.stops.began if self.stops.began is not None else time)
            return self._raise(time, True)
        if event.kind == "stop":
            if not stopping:
                self._finish(time)
            return self._raise(time, False) if not stopping and self.stops.stopping and score > 1.0 else None
        again = self.answered and score > 1.0 and self._below is not None
        if again and not (signals.ratio[:, event.joint - 1] > OFF).any():
            self._finish(self._below)  # it was over, and another joint feels something
            return self._raise(time, False)
        if not signals.below:
            self._below = None
        elif self._below is None:
            self._below = time
        if signals.over:
            self._finish(self._below)
            return None
        age = time - event.onset_s
        if age > LONG:
            self._finish(None)
            return None
        if self._next < len(REFINED) and age >= REFINED[self._next]:
            self._next += 1
            return self._refine(ended=False)
        if event.masked and event.kind == "wanted":
            wanted = self.wanted
            if wanted is None or (signals.ratio / wanted.factor).max() > 1.0:  # more than was wanted
                self._events[-1] = replace(
                    event, kind="push", masked=False, confidence=0.5, first_kind="wanted", phase="changed"
                )
                return self._events[-1]
        return None

    def _refine(self, ended: bool) -> Event | None:
        """Judge the open event again, or leave it to others; the event if it alarms only now."""
        evidence = Evidence(
            self._events[-1], self._base, self._noise, self.signals.peak, ended,
            self._past.part(self._first, self._began), self._past.part(self._began),
        )  # fmt: skip
        if self.deferred is not None:
            self.deferred.append(evidence)
            return None
        self._events[-1] = event = self.refiner.refine(evidence.gathered())
        return event if event.phase == "changed" else None

    def deliver(self, refined: Event) -> Event | None:
        """Take back an event that was refined elsewhere: as it is now, None where it became something else meanwhile.

        phase "changed" if it alarms only now; one that has ended comes as "refined", and is "ended" in `events`.
        """
        known = self._events[refined.number - 1]
        if known.masked != refined.masked:
            return None
        changed = refined.alarm and not known.alarm and known.end_s is None
        event = replace(
            refined, end_s=known.end_s, score=max(known.score, refined.score), phase="changed" if changed else "refined"
        )
        self._events[refined.number - 1] = event if event.end_s is None else replace(event, phase="ended")
        return event

    def _finish(self, end: float | None) -> None:
        """Close the event; end None: it lasts too long to be watched further."""
        if self._events[-1].kind != "stop" and self._past.keep is not None:
            self._refine(ended=end is not None)
        last = max(self._now, self._events[-1].time_s)
        if end is None:
            self.signals.zero += self.signals.values[LEVEL]
        self._events[-1] = replace(self._events[-1], end_s=last if end is None else end, phase="ended")
        self._open = False
        self.signals.settle()
        self._clear()


def _times(score: float) -> str:
    """How far beyond its threshold, in words."""
    return f"{score:.3g} times" if score >= 1.005 else "just above"
