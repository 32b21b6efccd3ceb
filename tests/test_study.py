"""A study: its simulated arms, injection against a real push, the score against the detector, and the pool."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from tangere.apps.study.files import write_study
from tangere.apps.study.plan import Plan
from tangere.apps.study.study import Workers, study
from tangere.apps.study.trials import DEAD, alarms, inject, touch_trial
from tangere.apps.study.world import SPEED, Run, random_path, world_of
from tangere.errors import InvalidValue
from tangere.observe.detect import Detector, Thresholds, detect
from tangere.observe.detect.signals import scores
from tangere.plants.pushes import Push

TINY = Plan(trials=4, free_minutes=0.1, learn_minutes=0.25, seed=3)
QUIET = Plan(noise=0.0)


@pytest.fixture(scope="module")
def path():
    return random_path(world_of(QUIET, "exact"), np.random.default_rng(5), 2.5)


def thresholds(arm=0.05):
    """Such as a drive model that is well known gives; arm: of each joint's change, less a share of its neighbour's."""
    level = np.array([9.0, 9.0, 5.0, 2.0, 2.0, 2.0])
    rows = np.tile(level, (3, 1))
    mixed = np.array([1.0, 0.1, 0.05])[:, None, None] * arm * (np.eye(6) - 0.3 * np.roll(np.eye(6), 1, axis=1))
    return Thresholds(rows, 0.8 * rows, 3.0 * rows, 6.0 * rows, 0.2 * rows, np.eye(6), mixed)


@pytest.mark.parametrize("seed", range(6))
def test_a_path_is_consistent_and_not_too_fast(seed):
    """Velocity and acceleration are derivatives: Simpson's rule over two half periods, exact to h^5 of a smooth path.
    Where two moves meet between samples the jerk jumps, by up to 30 rad/s3: h^2 / 24 of that in the velocity."""
    world = world_of(QUIET, "exact")
    p = random_path(world, np.random.default_rng(seed), 3.0)
    h = world.period
    for low, high, tolerance in ((0, 1, 1e-9), (1, 2, 5e-6)):
        step = p[2::2, low] - p[:-2:2, low]
        integral = h / 6.0 * (p[:-2:2, high] + 4.0 * p[1:-1:2, high] + p[2::2, high])
        assert np.abs(step - integral).max() < tolerance
    circle = np.abs(p[:, 1]).max() > SPEED[1]
    assert not circle or seed in circles()  # joints of a circle may be faster than those of a move


def circles():
    """Seeds of the test above whose motion is a circle."""
    return {seed for seed in range(6) if np.random.default_rng(seed).random() < 0.25}


@pytest.mark.parametrize("plant", ["servo", "rigid"])
def test_the_observer_sees_nothing_of_an_exact_noiseless_arm(plant, path):
    world = world_of(Plan(noise=0.0, plant=plant), "exact")
    residual = world.residual(world.simulate(np.random.default_rng(0), path))
    # the observer's own trapezium: h^2 / 12 of the second derivative of beta, friction that turns round included
    assert np.abs(residual[100:]).max() < 0.1


def test_a_wrong_mass_leaves_what_gravity_says():
    """At rest the residual is -(g_true - g_believed): the arm is heavier than believed."""
    plan = Plan(noise=0.0, mass=1.1)
    world = world_of(plan, "wrong")
    q = np.array([0.3, -1.1, 1.4, -0.7, 0.9, 0.2])
    still = np.zeros((501, 3, 6))
    still[:, 0] = q
    residual = world.residual(world.simulate(np.random.default_rng(0), still))
    assert residual[-1] == pytest.approx(-0.1 * world.robot.gravity_torque(q), abs=1e-9)


@pytest.mark.parametrize(("plant", "tolerance"), [("servo", 1e-9), ("rigid", 0.02)])
def test_injection_equals_a_push_that_is_simulated(plant, tolerance, path):
    """20 Nm on joint 2. A servo that does not give way: to rounding. In closed loop the arm is moved by it, and the
    observer's trapezium sees another motion: a thousandth of the push."""
    world = world_of(Plan(noise=0.0, plant=plant), "exact")
    start = 1.0
    pushed = world.simulate(np.random.default_rng(0), path, (Push(2, 20.0, start),))
    free = world.simulate(np.random.default_rng(0), path)
    tau = free.tau.copy()
    tau[free.time > start + 1e-9, 1] -= 20.0
    injected = world.residual(Run(free.time, free.q, free.qd, tau, free.tau_ext))
    assert np.abs(world.residual(pushed) - injected).max() < tolerance
    assert injected[-1, 1] - world.residual(free)[-1, 1] == pytest.approx(20.0, abs=1e-9)
    assert pushed.tau_ext[-1, 1] == 20.0
    assert np.all(pushed.tau_ext[pushed.time <= start + 1e-9] == 0.0)


def test_a_contact_pushes_into_the_surface_with_the_torque_of_virtual_work(path):
    world = world_of(QUIET, "exact")
    rng = np.random.default_rng(1)
    q = path[100, 0]
    for _ in range(20):
        touch = world.touch(rng, q, 60.0, 0.0, 1.0)
        push = touch.push
        f = np.array(push.force)
        assert np.linalg.norm(f) == pytest.approx(60.0, rel=1e-12)

        def work(angles, push=push, f=f):
            T = world.robot.link_poses(angles)[push.link - 1]
            return float(f @ (T[:3, :3] @ np.array(push.point) + T[:3, 3]))

        step = 1e-5
        torque = [(work(q + step * e) - work(q - step * e)) / (2.0 * step) for e in np.eye(6)]
        assert touch.torque == pytest.approx(np.array(torque), abs=1e-6)  # step^2 of the third derivative, 60 N x 1 m
        surface = next(s for s in world.skin if s.link == push.link)
        i = int(np.argmin(np.linalg.norm(surface.point - np.array(push.point), axis=1)))
        normal = world.robot.link_poses(q)[push.link - 1][:3, :3] @ surface.normal[i]
        assert -(f @ normal) / 60.0 > math.cos(math.atan(0.5)) - 1e-9


@pytest.mark.parametrize(("name", "arm"), [("exact", 0.05), ("wrong", 0.05), ("exact", 0.4)])
def test_the_score_rises_above_one_where_the_detector_raises(path, name, arm):
    """First sample of either, for pushes on every joint; alone and among other copies. With 0.05 single joints decide,
    with 0.4 all together: one joint alone is as rare there as at 0.63 of its own threshold of change."""
    limits = thresholds(arm)
    world = world_of(Plan(), name)
    run = world.simulate(np.random.default_rng(2), path)
    free = world.residual(run)
    answer = 1.0 - np.exp(-50.0 * np.maximum(run.time - 1.5, 0.0))
    pushed = np.repeat(free[:, None], 6, axis=1)
    for j in range(6):
        pushed[:, j, j] += 12.0 * answer * limits.level[0, j] / 9.0
    together = scores(limits, run.time, pushed, run.qd)
    for j in range(6):
        alone = scores(limits, run.time, pushed[:, j : j + 1], run.qd)[:, 0]
        assert np.allclose(alone, together[:, j], equal_nan=True, rtol=1e-12)
        events = detect(Detector(limits), run.time, pushed[:, j], run.q, run.qd)
        first = run.time[int(np.argmax(np.nan_to_num(alone) > 1.0))]
        assert events
        assert events[0].time_s == first


def test_injected_steps_are_found_sooner_the_larger_they_are(path):
    world, limits = world_of(Plan(), "exact"), thresholds()
    run = world.simulate(np.random.default_rng(4), path)
    free = world.residual(run)

    def observer(rows, added):
        return world.residual(Run(run.time[rows], run.q[rows], run.qd[rows], run.tau[rows] + added, run.tau_ext[rows]))

    row = 700
    found = inject(limits, run.time, free, run.qd, observer, row, [(2, 1.0), (2, 15.0), (2, 30.0), (2, -60.0)])
    assert found is not None
    assert found.quiet
    assert found.onset == run.time[row]
    assert found.delay[0] == math.inf
    assert np.all(np.diff(found.delay) < 0.0)
    # the same step, simulated as a push, raises the detector with the same delay
    pushed = world.simulate(np.random.default_rng(4), path, (Push(2, 30.0, float(run.time[row])),))
    events = detect(Detector(limits), pushed.time, world.residual(pushed), pushed.q, pushed.qd)
    assert events[0].time_s - run.time[row] == pytest.approx(found.delay[2], abs=1e-9)


def test_a_log_with_a_gap_is_not_injected_into(path):
    world = world_of(Plan(), "exact")
    run = world.simulate(np.random.default_rng(4), path)
    free = world.residual(run)
    free[600] = np.nan
    assert inject(thresholds(), run.time, free, run.qd, lambda rows, added: free[rows], 700, [(1, 5.0)]) is None


def test_alarms_are_counted_once_per_excursion():
    time = np.arange(0.0, 10.0, 0.1)
    score = np.zeros(100)
    score[[10, 11, 12, 18, 50, 90]] = (2.0, 1.2, 2.0, 2.0, 1.5, 3.0)  # 18 is within DEAD of 12
    assert DEAD == 1.0
    assert alarms(time, score, np.array([1.0, 1.7, 2.5, 5.0])).tolist() == [3, 2, 1, 0]
    assert alarms(time, np.ones(100), np.array([0.5])).tolist() == [10]  # one each second, and never fewer than that


def double(x):
    return 2 * x


def stops_at_two(x):
    if x == 2:
        raise KeyboardInterrupt
    return x


def fails(x):
    raise InvalidValue(f"bad {x}")


def test_the_pool_keeps_the_order_and_counts():
    seen = []
    with Workers(2) as pool:
        tasks = [(double, (k,)) for k in range(20)]
        assert pool.results(tasks, lambda done, total: seen.append((done, total))) == [2 * k for k in range(20)]
        assert seen[-1] == (20, 20)
        with pytest.raises(InvalidValue, match="bad 1"):
            pool.results([(fails, (1,))])


def test_an_interruption_leaves_what_is_done():
    with Workers(1) as pool:
        assert pool.results([(stops_at_two, (k,)) for k in range(5)]) == [0, 1]
        assert pool.interrupted
        assert pool.results([(double, (1,))]) == []


def test_no_worker_is_none():
    with pytest.raises(InvalidValue, match="workers"):
        Workers(0)


@pytest.fixture(scope="module")
def tiny():
    return study(TINY, workers=1)


def test_the_same_seed_gives_the_same_study_on_two_workers(tiny, tmp_path):
    other = study(TINY, workers=2)
    for done, folder in ((tiny, "one"), (other, "two")):
        write_study(done, tmp_path / folder)
    for name in ("contacts", "steps", "roc", "summary"):
        one, two = ((tmp_path / folder / f"{name}.csv").read_bytes() for folder in ("one", "two"))
        assert one == two, name
        assert len(list(csv.reader(one.decode().splitlines()))) > 1
    keep = [(o.world, o.name, o.delay, o.rms) for o in tiny.observers]
    assert keep == [(o.world, o.name, o.delay, o.rms) for o in other.observers]
    assert len(keep) == 14


def test_a_trial_depends_on_its_number_alone(tiny):
    known = tiny.learned["wrong"]
    again = touch_trial(TINY, "wrong", 1, known, tiny.learned["exact"].noise)
    there = tiny.of("wrong")[1]
    assert again == there
    assert again != tiny.of("wrong")[0]


def test_another_seed_gives_another_study(tiny):
    known = tiny.learned["exact"]
    other = touch_trial(Plan(trials=4, seed=4), "exact", 0, known, known.noise)
    assert other.size != tiny.of("exact")[0].size or other.duration != tiny.of("exact")[0].duration


@pytest.mark.parametrize(
    "wrong",
    [
        {"trials": 0}, {"frequency": 10.0}, {"noise": -1.0}, {"mass": 0.0}, {"force": math.nan}, {"plant": "real"},
        {"seed": -1}, {"alarm_rate": 0.0},
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Plan(**wrong)


def test_a_step_on_a_joint_that_is_not_there_is_refused():
    with pytest.raises(InvalidValue, match="step"):
        study(Plan(step=(7, 20.0)), workers=1)
