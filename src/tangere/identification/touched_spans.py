"""Which parts of a log look touched, and are not learned from.

Before a model is known: what the friction of the rest of the log does not explain (touched). With one, for identify and
tune alike: alarms of a detector with the thresholds of an arm of this type, from SURELY times these on
(surely_touched).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.findings import Finding
from tangere.identification.samples import LEAST_ROWS, Motion, midpoints, simple_terms, thinned
from tangere.identification.solve import agreed
from tangere.observe.detect.stops import LOOK_BACK, stopped_for_good
from tangere.observe.drive_model import STANDSTILL
from tangere.robots import Robot
from tangere.types import Array, Event

Mask = NDArray[np.bool_]
LONG = 0.2  # [s] of samples that do not belong before a touch is suspected without a model: shorter are jolts
AROUND = 0.1  # [s] on both sides that are left out where friction is learned from the log itself: it rises and fades
# Times the threshold of an untuned arm beyond which an alarm is a touch and not this arm's own friction. Chosen between
# what a UR10 in free motion reaches (1.7, three cuts of one log) and the weakest of eight pushes on UR10e and UR3e
# (2.2). Milder ones are said and learned from, as thresholds below them would alarm on free motion.
SURELY = 2.0
MARGIN = 0.5  # [s] left out before the onset and after the end: onsets are estimated, stiction settles after a push
MOST = 0.5  # share of the time that may look touched: beyond, the rest is not known to be free either


@dataclass(frozen=True)
class Span:
    """A stretch in which one joint looks touched."""

    joint: int  # counted from 1
    start: float  # [s] stamp
    end: float  # [s] stamp


def touched(arm: Robot, motion: Motion) -> tuple[Span, ...]:
    """Stretches that do not belong to the rest of a log, before any model is known.

    Joint by joint: tau less the rigid model's against friction, rotor inertia and an offset, as most of the log has it.
    A push that lasts for half of all motion of its joint in one direction cannot be told from friction: then the other
    half may be what does not belong.
    """
    if motion.q.shape[1] != arm.dof:
        return ()
    m = thinned(midpoints(motion))
    qd, qdd, left = m.qd, m.qdd, m.tau - arm.inverse_dynamics(m.q, m.qd, m.qdd)
    stamps = motion.time[m.index]
    spans = []
    for j in range(arm.dof):
        moving = np.flatnonzero(np.abs(qd[:, j]) > STANDSTILL)
        if len(moving) < LEAST_ROWS:
            continue
        _, inside, _ = agreed(simple_terms(qd[moving, j], qdd[moving, j]), left[moving, j])
        spans += _spans(j, ~inside, stamps[moving], LONG)
    return tuple(spans)


def surely_touched(alarms: Sequence[Event], last: float) -> tuple[Span, ...]:
    """Where alarms of an untuned detector are a touch and not this arm's own friction; last [s]: the log's end."""
    return tuple(
        Span(event.joint, event.onset_s, last if event.end_s is None else event.end_s)
        for event in alarms
        if event.score >= SURELY
    )


def outside(time: Array, spans: Sequence[Span], margin: float) -> Mask:
    """Samples (N,) of stamps (N,) [s] that lie in none of the spans, nor within `margin` [s] of one."""
    free = np.ones(len(time), dtype=bool)
    for span in spans:
        free &= ~((time >= span.start - margin) & (time <= span.end + margin))
    return free


def without(motion: Motion, spans: Sequence[Span]) -> tuple[Motion, tuple[Finding, ...]]:
    """A log whose touched stretches do not count, with MARGIN around them, and what is to be said of it.

    Where more than MOST of it would go all of it counts: then it is rather the model or the arm that does not fit.
    """
    if not spans:
        return motion, ()
    spans = sorted(spans, key=lambda span: span.start)
    first, steps = float(motion.time[0]), np.diff(motion.time)
    free = outside(motion.time, spans, MARGIN) & (True if motion.free is None else motion.free)
    out = float(steps[~free[1:]].sum())
    when = ", ".join(f"joint {s.joint} from {s.start - first:.2f} to {s.end - first:.2f} s" for s in spans[:3])
    more = f" and {len(spans) - 3} more" if len(spans) > 3 else ""
    most = out > MOST * float(motion.time[-1] - first)
    then = "that is most of it, and all of it counts" if most else f"{out:.1f} s around it are left out"
    text = f"looks touched: {when}{more} after its start; free motion is needed: {then}"
    joints = {span.joint for span in spans}
    said = Finding("touched", text, min(joints) if len(joints) == 1 else None)
    return (motion if most else replace(motion, free=free)), (said,)


def before_stops(motions: Sequence[Motion]) -> list[tuple[Motion, tuple[Finding, ...]]]:
    """Logs without those in which the arm was stopped abruptly for good, and what is to be said of each.

    Why it was stopped nobody knows, and so nothing of such a log counts; but up to the stop where that is most of all.
    """
    began = [stopped_for_good(motion.time, motion.qd) for motion in motions]
    seconds = [float(np.ptp(motion.time)) for motion in motions]
    stopped = sum(length for length, at in zip(seconds, began, strict=True) if at is not None)
    out: list[tuple[Motion, tuple[Finding, ...]]] = []
    for motion, at in zip(motions, began, strict=True):
        if at is None:
            out.append((motion, ()))
            continue
        most = stopped > MOST * sum(seconds)
        free = (motion.time < at - LOOK_BACK) & most & (True if motion.free is None else motion.free)
        text = f"stops abruptly {at - motion.time[0]:.2f} s after its start and stands from then on: "
        text += "left out from there" if most else "left out"
        out.append((replace(motion, free=free), (Finding("stopped", text),)))
    return out


def _spans(joint: int, beyond: Mask, stamps: Array, least: float) -> list[Span]:
    """Runs of true values that last for `least` [s] at least; joint counted from 0, stamps [s] of the values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], beyond.astype(np.int8), [0]))))
    pairs = zip(stamps[edges[0::2]].tolist(), stamps[edges[1::2] - 1].tolist(), strict=True)
    return [Span(joint + 1, start, end) for start, end in pairs if end - start >= least]


def untouched(name: str, time: Array, alarms: Sequence[Event]) -> tuple[Mask, list[Finding]]:
    """Samples (N,) of a log that look free, by the alarms of an untuned detector, and what is to be said of the others.

    name: of the log; time (N,) [s]. Alarms that are not surely a touch are said, and learned from.
    """
    first = float(time[0])
    free = outside(time, surely_touched(alarms, float(time[-1])), MARGIN)
    sure, mild = ([event for event in alarms if (event.score >= SURELY) == how] for how in (True, False))
    said = []
    if sure:
        out = float(np.sum(np.diff(time)[~free[1:]]))
        text = f"looks touched {_when(sure, first)} after its start: {out:.1f} s around it are left out, thresholds "
        said.append(Finding("touched", text + "learned from a touch are too high").of(name))
    if mild:
        text = f"looks touched {_when(mild, first)} after its start, but hardly: it is learned from; if it was "
        text += "touched, leave it out: thresholds learned from a touch are too high"
        said.append(Finding("hardly touched", text).of(name))
    return free, said


def enough_free(total: float, left_out: float) -> None:
    """Raise where more than MOST of all logs [s] looks touched."""
    if left_out > MOST * total:
        raise InvalidValue(
            f"tune: {left_out:.1f} of {total:.1f} s look touched: thresholds need motion that nobody touches. Record "
            "some, or cut the logs; if nobody touched the arm, the model does not fit it: identify it anew, with what "
            "is mounted (--payload)"
        )


def _when(events: Sequence[Event], first: float) -> str:
    """The first few of them, s after the start of their log."""
    more = f" and {len(events) - 3} more" if len(events) > 3 else ""
    return ", ".join(f"{event.time_s - first:.2f} s (joint {event.joint})" for event in events[:3]) + more
