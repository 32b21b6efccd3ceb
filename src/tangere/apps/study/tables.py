"""What a study says in numbers: rates with intervals, delays, ROC, smallest torques, isolation, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tangere.apps.study.statistics import Estimate, per_hour, quantile, rate
from tangere.apps.study.study import Study
from tangere.apps.study.trials import FACTORS, Answer, Injected, TouchResult, step_copies
from tangere.apps.study.world import WorldName, world_of
from tangere.types import Array

NEAR = 0.05  # m: as near as a point is wanted
SOON = 0.02  # s: as soon as a step is wanted
SURE = 0.99  # share of the steps that the smallest torque is for
BINS = np.append(np.arange(10) / 10.0, 1.0 + 1e-9)  # of stated probabilities: tenths
Source = Literal["isolated", "told"]  # the isolator told when a contact began and ended, or the detector's own events


@dataclass(frozen=True)
class FoundRow:
    """Contacts of one size."""

    size: float  # N
    trials: int
    detectable: Estimate  # share of all
    found: Estimate  # share of the detectable ones
    found_all: Estimate  # share of all
    median: Estimate  # s, delay of the detectable ones, not found: inf
    late: Estimate  # s, 95th percentile


@dataclass(frozen=True)
class IsolationRow:
    """Detectable contacts of one size on one link, or on all."""

    link: int | None  # None: all
    trials: int
    answered: Estimate
    right: Estimate  # of the answered
    near: Estimate  # point within NEAR, of the right ones
    median_error: float  # m, of the right ones
    likeliest: Estimate  # whether the likeliest link is the right one, answered or not


@dataclass(frozen=True)
class CalibrationRow:
    """Contacts whose likeliest link was given a probability from `low` to `high`."""

    low: float
    high: float
    stated: float  # mean
    right: Estimate


@dataclass(frozen=True)
class RocPoint:
    """Thresholds times `factor`."""

    factor: float
    false_alarms: Estimate  # 1/h
    found: Estimate


@dataclass(frozen=True)
class StepRow:
    """Steps on one joint while it moves."""

    joint: int
    smallest: Estimate  # Nm: found in SURE of the onsets, and so are all larger ones
    rates: tuple[tuple[float, Estimate], ...]  # Nm, found


def sizes(study: Study) -> list[float]:
    """Sizes of the contacts [N], ascending."""
    return sorted({t.size for t in study.touches})


def found_rows(study: Study, world: WorldName) -> list[FoundRow]:
    """Detection by size of the contact."""
    rows = []
    for size in sizes(study):
        mine = study.of(world, size)
        seen = [t for t in mine if t.detectable]
        delays = [t.delay for t in seen]
        rows.append(
            FoundRow(
                size, len(mine), rate(len(seen), len(mine)), rate(sum(t.found for t in seen), len(seen)),
                rate(sum(t.found for t in mine), len(mine)), quantile(delays, 0.5), quantile(delays, 0.95),
            )
        )  # fmt: skip
    return rows


def false_alarms(study: Study, world: WorldName) -> Estimate:
    """Alarms per hour of free motion."""
    return per_hour(sum(f.alarms for f in study.free if f.world == world), study.hours(world))


def roc(study: Study, world: WorldName, size: float) -> list[RocPoint]:
    """Found share of all contacts of that size against false alarms per hour, the thresholds times FACTORS."""
    mine, hours = study.of(world, size), study.hours(world)
    counts = np.sum([f.counts for f in study.free if f.world == world], axis=0) if hours else np.zeros(len(FACTORS))
    return [
        RocPoint(factor, per_hour(int(count), hours), rate(sum(t.score > factor for t in mine), len(mine)))
        for factor, count in zip(FACTORS.tolist(), np.broadcast_to(counts, len(FACTORS)).tolist(), strict=True)
    ]


def step_delays(study: Study, world: WorldName) -> Array:
    """Delays [s] of the plan's step at every onset in free motion, inf where not found."""
    return np.array([s.delay[0] for f in study.free if f.world == world for s in f.steps if s.quiet])


def smallest_rows(study: Study, world: WorldName) -> list[StepRow]:
    """Joint by joint, from the ladder of steps."""
    copies = step_copies(world_of(study.plan, world))
    return ladder_rows(copies[1:], [s for f in study.free if f.world == world for s in f.steps], skip=1)


def ladder_rows(copies: Sequence[tuple[int, float]], steps: Sequence[Injected], skip: int = 0) -> list[StepRow]:
    """Found rates of copies[k] = (joint, Nm), whose delay is steps[i].delay[skip + k], where the joint moves."""
    rows = []
    for joint in sorted({joint for joint, _ in copies}):
        mine = sorted((size, skip + k) for k, (j, size) in enumerate(copies) if j == joint)
        seen = [s for s in steps if s.quiet and s.moving[joint - 1]]
        torque = np.array([size for size, _ in mine])
        found = np.array([[np.isfinite(s.delay[k]) for _, k in mine] for s in seen]).reshape(-1, len(mine))
        # the smallest from which on every larger one is found as well
        above = np.cumprod(found[:, ::-1], axis=1)[:, ::-1].astype(bool)
        needed = np.where(above.any(axis=1), torque[np.argmax(above, axis=1)], np.inf)
        fine = [s.needed[joint - 1] for s in seen if s.needed is not None]
        needed = np.array(fine) if len(fine) == len(seen) else needed
        rows.append(
            StepRow(
                joint, quantile(needed, SURE),
                tuple((size, rate(int(found[:, k].sum()), len(found))) for k, size in enumerate(torque.tolist())),
            )
        )  # fmt: skip
    return rows


def isolation_rows(study: Study, world: WorldName, source: Source, size: float) -> list[IsolationRow]:
    """Detectable contacts of one size: all, then link by link."""
    seen = [(t, a) for t in study.of(world, size) if t.detectable and (a := _answer(t, source)) is not None]
    links: list[int | None] = [None, *sorted({t.link for t, _ in seen})]
    return [_isolation(link, [(t, a) for t, a in seen if link in (None, t.link)]) for link in links]


def _isolation(link: int | None, seen: list[tuple[TouchResult, Answer]]) -> IsolationRow:
    answered = [(t, a) for t, a in seen if a.link is not None]
    right = [(t, a) for t, a in answered if a.link == t.link]
    errors = [a.point_error for _, a in right]
    return IsolationRow(
        link, len(seen), rate(len(answered), len(seen)), rate(len(right), len(answered)),
        rate(sum(e <= NEAR for e in errors), len(errors)), float(np.median(errors)) if errors else float("nan"),
        rate(sum(a.best == t.link for t, a in seen), len(seen)),
    )  # fmt: skip


def isolation_matrix(study: Study, world: WorldName, source: Source, size: float) -> Array:
    """Counts (n, n + 1): touched link, answered link, the last column "cannot tell"; detectable contacts only."""
    n = world_of(study.plan, world).robot.dof
    counts = np.zeros((n, n + 1))
    for t in study.of(world, size):
        answer = _answer(t, source)
        if t.detectable and answer is not None:
            counts[t.link - 1, n if answer.link is None else answer.link - 1] += 1
    return counts


def calibration_rows(study: Study, world: WorldName, source: Source) -> list[CalibrationRow]:
    """Stated probability of the likeliest link against how often it is right; detectable contacts of every size."""
    seen = [(t, a) for t in study.of(world) if t.detectable and (a := _answer(t, source)) is not None]
    rows = []
    for low, high in zip(BINS[:-1].tolist(), BINS[1:].tolist(), strict=True):
        # probability 0: the residual was too weak to state one
        mine = [(t, a) for t, a in seen if low <= a.probability < high and a.probability > 0.0]
        if mine:
            stated = float(np.mean([a.probability for _, a in mine]))
            rows.append(CalibrationRow(low, high, stated, rate(sum(a.best == t.link for t, a in mine), len(mine))))
    return rows


def _answer(touch: TouchResult, source: Source) -> Answer | None:
    return touch.isolated if source == "isolated" else touch.told
