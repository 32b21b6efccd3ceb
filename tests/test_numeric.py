"""Numeric inverse kinematics: every reachable pose found within the limits, failure told as a value, polish exact.

A pose counts as reached at 1e-12 (m and rad), which the test recomputes with the oracle's forward kinematics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles import golden_ur10e, random_arm, random_rotation, tcp_jacobian, tcp_pose

from tangere.errors import InvalidValue
from tangere.kinematics import inverse_search as numeric
from tangere.kinematics.inverse_search import NumericSolution
from tangere.kinematics.rotation import matrix_from_rotation_vector, pose, rotation_error
from tangere.model.loading import load
from tangere.model.model import Model

UR10E = golden_ur10e()
SCARA_ROWS = (True, True, True, False, False, True)  # x, y, z, phi of 003
PLANAR_ROWS = (True, False, True, False, True, False)  # 003's planar arm moves in x, z and turns about y
ARMS: dict[str, tuple[Model, Any]] = {
    "ur10e": (UR10E, None),
    "seven joints": (random_arm(51, "rrrrrrr"), None),
    "six joints, two sliding": (random_arm(53, "rprrpr"), None),
    "scara": (load("scara"), SCARA_ROWS),
    "planar 3R": (load("planar3r"), PLANAR_ROWS),
    "position only": (random_arm(52, "rrprr"), (True, True, True, False, False, False)),
}


def limits(model: Model) -> tuple[np.ndarray, np.ndarray]:
    return np.array([j.q_min for j in model.joints]), np.array([j.q_max for j in model.joints])


def solve(model: Model, T: Any, q0: Any, **options: Any) -> NumericSolution:
    low, high = options.pop("limits", limits(model))
    return numeric.solve(lambda q: tcp_pose(model, q), lambda q: tcp_jacobian(model, q), T, q0, low, high, **options)


def miss(model: Model, T: np.ndarray, q: np.ndarray, rows: Any = None) -> float:
    """Largest entry of the pose error, by the oracle."""
    reached = tcp_pose(model, q)
    e = np.concatenate([T[:3, 3] - reached[:3, 3], rotation_error(T[:3, :3], reached[:3, :3])])
    return float(np.max(np.abs(e[slice(None) if rows is None else np.array(rows)])))


@pytest.mark.parametrize("name", list(ARMS))
def test_reachable_poses_are_found_within_the_limits(name: str) -> None:
    model, rows = ARMS[name]
    low, high = limits(model)
    rng = np.random.default_rng(1)
    for _ in range(40):
        T = tcp_pose(model, rng.uniform(low, high))
        found = solve(model, T, 0.5 * (low + high), mask=rows)
        assert found.converged
        assert np.all((low <= found.q) & (found.q <= high))
        assert miss(model, T, found.q, rows) < 1e-12
        assert max(found.position_error, found.rotation_error) < 1e-12
        assert found.iterations > 0


def test_from_nearby_it_takes_few_steps_and_stays_on_the_branch() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        q = rng.uniform(-2, 2, 6)
        q[[2, 4]] = np.sign(q[[2, 4]]) * (0.3 + np.abs(q[[2, 4]]))  # off the elbow and wrist singularities
        if np.linalg.svd(tcp_jacobian(UR10E, q), compute_uv=False)[-1] < 0.05:
            continue
        found = solve(UR10E, tcp_pose(UR10E, q), q + rng.normal(size=6) * 0.01)
        assert found.iterations <= 10  # quadratic: 1e-2, 1e-4, 1e-8, 1e-16, and some slack for the damping
        assert found.q == pytest.approx(q, abs=1e-10)  # 1e-12 of pose through sigma_min = 0.05


def test_the_limits_are_kept_even_where_they_bind() -> None:
    """Narrow limits with the answer on their very edge: found, and not one rounding outside."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = rng.uniform(-1.5, 1.5, 6)
        low, high = q - rng.uniform(0.1, 0.8, 6), q + rng.uniform(0.1, 0.8, 6)
        edge = rng.integers(6)
        low[edge] = q[edge]
        found = solve(UR10E, tcp_pose(UR10E, q), 0.5 * (low + high), limits=(low, high))
        assert found.converged
        assert np.all((low <= found.q) & (found.q <= high))
        outside = solve(UR10E, tcp_pose(UR10E, q), high, limits=(q + 0.05, q + 0.1), restarts=3)
        assert not outside.converged  # no other branch fits into such a box


def test_joints_that_push_against_a_limit_are_held_and_the_others_do_the_work() -> None:
    """From a corner of a narrow box, without restarts: clipping the step alone gets stuck in one case out of seven."""
    model, rng = ARMS["seven joints"][0], np.random.default_rng(3)
    for _ in range(50):
        q = rng.uniform(-1.5, 1.5, 7)
        low, high = q - rng.uniform(0.05, 0.6, 7), q + rng.uniform(0.05, 0.6, 7)
        start = np.where(rng.random(7) < 0.5, low, high)
        assert solve(model, tcp_pose(model, q), start, limits=(low, high), restarts=0).converged


@pytest.mark.parametrize("q3", [0.0, 1e-9, 1e-6, 1e-3])
def test_singular_targets_are_reached(q3: float) -> None:
    for q5 in (0.7, 0.0):
        T = tcp_pose(UR10E, np.array([0.3, -1.1, q3, -0.9, q5, -0.4]))
        found = solve(UR10E, T, [0.2, -1.0, 0.2, -0.8, 0.5, -0.3])
        assert found.converged
        assert miss(UR10E, T, found.q) < 1e-12


def test_out_of_reach_is_a_value_with_the_distance() -> None:
    model, _ = ARMS["planar 3R"]
    upright = tcp_pose(model, np.zeros(3))
    reach = (upright[2, 3] - tcp_pose(model, np.array([np.pi, 0, 0]))[2, 3]) / 2  # stretched up less stretched down
    shoulder = upright[2, 3] - reach
    T = pose(np.eye(3), [2.0, 0.0, shoulder + 1.0])
    position_only = (True, False, True, False, False, False)
    found = solve(model, T, [0.1, 0.2, 0.3], mask=position_only)
    assert not found.converged
    assert found.position_error == pytest.approx(np.hypot(2.0, 1.0) - reach, abs=1e-6)  # the nearest point
    assert found.rotation_error == 0.0


def test_tool_axis_free_in_the_target_frame() -> None:
    """A pen may turn about itself: five coordinates, the sixth row left out in the target's own axes."""
    rng = np.random.default_rng(4)
    rows = (True, True, True, True, True, False)
    for _ in range(10):
        T = tcp_pose(UR10E, rng.uniform(-2, 2, 6))
        found = solve(UR10E, T, np.full(6, 0.1), mask=rows, frame="target")
        assert found.converged
        reached = tcp_pose(UR10E, found.q)
        assert reached[:3, 3] == pytest.approx(T[:3, 3], abs=1e-12)
        assert reached[:3, 2] == pytest.approx(T[:3, 2], abs=1e-12)  # the tool axis


def test_same_call_same_answer_and_batches() -> None:
    rng = np.random.default_rng(5)
    q = rng.uniform(-2, 2, (2, 3, 6))
    T = np.stack([tcp_pose(UR10E, x) for x in q.reshape(-1, 6)]).reshape(2, 3, 4, 4)
    first, second = solve(UR10E, T, np.full(6, 0.1)), solve(UR10E, T, np.full(6, 0.1))
    assert np.array_equal(first.q, second.q)
    assert first.q.shape == (2, 3, 6)
    assert first.converged.shape == first.iterations.shape == first.position_error.shape == (2, 3)
    assert first.converged.all()
    for i in np.ndindex(2, 3):
        assert np.array_equal(solve(UR10E, T[i].tolist(), [0.1] * 6).q, first.q[i])


def calibrated(rng: np.random.Generator) -> Model:
    """A UR10e as it leaves the factory: each joint a millimetre and a milliradian off."""
    joints = []
    for joint in UR10E.joints:
        off = pose(matrix_from_rotation_vector(rng.normal(size=3) * 1e-3), rng.normal(size=3) * 1e-3)
        joints.append(replace(joint, T_parent_joint=off))
    return replace(UR10E, joints=tuple(joints), dh=None)


def test_polish_makes_a_nominal_answer_exact_on_a_calibrated_arm() -> None:
    rng = np.random.default_rng(6)
    arm, done = calibrated(rng), 0
    for _ in range(60):
        q = rng.uniform(-3, 3, 6)
        if np.linalg.svd(tcp_jacobian(UR10E, q), compute_uv=False)[-1] < 0.03:
            continue
        T = tcp_pose(UR10E, q)  # wanted pose; q is the nominal arm's exact answer
        assert miss(arm, T, q) > 1e-4
        found = numeric.polish(lambda x: tcp_pose(arm, x), lambda x: tcp_jacobian(arm, x), T, q)
        assert found.converged
        assert found.iterations <= 6
        assert miss(arm, T, found.q) < 1e-12
        assert np.max(np.abs(found.q - q)) < 0.5
        done += 1
    assert done > 20


def test_polish_is_never_worse_than_its_start() -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        T = pose(random_rotation(rng), rng.normal(size=3))  # mostly far away or out of reach
        q = rng.uniform(-3, 3, 6)
        found = numeric.polish(lambda x: tcp_pose(UR10E, x), lambda x: tcp_jacobian(UR10E, x), T, q)
        reached = tcp_pose(UR10E, q)
        before = np.hypot(
            np.linalg.norm(T[:3, 3] - reached[:3, 3]), np.linalg.norm(rotation_error(T[:3, :3], reached[:3, :3]))
        )
        assert np.hypot(found.position_error, found.rotation_error) <= before + 1e-15


def test_bad_input() -> None:
    T, q = np.eye(4), np.zeros(6)
    with pytest.raises(InvalidValue, match="q_min must not exceed q_max"):
        solve(UR10E, T, q, limits=(np.ones(6), -np.ones(6)))
    with pytest.raises(InvalidValue, match="mask: six flags"):
        solve(UR10E, T, q, mask=(True, False))
    with pytest.raises(InvalidValue, match="'base' and 'target'"):
        solve(UR10E, T, q, frame="tool")
    with pytest.raises(InvalidValue, match="reflection"):
        solve(UR10E, np.diag([1.0, 1.0, -1.0, 1.0]), q)
    with pytest.raises(InvalidValue, match=r"q0: expected shape \(\.\.\., 6\)"):
        solve(UR10E, T, np.zeros(5))
    with pytest.raises(InvalidValue, match="T: every entry must be finite"):
        solve(UR10E, np.full((4, 4), np.nan), q)
    with pytest.raises(InvalidValue, match="tolerance"):
        solve(UR10E, T, q, tolerance=0.0)
