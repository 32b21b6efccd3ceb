"""004's D-H table, inverse kinematics steps and differential relations against tangere.robot("ur5e").

Each step of 004 in its corrected form is checked on the solutions that the robot's inverse kinematics returns, and in
its printed form shown to miss them.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles import relative_error

import tangere
from tangere.model.model import Array

TIGHT = 1e-13
ROBOT = tangere.robot("ur5e")
A = (0.0, -0.425, -0.3922, 0.0, 0.0, 0.0)  # 004 table 1
D = (0.1625, 0.0, 0.0, 0.1333, 0.0997, 0.0996)
ALPHA = np.pi / 2 * np.array([1, 0, 0, 1, -1, 0])


@pytest.fixture
def q(rng: np.random.Generator) -> Array:
    return rng.uniform(-np.pi, np.pi, (1000, 6))


def apart(a: Array, b: Array) -> Array:
    """Angle between two angles [rad]."""
    return np.abs(np.angle(np.exp(1j * (a - b))))


def test_table_1_is_standard_dh(q: Array) -> None:
    """The printed transform is standard DH and the official UR5e; read as "modified", as the text says, it is not."""
    for x in q[:50]:
        standard, modified = np.eye(4), np.eye(4)
        for i in range(6):
            c, s, ca, sa = np.cos(x[i]), np.sin(x[i]), np.cos(ALPHA[i]), np.sin(ALPHA[i])
            standard = standard @ np.array(
                [[c, -s * ca, s * sa, A[i] * c], [s, c * ca, -c * sa, A[i] * s], [0, sa, ca, D[i]], [0, 0, 0, 1]]
            )
            modified = modified @ np.array(
                [[c, -s, 0, A[i]], [s * ca, c * ca, -sa, -D[i] * sa], [s * sa, c * sa, ca, D[i] * ca], [0, 0, 0, 1]]
            )
        assert relative_error(ROBOT.pose(x), standard) < TIGHT
        assert np.abs(modified - standard).max() > 0.1


def test_wrist_centre_is_the_origin_of_frame_5(q: Array) -> None:
    """WC = P - d6 R z: right, but no point where three axes meet, so it does not decouple the arm."""
    T, frames = ROBOT.pose(q), ROBOT.link_poses(q)
    WC = T[:, :3, 3] - D[5] * T[:, :3, 2]
    assert relative_error(frames[:, 4, :3, 3], WC) < TIGHT
    to_axis_4 = np.linalg.norm(np.cross(WC - frames[:, 2, :3, 3], frames[:, 2, :3, 2]), axis=-1)
    assert to_axis_4 == pytest.approx(np.full(1000, D[4]), abs=1e-12)  # axes 5 and 6 meet here, axis 4 passes by


def test_theta_1_needs_d4(q: Array) -> None:
    """theta1 = atan2(WCy, WCx) + pi/2 +- arccos(d4/rho); as printed at least 8 degrees off, 33 on average."""
    T = ROBOT.pose(q)
    WC = T[:, :3, 3] - D[5] * T[:, :3, 2]
    printed, rho = np.arctan2(WC[:, 1], WC[:, 0]), np.hypot(WC[:, 0], WC[:, 1])
    both = printed[:, None] + np.pi / 2 + np.arccos(D[3] / rho)[:, None] * np.array([1.0, -1.0])
    assert np.max(np.min(apart(both, q[:, :1]), axis=-1)) < 1e-6  # arccos near its end, where rho is nearly d4
    error = np.degrees(np.min(apart(both, printed[:, None]), axis=-1))  # to the nearer of the two
    assert error.min() > np.degrees(np.arctan(D[3] / (0.425 + 0.3922 + D[4])))  # 8.3 at the end of the reach
    assert error.mean() == pytest.approx(33.0, abs=1.5)


def test_theta_2_and_3_need_the_origin_of_frame_4(q: Array) -> None:
    """Law of cosines with both signs, at the point left after d5 is removed; with WC an eighth has no solution."""
    frames, c1, s1 = ROBOT.link_poses(q), np.cos(q[:, 0]), np.sin(q[:, 0])
    a2, a3 = A[1], A[2]

    def planar(p: Array) -> tuple[Array, Array, Array]:
        """cos(theta3), theta3 and theta2 of 004's formulas for a point; theta3 takes the sign of q3."""
        r, z = c1 * p[:, 0] + s1 * p[:, 1], p[:, 2] - D[0]
        c3 = (r**2 + z**2 - a2**2 - a3**2) / (2 * a2 * a3)
        theta_3 = np.sign(np.sin(q[:, 2])) * np.arccos(np.clip(c3, -1.0, 1.0))
        theta_2 = np.arctan2(z, r) - np.arctan2(a3 * np.sin(theta_3), a2 + a3 * np.cos(theta_3))
        return c3, theta_3, theta_2

    _, theta_3, theta_2 = planar(frames[:, 3, :3, 3])
    assert np.max(apart(theta_3, q[:, 2])) < 1e-6  # arccos where the elbow is nearly straight
    assert np.max(apart(theta_2, q[:, 1])) < 1e-6
    c3, theta_3, theta_2 = planar(frames[:, 4, :3, 3])
    assert 0.09 < np.mean(np.abs(c3) > 1.0) < 0.16
    error = np.maximum(apart(theta_3, q[:, 2]), apart(theta_2, q[:, 1]))[np.abs(c3) <= 1.0]
    assert 18.0 < np.degrees(error.mean()) < 26.0


def test_wrist_angles(q: Array) -> None:
    """3R6 = 0R3^T 0R6 = Rz(q4) Ry(-q5) Rz(q6), written out with both signs of q5. 1e-9: 1e-16 / |sin q5|."""
    frames = ROBOT.link_poses(q)
    r = np.swapaxes(frames[:, 2, :3, :3], -1, -2) @ frames[:, 5, :3, :3]
    sign = np.sign(np.sin(q[:, 4]))
    angles = (
        np.arctan2(-sign * r[:, 1, 2], -sign * r[:, 0, 2]),
        np.arctan2(sign * np.hypot(r[:, 0, 2], r[:, 1, 2]), r[:, 2, 2]),
        np.arctan2(-sign * r[:, 2, 1], sign * r[:, 2, 0]),
    )
    for i, angle in zip((3, 4, 5), angles, strict=True):
        assert np.max(apart(angle, q[:, i])) < 1e-9


def test_number_of_solutions(q: Array) -> None:
    """2 x 2 x 2 = 8 is the maximum: a reachable pose has 8, 6, 4 or 2."""
    counts = [len(ROBOT.inverse_kinematics(T)) for T in ROBOT.pose(q[:300])]
    assert set(counts) == {2, 4, 6, 8}
    assert 0.7 < counts.count(8) / 300 < 0.85


def test_velocities_and_accelerations(q: Array, rng: np.random.Generator) -> None:
    """V = J qd and A = J qdd + Jdot qd along q(t), by eighth-order differences at 1 ms: 1e-12."""
    q, qd, qdd, h = q[:50], rng.normal(size=(50, 6)), rng.normal(size=(50, 6)), 1e-3

    def velocity(t: float) -> Array:
        J = ROBOT.jacobian(q + t * qd + 0.5 * t * t * qdd)
        return np.asarray((J @ (qd + t * qdd)[..., None])[..., 0])

    def position(t: float) -> Array:
        return ROBOT.pose(q + t * qd + 0.5 * t * t * qdd)[:, :3, 3]

    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    V = sum(w * (position(k * h) - position(-k * h)) for k, w in weights.items()) / h
    acceleration = sum(w * (velocity(k * h) - velocity(-k * h)) for k, w in weights.items()) / h
    assert relative_error(velocity(0.0)[:, :3], V) < 1e-10
    J = ROBOT.jacobian(q)
    ours = (J @ qdd[..., None])[..., 0] + ROBOT.jacobian_rate_times_velocity(q, qd)
    assert relative_error(ours, acceleration) < 1e-10
