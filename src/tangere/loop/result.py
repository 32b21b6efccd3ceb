"""What a run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tangere.logs.log import Log
from tangere.loop.pacing import Pacer
from tangere.observe.threshold import Detection


@dataclass(frozen=True)
class Timing:
    """Wall time of controller + observers + log in each period [s], and how far that went beyond the period.

    missed: periods whose work took longer than a period by the clock, which goes on while the machine does something
    else; late: periods of a paced run that began more than a period after they were due; busiest: the most processor
    time that a period of a paced run took, simulator included. Missed by our own doing is what the processor was busy
    with for longer than a period: none while busiest < period. Where a hypervisor takes the processor away, its guest
    counts that as busy: pauses (longer than half a period) and longest_pause [s] are gaps met while the pacer did
    nothing but read the clock, for `waited` [s] in all, and so what the machine does to any program.
    """

    periods: int
    median: float
    p99: float
    p9999: float
    worst: float
    missed: int
    late: int | None  # None: the run was not paced
    latest: float | None  # s, the largest lateness
    busiest: float | None  # s
    pauses: int | None = None
    longest_pause: float | None = None  # s
    waited: float | None = None  # s

    @classmethod
    def of(cls, log: Log, period: float, pacer: Pacer | None = None) -> Timing:
        """From the columns cost, cost_log (which belongs to the row before) and, if there, lateness."""
        cost = log["cost"].copy()
        cost[:-1] += log["cost_log"][1:]
        late = log.get("lateness")
        median, p99, p9999, worst = np.quantile(cost, [0.5, 0.99, 0.9999, 1.0]).tolist() if len(log) else [0.0] * 4
        return cls(
            len(log), median, p99, p9999, worst,
            missed=int(np.count_nonzero(cost > period)),
            late=None if late is None else int(np.count_nonzero(late > period)),
            latest=None if late is None else float(late.max(initial=0.0)),
            busiest=None if late is None else float(log["cpu"].max(initial=0.0)),
            pauses=None if pacer is None else pacer.pauses,
            longest_pause=None if pacer is None else pacer.longest_pause,
            waited=None if pacer is None else pacer.waited,
        )  # fmt: skip


@dataclass(frozen=True)
class RunResult:
    """The log of a run, what was felt in it, and how it ended."""

    log: Log
    detections: tuple[Detection, ...]
    aborted: str  # "": it ran to its end; else why not
    timing: Timing
    wall: float  # s of wall time from the first sample to the closed log
    period: float  # s, nominal
    abort: BaseException | None = None  # what was raised, or the guard's ControlAborted with its black box
    interventions: Mapping[str, int] = field(default_factory=dict)  # what the controller noted -> in how many periods
    log_file: Path | None = None
    log_error: str = ""  # why the log file is not complete

    @property
    def duration(self) -> float:
        """Seconds of the run that were recorded."""
        return self.log.duration + self.period if len(self.log) else 0.0

    @property
    def realtime_factor(self) -> float:
        """Seconds of the run per second of wall time, log included."""
        return self.duration / self.wall if self.wall > 0.0 else 0.0
