"""Operational space: the equation of motion of the tool, golden diagonal, energy and null-space torques.

1e-9 relative: Lambda has condition numbers up to 1e5 at the poses drawn here, times 1e-15 of the products.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from oracles import STEP, golden_ur10e, lagrange, random_arm, relative_error, tcp_jacobian

import tangere
from tangere.apps.textbook import operational as ops
from tangere.errors import InvalidValue

MODELS = {"ur10e": golden_ur10e(), "seven joints": random_arm(21, "rrrrprr")}
TOLERANCE = 1e-9


def state(name: str, seed: int) -> dict[str, Any]:
    model, rng = MODELS[name], np.random.default_rng(seed)
    q, qd = rng.uniform(-2, 2, model.dof), rng.normal(size=model.dof)
    M, C, g = lagrange(model, q, qd)
    drift = (tcp_jacobian(model, q + 1j * STEP * qd).imag / STEP) @ qd
    return {"J": tcp_jacobian(model, q), "M": M, "c": C @ qd, "g": g, "Jdot_qd": drift}


def regular(name: str, count: int, seed: int) -> list[dict[str, Any]]:
    drawn = (state(name, 1000 * seed + i) for i in range(10 * count))
    kept = list(islice((s for s in drawn if np.linalg.svd(s["J"], compute_uv=False)[-1] > 0.03), count))
    assert len(kept) == count
    return kept


@pytest.mark.parametrize("name", list(MODELS))
def test_force_at_the_tool_gives_the_acceleration(name: str) -> None:
    """Lambda wdot + mu + p = F when tau = J^T F: wdot from the joint-space equation, nothing operational in it."""
    rng = np.random.default_rng(1)
    for s in regular(name, 40, 1):
        F = rng.normal(size=6) * 10
        qdd = np.linalg.solve(s["M"], s["J"].T @ F - s["c"] - s["g"])
        wdot = s["J"] @ qdd + s["Jdot_qd"]
        space = ops.operational_space(**s)
        # against what cancels (1e6 N of Lambda wdot for some N of F): 4e-15 seen, whichever kernels of BLAS compute
        terms = np.abs(space.Lambda) @ np.abs(wdot) + np.abs(space.mu) + np.abs(space.p)
        assert np.max(np.abs(space.Lambda @ wdot + space.mu + space.p - F)) < 1e-13 * np.max(terms)


@pytest.mark.parametrize("name", list(MODELS))
def test_commanded_acceleration_is_reached(name: str) -> None:
    rng = np.random.default_rng(2)
    for s in regular(name, 40, 2):
        space, wanted = ops.operational_space(**s), rng.normal(size=6)
        tau = s["J"].T @ (space.Lambda @ wanted + space.mu + space.p)
        reached = s["J"] @ np.linalg.solve(s["M"], tau - s["c"] - s["g"]) + s["Jdot_qd"]
        assert relative_error(reached, wanted) < TOLERANCE


def test_golden_diagonal() -> None:
    model = MODELS["ur10e"]
    q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
    M, _, g = lagrange(model, q, np.zeros(6))
    Lambda = ops.operational_space(tcp_jacobian(model, q), M, np.zeros(6), g, np.zeros(6)).Lambda
    golden = [11.2513512939, 8.4698824695, 7.4859004301, 0.2277652998, 0.0345760837, 0.0546723499]
    assert np.diag(Lambda) == pytest.approx(golden, abs=1e-9)  # printed with ten digits


def test_consistent_inverse_and_null_space_torque() -> None:
    rng = np.random.default_rng(3)
    for s in regular("seven joints", 40, 3):
        J, M = s["J"], s["M"]
        Jbar = ops.dynamically_consistent_inverse(J, M)
        assert relative_error(J @ Jbar, np.eye(6)) < TOLERANCE
        tau = (np.eye(7) - J.T @ Jbar.T) @ rng.normal(size=7)
        assert relative_error(J @ np.linalg.solve(M, tau), np.zeros(6)) < TOLERANCE
        assert np.linalg.norm(tau) > 1e-6  # and yet some torque is left to move the elbow
        # least kinetic energy among all qd with J qd = w
        w = rng.normal(size=6)
        qd = Jbar @ w
        other = qd + np.linalg.svd(J)[2][-1] * 0.1
        assert relative_error(J @ other, J @ qd) < TOLERANCE
        assert other @ M @ other > qd @ M @ qd


@pytest.mark.parametrize("lam", [0.01, 0.1])
def test_damping_bounds_the_inertia_at_a_singularity(lam: float) -> None:
    model, q = MODELS["ur10e"], np.array([0.3, -1.1, 0.0, -0.9, 0.7, -0.4])  # stretched elbow
    M, _, g = lagrange(model, q, np.zeros(6))
    J = tcp_jacobian(model, q)
    with pytest.raises(InvalidValue, match="damping > 0"):
        ops.operational_space(J, M, np.zeros(6), g, np.zeros(6))
    space = ops.operational_space(J, M, np.zeros(6), g, np.zeros(6), damping=lam)
    assert np.linalg.eigvalsh(space.Lambda).max() == pytest.approx(1 / lam**2)  # the singular direction hits the cap
    literal = np.linalg.inv(J @ np.linalg.inv(M) @ J.T + lam**2 * np.eye(6))
    assert relative_error(space.Lambda, literal) < 1e-6  # two explicit inverses of condition 1e4..1e8
    assert np.all(np.isfinite(space.p))
    assert np.all(np.isfinite(ops.dynamically_consistent_inverse(J, M, lam)))


def test_fewer_coordinates_and_batches() -> None:
    states = regular("ur10e", 6, 5)
    batch = {key: np.stack([s[key] for s in states]).reshape(2, 3, *states[0][key].shape) for key in states[0]}
    space = ops.operational_space(**batch)
    assert (space.Lambda.shape, space.mu.shape, space.p.shape) == ((2, 3, 6, 6), (2, 3, 6), (2, 3, 6))
    for i, s in enumerate(states):
        single = ops.operational_space(**s)
        assert relative_error(space.mu[divmod(i, 3)], single.mu) < 1e-12
        # position only: Lambda of three rows is the inverse of that block of J M^-1 J^T
        rows = ops.operational_space(s["J"][:3], s["M"], s["c"], s["g"], s["Jdot_qd"][:3])
        assert relative_error(np.linalg.inv(rows.Lambda), s["J"][:3] @ np.linalg.inv(s["M"]) @ s["J"][:3].T) < TOLERANCE


class OracleArm:
    """A robot by the oracles, for one state at a time."""

    model = MODELS["ur10e"]

    def jacobian(self, q: Any) -> Any:
        return tcp_jacobian(self.model, q)

    def jacobian_rate_times_velocity(self, q: Any, qd: Any) -> Any:
        return (tcp_jacobian(self.model, q + 1j * STEP * qd).imag / STEP) @ qd

    def mass_matrix(self, q: Any) -> Any:
        return lagrange(self.model, q, q)[0]

    def bias_torque(self, q: Any, qd: Any) -> Any:
        _, C, g = lagrange(self.model, q, qd)
        return C @ qd + g

    def gravity_torque(self, q: Any) -> Any:
        return lagrange(self.model, q, q)[2]


def test_at_state_asks_the_robot() -> None:
    q, qd = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4]), np.array([0.8, -0.6, 0.9, 1.1, -0.7, 0.5])
    M, C, g = lagrange(OracleArm.model, q, qd)
    arm = OracleArm()
    expected = ops.operational_space(arm.jacobian(q), M, C @ qd, g, arm.jacobian_rate_times_velocity(q, qd))
    found = ops.at_state(arm, q.tolist(), qd.tolist())
    assert relative_error(found.mu, expected.mu) < TOLERANCE
    assert relative_error(found.p, expected.p) < TOLERANCE


def test_at_state_of_a_real_robot_in_a_batch() -> None:
    robot, rng = tangere.robot("ur10e"), np.random.default_rng(7)
    q, qd = rng.uniform(-2, 2, (3, 4, 6)), rng.normal(size=(3, 4, 6))
    q[..., 2] += np.where(q[..., 2] < 0, -0.5, 0.5)  # off the elbow and wrist singularities
    q[..., 4] += np.where(q[..., 4] < 0, -0.5, 0.5)
    batch = ops.at_state(robot, q, qd)
    for i in np.ndindex(3, 4):
        single = ops.at_state(OracleArm(), q[i], qd[i])
        assert relative_error(batch.Lambda[i], single.Lambda) < TOLERANCE
        assert relative_error(batch.mu[i], single.mu) < TOLERANCE
        assert relative_error(batch.p[i], single.p) < TOLERANCE


def test_bad_input() -> None:
    s = regular("ur10e", 1, 6)[0]
    with pytest.raises(InvalidValue, match="positive definite"):
        ops.operational_space(**{**s, "M": -s["M"]})
    with pytest.raises(InvalidValue, match="7 rows for 6 joints"):
        ops.operational_space(**{**s, "J": np.ones((7, 6))})
    with pytest.raises(InvalidValue, match="damping"):
        ops.operational_space(**s, damping=-1.0)
    with pytest.raises(InvalidValue, match=r"c: expected shape \(\.\.\., 6\)"):
        ops.operational_space(**{**s, "c": np.zeros(5)})
