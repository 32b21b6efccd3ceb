"""The equations of 000 written out literally, corrected where the print is wrong, against tangere.robot("ur10e").

000 works in modified-DH (proximal) frames; link_poses @ D_i^-1 are the robot's frames in that convention. Lengths are
the official ones with either sign of a2, a3. 1e-13: a handful of products of numbers of order one, at 200 states.
Each misprint is computed too, and shown to be wrong by the size that docs/equations.md states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from oracles import relative_error

import tangere
from tangere.kinematics.rotation import inverse_pose, skew
from tangere.model.conventions import official_from_seed, seed_forward, seed_link_transforms
from tangere.model.inertia import moved
from tangere.model.model import Array, Link

TIGHT = 1e-13
SLOPE = 1e-9  # eighth-order differences of smooth curves of order one to a hundred: 1e-12 of truncation and rounding
D1, D4, D5, D6 = 0.1807, 0.17415, 0.11985, 0.11655  # m, official UR10e


def slope(f: Callable[[float], Any], h: float = 2e-3) -> Array:
    """f'(0), central differences of eighth order."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return np.asarray(sum(w * (np.asarray(f(k * h)) - np.asarray(f(-k * h))) for k, w in weights.items())) / h


def stack(rows: list[list[Any]]) -> Array:
    """(..., r, c) from rows of entries that are numbers or arrays (...)."""
    entries = np.broadcast_arrays(*[x for row in rows for x in row])
    return np.stack(entries, axis=-1).reshape(*entries[0].shape, len(rows), len(rows[0]))


def affine(rows: list[list[Any]]) -> Array:
    """Three rows of four, completed to a transform (..., 4, 4)."""
    return stack([*rows, [0.0, 0.0, 0.0, 1.0]])


def craig(alpha: float, a: float, d: float, theta: Array) -> Array:
    """Eq 1: i-1_iT = Rx(alpha) Tx(a) Rz(theta) Tz(d), printed right (its index label stands upside down)."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return affine([[c, -s, 0.0, a], [s * ca, c * ca, -sa, -d * sa], [s * sa, c * sa, ca, d * ca]])


@dataclass(frozen=True)
class Angles:
    """c1, s1, c23, s234 ... of 000, for arrays of seed angles (..., 6)."""

    q: Array

    def __getattr__(self, name: str) -> Array:
        f, digits = {"c": np.cos, "s": np.sin}[name[0]], [int(k) - 1 for k in name[1:]]
        return np.asarray(f(self.q[..., digits].sum(-1)))


@dataclass(frozen=True)
class Arm:
    """The robot seen in 000's convention: random seed angles, frames and bodies."""

    a2: float
    a3: float
    q: Array  # (k, 6) seed angles
    q_official: Array
    T: Array  # (k, 6, 4, 4) the robot's frames, modified DH
    links: list[Link]  # in these frames

    def local(self, i: int) -> Array:
        """i-1_iT of the robot."""
        return self.T[:, 0] if i == 1 else inverse_pose(self.T[:, i - 2]) @ self.T[:, i - 1]


ROBOT = tangere.robot("ur10e")


@pytest.fixture(params=[-1.0, 1.0], ids=["a < 0", "a > 0"])
def arm(request: pytest.FixtureRequest, rng: np.random.Generator) -> Arm:
    a2, a3 = request.param * 0.6127, request.param * 0.57155
    q = rng.uniform(-np.pi, np.pi, (200, 6))
    official = official_from_seed(q, a_positive=a2 > 0)
    D = seed_link_transforms(a2, a3)
    links = [moved(link, D_i) for link, D_i in zip(ROBOT.model.links, D, strict=True)]
    return Arm(a2, a3, q, official, ROBOT.link_poses(official) @ inverse_pose(D), links)


# ----------------------------------------------------------------------------- transforms: table 1, eqs 1, 2, 11 ... 52


def steps(arm: Arm) -> list[Array]:
    """Eqs 2, 11, 21, 32, 45, 51; the last two corrected (45: alpha is -90, 51: d6 is there)."""
    t = Angles(arm.q)
    return [
        affine([[t.c1, -t.s1, 0.0, 0.0], [t.s1, t.c1, 0.0, 0.0], [0.0, 0.0, 1.0, D1]]),
        affine([[-t.s2, -t.c2, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [t.c2, -t.s2, 0.0, 0.0]]),
        affine([[t.c3, -t.s3, 0.0, arm.a2], [t.s3, t.c3, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),
        affine([[t.s4, t.c4, 0.0, arm.a3], [-t.c4, t.s4, 0.0, 0.0], [0.0, 0.0, 1.0, D4]]),
        affine([[t.c5, -t.s5, 0.0, 0.0], [0.0, 0.0, 1.0, D5], [-t.s5, -t.c5, 0.0, 0.0]]),
        affine([[t.c6, -t.s6, 0.0, 0.0], [0.0, 0.0, -1.0, -D6], [t.s6, t.c6, 0.0, 0.0]]),
    ]


def products(arm: Arm) -> list[Array]:
    """Eqs 2, 12, 22, 33, 46: 0_1T to 0_5T as printed (all right; 46 follows from the corrected eq 45)."""
    t, a2, a3 = Angles(arm.q), arm.a2, arm.a3
    reach, height = a2 * t.s2 + a3 * t.s23, D1 + a2 * t.c2 + a3 * t.c23
    T5 = [
        [t.c1 * t.c234 * t.c5 - t.s1 * t.s5, -t.c1 * t.c234 * t.s5 - t.s1 * t.c5, -t.c1 * t.s234],
        [t.s1 * t.c234 * t.c5 + t.c1 * t.s5, -t.s1 * t.c234 * t.s5 + t.c1 * t.c5, -t.s1 * t.s234],
        [t.s234 * t.c5, -t.s234 * t.s5, t.c234],
    ]
    p5 = (D4 * t.s1 - t.c1 * (reach + D5 * t.s234), -D4 * t.c1 - t.s1 * (reach + D5 * t.s234), height + D5 * t.c234)
    return [
        steps(arm)[0],
        affine([
            [-t.c1 * t.s2, -t.c1 * t.c2, t.s1, 0.0],
            [-t.s1 * t.s2, -t.s1 * t.c2, -t.c1, 0.0],
            [t.c2, -t.s2, 0.0, D1],
        ]),
        affine([
            [-t.c1 * t.s23, -t.c1 * t.c23, t.s1, -a2 * t.c1 * t.s2],
            [-t.s1 * t.s23, -t.s1 * t.c23, -t.c1, -a2 * t.s1 * t.s2],
            [t.c23, -t.s23, 0.0, D1 + a2 * t.c2],
        ]),
        affine([
            [t.c1 * t.c234, -t.c1 * t.s234, t.s1, D4 * t.s1 - t.c1 * reach],
            [t.s1 * t.c234, -t.s1 * t.s234, -t.c1, -D4 * t.c1 - t.s1 * reach],
            [t.s234, t.c234, 0.0, height],
        ]),
        affine([[*row, p] for row, p in zip(T5, p5, strict=True)]),
    ]  # fmt: skip


def test_single_transforms(arm: Arm) -> None:
    """Eqs 1, 2, 11, 21, 32, 45, 51 against eq 1 with table 1 (its offsets restored) and against the robot."""
    table = zip((0, 90, 0, 0, -90, 90), (0, 0, arm.a2, arm.a3, 0, 0), (D1, 0, 0, D4, D5, D6), strict=True)
    theta = arm.q + np.deg2rad((0, 90, 0, -90, 0, 0))
    for i, ((alpha, a, d), T) in enumerate(zip(table, steps(arm), strict=True)):
        assert relative_error(T, craig(np.deg2rad(alpha), a, d, theta[:, i])) < TIGHT
        assert relative_error(arm.local(i + 1), T) < TIGHT


def test_products_of_transforms(arm: Arm) -> None:
    """Eqs 12, 22, 33, 46 (r_ij and p), 52 against the robot's frames."""
    for i, T in enumerate(products(arm)):
        assert relative_error(arm.T[:, i], T) < TIGHT
    assert relative_error(ROBOT.pose(arm.q_official), products(arm)[4] @ steps(arm)[5]) < TIGHT


def test_table_1_without_its_offsets_is_another_robot(arm: Arm) -> None:
    """theta_2 = q2 and theta_4 = q4 as printed: the tool is 1.1 m away on average."""
    T: Any = np.eye(4)
    table = zip((0, 90, 0, 0, -90, 90), (0, 0, arm.a2, arm.a3, 0, 0), (D1, 0, 0, D4, D5, D6), strict=True)
    for i, (alpha, a, d) in enumerate(table):
        T = T @ craig(np.deg2rad(alpha), a, d, arm.q[:, i])
    error = np.linalg.norm((T - arm.T[:, 5])[:, :3, 3], axis=-1)
    assert 1.0 < error.mean() < 1.2


def test_eq_45_as_printed_turns_the_tool_round(arm: Arm) -> None:
    """Printed with alpha = +90: half a turn of the tool and 0.29 m on average; it equals q4 + 180, q5 + 180."""
    t, right = Angles(arm.q), steps(arm)
    printed = affine([[t.c5, -t.s5, 0.0, 0.0], [0.0, 0.0, -1.0, -D5], [t.s5, t.c5, 0.0, 0.0]])
    T = arm.T[:, 3] @ printed @ right[5]
    error = np.linalg.norm((T - arm.T[:, 5])[:, :3, 3], axis=-1)
    assert 0.25 < error.mean() < 0.33
    turn = inverse_pose(arm.T[:, 5]) @ T
    assert relative_error(np.trace(turn[:, :3, :3], axis1=1, axis2=2), np.full(200, -1.0)) < TIGHT  # 1 + 2 cos(180)
    relabelled = official_from_seed(arm.q + np.deg2rad((0, 0, 0, 180, 180, 0)), a_positive=arm.a2 > 0)
    assert relative_error(ROBOT.pose(relabelled), T) < TIGHT
    assert relative_error(arm.T[:, 3] @ printed, products(arm)[4]) > 1.5  # so eq 46 does not follow from it


def test_eq_51_as_printed_loses_d6(arm: Arm) -> None:
    printed = steps(arm)[5].copy()
    printed[:, :3, 3] = 0.0
    lost = np.linalg.norm((arm.T[:, 4] @ printed - arm.T[:, 5])[:, :3, 3], axis=-1)
    assert relative_error(lost, np.full(200, D6)) < TIGHT


def test_table_2_is_a_ur10() -> None:
    """d4, d5, d6 are those of the CB-series UR10; as a UR10e the tool is off by 26 mm on average, 35 mm at most."""
    other = tangere.robot("ur10e", parameters="000-H")  # table 2's lengths
    ur10, table = tangere.robot("ur10").model.dh, other.model.dh
    assert ur10 is not None
    assert table is not None
    assert table.d.tolist() == [0.181, 0.0, 0.0, 0.1639, 0.1157, 0.0922]
    assert np.max(np.abs(table.d - ur10.d)[3:]) < 5e-5  # half a printed digit
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (5000, 6))
    error = 1e3 * np.linalg.norm((other.pose(q) - ROBOT.pose(q))[:, :3, 3], axis=-1)
    assert error.mean() == pytest.approx(25.9, abs=0.3)  # 5000 draws that scatter by 5 mm: 0.07 mm
    assert error.max() == pytest.approx(34.9, abs=0.2)


def test_table_3_is_in_other_frames(arm: Arm) -> None:
    """Its numbers are the official (distal) ones; read in the proximal frames they lie this far from the truth [m]."""
    printed = np.array([link.com for link in ROBOT.model.links])
    error = np.linalg.norm(printed - [link.com for link in arm.links], axis=-1)
    expected = (0.038, 0.613, 0.572, 0.016, 0.035, 0.0) if arm.a2 < 0 else (0.038, 0.147, 0.092, 0.016, 0.035, 0.0)
    assert error == pytest.approx(expected, abs=6e-4)


# --------------------------------------------------------- centres of mass and Jacobians: eqs 3-10, 13-20, 23-31, 34-55


def centres(arm: Arm, q: Array) -> list[Array]:
    """Eqs 5, 14, 25, 37 in closed form, 47 and 53 as products; (k, 3) each."""
    t, a2, a3 = Angles(q), arm.a2, arm.a3
    (x1, y1, z1), (x2, y2, z2), (x3, y3, z3), (x4, y4, z4) = (link.com for link in arm.links[:4])
    L3 = x3 * t.s23 + y3 * t.c23 + a2 * t.s2  # eq 24
    L4 = -x4 * t.c234 + y4 * t.s234 + a2 * t.s2 + a3 * t.s23  # eq 35
    H4 = x4 * t.s234 + y4 * t.c234 + a2 * t.c2 + a3 * t.c23  # eq 36
    T = seed_forward(q, a2, a3, (D1, 0.0, 0.0, D4, D5, D6))
    last = [T[:, i, :3, :3] @ arm.links[i].com + T[:, i, :3, 3] for i in (4, 5)]
    columns = [
        (x1 * t.c1 - y1 * t.s1, x1 * t.s1 + y1 * t.c1, z1 + D1 + 0.0 * t.c1),
        (
            -x2 * t.c1 * t.s2 - y2 * t.c1 * t.c2 + z2 * t.s1,
            -x2 * t.s1 * t.s2 - y2 * t.s1 * t.c2 - z2 * t.c1,
            x2 * t.c2 - y2 * t.s2 + D1,
        ),
        (-t.c1 * L3 + z3 * t.s1, -t.s1 * L3 - z3 * t.c1, x3 * t.c23 - y3 * t.s23 + a2 * t.c2 + D1),
        (-t.c1 * L4 + (z4 + D4) * t.s1, -t.s1 * L4 - (z4 + D4) * t.c1, H4 + D1),
    ]
    return [np.stack(column, axis=-1) for column in columns] + last


def test_centres_of_mass(arm: Arm) -> None:
    """Eqs 3-5, 13-14, 23-25, 34-37, 47, 53 against the robot's frames and bodies."""
    T = ROBOT.link_poses(arm.q_official)
    for i, (P, link) in enumerate(zip(centres(arm, arm.q), ROBOT.model.links, strict=True)):
        assert relative_error(T[:, i, :3, :3] @ link.com + T[:, i, :3, 3], P) < TIGHT


def test_translational_jacobians(arm: Arm) -> None:
    """Eqs 6-7, 15-17, 26-29, 38-42 written out, 48 and 54 as the derivative that they are; Jv of the robot."""
    t, a2, a3 = Angles(arm.q), arm.a2, arm.a3
    (x1, y1, _), (x2, y2, z2), (x3, y3, z3), (x4, y4, z4) = (link.com for link in arm.links[:4])
    L3, h3 = x3 * t.s23 + y3 * t.c23 + a2 * t.s2, x3 * t.c23 - y3 * t.s23
    l4, h4 = -x4 * t.c234 + y4 * t.s234, x4 * t.s234 + y4 * t.c234
    L34, H34 = l4 + a3 * t.s23, h4 + a3 * t.c23
    L4, H4 = L34 + a2 * t.s2, H34 + a2 * t.c2
    Jv = np.zeros((4, 200, 3, 6))
    Jv[0, :, :, :1] = stack([[-x1 * t.s1 - y1 * t.c1], [x1 * t.c1 - y1 * t.s1], [0.0]])
    Jv[1, :, :, :2] = stack([
        [x2 * t.s1 * t.s2 + y2 * t.s1 * t.c2 + z2 * t.c1, -t.c1 * (x2 * t.c2 - y2 * t.s2)],
        [-x2 * t.c1 * t.s2 - y2 * t.c1 * t.c2 + z2 * t.s1, -t.s1 * (x2 * t.c2 - y2 * t.s2)],
        [0.0, -x2 * t.s2 - y2 * t.c2],
    ])  # fmt: skip
    Jv[2, :, :, :3] = stack([
        [t.s1 * L3 + z3 * t.c1, -t.c1 * (h3 + a2 * t.c2), -t.c1 * h3],
        [-t.c1 * L3 + z3 * t.s1, -t.s1 * (h3 + a2 * t.c2), -t.s1 * h3],
        [0.0, -x3 * t.s23 - y3 * t.c23 - a2 * t.s2, -x3 * t.s23 - y3 * t.c23],
    ])  # fmt: skip
    Jv[3, :, :, :4] = stack([
        [t.s1 * L4 + (z4 + D4) * t.c1, -t.c1 * H4, -t.c1 * H34, -t.c1 * h4],
        [-t.c1 * L4 + (z4 + D4) * t.s1, -t.s1 * H4, -t.s1 * H34, -t.s1 * h4],
        [0.0, -L4, -L34, x4 * t.c234 - y4 * t.s234],
    ])  # fmt: skip
    ours = ROBOT.link_jacobians(arm.q_official)[0]
    for i in range(4):
        assert relative_error(ours[:, i], Jv[i]) < TIGHT
    for i in range(6):
        columns = [slope(lambda h, e=e, i=i: centres(arm, arm.q + h * e)[i]) for e in np.eye(6)]
        assert relative_error(ours[:, i], np.stack(columns, axis=-1)) < SLOPE
    assert np.all(ours[:, 4, :, 5] == 0.0)  # eq 48: joint 6 does not move link 5


def rotational(arm: Arm, entry: str) -> list[Array]:
    """Eqs 10, 20, 31, 44, 50, 55; entry "s234" is right in row 2 of the fifth column, "c234" is printed."""
    t = Angles(arm.q)
    column5 = [-t.s234 * t.c1, -getattr(t, entry) * t.s1, t.c234]
    column6 = [t.c5 * t.s1 + t.c234 * t.c1 * t.s5, t.c234 * t.s1 * t.s5 - t.c1 * t.c5, t.s234 * t.s5]
    z = [[0.0, 0.0, 1.0], *[[t.s1, -t.c1, 0.0]] * 3, column5, column6]
    full = stack([[column[row] for column in z] for row in range(3)])
    return [full * (np.arange(6) <= i) for i in range(6)]


def test_rotational_jacobians(arm: Arm) -> None:
    """Eqs 8-10, 18-20, 30-31, 43-44, 49-50, 55 (50 and 55 with -s234 s1): Jw of the robot, and skew(w) = Rdot R^T."""
    ours = ROBOT.link_jacobians(arm.q_official)[1]
    qd = np.random.default_rng(2).normal(size=6)
    rate = slope(lambda h: seed_forward(arm.q + h * qd, arm.a2, arm.a3, (D1, 0, 0, D4, D5, D6))[..., :3, :3])
    for i, Jw in enumerate(rotational(arm, "s234")):
        assert relative_error(ours[:, i], Jw) < TIGHT
        R = arm.T[:, i, :3, :3]
        assert relative_error(rate[:, i] @ np.swapaxes(R, -1, -2), skew(Jw @ qd)) < SLOPE


def test_eqs_50_and_55_as_printed_spoil_m55(arm: Arm) -> None:
    """The printed column is no unit vector, and M55 is wrong by 11 % on average and 43 % at worst."""
    printed = rotational(arm, "c234")
    assert np.max(np.abs(np.linalg.norm(printed[4][..., 4], axis=-1) - 1.0)) > 0.3
    Jv, _ = ROBOT.link_jacobians(arm.q_official)
    M55 = np.zeros(200)
    for i, link in enumerate(arm.links):
        R, J = arm.T[:, i, :3, :3], printed[i]
        M55 += link.mass * np.sum(Jv[:, i, :, 4] ** 2, axis=-1)
        M55 += np.einsum("ka,kab,bc,kdc,kd->k", J[..., 4], R, link.inertia, R, J[..., 4])
    error = np.abs(M55 / ROBOT.mass_matrix(arm.q_official)[:, 4, 4] - 1.0)
    assert 0.09 < error.mean() < 0.13
    assert 0.38 < error.max() < 0.45
