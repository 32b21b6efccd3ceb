"""The formulas of 001 written out literally against tangere.robot("ur10e") and tangere.kinematics.rotation.

001 measures from shoulder height to frame 6: L_B is put before and L_TP after. 1e-13: a few products of order one.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles import random_rotation, relative_error

import tangere
from tangere.kinematics.rotation import (
    canonical,
    inverse_pose,
    matrix_from_quaternion,
    quaternion_from_matrix,
    ypr_from_matrix,
)
from tangere.kinematics.rotation import pose as transform
from tangere.model.conventions import official_from_seed, seed_link_transforms
from tangere.model.model import Array

TIGHT = 1e-13
ROBOT = tangere.robot("ur10e")
L_B, A2, A3, D4, D5, L_TP = 0.1807, 0.6127, 0.57155, 0.17415, 0.11985, 0.11655  # m, official; a > 0 as in table 8


@pytest.fixture
def theta(rng: np.random.Generator) -> Array:
    """001's joint angles, (200, 6)."""
    return rng.uniform(-np.pi, np.pi, (200, 6))


def stack(rows: list[list[Array | float]]) -> Array:
    """(k, r, c) from rows of entries that are numbers or arrays (k,)."""
    entries = np.broadcast_arrays(*[x for row in rows for x in row])
    return np.stack(entries, axis=-1).reshape(-1, len(rows), len(rows[0]))


def frames(theta: Array) -> Array:
    """The robot's frames 0_iT as 001 has them: modified DH, origin at shoulder height, frame 6 without L_TP."""
    T = ROBOT.link_poses(official_from_seed(theta, a_positive=True)) @ inverse_pose(seed_link_transforms(A2, A3))
    T[:, :, 2, 3] -= L_B
    T[:, 5] = T[:, 5] @ transform(np.eye(3), [0.0, 0.0, -L_TP])
    return T


def closed_form(theta: Array) -> Array:
    """0_6T: r_ij and 0x6, 0y6, 0z6 of 001; r33 = s234 s5 is not in the print."""
    c1, s1, c5, s5, c6, s6 = (f(theta[:, i]) for i in (0, 4, 5) for f in (np.cos, np.sin))
    q2, q23, q234 = theta[:, 1], theta[:, 1:3].sum(-1), theta[:, 1:4].sum(-1)
    c234, s234 = np.cos(q234), np.sin(q234)
    reach = A2 * np.sin(q2) + A3 * np.sin(q23) + D5 * s234
    return stack([
        [
            -s1 * s5 * c6 + c1 * (-s234 * s6 + c234 * c5 * c6), s1 * s5 * s6 - c1 * (s234 * c6 + c234 * c5 * s6),
            s1 * c5 + c1 * c234 * s5, D4 * s1 - c1 * reach,
        ],
        [
            c1 * s5 * c6 + s1 * (-s234 * s6 + c234 * c5 * c6), -c1 * s5 * s6 - s1 * (s234 * c6 + c234 * c5 * s6),
            -c1 * c5 + s1 * c234 * s5, -D4 * c1 - s1 * reach,
        ],
        [
            c234 * s6 + s234 * c5 * c6, c234 * c6 - s234 * c5 * s6,
            s234 * s5, A2 * np.cos(q2) + A3 * np.cos(q23) + D5 * c234,
        ],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


def test_closed_form_of_frame_6(theta: Array) -> None:
    """r11 ... r33, 0x6, 0y6, 0z6; with L_B before and L_TP after them this is the robot's pose."""
    T = closed_form(theta)
    assert relative_error(frames(theta)[:, 5], T) < TIGHT
    T = transform(np.eye(3), [0.0, 0.0, L_B]) @ T @ transform(np.eye(3), [0.0, 0.0, L_TP])
    assert relative_error(ROBOT.pose(official_from_seed(theta, a_positive=True)), T) < TIGHT


def test_r33_line_is_garbled_and_the_two_lengths_matter(theta: Array) -> None:
    """Three lines read "r23 = s3 c5 + s1 c234 s5" where r33 should stand; without L_B and L_TP 0.21 m are missing."""
    s1, s3, c5, s5 = np.sin(theta[:, 0]), np.sin(theta[:, 2]), np.cos(theta[:, 4]), np.sin(theta[:, 4])
    printed = s3 * c5 + s1 * np.cos(theta[:, 1:4].sum(-1)) * s5
    T = ROBOT.pose(official_from_seed(theta, a_positive=True))
    assert np.abs(printed - T[:, 2, 2]).max() > 1.0
    missing = np.linalg.norm((closed_form(theta) - T)[:, :3, 3], axis=-1)
    assert 0.19 < missing.mean() < 0.23


def test_grouped_transforms(theta: Array) -> None:
    """Table 7 and 0_1T ... 5_6T as groups: 1_4T(theta2, theta3, theta4) and 4_6T(theta5, theta6)."""
    T = frames(theta)
    q2, q23, q234 = theta[:, 1], theta[:, 1:3].sum(-1), theta[:, 1:4].sum(-1)
    c5, s5, c6, s6 = (f(theta[:, i]) for i in (4, 5) for f in (np.cos, np.sin))
    T14 = stack([
        [np.cos(q234), -np.sin(q234), 0.0, -A2 * np.sin(q2) - A3 * np.sin(q23)],
        [0.0, 0.0, -1.0, -D4],
        [np.sin(q234), np.cos(q234), 0.0, A2 * np.cos(q2) + A3 * np.cos(q23)],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip
    T46 = stack([
        [c5 * c6, -c5 * s6, s5, 0.0], [s6, c6, 0.0, D5], [-s5 * c6, s5 * s6, c5, 0.0], [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip
    assert relative_error(inverse_pose(T[:, 0]) @ T[:, 3], T14) < TIGHT
    assert relative_error(inverse_pose(T[:, 3]) @ T[:, 5], T46) < TIGHT


def test_yaw_pitch_roll_needs_atan2(rng: np.random.Generator) -> None:
    """(3.43)-(3.46) with atan2 are ours; with the printed arctan three rotations of four come out wrong."""
    R = random_rotation(rng, (2000,))
    pitch = np.arctan2(-R[:, 2, 0], np.hypot(R[:, 2, 1], R[:, 2, 2]))
    right = np.stack([np.arctan2(R[:, 1, 0], R[:, 0, 0]), pitch, np.arctan2(R[:, 2, 1], R[:, 2, 2])], axis=-1)
    assert relative_error(ypr_from_matrix(R), right) < TIGHT
    printed = np.stack([np.arctan(R[:, 1, 0] / R[:, 0, 0]), pitch, np.arctan(R[:, 2, 1] / R[:, 2, 2])], axis=-1)
    wrong = np.max(np.abs(printed - right), axis=-1) > 1e-9
    assert 0.70 < wrong.mean() < 0.80  # yaw is right in half of all cases and roll in half: 3/4 expected


def literal_quaternion(r: Array) -> Array:
    """(9a)-(9d) and the table of signs for one matrix (8); the largest component is taken positive."""
    t = r - r.T
    s = r + r.T
    squares = (
        np.array([1 + r[0, 0] + r[1, 1] + r[2, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2],
                  1 - r[0, 0] + r[1, 1] - r[2, 2], 1 - r[0, 0] - r[1, 1] + r[2, 2]]) / 4
    )  # fmt: skip
    largest = int(np.argmax(squares))
    q = np.sqrt(squares[largest])
    columns = [
        [4 * q * q, t[2, 1], t[0, 2], t[1, 0]],
        [t[2, 1], 4 * q * q, s[0, 1], s[0, 2]],
        [t[0, 2], s[0, 1], 4 * q * q, s[1, 2]],
        [t[1, 0], s[0, 2], s[1, 2], 4 * q * q],
    ]
    return np.array(columns[largest]) / (4 * q)


def test_quaternion_of_a_matrix(rng: np.random.Generator) -> None:
    """(8), (9a)-(9d) and the table, all four columns of it, half turns too."""
    half_turns = [2 * np.outer(n, n) - np.eye(3) for n in np.eye(3)]
    taken = set()
    for R in [*random_rotation(rng, (300,)), *half_turns]:
        q = literal_quaternion(R)
        taken.add(int(np.argmax(np.abs(q))))
        assert relative_error(quaternion_from_matrix(R), canonical(q)) < TIGHT
        assert relative_error(matrix_from_quaternion(q), R) < TIGHT
    assert taken == {0, 1, 2, 3}


def test_double_cover(rng: np.random.Generator) -> None:
    """q = (cos th/2, sin th/2 n); a turn by 2 pi - th about -n has (cos(pi - th/2), sin(pi - th/2)(-n)) = -q."""
    for angle, n in zip(rng.uniform(0, 2 * np.pi, 50), rng.normal(size=(50, 3)), strict=True):
        n = n / np.linalg.norm(n)
        q = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * n)])
        other = np.array([np.cos(np.pi - angle / 2), *(np.sin(np.pi - angle / 2) * -n)])
        assert relative_error(other, -q) < TIGHT
        assert relative_error(matrix_from_quaternion(q), matrix_from_quaternion(other)) < TIGHT
        assert canonical(other)[0] >= 0.0
        printed = np.cos(np.pi) - angle / 2  # "cos pi - th/2": the brackets are lost
        assert other[0] - printed > 0.49 * angle  # 1 - cos(th/2) + th/2
