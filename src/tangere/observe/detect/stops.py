"""Stops: the whole arm brakes to standstill at once, as no contact makes it."""

from __future__ import annotations

import numpy as np

from tangere.kernels.periods import Track
from tangere.observe.drive_model import STANDSTILL
from tangere.types import Array

LOOK_BACK = 0.1  # s: a protective stop of a UR takes 20 to 100 ms, a planned one 0.2 s and more
KEPT_SPEED = 0.64  # of the square of its speed: above, an arm has not lost a fifth of it
STOPPED = 0.5  # of the speed before, along the motion before: below, the arm has braked as a whole
# s after the arm began to brake for which a stop may mask what is felt (0.2 less a sample at 50 Hz), and for which what
# is felt clearly. Residuals of 15 stops of a UR3e are below 1.4 of tuned thresholds 50 ms later, those of a UR10e at
# 100 Hz below 2.4 of untuned ones after 110 ms (both numbers were chosen on these)
MASKED, RINGS = 0.18, 0.15
AGAIN = 0.5  # s after a stop was masked in which the arm stops no second time: it swings
# Squares of the speed that a standing arm has at most: of the standstill speed, all joints together, and of the speed
# before its stop, of which it swings
STANDS, SWINGS = 4.0, 0.05
GOES_ON = 0.5  # s that an arm stands after it has rung before it counts as stopped for good
EARLIER = 0.012  # s before velocities fall that currents of a stop jump: one to three samples
# Of what was lost, across the motion before: below, all joints brake in proportion, as a controller brakes along its
# path. A UR3e that halts so: 0.02; simulated clampings: 0.4 to 1.5. Of JOINTS that move alike at least: one joint alone
# is always in proportion
ACROSS, JOINTS = 0.1, 2.0
# rad/s2 over all joints: planned motions of a UR stay below (its default of 1.4 on each of six joints makes 3.4), stops
# that excite the structure do not (protective stops of a UR3e and a UR10e: 10 to 30)
ABRUPT = 4.0

# Share of the work against the motion in the sum of its parts, from 4 ms on: -0.45 at most in 14 protective stops of a
# UR3e and two of a UR10e, 0.36 at least in simulated clampings, 0.7 where these are felt; noise is around 0
AGAINST = 0.3
LOST = 0.05  # of the speed: the least that counts as braking


class StopWatch:
    """Tells a stop from the velocities, one sample at a time.

        share = qd . qd_before / |qd_before|^2,   qd_before: 1, 2, 4, ... samples ago, up to LOOK_BACK seconds

    A planned motion loses little of its speed in that time, a contact bends it at most; a stop takes share below
    STOPPED, and abruptly: faster than ABRUPT, and so also where what the arm lost by going on as in the LOOK_BACK
    seconds before qd_before is given back (a joint that turns round smoothly has braked as hard all along). Speed that
    the arm did not have by half all along is none that it may be stopped from: a knock on a slow arm gives it some.
    From then on `stopping` holds until MASKED seconds after it began.
    target_qd, where the controller's is known, tells the same earlier; and `resumed`: it wants STOPPED of the speed
    before again, so that the arm has turned round, or goes on. `commanded`: a controller brakes, by its target or
    because all joints lose their speed in proportion; else it may be an obstacle that does (`from_outside`). `held`: it
    has stood since: brakes may hold it, and what they hold is no touch unless it is clear.
    """

    __slots__ = (
        "_before", "_history", "_until", "began", "commanded", "held", "resumed", "standstill", "stopping",
    )  # fmt: skip

    def __init__(self, standstill: float = STANDSTILL) -> None:
        self.standstill = standstill
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._history = Track(LOOK_BACK, 2.0 * LOOK_BACK)
        self._until = -np.inf
        self._before = 0.0  # (rad/s)^2 at the last sample at full speed
        self.stopping = self.resumed = self.commanded = self.held = False
        self.began: float | None = None  # s, stamp of the last sample at full speed

    def update(self, time: float, qd: Array, target_qd: Array | None = None) -> bool:
        """Whether a stop is going on."""
        v = qd if target_qd is None else target_qd
        history = self._history
        # cheap: most samples have not lost much of the speed that the arm had a moment ago
        if history.add(time, v, KEPT_SPEED):
            when = self._lost(1.0 - STOPPED)
            if when is not None and time >= self._until:
                _, then, before = next(one for k in range(len(history)) if (one := history[k])[0] == when)
                if time - self._until > AGAIN:
                    self.began, self._before, self._until = when, before, when + MASKED
                    self.commanded = target_qd is not None or _in_proportion(then, v, before)
        elif not self.held and time >= self._until:
            self.stopping = self.resumed = False
            return False
        speed = history[-1][2]
        self.stopping = time < self._until
        self.held = self.stopping or (self.held and speed < max(STANDS * self.standstill**2, SWINGS * self._before))
        self.resumed = target_qd is not None and self.stopping and speed > STOPPED**2 * self._before
        return self.stopping

    def dismiss(self, time: float) -> None:
        """What goes on at `time` [s] is none: something else stops the arm."""
        self._until, self.stopping, self.held = time, False, False

    def braking(self) -> bool:
        """Whether a stop may just have begun: the newest samples lost speed abruptly along the motion before.

        One or two samples later it is known. A contact hardly brakes a position-controlled arm: of the contacts on a
        UR3e and a UR10e none took 2 % of its speed before it was found.
        """
        return self._lost(LOST) is not None

    def _lost(self, share: float) -> float | None:
        """Stamp of a sample since which that share of the speed was lost abruptly, None where there is none."""
        history = self._history
        time, now, _ = history[-1]
        lag = 1
        while lag < len(history) and time - history[-1 - lag][0] <= LOOK_BACK:
            when, then, speed = history[-1 - lag]
            if speed > 2.0 * self.standstill**2:
                least = max(share, ABRUPT * (time - when) / speed**0.5)
                loss = 1.0 - float(then @ now) / speed
                if loss > least and loss - self._planned(lag) > least:
                    return when
            lag *= 2  # 1, 2, 4, ... samples ago
        return None

    def _planned(self, lag: int) -> float:
        """Share of the speed `lag` samples ago that was lost since, had the arm gone on braking as before that."""
        history = self._history
        when, then, speed = history[-1 - lag]
        first, last = 0, len(history) - 1 - lag  # the first of the samples up to LOOK_BACK before, by halves
        while first < last:
            middle = (first + last) // 2
            if when - history[middle][0] <= LOOK_BACK:
                last = middle
            else:
                first = middle + 1
        before, earlier, _ = history[first]
        if when - before < 0.5 * LOOK_BACK:
            return 0.0  # too little is known
        if any(float(then @ history[k][1]) < STOPPED * speed for k in range(first, len(history) - 1 - lag)):
            return 1.0  # a knock has just given it that speed, and it swings back
        return float(then @ (earlier - then)) / speed * (history[-1][0] - when) / (when - before)


def _in_proportion(then: Array, now: Array, speed: float) -> bool:
    """Whether all joints lose their speed alike between two samples; speed: then . then."""
    if speed**2 < JOINTS * float(np.sum(then**4)):
        return False
    share = float(then @ now) / speed
    across = now - share * then
    return float(across @ across) < (ACROSS * (1.0 - share)) ** 2 * speed


def from_outside(torque: Array, qd: Array) -> bool:
    """Whether what is felt (m, n) [Nm] while an arm brakes takes energy from it: it works against qd (m, n) [rad/s].

        sum torque . qd < -AGAINST sum |torque| . |qd|

    An obstacle or a hand that stops an arm works against its motion. A motor that brakes is ahead of the motion, and so
    looks as if something pushed the arm on.
    """
    work = torque * qd
    return float(np.sum(work)) < -AGAINST * float(np.sum(np.abs(work)))


def stopped_for_good(time: Array, qd: Array, standstill: float = STANDSTILL) -> float | None:
    """Stamp [s] at which an arm began to stop abruptly that then stands to the end of its log; None where none did.

    A protective stop, say: brakes hold the arm, and nothing is to be learned of its friction from then on.
    time (N,) [s], qd (N, n) [rad/s]. A log that ends within GOES_ON seconds of a stop does not tell.
    """
    moves = np.flatnonzero((np.abs(qd) > standstill).any(axis=1))
    if len(moves) == 0 or time[-1] - time[moves[-1]] < GOES_ON:
        return None
    watch = StopWatch(standstill)
    for k in range(int(np.searchsorted(time, time[moves[-1]] - AGAIN)), int(moves[-1]) + 1):
        watch.update(float(time[k]), qd[k])
    return watch.began
