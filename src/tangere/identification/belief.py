"""What is believed of an arm before it is watched: its model, its drives, its thresholds."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, ModelFileError
from tangere.identification import IdentifiedModel, identify, prior_drive
from tangere.identification.findings import ALIEN, Finding, gravity_findings, sentences
from tangere.identification.prior import friction_share
from tangere.identification.touch_logs import TouchLog, too_heavy, touch_log
from tangere.identification.touched_spans import AROUND, outside, touched
from tangere.logs.recordings import Recording
from tangere.model.model import Payload
from tangere.observe.detect import Thresholds
from tangere.observe.drive_model import DriveModel
from tangere.robots import Robot

# [kg] by which what the controller was told may differ from the model's payload before it is said: a few screws
PAYLOAD_TOLD = 0.2
# Times the thresholds of impact and shock where nobody tuned them: a controller that misses a sample makes jolts that
# only free motion of the same arm shows; on a UR3e six times what friction leaves unknown. A touch is then found by its
# change, some 10 ms later.
JOLTS = 6.0
LEAST_MOVED = 3  # joints that must have moved in a log before friction and payload are learned from it
LEAST_TOOL = 0.05  # [kg] below which a tool that a log tells of is none
# [s] of a log from which on friction and tool are learned from it: 2 s of a UR3e that moves one way show neither
LEARNED_FROM = 3.0
# Times the level of an arm's type as long as nothing was learned: a tool that nobody mentioned is a level from the
# first sample on. Of 15 runs of a UR3e with a tool 7 alarmed without it in their first seconds, up to 1.5 times
UNKNOWN_TOOL = 2.0
FRICTION_OFF = 0.5  # of the type's friction that a log must be off before it counts: so much do arms of a type differ


@dataclass(frozen=True)
class Belief:
    """What observer and detector believe of an arm: the model that a log is held against."""

    robot: Robot  # with payload, and rotor inertia in its mass matrix
    drive: DriveModel
    thresholds: Thresholds
    model: IdentifiedModel | None  # None: data sheet and friction prior alone
    findings: tuple[Finding, ...] = ()  # where it comes from and what it cannot promise

    @property
    def notes(self) -> tuple[str, ...]:
        """The findings as sentences."""
        return sentences(self.findings)

    @property
    def tuned(self) -> bool:
        """Whether the thresholds promise a rate of false alarms."""
        return self.thresholds.tuned


def belief(robot: Robot, model: IdentifiedModel | None = None, *, payload: Payload | None = None) -> Belief:
    """The arm as an identified (and tuned) model says it is, or as its data sheet and a friction prior do.

    robot: the arm by its data, with its mounting; payload: what is mounted now, None: what model or robot say.
    Thresholds: those of the model file, else from the uncertainty of the drive model.
    """
    said = [] if model is None else [Finding("doubt", text) for text in model.doubts]
    if model is None:
        drive = prior_drive(robot)
        text = "no model: gains from log or data sheet, friction as of other arms, thresholds accordingly wide"
        said.append(Finding("belief", text))
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
        said += [Finding("belief", text) for text in thresholds.notes]
    else:
        thresholds = untuned(robot, drive)
        if model is not None:
            text = "the model holds no thresholds: `tangere tune` learns them from free motion"
            said.append(Finding("belief", text))
    return Belief(believed, drive, thresholds, model, tuple(said))


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
    short or moves too little tells nothing: then the prior alone is believed, with a level that has room for a tool.
    Returns the log with its torque in the gains that go with it.
    """
    plain, said = with_stated_payload(with_own_friction(belief(robot), log), log)
    # of another arm, or of torques taken for currents, nothing is to be learned; a slope that is merely off is friction
    told = (*log.misfit, *gravity_findings(plain.robot, [log.motion], None if log.torque else log.gain))
    found = None
    base = Robot(plain.robot.model)  # identification adds the rotors itself
    inertial: Literal["payload", "none"] = "payload" if base.model.payload is None else "none"
    if not any(finding.kind in ALIEN for finding in told) and np.ptp(log.motion.time) >= LEARNED_FROM:
        # friction is not learned from what looks like a touch
        count = outside(log.motion.time, touched(base, log.motion), AROUND)
        free = dataclasses.replace(log.motion, tau=np.where(count[:, None], log.motion.tau, np.nan))
        with suppress(InvalidValue):
            found = identify(base, [free], inertial=inertial, gain=None if log.torque else log.gain)
    if found is None or sum(found.moved) < LEAST_MOVED:
        wide = dataclasses.replace(plain.thresholds, level=UNKNOWN_TOOL * plain.thresholds.level)
        return log, dataclasses.replace(plain, thresholds=wide, findings=(*plain.findings, *said))
    bare = found.payload is None or inertial == "none" or found.payload.mass < LEAST_TOOL
    tool = "" if bare or found.payload is None else f" and a tool of {found.payload.mass:.2g} kg"
    note = f"no model: friction{tool} learned from this log itself, thresholds of the arm's type; `tangere identify` "
    note += "and `tangere tune` with free motion do better"
    if not bare and found.payload is not None:
        said = (*said, *too_heavy(base, found.payload.mass))
    motion = dataclasses.replace(log.motion, tau=log.motion.tau * found.scale)
    drive = _as_moved(found.drive, plain.drive, prior_drive(robot), np.array(found.moved))
    believed = Belief(found.robot(base), drive, untuned(robot, drive), None, (Finding("belief", note), *said))
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
    text = "friction of the arm's type, times what this log shows of it: " + ", ".join(f"{s:.1f}" for s in share)
    said = Finding("belief", text)
    return dataclasses.replace(believed, drive=dataclasses.replace(drive, **terms), findings=(*believed.findings, said))


def read(
    recording: Recording, robot: Robot, model: IdentifiedModel | None = None, payload: Payload | None = None
) -> TouchLog:
    """The recording in Nm; the gains of the log, or of the model if there is one. payload: as belief's."""
    return touch_log(recording, robot if model is None else belief(robot, model, payload=payload).robot, model=model)


def with_stated_payload(believed: Belief, log: TouchLog) -> tuple[Belief, tuple[Finding, ...]]:
    """The payload that the controller was told of counts where nobody else says one; and what is to be said."""
    stated, known = log.payload, believed.robot.model.payload
    if stated is None:
        return believed, ()
    if known is None:
        robot = Robot(dataclasses.replace(believed.robot.model, payload=stated), believed.robot.rotor_inertia)
        said = f"the log states a payload of {stated.mass:.3g} kg: it is taken as mounted"
        return dataclasses.replace(believed, robot=robot), (Finding("payload", said),)
    if abs(stated.mass - known.mass) > PAYLOAD_TOLD:
        text = f"the log states a payload of {stated.mass:.3g} kg, the model has {known.mass:.3g} kg"
        return believed, (Finding("payload", f"{text}: the model's is used"),)
    return believed, ()


def believed_of(
    recording: Recording, robot: Robot, believed: Belief, payload: Payload | None = None
) -> tuple[TouchLog, Belief, tuple[Finding, ...]]:
    """A recording in Nm, what is believed of the arm for it, and what is to be said of that.

    With a model: it, and the payload that the log states. Without one: friction as the log itself tells it.
    """
    log = read(recording, robot, believed.model, payload)
    if believed.model is None:
        log, own = learned(log, robot)
        return log, own, own.findings
    own, said = with_stated_payload(believed, log)
    return log, own, said
