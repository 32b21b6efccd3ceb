"""What a touch does: peak force, impulse, energy and what keeps pressing, with and without a reaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.scenarios.build import Built, build
from tangere.apps.scenarios.common import Encounter
from tangere.apps.scenarios.touch import OBSTACLES, REACTIONS
from tangere.logs.log import Log
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.loop.summary import SETTLED
from tangere.types import Array

CONTACT = 1.0  # N from which something touches: far above rounding, far below what hurts
LATER = 1.0  # s after the first touch at which the force that remains is taken
WINDOW = 0.05  # s either side of it, averaged: a bounce must not decide
QUASI_STATIC, TRANSIENT = 140.0, 280.0  # N for hands and fingers: ISO/TS 15066:2016, table A.2

REMARK = (
    "Against something hard the force is at its peak within some 10 ms of the touch. It is felt before that, but no "
    "drive takes the speed out of an arm in so little time: no reaction lowers this first peak by more than a few per "
    "cent, only a lower speed or a lighter arm does. What a reaction changes is what comes after it: how hard and "
    "how long the arm goes on pressing. Where the touched thing gives way (a hand), the peak comes later, and a fast "
    "reaction lowers it too. The arm's gears and links are rigid here; real ones give way and lower the first peak."
)


@dataclass(frozen=True)
class Impact:
    """One encounter in numbers. Forces are sizes of the sum of all contacts on the arm."""

    obstacle: str
    reaction: str
    speed_m_s: float  # of the tcp just before the touch
    effective_mass_kg: float | None  # felt at the tcp along its motion, 1 / (u^T J M^-1 J^T u); None: touched elsewhere
    contact_s: float | None  # time of the first touch; None: there was none
    felt_ms: float | None  # from the first touch to the detector's event
    peak_n: float
    peak_after_ms: float | None  # from the first touch
    late_peak_n: float  # the largest force from 50 ms after the touch on: pressing, no longer impact
    impulse_ns: float  # integral of the force's size
    energy_j: float  # most energy that the arm had given to what it touched, max(-int tau_ext qd dt)
    received_j: float  # most energy that it had been given (by what fell on it), max(int tau_ext qd dt)
    contact_ms: float  # time in contact, all of it
    remaining_n: float | None  # mean force from 0.95 to 1.05 s after the first touch
    torque_share: float  # largest |tau| / tau_max
    end_speed_rad_s: float  # fastest joint at the end of the run
    backed_mm: float | None  # tcp at the end, back from where it was at the touch, against its motion then


LATE = 0.05  # s after the touch


def measured(built: Built, result: RunResult) -> Impact:
    """The numbers of a run of the scenario `touch`."""
    log, s = result.log, built.settings
    arm = built.world.true
    force = np.linalg.norm(built.plant.contact_forces, axis=1)[: len(log)]  # type: ignore[attr-defined]
    touched = np.nonzero(force > CONTACT)[0]
    first = int(touched[0]) if len(touched) else None
    start = first if first is not None else int(np.searchsorted(log.time, built.motion.settle))
    q, qd = log["q_true"][start - 1], log["qd_true"][start - 1]
    J = arm.jacobian(q)[:3]
    v = J @ qd
    speed = float(np.linalg.norm(v))
    limits = np.where(np.isfinite(arm.tau_max), arm.tau_max, np.inf)
    common = {
        "obstacle": s.obstacle,
        "reaction": s.reaction,
        "speed_m_s": speed,
        "torque_share": float(np.max(np.abs(log["tau_cmd"]) / limits)),
        "end_speed_rad_s": float(np.max(np.abs(log["qd_true"][-1]))),
    }
    if first is None:
        return Impact(
            **common, effective_mass_kg=None, contact_s=None, felt_ms=None, peak_n=0.0, peak_after_ms=None,
            late_peak_n=0.0, impulse_ns=0.0, energy_j=0.0, received_j=0.0, contact_ms=0.0, remaining_n=None,
            backed_mm=None,
        )  # fmt: skip
    onset = float(log.time[first]) - result.period  # a row holds the force of the period before it
    time, energy = log.time - onset, given(log)
    felt = [e.time_s - onset for e in result.events if e.alarm and e.time_s >= onset]
    window = np.abs(time - LATER) <= WINDOW
    end = log.position("T_true")[-1] - log.position("T_true")[first]
    mass = None
    if s.obstacle != "falling":
        mass = float(1.0 / (v @ J @ np.linalg.solve(arm.mass_matrix(q), J.T @ v)) * speed**2)
    return Impact(
        **common,
        effective_mass_kg=mass,
        contact_s=onset,
        felt_ms=1e3 * felt[0] if felt else None,
        peak_n=float(force.max()),
        peak_after_ms=1e3 * float(time[int(force.argmax())]),
        late_peak_n=float(force[time >= LATE].max(initial=0.0)),
        impulse_ns=float(force.sum() * result.period),
        energy_j=float(np.max(energy, initial=0.0)) + 0.0,  # + 0.0: no minus before a zero
        received_j=float(np.max(-energy, initial=0.0)) + 0.0,
        contact_ms=1e3 * result.period * len(touched),
        remaining_n=float(force[window].mean()) if window.any() and time[-1] >= LATER + 0.5 * WINDOW else None,
        backed_mm=-1e3 * float(end @ v) / max(speed, 1e-9),
    )


def encounters(impact: Impact, result: RunResult) -> tuple[Encounter, ...]:
    """The stretch from the first touch to the end of the run; none where nothing was touched."""
    return () if impact.contact_s is None else (Encounter(impact.contact_s, result.duration - impact.contact_s),)


def settled(impact: Impact, gain: ArrayLike) -> bool:
    """Whether the touch lasted long enough for a residual of this gain [1/s] to settle."""
    return impact.contact_ms >= 1e3 * SETTLED / float(np.min(gain))


def given(log: Log) -> Array:
    """Energy (N,) [J] that the arm has given to what touches it so far, -int tau_ext qd dt.

    Row k holds the torque of the period before it: work of a period is its torque times the mean speed.
    """
    qd = log["qd_true"]
    mean = 0.5 * (qd[1:] + qd[:-1])
    power = np.sum(log["tau_ext_true"][1:] * mean, axis=1)
    return np.asarray(np.concatenate([[0.0], -np.cumsum(power * np.diff(log.time))]))


def impacts(
    robot: str = "ur10e",
    *,
    obstacles: Sequence[str] = OBSTACLES[:3],
    reactions: Sequence[str] = REACTIONS,
    speed: float = 0.25,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> list[Impact]:
    """Every obstacle with every reaction, each a run of the scenario `touch` of 3 s; further settings as there."""
    cases = [(obstacle, reaction) for obstacle in obstacles for reaction in reactions]
    found = []
    for k, (obstacle, reaction) in enumerate(cases):
        told = {"robot": robot, "obstacle": obstacle, "reaction": reaction, "speed": speed, **settings}
        found.append(measured(*encounter(told)))
        if progress is not None:
            progress(k + 1, len(cases))
    return found


def encounter(told: dict[str, Any]) -> tuple[Built, RunResult]:
    """One run of the scenario `touch` with these settings, in memory."""
    built = build("touch", told)
    result = run(
        built.plant, built.controller, built.observers, until=built.settings.duration,
        trajectory=built.motion.trajectory, detector=built.detector, reaction=built.motion.reaction,
    )  # fmt: skip
    return built, result


HEADER = ("obstacle", "reaction", "felt [ms]", "peak [N]", "after [ms]", "later peak [N]", "impulse [Ns]", "energy [J]",
          "touching [ms]", "left 1 s on [N]", "torque used")  # fmt: skip


def rows(found: Sequence[Impact]) -> list[tuple[str, ...]]:
    """The impacts as a table to print, under HEADER; "-" where a number is not known."""

    def text(value: float | None, digits: int = 0) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    return [
        (
            i.obstacle, i.reaction, text(i.felt_ms), text(i.peak_n), text(i.peak_after_ms), text(i.late_peak_n),
            text(i.impulse_ns, 1), text(i.energy_j, 2), text(i.contact_ms), text(i.remaining_n, 1),
            f"{100.0 * i.torque_share:.0f} %",
        )
        for i in found
    ]  # fmt: skip
