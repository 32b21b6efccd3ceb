"""Inverse differential kinematics: Penrose's four conditions, bounds of the damping, priorities against brute force.

1e-10: the Jacobians here have condition numbers up to 1e3, so inverses carry 1e-13. Task errors that should be zero
are near 1e-14; a wrong projector leaves errors near one.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles import golden_ur10e, tcp_jacobian

from tangere.errors import InvalidValue
from tangere.kinematics import resolution as res
from tangere.kinematics.resolution import Task

TOLERANCE = 1e-10


def matrices(m: int, n: int, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, m, n))


def worst(a: object, b: object) -> float:
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))))


@pytest.mark.parametrize(("m", "n", "rank"), [(6, 6, 6), (3, 7, 3), (6, 4, 4), (6, 6, 4), (4, 7, 2)])
def test_penrose_conditions(m: int, n: int, rank: int) -> None:
    J = matrices(m, rank, 30, 1) @ matrices(rank, n, 30, 2)
    P = res.pseudo_inverse(J)
    t = (0, 2, 1)
    assert worst(J @ P @ J, J) < TOLERANCE
    assert worst(P @ J @ P, P) < TOLERANCE
    assert worst((J @ P).transpose(t), J @ P) < TOLERANCE
    assert worst((P @ J).transpose(t), P @ J) < TOLERANCE


def test_tolerance_is_absolute() -> None:
    noise = 1e-9 * matrices(4, 6, 10, 3)  # what J N looks like when nothing is left: must count as zero
    assert worst(res.pseudo_inverse(noise), 0.0) == 0.0
    assert worst(np.linalg.pinv(noise), 0.0) > 1e6  # a relative tolerance would command this


@pytest.mark.parametrize("lam", [1e-3, 0.1, 2.0])
def test_damped_inverse_both_forms_and_bound(lam: float) -> None:
    J = matrices(4, 6, 20, 4)
    Jt = J.transpose(0, 2, 1)
    D = res.damped_inverse(J, lam)
    assert worst(D, Jt @ np.linalg.inv(J @ Jt + lam**2 * np.eye(4))) < TOLERANCE
    # n x n form: its condition is (s_max/lam)^2 = 1e7 at lam = 1e-3, so six digits less
    assert worst(D, np.linalg.inv(Jt @ J + lam**2 * np.eye(6)) @ Jt) < 1e-7
    assert np.max(np.linalg.norm(D, 2, axis=(-2, -1))) <= 1 / (2 * lam) + 1e-12
    per_state = res.damped_inverse(J, np.full(20, lam))
    assert np.array_equal(per_state, D)


def test_schedule_of_a_real_arm_through_its_elbow_singularity() -> None:
    model = golden_ur10e()
    q3 = np.linspace(0.3, 0.0, 61)
    J = np.stack([tcp_jacobian(model, np.array([0.3, -1.1, a, -0.9, 0.7, -0.4])) for a in q3])
    sigma = np.linalg.svd(J, compute_uv=False)[:, -1]
    lam = res.damping_schedule(J)
    assert np.all(lam[sigma >= res.THRESHOLD] == 0.0)
    inside = sigma < res.THRESHOLD
    assert inside.any()
    assert not inside.all()
    assert lam[inside] ** 2 == pytest.approx(res.DAMPING_MAX**2 * (1 - (sigma[inside] / res.THRESHOLD) ** 2))
    assert lam[-1] == pytest.approx(res.DAMPING_MAX)  # stretched: sigma_min = 0
    D = res.damped_inverse(J)
    # gain 1/s <= 1/threshold outside; inside s/(s^2 + lam^2) = s/threshold^2 for the weakest direction
    assert np.max(np.linalg.norm(D, 2, axis=(-2, -1))) <= 1 / res.THRESHOLD + 1e-9
    # continuous: no jump from one sample to the next larger than the inverse itself changes off the singularity
    assert np.max(np.abs(np.diff(D, axis=0))) < 0.2 / res.THRESHOLD


def test_null_space() -> None:
    J, rng = matrices(3, 7, 50, 5), np.random.default_rng(6)
    N = res.null_space_projector(J)
    assert worst(J @ N, 0.0) < TOLERANCE
    assert worst(N @ N, N) < TOLERANCE
    assert worst(N.transpose(0, 2, 1), N) < TOLERANCE
    assert np.trace(N, axis1=1, axis2=2) == pytest.approx(np.full(50, 4.0))
    w, qd_0 = rng.normal(size=(50, 3)), rng.normal(size=(50, 7))
    qd = res.null_space_motion(J, w, qd_0)
    assert worst(np.einsum("bij,bj->bi", J, qd), w) < TOLERANCE
    # nearest to qd_0 among all that do w: the difference is orthogonal to the null space
    assert worst(np.einsum("bij,bj->bi", N, qd - qd_0), 0.0) < TOLERANCE
    # the damped inverse would disturb the task
    damped = np.eye(7) - res.damped_inverse(J, 0.3) @ J
    assert worst(J @ damped, 0.0) > 1e-3


def test_equal_priority_fulfils_compatible_tasks_and_compromises_otherwise() -> None:
    rng = np.random.default_rng(7)
    for J1, J2 in zip(matrices(2, 6, 20, 8), matrices(3, 6, 20, 9), strict=True):
        w1, w2 = rng.normal(size=2), rng.normal(size=3)
        qd = res.equal_priority([Task(J1, w1), Task(J2, w2)])
        assert worst(J1 @ qd, w1) < TOLERANCE
        assert worst(J2 @ qd, w2) < TOLERANCE
        J3, w3 = rng.normal(size=(4, 6)), rng.normal(size=4)
        J, w = np.vstack([J1, J2, J3]), np.concatenate([w1, w2, w3])
        qd = res.equal_priority([Task(J1, w1), Task(J2, w2), Task(J3, w3)])
        assert worst(qd, np.linalg.lstsq(J, w, rcond=None)[0]) < TOLERANCE


def test_weighted() -> None:
    rng = np.random.default_rng(10)
    for _ in range(20):
        tasks = [Task(rng.normal(size=(4, 5)), rng.normal(size=4), weight) for weight in (1.0, 9.0)]
        J, w = np.vstack([t.J for t in tasks]), np.concatenate([t.w for t in tasks])
        W = np.diag([1.0] * 4 + [9.0] * 4)
        for lam in (0.0, 0.5):
            expected = np.linalg.solve(J.T @ W @ J + lam**2 * np.eye(5), J.T @ W @ w)
            assert worst(res.weighted(tasks, lam), expected) < TOLERANCE
    heavy = res.weighted([tasks[0], Task(tasks[1].J, tasks[1].w, 1e8)])
    assert worst(tasks[1].J @ heavy, tasks[1].w) < 1e-6  # error falls with 1/weight


def lexicographic(tasks: list[Task]) -> list[float]:
    """Smallest possible |J_i qd - w_i| in order of priority, each by eliminating what the ones above have fixed."""
    n = tasks[0].J.shape[1]
    x, Z, errors = np.zeros(n), np.eye(n), []
    for task in tasks:
        A = task.J @ Z
        if A.size:
            y = np.linalg.lstsq(A, task.w - task.J @ x, rcond=1e-9)[0]
            x = x + Z @ y
            _, s, Vt = np.linalg.svd(A)
            rank = int(np.sum(s > 1e-9))
            Z = Z @ Vt[rank:].T
        errors.append(float(np.linalg.norm(task.J @ x - task.w)))
    return errors


@pytest.mark.parametrize("rows", [(2, 2, 2), (2, 3, 4), (3, 3, 3), (4, 5, 2), (6, 3)])
def test_strict_priorities(rows: tuple[int, ...]) -> None:
    rng = np.random.default_rng(11)
    for _ in range(30):
        tasks = [Task(rng.normal(size=(m, 7)), rng.normal(size=m)) for m in rows]
        qd = res.prioritised(tasks)
        errors = [float(np.linalg.norm(t.J @ qd - t.w)) for t in tasks]
        assert errors == pytest.approx(lexicographic(tasks), abs=TOLERANCE)
        assert errors[0] < TOLERANCE


def test_strict_priorities_with_conflict_and_repeated_task() -> None:
    rng = np.random.default_rng(12)
    J, w = rng.normal(size=(3, 6)), rng.normal(size=3)
    low = Task(rng.normal(size=(2, 6)), rng.normal(size=2))
    qd = res.prioritised([Task(J, w), Task(J, -w), low])  # the second contradicts the first and must change nothing
    assert worst(J @ qd, w) < TOLERANCE
    assert worst(low.J @ qd, low.w) < TOLERANCE


def test_batches_equal_single_states() -> None:
    rng = np.random.default_rng(13)
    J1, J2 = rng.normal(size=(2, 4, 5, 3, 7))
    w1, w2 = rng.normal(size=(2, 4, 5, 3))
    for solve in (res.equal_priority, res.weighted, res.prioritised):
        batch = solve([Task(J1, w1, 2.0), Task(J2, w2)])
        assert batch.shape == (4, 5, 7)
        for i in np.ndindex(4, 5):
            assert worst(batch[i], solve([Task(J1[i], w1[i], 2.0), Task(J2[i], w2[i])])) < 1e-13


def test_bad_input() -> None:
    J = np.ones((2, 3))
    with pytest.raises(InvalidValue, match="at least one Task"):
        res.prioritised([])
    with pytest.raises(InvalidValue, match=r"same number of columns, got \[3, 4\]"):
        res.equal_priority([Task(J, np.ones(2)), Task(np.ones((2, 4)), np.ones(2))])
    with pytest.raises(InvalidValue, match=r"tasks\[0\].w"):
        res.equal_priority([Task(J, np.ones(3))])
    with pytest.raises(InvalidValue, match="weight"):
        res.weighted([Task(J, np.ones(2), -1.0)])
    with pytest.raises(InvalidValue, match="negative"):
        res.damped_inverse(J, -0.1)
    with pytest.raises(InvalidValue, match="finite"):
        res.pseudo_inverse([[np.nan, 0.0]])
    with pytest.raises(InvalidValue, match="tolerance"):
        res.pseudo_inverse(J, 0.0)
