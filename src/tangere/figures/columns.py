"""Columns over time as a figure that stands alone, and as a table of their ranges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import Axes, curve, marks, span
from tangere.figures.figure import Figure, number_row, small_table
from tangere.figures.markup import Raw, join, tag

Array = NDArray[np.float64]
PANEL_WIDTH, PANEL_HEIGHT = 720, 170  # [px] of one panel: six joints stay apart, four panels fit a screen
CURVES = "abcdef"  # of the first six curves; then again


def columns_figure(title: str, time: Array, columns: Mapping[str, tuple[Array, str]]) -> Figure:
    """A panel per column, one above the other: name -> values (N,) or (N, k) and their unit, over time (N,) [s]."""
    panels = []
    for k, (name, (values, unit)) in enumerate(columns.items()):
        drawn = _panel(name, unit, time, values if values.ndim == 2 else values[:, None])
        panels.append(tag("g", drawn, transform=f"translate(0 {k * PANEL_HEIGHT})"))
    return Figure(title, join(*panels), PANEL_WIDTH, PANEL_HEIGHT * max(1, len(panels)))


def _panel(name: str, unit: str, time: Array, values: Array) -> Raw:
    finite = time[np.isfinite(time)]
    start, stop = (float(finite[0]), float(finite[-1])) if finite.size else (0.0, 1.0)
    stop = stop if stop > start else start + 1.0
    axes = Axes(PANEL_WIDTH, PANEL_HEIGHT, (start, stop), span([values]), right=18, top=22)
    parts = [tag("text", f"{name} [{unit}]" if unit else name, class_="title", x=axes.left, y=14)]
    parts += axes.rows(marks(*axes.y, 5)) + axes.columns(marks(*axes.x, 6, "s"))
    across = axes.across(time)
    for k, column in enumerate(values.T):
        style = CURVES[k % len(CURVES)]
        parts.append(tag("path", class_=f"line {style}", d=curve(across, axes.up(column))))
        if values.shape[1] > 1:  # which joint has which colour
            at = PANEL_WIDTH - axes.right - 14 * (values.shape[1] - 1 - k)
            parts.append(tag("text", str(k + 1), class_=f"y key {style}", x=at, y=14))
    return join(*parts)


def columns_table(columns: Mapping[str, tuple[Array, str]]) -> Raw:
    """Name, unit, width, smallest and largest finite value of each column."""
    rows = []
    for name, (values, unit) in columns.items():
        finite = values[np.isfinite(values)]
        ends = number_row([finite.min(), finite.max()]) if finite.size else ["–", "–"]
        rows.append((name, unit, str(1 if values.ndim == 1 else values.shape[1]), *ends))
    return small_table(("column", "unit", "width", "smallest", "largest"), rows)
