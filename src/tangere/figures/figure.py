"""A figure that stands alone: SVG with its own style, shown by a notebook, saved to a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, MissingExtra
from tangere.figures.markup import Raw, number, tag

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
        return self.svg

    def __repr__(self) -> str:
        return f"Figure({self.title!r}, {self.width} x {self.height})"


def number_row(values: ArrayLike, digits: int = 4) -> list[str]:
    """Each number (n,) as people read it."""
    return [number(float(value), digits) for value in np.asarray(values, dtype=np.float64)]


def small_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Raw:
    """A table as HTML for a notebook; cells are escaped."""
    top = tag("tr", *(tag("th", cell) for cell in head))
    return tag("table", tag("thead", top), tag("tbody", *(tag("tr", *(tag("td", c) for c in row)) for row in rows)))
