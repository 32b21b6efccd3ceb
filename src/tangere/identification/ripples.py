"""The ripple of gears and motors: which of its orders logs show, by what each explains of logs that it was not fitted
to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.identification.samples import Midpoints, Motion, Windows, grouped, midpoints
from tangere.observe.drive_model import RIPPLES
from tangere.robots import Robot
from tangere.types import Array

# Parts of the logs, each of which is predicted by what the others teach: whole logs where there are so many
FOLDS = 5
# A wave is taken where the squared error of the parts that are left out falls by this share, as long as there is one.
# On halves of a UR3e's runs what this chooses explains 2 to 29 % of the other half, and 0.002 lets in waves of joint 1
# that make the other half worse
WORTH = 0.005
# ... and by this many squared errors of a window: 5 standard deviations for each of its two numbers
SUPPORT = 50.0
# [s] of logs from which on the ripple may grow with load and direction: with further numbers a log of seconds explains
# a push
LOADED = 60.0
CLIP = 4.0  # standard deviations of a window that count: contacts and stops are no ripple
RIDGE = 3e-3  # of each column's square: what few windows show is taken as smaller than they say
ROWS = 5000  # windows whose columns are in memory at once: 10 MB of a log at 500 Hz


@dataclass(frozen=True)
class Ripples:
    """Orders that some joint shows, and of each sine and cosine (n, 2 len(orders)), as DriveModel has them."""

    orders: tuple[int, ...]
    plain: Array
    load: Array
    drag: Array
    error: Array  # (W, n) [Nm] model less measured torque, the ripple in the model


def ripples(
    robot: Robot,
    motions: Sequence[Motion],
    rows: Windows,
    error: Array,
    spread: Array,
    width: Array,
    orders: tuple[int, ...],
) -> Ripples:
    """What ripple explains of the error (W, n) [Nm], model less measured torque, of windows while their joint moves.

        -error = sum_k (a_k + c_k g + e_k s) sin(k q) + (b_k + d_k g + f_k s) cos(k q),   s = tanh(qd / width)

    Order by order and kind by kind (plain, of the load, of the direction): the wave that lowers the squared error of
    left-out parts most is added, as long as it is worth it (WORTH, SUPPORT). robot: whose gravity torque is the load.
    spread (n,) [Nm] of the error; width (n,) [rad/s]; orders: those that are tried.
    """
    n = error.shape[1]
    kinds = len(RIPPLES) if len(error) * rows.period >= LOADED else 1
    waves = np.zeros((len(RIPPLES), n, len(orders), 2))
    left = error.copy()
    part = _parts(rows)
    for j in range(n if orders else 0):
        columns = _Columns(robot, motions, rows, j, float(width[j]), orders, kinds)
        goal = np.clip(-error[:, j], -CLIP * spread[j], CLIP * spread[j])
        x = _chosen(*columns.squares(goal, part), len(orders) * kinds)
        waves[:kinds, j] = x.reshape(len(orders), kinds, 2).swapaxes(0, 1)
        left[:, j] += columns.times(x)
    some = waves.any(axis=(0, 1, 3))
    plain, load, drag = (kind[:, some].reshape(n, -1) for kind in waves)
    return Ripples(tuple(np.array(orders, dtype=int)[some].tolist()), plain, load, drag, left)


def _parts(rows: Windows) -> NDArray[np.int64]:
    """Part (W,) of each window: logs dealt out in turn; with fewer logs than FOLDS, stretches of equal length."""
    if rows.log[-1] + 1 >= FOLDS:
        return np.asarray(rows.log % FOLDS)
    return np.arange(len(rows.log)) * FOLDS // len(rows.log)


class _Columns:
    """Means over windows of the waves of one joint, some windows at a time: by order, kind, then sine and cosine."""

    def __init__(
        self, robot: Robot, motions: Sequence[Motion], rows: Windows, joint: int, width: float,
        orders: tuple[int, ...], kinds: int,
    ) -> None:  # fmt: skip
        self._robot, self._motions, self._rows, self._joint = robot, motions, rows, joint
        self._width, self._orders, self._kinds = width, orders, kinds

    def squares(self, goal: Array, part: NDArray[np.int64]) -> tuple[Array, Array, Array, Array]:
        """X^T X (FOLDS, c, c), X^T goal (FOLDS, c), goal^2 (FOLDS,) and windows (FOLDS,) of each part."""
        size = 2 * len(self._orders) * self._kinds
        H, b = np.zeros((FOLDS, size, size)), np.zeros((FOLDS, size))
        total, count = np.zeros(FOLDS), np.zeros(FOLDS)
        for at, X in self._blocks():
            for k in np.unique(part[at]).tolist():
                own = part[at] == k
                y = goal[at[own]]
                H[k] += X[own].T @ X[own]
                b[k] += y @ X[own]
                total[k] += y @ y
                count[k] += len(y)
        return H, b, total, count

    def times(self, x: Array) -> Array:
        """Columns times x (W,) [Nm], 0 where the joint does not move."""
        out = np.zeros(len(self._rows.log))
        if np.any(x):
            for at, X in self._blocks():
                out[at] = X @ x
        return out

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """Windows in which the joint moves, and their columns."""
        for number, motion in enumerate(self._motions):
            m = midpoints(motion)
            samples, weight = grouped(m)
            at = np.flatnonzero(self._rows.log == number)
            moving = self._rows.moving[at, self._joint]
            at, samples, weight = at[moving], samples[moving], weight[moving]
            for use in (slice(first, first + ROWS) for first in range(0, len(at), ROWS)):
                yield at[use], self._means(motion, m, samples[use], weight[use])

    def _means(self, motion: Motion, m: Midpoints, samples: NDArray[np.int64], weight: Array) -> Array:
        """Columns (w, c): torque of a period is the mean of its two ends, and so is the ripple."""
        later = m.index[samples]
        ends = np.concatenate([later[:, :1] - 1, later], axis=1)  # (w, size + 1)
        share = np.zeros(ends.shape)
        share[:, :-1] += 0.5 * weight
        share[:, 1:] += 0.5 * weight
        q = motion.q[ends]
        own = q[..., self._joint]
        scales = [share]
        if self._kinds > 1:
            scales.append(share * self._robot.gravity_torque(q)[..., self._joint])
            scales.append(share * np.tanh(motion.qd[ends, self._joint] / self._width))
        waves = (wave(order * own) for order in self._orders for wave in (np.sin, np.cos))
        means = [[np.einsum("ws,ws->w", scale, wave) for scale in scales] for wave in waves]
        X = np.array(means).reshape(len(self._orders), 2, self._kinds, -1)
        return np.asarray(X.transpose(3, 0, 2, 1).reshape(len(own), -1))


def _chosen(H: Array, b: Array, total: Array, count: Array, waves: int) -> Array:
    """Numbers (2 waves,) of the waves that are worth it, 0 of the others."""
    whole, sums, windows = H.sum(axis=0), b.sum(axis=0), float(count.sum())
    out = np.zeros(2 * waves)
    if np.sum(count > 0.0) < FOLDS:
        return out
    others = [(whole - H[k], sums - b[k]) for k in range(FOLDS)]

    def lost(chosen: list[int]) -> float:
        """Squared error of left-out parts."""
        at = _numbers(chosen)
        cost = 0.0
        for k, (A, right) in enumerate(others):
            x = _solved(A, right, at)
            cost += float(total[k] - 2.0 * x @ b[k][at] + x @ H[k][np.ix_(at, at)] @ x)
        return cost

    chosen: list[int] = []
    least = float(total.sum())
    while len(chosen) < waves:
        cost, best = min((lost([*chosen, wave]), wave) for wave in range(waves) if wave not in chosen)
        if least - cost < least * max(WORTH, SUPPORT / windows):
            break
        chosen.append(best)
        least = cost
    if chosen:
        at = _numbers(chosen)
        out[at] = _solved(whole, sums, at)
    return out


def _numbers(chosen: list[int]) -> NDArray[np.int64]:
    return np.array([2 * wave + k for wave in chosen for k in range(2)])


def _solved(A: Array, right: Array, at: NDArray[np.int64]) -> Array:
    own = A[np.ix_(at, at)]
    ridge = RIDGE * np.diag(own) + 1e-12
    return np.asarray(np.linalg.solve(own + np.diag(ridge), right[at]))
