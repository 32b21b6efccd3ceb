"""Still drawings of a study: rates with intervals over linear or logarithmic axes, bars, and a matrix of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tangere.figures.axes import tick_label, ticks
from tangere.figures.markup import Raw, number, tag
from tangere.observe.statistics import Estimate
from tangere.types import Array

WIDTH, HEIGHT = 520, 260  # px
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 10, 38
STYLES = ("a", "b", "c", "d")
DASHES = ("", "6 3", "2 3")  # from the fifth curve on, the same colours again in dashes


@dataclass(frozen=True)
class Curve:
    """A named curve; points with intervals where `bars`, else a line; steps: held until the next x."""

    name: str
    x: Sequence[float]
    y: Sequence[Estimate]
    bars: bool = False
    style: int = 0
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

    def across(self, x: float) -> float:
        """px of a value, kept inside the frame."""
        if self.log:
            share = math.log(max(x, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            share = (x - self.low) / (self.high - self.low)
        return LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT)

    def svg(self) -> Raw:
        """The drawing."""
        parts: list[Raw] = []
        for percent in (0, 20, 40, 60, 80, 100):
            at = up(percent / 100.0)
            parts.append(tag("path", class_="grid", d=f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}"))
            parts.append(tag("text", str(percent), x=LEFT - 5, y=f"{at + 3.5:.1f}", class_="y"))
        for value, label in self._marks():
            at = self.across(value)
            parts.append(tag("path", class_="grid", d=f"M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"))
            parts.append(tag("text", label, x=f"{at:.1f}", y=HEIGHT - BOTTOM + 15, class_="x"))
        parts.append(tag("text", self.x_unit, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 5, class_="x"))
        if self.diagonal:
            a, b = self.across(self.low), self.across(self.high)
            parts.append(tag("path", class_="line limit", d=f"M{a:.1f} {up(0.0):.1f}L{b:.1f} {up(1.0):.1f}"))
        for curve in self.curves:
            parts += self._drawn(curve)
        return tag("svg", tag("title", self.title), *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img")

    def _marks(self) -> list[tuple[float, str]]:
        if not self.log:
            values = ticks(self.low, self.high, 6)
            step = values[1] - values[0] if len(values) > 1 else 1.0
            return [(v, tick_label(v, step)) for v in values]
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        whole = [10.0**k for k in range(first, last + 1)]
        if len(whole) < 3:
            whole = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        return [(v, number(v, 2)) for v in whole if self.low <= v <= self.high * 1.0001]

    def _drawn(self, curve: Curve) -> list[Raw]:
        known = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y.known]
        style = STYLES[curve.style % len(STYLES)]
        dash = DASHES[(curve.style // len(STYLES)) % len(DASHES)] or None
        parts: list[Raw] = []
        if not known:
            return parts
        line = "".join(f"{'L' if k else 'M'}{self.across(x):.1f} {up(y.value):.1f}" for k, (x, y) in enumerate(known))
        parts.append(tag("path", class_=f"line {style}", d=line, stroke_dasharray=dash))
        if curve.bars:
            for x, y in known:
                at = self.across(x)
                label = f"{curve.name}, {number(x, 3)} {self.x_unit}: {percent(y)}, {y.count} trials"
                parts.append(tag("path", tag("title", label), class_=f"line {style}", style="stroke-width:1.2",
                                 d=f"M{at:.1f} {up(y.low):.1f}V{up(y.high):.1f}"))  # fmt: skip
                parts.append(tag("path", tag("title", label), class_=f"line {style}", stroke_linecap="round",
                                 style="stroke-width:6", d=f"M{at:.1f} {up(y.value):.1f}h.01"))  # fmt: skip
        if curve.mark is not None and curve.y[curve.mark].known:
            x, y = curve.x[curve.mark], curve.y[curve.mark]
            label = f"{curve.name}: the thresholds as learned, {percent(y)}"
            parts.append(tag("path", tag("title", label), class_=f"line {style}", stroke_linecap="round",
                             style="stroke-width:9", d=f"M{self.across(x):.1f} {up(y.value):.1f}h.01"))  # fmt: skip
        return parts


def charts(identifier: str, caption: str, panels: Sequence[Chart], again: Raw | None = None) -> Raw:
    """Charts side by side with one legend."""
    names = {curve.name: curve.style for panel in panels for curve in panel.curves}
    legend = []
    if len(names) > 1:
        legend = [
            tag("span", tag("i", class_=f"key {STYLES[style % len(STYLES)]}",
                            style=None if style < len(STYLES) else "border-top-style:dashed"), " ", name,
                style="margin-right:16px")
            for name, style in names.items()
        ]  # fmt: skip
    boxes = [
        tag("div", tag("div", tag("b", panel.title, tag("small", " [%]")), class_="head"),
            tag("div", panel.svg(), class_="plot"), *(tag("figcaption", note) for note in panel.notes), class_="panel")
        for panel in panels
    ]  # fmt: skip
    return tag(
        "figure", tag("p", *legend, style="margin:0 0 8px;font-size:13px") if legend else None,
        tag("div", *boxes, class_="panels many" if len(boxes) > 1 else "panels"), tag("figcaption", caption, again),
        id=identifier,
    )  # fmt: skip


def bars(title: str, unit: str, values: Array, edges: Array, never: int = 0) -> Raw:
    """Counts of values between edges; what is beyond the last edge, and what never came, have bars of their own."""
    counts, _ = np.histogram(values, bins=edges)
    beyond = int(np.sum(values > edges[-1]))
    every = [*counts.tolist(), beyond, never]
    top = max(1, *every)
    inner = WIDTH - LEFT - RIGHT
    width = inner / (len(every) + 1)
    parts: list[Raw] = []
    for value in ticks(0.0, float(top), 5):
        at = HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)
        parts.append(tag("path", class_="grid", d=f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}"))
        if value == int(value):
            parts.append(tag("text", str(int(value)), x=LEFT - 5, y=f"{at + 3.5:.1f}", class_="y"))
    last = number(float(edges[-1]), 3)
    names = [f"{number(a, 3)} to {number(b, 3)} {unit}" for a, b in pairwise(edges.tolist())]
    names += [f"later than {last} {unit}", "not found"]
    for k, count in enumerate(every):
        x = LEFT + (k + (1 if k >= len(counts) else 0) * 0.5) * width
        high = count / top * (HEIGHT - TOP - BOTTOM)
        if count:
            parts.append(
                tag("rect", tag("title", f"{names[k]}: {count}"),
                    class_="column late" if k >= len(counts) else "column",
                    x=f"{x + 0.5:.1f}", y=f"{HEIGHT - BOTTOM - high:.1f}", width=f"{max(width - 1.0, 0.5):.1f}",
                    height=f"{high:.1f}")
            )  # fmt: skip
    for k in range(0, len(counts) + 1, max(1, len(counts) // 6)):
        x = LEFT + k * width
        parts.append(tag("text", number(float(edges[k]), 3), x=f"{x:.1f}", y=HEIGHT - BOTTOM + 15, class_="x"))
    parts.append(tag("text", f"delay [{unit}]; on the right: later, not found", x=(LEFT + WIDTH - RIGHT) / 2,
                     y=HEIGHT - 5, class_="x"))  # fmt: skip
    drawing = tag("svg", tag("title", title), *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img")
    return tag("div", tag("div", tag("b", title, tag("small", " [contacts]")), class_="head"),
               tag("div", drawing, class_="plot"), class_="panel")  # fmt: skip


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
    if not value.known:
        return "–"
    return f"{100 * value.value:.1f} ({100 * value.low:.1f} to {100 * value.high:.1f})"


def interval(value: Estimate, factor: float = 1.0) -> str:
    """A value with its interval; open ends are said in words."""
    if math.isnan(value.value):
        return "–"
    low = number(factor * value.low, 3) if math.isfinite(value.low) else "less"
    high = number(factor * value.high, 3) if math.isfinite(value.high) else "more"
    middle = number(factor * value.value, 3) if math.isfinite(value.value) else "never"
    return f"{middle} ({low} to {high})"


def up(share: float) -> float:
    """px of a share from 0 to 1."""
    return HEIGHT - BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - TOP - BOTTOM)
