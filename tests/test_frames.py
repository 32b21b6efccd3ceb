"""Rotations of model files: exact at right angles, and right everywhere (scipy as the second opinion)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tangere.errors import InvalidValue
from tangere.model.frames import (
    check_transform,
    cos_sin,
    cos_sin_deg,
    inverse,
    rotation_rpy,
    rotation_rpy_deg,
    rotation_vector,
    rpy_from_rotation,
    transform,
)


@pytest.mark.parametrize("turns", range(-9, 10))
def test_right_angles_are_exact(turns: int) -> None:
    exact = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[turns % 4]
    assert cos_sin_deg(90.0 * turns) == exact
    assert cos_sin(turns * math.pi / 2) == exact
    assert cos_sin(turns * math.pi / 2 + 3e-10) == exact  # as far off as 1.570796327
    assert cos_sin(turns * math.pi / 2 + 2e-9) != exact


def test_against_scipy(rng: np.random.Generator) -> None:
    """1e-15: a handful of roundings of numbers up to 1."""
    for rpy in rng.uniform(-7.0, 7.0, (200, 3)):
        expected = Rotation.from_euler("xyz", rpy).as_matrix()
        np.testing.assert_allclose(rotation_rpy(*rpy), expected, atol=3e-15)
        np.testing.assert_allclose(rotation_rpy_deg(np.rad2deg(rpy)), expected, atol=3e-15)
        np.testing.assert_allclose(rotation_rpy(*rpy_from_rotation(expected), snap=False), expected, atol=3e-15)
        np.testing.assert_allclose(rotation_vector(rpy), Rotation.from_rotvec(rpy).as_matrix(), atol=3e-15)
    assert np.array_equal(rotation_vector((0.0, 0.0, 0.0)), np.eye(3))
    np.testing.assert_allclose(rotation_vector((0, math.pi, 0)), np.diag((-1.0, 1.0, -1.0)), atol=0)


@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_rpy_round_trip_near_gimbal_lock(off: float, sign: float, rng: np.random.Generator) -> None:
    """The three angles together reproduce R however close pitch is to 90 degrees, with the rounding of a product in R
    (which leaves roll and yaw, each alone, without a digit)."""
    for roll, yaw in rng.uniform(-3.0, 3.0, (50, 2)):
        A = rotation_rpy(*rng.uniform(-3.0, 3.0, 3))
        R = A.T @ (A @ rotation_rpy(roll, sign * (math.pi / 2 - off), yaw, snap=False))
        np.testing.assert_allclose(rotation_rpy(*rpy_from_rotation(R), snap=False), R, atol=2e-15)


def test_inverse(rng: np.random.Generator) -> None:
    T = transform(rotation_rpy(0.3, -1.2, 2.0), rng.normal(size=3))
    np.testing.assert_allclose(T @ inverse(T), np.eye(4), atol=1e-15)


@pytest.mark.parametrize(
    "T",
    [np.eye(3), np.diag((1.0, 1.0, -1.0, 1.0)), 2.0 * np.eye(4), np.full((4, 4), np.nan), np.eye(4) + 1e-5],
)
def test_what_is_not_a_transform(T: np.ndarray) -> None:
    with pytest.raises(InvalidValue, match="tool must be"):
        check_transform(T, "tool")
