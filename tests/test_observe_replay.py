"""Replay: a whole log at once gives what the observer gives sample by sample, whatever the log looks like."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kernels.backend import COMPILED
from tangere.observe.drive_model import DriveModel
from tangere.observe.momentum import MomentumObserver
from tangere.observe.replay import replay_momentum
from tangere.types import State

GAIN = np.array([20.0, 50.0, 80.0, 120.0, 200.0, 400.0])
# Nm. Residuals of these logs reach some 500 Nm: 1e-16 of that, a few hundred roundings that decay with the lag
SAME = 1e-12


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


def log(rng, n, jitter=0.9):
    """A smooth motion with torques of any kind at irregular times: t, q, qd, tau."""
    t = 3.0 + np.cumsum(2e-3 * (1.0 + jitter * rng.uniform(-1.0, 1.0, n)))
    phase = t[:, None] * rng.uniform(2.0, 5.0, 6) + rng.uniform(0.0, 6.0, 6)
    return t, 0.5 * np.sin(phase) - 0.8, np.cos(phase), 20.0 * np.sin(2.3 * phase)


def stepwise(observer, t, q, qd, tau, period=None):
    h = np.diff(t, prepend=np.nan) if period is None else period
    samples = [State(*values) for values in zip(t, h, q, qd, tau, strict=True)]
    observer.reset(samples[0])
    return np.array([observer.residual, *(observer.update(s) for s in samples[1:])])


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 2049, 9000])
def test_equal_to_the_observer_on_an_irregular_log_of_any_length(robot, rng, n):
    data = log(rng, n)
    r = replay_momentum(robot, *data, GAIN)
    assert r.shape == (n, 6)
    assert np.abs(r - stepwise(MomentumObserver(robot, GAIN), *data)).max() < SAME
    assert n < 3 or np.abs(r).max() > 1.0


def test_equal_with_friction_warm_start_and_periods_of_their_own(robot, rng):
    data = log(rng, 700)
    period = np.diff(data[0], prepend=0.0) * rng.uniform(0.9, 1.1, 700)
    friction = JointFriction(np.full(6, 5.0), np.full(6, 8.0), width=0.05)
    start = np.arange(6.0) - 2.0
    ours = replay_momentum(robot, *data, 50.0, friction, period=period, residual=start)
    theirs = stepwise(MomentumObserver(robot, 50.0, friction, residual=start), *data, period)
    assert np.abs(ours - theirs).max() < SAME
    assert np.array_equal(ours[0], start)
    assert np.abs(ours - replay_momentum(robot, *data, 50.0, friction, residual=start)).max() > 0.1
    assert np.abs(ours - replay_momentum(robot, *data, 50.0, period=period, residual=start)).max() > 1.0


@pytest.mark.parametrize("gain", [1e-3, 2100.0, 1e6])
def test_equal_for_every_gain(robot, rng, gain):
    data = log(rng, 3000)
    r = replay_momentum(robot, *data, gain)
    assert np.abs(r - stepwise(MomentumObserver(robot, gain), *data)).max() < SAME


@pytest.mark.parametrize("seed", range(6))
def test_equal_on_logs_with_every_kind_of_fault(robot, seed):
    """Lost samples, gaps, a clock that goes back or is not a number, and values that are not, alone and in runs."""
    rng = np.random.default_rng(seed)
    n = 600
    t, q, qd, tau = log(rng, n)
    for array in (q, qd, tau):
        for k in rng.integers(0, n, 8):
            array[k : k + rng.integers(1, 4), rng.integers(6)] = rng.choice([np.nan, np.inf])
    for k in rng.integers(1, n, 8):
        t[k:] += 0.3  # a gap
    for k in rng.integers(1, n, 4):
        t[k:] -= 0.5  # the clock goes back
    for k in rng.integers(1, n - 3, 8):
        t[k : k + rng.integers(1, 4)] = t[k - 1]  # lost samples
    t[rng.integers(1, n, 3)] = np.nan
    if seed % 2:
        q[0] = np.nan
    ours, theirs = replay_momentum(robot, t, q, qd, tau, GAIN), stepwise(MomentumObserver(robot, GAIN), t, q, qd, tau)
    assert np.isfinite(ours).all()
    assert np.abs(ours - theirs).max() < SAME
    held = np.all(theirs[1:] == theirs[:-1], axis=1).sum()
    assert 30 < held < 300  # faults there are, and they are not all there is


def test_a_torque_that_is_not_a_number_is_found_though_the_kernels_never_see_it(robot, rng):
    data = log(rng, 300)
    data[3][100, 2] = np.nan
    ours, theirs = replay_momentum(robot, *data), stepwise(MomentumObserver(robot), *data)
    assert np.abs(ours - theirs).max() < SAME
    assert np.array_equal(ours[100], ours[99])
    assert np.array_equal(ours[101], ours[99])  # the observer takes that one as a new beginning


def test_a_clock_that_goes_back_is_seen_on_a_log_without_other_faults(robot, rng):
    data = log(rng, 300)
    data[0][100:] -= 0.5
    ours, theirs = replay_momentum(robot, *data), stepwise(MomentumObserver(robot), *data)
    assert np.abs(ours - theirs).max() < SAME
    assert np.array_equal(ours[100], ours[99])
    assert not np.array_equal(ours[101], ours[100])


@pytest.mark.parametrize("n", [127, 128, 129, 257])
def test_the_cut_into_chunks_does_not_show(robot, rng, n):
    """The compiled form works on 128 rows at a time: the first rows do not depend on how many follow."""
    data = log(rng, 700)
    whole = replay_momentum(robot, *data, GAIN, drive(0.005))
    assert np.array_equal(replay_momentum(robot, *(part[:n] for part in data), GAIN, drive(0.005)), whole[:n])


def test_every_instruction_set_gives_the_same_bits(robot, rng):
    if not COMPILED:
        pytest.skip("no compiled kernels here")
    from tangere import _kernels

    data, sets = log(rng, 1000), _kernels.instruction_sets()
    found = []
    for name in sets:
        _kernels.use(name)
        found.append(replay_momentum(robot, *data, GAIN, drive(0.005)))
        found.append(stepwise(MomentumObserver(robot, GAIN, drive(0.005)), *data))
    _kernels.use(sets[0])
    assert all(np.array_equal(r, found[0]) for r in found)
    assert np.abs(found[0]).max() > 1.0


def drive(delay=0.0):
    """A drive with every term of the law, sizes as of a UR10e."""
    rng = np.random.default_rng(5)
    return DriveModel(
        gain=np.ones(6), rotor_inertia=np.zeros(6), coulomb=rng.uniform(2.0, 10.0, 6), viscous=rng.uniform(2.0, 9.0, 6),
        offset=rng.normal(size=6), quadratic=-rng.uniform(0.5, 1.0, 6), load=rng.uniform(0.02, 0.1, 6),
        ripple=rng.normal(size=(6, 6)), stiction=np.ones(6), spread=np.ones(6), mean_load=np.full(6, 20.0),
        width=rng.uniform(0.005, 0.1, 6), delay=delay, orders=(101, 200, 202),
        ripple_load=0.1 * rng.normal(size=(6, 6)), ripple_drag=rng.normal(size=(6, 6)),
    )  # fmt: skip


class InPython:
    """The robot in a wrapper that the compiled observer does not know: the Python form serves."""

    def __init__(self, robot):
        self._robot = robot

    def __getattr__(self, name):
        return getattr(self._robot, name)


def faulty(rng, n):
    """A log with lost samples, gaps, a clock that goes back or is not a number, and values that are not."""
    t, q, qd, tau = log(rng, n)
    for array in (q, qd, tau):
        for k in rng.integers(0, n, 3):
            array[k : k + rng.integers(1, 3), rng.integers(6)] = rng.choice([np.nan, np.inf])
    for k in rng.integers(1, n, 3):
        t[k:] += 0.3  # a gap
    t[rng.integers(1, n) :] -= 0.5
    for k in rng.integers(1, n - 3, 4):
        t[k : k + rng.integers(1, 4)] = t[k - 1]  # lost samples
    t[rng.integers(1, n)] = np.nan
    return t, q, qd, tau


OPTIONS = [
    {"friction": None, "start": "first", "gap": 0.1},
    {"friction": JointFriction(np.full(6, 5.0), np.full(6, 8.0)), "gap": 0.01},
    {"friction": drive()},
    {"friction": drive(0.0117), "start": "first"},
    {"friction": drive(0.0117), "gap": 0.1, "delay": 0.0},
    {"friction": None, "delay": 0.0037, "residual": np.arange(6.0)},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_four_ways_to_one_residual(robot, seed, options):
    """Compiled and in Python, sample by sample and at once, on logs with every fault and with every option."""
    t, q, qd, tau = faulty(np.random.default_rng(seed), 300)
    friction, rest = options["friction"], {k: v for k, v in options.items() if k != "friction"}
    ways = [
        way
        for arm in (robot, InPython(robot))
        for way in (
            replay_momentum(arm, t, q, qd, tau, GAIN, friction, **rest),
            stepwise(MomentumObserver(arm, GAIN, friction, **rest), t, q, qd, tau),
        )
    ]
    for way in ways[1:]:
        assert np.abs(way - ways[0]).max() < SAME
    assert np.isfinite(ways[0]).all()
    assert np.all(ways[0][1:] == ways[0][:-1], axis=1).sum() < 200  # most samples were taken


def test_each_option_matters(robot, rng):
    data = log(rng, 400)
    data[0][200:] += 0.3
    plain = replay_momentum(robot, *data, GAIN, drive())
    for options in ({"start": "first"}, {"gap": 0.1}, {"delay": 0.004}):
        assert np.abs(replay_momentum(robot, *data, GAIN, drive(), **options) - plain).max() > 0.1
    assert np.array_equal(replay_momentum(robot, *data, GAIN, drive(0.0117), delay=0.0), plain)
    assert not np.array_equal(replay_momentum(robot, *data, GAIN, drive(0.0117)), plain)


@pytest.mark.parametrize("law", ["joint", "drive", "torque only"])
def test_friction_is_its_own_law(robot, rng, law):
    """Second way: the friction taken off the torque beforehand, by its own method, with the trapezium."""
    t, q, qd, tau = log(rng, 500)
    friction = JointFriction(np.full(6, 5.0), np.full(6, 8.0), width=0.05) if law == "joint" else drive()
    g = robot.gravity_torque(q)
    torque = friction.torque(qd) if law != "drive" else friction.friction(q, qd, g)
    held = np.vstack((np.zeros(6), 0.5 * (torque[1:] + torque[:-1])))
    given = Rubbing(friction) if law == "torque only" else friction
    assert np.abs(replay_momentum(robot, t, q, qd, tau, GAIN, given)
                  - replay_momentum(robot, t, q, qd, tau - held, GAIN)).max() < SAME  # fmt: skip


class Rubbing:
    """A friction that says nothing of itself but its torque, of the velocity alone."""

    def __init__(self, friction):
        self.torque = friction.torque


@pytest.mark.parametrize("name", ["scara", "pendulum"])
def test_arms_that_are_no_ur(name, rng):
    arm = tangere.robot(name)
    t = 2e-3 * np.arange(200.0)
    phase = t[:, None] * rng.uniform(2.0, 5.0, arm.dof)
    data = t, np.sin(phase), np.cos(phase), np.cos(2.0 * phase)
    for friction in (None, JointFriction(np.ones(arm.dof), np.ones(arm.dof))):
        for delay in (0.0, 0.005):
            ours = replay_momentum(arm, *data, 50.0, friction, delay=delay)
            theirs = stepwise(MomentumObserver(arm, 50.0, friction, delay=delay), *data)
            assert np.abs(ours - theirs).max() < SAME
            assert np.abs(ours).max() > 0.1


def test_the_log_is_left_as_it_was(robot, rng):
    data = log(rng, 200)
    data[1][50] = np.nan
    copies = [array.copy() for array in data]
    replay_momentum(robot, *data)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(data, copies, strict=True))


def test_equal_on_a_recording_of_a_real_arm(robot, data_dir):
    file = data_dir / "ur10e_contacts" / "link4.csv"
    if not file.is_file():
        pytest.skip(f"no {file}")
    rows = np.loadtxt(file, delimiter=",")
    gains = np.array([11.976, 11.976, 9.839, 10.763, 10.763, 10.763])  # Nm/A, from target moment over target current
    data = rows[:, 0], rows[:, 1:7], rows[:, 7:13], rows[:, 13:19] * gains
    friction = JointFriction(np.array([16.8, 16.9, 7.2, 2.8, 3.4, 2.7]), np.array([22.8, 18.7, 9.3, 3.5, 2.2, 3.0]))
    ours = replay_momentum(robot, *data, 50.0, friction)
    assert np.abs(ours - stepwise(MomentumObserver(robot, 50.0, friction), *data)).max() < SAME
    assert np.abs(ours).max() > 10.0


def test_misuse_is_refused(robot, rng):
    t, q, qd, tau = log(rng, 50)
    with pytest.raises(InvalidValue, match=r"tau: must have shape \(50, 6\)"):
        replay_momentum(robot, t, q, qd, tau[:-1])
    with pytest.raises(InvalidValue, match=r"time: .* got shape \(0,\)"):
        replay_momentum(robot, t[:0], q[:0], qd[:0], tau[:0])
    with pytest.raises(InvalidValue, match="period"):
        replay_momentum(robot, t, q, qd, tau, period=0.002)
    with pytest.raises(InvalidValue, match="gain"):
        replay_momentum(robot, t, q, qd, tau, 0.0)
    for options in ({"start": "zero"}, {"gap": 0.0}, {"gap": np.nan}, {"delay": -0.1}, {"delay": 2.0}):
        with pytest.raises(InvalidValue, match=next(iter(options))):
            replay_momentum(robot, t, q, qd, tau, **options)
    with pytest.raises(InvalidValue, match="friction: of 6 joints"):
        replay_momentum(robot, t, q, qd, tau, 50.0, JointFriction(np.ones(5), np.ones(5)))
