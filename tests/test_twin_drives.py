"""Drives for a twin: a lag that made a log is found, and none is made up where rotors explain the torque."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.identification import IdentifiedModel, Motion, identify, prior_drive, read_model
from tangere.identification.free_run import LEAST_ROTOR, free_run, late_friction, refined, twin
from tangere.identification.samples import smoothed
from tangere.observe.drive_model import DriveModel

N = 6
LAG = np.array([0.0, 0.0, 0.0, 0.35, 0.4, 0.3])  # s; slow motion then needs less torque the more it accelerates
STEP = 0.004  # s, 250 Hz


def _arm(lag: np.ndarray) -> tuple[Robot, DriveModel]:
    """A UR3e of known rotors, whose wrists' viscous friction is late; without ripple and quadratic terms."""
    base = tangere.robot("ur3e")
    zero = np.zeros(N)
    drive = dataclasses.replace(prior_drive(base), quadratic=zero, load=zero, lag=lag)
    return Robot(base.model, drive.rotor_inertia), drive


def _motion(robot: Robot, drive: DriveModel, rng: np.random.Generator, seconds: float = 14.0) -> Motion:
    """Slow sines and the torque that they need, by inverse dynamics: no integrator of the twin has a part in it.

    z of lag z' = qd - z for qd = sum a w cos(w t + p):  sum a w (cos + lag w sin) / (1 + (lag w)^2), settled.
    """
    t = np.arange(0.0, seconds, STEP)[:, None]
    q, qd, qdd, z = np.tile([0.2, -1.2, 1.4, -0.5, 0.7, 0.1], (len(t), 1)), *np.zeros((3, len(t), N))
    for _ in range(2):
        w, p, a = rng.uniform(0.5, 1.2, N), rng.uniform(0.0, 6.0, N), rng.uniform(0.2, 0.5, N)
        q = q + a * np.sin(w * t + p)
        qd += a * w * np.cos(w * t + p)
        qdd -= a * w**2 * np.sin(w * t + p)
        z += a * w * (np.cos(w * t + p) + drive.lag * w * np.sin(w * t + p)) / (1.0 + (drive.lag * w) ** 2)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.friction(q, qd, robot.gravity_torque(q))
    tau += drive.viscous * (z - qd) + 0.02 * rng.normal(size=q.shape) * drive.coulomb
    return Motion(t[:, 0], q, qd, tau, "sines")


@pytest.fixture(scope="module")
def late() -> tuple[IdentifiedModel, Motion, Motion]:
    robot, drive = _arm(LAG)
    rng = np.random.default_rng(11)
    used, unseen = _motion(robot, drive, rng), _motion(robot, drive, rng)
    return identify(tangere.robot("ur3e"), [used], inertial="none", orders=()), used, unseen


def test_a_free_run_follows_a_late_friction() -> None:
    """The drive that made the log, with its lag, runs along it; without the lag it does not."""
    robot, drive = _arm(LAG)
    motion = _motion(robot, drive, np.random.default_rng(3), 8.0)
    run = free_run(robot, drive, [motion])
    settled = run.start > 2.0  # s: the past of earlier windows is not known
    moving = run.moving & settled[:, None]
    prompt = free_run(robot, dataclasses.replace(drive, lag=np.zeros(N)), [motion])
    for j in range(N):
        error = np.median(np.abs(run.error[moving[:, j], j]))
        # found: 0.1 to 0.8 mrad, of noise (2 % of Coulomb friction) and of an integration of first order in friction
        assert error < 1e-3
        if LAG[j]:
            assert np.median(np.abs(prompt.error[moving[:, j], j])) > 5.0 * error


def test_the_lag_that_made_a_log_is_found(late: tuple[IdentifiedModel, Motion, Motion]) -> None:
    model, _, unseen = late
    known = prior_drive(tangere.robot("ur3e")).rotor_inertia
    assert np.all(model.drive.rotor_inertia[3:] < LEAST_ROTOR * known[3:])  # what a torque fit makes of a lag
    assert model.twin is not None
    np.testing.assert_array_equal(model.twin.rotor_inertia[3:], known[3:])
    np.testing.assert_allclose(model.twin.lag[3:], LAG[3:], rtol=0.05)  # from 14 s with noise; found within 1 %
    runs = twin(model, tangere.robot("ur3e"), [unseen])
    assert list(runs)[-1] == "torque fit"
    assert np.all(runs["identified"].median[3:] < 0.5 * runs["torque fit"].median[3:])
    assert np.all(runs["identified"].median < runs["without rotor inertia"].median)
    assert np.all(runs["identified"].median < 0.2 * runs["without friction"].median)


def test_the_lag_is_found_in_a_smoothed_log() -> None:
    """The filter takes no part in it: within 1 % at 1 Hz, and 3 to 7 % of Coulomb friction if nothing is given back."""
    robot, drive = _arm(LAG)
    raw = _motion(robot, drive, np.random.default_rng(11), 20.0)
    columns = {name: smoothed(getattr(raw, name), STEP, 1.0) for name in ("q", "qd", "tau")}
    model = identify(tangere.robot("ur3e"), [dataclasses.replace(raw, **columns)], inertial="none", orders=())
    assert model.drive.smoothing == pytest.approx(1.0, rel=0.05)
    assert model.twin is not None
    np.testing.assert_allclose(model.twin.lag[3:], LAG[3:], rtol=0.02)
    np.testing.assert_allclose(model.twin.coulomb[3:], drive.coulomb[3:], rtol=0.01)


def test_joints_with_a_rotor_keep_their_drive(late: tuple[IdentifiedModel, Motion, Motion]) -> None:
    model, used, _ = late
    assert model.twin is not None
    for name in ("rotor_inertia", "coulomb", "viscous", "offset"):
        np.testing.assert_array_equal(getattr(model.twin, name)[:3], getattr(model.drive, name)[:3])
    np.testing.assert_array_equal(model.twin.lag[:3], 0.0)
    heavy = dataclasses.replace(model, drive=dataclasses.replace(model.drive, rotor_inertia=np.ones(N)))
    assert refined(heavy, tangere.robot("ur3e"), [used]) is None


def test_no_lag_where_there_is_none() -> None:
    robot, drive = _arm(np.zeros(N))
    model = identify(
        tangere.robot("ur3e"), [_motion(robot, drive, np.random.default_rng(5), 12.0)], inertial="none", orders=()
    )
    assert model.twin is None
    assert not any("late" in found.sentence for found in model.findings)


def test_logs_that_cannot_be_run_are_left_out(late: tuple[IdentifiedModel, Motion, Motion]) -> None:
    model, used, _ = late
    base = tangere.robot("ur3e")
    torn = dataclasses.replace(used, tau=np.where(np.arange(len(used.time))[:, None] == 700, np.nan, used.tau))
    back = dataclasses.replace(used, time=used.time[::-1])
    assert refined(model, base, [torn, back]) is None
    keep = np.arange(len(used.time)) % 20 < 8  # a gap every 80 ms: no window is whole
    holed = Motion(*(column[keep] for column in (used.time, used.q, used.qd, used.tau)))
    assert refined(model, base, [holed]) is None
    short = Motion(*(column[:1500] for column in (used.time, used.q, used.qd, used.tau)))
    one, two = refined(model, base, [short]), refined(model, base, [torn, short, back])
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.lag, two.lag)


def test_the_twin_is_in_the_model_file(late: tuple[IdentifiedModel, Motion, Motion], tmp_path: Path) -> None:
    model, *_ = late
    model.write(tmp_path / "model.toml")
    back = read_model(tmp_path / "model.toml")
    assert model.twin is not None
    assert back.twin is not None
    for entry in (entry for entry in dataclasses.fields(DriveModel) if entry.init):
        np.testing.assert_array_equal(getattr(back.twin, entry.name), getattr(model.twin, entry.name))
    plain = dataclasses.replace(model, twin=None)
    plain.write(tmp_path / "plain.toml")
    assert read_model(tmp_path / "plain.toml").twin is None


def test_what_is_said(late: tuple[IdentifiedModel, Motion, Motion]) -> None:
    model, *_ = late
    assert model.twin is not None
    said = late_friction(model.twin)
    assert said in model.findings
    assert said.sentence.startswith("joints 4, 5, 6: ")
    one = dataclasses.replace(model.twin, lag=np.array([0.0, 0.0, 0.0, 0.0, 0.25, 0.0]))
    assert late_friction(one).sentence.startswith("joint 5: ")
    assert late_friction(one).joint == 5
    assert "0.25 s late" in late_friction(one).sentence
