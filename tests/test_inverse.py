"""Inverse kinematics of a UR, by properties: everything returned reaches the pose, what made the pose is among it,
nothing is returned twice, and what cannot be reached or is no pose is said to be so.

`TANGERE_POSES` sets how many random poses each arm gets (default 5000; 100000 takes a few seconds per arm).
"""

from __future__ import annotations

import os
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from oracles import random_pose, tool_down_ik

import tangere
from tangere.model.model import Array

URS = tuple(name for name in tangere.models() if name.startswith("ur"))
POSES = int(os.environ.get("TANGERE_POSES", "5000"))
# Promised accuracy of every solution, as the largest entry of FK(q) - T; reached: 2e-15 off singularities.
FK = 1e-12
# Two solutions closer than this in every joint are one solution, so a source this close has been found. Far above what
# rounding does: off singularities 1e-10, at a double root sqrt(1e-16) = 1e-8 rad in q3, times |a2|/(|a2| - |a3|) = 15
# in q2 where the arm is folded.
SAME = 1e-6
TOOL = (0.02, -0.05, 0.17, 0.4, -0.3, 0.9)  # m and rotation vector, no symmetry
READY = np.deg2rad((0.0, -90.0, 90.0, -90.0, -90.0, 0.0))
HOME = np.deg2rad((0.0, -90.0, 0.0, -90.0, 0.0, 0.0))


def arm(name: str, **options: Any) -> tangere.Robot:
    return tangere.robot(name, **options)


def solved(robot: tangere.Robot, T: Any, reference: Any = None) -> tangere.IKSolutions:
    answer = robot.inverse_kinematics(T, reference)
    assert isinstance(answer, tangere.IKSolutions)
    return answer


def batch(robot: tangere.Robot, T: Any, reference: Any = None) -> tangere.IKBatch:
    answer = robot.inverse_kinematics(T, reference)
    assert isinstance(answer, tangere.IKBatch)
    return answer


def gap(a: Any, b: Any) -> Array:
    """Largest difference over the joints, whole turns taken off."""
    return np.asarray(np.max(np.abs(np.angle(np.exp(1j * (np.asarray(a) - b)))), axis=-1))


def fk_error(robot: tangere.Robot, answer: tangere.IKBatch, T: Array) -> float:
    error = np.max(np.abs(robot.pose(answer.q) - T[..., None, :, :]), axis=(-1, -2))
    return float(np.max(error, where=answer.valid, initial=0.0))


def missed(answer: tangere.IKBatch, q: Array) -> Array:
    """Distance (...) of each source to the nearest solution of its pose; 9 where there is none."""
    return np.asarray(np.min(np.where(answer.valid, gap(answer.q, q[..., None, :]), 9.0), axis=-1))


def duplicates(answer: tangere.IKBatch) -> int:
    found = 0
    for i, j in combinations(range(8), 2):
        both = answer.valid[..., i] & answer.valid[..., j]
        found += int(np.sum((gap(answer.q[..., i, :], answer.q[..., j, :]) < SAME) & both))
    return found


def in_half_open_turn(answer: tangere.IKBatch) -> bool:
    """All angles in (-pi, pi], so that no solution has two names."""
    angles = answer.q[answer.valid]
    return bool(np.all((angles > -np.pi) & (angles <= np.pi)))


def assert_found_again(robot: tangere.Robot, q: np.ndarray) -> None:
    """Given as references, all q (k, 6) are among the solutions of their poses; every solution reaches, none twice."""
    T = robot.pose(q)
    answer = batch(robot, T, q)
    assert np.sum(missed(answer, q) > SAME) == 0
    assert fk_error(robot, answer, T) < FK
    assert duplicates(answer) == 0
    assert in_half_open_turn(answer)


# ---------------------------------------------------------------------------------------------------- random poses


@pytest.mark.parametrize("name", URS)
def test_random_poses(name: str) -> None:
    """Correct, complete and without repetition; solutions come in pairs; angles lie in (-pi, pi]."""
    robot = arm(name, tool=TOOL)
    q = np.random.default_rng(URS.index(name)).uniform(-np.pi, np.pi, (POSES, 6))
    T = robot.pose(q)
    answer = batch(robot, T)
    assert fk_error(robot, answer, T) < FK
    assert np.max(missed(answer, q)) < SAME
    assert duplicates(answer) == 0
    assert set(np.unique(answer.count)) == {2, 4, 6, 8}
    assert in_half_open_turn(answer)
    assert np.all(answer.distance == 0.0)
    assert np.max(answer.correction) < 1e-14  # a pose by forward kinematics is a rotation up to rounding


@pytest.mark.parametrize("name", ["ur3e", "ur5e", "ur10e", "ur20"])
def test_same_solutions_as_ur_analytic_ik(name: str, rng: np.random.Generator) -> None:
    peers = pytest.importorskip("ur_analytic_ik", reason="ur-analytic-ik is not installed (extra bench)")
    peer, robot = getattr(peers, name), arm(name)
    for q in rng.uniform(-np.pi, np.pi, (200, 6)):
        T = robot.pose(q)
        assert np.max(np.abs(np.asarray(peer.forward_kinematics(*q)) - T)) < 1e-12
        same_set(solved(robot, T).q, np.array(peer.inverse_kinematics(T)).reshape(-1, 6))


@pytest.mark.parametrize("name", ["ur5e", "ur10e"])
def test_same_solutions_as_eaik(name: str, rng: np.random.Generator) -> None:
    module = pytest.importorskip("eaik.IK_DH", reason="EAIK is not installed (extra bench)")
    robot = arm(name)
    dh = robot.model.dh
    assert dh is not None
    peer = module.DhRobot(dh.alpha, dh.a, dh.d)
    q = rng.uniform(-np.pi, np.pi, (200, 6))
    for T in robot.pose(q):
        theirs = np.asarray(peer.IK(T).Q).reshape(-1, 6)
        exact = np.max(np.abs(robot.pose(theirs) - T), axis=(-1, -2)) < 1e-9  # EAIK also returns least-squares answers
        same_set(solved(robot, T).q, theirs[exact])


def same_set(ours: Array, theirs: Array) -> None:
    """Equal as sets up to whole turns; 1e-6 as in SAME, which also undoes a peer's repetitions."""
    assert len(theirs) > 0
    assert all(np.min(gap(theirs, q)) < SAME for q in ours)
    assert all(np.min(gap(ours, q)) < SAME for q in theirs)


def test_000s_tool_down_solution(rng: np.random.Generator) -> None:
    """000 eqs 89-97, corrected, solve every pose whose tool points down; exactly its solutions are ours."""
    robot = arm("ur10e", tool=(0.0, 0.0, 0.1))
    dh = robot.model.dh
    assert dh is not None
    counts = set()
    for _ in range(300):
        yaw, angle, rho = rng.uniform(-np.pi, np.pi), rng.uniform(-np.pi, np.pi), rng.uniform(0.3, 1.1)
        position = np.array([rho * np.cos(angle), rho * np.sin(angle), rng.uniform(-0.3, 0.8)])
        c, s = np.cos(yaw), np.sin(yaw)
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = [[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]], position
        expected = tool_down_ik(dh, position, yaw, tool_length=0.1)
        found = solved(robot, T).q
        counts.add(len(found))
        assert len(found) == len(expected)
        if len(found):
            same_set(found, expected)
    assert {0, 8} <= counts


def test_ready_pose_has_all_eight() -> None:
    """Tool down with q6 = 0, where a peer loses four (004's library: atan2(0, 0))."""
    for name in URS:
        robot = arm(name)
        T = robot.pose(READY)
        answer = solved(robot, T)
        assert len(answer) == 8
        assert np.max(np.abs(robot.pose(answer.q) - T)) < FK
        assert np.min(gap(answer.q, READY)) < SAME


@pytest.mark.parametrize("reference", [None, HOME])
def test_home_is_solved(reference: Array | None) -> None:
    """UR's home is singular three times over: stretched, wrist above shoulder, axes 4 and 6 parallel."""
    for name in URS:
        robot = arm(name)
        T = robot.pose(HOME)
        answer = solved(robot, T, reference)
        assert len(answer) >= 1
        assert np.max(np.abs(robot.pose(answer.q) - T)) < FK
        assert np.min(gap(answer.q, HOME)) < SAME  # q6 = 0 is also what is taken without a reference


def test_poses_with_and_without_tool_agree(rng: np.random.Generator) -> None:
    """The tool only moves the pose: the same flange pose has the same solutions."""
    bare = arm("ur16e")
    T_tool = random_pose(rng)
    tooled = arm("ur16e", tool=T_tool)
    for q in rng.uniform(-np.pi, np.pi, (50, 6)):
        same_set(solved(bare, bare.pose(q)).q, solved(tooled, bare.pose(q) @ T_tool).q)


# ------------------------------------------------------------------------------------------------ singular poses

KINDS = ("wrist", "elbow", "shoulder", "wrist elbow", "wrist shoulder", "elbow shoulder", "wrist elbow shoulder")
NEAR = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def singular_states(robot: tangere.Robot, kind: str, off: float, count: int, rng: np.random.Generator) -> Array:
    """Random q (count, 6) at a distance `off` (rad, or m of arm-plane reach) from the singularities of `kind`.

    wrist: q5 at 0 or pi; elbow: q3 at 0 or pi; shoulder: a2 c2 + a3 c23 + d5 s234 = 0, which is solved for q4.
    """
    dh = robot.model.dh
    assert dh is not None
    a2, a3, d5 = dh.a[1], dh.a[2], dh.d[4]
    kept: list[Array] = []
    while len(kept) < count:
        q = rng.uniform(-np.pi, np.pi, 6)
        if "wrist" in kind:
            q[4] = rng.choice([0.0, np.pi]) + rng.choice([-off, off])
        if "elbow" in kind:
            q[2] = rng.choice([0.0, np.pi]) + rng.choice([-off, off])
        if "shoulder" in kind:
            s234 = (rng.choice([-off, off]) - a2 * np.cos(q[1]) - a3 * np.cos(q[1] + q[2])) / d5
            if abs(s234) > 1.0:
                continue
            angle = np.arcsin(s234)
            q[3] = rng.choice([angle, np.pi - angle]) - q[1] - q[2]
        kept.append(np.angle(np.exp(1j * q)))
    return np.array(kept)


@pytest.mark.parametrize("off", NEAR)
@pytest.mark.parametrize("kind", KINDS)
def test_singular_poses(kind: str, off: float) -> None:
    """Given the source as reference it is recovered; every solution reaches; nothing twice. Exact and near, all mixes.

    Nothing keeps the other two singularities away: some of these poses are nearly singular in two ways by chance.
    """
    for name in ("ur10e", "ur3e"):
        robot = arm(name, tool=TOOL)
        q = singular_states(robot, kind, off, 400, np.random.default_rng(1))
        assert_found_again(robot, q)


@pytest.mark.parametrize("off", NEAR)
@pytest.mark.parametrize("kind", KINDS)
def test_singular_poses_without_reference(kind: str, off: float) -> None:
    """Still solved, all of them, to the same accuracy; only which solution of a continuum comes back is open."""
    robot = arm("ur5e")
    q = singular_states(robot, kind, off, 400, np.random.default_rng(2))
    T = robot.pose(q)
    answer = batch(robot, T)
    assert np.all(answer.count > 0)
    assert fk_error(robot, answer, T) < FK
    assert duplicates(answer) == 0
    assert in_half_open_turn(answer)


def test_wrist_singularity_keeps_the_callers_q6(rng: np.random.Generator) -> None:
    """At sin q5 = 0 every q6 (within the elbow's reach) solves: the reference's is taken, or 0."""
    robot = arm("ur10e")
    for q5 in (0.0, np.pi):
        q = rng.uniform(-0.2, 0.2, 6) + (0.0, -1.5, 2.1, -1.5, 0.0, 0.0)
        q[4] = q5  # and the elbow well bent: axis 4's circle of radius d5 stays in reach for every q6
        T = robot.pose(q)
        for q6 in (-2.0, 0.7, 3.0):
            reference = np.array([*q[:5], q6])
            answer = solved(robot, T, reference)
            flagged = answer.singular_wrist
            assert np.any(flagged)
            assert np.min(np.abs(answer.q[flagged][:, 5] - q6)) < 1e-12
        assert np.min(np.abs(solved(robot, T).q[:, 5])) < 1e-12


def test_wrist_singularity_where_the_callers_q6_is_out_of_reach() -> None:
    """The elbow cannot follow to the reference's q6: the nearest q6 that it can reach is taken, the arm stretched."""
    robot = arm("ur10e")
    q = np.array([-0.2, -1.3, 0.3, 0.55, 0.0, -2.0])
    T = robot.pose(q)
    answer = solved(robot, T, [*q[:5], 3.0])
    taken = answer.q[answer.singular_wrist]
    assert len(taken) == 1
    assert abs(np.sin(taken[0, 2])) < SAME
    assert np.max(np.abs(robot.pose(answer.q) - T)) < FK
    between = [solved(robot, T, [*q[:5], q6]).q for q6 in np.linspace(taken[0, 5] + 1e-3, 3.0, 20)]
    assert all(np.min(np.abs(found[:, 5] - taken[0, 5])) < 1e-9 for found in between)  # none nearer to 3 is reachable


def test_multiples_of_a_quarter_turn() -> None:
    """All 4096, what people type in: many are singular in several ways, each is solved and found again."""
    robot = arm("ur5e")
    q = np.array(list(product(np.arange(-1, 3) * np.pi / 2, repeat=6)))
    assert_found_again(robot, q)


def test_singular_flags(rng: np.random.Generator) -> None:
    """Each flag is set on its own singularity and on no other; one part in a million off, none is."""
    robot = arm("ur10e")
    for k, kind in enumerate(("shoulder", "elbow", "wrist")):
        for q in singular_states(robot, kind, 0.0, 20, rng):
            others = np.abs((np.sin(q[2]), np.sin(q[4])))[[i for i in (0, 1) if i != k - 1]]
            answer = solved(robot, robot.pose(q), q)
            nearest = int(np.argmin(gap(answer.q, q)))
            flags = (answer.singular_shoulder, answer.singular_elbow, answer.singular_wrist)
            assert flags[k][nearest]
            if np.min(others) > 1e-3:
                assert sum(bool(f[nearest]) for f in flags) <= 2  # reach is not kept away from zero here
        for q in rng.uniform(0.1, 1.0, (20, 6)) + READY:
            answer = solved(robot, robot.pose(q))
            nearest = int(np.argmin(gap(answer.q, q)))
            assert not answer.singular_elbow[nearest]
            assert not answer.singular_wrist[nearest]
