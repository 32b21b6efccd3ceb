"""A delay of the torque is told from friction that lags behind reversals."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.identification import Motion
from tangere.identification.recorder import _bent, torque_delay
from tangere.identification.samples import windows

H = 0.001  # s, of the simulation
COULOMB = np.array([16.0, 17.0, 7.0, 2.8, 3.4, 2.7])
VISCOUS = np.array([20.0, 18.0, 9.0, 3.5, 2.2, 3.0])
NOISE = np.array([0.5, 0.5, 0.3, 0.1, 0.1, 0.1])  # Nm per sample
TRAVEL = 0.0007  # rad over which friction turns round; none of those that are looked for


@pytest.fixture(scope="module")
def arm() -> Robot:
    base = tangere.robot("ur10e")
    return Robot(base.model, base.drives.rotor_inertia)


def _log(arm: Robot, seed: int, delay: float, period: float, jitter: bool = False) -> Motion:
    """20 s of sines with friction that turns round over a distance; the torque is that of `delay` before."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 20.0, H)
    rate, phase, size = (rng.uniform(*b, (4, 6)) for b in ((0.6, 4.0), (0.0, 6.28), (0.05, 0.2)))
    angle = t[:, None, None] * rate + phase
    q = rng.uniform(-1.0, 1.0, 6) + (size * np.sin(angle)).sum(axis=1)
    qd = (size * rate * np.cos(angle)).sum(axis=1)
    tau = arm.inverse_dynamics(q, qd, -(size * rate**2 * np.sin(angle)).sum(axis=1)) + VISCOUS * qd
    z, sign, keep = np.sign(qd[0]), np.sign(qd), np.exp(-np.abs(qd) * H / TRAVEL)
    for k in range(len(t)):
        z = sign[k] + (z - sign[k]) * keep[k]
        tau[k] += COULOMB * z
    step, late = round(period / H), round(delay / H)
    at = np.arange(30, len(t), step)
    if jitter:
        at = np.unique(np.minimum(at + rng.integers(0, step // 2 + 1, len(at)), len(t) - 1))
    noisy = tau[at - late] + NOISE * rng.normal(size=(len(at), 6))
    return Motion(t[at], q[at], qd[at] + 0.001 * rng.normal(size=(len(at), 6)), noisy)


@pytest.mark.parametrize("period", [0.002, 0.008, 0.01])
@pytest.mark.parametrize("jitter", [False, True])
def test_friction_with_memory_is_no_delay(arm: Robot, period: float, jitter: bool) -> None:
    logs = [_log(arm, 1, 0.0, period, jitter)]
    rows = windows(arm, logs)
    assert torque_delay(rows, logs) == 0.0
    if not jitter:
        assert torque_delay(rows, logs, memory=False) > 0.003  # which this test is about


@pytest.mark.parametrize("period", [0.002, 0.008, 0.01])
def test_a_delay_is_found_beside_friction_with_memory(arm: Robot, period: float) -> None:
    logs = [_log(arm, 2, 0.008, period)]
    # 2 ms: a fifth of the longest period; friction of another travel than those looked for draws a little
    assert torque_delay(windows(arm, logs), logs) == pytest.approx(0.008, abs=0.002)


def test_a_delay_of_one_joint_alone_is_none_of_the_log(arm: Robot) -> None:
    """Consistent over joints, or it is the motion of that joint that the model does not know."""
    log, late = _log(arm, 3, 0.0, 0.01), _log(arm, 3, 0.01, 0.01)
    log.tau[:, 1] = late.tau[:, 1]
    assert torque_delay(windows(arm, [log]), [log]) == 0.0
    assert torque_delay(windows(arm, [late]), [late]) == pytest.approx(0.01, abs=0.002)


def test_too_little_motion_tells_no_delay(arm: Robot) -> None:
    log = _log(arm, 4, 0.008, 0.01)
    still = Motion(log.time, np.tile(log.q[0], (len(log.q), 1)), np.zeros_like(log.qd), log.tau)
    assert torque_delay(windows(arm, [still]), [still]) == 0.0


def test_friction_that_bends_is_followed_between_the_samples_of_a_slow_log() -> None:
    """At 25 samples per second nearly as at 500; 0.072 without steps between samples, 0.050 with them."""

    def bent(period: float) -> np.ndarray:
        t, phase = np.arange(0.0, 8.0, period)[:, None], np.arange(6)
        q, qd = 0.05 * np.sin(4.0 * t + phase), 0.2 * np.cos(4.0 * t + phase)
        return _bent([Motion(t[:, 0], q, qd, np.zeros_like(q), "sines")])

    fine, coarse = bent(0.002), bent(0.04)  # windows of 20 and of 40 ms
    pairs = 0.5 * (fine[0:398:2] + fine[1:398:2])
    assert np.sqrt(np.mean((pairs - coarse) ** 2)) < 0.06
