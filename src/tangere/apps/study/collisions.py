"""Very many contacts in closed loop, by fused rollouts: how often and how soon they are felt, by force.

A task is a pure function of plan, thresholds and its number: one drawn motion, SLAB robots with noise and contacts of
their own. A contact is one force on a point of a link's surface; the arm is under computed torque and gives way.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tangere.apps.study.figures import TO, Chart, Curve, arm_title, charts, interval, percent
from tangere.apps.study.files import COLLISIONS
from tangere.apps.study.plan import Plan
from tangere.apps.study.statistics import Estimate, quantile, rate, share, span
from tangere.apps.study.study import Progress, thresholds_of
from tangere.apps.study.trials import DETECTABLE, Collided, Learned, generator
from tangere.apps.study.workers import Store, Task, Workers, workers_of
from tangere.apps.study.world import KP, WORLDS, World, WorldName, checked_world, random_path, with_arm, world_of
from tangere.control.computed_torque import ComputedTorque
from tangere.errors import InvalidValue
from tangere.figures.markup import join, number, tag
from tangere.kernels.device import device as opened
from tangere.kernels.ur import is_ur
from tangere.logs.files import write_text
from tangere.loop.rollouts import Rollouts, rollouts
from tangere.observe.detect import GAIN, Detector
from tangere.observe.momentum import MomentumObserver
from tangere.planning.samples import Sampled
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.sensors import SensorModel
from tangere.report.page import page_html
from tangere.report.section import Section, again, command_line, page_head, table
from tangere.types import Array

SLAB = 2048  # contacts of one task: some seconds on a core
THREADS = 12  # that start tasks on a GPU: a task alone fills an eighth of a large one
SECONDS = 5.0  # of each closed loop
START = (1.2, 3.5)  # [s] when a contact begins
COLLIDE = 5  # stream of random numbers
BANDS = (0.0, 1.0 / 6.0, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0, 1.5, 2.0, 3.0)  # of plan.force: edges of the table's rows


@dataclass(frozen=True)
class Collisions:
    """Everything that was found."""

    plan: Plan
    parts: tuple[Collided, ...]
    learned: dict[WorldName, Learned]
    interrupted: bool
    seconds: float
    workers: int
    lost: str = ""

    def of(self, world: WorldName, *names: str) -> tuple[Any, ...]:
        """Fields of Collided, of every contact that stayed finite."""
        mine = [part for part in self.parts if part.world == world]
        if not mine:
            return tuple(np.zeros(0) for _ in names)
        kept = ~np.concatenate([part.failed for part in mine])
        return tuple(np.concatenate([getattr(part, name) for part in mine])[kept] for name in names)

    @property
    def count(self) -> int:
        """Contacts."""
        return sum(len(part.size) for part in self.parts)


@dataclass(frozen=True)
class Band:
    """Contacts of one range of force."""

    low: float  # [N]
    high: float
    found: Estimate
    detectable: Estimate  # share that some joint feels at all
    found_of: Estimate  # share of these that were felt
    median: Estimate  # [s] delay of those that were felt
    late: Estimate  # [s] below which 95 % of them are


def bands(done: Collisions, world: WorldName) -> list[Band]:
    """The table of one world."""
    size, delay, ratio = done.of(world, "size", "delay", "ratio")
    out = []
    edges = [done.plan.force * edge for edge in BANDS]
    for low, high in pairwise(edges):
        inside = (size >= low) & (size < high)
        found, detectable, found_of = _shares(delay[inside], ratio[inside])
        felt = delay[inside & np.isfinite(delay)]
        out.append(Band(low, high, found, detectable, found_of, quantile(felt, 0.5), quantile(felt, 0.95)))
    return out


def _shares(delay: Any, ratio: Any) -> tuple[Estimate, Estimate, Estimate]:
    """Felt, detectable, and felt of the detectable ones."""
    felt, seen = np.isfinite(delay), ratio > DETECTABLE
    count = int(np.count_nonzero(seen))
    both = rate(int(np.count_nonzero(felt & seen)), count)
    return rate(int(np.count_nonzero(felt)), len(delay)), rate(count, len(delay)), both


@dataclass(frozen=True)
class LinkRow:
    """Contacts on one link."""

    link: int
    found: Estimate
    detectable: Estimate
    found_of: Estimate
    missed: float  # share of all contacts that were not felt


def links(done: Collisions, world: WorldName) -> list[LinkRow]:
    """Where the contacts are that nothing felt."""
    link, delay, ratio = done.of(world, "link", "delay", "ratio")
    missed = max(1, int(np.count_nonzero(~np.isfinite(delay))))
    out = []
    for k in np.unique(link).astype(int).tolist():
        mine = link == k
        lost = int(np.count_nonzero(~np.isfinite(delay[mine])))
        out.append(LinkRow(k, *_shares(delay[mine], ratio[mine]), lost / missed))
    return out


def why_not(done: Collisions, world: WorldName) -> str:
    """Why some are not felt, in sentences; "" where all are."""
    delay, ratio = done.of(world, "delay", "ratio")
    lost = ~np.isfinite(delay)
    count = int(np.count_nonzero(lost))
    if not count:
        return ""
    share_none = float(np.mean(ratio[lost] <= DETECTABLE))
    most = max(links(done, world), key=lambda row: row.missed)
    return (
        f"{100 * float(np.mean(lost)):.0f} % of all contacts were not felt. In {100 * share_none:.0f} % of these no "
        f"joint's torque reached {DETECTABLE:g} standard deviations of its noise: the force is small, or it presses "
        f"through the axes (towards the column, along a link), which turns no joint, and no observer of torques can "
        f"feel it. Link {most.link} has {100 * most.missed:.0f} % of them."
    )


def closed_loops(
    world: World, rng: np.random.Generator, known: Learned, count: int, seconds: float, device: str, pushes: Any = ()
) -> tuple[Rollouts, Array]:
    """`count` arms with noise of their own on one drawn motion, watched; and that motion's q (N, n)."""
    path = random_path(world, rng, seconds)
    q, qd, qdd = path[::2, 0], path[::2, 1], path[::2, 2]
    goal = Sampled(world.robot, q, qd, qdd, world.period, (len(q) - 1) * world.period)
    rolls = rollouts(
        world.true,
        controller=ComputedTorque(world.robot, goal, kp=KP, friction=world.drive),
        observer=MomentumObserver(world.robot, GAIN, friction=world.drive, start="first"),
        detector=Detector(known.thresholds, robot=world.robot), pushes=pushes,
        sensors=SensorModel(noise_qd=world.noise_qd, noise_tau=world.noise_tau), count=count, seconds=seconds,
        seed=int(rng.integers(2**62)), period=world.period, friction=world.friction, device=device,
    )  # fmt: skip
    if rolls.why:
        raise _unfit(rolls.why)
    return rolls, q


def _unfit(why: str) -> InvalidValue:
    return InvalidValue(f"--collisions and --promises need an arm and a law with a fused kernel: {why}")


def refuse_early(plan: Plan, device: str) -> None:
    """What cannot be simulated is said before anything is learned."""
    robot = checked_world(plan).robot
    if not is_ur(robot.model):
        raise _unfit(f"{robot.name} is not an arm with UR kernels")
    if device == "cuda":
        opened()


def collide(plan: Plan, name: WorldName, task: int, count: int, known: Learned, noise: Any, device: str) -> Collided:
    """`count` contacts on one drawn motion. noise: (n,) of the exact world's residual."""
    world, rng = world_of(plan, name), generator(plan, COLLIDE, name, task)
    pushes = RandomPushes(force=(0.0, BANDS[-1] * plan.force), start=START)
    rolls, q = closed_loops(world, rng, known, count, SECONDS, device, pushes)
    size = np.linalg.norm(rolls.force[:, 0], axis=1)
    delay = np.where(np.isfinite(rolls.delay_s), rolls.delay_s, np.inf)
    drawn = rolls.plan.pushes_rows(np.arange(count))[:, 0]
    link, at = drawn[:, 3].astype(np.int64) + 1, np.minimum(drawn[:, 0].astype(np.int64), len(q) - 1)
    torque = np.zeros((count, q.shape[1]))
    for k in np.unique(link).tolist():
        mine = link == k
        J = world.robot.jacobian(q[at[mine]], link=k, point=drawn[mine, 4:7])
        torque[mine] = np.einsum("mi,mij->mj", rolls.force[mine, 0], J[:, :3])
    ratio = np.max(np.abs(torque) / noise, axis=1)
    return Collided(name, size, delay, rolls.early, rolls.failed, link, ratio)


def collisions(
    plan: Plan,
    count: int,
    *,
    device: str = "cpu",
    workers: int | str | None = None,
    progress: Progress = lambda what, share: None,
    store: Store | None = None,
    shown: Callable[[Collisions], None] | None = None,
) -> Collisions:
    """`count` contacts, half with each model. shown: told now and then what there is so far."""
    began = time.perf_counter()
    plan = with_arm(plan)
    refuse_early(plan, device)
    half = math.ceil(count / len(WORLDS))
    sizes = [min(SLAB, half - first) for first in range(0, half, SLAB)]
    parts: list[Collided] = []
    with ExitStack() as open_pools:
        pool = open_pools.enter_context(workers_of(workers))
        known = thresholds_of(pool, plan, progress)
        if device == "cuda":
            pool = open_pools.enter_context(Workers(THREADS, threads=True))
        noise = known["exact"].noise
        tasks: list[Task] = [
            (collide, (plan, name, k, size, known[name], noise, device))
            for k, size in enumerate(sizes) for name in WORLDS
        ]  # fmt: skip
        last = [time.monotonic()]

        def keep(part: Collided) -> None:
            parts.append(part)
            if shown is not None and time.monotonic() - last[0] > 10.0:
                shown(_found(plan, parts, known, True, began, pool.count))
                last[0] = time.monotonic()

        results = pool.results(
            tasks, lambda done, total: progress("colliding", 0.1 + 0.9 * done / max(1, total)), keep, store
        )
        progress("done", 1.0)
        found = _found(plan, results, known, pool.interrupted, began, pool.count)
    return replace(found, lost=pool.lost)


def _found(
    plan: Plan, parts: Sequence[Collided], known: dict[WorldName, Learned], cut: bool, began: float, workers: int
) -> Collisions:
    return Collisions(plan, tuple(parts), known, cut, time.perf_counter() - began, workers)


def _rows(
    done: Collisions, world: WorldName, to: str = "-", part: Cell = share, late: Callable[..., str] = span
) -> list[tuple[str, ...]]:
    """by force; to, part, late: how a range, a share and a delay are written, in a terminal or on a page."""
    return [
        (f"{b.low:.0f}{to}{b.high:.0f}", str(b.found.count), part(b.found), part(b.detectable), part(b.found_of),
         late(b.median, 1e3), late(b.late, 1e3))
        for b in bands(done, world)
    ]  # fmt: skip


def _link_rows(done: Collisions, world: WorldName, part: Cell = share) -> list[tuple[str, ...]]:
    return [
        (f"link {r.link}", str(r.found.count), part(r.found), part(r.detectable), part(r.found_of),
         f"{100 * r.missed:.0f}")
        for r in links(done, world)
    ]  # fmt: skip


Cell = Callable[[Estimate], str]
_SHARES = ("contacts", "felt [%]", "detectable [%]", "felt of these [%]")
HEAD = ("force [N]", *_SHARES, "delay [ms] median", "95 %")
LINK_HEAD = ("", *_SHARES, "of all not felt [%]")


def title(plan: Plan, world: WorldName) -> str:
    """What a world is."""
    return "exact model" if world == "exact" else f"true masses × {plan.mass:g}, friction × {plan.friction:g}"


def collisions_text(done: Collisions) -> str:
    """What was found, for a terminal."""
    from tangere.report.terminal import table as lines

    rate_s = done.count * SECONDS / max(done.seconds, 1e-9)
    out = [
        f"{done.plan.robot}: {done.count} contacts of {SECONDS:g} s, {done.seconds:.1f} s on {done.workers} processes "
        f"({rate_s:.0f} simulated seconds a second), seed {done.plan.seed}"
    ]
    for world in WORLDS:
        (early,) = done.of(world, "early")
        alarms = rate(int(np.count_nonzero(early)), len(early))
        out += ["", f"{title(done.plan, world)}; alarm before the contact in {share(alarms)} %", ""]
        out += lines(_rows(done, world), HEAD, "lrrrrrr")
        out += ["", *lines(_link_rows(done, world), LINK_HEAD, "lrrrrr"), why_not(done, world)]
    return "\n".join(out)


def write_collisions(done: Collisions, folder: Path) -> Path:
    """collisions.csv: the table of both worlds."""
    lines = ["world,force_low_n,force_high_n,contacts,felt,felt_low,felt_high,delay_median_s,delay_95_s,detectable"]
    for world in WORLDS:
        for b in bands(done, world):
            felt = (b.found.count, b.found.value, b.found.low, b.found.high)
            values = (b.low, b.high, *felt, b.median.value, b.late.value, b.detectable.value)
            lines.append(",".join([world, *(f"{value:.9g}" for value in values)]))
    return write_text(folder / COLLISIONS, "\n".join(lines) + "\n")


def write_collisions_page(done: Collisions, path: str | os.PathLike[str], command: str) -> Path:
    """The page; written again and again while it runs, so that its intervals are seen to shrink."""
    middles = [0.5 * done.plan.force * (a + b) for a, b in pairwise(BANDS)]
    curves = tuple(
        Curve(title(done.plan, world), middles, [b.found for b in bands(done, world)], bars=True, style=k)
        for k, world in enumerate(WORLDS)
    )
    chart = Chart("Contacts that were felt", "N", curves, 0.0, done.plan.force * BANDS[-1])
    caption = (
        "Share of contacts that raised an alarm while they lasted or 0.1 s after, over their force, with 95 % "
        "intervals. Why some are never felt stands below."
    )
    sections = [Section("felt", "How often", charts("felt-curve", caption, [chart], again(command, "felt-curve")))]
    for world in WORLDS:
        by_force, by_link = _rows(done, world, TO, percent, interval), _link_rows(done, world, percent)
        body = join(
            tag("h3", "By force"), table(HEAD, by_force, "spans"),
            tag("h3", "By link"), table(("touched", *LINK_HEAD[1:]), by_link, "spans"), tag("p", why_not(done, world)),
        )  # fmt: skip
        sections.append(Section(world, title(done.plan, world).capitalize(), body))
    how = (
        f"Closed loops of {SECONDS:g} s: computed torque, momentum observer and a detector with thresholds learned "
        f"from {done.plan.learn_minutes:g} min of free motion; forces on any link's surface within the friction cone."
    )
    sections.append(Section("how", "How it was done", join(tag("p", how), command_line(command))))
    alarm = ("Not finished", "What is shown is what was done by then.") if done.interrupted else None
    line = f"{done.count} contacts, seed {done.plan.seed}, {number(done.seconds, 3)} s of computing"
    tiles: list[tuple[str, object, str]] = [("contacts", done.count, "")]
    told = ""
    for world, model in (("wrong", "wrong model"), ("exact", "exact model")):
        delay, ratio = done.of(world, "delay", "ratio")
        _, _, of_these = _shares(delay, ratio)
        soon = quantile(delay[np.isfinite(delay)], 0.5)
        if not of_these.known or not math.isfinite(soon.value):
            continue
        felt, half = number(100 * of_these.value, 3), number(1e3 * soon.value, 3)
        tiles += [(f"felt of the detectable, {model}", felt, " %"), (f"half within, {model}", half, " ms")]
        told = told or (
            f"With {done.plan.off}, {felt} % of the touches that some joint can feel were felt, half of them within "
            f"{half} ms."
        )
    head = page_head(f"{done.count} collisions of a {arm_title(done.plan.robot)}", line, tiles, alarm, sentence=told)
    return write_text(path, page_html(f"Collisions of a {arm_title(done.plan.robot)}", head, sections))
