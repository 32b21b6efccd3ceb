"""Inverse kinematics of calibrated URs: every pose that the arm takes is solved, and its source is among the solutions.

Random calibrations move every joint in all six directions. Poses are the arm's own, singular ones of the nominal arm
included, where branches of the two arms merge and split differently.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import tangere
from tangere.kernels import shapes
from tangere.kernels.backend import COMPILED
from tangere.kernels.inverse_kinematics import numeric
from tangere.kinematics import inverse_polish
from tangere.kinematics.rotation import matrix_from_rotation_vector
from tangere.model.model import Array, Model
from tangere.planning.branches import joint_path

pytestmark = pytest.mark.skipif(not COMPILED, reason="the extension was not built")
KINDS = ("any", "wrist", "elbow", "shoulder", "quarters")
POSES = 10_000 if os.environ.get("TANGERE_SOAK") else 200
MERGED = 2e-6  # [rad] solutions closer than 1e-6 are one; at a double root either may be the one that stays
SHIFT, TILT = 1e-3, 2e-3  # [m, rad] per joint and direction: two to four times what UR's files show


def calibrated(name: str, rng: np.random.Generator, shift: float = SHIFT, tilt: float = TILT) -> tangere.Robot:
    """The arm with every joint moved and turned a little."""
    nominal = tangere.robot(name).model
    joints = []
    for joint in nominal.joints:
        T = np.eye(4)
        T[:3, :3] = matrix_from_rotation_vector(rng.uniform(-tilt, tilt, 3))
        T[:3, 3] = rng.uniform(-shift, shift, 3)
        joints.append(dataclasses.replace(joint, T_parent_joint=T))
    return tangere.Robot(dataclasses.replace(nominal, joints=tuple(joints), dh=None), nominal=nominal)


def states(kind: str, nominal: Model, rng: np.random.Generator, count: int) -> Array:
    """Joint vectors (count, 6), at or within 1e-3 rad of a singularity of the nominal arm (elbow: stretched)."""
    q = rng.uniform(-np.pi, np.pi, (count, 6))
    off = rng.choice([0.0, 1e-8, 1e-3], count) * rng.choice([-1.0, 1.0], count)
    if kind == "wrist":
        q[:, 4] = rng.choice([0.0, np.pi], count) + off
    if kind == "elbow":
        q[:, 2] = off
    if kind == "shoulder":  # the wrist above the shoulder: a2 c2 + a3 c23 + d5 s234 = 0
        assert nominal.dh is not None
        (a2, a3), d5, q3, q34 = nominal.dh.a[1:3], nominal.dh.d[4], q[:, 2], q[:, 2] + q[:, 3]
        along, across = a2 + a3 * np.cos(q3) + d5 * np.sin(q34), a3 * np.sin(q3) - d5 * np.cos(q34)
        q[:, 1] = np.arctan2(along, across) + rng.choice([0.0, np.pi], count) + off
    if kind == "quarters":
        q = rng.integers(-1, 3, (count, 6)) * (np.pi / 2)
        q[:, 2] = rng.choice([0.0, np.pi / 2, -np.pi / 2], count)
    return q


def wrapped(x: Array) -> Array:
    return (x + np.pi) % (2.0 * np.pi) - np.pi


def solutions(robot: tangere.Robot, T: Array) -> Iterator[Array]:
    for pose in T:
        yield robot.inverse_kinematics(pose).q


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20) if os.environ.get("TANGERE_SOAK") else range(3))
def test_the_source_is_found_and_every_solution_is_exact(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = calibrated(("ur5e", "ur10e", "ur3e")[seed % 3], rng)
    q = states(kind, tangere.robot(robot.name).model, rng, POSES)
    T = robot.pose(q)
    lost = []
    for source, pose, found in zip(q, T, solutions(robot, T), strict=True):
        if not len(found) or np.min(np.max(np.abs(wrapped(found - source)), axis=-1)) > MERGED:
            lost.append(source)
        error = np.max(np.abs(robot.pose(found) - pose), axis=(-1, -2))
        near = np.linalg.svd(robot.jacobian(found), compute_uv=False)[:, -1] < 1e-3
        assert np.all(error < np.where(near, 1e-9, 1e-12))
    assert not lost


def test_a_batch_keeps_every_solution() -> None:
    """Next to two singularities at once there are more than eight; with one such pose all have more places."""
    rng = np.random.default_rng(4)
    robot = calibrated("ur10e", rng)
    T = robot.pose(np.concatenate([states(kind, tangere.robot("ur10e").model, rng, 60) for kind in KINDS]))
    alone = [robot.inverse_kinematics(pose) for pose in T]
    most = max(map(len, alone))
    assert most > 8
    batch = robot.inverse_kinematics(T.reshape(30, 10, 4, 4))
    assert batch.q.shape == (30, 10, most, 6)
    assert batch.flags.max() < 16
    for index, one in zip(np.ndindex(30, 10), alone, strict=True):
        rows = batch.q[index][batch.valid[index]]
        assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, one.q.tolist()))
        order = [one.q.tolist().index(row) for row in rows.tolist()]
        assert np.array_equal(batch.flags[index][batch.valid[index]], one.flags[order])
    few = robot.inverse_kinematics(T[[k for k, one in enumerate(alone) if len(one) <= 8]])
    assert few.q.shape[-2:] == (8, 6)
    crowded = T[int(np.argmax(list(map(len, alone))))]
    held = joint_path(robot, np.stack([crowded] * 3), np.arange(3.0), None, np.ones(6))  # a path may begin there
    assert np.max(np.abs(robot.pose(held) - crowded)) < 1e-9


def test_a_missing_one_of_a_pair_is_looked_for() -> None:
    """Poses whose source was lost while its neighbour across a singularity was found: an odd number of solutions."""
    for seed, name, q in (
        (10, "ur10e", (-2.2504777, -2.60225413, 2.27337146, -2.85776451, 0.01045231, -0.46359707)),
        (5, "ur3e", (-1.33196883, -0.21465645, 0.38982348, -1.64350337, 3.14059265, -2.45013064)),
        (0, "ur5e", (-2.86884244, -1.83450537, 0.52029895, 1.20114804, -3.13790546, -1.95188071)),
        # the twin's wrist is far from singular, and the searches come to a stand beside the two
        (16, "ur5e", (-1.65351999, -1.91759400, 0.68022301, 1.66314534, 0.0, 1.23238483)),
        (19, "ur10e", (1.52544962, -1.54134852, -0.0, -3.09675806, -0.15998360, 1.62420105)),
        # the twin is further out of reach than its shift: q6 is off
        (18, "ur5e", (2.91492594, -1.36917033, -0.001, -2.88061667, 0.23665750, -0.70304646)),
        # two pairs beside the shoulder's singularity, of which one each was found: joint 6 hardly moves there
        (15, "ur5e", (-2.89594466, -2.34032665, 1.61883721, 0.70903731, -3.06458652, 1.78208812)),
        # elbow folded and wrist singular: the pair is two steps along the weakest direction away
        (7, "ur10e", (-0.94011584, -0.79827299, -3.09706733, 1.17350187, 3.14059265, 2.23827778)),
        # the first scan has one of the two between its angles
        (19, "ur10e", (-0.48791820, -0.04401112, -3.08047276, 0.30164317, -0.001, -0.52890280)),
    ):
        robot = calibrated(name, np.random.default_rng(seed))
        found = robot.inverse_kinematics(robot.pose(q)).q
        assert np.min(np.max(np.abs(wrapped(found - q)), axis=-1)) < MERGED


def test_how_firm_a_pose_holds_a_solution_is_the_square_of_the_smallest_singular_value() -> None:
    """What decides where a second solution is looked for: down to a sixth of it, whichever joints hardly move there."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        weakest = rng.normal(size=(6, 6))  # its first column
        weakest[rng.integers(6), 0] *= 10.0 ** rng.uniform(-4.0, 0.0)  # a joint that it hardly moves
        left, right = (np.linalg.qr(A)[0] for A in (rng.normal(size=(6, 6)), weakest))
        J = left @ np.diag([10.0 ** rng.uniform(-6.0, -1.0), 2.0, 1.5, 0.5, 0.3, 0.1]) @ right.T
        b = rng.normal(size=6)
        x, firm = inverse_polish._solved((J.T @ J).tolist(), b.tolist())
        smallest = float(np.linalg.svd(J, compute_uv=False)[-1]) ** 2
        assert smallest / 6.001 < firm < smallest * 1.001
        np.testing.assert_allclose(J.T @ (J @ x), b, atol=1e-3)


def test_a_reference_settles_a_pose_that_leaves_a_joint_free() -> None:
    """Only lengths differ from the nominal arm: a wrist as singular as before, q6 as the reference has it, or 0."""
    rng = np.random.default_rng(0)
    nominal = tangere.robot("ur10e").model
    shifts = [np.array([0.0, 0.0, 4e-4]), np.zeros(3), np.array([3e-4, 0.0, 0.0]), np.array([-2e-4, 0.0, 0.0])]
    joints = list(nominal.joints)
    for i, shift in enumerate(shifts):
        T = np.eye(4)
        T[:3, 3] = shift
        joints[i] = dataclasses.replace(joints[i], T_parent_joint=T)
    robot = tangere.Robot(dataclasses.replace(nominal, joints=tuple(joints), dh=None), nominal=nominal)
    for q in rng.uniform(-2.5, 2.5, (50, 6)):
        q[4] = 0.0
        T = robot.pose(q)
        with_reference = robot.inverse_kinematics(T, q).q
        assert np.min(np.max(np.abs(wrapped(with_reference - q)), axis=-1)) < 1e-9
        free = robot.inverse_kinematics(T)
        assert 1 <= len(free) <= 8
        np.testing.assert_allclose(robot.pose(free.q), np.broadcast_to(T, (len(free), 4, 4)), atol=1e-9)


def test_the_same_answer_alone_in_a_batch_in_threads_and_with_every_instruction_set() -> None:
    from tangere import _kernels

    rng = np.random.default_rng(4)
    robot = calibrated("ur10e", rng)
    nominal = tangere.robot("ur10e").model
    T = robot.pose(np.concatenate([states(kind, nominal, rng, 60) for kind in KINDS]))
    answers = []
    try:
        for name in _kernels.instruction_sets():
            _kernels.use(name)
            for count in (1, 3):
                _kernels.threads(count)
                batch = robot.inverse_kinematics(T)
                answers.append((batch.q, batch.valid, batch.flags, batch.distance))
    finally:
        _kernels.use(_kernels.instruction_sets()[0])
        _kernels.threads(1)
    for answer in answers[1:]:
        for ours, first in zip(answer, answers[0], strict=True):
            np.testing.assert_array_equal(ours, first)
    for i, pose in enumerate(T):
        one = robot.inverse_kinematics(pose)
        rows = answers[0][0][i][answers[0][1][i]]
        assert len(rows) == len(one)
        assert {tuple(row) for row in rows} == {tuple(row) for row in one.q}


def test_no_iterate_looks_like_degrees(recwarn: pytest.WarningsRecorder) -> None:
    rng = np.random.default_rng(2)
    robot = calibrated("ur5e", rng)
    for q in rng.uniform(-2.0 * np.pi, 2.0 * np.pi, (100, 6)):
        robot.inverse_kinematics(robot.pose(q), q)
    assert not recwarn.list


def test_no_iterate_of_the_python_form_does(recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search from two turns away walks beyond them."""
    rng = np.random.default_rng(0)
    robot, nominal = calibrated("ur5e", rng), tangere.robot("ur5e").model
    monkeypatch.setattr(shapes, "_said", False)
    for q in rng.uniform(-3.0, 3.0, (5, 6)):
        numeric(robot, nominal, robot.pose(q), 12.5 + rng.uniform(-0.1, 0.05, 6))
    assert not recwarn.list


def test_long_batches_hear_ctrl_c() -> None:
    """An interrupt stops a batch that would run for minutes, in one thread and in three."""
    from tangere import _kernels

    rng = np.random.default_rng(3)
    robot = calibrated("ur5e", rng)
    T = np.broadcast_to(robot.pose(states("wrist", robot.model, rng, 1000)), (2000, 1000, 4, 4))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes of pytest-xdist ignore it
    try:
        for count in (1, 3):
            _kernels.threads(count)
            timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                robot.inverse_kinematics(T)
            assert time.monotonic() - began < 60.0  # two million singular poses take longer anywhere
    finally:
        signal.signal(signal.SIGINT, before)
        _kernels.threads(1)
