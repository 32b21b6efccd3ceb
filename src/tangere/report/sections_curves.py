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
    drawable,
    event_bands,
    joint_titles,
    robot_of,
    staged,
    table,
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
    first = TimeFigure(
        "joint-position",
        "Reference and real joint positions (as figure 3 of document 000).",
        data.time,
        tuple(panels),
        event_bands(data),
        smooth=True,
    )
    figures = [first]
    if data.q_des is not None:
        error = (data.q_des - data.q) * 1e3
        figures.append(
            TimeFigure(
                "joint-error",
                "Reference minus real, joint by joint, in thousandths of a radian.",
                data.time,
                tuple(Panel(titles[i], "mrad", (Series("error", error[:, i], "b"),), at_least=1e-6)
                      for i in range(error.shape[1])),
                event_bands(data),
            )
        )  # fmt: skip
    body = join(*(figure.html(again(data.command, figure.identifier)) for figure in figures))
    return Section("joints", "In joints", body, tuple(figure.data() for figure in figures))


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
            bar = tag("div", play, slider, tag("output"), class_="player", hidden="")
            caption = "The arm and the path of its tool. Drag to turn; the pose follows the cursor of every plot."
            line = again(data.command, "motion")
            parts.append(staged(drawing.still(), caption, line, bar, id="motion", class_="scene"))
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
    error = (tcp - tcp_des) * 1e3
    curves = (
        Series("distance", np.linalg.norm(error, axis=1), "a"),
        *(Series(axis, error[:, k], style) for k, (axis, style) in enumerate(zip("xyz", "bcd", strict=True))),
    )
    figure = TimeFigure(
        "tracking-error",
        "Real minus desired position of the tool: distance, and along the axes of the base.",
        data.time,
        (Panel("Tool", "mm", curves, at_least=1e-6),),
        event_bands(data),
        hidden=("x", "y", "z"),
    )
    body = join(figure.html(again(data.command, figure.identifier)), _shares(data))
    return Section("tracking", "Tracking error", body, (figure.data(),))


def _shares(data: RunData) -> Raw:
    """summary["shares"]: cause -> mm rms, or cause -> {column: number}; drawn as bars."""
    shares = data.summary.get("shares")
    if not isinstance(shares, Mapping) or not shares:
        return tag("p", "What share inertia, friction and kinematics have in this error was not asked of this run.")
    rows: list[tuple[object, ...]] = []
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
    for cause, value in sizes.items():
        bar = tag("i", class_="bar", style=f"width:{100.0 * abs(value) / largest:.1f}%")
        rows.append((cause, number(value), bar))
    return join(
        tag("h3", "Where it comes from"),
        tag("p", "Error that each cause alone would leave (000, section 4.3.1), rms of the tool's position."),
        table(("cause", "mm", ""), rows, "bars"),
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
    panels = []
    for i in range(data.tau.shape[1]):
        limit = float(limits[i]) if limits is not None else np.inf
        levels = (Level("limits", limit), Level("limits", -limit)) if np.isfinite(limit) else ()
        panels.append(Panel(titles[i], "Nm", (Series("torque", data.tau[:, i], "a"),), levels, at_least=1e-3))
    figure = TimeFigure(
        "torque",
        "Joint torques, gravity included. The limits are far outside most panels: switch them on in the legend.",
        data.time,
        tuple(panels),
        event_bands(data),
        hidden=("limits",) if limits is not None else (),
    )
    parts = [figure.html(again(data.command, "torque"))]
    if limits is not None:
        rows: list[tuple[object, ...]] = []
        for i, title in enumerate(titles):
            peak = _peak(data.tau[:, i])
            share = 100.0 * peak / float(limits[i]) if limits[i] > 0 else float("nan")
            hit = " hit" if share > 99.9 else ""  # a clipped torque sits on its limit to within rounding
            bar = tag("i", class_=f"bar{hit}", style=f"width:{min(100.0, np.nan_to_num(share)):.1f}%")
            rows.append(
                (title, number(peak), number(float(limits[i])), "–" if np.isnan(share) else f"{share:.1f} %", bar)
            )
        parts.append(table(("joint", "peak [Nm]", "limit [Nm]", "used", ""), rows, "bars"))
    return Section("torques", "Torques", join(*parts), (figure.data(),))


def force(data: RunData) -> Section | None:
    """The force of the environment on the tool, in a run where there was one."""
    if data.wrench is None or not np.any(np.abs(np.nan_to_num(data.wrench)) > 1e-9):
        return None
    F = data.wrench[:, :3]
    curves = (
        Series("magnitude", np.linalg.norm(F, axis=1), "a"),
        *(Series(axis, F[:, k], style) for k, (axis, style) in enumerate(zip("xyz", "bcd", strict=True))),
    )
    caption = "Force of the environment on the tool: magnitude, and along the axes of the base."
    panel = Panel("Contact", "N", curves, at_least=1e-3)
    figure = TimeFigure("contact-force", caption, data.time, (panel,), event_bands(data), hidden=("x", "y", "z"))
    remark = data.summary.get("remark")
    said = tag("p", remark) if isinstance(remark, str) else None
    body = join(said, figure.html(again(data.command, "contact-force")))
    return Section("force", "Force", body, (figure.data(),))


def residual(data: RunData) -> Section | None:
    """000's figure 5: what the observers felt, what was true, thresholds and events."""
    if not data.residuals or not len(data.time):
        return Section("residual", "Touch", tag("p", "No observer took part in this run."))
    titles = joint_titles(data)
    panels = []
    for i in range(data.dof):
        curves = []
        if data.tau_ext_true is not None:
            curves.append(Series("true external torque", data.tau_ext_true[:, i], "soft"))
        for k, (name, values) in enumerate(data.residuals.items()):
            label = f"residual, {name}" if name else "residual"
            curves.append(Series(label, values[:, i], "bacd"[k % 4]))
        levels: tuple[Level, ...] = ()
        if data.thresholds is not None and len(data.thresholds) == data.dof and np.isfinite(data.thresholds[i]):
            threshold = float(data.thresholds[i])
            levels = (Level("threshold", threshold), Level("threshold", -threshold))
        panels.append(Panel(titles[i], "Nm", tuple(curves), levels, at_least=1e-3))
    caption = "Residual of the observer against the true external torque (as figure 5 of document 000); events shaded."
    if data.tau_ext_true is None:
        caption = "Residual of the observer; events shaded. The true external torque is not known."
    figure = TimeFigure("residual-torque", caption, data.time, tuple(panels), event_bands(data))
    return Section("residual", "Touch", figure.html(again(data.command, "residual-torque")), (figure.data(),))


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
