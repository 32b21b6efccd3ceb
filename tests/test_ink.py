"""Ink: coverage and stray against brute force, and against lines moved by a known distance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tangere.apps.drawing import ink
from tangere.apps.drawing.ink import Ink, coverage, coverages, distance, ink_of, near, sampled, stray
from tangere.errors import InvalidValue
from tangere.types import Array

LINE = np.array([[-0.05, 0.0], [0.05, 0.0]])
BENT = np.array([[0.0, -0.04], [0.03, -0.04], [0.03, 0.04]])


def inked(*lines: Array, shift: tuple[float, float] = (0.0, 0.0)) -> Ink:
    """A pen at 50 mm/s along each line, 1 kHz, with pauses between."""
    points = [sampled(line, 5e-5)[0] + shift for line in lines]
    times = [10.0 * k + 1e-3 * np.arange(len(p)) for k, p in enumerate(points)]
    place = np.concatenate(points)
    return Ink(np.concatenate(times), place[:, 0], place[:, 1], np.full(len(place), 5.0))


def test_near_agrees_with_brute_force(rng: np.random.Generator) -> None:
    """Random points: the grid gives what all pairs give, but for pairs within the raster (0.02 mm) of the tolerance."""
    points, others = rng.uniform(-0.01, 0.01, (400, 2)), rng.uniform(-0.01, 0.01, (300, 2))
    away = np.min(np.linalg.norm(points[:, None] - others, axis=2), axis=1)
    clear = np.abs(away - 5e-4) > 2e-5
    assert clear.sum() > 350
    assert np.array_equal(near(points, others, 5e-4)[clear], (away <= 5e-4)[clear])
    assert 50 < np.count_nonzero(away <= 5e-4) < 350  # both answers occur
    assert not near(points, np.zeros((0, 2)), 1.0).any()


def test_distance_agrees_with_dense_sampling(rng: np.random.Generator) -> None:
    points = rng.uniform(-0.05, 0.05, (300, 2))
    dense = np.concatenate([sampled(line, 1e-5)[0] for line in (LINE, BENT)])
    expected = np.min(np.linalg.norm(points[:, None] - dense, axis=2), axis=1)
    found = distance(points, [LINE, BENT], reach=0.2)
    assert np.max(np.abs(found - expected)) < 1e-5  # the sampling: half a step sideways at most
    assert np.all(distance(points, [LINE], reach=1e-3) <= 1e-3)


def test_distance_is_the_same_in_bundles_of_any_size(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that cross many cells, a dot among them, points far away; against every segment by itself."""
    lines = [rng.uniform(-0.05, 0.05, (30, 2)), np.zeros((2, 2))]
    points = np.concatenate([rng.uniform(-0.06, 0.06, (500, 2)), [[0.0, 0.0], [3.0, -2.0]]])
    expected = np.full(len(points), 5e-3)
    for a, b in [pair for line in lines for pair in itertools.pairwise(line)]:
        share = np.clip((points - a) @ (b - a) / max(float((b - a) @ (b - a)), 1e-30), 0.0, 1.0)
        expected = np.minimum(expected, np.linalg.norm(points - a - share[:, None] * (b - a), axis=1))
    whole = distance(points, lines)
    assert np.max(np.abs(whole - expected)) < 1e-15
    assert 100 < np.count_nonzero(expected < 5e-3) < len(points) - 5
    monkeypatch.setattr(ink, "BUNDLE", 40)
    assert np.array_equal(distance(points, lines), whole)


def test_many_points_are_looked_for_in_parts(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    points, others = rng.uniform(-0.01, 0.01, (400, 2)), rng.uniform(-0.01, 0.01, (300, 2))
    at_once = near(points, others, 5e-4), distance(points, [LINE, BENT])
    monkeypatch.setattr(ink, "_NEAR_AT_ONCE", 70)
    monkeypatch.setattr(ink, "_AWAY_AT_ONCE", 110)
    assert np.array_equal(near(points, others, 5e-4), at_once[0])
    assert np.array_equal(distance(points, [LINE, BENT]), at_once[1])


def test_a_line_moved_by_less_than_the_tolerance_is_covered_and_by_more_it_is_stray() -> None:
    assert coverage([LINE, BENT], inked(LINE, BENT)) == 1.0
    assert stray([LINE, BENT], inked(LINE, BENT)) == 0.0
    assert coverage([LINE], inked(LINE, shift=(0.0, 4.5e-4))) == 1.0
    assert coverage([LINE], inked(LINE, shift=(0.0, 5.5e-4))) == 0.0
    assert stray([LINE], inked(LINE, shift=(0.0, 4.5e-4))) == 0.0
    assert stray([LINE], inked(LINE, shift=(0.0, 5.5e-4))) == 1.0


def test_half_a_line_is_half_covered_and_extra_ink_is_stray_by_length() -> None:
    half = np.array([[-0.05, 0.0], [0.0, 0.0]])
    assert coverage([LINE], inked(half)) == pytest.approx(0.505, abs=0.002)  # 0.5 mm beyond its end
    extra = np.array([[0.0, 0.01], [0.1, 0.01]])
    assert stray([LINE], inked(LINE, extra)) == pytest.approx(0.5, abs=0.002)


def test_a_resting_pen_is_a_dot_and_counts_as_one() -> None:
    """10 s at one stray place weigh 0.02 mm, not 10000 samples."""
    times = np.asarray(np.arange(10000) * 1e-3 + 15.0, dtype=np.float64)
    dot = Ink(times, np.full(10000, 0.0), np.full(10000, 0.03), np.full(10000, 1.0))
    line = inked(LINE)
    both = Ink(*(np.concatenate((getattr(line, k), getattr(dot, k))) for k in ("t", "x", "y", "force")))
    assert 0.0 < stray([LINE], both) < 1e-3
    assert stray([LINE], Ink(*np.zeros((4, 0)))) == 0.0
    assert coverage([LINE], Ink(*np.zeros((4, 0)))) == 0.0


def test_ink_of_a_run_is_in_canvas_coordinates_where_the_paper_pushed() -> None:
    """A canvas on a wall: x, y along its axes, force along its normal, samples without force left out."""
    T = np.array([[0.0, 0.0, -1.0, 0.8], [-1.0, 0.0, 0.0, 0.1], [0.0, 1.0, 0.0, 0.5], [0.0, 0.0, 0.0, 1.0]])
    place = np.array([[0.01, 0.02, -1e-4], [0.03, -0.04, 0.0], [0.0, 0.0, 0.01]])
    tip = place @ T[:3, :3].T + T[:3, 3]
    wrench = np.zeros((3, 6))
    wrench[:2, :3] = np.array([[0.5, 0.0, 4.0], [0.0, -1.0, 6.0]]) @ T[:3, :3].T
    ink = ink_of(np.array([0.0, 1.0, 2.0]), tip, wrench, T)
    assert ink.points == pytest.approx(place[:2, :2])
    assert ink.force == pytest.approx([4.0, 6.0])
    assert [len(part) for part in ink.strokes()] == [1, 1]
    with pytest.raises(InvalidValue, match="one length"):
        Ink(np.zeros(2), np.zeros(3), np.zeros(2), np.zeros(2))


def test_each_line_by_itself_and_all_together_are_one_measure(rng: np.random.Generator) -> None:
    """Against a search of its own for each line; a dot counts as 0 or 1, and weighs nothing among lines."""
    half = np.array([[-0.05, 0.0], [0.0, 0.0]])
    wander = np.cumsum(rng.uniform(-4e-3, 4e-3, (12, 2)), axis=0) + [0.0, 0.05]
    dot, far = np.array([[0.03, -0.04]] * 2), np.array([[0.4, 0.4]] * 2)
    lines, ink = [LINE, BENT, wander, dot, far], inked(half, BENT, wander[:7])
    shares = coverages(lines, ink)
    assert shares == pytest.approx([coverage([line], ink) for line in lines])
    assert shares[0] == pytest.approx(0.515, abs=0.002)  # 0.5 mm beyond the ink's end, 1 mm where BENT crosses
    assert shares[[1, 3, 4]].tolist() == [1.0, 1.0, 0.0]
    assert 0.3 < shares[2] < 0.9
    lengths = np.array([np.hypot(*np.diff(line, axis=0).T).sum() for line in lines])
    assert coverage(lines, ink) == pytest.approx(shares @ lengths / lengths.sum())
    assert coverage([dot, far], ink) == 0.5
    whole = [LINE * share for share in rng.uniform(0.1, 1.0, 50)]
    assert coverage(whole, inked(LINE)) == 1.0  # to the last bit: never above
