"""The sections of the report in their order, and the head of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tangere.figures.markup import Raw, join, number, tag
from tangere.report.data import RunData
from tangere.report.section import Section, page_head, robot_of
from tangere.report.sections_motion import joints, space, tracking
from tangere.report.sections_run import setup, summary, what
from tangere.report.sections_torque import force, residual, timing, torques

SECTIONS: tuple[Callable[[RunData], Section | None], ...] = (
    what,
    summary,
    setup,
    joints,
    space,
    tracking,
    torques,
    force,
    residual,
    timing,
)


def head(data: RunData) -> Raw:
    """Title, an abort if there was one, and the few figures that one looks for first."""
    robot, _ = robot_of(data)
    title = robot.model.title if robot is not None else str(data.robot or "")
    time = data.time
    long = f"{number(float(time[-1] - time[0]))} s, {len(time)} samples" if len(time) else "no samples were recorded"
    line = " · ".join(part for part in (title, long) if part)
    alarm = None
    if data.aborted:
        alarm = ("The run ended early", data.aborted)
    elif not len(time):
        alarm = ("The log is empty", "Nothing to draw.")
    return page_head(data.name, line, _tiles(data), alarm)


def _tiles(data: RunData) -> list[tuple[str, object, str]]:
    """What one looks for first: how well it tracked, what it felt, how fast it ran; only what is known."""
    summary = data.summary
    tiles: list[tuple[str, object, str]] = []
    if _known(summary, "tracking_rms_mm"):
        tiles.append(("tracking error, rms", number(float(summary["tracking_rms_mm"]), 3), " mm"))
    quiet = summary.get("residual_rms_nm")
    if "force" in summary:  # in contact all along nothing is quiet
        quiet = None
    if isinstance(quiet, (list, tuple)) and quiet and all(isinstance(v, (int, float)) for v in quiet):
        tiles.append(("quiet residual, worst joint", number(float(max(quiet)), 3), " Nm"))
    for event in data.events[:1]:
        if event.torque_nm is not None:
            true = f" of {number(event.true_torque_nm, 4)}" if event.true_torque_nm is not None else ""
            tiles.append((f"felt at joint {event.joint}", join(number(event.torque_nm, 4), tag("small", true)), " Nm"))
        if event.delay_ms is not None:
            tiles.append(("noticed after", number(event.delay_ms, 3), " ms"))
    if _known(summary, "realtime_factor"):
        tiles.append(("faster than real time", number(float(summary["realtime_factor"]), 3), " ×"))
    return tiles


def _known(summary: Mapping[str, object], key: str) -> bool:
    value = summary.get(key)
    return isinstance(value, (int, float)) and value == value
