"""A figure that stands alone: SVG with its own style, in a notebook or a file; columns over time as one."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue, MissingExtra
from tangere.figures.axes import Axes, curve, marks, span
from tangere.figures.markup import Raw, join, number, tag, text

Array = NDArray[np.float64]
PANEL_WIDTH, PANEL_HEIGHT = 720, 170  # [px] of one panel: six joints stay apart, four panels fit a screen
CURVES = "abcdef"  # of the first six curves; then again

# Colours and lines of report/style.css for a drawing outside a page: light, since a paper or a notebook is.
STYLE = """\
svg{background:#fff;max-width:100%;height:auto}
text{fill:#5d656d;font:11px Inter,"Segoe UI","Helvetica Neue",Arial,sans-serif}
text.y{text-anchor:end}text.x{text-anchor:middle}text.unit,text.title{fill:#1c2024}text.title{font-weight:600}
.line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.line.soft{stroke:#b9c4cd;stroke-width:6}.line.limit{stroke:#85817a;stroke-dasharray:5 4}
.line.a{stroke:#0067a8}.line.b{stroke:#c8500a}.line.c{stroke:#00795a}.line.d{stroke:#9a4a86}
.line.e{stroke:#8a6d00}.line.f{stroke:#4d6274}
text.key{font-weight:650}text.a{fill:#0067a8}text.b{fill:#c8500a}text.c{fill:#00795a}text.d{fill:#9a4a86}
text.e{fill:#8a6d00}text.f{fill:#4d6274}
.grid{stroke:#eceded;fill:none}.floor{stroke:#e4e6e6;fill:none}
.solid,.face{stroke:#3d4852;stroke-linejoin:round}.solid.tube,.solid.joint,.face.tube{fill:#cfd6dc}
.solid.cap,.face.cap,.face.joint{fill:#6f8597}.solid.pen,.face.pen{fill:#3d4852;stroke:none}
.shine{fill:none;stroke:#ffffff90}path.axis{stroke-width:2.2;fill:none;stroke-linecap:round}
path.axis.x{stroke:#c8500a}path.axis.y{stroke:#00795a}path.axis.z{stroke:#0067a8}
text.axis{font-weight:650;text-anchor:middle}text.frame{fill:#1c2024;font-weight:650;text-anchor:end}
"""


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
        try:
            import cairosvg  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise MissingExtra(f"{where}: a png needs `pip install cairosvg`; .svg needs nothing") from None
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
