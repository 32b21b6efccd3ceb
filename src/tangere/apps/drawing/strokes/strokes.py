"""Strokes: what a pen draws, line by line, in order; with fewer points and softer steps within a stated distance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.types import Array


@dataclass(frozen=True)
class Strokes:
    """Lines in drawing order and direction.

    Canvas frame: origin in the middle of the canvas, x to the right, y up, as one looks at the paper. Between the last
    point of a line and the first of the next the pen is lifted; a line whose first and last point coincide is closed.
    """

    lines: tuple[Array, ...]  # each (k, 2) [m], k >= 2
    size: tuple[float, float]  # (width, height) [m] of the drawing area; every line lies inside
    notes: tuple[str, ...] = ()  # what was reduced, ignored or chosen on the way here, for the reader
    missing: tuple[str, ...] = ()  # what of the picture is not drawn, in words

    def __post_init__(self) -> None:
        lines = tuple(np.ascontiguousarray(line, dtype=float) for line in self.lines)
        for number, line in enumerate(lines, start=1):
            if line.ndim != 2 or line.shape[1] != 2 or len(line) < 2:
                raise InvalidValue(f"line {number} has shape {line.shape}; a stroke is (k, 2) with k >= 2")
            if not np.isfinite(line).all():
                raise InvalidValue(f"line {number} holds a value that is not finite")
        if len(self.size) != 2 or not all(np.isfinite(side) and side > 0.0 for side in self.size):
            raise InvalidValue(f"size {self.size} must be two positive lengths (width, height) in m")
        object.__setattr__(self, "lines", lines)
        object.__setattr__(self, "size", (float(self.size[0]), float(self.size[1])))

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def draw_length(self) -> float:
        """Length [m] of everything drawn."""
        return float(sum(length(line) for line in self.lines))

    @cached_property
    def pen_up_length(self) -> float:
        """Length [m] of the straight ways from the end of each line to the start of the next."""
        if len(self.lines) < 2:
            return 0.0
        ends = np.array([line[-1] for line in self.lines[:-1]])
        starts = np.array([line[0] for line in self.lines[1:]])
        return float(np.hypot(*(starts - ends).T).sum())

    @cached_property
    def points(self) -> int:
        """Number of points of all lines together."""
        return sum(len(line) for line in self.lines)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """(lower, upper) corner [m] of the box round everything drawn; both zero where nothing is."""
        if not self.lines:
            return np.zeros(2), np.zeros(2)
        low = np.min([line.min(axis=0) for line in self.lines], axis=0)
        high = np.max([line.max(axis=0) for line in self.lines], axis=0)
        return low, high

    def reversed(self) -> Strokes:
        """The same drawing from its end: order and directions reversed, so that both lengths stay."""
        return replace(self, lines=tuple(line[::-1].copy() for line in reversed(self.lines)))

    def transformed(
        self, *, scale: float = 1.0, angle: float = 0.0, offset: ArrayLike = (0.0, 0.0),
        size: tuple[float, float] | None = None,
    ) -> Strokes:  # fmt: skip
        """p -> scale R(angle) p + offset: scaled, turned counter-clockwise [rad] about the middle, then moved [m].

        The drawing area keeps its size (scaled with the drawing) unless one is given; it is not turned.
        """
        if not (np.isfinite(scale) and scale > 0.0):
            raise InvalidValue(f"scale {scale} must be a positive number")
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shift = np.asarray(offset, dtype=float)
        area = (self.size[0] * scale, self.size[1] * scale) if size is None else size
        return replace(self, lines=tuple(line @ turn.T + shift for line in self.lines), size=area)

    def fitted(self, width: float, height: float, margin: float = 0.0) -> Strokes:
        """What is drawn (not the empty paper round it) scaled to fill width x height [m] less a margin, and centred."""
        if not (width - 2.0 * margin > 0.0 and height - 2.0 * margin > 0.0 and margin >= 0.0):
            raise InvalidValue(f"a margin of {margin} m leaves nothing of {width} x {height} m")
        low, high = self.bounds
        extent = np.maximum(high - low, 1e-12)
        scale = float(min((width - 2.0 * margin) / extent[0], (height - 2.0 * margin) / extent[1]))
        middle = (low + high) / 2.0
        return replace(self, lines=tuple((line - middle) * scale for line in self.lines), size=(width, height))


def length(line: Array) -> float:
    """Length of a polyline (k, 2), in its unit."""
    steps = np.diff(line, axis=0)
    return float(np.sqrt((steps * steps).sum(axis=1)).sum())


def along(line: Array) -> Array:
    """(k,) length along a polyline (k, 2) up to each of its points."""
    return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])


def between(line: Array, at: Array, start: float, stop: float) -> Array:
    """The part of a line (k, 2) from one length along it to another; at (k,): see `along`. Corners stay."""
    ends = np.stack([np.interp([start, stop], at, line[:, axis]) for axis in (0, 1)], axis=1)
    return np.concatenate([ends[:1], line[(at > start) & (at < stop)], ends[1:]])


def ranges(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(number of the range, what it counts) of all ranges first, first + 1, ... of `count` each, one after another."""
    owner = np.repeat(np.arange(len(first)), count)
    return owner, np.arange(len(owner)) - (np.cumsum(count) - count)[owner] + first[owner]


def root(parent: Any, i: int) -> int:
    """The one that stands for all that i was joined with; parent: of each number, itself where it stands for others."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def closed(line: Array) -> bool:
    """Whether a line ends where it started (and went somewhere in between)."""
    return len(line) > 3 and bool((line[0] == line[-1]).all())


# Passes of the filter (1 2 1)/4: eight make a Gaussian with a deviation of two points, as wide as a pixel staircase.
PASSES = 8


def simplified(strokes: Strokes, tolerance: float) -> Strokes:
    """The same lines with as few points as stay within `tolerance` [m] (Ramer, Douglas and Peucker).

    Of the points between two kept ones the farthest from their connection is kept too, as long as it is farther than
    the tolerance; all lines are split at once, level by level. Every point dropped lies within the tolerance of the
    segment that replaces it, and, the line being connected, every point of that segment within it of the line: the
    Hausdorff distance between both is at most the tolerance. First and last points stay.
    """
    positive("tolerance", tolerance)
    if not strokes.lines:
        return strokes
    points, firsts, lasts = _joined(strokes)
    keep = np.zeros(len(points), dtype=bool)
    keep[firsts] = keep[lasts] = True
    left, right = firsts, lasts
    while True:
        open_ = right - left > 1
        left, right = left[open_], right[open_]
        if not len(left):
            break
        count = right - left - 1
        owner, index = ranges(left + 1, count)
        distance = _from_segment(points[index], points[left][owner], points[right][owner])
        farthest = np.maximum.reduceat(distance, np.cumsum(count) - count)
        # the first of equally far points: reversed assignment leaves the first in place
        at = np.zeros(len(left), dtype=np.int64)
        hit = np.nonzero(distance == farthest[owner])[0][::-1]
        at[owner[hit]] = index[hit]
        split = farthest > tolerance
        keep[at[split]] = True
        left, right = np.concatenate([left[split], at[split]]), np.concatenate([at[split], right[split]])
    lines = tuple(points[a : b + 1][keep[a : b + 1]] for a, b in zip(firsts, lasts, strict=True))
    return replace(strokes, lines=lines)


def smoothed(strokes: Strokes, tolerance: float, *, passes: int = PASSES) -> Strokes:
    """The same lines without the steps of their pixels; no point moves by more than `tolerance` [m].

    Repeated averages (p_- + 2 p + p_+)/4 along the line; ends stay, closed lines stay closed. A displacement that
    would be larger than the tolerance (at a sharp corner) is cut to it, so that corners stay corners. Meant for lines
    with evenly spaced points, as tracing makes them.
    """
    positive("tolerance", tolerance)
    if not strokes.lines:
        return strokes
    points, firsts, lasts = _joined(strokes)
    before = np.arange(len(points)) - 1
    after = np.arange(len(points)) + 1
    before[firsts], after[lasts] = firsts, lasts
    fixed = np.zeros(len(points), dtype=bool)
    fixed[firsts] = fixed[lasts] = True
    for line, a, b in zip(strokes.lines, firsts, lasts, strict=True):
        if closed(line):
            before[a], after[a] = b - 1, a + 1
            before[b], after[b] = b - 1, a + 1
            fixed[a] = fixed[b] = False
    moved = points.copy()
    for _ in range(passes):
        step = 0.25 * (moved[before] + moved[after]) - 0.5 * moved
        step[fixed] = 0.0
        moved = moved + step
    shift = moved - points
    size = np.hypot(shift[:, 0], shift[:, 1])
    shift *= np.minimum(1.0, tolerance / np.maximum(size, 1e-300))[:, None]
    moved = points + shift
    lines = []
    for line, a, b in zip(strokes.lines, firsts, lasts, strict=True):
        new = moved[a : b + 1].copy()
        if closed(line):
            new[-1] = new[0]
        lines.append(new)
    return replace(strokes, lines=tuple(lines))


def _joined(strokes: Strokes) -> tuple[Array, np.ndarray, np.ndarray]:
    """(all points (n, 2), index of the first and of the last point of each line)."""
    counts = np.array([len(line) for line in strokes.lines])
    lasts = np.cumsum(counts) - 1
    return np.concatenate(strokes.lines), lasts - counts + 1, lasts


def _from_segment(points: Array, start: Array, end: Array) -> Array:
    """(n,) distance of each point from its own segment; a segment of length 0 is a point."""
    along = end - start
    square = (along * along).sum(axis=1)
    offset = points - start
    share = np.clip((offset * along).sum(axis=1) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    rest = offset - share[:, None] * along
    result: Array = np.hypot(rest[:, 0], rest[:, 1])
    return result


def positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise InvalidValue(f"{name} {value} must be a positive length in m")
