"""The momentum observer: exact lag of first order, whatever the period; nothing else in the residual.

Properties: 1 a step s gives s (1 - exp(-K t)), the other joints nothing; 2 so too with irregular periods; 3 with a gain
per joint; 4 it agrees with the integral form (000 eq 108); 5 it is stable for every K h; 6 it needs C^T, friction and
rotor inertia; 7 warm start, reset; 8 a broken sample is survived; 9 the Euler form is exact for an Euler plant; 10 a
torque that is reported late meets its own motion; 11 all observers take samples by the same rules.
"""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.compare import all_observers
from tangere.observe.momentum import MomentumObserver
from tangere.types import State

Q0 = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
K = 50.0
PUSH = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


def simulate(robot, periods, push, *, start=0.2, friction=None, substeps=4):
    """A moving arm under held computed torque by RK4; push (n,) acts from `start` on, at a sample. The samples."""

    def rates(q, qd, tau):
        drag = 0.0 if friction is None else friction.torque(qd)
        return robot.forward_dynamics(q, qd, tau - drag)

    t, q, qd = 0.0, Q0.copy(), np.array([0.5, -0.4, 0.6, 0.5, -0.7, 0.8])
    samples = [State(0.0, periods[0], q, qd, np.zeros(6))]
    for h in periods:
        wave = 2.0 * np.sin(3.0 * t + np.arange(6.0))
        tau = robot.inverse_dynamics(q, qd, wave - 2.0 * qd) + (0.0 if friction is None else friction.torque(qd))
        pushed = push if t >= start - 1e-9 else np.zeros(6)
        s = h / substeps
        for _ in range(substeps):
            a1 = rates(q, qd, tau + pushed)
            a2 = rates(q + s / 2 * qd, qd + s / 2 * a1, tau + pushed)
            a3 = rates(q + s / 2 * qd + s * s / 4 * a1, qd + s / 2 * a2, tau + pushed)
            a4 = rates(q + s * qd + s * s / 2 * a2, qd + s * a3, tau + pushed)
            q, qd = q + s * qd + s * s / 6 * (a1 + a2 + a3), qd + s / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        t += h
        samples.append(State(t, h, q, qd, tau))
    return samples


def residuals(observer, samples):
    observer.reset(samples[0])
    return np.array([observer.residual, *(observer.update(s) for s in samples[1:])])


def expected(samples, push, gain=K, start=0.2):
    since = np.array([max(s.time - start, 0.0) for s in samples])
    return push * -np.expm1(-np.asarray(gain) * since[:, None])


def test_a_step_gives_the_first_order_answer_and_nothing_on_the_other_joints(robot):
    samples = simulate(robot, [1e-3] * 600, PUSH)
    r = residuals(MomentumObserver(robot, K), samples)
    # 1e-4 Nm: the figure for this form on a moving arm at 1 kHz (trapezium of beta, h^2/12 beta'')
    assert np.abs(r - expected(samples, PUSH)).max() < 1e-4


def test_irregular_periods_do_not_matter(robot, rng):
    periods = rng.uniform(2e-4, 4e-3, 300)
    samples = simulate(robot, periods, PUSH, start=float(np.sum(periods[:100])))
    r = residuals(MomentumObserver(robot, K), samples)
    # the error of the trapezium grows with h^2: (4 ms / 1 ms)^2 times the 1e-4 Nm of the regular run
    assert np.abs(r - expected(samples, PUSH, start=float(np.sum(periods[:100])))).max() < 1.6e-3


def test_every_joint_has_its_own_gain_and_every_push_its_own_joint(robot):
    gain, push = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0]), np.array([15.0, -20.0, 8.0, 1.0, -0.5, 0.2])
    samples = simulate(robot, [1e-3] * 400, push)
    r = residuals(MomentumObserver(robot, gain), samples)
    assert np.abs(r - expected(samples, push, gain)).max() < 1e-4


def test_agrees_with_the_integral_form_of_000_eq_108(robot):
    samples = simulate(robot, [1e-4] * 3000, PUSH, start=0.1, substeps=1)
    r = residuals(MomentumObserver(robot, K), samples)
    # r = K (p - p0 - int(tau + beta + r)), by the implicit trapezium in r, with M, C and g as matrices
    terms = []
    for s in samples:
        C = robot.coriolis_matrix(s.q, s.qd)
        terms.append((robot.mass_matrix(s.q) @ s.qd, C.T @ s.qd - robot.gravity_torque(s.q)))
    integral, before, slow = np.zeros(6), np.zeros(6), []
    for (a, b), s in zip(itertools.pairwise(terms), samples[1:], strict=True):
        h = s.period
        integral = integral + h * (s.tau + (a[1] + b[1]) / 2 + before / 2)
        before = K * (b[0] - terms[0][0] - integral) / (1 + K * h / 2)
        slow.append(before)
        integral = integral + h * before / 2
    # the trapezium in r misses the step by K h / 2 * 20 Nm / 2 = 0.025 Nm at its first sample
    assert np.abs(np.array(slow) - r[1:]).max() < 0.03


@pytest.mark.parametrize("gain", [1e-3, 900.0, 2100.0, 1e4, 1e6])
def test_stable_for_every_gain(robot, gain):
    samples = simulate(robot, [1e-3] * 400, PUSH)
    r = residuals(MomentumObserver(robot, gain), samples)
    assert np.abs(r - expected(samples, PUSH, gain)).max() < 1e-4


def test_forward_euler_would_not_be(robot):
    """The test above can fail: the form that integrates r explicitly diverges at K h > 2."""
    samples = simulate(robot, [1e-3] * 300, PUSH)
    r, gain = np.zeros(6), 2100.0
    for before, s in itertools.pairwise(samples):
        (p0, c0, g0), (p1, c1, g1) = (robot.momentum_terms(x.q, x.qd) for x in (before, s))
        y = (p1 - p0) / s.period - s.tau - (c0 - g0 + c1 - g1) / 2
        r = r + gain * s.period * (y - r)
    assert np.abs(r).max() > 1e6


class Instead:
    """A robot whose momentum terms are not what they should be."""

    def __init__(self, robot, terms):
        self._robot, self.momentum_terms = robot, terms

    def __getattr__(self, name):
        return getattr(self._robot, name)


def test_c_instead_of_its_transpose_is_seen(robot):
    samples = simulate(robot, [1e-3] * 300, np.zeros(6))

    def wrong(q, qd):
        p, _, g = robot.momentum_terms(q, qd)
        return p, robot.coriolis_matrix(q, qd) @ qd, g

    assert np.abs(residuals(MomentumObserver(robot, K), samples)).max() < 1e-4
    assert np.abs(residuals(MomentumObserver(Instead(robot, wrong), K), samples)).max() > 1.0


def test_friction_and_rotor_inertia_belong_to_the_model():
    rotor = np.array([0.6, 0.6, 0.3, 0.1, 0.1, 0.1])
    arm = tangere.robot("ur10e", rotor_inertia=rotor)
    friction = JointFriction(np.array([5.0, 5.0, 3.0, 1.0, 1.0, 1.0]), np.full(6, 8.0), width=0.2)
    samples = simulate(arm, [1e-3] * 500, PUSH, friction=friction)
    good = residuals(MomentumObserver(arm, K, friction), samples)
    # the tanh has a higher second derivative than the arm: 1e-3 Nm at 1 kHz
    assert np.abs(good - expected(samples, PUSH)).max() < 1e-3
    quiet = slice(0, 200)
    assert np.abs(residuals(MomentumObserver(arm, K), samples)[quiet]).max() > 3.0
    assert np.abs(residuals(MomentumObserver(tangere.robot("ur10e"), K, friction), samples)[quiet]).max() > 0.3


def test_warm_start_begins_where_it_is_told_and_reset_goes_back_there(robot):
    samples = simulate(robot, [1e-3] * 100, PUSH, start=0.0)
    observer = MomentumObserver(robot, K, residual=PUSH)
    first = residuals(observer, samples)
    assert np.abs(first - PUSH).max() < 1e-4
    assert np.array_equal(residuals(observer, samples), first)
    cold = MomentumObserver(robot, K)
    assert np.array_equal(residuals(cold, samples), residuals(cold, samples))
    assert np.abs(residuals(cold, samples)[1]).max() == pytest.approx(20 * (1 - np.exp(-K * 1e-3)), rel=1e-4)


@pytest.mark.parametrize("what", ["q", "qd", "tau", "period"])
def test_a_broken_sample_holds_the_residual_and_is_left_behind(robot, what):
    samples = simulate(robot, [1e-3] * 500, PUSH)
    broken = {name: getattr(samples[300], name) for name in ("time", "period", "q", "qd", "tau")}
    broken[what] = 0.0 if what == "period" else broken[what] * np.nan
    faulty = [*samples[:300], State(**broken), *samples[301:]]
    r = residuals(MomentumObserver(robot, K), faulty)
    assert np.isfinite(r).all()
    assert np.array_equal(r[300], r[299])
    # two periods at most are lost: 20 Nm exp(-K 0.1 s) (exp(2 K h) - 1) = 0.014 Nm
    assert np.abs(r - expected(samples, PUSH))[302:].max() < 0.02
    assert np.abs(r[-1] - PUSH).max() < 1e-4


@pytest.mark.parametrize("damped", [False, True])
def test_the_euler_form_is_exact_for_an_euler_plant(robot, damped):
    """MuJoCo's step: qd' = qd + h (M + h B)^-1 (tau + tau_ext - bias - B qd), q' = q + h qd'."""
    B = JointFriction(np.zeros(6), np.array([10.0, 10.0, 5.0, 2.0, 2.0, 2.0]) * damped)
    q, qd, h, samples = Q0, np.array([0.5, -0.4, 0.6, 0.5, -0.7, 0.8]), 1e-3, []
    samples.append(State(0.0, h, q, qd, np.zeros(6)))
    for k in range(400):
        tau = robot.gravity_torque(q) + 2.0 * np.cos(5.0 * k * h + np.arange(6.0))
        push = PUSH if k >= 200 else np.zeros(6)
        M = robot.mass_matrix(q) + h * np.diag(B.viscous)
        qd = qd + h * np.linalg.solve(M, tau + push - robot.bias_torque(q, qd) - B.torque(qd))
        q = q + h * qd
        samples.append(State((k + 1) * h, h, q, qd, tau))
    exact = residuals(MomentumObserver(robot, K, B, plant="euler"), samples)
    # rounding of M (qd - qd) / h: 1e-16 * 8 kg m2 / 1 ms
    assert np.abs(exact - expected(samples, PUSH)).max() < 1e-10
    assert np.abs(residuals(MomentumObserver(robot, K, B), samples) - expected(samples, PUSH)).max() > 1e-3


def test_misuse_is_refused(robot):
    for gain in (0.0, -1.0, [1.0, 2.0], np.nan):
        with pytest.raises(InvalidValue, match="gain"):
            MomentumObserver(robot, gain)
    with pytest.raises(InvalidValue, match="residual"):
        MomentumObserver(robot, residual=[1.0])
    with pytest.raises(InvalidValue, match="'continuous' or 'euler'"):
        MomentumObserver(robot, plant="rk4")


def test_a_lost_sample_changes_nothing() -> None:
    """A plant that loses a sample hands out the one before again, stamp and all: it says nothing new."""
    robot = tangere.robot("ur10e")
    rest, q = np.zeros(6), np.array([0.1, -1.2, 1.3, -0.4, 0.5, 0.6])
    tau = robot.gravity_torque(q)
    for observer in (MomentumObserver(robot), AccelerationObserver(robot, 50.0)):
        observer.reset(State(0.0, 1e-3, q, rest, tau))
        sample = State(1e-3, 1e-3, q, rest, tau - [0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
        once = observer.update(sample).copy()
        assert np.max(np.abs(once)) > 0.5
        assert np.array_equal(observer.update(sample), once)


def test_a_torque_that_is_reported_late_is_compared_with_the_motion_it_belongs_to(robot):
    """The torque of each period comes `late` samples later; the residual then is that of `late` samples before."""
    late, h = 3, 2e-3
    samples = simulate(robot, [h] * 400, PUSH)
    prompt = residuals(MomentumObserver(robot, K), samples)
    shifted = [State(s.time, h, s.q, s.qd, samples[max(k - late, 0)].tau) for k, s in enumerate(samples)]
    told = residuals(MomentumObserver(robot, K, delay=late * h), shifted)
    # whole samples: the line between them is met at its ends, up to the rounding of t - delay (1e-16 s)
    assert np.abs(told[late:] - prompt[:-late]).max() < 1e-9
    assert np.array_equal(told[: late + 1], np.zeros((late + 1, 6)))
    assert np.abs(residuals(MomentumObserver(robot, K), shifted)[:100]).max() > 0.3


def test_a_late_torque_between_two_samples(robot):
    """A delay of two and a half samples: the line between samples misses the motion by h^2 / 8 of its curvature."""
    h, delay = 2e-3, 5e-3
    samples = simulate(robot, [h / 2] * 800, PUSH)  # every second one is seen, the others are in between
    seen = [State(s.time, h, s.q, s.qd, np.zeros(6)) for s in samples[::2]]
    for k in range(3, len(seen)):  # the torque of the period that ended 2.5 samples ago: of two of the halves
        tau = 0.5 * (samples[2 * k - 5].tau + samples[2 * k - 6].tau)
        seen[k] = State(seen[k].time, h, seen[k].q, seen[k].qd, tau)
    told = residuals(MomentumObserver(robot, K, delay=delay), seen)
    quiet, late = slice(0, 102), slice(300, None)  # the push begins at 0.2 s and is felt from 0.205 s on
    # the line misses qd by h^2 / 8 of the jerk (some 10 rad/s3 of this motion): M K times that is below a mNm
    assert np.abs(told[quiet]).max() < 1e-3
    assert np.abs(told[late] - PUSH).max() < 1e-3
    wrong = residuals(MomentumObserver(robot, K, delay=delay + h / 2), seen)  # half a sample too much
    assert np.abs(wrong[late] - PUSH).max() > 0.1


def test_first_means_that_a_push_is_known_at_once(robot):
    samples = simulate(robot, [1e-3] * 60, PUSH, start=0.0)
    first = residuals(MomentumObserver(robot, K, start="first"), samples)
    assert np.abs(first[1:] - PUSH).max() < 1e-3
    gapped = [*samples[:20], *(State(s.time, s.period, s.q, s.qd, s.tau - 5.0) for s in samples[40:])]
    gapped[20] = State(gapped[20].time, 0.021, gapped[20].q, gapped[20].qd, gapped[20].tau)
    r = residuals(MomentumObserver(robot, K, start="first", gap=0.01), gapped)
    assert np.array_equal(r[20], r[19])
    assert np.abs(r[21:] - PUSH - 5.0).max() < 1e-3
    slow = residuals(MomentumObserver(robot, K, gap=0.01), gapped)
    assert np.abs(slow[21] - PUSH - 5.0).max() > 4.0


def test_residuals_that_somebody_holds_are_never_written_to_again(robot):
    """The compiled observer uses its arrays again, but only those that nobody else has."""
    samples = simulate(robot, [1e-3] * 300, PUSH, start=0.0)
    observer = MomentumObserver(robot, K)
    observer.reset(samples[0])
    begin = observer.residual
    kept = [observer.update(s) for s in samples[1:]]
    assert len({id(r) for r in kept}) == 300
    assert observer.residual is kept[-1]
    views = [observer.update(s)[1:2] for s in simulate(robot, [1e-3] * 5, PUSH)[1:]]
    copies = [view.copy() for view in views]
    for s in samples[:50]:
        observer.update(s)
    assert all(np.array_equal(a, b) for a, b in zip(views, copies, strict=True))
    assert np.array_equal(begin, np.zeros(6))
    observer.reset(samples[0])
    assert np.array_equal(residuals(observer, samples)[1:], kept)


@pytest.mark.parametrize("number", [np.float64, np.float32, int])
def test_stamps_and_periods_of_any_number_type(robot, number):
    moving = simulate(robot, [1e-3] * 5, PUSH, start=0.0)
    samples = [State(float(k), 1.0, s.q, s.qd, s.tau) for k, s in enumerate(moving)]  # whole seconds, as any type has
    typed = [State(number(s.time), number(s.period), s.q, s.qd, s.tau) for s in samples]
    assert np.array_equal(residuals(MomentumObserver(robot, K), typed), residuals(MomentumObserver(robot, K), samples))


def test_arrays_of_any_layout_and_what_is_no_state(robot):
    samples = simulate(robot, [1e-3] * 20, PUSH, start=0.0)
    wide = np.zeros((6, 3))

    def strided(x):
        out = wide.copy()
        out[:, 1] = x
        return out[:, 1]

    odd = [State(s.time, s.period, strided(s.q), strided(s.qd), strided(s.tau)) for s in samples]
    assert np.array_equal(residuals(MomentumObserver(robot, K), odd), residuals(MomentumObserver(robot, K), samples))
    observer = MomentumObserver(robot, K)
    short = [State(1e-3 * k, 1e-3, Q0, Q0[:5], Q0) for k in range(2)]  # the Python form looks when it has two
    with pytest.raises(InvalidValue, match="qd"):
        list(map(observer.update, short))
    with pytest.raises(AttributeError):
        observer.update(None)


@pytest.mark.parametrize("name", all_observers(tangere.robot("ur10e")))
def test_every_observer_keeps_the_same_rules(robot, name):
    """Lost samples, bad ones and bad periods hold each residual; the next pair of good ones moves it again."""
    samples = simulate(robot, [1e-3] * 40, PUSH, start=0.0)

    def changed(k, **what):
        s = samples[k]
        return State(**({n: getattr(s, n) for n in ("time", "period", "q", "qd", "tau")} | what))

    bad = Q0 * np.nan
    observer = all_observers(robot)[name]
    observer.reset(samples[0])
    for s in samples[1:10]:
        observer.update(s)
    faults = {10: {"q": bad}, 14: {"qd": bad}, 18: {"tau": bad}, 22: {"period": 0.0}, 26: {"period": np.nan}}
    for k, what in faults.items():
        before = observer.residual
        assert np.array_equal(observer.update(changed(k, **what)), before), what
        observer.update(samples[k + 1])
        observer.update(samples[k + 2])
        moved = observer.update(samples[k + 3])
        assert np.isfinite(moved).all()
        assert not np.array_equal(moved, before), what
        assert np.array_equal(observer.update(samples[k + 3]), moved)  # the same stamp again


@pytest.mark.parametrize("name", all_observers(tangere.robot("ur10e")))
def test_numpy_numbers_do_not_get_into_the_lists(robot, name):
    """One numpy float in a list of floats makes each later step several times dearer."""
    samples = simulate(robot, [1e-3] * 10, PUSH, start=0.0)
    observer = all_observers(robot)[name]
    typed = [State(np.float64(s.time), np.float64(s.period), s.q, s.qd, s.tau) for s in samples]
    residuals(observer, typed)
    lists = [getattr(observer, n) for n in ("_r", "_e", "_rate", "_weight") if hasattr(observer, n)]
    assert all(type(x) is float for values in lists for x in values)


def test_copies_begin_anew(robot):
    samples = simulate(robot, [1e-3] * 30, PUSH, start=0.0)
    for observer in all_observers(robot).values():
        residuals(observer, samples)
        again = pickle.loads(pickle.dumps(observer))
        assert np.array_equal(residuals(again, samples), residuals(observer, samples))


def test_a_gain_is_not_changed_from_outside() -> None:
    """The compiled observer has taken it: another number there would be shown and not used."""
    observer = MomentumObserver(tangere.robot("ur10e"), 50.0)
    with pytest.raises(ValueError, match="read-only"):
        observer.gain[1] = 10.0
