"""Whether a drawing fits, why not, and where it would."""

from __future__ import annotations

import numpy as np
import pytest
from test_drawing_canvas import with_pen

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.fit import FRICTION, TORQUE_SHARE, Box, DoesNotFit, assess, force_limit, offers, tip_mass
from tangere.apps.drawing.plan.motion import PenMotion
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.plan.reach import (
    LinkSpheres,
    arm_length,
    paper_points,
    pen_orientation,
    postures,
    surface_distance,
    tip_poses,
)
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.model.link_shapes import link_shapes


def square(side: float) -> Strokes:
    h = 0.5 * side
    return Strokes((np.array([(-h, -h), (h, -h), (h, h), (-h, h), (-h, -h)]),), (side, side))


def test_rooms_fall_to_zero_at_the_singularities_they_name() -> None:
    """The postures of random joints are found again; where J loses rank, one of the three rooms says so."""
    robot = with_pen("ur5e")
    rng = np.random.default_rng(1)
    for joint, value, kind in ((4, 0.0, "wrist"), (2, 0.02, "elbow")):
        q = rng.uniform(-2.0, 2.0, 6)
        for angle in (value, 0.05, 0.3):
            q[joint] = angle
            found = postures(robot, robot.pose(q)[None])
            near = np.min(np.where(found.valid, found.room[kind], np.inf))
            assert near <= abs(np.sin(angle)) / 0.2 + 1e-6
    # the smallest singular value of J is bounded by the rooms: where all three are ample it is not small
    T = robot.pose(rng.uniform(-np.pi, np.pi, (4000, 6)))
    found = postures(robot, T[:, None])
    room = np.min([found.room[k] for k in ("wrist", "elbow", "shoulder")], axis=0)[:, 0]
    J = robot.jacobian(found.q[:, 0])
    sigma = np.linalg.svd(J, compute_uv=False)[..., -1]
    good = found.valid[:, 0] & (room > 2.0)
    bad = found.valid[:, 0] & (sigma < 0.005)
    assert good.sum() > 1000
    assert sigma[good].min() > 0.02
    assert bad.sum() > 20
    assert room[bad].max() < 1.0


def test_postures_reach_the_poses_without_a_jump() -> None:
    robot = with_pen("ur10e")
    canvas = Canvas.wall(robot, azimuth=2.5)
    points = paper_points(canvas.size)
    T = tip_poses(canvas.T_base_canvas, pen_orientation(0.2, spin=1.0), points)
    found = postures(robot, T)
    for lane in range(8):
        if found.valid[:, lane].all():
            np.testing.assert_allclose(robot.pose(found.q[:, lane]), T, atol=1e-9)
            assert np.abs(np.diff(found.q[:9, lane], axis=0)).max() < 1.5
    # the pen stands on the paper under the lean asked for, its upper end towards the lower edge
    pen_axis = pen_orientation(0.2, spin=1.0)[:, 2]
    np.testing.assert_allclose(np.arccos(-pen_axis[2]), 0.2, atol=1e-12)
    assert pen_axis[1] > 0.19  # from the upper end to the tip: upwards on the paper
    np.testing.assert_allclose(pen_orientation()[:, 2], (0.0, 0.0, -1.0), atol=1e-15)


def test_force_limit_is_where_a_torque_reaches_its_share() -> None:
    """Computed twice: the closed form, and the torques at that force with friction in the worst direction."""
    robot = with_pen("ur5e")
    rng = np.random.default_rng(2)
    q = rng.uniform(-2.0, 2.0, (50, 6))
    normal = np.array((0.0, 0.6, 0.8))
    across = np.linalg.svd(normal[None])[2][1:]
    for one in q:
        limit, joint, _ = force_limit(robot, one[None], normal)
        g = robot.gravity_torque(one)
        room = TORQUE_SHARE * robot.tau_max
        if limit <= 0.0:
            assert np.any(np.abs(g) > room)
            continue
        J = robot.jacobian(one)[:3]
        angles = np.linspace(0.0, 2.0 * np.pi, 721)
        worst = np.max(
            [
                np.abs(g - J.T @ (limit * (normal + FRICTION * (np.cos(a) * across[0] + np.sin(a) * across[1])))) / room
                for a in angles
            ],
            axis=0,
        )
        assert worst.max() == pytest.approx(1.0, abs=1e-4)  # 721 directions: off by at most (0.25 degrees)^2/2
        assert int(np.argmax(worst)) + 1 == joint


def test_tip_mass_is_force_over_acceleration() -> None:
    robot = with_pen("ur5e")
    q = np.random.default_rng(3).uniform(-2.0, 2.0, (20, 6))
    normal = np.array((0.0, 0.0, 1.0))
    force = 7.0
    tau = np.swapaxes(robot.jacobian(q), -1, -2) @ (0.0, 0.0, force, 0.0, 0.0, 0.0)
    qdd = robot.forward_dynamics(q, np.zeros_like(q), robot.gravity_torque(q) + tau)
    a = (robot.jacobian(q) @ qdd[:, :, None])[:, 2, 0]
    np.testing.assert_allclose(tip_mass(robot, q, normal), force / a, rtol=1e-9)


def test_link_spheres_cover_the_shapes() -> None:
    """Points on the links' axes, from the shapes' own frames: none nearer to a plane than the spheres say."""
    robot = with_pen("ur10e")
    spheres = LinkSpheres.of(robot)
    q = np.random.default_rng(4).uniform(-2.0, 2.0, 6)
    frames = robot.link_poses(q)
    canvas = Canvas.from_pose("0.3,0.2,0.1,0.3,-0.2,0.1", border=5.0)
    distance, link = surface_distance(
        spheres, spheres.places(frames), canvas.T_base_canvas, canvas.size, canvas.border
    )
    nearest = []
    for i, parts in enumerate(link_shapes(robot.model)):
        T = frames[i] @ np.linalg.inv(robot.model.joints[i].T_joint_link)
        for part in parts:
            if part.colour != "cap" and i > 0:
                ends = np.array([part.start, part.end]) @ T[:3, :3].T + T[:3, 3]
                nearest.append((canvas.from_base(ends)[:, 2].min() - part.radius, i))
    by_hand, owner = min(nearest)
    assert float(distance) == pytest.approx(by_hand, abs=1e-12)  # a plane is nearest to an end of a segment
    assert int(link) == owner


def test_beside_the_board_there_is_nothing_to_meet() -> None:
    robot = with_pen("ur5e")
    spheres = LinkSpheres.of(robot)
    places = spheres.places(robot.link_poses(np.zeros(6)))
    far = np.eye(4)
    far[:3, 3] = (5.0, 0.0, 0.5)  # a table higher than the arm, five metres away
    distance, _ = surface_distance(spheres, places, far, (0.2, 0.2), 0.0)
    assert distance > 3.0
    far[:3, 3] = (-0.3, 0.0, 0.5)  # the same under... over the arm: it is inside the block
    distance, _ = surface_distance(spheres, places, far, (0.2, 0.2), 0.0)
    assert distance < 0.0


CASES = {
    "far away": ("3,0,0,0,0,0", 0.2, "reach"),
    "above": ("0.5,0,1.3,0,0,0", 0.2, "reach"),
    "on the base": ("0.1,0,0,0,0,0", 0.2, "reach|axis|stretched"),
    "too large": ("0.5,0,0,0,0,0", 0.9, "."),
    "upside down": ("0.5,0,0,3.14159265,0,0", 0.2, "faces down"),
    "upside down and too near": ("0.25,0,0,2.22144147,-2.22144147,0", 0.2, "faces down"),
    "away from the robot": ("0.6,0,0.4,1.2092,1.2092,1.2092", 0.2, "."),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_says_why_and_where_it_would(case: str) -> None:
    """And the offer is true: planned there, it fits."""
    robot = with_pen("ur5e")
    pose, side, reason = CASES[case]
    canvas = Canvas.from_pose(pose, (side, side))
    drawing = square(side)
    with pytest.raises(DoesNotFit, match=reason) as caught:
        plan_drawing(robot, drawing, canvas)
    offer = caught.value.offers[0]
    assert offer is not None
    assert "It would fit" in str(caught.value)
    plan = plan_drawing(robot, drawing.transformed(scale=offer.scale), offer.canvas)
    assert min(plan.check.room.values()) >= 1.0
    if "upside down" in case:
        assert offer.flipped
        assert ("; then move it" in str(offer)) == ("too near" in case)
    if not offer.flipped:
        moved = canvas.moved(offer.shift, offer.turn, offer.scale)
        np.testing.assert_allclose(moved.T_base_canvas, offer.canvas.T_base_canvas, atol=1e-12)


def test_a_small_step_is_offered_for_a_small_miss() -> None:
    """A drawing that sticks out of reach by little is moved by little, towards the robot."""
    robot = with_pen("ur5e")
    edge = 0.92
    canvas = Canvas.from_pose((edge, 0.0, 0.0, 0.0, 0.0, -0.5 * np.pi), (0.2, 0.2))
    with pytest.raises(DoesNotFit) as caught:
        plan_drawing(robot, square(0.2), canvas)
    offer = caught.value.offers[0]
    assert offer is not None
    assert offer.scale == 1.0
    assert 0.0 < np.linalg.norm(offer.shift) < 0.15
    assert np.linalg.norm(offer.canvas.origin) < edge


def test_too_much_force_names_the_limit() -> None:
    robot = with_pen("ur5e")
    canvas = Canvas.table(robot)
    fit = assess(robot, canvas, paper_points(canvas.size), PenMotion())
    with pytest.raises(DoesNotFit, match=rf"{0.5 * fit.force_max:.0f}|N at most") as caught:
        plan_drawing(robot, square(0.2), canvas, PenMotion(force=3.0 * fit.force_max))
    said = float(caught.value.problems[0].split(":")[1].split("N")[0])
    assert said == pytest.approx(fit.force_max, rel=0.05)  # other points were looked at, near these


def test_nothing_is_offered_where_nothing_fits() -> None:
    robot = with_pen("ur3e")
    canvas = Canvas.table(robot)
    points = paper_points((0.1, 0.1))
    box = Box(points[:, :2].min(axis=0), points[:, :2].max(axis=0), points, PenMotion(force=1e5))
    assert offers(robot, canvas, box) == ()
    assert "No place" in str(DoesNotFit(("too much",), ()))
    assert "No place" not in str(DoesNotFit(("too much",)))


def test_arm_length_is_that_of_the_data_sheet() -> None:
    assert arm_length(with_pen("ur5e")) == pytest.approx(0.425 + 0.3922)
    assert arm_length(with_pen("ur10e")) == pytest.approx(0.6127 + 0.57155)


def test_a_wall_is_looked_for_from_just_above_the_floor_on() -> None:
    """The paper's lower edge 20 mm above the plane of the base, and from there in steps of 5 % of the arm's length."""
    robot = with_pen("ur5e")
    for side in (0.1, 0.2):
        canvas = Canvas.wall(robot, (side, side))
        steps = (canvas.T_base_canvas[2, 3] - 0.5 * side - 0.02) / (0.05 * arm_length(robot))
        assert steps == pytest.approx(round(steps), abs=1e-6)
        assert round(steps) >= 0
