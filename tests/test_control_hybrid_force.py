"""Hybrid force-motion control and its parts: gains that put the poles where they say, filters that are optimal."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tangere.apps.drawing.drawing import drawing_robot
from tangere.apps.drawing.force.hybrid_force import LEAST, MOST, HybridForce, TipLaw, speed_bandwidth
from tangere.apps.drawing.force.sense import ContactForce
from tangere.apps.drawing.force.surface import (
    BELOW,
    DAMPING,
    DAMPING_MAX,
    FALL,
    NEAR,
    UNKNOWN,
    Found,
    StiffnessEstimate,
    hybrid_gains,
    touch_speed,
)
from tangere.errors import InvalidValue, UnknownName
from tangere.types import Array, Reference, State

ROBOT = drawing_robot("ur5e")
Q = np.array([0.4, -1.3, 2.0, -2.2, -1.5, 0.3])
H = 1e-3


def state(k: int, q: Array, qd: Array, tau: Array, wrench: Array | None = None, hat: Array | None = None) -> State:
    return State(k * H, H, q, qd, tau, wrench, hat)


# --------------------------------------------------------------------------------------------------------------- gains


@pytest.mark.parametrize("stiffness", [2e3, 5e3, 2e4, 3.2e4])
def test_gains_put_three_poles_at_omega(stiffness: float) -> None:
    """The roots of the loop as derived, delay included: 1e-4 relative (a triple root loses a third of the digits).

    Softer than 3 omega^2 m = 32.4e3 N/m.
    """
    mass, omega, delay = 3.0, 60.0, 2e-3
    gains = hybrid_gains(stiffness, mass, omega, delay)
    assert gains.kp > 1.0 / mass
    damping = gains.kv - (gains.kp - 1.0 / mass) * stiffness * delay
    roots = np.roots((1.0, damping, stiffness * gains.kp, stiffness * gains.ki))
    assert np.abs(roots + omega) == pytest.approx(0.0, abs=1e-4 * omega)


@pytest.mark.parametrize("stiffness", [5e4, 1e5, 2e5])
def test_on_hard_paper_the_spring_holds_the_pen(stiffness: float) -> None:
    """Late compensation and kp cancel, so that no delay is left; the spring's own poles are damped as stated."""
    mass, omega = 3.0, 25.0
    gains = hybrid_gains(stiffness, mass, omega, 5e-3)
    assert gains.kp == pytest.approx(1.0 / mass)
    assert gains == hybrid_gains(stiffness, mass, omega, 1e-3)
    own = math.sqrt(stiffness / mass)
    assert gains.kv == pytest.approx(min(2.0 * DAMPING * own, DAMPING_MAX))
    roots = np.roots((1.0, gains.kv, stiffness / mass, stiffness * gains.ki))
    assert np.all(roots.real < -omega / 3.5)  # the slowest: the integral, at about omega / 3
    pair = roots[roots.imag > 0.0]
    assert np.abs(pair) == pytest.approx(own, rel=0.05)


def pressed(
    stiffness: float,
    assumed: float,
    delay: int,
    omega: float = 80.0,
    faster: float = 1.0,
    count: int = 2000,
    push: float = 0.0,
    kp: float | None = None,
) -> Array:
    """Force over `count` ms of the sampled loop against a spring, force `delay` samples late; gains for `assumed`.

    push [m/s2]: nobody foresees it, from the middle on; kp: instead of the gain's own.
    """
    mass = 3.0
    gains = hybrid_gains(assumed, mass, omega, 2e-3)
    kp = gains.kp if kp is None else kp
    x, v, integral, late, forces = 0.0, 0.0, 0.0, [0.0] * delay, []
    for i in range(count):
        late.append(stiffness * max(x, 0.0))
        W = late.pop(0)
        forces.append(stiffness * max(x, 0.0))
        integral += gains.ki * faster * (5.0 - W) * H
        a = faster * kp * (5.0 - W) + integral - gains.kv * v
        total = a + (W - stiffness * max(x, 0.0)) / mass  # the compensated force is the late one
        total += push if 2 * i > count else 0.0
        v += H * total
        x += H * v
    return np.array(forces)


@pytest.mark.parametrize("delay", [1, 3, 7])
def test_a_push_on_hard_paper_makes_its_own_force_and_no_more(delay: int) -> None:
    """0.5 m/s2 of wrong masses, 3 kg: 1.5 N and 5 % of overshoot, however late the force; then the integral has it.

    kp of three poles alone lets the pen go: more than three times that.
    """
    force = pressed(1e5, 1e5, delay, 25.0, count=4000, push=0.5)[1900:]
    assert 1.2 < force.max() - 5.0 < 1.1 * 1.5
    assert force[-1] == pytest.approx(5.0, abs=0.01)
    assert pressed(1e5, 1e5, delay, 25.0, count=4000, push=0.5, kp=3.0 * 25.0**2 / 1e5)[1900:].max() - 5.0 > 4.5


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.1, 0.02])
def test_the_sampled_loop_settles_also_where_the_paper_is_softer_than_assumed(ratio: float) -> None:
    """One sample late, 1e5 N/m assumed, a step of 5 N: within 2 % at the end, however soft; never twice the force.

    (The controller ramps the force and learns the stiffness on the way, so it does not come to this overshoot.)
    """
    force = pressed(1e5 * ratio, 1e5, 1, count=8000)
    assert force[-200:] == pytest.approx(5.0, rel=0.02)
    assert force.max() < 2.0 * 5.0


def test_ten_times_the_gain_does_not_settle() -> None:
    """The bound is a bound: the same loop with ki and kp ten times as large rings for ever."""
    assert np.std(pressed(2e4, 2e4, 3, faster=30.0)[-500:]) > 0.5
    assert np.std(pressed(2e4, 2e4, 3)[-500:]) < 0.01


def test_gains_refuse_what_cannot_be() -> None:
    with pytest.raises(InvalidValue, match="omega: at most"):
        hybrid_gains(2e4, 3.0, 100.0, 5e-3)
    with pytest.raises(InvalidValue, match="stiffness"):
        hybrid_gains(0.0, 3.0, 50.0, 1e-3)
    assert touch_speed(5.0, 1e12, 3.0) == 2e-3
    assert touch_speed(5.0, 2e4, 3.0) == pytest.approx(5.0 / 3.0 / math.sqrt(6e4))


# ------------------------------------------------------------------------------------------------------------- filters


def test_velocity_filter_is_exact_where_the_model_is_and_quieter_where_it_is_not(rng: np.random.Generator) -> None:
    """A semi-implicit arm under a known torque: without noise v = qd to rounding; with it the shoulder is quieter."""
    bandwidth = speed_bandwidth(ROBOT, Q, 0.1, 2e-3)
    assert np.all((bandwidth >= LEAST) & (bandwidth <= MOST))
    law = TipLaw(ROBOT, bandwidth, np.eye(4), (1.0, 1.0, 1.0), np.ones(6))
    noise = rng.normal(0.0, 2e-3, (800, 6))
    errors: dict[float, list[Array]] = {}
    for scale in (0.0, 1.0):
        q, qd = Q.copy(), np.zeros(6)
        law.start(state(0, q, qd, np.zeros(6)))
        errors[scale] = []
        for k in range(1, 800):
            tau = ROBOT.gravity_torque(q) + 0.2 * np.sin(0.01 * k + np.arange(6)) * np.array((9, 9, 5, 0.3, 0.2, 0.01))
            F = np.array((0.0, 1.0, math.sin(0.02 * k), 0.0, 0.0, 0.0))
            place = q + H * qd  # about where the force will be felt
            qdd = ROBOT.forward_dynamics(q, qd, tau + ROBOT.jacobian(place).T @ F)
            qd = qd + H * qdd
            law._sense.before[-18:-12] = q  # the arm was there when the torque began to act
            q = q + H * qd
            law.sense(state(k, place, qd + scale * noise[k], tau), F)
            errors[scale].append(law.qd - qd)
    assert np.max(np.abs(errors[0.0])) < 1e-10
    spread = np.std(np.array(errors[1.0])[200:], axis=0)
    assert np.all(spread[:3] < 0.35 * 2e-3)  # sqrt(5 L h / 4) of L = 50 rad/s at most
    assert np.all(spread < 1.05 * 2e-3)


class Line:
    """A plan of one stroke, where nothing moves."""

    duration = 1.0

    def at(self, time: float) -> Reference:
        return Reference(Q, np.zeros(6), np.zeros(6), ROBOT.pose(Q), np.zeros(6), np.zeros(6))

    def phase(self, time: float) -> str:
        return "approach" if time < 0.3 else "draw"


@pytest.mark.parametrize(("leans", "left"), [(True, 0.0), (False, 1.0)])
def test_a_leaning_paper_is_no_speed_into_it(leans: bool, left: float) -> None:
    """The joints sink with 5 mm/s. The force stays: the paper sinks too, nothing to damp; it grows by k v: all of it.

    After 0.2 s, 16 time constants of 1 / 80 s: to 1e-3. At first, nobody knows: damped whole.
    """
    law = HybridForce(ROBOT, Line(), np.eye(4), 5.0, stiffness=2e4)
    law.start(State(0.0, H, Q, np.zeros(6), np.zeros(6)))
    gains, speed = law.gains, 5e-3
    damped = []
    for k in range(200):
        W = 5.0 if leans else 1.0 + 2e4 * speed * H * k
        along, integral = law._press(5.0, W, speed, H)
        assert integral == pytest.approx(-gains.ki * (5.0 - W) * H)
        damped.append((along + gains.kp * (5.0 - W)) / (gains.kv * speed))
    assert damped[0] == pytest.approx(1.0, abs=0.081)  # a first step of 80 rad/s
    assert damped[-1] == pytest.approx(left, abs=0.081 if left else 1e-3)  # the paper's speed is one step behind


def test_stiffness_estimate_waits_until_it_is_sure(rng: np.random.Generator) -> None:
    """0.1 N of noise: no answer before the force has risen, then within 20 % (2 sigma) of the truth."""
    estimate = StiffnessEstimate(0.1)
    for _ in range(50):
        estimate.add(1e-3 + rng.normal(0.0, 1e-7), 0.5 + rng.normal(0.0, 0.1))
    assert not estimate.value
    for k in range(200):
        if estimate.value is not None:
            break
        estimate.add(1e-3 + 2e-6 * k, 0.5 + 2e4 * 2e-6 * k + rng.normal(0.0, 0.1))
    assert estimate.value == pytest.approx(2e4, rel=0.2)
    estimate.clear()
    assert not estimate.value


def test_stiffness_estimate_adds_up_presses_of_different_heights(rng: np.random.Generator) -> None:
    """4 N of noise: one press of 5 N is not enough, forty are; their heights differ by millimetres."""
    estimate = StiffnessEstimate(4.0)
    answers = []
    for press in range(40):
        estimate.again()
        for k in range(100):
            depth = 2.5e-6 * k
            estimate.add(1e-3 * press + depth, 2e4 * depth + rng.normal(0.0, 4.0))
        answers.append(estimate.value)
    assert answers[0] is None
    assert answers[-1] == pytest.approx(2e4, rel=0.2)  # 2 sigma


def test_found_paper_has_margins_that_grow_with_distance() -> None:
    found = Found()
    assert found.expected(0.0, 0.0) == (0.0, UNKNOWN)
    for k in range(100):  # more than the first block holds
        found.add((1e-3 * k, 0.0, 1e-5 * k))
    assert len(found.points) == 100
    assert np.array(found.expected(0.02, 0.0)) == pytest.approx([2e-4, NEAR])
    assert Found().lowest(0.0, 0.0) == -math.inf
    assert found.lowest(0.02, 0.05) == pytest.approx(2e-4 - BELOW - FALL * 0.05)
    assert np.array(found.expected(0.02, 0.05)) == pytest.approx([2e-4, NEAR + 0.06 * 0.05])


# ---------------------------------------------------------------------------------------------------------- the force


def test_force_from_joint_torques_is_the_force_and_the_tare_goes_away(rng: np.random.Generator) -> None:
    felt = ContactForce("observer")
    J, n = ROBOT.jacobian(Q), np.array((0.0, 0.0, 1.0))
    F, wrong = np.array((1.0, -2.0, 5.0)), rng.normal(0.0, 1.0, 6)
    zero = np.zeros(6)
    assert felt.wrench(ROBOT, state(0, Q, zero, zero, None, wrong), J, n, True) is None
    for k in range(1, 5):
        felt.wrench(ROBOT, state(k, Q, zero, zero, None, wrong), J, n, True)
    felt.heard()
    answer = felt.wrench(ROBOT, state(5, Q, zero, zero, None, J[:3].T @ F + wrong), J, n, False)
    assert answer is not None
    assert answer == pytest.approx((*F, 0.0, 0.0, 0.0), abs=1e-9)
    broken = felt.wrench(ROBOT, state(6, Q, zero, zero, None, np.full(6, np.nan)), J, n, False)
    assert broken is answer  # the last one


def test_a_sensor_keeps_its_force_and_loses_its_moment() -> None:
    felt = ContactForce()
    wrench = np.arange(1.0, 7.0)
    zero = np.zeros(6)
    F = felt.wrench(ROBOT, state(0, Q, zero, zero, wrench), ROBOT.jacobian(Q), np.eye(3)[2], False)
    assert F is not None
    assert F.tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]
    assert felt.wrench(ROBOT, state(1, Q, zero, zero), ROBOT.jacobian(Q), np.eye(3)[2], False) is None
    with pytest.raises(UnknownName, match="sensor, observer"):
        ContactForce("ear")  # type: ignore[arg-type]
