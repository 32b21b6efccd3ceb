"""Figures over time and figures that stand alone.

TimeFigure: panels of curves in a page, as a still drawing for everyone and as data for the page's own script. Figure:
SVG with its own style, in a notebook or a file; columns over time as one.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, extra
from tangere.figures.axes import Axes, curve, marks, panel, panels, span
from tangere.figures.markup import Raw, finite, floats, join, number, series, strided, tag, text
from tangere.types import Array

# Size [px] of a still panel; the script draws the same layout at the width it finds.
WIDTH, HEIGHT = 520, 172
WIDE, HIGH = 1080, 280  # of a panel that stands alone
SMALL = 340, 84  # of a quiet one
# Line styles of style.css: a wide soft line lies behind a thin one, so that both are seen where they agree.
STYLES = ("soft", "a", "b", "c", "d", "limit", "e", "f")
PANEL_WIDTH, PANEL_HEIGHT = 720, 170  # [px] of one panel: six joints stay apart, four panels fit a screen
CURVES = "abcdef"  # of the first six curves; then again

# Colours and lines of report/style.css for a drawing outside a page: light, since a paper or a notebook is.
STYLE = """\
svg{background:#fff;max-width:100%;height:auto}
text{fill:#5d656d;font:11px Inter,"Segoe UI","Helvetica Neue",Arial,sans-serif}
text.y{text-anchor:end}text.x{text-anchor:middle}text.unit,text.title{fill:#1c2024}text.title{font-weight:600}
.line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.line.soft{stroke:#b9c4cd;stroke-width:6}.line.limit{stroke:#b07800;stroke-dasharray:5 4}
.line.a{stroke:#0067a8}.line.b{stroke:#c8500a}.line.c{stroke:#00795a}.line.d{stroke:#9a4a86}
.line.e{stroke:#54429c}.line.f{stroke:#4d6274}
text.key{font-weight:650}text.a{fill:#0067a8}text.b{fill:#c8500a}text.c{fill:#00795a}text.d{fill:#9a4a86}
text.e{fill:#54429c}text.f{fill:#4d6274}
.grid{stroke:#eceded;fill:none}.floor{stroke:#e4e6e6;fill:none}
.solid,.face{stroke:#3d4852;stroke-linejoin:round}.solid.tube,.solid.joint,.face.tube{fill:#cfd6dc}
.solid.cap,.face.cap,.face.joint{fill:#6f8597}.solid.pen,.face.pen{fill:#3d4852;stroke:none}
.shine{fill:none;stroke:#ffffff90}path.axis{stroke-width:2.2;fill:none;stroke-linecap:round}
path.axis.x{stroke:#c8500a}path.axis.y{stroke:#00795a}path.axis.z{stroke:#0067a8}
.thing{fill:#e9dcc566;stroke:#8f7a55}text.thing{fill:#5d656d;stroke:none}
.force{stroke:#b3261e;stroke-width:5;fill:none}.force.tip{fill:#b3261e;stroke:none}
text.force{fill:#b3261e;stroke:none;font-weight:650;text-anchor:middle}.leader{stroke:#5d656d;stroke-width:.8}
text.axis{font-weight:650;text-anchor:middle}text.frame{fill:#1c2024;font-weight:650;text-anchor:end}
"""


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
    quiet: bool = False  # nothing to see: drawn small, after the others


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
    hidden: tuple[str, ...] = ()  # names that are off at first
    smooth: bool = False
    own_time: bool = False  # not the time that the page's other figures share
    shared: bool = False  # one vertical scale for all panels
    log: bool = False  # offers a logarithmic vertical axis: for sizes, which are not below 0
    same: tuple[str, int] | None = None  # its one panel is that of another figure of the page, whose numbers it shares

    @property
    def shown(self) -> tuple[Panel, ...]:
        """The panels; where all are quiet they are drawn like any other."""
        all_quiet = all(each.quiet for each in self.panels)
        return tuple(replace(each, quiet=False) for each in self.panels) if all_quiet else self.panels

    def data(self) -> dict[str, Any]:
        """What the script needs, ready for JSON."""
        # 2500 samples of a smooth curve are two per pixel of the widest plot; everything else is kept whole
        rows = strided(len(self.time), 2500) if self.smooth else np.arange(len(self.time))
        time = self.time[rows]
        out: dict[str, Any] = {"id": self.identifier, "hidden": list(self.hidden)}
        out |= {key: True for key in ("shared", "log") if getattr(self, key)}
        if self.smooth or self.own_time:
            out["t"] = floats(time)  # the others share the page's own "t", which page.py writes
        if self.same is not None:
            out |= {"same": list(self.same)}
        out["bands"] = [[finite(b.start), finite(b.end), b.label] for b in self.bands]
        out["panels"] = [
            {
                "title": each.title,
                "quiet": each.quiet,
                "unit": each.unit,
                "min": each.at_least,
                "levels": [[level.name, finite(level.value)] for level in each.levels],
                "series": [] if self.same is not None else [
                    {"name": s.name, "style": STYLES.index(s.style), **series(time, s.values[rows])}
                    for s in each.series
                ],
            }
            for each in self.shown
        ]  # fmt: skip
        return out

    def html(self, again: Raw | None = None) -> Raw:
        """The figure with still drawings; the script makes them live."""
        boxes = [
            (p.quiet, panel(p.title, p.unit, self._still(p), output=tag("output"), data_panel=k))
            for k, p in enumerate(self.shown)
        ]
        loud, quiet = [box for still, box in boxes if not still], [box for still, box in boxes if still]
        log = tag("button", "log axis", type="button", class_="axis", aria_pressed="false") if self.log else None
        return tag(
            "figure",
            tag("div", *self._legend(), log, class_="legend"),
            panels(loud, len(self.panels) > 1),
            tag("div", *quiet, class_="panels many quiet") if quiet else None,
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
        width, height = SMALL if plot.quiet else (width, height)
        start, stop = _ends(self.time)
        sharing = [s for each in self.panels for s in each.series if s.name not in self.hidden]
        curves = [_ranging(s) for s in (sharing if self.shared else shown)]
        low, high = span(curves + [np.array([v.value for v in levels])], plot.at_least)
        axes = Axes(width, height, (start, stop), (low, high))
        right = width - axes.right
        parts: list[Raw] = []
        for band in self.bands:
            a, b = (float(v) for v in np.clip(axes.across([band.start, band.end]), axes.left, right))
            parts.append(tag("rect", tag("title", band.label), class_="band", x=f"{a:.1f}", y=axes.top,
                             width=f"{max(b - a, 1.0):.1f}", height=axes.inner[1]))  # fmt: skip
        parts += axes.rows(marks(low, high, 2 if plot.quiet else 5)) + axes.columns(marks(start, stop, 6, "s"))
        for level in levels:
            at = float(axes.up(level.value))
            parts.append(tag("path", class_="line limit", d=f"M{axes.left} {at:.1f}H{right}"))
        x = axes.across(self.time)
        parts += [tag("path", class_=f"line {s.style}", d=curve(x, axes.up(s.values))) for s in shown]
        return axes.svg(f"{plot.title}: {', '.join(s.name for s in shown)} over time", *parts)


def _ranging(series: Series) -> Array:
    """What an axis has to hold of a series: of a limit its 5th to 95th percentile, as it may be raised for a moment."""
    known = series.values[np.isfinite(series.values)]
    return np.percentile(known, [5.0, 95.0]) if series.style == "limit" and known.size else series.values


def _ends(time: Array) -> tuple[float, float]:
    """First and last finite time [s], at least something apart: 0 to 1 where there is none."""
    known = time[np.isfinite(time)]
    start, stop = (float(known[0]), float(known[-1])) if known.size else (0.0, 1.0)
    return start, stop if stop > start else start + 1.0


@dataclass(frozen=True, repr=False)
class Figure:
    """A still drawing: `parts` inside an SVG of width x height [px]. A notebook shows it; `save` keeps it."""

    title: str
    parts: Raw
    width: int
    height: int

    @property
    def svg(self) -> str:
        """The drawing as one SVG element that needs nothing else."""
        inside = (tag("title", self.title), tag("style", Raw(STYLE)), self.parts)
        return tag("svg", *inside, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {self.width} {self.height}",
                   width=self.width, height=self.height, role="img")  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing: *.svg, or *.png where the library cairosvg is installed. Returns the path."""
        where = Path(path)
        if where.suffix.lower() == ".svg":
            where.write_text(self.svg + "\n", encoding="utf-8")
            return where
        if where.suffix.lower() != ".png":
            raise InvalidValue(f"{where}: a figure is saved as .svg or .png")
        with extra(f"{where}: a png needs `pip install cairosvg`; .svg needs nothing"):
            import cairosvg  # type: ignore[import-not-found, unused-ignore]
        cairosvg.svg2png(bytestring=self.svg.encode(), write_to=str(where), scale=2.0)
        return where

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        """As an image, so that its style stays inside."""
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img alt="{text(self.title)}" src="data:image/svg+xml;base64,{data}">'

    def __repr__(self) -> str:
        return f"Figure({self.title!r}, {self.width} x {self.height})"


def number_row(values: ArrayLike, digits: int = 4) -> list[str]:
    """Each number (n,) as people read it."""
    return [number(float(value), digits) for value in np.asarray(values, dtype=np.float64)]


def small_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Raw:
    """A table as HTML for a notebook; cells are escaped."""
    top = tag("tr", *(tag("th", cell) for cell in head))
    return tag("table", tag("thead", top), tag("tbody", *(tag("tr", *(tag("td", c) for c in row)) for row in rows)))


def columns_figure(title: str, time: Array, columns: Mapping[str, tuple[Array, str]]) -> Figure:
    """A panel per column, one above the other: name -> values (N,) or (N, k) and their unit, over time (N,) [s]."""
    panels = []
    for k, (name, (values, unit)) in enumerate(columns.items()):
        drawn = _panel(name, unit, time, values if values.ndim == 2 else values[:, None])
        panels.append(tag("g", drawn, transform=f"translate(0 {k * PANEL_HEIGHT})"))
    return Figure(title, join(*panels), PANEL_WIDTH, PANEL_HEIGHT * max(1, len(panels)))


def _panel(name: str, unit: str, time: Array, values: Array) -> Raw:
    axes = Axes(PANEL_WIDTH, PANEL_HEIGHT, _ends(time), span([values]), right=18, top=22)
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
