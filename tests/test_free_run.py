"""The twin: a model that made a log must run along it; one without friction or rotors must not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.errors import InvalidValue
from tangere.identification import Motion, identify, prior_drive
from tangere.identification.free_run import free_run, twin
from tangere.observe.drive_model import DriveModel

N = 6


def _truth() -> tuple[Robot, DriveModel]:
    arm = tangere.robot("ur3e")
    drive = prior_drive(arm)
    return Robot(arm.model, drive.rotor_inertia), drive


def _motion(robot: Robot, drive: DriveModel, seconds: float = 5.0) -> Motion:
    """Sines, and exactly the torque that they need."""
    rng = np.random.default_rng(2)
    t = np.arange(0.0, seconds, 0.002)
    rate, phase, size = rng.uniform(0.8, 1.6, N), rng.uniform(0.0, 6.0, N), rng.uniform(0.3, 0.6, N)
    angle = t[:, None] * rate + phase
    q = np.array([0.2, -1.2, 1.4, -0.5, 0.7, 0.1]) + size * np.sin(angle)
    qd, qdd = size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.friction(q, qd, robot.gravity_torque(q))
    return Motion(t, q, qd, tau, "sines")


def test_the_model_that_made_a_log_runs_along_it() -> None:
    robot, drive = _truth()
    motion = _motion(robot, drive)
    run = free_run(robot, drive, [motion])
    assert len(run.start) == 48  # every 0.1 s of 5 s, with 0.2 s left
    # the integration is of first order in the friction: a quarter of a millirad after 200 steps, 2 in the worst window
    assert np.all(run.median < 3e-4)
    assert np.abs(run.error[run.moving]).max() < 2e-3


def test_an_error_is_where_it_was_put() -> None:
    """0.4 Nm too much on joint 4: against viscous friction and inertia, by hand for one joint."""
    robot, drive = _truth()
    slow = dataclasses.replace(drive, coulomb=np.zeros(N), load=np.zeros(N), quadratic=np.zeros(N))
    motion = _motion(robot, slow)
    pushed = dataclasses.replace(motion, tau=motion.tau + np.array([0.0, 0.0, 0.0, 0.4, 0.0, 0.0]))
    error = free_run(robot, slow, [pushed]).error[:, 3]
    M = float(robot.mass_matrix(motion.q)[:, 3, 3].mean())
    v = float(slow.viscous[3])
    expected = 0.4 / v * (0.2 - M / v * (1.0 - np.exp(-0.2 * v / M)))  # of M a + v w = 0.4 from rest
    np.testing.assert_allclose(error, expected, rtol=0.1)  # other joints give way a little


def test_friction_and_rotor_inertia_matter() -> None:
    robot, drive = _truth()
    base = tangere.robot("ur3e")
    motion = _motion(robot, drive, 8.0)
    model = identify(base, [motion], inertial="none")
    runs = twin(model, base, [motion])
    assert list(runs) == ["identified", "without friction", "without rotor inertia", "with neither"]
    whole = runs["identified"].median
    assert np.all(runs["without friction"].median > 10.0 * whole)
    assert np.all(runs["without rotor inertia"].median > 1.2 * whole)
    assert np.all(np.isfinite(runs["with neither"].error))  # whatever a wrist without friction does


def test_gaps_are_not_run_across() -> None:
    robot, drive = _truth()
    motion = _motion(robot, drive)
    keep = np.r_[0:1000, 1500:2500]
    gapped = Motion(motion.time[keep], motion.q[keep], motion.qd[keep], motion.tau[keep])
    run = free_run(robot, drive, [gapped])
    assert not np.any((run.start > 1.8) & (run.start < 2.998))
    assert np.abs(run.error[run.moving]).max() < 2e-3
    with pytest.raises(InvalidValue, match="window"):
        free_run(robot, drive, [motion], window=-1.0)
    with pytest.raises(InvalidValue, match="no window"):
        free_run(robot, drive, [Motion(*(a[:50] for a in (motion.time, motion.q, motion.qd, motion.tau)))])
    with pytest.raises(InvalidValue, match="stamps must rise"):
        free_run(robot, drive, [dataclasses.replace(motion, time=motion.time[::-1])])


def test_a_late_torque_is_taken_late() -> None:
    robot, drive = _truth()
    motion = _motion(robot, drive)
    late = dataclasses.replace(motion, tau=np.concatenate([motion.tau[:5], motion.tau[:-5]]))
    aware = free_run(robot, dataclasses.replace(drive, delay=0.01), [late]).median
    unaware = free_run(robot, drive, [late]).median
    assert np.all(aware < 3.2e-4)
    assert np.all(unaware[:3] > 2.0 * aware[:3])
