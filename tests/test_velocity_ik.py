"""002's circle by inverse velocities, in 002's own pose: singular all along, survived, and on its path."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.kinematics.resolution import damped_inverse, damping_schedule
from tangere.model.conventions import official_from_flipped_elbow
from tangere.planning import PathTrajectory, SmoothRate, follow, ramped_circle, singular_circle, singular_circle_path
from tangere.planning.velocity_ik import CIRCLE_START, FollowedPath, _damped

ROBOT = tangere.robot("ur10", parameters="002")
YAW = np.array([-1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def drawn() -> FollowedPath:
    return singular_circle(ROBOT)


def test_path_is_002s(drawn: FollowedPath) -> None:
    """x = r sin, y = 356.1, z = 1328 + r cos mm in 002's base, from FK(0), the pen along 002's +y."""
    path = singular_circle_path()
    th = np.linspace(0.0, 2 * np.pi, 9)
    points = path.at(th * 0.1)
    expected = np.stack([0.1 * np.sin(th), 0 * th + 0.3561, 1.328 + 0.1 * np.cos(th)], axis=1)
    assert points.T[:, :3, 3] * YAW == pytest.approx(expected, abs=1e-15)
    assert points.T[0] == pytest.approx(ROBOT.pose(official_from_flipped_elbow(np.zeros(6))), abs=1e-12)
    assert points.T[0, :3, 2] * YAW == pytest.approx([0, 1, 0], abs=1e-15)


def test_survives_and_stays_on_the_path(drawn: FollowedPath) -> None:
    """Start: q_init is 0.06 mm off. After five seconds 0.01 mm; 002's own scheme: 2.55 mm (400 steps), 0.27 (4000)."""
    assert drawn.duration == pytest.approx(202.0)
    assert np.all(np.isfinite(drawn.q))
    assert drawn.path_error[0] == pytest.approx(0.0622e-3, rel=0.01)
    assert drawn.path_error.max() < 0.1e-3
    late = drawn.times > 5.0
    assert drawn.path_error[late].max() < 0.01e-3
    assert drawn.turn_error[late].max() < 1e-4
    # the whole circle: it does go round
    x = ROBOT.pose(drawn.q)[:, :3, 3] * YAW
    assert (x[:, 0].min(), x[:, 0].max()) == pytest.approx((-0.1, 0.1), abs=2e-5)
    assert x[:, 2].min() == pytest.approx(1.228, abs=2e-5)


def test_singular_all_along_and_still_slow(drawn: FollowedPath) -> None:
    """sigma_min stays below the damping everywhere, joints below 0.1 rad/s (undamped they would know no bound)."""
    assert drawn.sigma_min.max() < 2e-3
    assert np.max(np.abs(drawn.qd)) < 0.1
    assert np.max(np.abs(ROBOT.gravity_torque(drawn.q))) < 330.0


def test_poses_survive_it_too() -> None:
    """Inverse kinematics keeps the path exactly, but its joints turn sharply at the bottom: `mismatch` tells."""
    path = singular_circle_path()
    law = SmoothRate.over(path.length, path.length / 200.0, 2.0)
    exact = PathTrajectory(ROBOT, path, law, q_start=official_from_flipped_elbow(CIRCLE_START), period=0.02)
    assert np.max(np.abs(ROBOT.pose(exact.q) - path.at(law.at(exact.times)[0]).T)) < 1e-12
    assert np.max(np.abs(exact.qd)) < 0.5
    assert exact.mismatch > 1e-3


def test_feedback_is_what_keeps_it_there() -> None:
    """Without feedback the damping and q_init's own error stay: at least ten times as far off."""
    open_loop = singular_circle(ROBOT, gain=0.0, step=0.05)
    closed = singular_circle(ROBOT, step=0.05)
    late = closed.times > 5.0
    assert open_loop.path_error[late].max() > 10.0 * closed.path_error[late].max()


def test_from_exactly_zero() -> None:
    """q = 0 of 002, rank 3: the pose that 002 had to avoid."""
    path = singular_circle_path()
    law = SmoothRate.over(path.length, path.length / 200.0, 2.0)
    found = follow(ROBOT, path, law, official_from_flipped_elbow(np.zeros(6)), step=0.05)
    assert np.all(np.isfinite(found.q))
    assert found.path_error.max() < 3e-3
    assert np.max(np.abs(found.qd)) < 1.0


def test_derivatives_belong_together(drawn: FollowedPath) -> None:
    """Midpoint rule: the step between samples is their mean velocity, to third order; off the grid as well."""
    h = drawn.period
    mean = 0.5 * (drawn.qd[1:] + drawn.qd[:-1])
    miss = np.max(np.abs(np.diff(drawn.q, axis=0) / h - mean), axis=1)
    bend = np.max(np.abs(np.diff(drawn.qd, n=2, axis=0)), axis=1)  # h^2 qddd: both rules err by a share of it
    assert np.max(miss) < np.max(bend)
    assert np.max(miss[250:]) < np.max(bend[250:])
    assert np.max(miss[250:]) < 1e-5  # after five seconds, when q_init's offset has been led in
    for t in (20.013, 77.777, 150.001):
        slope = (drawn.at(t + 1e-3).q - drawn.at(t - 1e-3).q) / 2e-3
        assert drawn.at(t).qd == pytest.approx(slope, abs=1e-6)


def test_regular_circle_agrees_with_inverse_kinematics() -> None:
    """On 000's circle, far from singularities, velocities and poses give the same joints: 1e-5 rad by feedback."""
    robot = tangere.robot("ur10e")
    exact = ramped_circle(robot, period=0.01)
    found = follow(robot, exact.path, exact.law, exact.q[0], step=0.01)
    assert found.q == pytest.approx(exact.q, abs=1e-5)
    assert found.qd == pytest.approx(exact.qd, abs=1e-4)
    assert found.path_error.max() < 1e-5


def test_one_decomposition_is_the_same_damping(rng: np.random.Generator) -> None:
    """_damped against kinematics.resolution, regular and singular."""
    singular = [official_from_flipped_elbow(q) for q in (CIRCLE_START, np.zeros(6))]
    for q in [*rng.uniform(-3, 3, (20, 6)), *singular]:
        J, w = ROBOT.jacobian(q), rng.normal(size=6)
        expected = damped_inverse(J, damping_schedule(J, 0.05, 0.05)) @ w
        assert _damped(J, w, 0.05) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_refusals() -> None:
    path = singular_circle_path()
    law = SmoothRate.over(path.length, path.length / 200.0, 2.0)
    with pytest.raises(InvalidValue, match="below 1/step"):
        follow(ROBOT, path, law, np.zeros(6), gain=100.0, step=0.02)
    with pytest.raises(InvalidValue, match="q_start"):
        follow(ROBOT, path, law, np.zeros(5))
