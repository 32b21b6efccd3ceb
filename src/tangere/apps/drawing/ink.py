"""Ink: where the pen really touched the paper and how hard, how that compares with what was meant, and how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.strokes.strokes import along, ranges
from tangere.errors import InvalidValue
from tangere.figures.axes import drawing, marks
from tangere.figures.markup import Raw, join, tag
from tangere.types import Array

TOLERANCE = 0.5e-3  # m: a felt pen's line is about 1 mm wide; ink within half of that covers the line
SPACING = 0.1e-3  # m between the points by which a planned line is measured: a fifth of the tolerance
_RASTER = 0.02e-3  # m: ink points in the same square of this size count once
BUNDLE = 100_000  # of a point and a segment that are looked at together: some MB
# points that are looked for at once: some 20 MB, 30 MB. An hour of drawing has millions, lines have thousands of pieces
_NEAR_AT_ONCE, _AWAY_AT_ONCE = 20_000, 500_000


@dataclass(frozen=True)
class Ink:
    """Samples of a touching pen: time [s], place on the canvas [m] (origin in its middle, x right, y up), force [N]."""

    t: Array  # (N,)
    x: Array  # (N,)
    y: Array  # (N,)
    force: Array  # (N,) along the normal, positive

    def __post_init__(self) -> None:
        shapes = {np.shape(part) for part in (self.t, self.x, self.y, self.force)}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise InvalidValue(f"ink: t, x, y, force of one length (N,), got {sorted(shapes)}")

    def __len__(self) -> int:
        return len(self.t)

    @property
    def points(self) -> Array:
        """(N, 2) m."""
        return np.stack((self.x, self.y), axis=1)

    def strokes(self, gap: float = 5e-3) -> list[Ink]:
        """The ink cut where nothing touched for longer than `gap` [s]."""
        cuts = np.flatnonzero(np.diff(self.t) > gap) + 1
        parts = np.split(np.arange(len(self)), cuts) if len(self) else []
        return [Ink(self.t[i], self.x[i], self.y[i], self.force[i]) for i in parts]


def ink_of(time: Array, tip: Array, wrench: Array, T_canvas: Array, at_least: float = 0.0) -> Ink:
    """The ink of a run: tip (N, 3) and wrench (N, 6) of the paper on the pen, base axes; where the force > at_least."""
    force = wrench[:, :3] @ T_canvas[:3, 2]
    touched = force > at_least
    place = (tip[touched] - T_canvas[:3, 3]) @ T_canvas[:3, :3]
    return Ink(time[touched], place[:, 0], place[:, 1], force[touched])


def sampled(line: Array, spacing: float = SPACING) -> tuple[Array, Array]:
    """Points (k, 2) along a polyline (m, 2), at most `spacing` [m] apart, and the length (k,) that each stands for."""
    line = np.asarray(line, dtype=np.float64)
    steps = np.hypot(*np.diff(line, axis=0).T)
    line = np.concatenate((line[:1], line[1:][steps > 0.0]))
    if len(line) < 2:
        return line, np.zeros(len(line))
    at = along(line)
    count = max(int(np.ceil(at[-1] / spacing)), 1)
    middle = (np.arange(count) + 0.5) * (at[-1] / count)
    points = np.stack([np.interp(middle, at, line[:, axis]) for axis in (0, 1)], axis=1)
    return points, np.full(count, at[-1] / count)


def near(points: Array, others: Array, tolerance: float) -> NDArray[np.bool_]:
    """Whether each of points (k, 2) has one of the others (m, 2) within tolerance [m]; to 0.02 mm."""
    found = np.zeros(len(points), dtype=np.bool_)
    if not len(points) or not len(others):
        return found
    corner = np.floor(others.min(axis=0) / _RASTER).astype(np.int64)
    wide = int(np.floor(others[:, 0].max() / _RASTER)) - int(corner[0]) + 1
    squares = np.unique(np.concatenate([_squares(part, corner, wide) for part in _parts(others, _NEAR_AT_ONCE)]))
    raster = np.stack((squares % wide, squares // wide), axis=1) + corner
    others = np.asarray((raster + 0.5) * _RASTER, dtype=np.float64)
    low = np.minimum(points.min(axis=0), others.min(axis=0)) - 2.0 * tolerance
    place = np.floor((others - low) / tolerance).astype(np.int64)
    columns = max(int(place[:, 0].max()), int(np.floor((points[:, 0].max() - low[0]) / tolerance))) + 3
    code = place[:, 1] * columns + place[:, 0]
    order = np.argsort(code, kind="stable")
    ranked, sorted_others = code[order], others[order]
    for some, part in zip(_parts(found, _NEAR_AT_ONCE), _parts(points, _NEAR_AT_ONCE), strict=True):
        mine = np.floor((part - low) / tolerance).astype(np.int64)
        for down, right in product((0, -1, 1), (0, -1, 1)):
            waiting = np.flatnonzero(~some)
            there = (mine[waiting, 1] + down) * columns + mine[waiting, 0] + right
            first = np.searchsorted(ranked, there, side="left")
            count = np.searchsorted(ranked, there, side="right") - first
            owner, index = ranges(first, count)
            away = part[waiting[owner]] - sorted_others[index]
            some[waiting[owner[np.einsum("ij,ij->i", away, away) <= tolerance**2]]] = True
    return found


def _squares(points: Array, corner: NDArray[np.int64], wide: int) -> NDArray[np.int64]:
    """The squares of the raster in which points (k, 2) lie, each once, counted row by row."""
    raster = np.floor(points / _RASTER).astype(np.int64) - corner
    return np.unique(raster[:, 1] * wide + raster[:, 0])  # whole numbers sort fast


def _parts(rows: Any, most: int) -> Iterator[Any]:
    """An array as views of at most so many rows."""
    return (rows[at : at + most] for at in range(0, len(rows), most))


def distance(points: Array, lines: Sequence[Array], reach: float = 5e-3) -> Array:
    """Distance (k,) [m] of points (k, 2) to the nearest place on any polyline, segments included; at most `reach`.

    Beyond `reach` a point counts as that far: far ink is stray whatever its distance.
    """
    starts = np.concatenate([line[:-1] for line in lines])
    ends = np.concatenate([line[1:] for line in lines])
    if len(points) > _AWAY_AT_ONCE:
        return np.concatenate([distance(part, lines, reach) for part in _parts(points, _AWAY_AT_ONCE)])
    best = np.full(len(points), reach)
    look = min(1e-3, reach)
    waiting = np.arange(len(points))
    while len(waiting):  # most points are near a line: the far ones are looked at again, farther and farther
        found = _distance(points[waiting], starts, ends, look)
        near_by = (found < look) | (look >= reach)
        best[waiting[near_by]] = found[near_by]
        waiting, look = waiting[~near_by], min(8.0 * look, reach)
    return best


def _distance(points: Array, starts: Array, ends: Array, reach: float) -> Array:
    """Distance (k,) to the nearest segment, at most reach: of each segment the points in the cells about it."""
    corner = points.min(axis=0)
    cells = np.floor((points - corner) / reach).astype(np.int64)
    most = cells.max(axis=0)
    code = cells[:, 1] * (most[0] + 1) + cells[:, 0]
    order = np.argsort(code, kind="stable")
    code, ranked, best = code[order], points[order], np.full(len(points), reach)
    low, high = (
        np.clip(np.floor((ends_of(starts, ends) + side * reach - corner) / reach).astype(np.int64), 0, most)
        for ends_of, side in ((np.minimum, -1.0), (np.maximum, 1.0))
    )
    segment, row = ranges(low[:, 1], high[:, 1] - low[:, 1] + 1)
    first = np.searchsorted(code, row * (most[0] + 1) + low[segment, 0])
    count = np.searchsorted(code, row * (most[0] + 1) + high[segment, 0], side="right") - first
    ways = ends - starts
    squares = ways[:, 0] ** 2 + ways[:, 1] ** 2
    bundle = (np.cumsum(count) - count) // BUNDLE
    for some in np.split(np.arange(len(row)), np.flatnonzero(np.diff(bundle)) + 1):
        owner, index = ranges(first[some], count[some])
        owner = segment[some][owner]
        way, square, from_a = ways[owner], squares[owner], ranked[index] - starts[owner]
        along_it = from_a[:, 0] * way[:, 0] + from_a[:, 1] * way[:, 1]
        share = np.clip(np.divide(along_it, square, out=np.zeros(len(square)), where=square > 0.0), 0.0, 1.0)
        away = from_a - share[:, None] * way
        np.minimum.at(best, index, np.hypot(away[:, 0], away[:, 1]))
    out = np.empty(len(points))
    out[order] = best
    return out


def coverage(lines: Sequence[Array], ink: Ink, tolerance: float = TOLERANCE) -> float:
    """Share of the planned length with ink within tolerance [m]; of nothing but dots, their share."""
    shares, lengths = _covered(lines, ink, tolerance)
    total = float(lengths.sum())
    return float(np.mean(shares)) if total == 0.0 else float((shares * lengths).sum()) / total


def coverages(lines: Sequence[Array], ink: Ink, tolerance: float = TOLERANCE) -> Array:
    """The same for each line by itself (L,); a dot is 0 or 1."""
    return _covered(lines, ink, tolerance)[0]


def _covered(lines: Sequence[Array], ink: Ink, tolerance: float) -> tuple[Array, Array]:
    """Share (L,) of each line with ink, and the line's length (L,) [m]; one search for all lines."""
    parts = [sampled(line) for line in lines]
    counts = np.array([len(points) for points, _ in parts])
    found = near(np.concatenate([points for points, _ in parts]), ink.points, tolerance)
    # a line's points stand for equal lengths, see `sampled`
    shares = np.add.reduceat(found.astype(np.float64), np.cumsum(counts) - counts) / counts
    return shares, np.array([float(lengths.sum()) for _, lengths in parts])


def stray(lines: Sequence[Array], ink: Ink, tolerance: float = TOLERANCE) -> float:
    """Share of the ink's length that is farther than tolerance [m] from every planned line; 0 where there is no ink.

    A pen that rests makes one dot, so ink counts by its length, not by its samples; a dot counts as 0.02 mm.
    """
    if not len(ink):
        return 0.0
    points = ink.points
    steps = np.zeros(len(ink))
    moved = np.hypot(np.diff(ink.x), np.diff(ink.y))
    moved[np.diff(ink.t) > 5e-3] = 0.0  # between two strokes
    steps[1:] = moved
    first = np.concatenate(((True,), np.diff(ink.t) > 5e-3))
    steps[first] += _RASTER
    planned = np.concatenate([sampled(line)[0] for line in lines])
    return float(steps[~near(points, planned, tolerance)].sum() / steps.sum())


WIDTH = 520  # px of the longer side
BAR, LETTERS = 12, 38  # px: height of the scale, and of the scale with its numbers
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
    d = "".join(_Path(line, scale, width, height).part(0, len(line)) for line in lines)
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
        rows = begin + thinned(part, 0.4 / scale)
        begin += len(part)
        level = np.clip((values[rows] - low) / (high - low) * CLASSES, 0, CLASSES - 1).astype(int)
        cuts = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), len(rows)]
        colours, path = level.tolist(), _Path(points[rows], scale, width, height)
        for start, end in pairwise(cuts):  # joined to the next colour
            pieces[colours[start]].append(path.part(start, end + 1))
    for k, found in enumerate(pieces):
        if found:
            parts.append(tag("path", d="".join(found), fill="none", stroke=colour((k + 0.5) / CLASSES),
                             stroke_width="2.2", stroke_linecap="round", stroke_linejoin="round"))  # fmt: skip
    parts += _scale(low, high, unit, width, height)
    return drawing(title, width, height + LETTERS + 6, *parts)


def colour(share: float, colours: tuple[tuple[int, int, int], ...] = COLOURS) -> str:
    """#rrggbb of a share in [0, 1]."""
    place = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    k = min(int(place), len(colours) - 2)
    mixed = (round(a + (place - k) * (b - a)) for a, b in zip(colours[k], colours[k + 1], strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _range(values: Array) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.percentile(finite, [1.0, 99.0]))
    room = max(1e-9, 1e-6 * abs(high))
    return (low, high) if high - low > room else (low - room, high + room)


def thinned(ink: Ink, step: float) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Indices of samples about `step` [m] apart along one stroke of ink."""
    at = along(ink.points)
    wanted = np.linspace(0.0, at[-1], max(2, math.ceil(at[-1] / step) + 1))
    return np.unique(np.searchsorted(at, wanted).clip(0, len(ink) - 1))


class _Path:
    """A line (k, 2) [m] as the path of an SVG, or parts of it; what stays at one place is a dot."""

    def __init__(self, line: Array, scale: float, width: float, height: float) -> None:
        points = line * [scale, -scale] + [0.5 * width, 0.5 * height]
        self._words = [f"{x:.1f} {y:.1f}" for x, y in points.tolist()]
        self._moves = [0, *np.cumsum(np.any(points[1:] != points[:-1], axis=1)).tolist()]

    def part(self, start: int, end: int) -> str:
        """From point `start` to before `end`, or to the last."""
        words, moves = self._words[start:end], self._moves[start:end]
        return "M" + ("L".join(words) if moves[-1] > moves[0] else f"{words[0]}h.01")


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
        names.append(tag("text", text, x=f"{at:.1f}", y=f"{top + BAR + 18:.1f}", style=f"text-anchor:{side}"))
    return [join(*boxes), join(*names)]
