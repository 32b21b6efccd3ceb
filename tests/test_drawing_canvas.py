"""The canvas: its frame however it is given, default places for every arm, and its correction by touch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere
from tangere.apps.drawing.plan.canvas import Canvas, fit_plane
from tangere.apps.drawing.plan.fit import assess
from tangere.apps.drawing.plan.motion import PenMotion
from tangere.apps.drawing.plan.reach import paper_points
from tangere.errors import InvalidValue
from tangere.plants.scene.scene import Pen

URS = tuple(name for name in tangere.models() if name.startswith("ur"))


def with_pen(name: str) -> tangere.Robot:
    pen = Pen()
    return tangere.robot(name, tool=(0.0, 0.0, pen.length), payload=pen.payload())


def any_canvas(rng: np.random.Generator) -> Canvas:
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng.integers(1 << 30)).as_matrix()
    T[:3, 3] = rng.uniform(-1.0, 1.0, 3)
    return Canvas(T, (0.3, 0.2))


def test_to_base_and_back() -> None:
    rng = np.random.default_rng(1)
    canvas = any_canvas(rng)
    points = rng.uniform(-0.2, 0.2, (20, 3))
    base = canvas.to_base(points)
    # by the pose itself, one point at a time
    by_hand = np.array([(canvas.T_base_canvas @ np.append(p, 1.0))[:3] for p in points])
    np.testing.assert_allclose(base, by_hand, atol=1e-15)
    np.testing.assert_allclose(canvas.from_base(base), points, atol=1e-15)
    np.testing.assert_allclose(canvas.to_base(points[:, :2]), canvas.to_base(points * (1, 1, 0)), atol=1e-15)


def test_pose_text_is_what_rtde_gives() -> None:
    rng = np.random.default_rng(2)
    vector = rng.normal(size=3)
    canvas = Canvas.from_pose(",".join(str(x) for x in (0.4, -0.1, 0.2, *vector)))
    np.testing.assert_allclose(canvas.R, Rotation.from_rotvec(vector).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(Canvas.from_pose(canvas.as_pose()).T_base_canvas, canvas.T_base_canvas, atol=1e-14)


@pytest.mark.parametrize("text", ["1,2,3", "a,b,c,d,e,f", "400,0,100,0,0,0", "0.4,0,nan,0,0,0", ""])
def test_wrong_poses_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="canvas pose"):
        Canvas.from_pose(text)


def test_three_points_give_the_paper_they_are_corners_of() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        canvas = any_canvas(rng)
        w, h = 0.5 * canvas.size[0], 0.5 * canvas.size[1]
        corners = canvas.to_base([(-w, -h), (w, -h), (-w, h)])
        again = Canvas.from_points(corners)
        np.testing.assert_allclose(again.T_base_canvas, canvas.T_base_canvas, atol=1e-13)
        np.testing.assert_allclose(again.size, canvas.size, atol=1e-13)
        # a third point that is not square above the first, nor a corner: the same plane and directions
        slanted = np.array([corners[0], corners[1], canvas.to_base((0.05, 0.13))])
        again = Canvas.from_points(slanted, canvas.size)
        np.testing.assert_allclose(again.T_base_canvas, canvas.T_base_canvas, atol=1e-12)


def test_points_in_line_or_on_one_spot_give_no_plane() -> None:
    with pytest.raises(InvalidValue, match="line"):
        Canvas.from_points([(0, 0, 0), (0.1, 0, 0), (0.2, 0.001, 0)])
    with pytest.raises(InvalidValue, match="apart"):
        Canvas.from_points([(0, 0, 0), (0.001, 0, 0), (0, 0.2, 0)])
    with pytest.raises(InvalidValue, match="plane"):
        fit_plane([(0, 0, 0), (0.1, 0, 0), (0.2, 0, 0), (0.3, 0.001, 0)])
    with pytest.raises(InvalidValue, match="three"):
        fit_plane([(0, 0, 0), (0.1, 0, 0)])


@pytest.mark.parametrize("size", [(0.0, 0.1), (200.0, 200.0), (np.nan, 0.1), (-0.1, 0.1)])
def test_wrong_sizes_are_refused(size: tuple[float, float]) -> None:
    with pytest.raises(InvalidValue, match="size"):
        Canvas(np.eye(4), size)


@pytest.mark.parametrize("name", URS)
def test_default_places_fit_every_arm(name: str) -> None:
    """Table, wall and a 30 degree desk; right is right and up is up for one who looks at them from the robot."""
    robot = with_pen(name)
    for canvas, normal in (
        (Canvas.table(robot), (0.0, 0.0, 1.0)),
        (Canvas.wall(robot), (-1.0, 0.0, 0.0)),
        (Canvas.tilted(robot, np.deg2rad(30.0)), (-0.5, 0.0, np.sqrt(0.75))),
    ):
        np.testing.assert_allclose(canvas.normal, normal, atol=1e-12)
        np.testing.assert_allclose(canvas.R[:, 0], (0.0, -1.0, 0.0), atol=1e-12)
        fit = assess(robot, canvas, paper_points(canvas.size), PenMotion())
        assert not fit.problems
        assert min(fit.room.values()) > 1.5  # enough to spare for a canvas that is not quite where it should be
        assert fit.force_max > 20.0


def test_azimuth_turns_the_place_about_the_base() -> None:
    robot = with_pen("ur5e")
    ahead, aside = Canvas.wall(robot), Canvas.wall(robot, azimuth=-0.5 * np.pi)
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler("z", -0.5 * np.pi).as_matrix()
    np.testing.assert_allclose(aside.T_base_canvas, turn @ ahead.T_base_canvas, atol=1e-9)


def test_correction_finds_a_shifted_and_tilted_paper() -> None:
    """3 mm and 2 degrees, exactly: x, y and the turn about the normal are not touch's to tell, and stay."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        nominal = any_canvas(rng)
        tilt = Rotation.from_rotvec(np.deg2rad(2.0) * np.array((*rng.normal(size=2), 0.0)))
        error = np.eye(4)
        error[:3, :3], error[2, 3] = tilt.as_matrix(), rng.uniform(-3e-3, 3e-3)
        true = Canvas(nominal.T_base_canvas @ error, nominal.size)
        touched = true.to_base(rng.uniform(-0.1, 0.1, (5, 2)))
        found = nominal.corrected(touched)
        assert np.abs(true.from_base(found.to_base(rng.uniform(-0.1, 0.1, (9, 2))))[:, 2]).max() < 1e-12
        np.testing.assert_allclose(found.normal, true.normal, atol=1e-12)
        np.testing.assert_allclose(nominal.from_base(found.origin)[:2], 0.0, atol=1e-12)
        fit = nominal.touched(touched)
        assert fit.rms < 1e-12
        np.testing.assert_allclose(fit.tilt, np.arccos(nominal.normal @ true.normal), atol=1e-9)


def test_points_that_scatter_more_than_a_touch_say_so() -> None:
    """sigma^2 = sum e^2/(k - 3) where that is more than a touch's: seven points, up and down by the same height."""
    xy = np.array([(0.1, 0.0), (0.05, 0.08), (-0.05, 0.08), (-0.1, 0.0), (-0.05, -0.08), (0.05, -0.08), (0.0, 0.0)])
    z = 1e-3 * np.array((1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.0))
    fit = fit_plane(np.column_stack([xy, z]), touch_error=1e-5)
    e = z - np.column_stack([np.ones(7), xy]) @ np.linalg.lstsq(np.column_stack([np.ones(7), xy]), z, rcond=None)[0]
    assert fit.touch_error == pytest.approx(np.sqrt(np.sum(e**2) / 4.0), rel=1e-9)
    assert fit.touch_error > 1e-3


def test_uncertainty_of_the_fit_is_what_repeated_touches_scatter() -> None:
    """1000 noisy probings of five points: the scatter of the height at a corner against its stated deviation."""
    rng = np.random.default_rng(5)
    xy = np.array(((-0.08, -0.08), (0.08, -0.08), (0.08, 0.08), (-0.08, 0.08), (0.0, 0.0)))
    corner = np.array((0.1, 0.1))
    sigma = 1e-4
    heights = []
    for _ in range(1000):
        z = 0.002 + xy @ (0.01, -0.02) + sigma * rng.normal(size=5)
        fit = fit_plane(np.column_stack([xy, z]), touch_error=sigma)
        heights.append(fit.height_at(corner))
    stated = fit_plane(np.column_stack([xy, xy @ (0.01, -0.02)]), touch_error=sigma).uncertainty_at(corner)
    # the scatter of a standard deviation from 1000 samples is 2.2 %: 8 % is more than three of them
    assert np.std(heights) == pytest.approx(float(stated), rel=0.08)
    assert np.mean(heights) == pytest.approx(0.002 - 0.001, abs=4 * stated / np.sqrt(1000))


def test_a_steep_plane_is_no_correction() -> None:
    with pytest.raises(InvalidValue, match="another surface"):
        fit_plane([(0, 0, 0), (0.1, 0, 0.3), (0, 0.1, 0)])
