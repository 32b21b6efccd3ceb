"""Identification of a set of recordings to the end: read, turned into torque, split, identified, judged."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion, identify
from tangere.identification.belief import untuned
from tangere.identification.findings import GRAVITY, Finding, gravity_findings
from tangere.identification.free_run import FreeRun, twin
from tangere.identification.identify_motions import Inertial, judged
from tangere.identification.prior import USUAL_SPEED, prior_drive, type_friction
from tangere.identification.recorder import momentum_residual
from tangere.identification.touch_logs import TARGETS, TouchLog, touch_log
from tangere.identification.touched_spans import Span, before_stops, surely_touched, touched, without
from tangere.logs.recordings import Recording, all_recordings
from tangere.model.model import Payload
from tangere.observe.detect.detector import Detector
from tangere.observe.detect.replay import detect
from tangere.observe.drive_model import STANDSTILL
from tangere.observe.friction_state import without_friction_state
from tangere.robots import Robot
from tangere.types import Array, Event

HOLD_OUT = 0.25  # share of the logs (or of the time of one log) that judge and are not used, where nobody says
WORSE = 1.1  # times the rms before from which on a model is called worse: below, both are equally good
LEAST_MOTION = 1.0  # [s] in which some joint moves, for a log to teach or to judge: what identification needs at least
BEYOND = 3.0  # times the most torque of a joint, from which on a sample is no torque: a spike, a broken line of a file
ABSURD = 100.0  # times the most torque of a joint, that half of a log's samples have: no arm, Nmm perhaps
FEW = 0.01  # share of a log's samples that may be so: more are no spikes but another unit, of which findings tell
# Residual rms while moving against the friction of such an arm at a usual speed, from which on something acts all along
# (0.02 to 0.2 on recordings of free arms), in how many joints at least: single gears are rough
HELD = 0.5
LEAST_HELD = 2
MORE = 0.5  # times its share of the motion, that the end of a single log may have more or less of it to judge
LEAST_TO_SPLIT = 12.0  # [s] of a single log below which all of it is used: a quarter less would cost more than it tells


@dataclass(frozen=True)
class Identification:
    """The model, and what a report shows of how it came about."""

    model: IdentifiedModel
    robot: Robot  # what it started from, with its payload
    used: tuple[TouchLog, ...]
    judges: tuple[TouchLog, ...]  # logs that were not used; those that were, where there are no others
    gain: Array  # (n,) as read, before gravity refined it; nan for torques
    source: tuple[str, ...]  # (n,) where it comes from
    payload_from: str  # "", "given" or "log"
    twin: dict[str, FreeRun]

    @property
    def judged(self) -> list[Motion]:
        """The motions of the judges, in the torque of the model."""
        return [_scaled(log.motion, self.model.scale) for log in self.judges]


def identification(
    robot: Robot,
    sources: Sequence[str | Recording],
    *,
    columns: str | None = None,
    rate: float | None = None,
    gain: Sequence[float] | None = None,
    hold_out: str | float | None = None,
    inertial: Inertial = "links",
    refine_gains: bool = True,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> Identification:
    """Identify `robot` from files (as `recordings` takes them: FILE.csv, FILE.mcap, FILE.npz:GLOB) or recordings.

    hold_out: share of the logs that only judge (0 for none), or names of them with commas between (globs allowed).
    A single log is split in time. A payload that all logs state (RTDE) is taken where the robot has none.
    """
    read = all_recordings(
        sources, columns=columns, rate=rate, progress=lambda what, share: progress(what, 0.25 * share)
    )
    robot, payload_from = _with_payload(robot, read, inertial)
    logs = [possible(robot, touch_log(recording, robot, gain=gain)) for recording in read]
    if len({log.torque for log in logs}) > 1:
        raise InvalidValue("logs of one kind: some hold torques, others currents; identify from one kind at a time")
    used, judges = split(logs, hold_out)
    gains, origin = _one_gain(used)
    if not used[0].torque:
        used, judges = ([_with_gain(log, gains) for log in part] for part in (used, judges))
    refuse_units(robot, used, None if used[0].torque else gains)

    def fit(used: Sequence[TouchLog], judges: Sequence[TouchLog]) -> IdentifiedModel:
        return identify(
            robot,
            [log.motion for log in used],
            inertial=inertial,
            gain=None if used[0].torque else gains,
            held_out=[log.motion for log in judges],
            refine_gains=refine_gains,
            progress=lambda share: progress("identifying", 0.25 + 0.65 * share),
        )

    model, used, judges, touches = _free_fit(robot, used, judges, fit)
    # what gravity tells identify itself says, of all logs together
    said = [finding.of(log.name) for log in logs for finding in log.findings if finding.kind not in GRAVITY]
    said += touches
    said += [*_held(robot, model), *_worse(model)]
    model = dataclasses.replace(model, findings=tuple(dict.fromkeys([*model.findings, *said])))
    progress("running the twin", 0.92)
    shown = tuple(judges) or tuple(used)
    runs = twin(model, robot, [_scaled(log.motion, model.scale) for log in shown])
    progress("done", 1.0)
    return Identification(model, robot, tuple(used), shown, gains, origin, payload_from, runs)


def _free_fit(
    robot: Robot,
    used: list[TouchLog],
    judges: list[TouchLog],
    fit: Callable[[Sequence[TouchLog], Sequence[TouchLog]], IdentifiedModel],
) -> tuple[IdentifiedModel, list[TouchLog], list[TouchLog], list[Finding]]:
    """The model of what looks free in the logs, judged on what looks free; the logs so, and what is said of them.

    Before a model is known, the friction of each log itself shows what does not belong (touched). The model then shows
    the rest, in the judges as well (alarms_left): it is fitted once more where it had learned from a touch.
    """

    def left(log: TouchLog) -> tuple[Span, ...]:
        alarms = alarms_left(robot, model, _scaled(log.motion, model.scale))
        return surely_touched(alarms, float(log.motion.time[-1]))

    (used, stopped), (judges, more) = _running(used), _running(judges)
    early = [touched(robot, log.motion) for log in used]
    model = fit(_without(used, early), judges)
    late, of_judges = ([left(log) for log in part] for part in (_without(used, early), judges))
    used = _without(used, [a + b for a, b in zip(early, late, strict=True)])
    judges = _without(judges, of_judges)
    if any(late):
        model = fit(used, judges)
    elif any(of_judges):
        model = judged(model, robot, [log.motion for log in judges])
    said = [finding.of(log.name) for log in (*used, *judges) for finding in log.findings if finding.kind == "touched"]
    return model, used, judges, [*stopped, *more, *said]


def _running(logs: list[TouchLog]) -> tuple[list[TouchLog], list[Finding]]:
    """The logs without those that end in a stop, and what is said of these."""
    cut = before_stops([log.motion for log in logs])
    said = [finding.of(log.name) for log, (_, found) in zip(logs, cut, strict=True) for finding in found]
    kept = [
        dataclasses.replace(log, motion=motion)
        for log, (motion, _) in zip(logs, cut, strict=True)
        if motion.free is None or np.any(motion.free)
    ]
    return kept, said


def _without(logs: Sequence[TouchLog], spans: Sequence[tuple[Span, ...]]) -> list[TouchLog]:
    """The logs, of which some stretches do not count any more, and a finding that says so."""
    parts = [(log, *without(log.motion, own)) for log, own in zip(logs, spans, strict=True)]
    return [dataclasses.replace(log, motion=free, findings=(*log.findings, *found)) for log, free, found in parts]


def alarms_left(robot: Robot, model: IdentifiedModel, motion: Motion) -> tuple[Event, ...]:
    """Alarms that a log (in the torque of the model) gives with the model and the thresholds of an arm of this type.

    Not the model's own thresholds: a push on a standing arm has become its stiction.
    """
    believed, prior = model.robot(robot), prior_drive(robot)
    thresholds = untuned(robot, prior)
    residual = momentum_residual(believed, model.drive, motion, thresholds.gain)
    residual = without_friction_state(model.drive, motion.time, residual, motion.qd)
    detector = Detector(thresholds, robot=believed, stiction=prior.stiction)
    events = detect(detector, motion.time, residual, motion.q, motion.qd, motion.tau)
    return tuple(event for event in events if event.alarm)


def possible(robot: Robot, log: TouchLog) -> TouchLog:
    """The log without samples whose torque no drive of this arm has, and with a sentence about them."""
    with np.errstate(invalid="ignore"):
        out = np.any(np.abs(log.motion.tau) > BEYOND * robot.tau_max, axis=1)
    if not np.any(out) or np.mean(out) > FEW:
        return log
    j = int(np.argmax(np.nanmax(np.abs(log.motion.tau[out]), axis=0) / robot.tau_max))
    most = float(np.nanmax(np.abs(log.motion.tau[out, j])))
    count = "1 sample" if out.sum() == 1 else f"{out.sum()} samples"
    said = f"{count} left out as impossible: up to {most:.3g} Nm in joint {j + 1}, whose drive has {robot.tau_max[j]:g}"
    return dataclasses.replace(_part(log, ~out), findings=(*log.findings, Finding("impossible", said, j + 1)))


def refuse_units(robot: Robot, logs: Sequence[TouchLog], gain: Array | None) -> None:
    """Raise where logs are certainly in other units than they are said to be: nothing is to be learned from them."""
    for log in logs:
        for finding in log.findings:
            if finding.kind in ("units", "zero"):
                raise InvalidValue(f"{log.name}: {finding}; no model was made")
        size = np.median(np.abs(log.motion.tau), axis=0) / robot.tau_max
        if np.any(size > ABSURD):
            j = int(np.argmax(size))
            most = robot.tau_max[j]
            text = f"{size[j] * most:.3g} Nm in joint {j + 1} (median), whose drive has {most:g}"
            raise InvalidValue(f"{log.name}: torques of {text}: another column, or another unit; no model was made")
    for finding in gravity_findings(robot, [log.motion for log in logs], gain):
        if finding.kind == "currents":
            raise InvalidValue(f"{finding}; no model was made: say so in --columns (current, or torque)")
        if finding.kind == "sign":
            raise InvalidValue(f"{finding}; no model was made: turn the sign of these columns")


def _held(robot: Robot, model: IdentifiedModel) -> list[Finding]:
    """Whether something acts on the arm all along: what the model leaves is then of the size of friction itself."""
    usual, _ = type_friction(robot.model)
    left = model.after / (usual["coulomb"] + USUAL_SPEED * usual["viscous"])
    with np.errstate(invalid="ignore"):
        much = np.flatnonzero((left > HELD) & np.array(model.moved))
    if len(much) < LEAST_HELD:
        return []
    shown = ", ".join(f"joint {j + 1} {model.after[j]:.3g} Nm" for j in much)
    text = f"much is left that no model of the arm explains ({shown}, as much as friction itself): a hand on the arm "
    text += "all along, or something that changes; friction was learned from it too, and the model is worth little"
    return [Finding("held", text, int(much[0]) + 1 if len(much) == 1 else None)]


def _worse(model: IdentifiedModel) -> list[Finding]:
    """Joints whose torque the model predicts worse than the arm's data did."""
    worse = [j for j in range(len(model.after)) if model.after[j] > WORSE * model.before[j]]
    if not worse:
        return []
    shown = ", ".join(f"joint {j + 1} {model.after[j]:.3g} Nm instead of {model.before[j]:.3g}" for j in worse)
    what = "logs that were not used" if model.unseen else "its own logs"
    text = f"the model is worse than the arm's data on {what}: {shown}; look at the logs before using it"
    return [Finding("worse", text, worse[0] + 1 if len(worse) == 1 else None)]


def split(logs: Sequence[TouchLog], hold_out: str | float | None) -> tuple[list[TouchLog], list[TouchLog]]:
    """Logs that are used, and logs that judge; every k-th that moves, so that both are from the whole recording.

    Of a single log its last part judges: by time, or by the motion in it where the log stands long at one end. Where
    fewer than two of several logs move, all are used and none judges.
    """
    share: float
    try:
        share = HOLD_OUT if hold_out is None else float(hold_out)
    except ValueError:
        return _by_name(logs, [name.strip() for name in str(hold_out).split(",")])
    if not 0.0 <= share < 1.0:
        raise InvalidValue(f"--holdout: a share from 0 to below 1, or names of logs, got {hold_out!r}")
    if share == 0.0:
        return list(logs), []
    if len(logs) == 1:
        time = logs[0].motion.time
        if hold_out is None and time[-1] - time[0] < LEAST_TO_SPLIT:
            return list(logs), []
        at = int(np.searchsorted(time, time[-1] - share * (time[-1] - time[0])))
        moved = np.cumsum(np.any(np.abs(logs[0].motion.qd) > STANDSTILL, axis=1))  # samples so far
        if abs(moved[-1] - moved[at] - share * moved[-1]) > MORE * share * moved[-1]:  # it stands long at one end
            at = int(np.searchsorted(moved, (1.0 - share) * moved[-1]))
        return [_part(logs[0], slice(0, at), "used part")], [_part(logs[0], slice(at, None), "rest")]
    # logs that hardly move teach nothing and judge nothing: those that do are divided, one at least is used
    lively = [k for k, log in enumerate(logs) if _moves(log)]
    if len(lively) < 2:
        return list(logs), []
    step = max(2, round(1.0 / share))
    judging = set(lively[::step])
    return [log for k, log in enumerate(logs) if k not in judging], [logs[k] for k in sorted(judging)]


def _moves(log: TouchLog) -> bool:
    """Whether a log moves at least one joint long enough to be identified from."""
    motion = log.motion
    period = float(np.median(np.diff(motion.time))) if len(motion.time) > 1 else 0.0
    return bool(np.any(np.sum(np.abs(motion.qd) > STANDSTILL, axis=0) * period > LEAST_MOTION))


def _by_name(logs: Sequence[TouchLog], names: Sequence[str]) -> tuple[list[TouchLog], list[TouchLog]]:
    for name in names:
        if not any(fnmatch.fnmatchcase(log.name, name) for log in logs):
            known = ", ".join(log.name for log in logs[:8]) + (" ..." if len(logs) > 8 else "")
            raise InvalidValue(f"--holdout: no log is called {name!r}; there are {known}")
    judges = [log for log in logs if any(fnmatch.fnmatchcase(log.name, name) for name in names)]
    used = [log for log in logs if log not in judges]
    if not used:
        raise InvalidValue("--holdout: no log is left to identify from; name fewer logs")
    return used, judges


def _part(log: TouchLog, rows: slice | NDArray[np.bool_], name: str = "") -> TouchLog:
    motion = log.motion.rows(rows, f"{log.motion.name} ({name})" if name else log.motion.name)
    wanted = {name: getattr(log, name) for name in TARGETS}
    cut: dict[str, Any] = {name: None if values is None else values[rows] for name, values in wanted.items()}
    return dataclasses.replace(log, name=motion.name, motion=motion, **cut)


def _with_payload(robot: Robot, read: Sequence[Recording], inertial: str) -> tuple[Robot, str]:
    if robot.model.payload is not None:
        return robot, "given"
    if inertial == "payload":
        return robot, ""
    stated: list[Payload | None] = [touch_log(recording, robot).payload for recording in read]
    first = stated[0] if stated else None
    if first is None or any(
        p is None or p.mass != first.mass or not np.array_equal(p.com, first.com) for p in stated
    ):  # fmt: skip
        return robot, ""
    return Robot(dataclasses.replace(robot.model, payload=first), robot.rotor_inertia), "log"


def _one_gain(logs: Sequence[TouchLog]) -> tuple[Array, tuple[str, ...]]:
    """One set of gains for all logs: the one read from targets goes before data, data before guesses."""
    order = ("given", "model", "log", "arm", "gravity", "assumed", "torque")
    n = len(logs[0].gain)
    gain, source = np.empty(n), [""] * n
    for j in range(n):
        best = min((log.source[j] for log in logs), key=order.index)
        gain[j] = np.median([log.gain[j] for log in logs if log.source[j] == best])
        source[j] = best
    return gain, tuple(source)


def _with_gain(log: TouchLog, gain: Array) -> TouchLog:
    if np.array_equal(log.gain, gain):
        return log
    motion = dataclasses.replace(log.motion, tau=log.motion.tau * (gain / log.gain))
    return dataclasses.replace(log, motion=motion, gain=gain)


def _scaled(motion: Motion, scale: Array) -> Motion:
    return dataclasses.replace(motion, tau=motion.tau * scale)
