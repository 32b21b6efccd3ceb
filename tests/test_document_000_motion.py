"""Dynamics, tool-down inverse kinematics and momentum of 000 (eqs 56-107) written out, against tangere.robot("ur10e").

Derivatives by differences of eighth order; SLOPE says what they leave. Misprints are computed too, and shown to be
wrong by the size that docs/equations.md states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import relative_error

import tangere
from tangere.model.conventions import official_from_seed
from tangere.model.model import Array

TIGHT = 1e-12  # sums over six links of torques up to 1e3 Nm, relative
SLOPE = 1e-9
ROBOT = tangere.robot("ur10e")
LINKS = ROBOT.model.links
A2, A3, D1, D4, D5, D6 = -0.6127, -0.57155, 0.1807, 0.17415, 0.11985, 0.11655  # m, official, signs of table 2
MASS = (7.37, 13.05, 3.99, 2.10, 1.98, 0.62)  # table 3, kg
LENGTH = (0.181, 0.613, 0.572, 0.174, 0.120, 0.117)  # table 4, m
RADIUS = (0.075, 0.054, 0.049, 0.045, 0.045, 0.045)  # table 4, m


def slope(f: Callable[[float], Any], h: float = 2e-3) -> Array:
    """f'(0), central differences of eighth order."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return np.asarray(sum(w * (np.asarray(f(k * h)) - np.asarray(f(-k * h))) for k, w in weights.items())) / h


def gradient(f: Callable[[Array], Any], q: Array) -> Array:
    """df/dq_i on a new first axis."""
    return np.stack([slope(lambda h, e=e: f(q + h * e)) for e in np.eye(6)])


@pytest.fixture
def state(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """q, qd, qdd (50, 6): any angle, a UR's speeds, some rad/s2."""
    return rng.uniform(-np.pi, np.pi, (50, 6)), rng.uniform(-2, 2, (50, 6)), rng.normal(size=(50, 6)) * 3


# -------------------------------------------------------------------------------------------- cylinders, eqs 56-61


def cylinder(m: float, r: float, length: float) -> tuple[float, float]:
    """Moments of a solid cylinder along and across its axis, as in eqs 56-61."""
    return m * r**2 / 2, m * (3 * r**2 + length**2) / 12


def test_cylinder_formula_by_integration() -> None:
    """Gauss points along the axis and in r^2, four directions: exact for second moments."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    m, r, length = 13.05, 0.054, 0.613
    along = across = 0.0
    for x, wx in zip(nodes, weights, strict=True):
        for y, wy in zip(nodes, weights, strict=True):
            z, r2, part = x * length / 2, (y + 1) / 2 * r**2, m * wx / 2 * wy / 2
            along += part * r2
            across += part * (z**2 + r2 / 2)  # mean of x^2 over all directions
    assert (along, across) == pytest.approx(cylinder(m, r, length), rel=1e-14)


def test_cylinders_of_the_loadable_sets() -> None:
    """Eqs 56-61 with a2 for d2 (57) and m3, r3, a3 for m2, r2, d2 (58) are the bodies of set 000-E, in other axes."""
    axis = (1, 0, 0, 1, 1, 2)  # in official axes: z of 000's frames 1, 4, 5 is our y; links 2 and 3 lie along x
    for i, link in enumerate(tangere.robot("ur10e", parameters="000-E").model.links):
        along, across = cylinder(MASS[i], RADIUS[i], LENGTH[i])
        expected = np.full(3, across)
        expected[axis[i]] = along
        assert np.diag(link.inertia) == pytest.approx(expected, rel=1e-14)


def test_eq_58_as_printed_is_the_upper_arm_again() -> None:
    """Literally (m2, r2, and a2 for the undefined d2) link 3 would have the moments of link 2, four times too much."""
    printed, repaired = cylinder(MASS[1], RADIUS[1], LENGTH[1]), cylinder(MASS[2], RADIUS[2], LENGTH[2])
    assert printed == pytest.approx((0.019, 0.418), abs=5e-4)
    assert repaired == pytest.approx((0.0048, 0.1112), abs=5e-5)
    official = np.diag(LINKS[2].inertia)
    assert np.max(np.abs(official - [repaired[0], repaired[1], repaired[1]])) > 0.19  # no cylinder is a good forearm


# ----------------------------------------------------------------------------------------- Lagrange, eqs 62-87


def test_mass_matrix_from_link_jacobians(state: tuple[Array, Array, Array]) -> None:
    """Eqs 71-76, 84-86: K = 1/2 sum (m v^2 + w^T R I R^T w) = 1/2 qd^T M qd, with R_k from link to base."""
    q, qd, _ = state
    Jv, Jw = ROBOT.link_jacobians(q)
    R = ROBOT.link_poses(q)[..., :3, :3]
    M, wrong, kinetic = np.zeros((50, 6, 6)), np.zeros((50, 6, 6)), np.zeros(50)
    for k, link in enumerate(LINKS):
        v, w = (Jv[:, k] @ qd[..., None])[..., 0], (Jw[:, k] @ qd[..., None])[..., 0]  # eq 72
        Rt, Jvt, Jwt = (np.swapaxes(x, -1, -2) for x in (R[:, k], Jv[:, k], Jw[:, k]))
        in_base = R[:, k] @ link.inertia @ Rt  # eq 73
        M += link.mass * Jvt @ Jv[:, k] + Jwt @ in_base @ Jw[:, k]
        wrong += link.mass * Jvt @ Jv[:, k] + Jwt @ Rt @ link.inertia @ R[:, k] @ Jw[:, k]
        kinetic += 0.5 * (link.mass * np.sum(v * v, -1) + np.einsum("ka,kab,kb->k", w, in_base, w))  # eq 71
    assert relative_error(ROBOT.mass_matrix(q), M) < TIGHT
    assert relative_error(ROBOT.energy(q, qd)[0], kinetic) < TIGHT
    # the text calls R_k "from base to link"; taken at its word M is wrong by this much
    assert np.max(np.abs(wrong - M)) > 0.5


def test_euler_lagrange(state: tuple[Array, Array, Array]) -> None:
    """Eqs 62-70, 87: d/dt dL/dqd - dL/dq = tau, with L from `energy` alone; eq 68 is the vector C qd."""
    q, qd, qdd = state
    momentum = ROBOT.mass_matrix(q) @ qd[..., None]  # eq 64
    along = np.stack([0.5 * (_kinetic(q, qd + e) - _kinetic(q, qd - e)) for e in np.eye(6)], axis=-1)
    assert relative_error(along, momentum[..., 0]) < TIGHT  # K is quadratic: central differences are exact
    Mdot = slope(lambda h: ROBOT.mass_matrix(q + h * qd))
    dK = gradient(lambda x: ROBOT.energy(x, qd)[0], q).T
    dP = gradient(lambda x: ROBOT.energy(x, qd)[1], q).T  # eq 69
    c = (Mdot @ qd[..., None])[..., 0] - dK  # eq 68
    assert relative_error(ROBOT.bias_torque(q, qd) - ROBOT.gravity_torque(q), c) < SLOPE
    assert relative_error((ROBOT.coriolis_matrix(q, qd) @ qd[..., None])[..., 0], c) < SLOPE
    tau = (ROBOT.mass_matrix(q) @ qdd[..., None])[..., 0] + c + dP  # eqs 67, 70, 87
    assert relative_error(ROBOT.inverse_dynamics(q, qd, qdd), tau) < SLOPE


def _kinetic(q: Array, qd: Array) -> Array:
    return np.asarray(ROBOT.energy(q, qd)[0])


def test_christoffel_matrix(state: tuple[Array, Array, Array]) -> None:
    """Eqs 77-79 entry by entry from derivatives of M, and Mdot = C + C^T."""
    q, qd, _ = state
    dM = gradient(ROBOT.mass_matrix, q)  # dM[i, :, k, j] = dM_kj/dq_i
    by_i, by_j, by_k = (np.einsum(f"{indices},bi->bkj", dM, qd) for indices in ("ibkj", "jbki", "kbij"))
    ours = ROBOT.coriolis_matrix(q, qd)
    assert relative_error(ours, 0.5 * (by_i + by_j - by_k)) < SLOPE
    assert relative_error(ours + np.swapaxes(ours, -1, -2), by_i) < SLOPE  # by_i is Mdot


def test_gravity_from_link_jacobians(state: tuple[Array, Array, Array]) -> None:
    """Eqs 80-83: P = -sum m g^T p, G = dP/dq = -sum Jv^T m g."""
    q, qd, _ = state
    down = np.array([0.0, 0.0, -9.81])
    Jv, T = ROBOT.link_jacobians(q)[0], ROBOT.link_poses(q)
    centres = [T[:, k, :3, :3] @ link.com + T[:, k, :3, 3] for k, link in enumerate(LINKS)]
    P = -sum(link.mass * p @ down for link, p in zip(LINKS, centres, strict=True))
    G = -sum(link.mass * np.swapaxes(Jv[:, k], -1, -2) @ down for k, link in enumerate(LINKS))
    assert relative_error(ROBOT.energy(q, qd)[1], P) < TIGHT
    assert relative_error(ROBOT.gravity_torque(q), G) < TIGHT


# ----------------------------------------------------------------------------------------- tool-down IK, eqs 89-97


def test_eqs_89_and_90_first_joint_and_wrist() -> None:
    """q1 from the tip itself; the wrist lies off the radial direction by asin(d4/rho), which eq 89 leaves out.

    Printed, it is 54, 30, 19 mm away at rho = 0.4, 0.7, 1.1 m. 1e-9: arccos near its ends.
    """
    for rho, mm in ((0.4, 54.0), (0.7, 30.0), (1.1, 19.0)):
        tip = rho * np.array([np.cos(0.7), np.sin(0.7)])
        q1 = np.arctan2(tip[1], tip[0]) + np.pi / 2 + np.arccos(D4 / rho) * np.array([1.0, -1.0])  # eq 90, both signs
        T = np.diag([1.0, -1.0, -1.0, 1.0])  # tool down, any yaw
        T[:2, 3], T[2, 3] = tip, 0.3
        found = ROBOT.inverse_kinematics(T)
        assert len(found) >= 4
        for q in found:
            gap = np.abs(np.angle(np.exp(1j * (q[0] - q1))))
            assert gap.min() < 1e-9
            axis = np.array([np.cos(q[0]), np.sin(q[0])])
            W = tip - np.sign(np.sin(q[4])) * D5 * axis  # eq 89, corrected
            assert relative_error(ROBOT.link_poses(q)[3, :2, 3], W) < 1e-9  # origin of frame 4
        printed = tip + D5 * tip / rho
        W = tip - D5 * np.array([np.cos(q1[0]), np.sin(q1[0])])
        assert 1e3 * np.linalg.norm(printed - W) == pytest.approx(mm, abs=0.6)


def test_eq_90_needs_atan2() -> None:
    """arctan(y/x) gives another q1 on the whole half plane x < 0."""
    angle = np.linspace(-np.pi, np.pi, 60, endpoint=False) + 0.01
    wrong = np.abs(np.arctan(np.sin(angle) / np.cos(angle)) - np.arctan2(np.sin(angle), np.cos(angle))) > 1e-9
    assert wrong.sum() in (29, 30)


def test_eqs_91_and_92_elbow_triangle(rng: np.random.Generator) -> None:
    """91 with -a3^2, its sign tied to q3's, is the triangle of frame 4; as printed its arccos never exists."""
    seed = rng.uniform(-np.pi, np.pi, (200, 6))
    reach = A2 * np.sin(seed[:, 1]) + A3 * np.sin(seed[:, 1] + seed[:, 2])  # eq 33: h, along -(c1, s1)
    height = A2 * np.cos(seed[:, 1]) + A3 * np.cos(seed[:, 1] + seed[:, 2])
    official = official_from_seed(seed, a_positive=False)
    origin = ROBOT.link_poses(official)[:, 3, :3, 3]
    across = np.stack([np.cos(seed[:, 0]), np.sin(seed[:, 0])], axis=-1)
    assert relative_error(-np.sum(origin[:, :2] * across, axis=-1), reach) < TIGHT
    assert relative_error(origin[:, 2] - D1, height) < TIGHT
    A = np.hypot(reach, height)
    inner = np.arccos((A**2 + A2**2 - A3**2) / (2 * A2 * A))
    q3 = np.sign(np.sin(seed[:, 2])) * np.arccos((A**2 - A2**2 - A3**2) / (2 * A2 * A3))  # eq 92
    q2 = np.pi / 2 - np.arctan2(height, reach) + np.sign(q3) * inner  # "+" with q3 >= 0, because a2, a3 < 0
    # 1e-6: arccos keeps half the digits where the arm is nearly stretched or folded
    assert np.max(np.abs(np.angle(np.exp(1j * (q3 - seed[:, 2]))))) < 1e-6
    assert np.max(np.abs(np.angle(np.exp(1j * (q2 - seed[:, 1]))))) < 1e-6
    # printed: (A^2 + a2^2 + a3^2)/(2 a2 A) >= sqrt(a2^2 + a3^2)/|a2| > 1, whatever A
    printed = np.abs((A**2 + A2**2 + A3**2) / (2 * A2 * A))
    assert printed.min() > np.hypot(A2, A3) / abs(A2) - 1e-12
    assert np.hypot(A2, A3) / abs(A2) == pytest.approx(1.3675, abs=1e-4)
    # the other pairing of signs puts the wrist elsewhere
    q2 = np.pi / 2 - np.arctan2(height, reach) - np.sign(q3) * inner
    miss = np.hypot(A2 * np.sin(q2) + A3 * np.sin(q2 + q3) - reach, A2 * np.cos(q2) + A3 * np.cos(q2 + q3) - height)
    assert miss.max() > 1.0


def test_eqs_93_to_97_wrist(rng: np.random.Generator) -> None:
    """Eq 94 is eq 30 turned by -90 degrees, and just that makes eq 96 right; both signs of q5; any orientation."""
    seed = rng.uniform(-np.pi, np.pi, (200, 6))
    q1, q23 = seed[:, 0], seed[:, 1] + seed[:, 2]
    c1, s1, c, s, o = np.cos(q1), np.sin(q1), np.cos(q23), np.sin(q23), np.zeros(200)
    eq94 = np.moveaxis(np.array([[c1 * c, -c1 * s, s1], [s1 * c, -s1 * s, -c1], [s, c, o]]), -1, 0)
    eq30 = np.moveaxis(np.array([[-c1 * s, -c1 * c, s1], [-s1 * s, -s1 * c, -c1], [c, -s, o]]), -1, 0)
    assert relative_error(eq30 @ [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], eq94) < TIGHT  # Rz(-90)
    target = ROBOT.pose(official_from_seed(seed, a_positive=False))[:, :3, :3]

    def wrist(R03: Array) -> Array:
        r = np.swapaxes(R03, -1, -2) @ target  # eq 93
        sign = np.sign(np.sin(seed[:, 4]))
        q4 = np.arctan2(sign * r[:, 1, 2], sign * r[:, 0, 2])
        q5 = np.arctan2(sign * np.hypot(r[:, 0, 2], r[:, 1, 2]), r[:, 2, 2])
        q6 = np.arctan2(sign * r[:, 2, 1], -sign * r[:, 2, 0])
        return np.angle(np.exp(1j * (np.stack([q4, q5, q6], axis=-1) - seed[:, 3:])))

    assert np.max(np.abs(wrist(eq94))) < 1e-12  # 1e-16 / |sin q5| of 200 draws
    off = wrist(eq30)
    assert np.max(np.abs(off[:, 1:])) < 1e-12
    assert np.abs(off[:, 0]) == pytest.approx(np.full(200, np.pi / 2), abs=1e-12)  # eq 30 in its place: 90 degrees


# ------------------------------------------------------------------------------ computed torque and momentum, 98-107


def test_eq_100_has_the_wrong_sign(state: tuple[Array, Array, Array], rng: np.random.Generator) -> None:
    """tau = M (qdd_des + u) + N (eq 99) on the exact model gives e'' = qdd_des - qdd = -u, printed +u."""
    q, qd, qdd_des = state
    u = rng.normal(size=(50, 6))
    qdd = ROBOT.forward_dynamics(q, qd, ROBOT.inverse_dynamics(q, qd, qdd_des + u))
    assert relative_error(qdd_des - qdd, -u) < 1e-10  # condition of M, 3e4, times rounding
    assert np.max(np.abs(qdd_des - qdd - u)) > 2.0


def test_momentum_equation(state: tuple[Array, Array, Array]) -> None:
    """Eqs 105-107: p = M qd and pdot = tau - g + C^T qd (tau_ext = 0); C qd in its place is wrong by Nm."""
    q, qd, qdd = state
    p, CTqd, g = ROBOT.momentum_terms(q, qd)
    tau = ROBOT.inverse_dynamics(q, qd, qdd)
    assert relative_error(p, (ROBOT.mass_matrix(q) @ qd[..., None])[..., 0]) < TIGHT
    pdot = slope(lambda t: ROBOT.momentum_terms(q + qd * t + 0.5 * qdd * t**2, qd + qdd * t)[0])
    assert relative_error(tau - g + CTqd, pdot) < SLOPE
    C = ROBOT.coriolis_matrix(q, qd)
    assert relative_error((np.swapaxes(C, -1, -2) @ qd[..., None])[..., 0], CTqd) < TIGHT
    assert np.max(np.abs(tau - g + (C @ qd[..., None])[..., 0] - pdot)) > 10.0
