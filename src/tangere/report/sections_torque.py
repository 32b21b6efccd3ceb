"""Torques against limits, residual against the true external torque, and what a period took."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.figures.markup import join, number, tag
from tangere.figures.plots import Level, Panel, Series, TimeFigure
from tangere.figures.stills import histogram
from tangere.report.data import RunData
from tangere.report.section import Section, again, event_bands, joint_titles, robot_of, staged, table

Array = NDArray[np.float64]


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
