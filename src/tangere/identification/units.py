"""Units that a recording gets wrong: stamps in milliseconds, angles in degrees, torques for currents."""

from __future__ import annotations

import numpy as np

from tangere.observe.detect import Thresholds
from tangere.types import Array

SLOWEST, FASTEST = 1.0, 5e-5  # s between samples: no recorder of an arm is slower than 1 Hz or faster than 20 kHz
FULL = 4.0 * np.pi  # rad: joints of these arms turn at most 2 pi either way; twice that is no angle in radians
WINDOW = 0.1  # s over which travel and mean velocity are compared: filters and noise of the velocity do not count
MOVED = 0.1  # rad (or degrees) of travel of a joint in the log before it is a witness
RATIO = 1.25  # either way, that velocity times time may differ from the travel: the velocity is filtered
FEWEST = 10  # windows with motion
LOADED = 4.0  # Nm rms of gravity in a joint before it is a witness: below, friction is most of the current
# times gravity that currents times gains may be: right arms have 0.6 to 1.7, an unknown tool of the rated payload up to
# 3, on a UR16e or UR30 folded up 5; torques in the place of currents 7 to 15 (the gains of loaded joints)
HEAVY = 6.0
OTHER_RATE = 1.5  # times, either way: noise per sample and filters are others; less is a clock


def unit_findings(time: Array, q: Array, qd: Array | None, effort: Array | None, what: str) -> list[str]:
    """Sentences; none where all is well. time (N,), q, qd, effort (N, n) as recorded; what: "currents" or "torques"."""
    said: list[str] = []
    period = float(np.median(np.diff(time))) if len(time) > 1 else np.nan
    if period > SLOWEST:
        said.append(
            f"samples lie {period:.3g} s apart (median): the stamps look like milliseconds or microseconds, seconds "
            "are needed"
        )
    elif period < FASTEST:
        said.append(f"samples lie {period:.2g} s apart (median): the stamps do not look like seconds")
    bounded = np.abs(q[:, :-1] if q.shape[1] > 1 else q)  # the last joint of a UR3 turns without end
    if float(np.mean(bounded.max(axis=1) > FULL)) > 0.5:
        said.append(f"angles up to {bounded.max():.4g} look like degrees: radians are needed")
    if qd is not None and FASTEST <= period <= SLOWEST:
        said += _velocity(time, q, qd, period)
    if effort is not None and len(effort) and not np.any(effort):
        said.append(f"all {what} are zero: nothing can be felt in this log")
    return said


def torque_findings(g: Array, current: Array, gain: Array) -> list[str]:
    """Whether currents are torques, by their size alone: also of an arm that stands still.

    g (N, n) [Nm] modelled gravity, current (N, n) [A], gain (n,) [Nm/A] of the joints' sizes, not of this log.
    gain (i . g) / (g . g) over the log is about 1 for currents, and about the gain for torques.
    """
    power = np.sum(g**2, axis=0)
    loaded = np.flatnonzero(power > LOADED**2 * len(g))
    ratio = gain[loaded] * np.sum(g * current, axis=0)[loaded] / power[loaded]
    if not loaded.size or not np.all(ratio > HEAVY):
        return []
    shown = ", ".join(f"joint {j + 1} {r:.1f}" for j, r in zip(loaded.tolist(), ratio.tolist(), strict=True))
    return [
        f"the currents look like torques, or like those of a larger arm: times the gains of such joints, measured over "
        f"modelled gravity is {shown} instead of 1"
    ]


def promised_at(thresholds: Thresholds, time: Array) -> tuple[str, ...]:
    """That tuned thresholds promise for logs of another rate than these stamps (N,) [s] have; else nothing."""
    here = 1.0 / float(np.median(np.diff(time)))
    if not thresholds.tuned or not abs(np.log(here / thresholds.sampled)) > np.log(OTHER_RATE):
        return ()
    return (
        f"{here:.3g} samples per second, the thresholds were learned from logs of {thresholds.sampled:.3g}: their "
        "promise was not made for this; tune with logs of this rate",
    )


def _velocity(time: Array, q: Array, qd: Array, period: float) -> list[str]:
    """Whether qd is the derivative of q: travel over windows against the integral of the velocity."""
    size = max(1, round(WINDOW / period))
    total = np.concatenate((np.zeros((1, q.shape[1])), np.cumsum(0.5 * np.diff(time)[:, None] * (qd[1:] + qd[:-1]), 0)))
    at = np.arange(0, len(time) - size, size)
    at = at[time[at + size] - time[at] < 1.5 * size * period]  # none with a gap inside
    travel, integral = q[at + size] - q[at], total[at + size] - total[at]
    ratios, bad = [], []
    for j in range(q.shape[1]):
        power = float(np.sum(travel[:, j] ** 2))
        if len(at) < FEWEST or np.ptp(q[:, j]) < MOVED or power == 0.0:
            continue
        ratio = float(np.sum(travel[:, j] * integral[:, j])) / power
        ratios.append(ratio)
        if not 1.0 / RATIO < ratio < RATIO:
            bad.append(j)
    if not bad or 2 * len(bad) <= len(ratios):
        return []
    ratio = float(np.median(ratios))
    for scale, text in (
        (180.0 / np.pi, "the velocities look like degrees per second, the positions like radians"),
        (np.pi / 180.0, "the positions look like degrees, the velocities like radians per second"),
    ):
        if scale / RATIO < ratio < RATIO * scale:
            return [text]
    shown = ", ".join(str(j + 1) for j in bad)
    return [
        f"the velocities are not those of the positions (joint {shown}: {ratio:.3g} times the travel): other columns?"
    ]
