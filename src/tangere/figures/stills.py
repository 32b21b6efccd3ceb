"""Figures that need no script: one quantity over another, and how often values occur."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import Axes, curve, legend, marks, panel, panels, span
from tangere.figures.markup import Raw, number, tag

Array = NDArray[np.float64]

WIDTH, HEIGHT = 520, 230  # [px] of a plot of one quantity over another
LOW = 220  # [px] height of a histogram
_POINTS = 700  # of a cloud, evenly taken: more only darken it and cost 20 bytes each


@dataclass(frozen=True)
class XY:
    """A panel: points (x, y) as a cloud, curves as (name, style, x ascending, y), units of both axes."""

    title: str
    x_unit: str
    y_unit: str
    cloud: tuple[Array, Array]
    curves: tuple[tuple[str, str, Array, Array], ...]


def xy_figure(identifier: str, caption: str, plots: tuple[XY, ...], again: Raw | None = None) -> Raw:
    """The figure as HTML."""
    names: dict[str, str] = {}
    for plot in plots:
        names |= {name: style for name, style, _, _ in plot.curves if name not in names}
    boxes = [panel(plot.title, plot.y_unit, _still(plot)) for plot in plots]
    keys = legend((name, style, False) for name, style in names.items())
    return tag("figure", keys, panels(boxes), tag("figcaption", caption, again), id=identifier)


def _still(plot: XY) -> Raw:
    x, y = plot.cloud
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    keep = np.linspace(0, len(x) - 1, min(len(x), _POINTS)).astype(int) if len(x) else np.zeros(0, dtype=int)
    x, y = x[keep], y[keep]
    # a few wild points must not flatten the curve: the cloud counts up to its 1st and 99th percentile
    inner = np.percentile(y, [1.0, 99.0]) if len(y) else np.zeros(0)
    wide, high = span([x, *(c[2] for c in plot.curves)]), span([inner, *(c[3] for c in plot.curves)])
    axes = Axes(WIDTH, HEIGHT, wide, high)
    parts = axes.rows(marks(*high, 5)) + axes.columns(marks(*wide, 6, plot.x_unit))
    seen = (y >= high[0]) & (y <= high[1])
    dots = "".join(f"M{a:.1f} {b:.1f}h.01" for a, b in zip(axes.across(x[seen]), axes.up(y[seen]), strict=True))
    parts.append(tag("path", class_="line soft", d=dots, stroke_linecap="round", style="stroke-width:2.6;opacity:.8"))
    for _, style, a, b in plot.curves:
        parts.append(tag("path", class_=f"line {style}", d=curve(axes.across(a), axes.up(b))))
    return axes.svg(plot.title, *parts)


def histogram(values: Array, bins: int = 48) -> Raw:
    """Counts of finite `values` (microseconds) between their smallest and their 99.5th percentile.

    What is longer is gathered in a last bar of another colour, so that one slow period does not flatten the rest. The
    height is the square root of the count: a single late period is still seen beside ten thousand good ones.
    """
    values = np.clip(values, 0.0, 1e12)  # nothing measured takes longer than a week
    low, high = float(values.min()), float(np.percentile(values, 99.5))
    if not high > low:
        high = low + max(1.0, 1e-3 * low)
    counts, edges = np.histogram(values[values <= high], bins=bins, range=(low, high))
    longer = int(np.sum(values > high))
    top = max(int(counts.max()), longer, 1)
    axes = Axes(WIDTH, LOW, (low, high), (0.0, top**0.5), left=50, right=36 if longer else 10, bottom=36)
    inner, scale = axes.inner[0], axes.inner[1] / top**0.5
    # lines at 1, 10, 100, ...: the three largest; they go on behind the last bar
    steps = [(count**0.5, str(count)) for count in (10**k for k in range(7)) if count <= top][-3:]
    parts = Axes(WIDTH, LOW, axes.x, axes.y, left=50, right=10, bottom=36).rows(steps)
    width = inner / bins
    for k, count in enumerate(counts.tolist()):
        if count:
            label = f"{number(edges[k].item(), 3)} to {number(edges[k + 1].item(), 3)} µs: {count} periods"
            parts.append(axes.bar(axes.left + k * width, width, max(scale * count**0.5, 1.0), label))
    if longer:
        label = f"longer than {number(high, 3)} µs: {longer} periods, the longest {number(float(values.max()), 4)} µs"
        parts.append(axes.bar(WIDTH - 30, 20, max(scale * longer**0.5, 1.0), label, "column late"))
    parts += axes.columns(marks(low, high, 6), below=15, lines=False)
    parts += [axes.below("µs"), tag("text", "periods", class_="unit", x=4, y=axes.top + 6)]
    return axes.svg("Histogram of times", *parts)
