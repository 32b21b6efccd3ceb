"""What most of a log agrees on: a touch of some seconds bends neither slopes nor friction, and is pointed at."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.identification import Motion, prior_drive
from tangere.identification.findings import gravity_findings, gravity_slopes
from tangere.identification.prior import friction_share
from tangere.identification.solve import agreed
from tangere.identification.touched_spans import AROUND, outside, touched
from tangere.observe.drive_model import DriveModel

ROBOT = tangere.robot("ur10e")
START = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3])


def _motion(push: float = 0.0, friction: float = 0.0, seconds: float = 12.0, drive: DriveModel | None = None) -> Motion:
    """A UR10e that moves, pushed with `push` Nm on joint 2 from 4 to 7 s; `friction` times that of its type."""
    rng = np.random.default_rng(3)
    t = np.arange(round(200.0 * seconds)) / 200.0
    speed, size = np.linspace(0.6, 1.1, 6), np.full(6, 0.3)
    angle = t[:, None] * speed + np.arange(6)
    q, qd, qdd = START + size * np.sin(angle), size * speed * np.cos(angle), -size * speed**2 * np.sin(angle)
    tau = ROBOT.inverse_dynamics(q, qd, qdd) + 0.02 * rng.normal(size=q.shape)
    tau += friction * prior_drive(ROBOT).friction(q, qd, ROBOT.gravity_torque(q))
    tau[(t >= 4.0) & (t < 7.0), 1] -= push
    return Motion(t, q, qd, tau)


def test_a_fit_is_that_of_the_majority() -> None:
    rng = np.random.default_rng(0)
    A = np.column_stack([np.linspace(0.0, 6.0, 600), np.ones(600)])
    b = A @ [2.0, -1.0] + 0.01 * rng.normal(size=600)
    b[100:280] += 5.0  # three tenths
    x, inside, sigma = agreed(A, b)
    plain = np.linalg.lstsq(A, b, rcond=None)[0]
    assert np.abs(plain - [2.0, -1.0]).max() > 0.3
    np.testing.assert_allclose(x, [2.0, -1.0], atol=0.01)  # ten standard errors, 0.01 / sqrt(420) of the offset
    assert not np.any(inside[100:280])
    assert np.all(inside[:100])
    assert np.all(inside[280:])
    assert np.all(sigma < 0.01)


def test_without_a_touch_a_fit_is_least_squares_with_its_standard_error() -> None:
    A = np.column_stack([np.sin(np.arange(2400) / 37.0), np.ones(2400)])
    errors = []
    for seed in range(100):
        b = A @ [3.0, 1.0] + np.random.default_rng(seed).normal(size=2400)
        x, inside, sigma = agreed(A, b)
        np.testing.assert_allclose(x, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-6)
        assert np.all(inside)
        errors.append((x - [3.0, 1.0]) / sigma)
    # from 12 blocks of unequal weight: Student's distribution of 10 degrees of freedom has 1.12, of 5 it has 1.29
    np.testing.assert_allclose(np.std(errors, axis=0), 1.2, atol=0.2)


@pytest.mark.parametrize("friction", [0.0, 1.0])
def test_a_push_bends_no_slope_and_is_pointed_at(friction: float) -> None:
    motion = _motion(40.0, friction)
    slopes, shares = gravity_slopes(ROBOT, [motion])
    assert slopes[1] == pytest.approx(1.0, abs=0.05)
    assert shares[1] > 0.99
    assert gravity_findings(ROBOT, [motion]) == ()
    spans = touched(ROBOT, motion)
    assert {span.joint for span in spans} == {2}
    assert spans[0].start == pytest.approx(4.0, abs=0.1)
    assert spans[-1].end == pytest.approx(7.0, abs=0.1)
    assert spans[0].end > spans[0].start
    assert np.all(outside(motion.time, spans, AROUND)[(motion.time < 3.8) | (motion.time > 7.2)])


@pytest.mark.parametrize("friction", [0.0, 1.0])
def test_free_motion_does_not_look_touched(friction: float) -> None:
    assert touched(ROBOT, _motion(0.0, friction)) == ()


def test_the_share_of_friction_that_a_log_shows() -> None:
    drive = prior_drive(ROBOT)
    for share in (0.0, 0.4, 1.0):
        found = friction_share(ROBOT, drive, _motion(30.0, share))
        np.testing.assert_allclose(found, share, atol=0.05)
    still = _motion(0.0, 0.0, 2.0)
    still = Motion(still.time, np.tile(START, (len(still.time), 1)), 0.0 * still.qd, still.tau)
    np.testing.assert_array_equal(friction_share(ROBOT, drive, still), 1.0)  # nothing moves: nothing is told
