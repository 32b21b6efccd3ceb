"""Figures over time: panels of curves, as a still drawing for everyone and as data for the page's own script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import Axes, curve, marks, panel, panels, span
from tangere.figures.markup import Raw, finite, floats, series, strided, tag

Array = NDArray[np.float64]

# Size [px] of a still panel; the script draws the same layout at the width it finds.
WIDTH, HEIGHT = 520, 172
WIDE, HIGH = 1080, 280  # of a panel that stands alone
# Line styles of style.css: a wide soft line lies behind a thin one, so that both are seen where they agree.
STYLES = ("soft", "a", "b", "c", "d", "limit")


@dataclass(frozen=True)
class Series:
    """A named curve; `style` is one of STYLES. The same name in several panels is one entry of the legend."""

    name: str
    values: Array  # (N,)
    style: str = "a"


@dataclass(frozen=True)
class Level:
    """A named horizontal line: a limit or a threshold."""

    name: str
    value: float


@dataclass(frozen=True)
class Panel:
    """One set of axes: curves of one unit."""

    title: str
    unit: str
    series: tuple[Series, ...]
    levels: tuple[Level, ...] = ()
    at_least: float = 0.0  # smallest height of the vertical axis, so that rounding noise is not blown up to a signal


@dataclass(frozen=True)
class Band:
    """A stretch of time that is shaded: a push, an event."""

    start: float
    end: float
    label: str


@dataclass(frozen=True)
class TimeFigure:
    """Panels over the same time. `smooth` curves are sampled evenly instead of being kept whole."""

    identifier: str  # letters and dashes: the anchor in the page
    caption: str
    time: Array  # (N,) s
    panels: tuple[Panel, ...]
    bands: tuple[Band, ...] = ()
    hidden: tuple[str, ...] = field(default=())  # names that are off at first
    smooth: bool = False

    def data(self) -> dict[str, Any]:
        """What the script needs, ready for JSON."""
        # 2500 samples of a smooth curve are two per pixel of the widest plot; everything else is kept whole
        rows = strided(len(self.time), 2500) if self.smooth else np.arange(len(self.time))
        time = self.time[rows]
        out: dict[str, Any] = {"id": self.identifier, "hidden": list(self.hidden)}
        if self.smooth:
            out["t"] = floats(time)  # the others share the page's own "t", which page.py writes
        out["bands"] = [[finite(b.start), finite(b.end), b.label] for b in self.bands]
        out["panels"] = [
            {
                "unit": each.unit,
                "min": each.at_least,
                "levels": [[level.name, finite(level.value)] for level in each.levels],
                "series": [
                    {"name": s.name, "style": STYLES.index(s.style), **series(time, s.values[rows])}
                    for s in each.series
                ],
            }
            for each in self.panels
        ]
        return out

    def html(self, again: Raw | None = None) -> Raw:
        """The figure with still drawings; the script makes them live."""
        boxes = [panel(p.title, p.unit, self._still(p), output=tag("output")) for p in self.panels]
        return tag(
            "figure",
            tag("div", *self._legend(), class_="legend"),
            panels(boxes),
            tag("figcaption", self.caption, again),
            id=self.identifier,
            class_="time",
        )

    def _legend(self) -> list[Raw]:
        seen: dict[str, str] = {}
        for each in self.panels:
            seen |= {s.name: s.style for s in each.series if s.name not in seen}
            seen |= {level.name: "limit" for level in each.levels if level.name not in seen}
        return [
            tag("button", tag("i", class_=f"key {style}"), name, type="button", data_series=name,
                aria_pressed="false" if name in self.hidden else "true")
            for name, style in seen.items()
        ]  # fmt: skip

    def _still(self, plot: Panel) -> Raw:
        shown = [s for s in plot.series if s.name not in self.hidden]
        levels = [level for level in plot.levels if level.name not in self.hidden]
        width, height = (WIDTH, HEIGHT) if len(self.panels) > 1 else (WIDE, HIGH)
        known = self.time[np.isfinite(self.time)]
        start, stop = (float(known[0]), float(known[-1])) if known.size else (0.0, 1.0)
        stop = stop if stop > start else start + 1.0
        low, high = span([s.values for s in shown] + [np.array([v.value for v in levels])], plot.at_least)
        axes = Axes(width, height, (start, stop), (low, high))
        right = width - axes.right
        parts: list[Raw] = []
        for band in self.bands:
            a, b = (float(v) for v in np.clip(axes.across([band.start, band.end]), axes.left, right))
            parts.append(tag("rect", tag("title", band.label), class_="band", x=f"{a:.1f}", y=axes.top,
                             width=f"{max(b - a, 1.0):.1f}", height=axes.inner[1]))  # fmt: skip
        parts += axes.rows(marks(low, high, 5)) + axes.columns(marks(start, stop, 6, "s"))
        for level in levels:
            at = float(axes.up(level.value))
            parts.append(tag("path", class_="line limit", d=f"M{axes.left} {at:.1f}H{right}"))
        x = axes.across(self.time)
        parts += [tag("path", class_=f"line {s.style}", d=curve(x, axes.up(s.values))) for s in shown]
        return axes.svg(f"{plot.title}: {', '.join(s.name for s in shown)} over time", *parts)
