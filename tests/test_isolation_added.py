"""What a contact added: the model's error is learned from before it, and what is left is as uncertain as is said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tangere
from tangere.observe.detect import refine
from tangere.observe.detect.past import Samples
from tangere.observe.detect.refine import HELD, HIDDEN, Refiner
from tangere.observe.isolation import ContactIsolator, Isolation
from tangere.observe.isolation_added import (
    BEYOND,
    DOUBT,
    LEFT,
    LONGEST,
    MASS_ERROR,
    NOISE,
    SPEED,
    TAKEN,
    Added,
    added,
    observer_input,
)
from tangere.robots import Robot
from tangere.types import Event

H, GAIN = 0.004, 50.0
SPREAD = np.array([1.0, 0.9, 0.4, 0.12, 0.17, 0.12])  # Nm: a UR10e at 500 Hz
TORQUE = np.array([8.0, -20.0, 11.0, 2.0, -1.5, 0.7])


@pytest.fixture(scope="module")
def robot() -> Robot:
    return tangere.robot("ur10e")


def motion(rng, before=1.0, during=0.4):
    """time from `before` seconds before the onset at 0; q, qd, qdd of slow waves."""
    time = H * np.arange(-round(before / H), round(during / H) + 1)
    rate, size, phase = rng.uniform(0.5, 2.0, 6), rng.uniform(0.1, 0.6, 6), rng.uniform(0.0, 6.28, 6)
    angle = rate * time[:, None] + phase
    q = rng.uniform(-3.0, 3.0, 6) + size * np.sin(angle)
    return time, q, size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)


def wrong(robot, masses, q, qd, qdd):
    """Torque that a model lacks whose links are too light by these shares; by Newton and Euler, not by a regressor."""
    scaled = zip(robot.model.links, 1.0 + masses, strict=True)
    links = tuple(replace(link, mass=link.mass * x, inertia=link.inertia * x) for link, x in scaled)
    true = Robot(replace(robot.model, links=links), np.zeros(6))
    return Robot(robot.model, np.zeros(6)).inverse_dynamics(q, qd, qdd) - true.inverse_dynamics(q, qd, qdd)


def noisy(rng, y):
    return y + NOISE * SPREAD / math.sqrt(H) * rng.standard_normal(y.shape)


def test_the_error_is_as_large_as_the_covariance_says(robot, rng):
    """Masses, friction and offsets drawn as the docstring believes them: squared Mahalanobis lengths have mean 6."""
    lengths, plain = [], []
    for _ in range(120):
        time, q, qd, qdd = motion(rng)
        level, coulomb, viscous = rng.standard_normal((3, 6)) * DOUBT * SPREAD
        y = wrong(robot, MASS_ERROR * rng.standard_normal(6), q, qd, qdd)
        y = y + level + coulomb * np.tanh(qd / 0.02) + viscous / SPEED * qd
        y = noisy(rng, y + np.where(time[:, None] > 0.5 * H, TORQUE, 0.0))
        found = added(robot, time, y, q, qd, 0.0, SPREAD)
        error = found.torque - TORQUE
        lengths.append(error @ np.linalg.solve(found.covariance, error))
        plain.append(y[time > 0].mean(axis=0) - y[(time > -0.25) & (time <= 0)].mean(axis=0) - TORQUE)
        plain[-1] = (error**2, plain[-1] ** 2)
    # chi2 of 6: mean 6, standard deviation sqrt(12 / 120) = 0.32; the noise itself is estimated (to a quarter), which
    # widens it by some tenths, and a block's mean posture stands for the block: 4.5 to 8 is four of these either way
    assert 4.5 < np.mean(lengths) < 8.0
    ours, mean = np.array(plain).mean(axis=0)
    assert np.all(ours[:3] < 0.7 * mean[:3])  # against the mean of the quarter second before, taken off


def test_without_doubt_about_the_model_only_noise_is_left(robot, rng, monkeypatch):
    """Variance of white noise: noise^2 / seconds, for contacts up to LONGEST."""
    monkeypatch.setattr("tangere.observe.isolation_added.MASS_ERROR", 1e-9)
    monkeypatch.setattr("tangere.observe.isolation_added.DOUBT", 1e-9)
    monkeypatch.setattr("tangere.observe.isolation_added.PRIOR_BLOCKS", 1e6)  # the noise is known
    for during in (0.1, 0.2, 0.4, 1.0):
        time, q, qd, _ = motion(rng, during=during)
        y = noisy(rng, np.where(time[:, None] > 0.5 * H, TORQUE, 0.0))
        found = added(robot, time, y, q, qd, 0.0, SPREAD)
        assert np.allclose(np.diag(found.covariance), (NOISE * SPREAD) ** 2 / min(during, LONGEST), rtol=0.02)
        assert np.all(np.abs(found.torque - TORQUE) < 5.0 * np.sqrt(np.diag(found.covariance)))


def test_the_noise_of_the_samples_before_counts(robot, rng):
    """Three times the noise that the spread tells: most of it is seen (15 of 20 block variances against 5 expected)."""
    time, q, qd, _ = motion(rng)
    y = np.where(time[:, None] > 0.5 * H, TORQUE, 0.0)
    quiet = added(robot, time, noisy(rng, y), q, qd, 0.0, SPREAD)
    loud = added(robot, time, y + 3.0 * (noisy(rng, y) - y), q, qd, 0.0, SPREAD)
    assert np.all(np.diag(loud.covariance) > 1.5 * np.diag(quiet.covariance))


def test_the_part_that_says_most_is_taken(robot, rng):
    time, q, qd, _ = motion(rng, during=1.5)
    there = (time > 0.6) & (time <= 0.8)
    found = added(robot, time, noisy(rng, np.where(there[:, None], TORQUE, 0.0)), q, qd, 0.0, SPREAD)
    assert 0.6 <= found.time <= 0.8
    assert np.abs(found.torque[1] - TORQUE[1]) < 3.0
    assert np.allclose(found.q, q[there].mean(axis=0), atol=0.05)


@pytest.mark.parametrize("lasts", [0.012, 0.024, 0.04])
def test_of_an_impact_the_whole_course_counts_and_no_more(robot, rng, lasts):
    """Its impulse is found, over about its own time; 95 % intervals of the force while it lasted hold it."""
    held = 0
    for _ in range(40):
        time, q, qd, _ = motion(rng)
        on = (time > 0.5 * H) & (time <= lasts + 0.5 * H)
        y = noisy(rng, np.where(on[:, None], 4.0 * TORQUE, 0.0))
        found = added(robot, time, y, q, qd, 0.0, SPREAD)
        assert found.seconds <= lasts + 2.0 * 0.005 + 1e-9
        weights = np.linalg.solve(found.covariance, TORQUE)
        size = weights @ found.torque / (weights @ TORQUE)  # 4, where it is of the course alone
        sigma = 1.0 / math.sqrt(weights @ TORQUE)
        assert size * found.seconds == pytest.approx(4.0 * lasts, abs=4.0 * sigma * found.seconds + 0.15 * 4.0 * lasts)
        low, high = found.stretch
        assert low <= 1.0 <= high
        held += (size - 2.0 * sigma) * low <= 4.0 <= (size + 2.0 * sigma) * high
    assert held >= 35  # 38 expected


def test_what_sticks_and_what_gains_hide(robot, rng):
    time, q, qd, _ = motion(rng)
    y = noisy(rng, np.where(time[:, None] > 0.5 * H, TORQUE, 0.0))
    plain = added(robot, time, y, q, qd, 0.0, SPREAD)
    hidden = np.zeros_like(q)
    hidden[:, 2] = 5.0
    held = added(robot, time, y, q, qd, 0.0, SPREAD, hidden=hidden)
    assert np.allclose(held.covariance - plain.covariance, np.diag([0.0, 0.0, 25.0, 0.0, 0.0, 0.0]), atol=1e-9)
    gain = added(robot, time, y, q, qd, 0.0, SPREAD, gain_error=0.1)
    assert np.allclose(gain.covariance - plain.covariance, np.diag((0.1 * plain.torque) ** 2), atol=1e-9)


def test_gears_of_an_arm_that_stood_take_their_share_of_a_push(robot, rng):
    """A share of what is felt up to the band, known to LEFT of it; of a joint that feels nothing BEYOND is left."""
    time = motion(rng)[0]
    q, qd = np.tile(rng.uniform(-3.0, 3.0, 6), (len(time), 1)), np.zeros((len(time), 6))
    y = noisy(rng, np.where(time[:, None] > 0.5 * H, TORQUE, 0.0))
    plain = added(robot, time, y, q, qd, 0.0, SPREAD)
    wide = np.array([0.0, 5.0, 50.0, 0.0, 0.5, 0.0])
    found = added(robot, time, y, q, qd, 0.0, SPREAD, band=np.tile(wide, (len(time), 1)))
    assert (plain.shown, found.seconds) == (1.0, plain.seconds)
    taken = np.array([0.0, -5.0, plain.torque[2], 0.0, -0.5, 0.0])  # of joint 3 all of it is within the band
    np.testing.assert_allclose(found.torque, plain.torque + TAKEN * taken, rtol=1e-9)
    more = np.diag((LEFT * taken) ** 2 + (BEYOND * wide) ** 2)
    np.testing.assert_allclose(found.covariance - plain.covariance, more, atol=1e-9)
    w = np.linalg.solve(found.covariance, found.torque)
    assert found.shown == pytest.approx(1.0 - TAKEN * float(taken @ w) / float(found.torque @ w), rel=1e-6)
    assert found.shown < 0.995


@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_a_band_is_of_arms_that_stood_and_what_sticks_of_others(robot, monkeypatch, speed):
    asked = []
    monkeypatch.setattr(refine, "what_was_added", lambda *given, **how: asked.append(how))
    stiction = np.arange(1.0, 7.0)
    judge = Refiner(robot, ContactIsolator(robot, spacing=0.1), stiction, 0.0)
    rows = np.zeros((20, 6))
    qd = rows + speed * np.eye(6)[4]  # joint 5 moves
    before, during = (
        Samples(time=H * np.arange(k, k + 20.0), residual=rows, raw=rows, q=rows, qd=qd, tau=rows) for k in (-20, 0)
    )
    known = refine.Gathered(Event.sample(0.0, 2, TORQUE), np.zeros(6), np.ones(6), 1.0, False, before, during)
    judge._isolated(judge.isolator, known.event, known)
    (how,) = asked
    sticks = stiction * (1.0 if speed == 0.0 else np.array([1.0, 1.0, 1.0, 1.0, 0.0, 1.0]))
    which, other, share = ("band", "hidden", 1.0) if speed == 0.0 else ("hidden", "band", HIDDEN)
    assert how[other] is None
    np.testing.assert_allclose(how[which][-1], share * sticks, atol=1e-12)


def test_nothing_before_the_onset_is_said_and_too_little_gives_none(robot, rng):
    time, q, qd, _ = motion(rng)
    y = noisy(rng, np.where(time[:, None] > 0.5 * H, TORQUE, 0.0))
    whole = added(robot, time, y, q, qd, 0.0, SPREAD)
    after = time > -0.5 * H
    late = added(robot, time[after], y[after], q[after], qd[after], 0.0, SPREAD)
    assert np.all(np.diag(late.covariance)[:3] > 2.0 * np.diag(whole.covariance)[:3])
    assert added(robot, time[:1], y[:1], q[:1], qd[:1], 0.0, SPREAD) is None
    newest = added(robot, time[:50], y[:50], q[:50], qd[:50], 9.0, SPREAD)  # an onset that is still to come
    assert np.all(np.isfinite(newest.covariance))


def test_a_gap_does_not_count_as_time_that_was_seen(robot, rng):
    time, q, qd, _ = motion(rng)
    y = noisy(rng, np.where(time[:, None] > 0.5 * H, TORQUE, 0.0))
    keep = (time < -0.6) | (time > -0.2)
    y[np.flatnonzero(time > -0.2)[0]] += 20.0 * SPREAD  # the first sample after it says little
    found = added(robot, time[keep], y[keep], q[keep], qd[keep], 0.0, SPREAD)
    off = (found.torque - TORQUE) / np.sqrt(np.diag(found.covariance))
    assert np.abs(off).max() < 3.0


def test_the_input_of_an_observer_is_found_again(rng):
    time = np.cumsum(rng.uniform(0.002, 0.02, 200))
    y = rng.standard_normal((200, 6))
    r = np.zeros_like(y)
    r[0] = y[0]
    for k in range(1, 200):
        a = math.exp(-GAIN * (time[k] - time[k - 1]))
        r[k] = a * r[k - 1] + (1.0 - a) * y[k]
    assert np.allclose(observer_input(time, r, GAIN), y, atol=1e-12)


def test_an_impact_too_strong_for_a_push_is_judged_by_its_impulse(robot, rng, monkeypatch):
    """As if it had lasted HELD: the torque by the share of that time, its covariance by the square, the force by it."""
    factor = rng.standard_normal((6, 6))
    mean = Added(TORQUE, factor @ factor.T, np.zeros(6), 0.0, seconds=0.2 * HELD, stretch=(0.8, 3.0))
    monkeypatch.setattr(refine, "what_was_added", lambda *given, **how: mean)
    asked = []

    class Isolator:
        def isolate(self, q, torque, covariance):
            asked.append((torque, covariance))
            if len(asked) == 1:
                return Isolation(None, 0.0, (), "not one push")
            return Isolation(4, 0.9, (), "", np.zeros(3), force=np.array([10.0, 0.0, 0.0]), force_range=(8.0, 12.0))

    isolator = Isolator()
    isolator.robot = robot
    judge = Refiner(robot, isolator, np.zeros(6), 0.0)
    part = Samples(np.zeros(2), *(np.zeros((2, 6)) for _ in range(5)))
    event = Event.sample(0.0, 2, TORQUE)
    known = refine.Gathered(event, np.zeros(6), np.ones(6), 1.0, False, part, part)
    judged, _, isolated = judge._isolated(isolator, event, known)
    np.testing.assert_allclose(asked[1][0], 0.2 * TORQUE, rtol=1e-15)
    np.testing.assert_allclose(asked[1][1], 0.04 * mean.covariance, rtol=1e-12)
    assert isolated.seconds == HELD
    assert judged.link == 4
    assert judged.force_interval_n == pytest.approx((8.0 * 0.8, 12.0 * 15.0))
