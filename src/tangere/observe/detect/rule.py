"""The rule of decision: signals against their thresholds, for one arm in a loop and for many copies in a study."""

from __future__ import annotations

from math import exp, inf

import numpy as np

from tangere.observe.detect.signals import CHANGE, CHANNELS, Signals
from tangere.observe.detect.thresholds import Thresholds
from tangere.types import Array

# Beyond the speed that its thresholds were learned from those of a joint grow with the square of the excess: what a
# friction law leaves wrong grows with the first to second power of the speed. For EASE seconds more, fading: such a
# joint also brakes as none did before. Simulated UR10e, 3 of 8 arms stopping from 2 to 3 times the speeds learned:
# level and change reached 1.1 to 3.0 of thresholds without this, 0.9 at most with it
EASE = 0.25
FORGOTTEN = 0.01  # of excess that is none any more
FASTER = 1.25  # times the fastest that was seen from which on a joint counts as faster: a few minutes miss that much
ARM = len(CHANNELS)  # number of the channel of all joints together


class Rule:
    """Scores of signals: the largest over channels and joints of

        |signal_cj| / (threshold_cj(regimes) excess_j^2)     and of |arm z|_cj,  z = signal / (scale excess^2)

    above 1 an event is raised. excess (n,): speed against the fastest that the thresholds know, fading, 1 at least.
    inverse (6, n): 1 / threshold of each channel, 1 / spread of the change, 1 / scale, as the regimes have them;
    sigma (n,): that spread [Nm].
    """

    def __init__(self, thresholds: Thresholds) -> None:
        n = thresholds.dof
        self._table = np.concatenate((thresholds.table, thresholds.spread[None], thresholds.scale[None]))
        self._arm = np.zeros((3 * n, 3 * n))  # of change, impact and shock, one below the other
        for c, part in enumerate(thresholds.arm):
            self._arm[c * n : (c + 1) * n, c * n : (c + 1) * n] = part
        self._arm_size = np.abs(self._arm)
        self._per_speed = None if thresholds.speed is None else 1.0 / (FASTER * thresholds.speed)
        self._slow = inf if thresholds.speed is None else float(FASTER * thresholds.speed.min()) ** 2
        self.none = np.zeros(3 * n)  # |arm z| where it cannot matter
        self.sigma, self.inverse, self._most = thresholds.spread[0], 1.0 / self._table[:, 0], inf
        self._version = -1  # of the signals' weights that these three belong to
        self.dof = n
        self.reset()

    def reset(self) -> None:
        """Forget how fast the joints were."""
        self.excess, self._wide = np.ones(self.dof), False

    def bounds(self, signals: Signals, qd: Array) -> Array:
        """`inverse` at this sample, excess included; qd (n,) [rad/s]. Signals may be of several copies of the arm."""
        if self._version != signals.version:
            self._version = signals.version
            bound = (self._table * signals.weights[:, : self.dof]).sum(axis=1)
            self.sigma, self.inverse = bound[ARM], 1.0 / bound
            # |arm z| is at most this many times the largest signal against its threshold
            self._most = float((self._arm_size @ (bound[CHANGE:ARM] * self.inverse[-1]).ravel()).max())
        if self._per_speed is not None and (self._wide or float(qd.dot(qd)) > self._slow):
            faster = np.abs(qd * self._per_speed)
            if self._wide or np.maximum.reduce(faster) > 1.0:
                faded = (self.excess - 1.0) * exp(-signals.h / EASE)
                self.excess = np.maximum(faster, 1.0 + faded)
                self._wide = bool(np.maximum.reduce(self.excess) > 1.0 + FORGOTTEN)
                return np.asarray(self.inverse / self.excess**2)
        return self.inverse

    def ratios(self, values: Array, inverse: Array) -> tuple[Array, Array, float]:
        """Signals (4, n) against their thresholds, |arm z| (3 n,), and the largest of both: the score."""
        ratio = np.abs(values * inverse[:ARM])
        arm, score = self.none, float(np.maximum.reduce(ratio, axis=None))
        if score * self._most > 1.0:
            arm = np.abs(self._arm @ (values[CHANGE:] * inverse[-1]).ravel())
            score = max(score, float(np.maximum.reduce(arm)))
        return ratio, arm, score

    def scores(self, values: Array, inverse: Array) -> Array:
        """The scores (m,) of m copies with signals (4, m, n), each as `ratios` has it, the arm always looked at."""
        single = np.abs(values * inverse[:ARM, None]).max(axis=(0, 2))
        z = np.swapaxes(values[CHANGE:] * inverse[-1], 1, 2).reshape(3 * self.dof, -1)
        return np.asarray(np.maximum(single, np.abs(self._arm @ z).max(axis=0)))


def scores(thresholds: Thresholds, time: Array, residual: Array, qd: Array) -> Array:
    """Largest signal against its threshold (N, m) of m residuals (N, m, n) along one motion qd (N, n), 1: an alarm.

    The m copies are watched as one arm of m n joints: signals are those of each joint alone, and regimes are the same
    in every copy. nan while nothing is watched. What Detector decides beside (stops, and some ms of patience while the
    arm brakes) is left out.
    """
    N, m, n = residual.shape
    signals, rule = Signals(m * n, thresholds.gain, thresholds.standstill), Rule(thresholds)
    out = np.full((N, m), np.nan)
    speeds, rows = np.tile(qd, (1, m)), residual.reshape(N, m * n)
    for k, t in enumerate(time.tolist()):
        if signals.update(t, rows[k], speeds[k]):
            out[k] = rule.scores(signals.values.reshape(len(CHANNELS), m, n), rule.bounds(signals, qd[k]))
    return out
