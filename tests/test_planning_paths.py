"""Paths are over arc length: what `first` and `second` say are the derivatives, and corners are rounded as promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.kinematics.rotation import matrix_from_rotation_vector, rotation_error
from tangere.planning.branches import BRANCHES, branch_start
from tangere.planning.paths import Circle, Line, Path, Slerp, Waypoints, arc
from tangere.planning.polyline import TURN_MAX, Polyline
from tangere.types import Array

DOWN = np.diag([1.0, -1.0, -1.0])
ZIGZAG = np.array([[0, 0, 0], [0.1, 0, 0], [0.1, 0.05, 0], [0.2, 0.05, 0.03], [0.3, 0.05, 0.03], [0.3, -0.1, 0.1]])


def turns(rng: np.random.Generator, k: int) -> list[Array]:
    """Orientations that differ by about one radian from one to the next."""
    R = [DOWN]
    for _ in range(k - 1):
        R.append(matrix_from_rotation_vector(rng.normal(size=3) * 0.6) @ R[-1])
    return R


def some_paths(rng: np.random.Generator) -> dict[str, Path]:
    R = turns(rng, len(ZIGZAG))
    return {
        "line": Line((0.3, 0.1, 0.2), (0.5, -0.2, 0.4), Slerp(R[0], R[1])),
        "circle": Circle((0.7, 0.1, 0.3), 0.15, DOWN),
        "tilted": Circle.about((0.7, 0.1, 0.3), 0.2, Slerp(R[0], R[2]), normal=rng.normal(size=3)),
        "arc": arc(*rng.normal(size=(3, 3)), Slerp(R[1], R[2])),
        "polyline": Polyline(ZIGZAG, DOWN, tolerance=5e-3),
        "polyline, turning": Polyline(ZIGZAG, R, tolerance=1.0),
    }


@pytest.mark.parametrize("name", ["line", "circle", "tilted", "arc", "polyline", "polyline, turning"])
def test_derivatives_are_those_of_the_pose(name: str, rng: np.random.Generator) -> None:
    """Central differences by s; their error is h^2/6 times a third derivative: bounded by halving h (factor 4)."""
    path = some_paths(rng)[name]
    s = rng.uniform(0.01, 0.99, 400) * path.length

    def misses(h: float) -> tuple[float, float]:
        here, ahead, behind = path.at(s), path.at(s + h), path.at(s - h)
        v = np.concatenate(
            [
                (ahead.T[:, :3, 3] - behind.T[:, :3, 3]) / (2 * h),
                rotation_error(ahead.T[:, :3, :3], behind.T[:, :3, :3]) / (2 * h),
            ],
            axis=1,
        )
        a = (ahead.first - behind.first) / (2 * h)
        size = 1.0 + np.max(np.abs(here.second))
        return float(np.max(np.abs(v - here.first))), float(np.max(np.abs(a - here.second)) / size)

    coarse, fine = misses(1e-5 * path.length), misses(1e-6 * path.length)
    # ten times finer: a hundred times better, or at the rounding of a difference (1e-16 / 1e-6)
    assert fine[0] < max(2e-2 * coarse[0], 2e-9)
    assert coarse[0] < 1e-3
    # a blend's second derivative has kinks where it meets its lines: there the difference is first order
    assert fine[1] < max(0.2 * coarse[1], 2e-8)
    assert coarse[1] < 1e-2
    assert np.max(np.abs(np.linalg.norm(path.at(s).first[:, :3], axis=1) - 1.0)) < 1e-14  # arc length


def test_arc_goes_through_its_points(rng: np.random.Generator) -> None:
    """Start, via, end lie on it in this order, for arcs of all sizes; 1e-12: radii of up to 100 m."""
    angles = []
    for points in rng.normal(size=(100, 3, 3)):
        path = arc(*points, DOWN)
        s = np.linspace(0.0, path.length, 20001)
        p = path.at(s).T[:, :3, 3]
        assert p[0] == pytest.approx(points[0], abs=1e-12)
        assert p[-1] == pytest.approx(points[2], abs=1e-12)
        assert np.min(np.linalg.norm(p - points[1], axis=1)) < path.length / 20000
        angles.append(path.angle)
    assert min(angles) < np.pi < max(angles)
    with pytest.raises(InvalidValue, match="lie on a line"):
        arc((0, 0, 0), (1, 1, 1), (2, 2, 2), DOWN)


def test_circle_of_the_documents() -> None:
    """000 eq 88, and 002's parametric form; the same by their sines."""
    s = np.linspace(0.0, 1.0, 50)
    horizontal = Circle((0.7, 0.1, 0.3), 0.15, DOWN).at(s).T[:, :3, 3]
    th = s / 0.15
    assert horizontal == pytest.approx(
        np.stack([0.7 + 0.15 * np.cos(th), 0.1 + 0.15 * np.sin(th), 0.3 + 0 * th], axis=1), abs=1e-15
    )
    upright = Circle((0, 0.3561, 1.328), 0.1, DOWN, x_axis=(0, 0, 1), y_axis=(1, 0, 0)).at(s).T[:, :3, 3]
    th = s / 0.1
    assert upright == pytest.approx(
        np.stack([0.1 * np.sin(th), 0.3561 + 0 * th, 1.328 + 0.1 * np.cos(th)], axis=1), abs=1e-15
    )
    about = Circle.about((0, 0, 0), 0.1, DOWN, normal=(0, 2, 0))
    assert about.normal == pytest.approx([0, 1, 0], abs=1e-15)
    assert about.at([0.0]).T[0, :3, 3] == pytest.approx([0, 0, 0.1], abs=1e-15)


def test_blends_are_smooth_and_within_the_tolerance(rng: np.random.Generator) -> None:
    """C1 and curvature-continuous across every edge of a piece; corners missed by the tolerance at most."""
    for tolerance in (1e-4, 1e-3, 1.0):
        path = Polyline(ZIGZAG, DOWN, tolerance=tolerance)
        pieces = path.pieces
        assert pieces[0].start == 0.0
        assert pieces[-1].end == pytest.approx(path.length, rel=1e-15)
        peak = max(piece.curvature for piece in pieces)
        for one, other in itertools.pairwise(pieces):
            assert one.end == pytest.approx(other.start, abs=1e-15)
            eps = 1e-9 * path.length
            before, after = (path.at([one.end + d]) for d in (-eps, eps))
            assert np.max(np.abs(after.T - before.T)) < 3 * eps
            assert np.max(np.abs(after.first - before.first)) < 3 * eps * peak
            # d(curvature)/ds is finite (sharpness), so over 2 eps it hardly changes; circular blends jump by peak
            sharpest = max(piece.sharpness for piece in pieces)
            assert np.max(np.abs(after.second - before.second)) <= 2.01 * eps * sharpest + 1e-9 * peak
        p = path.at(np.linspace(0.0, path.length, 200001)).T[:, :3, 3]
        miss = [np.min(np.linalg.norm(p - corner, axis=1)) for corner in ZIGZAG[1:-1]]
        assert max(miss) == pytest.approx(path.deviation, abs=1e-6)  # points 3 um apart
        assert path.deviation <= tolerance * (1 + 1e-12)
    assert Polyline(ZIGZAG, DOWN, tolerance=1e-3).deviation == pytest.approx(1e-3, rel=1e-12)


def test_blend_curvature_by_formula_and_by_search(rng: np.random.Generator) -> None:
    """Largest curvature 16 sin(phi/2) / (sigma cos^4(phi/4)) as the module says, for turns of 1 to 170 degrees."""
    for phi in np.deg2rad([1, 20, 60, 90, 120, 150, 170]):
        corner = np.array([[-1, 0, 0], [0, 0, 0], [np.cos(phi), np.sin(phi), 0]])
        path = Polyline(corner, DOWN, tolerance=1e-3)
        bend = path.pieces[1]
        sigma = 1e-3 / (np.sin(phi / 2) / 80 + np.tan(phi / 2) / 30)
        if sigma * (0.2 + 1 / (30 * np.cos(phi / 2))) > 0.49:
            sigma = 0.49 / (0.2 + 1 / (30 * np.cos(phi / 2)))
        found = np.linalg.norm(path.at(np.linspace(bend.start, bend.end, 4001)).second[:, :3], axis=1)
        expected = 16 * np.sin(phi / 2) / (sigma * np.cos(phi / 4) ** 4)
        assert found.max() == pytest.approx(expected, rel=1e-5)  # 4001 points: the peak is hit within (1/4000)^2
        assert bend.curvature == pytest.approx(expected, rel=1e-12)
        turned = np.trapezoid(found, dx=(bend.end - bend.start) / 4000)
        assert turned == pytest.approx(phi, rel=1e-5)  # the curvature turns the tangent by phi in all


def test_waypoint_orientations_are_reached(rng: np.random.Generator) -> None:
    R = np.array(turns(rng, 4))
    knots = np.array([0.0, 0.2, 0.7, 1.0])
    at, w, wd = Waypoints(R, knots).at(knots)
    assert at == pytest.approx(R, abs=1e-14)
    assert np.max(np.abs(w)) == 0.0
    assert np.max(np.abs(wd)) < 1e-12
    half = Slerp(R[0], R[1]).at(np.array([0.5]))[0][0]
    assert np.linalg.norm(rotation_error(half, R[0])) == pytest.approx(np.linalg.norm(rotation_error(R[1], half)))
    with pytest.raises(InvalidValue, match="half a turn"):
        Slerp(np.eye(3), DOWN)


def test_refusals_name_the_fault() -> None:
    with pytest.raises(InvalidValue, match=r"turns back by 180.0 degrees at point 1"):
        Polyline([[0, 0, 0], [1, 0, 0], [0, 0, 0]], DOWN)
    with pytest.raises(InvalidValue, match="points 1 and 2 coincide"):
        Polyline([[0, 0, 0], [1, 0, 0], [1, 0, 0]], DOWN)
    with pytest.raises(InvalidValue, match="radius"):
        Circle((0, 0, 0), -0.1, DOWN)
    with pytest.raises(InvalidValue, match="across x_axis"):
        Circle((0, 0, 0), 0.1, DOWN, x_axis=(1, 0, 0), y_axis=(2, 0, 0))
    with pytest.raises(InvalidValue, match="apart"):
        Line((0, 0, 0), (0, 0, 0), DOWN)
    with pytest.raises(InvalidValue, match="not a rotation"):
        Line((0, 0, 0), (1, 0, 0), np.ones((3, 3)))
    assert Polyline([[0, 0, 0], [1, 0, 0], [2, 0, 0]], DOWN).length == pytest.approx(2.0, rel=1e-15)
    assert np.deg2rad(170) < TURN_MAX


def test_a_start_out_of_reach_is_named() -> None:
    T = np.eye(4)
    T[:3, 3] = 2.0, -0.5, 0.25
    with pytest.raises(InvalidValue, match=r"the start \(2.000, -0.500, 0.250\) m is out of reach by \d"):
        branch_start(tangere.robot("ur5e"), T, BRANCHES[1])
