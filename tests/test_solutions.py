"""The answer of inverse kinematics as a value: choices among the solutions, labels, limits, corrections, distances."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from oracles import random_rotation
from test_inverse import POSES, READY, TOOL, URS, arm, batch, fk_error, gap, missed, solved

import tangere
from tangere.model.loading import load
from tangere.model.model import Array


def with_limits(name: str, low: float, high: float, joint: int) -> tangere.Robot:
    """The arm with other limits on one joint (counted from 0)."""
    model = load(name)
    joints = list(model.joints)
    joints[joint] = dataclasses.replace(joints[joint], q_min=low, q_max=high)
    return tangere.Robot(dataclasses.replace(model, joints=tuple(joints)))


def brute_force(answer: tangere.IKSolutions, limits: bool) -> Array:
    """Every solution with up to two turns of every joint either way, (m, 6), within the limits if asked."""
    robot = answer.robot
    turns = 2 * np.pi * np.array(list(product(range(-2, 3), repeat=6)), dtype=float)
    every = (answer.q[:, None, :] + turns).reshape(-1, 6)
    inside = np.all((every >= robot.q_min - 1e-9) & (every <= robot.q_max + 1e-9), axis=-1)
    return np.asarray(every[inside] if limits else every)


# ----------------------------------------------------------------------------------------------------------- nearest


@pytest.mark.parametrize("limits", [True, False])
@pytest.mark.parametrize("name", URS)
def test_nearest_against_brute_force(name: str, limits: bool, rng: np.random.Generator) -> None:
    """References within and beyond one turn; a joint without limits (6 of UR3, UR3e) turns on."""
    robot = arm(name, tool=TOOL)
    for reach in (np.pi, 3 * np.pi):
        answer = solved(robot, robot.pose(rng.uniform(-np.pi, np.pi, 6)))
        every = brute_force(answer, limits)
        for q_ref in rng.uniform(-reach, reach, (3, 6)):
            distance = np.sum((every - q_ref) ** 2, axis=-1)
            found = answer.nearest(q_ref, limits=limits)
            assert np.max(np.abs(found - every[np.argmin(distance)])) < 1e-12
            assert np.max(np.abs(robot.pose(found) - robot.pose(answer.q[0]))) < 1e-12
            if limits:
                assert np.all((found >= robot.q_min - 1e-9) & (found <= robot.q_max + 1e-9))


def test_nearest_of_its_own_source(rng: np.random.Generator) -> None:
    """A path followed by nearest() stays on its branch and turns on, past pi, up to the limits at 2 pi."""
    robot = arm("ur5e")
    start, end = np.array([-5.9, -1.2, 0.9, -5.0, -1.0, -6.0]), np.array([5.9, -0.8, 1.4, 5.0, -1.3, 6.0])
    q = start
    for s in np.linspace(0.0, 1.0, 500):
        true = start + s * (end - start)
        q = solved(robot, robot.pose(true), q).nearest(q)
        assert np.max(np.abs(q - true)) < 1e-9


def test_batch_nearest_is_the_single_one_in_every_row(rng: np.random.Generator) -> None:
    robot = arm("ur3e")
    T = robot.pose(rng.uniform(-np.pi, np.pi, (4, 5, 6)))
    T[1, 2, :3, 3] += 5.0  # out of reach
    for q_ref in (rng.uniform(-6.0, 6.0, 6), rng.uniform(-6.0, 6.0, (4, 5, 6))):
        chosen, found = batch(robot, T).nearest(q_ref)
        assert chosen.shape == (4, 5, 6)
        references = np.broadcast_to(q_ref, (4, 5, 6))
        for index in np.ndindex(4, 5):
            if index == (1, 2):
                assert not found[index]
                assert np.array_equal(chosen[index], references[index])
            else:
                assert found[index]
                assert np.array_equal(chosen[index], solved(robot, T[index]).nearest(references[index]))


def test_no_choice_raises() -> None:
    robot = arm("ur10e")
    far = np.eye(4)
    far[0, 3] = 9.0
    with pytest.raises(tangere.NoSolution, match="out of reach"):
        solved(robot, far).nearest(np.zeros(6))
    narrow = with_limits("ur10e", 3.0, 3.1, 0)
    answer = solved(narrow, narrow.pose(READY))
    assert len(answer) == 8
    assert not np.any(answer.within_limits)
    with pytest.raises(tangere.NoSolution, match="joint limits"):
        answer.nearest(np.zeros(6))
    assert gap(answer.nearest(READY, limits=False), READY) < 1e-9
    assert answer.turns().shape == (0, 6)
    for bad in (np.zeros((2, 6)), np.zeros(5), [np.nan] * 6, "q"):
        with pytest.raises(tangere.InvalidValue):
            answer.nearest(bad)


# ------------------------------------------------------------------------------------------------- limits and turns


@pytest.mark.parametrize("name", ["ur10e", "ur3e"])
def test_turns_are_all_that_the_limits_allow(name: str, rng: np.random.Generator) -> None:
    robot = arm(name)
    answer = solved(robot, robot.pose(rng.uniform(-np.pi, np.pi, 6)))
    every = brute_force(answer, limits=True)
    endless = ~np.isfinite(robot.q_max)
    every = every[np.all((np.abs(every) <= np.pi) | ~endless, axis=-1)]  # such a joint contributes its one angle
    turned = answer.turns()
    assert turned.shape == every.shape
    order = np.lexsort(np.round(every, 9).T)
    assert np.max(np.abs(turned[np.lexsort(np.round(turned, 9).T)] - every[order])) < 1e-12
    # joints with +-2 pi have two turns, the elbow (+-pi) has one, an endless joint counts once
    assert len(turned) == len(answer) * 2 ** int(np.sum(robot.q_max[~endless] > 4.0))


def test_within_limits(rng: np.random.Generator) -> None:
    """Some turn fits or none does; a limit is met by the angle that lies on it."""
    robot = with_limits("ur5e", 3.5, 4.0, 3)
    for q in rng.uniform(-np.pi, np.pi, (30, 6)):
        answer = solved(robot, robot.pose(q))
        q4 = answer.q[:, 3]
        fits = ((q4 + 2 * np.pi >= 3.5) & (q4 + 2 * np.pi <= 4.0)) | ((q4 >= 3.5) & (q4 <= 4.0))
        assert np.array_equal(answer.within_limits, fits)
    folded = np.array([0.3, -1.0, np.pi, 0.4, 1.0, 0.2])
    arm10 = arm("ur10e")
    answer = solved(arm10, arm10.pose(folded), folded)
    assert answer.within_limits[int(np.argmin(gap(answer.q, folded)))]


# ------------------------------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize("name", URS)
def test_labels_against_geometry(name: str, rng: np.random.Generator) -> None:
    """Shoulder: side of the origin of link 5; elbow: height against the line from axis 2 to axis 4; wrist: sign of q5.

    Elbow and wrist points are taken in the arm's plane: frame 3's origin is where axis 4 meets it.
    """
    robot = arm(name)
    seen = set()
    for source in rng.uniform(-np.pi, np.pi, (40, 6)):
        answer = solved(robot, robot.pose(source))
        labels = list(zip(answer.shoulder, answer.elbow, answer.wrist, strict=True))
        assert len(labels) == len(answer)
        for q, (shoulder, elbow, wrist) in zip(answer, labels, strict=True):
            frames = robot.link_poses(q)
            ahead = np.array([np.cos(q[0]), np.sin(q[0]), 0.0])
            assert shoulder == ("right" if frames[4][:3, 3] @ ahead > 0.0 else "left")
            base, knee, tip = (frames[k][:3, 3] for k in range(3))
            slope = (tip - base)[2] / ((tip - base) @ ahead)
            height = (knee - base)[2] - slope * ((knee - base) @ ahead)
            assert elbow == ("up" if height > 0.0 else "down")
            assert wrist == ("no flip" if q[4] >= 0.0 else "flip")
            seen.add((shoulder, elbow, wrist))
    assert len(seen) == 8


def test_ready_pose_is_left_up() -> None:
    answer = solved(arm("ur5e"), arm("ur5e").pose(READY))
    k = int(np.argmin(gap(answer.q, READY)))
    assert (answer.shoulder[k], answer.elbow[k], answer.wrist[k]) == ("left", "up", "flip")


def test_elbow_up_and_only() -> None:
    robot = arm("ur10e")
    answer = solved(robot, robot.pose([0.3, -1.1, 1.4, -0.9, 0.7, -0.4]))
    up = answer.elbow_up()
    assert up.elbow == ("up",) * 4
    mask = np.array([e == "up" for e in answer.elbow])
    assert np.array_equal(up.q, answer.q[mask])
    assert (up.correction, up.distance, up.robot) == (answer.correction, answer.distance, robot)
    picked = answer.only([2, 0])
    assert np.array_equal(picked.q, answer.q[[2, 0]])
    assert picked.wrist == (answer.wrist[2], answer.wrist[0])
    assert np.array_equal(answer.only(mask).turns(), up.turns())
    assert np.array_equal(up.nearest(np.zeros(6)), answer.only(mask).nearest(np.zeros(6)))
    assert len(answer.only(np.zeros(8, bool))) == 0


def test_it_is_a_sequence() -> None:
    robot = arm("ur10e")
    answer = solved(robot, robot.pose(READY))
    assert np.array_equal(np.array(list(answer)), answer.q)
    assert np.array_equal(answer[-1], answer.q[-1])
    assert bool(answer)
    with pytest.raises(IndexError):
        answer[8]
    assert answer.robot is robot
    assert repr(answer).count("\n") == 8
    far = np.eye(4)
    far[0, 3] = 9.0
    assert "out of reach" in repr(solved(robot, far))
    answer.q[0] = 0.0  # a copy is given out: nobody can change the answer
    assert not np.any(np.all(answer.q == 0.0, axis=-1))


# --------------------------------------------------------------------------------------- single, batch, references


@pytest.mark.parametrize("with_reference", ["none", "one", "each"])
def test_batch_form_is_the_single_form(with_reference: str, rng: np.random.Generator) -> None:
    """Bit for bit, also out of reach and at singular poses, for any leading axes."""
    robot = arm("ur10e", tool=TOOL)
    q = rng.uniform(-np.pi, np.pi, (3, 7, 6))
    q[0, :, 4], q[1, :3, 2], q[2, 0] = 0.0, 0.0, np.deg2rad((0, -90, 0, -90, 0, 0))
    T = robot.pose(q)
    T[2, 3:, :3, 3] *= 2.0
    reference = {"none": None, "one": q[0, 0], "each": q}[with_reference]
    answer = batch(robot, T, reference)
    assert answer.q.shape == (3, 7, 8, 6)
    assert np.any(answer.count == 0)
    for index in np.ndindex(3, 7):
        single = solved(robot, T[index], q[index] if with_reference == "each" else reference)
        assert np.array_equal(answer.q[index][answer.valid[index]], single.q)
        assert np.array_equal(answer.flags[index][answer.valid[index]], single.flags)
        assert np.array_equal(np.nonzero(answer.valid[index])[0], single.lanes)
        assert answer.count[index] == len(single)
        assert float(answer.distance[index]) == single.distance
        assert float(answer.correction[index]) == single.correction


def test_reference_shapes(rng: np.random.Generator) -> None:
    robot = arm("ur10e")
    q = rng.uniform(-np.pi, np.pi, (2, 3, 6))
    T = robot.pose(q)
    as_list = solved(robot, T[0, 0].tolist(), q[0, 0].tolist())
    assert np.array_equal(as_list.q, solved(robot, T[0, 0], q[0, 0]).q)
    assert np.array_equal(batch(robot, T, list(q[0, 0])).q, batch(robot, T, q[0, 0]).q)
    for bad in (q[0, 0, :5], q[:1], q[..., :5], [[0.0] * 6] * 2, np.nan * q[0, 0], 2e6 + q[0, 0], "q", [1j] * 6):
        with pytest.raises(tangere.InvalidValue, match="reference"):
            robot.inverse_kinematics(T, bad)
    with pytest.raises(tangere.InvalidValue, match="reference"):
        robot.inverse_kinematics(T[0, 0], q[0])
    assert batch(robot, np.zeros((0, 4, 4))).q.shape == (0, 8, 6)
    assert batch(robot, T[:, :0]).count.shape == (2, 0)


# ------------------------------------------------------------------------------------------- poses with few digits


@pytest.mark.parametrize("name", ["ur3e", "ur5e", "ur10e", "ur20"])
@pytest.mark.parametrize("digits", ["six decimals", "float32"])
def test_poses_with_few_digits(name: str, digits: str) -> None:
    """At least 99.5 % are solved, to the digits that were given.

    Six decimals are off by 5e-7 per entry, float32 by 6e-8 relative; three rotation errors times a lever of about
    1 m add up in the position, so "a few 1e-6" is 5e-6.
    """
    robot = arm(name)
    q = np.random.default_rng(3).uniform(-np.pi, np.pi, (POSES, 6))
    T = robot.pose(q)
    T = np.round(T, 6) if digits == "six decimals" else T.astype(np.float32).astype(np.float64)
    answer = batch(robot, T)
    assert np.mean(answer.count > 0) >= 0.995
    assert np.mean(missed(answer, q) < 1e-2) >= 0.99  # near singularities the source moves by sqrt(5e-7)
    assert fk_error(robot, answer, T) < 5e-6
    assert 0.0 < np.max(answer.correction) <= 1e-6
    rotation = robot.pose(answer.q)[..., :3, :3]
    assert np.max(np.abs(rotation @ np.swapaxes(rotation, -1, -2) - np.eye(3))) < 1e-14


def test_correction_is_the_distance_to_the_nearest_rotation(rng: np.random.Generator) -> None:
    """Up to 1e-5 is projected and reported; the projection is the polar one (singular values set to 1)."""
    robot = arm("ur5e")
    for _ in range(50):
        T = robot.pose(rng.uniform(-np.pi, np.pi, 6))
        T[:3, :3] += rng.uniform(-4e-6, 4e-6, (3, 3))
        U, _, Vt = np.linalg.svd(T[:3, :3])
        answer = solved(robot, T)
        assert answer.correction == pytest.approx(np.max(np.abs(U @ Vt - T[:3, :3])), abs=1e-13)
        if len(answer):
            assert np.max(np.abs(robot.pose(answer.q)[:, :3, :3] - U @ Vt)) < 1e-12
    T = robot.pose(READY)
    T[:3, :3] *= 1.0 + 0.9e-5
    assert solved(robot, T).correction == pytest.approx(0.9e-5, rel=1e-6)
    T[:3, :3] *= 1.0 + 0.3e-5
    with pytest.raises(tangere.InvalidValue, match="not a rotation"):
        solved(robot, T)


# -------------------------------------------------------------------------------------------------- out of reach


def miss_by_geometry(robot: tangere.Robot, T: Array) -> float:
    """Smallest distance [m], over the branches, by which an arm with these lengths fails; 0 where one reaches.

    By vectors, not by the library's formulas: the wrist point p5 must lie beside the arm's plane by d4; axis 5 is
    perpendicular to the plane's normal and to the tool axis; axis 4 passes d5 from p5 along it; two links reach it.
    """
    dh = robot.model.dh
    assert dh is not None
    flange = T @ np.linalg.inv(robot.model.T_flange_tcp)
    z6, p5 = flange[:3, 2], flange[:3, 3] - dh.d[5] * flange[:3, 2]
    rho = float(np.hypot(p5[0], p5[1]))
    far, near = abs(dh.a[1]) + abs(dh.a[2]), abs(abs(dh.a[1]) - abs(dh.a[2]))
    best = np.inf
    for shoulder, side in product((1, -1), repeat=2):
        q1 = np.arctan2(p5[1], p5[0]) + np.pi / 2 + shoulder * np.arccos(min(dh.d[3] / rho, 1.0))
        normal = np.array([np.sin(q1), -np.cos(q1), 0.0])
        axis5 = np.cross(normal, z6)
        p4 = p5 - side * dh.d[4] * axis5 / np.linalg.norm(axis5) - dh.d[3] * normal
        reach = float(np.linalg.norm(p4 - normal * (p4 @ normal) - (0.0, 0.0, dh.d[0])))
        best = min(best, max(dh.d[3] - rho, reach - far, near - reach, 0.0))
    return best


@pytest.mark.parametrize("name", ["ur3e", "ur10e"])
def test_distance_against_geometry(name: str, rng: np.random.Generator) -> None:
    """Random poses inside and outside the reach; 1e-12: sums of a few lengths of about 1 m."""
    robot = arm(name, tool=TOOL)
    size = 2.0 if name == "ur10e" else 0.8
    empty = 0
    for _ in range(1000):
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = random_rotation(rng), rng.uniform(-size, size, 3)
        expected = miss_by_geometry(robot, T)
        answer = solved(robot, T)
        assert bool(answer) == (expected == 0.0)
        assert answer.distance == pytest.approx(expected, abs=1e-12)
        empty += not answer
    assert 200 < empty < 900


@pytest.mark.parametrize("beyond", [1e-8, 1e-3, 0.1, 3.0])
def test_pulled_beyond_the_stretched_arm(beyond: float) -> None:
    """A stretched arm, its tool moved on along the arm by a known amount: it fails by exactly that."""
    robot = arm("ur10e")
    # theta = q2 + q3 + q4 = pi: the forearm's end lies on the near side of the wrist, so no other branch is nearer
    q = np.array([0.4, -0.6, 0.0, 0.6 + np.pi, 1.1, 0.2])
    frames = robot.link_poses(q)
    along = frames[2][:3, 3] - frames[0][:3, 3]
    along /= np.linalg.norm(along)
    T = robot.pose(q)
    assert len(solved(robot, T)) > 0
    T[:3, 3] += beyond * along
    answer = solved(robot, T)
    assert len(answer) == 0
    assert answer.q.shape == (0, 6)
    assert answer.distance == pytest.approx(min(beyond, miss_by_geometry(robot, T)), abs=1e-12)
    assert answer.distance == pytest.approx(beyond, abs=1e-12)


@pytest.mark.parametrize("inside", [1e-6, 0.01, 0.1])
def test_inside_the_shoulder_cylinder(inside: float) -> None:
    """The wrist point nearer to axis 1 than d4: it fails by d4 - rho."""
    robot = arm("ur10e")
    dh = robot.model.dh
    assert dh is not None
    T = np.eye(4)
    T[:3, :3] = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
    T[:3, 3] = (dh.d[3] - inside, 0.0, 0.9 - dh.d[5])  # tool down: the wrist point is d6 above the tool
    answer = solved(robot, T)
    assert len(answer) == 0
    assert answer.distance == pytest.approx(inside, abs=1e-12)
    assert miss_by_geometry(robot, T) == pytest.approx(inside, abs=1e-12)
