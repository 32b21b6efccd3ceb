"""003's teaching robots: pendulum, planar 3R and SCARA against the equations printed there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles import lagrange, mass_matrix, tcp_jacobian, tcp_pose

import tangere
from tangere.apps.scenarios.execute import execute
from tangere.errors import NoSolution
from tangere.model.loading import load, names
from tangere.planning.joint_motions import Sine


def test_they_come_after_the_urs() -> None:
    assert names()[-3:] == ("pendulum", "planar3r", "scara")


def test_pendulum(rng: np.random.Generator) -> None:
    """003: m l^2 theta'' + m l g sin(theta) = 0 with m = 1 kg, l = 1 m; T = m l^2 theta'^2 / 2."""
    model = load("pendulum")
    for theta in rng.uniform(-np.pi, np.pi, 20):
        np.testing.assert_allclose(tcp_pose(model, [theta])[:3, 3], (np.sin(theta), 0.0, -np.cos(theta)), atol=1e-15)
        M, C, g = lagrange(model, np.array([theta]), np.array([0.7]))
        np.testing.assert_allclose(M, [[1.0]], atol=1e-14)
        np.testing.assert_allclose(C, [[0.0]], atol=1e-14)
        np.testing.assert_allclose(g, [9.81 * np.sin(theta)], atol=1e-14)


def test_planar3r(rng: np.random.Generator) -> None:
    """003's position, orientation and Jacobian; 1e-14: sums of a few sines."""
    model = load("planar3r")
    l0, l1, l2, l3 = 0.3, 0.5, 0.4, 0.2
    for q in rng.uniform(-np.pi, np.pi, (20, 3)):
        s, c = np.sin(np.cumsum(q)), np.cos(np.cumsum(q))
        T = tcp_pose(model, q)
        x, z = l1 * s[0] + l2 * s[1] + l3 * s[2], l0 + l1 * c[0] + l2 * c[1] + l3 * c[2]
        np.testing.assert_allclose(T[:3, 3], (x, 0.0, z), atol=1e-14)
        np.testing.assert_allclose(T[:3, :3], [[c[2], 0, s[2]], [0, 1, 0], [-s[2], 0, c[2]]], atol=1e-14)
        J = tcp_jacobian(model, q)
        row_x = (l1 * c[0] + l2 * c[1] + l3 * c[2], l2 * c[1] + l3 * c[2], l3 * c[2])
        row_z = (-l1 * s[0] - l2 * s[1] - l3 * s[2], -l2 * s[1] - l3 * s[2], -l3 * s[2])
        np.testing.assert_allclose(J, [row_x, (0, 0, 0), row_z, (0, 0, 0), (1, 1, 1), (0, 0, 0)], atol=1e-14)


def test_planar3r_rods() -> None:
    """Uniform round rods: 5 kg/m, radius 25 mm."""
    for link, length in zip(load("planar3r").links, (0.5, 0.4, 0.2), strict=True):
        m, r = 5.0 * length, 0.025
        across = m * (3 * r**2 + length**2) / 12
        assert link.mass == pytest.approx(m, rel=1e-15)
        np.testing.assert_allclose(link.inertia, np.diag((across, across, m * r**2 / 2)), rtol=1e-14)
        np.testing.assert_allclose(link.com, (0.0, 0.0, -length / 2), atol=1e-16)


def test_scara(rng: np.random.Generator) -> None:
    """Four operational coordinates x, y, z, phi from (alpha, beta, gamma, zeta)."""
    model = load("scara")
    assert [joint.kind for joint in model.joints] == ["revolute", "revolute", "revolute", "prismatic"]
    assert (model.joints[3].q_min, model.joints[3].q_max) == (-0.2, 0.0)
    h, l1, l2 = 0.4, 0.35, 0.25
    for q in rng.uniform(-2.0, 2.0, (20, 4)):
        a, ab, phi = np.cumsum(q[:3])
        T = tcp_pose(model, q)
        x, y = l1 * np.cos(a) + l2 * np.cos(ab), l1 * np.sin(a) + l2 * np.sin(ab)
        np.testing.assert_allclose(T[:3, 3], (x, y, h + q[3]), atol=1e-14)
        c, s = np.cos(phi), np.sin(phi)
        np.testing.assert_allclose(T[:3, :3], [[c, -s, 0], [s, c, 0], [0, 0, 1]], atol=1e-14)
        M = mass_matrix(model, q)
        np.testing.assert_allclose(M[3], (0, 0, 0, 0.8), atol=1e-14)  # only the quill moves with zeta
        _, _, g = lagrange(model, q, np.zeros(4))
        np.testing.assert_allclose(g, (0, 0, 0, 0.8 * 9.81), atol=1e-13)


def test_limits_of_a_sliding_joint_are_said_in_its_units(tmp_path: Path) -> None:
    """Degrees and metres are read apart, and what a run says of a limit is in m, not in rad."""
    given = {"robot": "scara", "q": "10,20,30,-1e-4", "duration": 0.1, "plant": "rigid"}
    push = "joint=4,torque=100,start=0,duration=0.1"
    done = execute("hold", given | {"push": push}, out=tmp_path, csv=False)
    assert np.allclose(done.result.log["q"][0], [*np.radians([10.0, 20.0, 30.0]), -1e-4], atol=1e-12)
    assert "joint 4 beyond its upper end of 0 m" in done.summary["interventions"]
    with pytest.raises(tangere.InvalidValue, match=r"joint 4 of scara at 0.1 m is outside its limits, -0.2 to 0 m"):
        execute("hold", given | {"q": "10,20,30,0.1"}, out=tmp_path / "none", csv=False)
    with pytest.raises(NoSolution, match=r"joint 4 would swing 0.3 m about .* to 0 m"):
        Sine(tangere.robot("scara"), np.zeros(4), 0.3, 0.1, joints=(4,))
