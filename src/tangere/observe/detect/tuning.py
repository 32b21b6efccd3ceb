"""Thresholds for a promised rate of false alarms, learned from motion that nobody touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, log, sqrt

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.laws.detection import CHANNELS, IMPACT, LEVEL, REGIMES
from tangere.observe.detect.signals import GAIN, Signals
from tangere.observe.detect.stops import StopWatch
from tangere.observe.detect.tail import cluster_maxima, fitted, upper_level
from tangere.observe.detect.thresholds import Thresholds
from tangere.observe.drive_model import STANDSTILL, DriveModel
from tangere.types import Array

RATE = 0.1  # 1/h: one false alarm in ten hours
CONFIDENCE = 0.95
# s for each sample beyond which the tail of a signal is looked at: one in 100 at 100 Hz, some tens of clusters in two
# minutes. A share of the samples instead (0.99 at 500 Hz) lets clusters run together, and the largest of so many values
# is taken for the scale of one: thresholds 1.3 times too high
TAIL_EVERY = 1.0
# How many times longer than the data the promised interval between false alarms may be: an exponential tail has then
# been followed over log(300) = 5.7 scales beyond what was seen; further is a guess and is said to be.
REACH = 300.0
LEAST_SECONDS = 5.0  # of free motion at all
# Correlation between joints is drawn towards none by this share: a few minutes do not tell 15 numbers exactly, and
# the smallest eigenvalue is what the length divides by
SHRINK = 0.1
# s of a joint in a regime from which on its thresholds are learned; below, those of the drive model are kept. A joint
# stands for some tenths of a second at a time, and stiction lets go in a few of these
FEWEST = 5.0
# Scale of the tail of squares beyond their 99 % quantile, in mean squares: 1.7 for normal noise, more for the largest
# value of a cluster
EXPECTED = 2.0
BREAKAWAY = 1.5  # times Coulomb friction that a gear holds at most before it breaks away
ABOVE = 1.2  # times the largest value seen: never less, whatever a tail says
# Further share of the thresholds of the level, and of joints that stand or turn, where little was seen: a model's error
# is another one on other motions, in part because the model was fitted to these, and stiction lets go a few times a
# minute. Half as much again up to ENOUGH hours, then with 1/sqrt(hours). Simulated UR10e, identified and tuned on
# 108 s, on 108 s of other motion (eight arms): the level reached 1.7 of thresholds without it, turning and standing 1.1
UNSEEN = 0.5
ENOUGH = 0.03  # h


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


@dataclass(frozen=True)
class Watched:
    """Signals of free motion, end to end: stamps (N,) that rise over all logs, values (N, 4, n), weights (N, 3, n)."""

    time: Array
    values: Array
    weights: Array
    seconds: float
    stops: int  # how many stops were left out

    @property
    def quantile(self) -> float:
        """Of a signal, beyond which its tail is looked at."""
        return max(0.9, 1.0 - self.seconds / len(self.time) / TAIL_EVERY)


def watched(motions: Sequence[FreeMotion], gain: float, standstill: float) -> Watched:
    """The signals of all motions, recognised stops left out."""
    parts: list[tuple[Array, Array, Array]] = []
    offset, seconds, stops = 0.0, 0.0, 0
    for motion in motions:
        found = Signals(motion.residual.shape[1], gain, standstill).rows(motion.time, motion.residual, motion.qd)
        watch = StopWatch(standstill)
        stopping = np.array([watch.update(t, qd) for t, qd in zip(motion.time.tolist(), motion.qd, strict=True)])
        seconds += float(found.h[found.ready].sum())
        stops += int(np.sum(np.diff(stopping[found.ready].astype(int), prepend=0) == 1))
        use = found.ready & ~stopping
        parts.append((offset + motion.time[use] - motion.time[0], found.values[use], found.weights[use]))
        offset += float(motion.time[-1] - motion.time[0]) + 10.0  # s: logs never share a cluster
    times, values, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Watched(times, values, weights, seconds, stops)


def tune(
    motions: Sequence[FreeMotion],
    rate: float = RATE,
    *,
    gain: float = GAIN,
    drive: DriveModel | None = None,
    confidence: float = CONFIDENCE,
) -> Thresholds:
    """Thresholds that free motion exceeds `rate` times per hour, all joints, regimes and channels together.

    Peaks over a threshold, clusters counted once: first a tail for each signal, then, with all signals
    divided by theirs, one generalised Pareto tail of the largest of each channel, whose upper confidence bound is the
    factor that its thresholds get. The promise is one about the whole detector on motion like this one: other speeds,
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
    n = seen.values.shape[2]
    hourly = rate / 3600.0 / (len(CHANNELS) * len(REGIMES) * n)
    rows, lacking = _single(seen, hourly, drive, gain)
    spread, correlation = _spread(seen, rows)
    t = np.maximum(np.einsum("ngj,cgj->ncj", seen.weights, rows), 1e-9)
    scores = np.swapaxes((np.abs(seen.values) / t).max(axis=2), 0, 1)
    share = rate / 3600.0 / (2 * len(CHANNELS) - 1)  # each channel, alone and arm, may use up an equal part of the rate
    factors, peaks = zip(*(_factor(seen, score, share, confidence) for score in scores), strict=True)
    hours = seen.seconds / 3600.0
    supported = 1.0 / (REACH * hours)
    logs = "1 log" if len(motions) == 1 else f"{len(motions)} logs"
    notes = [f"learned from {hours:.3g} h of free motion in {logs}, {max(peaks)} independent peaks"]
    if seen.stops:
        notes.append(f"{seen.stops} abrupt stops were left out: they are masked, not promised")
    what = "as while moving or standing" if drive is None else "from the drive model"
    notes += [f"{word}: hardly seen, thresholds {what}" for word in lacking]
    if rate < supported:
        notes.append(
            f"{rate:g}/h cannot be promised from {hours:.2g} h: at most {supported:.2g}/h; for {rate:g}/h record "
            f"{1.0 / (REACH * rate):.2g} h of free motion"
        )
    rows = rows * np.array(factors)[:, None, None] * _margins(seen)
    level, change, impact, shock = rows
    none = np.zeros((len(CHANNELS) - 1, n, n))
    fastest = np.max([np.nanmax(np.abs(motion.qd), axis=0) for motion in motions], axis=0)
    found = Thresholds(
        level, change, impact, shock, spread, correlation, none, gain, standstill,
        rate=max(rate, supported), supported=supported, hours=hours, speed=np.maximum(fastest, standstill),
        logs=tuple((motion.name, motion.digest) for motion in motions), notes=tuple(notes),
    )  # fmt: skip
    scale = np.einsum("ngj,gj->nj", seen.weights, found.scale)
    arm = [_arm(seen, seen.values[:, c] / scale, hourly, share, confidence) for c in range(1, len(CHANNELS))]
    return replace(found, arm=np.array(arm))


def _arm(seen: Watched, z: Array, hourly: float, share: float, confidence: float) -> Array:
    """A (n, n) such that free motion makes some |A z| exceed 1 at the promised rate; z: one channel over its scale.

        x = z / std(z),   R = E[x x^T],   row j of A z = (R^-1 x)_j / sqrt((R^-1)_jj) / threshold_j

    For normal noise this is the likelihood ratio of a push on joint j alone against none.
    """
    scale = np.sqrt(np.mean(z * z, axis=0))
    z = z / scale
    inverse = np.linalg.inv((1.0 - SHRINK) * (z.T @ z / len(z)) + SHRINK * np.eye(len(scale)))
    A = inverse / np.sqrt(np.diag(inverse))[:, None]
    alone = np.abs(z @ A.T)
    limits = np.array([_level(seen, seen.time, column, hourly) for column in alone.T])
    factor, _ = _factor(seen, (alone / limits).max(axis=1), share, confidence)
    return np.asarray(A / scale / (factor * limits)[:, None])


def _margins(seen: Watched) -> Array:
    """Factors (4, 3, 1) of the thresholds for what the data are too short to show."""
    out = np.ones((len(CHANNELS), len(REGIMES), 1))
    hours = np.array([seen.seconds * float(np.mean(seen.weights[:, g].max(axis=1))) for g in range(3)]) / 3600.0
    more = UNSEEN * np.minimum(1.0, np.sqrt(ENOUGH / np.maximum(hours, 1e-9)))
    out[:, 1:] += 0.5 * more[1:, None]  # bounded by friction: half of it
    out[LEVEL] = 1.0 + more[0]
    return out


def _factor(seen: Watched, score: Array, per_second: float, confidence: float) -> tuple[float, int]:
    """What the thresholds of a channel are multiplied by so that its score exceeds 1 at this rate; and its peaks."""
    square = score * score
    u = float(np.quantile(square, seen.quantile))
    maxima = cluster_maxima(seen.time, square, u)
    # with single thresholds that hold their share of the rate, score = 1 is reached at that rate: the scale expected
    expected = max(1.0 - u, 0.1) / log(max(len(maxima) / seen.seconds / per_second, 3.0))
    factor = sqrt(upper_level(maxima, u, seen.seconds, expected, per_second, confidence))
    return max(factor, ABOVE * float(score.max())), len(maxima)


def _level(seen: Watched, time: Array, values: Array, per_second: float) -> float:
    """What one signal in one regime exceeds at this rate."""
    square = values * values
    u = float(np.quantile(square, seen.quantile))
    tail = fitted(cluster_maxima(time, square, u), u, seen.seconds, EXPECTED * float(np.mean(square)))
    return sqrt(tail.level(per_second))


def _single(seen: Watched, hourly: float, drive: DriveModel | None, gain: float) -> tuple[Array, list[str]]:
    """Thresholds (4 channels, 3 regimes, n) of single signals, and what was not seen long enough, in words."""
    n = seen.values.shape[2]
    rows = np.zeros((len(CHANNELS), len(REGIMES), n))
    known = None if drive is None else Thresholds.of_drive(drive, gain).table
    hidden = np.full(n, np.inf)
    if drive is not None:
        hidden = BREAKAWAY * np.maximum(drive.stiction, drive.coulomb + drive.load * drive.mean_load)
    short: list[str] = []
    for g in range(3):
        lacking = []
        for j in range(n):
            mine = seen.weights[:, g, j] > 0.5
            enough = int(mine.sum()) * seen.seconds / len(mine) >= FEWEST
            if not enough:
                lacking.append(str(j + 1))
            for c in range(len(CHANNELS)):
                x = np.abs(seen.values[mine, c, j])
                if enough:
                    rows[c, g, j] = _level(seen, seen.time[mine], x, hourly)
                    # what friction can hide is bounded: no tail reaches beyond a joint that breaks away
                    if g > 0 and c < IMPACT:
                        rows[c, g, j] = min(rows[c, g, j], max((1 + c) * hidden[j], ABOVE * float(x.max())))
                elif known is not None:
                    rows[c, g, j] = max(known[c, g, j], ABOVE * x.max(initial=0.0))
        if lacking:
            short.append(f"joint {', '.join(lacking)} {REGIMES[g]}")
    # a standing or turning joint of a moving arm is shaken as a moving one is, whether these logs show it or not
    rows[:, 1:] = np.maximum(rows[:, 1:], rows[:, :1])
    rows = np.where(rows > 0.0, rows, rows.max(axis=1)[:, None, :])  # a joint that never moves: as it stands
    if not np.all(rows > 0.0):
        raise InvalidValue("the residual of free motion is exactly zero: these are no measurements")
    return rows, short


def _spread(seen: Watched, rows: Array) -> tuple[Array, Array]:
    """Standard deviation (3, n) of the change in each regime, and its correlation between joints."""
    n = seen.values.shape[2]
    change = seen.values[:, 1, :]
    spread = np.empty((3, n))
    for g in range(3):
        for j in range(n):
            x = change[seen.weights[:, g, j] > 0.5, j]
            enough = len(x) >= 100 and np.any(x)
            spread[g, j] = np.sqrt(np.mean(x * x)) if enough else rows[1, g, j] / 4.0
    z = change / np.einsum("ngj,gj->nj", seen.weights, spread)
    R = z.T @ z / len(z)
    d = np.sqrt(np.diag(R))
    R = R / np.outer(d, d)
    return spread, (1.0 - SHRINK) * R + SHRINK * np.eye(n)
