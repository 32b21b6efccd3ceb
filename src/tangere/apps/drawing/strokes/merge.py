"""Lines that meet at their ends become one: fewer times the pen is lifted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.apps.drawing.strokes.nearest import nearest
from tangere.apps.drawing.strokes.simplify import positive
from tangere.apps.drawing.strokes.strokes import Strokes, closed, length
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

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j, g in zip(a[rank].tolist(), b[rank].tolist(), gap[rank].tolist(), strict=True):
        if link[i] >= 0 or link[j] >= 0:
            continue
        p, r = root(i >> 1), root(j >> 1)
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
