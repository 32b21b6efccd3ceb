"""summary.json: a run in a dozen numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.logs.log import Log
from tangere.loop.result import Lasting, RunResult
from tangere.observe.momentum import GAIN
from tangere.plants.pushes import Push
from tangere.robots import Robot
from tangere.types import Array, Event

# s after the end of a push that do not count as undisturbed tracking: ten time constants of a loop with kp = 100
AFTER_PUSH = 1.0
# time constants after which exp(-5) = 0.7 % of a step is still missing from a residual
SETTLED = 5.0
UNTOUCHED = 1e-6  # [Nm] true external torque below which nothing touches the arm: rounding of a simulated contact

Mask = NDArray[np.bool_]


def summarise(
    result: RunResult,
    *,
    pushes: Sequence[Lasting] = (),
    settle: float = 0.0,
    robot: Robot | None = None,
    gain: ArrayLike = GAIN,
) -> dict[str, Any]:
    """The numbers of summary.json; None where the log does not hold what a number needs.

    pushes: what really happened, as far as it is known. settle [s]: end of the start ramp, tracking counts from there.
    robot: places the tcp where the log has joints only (its true kinematics). gain: K of the first observer [1/s].

    tracking_rms_mm, tracking_max_mm: distance of the tcp from its reference after `settle`, without the times from a
    push's start to 1 s after its end; tracking_push_max_mm: within those times. residual_rms_nm (n): before the first
    push, or what else touched a simulated arm; where neither is known, until five time constants before the first
    event. events: time_s is the stamp of the sample that raised it, delay_ms counts from the start of the push that it
    answers, torque_nm is the mean residual of its joint from five time constants after the onset until the end (of the
    push; where no push is known, until five time constants before the end was seen), true_torque_nm the truth there;
    false: whether nothing touched the arm when the alarm was raised (its means then end where a push begins), None
    where that is not known. pushes: what became of each that the simulation gave (`_became`).
    step_us: median time of controller and observers; blocks: who took part, for the block diagram.
    """
    log = result.log
    error = tracking_error(log, robot)
    pushed = _pushed(log, pushes)
    counted = ~pushed & (log.time >= settle)
    timing = result.timing
    events = _events(log, result.events, pushes, gain)
    gave = [push for push in pushes if isinstance(push, Push)]
    return {
        "tracking_rms_mm": _millimetres(error, counted, lambda e: np.sqrt(np.mean(e**2))),
        "tracking_max_mm": _millimetres(error, counted, np.max),
        "tracking_push_max_mm": _millimetres(error, pushed, np.max),
        "residual_rms_nm": _quiet_rms(log, _first_touch(log, result.events, pushes, gain)),
        "events": events,
        **({"pushes": [_became(push, log, events, result.setup.thresholds) for push in gave]} if gave else {}),
        "realtime_factor": result.realtime_factor,
        "duration_s": result.duration,
        "samples": len(log),
        "aborted": result.aborted,
        "log_error": result.log_error,
        "interventions": dict(result.interventions),
        "limits_exceeded": result.exceeded,  # those of the interventions that are limits of the arm
        "period_us": {
            name: 1e6 * value if isinstance(value, float) else value
            for name, value in (
                ("nominal", result.period), ("median", timing.median), ("p99", timing.p99), ("p99.99", timing.p9999),
                ("worst", timing.worst), ("missed", timing.missed), ("late", timing.late), ("busiest", timing.busiest),
                ("pauses", timing.pauses), ("longest_pause", timing.longest_pause), ("waited", timing.waited),
            )
        },
        "step_us": {"controller_and_observer": None if timing.step is None else 1e6 * timing.step},
        "thresholds_nm": None if result.setup.thresholds is None else result.setup.thresholds.tolist(),
        "blocks": dict(result.setup.parts),
    }


def tracking_error(log: Log, robot: Robot | None = None) -> Array | None:
    """Distance (N,) [m] of the tcp (true, else measured) from its reference; None where the log cannot tell."""
    if not ("T_des" in log or ("q_des" in log and robot is not None)) or not ("T_true" in log or robot is not None):
        return None

    def distance(part: Log) -> Array:
        wanted, actual = (_position(part, pose, q, robot) for pose, q in (("T_des", "q_des"), ("T_true", "q")))
        return np.asarray(np.linalg.norm(actual - wanted, axis=1))

    return log.each(distance)


def _position(log: Log, pose: str, q: str, robot: Robot | None) -> Array:
    """(N, 3) [m] of the tcp, from a column of poses or else of joints."""
    if pose in log or robot is None:
        return log.position(pose)
    return np.asarray(robot.pose(log[q])[:, :3, 3])


def _first_touch(log: Log, events: Sequence[Event], pushes: Sequence[Lasting], gain: ArrayLike) -> float:
    """When the arm was touched first [s], as far as it is known; inf: it was not, whatever an alarm says."""
    if pushes:
        return min(push.start for push in pushes)
    if "tau_ext_true" in log:
        for part in log.pieces():
            touched = (np.abs(part["tau_ext_true"]) > UNTOUCHED).any(axis=1)
            if touched.any():
                return float(part.time[touched.argmax()])
        return np.inf
    rising = SETTLED / float(np.min(gain))
    return min((event.time_s - rising for event in events), default=np.inf)


def _quiet_rms(log: Log, end: float) -> list[float] | None:
    """RMS of the residual (n) before a time [s]; None where nothing is."""
    if "residual" not in log:
        return None
    squares, rows = [], []
    for part in log.pieces():
        quiet = part.time < end
        if quiet.any():
            squares.append(np.mean(part["residual"][quiet] ** 2, axis=0))
            rows.append(int(quiet.sum()))
    return np.sqrt(joined_mean(squares, rows)).tolist() if rows else None


def joined_mean(means: Sequence[Any], rows: Sequence[int]) -> Array:
    """The mean over parts of a log, of so many rows each, from theirs."""
    return np.asarray(means[0] if len(means) == 1 else np.average(means, axis=0, weights=rows))


def _pushed(log: Log, pushes: Sequence[Lasting]) -> Mask:
    mask = np.zeros(len(log), dtype=np.bool_)
    for push in pushes:
        mask |= (log.time >= push.start) & (log.time <= push.start + push.duration + AFTER_PUSH)
    return mask


def _millimetres(error: Array | None, where: Mask, reduce: Any) -> float | None:
    return None if error is None or not where.any() else float(1e3 * reduce(error[where]))


def _events(log: Log, events: Sequence[Event], pushes: Sequence[Lasting], gain: ArrayLike) -> list[dict[str, Any]]:
    """The entries of all events, in one pass over the log."""
    windows: list[tuple[int, float, float]] = []  # joint, from, to [s]: where an event's torque is a steady one
    answered: list[Lasting | None] = []
    false: list[bool | None] = []
    for event in events:
        j = event.joint - 1
        settling = SETTLED / float(np.broadcast_to(np.asarray(gain, dtype=float), (event.residual_nm.size,))[j])
        end = float(log.time[-1]) if event.end_s is None else event.end_s
        push = _answered(event, pushes, settling)
        if push is not None:
            end = min(end, push.start + push.duration)
        elif event.end_s is not None:
            end -= settling
        answered.append(push)
        false.append(_false(log, event, push, settling))
        if false[-1]:  # what is felt is all error, until something does touch
            end = min([end, *(one.start for one in pushes if one.start > event.time_s)])
        windows.append((j, event.time_s + settling, end))
    felt, true = _means(log, ("residual", "tau_ext_true"), windows)
    return [_entry(*one) for one in zip(events, answered, felt, true, false, strict=True)]


def _false(log: Log, event: Event, push: Lasting | None, settling: float) -> bool | None:
    """Whether nothing touched the arm when an alarm was raised; None where the truth is not known."""
    if not event.alarm or "tau_ext_true" not in log:
        return None
    first, end = np.searchsorted(log.time, (event.onset_s - settling, event.time_s), side="right").tolist()
    touched = np.abs(log[max(first - 1, 0) : end]["tau_ext_true"]) > UNTOUCHED
    return push is None and not bool(touched.any())


def _became(
    push: Push, log: Log, events: Sequence[dict[str, Any]], levels: Array | None
) -> dict[str, Any]:
    """What became of a push: felt_ms after its start, or hidden_s, since when another alarm went on, or neither.

    joint, torque_nm: where it pressed most against the thresholds, and how much; threshold_nm: of that joint.
    taken_for: the kind of an event that it was and that raises no alarm.
    """
    end = push.start + push.duration
    joint, torque, link, force = None, None, None, None
    if push.joint:
        joint, torque = push.joint, push.torque
    else:
        link, force = push.link, float(np.linalg.norm(push.force))
        first, last = np.searchsorted(log.time, (push.start, end)).tolist()
        if "tau_ext_true" in log and first < last:
            true = np.abs(log[first:last]["tau_ext_true"]).max(axis=0)
            joint = 1 + int(np.argmax(true if levels is None else true / levels))
            torque = float(true[joint - 1])
    mine = [event for event in events if event["push_s"] == push.start]
    alarms = [event for event in mine if event["alarm"]]
    on = [e for e in events if e["alarm"] and e["time_s"] < push.start and (e["end_s"] or np.inf) > push.start]
    return {
        "start_s": push.start,
        "end_s": end if np.isfinite(end) else None,
        "joint": joint,
        "torque_nm": torque,
        "link": link,
        "force_n": force,
        "threshold_nm": None if levels is None or joint is None else float(levels[joint - 1]),
        "felt_ms": 1e3 * (alarms[0]["time_s"] - push.start) if alarms else None,
        "hidden_s": on[-1]["time_s"] if on and not alarms else None,
        "taken_for": mine[0]["kind"] if mine and not alarms else "",
    }


def _means(
    log: Log, columns: Sequence[str], windows: Sequence[tuple[int, float, float]]
) -> list[list[float | None]]:
    """Of each column the mean of a joint within each window; None where there is no row."""
    found = {(name, k): ([], []) for name in columns for k in range(len(windows))}  # type: dict[Any, tuple[Any, Any]]
    for part in log.pieces() if windows else ():
        first, last = (float(part.time[0]), float(part.time[-1])) if len(part) else (np.inf, -np.inf)
        for k, (j, start, end) in enumerate(windows):
            if start > last or end < first:
                continue
            inside = (part.time >= start) & (part.time <= end)
            for name in columns:
                if inside.any() and name in part:
                    means, rows = found[name, k]
                    means.append(part[name][inside, j].mean())
                    rows.append(int(np.count_nonzero(inside)))
    return [
        [float(joined_mean(*found[name, k])) if found[name, k][1] else None for k in range(len(windows))]
        for name in columns
    ]


def _entry(
    event: Event, push: Lasting | None, felt: float | None, true: float | None, false: bool | None
) -> dict[str, Any]:
    return {
        "time_s": event.time_s,
        "end_s": event.end_s,
        "push_s": None if push is None else push.start,
        "delay_ms": None if push is None else 1e3 * (event.time_s - push.start),
        "false": false,
        "joint": event.joint,
        "torque_nm": felt,
        "true_torque_nm": true,
        "kind": event.kind,
        "alarm": event.alarm,
        "reason": event.reason,
        "link": event.link,
        "link_probability": event.link_probability,
        "why_no_link": event.why_no_link,
    }


def _answered(event: Event, pushes: Sequence[Lasting], settling: float) -> Lasting | None:
    """The last push that had begun, and was not over for long, when the touch was raised."""
    begun = [p for p in pushes if p.start <= event.time_s <= p.start + p.duration + settling]
    return max(begun, key=lambda p: p.start, default=None)
