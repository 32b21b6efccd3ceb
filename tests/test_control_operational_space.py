"""Operational-space control and prioritised tasks: linear error dynamics, singularities survived, priorities exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import random_arm
from test_control_computed_torque import tracking_rms
from test_control_simulator import Run, Wave, simulate

import tangere
from tangere.apps.textbook.operational import at_state
from tangere.control import JointTask, OperationalSpace, PrioritisedTasks, ToolTask
from tangere.control.operational_space import CORRECTION
from tangere.control.task_space import Bounds, ToolInertia, pose_error, tool_reference
from tangere.errors import InvalidValue
from tangere.kernels.step import step
from tangere.kinematics import resolution
from tangere.kinematics.rotation import matrix_from_rotation_vector, pose, rotation_error
from tangere.types import Array, Reference, State

PLAIN, HEAVY = tangere.robot("ur10e"), tangere.robot("ur10e", rotor_inertia=True)
SEVEN = tangere.Robot(random_arm(21, "rrrrrrr"))
Q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])


def sample(q: Any, qd: Any, time: float = 0.0) -> State:
    return State(time, 1e-3, np.array(q, float), np.array(qd, float), np.zeros(len(q)))


class OutAndBack:
    """The tool along a straight line and back, w d / 2 fastest; q only says where it started."""

    duration = float("inf")

    def __init__(self, robot: Any, q: Array, way: Array, w: float) -> None:
        self.T, self.q, self.way, self.w, self.rest = robot.pose(q), q, way, w, np.zeros(robot.dof)

    def at(self, time: float) -> Reference:
        phase = min(self.w * time, 2 * np.pi)
        T, v, a = self.T.copy(), np.zeros(6), np.zeros(6)
        T[:3, 3] += self.way * (1 - np.cos(phase)) / 2
        v[:3] = self.way * self.w * np.sin(phase) / 2
        a[:3] = self.way * self.w**2 * np.cos(phase) / 2 * (phase < 2 * np.pi)
        return Reference(self.q, self.rest, self.rest, T, v, a)


def errors(run: Run, trajectory: Any) -> Array:
    """(rows, 6) error of the tool."""
    rows = []
    for time, q in zip(run.time, run.q, strict=True):
        T = tool_reference(run.robot, trajectory.at(time))[0]
        rows.append(pose_error(T, run.robot.pose(q)))
    return np.array(rows)


# --------------------------------------------------------------------------------------------------------- the pieces


def test_pose_error_is_the_rotation_error(rng: np.random.Generator) -> None:
    """Against kinematics.rotation, for small, large and half turns. 1e-12; 1e-7 within 1e-6 of half a turn."""
    for angle in (0.0, 1e-9, 1e-3, 1.0, 2.0, 3.0, 3.141):
        for _ in range(10):
            axis = rng.normal(size=3)
            R = matrix_from_rotation_vector(rng.normal(size=3))
            R_des = matrix_from_rotation_vector(axis / np.linalg.norm(axis) * angle) @ R
            p, p_des = rng.normal(size=(2, 3))
            error = pose_error(pose(R_des, p_des), pose(R, p))
            assert error[:3] == pytest.approx(p_des - p)
            assert error[3:] == pytest.approx(rotation_error(R_des, R), abs=1e-12)
            assert np.linalg.norm(error[3:]) == pytest.approx(angle, abs=1e-12)


def test_a_half_turn_about_each_axis_is_seen() -> None:
    """Where three of the quaternion's four forms are 0 / 0; in plain numbers and as controllers step it."""
    law = step("pose_error", 6, np.zeros(0))
    for axis in np.eye(3):
        for angle in (np.pi - 1e-6, np.pi):
            T = pose(matrix_from_rotation_vector(angle * axis), np.zeros(3))
            law.update(T, np.eye(4))
            for error in (pose_error(T, np.eye(4)), law.after):
                assert np.abs(error[3:]) == pytest.approx(angle * axis, abs=1e-9)


@pytest.mark.parametrize("robot", [PLAIN, HEAVY], ids=["plain", "rotors"])
def test_inertia_is_lambda_until_the_cap(robot: Any, rng: np.random.Generator) -> None:
    """Uncapped: dynamics.operational. Capped: eigenvalues of S^-1 Lambda S^-1 are min(1/s^2, mass_max).

    1e-8 for J M^-1 J^T (cond M is 3e4); 1e-6 for its inverse, whose condition goes to 1e9 over these poses.
    """
    inertia = ToolInertia(robot)
    S = np.diag([1, 1, 1, 5, 5, 5])  # S^-1, 1 / 0.2 m
    capped = 0
    for q in rng.uniform(-3, 3, (60, 6)):
        J = robot.jacobian(q)
        mobility = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
        assert inertia.mobility(q, J) == pytest.approx(mobility, rel=1e-8, abs=1e-9)
        Lambda, share = inertia.capped(q, J)
        exact = at_state(robot, q, q * 0).Lambda
        sizes = np.linalg.eigvalsh(S @ exact @ S)
        assert np.linalg.eigvalsh(S @ Lambda @ S) == pytest.approx(np.minimum(sizes, inertia.mass_max), rel=1e-6)
        assert share == pytest.approx(min(1.0, inertia.mass_max / sizes[-1]), rel=1e-6)
        if share == 1.0:
            assert Lambda == pytest.approx(exact, rel=1e-6, abs=1e-8)
        capped += share < 1.0
    assert 15 < capped < 45  # the cap is the median over poses: half of them


def test_inertia_at_a_singularity() -> None:
    inertia = ToolInertia(PLAIN)
    for q in (Q * [1, 1, 0, 1, 1, 1], Q * [1, 1, 1, 1, 0, 1], np.zeros(6)):
        Lambda, share = inertia.capped(q, PLAIN.jacobian(q))
        assert share < 1e-6
        assert np.all(np.isfinite(Lambda))
        assert np.linalg.eigvalsh(Lambda).max() <= inertia.mass_max * 1.0001


# -------------------------------------------------------------------------------------------------- operational space


def test_tool_error_acceleration(rng: np.random.Generator) -> None:
    """Regular poses, small errors: wdot = wdot_d + kp e + kv (w_d - w), by forward dynamics. 1e-6: cond(Lambda) 1e5."""
    kp, kv = rng.uniform(50, 150, 6), rng.uniform(10, 30, 6)
    checked = 0
    for _ in range(30):
        q_des = rng.uniform(-2.5, 2.5, 6)
        if np.linalg.svd(HEAVY.jacobian(q_des))[1][-1] < 0.05:
            continue
        wave = Wave(q_des, rng.normal(size=6) * 0.1, np.ones(6))
        controller = OperationalSpace(HEAVY, wave, kp=kp, kv=kv, mass_max=1e6)
        controller.start(sample(Q, Q * 0))
        want = wave.at(0.4)
        q, qd = want.q + rng.normal(size=6) * 0.01, want.qd + rng.normal(size=6) * 0.05
        command = controller.step(sample(q, qd, 0.4))
        qdd = HEAVY.forward_dynamics(q, qd, command.tau)
        J = HEAVY.jacobian(q)
        wdot = J @ qdd + HEAVY.jacobian_rate_times_velocity(q, qd)
        T, v, a = tool_reference(HEAVY, want)
        assert wdot == pytest.approx(a + kp * pose_error(T, HEAVY.pose(q)) + kv * (v - J @ qd), abs=1e-6)
        checked += 1
    assert checked > 15


def test_operational_space_equals_the_printed_form() -> None:
    """tau = J^T (Lambda wdot* + mu + p) of dynamics.operational (003 corrected); 1e-7 through cond(Lambda)."""
    controller = OperationalSpace(PLAIN, Q)
    controller.start(sample(Q, Q * 0))
    q, qd = Q + 0.01, np.array([0.1, -0.2, 0.1, 0.3, -0.1, 0.2])
    space, J = at_state(PLAIN, q, qd), PLAIN.jacobian(q)
    wdot = 100.0 * pose_error(PLAIN.pose(Q), PLAIN.pose(q)) - 20.0 * J @ qd
    tau = J.T @ (space.Lambda @ wdot + space.mu + space.p)
    assert controller.step(sample(q, qd)).tau == pytest.approx(tau, abs=1e-7)


def test_circle_in_task_space() -> None:
    """The same 0.007 mm as computed torque: with the same gains it is the same control off singularities."""
    assert tracking_rms(PLAIN, OperationalSpace, 2e-3) == pytest.approx(7e-6, abs=0.5e-6)


ELBOW = Wave([0.3, -1.2, 0.0, -1.0, 1.0, 0.4], [0.2, 0.1, 0.6, 0.1, 0.1, 0.2], [1.5] * 6)
WRIST = Wave([0.3, -1.2, 1.5, -1.0, 0.0, 0.4], [0.2, 0.1, 0.1, 0.1, 0.6, 0.2], [1.5] * 6)


@pytest.mark.parametrize("robot", [PLAIN, HEAVY], ids=["plain", "rotors"])
@pytest.mark.parametrize(("wave", "joint"), [(ELBOW, 3), (WRIST, 5)], ids=["elbow", "wrist"])
def test_through_a_singularity_with_a_joint_reference(wave: Wave, joint: int, robot: Any) -> None:
    """Back and forth through the singular pose: torque below the limits, and the path kept all the way.

    0.1 mm: the held torque's own error (0.03 mm on this path away from singularities) and not more than thrice that.
    """
    start = wave.at(0.0)
    run = simulate(robot, OperationalSpace(robot, wave), start.q, qd=start.qd, duration=4.5)
    assert np.sign(run.q[:, joint - 1]).min() == -1  # it did go through
    assert np.sign(run.q[:, joint - 1]).max() == 1
    assert "near a singularity" in run.notes
    assert np.all(np.abs(run.tau) < robot.tau_max)
    assert np.all(np.abs(run.qd) < robot.qd_max)
    assert np.linalg.norm(errors(run, wave)[:, :3], axis=1).max() < 1e-4


@pytest.mark.parametrize("robot", [PLAIN, HEAVY], ids=["plain", "rotors"])
@pytest.mark.parametrize(("wave", "joint"), [(ELBOW, 3), (WRIST, 5)], ids=["elbow", "wrist"])
def test_through_a_singularity_by_the_tool_alone(wave: Wave, joint: int, robot: Any) -> None:
    """Started at rest in the singular pose itself while the path already moves, no joint reference: bounded, and back.

    1 mm at the end, in a regular pose 1.5 s after the last passage.
    """
    run = simulate(robot, OperationalSpace(robot, wave, posture=False), wave.at(0.0).q, duration=5.2)
    assert np.all(np.abs(run.tau) < robot.tau_max)
    assert np.all(np.abs(run.qd) < robot.qd_max)
    error = np.linalg.norm(errors(run, wave)[:, :3], axis=1)
    assert error.max() > 5e-3  # it could not follow at once ...
    assert error[-100:].max() < 1e-3  # ... and came back


@pytest.mark.parametrize("robot", [PLAIN, HEAVY], ids=["plain", "rotors"])
@pytest.mark.parametrize("w", [1.0, 3.0])
def test_beyond_the_reach_and_back(robot: Any, w: float) -> None:
    """A path that leaves the workspace by 24 cm (0.22 and 0.67 m/s): stretched, torques bounded, then exactly back."""
    q = np.array([0.3, -0.9, 1.2, -1.0, 1.2, 0.4])
    outwards = robot.pose(q)[:3, 3] - [0.0, 0.0, 0.18]
    path = OutAndBack(robot, q, 0.45 * outwards / np.linalg.norm(outwards), w)
    run = simulate(robot, OperationalSpace(robot, path), q, duration=2 * np.pi / w + 2.5)
    error = errors(run, path)
    assert np.linalg.norm(error[:, :3], axis=1).max() > 0.2
    assert np.abs(run.q[:, 2]).min() < 0.15  # stretched to a few mm; the joint reference keeps the elbow's side
    assert np.all(np.abs(run.tau) < robot.tau_max)
    if w == 1.0:  # at three times that speed the arm meets its reach faster than it can brake
        assert np.all(np.abs(run.qd) < robot.qd_max)
    assert np.abs(error[-1]).max() < 1e-5
    assert run.q[-1] == pytest.approx(q, abs=1e-2)  # on the same side of the elbow


@pytest.mark.parametrize("q", [Q * [1, 1, 0, 1, 1, 1], Q * [1, 1, 1, 1, 0, 1]], ids=["elbow", "wrist"])
def test_the_lost_direction_is_damped(q: Array) -> None:
    """In the singular pose itself: along the u with J u = 0, u^T M qdd = -kv u^T M qd. 1e-6: J u = 1e-16."""
    controller = OperationalSpace(HEAVY, q, posture=False, posture_kv=7.0)
    controller.start(sample(q, q * 0))
    u = np.linalg.svd(HEAVY.jacobian(q))[2][-1]
    M = HEAVY.mass_matrix(q)
    for qd in (0.3 * u, np.array([0.1, -0.1, 0.2, 0.2, 0.1, -0.2])):
        qdd = HEAVY.forward_dynamics(q, qd, controller.step(sample(q, qd)).tau)
        assert u @ M @ qdd == pytest.approx(-7.0 * u @ M @ qd, rel=1e-6)


def test_bounds_keep_direction_and_gravity(rng: np.random.Generator) -> None:
    """Too large a torque is shortened about C qd + g; the first joint at its bound sits there exactly."""
    bounds, limit = Bounds(PLAIN), 0.95 * PLAIN.tau_max
    for _ in range(30):
        q, qd = rng.uniform(-3, 3, 6), rng.normal(size=6) * 0.3
        h = PLAIN.bias_torque(q, qd)
        task = rng.normal(size=6) * PLAIN.tau_max * 3
        command = bounds.command(q, qd, h + task)
        assert command.note == "torque limited"
        assert np.max(np.abs(command.tau) / limit) == pytest.approx(1.0)
        share = (command.tau - h) / task
        assert share == pytest.approx(np.full(6, share[0]))
        assert 0.0 < share[0] < 1.0
        small = h + 0.01 * task
        passed = bounds.command(q, qd, small.copy())
        assert np.all(passed.tau == small)
        assert passed.note == ""


def test_bounds_brake_fast_joints() -> None:
    bounds, limit = Bounds(PLAIN), 0.8 * PLAIN.qd_max
    qd = limit * [1.1, 0.9, -1.2, 0.0, 0.5, 0.0]
    brake = bounds.command(Q, qd, np.zeros(6))
    excess = np.array([0.1 * limit[0], 0, -0.2 * limit[2], 0, 0, 0])
    assert brake.tau == pytest.approx(-20.0 * np.diag(PLAIN.mass_matrix(Q)) * excess)
    assert brake.note == "joint speed limited"
    assert bounds.command(Q, 0.9 * limit, np.zeros(6)).note == ""


def test_a_far_goal_is_approached_at_limited_speed() -> None:
    goal = Q + [0.8, 0.0, 0.0, 0.0, 0.0, 0.0]
    run = simulate(HEAVY, OperationalSpace(HEAVY, goal), Q, duration=6.0)
    speed = np.linalg.norm(np.diff(run.position, axis=0), axis=1) / 1e-3
    assert speed.max() < 1.05 * CORRECTION[0]
    assert run.position[-1] == pytest.approx(HEAVY.pose(goal)[:3, 3], abs=1e-4)
    assert np.all(np.abs(run.tau) < HEAVY.tau_max)


# -------------------------------------------------------------------------------------------------- prioritised tasks


def accelerations(robot: Any, tasks: Any, q: Array, qd: Array) -> Array:
    controller = PrioritisedTasks(robot, tasks)
    controller.start(sample(q, qd))
    tau = controller.step(sample(q, qd)).tau
    return robot.forward_dynamics(q, qd, tau)  # type: ignore[no-any-return]


def regular(robot: Any, rng: np.random.Generator, count: int) -> list[Array]:
    found: list[Array] = []
    while len(found) < count:
        q = rng.uniform(-1.5, 1.5, robot.dof)
        if np.linalg.svd(robot.jacobian(q))[1][-1] > 0.1:
            found.append(q)
    return found


@pytest.mark.parametrize("robot", [HEAVY, SEVEN], ids=["six", "seven"])
def test_compatible_tasks_are_exact(robot: Any, rng: np.random.Generator) -> None:
    """Position of the tool first, its orientation second: both reached to 1e-8 (cond M), whatever comes third."""
    for q in regular(robot, rng, 6):
        goal, qd = q + rng.normal(size=robot.dof) * 0.02, rng.normal(size=robot.dof) * 0.1  # within the torque limits
        tasks = [ToolTask(goal, "position"), ToolTask(goal, "orientation"), JointTask(q + 0.5)]
        qdd = accelerations(robot, tasks, q, qd)
        J = robot.jacobian(q)
        wdot = J @ qdd + robot.jacobian_rate_times_velocity(q, qd)
        wanted = 100.0 * pose_error(robot.pose(goal), robot.pose(q)) - 20.0 * J @ qd
        assert wdot == pytest.approx(wanted, abs=1e-8)


def test_lower_tasks_do_what_is_left(rng: np.random.Generator) -> None:
    """The lexicographic optimum: against kinematics.resolution.prioritised, which is proven against another solver."""
    for q in regular(SEVEN, rng, 6):
        goal, qd = q + rng.normal(size=7) * 0.1, rng.normal(size=7) * 0.3
        rest = q + 0.5
        tasks = [ToolTask(goal, [2, 0]), ToolTask(goal, "orientation"), JointTask(rest, [1, 3, 4]), JointTask(rest)]
        J, drift = SEVEN.jacobian(q), SEVEN.jacobian_rate_times_velocity(q, qd)
        wanted = 100.0 * pose_error(SEVEN.pose(goal), SEVEN.pose(q)) - 20.0 * J @ qd - drift
        joints = 100.0 * (rest - q) - 20.0 * qd
        some = [0, 2, 3]
        expected = resolution.prioritised(
            [
                resolution.Task(J[[2, 0]], wanted[[2, 0]]),
                resolution.Task(J[3:], wanted[3:]),
                resolution.Task(np.eye(7)[some], joints[some]),
                resolution.Task(np.eye(7), joints),
            ]
        )
        assert accelerations(SEVEN, tasks, q, qd) == pytest.approx(expected, abs=1e-7)


def test_weak_directions_are_damped_like_the_schedule() -> None:
    """Near the wrist singularity: along the weakest pair (u, v) of J, v^T qdd = s / THRESHOLD^2 u^T b, else 1/s."""
    for q5 in (0.005, 0.03, 0.3):
        q = Q.copy()
        q[4] = q5
        goal = q + 1e-3
        U, s, Vt = np.linalg.svd(PLAIN.jacobian(q))
        b = U.T @ (100.0 * pose_error(PLAIN.pose(goal), PLAIN.pose(q)))
        T = resolution.THRESHOLD
        f = np.where(s < T, s / T**2, 1.0 / s)
        assert Vt @ accelerations(PLAIN, [ToolTask(goal)], q, q * 0) == pytest.approx(f * b, abs=1e-8)
        assert (s[-1] < T) == (q5 < 0.1)  # damped, damped, not


def test_a_contradicting_lower_task_does_not_disturb_the_first(rng: np.random.Generator) -> None:
    for q in regular(HEAVY, rng, 5):
        one, other = q + 0.05, q - 0.2
        qdd = accelerations(HEAVY, [ToolTask(one), ToolTask(other, "position"), JointTask(other)], q, q * 0)
        wanted = 100.0 * pose_error(HEAVY.pose(one), HEAVY.pose(q))
        assert HEAVY.jacobian(q) @ qdd == pytest.approx(wanted, abs=1e-8)


def test_what_no_task_asks_for_comes_to_rest() -> None:
    """Position only: three directions are free and die out, the tool's place is kept."""
    spin = np.linalg.svd(HEAVY.jacobian(Q)[:3])[2][-1] * 0.5
    run = simulate(HEAVY, PrioritisedTasks(HEAVY, [ToolTask(Q, "position")]), Q, qd=spin, duration=2.0)
    assert np.abs(run.position - run.position[0]).max() < 1e-4
    assert np.abs(run.q[-1] - Q).max() > 0.03
    assert np.linalg.norm(run.qd[-1]) < 1e-3 * np.linalg.norm(spin)


@pytest.mark.parametrize(("wave", "joint"), [(ELBOW, 3), (WRIST, 5)], ids=["elbow", "wrist"])
def test_tasks_through_a_singularity(wave: Wave, joint: int) -> None:
    tasks = [ToolTask(wave), JointTask(wave)]
    run = simulate(HEAVY, PrioritisedTasks(HEAVY, tasks), wave.at(0.0).q, duration=5.2)
    assert np.all(np.abs(run.tau) < HEAVY.tau_max)
    assert "task 1 has lost a direction" in run.notes
    assert np.linalg.norm(errors(run, wave)[-100:, :3], axis=1).max() < 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolTask(Q, "place"),
        lambda: ToolTask(Q, [0, 0]),
        lambda: ToolTask(Q, [6]),
        lambda: ToolTask(Q, []),
        lambda: PrioritisedTasks(PLAIN, []),
        lambda: PrioritisedTasks(PLAIN, [JointTask(Q, [7])]).start(sample(Q, Q * 0)),
        lambda: ToolInertia(PLAIN, mass_max=-1.0),
    ],
)
def test_misuse(make: Any) -> None:
    with pytest.raises(InvalidValue):
        make()


def test_bounds_say_torque_limited_from_their_limit_on_only() -> None:
    bounds, rest = Bounds(PLAIN), np.zeros(6)
    gravity = PLAIN.gravity_torque(Q)
    for share, note in ((0.94, ""), (1.01, "torque limited")):
        tau = gravity.copy()
        tau[0] = share * 0.95 * PLAIN.tau_max[0]
        assert bounds.command(Q, rest, tau.copy()).note == note
