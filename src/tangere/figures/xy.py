"""A still plot of one quantity over another: clouds of points and curves, several panels side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import curve, span, tick_label, ticks
from tangere.figures.markup import Raw, tag
from tangere.figures.plots import BOTTOM, LEFT, RIGHT, TOP

Array = NDArray[np.float64]

WIDTH, HEIGHT = 520, 230  # px
_POINTS = 700  # of a cloud, evenly taken: more only darken it and cost 20 bytes each


@dataclass(frozen=True)
class XY:
    """A panel: points (x, y) as a cloud, curves as (name, style, x ascending, y), units of both axes."""

    title: str
    x_unit: str
    y_unit: str
    cloud: tuple[Array, Array]
    curves: tuple[tuple[str, str, Array, Array], ...]


def xy_figure(identifier: str, caption: str, panels: tuple[XY, ...], again: Raw | None = None) -> Raw:
    """The figure as HTML; it needs no script."""
    names: dict[str, str] = {}
    for panel in panels:
        names |= {name: style for name, style, _, _ in panel.curves if name not in names}
    legend = [
        tag("span", tag("i", class_=f"key {style}"), name, style="margin-right:16px") for name, style in names.items()
    ]
    boxes = [
        tag("div", tag("div", tag("b", panel.title, tag("small", f" [{panel.y_unit}]")), class_="head"),
            tag("div", _still(panel), class_="plot"), class_="panel")
        for panel in panels
    ]  # fmt: skip
    many = "panels many" if len(panels) > 1 else "panels"
    return tag(
        "figure", tag("p", *legend, style="margin:0 0 8px;font-size:13px"), tag("div", *boxes, class_=many),
        tag("figcaption", caption, again), id=identifier,
    )  # fmt: skip


def _still(panel: XY) -> Raw:
    x, y = panel.cloud
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    keep = np.linspace(0, len(x) - 1, min(len(x), _POINTS)).astype(int) if len(x) else np.zeros(0, dtype=int)
    x, y = x[keep], y[keep]
    # a few wild points must not flatten the curve: the cloud counts up to its 1st and 99th percentile
    inner = np.percentile(y, [1.0, 99.0]) if len(y) else np.zeros(0)
    left, right = span([x, *(c[2] for c in panel.curves)])
    low, high = span([inner, *(c[3] for c in panel.curves)])

    def across(values: Array) -> Array:
        return LEFT + (values - left) / (right - left) * (WIDTH - LEFT - RIGHT)

    def up(values: Array) -> Array:
        return HEIGHT - BOTTOM - (values - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts: list[Raw] = []
    for values, horizontal in ((ticks(low, high, 5), True), (ticks(left, right, 6), False)):
        step = values[1] - values[0] if len(values) > 1 else 1.0
        for value in values:
            at = float((up if horizontal else across)(np.array([value]))[0])
            line = f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}" if horizontal else f"M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"
            parts.append(tag("path", class_="grid", d=line))
            if horizontal:
                parts.append(tag("text", tick_label(value, step), x=LEFT - 5, y=f"{at + 3.5:.1f}", class_="y"))
            else:
                name = tick_label(value, step) + (f" {panel.x_unit}" if value == values[-1] else "")
                parts.append(tag("text", name, x=f"{at:.1f}", y=HEIGHT - 6, class_="x"))
    seen = (y >= low) & (y <= high)
    dots = "".join(f"M{a:.1f} {b:.1f}h.01" for a, b in zip(across(x[seen]), up(y[seen]), strict=True))
    parts.append(tag("path", class_="line soft", d=dots, stroke_linecap="round", style="stroke-width:2.6;opacity:.8"))
    parts += [tag("path", class_=f"line {style}", d=curve(across(a), up(b))) for _, style, a, b in panel.curves]
    return tag("svg", tag("title", panel.title), *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img")
