"""The Kalman filter: the bandwidth asked for, the textbook's recursion, a variance that tells the truth."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from test_observe_momentum import PUSH, K, residuals, simulate

import tangere
from tangere.errors import InvalidValue
from tangere.observe.alternatives import FilteredDynamicsObserver, KalmanObserver
from tangere.types import State


class Sliders:
    """n bodies of given masses that slide freely: p = m qd, no gravity."""

    def __init__(self, mass, n=1):
        self.mass, self.dof, self.tau_max = np.full(n, mass), n, np.full(n, 100.0)

    def momentum_terms(self, q, qd):
        return self.mass * qd, np.zeros(self.dof), np.zeros(self.dof)

    def mass_matrix(self, q):
        return np.diag(self.mass)


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


@pytest.mark.parametrize("mass", [0.05, 8.0])
@pytest.mark.parametrize("torque_noise", [1e-4, 0.2, 5.0])
def test_half_the_power_passes_at_the_gain_whatever_mass_and_noise(mass, torque_noise):
    h = 1e-3 / K  # K h = 1e-3: continuous time
    t = h * np.arange(30001.0)
    p = -np.cos(K * t) / K  # of f = sin(K t), exactly
    observer = KalmanObserver(Sliders(mass), K, torque_noise=torque_noise, period=h)
    samples = [State(x, h, np.zeros(1), np.array([y / mass]), np.zeros(1)) for x, y in zip(t, p, strict=True)]
    r = residuals(observer, samples)[-12567:, 0]  # the last two waves
    amplitude = np.hypot(*(2.0 * np.mean(r * wave(K * t[-12567:])) for wave in (np.sin, np.cos)))
    # 1e-3: K h / 2 of the discrete design at each end; the start has decayed by exp(-20)
    assert amplitude == pytest.approx(np.sqrt(0.5), rel=2e-3)


def test_without_torque_noise_it_is_the_butterworth_filter(robot):
    samples = simulate(robot, [1e-3] * 400, PUSH)
    ours = residuals(KalmanObserver(robot, K, torque_noise=1e-6, period=1e-3), samples)
    # K h / 2 = 2.5 % of a sample late, of a slope of 0.46 K 20 Nm at most: 0.23 Nm
    assert np.abs(ours - residuals(FilteredDynamicsObserver(robot, K), samples)).max() < 0.3
    assert ours[:, 1].max() > 20.5


def test_it_is_the_textbook_recursion_with_van_loans_covariance(robot, pushed_run):
    linalg = pytest.importorskip("scipy.linalg")
    samples, _ = pushed_run
    velocity, density, period = 0.003, np.array([0.3, 0.2, 0.1, 0.05, 0.04, 0.03]), 2e-3
    gain = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0])
    observer = KalmanObserver(robot, gain, velocity_noise=velocity, torque_noise=density, period=period)
    r = residuals(observer, samples)

    def noise(q):
        M = robot.mass_matrix(q)
        return np.diag(M @ M.T) * velocity**2

    def terms(s):
        C = robot.coriolis_matrix(s.q, s.qd)
        return robot.mass_matrix(s.q) @ s.qd, C.T @ s.qd - robot.gravity_torque(s.q)

    for j in range(6):
        R, q_p = noise(samples[0].q)[j] * period, density[j] ** 2
        q_f = gain[j] ** 2 * (R * gain[j] ** 2 + q_p)
        A, H = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 0.0]])
        P = linalg.solve_continuous_are(A.T, H.T, np.diag([q_p, q_f]), np.array([[R]]))
        x = np.array([terms(samples[0])[0][j], 0.0])
        for k, (before, s) in enumerate(pairwise(samples), 1):
            (_, beta0), (p1, beta1) = terms(before), terms(s)
            R = noise(s.q)[j]
            q_f = gain[j] ** 2 * (R * period * gain[j] ** 2 + q_p)
            loan = linalg.expm(s.period * np.block([[-A, np.diag([q_p, q_f])], [np.zeros((2, 2)), A.T]]))
            F = loan[2:, 2:].T
            P = F @ P @ F.T + F @ loan[:2, 2:]
            x = F @ x + np.array([s.period * (s.tau + (beta0 + beta1) / 2)[j], 0.0])
            gains = P @ H.T / (H @ P @ H.T + R)
            x = x + (gains * (p1[j] - x[0]))[:, 0]
            P = (np.eye(2) - gains @ H) @ P
            # rounding of p by gains of up to 400 / s; the Riccati solver's 1e-9 decays
            assert x[1] == pytest.approx(r[k, j], abs=1e-7)
        assert observer.variance[j] == pytest.approx(P[1, 1], rel=1e-6)


def test_the_variance_is_that_of_its_error(rng):
    n, mass, velocity, density, period = 400, 2.0, 0.002, 0.2, 2e-3
    arm = Sliders(mass, n)
    observer = KalmanObserver(arm, K, velocity_noise=velocity, torque_noise=density, period=period)
    q_f = K**2 * ((mass * velocity) ** 2 * period * K**2 + density**2)
    t, p, f, errors = 0.0, np.zeros(n), np.zeros(n), []
    observer.reset(State(0.0, period, np.zeros(n), velocity * rng.normal(size=n), np.zeros(n)))
    for _ in range(250):
        h = rng.uniform(0.5e-3, 5e-3)
        # a random walk and its integral over h, jointly: variances q_f h, q_f h^3/3, covariance q_f h^2/2
        a, b = rng.normal(size=(2, n))
        walk = np.sqrt(q_f * h) * a
        p = p + h * f + h * (walk / 2 + np.sqrt(q_f * h / 12) * b)
        f, t = f + walk, t + h
        tau = density / np.sqrt(h) * rng.normal(size=n)  # none acts, noise is measured
        r = observer.update(State(t, h, np.zeros(n), p / mass + velocity * rng.normal(size=n), tau))
        errors.append(np.mean((r - f) ** 2) / observer.variance[0])
    # 400 bodies over 250 samples, correlated over some 10: 1e4 independent ones, 1.4 %; three times that
    assert np.mean(errors[50:]) == pytest.approx(1.0, abs=0.045)


def test_on_the_arm_a_push_and_nothing_else(robot, pushed_run):
    samples, start = pushed_run
    r = residuals(KalmanObserver(robot, K), samples)
    since = np.array([s.time - start for s in samples])
    assert np.abs(r[since <= 0.0]).max() < 1.6e-3  # the trapezium, as for the momentum observer
    assert np.abs(r[since > 0.25] - PUSH).max() < 0.05
    assert np.abs(np.delete(r, 1, axis=1)).max() < 1.6e-3


@pytest.mark.parametrize("what", ["q", "qd", "tau", "period", "time"])
def test_a_broken_or_repeated_sample_holds_the_residual_and_is_left_behind(robot, pushed_run, what):
    samples = list(pushed_run[0])
    bad = 0.0 if what == "period" else samples[199].time if what == "time" else getattr(samples[200], what) * np.nan
    samples[200] = dataclasses.replace(samples[200], **{what: bad})
    observer = KalmanObserver(robot, K)
    r = residuals(observer, samples)
    assert np.isfinite(r).all()
    assert np.isfinite(observer.variance).all()
    assert np.array_equal(r[200], r[199])
    assert np.abs(r[-1] - PUSH).max() < 0.3  # settled to 1 % again, less two periods


def test_what_was_missed_adds_to_the_variance(robot, pushed_run):
    samples = pushed_run[0]
    observer = KalmanObserver(robot, K)
    assert np.isinf(observer.variance).all()
    residuals(observer, samples[:100])
    settled = observer.variance
    observer.update(dataclasses.replace(samples[100], q=samples[100].q * np.nan))
    assert np.array_equal(observer.variance, settled)
    late = [dataclasses.replace(s, time=s.time + 0.1) for s in samples[101:103]]  # 0.1 s without a sample
    for s in late:
        observer.update(s)
    assert np.all(observer.variance > 1.5 * settled)


def test_a_broken_first_sample_begins_later(robot, pushed_run):
    samples = [dataclasses.replace(pushed_run[0][0], q=np.full(6, np.nan)), *pushed_run[0][1:]]
    r = residuals(KalmanObserver(robot, K), samples)
    assert not r[:2].any()
    assert np.abs(r[-1] - PUSH).max() < 0.05


def test_warm_start_and_misuse(robot, pushed_run):
    observer = KalmanObserver(robot, K, residual=PUSH)
    first = residuals(observer, pushed_run[0])
    assert np.array_equal(first[0], PUSH)
    assert np.array_equal(residuals(observer, pushed_run[0]), first)
    assert np.array_equal(observer.gain, np.full(6, K))
    for name in ("velocity_noise", "torque_noise", "period"):
        with pytest.raises(InvalidValue, match=name):
            KalmanObserver(robot, **{name: 0.0})
