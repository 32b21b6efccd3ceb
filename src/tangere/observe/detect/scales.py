"""How large each signal of free motion is: its spread, which grows where accelerations jump."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.kernels.laws.detection import CHANGE, CHANNELS, LEVEL, MOVING, REGIMES, SHOCK
from tangere.types import Array

# Correlation between joints is drawn towards none by this share: a few minutes do not tell 15 numbers exactly, and
# the smallest eigenvalue is what the length divides by
SHRINK = 0.1
STIRRED = (LEVEL, CHANGE, SHOCK)  # channels that jumps of the acceleration widen: an impact makes such jumps itself
ROUNDS = 60  # of the fit of a spread: its numbers then change by less than 1 %
MOST = 5000  # samples that it looks at: neighbours tell the same
LEAST = 100  # samples of a joint in a regime from which on a spread is taken from them


@dataclass(frozen=True)
class Watched:
    """Signals of free motion, end to end: stamps (N,) that rise over all logs, values (N, 4, n), weights (N, 3, n).

    jump (N, n) [rad/s2]: of the accelerations; log (N,): number of the motion that a sample is of.
    """

    time: Array
    values: Array
    weights: Array
    seconds: float
    stops: int  # how many stops were left out
    jump: Array
    log: NDArray[np.int64]

    def part(self, rows: NDArray[np.bool_]) -> Watched:
        """Some of the samples."""
        seconds = self.seconds * float(np.mean(rows))
        return Watched(self.time[rows], self.values[rows], self.weights[rows], seconds, self.stops, self.jump[rows],
                       self.log[rows])  # fmt: skip


@dataclass(frozen=True)
class Scales:
    """What signals are measured in before their tails are looked at.

    still (4, 3, n) [Nm] by channel, regime and joint: their spread while no acceleration jumps; stirred (4, n, n)
    [1/(rad/s2)2]: what a squared jump adds to its square, as a share of it.
    """

    still: Array
    stirred: Array

    def measured(self, seen: Watched) -> Array:
        """Signals (N, 4, n) in their spreads, as moving joints have them: squares of spreads grow by those of jumps."""
        grown = np.einsum("nk,cjk->ncj", seen.jump**2, self.stirred * self.still[:, MOVING, :, None] ** 2)
        return np.asarray(seen.values / np.sqrt(self._mixed(seen) ** 2 + grown))

    def beyond(self, seen: Watched, jolt: Array, further: Array) -> Array:
        """What jumps of accelerations do not explain of signals (N, 4, n), in their spreads; jolt as Thresholds has it.

        |f signal|^2 > (f threshold)^2 + jolt jump^2, as the law asks, is beyond > threshold / spread. further (3,): f
        of each regime, by which signals may be larger than these logs show: as a whole, not what jumps leave over.
        """
        explained = np.einsum("ngj,g->nj", seen.weights, 1.0 / further**2)
        left = seen.values**2 - explained[:, None] * np.einsum("nk,cjk->ncj", seen.jump**2, jolt)
        return np.asarray(np.sqrt(np.maximum(left, 0.0)) / self._mixed(seen))

    def _mixed(self, seen: Watched) -> Array:
        return np.asarray(np.einsum("ngj,cgj->ncj", seen.weights, self.still))


def scales(seen: Watched) -> Scales:
    """What free motion teaches of its spreads."""
    n = seen.values.shape[2]
    still, stirred = np.zeros((len(CHANNELS), len(REGIMES), n)), np.zeros((len(CHANNELS), n, n))
    for g in range(len(REGIMES)):
        for j in range(n):
            mine = seen.weights[:, g, j] > 0.5
            if int(mine.sum()) < LEAST:
                continue
            jumps = seen.jump[mine] ** 2
            for c in range(len(CHANNELS)):
                square = seen.values[mine, c, j] ** 2
                if g == MOVING and c in STIRRED and np.any(square):
                    first, *rest = grown_spread(square, jumps)
                    still[c, g, j], stirred[c, j] = np.sqrt(first), np.array(rest) / first
                else:
                    still[c, g, j] = np.sqrt(np.mean(square))
    # a regime that was not seen: as the widest of the others
    still = np.where(still > 0.0, still, np.maximum(still.max(axis=1)[:, None], 1e-9))
    return Scales(still, stirred)


def unexplained(z: Array) -> Array:
    """A (4, n, n): of each joint what the others do not explain, in its standard deviations, of z (N, 4, n) each.

        x = z / std(z),   R = E[x x^T],   row j of A z = (R^-1 x)_j / sqrt((R^-1)_jj)

    For normal noise this is the likelihood ratio of a push on joint j alone against none.
    """
    scale = np.sqrt(np.mean(z**2, axis=0))
    scale = np.where(scale > 0.0, scale, 1.0)
    out = []
    for c, size in enumerate(scale):
        x = z[:, c] / size
        inverse = np.linalg.inv((1.0 - SHRINK) * (x.T @ x / len(x)) + SHRINK * np.eye(len(size)))
        out.append(inverse / np.sqrt(np.diag(inverse))[:, None] / size)
    return np.array(out)


def grown_spread(square: Array, jumps: Array) -> Array:
    """Numbers (1 + n,) of a spread that grows with jumps of accelerations, the likeliest for normal noise.

        sigma^2 = c_0 + sum_k c_k jump_k^2,    min sum log sigma^2 + x^2 / sigma^2,    all c >= 0

    square (m,) [Nm2]: x^2; jumps (m, n) [(rad/s2)2]. By the multiplicative rule of Itakura and Saito's divergence,
    which never makes it worse and keeps signs.
    """
    every = max(1, len(square) // MOST)
    x, E = square[::every], jumps[::every]
    size = np.maximum(E.mean(axis=0), 1e-12)
    A = np.concatenate((np.ones((len(E), 1)), E / size), axis=1)
    mean = max(float(x.mean()), 1e-18)
    c = np.full(A.shape[1], mean / A.shape[1])
    for _ in range(ROUNDS):
        inverse = 1.0 / (A @ c)
        c = np.maximum(c * np.sqrt((A.T @ (x * inverse * inverse)) / np.maximum(A.T @ inverse, 1e-300)), 1e-9 * mean)
    c[1:] = np.where(E.any(axis=0), c[1:] / size, 0.0)
    return np.asarray(c)


def spread_of_change(seen: Watched, otherwise: Array) -> tuple[Array, Array]:
    """Standard deviation (3, n) of the change in each regime, and its correlation between joints (n, n).

    otherwise (3, n) [Nm]: of a regime that was not seen.
    """
    n = seen.values.shape[2]
    change = seen.values[:, CHANGE, :]
    spread = np.empty((len(REGIMES), n))
    for g in range(len(REGIMES)):
        for j in range(n):
            x = change[seen.weights[:, g, j] > 0.5, j]
            enough = len(x) >= LEAST and np.any(x)
            spread[g, j] = np.sqrt(np.mean(x * x)) if enough else otherwise[g, j]
    z = change / np.einsum("ngj,gj->nj", seen.weights, spread)
    R = z.T @ z / len(z)
    d = np.sqrt(np.diag(R))
    R = R / np.outer(d, d)
    return spread, (1.0 - SHRINK) * R + SHRINK * np.eye(n)
