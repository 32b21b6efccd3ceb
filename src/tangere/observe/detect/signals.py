"""What is watched of a residual, sample by sample or over a whole log: the law of detection with its memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from tangere.kernels.laws import detection as law
from tangere.kernels.laws.detection import CHANNELS, NUMBERS, REGIMES, ROWS
from tangere.kernels.periods import squared
from tangere.kernels.step import joints_of, step
from tangere.observe.drive_model import STANDSTILL
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.observe.detect.detector import Detector
    from tangere.observe.detect.thresholds import Thresholds

GAIN = 50.0  # 1/s of the observer, as everywhere
PERIODS = 200  # different periods that are kept: sums of 2 ms differ in their last digits, jitter in some 20
FASTER = 1.25  # times the fastest that was seen from which on a joint counts as faster: a few minutes miss that much
ARM = len(CHANNELS)  # number of the channel of all joints together


class Signals:
    """Signals per joint from a residual, one sample at a time; any period, and another one each time.

    What they are and how they are compared with thresholds is in kernels.laws.detection.step; here are names for it.
    All arrays are views of what the law left: the next sample overwrites them.

    values, ratio (4, n): rows as CHANNELS, in Nm and against their thresholds; arm (4, n): |arm z| of change, impact,
    shock and level; score: the largest of both, 1 is an alarm. weights (3, n): of REGIMES, columns sum to 1. bound (2,
    n) [Nm]: thresholds of level and change, grown by jumps of the accelerations; sigma (n,) [Nm]: spread of the change,
    as the regimes have them. raw (n,): y
    [Nm], the observer's input; baseline (n,): b [Nm]; linear: s, d - b, f - b and g - b. excess (n,): of speed. zero
    (n,) [Nm]: taken off the level, what a payload or drift that was reported left behind. h [s]: the newest period, 0
    after a start. ready: whether SETTLING seconds have passed since the start or a gap. Not finite: as a gap.

    thresholds: None where only values and weights are asked for. stiction (n,) [Nm]: what a standing joint may keep of
    an event that ends.
    """

    def __init__(
        self,
        n: int = 6,
        gain: float = GAIN,
        standstill: float = STANDSTILL,
        thresholds: Thresholds | None = None,
        stiction: Array | None = None,
    ) -> None:
        self.n, self._gain = n, float(gain)
        self._turning = law.BASELINE if thresholds is not None and not thresholds.sticks else law.TURN_BASELINE
        self._wide = wide = joints_of(n)
        self._step = step("detection", wide, _parameters(wide, n, thresholds, stiction, standstill))
        self._update = self._step.update
        before, after = self._step.before, self._step.after
        state, inputs = law.state_size(wide), law.LAGS + 2 * wide
        self._state, self._numbers = before[inputs:], after[state : state + len(NUMBERS)]
        self.given = before[law.LAGS : inputs].reshape(2, wide)[:, :n]  # residual, qd
        kept = self._state[: len(law.STATE_ROWS) * wide].reshape(-1, wide)[:, :n]
        self._filters, self.baseline, self.change = kept[:4], kept[4], kept[5]
        self.excess, self.zero = kept[8:10]
        rows = after[state + len(NUMBERS) :].reshape(-1, wide)[:, :n]
        at = {name: k for k, name in enumerate(ROWS)}
        self.values, self.raw = rows[:ARM], rows[at["raw"]]
        self.bound, self.sigma = rows[at["bound_level"] : at["sigma"]], rows[at["sigma"]]
        self.ratio = rows[at["ratio_level"] : at["arm_change"]]
        self.arm, self.weights = rows[at["arm_change"] : at["jump"]], rows[at["moving"] :]
        self._padded = np.zeros((2, wide)) if wide > n else None
        self._known: dict[float, Array] = {}  # periods as the law takes them
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._time, self.h, self.ready, self.score = -inf, 0.0, False, 0.0
        self._state[:] = law.start(self._wide)

    @property
    def linear(self) -> Array:
        """s, d - b, f - b, g - b (4, n) [Nm]: the signals before the smaller of two is taken."""
        s, f, g, d = self._filters
        b = self.baseline
        return np.array([s, d - b, f - b, g - b])

    @property
    def frozen(self) -> bool:
        """Whether an event holds the mean."""
        return bool(self._state[-4] > 0.5)

    @property
    def peak(self) -> float:
        """The largest score of the event so far."""
        return float(self._state[-3])

    @property
    def below(self) -> bool:
        """Whether the event is low enough to end, if it stays so."""
        return bool(self._state[-2] >= 0.0)

    @property
    def over(self) -> bool:
        """Whether it has been for long enough."""
        return bool(self._numbers[2] > 0.5)

    def hold(self, baseline: Array, score: float) -> None:
        """An event has begun: keep the mean (n,) [Nm] of before its onset until it is over."""
        self.baseline[:] = baseline
        self._state[-4:-1] = 1.0, score, -1.0

    def settle(self) -> None:
        """An event is over: the residual of now is the mean, and joints count as turning for a while."""
        self.baseline[:] = self.change
        self._state[-4:] = 0.0, 0.0, -1.0, 1.0

    def update(self, time: float, residual: Array, qd: Array) -> bool:
        """Take a sample; False where it could not be used or nothing may be watched yet."""
        h = time - self._time
        if h == 0.0:  # a sample handed out twice
            return False
        if not squared(residual) + squared(qd) < inf:  # nor what the law's squares would make of it
            self._time, self.ready, self.h = -inf, False, 0.0
            return False
        self._time = time
        period = self._known.get(h)
        if period is None:
            period = self._period(h)
        if self._padded is not None:
            self._padded[:, : self.n] = residual, qd
            residual, qd = self._padded
        self.score = self._update(period, residual, qd)
        self.h = h if 0.0 < h <= law.GAP else 0.0
        self.ready = ready = self._numbers.item(1) > 0.5
        return ready

    def _period(self, h: float) -> Array:
        if len(self._known) >= PERIODS:
            self._known.clear()
        found = self._known[h] = np.array(law.lags(h, self._gain, self._turning))
        return found

    def rows(self, time: Array, residual: Array, qd: Array) -> Rows:
        """A whole log from its start: time (N,), residual and qd (N, n); what was remembered before is forgotten."""
        self.reset()
        N, n, wide = len(time), self.n, self._wide
        h = np.diff(time, prepend=-inf)
        new = h != 0.0
        finite = np.isfinite((residual * residual).sum(axis=1) + (qd * qd).sum(axis=1))
        h = h[new]
        h[~finite[new]] = -1.0
        h[1:][~finite[new][:-1]] = -1.0
        inputs = np.zeros((len(h), law.LAGS + 2 * wide))
        inputs[:, : law.LAGS] = np.stack(law.lags(h, self._gain, self._turning, np.expm1), axis=1)
        inputs[:, law.LAGS : law.LAGS + n], inputs[:, law.LAGS + wide : law.LAGS + wide + n] = residual[new], qd[new]
        found = self._step.rows(inputs)
        whole = np.zeros((N, found.shape[1]))
        whole[new] = found
        ready = (whole[:, 1] > 0.5) & finite
        lines = whole[:, len(NUMBERS) :].reshape(N, -1, wide)[:, :, :n]
        seconds = np.zeros(N)
        seconds[new] = np.where((h > 0.0) & (h <= law.GAP), h, 0.0)
        score, jump = np.where(ready, whole[:, 0], np.nan), lines[:, ROWS.index("jump")]
        return Rows(ready, score, seconds, lines[:, :ARM], lines[:, -len(REGIMES) :], jump)


@dataclass(frozen=True)
class Rows:
    """Signals of a log of N samples: which are watched (N,), scores (N,), nan where none, periods (N,) [s], values (N,
    4, n), weights (N, 3, n) and jumps of the accelerations (N, n) [rad/s2]."""

    ready: Array
    score: Array
    h: Array
    values: Array
    weights: Array
    jump: Array


def _parameters(wide: int, n: int, thresholds: Thresholds | None, stiction: Array | None, standstill: float) -> Array:
    """What the law is told once; joints beyond n stand and are compared with 1 Nm."""
    rows, together, rest = np.ones((law.LIMITS, wide)), np.zeros((2, 4, wide, wide)), np.zeros((2, wide))
    if thresholds is not None:
        rows[:12, :n] = thresholds.table.reshape(12, n)
        rows[12:15, :n], rows[15:, :n] = thresholds.spread, thresholds.scale
        together[:, :, :n, :n] = thresholds.arm, thresholds.jolt
        if thresholds.speed is not None:
            rest[0, :n] = 1.0 / (FASTER * thresholds.speed)
    if stiction is not None:
        rest[1, :n] = stiction
    return np.concatenate((rows.ravel(), together.ravel(), rest.ravel(), (standstill, law.SETTLING, 0.0)))


def alone(detector: Detector) -> Array:
    """Parameters of the law where it begins and ends events by itself, with the thresholds of a detector."""
    thresholds = detector.thresholds
    n = thresholds.dof
    out = _parameters(n, n, thresholds, detector.stiction, thresholds.standstill)
    out[-1] = 1.0
    return out


def scores(thresholds: Thresholds, time: Array, residual: Array, qd: Array) -> Array:
    """Largest signal against its threshold (N, m) of m residuals (N, m, n) along one motion qd (N, n), 1: an alarm.

    nan while nothing is watched. What Detector decides beside (stops, and some ms of patience while the arm brakes) is
    left out.
    """
    _, m, n = residual.shape
    signals = Signals(n, thresholds.gain, thresholds.standstill, thresholds)
    return np.stack([signals.rows(time, residual[:, c], qd).score for c in range(m)], axis=1)
