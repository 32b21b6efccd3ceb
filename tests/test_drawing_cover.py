"""What is drawn already is not drawn again, and what is left out has ink beside it."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.apps.drawing.strokes.make import strokes_of
from tangere.apps.drawing.strokes.merge import NEAR, uncovered, unfolded
from tangere.apps.drawing.strokes.strokes import Strokes, closed, length
from tangere.types import Array

SQUARE = 0.05 * np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)])


def on(*lines: Array | list[tuple[float, float]]) -> Strokes:
    return Strokes(tuple(np.array(line) for line in lines), (0.2, 0.2))


def dense(strokes: Strokes, step: float = 2e-5) -> Array:
    found = []
    for line in strokes.lines:
        s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
        at = np.linspace(0.0, s[-1], int(s[-1] / step) + 2)
        found.append(np.stack([np.interp(at, s, line[:, i]) for i in (0, 1)], axis=1))
    return np.concatenate(found)


def test_a_line_on_the_side_of_a_square_is_dropped_and_the_square_stays_closed() -> None:
    for lines in ([SQUARE, [(-0.02, -0.05), (0.03, -0.05)]], [[(-0.02, -0.05), (0.03, -0.05)], SQUARE]):
        left = uncovered(on(*lines)).lines
        assert len(left) == 1
        assert closed(left[0])


def test_a_line_that_leaves_a_side_keeps_the_rest() -> None:
    left = uncovered(on(SQUARE, [(-0.02, -0.05), (0.03, -0.05), (0.03, 0.01)])).lines
    assert len(left) == 2
    assert length(left[1]) == pytest.approx(0.06, abs=2 * NEAR)


def test_two_squares_side_by_side_share_their_side() -> None:
    left = uncovered(on(SQUARE, SQUARE + [0.1, 0.0] - [0.0, 0.0]).transformed(scale=0.6, size=(0.2, 0.2)))
    assert len(left) == 2
    assert left.draw_length == pytest.approx(7 * 0.06, abs=4 * NEAR)


@pytest.mark.parametrize("back", [0.0, 0.4, 1.0])
def test_there_and_back_is_drawn_once(back: float) -> None:
    left = uncovered(on([(0.0, 0.0), (0.05, 0.0), (0.05 * (1.0 - back), 1e-5)]))
    assert left.draw_length == pytest.approx(0.05, abs=6 * NEAR)


def test_crossings_corners_and_neighbours_stay_as_they_are() -> None:
    fan = [[(0.0, 0.0), (0.05 * np.cos(a), 0.05 * np.sin(a))] for a in np.deg2rad([0.0, 10.0, 25.0, 90.0, 200.0])]
    star = [(0.05 * np.cos(a), 0.05 * np.sin(a)) for a in np.arange(6) * 0.8 * np.pi]
    near = [[(-0.08, y), (0.08, y)] for y in (0.06, 0.06 + 2 * NEAR)]
    for strokes in (on(*fan), on(star), on(*near)):
        left = uncovered(strokes)
        assert left.draw_length == pytest.approx(strokes.draw_length, rel=0.01)  # ends of the narrowest fan
        assert len(left) == len(strokes)


def test_what_is_left_out_has_ink_beside_it() -> None:
    """Random walks on a coarse lattice run over each other all the time."""
    spatial = pytest.importorskip("scipy.spatial")
    for seed in range(8):
        rng = np.random.default_rng(seed)
        steps = rng.choice([-1.0, 0.0, 1.0], size=(6, 40, 2)) * 0.004
        steps[..., 1] += rng.normal(scale=1e-5, size=steps.shape[:2])  # not quite on each other
        strokes = on(*np.clip(np.cumsum(steps, axis=1), -0.1, 0.1))
        left = uncovered(strokes)
        assert left.draw_length < 0.95 * strokes.draw_length
        away, _ = spatial.cKDTree(dense(left)).query(dense(strokes))
        # NEAR across the line, and half a crumb or one and a half steps of its samples along it
        assert away.max() < 3.0 * NEAR
        assert min(length(line) for line in left.lines) > 4.0 * NEAR


def test_many_lines_side_by_side_do_not_drop_each_other_in_a_row() -> None:
    lines = [[(-0.05, y), (0.05, y)] for y in np.arange(60) * 0.4 * NEAR]
    left = uncovered(on(*lines))
    heights = sorted(line[0, 1] for line in left.lines)
    assert 15 < len(left) < 35
    assert max(np.diff(heights)) <= 2.1 * NEAR


def test_ends_that_go_back_are_unfolded() -> None:
    a, b, c = (0.0, 0.0), (3e-4, 0.0), (3e-4, 0.01)
    assert [len(line) for line in unfolded(on([a, b, a])).lines] == [2]
    assert [len(line) for line in unfolded(on([b, a, b, c])).lines] == [3]
    assert [len(line) for line in unfolded(on([a, b, c])).lines] == [3]


def test_an_svg_with_a_line_on_a_shape() -> None:
    svg = (
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50"><path d="M10 10H90V40H10Z" fill="none" '
        b'stroke="#000"/><path d="M20 10H50" stroke="#000"/><rect x="10" y="10" width="80" height="30" fill="none" '
        b'stroke="red"/><path d="M20 25L60 25L20 25" stroke="#000"/></svg>'
    )
    strokes = strokes_of(svg, 0.2)
    assert len(strokes) == 2
    assert strokes.draw_length == pytest.approx(2 * 0.22 + 0.08, abs=6 * NEAR)
