"""Filtered dynamics: order 1 is the momentum observer, order 2 a Butterworth filter, exact for irregular periods."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_observe_momentum import PUSH, K, residuals

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.observe.alternatives import FilteredDynamicsObserver
from tangere.observe.momentum import MomentumObserver
from tangere.types import State


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


def butterworth_step(since, gain):
    """1 - e^-s (cos s + sin s), s = K t / sqrt(2): the step answer of K^2 / (s^2 + sqrt(2) K s + K^2)."""
    s = np.maximum(since, 0.0)[:, None] * gain / np.sqrt(2.0)
    return 1.0 - np.exp(-s) * (np.cos(s) + np.sin(s))


def test_order_2_gives_the_butterworth_answer_whatever_the_periods(robot, pushed_run):
    samples, start = pushed_run
    gain = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0])
    r = residuals(FilteredDynamicsObserver(robot, gain), samples)
    truth = PUSH * butterworth_step(np.array([s.time - start for s in samples]), gain)
    # error of the trapezium of beta at up to 4 ms, as for the momentum observer
    assert np.abs(r - truth).max() < 1.6e-3
    assert r[:, 1].max() > 20.8  # and its overshoot of 4.3 %: it is not a first-order lag


def test_order_1_is_the_momentum_observer(robot, pushed_run):
    friction = JointFriction(np.full(6, 3.0), np.full(6, 5.0), width=0.2)
    ours = residuals(FilteredDynamicsObserver(robot, K, friction, order=1), pushed_run[0])
    # rounding only: 1e-16 of p / h = 1e4 Nm
    assert np.abs(ours - residuals(MomentumObserver(robot, K, friction), pushed_run[0])).max() < 1e-11
    assert np.abs(ours).max() > 3.0


@pytest.mark.parametrize("what", ["q", "tau", "period", "time"])
def test_order_1_is_the_momentum_observer_on_broken_samples_too(robot, pushed_run, what):
    samples = list(pushed_run[0])
    for k in (40, 150, 151, 220):
        bad = -1e-3 if what == "period" else samples[k - 1].time if what == "time" else samples[k].q * np.nan
        samples[k] = dataclasses.replace(samples[k], **{what: bad})
    ours = residuals(FilteredDynamicsObserver(robot, K, order=1), samples)
    assert np.abs(ours - residuals(MomentumObserver(robot, K), samples)).max() < 1e-11  # as above


def test_an_arm_that_already_moves_gives_no_kick(robot, pushed_run):
    assert np.abs(pushed_run[0][0].qd).max() > 0.5
    assert np.abs(residuals(FilteredDynamicsObserver(robot, 400.0), pushed_run[0])[:100]).max() < 1e-3


def test_splitting_a_period_changes_nothing(robot):
    """exp(A h) exp(A h') = exp(A (h + h')): at rest under a constant push any division gives the same."""
    q = np.array([0.1, -1.2, 1.3, -0.4, 0.5, 0.6])
    tau = robot.gravity_torque(q) - PUSH
    ends = []
    for periods in ([0.03], [0.001, 0.029], [0.004, 0.006, 0.02]):
        observer = FilteredDynamicsObserver(robot, K)
        t = 0.0
        observer.reset(State(0.0, 1e-3, q, np.zeros(6), tau))
        for h in periods:
            t += h
            observer.update(State(t, h, q, np.zeros(6), tau))
        ends.append(observer.residual)
    assert np.abs(ends[0] - ends[1]).max() < 1e-12
    assert np.abs(ends[0] - ends[2]).max() < 1e-12
    assert ends[0][1] == pytest.approx(20.0 * butterworth_step(np.array([0.03]), K)[0, 0], rel=1e-12)


@pytest.mark.parametrize("what", ["q", "qd", "tau", "period", "time"])
def test_a_broken_or_repeated_sample_holds_the_residual_and_is_left_behind(robot, pushed_run, what):
    samples = list(pushed_run[0])
    bad = 0.0 if what == "period" else samples[199].time if what == "time" else getattr(samples[200], what) * np.nan
    samples[200] = dataclasses.replace(samples[200], **{what: bad})
    r = residuals(FilteredDynamicsObserver(robot, K), samples)
    assert np.isfinite(r).all()
    assert np.array_equal(r[200], r[199])
    assert np.abs(r[-1] - PUSH).max() < 0.3  # the push is settled to 1 % again, less two periods


def test_warm_start_reset_and_misuse(robot, pushed_run):
    observer = FilteredDynamicsObserver(robot, K, residual=PUSH)
    first = residuals(observer, pushed_run[0])
    assert np.array_equal(first[0], PUSH)
    assert np.array_equal(residuals(observer, pushed_run[0]), first)
    assert np.array_equal(observer.gain, np.full(6, K))
    with pytest.raises(InvalidValue, match="order: must be 1 or 2"):
        FilteredDynamicsObserver(robot, order=3)
    with pytest.raises(InvalidValue, match="gain"):
        FilteredDynamicsObserver(robot, 0.0)
