"""Lines on paper as SVG: strokes as planned, and ink coloured by a quantity along it, with a scale."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tangere.apps.drawing.ink import Ink
from tangere.figures.axes import drawing, marks
from tangere.figures.markup import Raw, join, tag
from tangere.types import Array

WIDTH = 520  # px of the longer side
BAR, LETTERS = 12, 34  # px: height of the scale, and of the scale with its numbers
# few to many, told apart by colour-blind readers: dark blue, blue-green, green, yellow, orange
COLOURS = ((43, 58, 140), (32, 120, 155), (60, 165, 120), (190, 195, 60), (235, 150, 40), (205, 60, 30))
CLASSES = 12  # of colour: neighbours are still told apart, and a page holds twelve paths instead of thousands
PAPER, PEN = "#ffffff", "#1c2024"  # paper stays white in a dark page, as a photograph of it would


def frame(size: tuple[float, float]) -> tuple[float, float, float]:
    """px per m, width and height [px] of a paper (w, h) [m]."""
    scale = WIDTH / max(size)
    return scale, scale * size[0], scale * size[1]


def plan_view(lines: Iterable[Array], size: tuple[float, float], title: str, pen: float = 0.5e-3) -> Raw:
    """SVG of lines (k, 2) [m] on paper (w, h) [m], drawn with a pen of that width."""
    scale, width, height = frame(size)
    d = "".join(_path(line, scale, width, height) for line in lines)
    drawn = tag("path", d=d, fill="none", stroke=PEN, stroke_width=f"{max(pen * scale, 0.8):.2f}",
                stroke_linecap="round", stroke_linejoin="round")  # fmt: skip
    paper = tag("rect", width=f"{width:.1f}", height=f"{height:.1f}", fill=PAPER)
    return drawing(title, width, height, paper, drawn)


def coloured_map(
    ink: Ink, values: Array, size: tuple[float, float], unit: str, title: str, limits: tuple[float, float] | None = None
) -> Raw:
    """SVG of the ink on paper (w, h) [m], coloured by values (N,), from `limits` or their 1st to 99th percentile."""
    scale, width, height = frame(size)
    low, high = limits or _range(values)
    parts = [tag("rect", width=f"{width:.1f}", height=f"{height:.1f}", fill=PAPER)]
    pieces: list[list[str]] = [[] for _ in range(CLASSES)]
    begin, points = 0, ink.points
    for part in ink.strokes():
        rows = begin + _thinned(part, 0.4 / scale)
        begin += len(part)
        level = np.clip((values[rows] - low) / (high - low) * CLASSES, 0, CLASSES - 1).astype(int)
        cuts = np.flatnonzero(np.diff(level)) + 1
        for run in np.split(np.arange(len(rows)), cuts):
            if len(run):
                end = min(int(run[-1]) + 1, len(rows) - 1)  # joined to the next colour
                at = rows[int(run[0]) : end + 1]
                pieces[int(level[run[0]])].append(_path(points[at], scale, width, height))
    for k, found in enumerate(pieces):
        if found:
            parts.append(tag("path", d="".join(found), fill="none", stroke=colour((k + 0.5) / CLASSES),
                             stroke_width="2.2", stroke_linecap="round", stroke_linejoin="round"))  # fmt: skip
    parts += _scale(low, high, unit, width, height)
    return drawing(title, width, height + LETTERS + 6, *parts)


def colour(share: float) -> str:
    """#rrggbb of a share in [0, 1]."""
    place = min(max(share, 0.0), 1.0) * (len(COLOURS) - 1)
    k = min(int(place), len(COLOURS) - 2)
    mixed = (round(a + (place - k) * (b - a)) for a, b in zip(COLOURS[k], COLOURS[k + 1], strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _range(values: Array) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(finite, [1.0, 99.0]))
    room = max(1e-9, 1e-6 * abs(high))
    return (low, high) if high - low > room else (low - room, high + room)


def _thinned(ink: Ink, step: float) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Indices of samples about `step` [m] apart along one stroke of ink."""
    along = np.concatenate(((0.0,), np.cumsum(np.hypot(np.diff(ink.x), np.diff(ink.y)))))
    wanted = np.linspace(0.0, along[-1], max(2, math.ceil(along[-1] / step) + 1))
    return np.unique(np.searchsorted(along, wanted).clip(0, len(ink) - 1))


def _path(line: Array, scale: float, width: float, height: float) -> str:
    points = line * [scale, -scale] + [0.5 * width, 0.5 * height]
    if len(points) == 1 or not np.ptp(points, axis=0).any():
        return f"M{points[0, 0]:.1f} {points[0, 1]:.1f}h.01"
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points.tolist())


def _scale(low: float, high: float, unit: str, width: float, height: float) -> list[Raw]:
    top = height + 8
    boxes = [
        tag("rect", x=f"{k * width / CLASSES:.1f}", y=f"{top:.1f}", width=f"{width / CLASSES + 0.3:.1f}", height=BAR,
            fill=colour((k + 0.5) / CLASSES))
        for k in range(CLASSES)
    ]  # fmt: skip
    names = []
    for value, text in marks(low, high, 6, unit):
        at = (value - low) / (high - low) * width
        # numbers at the very ends stay inside
        side = "start" if at < 12 else "end" if at > width - 24 else "middle"
        names.append(tag("text", text, x=f"{at:.1f}", y=f"{top + BAR + 14:.1f}", style=f"text-anchor:{side}"))
    return [join(*boxes), join(*names)]
