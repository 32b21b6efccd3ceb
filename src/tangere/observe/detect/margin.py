"""The one margin of thresholds: tails of signals on motion that had no part in measuring them.

How high a signal goes once in so many hours is told from less than that many hours of it. Squares of the signals are
looked at: those of normal noise have an exponential tail, and whatever is heavier (shocks, a model's error) shows as a
positive shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, log

import numpy as np
from numpy.typing import NDArray

from tangere.kernels.laws.detection import CHANNELS, MOVING, REGIMES, TOGETHER
from tangere.observe.detect.scales import Watched, scales, unexplained
from tangere.types import Array

Rows = NDArray[np.int64]

# s: exceedances closer together belong to one cluster and count once. Twice the baseline: a residual that went up
# has come down again, or the baseline has followed.
CLUSTER = 1.0
# Shape of the tail of squares. Below 0 it would have an upper end that a few minutes of data pretend to know: taken as
# 0 (normal noise) then. Laplace's distribution looks like 0.2 here; above 0.25 a shape that is fitted from tens of
# clusters is chance, and its return levels explode.
SHAPES = (0.0, 0.25)
PSEUDO = 10.0  # clusters that an expectation counts for: they know a scale within a third
SHAPE_PSEUDO = 100.0  # clusters that "normal noise" counts for: they know a shape to 0.1, a third of what it may be


@dataclass(frozen=True, slots=True)
class Tail:
    """Peaks over a threshold: clusters of exceedances follow a generalised Pareto distribution.

    rate(x) = rate(u) (1 + shape (x - u) / scale)^(-1/shape),   exponential for shape = 0
    """

    threshold: float
    scale: float
    shape: float
    per_second: float  # clusters above the threshold

    def level(self, per_second: float) -> float:
        """What is exceeded at this rate."""
        ratio = self.per_second / per_second
        if ratio <= 1.0:
            return self.threshold
        if self.shape == 0.0:
            return self.threshold + self.scale * log(ratio)
        return self.threshold + self.scale * expm1(self.shape * log(ratio)) / self.shape

    def rate(self, level: float) -> float:
        """How often a level is exceeded [1/s]; below the threshold as often as that."""
        beyond = max(level - self.threshold, 0.0) / self.scale
        if self.shape == 0.0:
            return self.per_second * exp(-beyond)
        return float(self.per_second * (1.0 + self.shape * beyond) ** (-1.0 / self.shape))


def clusters(time: Array, values: Array, threshold: float, apart: float = CLUSTER) -> tuple[Array, Rows]:
    """The largest value of each cluster above the threshold, and its row; clusters are `apart` [s] from each other."""
    above = np.flatnonzero(values > threshold)
    if above.size == 0:
        return np.zeros(0), above
    first = np.flatnonzero(np.diff(time[above], prepend=-np.inf) > apart)
    top = np.maximum.reduceat(values[above], first)
    number = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(above))))
    at = above[values[above] == top[number]]
    return top, at[np.unique(np.searchsorted(above[first], at, side="right"), return_index=True)[1]]


def cluster_maxima(time: Array, values: Array, threshold: float, apart: float = CLUSTER) -> Array:
    """The largest values of `clusters`."""
    return clusters(time, values, threshold, apart)[0]


def fitted(maxima: Array, threshold: float, seconds: float, expected: float) -> Tail:
    """Scale and shape by probability-weighted moments, with PSEUDO further clusters of the scale that is `expected`.

    Few clusters say little: of a scale they say its size to 1/sqrt(n), of a shape hardly its sign. The expectation
    keeps both from being chance, and is outweighed by some tens of clusters.
    """
    n = len(maxima)
    if n == 0:
        return Tail(threshold, expected, 0.0, 1.0 / seconds)
    x = np.sort(maxima - threshold)
    m = float(x.mean())
    rank = (np.arange(n) + 0.65) / n  # Hosking's plotting position for this distribution
    b = float(np.mean(x * (1.0 - rank)))
    shape = 2.0 - m / (m - 2.0 * b) if m > 2.0 * b else SHAPES[1]
    shape = min(max(shape * n / (n + SHAPE_PSEUDO), SHAPES[0]), SHAPES[1])
    mean = (m * n + expected * PSEUDO) / (n + PSEUDO)
    return Tail(threshold, mean * (1.0 - shape), shape, n / seconds)


FOLDS = 5  # parts of the data, each of which is measured by what the others teach; more cost time and change little
# s for each sample beyond which the tail of a signal is looked at: one in 100 at 100 Hz, some tens of clusters in two
# minutes. A share of the samples instead (0.99 at 500 Hz) lets clusters run together, and the largest of so many values
# is taken for the scale of one: thresholds 1.3 times too high
TAIL_EVERY = 1.0
# Scale of the tail of squares beyond their 99 % quantile, in mean squares: 1.7 for normal noise, more for the largest
# value of a cluster
EXPECTED = 2.0
EXPLAINED = 0.01  # least mean square, in squared spreads: jumps of accelerations may explain all of a signal
RESAMPLES = 200  # of the bootstrap: its 95 % quantile then scatters by about a tenth of the spread itself
MANY = 10  # logs from which on they are drawn again as a whole: a model errs alike for all of a log
BLOCK = 5.0  # s that are drawn again together, where there are fewer: far longer than a cluster of peaks
STEPS = 6  # towards the rate at which each signal may exceed its threshold; three are enough for 1 %


@dataclass(frozen=True)
class Signal:
    """One signal's peaks on left-out motion: squares (m,) beyond `threshold`, and which stretch each is of (m,)."""

    threshold: float
    maxima: Array
    stretch: NDArray[np.int64]
    expected: float  # scale of its tail
    sure: bool  # its level is the upper bound of what is drawn again, not the likeliest

    def tail(self, seconds: float, times: NDArray[np.int64] | None = None) -> Tail:
        """Of its peaks, or of peaks as often as `times` says for each stretch."""
        maxima = self.maxima if times is None else np.repeat(self.maxima, times[self.stretch])
        return fitted(maxima, self.threshold, seconds, self.expected)


@dataclass(frozen=True)
class Margin:
    """Levels of signals, nan where too little was seen, in their own units; rates: false alarms per second that each of
    RESAMPLES drawings of the data expects of them; peaks: of the signal with most of them."""

    levels: Array
    rates: Array
    peaks: int


def parts(seen: Watched) -> NDArray[np.int64]:
    """Part (N,) of each sample: logs dealt out in turn; with fewer logs than FOLDS, stretches of equal length."""
    if seen.log[-1] + 1 >= FOLDS:
        return np.asarray(seen.log % FOLDS)
    return np.asarray(np.minimum(np.arange(len(seen.time)) * FOLDS // len(seen.time), FOLDS - 1))


def left_out(seen: Watched, measure: Callable[[Watched, Watched], Array]) -> Array:
    """|measure(others, part)| (N, 4, n) of every part of the data, measured by what the others teach."""
    part = parts(seen)
    out = np.zeros_like(seen.values)
    for k in np.unique(part).tolist():
        mine = part == k
        out[mine] = np.abs(measure(seen.part(~mine) if not mine.all() else seen, seen.part(mine)))
    return out


def single_signals(
    seen: Watched, often: NDArray[np.bool_], jolt: tuple[Array, Array] | None = None
) -> list[Signal | None]:
    """Of each channel, regime and joint, in its spread (Scales); None where a joint is not `often` (3, n) in a regime.

    jolt None: of moving joints alone; given (as Scales.beyond takes them): of the others, how far they go beyond.
    Joints start, stop and turn a few times a minute: what these peaks say is taken on the safe side.
    """
    if jolt is None:
        z = left_out(seen, lambda others, part: scales(others).measured(part))
    else:
        z = left_out(seen, lambda others, part: scales(others).beyond(part, *jolt))
    out: list[Signal | None] = []
    for c in range(len(CHANNELS)):
        for g in range(len(REGIMES)):
            for j in range(z.shape[2]):
                used = often[g, j] and (g == MOVING) == (jolt is None)
                out.append(_signal(seen, z[:, c, j], seen.weights[:, g, j] > 0.5, g != MOVING) if used else None)
    return out


def arm_signals(seen: Watched, z: Array) -> list[Signal | None]:
    """Of all joints together, by TOGETHER and joint: z (N, 4, n) as Thresholds.arm is multiplied with."""
    held = replace(seen, values=z)

    def measure(others: Watched, part: Watched) -> Array:
        return np.asarray(np.einsum("cjk,nck->ncj", unexplained(others.values), part.values))

    x = left_out(held, measure)
    everywhere = np.ones(len(x), dtype=bool)
    return [_signal(seen, x[:, c, j], everywhere, False) for c in range(len(TOGETHER)) for j in range(x.shape[2])]


def margin(seen: Watched, signals: Sequence[Signal | None], rate: float, confidence: float) -> Margin:
    """Levels for `rate` [1/s] of false alarms, all signals together, with that confidence.

    Every signal may exceed its own equally often. Stretches of the data are drawn again RESAMPLES times, and what the
    tails of these say of the levels is how far the promise is known.
    """
    used = [signal for signal in signals if signal is not None]
    if not used:
        return Margin(np.full(len(signals), np.nan), np.zeros(RESAMPLES), 0)
    tails = [signal.tail(seen.seconds) for signal in used]
    rng, number = np.random.default_rng(0), int(_stretches(seen).max()) + 1
    redrawn = []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(0, number, number), minlength=number)
        redrawn.append([signal.tail(seen.seconds, times) for signal in used])
    each = rate / len(used)
    for _ in range(STEPS):
        levels = [
            float(np.quantile([drawn[k].level(each) for drawn in redrawn], confidence)) if s.sure else tail.level(each)
            for k, (s, tail) in enumerate(zip(used, tails, strict=True))
        ]
        totals = np.array([sum(t.rate(level) for t, level in zip(drawn, levels, strict=True)) for drawn in redrawn])
        each *= min(max(rate / float(np.quantile(totals, confidence)), 0.05), 20.0)
    found = iter(np.sqrt(levels).tolist())
    out = np.array([np.nan if signal is None else next(found) for signal in signals])
    return Margin(out, totals, max(len(signal.maxima) for signal in used))


def _stretches(seen: Watched) -> NDArray[np.int64]:
    """What is drawn again as one (N,): a log, or BLOCK seconds of it where there are few."""
    if seen.log[-1] + 1 >= MANY:
        return seen.log
    return np.asarray(np.unique((seen.time / BLOCK).astype(np.int64), return_inverse=True)[1])


def _signal(seen: Watched, values: Array, mine: NDArray[np.bool_], sure: bool) -> Signal:
    square = values[mine] ** 2
    u = float(np.quantile(square, max(0.9, 1.0 - seen.seconds / len(seen.time) / TAIL_EVERY)))
    maxima, at = clusters(seen.time[mine], square, u)
    size = max(float(np.mean(square)), EXPLAINED)
    return Signal(u, maxima, _stretches(seen)[mine][at], EXPECTED * size, sure)
