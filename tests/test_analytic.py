"""Analytic Jacobians: J = E J_A exactly, and J_A is the derivative of the coordinates.

J = E J_A is held to 1e-11 (inverse of E of condition up to 1e2); finite differences of second order with step 1e-6
leave 1e-9 (up to 1e-7 near a singular representation), held to 1e-6 where the pose keeps 0.1 off it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from oracles import golden_ur10e, random_arm, tcp_jacobian, tcp_pose

from tangere.apps.textbook import analytic
from tangere.apps.textbook.coordinates import SYSTEMS
from tangere.errors import InvalidValue
from tangere.kinematics.rotation import matrix_from_ypr, pose

MODELS = [golden_ur10e(), random_arm(41, "rrprrrr")]
CASES = list(product(SYSTEMS, analytic.ORIENTATIONS))


def regular(T: np.ndarray) -> bool:
    """Off gimbal lock, off the z axis and off half a turn, so that finite differences have room."""
    chi = analytic.pose_coordinates(T, "cylindrical", "ypr")
    half_turn = np.linalg.norm(analytic.pose_coordinates(T, orientation="rotation_vector")[3:]) > 3.1
    near_pi = np.max(np.abs(chi[[1, 3, 5]])) > 3.1
    return bool(chi[0] > 0.1 and np.cos(chi[4]) > 0.1 and not half_turn and not near_pi)


@pytest.mark.parametrize(("position", "orientation"), CASES)
def test_jacobians(position: Any, orientation: Any) -> None:
    rng, checked = np.random.default_rng(1), 0
    for model in MODELS:
        for _ in range(40):
            q = rng.uniform(-3, 3, model.dof)
            J, T = tcp_jacobian(model, q), tcp_pose(model, q)
            if not regular(T):
                continue
            J_A = analytic.analytic_jacobian(J, T, position, orientation)
            E = analytic.representation_matrix(T, position, orientation)
            assert E @ J_A == pytest.approx(J, abs=1e-11)
            h = 1e-6
            for i, e in enumerate(np.eye(model.dof)):
                ahead, behind = (
                    analytic.pose_coordinates(tcp_pose(model, q + s * h * e), position, orientation) for s in (1, -1)
                )
                assert J_A[:, i] == pytest.approx((ahead - behind) / (2 * h), abs=1e-6)
            checked += 1
    assert checked > 40


@pytest.mark.parametrize(("position", "orientation"), CASES)
def test_batch_equals_single(position: Any, orientation: Any) -> None:
    rng, model = np.random.default_rng(2), MODELS[0]
    q = rng.uniform(-2, 2, (4, 6))
    J = np.stack([tcp_jacobian(model, x) for x in q]).reshape(2, 2, 6, 6)
    T = np.stack([tcp_pose(model, x) for x in q]).reshape(2, 2, 4, 4)
    J_A = analytic.analytic_jacobian(J, T, position, orientation)
    assert J_A.shape == (2, 2, 7 if orientation == "quaternion" else 6, 6)
    for i in np.ndindex(2, 2):
        assert analytic.analytic_jacobian(J[i], T[i], position, orientation) == pytest.approx(J_A[i], abs=1e-13)


def test_gimbal_lock_is_refused_or_damped() -> None:
    T, J = pose(matrix_from_ypr([0.3, np.pi / 2, 0.0]), [0.4, 0.1, 0.2]), np.eye(6)
    with pytest.raises(InvalidValue, match="gimbal lock"):
        analytic.analytic_jacobian(J, T)
    damped = analytic.analytic_jacobian(J, T, damping=0.05)
    assert np.linalg.norm(damped, 2) <= 1 / (2 * 0.05) + 1e-12
    # directions that the angles can follow are hardly changed: pure pitch
    omega = analytic.representation_matrix(T) @ np.array([0, 0, 0, 0, 1.0, 0])
    assert damped @ omega == pytest.approx([0, 0, 0, 0, 1.0, 0], abs=0.003)  # lam^2 / (1 + lam^2)
    assert np.all(np.isfinite(analytic.analytic_jacobian(J, T, orientation="quaternion")))


@pytest.mark.parametrize("position", ["cylindrical", "spherical"])
def test_axis_is_refused_or_damped(position: Any) -> None:
    T, J = pose(np.eye(3), [0.0, 0.0, 0.7]), np.eye(6)
    with pytest.raises(InvalidValue, match="z axis"):
        analytic.analytic_jacobian(J, T, position)
    assert np.all(np.isfinite(analytic.analytic_jacobian(J, T, position, damping=0.1)))


def test_bad_input() -> None:
    with pytest.raises(InvalidValue, match="valid are ypr, quaternion, rotation_vector"):
        analytic.analytic_jacobian(np.eye(6), np.eye(4), orientation="euler")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="damping"):
        analytic.analytic_jacobian(np.eye(6), np.eye(4), damping=-1)
    with pytest.raises(InvalidValue, match="J: expected shape"):
        analytic.analytic_jacobian(np.eye(3), np.eye(4))
