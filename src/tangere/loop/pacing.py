"""Keeping time: periods that begin when the clock says so."""

from __future__ import annotations

from time import perf_counter, sleep

# s before the due time at which sleeping ends and spinning begins: an idle Linux wakes up some 0.1 ms late
SPIN = 3e-4


class Pacer:
    """Waits for the beginning of each period on a fixed schedule. More than a period late: the schedule starts anew.

    While it spins it does nothing but read the clock, so that a gap between two readings is the machine's own doing
    (another process, a hypervisor): longest_pause [s], and pauses, the number of gaps longer than half a period, are
    what any program on that machine meets in that share (waited [s]) of the time.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._due = perf_counter()
        self.pauses = 0
        self.longest_pause = self.waited = 0.0

    def wait(self) -> float:
        """Return at the next due time; by how much it was missed [s]."""
        due = self._due = self._due + self._period
        rest = due - perf_counter()
        if rest > SPIN:
            sleep(rest - SPIN)
        begin = now = perf_counter()
        gap = 0.0
        while now < due:
            before, now = now, perf_counter()
            if now - before > gap:
                gap = now - before
        self.waited += now - begin
        if gap > self.longest_pause:
            self.longest_pause = gap
        if gap > 0.5 * self._period:
            self.pauses += 1
        late = now - due
        if late > self._period:
            self._due += late
        return late
