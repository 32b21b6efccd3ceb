"""Still drawings of a study: rates with intervals over linear or logarithmic axes, bars, and a matrix of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tangere.apps.study.statistics import Estimate, share, span
from tangere.figures.axes import Axes, Mark, legend, marks, panel, panels, polyline, ticks
from tangere.figures.markup import Raw, number, tag
from tangere.report.data import loaded
from tangere.types import Array

STYLES = ("a", "b", "c", "d", "e", "f")
NAME_HEIGHT = 16.0  # [px] of a curve's name: as high as letters are on a phone and on paper
DASHES = ("", "6 3", "2 3")  # from the seventh curve on, the same colours again in dashes

TO = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}"  # between the ends of an interval, which stay in one line


@dataclass(frozen=True)
class Curve:
    """A named curve; points with intervals where `bars`, else a line; steps: held until the next x."""

    name: str
    x: Sequence[float]
    y: Sequence[Estimate]
    bars: bool = False
    style: int | str = 0
    mark: int | None = None  # index of a point to be ringed


@dataclass(frozen=True)
class Chart:
    """Axes with curves; y in per cent from 0 to 100."""

    title: str
    x_unit: str
    curves: tuple[Curve, ...]
    low: float
    high: float
    log: bool = False
    diagonal: bool = False  # from the lower left to the upper right corner: y = x where both are in per cent
    notes: tuple[str, ...] = field(default=())

    @property
    def axes(self) -> Axes:
        """What lies beyond the frame is drawn on it."""
        return _axes((self.low, self.high), (0.0, 1.0), log=self.log, inside=True)

    def svg(self) -> Raw:
        """The drawing."""
        axes = self.axes
        parts = axes.rows((percent / 100.0, str(percent)) for percent in (0, 20, 40, 60, 80, 100))
        parts += [*axes.columns(self._marks(), below=15), axes.below(self.x_unit)]
        if self.diagonal:
            parts.append(tag("path", class_="line limit", d=_line(axes, [self.low, self.high], [0.0, 1.0])))
        for curve in self.curves:
            parts += self._drawn(axes, curve)
        return axes.svg(self.title, *parts, *self._named(axes))

    def _marks(self) -> list[Mark]:
        if not self.log:
            return marks(self.low, self.high, 6)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        whole = [10.0**k for k in range(first, last + 1)]
        if len(whole) < 3:
            whole = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        return [(v, number(v, 2)) for v in whole if self.low <= v <= self.high * 1.0001]

    def _drawn(self, axes: Axes, curve: Curve) -> list[Raw]:
        known = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y.known]
        style, dashed = style_of(curve.style)
        if not known:
            return []
        line = _line(axes, [x for x, _ in known], [y.value for _, y in known])
        parts = [tag("path", class_=f"line {style}", d=line, stroke_dasharray=dashed or None)]
        if curve.bars:
            for x, y in known:
                label = f"{curve.name}, {number(x, 3)} {self.x_unit}: {percent(y)}, {y.count} trials"
                low, high = (float(v) for v in axes.up([y.low, y.high]))
                parts.append(tag("path", tag("title", label), class_=f"line {style}", style="stroke-width:1.2",
                                 d=f"M{float(axes.across(x)):.1f} {low:.1f}V{high:.1f}"))  # fmt: skip
                parts.append(_dot(axes, x, y.value, label, style, 6))
        if curve.mark is not None and curve.y[curve.mark].known:
            x, y = curve.x[curve.mark], curve.y[curve.mark]
            label = f"{curve.name}: the thresholds as learned, {percent(y)}"
            parts.append(_dot(axes, x, y.value, label, style, 9))
        return parts

    def _named(self, axes: Axes) -> list[Raw]:
        """Names of curves that are ordered, where they are; one below the other where they would meet."""
        ordered = [curve for curve in self.curves if isinstance(curve.style, str)]
        marked = [(c.name, c.x[c.mark], c.y[c.mark]) for c in ordered if c.mark is not None and c.y[c.mark].known]
        places = sorted((float(axes.up(y.value)) + 13.0, float(axes.across(x)) + 9.0, name) for name, x, y in marked)
        parts, last = [], -math.inf
        for up, across, name in places:
            last = max(up, last + NAME_HEIGHT)
            parts.append(tag("text", name, class_="direct", x=f"{across:.1f}", y=f"{last:.1f}"))
        return parts


def _axes(x: tuple[float, float], y: tuple[float, float], **more: bool) -> Axes:
    return Axes(520, 260, x, y, left=46, right=14, top=10, bottom=38, **more)  # px: room for two lines below


def _line(axes: Axes, x: Sequence[float], y: Sequence[float]) -> str:
    return polyline(np.stack([axes.across(x), axes.up(y)], axis=1)).removesuffix("h0.01")


def _dot(axes: Axes, x: float, y: float, label: str, style: str, width: int) -> Raw:
    at = f"M{float(axes.across(x)):.1f} {float(axes.up(y)):.1f}h.01"
    return tag("path", tag("title", label), class_=f"line {style}", stroke_linecap="round",
               style=f"stroke-width:{width}", d=at)  # fmt: skip


def style_of(number: int | str) -> tuple[str, str]:
    """Class and dashes of the curve of that number, counted from 0; a word is a class itself."""
    if isinstance(number, str):
        return number, ""
    return STYLES[number % len(STYLES)], DASHES[(number // len(STYLES)) % len(DASHES)]


def charts(identifier: str, caption: str, plots: Sequence[Chart], again: Raw | None = None) -> Raw:
    """Charts side by side with one legend."""
    names = {curve.name: style_of(curve.style) for plot in plots for curve in plot.curves}
    keys = legend((name, style, bool(dashes)) for name, (style, dashes) in names.items()) if len(names) > 1 else None
    boxes = [panel(plot.title, "%", plot.svg(), *(tag("figcaption", note) for note in plot.notes)) for plot in plots]
    return tag("figure", keys, panels(boxes), tag("figcaption", caption, again), id=identifier)


def bars(title: str, unit: str, values: Array, edges: Array, never: int = 0) -> Raw:
    """Counts of values between edges; what is beyond the last edge, and what never came, have bars of their own."""
    counts, _ = np.histogram(values, bins=edges)
    beyond = int(np.sum(values > edges[-1]))
    every = [*counts.tolist(), beyond, never]
    top = max(1, *every)
    axes = _axes((0.0, float(len(every) + 1)), (0.0, float(top)))
    parts = axes.rows((value, str(int(value)) if value == int(value) else "") for value in ticks(0.0, float(top), 5))
    width = axes.inner[0] / (len(every) + 1)
    last = number(float(edges[-1]), 3)
    names = [f"{number(a, 3)} to {number(b, 3)} {unit}" for a, b in pairwise(edges.tolist())]
    names += [f"later than {last} {unit}", "not found"]
    for k, count in enumerate(every):
        late = k >= len(counts)
        if count:
            x = axes.left + (k + 0.5 * late) * width
            parts.append(axes.bar(x, width, count / top * axes.inner[1], f"{names[k]}: {count}",
                                  "column late" if late else "column"))  # fmt: skip
    under = [(k, number(float(edges[k]), 3)) for k in range(0, len(counts) + 1, max(1, len(counts) // 6))]
    parts += axes.columns(under, below=15, lines=False)
    parts.append(axes.below(f"delay [{unit}]; on the right: later, not found"))
    return panel(title, "contacts", axes.svg(title, *parts))


def matrix(title: str, counts: Array) -> Raw:
    """Counts (n, n + 1) of touched against answered links, shaded by the share of their row."""
    n = len(counts)
    head = tag("tr", tag("th", "touched"), *(tag("th", f"said {j + 1}") for j in range(n)), tag("th", "cannot tell"))
    rows = []
    for i, row in enumerate(counts):
        total = max(1.0, float(row.sum()))
        cells = []
        for j, count in enumerate(row.tolist()):
            colour = "var(--c)" if j == i else "var(--soft)" if j == n else "var(--b)"
            shade = f"background:color-mix(in srgb,{colour} {55 * count / total:.0f}%,transparent);padding-right:8px"
            cells.append(tag("td", f"{count:.0f}" if count else "·", style=shade))
        rows.append(tag("tr", tag("th", f"link {i + 1}", scope="row"), *cells))
    body = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", tag("h3", title), tag("div", body, class_="scroll"))


def percent(value: Estimate) -> str:
    """A rate with its interval, in per cent."""
    return share(value, TO, "–")


def arm_title(name: str) -> str:
    """The arm's full name where it is known; else as it was asked for."""
    robot, _ = loaded(name)
    return name if robot is None else robot.model.title


def interval(value: Estimate, factor: float = 1.0) -> str:
    """A value with its interval; open ends are said in words."""
    return span(value, factor, TO, "–", lambda x: number(x, 3))
