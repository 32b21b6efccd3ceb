"""Fewer times the pen is lifted, and nothing drawn twice.

Lines that meet at their ends become one; what lies on a line that is drawn already is left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes, along, between, closed, length, positive, root
from tangere.apps.drawing.strokes.tour import nearest
from tangere.types import Array

# Ends looked at round each end: more than this many lines rarely meet in one point.
NEIGHBOURS = 8
# A join with a sharp turn counts as if it were this share of the tolerance longer: straight ones come first.
TURN_COST = 0.5
# A line is closed if its ends are near and it is at least this many times longer than the gap.
RING = 6.0


def merged(strokes: Strokes, tolerance: float) -> Strokes:
    """Join lines whose ends lie within `tolerance` [m], nearest and straightest first; gaps become part of the line.

    A line whose own ends come that near is closed. Exact doubles of a line, forwards or backwards, are dropped:
    nothing is drawn twice.
    """
    positive("tolerance", tolerance)
    lines = list(_distinct(strokes.lines))
    free = [k for k, line in enumerate(lines) if not closed(line)]
    if not free:
        return replace(strokes, lines=tuple(lines))
    ends = np.array([point for k in free for point in (lines[k][0], lines[k][-1])])
    outward = np.array([_outward(lines[k], side) for k in free for side in (0, 1)])
    table = nearest(ends, NEIGHBOURS)
    a = np.repeat(np.arange(len(ends)), NEIGHBOURS)
    b = table.ravel()
    valid = b > a
    a, b = a[valid], b[valid]
    gap = np.hypot(*(ends[a] - ends[b]).T)
    near = gap <= tolerance
    a, b, gap = a[near], b[near], gap[near]
    turn = 0.5 * (1.0 + (outward[a] * outward[b]).sum(axis=1))  # 0: straight on, 1: back the way it came
    rank = np.lexsort((b, a, gap + TURN_COST * tolerance * turn))
    link = [-1] * len(ends)
    parent = list(range(len(free)))
    size = [length(lines[k]) for k in free]

    for i, j, g in zip(a[rank].tolist(), b[rank].tolist(), gap[rank].tolist(), strict=True):
        if link[i] >= 0 or link[j] >= 0:
            continue
        p, r = root(parent, i >> 1), root(parent, j >> 1)
        if p == r and size[p] < max(RING * g, 3.0 * tolerance):
            continue
        link[i], link[j] = j, i
        if p != r:
            parent[r] = p
            size[p] += size[r] + g
    done = [False] * len(free)
    result = [line for line in lines if closed(line)]
    starts = [e for e in range(len(ends)) if link[e] < 0] + list(range(0, len(ends), 2))
    for start in starts:
        if done[start >> 1]:
            continue
        parts: list[Array] = []
        here = start
        while not done[here >> 1]:
            done[here >> 1] = True
            line = lines[free[here >> 1]]
            parts.append(line if here & 1 == 0 else line[::-1])
            here = link[here ^ 1]
            if here < 0:
                break
        line = np.concatenate(parts)
        if here >= 0 and len(line) > 2:
            line = np.concatenate([line, line[:1]])
        moves = np.concatenate([[True], (np.diff(line, axis=0) != 0.0).any(axis=1)])
        result.append(line[moves] if moves.sum() > 1 else line[:2])
    return replace(strokes, lines=tuple(result))


def _distinct(lines: tuple[Array, ...]) -> list[Array]:
    """The lines without exact doubles, in either direction."""
    seen: set[bytes] = set()
    result = []
    for line in lines:
        forward, backward = line.tobytes(), np.ascontiguousarray(line[::-1]).tobytes()
        key = min(forward, backward)
        if key not in seen:
            seen.add(key)
            result.append(line)
    return result


def _outward(line: Array, side: int) -> Array:
    """Unit vector in which a line runs out of its first (0) or last (1) point, over its last few points."""
    way = line[0] - line[min(6, len(line) - 1)] if side == 0 else line[-1] - line[max(-7, -len(line))]
    size = float(np.hypot(way[0], way[1]))
    result: Array = way / size if size > 0.0 else np.zeros(2)
    return result


# m: two lines nearer than this are one: what a UR repeats, a tenth of a pen's line ...
NEAR = 0.05e-3
# ... and a 4000th of the longer side of drawings above 200 mm: what is drawn is kept in 16 million cells
CELLS = 4000
# m: a pen's line. The end of a line that lies so far on another is cut off; less is where two lines meet.
END = 0.5e-3
# m: within a line so much is cut out. Less is a sharp corner or a crossing at a small angle: to lift the pen there, one
# second each, would leave two blunt ends for one line.
INSIDE = 2e-3


def uncovered(strokes: Strokes, near: float = NEAR) -> Strokes:
    """The lines without the parts that run on a line already drawn, within `near` [m].

    Longer lines first, whatever their order, so that the side of a square is dropped and not the square opened. What
    is left out has ink within `near` (crumbs of four times that between two such parts: within three times that); it is
    measured against what stays only. A line that goes back on itself ends where it turns.
    """
    low, high = strokes.bounds
    near = max(near, float((high - low).max()) / CELLS)
    origin = low - 2.0 * near
    shape = np.ceil((high - low) / near).astype(int) + 5
    drawn = np.full(int(shape[0] * shape[1]), -1, dtype=np.int32)  # the first sample that was drawn in each cell
    around = np.array([dx * shape[1] + dy for dx in (0, -1, 1) for dy in (0, -1, 1)])
    places = np.zeros((0, 4))  # samples: point and direction
    count = 0
    pieces: dict[int, list[Array]] = {}
    for number in sorted(range(len(strokes.lines)), key=lambda k: -length(strokes.lines[k])):
        line = strokes.lines[number]
        s, here = _samples(line, near)
        n = len(here)
        if count + n > len(places):
            places = np.concatenate([places, np.zeros((max(len(places), n, 4096), 4))])
        places[count : count + n] = here
        cells = ((here[:, :2] - origin) / near).astype(np.int64) @ np.array([shape[1], 1])
        found = drawn[cells[:, None] + around]
        covered = ((found >= 0) & _beside(here[:, None], places[found], near)).any(axis=1)
        own = _doubled(cells, here, around, near)
        kept = _kept(covered | own, s, closed(line))
        pieces[number] = [line] if kept is None else [_part(line, *part) for part in kept]
        stays = np.zeros(n, dtype=bool)
        for a, b in [(0.0, s[-1])] if kept is None else kept:
            stays |= ((s >= a) & (s <= b)) | (s <= b - s[-1])
        index = np.nonzero(stays)[0][::-1]
        index = index[drawn[cells[index]] < 0]
        drawn[cells[index]] = count + index
        count += n
    return replace(strokes, lines=tuple(piece for number in sorted(pieces) for piece in pieces[number]))


def unfolded(strokes: Strokes) -> Strokes:
    """The lines without a first or last side that its neighbour goes over again: a loop simplified to a line."""
    lines = []
    for line in strokes.lines:
        for _ in range(2):  # its end, then its start
            while len(line) > 2 and _on(line[-1], line[-2], line[-3]):
                line = line[:-1]
            line = line[::-1]
        lines.append(line)
    return replace(strokes, lines=tuple(lines))


def _on(point: Array, a: Array, b: Array) -> bool:
    """Whether a point lies on the straight way from a to b, to a micrometre."""
    way, out = b - a, point - a
    square = float(way @ way)
    share = min(max(float(out @ way) / square, 0.0), 1.0) if square > 0.0 else 0.0
    return float(np.hypot(*(out - share * way))) <= 1e-6


def _samples(line: Array, step: float) -> tuple[Array, Array]:
    """(arc lengths (n,) [m], points and unit directions (n, 4)) on a line, `step` [m] apart or less."""
    at = along(line)
    s = np.linspace(0.0, at[-1], max(2, int(np.ceil(at[-1] / step)) + 1))
    points = np.stack([np.interp(s, at, line[:, 0]), np.interp(s, at, line[:, 1])], axis=1)
    way = np.diff(points, axis=0)
    way = np.concatenate([way[:1], way])
    return s, np.concatenate([points, way / np.maximum(np.hypot(*way.T), 1e-300)[:, None]], axis=1)


def _beside(here: Array, other: Array, near: float) -> np.ndarray:
    """Whether samples (..., 4) lie beside others: `near` across their direction, and no more than a step along it."""
    x, y = other[..., 0] - here[..., 0], other[..., 1] - here[..., 1]
    across = x * other[..., 3] - y * other[..., 2]
    forward = x * other[..., 2] + y * other[..., 3]
    # a cell remembers one of its samples only: the next one may be one and a half steps off
    return np.asarray((np.abs(across) <= near) & (np.abs(forward) <= 1.5 * near))


def _doubled(cells: np.ndarray, here: Array, around: np.ndarray, near: float) -> np.ndarray:
    """(n,) where a line runs on an earlier part of itself that is no such place itself."""
    order = np.argsort(cells, kind="stable")
    ranked = cells[order]
    at = np.minimum(np.searchsorted(ranked, cells[:, None] + around), len(cells) - 1)
    first = np.where(ranked[at] == cells[:, None] + around, order[at], len(cells))  # the earliest sample in the cell
    result = np.zeros(len(cells), dtype=bool)
    # four steps along the line are two on either side of where it turns back
    for i, j in zip(*np.nonzero(first < np.arange(len(cells))[:, None] - 4), strict=True):
        before = first[i, j]
        if not result[before] and not result[i]:
            result[i] = _beside(here[i], here[before], near)
    return result


def _kept(covered: np.ndarray, s: Array, ring: bool) -> list[tuple[float, float]] | None:
    """Stretches (from, to) [m along the line] that are drawn; None: all of it.

    On a closed line the last one may run on beyond the start.
    """
    if not covered.any():
        return None
    if covered.all():
        return []
    edges = np.nonzero(np.diff(np.concatenate([[False], covered, [False]]).astype(int)))[0].reshape(-1, 2)
    runs = []
    for a, b in edges.tolist():  # samples a..b-1 are covered
        outer = not ring and (a == 0 or b == len(s))
        if s[b - 1] - s[a] >= (END if outer else INSIDE):
            runs.append((float(s[a]), float(s[b - 1])))
    if not runs:
        return None
    # a crumb of four steps has ink two and a half steps beside its middle
    crumb = 4.5 * float(s[1])
    if ring:
        gaps = zip(runs, [*runs[1:], (runs[0][0] + float(s[-1]), 0.0)], strict=True)
        return [(run[1], after[0]) for run, after in gaps if after[0] - run[1] > crumb]
    starts, stops = [0.0, *(b for _, b in runs)], [*(a for a, _ in runs), float(s[-1])]
    return [(a, b) for a, b in zip(starts, stops, strict=True) if b - a > crumb]


def _part(line: Array, start: float, stop: float) -> Array:
    """The line from one arc length to another [m]; beyond its length it goes round."""
    at = along(line)
    if stop > at[-1]:
        line, at = np.concatenate([line, line[1:]]), np.concatenate([at, at[-1] + at[1:]])
    return between(line, at, start, stop)
