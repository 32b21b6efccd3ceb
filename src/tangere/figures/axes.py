"""Axes and curves of every still drawing: round ticks, ranges that survive NaN and huge values, short paths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.figures.markup import Raw, extremes, tag
from tangere.types import Array

Mark = tuple[float, str]  # a value on an axis and what is written there

# Values are drawn as if they ended here: beyond it the difference of two of them is no longer a number.
_END = 1e150


def span(columns: list[Array], at_least: float = 0.0) -> tuple[float, float]:
    """Smallest and largest finite value, widened to `at_least` and by 6 % of air; (-1, 1) where there is none."""
    finite = [column[np.isfinite(column)] for column in columns]
    finite = [np.clip(column, -_END, _END) for column in finite if column.size]
    if not finite:
        return -1.0, 1.0
    low, high = min(float(c.min()) for c in finite), max(float(c.max()) for c in finite)
    missing = max(at_least, 1e-9 * max(abs(low), abs(high)), 1e-12) - (high - low)
    if missing > 0.0:
        low, high = low - missing / 2.0, high + missing / 2.0
    air = 0.06 * (high - low)
    return low - air, high + air


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) inside [low, high], about `count` of them."""
    width = high - low
    if not (math.isfinite(width) and width > 0.0):
        return []
    power = 10.0 ** math.floor(math.log10(width / count))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if width / (power * factor) <= count)
    first = math.ceil(low / step - 1e-9)
    return [k * step + 0.0 for k in range(first, first + 2 * count) if k * step <= high + 1e-9 * width]


def marks(low: float, high: float, count: int = 5, unit: str = "") -> list[Mark]:
    """Ticks with their labels; the last one says the unit, where one is given."""
    values = ticks(low, high, count)
    step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0 if values else 1.0
    names = [tick_label(value, step) for value in values]
    digits = 4
    while len(set(names)) < len(names) and digits < 15:  # a short way on an axis that begins far from 0
        names, digits = [f"{value:.{digits}g}".replace("-", "−") for value in values], digits + 1
    if unit and names:
        names[-1] += f" {unit}"
    return list(zip(values, names, strict=True))


def tick_label(value: float, step: float) -> str:
    """A tick with as many decimals as its step needs; powers of ten for what would be too long.

    Not where three digits would not tell neighbours apart: stamps of a clock that began long ago.
    """
    if value == 0.0:
        return "0"
    if (abs(value) >= 1e5 and step > 1e-3 * abs(value)) or step < 1e-4:
        return f"{value:.3g}".replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{decimals}f}".replace("-", "−")


@dataclass(frozen=True)
class Axes:
    """A rectangle of pixels that shows ranges of two quantities, with room for their labels around it.

    across and up turn values into pixels; grids and the finished drawing are made here, so that all look alike.
    """

    width: float  # [px] of the whole drawing
    height: float
    x: tuple[float, float]  # values at the left and the right edge
    y: tuple[float, float]  # at the lower and the upper one
    left: float = 46  # [px] margins
    right: float = 8
    top: float = 8
    bottom: float = 22
    log: bool = False  # x is logarithmic
    inside: bool = False  # what lies beyond an edge is drawn on it

    @property
    def inner(self) -> tuple[float, float]:
        """[px] width and height between the margins."""
        return self.width - self.left - self.right, self.height - self.top - self.bottom

    def across(self, values: ArrayLike) -> Array:
        """[px] from the left."""
        x, (low, high) = np.asarray(values, dtype=np.float64), self.x
        if self.log:
            x, low, high = np.log(np.maximum(x, 1e-300) / low), 0.0, math.log(high / low)
        return self.left + self._share(x, low, high) * self.inner[0]

    def up(self, values: ArrayLike) -> Array:
        """[px] from the top."""
        y = np.clip(np.asarray(values, dtype=np.float64), -_END, _END)
        return self.height - self.bottom - self._share(y, *self.y) * self.inner[1]

    def _share(self, values: Array, low: float, high: float) -> Array:
        share = (values - low) / (high - low)
        return np.clip(share, 0.0, 1.0) if self.inside else share

    def rows(self, marked: Iterable[Mark], gap: float = 5.0, drop: float = 3.5) -> list[Raw]:
        """Horizontal grid lines with their labels `gap` px to the left; no label where it is ""."""
        parts = []
        for value, name in marked:
            at = float(self.up(value))
            parts.append(tag("path", class_="grid", d=f"M{self.left:g} {at:.1f}H{self.width - self.right:g}"))
            if name:
                parts.append(tag("text", name, x=f"{self.left - gap:g}", y=f"{at + drop:.1f}", class_="y"))
        return parts

    def columns(self, marked: Iterable[Mark], below: float = 16.0, lines: bool = True) -> list[Raw]:
        """Vertical grid lines, if wanted, with their labels `below` px under the frame."""
        parts = []
        under = self.height - self.bottom
        for value, name in marked:
            at = float(self.across(value))
            if lines:
                parts.append(tag("path", class_="grid", d=f"M{at:.1f} {self.top:g}V{under:g}"))
            parts.append(tag("text", name, x=f"{at:.1f}", y=f"{under + below:g}", class_="x"))
        return parts

    def below(self, words: str) -> Raw:
        """What the horizontal axis shows, under its middle."""
        return tag("text", words, x=f"{self.left + self.inner[0] / 2:g}", y=f"{self.height - 5:g}", class_="x")

    def bar(self, x: float, width: float, height: float, label: str, class_: str = "column") -> Raw:
        """A bar on the lower edge: x [px] of its left side, a pixel of air beside the next; it says `label` itself."""
        return tag("rect", tag("title", label), class_=class_, x=f"{x + 0.5:.1f}",
                   y=f"{self.height - self.bottom - height:.1f}", width=f"{max(width - 1.0, 0.5):.1f}",
                   height=f"{height:.1f}")  # fmt: skip

    def svg(self, title: str, *parts: object) -> Raw:
        """The finished drawing."""
        return drawing(title, self.width, self.height, *parts)


def drawing(title: str, width: float, height: float, *parts: object, **attributes: object) -> Raw:
    """An SVG of that many px with a title that a reader's voice or a pointer at rest tells."""
    box = f"0 0 {width:g} {height:g}"
    return tag("svg", tag("title", title), *parts, viewBox=box, role="img", **attributes)


def panel(
    title: str, unit: str, drawn: Raw, *below: object, output: Raw | None = None, **attributes: object
) -> Raw:
    """A drawing with its heading, as figures of several stand side by side; output: what the script writes into."""
    head = tag("div", tag("b", title, tag("small", f" [{unit}]")), output, class_="head")
    return tag("div", head, tag("div", drawn, class_="plot"), *below, class_="panel", **attributes)


def panels(boxes: list[Raw], many: bool | None = None) -> Raw:
    """Panels side by side; many: whether they are of one size with others, which stand elsewhere."""
    return tag("div", *boxes, class_="panels many" if (len(boxes) > 1 if many is None else many) else "panels")


def legend(names: Iterable[tuple[str, str, bool]]) -> Raw:
    """A line of (name, style, dashed): what the curves of a still figure are."""
    keys = [
        tag("span", tag("i", class_=f"key {style}", style="border-top-style:dashed" if dashed else None), name)
        for name, style, dashed in names
    ]  # fmt: skip
    return tag("div", *keys, class_="legend")


def curve(x: Array, y: Array, columns: int = 300) -> str:
    """An SVG path through pixel coordinates, gaps where y is not finite, at most two points per pixel column.

    x ascending. With more samples than columns each column keeps its first, smallest, largest and last sample.
    """
    if len(x) > 4 * columns:
        edges = np.linspace(0, len(x), columns + 1).astype(int)
        low, high = extremes(y, edges)
        with np.errstate(invalid="ignore"):  # of places where nothing is finite
            rises = y[high] - y[low] >= 0.3  # a straight stretch needs no more than its ends
        kept = np.unique(np.concatenate((edges[:-1], low[rises], high[rises], [len(x) - 1])))
        x, y = x[kept], y[kept]
    out: list[str] = []
    pen_down = False
    last = ""
    for px, py in zip(np.clip(x, -1e5, 1e5).tolist(), np.clip(y, -1e5, 1e5).tolist(), strict=True):
        if not (math.isfinite(px) and math.isfinite(py)):
            pen_down = False
            continue
        point = f"{px:.1f} {py:.1f}".replace(".0", "")
        if point != last or not pen_down:
            out.append(("L" if pen_down else "M") + point)
        pen_down, last = True, point
    if len(out) == 1:  # one sample: a dot, which a stroke with round ends shows
        out.append("h0.01")
    return "".join(out)


def polyline(points: Array) -> str:
    """An SVG path through points (N, 2) [px], gaps where one is not finite; a point alone is a dot."""
    out: list[str] = []
    down = False
    for x, y in np.clip(points, -1e5, 1e5).tolist():
        if math.isfinite(x) and math.isfinite(y):
            out.append(("L" if down else "M") + f"{x:.1f} {y:.1f}")
            down = True
        else:
            down = False
    return "".join(out) + ("h0.01" if len(out) == 1 else "")
