"""Pushes injected into free motion, many at once: when the detector would have raised an alarm.

A torque s(t) from outside changes a residual by the observer's answer to it, whatever else is in the residual: the
observer is linear in the torque. So a push is injected by tau <- tau - s and costs one short replay per onset, shared
by all joints and sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.observe.detect import Thresholds
from tangere.observe.detect.rule import scores
from tangere.types import Array

LEAD = 1.0  # s before an onset that are replayed: settling, and three time constants of the mean before
FOUND_WITHIN = 0.4  # s after the onset: later it is no detection of this push
DEAD = 1.0  # s after an alarm in which nothing counts as another one

Observer = Callable[[slice, Array], Array]  # rows of a log and what is added to their tau (m, n): the residual (m, n)


@dataclass(frozen=True)
class Injected:
    """Steps injected at one onset: delay (copies,) [s], inf where not found; quiet: no alarm before."""

    onset: float
    delay: Array
    quiet: bool
    moving: NDArray[np.bool_]  # (n,) which joints moved at the onset


def alarms(time: Array, score: Array, factors: Array) -> NDArray[np.int64]:
    """How many alarms a score (N,) raises against each of the factors (f,), DEAD seconds apart at least.

    A score that stays above raises one every DEAD seconds: lower factors have more alarms, never fewer.
    """
    counts = np.zeros(len(factors), dtype=np.int64)
    for i, factor in enumerate(factors.tolist()):
        last = -np.inf
        for t in time[score > factor].tolist():
            if t - last > DEAD:
                counts[i] += 1
                last = t
    return counts


def onsets(time: Array, every: float, rng: np.random.Generator) -> list[int]:
    """Rows of a log at which something may be injected: one in every `every` seconds, at random within it."""
    first, last = float(time[0]) + LEAD, float(time[-1]) - FOUND_WITHIN
    drawn = [t + rng.uniform(0.0, every) for t in np.arange(first, last, every)]
    return [int(np.searchsorted(time, t)) for t in drawn if t < last]


def inject(
    thresholds: Thresholds,
    time: Array,
    residual: Array,
    qd: Array,
    observer: Observer,
    row: int,
    copies: Sequence[tuple[int, float]],
) -> Injected | None:
    """Steps (joint from 1, torque [Nm]) from `row` on, each in a copy of its own; None beside a gap or a bad sample.

    residual, qd (N, n): of the free log. observer(rows, added) gives the residual of these rows with added torque.
    """
    onset = float(time[row])
    rows = slice(int(np.searchsorted(time, onset - LEAD)), int(np.searchsorted(time, onset + FOUND_WITHIN)) + 1)
    free, speeds, stamps = residual[rows], qd[rows], time[rows]
    if not np.all(np.isfinite(free)) or not np.all(np.isfinite(speeds)):
        return None
    n = free.shape[1]
    unit = np.where(stamps[:, None] > onset, -1.0, 0.0) * np.ones(n)
    answer = observer(rows, unit) - observer(rows, np.zeros_like(unit))
    answer = np.where(np.isfinite(answer), answer, 0.0)  # the first row, where a replay has none; no push acts there
    pushed = np.repeat(free[:, None, :], len(copies), axis=1)
    for c, (joint, torque) in enumerate(copies):
        pushed[:, c, joint - 1] += torque * answer[:, joint - 1]
    score = scores(thresholds, stamps, pushed, speeds)
    after = stamps > onset
    before = score[~after]
    late = score[after] > 1.0
    first = np.argmax(late, axis=0)
    delay = np.where(late.any(axis=0), stamps[after][first] - onset, np.inf)
    at = int(np.argmax(after))
    around = np.abs(speeds[at : at + max(2, int(np.sum(after)) // 5)])
    moving = np.all(around > thresholds.standstill, axis=0)
    return Injected(onset, delay, not bool(np.any(before[np.isfinite(before)] > 1.0)), moving)


def ladder(peak: Array, count: int = 11) -> Array:
    """Sizes (count, n) [Nm] from 1 % to 32 % of the joints' peak torque, each 1.41 times the one before."""
    return np.asarray(0.01 * np.sqrt(2.0) ** np.arange(count)[:, None] * peak)
