"""Drawings whose lines are known, and how far a tracing is from them: shared by the tests of the drawing plans."""

from itertools import pairwise

import numpy as np
from scipy import spatial

from tangere.apps.drawing.strokes.strokes import Strokes


def dense(lines, step: float = 1e-4) -> np.ndarray:
    """Points at most `step` apart along polylines."""
    parts = []
    for line in lines:
        for a, b in pairwise(line):
            count = max(1, int(np.ceil(np.hypot(*(b - a)) / step)))
            parts.append(a + (b - a) * (np.arange(count + 1) / count)[:, None])
    return np.concatenate(parts)


def farthest(points, lines, step: float = 1e-4) -> float:
    """How far the farthest of the points is from the lines."""
    return float(spatial.cKDTree(dense(lines, step)).query(points)[0].max())


def chain_length(mask: np.ndarray) -> float:
    """Length of one-pixel lines: 1 for neighbours by a side, sqrt 2 by a corner that no side replaces."""
    m = np.pad(mask, 1)
    sides = (m[:, 1:] & m[:, :-1]).sum() + (m[1:] & m[:-1]).sum()
    down = m[1:, 1:] & m[:-1, :-1] & ~m[1:, :-1] & ~m[:-1, 1:]
    up = m[1:, :-1] & m[:-1, 1:] & ~m[1:, 1:] & ~m[:-1, :-1]
    return float(sides + np.sqrt(2.0) * (down.sum() + up.sum()))


def drawing(lines, size=(0.2, 0.2)) -> Strokes:
    return Strokes(tuple(np.asarray(line, float) for line in lines), size)


def random_lines(seed: int) -> Strokes:
    """Curves that cross each other and themselves."""
    rng = np.random.default_rng(seed)
    lines = []
    t = np.linspace(0.0, 1.0, 300)[:, None]
    for _ in range(rng.integers(3, 12)):
        waves = sum(
            rng.normal(size=(1, 2)) / k * np.sin(np.pi * k * t + rng.uniform(0.0, 6.0, (1, 2))) for k in (1, 2, 3, 5)
        )
        line = waves - waves.mean(axis=0)
        line *= rng.uniform(0.02, 0.07) / np.abs(line).max()
        lines.append(line + rng.uniform(-0.025, 0.025, 2))
    return drawing(lines)


def covered(mask: np.ndarray, strokes: Strokes) -> tuple[float, float]:
    """(share of a mask's pixels within 1 mm of a stroke, drawn length over the length of the mask's lines).

    The mask is that of the whole picture, which fills the drawing area.
    """
    scale = strokes.size[0] / mask.shape[1]
    rows, columns = np.nonzero(mask)
    middle = 0.5 * np.array(mask.shape[::-1])
    pixels = (np.stack([columns + 0.5, rows + 0.5], axis=1) - middle) * [scale, -scale]
    distance = spatial.cKDTree(dense(strokes.lines)).query(pixels)[0]
    return float((distance < 1e-3).mean()), strokes.draw_length / max(chain_length(mask) * scale, 1e-12)


def check_guarantee(tracing, strokes: Strokes) -> None:
    """97 % of the centre-line pixels within 1 mm at 200 mm, drawn length at most 1.1 of the centre line's."""
    share, ratio = covered(tracing.centre_line, strokes)
    assert share >= 0.97
    assert ratio <= 1.1


def skeleton_of(mask: np.ndarray) -> np.ndarray:
    """Centre lines by another algorithm than ours: the thinning of Zhang and Suen (1984), literally."""
    m = np.pad(mask, 1).astype(np.uint8)
    changed = True
    while changed:
        changed = False
        for half in (0, 1):
            p2, p3, p4, p5, p6, p7, p8, p9 = (
                np.roll(m, shift, (0, 1))
                for shift in ((1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1))
            )
            ring = (p2, p3, p4, p5, p6, p7, p8, p9, p2)
            count = sum(ring[:8])
            turns = sum((a == 0) & (b == 1) for a, b in pairwise(ring))
            one, two = (p2 * p4 * p6, p4 * p6 * p8) if half == 0 else (p2 * p4 * p8, p2 * p6 * p8)
            gone = (m == 1) & (count >= 2) & (count <= 6) & (turns == 1) & (one == 0) & (two == 0)
            m[gone] = 0
            changed |= bool(gone.any())
    return m[1:-1, 1:-1].astype(bool)
