"""A study as csv files: every contact, every step, and the tables."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np

from tangere.apps.study.injected import InjectedStudy
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
from tangere.apps.study.trials import step_copies
from tangere.apps.study.world import WORLDS, world_of
from tangere.errors import InvalidValue
from tangere.logs.files import write_text


def folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made where it does not exist."""
    where = Path(path)
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InvalidValue(f"cannot make the folder {where}: {problem.strerror or problem}") from problem
    return where


def write_study(study: Study, path: str | os.PathLike[str]) -> list[Path]:
    """contacts.csv, steps.csv, roc.csv, observers.csv and summary.csv in a folder."""
    where = folder(path)
    contacts = [
        (
            t.world, t.link, t.size, t.duration, t.ratio, int(t.detectable), int(t.found), t.delay, t.early, t.score,
            t.kind, *_answer(t.isolated), *_answer(t.told),
        )
        for t in study.touches
    ]  # fmt: skip
    head = [
        "world", "link", "force_n", "duration_s", "torque_sigmas", "detectable", "found", "delay_s", "early_alarms",
        "score", "kind",
        *(f"{who}_{what}" for who in ("isolator", "event") for what in ("link", "likeliest", "probability",
                                                                       "point_error_m", "force_n")),
    ]  # fmt: skip
    files = [_csv(where / "contacts.csv", head, contacts)]
    copies = {name: step_copies(world_of(study.plan, name)) for name in WORLDS}
    steps = [
        (f.world, joint, torque, int(s.moving[joint - 1]), int(s.quiet), float(s.delay[k]))
        for f in study.free for s in f.steps for k, (joint, torque) in enumerate(copies[f.world])
    ]  # fmt: skip
    files.append(
        _csv(where / "steps.csv", ["world", "joint", "torque_nm", "moving", "no_alarm_before", "delay_s"], steps)
    )
    points = [
        (name, size, p.factor, *_three(p.false_alarms), *_three(p.found))
        for name in WORLDS for size in sizes(study) for p in roc(study, name, size)
    ]  # fmt: skip
    head = ["world", "force_n", "factor", *_names("false_alarms_per_h"), *_names("found")]
    files.append(_csv(where / "roc.csv", head, points))
    rows = [astuple(o) for o in study.observers]
    head = ["world", "observer", "delay_s", "found", "motions", "half_rise_s", "peak_error_nm", "rms_nm", "cost_s"]
    files.append(_csv(where / "observers.csv", head, rows))
    files.append(_csv(where / "summary.csv", ["world", "what", *_names("value"), "count"], _summary(study)))
    return files


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
            entries.append((f"joint {step.joint}: smallest step found in 99 % [Nm]", step.smallest))
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


def write_injected(study: InjectedStudy, path: str | os.PathLike[str]) -> list[Path]:
    """logs.csv, alarms.csv and steps.csv in a folder."""
    where = folder(path)
    logs = [(log.name, log.fold, log.seconds, log.false_alarms, len(log.steps)) for log in study.logs]
    files = [_csv(where / "logs.csv", ["log", "fold", "watched_s", "false_alarms", "onsets"], logs)]
    events = [
        (log.name, e.time_s, e.onset_s, e.kind, int(e.alarm), e.joint, e.torque_nm, e.channel)
        for log in study.logs for e in log.events
    ]  # fmt: skip
    head = ["log", "time_s", "onset_s", "kind", "alarm", "joint", "torque_nm", "channel"]
    files.append(_csv(where / "events.csv", head, events))
    steps = [
        (log.name, s.onset, joint, torque, int(s.moving[joint - 1]), int(s.quiet), float(s.delay[k] + log.delay))
        for log in study.logs for s in log.steps for k, (joint, torque) in enumerate(study.copies)
    ]  # fmt: skip
    head = ["log", "onset_s", "joint", "torque_nm", "moving", "no_alarm_before", "delay_s"]
    files.append(_csv(where / "steps.csv", head, steps))
    return files


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


def _csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    write_text(path, text.getvalue())
    return path


def _cell(value: object) -> object:
    return f"{value:.9g}" if isinstance(value, float) else value
