"""Keeping time: periods that begin when the clock says so."""

from __future__ import annotations

from time import perf_counter, sleep

# s before the due time at which sleeping ends and spinning begins: an idle Linux wakes up some 0.1 ms late
SPIN = 3e-4


class Pacer:
    """Waits for the beginning of each period on a fixed schedule. More than a period late: the schedule starts anew."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._due = perf_counter()

    def wait(self) -> float:
        """Return at the next due time; by how much it was missed [s]."""
        self._due += self._period
        rest = self._due - perf_counter()
        if rest > SPIN:
            sleep(rest - SPIN)
        while (late := perf_counter() - self._due) < 0.0:
            pass
        if late > self._period:
            self._due += late
        return late
