"""Pushes injected into real free logs: what the detector finds of them, and what it finds where there is nothing."""

from __future__ import annotations

import dataclasses
import fnmatch
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.apps.study.plan import ALARM_RATE, EVERY
from tangere.apps.study.statistics import Estimate, per_hour, quantile, rate
from tangere.apps.study.study import Progress
from tangere.apps.study.tables import StepRow, ladder_rows
from tangere.apps.study.trials import FOUND_WITHIN, LEAD, Injected, inject, ladder, onsets
from tangere.apps.study.workers import workers_of
from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, Motion, momentum_residual
from tangere.identification.belief import Belief, belief, read, with_stated_payload
from tangere.identification.identify_logs import identification
from tangere.identification.touch_logs import TouchLog
from tangere.logs.recordings import all_recordings
from tangere.loop.tuning import tuning
from tangere.loop.watching import watch
from tangere.observe.detect import Event, Thresholds
from tangere.robots import Robot
from tangere.types import Array

SHARE = 0.05  # of the joints' peak torque: the steps whose rates are shown where nobody says others


@dataclass(frozen=True)
class LogResult:
    """One log: watched as it is, and with steps in it."""

    name: str
    seconds: float  # watched
    events: tuple[Event, ...]  # of the untouched log
    steps: tuple[Injected, ...]
    delay: float  # s by which the residual is known later than its stamp (of the drive model)
    fold: int = 0
    free: bool = True  # nothing touches it: it judges

    @property
    def false_alarms(self) -> int:
        """Alarms although nothing touched the arm."""
        return sum(event.alarm for event in self.events) if self.free else 0

    @property
    def masked(self) -> float:
        """Seconds in which nothing would have raised an alarm: a stop."""
        last = max((event.time_s for event in self.events), default=0.0)
        return sum((last if e.end_s is None else e.end_s) - e.onset_s for e in self.events if e.masked)


@dataclass(frozen=True)
class InjectedStudy:
    """Everything that was found in real logs."""

    robot: str
    logs: tuple[LogResult, ...]
    torque: Array  # (n,) Nm, the steps asked for
    copies: tuple[tuple[int, float], ...]  # joint and Nm: `torque`, then the ladder
    thresholds: tuple[Thresholds, ...]  # one per fold
    notes: tuple[str, ...]
    seed: int
    interrupted: bool
    seconds: float  # that it took
    lost: str = ""  # why it was interrupted, where nobody asked for it
    arm: Robot | None = None  # which says the units of its joints

    def unit(self, joint: int | None = None) -> str:
        """Of the steps on a joint (from 1), or on all in words."""
        return "Nm" if self.arm is None else self.arm.units("Nm") if joint is None else self.arm.unit(joint, "Nm")

    @property
    def hours(self) -> float:
        """Free motion that judged."""
        return sum(log.seconds for log in self.logs if log.free) / 3600.0

    @property
    def masked(self) -> float:
        """Share of the free motion that stops mask."""
        return sum(log.masked for log in self.logs if log.free) / max(3600.0 * self.hours, 1e-9)

    @property
    def false_alarms(self) -> Estimate:
        """Alarms per hour of the untouched logs."""
        return per_hour(sum(log.false_alarms for log in self.logs), self.hours)

    def steps(self) -> list[Injected]:
        """Of all logs."""
        return [step for log in self.logs for step in log.steps]

    def asked(self, joint: int, moving: bool) -> tuple[Estimate, Estimate]:
        """Found share of the step asked for on a joint (from 1) that moves or does not, and its median delay [s]."""
        delays = [
            step.delay[joint - 1] + log.delay
            for log in self.logs for step in log.steps if step.quiet and bool(step.moving[joint - 1]) == moving
        ]  # fmt: skip
        return rate(int(np.isfinite(delays).sum()), len(delays)), quantile(delays, 0.5)

    def twice(self, row: StepRow) -> Estimate:
        """Median delay [s] of steps twice as large as the smallest that is found on a moving joint, or the next."""
        n = len(self.torque)
        sizes = [(size, n + k) for k, (joint, size) in enumerate(self.copies[n:]) if joint == row.joint]
        larger = [k for size, k in sorted(sizes) if size >= 2.0 * row.smallest.value]
        delays = [
            step.delay[larger[0]] + log.delay
            for log in self.logs for step in log.steps
            if larger and step.quiet and step.moving[row.joint - 1]
        ]  # fmt: skip
        return quantile(delays, 0.5)

    def ladder(self) -> list[StepRow]:
        """Found rates by size, joint by joint, while the joint moves."""
        n = len(self.torque)
        return ladder_rows(self.copies[n:], self.steps(), skip=n)


def inject_logs(
    robot: Robot,
    sources: Sequence[str],
    *,
    model: IdentifiedModel | None = None,
    folds: int = 0,
    alarm_rate: float = ALARM_RATE,
    torque: Sequence[float] | None = None,
    skip: Sequence[str] = (),
    teach: Sequence[str] = (),
    columns: str | None = None,
    sample_rate: float | None = None,
    seed: int = 0,
    every: float = EVERY,
    workers: int | str | None = None,
    progress: Progress = lambda what, share: None,
    keep: Callable[[Any], None] = lambda result: None,
) -> InjectedStudy:
    """Watch free logs as they are and with steps injected by tau <- tau - step.

    model: its drives, links and thresholds; None: data sheet, friction prior and thresholds from what is not known.
    folds: k > 1 deals the logs out in order of their names into k parts; each is judged with a model and thresholds
    (for alarm_rate [1/h]) that come from the others. skip: names (globs) of logs to leave out. teach: of those that are
    learned from without a word on what happens in them, and only watched, never judged. torque: n numbers [Nm] whose
    found rate is wanted. All other logs must be free: what touches the arm in them counts as false alarm. keep:
    called with each LogResult as it comes.
    """
    began = time.perf_counter()
    n = robot.dof
    wanted = SHARE * robot.tau_max if torque is None else np.array(torque, dtype=np.float64)
    if wanted.shape != (n,) or not np.all(np.isfinite(wanted) & (wanted > 0.0)):
        raise InvalidValue(f"torque: {n} numbers > 0 [Nm], one per joint, got {torque!r}")
    if folds < 0 or folds == 1:
        raise InvalidValue(f"folds: 0 for none, or 2 and more, got {folds!r}")
    if folds and model is not None:
        raise InvalidValue("folds make their own models: leave out the model, or the folds")
    progress("reading", 0.0)
    found = all_recordings(sources, columns=columns, rate=sample_rate)
    left_out = {r.name for r in found if any(fnmatch.fnmatchcase(r.name, glob) for glob in skip)}
    found = [r for r in found if r.name not in left_out]
    if not found:
        raise InvalidValue("no log is left: skip takes all of them")
    names = sorted(recording.name for recording in found)
    judges = {name for name in names if not any(fnmatch.fnmatchcase(name, glob) for glob in teach)}
    if not judges:
        raise InvalidValue("no log is left to judge: teach takes all of them")
    if folds > len(found):
        raise InvalidValue(f"folds: at most one per log, got {folds!r} for {len(found)} logs")
    sizes = ladder(robot.tau_max)
    copies = [(j + 1, float(wanted[j])) for j in range(n)]
    copies += [(j + 1, float(s)) for j in range(n) for s in sizes[:, j]]
    notes: list[str] = []
    results: list[LogResult] = []
    thresholds: list[Thresholds] = []
    with workers_of(workers) as pool:
        believed: list[tuple[int, TouchLog, Belief]] = []
        if folds:
            progress("identifying", 0.02)
            split = [names[f::folds] for f in range(folds)]
            tasks = [
                (_fold, (robot, tuple(sources), columns, sample_rate, (*part, *left_out), alarm_rate)) for part in split
            ]  # fmt: skip
            made = pool.results(tasks, lambda done, total: progress("identifying", 0.02 + 0.4 * done / total))
            for f, known in enumerate(made):
                thresholds.append(known.thresholds)
                believed += [(f, read(r, robot, known.model), known) for r in found if r.name in split[f]]
        else:
            known = belief(robot, model)
            notes += known.notes
            thresholds.append(known.thresholds)
            believed = [(0, read(r, robot, model), known) for r in found]
        todo = []
        for k, (f, log, known) in enumerate(believed):
            own, said = with_stated_payload(known, log)
            notes += [f"{log.name}: {text}" for text in (*log.problems, *said)]
            todo.append((watch_log, (own, log, tuple(copies), (seed, k), every, f, log.name in judges)))
        results = pool.results(
            todo, lambda done, total: progress("injecting", 0.45 + 0.55 * done / max(1, total)), keep
        )
        interrupted = pool.interrupted
    progress("done", 1.0)
    return InjectedStudy(
        robot.name, tuple(results), wanted, tuple(copies), tuple(thresholds), tuple(dict.fromkeys(notes)), seed,
        interrupted, time.perf_counter() - began, pool.lost, robot,
    )  # fmt: skip


def watch_log(
    believed: Belief,
    log: TouchLog,
    copies: tuple[tuple[int, float], ...],
    seed: tuple[int, int],
    every: float,
    fold: int,
    free: bool = True,
) -> LogResult:
    """One log, watched as it is and with steps.

    A step is added to the residual as it was watched: what friction's memory would learn of it before the alarm is left
    out, less than a hundredth of the steps of a UR3e within 20 ms.
    """
    motion, thresholds = log.motion, believed.thresholds
    seen = watch(log, believed, isolate=False)
    rng = np.random.default_rng(np.random.SeedSequence(seed))

    def observer(rows: slice, added: Array) -> Array:
        part = Motion(motion.time[rows], motion.q[rows], motion.qd[rows], motion.tau[rows] + added)
        return momentum_residual(believed.robot, believed.drive, part, thresholds.gain)

    steps = []
    n = motion.q.shape[1]
    if free and motion.time[-1] - motion.time[0] > LEAD + FOUND_WITHIN:
        busy = [(e.onset_s - 0.1, (e.end_s if e.end_s is not None else np.inf) + LEAD) for e in seen.events]
        for row in onsets(motion.time, every, rng):
            signs = rng.choice((-1.0, 1.0), n).tolist()
            onset = float(motion.time[row])
            if any(start - FOUND_WITHIN < onset < end for start, end in busy):
                continue  # an event goes on: it would be found for another reason
            signed = [(joint, signs[joint - 1] * size) for joint, size in copies]
            one = inject(thresholds, motion.time, seen.residual, motion.qd, observer, row, signed, n)
            if one is not None:
                steps.append(one)
    return LogResult(log.name, seen.seconds, seen.events, tuple(steps), believed.drive.delay, fold, free)


def _fold(
    robot: Robot, sources: tuple[str, ...], columns: str | None, sample_rate: float | None, others: tuple[str, ...],
    alarm_rate: float,
) -> Belief:  # fmt: skip
    """Model and thresholds from all logs but those others, which are judged or left out."""
    done = identification(robot, sources, columns=columns, rate=sample_rate, hold_out=",".join(map(_literal, others)))
    taught = [
        read(recording, robot, done.model)
        for recording in all_recordings(sources, columns=columns, rate=sample_rate)
        if recording.name not in others
    ]  # fmt: skip
    known = belief(robot, done.model)
    return dataclasses.replace(known, thresholds=tuning(robot, taught, known, alarm_rate).thresholds)


def _literal(name: str) -> str:
    """A name as a pattern that matches itself only."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
