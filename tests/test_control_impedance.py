"""Springs: joint impedance, Cartesian impedance, quasi-static pressing, hand guiding, and the reaction to a touch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import random_arm
from test_control_simulator import Wave, simulate

import tangere
from tangere.control import CartesianImpedance, HandGuiding, JointImpedance, QuasiStatic, StopOnContact
from tangere.control.cartesian_impedance import OMEGA_MIN
from tangere.control.computed_torque import ComputedTorque
from tangere.control.task_space import pose_error
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.types import Array, Command, Event, State

ROBOT = tangere.robot("ur10e", rotor_inertia=True)
SEVEN = tangere.Robot(random_arm(21, "rrrrrrr"))
Q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])


def sample(q: Any, qd: Any) -> State:
    return State(0.0, 1e-3, np.array(q, float), np.array(qd, float), np.zeros(len(q)))


# ---------------------------------------------------------------------------------------------------- joint impedance


def test_joints_give_way_by_torque_over_stiffness() -> None:
    """At rest k dq = tau_ext exactly; 1e-6 of it is left of the decay after 3 s (10 rad/s, critically damped)."""
    k, load = np.array([800.0, 900.0, 400.0, 60.0, 50.0, 40.0]), np.array([8.0, -20.0, 5.0, 2.0, -1.0, 0.5])
    run = simulate(ROBOT, JointImpedance(ROBOT, Q, stiffness=k), Q, duration=3.0, push=lambda t, q: load)
    assert run.q[-1] - Q == pytest.approx(load / k, rel=1e-6)
    assert np.abs(run.qd[-1]).max() < 1e-6


def test_joint_impedance_is_the_printed_law(rng: np.random.Generator) -> None:
    wave, k, d = Wave(Q, [0.2] * 6, [1.0] * 6), rng.uniform(10, 100, 6), rng.uniform(1, 10, 6)
    friction = JointFriction.of(ROBOT.drives)
    controller = JointImpedance(ROBOT, wave, stiffness=k, damping=d, friction=friction)
    controller.start(sample(Q, Q * 0))
    q, qd, want = rng.normal(size=6), rng.normal(size=6), wave.at(0.7)
    expected = k * (want.q - q) + d * (want.qd - qd) + ROBOT.gravity_torque(q) + friction.torque(qd)
    assert controller.step(State(0.7, 1e-3, q, qd, q)).tau == pytest.approx(expected)


def test_default_damping_does_not_overshoot() -> None:
    controller = JointImpedance(ROBOT, Q)
    run = simulate(ROBOT, controller, Q - [0.0, 0.1, 0.0, 0.0, 0.0, 0.0], duration=2.0)
    assert (run.q[:, 1] - Q[1]).max() < 0.005  # 5 % of the step: coupling, not the spring
    assert run.q[-1] == pytest.approx(Q, abs=1e-4)


# ------------------------------------------------------------------------------------------------ Cartesian impedance


def test_tool_gives_way_by_force_over_stiffness() -> None:
    """Steady deflection K^-1 F. 1e-3 relative: the turn of some 20 mrad is a rotation vector, K acts in base axes."""
    F = np.array([10.0, -6.0, 8.0, 0.4, -0.3, 0.5])
    K = np.array([1000.0, 800.0, 1200.0, 40.0, 30.0, 50.0])
    controller = CartesianImpedance(ROBOT, Q, stiffness=K)
    run = simulate(ROBOT, controller, Q, duration=4.0, push=lambda t, q: ROBOT.jacobian(q).T @ F)
    given = -pose_error(ROBOT.pose(Q), ROBOT.pose(run.q[-1]))
    assert given == pytest.approx(F / K, rel=1e-3)
    assert np.abs(run.qd[-1]).max() < 1e-4


def design(controller: CartesianImpedance, q: Array) -> tuple[Array, Array]:
    """(Lambda, D), column by column: what the law makes of unit accelerations and speeds, with J = 1 and no torque."""
    sense, modes, torque, zero = controller._sense, controller._modes, controller._torque, np.zeros(6)
    sense.update(q, zero, ROBOT.pose(q), zero, zero, zero)
    modes.before[:] = sense.after[: len(modes.before)]
    modes.update()
    root = sense.parameters[-7:-1]

    def force(wdot: Array, ed: Array) -> Array:
        sensed = np.concatenate((modes.before, root * wdot, root * ed, zero, np.eye(6).ravel(), zero))
        torque.update(sensed, modes.after)
        return torque.after.copy()

    Lambda = np.column_stack([force(e, zero) for e in np.eye(6)])
    return Lambda, np.column_stack([force(zero, e) for e in np.eye(6)])


def by_eigenvectors(controller: CartesianImpedance, T: Array, q: Array, qd: Array, F: Array) -> Array:
    """The torque of springs and dampers about a pose that stands still, by LAPACK's eigenvectors."""
    robot, rest = controller.robot, controller.rest_damping
    J, root = robot.jacobian(q), controller._sense.parameters[-7:-1]
    v = J @ qd
    w, W = np.linalg.eigh(np.outer(root, root) * (J @ np.linalg.solve(robot.mass_matrix(q), J.T)))
    w = np.maximum(w, OMEGA_MIN**2)
    wdot = rest * v - robot.jacobian_rate_times_velocity(q, qd)
    modes = (root * wdot) @ W / w + 2.0 * controller.damping_ratio * (root * -v) @ W / np.sqrt(w)
    force = root * (W @ modes) + controller.stiffness * pose_error(T, robot.pose(q)) - F
    return np.asarray(robot.inverse_dynamics(q, qd, -rest * qd) + J.T @ force)


@pytest.mark.parametrize("robot", [ROBOT, SEVEN], ids=["compiled", "printed"])
def test_the_law_is_the_one_by_eigenvectors(robot: tangere.Robot, rng: np.random.Generator) -> None:
    """1e-11 of the torque's size: the arm anywhere, at a wrist singularity too, with and without a wrench."""
    q0 = rng.uniform(-1.5, 1.5, robot.dof)
    F = np.array([10.0, -6.0, 8.0, 0.4, -0.3, 0.5])
    stiff = [1000.0, 800.0, 0.0, 40.0, 30.0, 50.0]
    controller = CartesianImpedance(robot, q0, stiffness=stiff, wrench=F, damping_ratio=0.7)
    controller.start(sample(q0, 0.0 * q0))
    controller._bounds = Loose()
    for k in range(30):
        q, qd = rng.uniform(-2.0, 2.0, robot.dof), 0.2 * rng.standard_normal(robot.dof)
        q[4] = 0.0 if k == 0 else q[4]
        tau, want = controller.step(sample(q, qd)).tau, by_eigenvectors(controller, robot.pose(q0), q, qd, F)
        assert tau == pytest.approx(want, abs=1e-11 * np.abs(want).max())


class Loose:
    """Bounds that hold nothing back."""

    def command(self, q: Array, qd: Array, tau: Array, note: str = "") -> Command:
        return Command(tau, note)


@pytest.mark.parametrize("zeta", [0.3, 1.0])
def test_every_vibration_has_the_damping_ratio(zeta: float, rng: np.random.Generator) -> None:
    """Poles of Lambda xdd + D xd + K x = 0 against -zeta w +- w sqrt(zeta^2 - 1), w^2 eigenvalues of Lambda^-1 K."""
    K = np.array([1000.0, 800.0, 1200.0, 40.0, 30.0, 50.0])
    controller = CartesianImpedance(ROBOT, Q, stiffness=K, damping_ratio=zeta)
    controller.start(sample(Q, Q * 0))
    for q in rng.uniform(-2, 2, (20, 6)):
        J = ROBOT.jacobian(q)
        mobility = J @ np.linalg.solve(ROBOT.mass_matrix(q), J.T)
        w = np.sqrt(np.linalg.eigvals(mobility @ np.diag(K)).real)
        if w.min() < 1.2:  # held at 1 rad/s near singularities, another test
            continue
        Lambda, D = design(controller, q)
        assert Lambda @ mobility == pytest.approx(np.eye(6), abs=1e-8)
        A = np.block([[np.zeros((6, 6)), np.eye(6)], [-mobility @ np.diag(K), -mobility @ D]])
        poles = np.linalg.eigvals(A)
        expected = np.concatenate([-zeta * w + s * w * np.sqrt(complex(zeta**2 - 1)) for s in (1, -1)])
        # sorted pairs; double roots (zeta = 1) are known to the square root of rounding only
        for part in ("real", "imag"):
            assert np.sort(getattr(poles, part)) == pytest.approx(np.sort(getattr(expected, part)), rel=1e-4, abs=1e-2)


def test_design_is_bounded_at_singularities() -> None:
    """In singular poses themselves: D <= 2 zeta K / OMEGA_MIN in every direction, and a finite torque."""
    K = np.array([1000.0, 800.0, 1200.0, 40.0, 30.0, 50.0])
    controller = CartesianImpedance(ROBOT, Q, stiffness=K)
    controller.start(sample(Q, Q * 0))
    for q in (Q * [1, 1, 0, 1, 1, 1], Q * [1, 1, 1, 1, 0, 1], np.zeros(6)):
        Lambda, D = design(controller, q)
        root = np.diag(K**-0.5)
        assert np.linalg.eigvalsh(root @ D @ root).max() == pytest.approx(2.0 / OMEGA_MIN)  # the lost direction
        assert np.linalg.eigvalsh(root @ Lambda @ root).max() == pytest.approx(OMEGA_MIN**-2.0)
        assert np.all(np.isfinite(controller.step(sample(q, q * 0 + 0.1)).tau))


def test_a_moving_reference_is_fed_forward(rng: np.random.Generator) -> None:
    """On the path with its speed, the tool accelerates as the path does: J qdd + Jdot qd = wdot_d. 1e-7: cond Lambda"""
    wave = Wave(Q, [0.2] * 6, rng.uniform(1, 2, 6))
    controller = CartesianImpedance(ROBOT, wave)
    controller.start(sample(Q, Q * 0))
    for time in (0.1, 0.5, 0.9):
        want = wave.at(time)
        tau = controller.step(State(time, 1e-3, want.q, want.qd, Q)).tau
        qdd = ROBOT.forward_dynamics(want.q, want.qd, tau)
        assert ROBOT.jacobian(want.q) @ (qdd - want.qdd) == pytest.approx(np.zeros(6), abs=1e-7)


def test_null_space_is_damped_and_does_not_move_the_tool() -> None:
    """Seven joints: a spin in the null space dies out with the rate asked for, the tool stays."""
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.5, 1.5, 7)
    while np.linalg.svd(SEVEN.jacobian(q))[1][-1] < 0.2:
        q = rng.uniform(-1.5, 1.5, 7)
    spin = np.linalg.svd(SEVEN.jacobian(q))[2][-1] * 0.3
    controller = CartesianImpedance(SEVEN, q, stiffness=[2000.0] * 3 + [200.0] * 3, rest_damping=5.0)
    run = simulate(SEVEN, controller, q, qd=spin, duration=0.3)
    moved = np.abs([pose_error(SEVEN.pose(q), SEVEN.pose(x)) for x in run.q[::30]]).max()
    assert np.abs(run.q[-1] - q).max() > 0.02
    assert moved < 2e-4  # a hundredth: what is left is the tool's own dynamics, of second order in the spin
    energy = [v @ SEVEN.mass_matrix(x) @ v for x, v in zip(run.q[::30], run.qd[::30], strict=True)]
    half = len(energy) // 2
    assert energy[half] / energy[0] == pytest.approx(np.exp(-2 * 5.0 * run.time[::30][half]), rel=0.05)


def test_free_axis_presses_with_the_wrench_asked_for() -> None:
    """Stiffness 0 along z and F_z = 5 N: against a stop at the tool the contact force is 5 N, as exact as the model."""
    K_wall, floor = 2e4, ROBOT.pose(Q)[2, 3]
    contact = []

    def push(time: float, q: Any) -> Any:
        force = max(0.0, K_wall * (floor - ROBOT.pose(q)[2, 3]))
        contact.append(force)
        return ROBOT.jacobian(q)[2] * force

    K = [1000.0, 1000.0, 0.0, 40.0, 40.0, 40.0]
    wrench = [0.0, 0.0, 5.0, 0.0, 0.0, 0.0]
    run = simulate(ROBOT, CartesianImpedance(ROBOT, Q, stiffness=K, wrench=wrench), Q, duration=4.0, push=push)
    assert contact[-1] == pytest.approx(5.0, rel=1e-3)
    assert run.position[-1][:2] == pytest.approx(run.position[0][:2], abs=1e-4)


def test_cartesian_impedance_survives_a_singularity() -> None:
    wave = Wave([0.3, -1.2, 0.0, -1.0, 0.0, 0.4], [0.1, 0.1, 0.4, 0.1, 0.4, 0.2], [1.5] * 6)  # elbow and wrist at once
    controller = CartesianImpedance(ROBOT, wave, stiffness=[4000.0] * 3 + [160.0] * 3)
    start = wave.at(0.0)
    run = simulate(ROBOT, controller, start.q, qd=start.qd, duration=6.0)
    assert np.all(np.abs(run.tau) < ROBOT.tau_max)
    assert np.all(np.isfinite(run.q))


# ------------------------------------------------------------------------------------------------------- quasi-static


def test_no_motion_under_the_wrench(rng: np.random.Generator) -> None:
    """002: qdd = 0 with tau = g - J^T F while F acts. 1e-10: rounding through M^-1 of condition 1e2."""
    for q in rng.uniform(-3, 3, (20, 6)):
        F = rng.normal(size=6) * [20, 20, 20, 2, 2, 2]
        controller = QuasiStatic(ROBOT, F)
        controller.start(sample(q, q * 0))
        tau = controller.step(sample(q, q * 0)).tau
        qdd = ROBOT.forward_dynamics(q, q * 0, tau + ROBOT.jacobian(q).T @ F)
        assert np.abs(qdd).max() < 1e-10


def test_golden_torque_with_contact() -> None:
    """A worked example: g - J^T (0, 0, 5, 0, 0, 0) of configuration B, printed with ten digits."""
    q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
    controller = QuasiStatic(tangere.robot("ur10e"), [0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    controller.start(sample(q, q * 0))
    printed = [0, -72.2969460732, -36.4968310735, -1.6834945489, 0.1352507188, 0]
    robot = tangere.robot("ur10e")
    gravity = [0.0, -77.0648583732, -39.8751516555, -2.3317022791, 0.3869185233, 0.0]
    difference = controller.step(sample(q, q * 0)).tau - robot.gravity_torque(q)
    assert difference == pytest.approx(np.subtract(printed, gravity), abs=1e-8)  # J^T F of the print, any mass set


def test_wrench_of_time_and_springs() -> None:
    wave = Wave(Q, [0.1] * 6, [1.0] * 6)
    controller = QuasiStatic(ROBOT, lambda t: np.full(6, t), wave, stiffness=7.0, damping=3.0)
    controller.start(sample(Q, Q * 0))
    tau = controller.step(State(2.0, 1e-3, Q, Q * 0, Q)).tau
    want = wave.at(2.0)
    expected = ROBOT.gravity_torque(Q) - ROBOT.jacobian(Q).T @ np.full(6, 2.0) + 7.0 * (want.q - Q) + 3.0 * want.qd
    assert tau == pytest.approx(expected)


# -------------------------------------------------------------------------------------------------------- hand guiding


def test_the_arm_stays_where_it_is_left() -> None:
    run = simulate(ROBOT, HandGuiding(ROBOT), Q, duration=1.0)
    assert run.q[-1] == pytest.approx(Q, abs=1e-9)


def test_friction_is_taken_away_in_part() -> None:
    """The same hand moves the arm farther with compensation than without, and it stops in both cases."""
    friction = JointFriction.of(ROBOT.drives)
    hand = np.array([40.0, 0, 0, 0, 0, 0])
    way = {}
    for compensation in (0.0, 0.7):
        controller = HandGuiding(ROBOT, friction=friction, compensation=compensation)
        run = simulate(
            ROBOT, controller, Q, duration=4.0, friction=friction, push=lambda t, q: hand if t < 0.5 else 0 * hand
        )
        way[compensation] = run.q[-1, 0] - Q[0]
        assert abs(run.qd[-1, 0]) < 0.02
    assert way[0.7] > 1.5 * way[0.0] > 0.0


def test_the_edge_pushes_back() -> None:
    q = Q.copy()
    q[2] = ROBOT.q_max[2] - 0.3
    hand = np.array([0, 0, 30.0, 0, 0, 0])
    run = simulate(ROBOT, HandGuiding(ROBOT), q, duration=3.0, push=lambda t, x: hand)
    assert run.q[:, 2].max() < ROBOT.q_max[2]
    assert "near a joint limit" in run.notes


@pytest.mark.parametrize("share", [1.0, -0.1, 2.0])
def test_full_compensation_is_refused(share: float) -> None:
    with pytest.raises(InvalidValue, match="compensation"):
        HandGuiding(ROBOT, compensation=share)


# ------------------------------------------------------------------------------------------------------------ reaction


def test_stop_on_contact() -> None:
    """Before the touch the controller itself; after it the arm stays near where it was touched, and is soft."""
    wave = Wave(Q, [0.5, 0, 0, 0, 0, 0], [1.0] * 6)
    reaction = StopOnContact(ComputedTorque(ROBOT, wave), ROBOT)

    def touch(k: int, state: State) -> State:
        if k == 1000:
            reaction.on_event(Event.sample(state.time, 1, np.ones(6)))
        return state

    start = wave.at(0.0)
    run = simulate(ROBOT, reaction, start.q, qd=start.qd, duration=4.0, measure=touch)
    assert set(run.notes[:1000]) == {""}
    assert set(run.notes[1000:]) == {"holding softly after a touch"}
    assert np.abs(run.q[:1000, 0] - [wave.at(t).q[0] for t in run.time[:1000]]).max() < 1e-3
    assert run.q[-1] == pytest.approx(run.q[1000], abs=1e-3)
    # 0.27 rad/s brakes in a critically damped spring of 5 rad/s: 0.27 / 5 / e = 20 mrad, twice that is allowed
    assert np.abs(run.q[1000:, 0] - run.q[1000, 0]).max() < 0.04
    reaction.start(sample(Q, Q * 0))
    assert reaction.event is None
