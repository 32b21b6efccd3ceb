"""The curves of a run: reference against real in joints and in space, torques, force, residual, times of periods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tangere.figures.arm import scene
from tangere.figures.markup import Raw, join, number, strided, tag
from tangere.figures.plots import Level, Panel, Series, TimeFigure
from tangere.figures.stills import histogram, path_view
from tangere.report.data import RunData
from tangere.report.section import (
    Section,
    again,
    bar,
    drawable,
    event_bands,
    joint_titles,
    robot_of,
    staged,
    table,
    time_section,
    tool_positions,
)
from tangere.types import Array

_POSES = 160  # poses of the arm in the page: 16 a second for a 10 s run look like motion
_PATH = 600  # points of a path in space: a circle of 0.15 m radius drawn to 2 micrometres


def joints(data: RunData) -> Section | None:
    """000's figure 3: q_des and q joint by joint; beneath it their difference."""
    if data.q is None or not len(data.time):
        return Section("joints", "In joints", tag("p", "The log holds no joint positions."))
    titles = joint_titles(data)
    panels = []
    for i in range(data.q.shape[1]):
        curves = [Series("real", data.q[:, i], "a")]
        if data.q_des is not None:
            curves.insert(0, Series("reference", data.q_des[:, i], "soft"))
        panels.append(Panel(titles[i], "rad", tuple(curves), at_least=1e-3))  # a milliradian: a joint at rest looks so
    bands, caption = event_bands(data), "Reference and real joint positions (as figure 3 of document 000)."
    figures = [TimeFigure("joint-position", caption, data.time, tuple(panels), bands, smooth=True)]
    if data.q_des is not None:
        error = (data.q_des - data.q) * 1e3
        each = [
            Panel(title, "mrad", (Series("error", column, "b"),), at_least=1e-6)
            for title, column in zip(titles, error.T, strict=True)
        ]
        caption = "Reference minus real, joint by joint, in thousandths of a radian."
        figures.append(TimeFigure("joint-error", caption, data.time, tuple(each), bands))
    return time_section("joints", "In joints", data.command, *figures)


def tool_paths(data: RunData) -> tuple[Array | None, Array | None]:
    """tcp and tcp_des (N, 3): as logged, else from the joints by the robot's kinematics, else None."""
    robot, _ = robot_of(data)
    tcp, tcp_des = data.tcp, data.tcp_des
    if robot is not None and data.dof == robot.dof and len(data.time):
        if tcp is None and data.q is not None:
            tcp = tool_positions(robot, data.q)
        if tcp_des is None and data.q_des is not None:
            tcp_des = tool_positions(robot, data.q_des)
    return tcp, tcp_des


def space(data: RunData) -> Section | None:
    """000's figure 4: the path of the tool, with the arm that draws it, and square on with its error exaggerated."""
    tcp, tcp_des = tool_paths(data)
    if tcp is None or not np.any(np.all(np.isfinite(tcp), axis=1)):
        return Section("space", "In space", tag("p", "The log holds no path of the tool."))
    rows = strided(len(tcp), _PATH)
    paths = ([("soft", tcp_des[rows])] if tcp_des is not None else []) + [("a", tcp[rows])]
    robot, _ = robot_of(data)
    parts: list[Raw] = []
    figures = []
    if robot is not None and data.q is not None and data.dof == robot.dof:
        good = np.flatnonzero(drawable(data.q))
        if len(good):
            poses = good[strided(len(good), _POSES)]
            drawing = scene(robot, data.q[poses], data.time[poses], "motion", frames=False, paths=tuple(paths))
            slider = tag("input", type="range", min=0, max=len(poses) - 1, value=0, aria_label="time of the run")
            play = tag("button", "Play", type="button", class_="play")
            player = tag("div", play, slider, tag("output"), class_="player", hidden="")
            caption = "The arm and the path of its tool. Drag to turn; the pose follows the cursor of every plot."
            line = again(data.command, "motion")
            parts.append(staged(drawing.still(), caption, line, player, id="motion", class_="scene"))
            figures.append(drawing.data())
    if tcp_des is not None and np.any(np.all(np.isfinite(tcp_des) & np.isfinite(tcp), axis=1)):
        drawn, sentence = path_view(tcp, tcp_des, _disturbed(data))
        caption = f"{sentence} Wide line: reference; thin line: real; dot: start (as figure 4 of document 000)."
        parts.append(staged(drawn, caption, again(data.command, "path"), id="path", class_="path"))
    return Section("space", "In space", tag("div", *parts, class_="pair"), tuple(figures))


def _disturbed(data: RunData) -> NDArray[np.bool_]:
    """Samples from the onset of an event to 1 s after its end: ten time constants of a loop with kp = 100."""
    mask = np.zeros(len(data.time), dtype=bool)
    for band in event_bands(data):
        mask |= (data.time >= band.start - 0.02) & (data.time <= band.end + 1.0)  # 20 ms: felt a little after its onset
    return mask


def tracking(data: RunData) -> Section | None:
    """Distance of the tool from where it should be, and what share the causes of 000 section 4.3.1 have in it."""
    tcp, tcp_des = tool_paths(data)
    if tcp is None or tcp_des is None or not len(data.time):
        return Section("tracking", "Tracking error", tag("p", "No reference in space to compare with."))
    caption = "Real minus desired position of the tool: distance, and along the axes of the base."
    panel = Panel("Tool", "mm", _sized("distance", (tcp - tcp_des) * 1e3), at_least=1e-6)
    figure = TimeFigure("tracking-error", caption, data.time, (panel,), event_bands(data), hidden=tuple("xyz"))
    return time_section("tracking", "Tracking error", data.command, figure, _shares(data))


def _sized(name: str, vectors: Array) -> tuple[Series, ...]:
    """The size of vectors (N, 3) under that name, and their parts along x, y, z."""
    parts = (Series(axis, part, style) for axis, part, style in zip("xyz", vectors.T, "bcd", strict=True))
    return (Series(name, np.linalg.norm(vectors, axis=1), "a"), *parts)


def _shares(data: RunData) -> Raw:
    """summary["shares"]: cause -> mm rms, or cause -> {column: number}; drawn as bars."""
    shares = data.summary.get("shares")
    if not isinstance(shares, Mapping) or not shares:
        return tag("p", "What share inertia, friction and kinematics have in this error was not asked of this run.")
    if all(isinstance(value, Mapping) for value in shares.values()):
        columns = list(dict.fromkeys(key for value in shares.values() for key in value))
        rows = [(cause, *(number(value.get(key)) for key in columns)) for cause, value in shares.items()]
        return join(tag("h3", "Where it comes from"), table(("cause", *map(str, columns)), rows))
    sizes = {
        str(k).removesuffix("_mm"): float(v)
        for k, v in shares.items()
        if isinstance(v, (int, float)) and np.isfinite(v)
    }
    largest = max((abs(v) for v in sizes.values()), default=0.0) or 1.0
    bars = [(cause, number(value), bar(100.0 * abs(value) / largest)) for cause, value in sizes.items()]
    return join(
        tag("h3", "Where it comes from"),
        tag("p", "Error that each cause alone would leave (000, section 4.3.1), rms of the tool's position."),
        table(("cause", "mm", ""), bars, "bars"),
    )


def torques(data: RunData) -> Section | None:
    """Commanded torques joint by joint, and how much of each limit was used."""
    if data.tau is None or not len(data.time):
        return Section("torques", "Torques", tag("p", "The log holds no torques."))
    robot, _ = robot_of(data)
    limits = data.tau_max
    if limits is None and robot is not None and robot.dof == data.tau.shape[1]:
        limits = robot.tau_max
    if limits is not None and len(limits) != data.tau.shape[1]:
        limits = None
    titles = joint_titles(data)
    panels, rows = [], []
    for i, title in enumerate(titles[: data.tau.shape[1]]):
        limit = float(limits[i]) if limits is not None else np.inf
        torque = (Series("torque", data.tau[:, i], "a"),)
        panels.append(Panel(title, "Nm", torque, _both("limits", limit), at_least=1e-3))
        peak = _peak(data.tau[:, i])
        share = 100.0 * peak / limit if limit > 0 else float("nan")
        used = "–" if np.isnan(share) else f"{share:.1f} %"
        # a clipped torque sits on its limit to within rounding
        rows.append((title, number(peak), number(limit), used, bar(share, "bar hit" if share > 99.9 else "bar")))
    caption = "Joint torques, gravity included. The limits are far outside most panels: switch them on in the legend."
    hidden = ("limits",) if limits is not None else ()
    figure = TimeFigure("torque", caption, data.time, tuple(panels), event_bands(data), hidden)
    head = ("joint", "peak [Nm]", "limit [Nm]", "used", "")
    below = None if limits is None else table(head, rows, "bars")
    return time_section("torques", "Torques", data.command, figure, below)


def _both(name: str, value: float) -> tuple[Level, ...]:
    """A bound in both directions; none where it is not known."""
    return (Level(name, value), Level(name, -value)) if np.isfinite(value) else ()


def force(data: RunData) -> Section | None:
    """The force of the environment on the tool, in a run where there was one."""
    if data.wrench is None or not np.any(np.abs(np.nan_to_num(data.wrench)) > 1e-9):
        return None
    caption = "Force of the environment on the tool: magnitude, and along the axes of the base."
    panel = Panel("Contact", "N", _sized("magnitude", data.wrench[:, :3]), at_least=1e-3)
    figure = TimeFigure("contact-force", caption, data.time, (panel,), event_bands(data), hidden=tuple("xyz"))
    remark = data.summary.get("remark")
    said = tag("p", remark) if isinstance(remark, str) else None
    return time_section("force", "Force", data.command, said, figure)


def residual(data: RunData) -> Section | None:
    """000's figure 5: what the observers felt, what was true, thresholds and events."""
    if not data.residuals or not len(data.time):
        return Section("residual", "Touch", tag("p", "No observer took part in this run."))
    titles = joint_titles(data)
    thresholds = data.thresholds
    if thresholds is None or len(thresholds) != data.dof:
        thresholds = np.full(data.dof, np.nan)
    panels = []
    for i in range(data.dof):
        curves = []
        if data.tau_ext_true is not None:
            curves.append(Series("true external torque", data.tau_ext_true[:, i], "soft"))
        for k, (name, values) in enumerate(data.residuals.items()):
            label = f"residual, {name}" if name else "residual"
            curves.append(Series(label, values[:, i], "bacd"[k % 4]))
        levels = _both("threshold", float(thresholds[i]))
        panels.append(Panel(titles[i], "Nm", tuple(curves), levels, at_least=1e-3))
    caption = "Residual of the observer against the true external torque (as figure 5 of document 000); events shaded."
    if data.tau_ext_true is None:
        caption = "Residual of the observer; events shaded. The true external torque is not known."
    figure = TimeFigure("residual-torque", caption, data.time, tuple(panels), event_bands(data))
    return time_section("residual", "Touch", data.command, figure)


# what a paced run's summary says about processor and machine
_PACED = {
    "busiest": "most processor time in a period, simulator included",
    "pauses": "pauses of the machine beyond half a period while only the clock was read (count)",
    "longest_pause": "the longest of them",
}


def timing(data: RunData) -> Section | None:
    """How long controller and observer took, period by period."""
    taken = data.timing_us[np.isfinite(data.timing_us)] if data.timing_us is not None else np.zeros(0)
    if not taken.size:
        return Section("timing", "Timing", tag("p", "The run did not measure its periods."))
    quantiles = [("median", 50.0), ("p99", 99.0), ("p99.99", 99.99)]
    rows: list[tuple[object, ...]] = [(name, number(float(np.percentile(taken, p)))) for name, p in quantiles]
    rows.append(("worst", number(float(taken.max()))))
    if data.period:
        late = int(np.sum(taken > data.period * 1e6))
        rows.append((f"longer than the period of {number(data.period * 1e3)} ms", late))
    if data.lateness_us is not None and np.any(np.isfinite(data.lateness_us)):
        rows.append(("latest start of a period", number(float(np.nanmax(data.lateness_us)))))
    told = data.summary.get("period_us")
    for key, title in _PACED.items():
        value = told.get(key) if isinstance(told, dict) else None
        if isinstance(value, int | float):
            rows.append((title, number(float(value))))
    caption = "Time that controller, observers and log took in each period; the last bar holds everything longer."
    figure = staged(histogram(taken), caption, again(data.command, "timing"), class_="histogram")
    parts = tag("div", figure, table(("controller, observers and log", "µs"), rows), class_="pair uneven")
    return Section("timing", "Timing", parts)


def _peak(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.max(np.abs(finite))) if finite.size else float("nan")
