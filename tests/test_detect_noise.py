"""Detection in a run without a model: thresholds from declared sensors and what the believed model may be off by."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watched_logs import ROBOT as WATCHED
from watched_logs import model_of

import tangere
from tangere.apps.scenarios.build import Built, build
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kernels.laws.detection import BASELINE
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.observe.detect import Signals, Thresholds
from tangere.observe.detect.noise import ACCELERATION, LEAST, SIGMAS, SPEED, answers, size_of
from tangere.plants.pushes import Push
from tangere.plants.sensors import SensorModel

ROBOT = tangere.robot("ur10e", rotor_inertia=True)
NOISY = {"mass": 1.05, "friction": "full", "sensors": "ur10e"}  # the README's line
SOAK = pytest.mark.skipif(not os.environ.get("TANGERE_SOAK"), reason="slow: set TANGERE_SOAK")


def _done(scenario: str, told: dict[str, Any], *pushes: Push) -> tuple[Built, RunResult]:
    built = build(scenario, {"plant": "rigid", **told}, pushes)
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector, reaction=built.motion.reaction,
    )  # fmt: skip
    assert not result.aborted
    return built, result


def _pushed(seed: int) -> None:
    start = float(np.random.default_rng(100 + seed).uniform(1.0, 7.0))
    _, result = _done("circle", {**NOISY, "seed": seed}, Push(2, 20.0, start, 2.0))
    (event,) = result.events
    assert event.alarm
    assert event.joint == 2
    assert 0.0 < event.time_s - start <= 0.05
    assert event.end_s is not None
    assert abs(event.end_s - start - 2.0) < 0.1
    assert event.torque_interval_nm is not None
    assert event.torque_interval_nm[0] < 20.0 < event.torque_interval_nm[1]


@pytest.mark.parametrize("seed", [2, 6])  # the two of twenty that take longest
def test_the_noisy_run_feels_its_push_and_nothing_else(seed: int) -> None:
    _pushed(seed)


def test_a_push_on_a_joint_that_turns_round_is_felt_as_soon() -> None:
    """Joint 2 reverses 10 ms later: where nothing sticks, the mean before must not take the push over."""
    _, result = _done("circle", {**NOISY, "seed": 9}, Push(2, 20.0, 3.935, 2.0))
    (event,) = result.events
    assert 0.0 < event.time_s - 3.935 <= 0.05


@SOAK
@pytest.mark.parametrize("seed", range(20))
def test_twenty_noisy_runs_feel_their_push_and_nothing_else(seed: int) -> None:
    _pushed(seed)


@SOAK
@pytest.mark.parametrize("seed", range(10))
def test_a_minute_of_noise_is_no_touch(seed: int) -> None:
    assert _done("circle", {**NOISY, "seed": seed, "duration": 60.0})[1].events == ()


@pytest.mark.parametrize("joint", range(1, 7))
def test_the_exact_run_feels_five_newton_metres_within_ten_milliseconds(joint: int) -> None:
    _, result = _done("circle", {"duration": 2.0}, Push(joint, -5.0, 1.2, 0.5))
    (event,) = result.events
    assert event.joint == joint
    assert event.time_s - 1.2 <= 0.010 + 1e-9
    assert event.reason.startswith(f"joint {joint}: ")
    assert event.onset_s == pytest.approx(1.2, abs=2e-3)


@pytest.mark.parametrize("scenario", ["sine", "hold", "reach"])
@pytest.mark.parametrize("told", [{}, NOISY], ids=["exact", "noisy"])
def test_free_motion_is_no_touch(scenario: str, told: dict[str, Any]) -> None:
    assert _done(scenario, {"push": "none", **told})[1].events == ()


def test_a_push_is_felt_where_the_plan_turns_round_as_briskly_as_an_arm_that_stops() -> None:
    told = {"duration": 1.0, "ramp": 0.3, "amplitude": 0.1, "frequency": 1.0, "drives": "off"}
    _, result = _done("sine", told, Push(3, -15.0, 0.5, 0.25))
    (event,) = result.events  # and no stop: 10 rad/s2 over all joints were planned
    assert event.alarm
    assert event.joint == 3
    assert 0.0 < event.time_s - 0.5 <= 0.01


def test_joints_that_stick_are_no_touch_where_they_are_known_to() -> None:
    assert _done("sine", {"friction": "stiction", "plant": "mujoco", "duration": 4.0})[1].events == ()


def test_thresholds_do_not_know_the_plant() -> None:
    """Neither its true mass nor what it carries: what is believed and declared decides alone."""
    other = {"mass": 1.3, "payload": 5.0}
    tables = [build("circle", {**NOISY, **told}).detector.thresholds.table for told in ({}, other)]
    assert np.array_equal(tables[0], tables[1])


def test_two_pushes_close_together_are_two_events() -> None:
    _, result = _done("hold", {"duration": 1.2}, Push(2, 20.0, 0.4, 0.3), Push(5, 6.0, 0.8, 0.2))
    assert [(e.joint, round(e.time_s, 2)) for e in result.events] == [(2, 0.4), (5, 0.8)]


def test_noise_of_each_signal_is_what_the_signals_make_of_it(rng: np.random.Generator) -> None:
    """The impulse response against Signals themselves: level and shock are linear, change is at this rate."""
    period, gain = 1e-3, 50.0
    y = rng.standard_normal(20_000)
    signals, r, rows = Signals(1, gain), 0.0, []
    for k, value in enumerate(y.tolist()):
        r += -np.expm1(-gain * period) * (value - r)
        if signals.update(k * period, np.array([r]), np.ones(1)):
            rows.append(signals.values[:, 0].copy())
    w = answers(gain, period)
    seen, said = np.std(rows, axis=0), np.sqrt(np.sum(w * w, axis=0))
    # 17 s of the level have 340 time constants: its deviation is known to 5 %
    np.testing.assert_allclose(seen[[0, 1, 3]], said[[0, 1, 3]], rtol=0.15)
    assert seen[2] < said[2]  # impact is the smaller of two


def test_each_part_of_the_uncertainty_counts() -> None:
    friction = JointFriction.of(ROBOT.drives)
    sensors = SensorModel.preset("ur10e", 1e-3)
    nothing = Thresholds.of_noise(ROBOT, 1e-3, mass_error=0.0, friction_error=0.0)
    assert np.all(nothing.table == LEAST)
    heavy = Thresholds.of_noise(ROBOT, 1e-3, mass_error=0.05, friction_error=0.0)
    twice = Thresholds.of_noise(ROBOT, 1e-3, mass_error=0.1, friction_error=0.0)
    np.testing.assert_allclose(twice.table[:, :, 1], 2.0 * heavy.table[:, :, 1])  # joint 2: above the least
    assert heavy.level[0, 1] > heavy.change[0, 1]
    size = size_of(ROBOT)
    level = 0.05 * (size.gravity + size.inertia * (ACCELERATION + SPEED**2))
    change = 0.05 * (size.slope * SPEED * BASELINE + size.inertia * ACCELERATION)
    np.testing.assert_allclose(heavy.level[0, 1], level[1], rtol=1e-12)
    np.testing.assert_allclose(heavy.change[0, 1], change[1], rtol=1e-12)
    dry = Thresholds.of_noise(ROBOT, 1e-3, None, friction, mass_error=0.0, friction_error=0.2)
    np.testing.assert_allclose(dry.level[0], 0.2 * (friction.coulomb + 1.05 * friction.viscous))
    assert np.all(dry.change[1] - dry.change[0] > 0.19 * friction.coulomb)  # turning round
    noisy = Thresholds.of_noise(ROBOT, 1e-3, sensors, mass_error=0.0, friction_error=0.0)
    w = answers(50.0, 1e-3)
    torque = np.asarray(sensors.noise_tau) * np.sqrt(np.sum(w[:, 0] ** 2))
    momentum = size_of(ROBOT).inertia * 0.002 / 1e-3 * np.sqrt(np.sum(np.diff(w[:, 0], prepend=0.0) ** 2))
    np.testing.assert_allclose(noisy.level[0], SIGMAS * np.hypot(torque, momentum))
    sticky = Thresholds.of_noise(ROBOT, 1e-3, None, friction, sticks=True)
    assert np.all(sticky.change[1] >= 2.5 * friction.coulomb)


@pytest.mark.parametrize("told", [{"mass_error": -0.1}, {"friction_error": 1.0}, {"mass_error": float("nan")}])
def test_an_uncertainty_that_none_is_is_refused(told: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match="a share from 0 to below 1"):
        Thresholds.of_noise(ROBOT, 1e-3, **told)


def test_a_tuned_model_file_brings_its_drives_and_thresholds(tmp_path: Path) -> None:
    model, thresholds = model_of(), Thresholds.of_noise(WATCHED, 1e-3)
    tuned = replace(model, detection=replace(thresholds, rate=0.1, hours=1.0).to_table())
    for name, one in (("tuned", tuned), ("plain", model)):
        one.write(tmp_path / f"{name}.toml")
    told = {"robot": WATCHED.name, "push": "none"}
    built = build("hold", {**told, "model": str(tmp_path / "tuned.toml")})
    assert built.detector.thresholds.rate == 0.1
    assert np.array_equal(built.detector.thresholds.table, thresholds.table)
    assert np.array_equal(built.detector.stiction, model.drive.stiction)
    assert built.detector.memory is not None
    assert built.world.believed_friction is built.world.belief.drive  # type: ignore[union-attr]
    assert not build("hold", {**told, "model": str(tmp_path / "plain.toml")}).detector.thresholds.tuned
    with pytest.raises(InvalidValue, match="observer_gain: 50 1/s"):
        build("hold", {**told, "model": str(tmp_path / "tuned.toml"), "observer_gain": 40.0})
