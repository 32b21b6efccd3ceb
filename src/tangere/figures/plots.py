"""Figures over time: panels of curves, as a still drawing for everyone and as data for the page's own script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import curve, span, tick_label, ticks
from tangere.figures.encode import floats, series, strided
from tangere.figures.markup import Raw, join, tag

Array = NDArray[np.float64]

# Size and margins [px] of a still panel; the script draws the same layout at the width it finds.
WIDTH, HEIGHT = 520, 172
WIDE, HIGH = 1080, 280  # of a panel that stands alone
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 22
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
        out["bands"] = [[_plain(b.start), _plain(b.end), b.label] for b in self.bands]
        out["panels"] = [
            {
                "unit": panel.unit,
                "min": panel.at_least,
                "levels": [[level.name, _plain(level.value)] for level in panel.levels],
                "series": [
                    {"name": s.name, "style": STYLES.index(s.style), **series(time, s.values[rows])}
                    for s in panel.series
                ],
            }
            for panel in self.panels
        ]
        return out

    def html(self, again: Raw | None = None) -> Raw:
        """The figure with still drawings; the script makes them live."""
        panels = [
            tag(
                "div",
                tag("div", tag("b", panel.title, tag("small", f" [{panel.unit}]")), tag("output"), class_="head"),
                tag("div", self._still(panel), class_="plot"),
                class_="panel",
            )
            for panel in self.panels
        ]
        many = "panels many" if len(panels) > 1 else "panels"
        return tag(
            "figure",
            tag("div", *self._legend(), class_="legend"),
            tag("div", *panels, class_=many),
            tag("figcaption", self.caption, again),
            id=self.identifier,
            class_="time",
        )

    def _legend(self) -> list[Raw]:
        seen: dict[str, str] = {}
        for panel in self.panels:
            seen |= {s.name: s.style for s in panel.series if s.name not in seen}
            seen |= {level.name: "limit" for level in panel.levels if level.name not in seen}
        return [
            tag("button", tag("i", class_=f"key {style}"), name, type="button", data_series=name,
                aria_pressed="false" if name in self.hidden else "true")
            for name, style in seen.items()
        ]  # fmt: skip

    def _still(self, panel: Panel) -> Raw:
        shown = [s for s in panel.series if s.name not in self.hidden]
        levels = [level for level in panel.levels if level.name not in self.hidden]
        width, height = (WIDTH, HEIGHT) if len(self.panels) > 1 else (WIDE, HIGH)
        finite = self.time[np.isfinite(self.time)]
        start, stop = (float(finite[0]), float(finite[-1])) if finite.size else (0.0, 1.0)
        stop = stop if stop > start else start + 1.0
        low, high = span([s.values for s in shown] + [np.array([v.value for v in levels])], panel.at_least)

        def x(values: Array) -> Array:
            return LEFT + (values - start) / (stop - start) * (width - LEFT - RIGHT)

        def y(values: Array) -> Array:
            scale = (height - TOP - BOTTOM) / (high - low)
            return height - BOTTOM - (np.clip(values, -1e150, 1e150) - low) * scale

        parts: list[Raw] = []
        for band in self.bands:
            a, b = (float(v) for v in np.clip(x(np.array([band.start, band.end])), LEFT, width - RIGHT))
            parts.append(tag("rect", tag("title", band.label), class_="band", x=f"{a:.1f}", y=TOP,
                             width=f"{max(b - a, 1.0):.1f}", height=height - TOP - BOTTOM))  # fmt: skip
        parts += self._grid(start, stop, low, high, x, y, width, height)
        for level in levels:
            at = float(y(np.array([level.value]))[0])
            parts.append(tag("path", class_="line limit", d=f"M{LEFT} {at:.1f}H{width - RIGHT}"))
        parts += [tag("path", class_=f"line {s.style}", d=curve(x(self.time), y(s.values))) for s in shown]
        label = f"{panel.title}: {', '.join(s.name for s in shown)} over time"
        return tag("svg", tag("title", label), *parts, viewBox=f"0 0 {width} {height}", role="img")

    def _grid(
        self, start: float, stop: float, low: float, high: float, x: Any, y: Any, width: int, height: int
    ) -> list[Raw]:
        out = []
        across, up = ticks(start, stop, 6), ticks(low, high, 5)
        for value in up:
            at = float(y(np.array([value]))[0])
            step = up[1] - up[0] if len(up) > 1 else abs(value) or 1.0
            out.append(tag("path", class_="grid", d=f"M{LEFT} {at:.1f}H{width - RIGHT}"))
            out.append(tag("text", tick_label(value, step), x=LEFT - 5, y=f"{at + 3.5:.1f}", class_="y"))
        for value in across:
            at = float(x(np.array([value]))[0])
            step = across[1] - across[0] if len(across) > 1 else abs(value) or 1.0
            out.append(tag("path", class_="grid", d=f"M{at:.1f} {TOP}V{height - BOTTOM}"))
            name = tick_label(value, step) + (" s" if value == across[-1] else "")
            out.append(tag("text", name, x=f"{at:.1f}", y=height - 6, class_="x"))
        return [join(*out)]


def _plain(value: float) -> float | None:
    """A number that JSON knows, or None."""
    return float(value) if np.isfinite(value) else None
