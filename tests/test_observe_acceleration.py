"""The acceleration residual: right without noise, far worse than the momentum observer with it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_observe_momentum import PUSH, K, expected, residuals, simulate

import tangere
from tangere.errors import InvalidValue
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.momentum import MomentumObserver
from tangere.types import State

START = 0.21  # s, a sample of periods of 1 and 2 ms in turn


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


@pytest.fixture(scope="module")
def samples(robot):
    return simulate(robot, [1e-3, 2e-3] * 150, PUSH, start=START)


def test_from_velocity_it_is_the_push_at_once(robot, samples):
    r = residuals(AccelerationObserver(robot), samples)
    truth = np.array([PUSH * (s.time > START + 1e-9) for s in samples])
    assert np.abs(r - truth)[1:].max() < 0.01  # O(h^2) of the middle of the interval, at 2 ms


def test_from_position_it_is_the_push_within_two_samples(robot, samples):
    r = residuals(AccelerationObserver(robot, differentiate="position"), samples)
    truth = np.array([PUSH * (s.time > START + 1e-9) for s in samples])
    # the second difference of unequal steps is first order: h/3 d3q/dt3 M = 1e-3/3 * 30 rad/s3 * 8 kg m2
    late = np.array([abs(s.time - START) < 5e-3 for s in samples])
    assert np.abs(r - truth)[3:][~late[3:]].max() < 0.3
    assert np.abs(r - truth)[3:].max() > 0.3  # it is not the velocity form


def test_filtered_it_follows_the_same_lag(robot, samples):
    r = residuals(AccelerationObserver(robot, K), samples)
    assert np.abs(r - expected(samples, PUSH, start=START)).max() < 0.01


def test_noise_ruins_it_as_000_says(robot, rng):
    clean = simulate(robot, [2e-3] * 500, np.zeros(6))
    sigma = 2e-3  # rad/s, what a UR's velocity has
    noisy = [dataclasses.replace(s, qd=s.qd + sigma * rng.normal(size=6)) for s in clean]
    raw = residuals(AccelerationObserver(robot), noisy)[1:, 1].std()
    smooth = residuals(MomentumObserver(robot, K), noisy)[1:, 1].std()
    M = robot.mass_matrix(np.array([s.q for s in clean]))[:, 1]
    predicted = np.sqrt(2.0 * np.mean(np.sum(M**2, axis=1))) * sigma / 2e-3
    assert raw == pytest.approx(predicted, rel=0.1)  # 500 samples: 1/sqrt(1000) = 3 %
    assert smooth < raw / 10


def test_a_broken_sample_holds_the_residual(robot, samples):
    for differentiate in ("velocity", "position"):
        observer = AccelerationObserver(robot, differentiate=differentiate)
        observer.reset(samples[0])
        for s in samples[1:50]:
            observer.update(s)
        before = observer.residual
        s = samples[50]
        assert np.array_equal(observer.update(State(s.time, s.period, s.q * np.nan, s.qd * np.nan, s.tau)), before)
        assert np.array_equal(observer.update(dataclasses.replace(s, period=0.0)), before)
        for s in samples[51:60]:
            r = observer.update(s)
        assert np.isfinite(r).all()
        assert np.abs(r).max() < 0.3


def test_misuse_is_refused(robot):
    with pytest.raises(InvalidValue, match="'velocity' or 'position'"):
        AccelerationObserver(robot, differentiate="current")
    with pytest.raises(InvalidValue, match="gain"):
        AccelerationObserver(robot, -1.0)
