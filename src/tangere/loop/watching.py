"""Watching a log for touches: what is believed of the arm, the residual, and the events that it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, ModelFileError
from tangere.identification import IdentifiedModel, identify, momentum_residual, prior_drive
from tangere.identification.findings import gravity_findings, promised_at
from tangere.identification.prior import friction_share
from tangere.identification.touch_logs import TouchLog, too_heavy, touch_log
from tangere.identification.touched_spans import enough_free, touched, untouched
from tangere.logs.recordings import Recording
from tangere.model.model import Payload
from tangere.observe.detect import Detector, Event, FreeMotion, PayloadChange, Thresholds, Wanted, tune
from tangere.observe.drive_model import DriveModel
from tangere.observe.friction_state import FrictionState, without_friction_state
from tangere.observe.isolation import ContactIsolator
from tangere.robots import Robot
from tangere.types import Array, State

TICK = 1e-9  # s: sums of stamps and delays must not miss a sample by their rounding
SHORTEST = 0.5  # s: the first 0.3 s settle, and an event needs some samples before it
# kg by which what the controller was told may differ from the model's payload before it is said: a few screws
PAYLOAD_TOLD = 0.2
# Times the thresholds of impact and shock where nobody tuned them: a controller that misses a sample makes jolts that
# only free motion of the same arm shows; on a UR3e six times what friction leaves unknown. A touch is then found by its
# change, some 10 ms later.
JOLTS = 6.0
# s of free motion from which on the thresholds that it teaches stand alone; below, a share of the untuned ones remains:
# a few seconds of one motion know nothing of the next (a UR10e tuned on 5.5 s felt a touch at every turn elsewhere)
ENOUGH = 60.0
LEAST_MOVED = 3  # joints that must have moved in a log before friction and payload are learned from it
LEAST_TOOL = 0.05  # kg below which a tool that a log tells of is none
FRICTION_OFF = 0.5  # of the type's friction that a log must be off before it counts: so much do arms of a type differ
_ROWS = ("level", "change", "impact", "shock", "spread")  # of Thresholds, by regime and joint
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Belief:
    """What observer and detector believe of an arm: the model that a log is held against."""

    robot: Robot  # with payload, and rotor inertia in its mass matrix
    drive: DriveModel
    thresholds: Thresholds
    model: IdentifiedModel | None  # None: data sheet and friction prior alone
    notes: tuple[str, ...] = ()  # where it comes from and what it cannot promise, in sentences

    @property
    def tuned(self) -> bool:
        """Whether the thresholds promise a rate of false alarms."""
        return self.thresholds.tuned


@dataclass(frozen=True)
class Traces:
    """What the detector looked at, sample by sample (N, n) [Nm]; nan where nothing was watched."""

    level: Array
    change: Array
    level_bound: Array  # thresholds as the regime of each joint has them
    change_bound: Array


@dataclass(frozen=True)
class Watched:
    """One log with its residual and events."""

    log: TouchLog
    belief: Belief
    residual: Array  # (N, n) Nm, friction's memory taken off, nan where there is none
    seconds: float  # that were watched: without the start, gaps and what settles after them
    events: tuple[Event, ...]
    traces: Traces
    said: tuple[str, ...] = ()  # sentences beyond the log's own problems

    @property
    def alarms(self) -> tuple[Event, ...]:
        """Events that a reaction would have been told of."""
        return tuple(event for event in self.events if event.alarm)


@dataclass(frozen=True)
class Tuned:
    """What tuning leaves: a model that holds thresholds, and what its own logs look like with them."""

    model: IdentifiedModel
    thresholds: Thresholds
    logs: tuple[Watched, ...]  # the free logs, watched with the new thresholds
    doubts: tuple[str, ...]  # sentences: logs that do not look free, logs that the model was identified from


def belief(robot: Robot, model: IdentifiedModel | None = None, *, payload: Payload | None = None) -> Belief:
    """The arm as an identified (and tuned) model says it is, or as its data sheet and a friction prior do.

    robot: the arm by its data, with its mounting; payload: what is mounted now, None: what model or robot say.
    Thresholds: those of the model file, else from the uncertainty of the drive model.
    """
    notes: list[str] = [] if model is None else list(model.doubts)
    if model is None:
        drive = prior_drive(robot)
        notes.append("no model: gains from log or data sheet, friction as of other arms, thresholds accordingly wide")
        known = robot.model
    else:
        if model.name != robot.name:
            raise ModelFileError(f"the model is one of a {model.name}, the arm is said to be a {robot.name}")
        drive = model.drive
        known = model.model(robot.model)
        if drive.dof != robot.dof:
            raise ModelFileError(f"the model has {drive.dof} joints, {robot.name} has {robot.dof}")
    if payload is not None:
        known = dataclasses.replace(known, payload=payload)
    believed = Robot(known, drive.rotor_inertia)
    if model is not None and model.detection:
        thresholds = Thresholds.from_table(dict(model.detection), "detection")
        notes += thresholds.notes
    else:
        thresholds = untuned(robot, drive)
        if model is not None:
            notes.append("the model holds no thresholds: `tangere tune` learns them from free motion")
    return Belief(believed, drive, thresholds, model, tuple(notes))


def untuned(robot: Robot, drive: DriveModel) -> Thresholds:
    """Thresholds that no free motion has set: as wide as friction of this type of arm is unknown.

    What is left of the logs that a model was identified from is not what another day leaves: gears are warmer, and
    motions others. So also an identified model has the thresholds of its type until it is tuned.
    """
    prior = prior_drive(robot)
    wide = dataclasses.replace(
        drive, spread=np.maximum(drive.spread, prior.spread), stiction=np.maximum(drive.stiction, prior.stiction)
    )
    found = Thresholds.of_drive(wide)
    return dataclasses.replace(found, impact=JOLTS * found.impact, shock=JOLTS * found.shock)


def learned(log: TouchLog, robot: Robot) -> tuple[TouchLog, Belief]:
    """Without a model: friction and what is mounted as this log itself tells them, robustly, on top of the prior.

    A touch is short and of another shape than friction and gravity, and the prior holds against it. A log that is too
    short or moves too little tells nothing: then the prior alone is believed. Returns the log with its torque in the
    gains that go with it.
    """
    plain, said = with_stated_payload(with_own_friction(belief(robot), log), log)
    # of another arm, or of torques taken for currents, nothing is to be learned; a slope that is merely off is friction
    told = (*log.misfit, *gravity_findings(plain.robot, [log.motion], None if log.torque else log.gain))
    if any("would fit" in text or "look like" in text for text in told):
        return log, dataclasses.replace(plain, notes=(*plain.notes, *said))
    base = Robot(plain.robot.model)  # identification adds the rotors itself
    inertial: Literal["payload", "none"] = "payload" if base.model.payload is None else "none"
    out, _ = touched(base, log.motion)  # friction is not learned from what looks like a touch
    free = dataclasses.replace(log.motion, tau=np.where(out[:, None], np.nan, log.motion.tau))
    try:
        found = identify(base, [free], inertial=inertial, gain=None if log.torque else log.gain)
    except InvalidValue:
        return log, dataclasses.replace(plain, notes=(*plain.notes, *said))
    if sum(found.moved) < LEAST_MOVED:
        return log, dataclasses.replace(plain, notes=(*plain.notes, *said))
    bare = found.payload is None or inertial == "none" or found.payload.mass < LEAST_TOOL
    tool = "" if bare or found.payload is None else f" and a tool of {found.payload.mass:.2g} kg"
    note = f"no model: friction{tool} learned from this log itself, thresholds of the arm's type; `tangere identify` "
    note += "and `tangere tune` with free motion do better"
    if not bare and found.payload is not None:
        said = (*said, *too_heavy(base, found.payload.mass))
    motion = dataclasses.replace(log.motion, tau=log.motion.tau * found.scale)
    drive = _as_moved(found.drive, plain.drive, prior_drive(robot), np.array(found.moved))
    believed = Belief(found.robot(base), drive, untuned(robot, drive), None, (note, *said))
    return dataclasses.replace(log, motion=motion, gain=log.gain * found.scale), believed


def _as_moved(drive: DriveModel, known: DriveModel, prior: DriveModel, moved: NDArray[np.bool_]) -> DriveModel:
    """Of a joint that did not move a log tells no friction: that of the type, so that creeping is no push.

    Less of it where `known` has less (a simulated arm), never more: stiction of a creeping joint looks like friction.
    """
    terms = {}
    for name in ("coulomb", "viscous", "quadratic", "load"):
        usual = getattr(prior, name)
        least = np.where(np.abs(getattr(known, name)) < np.abs(usual), getattr(known, name), usual)
        terms[name] = np.where(moved, getattr(drive, name), least)
    return dataclasses.replace(drive, **terms)


def with_own_friction(believed: Belief, log: TouchLog) -> Belief:
    """Without a model: the friction of the arm's type, as much of it as the log shows; thresholds stay the type's.

    Friction that is taken off and is not there looks like a push all along: simulated arms have none.
    """
    if believed.model is not None:
        return believed
    drive = believed.drive
    rigid = Robot(believed.robot.model)
    share = friction_share(Robot(rigid.model, drive.rotor_inertia), drive, log.motion)
    if np.all(np.abs(share - 1.0) < FRICTION_OFF):
        return believed
    share = np.where(np.abs(share - 1.0) < FRICTION_OFF, 1.0, share)
    terms = {name: share * getattr(drive, name) for name in ("coulomb", "viscous", "quadratic", "load")}
    note = "friction of the arm's type, times what this log shows of it: " + ", ".join(f"{s:.1f}" for s in share)
    return dataclasses.replace(believed, drive=dataclasses.replace(drive, **terms), notes=(*believed.notes, note))


def read(
    recording: Recording, robot: Robot, model: IdentifiedModel | None = None, payload: Payload | None = None
) -> TouchLog:
    """The recording in Nm; the gains of the log, or of the model if there is one. payload: as belief's."""
    return touch_log(recording, robot if model is None else belief(robot, model, payload=payload).robot, model=model)


def with_stated_payload(believed: Belief, log: TouchLog) -> tuple[Belief, tuple[str, ...]]:
    """The payload that the controller was told of counts where nobody else says one; and what is to be said."""
    stated, known = log.payload, believed.robot.model.payload
    if stated is None:
        return believed, ()
    if known is None:
        robot = Robot(dataclasses.replace(believed.robot.model, payload=stated), believed.robot.rotor_inertia)
        said = f"the log states a payload of {stated.mass:.3g} kg: it is taken as mounted"
        return dataclasses.replace(believed, robot=robot), (said,)
    if abs(stated.mass - known.mass) > PAYLOAD_TOLD:
        return believed, (
            f"the log states a payload of {stated.mass:.3g} kg, the model has {known.mass:.3g} kg: the model's is used",
        )
    return believed, ()


class Watcher:
    """A detector with its masks and isolation, sample by sample: what watch and follow have in common.

    What friction remembers (FrictionState) is taken off the residual before; during an event nothing is learned of it.
    """

    def __init__(
        self,
        believed: Belief,
        *,
        wanted: Sequence[Wanted] = (),
        payload_changes: Sequence[PayloadChange] = (),
        isolate: bool = True,
    ) -> None:
        isolator = ContactIsolator(believed.robot) if isolate else None
        self.detector = Detector(
            believed.thresholds, robot=believed.robot, isolator=isolator, stiction=believed.drive.stiction
        )
        self._state, self._last = FrictionState(believed.drive), -np.inf
        self._wanted, self._payload = tuple(wanted), tuple(payload_changes)
        # between the windows thresholds are as ever, and nothing begins as wanted; what began so and still fades is
        # not an alarm before it exceeds them
        self._none = Wanted(np.ones(believed.robot.dof), np.inf, np.inf)
        self.seconds = 0.0  # watched so far
        self.residual = np.full(believed.robot.dof, np.nan)  # (n,) Nm that the detector was given last

    def step(self, state: State, residual: Array) -> Event | None:
        """As Detector.update; masks are those that hold at this time."""
        detector, time = self.detector, state.time
        if self._wanted:
            detector.wanted = next((mask for mask in self._wanted if mask.start <= time <= mask.end), self._none)
        if self._payload:
            detector.payload_change = next((mask for mask in self._payload if mask.start <= time <= mask.end), None)
        signals = detector.signals
        self.residual = residual = self._state.update(time - self._last, residual, state.qd, hold=signals.frozen)
        self._last = time
        event = detector.update(state, residual)
        if signals.ready and isfinite(residual[0]):
            self.seconds += signals.h
        return event


def watch(
    log: TouchLog,
    believed: Belief,
    *,
    wanted: Sequence[Wanted] = (),
    payload_changes: Sequence[PayloadChange] = (),
    isolate: bool = True,
    progress: Progress = lambda share: None,
) -> Watched:
    """Replay a log through observer and detector. time_s is the stamp of the sample that completed the evidence."""
    motion, drive = log.motion, believed.drive
    time = motion.time
    duration = float(time[-1] - time[0])
    if duration < SHORTEST:
        raise InvalidValue(f"{log.name}: too short to watch: {duration:.3g} s, {SHORTEST:g} s needed at least")
    residual = momentum_residual(believed.robot, drive, motion, believed.thresholds.gain)
    watcher = Watcher(believed, wanted=wanted, payload_changes=payload_changes, isolate=isolate)
    # without the controller's own velocities everywhere a stop is told from the measured ones
    target = log.qd_des if log.qd_des is not None and bool(np.all(np.isfinite(log.qd_des))) else None
    signals, thresholds = watcher.detector.signals, believed.thresholds
    followed = np.empty_like(residual)
    values, bounds = np.full((2, *motion.q.shape), np.nan), np.full((2, *motion.q.shape), np.nan)
    both = np.stack((thresholds.level, thresholds.change))
    before = float(time[0])
    for k, t in enumerate(time.tolist()):
        wanted_qd = None if target is None else target[k]
        watcher.step(State(t, t - before, motion.q[k], motion.qd[k], motion.tau[k], qd_target=wanted_qd), residual[k])
        before = t
        followed[k] = watcher.residual
        if signals.ready:
            values[:, k] = signals.values[:2]
            bounds[:, k] = (both * signals.weights).sum(axis=1) * watcher.detector.excess**2
        if k % 200 == 0:
            progress(k / len(time))
    progress(1.0)
    events = watcher.detector.events
    late = np.minimum(np.searchsorted(time, [e.time_s + drive.delay - TICK for e in events]), len(time) - 1)
    events = tuple(dataclasses.replace(e, time_s=float(time[k])) for e, k in zip(events, late, strict=True))
    traces = Traces(values[0], values[1], bounds[0], bounds[1])
    said = promised_at(thresholds, time)
    if not watcher.seconds:
        said = (*said, "nothing could be watched: samples lie further apart than 0.1 s, or only gaps")
    return Watched(log, believed, followed, watcher.seconds, events, traces, said)


def free_motion(drive: DriveModel, log: TouchLog, residual: Array) -> FreeMotion:
    """What thresholds are learned from: the residual (N, n) [Nm] of a free log as `watch` hands it to the detector."""
    motion = log.motion
    followed = without_friction_state(drive, motion.time, residual, motion.qd)
    return FreeMotion(motion.time, followed, motion.qd, log.name, motion.digest)


def tuning(
    robot: Robot,
    logs: Sequence[TouchLog],
    believed: Belief,
    rate: float,
    *,
    progress: Progress = lambda share: None,
) -> Tuned:
    """Learn thresholds from free logs for a promised rate of false alarms [1/h], and look at the logs with them.

    What clearly looks touched in them is left out (untouched), and refused where that is most of them.

    robot: the arm by its data. believed: of an identified model; its own thresholds, if any, are not used.
    """
    model = believed.model
    if model is None:
        raise InvalidValue("tune: needs an identified model, `tangere identify` makes one")
    if not logs:
        raise InvalidValue("tune: at least one log of free motion")
    drive, wide = believed.drive, belief(robot, dataclasses.replace(model, detection={})).thresholds
    gain = wide.gain
    doubts: list[str] = []
    left_out = 0.0
    motions, beliefs = [], []
    bare = dataclasses.replace(believed, thresholds=wide)
    for k, log in enumerate(logs):
        own, _ = with_stated_payload(bare, log)
        beliefs.append(own)
        residual = momentum_residual(own.robot, drive, log.motion, gain)
        if float(np.ptp(log.motion.time)) >= SHORTEST:
            free, said = untouched(watch(log, own, isolate=False))
            residual, doubts = np.where(free[:, None], residual, np.nan), doubts + said
            left_out += float(np.diff(log.motion.time)[~free[1:]].sum())
        motions.append(free_motion(drive, log, residual))
        progress(0.4 * (k + 1) / len(logs))
    enough_free(sum(float(np.ptp(log.motion.time)) for log in logs), left_out)
    doubts += _identified_from(model, logs)
    thresholds = _held_up(tune(motions, rate, gain=gain, drive=drive), wide)
    period = float(np.median(np.concatenate([np.diff(log.motion.time) for log in logs])))
    thresholds = dataclasses.replace(thresholds, sampled=1.0 / period)
    progress(0.6)
    watched = []
    for k, (log, own) in enumerate(zip(logs, beliefs, strict=True)):
        if float(np.ptp(log.motion.time)) >= SHORTEST:
            watched.append(watch(log, dataclasses.replace(own, thresholds=thresholds), isolate=False))
        progress(0.6 + 0.4 * (k + 1) / len(logs))
    written = dataclasses.replace(model, detection=thresholds.to_table())
    return Tuned(written, thresholds, tuple(watched), tuple(doubts))


def _held_up(tuned: Thresholds, wide: Thresholds) -> Thresholds:
    """Thresholds from little motion, not below the share of the untuned ones that the missing seconds leave."""
    share = 1.0 - 3600.0 * tuned.hours / ENOUGH
    if share <= 0.0:
        return tuned
    # jolts these logs have shown, so that what was kept for those that nobody has seen is not
    floor = {name: share / (JOLTS if name in ("impact", "shock") else 1.0) * getattr(wide, name) for name in _ROWS}
    rows = {name: np.maximum(getattr(tuned, name), floor[name]) for name in _ROWS}
    note = f"{3600.0 * tuned.hours:.0f} s of free motion are little: at least {100.0 * share:.0f} % of the thresholds "
    note += f"of an arm that nobody tuned were kept; {ENOUGH:.0f} s need none of them"
    return dataclasses.replace(tuned, **rows, notes=(*tuned.notes, note))


def _identified_from(model: IdentifiedModel, logs: Sequence[TouchLog]) -> list[str]:
    used = {(name.partition(" (")[0], digest) for name, digest in model.logs}
    same = [log for log in logs if (log.name, log.motion.digest) in used]
    if not same:
        return []
    what = "all" if len(same) == len(logs) else f"{len(same)} of {len(logs)}"
    return [
        f"{what} of these logs were used to identify the model: its residual on them is smaller than on new motion; "
        "thresholds from other logs are worth more"
    ]
