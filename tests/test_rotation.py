"""Rotations: every way between the four forms, the double cover, gimbal lock, half turns, and bad input.

Tolerance 1e-13: a conversion is some twenty roundings of numbers near one, so 1e-14 is typical; a wrong sign or a
lost branch shows as an error near one. Pinocchio is the second opinion.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from oracles import random_rotation

from tangere.errors import InvalidValue
from tangere.kinematics import rotation as rot

TOLERANCE = 1e-13
FORMS = {
    "quaternion": (rot.quaternion_from_matrix, rot.matrix_from_quaternion),
    "ypr": (rot.ypr_from_matrix, rot.matrix_from_ypr),
    "rotation vector": (rot.rotation_vector_from_matrix, rot.matrix_from_rotation_vector),
}
HALF_TURNS = [np.diag(d) for d in ([1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0])]


def worst(a: object, b: object) -> float:
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    return float(np.max(np.abs(a - b)))


def axes(count: int, seed: int) -> np.ndarray:
    v = np.random.default_rng(seed).normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


@pytest.mark.parametrize("form", list(FORMS))
def test_there_and_back(form: str) -> None:
    out, back = FORMS[form]
    R = random_rotation(np.random.default_rng(1), (50, 40))
    assert worst(back(out(R)), R) < TOLERANCE
    special = np.stack([np.eye(3), *HALF_TURNS])
    assert worst(back(out(special)), special) < TOLERANCE


@pytest.mark.parametrize("form", list(FORMS))
def test_one_and_batch_are_the_same(form: str) -> None:
    out, back = FORMS[form]
    R = random_rotation(np.random.default_rng(2), (3, 5))
    values = out(R)
    for index in np.ndindex(3, 5):
        assert np.array_equal(out(R[index]), values[index])
        assert worst(out(R[index].tolist()), values[index]) == 0.0
        assert np.array_equal(back(values[index]), back(values)[index])


def test_against_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    for R in random_rotation(np.random.default_rng(3), (500,)):
        x, y, z, w = pin.Quaternion(R).coeffs()
        assert worst(rot.quaternion_from_matrix(R), rot.canonical([w, x, y, z])) < TOLERANCE
        assert worst(rot.ypr_from_matrix(R), pin.rpy.matrixToRpy(R)[::-1]) < 1e-12  # yaw, roll lose digits near lock
        assert worst(rot.rotation_vector_from_matrix(R), pin.log3(R)) < 1e-7  # pin.log3 itself is coarser near pi
        v = rot.rotation_vector_from_matrix(R)
        assert worst(rot.matrix_from_rotation_vector(v), pin.exp3(v)) < TOLERANCE


def test_the_ways_across_agree_with_the_way_through_the_matrix() -> None:
    R = random_rotation(np.random.default_rng(4), (1000,))
    q, ypr, v = (out(R) for out, _ in FORMS.values())
    assert worst(rot.canonical(rot.quaternion_from_rotation_vector(v)), q) < TOLERANCE
    assert worst(rot.quaternion_from_ypr(ypr), q) < 1e-12  # ypr near gimbal lock carries 1e-16 / cos(pitch)
    assert worst(rot.rotation_vector_from_quaternion(-q), v) < TOLERANCE  # -q is the same rotation
    for across in (
        rot.matrix_from_ypr(rot.ypr_from_quaternion(q)),
        rot.matrix_from_ypr(rot.ypr_from_rotation_vector(v)),
        rot.matrix_from_rotation_vector(rot.rotation_vector_from_ypr(ypr)),
    ):
        assert worst(across, R) < TOLERANCE


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
def test_rotation_vector_near_zero_and_near_half_a_turn(gap: float) -> None:
    for axis in axes(50, 5):
        for angle in (gap, np.pi - gap):
            v = angle * axis
            back = rot.rotation_vector_from_matrix(rot.matrix_from_rotation_vector(v))
            if angle > np.pi - 1e-14:  # at half a turn both directions are right
                back = back * np.sign(back @ v)
            assert worst(back, v) < 1e-14 * max(1.0, angle) * 4  # a few roundings: nothing is lost at either end


def test_all_four_largest_components_are_taken() -> None:
    seen = set()
    for R in random_rotation(np.random.default_rng(6), (200,)):
        q = rot.quaternion_from_matrix(R)
        seen.add(int(np.argmax(np.abs(q))))
        assert worst(rot.matrix_from_quaternion(q), R) < TOLERANCE
    assert seen == {0, 1, 2, 3}


def test_yaw_pitch_roll_order_and_signs() -> None:
    # 003's matrix written out from its three factors, each a textbook turn
    for yaw, pitch, roll in np.random.default_rng(7).uniform(-1.5, 1.5, (50, 3)):
        (c, s), (d, t), (e, u) = ((np.cos(a), np.sin(a)) for a in (yaw, pitch, roll))
        R_z = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        R_y = np.array([[d, 0, t], [0, 1, 0], [-t, 0, d]])
        R_x = np.array([[1, 0, 0], [0, e, -u], [0, u, e]])
        assert worst(rot.matrix_from_ypr([yaw, pitch, roll]), R_z @ R_y @ R_x) < TOLERANCE
        assert worst(rot.ypr_from_matrix(R_z @ R_y @ R_x), [yaw, pitch, roll]) < 1e-12


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2])
def test_gimbal_lock_sets_roll_to_zero_and_keeps_the_rotation(pitch: float) -> None:
    for yaw, roll in np.random.default_rng(8).uniform(-3, 3, (50, 2)):
        R = rot.matrix_from_ypr([yaw, pitch, roll])
        found = rot.ypr_from_matrix(R)
        assert found[2] == 0.0
        assert found[1] == pytest.approx(pitch, abs=1e-15)
        assert worst(rot.matrix_from_ypr(found), R) < TOLERANCE


def test_quaternion_product_is_the_product_of_rotations() -> None:
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(2, 300, 4))
    a, b = rot.normalised(a), rot.normalised(b)
    product = rot.matrix_from_quaternion(rot.quaternion_product(a, b))
    assert worst(product, rot.matrix_from_quaternion(a) @ rot.matrix_from_quaternion(b)) < TOLERANCE
    identity = rot.quaternion_product(a, rot.quaternion_conjugate(a))
    assert worst(identity, np.broadcast_to([1.0, 0, 0, 0], (300, 4))) < TOLERANCE
    v = rng.normal(size=(300, 3))
    assert worst(rot.quaternion_rotate(a, v), (rot.matrix_from_quaternion(a) @ v[..., None])[..., 0]) < TOLERANCE


def test_example_of_003_corrected() -> None:
    quarter_z = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    assert rot.quaternion_rotate(quarter_z, [0, 1, 0]) == pytest.approx([-1, 0, 0], abs=1e-15)
    assert rot.quaternion_rotate(rot.quaternion_conjugate(quarter_z), [0, 1, 0]) == pytest.approx([1, 0, 0], abs=1e-15)


def test_canonical_form() -> None:
    q = np.random.default_rng(10).normal(size=(500, 4))
    q[::5, 0] = 0.0
    q[::10, 1] = 0.0
    form = rot.canonical(q)
    assert worst(rot.canonical(-q), form) == 0.0
    assert worst(rot.matrix_from_quaternion(form), rot.matrix_from_quaternion(q)) < TOLERANCE
    for row in form:
        assert row[np.flatnonzero(row)[0]] > 0.0
    assert rot.canonical([0, -2, 0, 0]).tolist() == [0, 1, 0, 0]


def test_continuous_along_a_path_of_two_turns() -> None:
    angle = np.linspace(0, 4 * np.pi, 401)
    path = np.stack([np.cos(angle / 2), *(np.sin(angle / 2) * a for a in (0.6, 0.0, 0.8))], axis=-1)
    signs = np.random.default_rng(11).choice([-1.0, 1.0], size=(401, 1))
    signs[0] = 1.0
    assert worst(rot.continuous(path * signs), path) < TOLERANCE
    jumps = np.linalg.norm(np.diff(rot.canonical(path), axis=0), axis=-1)
    assert jumps.max() > 1.9  # what `continuous` is for: the canonical form jumps by two at half turns


def test_skew_is_the_cross_product_and_error_vector_turns_one_into_the_other() -> None:
    rng = np.random.default_rng(12)
    v, u = rng.normal(size=(2, 30, 3))
    assert worst((rot.skew(v) @ u[..., None])[..., 0], np.cross(v, u)) < TOLERANCE
    A, B = random_rotation(rng, (2, 100))
    assert worst(rot.matrix_from_rotation_vector(rot.rotation_error(A, B)) @ B, A) < TOLERANCE


def test_pose_and_its_inverse() -> None:
    rng = np.random.default_rng(13)
    T = rot.pose(random_rotation(rng, (40,)), rng.normal(size=(40, 3)))
    assert worst(rot.inverse_pose(T), np.linalg.inv(T)) < TOLERANCE
    assert rot.pose(np.eye(3), np.zeros((7, 3))).shape == (7, 4, 4)


def test_projection_finds_the_nearest_rotation() -> None:
    rng = np.random.default_rng(14)
    R = random_rotation(rng, (30,))
    disturbed = R + rng.uniform(-1, 1, R.shape) * 1e-6
    nearest, correction = rot.project_to_rotation(disturbed)
    assert worst(np.swapaxes(nearest, -1, -2) @ nearest, np.broadcast_to(np.eye(3), R.shape)) < TOLERANCE
    assert worst(correction, np.abs(nearest - disturbed).max((-1, -2))) == 0.0
    assert correction.max() < 2e-6
    distance = np.linalg.norm(nearest - disturbed, axis=(-1, -2))
    for _ in range(20):  # no rotation close by is nearer
        other = rot.matrix_from_rotation_vector(rng.normal(size=(30, 3)) * 1e-6) @ nearest
        assert np.all(np.linalg.norm(other - disturbed, axis=(-1, -2)) >= distance)
    exact, none = rot.project_to_rotation(R)
    assert worst(exact, R) < TOLERANCE
    assert none.max() < TOLERANCE
    rounded, correction = rot.project_to_rotation(1.1 * np.eye(3), tolerance=None)
    assert worst(rounded, np.eye(3)) < TOLERANCE
    assert correction == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rot.project_to_rotation(np.diag([1.0, 1.0, -1.0])), "reflection"),
        (lambda: rot.project_to_rotation(1.1 * np.eye(3)), "misses a rotation by 0.1"),
        (lambda: rot.project_to_rotation(np.full((3, 3), np.nan)), "finite"),
        (lambda: rot.project_to_rotation(np.eye(4)), r"\(4, 4\)"),
        (lambda: rot.quaternion_from_matrix(2 * np.eye(3)), "not a rotation"),
        (lambda: rot.ypr_from_matrix(np.diag([1.0, 1.0, -1.0])), "not a rotation"),
        (lambda: rot.rotation_vector_from_matrix(np.ones(3)), "expected shape"),
        (lambda: rot.matrix_from_quaternion([0, 0, 0, 0]), "zero quaternion"),
        (lambda: rot.matrix_from_quaternion([1, 0, 0]), "expected shape"),
        (lambda: rot.matrix_from_ypr(["a", 0, 0]), "real numbers"),
        (lambda: rot.matrix_from_rotation_vector([np.inf, 0, 0]), "finite"),
        (lambda: rot.skew([1j, 0, 0]), "real numbers"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        call()


def test_golden_orientation() -> None:
    """Orientation of the golden pose B in all forms, ten printed digits."""
    R = rot.matrix_from_quaternion([0.6839528304, 0.5409063846, 0.1598247445, -0.4626930515])
    assert rot.ypr_from_matrix(R) == pytest.approx([-0.7235636374, 0.8026105383, 1.0198286606], abs=1e-9)
    assert rot.rotation_vector_from_matrix(R) == pytest.approx([1.2124601669, 0.3582526328, -1.0371423049], abs=1e-9)
    assert R[0] == pytest.approx([0.5207423823, 0.8058208938, -0.2819220786], abs=1e-9)
