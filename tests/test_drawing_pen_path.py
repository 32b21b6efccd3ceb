"""The pen's way: within tolerance of the stroke, smooth over its arc length, corners met exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.apps.drawing.plan.motion import AlongCurve, PenMotion
from tangere.apps.drawing.plan.pen_path import TOLERANCE, PenCurve, _curve, pen_curves
from tangere.errors import InvalidValue
from tangere.types import Array


def circle(radius: float, tolerance: float, angle: float = 2.0 * np.pi) -> Array:
    th = np.linspace(0.0, angle, int(np.ceil(angle / np.sqrt(8.0 * tolerance / radius))) + 1)
    return radius * np.stack([np.cos(th), np.sin(th)], axis=1)


def distance(points: Array, polyline: Array) -> Array:
    """Of each point from the nearest of all sides, by brute force."""
    a, way = polyline[:-1][None], np.diff(polyline, axis=0)[None]
    x = np.clip(np.sum((points[:, None] - a) * way, axis=-1) / np.maximum(np.sum(way * way, axis=-1), 1e-30), 0.0, 1.0)
    return np.linalg.norm(points[:, None] - a - x[..., None] * way, axis=-1).min(axis=1)


def walked(curves: list[PenCurve]) -> Array:
    """Every 0.05 mm and ten times between two points of the spline."""
    return np.concatenate([
        c.at(np.linspace(0.0, c.length, max(int(c.length / 5e-5), 10 * len(c.points)))).T[:, :2, 3] for c in curves
    ])  # fmt: skip


def strokes(rng: np.random.Generator) -> list[Array]:
    """Smooth and rough, long and short, regular and mean."""
    found = [
        circle(0.05, 1e-4), circle(0.002, 1e-4), circle(0.0005, 1e-4),
        np.array([(0.0, 0.0), (0.1, 0.0), (0.1, 0.1), (0.0, 0.0)]),
        np.array([(0.0, 0.0), (0.05, 0.0), (0.09, 0.03), (0.15, 0.03), (0.1501, 0.0301), (0.2, 0.1)]),
        np.array([(0.0, 0.0), (0.05, 0.0), (0.0, 0.0)]),
    ]  # fmt: skip
    for scale in (1e-4, 1e-3, 1e-2):
        found.append(np.cumsum(rng.normal(size=(60, 2)) * scale, axis=0))  # a walk without any sense
        angle = np.cumsum(rng.normal(size=80) * 0.4)
        steps = rng.uniform(0.2, 3.0, 80) * scale
        found.append(np.cumsum(steps[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), axis=0))
    return found


@pytest.mark.parametrize("tolerance", [TOLERANCE, 2e-5])
def test_the_pen_stays_within_the_tolerance_both_ways(tolerance: float) -> None:
    for line in strokes(np.random.default_rng(1)):
        curves = pen_curves(line, tolerance)
        way = walked(curves)
        # between the probed places a cubic strays no more than a few per cent farther
        assert distance(way, line).max() < 1.05 * tolerance
        # and every point of the stroke is passed, in order
        passed = np.concatenate([c.at(c.knots).T[:, :2, 3] for c in curves])
        nearest = np.argmin(np.linalg.norm(line[:, None] - passed[None], axis=-1), axis=1)
        np.testing.assert_allclose(passed[nearest], line, atol=1e-12)
        np.testing.assert_allclose(way[0], line[0], atol=1e-12)
        np.testing.assert_allclose(way[-1], line[-1], atol=1e-12)


def test_arc_length_tangent_and_curvature_belong_together() -> None:
    h = 1e-6
    for line in (circle(0.02, 1e-4, 4.0), strokes(np.random.default_rng(2))[4]):
        for curve in pen_curves(line):
            s = np.linspace(2 * h, curve.length - 2 * h, 200)
            here, before, after = curve.at(s), curve.at(s - h), curve.at(s + h)
            np.testing.assert_allclose(np.linalg.norm(here.first[:, :3], axis=1), 1.0, atol=1e-12)
            step = (after.T[:, :3, 3] - before.T[:, :3, 3]) / (2 * h)
            # h^2 times the curvature's derivative, and rounding of 1e-17/1e-6
            np.testing.assert_allclose(step, here.first[:, :3], atol=1e-6)
            bend = (after.first[:, :3] - before.first[:, :3]) / (2 * h)
            largest = max(p.curvature for p in curve.pieces)
            np.testing.assert_allclose(bend, here.second[:, :3], atol=1e-3 * largest)
            assert np.abs(here.second[:, 2]).max() == 0.0  # on the paper
            # the pieces bound the curvature where they lie, and cover the length without gaps
            assert curve.pieces[0].start == 0.0
            assert curve.pieces[-1].end == pytest.approx(curve.length, rel=1e-12)
            bound = np.array([p.curvature for p in curve.pieces])
            i = np.searchsorted([p.end for p in curve.pieces], s)
            # nine places per piece are looked at: a maximum between them is missed by 2 % at most
            bound = bound[np.minimum(i, len(bound) - 1)]
            assert np.all(np.linalg.norm(here.second[:, :3], axis=1) <= 1.02 * bound + 1e-9)


def test_a_circle_stays_round() -> None:
    """Simplified by 0.1 mm to 24 sides, a circle of 10 mm comes back within 2 um, with its curvature and length."""
    (curve,) = pen_curves(circle(0.01, 1e-4))
    way = curve.at(np.linspace(0.0, curve.length, 2000))
    assert np.abs(np.linalg.norm(way.T[:, :2, 3], axis=1) - 0.01).max() < 1e-5
    inner = np.linalg.norm(way.second[200:-200, :3], axis=1)
    np.testing.assert_allclose(inner, 100.0, rtol=0.02)
    assert curve.length == pytest.approx(2.0 * np.pi * 0.01, rel=1e-3)


def test_sharp_corners_split_and_blunt_ones_do_not() -> None:
    def legs(degrees: float) -> Array:
        a = np.deg2rad(degrees)
        return np.array([(-0.05, 0.0), (0.0, 0.0), (0.05 * np.cos(a), 0.05 * np.sin(a))])

    assert [len(pen_curves(legs(d))) for d in (20.0, 44.0, 46.0, 90.0, 179.0)] == [1, 1, 2, 2, 2]


def test_dots_and_repeated_points() -> None:
    assert pen_curves(np.zeros((3, 2))) == []
    line = np.array([(0.0, 0.0), (0.0, 0.0), (0.01, 0.0), (0.01, 0.0)])
    (curve,) = pen_curves(line)
    assert curve.length == pytest.approx(0.01)
    with pytest.raises(InvalidValue):
        pen_curves(np.zeros((3, 3)))
    with pytest.raises(InvalidValue, match="tolerance"):
        pen_curves(line, 0.0)


PACE = PenMotion()


def mean_stroke(rng: np.random.Generator) -> Array:
    """Folds, spikes, repeated points, sides from a nanometre to 50 mm."""
    points, angle = [rng.uniform(-0.1, 0.1, 2)], rng.uniform(0.0, 6.28)
    for _ in range(rng.integers(1, 14)):
        side = 10.0 ** (rng.uniform(-9.0, -3.0) if rng.random() < 0.6 else rng.uniform(-3.0, -1.3))
        kind = rng.integers(6)
        if kind == 3:  # straight back, or nearly so
            angle += np.pi + rng.normal() * 10.0 ** rng.uniform(-12.0, -1.0)
        elif kind == 4:
            angle = rng.uniform(0.0, 6.28)
        elif kind == 5:
            angle += 0.3 * rng.normal()
        onward = points[-1] + side * np.array([np.cos(angle), np.sin(angle)])
        if kind == 0:
            points.append(points[-1])
        elif kind == 1:
            points.append(points[max(-2, -len(points))])
        else:
            points += [onward, points[-1]] if kind == 2 else [onward]
    return np.array(points)


def test_folds_spikes_and_tiny_sides_are_stops_within_the_limits() -> None:
    rng = np.random.default_rng(20)
    named = [
        [(0.0, 0.0), (0.01, 0.0), (0.0, 0.0)], [(0.0, 0.0), (1e-4, 0.0), (0.0, 0.0)],
        [(0.0, 0.0), (1e-5, 0.0), (0.0, 0.0), (0.02, 0.0)], [(0.0, 0.0), (0.0, 0.0)],
        [(0.0, 0.0), (1.2e-6, 0.0), (3e-7, 0.0)], [(0.0, 0.0), (0.01, 0.0), (5e-3, 1e-9), (0.02, 0.0)],
    ]  # fmt: skip
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        for line in [np.array(points) for points in named] + [mean_stroke(rng) for _ in range(250)]:
            curves = pen_curves(line)
            spent = 0.0
            for curve in curves:
                drawn = AlongCurve(curve, PACE)
                spent += drawn.duration
                p, v, a = drawn.at(np.linspace(0.0, drawn.duration, 300))
                assert distance(p[:, :2], line).max() < 1.05 * TOLERANCE
                speed = np.linalg.norm(v, axis=1)
                assert speed.max() < 1.001 * PACE.speed
                along = np.sum(a * v, axis=1) / np.maximum(speed, 1e-12)
                across = np.sqrt(np.maximum(np.sum(a * a, axis=1) - along**2, 0.0))[speed > 1e-6]
                assert np.abs(along).max() < 1.001 * PACE.acceleration
                # the curvature is looked at in nine places of a piece
                assert across.max(initial=0.0) < 1.05 * PACE.centripetal
            # nowhere does it creep: 0.35 s for each corner, to brake and to start again, are enough
            sides = np.linalg.norm(np.diff(line, axis=0), axis=1)
            assert spent < sides.sum() / PACE.speed + 0.35 * len(line)


def test_a_winding_line_without_corners_is_drawn_without_a_stop() -> None:
    """Sides of 0.5 to 5 mm that turn by 0.6 rad as a rule: one spline in 0.1 mm of all of them, where none is sharp."""
    rng = np.random.default_rng(3)
    whole = 0
    for _ in range(40):
        step, way = rng.uniform(5e-4, 5e-3, 15), np.cumsum(np.clip(rng.normal(0.0, 0.6, 15), -1.0, 1.0))
        line = np.concatenate([np.zeros((1, 2)), np.cumsum(step[:, None] * np.stack([np.cos(way), np.sin(way)], 1), 0)])
        whole += _curve(line, 1e-4) is not None
    assert whole >= 38
