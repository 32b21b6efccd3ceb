"""The residual of a log with a drive model: momentum form and midpoint form agree, with gaps and late torques."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.identification import Motion, momentum_residual, moving_rms
from tangere.identification.samples import midpoints
from tangere.observe.drive_model import DriveModel

GAIN = 50.0


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur3e")


def drive(delay=0.0):
    rng = np.random.default_rng(3)
    return DriveModel(
        gain=np.ones(6), rotor_inertia=np.zeros(6), coulomb=rng.uniform(1.0, 3.0, 6), viscous=rng.uniform(1.0, 3.0, 6),
        offset=0.1 * rng.normal(size=6), quadratic=-rng.uniform(0.1, 0.3, 6), load=rng.uniform(0.02, 0.05, 6),
        ripple=0.1 * rng.normal(size=(6, 6)), stiction=np.ones(6), spread=np.ones(6), mean_load=np.ones(6),
        width=np.full(6, 0.2), delay=delay, orders=(101, 200, 202),
    )  # fmt: skip


def motion(robot, law, n=1500, h=5e-4):
    """A smooth motion and the torque that it needs, reported `delay` late, and a push from the middle on.

    Small steps and a wide tanh: the two forms differ by h^2 of how friction turns round.
    """
    t = h * np.arange(n)
    phase = t[:, None] * np.array([2.0, 1.5, 2.5, 3.0, 2.2, 1.8]) + np.arange(6.0)
    rate = np.array([2.0, 1.5, 2.5, 3.0, 2.2, 1.8])

    def torque(at):
        q, qd, qdd = np.sin(at), rate * np.cos(at), -(rate**2) * np.sin(at)
        return robot.inverse_dynamics(q, qd, qdd) + law.friction(q, qd, robot.gravity_torque(q))

    tau = torque(phase - law.delay * rate)
    tau[n // 2 :] -= 3.0
    return Motion(t, np.sin(phase), rate * np.cos(phase), tau)


def midpoint_form(robot, law, run):
    """y by inverse dynamics in the middle of two samples, then the lag, started anew after each break."""
    m = midpoints(run, law.delay)
    y = robot.inverse_dynamics(m.q, m.qd, m.qdd) - m.tau + law.friction(m.q, m.qd, robot.gravity_torque(m.q))
    out, before = np.full(run.q.shape, np.nan), -5
    for k, index in enumerate(m.index):
        weight = 1.0 - np.exp(-GAIN * m.h[k])
        out[index] = y[k] if index != before + 1 else out[before] + weight * (y[k] - out[before])
        before = index
    return out


@pytest.mark.parametrize("delay", [0.0, 0.0043])
def test_both_forms_of_the_balance_agree(robot, delay):
    law = drive(delay)
    run = motion(robot, law)
    keep = np.r_[0:400, 500:1500]
    tau = run.tau.copy()
    tau[900] = np.nan
    q = run.q.copy()
    q[1100, 2] = np.nan
    run = Motion(run.time[keep], q[keep], run.qd[keep], tau[keep])
    ours, theirs = momentum_residual(robot, law, run, GAIN), midpoint_form(robot, law, run)
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    assert np.isnan(ours[[0, 400, 800, 801, 1000, 1001]]).all()  # the first, after the gap, both broken pairs
    assert np.isnan(ours).all(axis=1).sum() == 6
    # (202 h qd)^2 / 8 of a ripple of 0.3 Nm is 3 mNm; the rest of the difference is smaller
    assert np.nanmax(np.abs(ours - theirs)) < 5e-3
    assert np.nanmax(np.abs(ours)) > 2.9


@pytest.mark.parametrize("delay", [0.0, 0.0043])
def test_nothing_is_left_but_the_push(robot, delay):
    law = drive(delay)
    run = motion(robot, law)
    r = momentum_residual(robot, law, run, GAIN)
    # without a delay only the ripple between samples is left; a late torque is interpolated, and the push comes early
    assert np.nanmax(np.abs(r[:700])) < 0.01
    assert np.abs(r[-200:-20] - 3.0).max() < 0.03
    assert np.nanmax(np.abs(momentum_residual(robot, drive(delay + 0.004), run, GAIN)[100:700])) > 0.05


def test_rms_is_over_what_moves_after_the_start(robot):
    law = drive()
    run = motion(robot, law)
    r = momentum_residual(robot, law, run, GAIN)
    use = law.moving(run.qd) & (run.time > 0.2)[:, None]
    want = [np.sqrt(np.mean(r[use[:, j], j] ** 2)) for j in range(6)]
    np.testing.assert_allclose(moving_rms(robot, law, [run], GAIN), want, rtol=1e-12)
