"""Thresholds for a promised rate of false alarms, learned from motion that nobody touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.laws.detection import CHANGE, CHANNELS, LEVEL, MOVING, REGIMES, TOGETHER
from tangere.observe.detect.margin import arm_signals, margin, single_signals
from tangere.observe.detect.scales import Scales, Watched, scales, spread_of_change, unexplained
from tangere.observe.detect.signals import GAIN, Signals
from tangere.observe.detect.stops import LOOK_BACK, StopWatch, stopped_for_good
from tangere.observe.detect.thresholds import Thresholds
from tangere.observe.drive_model import STANDSTILL, DriveModel
from tangere.types import Array

RATE = 0.1  # 1/h: one false alarm in ten hours
CONFIDENCE = 0.95
# How many times longer than the data the promised interval between false alarms may be: an exponential tail has then
# been followed over log(300) = 5.7 scales beyond what was seen; further is a guess and is said to be.
REACH = 300.0
LEAST_SECONDS = 5.0  # of free motion at all
# s of a joint in a regime from which on its thresholds are learned; below, those of the drive model are kept. A joint
# stands for some tenths of a second at a time, and stiction lets go in a few of these
FEWEST = 5.0
BREAKAWAY = 1.5  # times Coulomb friction that a gear holds at most before it breaks away
# of stiction by which the residual of a standing joint may change, whatever these logs show of it: logs stand for
# seconds, and gears that were loaded creep for longer. Chosen on simulated arms: a fifth of a push that breaks away
CREEPS = 0.1
ABOVE = 1.2  # times the largest value seen, of joints that stand or turn: stiction lets go a few times a minute
# Further share of the thresholds of joints that stand or turn, where little was seen: stops and starts are few, and
# stiction is another one in other postures. A quarter up to ENOUGH hours, then with 1/sqrt(hours). Simulated UR10e,
# tuned on 108 s, on 108 s of other motion (eight arms): turning and standing reached 1.1 of thresholds without it
UNSEEN = 0.25
ENOUGH = 0.03  # h
# Further share of the level of moving joints after LITTLE seconds or less, then with their third power: a model's error
# is another one on other motions, in part because it was fitted to these. Between two points: 108 s of simulated UR10e,
# where the level reached 1.7 of thresholds without it on other motion, and 240 s of a UR3e, where it reached 1.05
UNKNOWN = 0.5
LITTLE = 100.0  # s


@dataclass(frozen=True)
class FreeMotion:
    """Residual (N, n) [Nm] of a motion that nobody touched, with stamps (N,) [s] and velocities (N, n) [rad/s]."""

    time: Array
    residual: Array
    qd: Array
    name: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        for entry in ("time", "residual", "qd"):
            object.__setattr__(self, entry, np.asarray(getattr(self, entry), dtype=np.float64))
        if self.residual.ndim != 2 or self.qd.shape != self.residual.shape:
            raise InvalidValue(f"residual, qd: one shape (N, n), got {self.residual.shape}, {self.qd.shape}")
        if self.time.shape != (len(self.residual),):
            raise InvalidValue(f"time: shape ({len(self.residual)},), got {self.time.shape}")


def watched(motions: Sequence[FreeMotion], gain: float, standstill: float) -> Watched:
    """The signals of all motions, recognised stops left out."""
    parts: list[tuple[Array, ...]] = []
    offset, seconds, stops = 0.0, 0.0, 0
    for k, motion in enumerate(motions):
        found = Signals(motion.residual.shape[1], gain, standstill).rows(motion.time, motion.residual, motion.qd)
        watch = StopWatch(standstill)
        stopping = np.array([watch.update(t, qd) for t, qd in zip(motion.time.tolist(), motion.qd, strict=True)])
        seconds += float(found.h[found.ready].sum())
        stops += int(np.sum(np.diff(stopping[found.ready].astype(int), prepend=0) == 1))
        use = found.ready & ~stopping
        for begin in motion.time[1:][np.diff(stopping.astype(int)) == 1].tolist():  # currents jump before speeds fall
            use &= (motion.time < begin - LOOK_BACK) | (motion.time > begin)
        for_good = stopped_for_good(motion.time, motion.qd, standstill)
        use &= motion.time < (np.inf if for_good is None else for_good - LOOK_BACK)
        stamps = offset + motion.time[use] - motion.time[0]
        parts.append((stamps, found.values[use], found.weights[use], found.jump[use], np.full(len(stamps), k)))
        offset += float(motion.time[-1] - motion.time[0]) + 10.0  # s: logs never share a cluster
    time, values, weights, jump, log = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Watched(time, values, weights, seconds, stops, jump, log.astype(np.int64))


def tune(
    motions: Sequence[FreeMotion],
    rate: float = RATE,
    *,
    gain: float = GAIN,
    drive: DriveModel | None = None,
    confidence: float = CONFIDENCE,
) -> Thresholds:
    """Thresholds that free motion exceeds `rate` times per hour, all joints, regimes and channels together.

    First the spread of each signal, which grows where accelerations jump (`scales`). Then one margin: every part of
    the data is measured by what the others teach, and the tails of that say which thresholds keep the rate, with
    this confidence (`margin`). The promise is one about the whole detector on motion like this one: other speeds,
    payloads and temperatures are not in it.

    motions: whole logs, uncut. gain: K [1/s] of the observer that made the residual. drive: for regimes that the logs
    lack (a joint that never stands); without it these logs must have all. Says in `notes` what the data cannot promise.
    """
    if not (isfinite(rate) and rate > 0.0):
        raise InvalidValue(f"rate: must be positive [1/h], got {rate!r}")
    if not 0.5 <= confidence < 1.0:
        raise InvalidValue(f"confidence: from 0.5 to below 1, got {confidence!r}")
    if not motions:
        raise InvalidValue("tune: at least one log of free motion")
    standstill = STANDSTILL if drive is None else drive.standstill
    seen = watched(motions, gain, standstill)
    if seen.seconds < LEAST_SECONDS or len(seen.time) < 100:
        raise InvalidValue(
            f"too short to learn thresholds from: {seen.seconds:.2g} s of free motion, {LEAST_SECONDS:g} s at least"
        )
    found = scales(seen)
    half = 0.5 * rate / 3600.0  # of the rate for single signals, as much for all joints together
    # moving joints first: what jumps of accelerations add to their thresholds, others have too
    often = np.sum(seen.weights > 0.5, axis=0) * seen.seconds / len(seen.time) >= FEWEST  # (3, n)
    share = float(often[MOVING].sum()) / max(float(often.sum()), 1.0)
    moving = margin(seen, single_signals(seen, often), share * half, confidence)
    reach = moving.levels.reshape(found.still.shape)
    stirs = found.stirred * (np.nan_to_num(reach[:, MOVING]) * found.still[:, MOVING])[:, :, None] ** 2
    further = _further(seen)
    rest = margin(seen, single_signals(seen, often, (stirs, further)), (1.0 - share) * half, confidence)
    reach = np.where(np.isnan(reach), rest.levels.reshape(reach.shape), reach)
    rows, lacking = _rows(seen, found, reach, drive, gain, further)
    jolt = found.stirred * (rows[:, MOVING] ** 2)[:, :, None]
    spread, correlation = spread_of_change(seen, rows[CHANGE] / 4.0)
    level, change, impact, shock = rows
    fastest = np.max([np.nanmax(np.abs(motion.qd), axis=0) for motion in motions], axis=0)
    hours = seen.seconds / 3600.0
    supported = 1.0 / (REACH * hours)
    made = Thresholds(
        level, change, impact, shock, spread, correlation, np.zeros_like(jolt), gain, standstill,
        rate=max(rate, supported), supported=supported, hours=hours, speed=np.maximum(fastest, standstill), jolt=jolt,
        logs=tuple((motion.name, motion.digest) for motion in motions),
    )  # fmt: skip
    z = _together(made, seen)
    whole = margin(seen, arm_signals(seen, z), half, confidence)
    arm = unexplained(z) / whole.levels.reshape(len(CHANNELS), -1)[:, :, None]
    low, high = (float(x) for x in 3600.0 * np.quantile(moving.rates + rest.rates + whole.rates, (0.025, 0.975)))
    peaks = max(moving.peaks, rest.peaks, whole.peaks)
    notes = _notes(seen, len(motions), rate, supported, lacking, drive is None, (low, high), peaks)
    return replace(made, arm=arm, expected=(low, high), notes=tuple(notes))


def _together(made: Thresholds, seen: Watched) -> Array:
    """Signals (N, 4, n), by TOGETHER, as the law multiplies them with Thresholds.arm."""
    bound = np.einsum("ngj,cgj->ncj", seen.weights, made.table)
    grown = np.sqrt(1.0 + np.einsum("nk,cjk->ncj", seen.jump**2, made.jolt) / bound**2)
    scale = np.repeat(np.einsum("ngj,gj->nj", seen.weights, made.scale)[:, None], len(CHANNELS), axis=1)
    scale[:, LEVEL] = bound[:, LEVEL]
    z = seen.values / (scale * grown)
    return np.asarray(z[:, [CHANNELS.index(name) for name in TOGETHER]])


def _further(seen: Watched) -> Array:
    """How much larger (3,) signals may be in each regime than was seen, as a factor: see UNSEEN; 1 of moving joints."""
    hours = seen.seconds * np.mean(seen.weights.max(axis=2), axis=0) / 3600.0
    out = 1.0 + UNSEEN * np.minimum(1.0, np.sqrt(ENOUGH / np.maximum(hours, 1e-9)))
    out[MOVING] = 1.0
    return np.asarray(out)


def _rows(
    seen: Watched, found: Scales, reach: Array, drive: DriveModel | None, gain: float, further: Array
) -> tuple[Array, list[str]]:
    """Thresholds (4 channels, 3 regimes, n) of single signals, and what was not seen long enough, in words."""
    n = seen.values.shape[2]
    rows = found.still * reach
    known = np.zeros_like(rows) if drive is None else Thresholds.of_drive(drive, gain).table
    hidden = np.full(n, np.inf)
    if drive is not None:
        hidden = BREAKAWAY * np.maximum(drive.stiction, drive.coulomb + drive.load * drive.mean_load)
    lacking = []
    for g, regime in enumerate(REGIMES):
        seldom = np.isnan(rows[0, g])
        if np.any(seldom):
            lacking.append(f"joint {', '.join(str(j + 1) for j in np.flatnonzero(seldom))} {regime}")
        mine = seen.weights[:, g] > 0.5
        most = np.max(np.abs(seen.values), axis=0, where=mine[:, None], initial=0.0)  # (4, n)
        rows[:, g] = np.where(seldom, np.maximum(known[:, g], ABOVE * most), rows[:, g])
        if g == MOVING:
            rows[LEVEL, g] *= 1.0 + UNKNOWN * min(1.0, LITTLE / seen.seconds) ** 3
        else:
            for c in (LEVEL, CHANGE):
                # what friction can hide is bounded: no tail reaches beyond a joint that breaks away
                held = np.maximum((1 + c) * hidden, ABOVE * most[c])
                rows[c, g] = np.where(seldom, rows[c, g], np.minimum(rows[c, g], held))
            # and it may hide as much as that of this arm, and creep, whether these logs show it or not
            rows[LEVEL, g] = np.maximum(rows[LEVEL, g], known[LEVEL, g])
            if drive is not None:
                rows[CHANGE, g] = np.maximum(rows[CHANGE, g], CREEPS * drive.stiction)
            rows[:, g] *= further[g]
    # a standing or turning joint of a moving arm is shaken as a moving one is, whether these logs show it or not
    rows[:, 1:] = np.maximum(rows[:, 1:], rows[:, :1])
    rows = np.where(rows > 0.0, rows, rows.max(axis=1)[:, None, :])  # a joint that never moves: as it stands
    if not np.all(rows > 0.0):
        raise InvalidValue("the residual of free motion is exactly zero: these are no measurements")
    return rows, lacking


def _notes(
    seen: Watched, count: int, rate: float, supported: float, lacking: Sequence[str], alone: bool,
    expected: tuple[float, float], peaks: int,
) -> list[str]:  # fmt: skip
    """What is to be said of thresholds."""
    hours = seen.seconds / 3600.0
    logs = "1 log" if count == 1 else f"{count} logs"
    notes = [
        f"learned from {hours:.3g} h of free motion in {logs}, {peaks} independent peaks; held against what was left "
        f"out: {expected[0]:.2g} to {expected[1]:.2g} false alarms per hour (95 %)"
    ]
    if seen.stops:
        notes.append(f"{seen.stops} abrupt stops were left out: they are masked, not promised")
    what = "as while moving or standing" if alone else "from the drive model"
    notes += [f"{word}: hardly seen, thresholds {what}" for word in lacking]
    if rate < supported:
        notes.append(
            f"{rate:g}/h cannot be promised from {hours:.2g} h: at most {supported:.2g}/h; for {rate:g}/h record "
            f"{1.0 / (REACH * rate):.2g} h of free motion at least. Either is extrapolated from peaks: that {rate:g}/h "
            f"holds is shown by {3.0 / rate:.2g} h without a false alarm"
        )
    return notes
