"""Fewer points and softer steps, both within a stated distance of the line that was traced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes, closed
from tangere.errors import InvalidValue
from tangere.types import Array

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
        begin = np.concatenate([[0], np.cumsum(count)[:-1]])
        owner = np.repeat(np.arange(len(left)), count)
        index = np.arange(int(count.sum())) - begin[owner] + left[owner] + 1
        distance = _from_segment(points[index], points[left][owner], points[right][owner])
        farthest = np.maximum.reduceat(distance, begin)
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
