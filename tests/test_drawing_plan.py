"""A planned drawing: on its lines, on the paper, gentle, within limits, and aware of what it is doing."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from test_calibration import REAL
from test_drawing_canvas import with_pen

import tangere
from tangere.apps.drawing.files import time_figures
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import OVERSHOOT, STIFFNESS, DrawingPlan, PenMotion
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue, NoSolution
from tangere.plants.scene.scene import Pen
from tangere.types import Array


def scribble(size: float = 0.2, count: int = 8, seed: int = 0) -> Strokes:
    """Arcs with a corner here and there, simplified by 0.1 mm."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(count):
        radius = rng.uniform(0.01, 0.14) * size
        th = np.arange(0.0, rng.uniform(1.0, 6.2), np.sqrt(8.0 * 1e-4 / radius))
        line = rng.uniform(-0.3, 0.3, 2) * size + radius * np.stack([np.cos(th), np.sin(th)], axis=1)
        lines.append(np.vstack([line, line.mean(axis=0)]) if i % 3 == 0 else line)
    return Strokes(tuple(lines), (size, size))


@pytest.fixture(scope="module")
def robot() -> tangere.Robot:
    return with_pen("ur5e")


@pytest.fixture(scope="module")
def plan(robot: tangere.Robot) -> DrawingPlan:
    return plan_drawing(robot, scribble(), Canvas.table(robot))


def tips(plan: DrawingPlan) -> tuple[Array, Array, list[str], Array]:
    """Times, tip in canvas coordinates by forward kinematics of the references, phases, contact."""
    times = np.arange(0.0, plan.duration, 1e-3)
    q = np.array([plan.at(t).q for t in times])
    tip = plan.canvas.from_base(plan.robot.pose(q)[:, :3, 3])
    return times, tip, [plan.phase(t) for t in times], np.array([plan.contact_wanted(t) for t in times])


def distance(points: Array, polyline: Array) -> Array:
    a, way = polyline[:-1][None], np.diff(polyline, axis=0)[None]
    size = np.maximum(np.sum(way * way, axis=-1), 1e-30)
    x = np.clip(np.sum((points[:, None] - a) * way, axis=-1) / size, 0.0, 1.0)
    return np.linalg.norm(points[:, None] - a - x[..., None] * way, axis=-1).min(axis=1)


def test_every_stroke_is_drawn_in_order_on_its_line(plan: DrawingPlan) -> None:
    times, tip, phases, contact = tips(plan)
    drawing = np.array([p == "draw" for p in phases])
    stroke = np.array([plan.stroke(t) for t in times])
    assert np.abs(tip[drawing, 2]).max() < 1e-9  # on the nominal paper
    assert np.all(np.diff(stroke) >= 0)
    for i, line in enumerate(plan.strokes.lines):
        here = drawing & (stroke == i)
        start, end = plan.stroke_times[i]
        assert np.all((times[here] >= start - 1e-9) & (times[here] <= end + 1e-9))
        assert here.sum() >= (end - start) / 1e-3 - 1.5
        assert distance(tip[here, :2], line).max() < 1.05e-4  # the stated tolerance
        assert distance(line, tip[here, :2]).max() < 1e-4  # nothing left out; the samples are 0.05 mm apart
        np.testing.assert_allclose(tip[here][0, :2], line[0], atol=1e-5)
        np.testing.assert_allclose(plan.polylines()[i][[0, -1]], line[[0, -1]], atol=1e-9)
        assert distance(plan.polylines()[i], line).max() < 1.05e-4
    assert plan.draw_length == pytest.approx(plan.strokes.draw_length, rel=0.01)
    assert contact[drawing].all()


def test_sections_begin_on_samples(plan: DrawingPlan) -> None:
    """So that a controller which waits for the touch, and then goes on, asks for times on the grid: those are cheap."""
    starts = np.cumsum([s.duration for s in plan.stretches])
    np.testing.assert_allclose(starts / 1e-3, np.rint(starts / 1e-3), atol=1e-6)
    assert all(s.slower >= 1.0 - 1e-9 for s in plan.stretches)
    assert sum(s.course.duration for s in plan.stretches) > plan.duration - 1e-3 * len(plan.stretches)
    edges = plan.stroke_times.ravel() / 1e-3
    np.testing.assert_allclose(edges, np.rint(edges), atol=1e-6)


def test_phases_follow_each_other(plan: DrawingPlan) -> None:
    _, tip, phases, contact = tips(plan)
    order = [p for i, p in enumerate(phases) if i == 0 or phases[i - 1] != p]
    assert order == ["travel", *["approach", "draw", "lift", "travel"] * len(plan.strokes)][: len(order)]
    assert order.count("draw") == len(plan.strokes)
    wanted = np.array([p in ("approach", "draw") for p in phases])
    np.testing.assert_array_equal(contact, wanted)
    travel = np.array([p == "travel" for p in phases])
    assert tip[travel, 2].min() > plan.pace.touch_height - 1e-9
    assert plan.phase(-1.0) == "travel"
    assert plan.phase(plan.duration + 1.0) == "lift"
    assert not plan.contact_wanted(plan.duration + 1.0)


def test_the_time_is_made_of_drawing_touching_and_travelling(plan: DrawingPlan) -> None:
    assert sum(plan.phase_times.values()) == pytest.approx(plan.duration, abs=1e-9)
    at = [plan.phase(t) for t in np.arange(0.0, plan.duration, 1e-3)]
    # sampled every millisecond, a section counts to a sample
    assert plan.phase_times["draw"] == pytest.approx(1e-3 * at.count("draw"), abs=1e-3 * len(plan.stretches))
    assert plan.phase_times["touch"] == pytest.approx(1e-3 * at.count("approach"), abs=1e-3 * len(plan.stretches))
    assert f"{plan.phase_times['touch']:.0f} s touching down" in time_figures(plan)


def test_the_pen_moves_sideways_only_in_the_air_or_drawing(plan: DrawingPlan) -> None:
    _, tip, phases, _ = tips(plan)
    sideways = np.linalg.norm(np.diff(tip[:, :2], axis=0), axis=1) > 1e-8
    up = np.array([p != "draw" for p in phases])[:-1] & np.array([p != "draw" for p in phases])[1:]
    assert sideways[up].any()
    assert tip[:-1][up & sideways, 2].min() > 0.5 * plan.pace.lift - 1e-6


def test_speed_and_accelerations_on_the_paper(plan: DrawingPlan) -> None:
    """From differences of the tip's positions: the stated speed, and the centripetal limit in the bends."""
    times, tip, phases, _ = tips(plan)
    drawing = np.array([p == "draw" for p in phases])
    inner = drawing[:-2] & drawing[1:-1] & drawing[2:]
    v = (tip[2:] - tip[:-2]) / 2e-3
    a = (tip[2:] - 2.0 * tip[1:-1] + tip[:-2]) / 1e-6
    speed = np.linalg.norm(v, axis=1)
    assert speed[inner].max() < plan.pace.speed * (1.0 + 1e-4)
    assert np.median(speed[inner]) > 0.9 * plan.pace.speed
    moving = inner & (speed > 2e-3)
    t = v / np.maximum(speed, 1e-9)[:, None]
    along = np.sum(a * t, axis=1)
    across = np.linalg.norm(a - along[:, None] * t, axis=1)
    # differences over 1 ms smear what changes with the jerk: 10 m/s3 * 1 ms
    assert across[moving].max() < plan.pace.centripetal + 0.02
    assert np.abs(along[moving]).max() < plan.pace.acceleration + 0.02
    # the bends do make it slower: tight ones are not passed at full speed
    assert across[moving].max() > 0.7 * plan.pace.centripetal
    assert times[1] - times[0] == pytest.approx(1e-3)


def test_touch_down_is_slow(plan: DrawingPlan) -> None:
    _, tip, phases, _ = tips(plan)
    approach = np.array([p == "approach" for p in phases])
    vz = np.diff(tip[:, 2]) / 1e-3
    both = approach[:-1] & approach[1:]
    assert -vz[both].min() <= plan.pace.touch_speed * (1.0 + 1e-6)
    assert plan.pace.touch_speed == pytest.approx(
        min(0.01, OVERSHOOT * 5.0 / np.sqrt(STIFFNESS * plan.check.tip_mass)), rel=1e-9
    )
    assert plan.check.tip_mass > 0.5
    # at rest on the paper before it draws
    for start, _ in plan.stroke_times:
        for t in (start - 1e-3, start - plan.pace.settle + 1e-3):
            reference = plan.at(t)
            assert reference.v is not None
            assert np.abs(reference.v).max() < 1e-9


def test_reference_is_consistent_and_within_limits(plan: DrawingPlan) -> None:
    """qd and qdd against differences of q, T and v against the robot's own, limits on a grid five times finer."""
    robot = plan.robot
    rng = np.random.default_rng(1)
    h = 2e-4
    for t in rng.uniform(0.01, plan.duration - 0.01, 200):
        here, before, after = plan.at(t), plan.at(t - h), plan.at(t + h)
        np.testing.assert_allclose((after.q - before.q) / (2 * h), here.qd, atol=2e-5)  # h^2/6 of 500 rad/s3
        np.testing.assert_allclose((after.qd - before.qd) / (2 * h), here.qdd, atol=0.3)  # jerk jumps 500 rad/s3 * h
        assert here.T is not None
        assert here.v is not None
        np.testing.assert_allclose(robot.pose(here.q), here.T, atol=1e-12)
        np.testing.assert_allclose(robot.jacobian(here.q) @ here.qd, here.v, atol=1e-12)
        np.testing.assert_allclose(here.T[:3, :3], plan.canvas.R @ plan.R_canvas_tcp, atol=1e-8)  # never turns
        np.testing.assert_allclose(here.T[:3, 2], -plan.canvas.normal, atol=1e-8)  # across the paper
    fine = np.array([plan.at(t).q for t in np.arange(0.0, min(plan.duration, 20.0), 2e-4)])
    assert np.all(np.abs(np.diff(fine, axis=0)) / 2e-4 <= robot.qd_max)
    assert np.all((fine > robot.q_min) & (fine < robot.q_max))
    check = plan.check
    assert check.velocity_share <= 1.0
    assert check.acceleration_share <= 1.0
    assert check.torque_share < 0.7
    assert check.sigma_min > 0.05
    assert check.surface_distance > 0.015


def test_velocity_and_acceleration_are_those_of_the_stretches(plan: DrawingPlan) -> None:
    """J qdd + Jdot qd of the joints against what the stretches ask of the tip, on the grid."""
    clock = 0.0
    for stretch in plan.stretches:
        local = np.arange(1, round(stretch.duration / 1e-3), 7) * 1e-3
        _, v, a = stretch.at(local)
        for t, v_tip, a_tip in zip(local, v, a, strict=True):
            reference = plan.at(clock + t)
            assert reference.v is not None
            assert reference.a is not None
            np.testing.assert_allclose(reference.v, [*(plan.canvas.R @ v_tip), 0.0, 0.0, 0.0], atol=1e-9)
            np.testing.assert_allclose(reference.a, [*(plan.canvas.R @ a_tip), 0.0, 0.0, 0.0], atol=1e-7)
        clock += stretch.duration


def test_joints_that_are_too_slow_make_the_drawing_slower(robot: tangere.Robot) -> None:
    drawing, canvas = scribble(count=3), Canvas.table(robot)
    free = plan_drawing(robot, drawing, canvas, PenMotion(travel_speed=2.0))
    tight = plan_drawing(robot, drawing, canvas, PenMotion(travel_speed=2.0, joint_acceleration=1.0))
    assert free.check.acceleration_share <= 1.0
    assert tight.duration > free.duration
    assert np.abs(tight.qdd).max() <= 1.0
    assert any(s.slower > 1.0 for s in tight.stretches)


def test_starts_where_the_arm_stands(robot: tangere.Robot) -> None:
    canvas = Canvas.table(robot)
    drawing = scribble(count=2)
    plain = plan_drawing(robot, drawing, canvas)
    home = plain.at(0.0).q + np.array((0.5, 0.4, 0.1, 0.1, 0.0, 0.4))  # aside and higher
    plan = plan_drawing(robot, drawing, canvas, q_start=home)
    np.testing.assert_allclose(plan.at(0.0).q, home, atol=1e-12)
    later = plan.stroke_times - plain.stroke_times
    np.testing.assert_allclose(later, later[0, 0], atol=1e-9)
    assert later[0, 0] > plan.start > 0.1  # the joint motion, and a longer way down
    np.testing.assert_allclose(plan.at(later[0, 0] + 1.234).q, plain.at(1.234).q, atol=1e-9)
    q = np.array([plan.at(t).q for t in np.arange(0.0, plan.duration, 0.01)])
    assert np.abs(np.diff(q, axis=0)).max() < 0.02  # no jump where the one becomes the other
    below = plain.at(0.0).q + np.array((0.0, -0.9, 0.0, 0.0, 0.0, 0.0))  # shoulder down: elbow or wrist under the table
    with pytest.raises(NoSolution, match="through the surface"):
        plan_drawing(robot, drawing, canvas, q_start=below)


def test_dots_lean_and_one_point_far_away(robot: tangere.Robot) -> None:
    canvas = Canvas.table(robot)
    dots = Strokes((np.zeros((2, 2)), np.array([(0.05, 0.05), (0.05, 0.05)])), (0.2, 0.2))
    plan = plan_drawing(robot, dots, canvas, PenMotion(lean=0.3))
    assert "draw" not in {plan.phase(t) for t in np.arange(0.0, plan.duration, 0.01)}
    assert plan.stroke_times[0, 0] == plan.stroke_times[0, 1]
    reference = plan.at(plan.stroke_times[1, 1])
    assert reference.T is not None
    np.testing.assert_allclose(canvas.from_base(reference.T[:3, 3]), (0.05, 0.05, 0.0), atol=1e-9)
    np.testing.assert_allclose(-reference.T[:3, 2] @ canvas.normal, np.cos(0.3), atol=1e-9)
    assert [len(line) for line in plan.polylines()] == [1, 1]


def test_circle_of_002_on_its_wall() -> None:
    """UR10, radius 100 mm, 5 N, wall at y = -0.8 m: the place of planning.path_trajectory.wall_circle."""
    robot = with_pen("ur10")
    T = np.eye(4)
    T[:3, :3] = np.stack([(-1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)], axis=1)
    T[:3, 3] = (0.0, -0.8, 0.5)
    th = np.linspace(0.0, 2.0 * np.pi, 72)
    ring = Strokes((0.1 * np.stack([np.sin(th), np.cos(th)], axis=1),), (0.3, 0.3))
    plan = plan_drawing(robot, ring, Canvas(T, (0.3, 0.3), border=3.0), PenMotion(force=5.0))
    start, end = plan.stroke_times[0]
    tip = np.array([plan.at(t).T[:3, 3] for t in np.linspace(start, end, 200)])  # type: ignore[index]
    np.testing.assert_allclose(tip[:, 1], -0.8, atol=1e-9)
    np.testing.assert_allclose(np.hypot(tip[:, 0], tip[:, 2] - 0.5), 0.1, atol=2e-4)
    assert plan.check.sigma_min > 0.2
    assert plan.check.force_max > 50.0


@pytest.mark.parametrize("name", ["ur3", "ur5", "ur10e", "ur30"])
def test_walls_and_slants_are_planned(name: str) -> None:
    robot = with_pen(name)
    drawing = scribble(count=2)
    for canvas in (Canvas.wall(robot), Canvas.tilted(robot, np.deg2rad(30.0))):
        plan = plan_drawing(robot, drawing, canvas)
        assert min(plan.check.room.values()) > 1.2
        reference = plan.at(float(plan.stroke_times[0].mean()))
        assert reference.T is not None
        assert abs(canvas.from_base(reference.T[:3, 3])[2]) < 1e-9


def test_a_look_at_the_plan_is_cheap(plan: DrawingPlan) -> None:
    """Well under 10 us of computing a call; ten times that is refused on any machine."""
    times = (np.arange(2000) * 1e-3).tolist()
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        for t in times:
            plan.at(t)
            plan.phase(t)
            plan.contact_wanted(t)
        best = min(best, (time.process_time() - start) / len(times))
    assert best < 1e-4


def test_misuse(robot: tangere.Robot) -> None:
    canvas = Canvas.table(robot)
    with pytest.raises(InvalidValue, match="nothing to draw"):
        plan_drawing(robot, Strokes((), (0.2, 0.2)), canvas)
    with pytest.raises(InvalidValue, match="scale it"):
        plan_drawing(robot, scribble(0.4), canvas)
    with pytest.raises(InvalidValue, match="speed"):
        plan_drawing(robot, scribble(), canvas, PenMotion(speed=0.0))
    with pytest.raises(InvalidValue, match="touch_height"):
        plan_drawing(robot, scribble(), canvas, PenMotion(lift=0.003))
    with pytest.raises(InvalidValue, match="force"):
        plan_drawing(robot, scribble(), canvas, PenMotion(force=-5.0))
    with pytest.raises(InvalidValue, match="lean"):
        plan_drawing(robot, scribble(), canvas, PenMotion(lean=2.0))
    with pytest.raises(InvalidValue, match="6 joints"):
        plan_drawing(tangere.robot("planar3r"), scribble(), canvas)


def test_a_calibrated_arm_is_planned_for_as_it_is(tmp_path: Path) -> None:
    """The pen of the calibrated arm, not of its nominal twin (0.1 mm off there), stays on its line on the paper."""
    path = tmp_path / "calibration.yaml"
    path.write_text(REAL)
    pen = Pen()
    options = {"tool": (0.0, 0.0, pen.length), "payload": pen.payload()}
    calibrated, nominal = tangere.robot("ur10e", calibration=path, **options), tangere.robot("ur10e", **options)
    canvas = Canvas.table(nominal)
    plan = plan_drawing(calibrated, scribble(count=1), canvas)
    times = np.linspace(*plan.stroke_times[0], 40).round(3)
    q = np.array([plan.at(t).q for t in times])
    tip = canvas.from_base(calibrated.pose(q)[:, :3, 3])
    assert np.abs(tip[:, 2]).max() < 1e-8
    assert distance(tip[:, :2], plan.strokes.lines[0]).max() < 1.05e-4
    # and it does matter: the nominal arm would leave the tolerance
    assert np.linalg.norm(canvas.from_base(nominal.pose(q)[:, :3, 3]) - tip, axis=1).min() > 1.05e-4
