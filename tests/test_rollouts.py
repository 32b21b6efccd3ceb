"""Fused rollouts: the same bits in every width, thread and partition, and the numbers of the ordinary loop."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.control.joint_impedance import JointImpedance
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.identification import prior_drive
from tangere.kernels import closed_loop, counter_noise
from tangere.kernels import rollouts as kernel
from tangere.kernels.emit import c as emit_c
from tangere.kernels.emit import python as emit_python
from tangere.kernels.laws import detection
from tangere.kernels.step import law_of, step
from tangere.kernels.table import trace_law
from tangere.loop import rollouts as loop
from tangere.loop.rollout_plan import _first_step
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.detect.signals import alone
from tangere.observe.momentum import MomentumObserver
from tangere.planning.samples import Sampled
from tangere.plants.pushes import Push
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.sensors import SensorModel

compiled = pytest.mark.skipif(not kernel.COMPILED, reason="the compiled rollouts are not built: the Python loop serves")
PERIOD = 1e-3  # [s]


@pytest.fixture(scope="module")
def robot() -> tangere.Robot:
    return tangere.robot("ur10e", rotor_inertia=True)


def wave(robot: tangere.Robot, seconds: float) -> Sampled:
    """All joints swing, each at a rate of its own."""
    t = PERIOD * np.arange(round(seconds / PERIOD) + 1)[:, None]
    rate = np.array([1.1, 1.7, 2.3, 2.9, 3.1, 3.7])  # [rad/s]
    q0, size = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0]), 0.25
    q, qd, qdd = q0 + size * (1 - np.cos(rate * t)), size * rate * np.sin(rate * t), size * rate**2 * np.cos(rate * t)
    return Sampled(robot, q, qd, qdd, PERIOD, seconds)


def parts(robot: tangere.Robot, seconds: float = 1.0, **changes: Any) -> dict[str, Any]:
    """A noisy closed loop with a contact on every robot."""
    friction = JointFriction.of(robot.drives)
    gains, goal = changes.pop("springs", None), wave(robot, seconds)
    springs = None if gains is None else JointImpedance(robot, goal, friction=friction, **gains)
    given: dict[str, Any] = {
        "controller": springs or ComputedTorque(robot, goal, kp=900.0, friction=friction),
        "observer": MomentumObserver(robot, friction=friction),
        "detector": Detector(Thresholds.constant(25.0, 6)),
        "friction": friction,
        "sensors": SensorModel.preset("ur10e", PERIOD),
        "pushes": RandomPushes(start=(0.3 * seconds, 0.6 * seconds), force=(40.0, 200.0)),
        "seconds": seconds,
        "seed": 7,
    }
    return given | changes


# ----------------------------------------------------------------------------------------------------------------- bits


@compiled
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_the_same_bits_in_every_width_and_number_of_threads(robot: tangere.Robot, single: bool) -> None:
    """Noisy closed loops of 5000 periods, 19 robots: whole blocks and a tail in every width."""
    plan = tangere.rollouts(robot, count=1, **parts(robot, 5.0)).plan
    work = plan.job(0, 19)
    scalar = kernel.fused(work, single=single, instruction_set="scalar", every=50)
    assert scalar.log is not None
    assert np.all(np.isfinite(scalar.numbers))
    assert np.any(scalar.numbers[:, -5] > 0.0)  # somebody was felt
    for name in kernel.available():
        for workers in (1, 2):
            other = kernel.fused(work, single=single, instruction_set=name, every=50, workers=workers)
            assert other.numbers.tobytes() == scalar.numbers.tobytes(), (name, workers)
            assert other.log is not None
            assert other.log.tobytes() == scalar.log.tobytes(), (name, workers)
            assert other.forces.tobytes() == scalar.forces.tobytes(), (name, workers)


@compiled
def test_a_rollout_does_not_depend_on_the_others(robot: tangere.Robot) -> None:
    """Any part of a study, alone or among others, across chunks of threads; another seed is another study."""
    given = parts(robot, 0.2)
    whole = tangere.rollouts(robot, count=kernel.CHUNK + 9, **given)
    few = tangere.rollouts(robot, count=5, **given)
    assert whole.q[:5].tobytes() == few.q.tobytes()
    assert whole.residual[:5].tobytes() == few.residual.tobytes()
    part = kernel.fused(whole.plan.job(60, 10), first=60)
    assert part.numbers[:, :6].tobytes() == whole.q[60:70].tobytes()
    other = tangere.rollouts(robot, count=5, **(given | {"seed": 8}))
    assert not np.any(other.residual == few.residual)


@compiled
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_several_motions_in_one_call(robot: tangere.Robot, dtype: str) -> None:
    """Rollout i follows motion i, over and over: the same bits as in a call with that motion alone, in every width."""
    given = parts(robot, 0.2) | {"count": 19, "dtype": dtype}
    first: Any = given.pop("controller")
    shifted = Sampled(robot, 0.5 + first._goal.q, first._goal.qd, first._goal.qdd, PERIOD, 0.2)
    standing = first._goal.q[0] - 0.3
    goals = (first._goal, shifted, standing)
    motions = [ComputedTorque(robot, goal, kp=900.0, friction=first.friction) for goal in goals]
    both = tangere.rollouts(robot, controller=motions, **given)
    assert not both.why
    for k, one in enumerate(motions):
        alone = tangere.rollouts(robot, controller=one, **given)
        for name in ("q", "qd", "residual", "error_peak", "alarm_s"):
            assert getattr(both, name)[k::3].tobytes() == getattr(alone, name)[k::3].tobytes(), name
    for name in kernel.available():
        wide = kernel.fused(both.plan.job(0, 19), instruction_set=name, single=dtype == "float32")
        assert wide.numbers[:, :6].tobytes() == both.q.tobytes(), name
    replayed = both.replay(4)
    assert replayed.log["q_des"][0] == pytest.approx(shifted.at(0.0).q)
    missed = np.abs(replayed.log["q_true"] - replayed.log["q_des"]).max(axis=0)
    assert missed == pytest.approx(both.error_peak[4], abs=1e-6)


def test_controllers_that_differ_in_more_than_the_motion_run_in_the_python_loop(robot: tangere.Robot) -> None:
    given = parts(robot, 0.02) | {"count": 3}
    first: Any = given.pop("controller")
    other = ComputedTorque(robot, first._goal, kp=400.0, friction=first.friction)
    why = "differ in more than what they follow" if kernel.COMPILED else "not available"
    with pytest.warns(RuntimeWarning, match=why):
        rolls = tangere.rollouts(robot, controller=[first, other], **given)
    alone = tangere.rollouts(robot, controller=first, **given)
    assert rolls.q[[0, 2]] == pytest.approx(alone.q[[0, 2]], abs=1e-12)
    assert np.abs(rolls.q[1] - alone.q[1]).max() > 1e-9
    with pytest.raises(InvalidValue, match="controller: at least one"):
        tangere.rollouts(robot, controller=[], **given)


@compiled
def test_float32_stays_near_float64(robot: tangere.Robot) -> None:
    """After 2 s within 2e-5 rad, 3e-4 rad/s and 1e-3 Nm."""
    given = parts(robot, 2.0)
    double = tangere.rollouts(robot, count=32, **given)
    single = tangere.rollouts(robot, count=32, dtype="float32", **given)
    assert single.dtype == "float32"
    assert np.abs(double.q - single.q).max() < 2e-5
    assert np.abs(double.qd - single.qd).max() < 3e-4
    assert np.abs(double.residual - single.residual).max() < 1e-3
    assert not np.array_equal(double.q, single.q)


# ------------------------------------------------------------------------------------------------- the ordinary classes

ON_LINK = Push(link=5, point=(0.0, 0.05, 0.0), force=(10.0, -90.0, 5.0), start=0.35)
VARIANTS: dict[str, dict[str, Any]] = {
    "contacts": {},
    "semi-implicit": {"method": "semi-implicit"},
    "pushes": {"pushes": [Push(2, 40.0, 0.3, 0.2), ON_LINK]},
    "parameters": {"payload": np.linspace(0.5, 6.0, 4), "friction_scale": np.linspace(0.8, 1.2, 4)},
    "durations": {"detector": Detector(Thresholds.constant(8.0, 6, minimum_duration=0.004, release_duration=0.01))},
    "still": {"sensors": None, "pushes": ()},
    "positions": {"sensors": SensorModel(noise_q=1e-5, noise_tau=0.5)},
    "impedance": {"springs": {}},
    "stiff": {"springs": {"stiffness": 900.0, "damping": 60.0}, "sensors": SensorModel(noise_q=1e-5)},
}


@compiled
@pytest.mark.parametrize("name", VARIANTS)
def test_the_numbers_of_the_ordinary_loop(name: str, robot: tangere.Robot) -> None:
    """RigidPlant, ComputedTorque, MomentumObserver and Detector in tangere.run, within 1e-12, noise and pushes too."""
    fused = tangere.rollouts(robot, count=4, record=1, **parts(robot, 0.6, **VARIANTS[name]))
    assert fused.instruction_set != "python"
    looped = loop._result(fused.plan, loop._looped(fused.plan, 4, 1, None), 4, 1, 0.6, "float64", "python", "")
    for column in loop.LOGGED:
        assert np.abs(fused.log[column] - looped.log[column]).max() < 1e-12, column
    for number in ("q", "qd", "residual", "residual_peak", "error_peak", "score", "force"):
        assert np.abs(getattr(fused, number) - getattr(looped, number)).max(initial=0.0) < 1e-12, number
    for number in ("events", "early", "alarm_s", "delay_s", "pushed_s"):
        np.testing.assert_array_equal(getattr(fused, number), getattr(looped, number), number)
    if name in ("contacts", "pushes", "durations"):
        assert fused.events.sum() > 0
    if name == "pushes":
        felt = fused.early == 0  # so the first alarm is that of the push
        assert felt.any()
        delay = fused.alarm_s[felt] - fused.pushed_s[felt, 0, 0]
        np.testing.assert_allclose(fused.delay_s[felt], delay, rtol=0.0, atol=1e-12)
        assert delay.max() < 0.05


@compiled
def test_the_detector_is_the_one_of_the_classes(robot: tangere.Robot) -> None:
    """Four channels: the score of every rollout is that of the law on its own log, bit by bit, and so are its events.

    The Detector of an ordinary run raises its first alarm with the same sample.
    """
    detector = Detector(Thresholds.of_drive(prior_drive(tangere.robot("ur10e"))))
    rolls = tangere.rollouts(robot, count=9, record=1, **parts(robot, 1.2, detector=detector))
    assert not rolls.why
    assert 2 <= np.count_nonzero(rolls.events) < 9
    lags = np.array([detection.lags(h, detector.thresholds.gain) for h in [-1.0, *[PERIOD] * 1199]])
    for i in range(9):
        law = step("detection", 6, alone(detector))
        out = law.rows(np.concatenate([lags, rolls.log["residual"][i], rolls.log["qd"][i]], axis=1))
        held = out[:, detection.NUMBERS.index("held")] > 0.5
        begins = np.flatnonzero(held[1:] & ~held[:-1]) + 1
        assert rolls.score[i] == out[:, 0].max()
        assert rolls.events[i] == len(begins)
        if len(begins):
            assert rolls.alarm_s[i] == begins[0] * PERIOD
            assert rolls.replay(i).events[0].time_s == rolls.alarm_s[i]
    wide = kernel.fused(rolls.plan.job(0, 9))
    for name in kernel.available():
        assert kernel.fused(rolls.plan.job(0, 9), instruction_set=name).numbers.tobytes() == wide.numbers.tobytes()


def test_one_constant_of_the_detector_changes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loop and `watch` run and what rollouts are compiled from is one text."""

    def printed() -> tuple[str, str]:
        closed_loop.parts.cache_clear()
        t = trace_law(law_of("detection"), 6)
        return emit_python.source(t.graph, ["x"], t.outputs, parameters="P", batch=False), emit_c.rollouts_text()

    before = printed()
    monkeypatch.setattr(detection, "HOLD", 0.1875)
    after = printed()
    monkeypatch.undo()
    closed_loop.parts.cache_clear()
    for old, new, text in zip(before, after, ("0.1875", (0.1875).hex()), strict=True):
        assert text not in old
        assert text in new


@compiled
def test_a_wrong_belief_is_simulated(robot: tangere.Robot) -> None:
    """The plant has parameters of its own: a payload that nobody knows of is felt as its weight."""
    given = parts(robot, 1.0, sensors=None, pushes=(), payload=3.0)
    given["controller"] = ComputedTorque(robot, np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0]), kp=400.0)
    rolls = tangere.rollouts(robot, count=2, **(given | {"friction": None, "observer": MomentumObserver(robot)}))
    wanted = rolls.plan.robot(0).gravity_torque(rolls.q[0]) - robot.gravity_torque(rolls.q[0])
    assert np.abs(rolls.residual[0] + wanted).max() < 0.05 * np.abs(wanted).max()


@compiled
def test_one_rollout_again_as_a_run(robot: tangere.Robot, tmp_path: Path) -> None:
    """With log, events and page; the numbers are those of the study, bit by bit, in either precision."""
    for dtype in ("float64", "float32"):
        rolls = tangere.rollouts(robot, count=11, record=1, dtype=dtype, **parts(robot, 0.5))
        i = int(np.flatnonzero(rolls.events)[0])
        result = rolls.replay(i)
        assert not result.aborted
        for column in loop.LOGGED:
            assert result.log[column].tobytes() == rolls.log[column][i].tobytes(), column
        assert [event.time_s for event in result.events if event.begins or event.end_s][:1] == [rolls.alarm_s[i]]
        assert len(result.events) == rolls.events[i]
    assert result.setup.parts["controller"] == "ComputedTorque"
    assert result.setup.parts["plant"] == "RigidPlant"
    folder = result.save(tmp_path / "one")
    page = (folder if folder.is_dir() else folder.parent) / "report.html"
    assert "touch" in page.read_text(encoding="utf-8")
    with pytest.raises(InvalidValue, match="from 0 to 10, got 11"):
        rolls.replay(11)


# ---------------------------------------------------------------------------------------------------------- the numbers


def test_philox() -> None:
    """The known answers of the authors' own library (Random123, kat_vectors: philox4x32 10)."""
    known = [
        (0, 0, 0, 0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**64 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x299F31D0A4093822, 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ]
    for key, c0, c1, c2, c3, answer in known:
        words = counter_noise.words(key, (c3 << 32) | c0, c1, c2)
        assert " ".join(f"{int(w):08x}" for w in words) == answer


def test_normal_numbers() -> None:
    """Mean, spread and tails of 4e5 of them; none repeats between robots, steps and purposes."""
    z = np.concatenate([counter_noise.normals(3, np.arange(500), k, p).ravel() for k in range(50) for p in range(4)])
    assert len(np.unique(z)) > 0.999 * z.size
    assert abs(z.mean()) < 5.0 / np.sqrt(z.size)
    assert abs(z.std() - 1.0) < 5.0 / np.sqrt(2 * z.size)
    for size, share in ((1.0, 0.3173), (2.0, 0.0455), (3.0, 0.0027)):
        assert np.mean(np.abs(z) > size) == pytest.approx(share, abs=5 * np.sqrt(share / z.size))


def test_pushes_are_spread_over_the_arm(robot: tangere.Robot) -> None:
    """All links alike, on the surface, pressing inwards within the cone; a robot's contact is its own."""
    pushes = RandomPushes(force=(10.0, 20.0))
    skin = pushes.skin(robot.model)
    drawn = pushes.drawn(skin, 1, np.arange(3000))
    assert np.abs(np.bincount(drawn.link)[1:] / 3000 - 1 / 6).max() < 0.04
    size = np.linalg.norm(drawn.force, axis=1)
    assert 10.0 <= size.min() < 10.2
    assert 19.8 < size.max() <= 20.0
    again = pushes.drawn(skin, 1, [2999])
    assert again.push(0) == drawn.push(2999)


def test_when_a_push_was_and_how_late_it_was_felt(robot: tangere.Robot) -> None:
    push = Push(joint=2, torque=80.0, start=0.4, duration=0.2)
    rolls = tangere.rollouts(robot, **parts(robot, pushes=[push]), count=3)
    np.testing.assert_allclose(rolls.pushed_s, np.broadcast_to([0.4, 0.6], (3, 1, 2)), atol=1e-12)
    np.testing.assert_allclose(rolls.delay_s, rolls.alarm_s - 0.4, atol=1e-12)
    assert np.all((rolls.delay_s > 0.0) & (rolls.delay_s < 0.1))


@pytest.mark.parametrize("period", [PERIOD, 0.0013, 0.007])  # of the last two some quotients round up
def test_pushes_act_in_whole_periods(period: float) -> None:
    """The first period whose middle is not before the start, as plants.pushes has it, rounding included."""
    rng = np.random.default_rng(0)
    starts = np.concatenate([rng.uniform(0.0, 3.0, 500), period * np.arange(500), period * (np.arange(500) + 0.5)])
    k = np.arange(3600)
    first = _first_step(starts, period)
    for start, begin in zip(starts, first, strict=True):
        assert begin == k[(k + 0.5) * period >= start][0]
    assert _first_step(np.array([np.inf]), period)[0] == kernel.ENDLESS


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield
