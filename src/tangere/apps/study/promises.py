"""False alarms promised against counted: hours of free motion in closed loop by fused rollouts, touched by nobody."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tangere.apps.study.collisions import closed_loops, refuse_early, title
from tangere.apps.study.figures import arm_title
from tangere.apps.study.files import PROMISES
from tangere.apps.study.plan import Plan
from tangere.apps.study.statistics import Estimate, per_hour, span
from tangere.apps.study.study import Progress
from tangere.apps.study.trials import Learned, Quiet, chunks, generator, learn_chunk, learned
from tangere.apps.study.workers import Store, Task, workers_of
from tangere.apps.study.world import WORLDS, WorldName, with_arm, world_of
from tangere.figures.markup import join, number, tag
from tangere.logs.files import write_text
from tangere.report.page import page_html
from tangere.report.section import Section, command_line, page_head, table

RATES = (0.1, 1.0, 10.0, 60.0)  # [1/h] that thresholds are learned for: from one alarm in ten hours to one a minute
SECONDS = 30.0  # of one motion
ARMS = 120  # with noise of their own on each motion: an hour of work; more of them would see the same few motions
FREE = 6  # stream of random numbers
HEAD = ("asked for [1/h]", "promised [1/h]", "hours", "alarms", "counted [1/h]", "counted against promised")


@dataclass(frozen=True)
class Promises:
    """Everything that was counted."""

    plan: Plan
    parts: tuple[Quiet, ...]
    known: dict[tuple[WorldName, float], Learned]
    interrupted: bool
    seconds: float
    workers: int
    lost: str = ""

    def counted(self, world: WorldName, asked: float) -> tuple[Estimate, float]:
        """Alarms per hour, and the hours."""
        mine = [part for part in self.parts if part.world == world and part.asked == asked]
        hours = sum(part.hours for part in mine)
        return per_hour(sum(part.alarms for part in mine), hours), hours


def free_hour(plan: Plan, name: WorldName, asked: float, task: int, known: Learned, device: str) -> Quiet:
    """ARMS arms on one drawn motion, the same for every rate."""
    rng = generator(plan, FREE, name, task)
    rolls, _ = closed_loops(world_of(plan, name), rng, known, ARMS, SECONDS, device)
    whole = ~rolls.failed
    return Quiet(name, asked, int(np.sum(whole)) * SECONDS / 3600.0, int(rolls.events[whole].sum()))


def promises(
    plan: Plan,
    hours: float,
    *,
    device: str = "cpu",
    workers: int | str | None = None,
    progress: Progress = lambda what, share: None,
    store: Store | None = None,
    shown: Callable[[Promises], None] | None = None,
) -> Promises:
    """So many hours for each of RATES and each world. shown: told now and then what there is so far."""
    began = time.perf_counter()
    plan = with_arm(plan)
    refuse_early(plan, device)
    parts: list[Quiet] = []
    with workers_of(1 if device == "cuda" else workers) as pool:
        numbers = [(name, k) for name in WORLDS for k in range(chunks(plan.learn_minutes)[0])]
        progress("free motion", 0.0)
        made = pool.results([(learn_chunk, (plan, *key)) for key in numbers])
        pool.need(made, len(numbers))
        motions = {name: [m for (w, _), m in zip(numbers, made, strict=True) if w == name] for name in WORLDS}
        asked = [(name, rate) for rate in RATES for name in WORLDS]
        progress("learning thresholds", 0.05)
        taught = pool.results([(learned, (replace(plan, alarm_rate=r), name, motions[name])) for name, r in asked])
        pool.need(taught, len(asked))
        known = dict(zip(asked, taught, strict=True))
        tasks: list[Task] = [
            (free_hour, (plan, name, r, k, known[name, r], device))
            for k in range(max(1, round(hours * 3600.0 / (ARMS * SECONDS)))) for name, r in asked
        ]  # fmt: skip
        last = [time.monotonic()]

        def keep(part: Quiet) -> None:
            parts.append(part)
            if shown is not None and time.monotonic() - last[0] > 10.0:
                shown(Promises(plan, tuple(parts), known, True, time.perf_counter() - began, pool.count))
                last[0] = time.monotonic()

        results = pool.results(
            tasks, lambda done, total: progress("watching", 0.1 + 0.9 * done / max(1, total)), keep, store
        )
        progress("done", 1.0)
        took = time.perf_counter() - began
        return Promises(plan, tuple(results), known, pool.interrupted, took, pool.count, pool.lost)


def _rows(done: Promises, world: WorldName) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for asked in RATES:
        found, hours = done.counted(world, asked)
        promised = done.known[world, asked].thresholds.rate
        rows.append((f"{asked:g}", f"{promised:.3g}", f"{hours:.0f}", str(found.count), span(found),
                     span(Estimate(found.value / promised, found.low / promised, found.high / promised))))  # fmt: skip
    return rows


def promises_text(done: Promises) -> str:
    """What was counted, for a terminal."""
    from tangere.report.terminal import table as lines

    hours = sum(part.hours for part in done.parts)
    out = [f"{done.plan.robot}: {hours:.0f} h of free motion, {done.seconds:.0f} s on {done.workers} processes, "
           f"seed {done.plan.seed}; intervals hold 95 % of a Poisson count"]  # fmt: skip
    for world in WORLDS:
        out += ["", title(done.plan, world), "", *lines(_rows(done, world), HEAD, "rrrrrr")]
    return "\n".join(out)


def write_promises(done: Promises, folder: Path) -> Path:
    """promises.csv: the table of both worlds."""
    lines = ["world,asked_per_hour,promised_per_hour,hours,alarms,counted_per_hour,counted_low,counted_high"]
    for world in WORLDS:
        for asked in RATES:
            found, hours = done.counted(world, asked)
            values: Sequence[float] = (asked, done.known[world, asked].thresholds.rate, hours, found.count, found.value)
            lines.append(",".join([world, *(f"{value:.9g}" for value in (*values, found.low, found.high))]))
    return write_text(folder / PROMISES, "\n".join(lines) + "\n")


def write_promises_page(done: Promises, path: str | os.PathLike[str], command: str) -> Path:
    """The page; written again and again while it runs."""
    sections = [Section(w, title(done.plan, w).capitalize(), table(HEAD, _rows(done, w))) for w in WORLDS]
    how = (
        f"Closed loops of {SECONDS:g} s, {ARMS} arms with noise of their own on each drawn motion: computed torque, "
        f"momentum observer and a detector with thresholds learned from {done.plan.learn_minutes:g} min of free motion "
        "for each rate. Nobody touches the arm: every alarm is false. Promised is what tuning can answer for, which is "
        "more than was asked where the motion it learned from is short. Intervals are those of a Poisson count; alarms "
        "of one motion are not quite independent."
    )
    sections.append(Section("how", "How it was done", join(tag("p", how), command_line(command))))
    alarm = ("Not finished", "What is shown is what was done by then.") if done.interrupted else None
    hours = sum(part.hours for part in done.parts)
    took = number(done.seconds, 3)
    tiles: list[tuple[str, object, str]] = [("watched", number(hours, 4), " h"), ("took", took, " s")]
    name, counts = f"False alarms of a {arm_title(done.plan.robot)}", []
    for world in WORLDS:
        told = [(done.counted(world, r), done.known[world, r].thresholds.rate) for r in RATES]
        due = sum(promised * hours for (_, hours), promised in told)
        counts.append(f"{sum(found.count for (found, _), _ in told)} alarms of {number(due, 3)} promised "
                      f"with {title(done.plan, world)}")  # fmt: skip
    sentence = f"In {number(hours, 3)} h of free motion: {'; '.join(counts)}."
    head = page_head(name, f"seed {done.plan.seed}", tiles, alarm, sentence=sentence)
    return write_text(path, page_html(name, head, sections))
