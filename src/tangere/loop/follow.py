"""Following a log that is still being written: lines of csv in, events out as they happen."""

from __future__ import annotations

import dataclasses
import time as clock
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion
from tangere.identification.findings import promised_at
from tangere.identification.touch_logs import TouchLog, arm_findings, touch_log
from tangere.logs.csv_log import grouped_columns
from tangere.logs.log import Log
from tangere.logs.recordings import (
    GAP,
    cells_of,
    cleaned,
    columns_of_header,
    is_number,
    layout_of,
    number_of,
    without_end,
)
from tangere.loop.watching import TICK, Belief, Watcher, with_own_friction, with_stated_payload
from tangere.observe.detect import Event, PayloadChange, Wanted
from tangere.observe.momentum import MomentumObserver
from tangere.robots import Robot
from tangere.types import Array, State

# s of samples before the first can be judged: gains are read from 50 samples at rest, and the period must be known
HEAD = 1.0
FEWEST = 20  # samples in the head at least: less tell no period
# s after which the samples so far are held against the arm's gravity, as those of a file are (and at the end of a
# shorter stream): in its first second an arm mostly moves too little to be told from another
LOOKS = (5.0, 15.0)
POLL = 0.05  # s between two looks at a file that grows
# without these a sample is no use; of what the controller wanted some may be missing
_NEEDED = ("time", "q", "qd", "tau", "actual_current", "actual_current_as_torque")
Phase = Literal["raised", "changed", "ended", "open"]


@dataclasses.dataclass(frozen=True)
class Notice:
    """An event in one of its phases: raised, changed (into an alarm), ended; open: it lasts beyond the log's end."""

    phase: Phase
    event: Event


def lines_of(path: str | Path, *, patience: float = np.inf) -> Iterator[str]:
    """Lines of a file, those that are still to be written included; ends after `patience` seconds without any."""
    try:
        file = Path(path).open(encoding="utf-8-sig")  # noqa: SIM115  closed below, at the generator's end
    except OSError as problem:
        raise InvalidValue(f"cannot read {path}: {problem.strerror or problem}") from problem
    with file:
        part, waited = "", 0.0
        while True:
            got = file.readline()
            if not got:
                if waited >= patience:
                    break
                clock.sleep(POLL)
                waited += POLL
                continue
            waited = 0.0
            part += got
            if part.endswith("\n"):
                yield part
                part = ""
        if part.strip():
            yield part


class Follower:
    """Takes lines of csv (RTDE names, or `columns`) and tells of events.

    The first second is kept until gains and period are known, then told of as well. Lines that cannot be used (NaN, a
    stamp that repeats, a single one that goes back, a wrong number of cells) are left out and counted in `problems`.
    Where the clock stays behind, the recording has begun anew: an open event ends, observer and detector start again.
    Residual and events are those of `watch` over the same file: the same observer, torque taken as a mean over each
    period and as much later as the drive model's delay says.
    """

    def __init__(
        self,
        robot: Robot,
        believed: Belief,
        *,
        name: str = "-",
        columns: str | None = None,
        rate: float | None = None,
        wanted: Sequence[Wanted] = (),
        payload_changes: Sequence[PayloadChange] = (),
    ) -> None:
        self.name, self.robot, self.belief = name, robot, believed
        self.log: TouchLog | None = None  # of the head, once it is there: gains, sources, problems
        self.said: list[str] = []  # sentences that became known since they were last taken away
        self.problems: Counter[str] = Counter()
        self._columns, self._rate = columns, rate
        self._masks = (tuple(wanted), tuple(payload_changes))
        self._where: dict[str, NDArray[np.int64]] = {}  # columns of each quantity
        self._width = 0
        self._head: list[dict[str, Array]] = []
        self._watcher: Watcher | None = None
        self._number = 0  # of usable lines
        self._last = -np.inf
        self._back: float | None = None  # the stamp before, where it was smaller than the largest
        self._held: deque[tuple[float, Array, Array, Array, Array | None]] = deque()  # samples without their torque yet
        self._newest: tuple[float, Array] = (-np.inf, np.zeros(robot.dof))  # stamp and torque
        self._before: tuple[float, Array] | None = None  # the sample judged last
        self._seen: list[tuple[float, Array, Array, Array]] = []  # time, q, qd, tau until it is known whether they fit
        self._looks = list(LOOKS)  # still to come
        self._known: dict[int, Event] = {}  # as told last
        self.first = np.nan  # s, the first usable stamp

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far, in its newest form, times as in the notices."""
        if self._watcher is None:
            return ()
        return tuple(self._known.get(e.number, e) for e in self._watcher.detector.events)

    @property
    def seconds(self) -> float:
        """That were watched so far."""
        return 0.0 if self._watcher is None else self._watcher.seconds

    def follow(self, lines: Iterable[str]) -> Iterator[Notice]:
        """Notices, as the lines tell them; at the end of the lines the event that is still open."""
        for text in lines:
            for line in text.splitlines():  # a pipe does not translate the line ends of other systems
                yield from self.feed(line)
        yield from self.end()

    def feed(self, line: str) -> Iterator[Notice]:
        """One line."""
        try:
            cells = cells_of(line)
        except InvalidValue:
            if not self._where:
                raise
            self.problems["lines that are no csv"] += 1
            return
        if not any(cells):
            return
        if not self._where:
            cells = without_end(cells)
            named = not is_number(cells[0])
            self._arrange(line, cells, named)
            if named:
                return
        sample = self._sample(cells)
        if sample is None:
            return
        if self._watcher is not None:
            yield from self._take(sample)
            return
        self._head.append(sample)
        if float(sample["time"]) - self.first >= HEAD and len(self._head) >= FEWEST:
            yield from self._begin()

    def end(self) -> Iterator[Notice]:
        """No more lines: what is still held back, and the event that is still open."""
        if self._watcher is None:
            if len(self._head) < FEWEST:
                raise InvalidValue(f"{self.name}: too short to watch: {len(self._head)} samples, {FEWEST} at least")
            yield from self._begin()
        self._look()
        while self._held:  # the last samples have no later torque: they keep the last
            yield from self._judge(self._held.popleft(), self._newest[1])
        yield from self._changes(None, self._newest[0], last=True)

    def _arrange(self, line: str, cells: Sequence[str], named: bool) -> None:
        """Which cells are what, from the column list or the header."""
        columns = self._columns
        if columns is None and named:
            columns = columns_of_header(line)
        if columns is not None:
            rest = columns.rstrip().endswith("...")
            at = 0
            for name, width in layout_of(columns.rstrip()[:-3].rstrip(", ") if rest else columns, self.name):
                if name != "_":
                    self._where[name] = np.arange(at, at + width)
                at += width
            if at > len(cells) or (at < len(cells) and not rest):
                raise InvalidValue(f"{self.name}: {columns!r} stands for {at} columns, the first line has {len(cells)}")
        elif named:
            grouped = grouped_columns({name: np.array([float(k)]) for k, name in enumerate(cells)})
            self._where = {name: at.ravel().astype(int) for name, at in grouped.items()}
        else:
            raise InvalidValue(
                f"{self.name}: has no header; say what its {len(cells)} columns are, such as --columns t,q,qd,current"
            )
        self._width = len(cells)
        wanted = ("time", "q", "qd", "tau", "actual_current", "actual_current_as_torque", "qd_des", "tau_cmd",
                  "target_current", "payload", "payload_cog")  # fmt: skip
        self._where = {name: self._where[name] for name in wanted if name in self._where}
        if "time" not in self._where and self._rate is None:
            raise InvalidValue(f"{self.name}: has no stamps; give a column t or the rate in samples per second")

    def _sample(self, cells: Sequence[str]) -> dict[str, Array] | None:
        if len(cells) == self._width + 1 and not cells[-1]:
            cells = cells[:-1]  # a comma at the end of the lines, not of the header
        if len(cells) != self._width:
            self.problems[f"lines with another number of cells than {self._width}"] += 1
            return None
        try:
            sample = {name: np.array([number_of(cells[k]) for k in at]) for name, at in self._where.items()}
        except ValueError:
            self.problems["lines with a cell that is no number"] += 1
            return None
        if "time" not in sample:
            sample["time"] = np.array([self._number / self._rate]) if self._rate else np.zeros(1)
        if not all(np.all(np.isfinite(sample[name])) for name in _NEEDED if name in sample):
            self.problems["samples with NaN or infinity"] += 1
            return None
        t = float(sample["time"][0])
        sample["time"] = sample["time"][0]
        if t == self._last:
            self.problems["stamps that repeat"] += 1
            return None
        if t < self._last:
            # a single sample may be late; a second one behind it means that the clock, and the recording, began anew
            if self._back is None or t <= self._back:
                self._back = t
                self.problems["stamps that go backwards"] += 1
                return None
            self._anew(t)
        self._back = None
        if self._number == 0:
            self.first = t
        self._number += 1
        self._last = t
        return sample

    def _anew(self, t: float) -> None:
        """The clock went back to t and goes on from there: nothing before can be connected to what follows."""
        self.said.append(f"the clock went back from {self._last:.6g} s to {t:.6g} s: watched anew from there")
        self.problems["times that the clock was set back"] += 1
        if self._watcher is None:
            self._head.clear()
            self.first = t
            return
        self._held.clear()
        self._seen.clear()
        self._before = None
        self._newest = (-np.inf, np.zeros_like(self._newest[1]))
        self._watcher.detector.restart()

    def _begin(self) -> Iterator[Notice]:
        """The head is there: gains, period, payload; then what happened in it."""
        names = self._head[0]
        columns = {name: np.array([sample[name] for sample in self._head]) for name in names}
        if "payload" in columns:
            columns["payload"] = columns["payload"].reshape(-1)
        recording = cleaned(self.name, Log(columns), "")
        model: IdentifiedModel | None = self.belief.model
        arm = self.robot if model is None else self.belief.robot
        self.log = touch_log(recording, arm, model=model)
        before = self.belief.notes
        self.belief, said = with_stated_payload(with_own_friction(self.belief, self.log), self.log)
        self.said += [*self.log.problems, *self.belief.notes[len(before) :], *said]
        self.said += promised_at(self.belief.thresholds, columns["time"])
        if self.log.misfit:
            self._looks.clear()
        self._gap = GAP * float(np.median(np.diff(columns["time"])))
        self._scale = np.ones(arm.dof) if model is None or model.scale.shape != (arm.dof,) else model.scale
        self._watcher = Watcher(self.belief, wanted=self._masks[0], payload_changes=self._masks[1])
        drive = self.belief.drive
        self._observer = MomentumObserver(
            self.belief.robot, self.belief.thresholds.gain, drive, start="first", delay=0.0
        )
        self._delay = drive.delay
        head, self._head = self._head, []
        for sample in head:
            yield from self._take(sample)

    def _take(self, sample: dict[str, Array]) -> Iterator[Notice]:
        """A sample of the log; those whose torque is now known are judged."""
        t, q = float(sample["time"]), sample["q"]
        tau = self._torque(sample)
        last_t, last_tau = self._newest
        qd = sample.get("qd")
        if qd is None:  # as touch_log says: differences, here of the sample before
            previous = self._held[-1] if self._held else None
            qd = np.zeros_like(q) if previous is None else (q - previous[1]) / (t - previous[0])
        self._held.append((t, q, qd, tau, sample.get("qd_des")))
        if self._looks:
            self._seen.append((t, q, qd, tau))
            if t - self._seen[0][0] >= self._looks[0]:
                del self._looks[0]
                self._look()
        while self._held and self._held[0][0] + self._delay <= t + TICK:
            when = self._held[0][0] + self._delay
            share = 1.0 if self._delay == 0.0 else (when - last_t) / (t - last_t)
            late = tau if share >= 1.0 else last_tau + share * (tau - last_tau)
            self._newest = (t, tau)
            yield from self._judge(self._held.popleft(), late)
        self._newest = (t, tau)

    def _look(self) -> None:
        """Whether what was seen so far is of this arm; once something is said, or after the last look, no more."""
        if len(self._seen) >= FEWEST:
            assert self.log is not None
            time, q, qd, tau = (np.array(values) for values in zip(*self._seen, strict=True))
            motion = Motion(time, q, qd, tau)
            found = arm_findings(self.belief.robot, motion, None if self.log.torque else self.log.gain)
            self.said += found
            if found:
                self._looks.clear()
        if not self._looks:
            self._seen.clear()

    def _torque(self, sample: dict[str, Array]) -> Array:
        """As touch_log turns a recording into torque."""
        assert self.log is not None
        if not self.log.torque:
            return np.asarray(sample["actual_current"] * self.log.gain)
        if "tau" in sample:
            return np.asarray(sample["tau"] * self._scale)
        free = sample["actual_current_as_torque"]
        return np.asarray((free + self.belief.robot.gravity_torque(sample["q"])) * self._scale)

    def _judge(self, held: tuple[float, Array, Array, Array, Array | None], late: Array) -> Iterator[Notice]:
        assert self._watcher is not None
        t, q, qd, tau, target = held
        before, self._before = self._before, (t, late)
        if before is None:
            self._observer.reset(State(t, 0.0, q, qd, late))
            residual = np.full(len(q), np.nan)
        else:
            h = t - before[0]
            mean = 0.5 * (before[1] + late)
            if h <= self._gap:
                residual = self._observer.update(State(t, h, q, qd, mean))
            else:
                self._observer.reset(State(t, 0.0, q, qd, mean))
                residual = np.full(len(q), np.nan)
                self.problems["gaps"] += 1
        changed = self._watcher.step(State(t, 0.0 if before is None else h, q, qd, tau, qd_target=target), residual)
        yield from self._changes(changed, self._newest[0])

    def _changes(self, changed: Event | None, stamp: float, last: bool = False) -> Iterator[Notice]:
        """What is new: at most two events can have changed with one sample, the newest two."""
        assert self._watcher is not None
        for event in self._watcher.detector.events[-2:]:
            known = self._known.get(event.number)
            # the sample that completes the evidence is the newest one, not the one whose residual it completes
            told = dataclasses.replace(event, time_s=stamp if known is None else known.time_s)
            self._known[event.number] = told
            if known is None:
                yield Notice("raised", told)
            elif changed is not None and event.number == changed.number and event.alarm and not known.alarm:
                yield Notice("changed", told)
            if event.end_s is not None and (known is None or known.end_s is None):
                yield Notice("ended", told)
            elif last and event.end_s is None:
                yield Notice("open", told)
