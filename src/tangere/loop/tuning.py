"""Tuning: thresholds learned from free logs for a promised rate of false alarms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, momentum_residual
from tangere.identification.belief import JOLTS, Belief, belief, with_stated_payload
from tangere.identification.findings import Finding, sentences
from tangere.identification.touch_logs import TouchLog
from tangere.identification.touched_spans import before_stops, enough_free, untouched
from tangere.loop.watching import SHORTEST, Watched, alarms, watch
from tangere.observe.detect import FreeMotion, Thresholds, tune
from tangere.observe.drive_model import DriveModel
from tangere.observe.friction_state import without_friction_state
from tangere.robots import Robot
from tangere.types import Array

# [s] of free motion from which on the thresholds that it teaches are used alone. Below it a share of the untuned ones
# remains: a few seconds of one motion know nothing of the next (a UR10e tuned on 5.5 s felt a touch at every turn)
ENOUGH = 60.0
# Times the untuned threshold of impacts, jolts aside, below which theirs does not fall before that: a few moves hardly
# show a jolt. A UR3e tuned on one to four of its runs (10 to 50 s): of some 670 looks at its other runs 117 went beyond
# a threshold without this, 18 so, 11 with 2 (chosen on these)
UNSEEN_JOLTS = 1.5
# Times the thresholds from logs that the model was identified from: what it leaves of them is less than what it leaves
# of others. Halves of 40 runs of a UR3e, joint by joint: rms of the other half 1.02 to 1.05 times that of the own one
OWN = 1.05
_ROWS = ("level", "change", "impact", "shock", "spread")  # of Thresholds, by regime and joint
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Tuned:
    """What tuning leaves: a model that holds thresholds, and what its own logs look like with them."""

    model: IdentifiedModel
    thresholds: Thresholds
    logs: tuple[Watched, ...]  # the free logs, watched with the new thresholds
    findings: tuple[Finding, ...]  # logs that do not look free, logs that the model was identified from

    @property
    def doubts(self) -> tuple[str, ...]:
        """The findings as sentences."""
        return sentences(self.findings)


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
    doubts: list[Finding] = []
    left_out = 0.0
    motions, beliefs = [], []
    bare = dataclasses.replace(believed, thresholds=wide)
    running = before_stops([log.motion for log in logs])
    for k, (log, (cut, stopped)) in enumerate(zip(logs, running, strict=True)):
        doubts += [finding.of(log.name) for finding in stopped]
        own, _ = with_stated_payload(bare, log)
        beliefs.append(own)
        residual = momentum_residual(own.robot, drive, log.motion, gain)
        if float(np.ptp(log.motion.time)) >= SHORTEST:
            free, said = untouched(log.name, log.motion.time, alarms(log, own))
            residual, doubts = np.where(free[:, None], residual, np.nan), doubts + said
            left_out += float(np.diff(log.motion.time)[~free[1:]].sum())
        if cut.free is not None:
            residual = np.where(cut.free[:, None], residual, np.nan)
        motions.append(free_motion(drive, log, residual))
        progress(0.4 * (k + 1) / len(logs))
    enough_free(sum(float(np.ptp(log.motion.time)) for log in logs), left_out)
    own_logs, said = _identified_from(model, logs)
    doubts += said
    thresholds = _held_up(_unseen(tune(motions, rate, gain=gain, drive=drive), own_logs), wide)
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
    # jolts these logs have shown, so that what was kept for those that nobody has seen is not; of impacts some is
    floor = {name: share / (JOLTS if name == "shock" else 1.0) * getattr(wide, name) for name in _ROWS}
    floor["impact"] = UNSEEN_JOLTS / JOLTS * wide.impact
    rows = {name: np.maximum(getattr(tuned, name), floor[name]) for name in _ROWS}
    note = f"{3600.0 * tuned.hours:.0f} s of free motion are little: at least {100.0 * share:.0f} % of the thresholds "
    note += f"of an arm that nobody tuned were kept; {ENOUGH:.0f} s need none of them"
    return dataclasses.replace(tuned, **rows, notes=(*tuned.notes, note))


def _unseen(tuned: Thresholds, own: float) -> Thresholds:
    """Thresholds for motion that the model has not seen; own: share of the logs that it has."""
    wider = tuned.scaled(1.0 + (OWN - 1.0) * own)
    return dataclasses.replace(wider, rate=tuned.rate, supported=tuned.supported)


def _identified_from(model: IdentifiedModel, logs: Sequence[TouchLog]) -> tuple[float, list[Finding]]:
    """Which share of the logs the model was identified from, and what is to be said of it."""
    used = {(name.partition(" (")[0], digest) for name, digest in model.logs}
    same = [log for log in logs if (log.name.partition(" (")[0], log.motion.digest) in used]
    if not same:
        return 0.0, []
    what = "all" if len(same) == len(logs) else f"{len(same)} of {len(logs)}"
    text = f"{what} of these logs were used to identify the model: its residual on them is smaller than on new motion; "
    said = Finding("own logs", text + "thresholds from other logs are worth more")
    return len(same) / len(logs), [said]
