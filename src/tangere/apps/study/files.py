"""A study as csv files: every contact, every step, and the tables."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from tangere.apps.study.injected import InjectedStudy, LogResult
from tangere.apps.study.statistics import Estimate
from tangere.apps.study.study import Study
from tangere.apps.study.tables import (
    false_alarms,
    found_rows,
    isolation_rows,
    roc,
    sizes,
    smallest_rows,
    step_delays,
)
from tangere.apps.study.trials import FreeResult, TouchResult, step_copies
from tangere.apps.study.workers import FOLDER
from tangere.apps.study.world import WORLDS, world_of
from tangere.errors import InvalidValue
from tangere.logs.files import Attempts, plain, write_text
from tangere.loop.folder import MANIFEST, Claim, Manifest, load_manifest, write_manifest

# what a study leaves, with its manifest.json; UNFINISHED: as far as it has come, while it runs
SUMMARY, CONTACTS, STEPS, ROC, OBSERVERS = "summary.csv", "contacts.csv", "steps.csv", "roc.csv", "observers.csv"
LOGS, EVENTS, REPORT = "logs.csv", "events.csv", "report.html"
UNFINISHED = "unfinished-"
COLLISIONS, PROMISES = "collisions.csv", "promises.csv"
TABLES = (SUMMARY, CONTACTS, STEPS, ROC, OBSERVERS, LOGS, EVENTS)
OURS = (REPORT, COLLISIONS, PROMISES, *TABLES, *(UNFINISHED + name for name in TABLES))

CONTACT_HEAD = (
    "world", "link", "force_n", "duration_s", "torque_sigmas", "detectable", "found", "delay_s", "early_alarms",
    "score", "kind",
    *(f"{who}_{what}" for who in ("isolator", "event") for what in ("link", "likeliest", "probability",
                                                                   "point_error_m", "force_n")),
)  # fmt: skip
STEP_HEAD = ("world", "joint", "torque_nm", "moving", "no_alarm_before", "delay_s")
LOG_HEAD = ("log", "fold", "watched_s", "false_alarms", "onsets")
EVENT_HEAD = ("log", "time_s", "onset_s", "kind", "alarm", "joint", "torque_nm", "channel")
LOG_STEP_HEAD = ("log", "onset_s", "joint", "torque_nm", "moving", "no_alarm_before", "delay_s")

Rows = list[tuple[object, ...]]
Table = tuple[str, Sequence[str], Iterable[Sequence[object]]]  # file, head, rows


def claimed(
    out: str | os.PathLike[str], command: Sequence[str], told: Mapping[str, Any], fresh: bool = False, *,
    resume: bool = False,
) -> Claim:  # fmt: skip
    """The folder of a study with its manifest; fresh: an earlier study there stays, the folder is out-2, out-3, ...

    resume: the folder must hold the beginning of the very same study, which is kept.
    """
    scenario = {"name": "study", **plain(told)}
    if resume:
        _resumable(Path(out), scenario)
    claim = Claim(out, () if resume else OURS, what="study", fresh=fresh)
    for name in TABLES if resume else ():  # they are written anew from what the chunks hold
        (claim.path / (UNFINISHED + name)).unlink(missing_ok=True)
    if not resume:
        shutil.rmtree(claim.path / FOLDER, ignore_errors=True)
    write_manifest(Manifest.of(command, scenario), claim.path)
    return claim


def _resumable(folder: Path, scenario: Mapping[str, Any]) -> None:
    """Raise where a folder does not hold the beginning of this study."""
    if not (folder / MANIFEST).is_file():
        raise InvalidValue(f"--resume: {folder} holds no study; leave --resume out to begin one")
    before = dict(load_manifest(folder).scenario)
    if before.get("name") != "study":
        raise InvalidValue(f"--resume: {folder} is no folder of a study")
    other = sorted(key for key in {*before, *scenario} if before.get(key) != scenario.get(key))
    if other:
        raise InvalidValue(f"--resume: the study in {folder} has another {', '.join(other)}; give it as it was begun")


class Kept:
    """Results as they come, in unfinished-contacts.csv and the like: a kill leaves what was done by then.

    error: why nothing more is written, "" while it is. `done` removes what whole tables have taken the place of.
    """

    def __init__(self, folder: Path, copies: Callable[[Any], Sequence[tuple[int, float]]]) -> None:
        self.error = ""
        self._folder, self._copies = folder, copies
        self._begun: set[str] = set()

    def __call__(self, result: Any) -> None:
        if isinstance(result, FreeResult):
            self._add(STEPS, STEP_HEAD, _steps(result, self._copies(result)))
        elif isinstance(result, LogResult):
            self._add(LOGS, LOG_HEAD, [_log(result)])
            self._add(EVENTS, EVENT_HEAD, _events(result))
        else:
            self._add(CONTACTS, CONTACT_HEAD, [_contact(touch) for touch in result])

    def _add(self, name: str, head: Sequence[str], rows: Rows) -> None:
        if self.error:
            return
        text = _text(() if name in self._begun else head, rows)
        place = self._folder / (UNFINISHED + name)
        size = place.stat().st_size if place.exists() else 0
        try:
            with place.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as problem:
            self.error = f"results as they come could not be written: {problem.strerror or problem}"
            with suppress(OSError):  # half a line is none
                os.truncate(place, size)
                if not size:
                    place.unlink()
        self._begun.add(name)

    def done(self, attempt: Attempts) -> None:
        """What whole tables have taken the place of is removed, the rest is named among what is kept."""
        for name in sorted(self._begun):
            place = self._folder / (UNFINISHED + name)
            if name in attempt.kept:
                place.unlink(missing_ok=True)
            elif place.exists():
                attempt.kept.append(f"{place.name} as far as it goes")


def write_study(study: Study, path: str | os.PathLike[str], attempt: Attempts | None = None) -> None:
    """contacts.csv, steps.csv, summary.csv, roc.csv and observers.csv in a folder, those that can be.

    attempt: who is told what could not be written; without one that is an error.
    """
    _write(path, attempt, _simulated(study))


def _write(path: str | os.PathLike[str], attempt: Attempts | None, tables: Iterable[Table]) -> None:
    where, told = Path(path), Attempts() if attempt is None else attempt
    if attempt is None:
        where.mkdir(parents=True, exist_ok=True)
    for name, head, rows in tables:
        _csv(told, where / name, head, rows)
    if attempt is None:
        told.settle(where)


def _simulated(study: Study) -> Iterator[Table]:
    yield CONTACTS, CONTACT_HEAD, [_contact(t) for t in study.touches]
    copies = {name: step_copies(world_of(study.plan, name)) for name in WORLDS}
    yield STEPS, STEP_HEAD, [row for f in study.free for row in _steps(f, copies[f.world])]
    yield SUMMARY, ("world", "what", *_names("value"), "count"), _summary(study)
    points = [
        (name, size, p.factor, *_three(p.false_alarms), *_three(p.found))
        for name in WORLDS for size in sizes(study) for p in roc(study, name, size)
    ]  # fmt: skip
    yield ROC, ("world", "force_n", "factor", *_names("false_alarms_per_h"), *_names("found")), points
    head = ("world", "observer", "delay_s", "found", "motions", "half_rise_s", "peak_error_nm", "rms_nm", "cost_s")
    yield OBSERVERS, head, [astuple(o) for o in study.observers]


def _contact(t: TouchResult) -> tuple[object, ...]:
    return (
        t.world, t.link, t.size, t.duration, t.ratio, int(t.detectable), int(t.found), t.delay, t.early, t.score,
        t.kind, *_answer(t.isolated), *_answer(t.told),
    )  # fmt: skip


def _steps(free: FreeResult, copies: Sequence[tuple[int, float]]) -> Rows:
    return [
        (free.world, joint, torque, int(s.moving[joint - 1]), int(s.quiet), float(s.delay[k]))
        for s in free.steps for k, (joint, torque) in enumerate(copies)
    ]  # fmt: skip


def _log(log: LogResult) -> tuple[object, ...]:
    return log.name, log.fold, log.seconds, log.false_alarms, len(log.steps)


def _events(log: LogResult) -> Rows:
    return [
        (log.name, e.time_s, e.onset_s, e.kind, int(e.alarm), e.joint, e.torque_nm, e.channel) for e in log.events
    ]  # fmt: skip


def _summary(study: Study) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for name in WORLDS:
        entries: list[tuple[str, Estimate]] = [("false alarms per hour", false_alarms(study, name))]
        for found in found_rows(study, name):
            size = f"{found.size:g} N"
            entries += [
                (f"{size}: detectable", found.detectable), (f"{size}: found of detectable", found.found),
                (f"{size}: found of all", found.found_all), (f"{size}: median delay [s]", found.median),
                (f"{size}: 95 % delay [s]", found.late),
            ]  # fmt: skip
        for step in smallest_rows(study, name):
            unit = study.unit(step.joint)
            entries.append((f"joint {step.joint}: smallest step found in 99 % [{unit}]", step.smallest))
        for source in ("isolated", "told"):
            for row in isolation_rows(study, name, source, study.plan.force):
                who = "isolator" if source == "isolated" else "event"
                link = "all links" if row.link is None else f"link {row.link}"
                entries += [
                    (f"{who}, {link}: answered", row.answered), (f"{who}, {link}: right of answered", row.right),
                    (f"{who}, {link}: point within 5 cm of right", row.near),
                ]  # fmt: skip
        delays = step_delays(study, name)
        entries.append(("steps judged", Estimate(float(len(delays)), float("nan"), float("nan"), len(delays))))
        rows += [(name, what, *_three(value), value.count) for what, value in entries]
    return rows


def write_injected(study: InjectedStudy, path: str | os.PathLike[str], attempt: Attempts | None = None) -> None:
    """logs.csv, events.csv and steps.csv in a folder, those that can be; attempt: as of write_study."""
    steps: Rows = [
        (log.name, s.onset, joint, torque, int(s.moving[joint - 1]), int(s.quiet), float(s.delay[k] + log.delay))
        for log in study.logs for s in log.steps for k, (joint, torque) in enumerate(study.copies)
    ]  # fmt: skip
    events: Rows = [row for log in study.logs for row in _events(log)]
    logs: Rows = [_log(log) for log in study.logs]
    _write(path, attempt, ((LOGS, LOG_HEAD, logs), (EVENTS, EVENT_HEAD, events), (STEPS, LOG_STEP_HEAD, steps)))


def _answer(answer: object) -> tuple[object, ...]:
    if answer is None:
        return ("",) * 5
    return tuple(
        "" if value is None or (isinstance(value, float) and np.isnan(value)) else value
        for value in (getattr(answer, name) for name in ("link", "best", "probability", "point_error", "force"))
    )


def _names(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _three(value: Estimate) -> tuple[float, float, float]:
    return value.value, value.low, value.high


def _csv(attempt: Attempts, path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    attempt(path.name, lambda: write_text(path, _text(head, rows)))


def _text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if head:
        writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return f"{value:.9g}" if isinstance(value, float) else value
