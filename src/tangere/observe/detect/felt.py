"""What an event added to the residual, at the moment that tells most, and how well it is known there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.types import Array

PLATEAU = 0.04  # s over which a residual is averaged for isolation: two time constants of the observer
# rad/s below which friction is not what the model says: gears stick, and a push turns a slow joint round, which turns
# its friction round. The standstill speed; wider (0.03, 0.05) gave away more joints than it saved in simulation.
SLOW_SPEED = 0.02
STICKS = 0.15  # s after a slow moment in which that is still so: as long as a joint counts as turning
# of the stiction, standard deviation: friction is anywhere within its half width, 1 / sqrt 3
HIDDEN = 0.6
# times the spread of the change in free motion: on motion that the thresholds were not learned from (simulated UR10e:
# median error 1.2 to 2 of these spreads)
UNSEEN = 1.5
AGE = 0.5  # s after the onset in which the variance against the mean before doubles: twice the time it was learned over
GAIN_ERROR = 0.07  # of a torque: what drive gains and gear efficiency make uncertain in what was added


@dataclass(frozen=True)
class Felt:
    """What was added (n,) [Nm] as a mean over PLATEAU around row `at`, its variances (n,) [Nm2], and when [s]."""

    added: Array
    variance: Array
    at: int
    time: float


def felt(time: Array, added: Array, qd: Array, spread: Array, stiction: Array) -> Felt:
    """The moment of an event at which the residual says most against what is not known of it.

        variance_j = (UNSEEN spread_j)^2 (1 + age / AGE) + (GAIN_ERROR added_j)^2 + slow_j (HIDDEN stiction_j)^2
        at = argmax sum_j added_j^2 / variance_j

    A joint that stands, turns round or creeps (slow_j towards 1) hides up to its stiction; the largest residual of an
    event is often such a joint that sticks, after what touched the arm has gone. time (m,) from the onset on, added
    (m, n): mean before taken off, qd (m, n). Chosen on simulated logs of a UR10e with friction, model error and noise
    as recorded.
    """
    m = len(time)
    stuck = sticking(time, qd)
    low, high = (np.searchsorted(time, time + side * 0.5 * PLATEAU + 1e-9) for side in (-1.0, 1.0))
    total = np.concatenate((np.zeros((1, added.shape[1])), np.cumsum(added, axis=0)))
    low, high = np.minimum(low, np.arange(m)), np.maximum(high, np.arange(m) + 1)
    mean = (total[high] - total[low]) / (high - low)[:, None]
    older = 1.0 + (time - time[0]) / AGE
    variance = np.outer(older, (UNSEEN * spread) ** 2) + (GAIN_ERROR * mean) ** 2 + stuck * (HIDDEN * stiction) ** 2
    at = int(np.argmax(np.sum(mean * mean / variance, axis=1)))
    return Felt(mean[at], variance[at], at, float(time[low[at] : high[at]].mean()))


def sticking(time: Array, qd: Array) -> Array:
    """How far the friction of each joint is not what the model says (m, n), 0 to 1: it stands, creeps or has turned."""
    slow = np.exp(-((qd / SLOW_SPEED) ** 2))
    turned = np.sign(qd[1:]) != np.sign(qd[:-1])  # between two samples that were both fast
    slow[1:][turned] = 1.0
    # the largest since `first`, of each row: windows of 1, 2, 4, ... rows, two of which cover any other
    first, rows = np.searchsorted(time, time - STICKS), np.arange(len(time))
    out, length, top = slow.copy(), 1, slow
    widths = rows - first + 1
    while length <= int(widths.max()):
        mine = (widths >= length) & (widths < 2 * length)
        out[mine] = np.maximum(top[rows[mine]], top[first[mine] + length - 1])
        top = np.concatenate((top[:length], np.maximum(top[length:], top[:-length])))
        length *= 2
    return np.asarray(out)
