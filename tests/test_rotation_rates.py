"""Rates of rotations against finite differences, Pinocchio and each other, in world and in body axes.

Finite differences of eighth order leave about 1e-12 (1e-10 near gimbal lock and near pi, where the representation
bends sharply); 1e-9 and 1e-8 are asked. Closed forms are held to 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import random_rotation

from tangere.apps.textbook import coordinates as rates
from tangere.apps.textbook.coordinates import Frame
from tangere.errors import InvalidValue
from tangere.kinematics import rotation as rot

FRAMES: list[Frame] = ["world", "body"]


def slope(f: Callable[[float], Any], h: float = 1e-3) -> np.ndarray:
    """f'(0), eighth order central: error about 1e-13 for curves of order one."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return np.asarray(sum(w * (np.asarray(f(k * h)) - np.asarray(f(-k * h))) for k, w in weights.items())) / h


def moving(R: np.ndarray, omega: np.ndarray, frame: Frame) -> Callable[[float], np.ndarray]:
    """R(t) that turns with constant omega, given in world or in body axes."""

    def at(t: float) -> np.ndarray:
        step = rot.matrix_from_rotation_vector(omega * t)
        return step @ R if frame == "world" else R @ step

    return at


def states(count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [(random_rotation(rng), rng.normal(size=3)) for _ in range(count)]


@pytest.mark.parametrize("frame", FRAMES)
def test_quaternion_rate(frame: Frame) -> None:
    for R, omega in states(200, 1):
        q = rot.quaternion_from_matrix(R)
        R_of = moving(R, omega, frame)
        expected = slope(lambda t, R_of=R_of, q=q: nearest(rot.quaternion_from_matrix(R_of(t)), q))
        rate = rates.quaternion_rate(q, omega, frame)
        assert rate == pytest.approx(expected, abs=1e-9)
        assert rates.omega_from_quaternion_rate(q, rate, frame) == pytest.approx(omega, abs=1e-13)
        pure = np.concatenate([[0.0], omega])  # the product form of the specification
        form = rot.quaternion_product(q, pure) if frame == "body" else rot.quaternion_product(pure, q)
        assert rate == pytest.approx(0.5 * form, abs=1e-14)


def nearest(q: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return q if q @ reference >= 0 else -q


@pytest.mark.parametrize("frame", FRAMES)
def test_yaw_pitch_roll_rate(frame: Frame) -> None:
    checked = 0
    for R, omega in states(200, 2):
        ypr = rot.ypr_from_matrix(R)
        if abs(np.cos(ypr[1])) < 0.2 or np.max(np.abs(ypr[[0, 2]])) > 3.1:  # finite differences need room
            continue
        R_of = moving(R, omega, frame)
        rate = rates.ypr_rate(ypr, omega, frame)
        assert rate == pytest.approx(slope(lambda t, R_of=R_of: rot.ypr_from_matrix(R_of(t))), abs=1e-8)
        assert rates.omega_from_ypr_rate(ypr, rate, frame) == pytest.approx(omega, abs=1e-13)
        checked += 1
    assert checked > 150


@pytest.mark.parametrize("frame", FRAMES)
def test_rotation_vector_rate(frame: Frame) -> None:
    for R, omega in states(200, 3):
        v = rot.rotation_vector_from_matrix(R) * 0.98  # keeps off pi, where the vector jumps
        R_of = moving(rot.matrix_from_rotation_vector(v), omega, frame)
        expected = slope(lambda t, R_of=R_of: rot.rotation_vector_from_matrix(R_of(t)))
        rate = rates.rotation_vector_rate(v, omega, frame)
        assert rate == pytest.approx(expected, abs=1e-8)
        assert rates.omega_from_rotation_vector_rate(v, rate, frame) == pytest.approx(omega, abs=1e-12)


def test_matrices_against_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    for R, _ in states(200, 4):
        ypr, v = rot.ypr_from_matrix(R), rot.rotation_vector_from_matrix(R)
        for frame, reference in (("world", pin.WORLD), ("body", pin.LOCAL)):
            expected = pin.rpy.computeRpyJacobian(ypr[::-1], reference)[:, ::-1]
            assert rates.ypr_rate_matrix(ypr, frame) == pytest.approx(expected, abs=1e-14)
        assert rates.rotation_vector_rate_matrix(v, "body") == pytest.approx(pin.Jexp3(v), abs=1e-12)
        assert rates.rotation_vector_rate_inverse(v, "body") == pytest.approx(np.linalg.inv(pin.Jexp3(v)), abs=1e-11)


def test_world_and_body_differ_by_the_rotation() -> None:
    R = random_rotation(np.random.default_rng(5), (100,))
    for value, matrix in (
        (rot.quaternion_from_matrix(R), rates.quaternion_rate_matrix),
        (rot.ypr_from_matrix(R), rates.ypr_rate_matrix),
        (rot.rotation_vector_from_matrix(R), rates.rotation_vector_rate_matrix),
    ):
        assert R @ matrix(value, "body") == pytest.approx(matrix(value, "world"), abs=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.1, 0.2999, 0.3001, 0.4999, 0.5001, 3.0, 6.0])
def test_rotation_vector_matrices_across_the_change_of_formula(angle: float) -> None:
    axis = np.array([0.6, 0.0, 0.8])
    E = rates.rotation_vector_rate_matrix(angle * axis, "world")
    # independent: E is the average of the rotations exp(s v) over s in [0, 1]; Gauss with 40 points is exact here
    nodes, weights = np.polynomial.legendre.leggauss(40)
    average = sum(
        0.5 * w * rot.matrix_from_rotation_vector(0.5 * (x + 1) * angle * axis)
        for x, w in zip(nodes, weights, strict=True)
    )
    assert pytest.approx(average, abs=1e-14) == E
    assert rates.rotation_vector_rate_inverse(angle * axis, "world") @ E == pytest.approx(np.eye(3), abs=1e-12)


def test_singular_representations_and_frames_are_refused() -> None:
    with pytest.raises(InvalidValue, match="gimbal lock"):
        rates.ypr_rate([0.1, np.pi / 2, 0.0], [1, 0, 0], "world")
    with pytest.raises(InvalidValue, match="whole turn"):
        rates.rotation_vector_rate([2 * np.pi, 0, 0], [1, 0, 0], "world")
    with pytest.raises(InvalidValue, match="valid are 'world' and 'body'"):
        rates.quaternion_rate([1, 0, 0, 0], [1, 0, 0], "tool")  # type: ignore[arg-type]
    # the other direction stays valid in gimbal lock
    assert rates.omega_from_ypr_rate([0.0, np.pi / 2, 0.0], [1, 0, 0], "world") == pytest.approx([0, 0, 1])
