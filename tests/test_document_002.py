"""002's circle, velocities and quasi-static torques, against tangere.robot("ur10", parameters="002").

002's joint angles are its own (standard DH with other signs), its base is ours yawed by 180 degrees.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles import relative_error

import tangere
from tangere.model.conventions import official_from_flipped_elbow
from tangere.model.model import Array

ROBOT = tangere.robot("ur10", parameters="002")
YAW = np.diag([-1.0, -1.0, 1.0])  # our base axes to 002's
SIGN = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])  # d q_official / d q_flipped
RADIUS, RATE = 0.1, 2 * np.pi / 200  # m, rad/s: what 002 calls a period is this rate
START = np.array([0.0002, 0.0001, -0.0001, 0.0001, 0.0004, 0.00001])  # 002's q_init


def tip(q: Array) -> Array:
    """Pen tip in 002's base [m]."""
    return YAW @ ROBOT.pose(official_from_flipped_elbow(q))[:3, 3]


def jacobian(q: Array) -> Array:
    """J of the pen tip in 002's base and joint angles."""
    return np.kron(np.eye(2), YAW) @ ROBOT.jacobian(official_from_flipped_elbow(q)) * SIGN


def circle(t: float) -> Array:
    """x = r sin, y = 356.1 mm, z = r cos + 1328 mm, theta = 2 pi t / 200."""
    return np.array([RADIUS * np.sin(RATE * t), 0.3561, 1.328 + RADIUS * np.cos(RATE * t)])


def velocity(t: float) -> Array:
    """Xdot, corrected: V_x and V_z as 002's own lines for them say."""
    return np.array([RADIUS * np.cos(RATE * t) * RATE, 0, -RADIUS * np.sin(RATE * t) * RATE, 0, 0, 0])


def printed_velocity(t: float) -> Array:
    """Xdot as printed: sine and cosine exchanged."""
    return np.array([-RADIUS * np.sin(RATE * t) * RATE, 0, RADIUS * np.cos(RATE * t) * RATE, 0, 0, 0])


def test_velocity_is_the_derivative_of_the_circle() -> None:
    """Printed with sine and cosine exchanged: wrong by up to twice the speed of 3.1 mm/s, upwards at the start."""
    off = []
    for t in np.linspace(0.0, 200.0, 41):
        slope = (circle(t + 0.01) - circle(t - 0.01)) / 0.02
        assert velocity(t)[:3] == pytest.approx(slope, abs=1e-10)  # r (w h)^2 w / 6 = 5e-11
        off.append(np.linalg.norm(printed_velocity(t)[:3] - slope))
    assert max(off) == pytest.approx(2 * RADIUS * RATE, rel=1e-6)
    assert printed_velocity(0.0)[2] > 0.0


def drawn(steps: int, rate: object) -> tuple[float, float]:
    """Largest distance from the circle [m] and largest joint speed [rad/s]: qd = J^-1 Xdot, q += qd dt."""
    q, dt, error, speed = START.copy(), 200.0 / steps, 0.0, 0.0
    for k in range(steps):
        qd = np.linalg.solve(jacobian(q), rate(k * dt))  # type: ignore[operator]
        q = q + qd * dt
        error = max(error, float(np.linalg.norm(tip(q) - circle((k + 1) * dt))))
        speed = max(speed, float(np.max(np.abs(qd))))
    return error, speed


def test_circle_by_inverse_velocities() -> None:
    """Corrected: 2.55 mm off with 400 Euler steps, a tenth with ten times as many. Printed: 1.1 m, 100 rad/s."""
    assert circle(0.0) == pytest.approx([0.0, 0.3561, 1.428], abs=1e-15)
    assert tip(np.zeros(6)) == pytest.approx(circle(0.0), abs=1e-12)
    assert drawn(400, velocity)[0] == pytest.approx(2.55e-3, abs=2e-5)
    assert drawn(4000, velocity)[0] == pytest.approx(0.27e-3, abs=1e-5)
    error, speed = drawn(400, printed_velocity)
    assert error > 1.0
    assert speed > 100.0


def test_start_is_singular() -> None:
    """At q = 0 the rank of J is 3: stretched, wrist over shoulder, axes 4 and 6 parallel. q_init is hardly better."""
    assert np.sum(np.linalg.svd(jacobian(np.zeros(6)), compute_uv=False) > 1e-12) == 3
    sigma = np.linalg.svd(jacobian(START), compute_uv=False)
    assert sigma[-1] == pytest.approx(2.3e-5, rel=0.03)
    assert sigma[0] / sigma[-1] == pytest.approx(1e5, rel=0.03)


def test_quasi_static_torque_holds_against_the_wall(rng: np.random.Generator) -> None:
    """tau = g - J^T F by virtual work: motors, weight and the wall's F = (0, -5, 0, 0, 0, 0) on the pen do none.

    So the pen presses with +5 N along y. Work by differences of the tip and of the potential energy: 1e-6.
    """
    F, h = np.array([0.0, -5.0, 0.0, 0.0, 0.0, 0.0]), 1e-5
    for q, qd in zip(rng.uniform(-np.pi, np.pi, (20, 6)), rng.normal(size=(20, 6)), strict=True):
        official = official_from_flipped_elbow(q)
        tau = ROBOT.gravity_torque(official) - (jacobian(q) * SIGN).T @ F  # torques of official joints
        v = (tip(q + h * qd) - tip(q - h * qd)) / (2 * h)
        up = [ROBOT.energy(official_from_flipped_elbow(q + k * h * qd), np.zeros(6))[1] for k in (1, -1)]
        assert tau @ (SIGN * qd) + F[:3] @ v == pytest.approx((up[0] - up[1]) / (2 * h), abs=1e-6)
        pressing = ROBOT.gravity_torque(official) @ (SIGN * qd) + 5.0 * v[1]
        assert tau @ (SIGN * qd) == pytest.approx(pressing, abs=1e-6)


def test_gravity_is_the_slope_of_the_potential(rng: np.random.Generator) -> None:
    """P = sum m g z_c and g(q) = dP/dq; 1e-7: second-order differences at 1e-4 rad of 100 J, 1e-8 times 10."""
    masses, h = (7.1, 12.7, 4.27, 2.0, 2.0, 0.365), 1e-4
    assert [link.mass for link in ROBOT.model.links] == pytest.approx(masses, abs=5e-3)

    def potential(q: Array) -> Array:
        T = ROBOT.link_poses(q)
        z = [T[..., k, 2, :3] @ link.com + T[..., k, 2, 3] for k, link in enumerate(ROBOT.model.links)]
        return np.asarray(sum(9.81 * link.mass * z_k for link, z_k in zip(ROBOT.model.links, z, strict=True)))

    q = rng.uniform(-np.pi, np.pi, (20, 6))
    slope = np.stack([(potential(q + h * e) - potential(q - h * e)) / (2 * h) for e in np.eye(6)], axis=-1)
    assert relative_error(ROBOT.gravity_torque(q), slope) < 1e-7
    assert relative_error(ROBOT.energy(q, np.zeros((20, 6)))[1], potential(q)) < 1e-12
