"""The formulas of 003 written out literally, and its misprints shown to be wrong, against the library.

What needs no literal form of its own is proved elsewhere: test_coordinates, test_rotation, test_rotation_rates,
test_analytic, test_resolution, test_operational, test_floating_base, test_teaching.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import random_rotation, relative_error

import tangere
from tangere.apps.textbook.coordinates import quaternion_rate
from tangere.apps.textbook.operational import at_state
from tangere.kinematics.resolution import (
    Task,
    damped_inverse,
    equal_priority,
    null_space_projector,
    prioritised,
    pseudo_inverse,
)
from tangere.kinematics.rotation import (
    matrix_from_quaternion,
    matrix_from_rotation_vector,
    matrix_from_ypr,
    pose,
    quaternion_from_matrix,
    quaternion_product,
    quaternion_rotate,
    skew,
)
from tangere.model.model import Array

TIGHT = 1e-12
SLOPE = 1e-9  # eighth-order differences of curves of order one to a hundred
ROBOT = tangere.robot("ur10e")


def slope(f: Callable[[float], Any], h: float = 2e-3) -> Array:
    """f'(0), central differences of eighth order."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return np.asarray(sum(w * (np.asarray(f(k * h)) - np.asarray(f(-k * h))) for k, w in weights.items())) / h


def times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


@pytest.fixture
def state(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """q, qd, qdd (50, 6) of the UR10e, off its elbow and wrist singularities."""
    q = rng.uniform(-np.pi, np.pi, (50, 6))
    q[:, 2] = np.where(q[:, 2] < 0, -1.0, 1.0) * rng.uniform(0.4, 2.7, 50)
    q[:, 4] = np.where(q[:, 4] < 0, -1.0, 1.0) * rng.uniform(0.4, 2.7, 50)
    return q, rng.uniform(-2, 2, (50, 6)), rng.normal(size=(50, 6)) * 3


# ------------------------------------------------------------------------------------------------------- rotations


def test_rotation_matrix_and_the_order_of_its_angles(rng: np.random.Generator) -> None:
    """The nine printed entries are right for yaw psi, pitch theta, roll phi; the line above names them otherwise."""
    worst = 0.0
    for psi, theta, phi in rng.uniform(-1.5, 1.5, (50, 3)):
        (c, s), (d, t), (e, u) = ((np.cos(x), np.sin(x)) for x in (psi, theta, phi))
        printed = [
            [c * d, c * t * u - s * e, c * t * e + s * u],
            [s * d, s * t * u + c * e, s * t * e - c * u],
            [-t, d * u, d * e],
        ]
        assert relative_error(matrix_from_ypr([psi, theta, phi]), np.array(printed)) < TIGHT
        worst = max(worst, float(np.abs(matrix_from_ypr([theta, phi, psi]) - printed).max()))
    assert worst > 1.0  # [theta, phi, psi] = [yaw, pitch, roll] is another rotation


def test_quaternion_example() -> None:
    """90 degrees about z: q v q* is (0, -1, 0, 0), printed (0, 0, 0, 0), which has not even the length of v."""
    q, v = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)]), np.array([0.0, 0.0, 1.0, 0.0])  # (0, v) as a quaternion
    turned = quaternion_product(quaternion_product(q, v), q * [1, -1, -1, -1])
    assert turned == pytest.approx([0, -1, 0, 0], abs=1e-15)
    assert quaternion_rotate(q, v[1:]) == pytest.approx([-1, 0, 0], abs=1e-15)
    assert matrix_from_quaternion(q) @ [0, 1, 0] == pytest.approx([-1, 0, 0], abs=1e-15)


def test_angular_velocity_is_world_in_one_line_and_body_in_the_next(rng: np.random.Generator) -> None:
    """Rdot R^T = skew(omega), omega in world axes; 1/2 Omega q as printed wants omega in body axes."""
    wrong = 0.0
    for R, omega in zip(random_rotation(rng, (50,)), rng.normal(size=(50, 3)), strict=True):
        Rdot = slope(lambda t, R=R, omega=omega: matrix_from_rotation_vector(omega * t) @ R)
        assert relative_error(Rdot @ R.T, skew(omega)) < SLOPE
        body = R.T @ omega
        assert relative_error(R.T @ Rdot, skew(body)) < SLOPE
        q = quaternion_from_matrix(R)

        def printed(w: Array, q: Array = q) -> Array:
            x, y, z = w
            return 0.5 * np.array([[0, -x, -y, -z], [x, 0, z, -y], [y, -z, 0, x], [z, y, -x, 0]]) @ q

        assert relative_error(quaternion_rate(q, body, "body"), printed(body)) < TIGHT
        assert relative_error(quaternion_rate(q, omega, "world"), printed(body)) < TIGHT
        wrong = max(wrong, float(np.abs(printed(omega) - printed(body)).max()))
    assert wrong > 0.5


def test_transforms_and_velocities_of_one_body(state: tuple[Array, Array, Array], rng: np.random.Generator) -> None:
    """r_AP = r_AB + R_AB r_BP = T_AB r_BP; v_B = v_A + omega x r_AB for two points of one body (not of two frames)."""
    q, qd, _ = state
    T = ROBOT.link_poses(q)[:, 2]
    A, B = rng.normal(size=(2, 3))
    r_AB = times(T[:, :3, :3], np.broadcast_to(B - A, (50, 3)))
    at_A, at_B = (times(ROBOT.jacobian(q, link=3, point=point), qd) for point in (A, B))
    assert relative_error(at_B[:, :3], at_A[:, :3] + np.cross(at_A[:, 3:], r_AB)) < TIGHT
    assert relative_error(at_B[:, 3:], at_A[:, 3:]) < TIGHT
    R, r = random_rotation(rng), rng.normal(size=3)
    assert pose(R, r) @ [*A, 1.0] == pytest.approx([*(r + R @ A), 1.0], abs=1e-14)


# ------------------------------------------------------------------------------- examples: planar 3R and pendulum


def test_planar_3r(rng: np.random.Generator) -> None:
    """chi_eP, chi_eR and J_eA of the notes: its y is our z."""
    robot, (l0, l1, l2, l3) = tangere.robot("planar3r"), (0.3, 0.5, 0.4, 0.2)
    q = rng.uniform(-np.pi, np.pi, (50, 3))
    (s1, s12, s123), (c1, c12, c123) = (np.moveaxis(f(np.cumsum(q, axis=-1)), -1, 0) for f in (np.sin, np.cos))
    T, J = robot.pose(q), robot.jacobian(q)
    assert relative_error(T[:, 0, 3], l1 * s1 + l2 * s12 + l3 * s123) < TIGHT
    assert relative_error(T[:, 2, 3], l0 + l1 * c1 + l2 * c12 + l3 * c123) < TIGHT
    turn = np.arctan2(T[:, 0, 2], T[:, 0, 0])
    assert np.max(np.abs(np.angle(np.exp(1j * (turn - q.sum(-1)))))) < TIGHT
    rows = [
        [l1 * c1 + l2 * c12 + l3 * c123, l2 * c12 + l3 * c123, l3 * c123],
        [-l1 * s1 - l2 * s12 - l3 * s123, -l2 * s12 - l3 * s123, -l3 * s123],
        [np.ones(50), np.ones(50), np.ones(50)],
    ]
    for ours, row in zip((0, 2, 4), rows, strict=True):
        assert relative_error(J[:, ours], np.stack(row, axis=-1)) < TIGHT


def test_pendulum(rng: np.random.Generator) -> None:
    """theta'' = -(g/l) sin(theta): dL/dtheta is -m l g sin(theta), printed with + (then theta'' would be positive)."""
    robot, m, length = tangere.robot("pendulum"), 1.0, 1.0
    theta, rate = rng.uniform(-3, 3, (50, 1)), rng.normal(size=(50, 1))
    qdd = robot.forward_dynamics(theta, rate, np.zeros((50, 1)))
    assert relative_error(qdd, -9.81 / length * np.sin(theta)) < TIGHT
    kinetic, potential = robot.energy(theta, rate)
    assert relative_error(kinetic, 0.5 * m * length**2 * rate[:, 0] ** 2) < TIGHT
    rest = robot.energy([0.0], [0.0])[1]
    assert relative_error(potential - rest, m * length * 9.81 * (1 - np.cos(theta[:, 0]))) < TIGHT
    dL = slope(lambda h: np.subtract(*robot.energy(theta + h, rate)))
    assert relative_error(dL, -m * length * 9.81 * np.sin(theta[:, 0])) < SLOPE
    assert np.max(np.abs(qdd - 9.81 / length * np.sin(theta))) > 19.0


# ------------------------------------------------------------------------------- inverse differential kinematics


def test_damped_inverse_is_not_moore_penrose(rng: np.random.Generator) -> None:
    """(J^T J + lam^2 I)^-1 J^T is right, its name is not: J D J is not J, and J (I - D J) is not zero."""
    J, lam = rng.normal(size=(4, 7)), 0.3
    D = np.linalg.inv(J.T @ J + lam**2 * np.eye(7)) @ J.T
    assert relative_error(damped_inverse(J, lam), D) < 1e-11  # condition (s/lam)^2 of the printed form
    assert np.abs(J @ D @ J - J).max() > 1e-3
    assert np.abs(J @ (np.eye(7) - D @ J)).max() > 1e-3
    assert np.abs(J @ null_space_projector(J)).max() < 1e-13
    assert relative_error(null_space_projector(J), np.eye(7) - pseudo_inverse(J) @ J) < TIGHT


def test_equal_priority_as_printed(rng: np.random.Generator) -> None:
    """Jbar^T for Jbar^+ fulfils nothing."""
    tasks = [Task(rng.normal(size=(3, 7)), rng.normal(size=3)) for _ in range(2)]
    J, w = np.vstack([t.J for t in tasks]), np.concatenate([t.w for t in tasks])
    assert relative_error(J @ equal_priority(tasks), w) < 1e-11
    assert np.abs(J @ (J.T @ w) - w).max() > 1.0


def test_priorities_as_printed(rng: np.random.Generator) -> None:
    """N_i of the task's own Jacobian leaves nothing: J_i N_i = 0, qd = 0. With the tasks above, all are done."""
    tasks = [Task(rng.normal(size=(2, 7)), rng.normal(size=2)) for _ in range(3)]
    qd = np.zeros(7)
    for i, task in enumerate(tasks):  # sum N_i qd_i, qd_i = (J_i N_i)^+ (w_i - J_i sum N_j qd_j)
        own = null_space_projector(task.J)
        assert np.abs(pseudo_inverse(task.J @ own)).max() == 0.0
        above = np.vstack([t.J for t in tasks[:i]]) if i else np.zeros((1, 7))
        N = null_space_projector(above)
        assert relative_error(np.linalg.pinv(N), N) < 1e-11  # N^+ = N, so the printed N_i^+ does no harm
        qd = qd + N @ pseudo_inverse(task.J @ N) @ (task.w - task.J @ qd)
    assert relative_error(prioritised(tasks), qd) < 1e-11
    for task in tasks:
        assert relative_error(task.J @ qd, task.w) < 1e-11


# ----------------------------------------------------------------------------------------------------------- dynamics


def test_projected_newton_euler(state: tuple[Array, Array, Array]) -> None:
    """M qdd + b + g = tau from the robot's link Jacobians; b needs Jdot where 003 prints J (wrong by Nm)."""
    q, qd, qdd = state
    down = np.array([0.0, 0.0, -9.81])

    def jacobians(t: float) -> tuple[Array, Array]:
        """J_S in base axes, J_R in body axes, along the motion."""
        Jv, Jw = ROBOT.link_jacobians(q + t * qd)
        return Jv, np.swapaxes(ROBOT.link_poses(q + t * qd)[..., :3, :3], -1, -2) @ Jw

    JS, JR = jacobians(0.0)
    JS_dot, JR_dot = slope(lambda t: jacobians(t)[0]), slope(lambda t: jacobians(t)[1])
    M, b, printed, g = np.zeros((50, 6, 6)), np.zeros((50, 6)), np.zeros((50, 6)), np.zeros((50, 6))
    for k, link in enumerate(ROBOT.model.links):
        JSt, JRt = np.swapaxes(JS[:, k], -1, -2), np.swapaxes(JR[:, k], -1, -2)
        Omega = times(JR[:, k], qd)
        gyro = np.cross(Omega, Omega @ link.inertia)
        M += link.mass * JSt @ JS[:, k] + JRt @ link.inertia @ JR[:, k]
        for total, A, B in ((b, JS_dot[:, k], JR_dot[:, k]), (printed, JS[:, k], JR[:, k])):
            total += times(JSt, link.mass * times(A, qd)) + times(JRt, times(B, qd) @ link.inertia + gyro)
        g -= times(JSt, np.broadcast_to(link.mass * down, (50, 3)))
    assert relative_error(ROBOT.inverse_dynamics(q, qd, qdd), times(M, qdd) + b + g) < SLOPE
    assert relative_error(ROBOT.bias_torque(q, qd) - ROBOT.gravity_torque(q), b) < SLOPE
    assert np.abs(printed - b).max() > 10.0


def test_end_effector_dynamics(state: tuple[Array, Array, Array], rng: np.random.Generator) -> None:
    """tau = J^T (Lambda wdot + mu + p) gives the tool wdot; with Jdot^T as printed it does not.

    1e-8: Lambda has condition 1e5 at these poses.
    """
    q, qd, _ = state
    wanted, space, J = rng.normal(size=(50, 6)), at_state(ROBOT, q, qd), ROBOT.jacobian(q)
    F = times(space.Lambda, wanted) + space.mu + space.p

    def reached(tau: Array) -> Array:
        return times(J, ROBOT.forward_dynamics(q, qd, tau)) + ROBOT.jacobian_rate_times_velocity(q, qd)

    assert relative_error(reached(times(np.swapaxes(J, -1, -2), F)), wanted) < 1e-8
    Jdot = slope(lambda t: ROBOT.jacobian(q + t * qd))
    assert np.abs(reached(times(np.swapaxes(Jdot, -1, -2), F)) - wanted).max() > 100.0
