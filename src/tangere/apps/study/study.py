"""Monte-Carlo of detection and isolation on a simulated arm, and the observers side by side; seeded, on all cores.

Workers do tasks on several processes: the same results whatever their number; what is done is kept when interrupted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.apps.study.plan import Plan
from tangere.apps.study.trials import (
    FreeResult,
    Learned,
    TouchResult,
    chunks,
    free_chunk,
    generator,
    learn_chunk,
    learned,
    touch_trial,
)
from tangere.apps.study.workers import Store, Task, Workers, workers_of
from tangere.apps.study.world import WORLDS, WorldName, checked_world, random_path, with_arm, world_of
from tangere.observe.compare import Comparison, all_observers, compare
from tangere.observe.detect import GAIN
from tangere.plants.pushes import Push
from tangere.robots import as_robot
from tangere.types import State

BATCH = 5  # contacts in one task: a second of work, small beside a study, large beside sending it
OBSERVED = 6  # motions on which the observers are compared, in each world
OBSERVED_SECONDS, OBSERVED_ONSET = 2.0, 1.0  # s
COMPARE = 4  # stream of random numbers
Progress = Callable[[str, float], None]  # what is being done, and which share of all is
@dataclass(frozen=True)
class ObserverRow:
    """One observer in one world: medians over some motions with a step on one joint."""

    world: WorldName
    name: str
    delay: float  # s from the onset until |r| exceeds its largest value before; inf: not in half of the motions
    found: int  # in how many motions at all
    motions: int
    half_rise: float  # s
    peak_error: float  # Nm on the joint that is pushed, settled
    rms: float  # Nm, the same
    cost: float  # s per step, the least


@dataclass(frozen=True)
class Study:
    """Everything that was found."""

    plan: Plan
    learned: dict[WorldName, Learned]
    free: tuple[FreeResult, ...]
    touches: tuple[TouchResult, ...]
    observers: tuple[ObserverRow, ...]
    interrupted: bool
    seconds: float  # that it took
    workers: int
    lost: str = ""  # why it was interrupted, where nobody asked for it

    def unit(self, joint: int | None = None) -> str:
        """Of the steps on a joint (from 1), or on all in words."""
        arm = as_robot(self.plan.robot)
        return arm.units("Nm") if joint is None else arm.unit(joint, "Nm")

    def of(self, world: WorldName, size: float | None = None) -> list[TouchResult]:
        """The contacts of a world, of one size [N] or all."""
        return [t for t in self.touches if t.world == world and (size is None or t.size == size)]

    def hours(self, world: WorldName) -> float:
        """Free motion that judged."""
        return sum(f.seconds for f in self.free if f.world == world) / 3600.0


def quick(plan: Plan) -> Plan:
    """The same study with a tenth of the trials: enough to see that it works, intervals three times as wide."""
    return replace(plan, trials=max(20, plan.trials // 10), free_minutes=plan.free_minutes / 10.0, learn_minutes=1.0)


def study(
    plan: Plan,
    *,
    workers: int | str | None = None,
    progress: Progress = lambda what, share: None,
    keep: Callable[[Any], None] = lambda result: None,
    store: Store | None = None,
) -> Study:
    """Learn thresholds from free motion, then judge them on other motion, free and touched, in both worlds.

    exact: the model is right, sensors are noisy. wrong: masses and friction are off by the plan's factors as well.
    Nothing depends on the number of workers. Ctrl-C: what is done by then is returned, `interrupted`; if nothing has
    been learned yet it is raised. keep: called with what judges (FreeResult, or a tuple of TouchResult) as it comes.
    workers: how many processes, or "dask://HOST:PORT". store: results that are there already (chunks.Chunks).
    """
    began = time.perf_counter()
    progress("making the arm", 0.0)
    plan = with_arm(plan)
    checked_world(plan)
    with workers_of(workers) as pool:

        known = thresholds_of(pool, plan, progress)
        tasks = _tasks(plan, known)
        results = pool.results(tasks, _stage(progress, "watching and touching", 0.1, 0.95), keep, store)
        interrupted = pool.interrupted
    free = tuple(r for r in results if isinstance(r, FreeResult))
    touches = tuple(t for r in results if isinstance(r, tuple) for t in r)
    rows: tuple[ObserverRow, ...] = ()
    if not interrupted:
        progress("comparing observers", 0.95)
        try:
            rows = tuple(row for name in WORLDS for row in observers(plan, name))
        except KeyboardInterrupt:
            interrupted = True
    progress("done", 1.0)
    took = time.perf_counter() - began
    return Study(plan, known, free, touches, rows, interrupted, took, pool.count, pool.lost)


def _stage(progress: Progress, what: str, start: float, end: float) -> Callable[[int, int], None]:
    return lambda done, total: progress(what, start + (end - start) * done / max(1, total))


def thresholds_of(pool: Workers, plan: Plan, progress: Progress) -> dict[WorldName, Learned]:
    """What free motion of both worlds teaches."""
    numbers = [(name, k) for name in WORLDS for k in range(chunks(plan.learn_minutes)[0])]
    made = pool.results([(learn_chunk, (plan, *key)) for key in numbers], _stage(progress, "free motion", 0.0, 0.03))
    pool.need(made, len(numbers))
    motions = {name: [m for (w, _), m in zip(numbers, made, strict=True) if w == name] for name in WORLDS}
    progress("learning thresholds", 0.03)
    found = pool.results([(learned, (plan, name, motions[name])) for name in WORLDS])
    pool.need(found, len(WORLDS))
    return dict(zip(WORLDS, found, strict=True))


def _tasks(plan: Plan, known: dict[WorldName, Learned]) -> list[Task]:
    """Free motion and contacts of both worlds in turns, so that an interrupted study has something of each."""
    noise = known["exact"].noise
    count, _ = chunks(plan.free_minutes)
    free: list[Task] = [(free_chunk, (plan, name, k, known[name])) for k in range(count) for name in WORLDS]
    half = math.ceil(plan.trials / len(WORLDS))
    batches = [range(k, min(k + BATCH, half)) for k in range(0, half, BATCH)]
    touches: list[Task] = [(touch_batch, (plan, name, b, known[name], noise)) for b in batches for name in WORLDS]
    order = [(k / len(tasks), task) for tasks in (free, touches) for k, task in enumerate(tasks)]
    return [task for _, task in sorted(order, key=lambda entry: entry[0])]


def touch_batch(plan: Plan, name: WorldName, numbers: range, known: Learned, noise: Any) -> tuple[TouchResult, ...]:
    """Some contacts."""
    return tuple(touch_trial(plan, name, number, known, noise) for number in numbers)


def observers(plan: Plan, name: WorldName) -> list[ObserverRow]:
    """The five observers and the acceleration residual on the same motions with the plan's step."""
    world = world_of(plan, name)
    joint, torque = plan.step
    found: dict[str, list[Comparison]] = {}
    for k in range(OBSERVED):
        rng = generator(plan, COMPARE, name, k)
        path = random_path(world, rng, OBSERVED_SECONDS)
        run = world.simulate(rng, path, (Push(joint, torque, OBSERVED_ONSET),))
        samples = [
            State(t, world.period, q, qd, tau)
            for t, q, qd, tau in zip(run.time.tolist(), run.q, run.qd, run.tau, strict=True)
        ]
        rows = compare(
            all_observers(world.robot, GAIN, world.drive), samples, run.tau_ext, joint=joint, onset=OBSERVED_ONSET,
            rounds=1,
        )  # fmt: skip
        for row in rows:
            found.setdefault(row.name, []).append(row)
    out = []
    for kind, rows in found.items():
        delay, half_rise, peak_error, rms = (
            float(np.median([getattr(r, field) for r in rows])) for field in ("delay", "half_rise", "peak_error", "rms")
        )
        seen, cost = sum(math.isfinite(r.delay) for r in rows), min(r.cost for r in rows)
        out.append(ObserverRow(name, kind, delay, seen, len(rows), half_rise, peak_error, rms, cost))
    return out
