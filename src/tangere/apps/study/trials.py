"""The trials of a study, each of them a function of plan, thresholds and a number: learn, watch free motion, touch.

Pushes are injected into free motion many at once. A torque s(t) from outside changes a residual by the observer's
answer to it, whatever else is in the residual: the observer is linear in the torque. So a push is injected by
tau <- tau - s and costs one short replay per onset, shared by all joints and sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tangere.apps.study.plan import Plan
from tangere.apps.study.world import WORLDS, Run, World, WorldName, random_path, world_of
from tangere.kernels.laws.detection import MOVING
from tangere.observe.detect import GAIN, Detector, FreeMotion, Thresholds, detect, tune
from tangere.observe.detect.signals import scores
from tangere.observe.isolation import ContactIsolator, Isolation
from tangere.observe.isolation_added import added, observer_input
from tangere.types import Array

CHUNK = 20.0  # s of free motion in one task, at most
# s between injected steps in free motion: 560 in ten minutes; a bound above a 99 % quantile needs 367 of a moving joint
STEP_EVERY = 1.0
BEFORE, AFTER = 1.2, 0.6  # s of free motion before and after a contact: an event ends 0.25 s after what caused it
DURATION = (0.15, 1.0)  # s, flat in the logarithm: from a collision to a push
START = 0.2  # s at the start of a contact's motion that nobody watches: ten lags of the observer
SIZES = (1.0 / 6.0, 1.0 / 3.0, 2.0 / 3.0, 5.0 / 3.0, 3.0)  # of plan.force: 10 20 40 100 180 N
PAST = 1.0  # s before the onset from which isolation learns the model's error: what a detector keeps
DETECTABLE = 6.0  # standard deviations of the noise-only residual that some joint's torque must reach
FACTORS = np.geomspace(0.25, 2.0, 43)  # times the thresholds: the points of the ROC
LEARN, FREE, TOUCH = 1, 2, 3  # streams of random numbers
LEAD = 1.0  # s before an onset that are replayed: settling, and three time constants of the mean before
FOUND_WITHIN = 0.4  # s after the onset: later it is no detection of this push
FINE = 1.1  # ratio of the torques between which the smallest that is found is told
DEAD = 1.0  # s after an alarm in which nothing counts as another one

Observer = Callable[[slice, Array], Array]  # rows of a log and what is added to their tau (m, n): the residual (m, n)


@dataclass(frozen=True)
class Injected:
    """Steps injected at one onset: delay (copies,) [s], inf where not found; quiet: no alarm before."""

    onset: float
    delay: Array
    quiet: bool
    moving: NDArray[np.bool_]  # (n,) which joints moved at the onset
    needed: Array | None = None  # (n,) Nm, from which on all larger steps of the ladder are found, to FINE of it


def alarms(time: Array, score: Array, factors: Array) -> NDArray[np.int64]:
    """How many alarms a score (N,) raises against each of the factors (f,), DEAD seconds apart at least.

    A score that stays above raises one every DEAD seconds: lower factors have more alarms, never fewer.
    """
    counts = np.zeros(len(factors), dtype=np.int64)
    for i, factor in enumerate(factors.tolist()):
        last = -np.inf
        for t in time[score > factor].tolist():
            if t - last > DEAD:
                counts[i] += 1
                last = t
    return counts


def onsets(time: Array, every: float, rng: np.random.Generator) -> list[int]:
    """Rows of a log at which something may be injected: one in every `every` seconds, at random within it."""
    first, last = float(time[0]) + LEAD, float(time[-1]) - FOUND_WITHIN
    drawn = [t + rng.uniform(0.0, every) for t in np.arange(first, last, every)]
    return [int(np.searchsorted(time, t)) for t in drawn if t < last]


def inject(
    thresholds: Thresholds,
    time: Array,
    residual: Array,
    qd: Array,
    observer: Observer,
    row: int,
    copies: Sequence[tuple[int, float]],
    first: int | None = None,
) -> Injected | None:
    """Steps (joint from 1, torque [Nm]) from `row` on, each in a copy of its own; None beside a gap or a bad sample.

    residual, qd (N, n): of the free log. observer(rows, added) gives the residual of these rows with added torque.
    first: of the copies that are a ladder, whose gaps are then searched for what is needed.
    """
    onset = float(time[row])
    rows = slice(int(np.searchsorted(time, onset - LEAD)), int(np.searchsorted(time, onset + FOUND_WITHIN)) + 1)
    free, speeds, stamps = residual[rows], qd[rows], time[rows]
    if not np.all(np.isfinite(free)) or not np.all(np.isfinite(speeds)):
        return None
    n = free.shape[1]
    unit = np.where(stamps[:, None] > onset, -1.0, 0.0) * np.ones(n)
    answer = observer(rows, unit) - observer(rows, np.zeros_like(unit))
    answer = np.where(np.isfinite(answer), answer, 0.0)  # the first row, where a replay has none; no push acts there
    after = stamps > onset

    def tried(steps: Sequence[tuple[int, float]]) -> tuple[Array, bool]:
        """Delays of steps, and whether there was no alarm before any."""
        pushed = np.repeat(free[:, None, :], len(steps), axis=1)
        for c, (joint, torque) in enumerate(steps):
            pushed[:, c, joint - 1] += torque * answer[:, joint - 1]
        score = scores(thresholds, stamps, pushed, speeds)
        before, late = score[~after], score[after] > 1.0
        delay = np.where(late.any(axis=0), stamps[after][np.argmax(late, axis=0)] - onset, np.inf)
        return delay, not bool(np.any(before[np.isfinite(before)] > 1.0))

    delay, quiet = tried(copies)
    at = int(np.argmax(after))
    around = np.abs(speeds[at : at + max(2, int(np.sum(after)) // 5)])
    moving = np.all(around > thresholds.standstill, axis=0)
    needed = None if first is None else _needed(n, copies[first:], delay[first:], lambda steps: tried(steps)[0])
    return Injected(onset, delay, quiet, moving, needed)


def _needed(
    n: int,
    steps: Sequence[tuple[int, float]],
    delay: Array,
    tried: Callable[[Sequence[tuple[int, float]]], Array],
) -> Array:
    """Torque (n,) [Nm] from which on every step is found, between the steps of a ladder to FINE; inf: never."""
    out, between = np.full(n, np.inf), []
    for joint in range(1, n + 1):
        mine = sorted((abs(size), float(delay[k]), size) for k, (j, size) in enumerate(steps) if j == joint)
        low: tuple[float, float] | None = None
        for size, when, signed in reversed(mine):
            if not math.isfinite(when):
                low = (size, math.copysign(1.0, signed))
                break
            out[joint - 1] = size
        if low is not None and math.isfinite(out[joint - 1]):
            ratios = FINE ** np.arange(1, math.ceil(math.log(out[joint - 1] / low[0]) / math.log(FINE) - 1e-6))
            between += [(joint, low[1] * low[0] * ratio) for ratio in ratios.tolist()]
    if between:
        open_, found = set(range(n)), tried(between)
        for (joint, size), when in reversed(list(zip(between, found.tolist(), strict=True))):
            if joint - 1 not in open_:
                continue
            if math.isfinite(when):
                out[joint - 1] = abs(size)
            else:
                open_.discard(joint - 1)
    return out


def ladder(peak: Array, count: int = 11) -> Array:
    """Sizes (count, n) [Nm] from 1 % to 32 % of the joints' peak torque, each 1.41 times the one before."""
    return np.asarray(0.01 * np.sqrt(2.0) ** np.arange(count)[:, None] * peak)


@dataclass(frozen=True)
class Learned:
    """What free motion of one world teaches."""

    thresholds: Thresholds
    noise: Array  # (n,) Nm, standard deviation of the residual


@dataclass(frozen=True)
class FreeResult:
    """Free motion that judges, with steps injected into it."""

    world: WorldName
    seconds: float
    alarms: int  # of the detector
    counts: NDArray[np.int64]  # (f,) alarms of the score against FACTORS
    steps: tuple[Injected, ...]


@dataclass(frozen=True)
class Answer:
    """What isolation says of one contact."""

    link: int | None  # None: not told
    best: int | None  # likeliest link, told or not; None: not one push
    probability: float  # of the likeliest
    point_error: float  # m, nan where the likeliest link is not the touched one or not told
    force: float  # N, nan where not told


@dataclass(frozen=True)
class TouchResult:
    """One contact."""

    world: WorldName
    link: int
    size: float  # N
    duration: float  # s
    ratio: float  # largest torque of a joint against the standard deviation of the noise-only residual
    delay: float  # s from the onset to the alarm; inf: not found while it lasted (and 0.1 s)
    early: int  # alarms before the onset
    score: float  # largest signal against its threshold while it lasted
    kind: str  # of the event, "" where there is none
    told: Answer | None  # of the detector's event
    isolated: Answer  # of the isolator told when the contact began and ended

    @property
    def detectable(self) -> bool:
        """Whether sensors show it at all."""
        return self.ratio > DETECTABLE

    @property
    def found(self) -> bool:
        """Whether the detector raised an alarm in time."""
        return math.isfinite(self.delay)


@dataclass(frozen=True)
class Collided:
    """Many contacts of one task in closed loop."""

    world: WorldName
    size: Array  # (m,) [N]
    delay: Array  # (m,) [s] from the contact to the alarm; inf: not felt
    early: NDArray[np.int64]  # (m,) alarms before it
    failed: NDArray[np.bool_]  # (m,) left the finite numbers
    link: NDArray[np.int64]  # (m,) counted from 1
    ratio: Array  # (m,) largest torque of a joint as it begins, against the standard deviation of the residual's noise


@dataclass(frozen=True)
class Quiet:
    """Hours in which nobody touched the arms of one task."""

    world: WorldName
    asked: float  # [1/h] false alarms that thresholds were learned for
    hours: float
    alarms: int


def generator(plan: Plan, stream: int, world: WorldName, number: int) -> np.random.Generator:
    """Random numbers that belong to one trial, whoever computes it and when."""
    return np.random.default_rng(np.random.SeedSequence((plan.seed, stream, WORLDS.index(world), number)))


def chunks(minutes: float) -> tuple[int, float]:
    """How many pieces free motion is simulated in, and the seconds of each."""
    count = max(1, round(minutes * 60.0 / CHUNK))
    return count, min(CHUNK, 60.0 * minutes)


def learn_chunk(plan: Plan, name: WorldName, number: int) -> FreeMotion:
    """Free motion to learn from."""
    world, rng = world_of(plan, name), generator(plan, LEARN, name, number)
    run = world.simulate(rng, random_path(world, rng, chunks(plan.learn_minutes)[1]))
    return FreeMotion(run.time, world.residual(run), run.qd, f"{name} {number}")


def learned(plan: Plan, name: WorldName, motions: list[FreeMotion]) -> Learned:
    """Thresholds for the promised rate, and the spread that isolation is given."""
    thresholds = tune(motions, plan.alarm_rate, gain=GAIN, drive=world_of(plan, name).drive)
    settled = [motion.residual[round(START * plan.frequency) :] for motion in motions]
    return Learned(thresholds, np.concatenate(settled).std(axis=0))


def free_chunk(plan: Plan, name: WorldName, number: int, known: Learned) -> FreeResult:
    """Free motion watched by the detector and the score, and with steps in it."""
    world, rng = world_of(plan, name), generator(plan, FREE, name, number)
    run = world.simulate(rng, random_path(world, rng, chunks(plan.free_minutes)[1]))
    residual = world.residual(run)
    thresholds = known.thresholds
    events = detect(Detector(thresholds, robot=world.robot), run.time, residual, run.q, run.qd, run.tau)
    score = np.nan_to_num(scores(thresholds, run.time, residual[:, None], run.qd)[:, 0])
    copies = step_copies(world)
    found = []
    for row in onsets(run.time, STEP_EVERY, rng):
        signs = rng.choice((-1.0, 1.0), world.robot.dof).tolist()
        signed = [(joint, signs[joint - 1] * torque) for joint, torque in copies]

        def observer(rows: slice, added: Array) -> Array:
            part = Run(run.time[rows], run.q[rows], run.qd[rows], run.tau[rows] + added, run.tau_ext[rows])
            return world.residual(part)

        one = inject(thresholds, run.time, residual, run.qd, observer, row, signed, 1)
        if one is not None:
            found.append(one)
    seconds = float(run.time[-1] - run.time[0])
    return FreeResult(
        name, seconds, sum(event.alarm for event in events), alarms(run.time, score, FACTORS), tuple(found)
    )


def step_copies(world: World) -> list[tuple[int, float]]:
    """Joint and size of every step: the plan's, then the ladder joint by joint."""
    sizes = ladder(world.robot.tau_max)
    return [world.plan.step] + [(j + 1, float(s)) for j in range(world.robot.dof) for s in sizes[:, j]]


def touch_trial(plan: Plan, name: WorldName, number: int, known: Learned, noise: Array) -> TouchResult:
    """One contact on the moving arm, detected and isolated. noise: (n,) of the exact world."""
    world, rng = world_of(plan, name), generator(plan, TOUCH, name, number)
    size = plan.force * (1.0 if rng.random() < 0.5 else float(rng.choice(SIZES)))
    drawn = math.exp(rng.uniform(math.log(DURATION[0]), math.log(DURATION[1])))
    duration = round(drawn * plan.frequency) * world.period
    onset = round(BEFORE * plan.frequency) * world.period
    path = random_path(world, rng, onset + duration + AFTER)
    touch = world.touch(rng, path[2 * round(onset / world.period), 0], size, onset, duration)
    run = world.simulate(rng, path, (touch.push,))
    residual = world.residual(run)
    isolator = _isolator(plan, name)
    detector = Detector(
        known.thresholds, robot=world.robot, isolator=isolator, stiction=np.zeros(world.robot.dof), gain_error=0.0
    )  # torque is measured and nothing sticks
    # an arm that has been watched for a while: the observer's first y, which is mostly noise, is forgotten
    seen = slice(round(START * plan.frequency), None)
    events = detect(detector, run.time[seen], residual[seen], run.q[seen], run.qd[seen], run.tau[seen])
    tick = 0.5 * world.period
    during = (run.time > onset + tick) & (run.time <= onset + duration + tick)
    raised = [e for e in events if e.alarm and onset + tick < e.time_s <= onset + duration + 0.1]
    event = raised[0] if raised else None
    told = None
    if event is not None:
        best = (event.link, event.link_probability) if event.link else (event.links[0] if event.links else (None, 0.0))
        told = Answer(
            event.link, best[0], best[1], _distance(event.point, touch.push.point, event.link == touch.push.link),
            math.nan if event.force_n is None else event.force_n,
        )  # fmt: skip
    score = np.nan_to_num(scores(known.thresholds, run.time[seen], residual[seen, None], run.qd[seen])[:, 0])
    answer = _isolated(plan, name, known, run, residual, onset, duration)
    return TouchResult(
        name, touch.push.link, size, duration, float(np.max(np.abs(touch.torque) / noise)),
        math.inf if event is None else event.time_s - onset,
        sum(e.alarm and e.time_s <= onset + tick for e in events), float(score[during[seen]].max()),
        "" if event is None else event.kind, told, _answer(answer, touch.push.link, touch.push.point),
    )  # fmt: skip


def _isolated(
    plan: Plan, name: WorldName, known: Learned, run: Run, residual: Array, onset: float, duration: float
) -> Isolation:
    """The isolator on what the contact added to the residual, told when it began and ended."""
    tick = 0.5 / plan.frequency
    robot, spread = world_of(plan, name).robot, known.thresholds.spread[MOVING]
    seen = (run.time > onset - PAST) & (run.time <= onset + duration + tick)
    y = observer_input(run.time, residual, GAIN)[seen]
    best = added(robot, run.time[seen], y, run.q[seen], run.qd[seen], onset + tick, spread)
    assert best is not None
    return _isolator(plan, name).isolate(best.q, best.torque, best.covariance)


def _answer(found: Isolation, link: int, point: tuple[float, float, float]) -> Answer:
    best = found if found.link is not None else (found.alternatives[0] if found.alternatives else None)
    return Answer(
        found.link, None if best is None else best.link, found.probability,
        _distance(found.point, point, found.link == link),
        math.nan if found.force is None else float(np.linalg.norm(found.force)),
    )  # fmt: skip


def _distance(point: Array | None, true: tuple[float, float, float], right: bool) -> float:
    return float(np.linalg.norm(point - np.array(true))) if right and point is not None else math.nan


@lru_cache(maxsize=4)
def _isolator(plan: Plan, name: WorldName) -> ContactIsolator:
    """One per process: its surface takes some tenths of a second."""
    return ContactIsolator(world_of(plan, name).robot)
