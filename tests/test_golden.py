"""Numbers known in advance: the golden ones of a UR10e, checked by four independent programs, and 003's closed forms.

Tolerance 1e-10 relative to max(1, |value|): what the golden numbers promise. The numbers written out below are printed
with ten decimals, so they hold 5e-11.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from oracles import relative_error

import tangere
from tangere.apps.textbook.operational import at_state
from tangere.kinematics.rotation import quaternion_from_matrix, rotation_vector_from_matrix, ypr_from_matrix

TOLERANCE = 1e-10
B = (0.3, -1.1, 1.4, -0.9, 0.7, -0.4)
SOLUTIONS_OF_B = (
    (-2.4558093914, -2.3590763955, -1.2595045349, 0.9131503857, 2.1043081103, 2.4922577193),
    (-2.4558093914, -2.0642569382, -1.3478850408, -2.4348812193, -2.1043081103, -0.6493349343),
    (-2.4558093914, 2.7152373573, 1.2595045349, -0.3969871297, 2.1043081103, 2.4922577193),
    (-2.4558093914, 2.9265345133, 1.3478850408, 2.4449278619, -2.1043081103, -0.6493349343),
    (0.3000000000, -1.1000000000, 1.4000000000, -0.9000000000, 0.7000000000, -0.4000000000),
    (0.3000000000, -0.7635410058, 1.2053231435, 2.0998105159, -0.7000000000, 2.7415926536),
    (0.3000000000, 0.2414814855, -1.4000000000, 0.5585185145, 0.7000000000, -0.4000000000),
    (0.3000000000, 0.3939748064, -1.2053231435, -2.9302443166, -0.7000000000, 2.7415926536),
)
CENTRES_OF_B = (
    (0.0280411119, -0.0195881609, 0.1807000000),
    (-0.0541453101, -0.1821358602, 0.3880839527),
    (-0.5480051721, -0.2406969736, 0.6287630250),
    (-0.7433169586, -0.4195539329, 0.5429821343),
    (-0.8016245219, -0.4446741107, 0.4712465993),
    (-0.8258539337, -0.5102526605, 0.4918595061),
)
YPR_OF_B = (-0.7235636374, 0.8026105383, 1.0198286606)
QUATERNION_OF_B = (0.6839528304, 0.5409063846, 0.1598247445, -0.4626930515)
ROTATION_VECTOR_OF_B = (1.2124601669, 0.3582526328, -1.0371423049)
LAMBDA_OF_B = (11.2513512939, 8.4698824695, 7.4859004301, 0.2277652998, 0.0345760837, 0.0546723499)


@pytest.fixture(scope="module")
def robot() -> tangere.Robot:
    return tangere.robot("ur10e")


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_configurations(name: str, golden: dict[str, Any], robot: tangere.Robot) -> None:
    case = golden[name]
    q, qd = np.array(case["q"]), np.array(case["qd"])
    J, M, C, g = robot.jacobian(q), robot.mass_matrix(q), robot.coriolis_matrix(q, qd), robot.gravity_torque(q)
    p, CTqd, g_again = robot.momentum_terms(q, qd)
    kinetic, potential = robot.energy(q, qd)
    push = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])  # 5 N of the environment on the tool, along base z
    reached = {
        "T": robot.pose(q), "J": J, "M": M, "C": C, "G": g, "Cqd": C @ qd, "CTqd": CTqd,
        "tau_contact": g - J.T @ push, "kin": kinetic, "pot": potential, "detJ": np.linalg.det(J),
        "lam": np.linalg.eigvalsh(M),
    }  # fmt: skip
    for key, value in reached.items():
        assert relative_error(value, case[key]) < TOLERANCE, key
    assert relative_error(g_again, case["G"]) < TOLERANCE
    assert relative_error(C.T @ qd, case["CTqd"]) < TOLERANCE
    assert relative_error(p, np.array(case["M"]) @ qd) < TOLERANCE
    assert relative_error(robot.bias_torque(q, qd) - g, case["Cqd"]) < TOLERANCE
    assert relative_error(robot.link_poses(q)[-1], case["T"]) < TOLERANCE


def test_determinant_of_the_jacobian_in_closed_form(robot: tangere.Robot, rng: np.random.Generator) -> None:
    """det J = a2 a3 s3 s5 (a2 c2 + a3 c23 + d5 s234), sign included: where a UR is singular."""
    dh = robot.model.dh
    assert dh is not None
    a2, a3, d5 = dh.a[1], dh.a[2], dh.d[4]
    q = rng.uniform(-np.pi, np.pi, (100, 6))
    q2, q3, q4, q5 = q[:, 1], q[:, 2], q[:, 3], q[:, 4]
    reach = a2 * np.cos(q2) + a3 * np.cos(q2 + q3) + d5 * np.sin(q2 + q3 + q4)
    formula = a2 * a3 * np.sin(q3) * np.sin(q5) * reach
    assert relative_error(np.linalg.det(robot.jacobian(q)), formula) < 1e-14  # entries are below 1.3 m


def test_inverse_kinematics_of_b(robot: tangere.Robot) -> None:
    found = robot.inverse_kinematics(robot.pose(B))
    assert isinstance(found, tangere.IKSolutions)
    expected = np.array(SOLUTIONS_OF_B)
    assert found.q.shape == (8, 6)
    for q in found:
        assert np.min(np.max(np.abs(expected - q), axis=-1)) < TOLERANCE
    for q in expected:
        assert np.min(np.max(np.abs(found.q - q), axis=-1)) < TOLERANCE


def test_orientation_of_b(robot: tangere.Robot) -> None:
    R = robot.pose(B)[:3, :3]
    assert relative_error(ypr_from_matrix(R), YPR_OF_B) < TOLERANCE
    assert relative_error(quaternion_from_matrix(R), QUATERNION_OF_B) < TOLERANCE
    assert relative_error(rotation_vector_from_matrix(R), ROTATION_VECTOR_OF_B) < TOLERANCE


def test_centres_of_mass_of_b(robot: tangere.Robot) -> None:
    frames = robot.link_poses(B)
    centres = [T[:3, :3] @ link.com + T[:3, 3] for T, link in zip(frames, robot.model.links, strict=True)]
    assert relative_error(centres, CENTRES_OF_B) < TOLERANCE


def test_operational_inertia_of_b(robot: tangere.Robot) -> None:
    J, M = robot.jacobian(B), robot.mass_matrix(B)
    direct = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    assert relative_error(np.diag(direct), LAMBDA_OF_B) < TOLERANCE
    assert relative_error(np.diag(at_state(robot, B, np.zeros(6)).Lambda), LAMBDA_OF_B) < TOLERANCE


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_the_impossible_inertia_of_001(name: str, golden: dict[str, Any], robot: tangere.Robot) -> None:
    """001 prints I6xx = 0: its set is refused, and computed anyway it differs in M by what the golden numbers say."""
    with pytest.raises(tangere.UnphysicalModel):
        tangere.robot("ur10e", parameters="001-literal")
    last = robot.model.links[-1]
    literal = dataclasses.replace(last, inertia=np.diag((0.0, 0.0004, 0.0003)))
    model = dataclasses.replace(robot.model, links=(*robot.model.links[:-1], literal))
    q = np.array(golden[name]["q"])
    other = tangere.Robot(model)
    difference = np.linalg.norm(other.mass_matrix(q) - robot.mass_matrix(q))
    assert relative_error(difference, golden[name]["dM66lit"]) < TOLERANCE
    assert np.array_equal(other.gravity_torque(q), robot.gravity_torque(q))


# -------------------------------------------------------------------------------------- 003's robots in closed form


def test_pendulum_of_003() -> None:
    """m l^2 theta'' + m l g sin(theta) = tau with m = 1 kg, l = 1 m (003 has the sign of dL/dtheta wrong)."""
    robot = tangere.robot("pendulum")
    theta = np.linspace(-3.0, 3.0, 13)[:, None]
    assert relative_error(robot.gravity_torque(theta), 9.81 * np.sin(theta)) < 1e-14
    assert relative_error(robot.forward_dynamics(theta, 0 * theta, 0 * theta), -9.81 * np.sin(theta)) < 1e-13
    assert relative_error(robot.energy(theta, 2 + 0 * theta)[0], np.full(13, 2.0)) < 1e-14
    assert isinstance(robot.energy([0.1], [0.2])[0], float)


def test_planar_3r_of_003(rng: np.random.Generator) -> None:
    robot = tangere.robot("planar3r")
    l0, l1, l2, l3 = 0.3, 0.5, 0.4, 0.2
    q = rng.uniform(-np.pi, np.pi, (50, 3))
    s, c, zero = np.sin(np.cumsum(q, axis=-1)), np.cos(np.cumsum(q, axis=-1)), np.zeros(50)
    x, z = s @ (l1, l2, l3), l0 + c @ (l1, l2, l3)
    T = robot.pose(q)
    assert relative_error(T[:, :3, 3], np.stack([x, zero, z], axis=-1)) < 1e-14
    rows = [(l1 * f[:, 0] + l2 * f[:, 1] + l3 * f[:, 2], l2 * f[:, 1] + l3 * f[:, 2], l3 * f[:, 2]) for f in (c, -s)]
    J = robot.jacobian(q)
    assert relative_error(J[:, 0], np.stack(rows[0], axis=-1)) < 1e-14
    assert relative_error(J[:, 2], np.stack(rows[1], axis=-1)) < 1e-14
    assert np.max(np.abs(J[:, 4] - 1.0)) < 1e-15
    assert np.max(np.abs(J[:, [1, 3, 5]])) < 1e-15


def test_scara_of_003(rng: np.random.Generator) -> None:
    """Four operational coordinates x, y, z and the turn about z from three turns and a slide."""
    robot = tangere.robot("scara")
    h, l1, l2 = 0.4, 0.35, 0.25
    q = rng.uniform(-2.0, 2.0, (50, 4))
    a, ab, phi = np.cumsum(q[:, :3], axis=-1).T
    T, J = robot.pose(q), robot.jacobian(q)
    place = (l1 * np.cos(a) + l2 * np.cos(ab), l1 * np.sin(a) + l2 * np.sin(ab), h + q[:, 3])
    assert relative_error(T[:, :3, 3], np.stack(place, axis=-1)) < 1e-14
    assert relative_error(T[:, 0, 0] + 1j * T[:, 1, 0], np.exp(1j * phi)) < 1e-14
    assert np.max(np.abs(J[:, 5] - (1.0, 1.0, 1.0, 0.0))) < 1e-15
    assert np.max(np.abs(J[:, 2] - (0.0, 0.0, 0.0, 1.0))) < 1e-15
    assert relative_error(robot.gravity_torque(q)[:, 3], np.full(50, 0.8 * 9.81)) < 1e-13
