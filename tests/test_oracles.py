"""The oracles agree with the golden numbers, with Pinocchio and with each other.

Tolerance 1e-10 relative to max(1, |value|) is what the golden numbers hold; the figures reached are 1e-13.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import (
    STEP,
    frames,
    golden_ur10e,
    kinetic_energy,
    lagrange,
    mass_matrix,
    pinocchio_model,
    potential_energy,
    projected_newton_euler,
    random_arm,
    relative_error,
    tcp_jacobian,
    tcp_pose,
    tool_down_ik,
)

from tangere.model.model import Model

pin = pytest.importorskip("pinocchio")

ARMS = {
    "ur10e": golden_ur10e(),
    "random 5": random_arm(1, "rrprr"),
    "random 7": random_arm(2, "prrrprr"),
    "pendulum": random_arm(3, "r", payload=False),
}


@pytest.fixture(params=list(ARMS))
def arm(request: pytest.FixtureRequest) -> Model:
    return ARMS[request.param]


def states(model: Model, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [(rng.uniform(-3, 3, model.dof), rng.normal(size=model.dof) * 2) for _ in range(count)]


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_golden_numbers(name: str, golden: dict[str, Any]) -> None:
    case, model = golden[name], ARMS["ur10e"]
    q, qd = np.array(case["q"]), np.array(case["qd"])
    M, C, g = lagrange(model, q, qd)
    Mp, b, gp = projected_newton_euler(model, q, qd)
    J = tcp_jacobian(model, q)
    reached = {
        "T": tcp_pose(model, q), "J": J, "M": M, "G": g, "C": C, "Cqd": C @ qd, "CTqd": C.T @ qd,
        "kin": kinetic_energy(model, q, qd), "pot": potential_energy(model, q), "detJ": np.linalg.det(J),
    }  # fmt: skip
    for key, value in reached.items():
        assert relative_error(value, case[key]) < 1e-10, key
    assert relative_error(Mp, case["M"]) < 1e-10
    assert relative_error(b, case["Cqd"]) < 1e-10
    assert relative_error(gp, case["G"]) < 1e-10


def test_against_pinocchio(arm: Model) -> None:
    pm, data = pinocchio_model(arm)
    for q, qd in states(arm, 50, 11):
        M, C, g = lagrange(arm, q, qd)
        pin.framesForwardKinematics(pm, data, q)
        assert relative_error(tcp_pose(arm, q), data.oMf[pm.getFrameId("tcp")].homogeneous) < 1e-10
        for link, T in zip(arm.links, frames(arm, q)[1], strict=True):
            assert relative_error(T, data.oMf[pm.getFrameId(link.name)].homogeneous) < 1e-10
        expected = np.array(pin.crba(pm, data, q))
        assert relative_error(M, np.triu(expected) + np.triu(expected, 1).T) < 1e-10
        assert relative_error(C, pin.computeCoriolisMatrix(pm, data, q, qd)) < 1e-10
        assert relative_error(g, pin.computeGeneralizedGravity(pm, data, q)) < 1e-10
        J = pin.computeFrameJacobian(pm, data, q, pm.getFrameId("tcp"), pin.LOCAL_WORLD_ALIGNED)
        assert relative_error(tcp_jacobian(arm, q), J.reshape(6, -1)) < 1e-10  # Pinocchio drops the axis of one joint
        assert relative_error(potential_energy(arm, q), pin.computePotentialEnergy(pm, data, q)) < 1e-10


def test_lagrange_and_projected_newton_euler_agree(arm: Model) -> None:
    for q, qd in states(arm, 50, 12):
        M, C, g = lagrange(arm, q, qd)
        Mp, b, gp = projected_newton_euler(arm, q, qd)
        assert relative_error(Mp, M) < 1e-10
        assert relative_error(b, C @ qd) < 1e-10
        assert relative_error(gp, g) < 1e-10


def test_mass_rate_is_c_plus_c_transposed(arm: Model) -> None:
    for q, qd in states(arm, 20, 13):
        _, C, _ = lagrange(arm, q, qd)
        M_rate = mass_matrix(arm, q + 1j * STEP * qd).imag / STEP
        assert relative_error(C + C.T, M_rate) < 1e-10


def test_gravity_torque_is_the_slope_of_the_potential(arm: Model) -> None:
    for q, qd in states(arm, 20, 14):
        g = lagrange(arm, q, qd)[2]
        slope = [potential_energy(arm, q + 1j * STEP * e).imag / STEP for e in np.eye(arm.dof)]
        assert relative_error(g, np.array(slope)) < 1e-10


def test_tool_down_solutions_reach_the_pose_and_contain_the_source() -> None:
    model = ARMS["ur10e"]
    assert model.dh is not None
    rng, counts = np.random.default_rng(15), set()
    for _ in range(500):
        q = rng.uniform(-np.pi, np.pi, 6)
        q[4] = rng.choice([-1, 1]) * np.pi / 2
        q[3] = q[4] - q[1] - q[2]  # official angles: sin(q2 + q3 + q4) sin(q5) = 1 is the tool pointing down
        T = tcp_pose(model, q)
        assert T[2, 2] == pytest.approx(-1.0, abs=1e-12)
        found = tool_down_ik(model.dh, T[:3, 3], np.arctan2(T[1, 0], T[0, 0]))
        counts.add(len(found))
        for solution in found:
            # arccos near its ends loses half the digits: 1e-7 m is what 000's own formulas can promise everywhere
            assert np.max(np.abs(tcp_pose(model, solution) - T)) < 1e-7
        distance = np.abs(np.angle(np.exp(1j * (found - q)))).max(-1)
        assert distance.min() < 1e-6
    assert max(counts) == 8


def test_tool_down_with_a_pen_and_out_of_reach() -> None:
    model = ARMS["ur10e"]
    assert model.dh is not None
    found = tool_down_ik(model.dh, [0.6, 0.2, 0.1], 0.3, tool_length=0.1)
    assert len(found) == 8
    for solution in found:
        T = tcp_pose(model, solution)
        assert T[:3, 3] - [0.0, 0.0, 0.1] == pytest.approx([0.6, 0.2, 0.1], abs=1e-12)
    assert tool_down_ik(model.dh, [3.0, 0.0, 0.0], 0.0).shape == (0, 6)
    assert tool_down_ik(model.dh, [0.01, 0.0, 0.5], 0.0).shape == (0, 6)
