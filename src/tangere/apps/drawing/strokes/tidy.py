"""Edges of a photograph as one would draw them: one line where two run side by side, and no loose ends.

A soft edge, or a thin shadow along a border, has two edges a few pixels apart; noise leaves crumbs and hooks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes, along, between, closed, length
from tangere.types import Array

# All lengths as a share of the drawing's longer side, beyond which nothing changes: a larger drawing has larger crumbs.
# Two edges nearer than this are one, 2.8 mm of 200: six widths of a pen's line, as found good on a still life ...
BESIDE = 0.014
# ... where they run side by side for at least so far; less is where two lines meet.
TOGETHER = 0.03
# Lines within 25 degrees run side by side.
ALIKE = float(np.cos(np.deg2rad(25.0)))
# A line shorter than this with both ends in the air is a crumb, 8 mm of 200; with one end, a hook.
CRUMB, HOOK = 0.04, 0.025
# An end nearer to another line than this hangs on it: 1 mm of 200.
HANGS = 0.005


def tidied(strokes: Strokes) -> Strokes:
    """The lines without those that run beside a longer one, and without crumbs and hooks."""
    side = max(strokes.size)
    lines = _single(list(strokes.lines), BESIDE * side, TOGETHER * side)
    for _ in range(2):  # a hook may hang on a hook
        kept = _firm(lines, side)
        if not kept:
            return strokes  # crumbs are all there is: then they are the picture
        lines = kept
    return replace(strokes, lines=tuple(lines))


def _single(lines: list[Array], beside: float, together: float) -> list[Array]:
    """The lines, longest first, without the stretches beside one that is there already."""
    drawn = np.zeros((0, 4))
    result = []
    for line in sorted(lines, key=length, reverse=True):
        s, here = _samples(line, 0.25 * beside)
        low, high = here[:, :2].min(axis=0) - beside, here[:, :2].max(axis=0) + beside
        near = drawn[((drawn[:, :2] >= low) & (drawn[:, :2] <= high)).all(axis=1)]
        covered = np.zeros(len(s), dtype=bool)
        for k in range(0, len(s), 256) if len(near) else ():
            own = here[k : k + 256, None]
            close = np.hypot(own[..., 0] - near[:, 0], own[..., 1] - near[:, 1]) <= beside
            alike = np.abs(own[..., 2] * near[:, 2] + own[..., 3] * near[:, 3]) >= ALIKE
            covered[k : k + 256] = (close & alike).any(axis=1)
        covered |= _on_itself(s, here, beside, together, closed(line))
        edges = np.flatnonzero(np.diff(np.concatenate([[False], covered, [False]]).astype(int))).reshape(-1, 2)
        runs = [(float(s[a]), float(s[b - 1])) for a, b in edges.tolist() if s[b - 1] - s[a] >= together]
        if not runs:
            kept = [line]
        else:
            at = along(line)
            starts, stops = [0.0, *(b for _, b in runs)], [*(a for a, _ in runs), float(at[-1])]
            kept = [between(line, at, a, b) for a, b in zip(starts, stops, strict=True) if b - a > beside]
        result += kept
        drawn = np.concatenate([drawn, *(_samples(part, 0.25 * beside)[1] for part in kept)])
    return result


def _on_itself(s: Array, here: Array, beside: float, together: float, ring: bool) -> np.ndarray:
    """(n,) where a line comes back beside an earlier part of itself."""
    result = np.zeros(len(s), dtype=bool)
    for k in range(0, len(s), 256):
        own, at = here[k : k + 256, None], s[k : k + 256, None]
        close = np.hypot(own[..., 0] - here[:, 0], own[..., 1] - here[:, 1]) <= beside
        close &= at - s > together
        if ring:  # its start is the neighbour of its end
            close &= s + s[-1] - at > together
        alike = np.abs(own[..., 2] * here[:, 2] + own[..., 3] * here[:, 3]) >= ALIKE
        result[k : k + 256] = (close & alike).any(axis=1)
    return result


def _firm(lines: list[Array], side: float) -> list[Array]:
    """The lines without crumbs and hooks."""
    lows, highs = np.array([line.min(axis=0) for line in lines]), np.array([line.max(axis=0) for line in lines])
    far = HANGS * side
    kept = []
    for number, line in enumerate(lines):
        size = length(line)
        if not closed(line) and size < CRUMB * side:
            hangs = 0
            for end in (line[0], line[-1]):
                near = np.flatnonzero(((lows - far <= end) & (end <= highs + far)).all(axis=1))
                hangs += any(_reaches(end, lines[k], far) for k in near.tolist() if k != number)
            if hangs == 0 or (hangs == 1 and size < HOOK * side):
                continue
        kept.append(line)
    return kept


def _reaches(point: Array, line: Array, far: float) -> bool:
    """Whether a point is no farther than `far` from a line."""
    way, out = np.diff(line, axis=0), point - line[:-1]
    square = np.maximum((way * way).sum(axis=1), 1e-300)
    share = np.clip((out * way).sum(axis=1) / square, 0.0, 1.0)
    return bool((np.hypot(*(out - share[:, None] * way).T) <= far).any())


def _samples(line: Array, step: float) -> tuple[Array, Array]:
    """(lengths along the line (n,), points and unit directions (n, 4)); directions over twice the step."""
    at = along(line)
    s = np.linspace(0.0, at[-1], max(2, int(np.ceil(at[-1] / step)) + 1))
    points, ahead, back = (
        np.stack([np.interp(where, at, line[:, axis]) for axis in (0, 1)], axis=1)
        for where in (s, np.minimum(s + 2.0 * step, at[-1]), np.maximum(s - 2.0 * step, 0.0))
    )
    way = ahead - back
    return s, np.concatenate([points, way / np.maximum(np.hypot(*way.T), 1e-300)[:, None]], axis=1)
