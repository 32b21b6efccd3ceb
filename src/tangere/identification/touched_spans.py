"""Which parts of a log look touched, and are not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.samples import LEAST_ROWS, Motion, midpoints, simple_terms, thinned
from tangere.identification.solve import agreed
from tangere.observe.drive_model import STANDSTILL
from tangere.robots import Robot

if TYPE_CHECKING:
    from tangere.loop.watching import Watched
    from tangere.types import Event

Mask = NDArray[np.bool_]
LONG = 0.2  # s of samples outside before a touch is suspected: shorter are jolts
AROUND = 0.1  # s on both sides that are left out with a touch: it rises and fades
# Times the threshold of an arm that nobody tuned from which on an alarm is a touch and not this arm's own friction.
# Chosen between what a UR10 in free motion reaches (1.7, three cuts of one log) and the weakest of eight pushes on
# UR10e and UR3e (2.2): milder ones are told of and learned from, as thresholds below them would alarm on free motion.
SURELY = 2.0
MARGIN = 0.5  # s left out before the onset and after the end: an onset is estimated, and stiction settles after a push
MOST = 0.5  # share of the watched time that may look touched: beyond, the rest is not known to be free either


def touched(arm: Robot, motion: Motion) -> tuple[Mask, tuple[tuple[int, float, float], ...]]:
    """Samples (N,) that do not belong to the rest of a log, and the stretches: joint (from 0), from, to [s, stamps].

    Joint by joint: tau less the rigid model's against friction, rotor inertia and an offset, as most of the log has it.
    A push that lasts for half of all motion of its joint in one direction cannot be told from friction: then the other
    half may be what does not belong.
    """
    out = np.zeros(len(motion.time), dtype=bool)
    if motion.q.shape[1] != arm.dof:
        return out, ()
    m = thinned(midpoints(motion))
    qd, qdd, left = m.qd, m.qdd, m.tau - arm.inverse_dynamics(m.q, m.qd, m.qdd)
    stamps = motion.time[m.index]
    spans: list[tuple[int, float, float]] = []
    for j in range(arm.dof):
        moving = np.flatnonzero(np.abs(qd[:, j]) > STANDSTILL)
        if len(moving) < LEAST_ROWS:
            continue
        _, inside, _ = agreed(simple_terms(qd[moving, j], qdd[moving, j]), left[moving, j])
        for a, b in runs(~inside):
            start, end = float(stamps[moving[a]]), float(stamps[moving[b]])
            if end - start >= LONG:
                spans.append((j, start, end))
                out |= (motion.time >= start - AROUND) & (motion.time <= end + AROUND)
    return out, tuple(spans)


def runs(flags: Mask) -> list[tuple[int, int]]:
    """First and last index of every stretch of true values."""
    edges = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))


def untouched(seen: Watched) -> tuple[NDArray[np.bool_], list[str]]:
    """Samples (N,) of a log, watched with untuned thresholds, that look free, and what is to be said of the others."""
    time = seen.log.motion.time
    first = float(time[0])
    free = np.ones(len(time), dtype=bool)
    sure: list[Event] = []
    mild: list[Event] = []
    for event in seen.alarms:
        end = float(time[-1]) if event.end_s is None else event.end_s
        during = (time >= event.onset_s) & (time <= end)
        if _excess(seen, during) < SURELY:
            mild.append(event)
            continue
        sure.append(event)
        free &= ~((time >= event.onset_s - MARGIN) & (time <= end + MARGIN))
    said = []
    if sure:
        out = float(np.sum(np.diff(time)[~free[1:]]))
        said.append(
            f"{seen.log.name}: looks touched {_when(sure, first)} after its start: {out:.1f} s around it are left out, "
            "thresholds learned from a touch are too high"
        )
    if mild:
        said.append(
            f"{seen.log.name}: looks touched {_when(mild, first)} after its start, but hardly: it is learned from; if "
            "it was touched, leave it out: thresholds learned from a touch are too high"
        )
    return free, said


def enough_free(total: float, left_out: float) -> None:
    """Raise where more than MOST of all logs [s] looks touched."""
    if left_out > MOST * total:
        raise InvalidValue(
            f"tune: {left_out:.1f} of {total:.1f} s look touched: thresholds need motion that nobody touches. Record "
            "some, or cut the logs; if nobody touched the arm, the model does not fit it: identify it anew, with what "
            "is mounted (--payload)"
        )


def _excess(seen: Watched, during: NDArray[np.bool_]) -> float:
    """The largest |level| or |change| over its threshold in a stretch; infinite for a jolt, too short to show there."""
    traces = seen.traces
    pairs = ((traces.level, traces.level_bound), (traces.change, traces.change_bound))
    ratios = [np.abs(value[during]) / bound[during] for value, bound in pairs]
    known = [float(ratio[np.isfinite(ratio)].max()) for ratio in ratios if np.isfinite(ratio).any()]
    return max(known, default=np.inf)


def _when(events: Sequence[Event], first: float) -> str:
    """The first few of them, s after the start of their log."""
    more = f" and {len(events) - 3} more" if len(events) > 3 else ""
    return ", ".join(f"{event.time_s - first:.2f} s (joint {event.joint})" for event in events[:3]) + more
