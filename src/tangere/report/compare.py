"""Two or more runs on one page: what was set otherwise, what came out otherwise, and their curves over each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.figures.markup import Raw, join, number, tag
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.logs.files import write_text
from tangere.logs.recordings import counted
from tangere.report.data import About, RunData
from tangere.report.page import page_html
from tangere.report.section import (
    Section,
    axis,
    command_line,
    joint_titles,
    joint_units,
    link_words,
    page_head,
    stamp,
    table,
    time_section,
    tool_paths,
    unit_words,
)
from tangere.report.sections_run import UNSEEN, entries, fact, figure, label, value_text, words
from tangere.robots import SLIDING
from tangere.types import Array

STYLES = "abcdef"  # of the curves, one for each run
MOST = len(STYLES)
Rows = list[tuple[str, list[Any]]]
_POINTS = 20_000  # samples of a curve in the page: 20 s at 1 kHz, whole
LENGTHS = ("duration_s", "samples")  # of a run: no news beside its figures
_SAME = 1e-9  # relative; figures nearer than this are equal: the last digits of MuJoCo depend on the processor


def compare(sources: Sequence[Any], path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Write the page that compares runs, each a folder, a log, a Log or a result, and say where it is."""
    return write_text(path, compare_html(read_runs(sources), title=title))


def read_runs(sources: Sequence[Any]) -> list[RunData]:
    """The runs of folders, logs or results; those of the same name are told apart by their folders."""
    runs = [RunData.of(source) for source in sources]
    names = [run.name for run in runs]
    folders = [Path(source).name if isinstance(source, str | os.PathLike) else "" for source in sources]
    pairs = zip(names, folders, strict=True)
    own = [folder if names.count(name) > 1 and folder else name for name, folder in pairs]
    return [replace(run, name=name) for run, name in zip(runs, own, strict=True)]


def compare_html(runs: Sequence[RunData], *, title: str = "", about: About | None = None) -> str:
    """The page as text. The first run is what the others are compared with."""
    if not 2 <= len(runs) <= MOST:
        raise InvalidValue(f"compare takes two to {MOST} runs, got {len(runs)}")
    names = labels(runs)
    settings, figures = differences(runs)
    curves = [section for make in (_tool, _residuals, _joints, _torques) if (section := make(runs, names)) is not None]
    made = [
        *curves[:1],
        _told(names, settings, figures, runs[0]),
        _events(runs, names),
        *curves[1:],
        _commands(runs, names),
    ]
    line = " · ".join(f"{name}: {_length(run)}" for name, run in zip(names, runs, strict=True))
    said, against = _sentence(names, settings, figures), " against " if len(names) == 2 else ", "
    top = page_head(title or against.join(names), line, [], sentence=said, about=about)
    return page_html(title or " and ".join(names), top, made)


def _sentence(names: Sequence[str], settings: Rows, figures: Rows) -> str:
    """How many settings differ, and the figure that changed most, in words."""
    which = ", ".join(words(key).partition(" [")[0] for key, _ in settings[:3]) + (", ..." if len(settings) > 3 else "")
    said = f"{len(names)} runs that differ in {which}" if settings else f"{len(names)} runs with the same settings"
    sizes = [
        (abs(np.log(b / a)), key, a, b, other)
        for key, (a, *others) in figures
        for other, b in zip(names[1:], others, strict=True)
        if key not in LENGTHS and _is_number(a) and _is_number(b) and min(a, b) > UNSEEN and np.isfinite([a, b]).all()
    ]
    if not sizes:
        return f"{said}."
    _, key, a, b, other = max(sizes, key=lambda one: one[0])
    name, value = fact(key, b)
    return f"{said}; what changed most: {name}, {fact(key, a)[1]} in {names[0]}, {value} in {other}."


def labels(runs: Sequence[RunData]) -> list[str]:
    """A name for each run; runs of the same name are counted."""
    return counted([run.name for run in runs])


def differences(runs: Sequence[RunData]) -> tuple[Rows, Rows]:
    """Settings and figures that are not the same in all runs: (name, value in each run; None where it has none)."""
    settings = _differing([dict(run.parameters) for run in runs])
    robots = [getattr(run.robot, "name", run.robot) for run in runs]
    if len({str(robot) for robot in robots}) > 1 and not any(name == "robot" for name, _ in settings):
        settings.insert(0, ("robot", robots))
    told = {key for key, _ in settings}  # a setting that the summary repeats is told once
    figures = _differing([dict(entries(run.summary)) for run in runs])
    return settings, [(key, values) for key, values in figures if label(key).partition(" [")[0] not in told]


def _differing(tables: Sequence[dict[str, Any]]) -> Rows:
    keys = dict.fromkeys(key for one in tables for key in one)
    rows = [(key, [one.get(key) for one in tables]) for key in keys]
    return [(key, values) for key, values in rows if any(not _equal(values[0], value) for value in values[1:])]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if _is_number(a) and _is_number(b):
        return bool(abs(a - b) <= _SAME * max(abs(a), abs(b))) or (a != a and b != b)
    return bool(a == b)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _told(names: Sequence[str], settings: Rows, figures: Rows, first: RunData) -> Section:
    """What was set otherwise and what came out otherwise, as tables."""
    parts: list[Raw] = []
    if not settings:
        parts.append(tag("p", "All settings are the same."))
    else:
        parts += [tag("h3", "Set otherwise"), table(("", *names), worded(settings, first), "facts")]
    if not figures:
        parts.append(tag("p", "All figures of the summaries are the same."))
    else:
        parts += [tag("h3", "Came out otherwise"), _table(names, figures, first, change=len(names) == 2)]
    return Section("differences", "What is different", join(*parts))


def worded(rows: Rows, first: RunData) -> list[tuple[str, ...]]:
    """Names and values as people read them; first: the run whose joints turn or slide."""
    named = [(label(key), values) for key, values in _each_joint(rows, first)]
    units = [name.rpartition(" [")[2].removesuffix("]") for name, _ in named]
    return [(name, *(_said(v, unit) for v in values)) for (name, values), unit in zip(named, units, strict=True)]


def _said(value: Any, unit: str) -> str:
    """A value in a cell; what nobody could measure is 0."""
    if value in (None, ""):
        return "–"
    return figure(value, unit) if isinstance(value, float) else value_text(value)


def _each_joint(rows: Rows, first: RunData) -> Rows:
    """Lists of numbers as long as each other as a row for each joint, so that no cell holds six numbers."""
    out: Rows = []
    for key, values in rows:
        lists = [value for value in values if isinstance(value, list | tuple)]
        long = {len(value) for value in lists}
        if len(lists) == len(values) and len(long) == 1 and all(_is_number(v) for value in lists for v in value):
            name, _, end = label(key).rpartition(" [")
            unit = end.removesuffix("]")
            units = joint_units(first, unit) if unit in SLIDING else {}
            for i in range(long.pop()):
                tail = f" [{units[i + 1] if unit in SLIDING else unit}]" if name else ""
                out.append((f"{name or label(key)}, joint {i + 1}{tail}", [v[i] for v in values]))
        else:
            out.append((key, values))
    return out


def _table(names: Sequence[str], rows: Rows, first: RunData, *, change: bool) -> Raw:
    if not change:
        return table(("", *names), worded(rows, first), "joints")
    told = []
    for row, (_, values) in zip(worded(rows, first), _each_joint(rows, first), strict=True):
        seen = not any(cell == "0" or cell.startswith("<") for cell in row[1:])  # of rounding a change tells nothing
        told.append((*row, _change(*values) if seen else "–"))
    return table(("", *names, "change"), told, "joints")


def _change(before: Any, after: Any) -> str:
    """By how much a figure changed, where that can be said in one number."""
    if not (_is_number(before) and _is_number(after)) or not np.isfinite([before, after]).all():
        return "–"
    if min(abs(before), abs(after)) < UNSEEN:  # how many times rounding is larger than rounding tells nothing
        return "–"
    ratio = after / before
    share = 100.0 * (ratio - 1.0)
    percent = "0 %" if abs(share) < 0.005 else f"{share:+.3g} %"  # as many digits as the figures themselves have
    text = percent if 0.5 < ratio < 2.0 else f"× {number(ratio, 3)}"
    if not 1e-3 < abs(ratio) < 1e3:
        text = "< a thousandth" if abs(ratio) < 1.0 else "> a thousand times"
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("-", "−")


def _events(runs: Sequence[RunData], names: Sequence[str]) -> Section:
    """Every event of every run in one table."""
    rows: list[tuple[object, ...]] = []
    sliding = any(unit_words(run, "Nm") != "Nm" for run in runs)  # then each figure has its unit
    for name, run in zip(names, runs, strict=True):
        units = joint_units(run, "Nm")
        for event, entry in run.judged:
            felt, after = (number(entry.get(key), 3) for key in ("torque_nm", "delay_ms"))
            felt += f" {units[event.joint]}" if sliding else ""
            kind = "false alarm" if entry.get("false") else event.kind
            rows.append((name, stamp(event.time_s), str(event.joint), felt, after, kind, link_words(event)))
        if not run.events:
            rows.append((name, "–", "–", "–", "–", "no event" if "events" in run.summary else "not evaluated", "–"))
    header = ("run", "from [s]", "joint", "felt" if sliding else "felt [Nm]", "noticed after [ms]", "kind", "link")
    return Section("events", "Events", table(header, rows, "events"))


def _grid(runs: Sequence[RunData]) -> Array:
    """The time that all curves share [s]: that of the runs where it is the same, else even from first to last."""
    times = [axis(run) for run in runs if len(run.time)]
    if not times:
        return np.zeros(0)
    if all(np.array_equal(times[0], time) for time in times[1:]) and len(times[0]) <= _POINTS:
        return times[0]
    start, end = min(float(time[0]) for time in times), max(float(time[-1]) for time in times)
    period = min(float(np.median(np.diff(time))) if len(time) > 1 else 1.0 for time in times)
    return np.linspace(start, end, min(_POINTS, max(2, round((end - start) / period) + 1)))


def _on(grid: Array, run: RunData, values: Array) -> Array:
    """A column (N,) of a run on the shared time; nan where the run has none."""
    time = axis(run)
    good = np.isfinite(time) & np.isfinite(values)
    if not np.any(good):
        return np.full(len(grid), np.nan)
    if np.array_equal(grid, time):
        return values
    return np.interp(grid, time[good], values[good], left=np.nan, right=np.nan)


def _over(
    runs: Sequence[RunData], names: Sequence[str], columns: Sequence[Array | None], unit: str, at_least: float
) -> tuple[Array, tuple[Panel, ...]]:
    """A panel for each joint with the curve of every run that has the column."""
    grid = _grid(runs)
    rows = zip(names, runs, columns, STYLES, strict=False)
    shown = [(name, run, column, style) for name, run, column, style in rows if column is not None]
    dof = max((column.shape[1] for _, _, column, _ in shown), default=0)
    like = next((run for run in runs if run.dof == dof), None)
    titles = [f"Joint {i + 1}" for i in range(dof)] if like is None else joint_titles(like)
    panels = []
    for i in range(dof):
        series = tuple(
            Series(name, _on(grid, run, column[:, i]), style)
            for name, run, column, style in shown
            if i < column.shape[1]
        )
        own = unit if like is None or unit not in SLIDING else joint_units(like, unit)[i + 1]
        panels.append(Panel(titles[i], own, series, at_least=at_least))
    return grid, tuple(panels)


def _figure(
    identifier: str, title: str, caption: str, runs: Sequence[RunData], names: Sequence[str],
    columns: Sequence[Array | None], unit: str, at_least: float,
) -> Section | None:  # fmt: skip
    if all(column is None or not len(run.time) for column, run in zip(columns, runs, strict=True)):
        return None
    grid, panels = _over(runs, names, columns, unit, at_least)
    return time_section(
        identifier, title, "", TimeFigure(f"{identifier}-curves", caption, grid, panels, own_time=True)
    )  # fmt: skip


def _joints(runs: Sequence[RunData], names: Sequence[str]) -> Section | None:
    return _figure("joints", "In joints", "Joint positions.", runs, names, [run.q for run in runs], "rad", 1e-3)


def _torques(runs: Sequence[RunData], names: Sequence[str]) -> Section | None:
    caption = "Joint torques, gravity included."
    return _figure("torques", "Torques", caption, runs, names, [run.tau for run in runs], "Nm", 1e-2)


def _residuals(runs: Sequence[RunData], names: Sequence[str]) -> Section | None:
    columns = [next(iter(run.residuals.values()), None) for run in runs]
    caption = "External torque as the first observer of each run felt it."
    return _figure("residual", "What was felt", caption, runs, names, columns, "Nm", 1e-2)


def _tool(runs: Sequence[RunData], names: Sequence[str]) -> Section | None:
    """How far the tool is from where it should be."""
    columns: list[Array | None] = []
    for run in runs:
        tcp, wanted = tool_paths(run)
        far = None if tcp is None or wanted is None else 1e3 * np.linalg.norm(tcp - wanted, axis=1)
        columns.append(None if far is None else far[:, None])
    if all(column is None for column in columns):
        return None
    grid, panels = _over(runs, names, columns, "mm", 1e-3)
    one = (Panel("Distance of the tool from its reference", "mm", panels[0].series, at_least=1e-3),)
    caption = "How far the tool was from where it should be."
    figure = TimeFigure("tracking-curves", caption, grid, one, own_time=True, log=True)
    return time_section("tracking", "Tracking error", "", figure)


def _commands(runs: Sequence[RunData], names: Sequence[str]) -> Section:
    parts: list[Raw] = []
    for name, run in zip(names, runs, strict=True):
        line = command_line(run.command) or tag("p", "It is not known how this run was made.")
        parts += [tag("h3", name), line]
    return Section("again", "Reproduce", join(*parts))


def _length(run: RunData) -> str:
    if not len(run.time):
        return "no samples"
    return f"{number(float(run.time[-1] - run.time[0]) + (run.period or 0.0))} s"
