"""Edges as one would draw them: of two side by side one stays, crumbs and hooks go, all else stays as it is."""

from __future__ import annotations

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes, length
from tangere.apps.drawing.strokes.tidy import BESIDE, CRUMB, HOOK, tidied

SIZE = (0.2, 0.2)


def level(y: float, left: float = -0.08, right: float = 0.08) -> np.ndarray:
    return np.stack([np.linspace(left, right, 60), np.full(60, y)], axis=1)


def test_of_two_edges_side_by_side_the_longer_one_stays() -> None:
    long, short = level(0.0), level(0.9 * BESIDE * 0.2, -0.05, 0.05)
    for lines in ((long, short), (short, long), (short[::-1], long)):
        (kept,) = tidied(Strokes(lines, SIZE)).lines
        assert length(kept) == length(long)
    apart = Strokes((long, level(1.1 * BESIDE * 0.2)), SIZE)
    assert len(tidied(apart)) == 2


def test_what_crosses_or_leaves_a_line_stays_whole() -> None:
    cross = np.stack([np.zeros(60), np.linspace(-0.05, 0.05, 60)], axis=1)
    branch = np.stack([np.linspace(0.0, 0.05, 60), np.linspace(0.0, 0.05, 60)], axis=1)
    slanted = np.stack([np.linspace(-0.07, -0.02, 60), np.linspace(-0.02, 0.022, 60)], axis=1)  # at 40 degrees
    lines = (level(0.0), cross, branch, slanted)
    kept = tidied(Strokes(lines, SIZE))
    assert sorted(length(line) for line in kept.lines) == sorted(length(line) for line in lines)


def test_only_the_stretch_beside_the_other_is_left_out() -> None:
    """A line that comes from afar, runs 60 mm beside another and goes away again becomes two."""
    x = np.linspace(-0.09, 0.09, 400)
    near = np.where(np.abs(x) < 0.03, 0.5 * BESIDE * 0.2, 0.5 * BESIDE * 0.2 + (np.abs(x) - 0.03))
    both = tidied(Strokes((level(0.0, -0.2, 0.2), np.stack([x, near], axis=1)), (0.4, 0.2)))
    assert len(both) == 3
    wings = [line for line in both.lines if np.ptp(line[:, 1]) > 0.0]
    assert all(abs(line[:, 0]).min() > 0.025 for line in wings)


def test_a_line_that_comes_back_beside_itself_is_drawn_once() -> None:
    back = level(0.5 * BESIDE * 0.2)[::-1]
    kept = tidied(Strokes((np.concatenate([level(0.0), back]),), SIZE))
    assert sum(length(line) for line in kept.lines) < 1.1 * length(back)
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    ring = 0.03 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    ring[-1] = ring[0]
    (same,) = tidied(Strokes((ring,), SIZE)).lines
    assert length(same) == length(ring)


def test_crumbs_and_hooks_go_and_bridges_and_rings_stay() -> None:
    crumb = level(0.05, 0.0, 0.9 * CRUMB * 0.2)
    hook = np.array([[0.02, 0.0], [0.02, -0.9 * HOOK * 0.2]])
    bridge = np.array([[0.04, 0.0], [0.04, 0.005]])
    turn = np.linspace(0.0, 2.0 * np.pi, 30)
    ring = np.stack([-0.05 + 1e-3 * np.cos(turn), -0.05 + 1e-3 * np.sin(turn)], axis=1)
    ring[-1] = ring[0]
    rails = (level(0.0), level(0.005))
    kept = tidied(Strokes((*rails, crumb, hook, bridge, ring), SIZE)).lines
    lengths = sorted(round(length(line), 6) for line in kept)
    assert lengths == sorted(round(length(line), 6) for line in (*rails, bridge, ring))


def test_a_picture_of_crumbs_alone_stays() -> None:
    few = Strokes((level(0.05, 0.0, 0.005), level(-0.05, 0.0, 0.004)), SIZE)
    assert tidied(few).lines == few.lines
