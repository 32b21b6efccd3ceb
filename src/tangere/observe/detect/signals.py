"""What is watched: level, change, impact and shock of a residual, and in which regime each joint is."""

from __future__ import annotations

from math import expm1, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from tangere.observe.drive_model import STANDSTILL
from tangere.types import Array

LEVEL, CHANGE, IMPACT, SHOCK = 0, 1, 2, 3
CHANNELS = ("level", "change", "impact", "shock")
MOVING, TURNING, STANDING = 0, 1, 2
REGIMES = ("moving", "turning", "standing")
GAIN = 50.0  # 1/s of the observer, as everywhere
# 1/s of impact and shock: 78 % of a step within one sample at 100 Hz, 63 % within 7 ms at any rate above; faster, and
# the noise of the velocity times M / h is all that is left of a 100 Hz log
FAST = 150.0
# 1/s of the level channel: what stays. 50 ms of lag make short shocks of no net impulse (a servo that misses a sample)
# small; what comes quickly is left to the other two
SLOW = 20.0
# s over which the mean before an event is learned: 70 to 80 % are kept of a touch that builds up over 0.1 to 0.2 s;
# shorter by far than a motion takes to change the torque of a wrong mass (1 to 3 s). With 0.5 s the rarest changes of a
# UR3e's free motion are up to twice as large, with 0.15 s half of a touch by hand is lost; slower ones are the level's
BASELINE = 0.25
# s that a joint counts as turning after it started, stopped or reversed: on 40 runs of a UR3e the residual of a joint
# that starts is back to that of a moving one after 0.1 s. The last part fades into the regime that follows.
HOLD, FADE = 0.15, 0.05
TURN_BASELINE = 0.05  # s, the same for a turning joint: stiction that lets go is no change of the world
HARMLESS = 0.2  # K h below which one wrong sample counts for less than a fifth in d: from 250 Hz on at 50/s
GAP = 0.1  # s without a sample, or a clock that goes back: start again
# s after a start whose residuals are no part of the mean before: an observer that starts with its first input, which is
# mostly noise, needs five time constants to forget it
FORGET = 0.1
SETTLING = 0.3  # s after a start in which nothing is watched: the mean has then 0.2 s, the level six time constants
PERIODS = 200  # different periods whose matrices are kept: sums of 2 ms differ in their last digits, jitter in some 20


class Signals:
    """Four signals per joint from a residual, one sample at a time; any period, and another one each time.

        y_k = r_{k-1} + (r_k - r_{k-1}) / (1 - exp(-K h))     the observer's input again: what acted since the sample
                                                              before, without its lag
        level   s             ds/dt = SLOW (y - s)
        change  two(d - b)    dd/dt = FAST (c - d), dc/dt = K (y - c), so c = r: noise of the velocity is white in r,
                              and the second lag takes most of it for some ms;
                              b: mean of c over BASELINE seconds, held during events
        impact  two(f - b)    df/dt = FAST (y - f)
        shock   g - b         dg/dt = FAST (f - g)

    two(x_k) is the smaller of x_k and x_{k-1}, 0 where their signs differ: a stamp or velocity that is wrong once
    makes two large y of opposite sign and vanishes here, for one sample of delay (at K h < HARMLESS d itself is slow
    enough for wrong samples, and change is d - b). Shock has no such delay, against a
    threshold that the wrong samples of this robot have set; at 500 Hz, where noise of the velocity is most of y, its
    second lag leaves 0.4 of that noise, and a step stands out further from 4 ms on (14 ms: 7.7 standard deviations
    of 20 Nm on a UR10e's joint 2, change 6.6, f 4.2). A wrong mass or a warm gear moves c and b alike: change,
    impact and shock stay quiet.

    Regimes per joint: moving; standing, while no joint of the arm moves; turning, where stiction may jump: for HOLD
    seconds after it started, stopped or reversed, and while it stands and another joint moves.
    values (4, n): rows as CHANNELS. weights (3, n): of REGIMES; columns sum to 1; `version` counts their changes.
    ready: whether SETTLING seconds have passed since the start or a gap. Not finite: as a gap.
    """

    __slots__ = (
        "_age", "_base", "_code", "_gain", "_inputs", "_known", "_lapse", "_moving", "_quiet", "_r", "_time", "_turn",
        "_turning", "frozen", "h", "n", "raw", "ready", "standstill", "values", "version", "weights", "zero",
    )  # fmt: skip

    def __init__(self, n: int = 6, gain: float = GAIN, standstill: float = STANDSTILL) -> None:
        self.n, self._gain, self.standstill = n, float(gain), float(standstill)
        self._known: dict[float, tuple[Array, Array, float]] = {}  # of each period: matrices of step_of
        self.version = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        n = self.n
        self._time, self._age, self.ready, self.frozen, self.h = -inf, 0.0, False, False, 0.0
        self._inputs = np.zeros((7, n))  # s, f, g, d, b, residual before, residual
        self._r = self.raw = self._base = np.zeros(n)
        self.zero = np.zeros(n)  # (n,) Nm taken off the level: what a payload or drift that was reported left behind
        self._code = b""  # which joints move which way
        self._moving: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
        self._turn = np.zeros(n)  # s for which each joint still counts as turning
        self._turning = False
        self._lapse = self._quiet = 0.0  # s since the weights were last looked at, and for which they do not change
        self.values, self.weights = np.zeros((len(CHANNELS), n)), np.zeros((len(REGIMES), n))

    @property
    def baseline(self) -> Array:
        """b (n,) [Nm]; a new array at each sample."""
        return self._base

    @property
    def change(self) -> Array:
        """c (n,) [Nm]: the residual itself, the array that was given."""
        return self._r

    def hold(self, baseline: Array) -> None:
        """An event has begun: keep the mean (n,) [Nm] of before its onset until it is over."""
        self._base, self.frozen = baseline, True
        self._inputs[4] = baseline

    def settle(self, moving: float, standing: float) -> None:
        """An event is over: take the residual of now as the mean, and count joints as turning for a while [s]."""
        self.frozen = False
        self._base = self._inputs[4] = self._r
        self._turn = np.maximum(self._turn - self._lapse, np.where(self._moving, moving, standing))
        self._turning, self._lapse, self._quiet = True, 0.0, 0.0

    def update(self, time: float, residual: Array, qd: Array) -> bool:
        """Take a sample; False where it could not be used or nothing may be watched yet."""
        h = time - self._time
        if h == 0.0:  # a sample handed out twice
            return False
        if not isfinite(float(residual.dot(residual)) + float(qd.dot(qd))):
            self._time, self.ready, self.h = -inf, False, 0.0
            return False
        self._time = time
        forward, backward = qd > self.standstill, qd < -self.standstill
        code = forward.tobytes() + backward.tobytes()
        if not 0.0 < h <= GAP:
            self._start(residual, code, forward | backward)
            return False
        self.h = h
        if code != self._code:
            self._regimes(code, forward | backward, h)
        elif self._turning:
            if self._lapse + h < self._quiet:
                self._lapse += h
            else:
                self._regimes(code, self._moving, h)
        learning, held, lag = self._known.get(h) or self.step_of(h)
        self._age += h
        inputs, frozen = self._inputs, self.frozen
        inputs[6] = residual
        if not frozen and (self._turning or h > lag * (self._age - FORGET)):
            # at first the plain mean since FORGET: one noisy sample must not count for half a second
            lag = max(lag, h / max(self._age - FORGET, h))
            quick = max(-expm1(-h / TURN_BASELINE), lag)
            inputs[4] += np.where(self._turn > 0.0, quick, lag) * (residual - inputs[4])
            frozen = True
        out = (held if frozen else learning) @ inputs
        inputs[:5] = out[:5]
        inputs[5] = residual
        self._r, self._base, self.raw = residual, out[4], out[5]
        values = self.values
        np.subtract(out[0], self.zero, out=values[LEVEL])
        values[SHOCK] = out[8]
        first = CHANGE
        if h < HARMLESS / self._gain:
            values[CHANGE] = out[6]
            first = IMPACT
        new, old = out[5 + first : 8], out[8 + first :]
        low, high = np.minimum(new, old), np.maximum(new, old)
        np.add(np.maximum(low, 0.0, out=low), np.minimum(high, 0.0, out=high), out=values[first : IMPACT + 1])
        self.ready = self._age > SETTLING
        return self.ready

    def step_of(self, h: float) -> tuple[Array, Array, float]:
        """One period as a matrix of (s, f, g, d, b, residual before, residual), with b learning and held; b's lag.

        Rows of the product: s, f, g, d, b, y, then d - b, f - b and g - b now, and with the new b the first two of
        the sample before.
        """
        slow, fast, own, lag = (-expm1(-h * rate) for rate in (SLOW, FAST, self._gain, 1.0 / BASELINE))
        y = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0 - 1.0 / own, 1.0 / own])
        s, f, g, d, b, _, r = np.eye(7)
        both = []
        for part in (lag, 0.0):
            mean = b + part * (r - b)
            smooth, quick = d + fast * (r - d), f + fast * (y - f)
            twice = g + fast * (quick - g)
            rows = (
                s + slow * (y - s), quick, twice, smooth, mean, y,
                smooth - mean, quick - mean, twice - mean, d - mean, f - mean,
            )  # fmt: skip
            both.append(np.array(rows))
        if len(self._known) >= PERIODS:
            self._known.clear()
        found = self._known[h] = (both[0], both[1], lag)
        return found

    def _regimes(self, code: bytes, moving: NDArray[np.bool_], h: float) -> None:
        """Turn timers and weights after a change, or while a joint turns."""
        n, turn, weights = self.n, self._turn, self.weights
        turn -= self._lapse + h
        if code != self._code:
            was, now = (np.frombuffer(word, dtype=np.bool_).reshape(2, n) for word in (self._code, code))
            turn[(now != was).any(axis=0)] = HOLD
            self._code, self._moving = code, moving
        still = ~moving
        if moving.any() and still.any():
            np.maximum(turn, FADE, out=turn, where=still)
        share = np.minimum(np.maximum(turn, 0.0), FADE) / FADE
        weights[TURNING] = share
        np.subtract(1.0, share, out=weights[MOVING])
        np.multiply(weights[MOVING], still, out=weights[STANDING])
        weights[MOVING] -= weights[STANDING]
        self._turning = bool(turn.max() > 0.0)
        self._lapse = 0.0
        # nothing changes until the first joint begins to fade; those that are kept at FADE by others do not
        waiting = np.where(turn == FADE, np.inf, turn - FADE)[turn > 0.0]
        self._quiet = max(float(waiting.min(initial=np.inf)), 0.0)
        self.version += 1

    def _start(self, residual: Array, code: bytes, moving: NDArray[np.bool_]) -> None:
        self._r = self.raw = self._base = residual
        self._inputs[:] = residual
        self._turn = np.zeros(self.n)
        self._lapse = 0.0
        self._code = code
        self._moving = moving
        self._age, self.ready, self.frozen, self.h = 0.0, False, False, 0.0
        self._regimes(code, moving, 0.0)
