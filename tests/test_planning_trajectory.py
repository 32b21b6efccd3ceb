"""Trajectories: joints, velocities and accelerations belong together, branches do not jump, limits are kept."""

from __future__ import annotations

import re
from math import inf

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, NoSolution
from tangere.kinematics.rotation import matrix_from_rotation_vector, rotation_error
from tangere.planning import (
    TOOL_DOWN,
    Circle,
    JerkLimited,
    JointMove,
    Limits,
    Line,
    PathTrajectory,
    Polyline,
    Sine,
    Slerp,
    SmoothRate,
    arc,
    facing,
    ramped_circle,
    wall_circle,
)
from tangere.planning.path_trajectory import SINGULAR
from tangere.types import Trajectory

ROBOT = tangere.robot("ur10e")
CIRCLE = ramped_circle(ROBOT)
HOME = np.array([0.3, -1.2, 1.4, -0.9, -1.2, 0.5])


def turning_line() -> PathTrajectory:
    R = matrix_from_rotation_vector([0.3, -0.4, 0.5]) @ TOOL_DOWN
    path = Line((0.5, -0.3, 0.4), (0.8, 0.3, 0.2), Slerp(TOOL_DOWN, R))
    return PathTrajectory(ROBOT, path, SmoothRate.over(path.length, 0.3, 0.5))


def zigzag() -> PathTrajectory:
    pytest.importorskip("ruckig")
    path = Polyline([(0.5, -0.2, 0.3), (0.8, -0.2, 0.3), (0.8, 0.2, 0.3), (0.6, 0.2, 0.5)], TOOL_DOWN, tolerance=0.02)
    return PathTrajectory(ROBOT, path, JerkLimited(path, 0.4, 1.0, 10.0))


def move() -> JointMove:
    pytest.importorskip("ruckig")
    return JointMove(ROBOT, HOME, HOME + [1.0, -0.4, 0.3, 0.0, 0.8, -2.0])


MOTIONS = {
    "circle": lambda: CIRCLE,
    "line": turning_line,
    "zigzag": zigzag,
    "move": move,
    "sine": lambda: Sine(ROBOT, HOME, [0.2, 0.3], [0.5, 0.8], [2, 5], ramp=0.7, duration=4.0),
}


@pytest.mark.parametrize("name", MOTIONS)
def test_joint_derivatives(name: str) -> None:
    """qd and qdd by central differences of `at` at times off the grid. h = 1e-4 s: h^2/6 of 100 rad/s4 is 2e-7."""
    motion: Trajectory = MOTIONS[name]()
    h = 1e-4
    for t in np.linspace(0.02, motion.duration - 0.02, 97) + 0.00037:
        here, ahead, behind = motion.at(t), motion.at(t + h), motion.at(t - h)
        assert (ahead.q - behind.q) / (2 * h) == pytest.approx(here.qd, abs=2e-6)
        # a jerk-limited motion has steps in its jerk (14 rad/s3 in the move): half a step of h remains
        assert (ahead.qd - behind.qd) / (2 * h) == pytest.approx(here.qdd, abs=14 * h if name == "move" else 5e-4)


@pytest.mark.parametrize("name", ["circle", "line", "zigzag", "move"])
def test_pose_velocity_acceleration_belong_to_the_joints(name: str) -> None:
    """T = pose(q); v and a by differences of the pose, which knows nothing of Jacobians."""
    motion: Trajectory = MOTIONS[name]()
    h = 1e-4
    for t in np.concatenate([np.linspace(0.02, motion.duration - 0.02, 41).round(3), [0.50031, 1.20077]]):
        r = [motion.at(t + k * h) for k in (-1, 0, 1)]
        assert r[1].T == pytest.approx(ROBOT.pose(r[1].q), abs=1e-14)
        v = (r[2].T[:3, 3] - r[0].T[:3, 3]) / (2 * h)
        w = rotation_error(r[2].T[:3, :3], r[0].T[:3, :3]) / (2 * h)
        assert r[1].v == pytest.approx(np.concatenate([v, w]), abs=2e-6)
        assert r[1].a == pytest.approx((r[2].v - r[0].v) / (2 * h), abs=20 * h if name == "move" else 1e-3)


@pytest.mark.parametrize("build", [lambda: CIRCLE, turning_line, zigzag])
def test_joints_are_on_the_path(build: object) -> None:
    """Forward kinematics of the samples against the path at the law's arc length; velocities too: 1e-12, rounding."""
    motion = build()  # type: ignore[operator]
    s, sd, sdd = motion.law.at(motion.times)
    points = motion.path.at(s)
    assert np.max(np.abs(ROBOT.pose(motion.q) - points.T)) < 1e-12
    v = np.einsum("kij,kj->ki", ROBOT.jacobian(motion.q), motion.qd)
    assert np.max(np.abs(v - points.first * sd[:, None])) < 1e-12
    a = np.array([motion.at(t).a for t in motion.times[:-1:50]])
    expected = (points.first * sdd[:, None] + points.second * (sd**2)[:, None])[:-1:50]
    assert a == pytest.approx(expected, abs=1e-10)


def test_circle_000_is_the_corrected_circle() -> None:
    """Centre (.7, .1, .3), R .15, 1 rad/s, tool down: position, speed R w, centripetal R w^2 in the steady part."""
    r = CIRCLE.at(3.0)
    th = 3.0 - 0.5
    assert r.T[:3, 3] == pytest.approx([0.7 + 0.15 * np.cos(th), 0.1 + 0.15 * np.sin(th), 0.3], abs=1e-12)
    assert r.T[:3, 2] == pytest.approx([0, 0, -1], abs=1e-12)
    assert np.linalg.norm(r.v[:3]) == pytest.approx(0.15, rel=1e-10)
    assert r.a[:3] == pytest.approx([-0.15 * np.cos(th), -0.15 * np.sin(th), 0], abs=1e-10)
    on = ramped_circle(ROBOT, stop=False, duration=4.0)
    assert on.at(3.0).q == pytest.approx(r.q, abs=1e-12)
    assert np.linalg.norm(on.at(4.0).v) == pytest.approx(0.15, rel=1e-10)
    assert on.at(4.1).qd == pytest.approx(np.zeros(6), abs=0.0)
    # good for a demonstration: far from singularities; slow joints in the branch that suits it best
    assert np.min(np.linalg.svd(ROBOT.jacobian(CIRCLE.q), compute_uv=False)[:, -1]) > 0.2
    assert np.max(np.abs(ramped_circle(ROBOT, branch="best").qd)) < 0.3


def test_rest_at_both_ends() -> None:
    for motion in (CIRCLE, turning_line(), move(), zigzag()):
        for t in (-1.0, 0.0, motion.duration, motion.duration + 1.0, inf):
            r = motion.at(t)
            # an end between two samples is interpolated: jerk h^2/8 and jerk h of 14 rad/s3
            assert np.max(np.abs(r.qd)) < 2e-6
            assert np.max(np.abs(r.qdd)) < 14e-3
        assert motion.at(-1.0).q == pytest.approx(motion.at(0.0).q, abs=0.0)
        assert motion.at(inf).q == pytest.approx(motion.at(motion.duration).q, abs=1e-12)


def test_every_branch_is_followed_without_a_jump() -> None:
    """Started from each of the eight solutions the motion stays in its branch: steps below top speed times period."""
    period = 2e-3
    starts = ROBOT.inverse_kinematics(CIRCLE.at(0.0).T).q
    assert len(starts) == 8
    ends, refusals = [], []
    for q in starts:
        try:
            motion = ramped_circle(ROBOT, q_start=q, period=period, duration=8.0)
        except NoSolution as refused:  # folded postures may pass a limit; they must say so, not jump
            refusals.append(str(refused))
            continue
        assert motion.q[0] == pytest.approx(q, abs=1e-9)
        assert np.max(np.abs(np.diff(motion.q, axis=0))) < 1.5 * period
        assert motion.mismatch < 1e-5  # h^2/12 of qddd < 30 rad/s3
        ends.append(motion.q[-1])
    assert all("would need" in message for message in refusals)
    assert len(ends) >= 4
    assert len(np.unique(np.round(ends, 6), axis=0)) == len(ends)


def test_whole_turns_of_the_start_are_kept() -> None:
    q = CIRCLE.q[0] + 2 * np.pi * np.array([-1, 0, 0, -1, 0, -1])
    motion = ramped_circle(ROBOT, q_start=q, period=0.01)
    assert motion.q[0] == pytest.approx(q, abs=1e-9)
    assert motion.q - 2 * np.pi * np.array([-1, 0, 0, -1, 0, -1]) == pytest.approx(CIRCLE.q[::10], abs=1e-9)


def test_through_a_wrist_singularity() -> None:
    """q5 passes zero: the labelled branches change there, the joints must not notice."""
    q = np.array([0.3, -1.2, 1.4, -0.9, 0.0, 0.5])
    a, m, b = (ROBOT.pose(q + np.array([0, 0, 0, 0, x, 0])) for x in (-0.3, 0.0, 0.3))
    path = arc(a[:3, 3], m[:3, 3], b[:3, 3], Slerp(a[:3, :3], b[:3, :3]))
    motion = PathTrajectory(
        ROBOT, path, SmoothRate.over(path.length, 0.05, 0.3), q_start=q + np.array([0, 0, 0, 0, -0.3, 0])
    )
    assert motion.q[:, 4].min() == pytest.approx(-0.3, abs=1e-9)
    assert motion.q[:, 4].max() == pytest.approx(0.3, abs=1e-9)
    still = [0, 1, 2, 3, 5]
    assert np.max(np.abs(motion.q[:, still] - q[still])) < 1e-4  # pose rounding 1e-15 over the damping's 1e-3, and more
    assert np.max(np.abs(motion.qd[:, still])) < 1e-3
    least = np.linalg.svd(ROBOT.jacobian(motion.q), compute_uv=False)[:, -1]
    assert least.min() < SINGULAR < motion.sigma_min.max()
    assert np.all(motion.sigma_min <= least * (1.0 + 1e-9))
    near = motion.sigma_min < SINGULAR
    assert motion.sigma_min[near] == pytest.approx(least[near], abs=1e-12)


@pytest.mark.parametrize("q4", [-2.0, -1.0, 1.0, 2.0])
def test_near_a_singularity_says_so(q4: float) -> None:
    """A line that passes the wrist singularity at a small distance asks for a fast wrist: refused, with why."""
    q = np.array([0.3, -1.2, 1.4, q4, 0.02, 0.5])
    T = ROBOT.pose(q)
    way = 0.15 * np.cross([0, 0, 1], T[:3, 3]) / np.linalg.norm(T[:2, 3])
    path = Line(T[:3, 3] - way, T[:3, 3] + way, T[:3, :3])
    start = ROBOT.inverse_kinematics(path.at([0.0]).T[0]).nearest(q)
    law = SmoothRate.over(path.length, 0.3, 0.2)
    with pytest.raises(NoSolution, match=r"joint [46] would need a velocity .* near a singularity .* times slower"):
        PathTrajectory(ROBOT, path, law, q_start=start)
    motion = PathTrajectory(ROBOT, path, law, q_start=start, slower=True)
    assert np.max(np.abs(motion.qd) / ROBOT.qd_max) <= 1.0
    assert motion.stretch > 5.0


def test_unreachable_says_where_and_by_how_much() -> None:
    """Time, place and distance: the point named is out of reach, the one before is not; the distance is real."""
    path = Line((0.9, 0.0, 0.3), (1.4, 0.0, 0.3), TOOL_DOWN)
    law = SmoothRate.over(path.length, 0.25, 0.5)
    with pytest.raises(NoSolution, match="leaves the arm's reach") as caught:
        PathTrajectory(ROBOT, path, law)
    found = re.search(
        r"at t = ([\d.]+) s, \(([\d., -]+)\) m, by ([\d.e-]+) mm; farthest at t = [\d.]+ s, .* by ([\d.]+) mm",
        str(caught.value),
    )
    assert found
    t, x = float(found[1]), float(found[2].split(",")[0])
    assert x == pytest.approx(0.9 + law.at(np.array([t]))[0][0], abs=1e-3)  # printed with 4 digits
    for dx, reached in ((-2e-3, True), (2e-3, False)):
        T = CIRCLE.at(0.0).T.copy()
        T[:3, 3] = (x + dx, 0.0, 0.3)
        T[:3, :3] = TOOL_DOWN
        assert bool(ROBOT.inverse_kinematics(T)) is reached
    # the reach along x ends at x: the end of the line is farther by 1.4 - x, somewhat less because it is oblique
    assert float(found[4]) == pytest.approx(1e3 * (1.4 - x), rel=0.1)


def test_velocity_limit_refused_or_slowed_down() -> None:
    """rate=10 rad/s is too fast for joint 1; slower: the same path, limits kept on a grid four times as fine."""
    with pytest.raises(
        NoSolution, match=r"joint 1 would need a velocity of .* rad/s at t = .* its limit is 2.094"
    ) as e:
        ramped_circle(ROBOT, rate=10.0)
    factor = float(re.search(r"([\d.]+) times slower", str(e.value))[1])  # type: ignore[index]
    path, law = CIRCLE.path, SmoothRate(1.5, 1.0, 4.0)
    motion = PathTrajectory(ROBOT, path, law, slower=True, period=4e-3)
    assert motion.stretch == pytest.approx(factor, rel=0.02)
    assert motion.duration == pytest.approx(4.0 * motion.stretch)
    fine = PathTrajectory(ROBOT, path, motion.law, period=1e-3)
    share = np.max(np.abs(fine.qd) / ROBOT.qd_max)
    assert 0.99 < share <= 1.0  # slower, but not slower than needed
    between = np.array([motion.at(t).qd for t in np.arange(0.0, motion.duration, 1.1e-3)])
    assert np.max(np.abs(between) / ROBOT.qd_max) <= 1.0


def test_acceleration_and_torque_limits() -> None:
    path, law = CIRCLE.path, SmoothRate(0.6, 0.4, 3.0)
    free = PathTrajectory(ROBOT, path, law)
    qdd_max = 0.5 * np.max(np.abs(free.qdd), axis=0) + 0.05
    with pytest.raises(NoSolution, match=r"acceleration of .* rad/s2"):
        PathTrajectory(ROBOT, path, law, limits=Limits.of(ROBOT, acceleration=qdd_max))
    slow = PathTrajectory(ROBOT, path, law, limits=Limits.of(ROBOT, acceleration=qdd_max), slower=True)
    fine = PathTrajectory(ROBOT, path, slow.law, period=0.4e-3)
    assert 0.98 < np.max(np.abs(fine.qdd) / qdd_max) <= 1.0
    gravity = np.max(np.abs(ROBOT.gravity_torque(free.q)), axis=0)
    tau = np.max(np.abs(ROBOT.inverse_dynamics(free.q, free.qd, free.qdd)), axis=0)
    tau_max = np.maximum(gravity + 0.5 * (tau - gravity), 1.05 * gravity + 1.0)
    tau_max[1] = gravity[1] + 0.3 * (tau[1] - gravity[1])
    limits = Limits.of(ROBOT, torque=tau_max)
    with pytest.raises(NoSolution, match=r"torque of .* Nm"):
        PathTrajectory(ROBOT, path, law, limits=limits)
    slow = PathTrajectory(ROBOT, path, law, limits=limits, slower=True)
    fine = PathTrajectory(ROBOT, path, slow.law, period=0.4e-3)
    assert np.max(np.abs(ROBOT.inverse_dynamics(fine.q, fine.qd, fine.qdd)) / tau_max) <= 1.0
    with pytest.raises(NoSolution, match="no slower motion helps"):
        PathTrajectory(ROBOT, path, law, limits=Limits.of(ROBOT, torque=0.5 * gravity + 0.1), slower=True)


def test_law_longer_than_the_path_is_refused() -> None:
    path = Line((0.5, 0.0, 0.3), (0.6, 0.0, 0.3), TOOL_DOWN)
    with pytest.raises(InvalidValue, match=r"the path from 0 to 0\.1 m"):
        PathTrajectory(ROBOT, path, SmoothRate.over(0.2, 0.1, 0.5))


@pytest.mark.parametrize("model", [None, "000-C"])
def test_the_circle_in_python_is_that_of_the_command(model: str | None) -> None:
    """`ramped_circle(robot)` and `tangere run circle`: the same joints, of the arm itself and of 000's model."""
    from tangere.apps.scenarios.build import build

    told = {} if model is None else {"model": model}
    command = build("circle", told).motion.trajectory
    mine = ramped_circle(tangere.robot("ur10e", parameters=model))
    assert all(np.array_equal(mine.at(t).q, command.at(t).q) for t in (0.0, 1.7, 9.0))


def test_a_circle_takes_the_branch_that_is_asked_for() -> None:
    found = ROBOT.inverse_kinematics(ramped_circle(ROBOT).at(0.0).T)
    for k, words in enumerate(zip(found.shoulder, found.elbow, found.wrist, strict=True)):
        if " ".join(words).startswith("left"):
            assert ramped_circle(ROBOT, branch=" ".join(words)).q[0] == pytest.approx(found.q[k], abs=1e-9)
    best = ramped_circle(ROBOT, branch="best").q[0]
    assert best == pytest.approx(PathTrajectory(ROBOT, CIRCLE.path, CIRCLE.law).q[0], abs=0.0)
    with pytest.raises(InvalidValue, match=r"branch: one of left up no flip, .* got 'up'"):
        ramped_circle(ROBOT, branch="up")


def test_wall_circle_is_regular_and_faces_the_wall() -> None:
    """002's circle in a pose where J is far from singular, with 002's arm and with a UR10e holding a pen."""
    for robot in (tangere.robot("ur10", parameters="002"), tangere.robot("ur10e", tool=[0, 0, 0.1])):
        motion = wall_circle(robot, period=0.02)
        T = robot.pose(motion.q)
        assert np.max(np.abs(T[:, 1, 3] + 0.8)) < 1e-12
        assert np.max(np.abs(T[:, :3, 2] - [0, -1, 0])) < 1e-12  # the pen looks at the wall, whose normal is +y
        assert np.hypot(T[:, 0, 3], T[:, 2, 3] - 0.5) == pytest.approx(np.full(len(T), 0.1), abs=1e-12)
        assert T[0, :3, 3] == pytest.approx([0, -0.8, 0.6], abs=1e-12)
        assert T[len(T) // 4, 0, 3] < -0.09  # 002 goes to its +x first, which is our -x
        assert np.min(np.linalg.svd(robot.jacobian(motion.q), compute_uv=False)[:, -1]) > 0.3
        assert motion.duration == pytest.approx(202.0)
    for normal in ((1, 0, 0), (0.3, 0.4, 0.2), (0, 0, 1)):
        R = facing(normal)
        assert R.T @ R == pytest.approx(np.eye(3), abs=1e-15)
        assert np.linalg.det(R) == pytest.approx(1.0)
        assert R[:, 2] @ np.array(normal) == pytest.approx(-np.linalg.norm(normal))


def test_other_arms_go_by_newton() -> None:
    """Without a closed form (planar arm): the path is followed all the same."""
    robot = tangere.robot("planar3r")
    q = np.array([0.3, 0.5, 0.4])
    T = robot.pose(q)
    path = Circle(T[:3, 3] - [0.05, 0, 0], 0.05, T[:3, :3], x_axis=(1, 0, 0), y_axis=(0, 0, 1))
    motion = PathTrajectory(robot, path, SmoothRate(0.1, 0.5, 2.0), q_start=q, period=0.01)
    assert np.max(np.abs(robot.pose(motion.q) - path.at(motion.law.at(motion.times)[0]).T)) < 1e-11
    slope = (motion.q[2:] - motion.q[:-2]) / 0.02
    assert np.max(np.abs(slope - motion.qd[1:-1])) < 1e-3  # h^2/6 of 200 rad/s4
    with pytest.raises(NoSolution, match="leaves the arm's reach"):
        PathTrajectory(
            robot,
            Circle(T[:3, 3], 0.05, T[:3, :3], y_axis=(0, 0, 1)),
            SmoothRate(0.1, 0.5, 4.0),
            q_start=q,
            period=0.01,
        )
