"""Extremes: how high a signal goes once in so many hours, from less than that many hours of it.

Squares of the signals are looked at: those of normal noise have an exponential tail, and whatever is heavier (shocks, a
model's error) shows as a positive shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, log

import numpy as np
from numpy.typing import NDArray

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
