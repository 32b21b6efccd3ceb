"""Strokes: simplified, smoothed and merged, all of it within stated distances."""

import numpy as np
import pytest

pytest.importorskip("scipy.spatial")

from drawing_truth import dense, drawing, farthest

from tangere.apps.drawing.strokes.make import _visible
from tangere.apps.drawing.strokes.merge import merged
from tangere.apps.drawing.strokes.strokes import Strokes, closed, length, simplified, smoothed
from tangere.errors import InvalidValue


def zigzags(seed: int) -> Strokes:
    rng = np.random.default_rng(seed)
    lines = [np.cumsum(rng.normal(size=(rng.integers(2, 250), 2)) * 2e-4, axis=0) for _ in range(8)]
    ring = lines[0] - lines[0].mean(axis=0)
    lines.append(np.concatenate([ring, ring[:1]]))
    return drawing(lines)


@pytest.mark.parametrize("tolerance", [5e-5, 3e-4, 2e-3])
def test_simplification_stays_within_its_tolerance_both_ways(tolerance):
    strokes = zigzags(0)
    fewer = simplified(strokes, tolerance)
    assert fewer.points < strokes.points
    for before, after in zip(strokes.lines, fewer.lines, strict=True):
        assert (before[0] == after[0]).all()
        assert (before[-1] == after[-1]).all()
        step = 1e-6 * max(1.0, length(before) / 0.05)
        assert farthest(before, [after], step) <= tolerance + step
        assert farthest(dense([after], 10 * step), [before], step) <= tolerance + step


def test_simplification_keeps_what_a_slow_one_keeps():
    def slow(line, tolerance):
        a, b = line[0], line[-1]
        along = b - a
        square = along @ along
        share = np.clip((line[1:-1] - a) @ along / square, 0, 1) if square > 0 else np.zeros(len(line) - 2)
        distance = np.hypot(*(line[1:-1] - a - share[:, None] * along).T)
        if len(line) < 3 or distance.max() <= tolerance:
            return [a, b]
        k = int(np.argmax(distance)) + 1
        return slow(line[: k + 1], tolerance)[:-1] + slow(line[k:], tolerance)

    strokes = zigzags(3)
    for before, after in zip(strokes.lines, simplified(strokes, 3e-4).lines, strict=True):
        assert np.array_equal(np.array(slow(before, 3e-4)), after)


def test_smoothing_moves_no_point_farther_than_its_tolerance_and_shortens_staircases():
    strokes = zigzags(1)
    soft = smoothed(strokes, 1e-4)
    for before, after in zip(strokes.lines, soft.lines, strict=True):
        assert np.hypot(*(after - before).T).max() <= 1e-4 * (1.0 + 1e-12)
        assert closed(before) == closed(after)
    stairs = np.stack([np.repeat(np.arange(200), 2)[1:], np.repeat(np.arange(200), 2)[:-1]], axis=1) * 2e-4
    line = drawing([stairs - stairs.mean(axis=0)])
    assert smoothed(line, 2e-4).draw_length < 1.01 * np.sqrt(2.0) * 199 * 2e-4
    assert (smoothed(line, 2e-4).lines[0][[0, -1]] == line.lines[0][[0, -1]]).all()


def test_merging_joins_near_ends_straightest_first_and_drops_doubles():
    a, b, c = [[-0.05, 0.0], [0.0, 0.0]], [[0.0001, 0.0], [0.05, 0.001]], [[0.0, 0.0002], [-0.04, 0.03]]
    result = merged(drawing([a, b, c, a[::-1], a]), 0.5e-3)
    assert sorted(len(line) for line in result.lines) == [2, 4]
    assert result.draw_length == pytest.approx(0.05 + np.hypot(0.0499, 0.001) + 1e-4 + np.hypot(0.04, 0.0298), rel=1e-9)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * 0.05
    sides = [square[[k, (k + 1) % 4]] for k in range(4)]
    whole = merged(drawing(sides), 0.5e-3)
    assert len(whole) == 1
    assert closed(whole.lines[0])
    assert whole.draw_length == pytest.approx(0.2)


def test_strokes_helpers():
    strokes = drawing([[[0.0, 0.0], [0.03, 0.04]], [[0.03, 0.0], [0.0, 0.0]]])
    assert strokes.draw_length == pytest.approx(0.08)
    assert strokes.pen_up_length == pytest.approx(0.04)
    back = strokes.reversed()
    assert (back.draw_length, back.pen_up_length) == pytest.approx((0.08, 0.04))
    assert (back.lines[0][0] == [0.0, 0.0]).all()
    turned = strokes.transformed(scale=2.0, angle=np.pi / 2, offset=(0.01, 0.0))
    assert turned.lines[0][1] == pytest.approx([0.01 - 0.08, 0.06])
    full = strokes.fitted(0.1, 0.1, margin=0.01)
    low, high = full.bounds
    assert high - low == pytest.approx([0.06, 0.08])
    assert low + high == pytest.approx([0.0, 0.0])
    with pytest.raises(InvalidValue, match="line 1"):
        drawing([[[0.0, 0.0]]])
    with pytest.raises(InvalidValue, match="size"):
        drawing([], size=(0.0, 1.0))


def test_a_dot_is_drawn_as_long_as_a_pen_can_be_seen_to_move():
    """0.3 mm along itself about its middle, level where it has no direction; at the edge it stays on the paper."""
    size = (0.2, 0.1)
    point, short, edge = (np.array(p) for p in ([(0.01, 0.02)] * 2, [(0.0, 0.0), (0.0, 1e-4)], [(0.1, 0.05)] * 2))
    drawn = _visible(Strokes((point, short, edge), size)).lines
    np.testing.assert_allclose(drawn[0], [(0.00985, 0.02), (0.01015, 0.02)], atol=1e-9)
    np.testing.assert_allclose(drawn[1], [(0.0, -1e-4), (0.0, 2e-4)], atol=1e-9)
    np.testing.assert_allclose(drawn[2], [(0.09985, 0.05), (0.1, 0.05)], atol=1e-9)
