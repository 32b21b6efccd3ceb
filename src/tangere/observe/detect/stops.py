"""Stops: the whole arm brakes to standstill at once, as no contact makes it."""

from __future__ import annotations

from collections import deque

import numpy as np

from tangere.kernels.periods import squared
from tangere.observe.drive_model import STANDSTILL
from tangere.types import Array

LOOK_BACK = 0.1  # s: a protective stop of a UR takes 20 to 100 ms, a planned one 0.2 s and more
STOPPED = 0.5  # of the speed before, along the motion before: below, the arm has braked as a whole
SETTLE = 0.5  # s for which the structure rings and stiction settles after a stop
# rad/s2 over all joints: planned motions of a UR stay below (its default of 1.4 on each of six joints makes 3.4), stops
# that excite the structure do not (protective stops of a UR3e and a UR10e: 10 to 30)
ABRUPT = 4.0

LOST = 0.05  # of the speed: the least that counts as braking


class StopWatch:
    """Tells a stop from the velocities, one sample at a time.

        share = qd . qd_before / |qd_before|^2,   qd_before: 1, 2, 4, ... samples ago, up to LOOK_BACK seconds

    A planned motion loses little of its speed in that time, a contact bends it at most; a stop takes share below
    STOPPED, and abruptly: faster than ABRUPT, and so also where what the arm lost by going on as in the LOOK_BACK
    seconds before qd_before is given back (a joint that turns round smoothly has braked as hard all along).
    From then on `stopping` holds for SETTLE seconds after the last such sample.
    target_qd, where the controller's is known, tells the same earlier; and `resumed`: it wants STOPPED of the speed
    before again, so that the arm has turned round, or goes on.
    """

    __slots__ = ("_before", "_history", "_until", "began", "resumed", "standstill", "stopping")

    def __init__(self, standstill: float = STANDSTILL) -> None:
        self.standstill = standstill
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._history: deque[tuple[float, Array, float]] = deque()
        self._until = -np.inf
        self._before = np.inf  # (rad/s)^2 at the last sample at full speed
        self.stopping = self.resumed = False
        self.began: float | None = None  # s, stamp of the last sample at full speed

    def update(self, time: float, qd: Array, target_qd: Array | None = None) -> bool:
        """Whether a stop is going on."""
        v = qd if target_qd is None else target_qd
        speed = squared(v)
        history = self._history
        if history and not 0.0 <= time - history[-1][0] <= LOOK_BACK:
            history.clear()
        history.append((time, v, speed))
        while time - history[0][0] > 2.0 * LOOK_BACK:
            history.popleft()
        # cheap: most samples have not lost a fifth of the speed that the arm had a moment ago
        if max(history[0][2], history[len(history) // 2][2], history[-2 if len(history) > 1 else -1][2]) * 0.64 > speed:
            when = self._lost(1.0 - STOPPED)
            if when is not None:
                if time >= self._until:
                    self.began = when
                    self._before = next(entry[2] for entry in history if entry[0] == when)
                self._until = time + SETTLE
        self.stopping = time < self._until
        self.resumed = target_qd is not None and self.stopping and speed > STOPPED**2 * self._before
        return self.stopping

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
        first = len(history) - 1 - lag  # of the samples up to LOOK_BACK before
        while first > 0 and when - history[first - 1][0] <= LOOK_BACK:
            first -= 1
        before, earlier, _ = history[first]
        if when - before < 0.5 * LOOK_BACK:
            return 0.0  # too little is known
        return float(then @ (earlier - then)) / speed * (history[-1][0] - when) / (when - before)
