"""The disturbance observer follows d(d_hat)/dt = Y M(q)^-1 (tau_ext - d_hat), exactly while M stands still."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from test_observe_momentum import PUSH, K, expected, residuals, simulate

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.observe.alternatives import DisturbanceObserver
from tangere.types import State

REST = np.array([0.1, -1.2, 1.3, -0.4, 0.5, 0.6])


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


def held(robot, periods, push=PUSH):
    """An arm held at rest against a push."""
    tau, times = robot.gravity_torque(REST) - push, np.cumsum([0.0, *periods])
    return [State(t, h, REST, np.zeros(6), tau) for t, h in zip(times, [periods[0], *periods], strict=True)]


def test_it_follows_its_differential_equation_while_the_arm_moves(robot, pushed_run):
    samples, start = pushed_run
    gain = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0])
    r = residuals(DisturbanceObserver(robot, gain), samples)
    root = np.sqrt(gain)
    Y = root[:, None] * robot.mass_matrix(samples[0].q) * root

    def rate(q, error):
        return Y @ np.linalg.solve(robot.mass_matrix(q), error)

    d, slow = np.zeros(6), []
    for before, s in itertools.pairwise(samples):
        push = PUSH if before.time >= start - 1e-9 else np.zeros(6)
        # 20 Heun steps per sample on the straight line between the two postures: 1e-5 Nm
        postures, step = np.linspace(before.q, s.q, 21), s.period / 20
        for q0, q1 in itertools.pairwise(postures):
            a = rate(q0, push - d)
            d = d + 0.5 * step * (a + rate(q1, push - d - step * a))
        slow.append(d)
    # O(h^2) of M in the middle of up to 4 ms, and of y as for the acceleration residual (0.01 Nm there)
    assert np.abs(np.array(slow) - r[1:]).max() < 0.01
    assert np.abs(np.array(slow)).max() > 15.0
    # and the price: other joints feel the push on the way, unlike with the momentum observer
    assert np.abs(r[:, [0, 2]]).max() > 0.2


@pytest.mark.parametrize("period", [1e-3, 0.02, 0.5])
def test_exact_and_decoupled_at_the_posture_of_the_design(robot, period):
    gain = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0])
    push = np.array([15.0, -20.0, 8.0, 1.0, -0.5, 0.2])
    samples = held(robot, [period] * 40, push)
    equal = residuals(DisturbanceObserver(robot, K), samples)
    # rounding times cond(M) = 3e4
    assert np.abs(equal - expected(samples, push, start=0.0)).max() < 1e-10
    # unequal gains: L = K^1/2 M K^1/2 M^-1 is not diagonal, but stable whatever the period
    unequal = residuals(DisturbanceObserver(robot, gain), samples)
    assert np.abs(unequal).max() < 60.0
    if period == 0.5:
        assert np.abs(unequal[-1] - push).max() < 1e-9


def test_splitting_a_period_changes_nothing_at_another_posture(robot):
    ends = []
    for periods in ([0.03], [0.001, 0.029], [0.004, 0.006, 0.02]):
        observer = DisturbanceObserver(robot, K, posture=REST + 0.5)
        ends.append(residuals(observer, held(robot, periods))[-1])
    # rounding times cond(M) = 3e4
    assert np.abs(ends[0] - ends[1]).max() < 1e-10
    assert np.abs(ends[0] - ends[2]).max() < 1e-10
    assert np.abs(ends[0] - expected(held(robot, [0.03]), PUSH, start=0.0)[-1]).max() > 0.1


def test_forward_euler_would_diverge(robot):
    """z by forward Euler, Y a multiple of 1 that suits the shoulder: the wrist leaves the numbers."""
    M = robot.mass_matrix(REST)
    L = K * M[1, 1] * np.linalg.inv(M)
    d = np.zeros(6)
    for _ in range(30):
        d = d + 1e-3 * L @ (PUSH - d)
    assert np.abs(d).max() > 1e6


def test_friction_belongs_to_the_model(robot):
    arm = tangere.robot("ur10e", rotor_inertia=np.array([0.6, 0.6, 0.3, 0.1, 0.1, 0.1]))
    friction = JointFriction(np.full(6, 2.0), np.full(6, 8.0), width=0.3)
    samples = simulate(arm, [1e-3] * 200, np.zeros(6), friction=friction)
    assert np.abs(residuals(DisturbanceObserver(arm, K, friction), samples)).max() < 5e-3
    assert np.abs(residuals(DisturbanceObserver(arm, K), samples)).max() > 3.0
    assert np.abs(residuals(DisturbanceObserver(robot, K, friction), samples)).max() > 0.3


@pytest.mark.parametrize("what", ["q", "qd", "tau", "period", "time"])
def test_a_broken_or_repeated_sample_holds_the_residual_and_is_left_behind(robot, pushed_run, what):
    samples = list(pushed_run[0])
    bad = 0.0 if what == "period" else samples[199].time if what == "time" else getattr(samples[200], what) * np.nan
    samples[200] = dataclasses.replace(samples[200], **{what: bad})
    r = residuals(DisturbanceObserver(robot, K), samples)
    assert np.isfinite(r).all()
    assert np.array_equal(r[200], r[199])
    assert np.abs(r[-1] - PUSH).max() < 0.3  # settled to 1 % again, less two periods


def test_a_broken_first_sample_puts_the_design_off(robot):
    samples = held(robot, [1e-3] * 100)
    samples[0] = dataclasses.replace(samples[0], q=REST * np.nan)
    r = residuals(DisturbanceObserver(robot, K), samples)
    assert np.abs(r[1] - r[0]).max() == 0.0
    assert r[-1, 1] == pytest.approx(20.0 * -np.expm1(-K * 0.099), rel=1e-9)


def test_warm_start_and_misuse(robot, pushed_run):
    observer = DisturbanceObserver(robot, K, residual=PUSH)
    first = residuals(observer, pushed_run[0])
    assert np.array_equal(first[0], PUSH)
    assert np.array_equal(residuals(observer, pushed_run[0]), first)
    assert np.array_equal(observer.gain, np.full(6, K))
    with pytest.raises(InvalidValue, match="posture"):
        DisturbanceObserver(robot, posture=[1.0])
    with pytest.raises(InvalidValue, match="gain"):
        DisturbanceObserver(robot, np.nan)
