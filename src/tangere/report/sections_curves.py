"""The curves of a run: reference against real in joints and in space, torques, force, residual, times of periods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tangere.figures.markup import Raw, join, number, tag
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.figures.stills import histogram, path_view
from tangere.kernels.laws.detection import SETTLING
from tangere.report.data import RunData
from tangere.report.section import (
    Section,
    again,
    alone,
    axis,
    bar,
    both,
    by_hand,
    event_bands,
    event_marks,
    joint_titles,
    joint_units,
    links_meant,
    near_rows,
    origin,
    residual_panel,
    robot_of,
    sized,
    staged,
    table,
    time_section,
    tool_paths,
    unit_words,
)
from tangere.report.sections_run import figure as measured
from tangere.types import Array, Event


def joints(data: RunData) -> Section | None:
    """000's figure 3: q_des and q joint by joint; beneath it their difference."""
    if data.q is None or not len(data.time):
        return Section("joints", "In joints", tag("p", "The log holds no joint positions."))
    titles, units = joint_titles(data), joint_units(data, "rad")
    panels = []
    for i in range(data.q.shape[1]):
        curves = [Series("real", data.q[:, i], "a")]
        if data.q_des is not None:
            curves.insert(0, Series("reference", data.q_des[:, i], "soft"))
        # a milliradian, a millimetre: a joint at rest looks so
        panels.append(Panel(titles[i], units[i + 1], tuple(curves), at_least=1e-3))
    both = "Reference and real joint positions (as figure 3 of document 000)."
    bands, caption = event_marks(data), both if data.q_des is not None else "Joint positions."
    figures = [TimeFigure("joint-position", caption, axis(data), tuple(panels), bands, smooth=True)]
    if data.q_des is not None:
        error, small = (data.q_des - data.q) * 1e3, joint_units(data, "mrad")
        each = [
            Panel(title, small[j], (Series("error", column, "a"),), at_least=1e-6)
            for j, (title, column) in enumerate(zip(titles, error.T, strict=True), start=1)
        ]
        words = unit_words(data, "mrad").replace("mrad", "thousandths of a radian").replace("mm", "millimetres")
        caption = f"Reference minus real, joint by joint, in {words}; all on one scale."
        figures.append(TimeFigure("joint-error", caption, axis(data), tuple(each), bands, shared=True))
    return time_section("joints", "In joints", data.command, *figures)


def _disturbed(data: RunData) -> NDArray[np.bool_]:
    """Samples from the onset of an event to 1 s after its end: ten time constants of a loop with kp = 100."""
    mask, time = np.zeros(len(data.time), dtype=bool), axis(data)
    for band in event_bands(data):
        mask |= (time >= band.start - 0.02) & (time <= band.end + 1.0)  # 20 ms: felt a little after its onset
    return mask


def tracking(data: RunData) -> Section | None:
    """000's figure 4, the path of the tool square on, and how far it was from where it should be; causes of that."""
    tcp, tcp_des = tool_paths(data)
    if tcp is None or not np.any(np.all(np.isfinite(tcp), axis=1)):
        told = Section("tracking", "Path and error of the tool", tag("p", "The log holds no path of the tool."))
        return None if alone(data) else told
    if tcp_des is None or not len(data.time):
        text = "No reference in space to compare with."
        return Section("tracking", "Path and error of the tool", tag("p", text))
    parts: list[Raw] = []
    caption = "Real minus desired position of the tool: distance, and along the axes of the base."
    panel = Panel("Tool", "mm", sized("distance", (tcp - tcp_des) * 1e3), at_least=1e-6)
    figure = TimeFigure(
        "tracking-error", caption, axis(data), (panel,), event_marks(data), hidden=tuple("xyz"), log=True
    )
    if np.any(np.all(np.isfinite(tcp_des) & np.isfinite(tcp), axis=1)):
        drawn, sentence = path_view(tcp, tcp_des, _disturbed(data))
        text = f"{sentence} Wide line: reference; thin line: real; dot: start (as figure 4 of document 000)."
        parts.append(staged(drawn, text, again(data.command, "path"), id="path", class_="path", data_numbers="motion"))
    parts.append(figure.html(again(data.command, figure.identifier)))
    body = join(tag("div", *parts, class_="pair"), _shares(data))
    return Section("tracking", "Path and error of the tool", body, (figure.data(),))


def _shares(data: RunData) -> Raw | None:
    """summary["shares"]: cause -> mm rms, or cause -> {column: number}; drawn as bars."""
    shares = data.summary.get("shares")
    if not isinstance(shares, Mapping) or not shares:
        return None
    if all(isinstance(value, Mapping) for value in shares.values()):
        columns = list(dict.fromkeys(key for value in shares.values() for key in value))
        rows = [(cause, *(number(value.get(key)) for key in columns)) for cause, value in shares.items()]
        return join(tag("h3", "Where it comes from"), table(("cause", *map(str, columns)), rows))
    sizes = {
        str(k).removesuffix("_mm"): float(v)
        for k, v in shares.items()
        if isinstance(v, (int, float)) and np.isfinite(v)
    }
    largest = max((abs(v) for v in sizes.values()), default=0.0)
    if largest < 1e-6:  # mm: the model is the arm's own, nothing comes from it
        return None
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
    titles, units = joint_titles(data), joint_units(data, "Nm")
    panels, rows = [], []
    for i, title in enumerate(titles[: data.tau.shape[1]]):
        limit = float(limits[i]) if limits is not None else np.inf
        torque = (Series("torque", data.tau[:, i], "a"),)
        panels.append(Panel(title, units[i + 1], torque, both("limits", limit), at_least=1e-3))
        peak = _peak(data.tau[:, i])
        share = 100.0 * peak / limit if limit > 0 else float("nan")
        used = "–" if np.isnan(share) else f"{share:.1f} %"
        # a clipped torque sits on its limit to within rounding
        rows.append((title, measured(peak, ""), number(limit), used, bar(share, "bar hit" if share > 99.9 else "bar")))
    limited = by_hand(" The limits are far outside most panels: switch them on in the legend.")
    caption = join("Joint torques, gravity included.", None if limits is None else limited)
    hidden = ("limits",) if limits is not None else ()
    figure = TimeFigure("torque", caption, axis(data), tuple(panels), event_marks(data), hidden)
    unit = unit_words(data, "Nm")
    head = ("joint", f"peak [{unit}]", f"limit [{unit}]", "used", "")
    below = None if limits is None else table(head, rows, "bars")
    return time_section("torques", "Torques", data.command, figure, below)


def force(data: RunData) -> Section | None:
    """The force of the environment on the tool, in a run where there was one."""
    if data.wrench is None or not np.any(np.abs(np.nan_to_num(data.wrench)) > 1e-9):
        return None
    caption = "Force of the environment on the tool: magnitude, and along the axes of the base."
    panel = Panel("Contact", "N", sized("magnitude", data.wrench[:, :3]), at_least=1e-3)
    figure = TimeFigure("contact-force", caption, axis(data), (panel,), event_marks(data), hidden=tuple("xyz"))
    remark = data.summary.get("remark")
    said = tag("p", remark) if isinstance(remark, str) else None
    return time_section("force", "Force", data.command, said, figure)


def residual(data: RunData) -> Section | None:
    """000's figure 5: what the observers felt, what was true, thresholds and events."""
    if not data.residuals or not len(data.time):
        told = Section("residual", "Touch", tag("p", "No observer took part in this run."))
        return None if alone(data) else told
    titles = joint_titles(data)
    panels = [residual_panel(data, i, titles[i]) for i in range(data.dof)]
    caption = "Residual of the observer against the true external torque (as figure 5 of document 000); events shaded."
    if data.tau_ext_true is None:
        caption = "Residual of the observer; events shaded. The true external torque is not known."
    figure = TimeFigure("residual-torque", caption, axis(data), tuple(panels), event_marks(data))
    return time_section("residual", "Touch", data.command, _raised(data), figure, *_score(data))


def _raised(data: RunData) -> Raw | None:
    """What raised each event, in a sentence, and which links are meant."""
    zero = origin(data)
    said = [
        tag("li", f"{_named(e, entry)} at {e.time_s - zero:.3f} s: {e.reason}.{_by(data, e)}")
        for e, entry in data.judged
        if e.reason
    ]
    robot, _ = robot_of(data)
    meant = links_meant(robot, data.events) if robot is not None else ""
    return join(tag("ul", *said) if said else None, tag("p", meant) if meant else None) if said or meant else None


def _named(event: Event, entry: Mapping[str, object]) -> str:
    return "false alarm" if entry.get("false") else event.name


def _by(data: RunData, event: Event) -> str:
    """What the curve and its dashed threshold do not show of an alarm: why it came when it did, and when they cross."""
    if event.channel == "residual" or not len(data.time):
        return ""
    began = float(data.time[0])
    if event.time_s <= began + SETTLING + 2.0 * (data.period or 0.0):
        since = number(began - origin(data) + SETTLING, 3)
        return f" Before {since} s nothing is watched: the mean of the residual is learned."
    j, levels, curve = event.joint - 1, data.thresholds, next(iter(data.residuals.values()), None)
    if event.channel == "level" or levels is None or curve is None or not j < min(len(levels), curve.shape[1]):
        return ""
    last = np.inf if event.end_s is None else event.end_s
    above = (data.time >= event.time_s) & (data.time <= last) & (np.abs(curve[:, j]) > levels[j])
    when = f"crossed at {number(float(axis(data)[np.argmax(above)]), 4)} s" if above.any() else "did not cross"
    unit = joint_units(data, "Nm")[event.joint]
    return f" The dashed threshold is that of the level, {number(float(levels[j]), 3)} {unit}, which the curve {when}."


def _score(data: RunData) -> list[TimeFigure | Raw]:
    """The score over time, and what came near to an alarm without one."""
    if data.score is None or len(data.score) != len(data.time) or not np.any(np.isfinite(data.score)):
        return []
    limit = Series("alarm", np.ones(len(data.time)), "limit")
    panel = Panel("all joints", "1 = alarm", (Series("score", data.score, "a"), limit))
    caption = "Score: the largest signal of any joint against its threshold. At 1 an alarm is raised."
    near, zero = near_rows(data.time, data.score, data.events), origin(data)
    told = [f"{score:.2f} at {time - zero:.3f} s" for time, score, _ in near]
    text = f"Near an alarm: {', '.join(told[:5])}." if told else "Beside the events nothing came near an alarm."
    return [TimeFigure("score", caption, axis(data), (panel,), event_marks(data)), tag("p", text)]


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
        return None if alone(data) else Section("timing", "Timing", tag("p", "The run did not measure its periods."))
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
    step, factor = data.summary.get("step_us"), data.summary.get("realtime_factor")
    bare = step.get("bare_mj_step") if isinstance(step, Mapping) else None
    if isinstance(bare, int | float):
        rows.append(("MuJoCo's own step", number(float(bare), 3)))
    said = None
    if isinstance(factor, int | float) and factor == factor and not data.live:
        said = tag("p", "simulated seconds per second, log included: ", tag("b", number(float(factor), 3)))
    caption = "Time that controller, observers and log took in each period; the last bar holds everything longer."
    figure = staged(histogram(taken), caption, again(data.command, "timing"), class_="histogram")
    below = join(table(("controller, observers and log", "µs"), rows), said)
    parts = tag("div", figure, tag("div", below), class_="pair uneven")
    return Section("timing", "Timing", parts)


def _peak(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.max(np.abs(finite))) if finite.size else float("nan")
