"""What a run leaves, and how its time was kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tangere.kinematics.rotation import ur_from_pose
from tangere.logs.files import Attempts, plain
from tangere.logs.log import Log, Overview
from tangere.loop.folder import Manifest, write_json, write_manifest
from tangere.observe.momentum import GAIN
from tangere.robots import Robot
from tangere.types import Array, Event

if TYPE_CHECKING:
    from tangere.report.data import RunData

# s before the due time at which sleeping ends and spinning begins: an idle Linux wakes up some 0.1 ms late
SPIN = 3e-4


class Pacer:
    """Waits for the beginning of each period on a fixed schedule. More than a period late: the schedule starts anew.

    made_up [s]: so much lateness is made up for first, by periods that follow each other at once. A schedule that makes
    up for lateness is not kept to the microsecond: it sleeps all the time, as spinning is most of what a period costs.

    While it spins it does nothing but read the clock, so that a gap between two readings is the machine's own doing
    (another process, a hypervisor): longest_pause [s], and pauses, the number of gaps longer than half a period, are
    what any program on that machine meets in that share (waited [s]) of the time.
    """

    def __init__(self, period: float, made_up: float = 0.0) -> None:
        self._period, self._most = period, max(period, made_up)
        self._spin = 0.0 if made_up else SPIN
        self._due = perf_counter()
        self.pauses = 0
        self.longest_pause = self.waited = 0.0

    def wait(self) -> float:
        """Return at the next due time; by how much it was missed [s]."""
        due = self._due = self._due + self._period
        rest = due - perf_counter()
        if rest > self._spin:
            sleep(rest - self._spin)
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
        if late > self._most:
            self._due += late
        return late


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
    step: float | None = None  # s, the median of controller and observers alone; None without a row

    @classmethod
    def of(cls, log: Log, period: float, pacer: Pacer | None = None) -> Timing:
        """From the columns cost, cost_log (which belongs to the row before) and, if there, lateness."""
        cost = log["cost"].copy()
        step = float(np.median(cost)) if len(log) else None
        cost[:-1] += log["cost_log"][1:]
        late, missed, shares = log.get("lateness"), int(np.count_nonzero(cost > period)), [0.5, 0.99, 0.9999, 1.0]
        found = np.quantile(cost, shares, overwrite_input=True).tolist() if len(log) else [0.0] * 4
        median, p99, p9999, worst = found
        return cls(
            len(log), median, p99, p9999, worst,
            missed=missed,
            late=None if late is None else int(np.count_nonzero(late > period)),
            latest=None if late is None else float(late.max(initial=0.0)),
            busiest=None if late is None else float(log["cpu"].max(initial=0.0)),
            pauses=None if pacer is None else pacer.pauses,
            longest_pause=None if pacer is None else pacer.longest_pause,
            waited=None if pacer is None else pacer.waited,
            step=step,
        )  # fmt: skip


class Lasting(Protocol):
    """What touched the arm from `start` on: a push that it was told of (plants.Push), or something that it met."""

    @property
    def start(self) -> float:
        """s."""

    @property
    def duration(self) -> float:
        """s."""


@dataclass(frozen=True)
class Setup:
    """Who took part in a run, as far as the parts say it themselves."""

    robot: Robot | None = None  # the arm of the plant; the believed one where the plant has none
    # reference, controller, plant, observer, detection, push -> what stands in that box of the block diagram
    parts: Mapping[str, str] = field(default_factory=dict)
    pushes: tuple[Lasting, ...] = ()  # that the plant was told of
    gain: Array | float = GAIN  # [1/s] K of the first observer
    thresholds: Array | None = None  # (n,) [Nm] of the detector: of the residual itself, or of its level while moving

    @classmethod
    def of(cls, plant: Any, controller: Any, observers: Iterable[Any], detector: Any, trajectory: Any) -> Setup:
        """From the parts of a run, by their class names; None for a part that there was not.

        Parts are anybody's own: what one calls robot, pushes, gain or thresholds counts only if it is one.
        """
        from tangere.report.data import push_words

        watching = list(observers)
        known = (getattr(part, "robot", None) for part in (plant, controller, *watching))
        arm = next((robot for robot in known if isinstance(robot, Robot)), None)
        told = getattr(plant, "pushes", ())
        told = told if isinstance(told, tuple | list) else ()
        pushes = tuple(push for push in told if hasattr(push, "start") and hasattr(push, "duration"))
        names = {
            "reference": _name(trajectory), "controller": _name(controller), "plant": _name(plant),
            "observer": ", ".join(_name(observer) for observer in watching), "detection": _name(detector),
            "push": push_words(getattr(pushes[0], "__dict__", {}), arm) if pushes else "",
        }  # fmt: skip
        gain = getattr(watching[0], "gain", GAIN) if watching else GAIN
        level = getattr(getattr(detector, "thresholds", None), "level", None)
        return cls(
            arm,
            {key: name for key, name in names.items() if name},
            pushes,
            gain if isinstance(gain, float | np.ndarray) else GAIN,
            np.array(level[0], dtype=np.float64) if isinstance(level, np.ndarray) and level.ndim == 2 else None,
        )


def _name(part: Any) -> str:
    """The class of a part; of one that wraps another (a guard, a reaction) both."""
    if part is None:
        return ""
    inner = getattr(part, "controller", None)
    return type(part).__name__ if inner is None else f"{_name(inner)} in {type(part).__name__}"


@dataclass(frozen=True)
class Told:
    """What whoever made a run says of it beside what its parts say."""

    name: str = ""  # title of its page
    manifest: Manifest | None = None  # command and settings; made from the parts where there is none
    summary: Mapping[str, Any] | None = None  # with what the maker adds; that of loop.summary where there is none
    robot: Robot | None = None  # the arm to be drawn, where it is not the plant's


@dataclass(frozen=True, repr=False)
class RunResult:
    """The log of a run, what was felt in it, and how it ended; `save` and `report` make its folder and its page."""

    log: Log  # of a run of more than logs.log.WHOLE bytes, whose file holds them: read from there when asked for
    events: tuple[Event, ...]
    aborted: str  # "": it ran to its end; else why not
    timing: Timing
    wall: float  # s of wall time from the first sample to the closed log
    period: float  # s, nominal
    abort: BaseException | None = None  # what was raised, or the guard's ControlAborted with its black box
    interventions: Mapping[str, int] = field(default_factory=dict)  # what the controller noted -> in how many periods
    log_file: Path | None = None
    log_error: str = ""  # why the log file is not complete
    setup: Setup = field(default_factory=Setup)  # who took part
    told: Told = field(default_factory=Told)  # what its maker says of it
    said: tuple[str, ...] = ()  # sentences beside the log, such as a sink that dropped rows
    limits: Mapping[str, bool] = field(default_factory=dict)  # those of `interventions` -> whether exceeded, or reached

    @property
    def duration(self) -> float:
        """Seconds of the run that were recorded."""
        return self.log.duration + self.period if len(self.log) else 0.0

    @property
    def exceeded(self) -> list[str]:
        """Limits of the arm that the run went beyond."""
        return [text for text, beyond in self.limits.items() if beyond]

    @property
    def realtime_factor(self) -> float:
        """Seconds of the run per second of wall time, log included."""
        return self.duration / self.wall if self.wall > 0.0 else 0.0

    @property
    def robot(self) -> Robot | None:
        """The arm that the page draws, where it is known."""
        return self.setup.robot if self.told.robot is None else self.told.robot

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """The numbers of summary.json (loop.summary)."""
        if self.told.summary is not None:
            return self.told.summary
        from tangere.loop.summary import summarise

        return summarise(self, pushes=self.setup.pushes, robot=self.robot, gain=self.setup.gain)

    @cached_property
    def overview(self) -> Overview:
        """The least and the most of every column, in about 2000 bins."""
        return Overview.of(self.log)

    @property
    def manifest(self) -> Manifest:
        """manifest.json: as the run was told, or what its parts say."""
        if self.told.manifest is not None:
            return self.told.manifest
        script = sys.argv[0] if sys.argv else ""
        command = ["python", *sys.argv] if script.endswith(".py") else []
        scenario = {"name": self.told.name or "run", "period": self.period, "duration": self.duration}
        models, units = {}, {"period": "s", "duration": "s"}
        if self.robot is not None:
            models, model = {"plant": self.robot}, self.robot.model
            scenario |= {"robot": self.robot.name, "tool": ur_from_pose(model.T_flange_tcp), "gravity": model.gravity}
            scenario["payload"] = None if model.payload is None else (model.payload.mass, *model.payload.com)
            units |= {"tool": "m, rotation vector in rad", "gravity": "m/s2", "payload": "kg, m"}
        return Manifest.of(command, plain(scenario), models=models, units=units)

    def data(self) -> RunData:
        """What the page shows, from what is in memory."""
        from tangere.report.data import put_together

        known: dict[str, Any] = {"events": self.events, "period": self.period}
        known |= {} if self.robot is None else {"robot": self.robot}
        return put_together(self.log, asdict(self.manifest), self.summary, **known)

    def report(self, path: str | os.PathLike[str] = "report.html", **changes: Any) -> Path:
        """Write the page of the run to `path` and say where it is; changes: fields of report.RunData known better."""
        from tangere.report.page import write_report

        named = self if self.told.name else replace(self, told=replace(self.told, name=Path(path).stem))
        return write_report(named.data(), path, **changes)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        report: bool = True,
        csv: bool | None = None,
        attempt: Attempts | None = None,
    ) -> Path:
        """Leave log.mcap, log.csv, manifest.json, summary.json and report.html in a folder.

        What an earlier run left there is replaced; a folder with other files of these names and no manifest.json of
        ours is refused (InvalidValue). A log that the run itself wrote there stays. report: False leaves the page out.
        csv: whether log.csv is written; where not said, up to 20 000 samples. The files come in the order of their
        worth; where some cannot be written (a full disk) the others are, and CannotWrite says which (or `attempt`).
        """
        from tangere.logs.csv_log import write_csv
        from tangere.logs.mcap_log import write_mcap
        from tangere.loop.folder import CSV, CSV_MAX, LOG, OURS, REPORT, SUMMARY, Claim

        place, own = Path(folder), self.log_file
        named = self if self.told.name else replace(self, told=replace(self.told, name=place.resolve().name))
        tried = Attempts() if attempt is None else attempt
        if own is None or own.resolve() != (place / LOG).resolve():
            claim = Claim(folder, OURS)
            place = claim.path
            write_manifest(named.manifest, place)
            told = self.log.events or tuple(event.record() for event in self.events)
            tried(LOG, lambda: write_mcap(replace(self.log, events=told), place / LOG, robot=self.robot))
        elif self.log_error:
            tried.cut(LOG, self.log_error)
        else:
            tried.kept.append(LOG)
        tried(SUMMARY, lambda: write_json(named.summary, place / SUMMARY))
        if report:
            tried(REPORT, lambda: named.report(place / REPORT))
        if csv or (csv is None and len(self.log) <= CSV_MAX):
            tried(CSV, lambda: write_csv(self.log, place / CSV))
        if attempt is None:
            tried.settle(place)
        return place

    def show(self, **options: Any) -> Any:
        """The run again in the studio, in the browser or in a notebook (`tangere.show`, which takes the options).

        Without the extra `studio` its page is opened instead (a temporary file, whose path is given; `save` keeps one).
        """
        import tempfile
        import webbrowser
        from importlib.util import find_spec

        if find_spec("viser") is not None:
            import tangere

            return tangere.show(self, **options)
        path = self.report(Path(tempfile.mkdtemp(prefix="tangere-")) / "run.html")
        webbrowser.open(path.as_uri())
        return path

    def __repr__(self) -> str:
        arm = "" if self.robot is None else f" of {self.robot.name}"
        ended = f", {self.aborted}" if self.aborted else ""
        events = "1 event" if len(self.events) == 1 else f"{len(self.events)} events"
        limits = self.exceeded or list(self.limits)
        wild = f", {limits[0].partition(' of ')[0]}" + (" and more limits" if limits[1:] else "") if limits else ""
        return f"RunResult({self.duration:g} s{arm}, {events}{wild}{ended})"

    def _repr_html_(self) -> str:
        """The run in a sentence and its events, for a notebook; `report` writes the whole page."""
        from tangere.figures.markup import join, tag
        from tangere.figures.plots import number_row, small_table

        rows = [(*number_row([e.time_s], 6), e.kind, str(e.joint), *number_row([e.torque_nm])) for e in self.events]
        events = small_table(("time [s]", "what", "joint", "torque [Nm]"), rows) if rows else None
        return join(tag("p", repr(self)), events)
