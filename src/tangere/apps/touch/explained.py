"""What set the thresholds: the largest signal of each joint against its threshold in free motion, and when it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.identification.findings import ALIEN
from tangere.loop.watching import Watched
from tangere.report.terminal import table

APART = 1.0  # [s] between two peaks that are two: as tails count them
CHANNELS = ("level", "change")  # that a log keeps sample by sample


@dataclass(frozen=True)
class Peak:
    """The largest of one signal of one joint in all logs."""

    joint: int  # counted from 1
    channel: str
    log: str
    since_start_s: float
    torque_nm: float
    score: float  # against its threshold there
    times: float  # the next largest, nan where there is none


def peaks(logs: Sequence[Watched]) -> list[Peak]:
    """Of every joint and channel, outside of events: what comes nearest to its threshold, and by how much more than
    whatever comes next, in another log or APART seconds away."""
    if not logs:
        return []
    out = []
    for j in range(logs[0].belief.robot.dof):
        for channel in CHANNELS:
            found = [(_ratio(seen, channel, j), seen) for seen in logs]
            ratio, seen = max(found, key=lambda entry: float(entry[0].max(initial=0.0)))
            if not ratio.any():
                continue
            k, time = int(np.argmax(ratio)), seen.log.motion.time
            rest = [other for other, log in found if log is not seen]
            rest.append(ratio[np.abs(time - time[k]) > APART])
            second = max(float(other.max(initial=0.0)) for other in rest)
            torque = float(getattr(seen.traces, channel)[k, j])
            times = float(ratio[k]) / second if second > 0.0 else float("nan")
            start = float(time[k] - time[0])
            out.append(Peak(j + 1, channel, seen.log.name, start, torque, float(ratio[k]), times))
    return out


def _ratio(seen: Watched, channel: str, j: int) -> Any:
    """|signal| over its threshold (N,), 0 where nothing is watched or an event goes on."""
    traces, time = seen.traces, seen.log.motion.time
    ratio = np.nan_to_num(np.abs(getattr(traces, channel)[:, j]) / getattr(traces, f"{channel}_bound")[:, j])
    for event in seen.events:
        last = float(time[-1]) if event.end_s is None else event.end_s
        ratio[(time >= event.onset_s) & (time <= last)] = 0.0
    return ratio


def peaks_text(found: Sequence[Peak]) -> list[str]:
    """A table and what it means."""
    rows = [
        (str(p.joint), p.channel, p.log, f"{p.since_start_s:.2f}", f"{p.torque_nm:.3g}", f"{p.score:.2f}",
         "-" if np.isnan(p.times) else f"{p.times:.1f}")
        for p in found
    ]  # fmt: skip
    head = ("joint", "signal", "log", "s after its start", "Nm", "of its threshold", "times the next")
    return [
        "", "what comes nearest to each threshold in these logs, and so has most part in it:",
        *table(rows, head, "rllrrrr", indent=0),
        "a value that is far above the next is worth a look: was the arm touched there?",
    ]  # fmt: skip


CURVE = 1.0  # [s] of which a score in JSON is the largest


def reasons(seen: Watched) -> list[str]:
    """What raised each event, a sentence each."""
    first = float(seen.log.motion.time[0])
    return [f"{e.name} at {e.time_s - first:.3f} s: {e.reason}" for e in seen.events if e.reason]


def alien(seen: Watched) -> str:
    """Why the events of a log mean little: its torques are not those of this arm; "": they are."""
    told = (*seen.log.findings, *seen.belief.findings, *seen.findings)
    return next((str(finding) for finding in told if finding.kind in ALIEN), "")


def record(seen: Watched) -> dict[str, Any]:
    """What there is to know of a whole log beside its events: seconds, share that stops mask, score and near misses."""
    time, score = seen.log.motion.time, np.nan_to_num(seen.traces.score)
    block = ((time - time[0]) / CURVE).astype(np.intp)
    rows = np.unique(block, return_index=True)[1]
    return {
        "log": seen.log.name, "phase": "watched", "seconds": seen.seconds, "events": len(seen.events),
        "alarms": len(seen.alarms), "masked": seen.masked,
        "near_misses": [{"time_s": t, "joint": joint, "score": value} for t, joint, value in seen.near],
        "score_s": (time[rows] - time[0]).tolist(), "score": np.maximum.reduceat(score, rows).tolist(),
    }  # fmt: skip


def besides(seen: Watched) -> list[str]:
    """What stops mask, and what came near to an alarm."""
    first = float(seen.log.motion.time[0])
    lines = [f"  stops mask {100.0 * seen.masked:.0f} % of the time"] if seen.masked else []
    if seen.near:
        told = [f"{score:.2f} at {time - first:.2f} s (joint {joint})" for time, joint, score in seen.near[:3]]
        more = f" and {len(seen.near) - 3} more" if len(seen.near) > 3 else ""
        lines.append(f"  near an alarm, which is 1: {', '.join(told)}{more}")
    return lines
