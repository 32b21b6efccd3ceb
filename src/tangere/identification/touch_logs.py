"""From a recording to a motion in Nm: which gain, from where, what was commanded, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.codegen.functions import ANGLE_MAX
from tangere.errors import InvalidValue
from tangere.identification.findings import (
    GRAVITY,
    SLOWEST,
    Finding,
    gravity_findings,
    gravity_slopes,
    sentences,
    slow_stamps,
    target_findings,
    torque_findings,
    unit_findings,
)
from tangere.identification.model import IdentifiedModel
from tangere.identification.samples import LEAST_SAMPLES, Motion, resting
from tangere.logs.columns import RENAME
from tangere.logs.log import Log
from tangere.logs.recordings import Recording
from tangere.model.joint_sizes import typical_gain
from tangere.model.model import Payload
from tangere.robots import Robot
from tangere.types import Array

# Relative standard deviation up to which a gain read from the log goes before that of the arm's data: targets recorded
# with six digits are exact to 1e-3 or better, with four they scatter by per cents.
PRECISE = 0.005
_DISAGREE = 0.02  # relative difference between the log's gain and that used from which on it is said
# Times the gain of the joint's size, either way, that a gain fitted to gravity may be: sizes are some 30 % off, a tool
# of some kg 20 %; another size of arm makes it a third or three times
_PLAUSIBLE = 1.8
_LEAST_SHARE = 0.9  # of the current's variance that gravity and friction must explain before a gain is taken from it
# [Nm] that the target moment must reach to tell a gain. Both targets come from one computation, so that their quotient
# is exact up to the last recorded digit: 1e-6 of 1e-3 Nm is 0.1 %. A joint that carries nothing (the first and often
# the last of a UR on a table) has exactly 0 and tells nothing.
LEAST_MOMENT = 1e-3
# Share of itself by which a target may change during a rest that tells a gain: a controller that holds a pose has the
# same numbers in every sample, one that gives way to a hand changes them by per cents
STILL = 0.02
STILL_MOMENT = 0.02  # [Nm] that may change all the same, with the current of it: a wrist that carries nothing
PARTS = 5  # of a rest, whose means are compared
# standard deviation (relative) above which a gain is reported as not observable
LEAST_PRECISION = 0.02

# fields of a TouchLog that hold what the controller wanted -> columns of the log
TARGETS = {
    "q_des": "q_des", "qd_des": "qd_des", "qdd_des": "qdd_des", "target_moment": "tau_cmd",
    "target_current": "target_current",
}  # fmt: skip


@dataclass(frozen=True)
class TouchLog:
    """A recording as observers and identification take it: torque in Nm, gravity included, and what was commanded."""

    name: str
    motion: Motion  # time, q, qd, tau
    gain: Array  # (n,) Nm/A with which tau was made from currents; nan where the log itself holds torque
    # (n,) where each gain is from: "log" (targets at rest), "model", "arm" (data), "gravity" (fitted), "given",
    # "assumed" (by size); "torque": the log itself holds torque
    source: tuple[str, ...]
    findings: tuple[Finding, ...]  # what is wrong with it, those of the recording first
    payload: Payload | None = None  # what the controller was told of it, where the log says so; not used here
    q_des: Array | None = None  # (N, n) what the controller wanted, where the log has it
    qd_des: Array | None = None
    qdd_des: Array | None = None
    target_moment: Array | None = None  # (N, n) [Nm], gravity included, friction not
    target_current: Array | None = None  # (N, n) [A]

    @property
    def torque(self) -> bool:
        """Whether the log held torque; else currents."""
        return "torque" in self.source

    @property
    def problems(self) -> tuple[str, ...]:
        """The findings as sentences."""
        return sentences(self.findings)

    @property
    def misfit(self) -> tuple[Finding, ...]:
        """Of the findings those that gravity tells: another arm, torques for currents."""
        return tuple(finding for finding in self.findings if finding.kind in (*GRAVITY, "currents"))


def touch_log(
    recording: Recording, robot: Robot, *, model: IdentifiedModel | None = None, gain: ArrayLike | None = None
) -> TouchLog:
    """The motion of a recording with its torques in Nm, from whatever the recording has of these, the first found:

    tau (torque, effort), gravity included; actual_current times the gain; actual_current_as_torque, which UR reports
    without gravity: g(q) is added. Torques are multiplied by the model's scale. Gains, joint by joint: as given; the
    model's, so that its friction keeps its scale; the log's own targets at rest where they are precise; the arm's data;
    a fit of the currents to gravity; by size.
    Velocities are differences of the positions where the log has none. What does not fit the arm is in `findings`.
    """
    log, n = recording.log, robot.dof
    found = [Finding("recording", text) for text in recording.problems]
    q = _column(log, "q", n, recording.name)
    if q is None:
        known = ", ".join(log.columns)
        raise InvalidValue(f"{recording.name}: has no joint positions (q, actual_q); it has {known}; {RENAME}")
    if not (most := float(np.max(np.abs(q), initial=0.0))) <= ANGLE_MAX:
        raise InvalidValue(f"{recording.name}: {most:g} rad is no joint position: look for spikes and wrong columns")
    qd = _column(log, "qd", n, recording.name)
    tau, current = (_column(log, name, n, recording.name) for name in ("tau", "actual_current"))
    period = float(np.median(np.diff(log.time))) if len(log.time) > 1 else 0.0
    if period >= SLOWEST:  # nothing could be watched or learned, and filters would run over hours
        raise InvalidValue(f"{recording.name}: {slow_stamps(period)}")
    found += unit_findings(
        log.time, q, qd, current if tau is None else tau, "currents" if tau is None else "torques"
    )  # fmt: skip
    if qd is None:
        qd = np.gradient(q, log.time, axis=0)
        text = "has no velocities: differences of the positions are used, which are noisier"
        found.append(Finding("velocities", text))
    free = _column(log, "actual_current_as_torque", n, recording.name)
    wanted = {ours: _column(log, name, n, recording.name) for ours, name in TARGETS.items()}
    used, source = np.full(n, np.nan), ("torque",) * n
    if tau is None and current is not None and not (free is not None and _unknown(robot, model, gain)):
        bare = Motion(log.time, q, qd, current)
        used, source, said = _gains(bare, robot, wanted["target_current"], wanted["target_moment"], model, gain)
        found += said
        tau = current * used
    else:
        tau = free + robot.gravity_torque(q) if tau is None and free is not None else tau
        if tau is not None and model is not None and model.scale.shape == (n,):
            tau = tau * model.scale
    if tau is None:
        raise InvalidValue(
            f"{recording.name}: has neither torque (tau, effort, actual_current_as_torque) nor motor current (current, "
            f"actual_current); it has {', '.join(log.columns)}"
        )
    motion = Motion(log.time, q, qd, tau, recording.name, recording.digest)
    found += arm_findings(robot, motion, None if "torque" in source else used)
    if wanted["target_moment"] is not None:
        found += target_findings(robot, q, qd, wanted["target_moment"])
    return TouchLog(recording.name, motion, used, source, tuple(found), _payload(log), **wanted)


def arm_findings(robot: Robot, motion: Motion, gain: Array | None) -> tuple[Finding, ...]:
    """What gravity tells of a log that is not of this arm, or whose currents are torques.

    gain (n,) [Nm/A]: with which the torques were made from currents, None where they are torques themselves.
    """
    told = gravity_findings(robot, [motion], gain)
    found = tuple(finding for finding in told if finding.kind != "no witness")  # short logs are no fault
    if found or gain is None:
        return found
    # a gain fitted to this very log tells nothing
    sizes = np.array([typical_gain(float(peak)) for peak in robot.tau_max])
    return tuple(torque_findings(robot.gravity_torque(motion.q), motion.tau / gain, sizes))


def too_heavy(robot: Robot, mass: float) -> tuple[Finding, ...]:
    """A tool that no joint of the arm could hold stretched out is none: at q = 0 the flange is the whole reach away."""
    reach = float(np.linalg.norm(robot.pose(np.zeros(robot.dof))[:3, 3]))
    most = float(np.max(robot.tau_max)) / (float(np.linalg.norm(robot.model.gravity)) * reach)
    if not mass > most:
        return ()
    text = f"a tool of {mass:.2g} kg is more than a {robot.name} could hold ({most:.2g} kg, stretched out): are the "
    return (Finding("misfit", text + "currents torques, or is it another arm?"),)


def _payload(log: Log) -> Payload | None:
    """What the controller was told of its payload (RTDE: payload, payload_cog), None where nothing or not the same."""
    mass, com = log.get("payload"), log.get("payload_cog")
    if mass is None or mass.ndim != 1 or not np.all(mass == mass[0]) or not mass[0] > 0.0:
        return None
    if com is None or com.shape != (len(mass), 3) or not np.all(np.isfinite(com)) or not np.all(com == com[0]):
        return None
    return Payload(float(mass[0]), np.array(com[0]))


def _column(log: Log, name: str, n: int, where: str) -> Array | None:
    values = log.get(name)
    if values is None:
        return None
    if values.ndim != 2 or values.shape[1] != n:
        raise InvalidValue(f"{where}: {name} has shape {values.shape}, the arm has {n} joints")
    return values


def _unknown(robot: Robot, model: IdentifiedModel | None, gain: ArrayLike | None) -> bool:
    """Whether some gain would have to be guessed."""
    known = robot.drives.gain if model is None else np.where(np.isfinite(model.drive.gain), 1.0, robot.drives.gain)
    return gain is None and not bool(np.all(np.isfinite(known)))


def _gains(
    currents: Motion,
    robot: Robot,
    target_current: Array | None,
    target_moment: Array | None,
    model: IdentifiedModel | None,
    given: ArrayLike | None,
) -> tuple[Array, tuple[str, ...], list[Finding]]:
    """Gains (n,), their sources, and what is to be said about them."""
    n = robot.dof
    if given is not None:
        values = np.array(given, dtype=np.float64)
        if values.shape not in ((), (n,)) or not np.all(np.isfinite(values) & (values > 0.0)):
            raise InvalidValue(f"gain: one number > 0 or {n} of them [Nm/A], got {given!r}")
        return np.broadcast_to(values, (n,)).copy(), ("given",) * n, []
    read, sigma = np.full(n, np.nan), np.full(n, np.nan)
    if target_current is not None and target_moment is not None:
        told = drive_gains(target_current, target_moment, currents.qd)
        read, sigma = told.gain, told.sigma
    precise = np.where(sigma < PRECISE * read, read, np.nan)
    choices = [("log", precise), ("arm", robot.drives.gain), ("log", read)]
    if model is not None:
        choices.insert(0, ("model", model.drive.gain))
    gain, source = np.full(n, np.nan), [""] * n
    for name, values in choices:
        for j in np.flatnonzero(np.isnan(gain) & np.isfinite(values)).tolist():
            gain[j], source[j] = values[j], name
    if np.any(np.isnan(gain)):
        slopes, shares = gravity_slopes(robot, [currents])
        for j in np.flatnonzero(np.isnan(gain)).tolist():
            if shares[j] > _LEAST_SHARE and slopes[j] > 0.0:
                gain[j], source[j] = 1.0 / slopes[j], "gravity"
            else:
                gain[j], source[j] = typical_gain(float(robot.tau_max[j])), "assumed"
    said: list[Finding] = []
    for j in range(n):
        if abs(read[j] - gain[j]) > max(_DISAGREE * gain[j], 3.0 * sigma[j]):
            text = f"joint {j + 1}: the log's targets say {read[j]:.4g} +- {sigma[j]:.2g} Nm/A, the {source[j]}'s gain "
            said.append(Finding("gain", text + f"is {gain[j]:.4g}", j + 1))
    fitted = {j: gain[j] / typical_gain(float(robot.tau_max[j])) for j in range(n) if source[j] == "gravity"}
    strange = [j for j, ratio in fitted.items() if not 1.0 / _PLAUSIBLE < ratio < _PLAUSIBLE]
    if strange:
        shown = ", ".join(f"joint {j + 1} {gain[j]:.3g}" for j in strange)
        usual = ", ".join(f"{gain[j] / fitted[j]:.3g}" for j in strange)
        text = f"gravity of a {robot.name} asks for gains that its drives hardly have: {shown} Nm/A, expected about "
        text += f"{usual}; another arm, another mounting or a heavy tool"
        said.append(Finding("strange gain", text, strange[0] + 1 if len(strange) == 1 else None))
    guessed = [str(j + 1) for j in range(n) if source[j] == "assumed"]
    if guessed:
        text = f"no gain is known for joint {', '.join(guessed)}: assumed by the joint's size, perhaps 30 % off"
        said.append(Finding("gain", text, int(guessed[0]) if len(guessed) == 1 else None))
    return gain, tuple(source), said


@dataclass(frozen=True)
class DriveGains:
    """Nm per A of motor current, joint by joint, with its standard deviation and whether the log could tell it."""

    gain: Array  # (n,) [Nm/A], nan where not observable
    sigma: Array  # (n,) [Nm/A], nan where not observable
    observable: tuple[bool, ...]
    reasons: tuple[str, ...]  # "" where observable, else why not

    def filled(self, known: Array) -> Array:
        """The gains with those of `known` (robot.drives.gain) where the log cannot tell; nan where neither can."""
        return np.where(self.observable, self.gain, known)


def drive_gains(target_current: ArrayLike, target_moment: ArrayLike, qd: ArrayLike) -> DriveGains:
    """Gains from the targets at rest: k = sum(moment current) / sum(current^2), least squares through the origin.

    At rest the controller's target moment is gravity, and its target current is that over the gain: the quotient is
    the gain, exactly what its firmware uses. Only rests count in which both stay as they are (STILL): an arm that is
    guided by hand rests, too, but its targets hold more than gravity. Joints that carry no gravity are reported as not
    observable.

    target_current (N, n) [A], target_moment (N, n) [Nm], qd (N, n) [rad/s]. Samples with anything not finite are
    left out. The standard deviation comes from ten blocks of the samples, since neighbours repeat one another.
    """
    current, moment, speed = (np.asarray(a, dtype=np.float64) for a in (target_current, target_moment, qd))
    if current.ndim != 2 or current.shape != moment.shape or current.shape != speed.shape:
        raise InvalidValue(
            f"target_current, target_moment and qd: one shape (N, n), got {current.shape}, {moment.shape}, "
            f"{speed.shape}"
        )
    n = current.shape[1]
    rest = resting(np.where(np.isfinite(current + moment), speed, np.nan))
    gain, sigma, reasons = np.full(n, np.nan), np.full(n, np.nan), []
    for j in range(n):
        held = rest & _constant(current[:, j], moment[:, j], rest)
        value, error, reason = _one(current[held, j], moment[held, j])
        if np.any(rest) and not np.any(held):
            reason = "the targets change while the arm rests: it gives way, or somebody guides it"
        reasons.append(reason)
        if not reason:
            gain[j], sigma[j] = value, error
    return DriveGains(gain, sigma, tuple(not reason for reason in reasons), tuple(reasons))


def _constant(current: Array, moment: Array, rest: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Samples (N,) of those rests in which both targets (N,) of a joint stay as they are, means over PARTS of it."""
    out = np.zeros(len(rest), dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], rest.astype(np.int8), [0]))))
    for start, end in zip(edges[0::2], edges[1::2], strict=True):
        both = np.stack([current[start:end], moment[start:end]])
        means = np.array([part.mean(axis=1) for part in np.array_split(both, PARTS, axis=1)])
        size = np.abs(means).mean(axis=0)
        least = STILL_MOMENT * size / max(float(size[1]), 1e-12)  # the same share of both
        out[start:end] = bool(np.all(np.ptp(means, axis=0) <= np.maximum(STILL * size, least)))
    return out


def _step(values: Array) -> float:
    """The last decimal place that the values were recorded with."""
    for digits in range(10):  # beyond nine digits rounding is no matter any more
        if np.all(np.round(values, digits) == values):
            return float(10.0**-digits)
    return 0.0


def _one(current: Array, moment: Array) -> tuple[float, float, str]:
    if len(current) == 0:
        return np.nan, np.nan, f"the arm never rests for {LEAST_SAMPLES} samples in a row"
    largest = float(np.abs(moment).max())
    if largest < LEAST_MOMENT:
        reason = f"carries no load at rest: target moment at most {largest:.3g} Nm, {LEAST_MOMENT:g} needed"
        return np.nan, np.nan, reason
    loaded = np.abs(moment) >= LEAST_MOMENT
    current, moment = current[loaded], moment[loaded]
    power = float(current @ current)
    if power == 0.0:
        return np.nan, np.nan, "target current is zero although the joint carries a load"
    value = float(moment @ current) / power
    error = moment - value * current
    blocks = [(b @ c, c @ c) for b, c in zip(np.array_split(error, 10), np.array_split(current, 10), strict=True)]
    sigma = float(np.sqrt(sum(b**2 for b, _ in blocks)) / power)
    sigma = max(sigma, float(np.sqrt(error @ error / len(error) / power)))
    # a pose that is held repeats one rounding error: half a step of the recorded digits does not average out
    rms_current, rms_moment = np.sqrt(power / len(current)), np.sqrt(float(moment @ moment) / len(moment))
    sigma = max(sigma, value * 0.5 * (_step(current) / rms_current + _step(moment) / rms_moment))
    if value <= 0.0:
        return np.nan, np.nan, f"target moment and current have opposite signs (quotient {value:.3g} Nm/A)"
    if sigma > LEAST_PRECISION * value:
        return np.nan, np.nan, f"quotient scatters: {value:.4g} +- {sigma:.2g} Nm/A"
    return value, sigma, ""
