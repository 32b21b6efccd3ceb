"""Ripple of gears and motors: waves that logs show are found, chance is not, and no more than what is left out says."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.identification.ripples import Ripples, ripples
from tangere.identification.samples import Motion, Windows, windows
from tangere.types import Array

N, RATE = 6, 250.0
WIDTH = np.full(N, 0.008)
SPREAD = np.full(N, 0.1)
ROBOT = tangere.robot("ur3e")


def _motions(count: int, seconds: float) -> list[Motion]:
    """Slow sines of all joints, forth and back."""
    rng = np.random.default_rng(3)
    time = np.arange(0.0, seconds, 1.0 / RATE)
    out = []
    for k in range(count):
        rate, phase = rng.uniform(0.4, 1.0, N), rng.uniform(0.0, 2.0 * np.pi, N)
        angle = rate * time[:, None] + phase
        q, qd = rng.uniform(-1.0, 1.0, N) + 0.3 * np.sin(angle), 0.3 * rate * np.cos(angle)
        out.append(Motion(time, q, qd, np.zeros_like(q), str(k)))
    return out


def _wave(motion: Motion, joint: int, order: int, kind: str) -> Array:
    """sin(order q) of a joint, times what its kind says, at the samples."""
    g = ROBOT.gravity_torque(motion.q)[:, joint]
    scale = {"plain": 1.0, "load": g, "drag": np.tanh(motion.qd[:, joint] / WIDTH[joint])}[kind]
    return np.asarray(np.sin(order * motion.q[:, joint]) * scale)


def _found(motions: list[Motion], orders: tuple[int, ...] = (100, 101, 909)) -> tuple[Ripples, Windows, Array]:
    """What is made of logs whose torque is all error, and noise of 0.1 Nm."""
    rows = windows(ROBOT, motions)
    noise = SPREAD[0] * np.random.default_rng(5).normal(size=rows.tau.shape)
    error = noise - rows.tau
    return ripples(ROBOT, motions, rows, error, SPREAD, WIDTH, orders), rows, error


@pytest.mark.parametrize(("kind", "size"), [("plain", 0.05), ("load", 0.02), ("drag", 0.05)])
def test_a_wave_is_found_with_its_kind_and_size(kind: str, size: float) -> None:
    motions = _motions(6, 20.0)
    for motion in motions:
        motion.tau[:, 2] = size * _wave(motion, 2, 909, kind)
    found, rows, error = _found(motions)
    assert found.orders == (909,)
    for name in ("plain", "load", "drag"):
        want = np.zeros((N, 2))
        if name == kind:
            want[2, 0] = size
        np.testing.assert_allclose(getattr(found, name), want, atol=0.1 * size)
    assert np.all(getattr(found, kind)[np.arange(N) != 2] == 0.0)  # left out, not merely small
    moving = rows.moving[:, 2]
    assert found.error[moving, 2].std() == pytest.approx(SPREAD[2], rel=0.03)  # what is left is the noise
    assert np.array_equal(found.error[~moving], error[~moving])


def test_noise_is_no_ripple() -> None:
    found, _, error = _found(_motions(6, 20.0))
    assert found.orders == ()
    assert found.plain.shape == (N, 0)
    assert np.array_equal(found.error, error)


def test_what_one_log_shows_and_the_others_do_not_is_no_ripple() -> None:
    """0.4 Nm in one of six logs is half of all that is left: fitted to all, it would leave the others worse."""
    motions = _motions(6, 20.0)
    motions[3].tau[:, 2] = 0.4 * _wave(motions[3], 2, 909, "plain")
    assert _found(motions)[0].orders == ()


def test_seconds_do_not_tell_what_load_and_direction_add() -> None:
    motions = _motions(1, 30.0)
    motions[0].tau[:, 2] = 0.05 * _wave(motions[0], 2, 909, "load") + 0.1 * _wave(motions[0], 2, 909, "drag")
    short = _found(motions)[0]
    assert not np.any(short.load)
    assert not np.any(short.drag)


def test_the_mean_of_both_ends_of_a_period_is_what_is_compared() -> None:
    """909 times 0.3 rad/s at 250 samples per second: 1.1 rad from one to the next, a seventh less in between."""
    motions = _motions(6, 20.0)
    for motion in motions:
        motion.tau[:, 1] = 0.3 * _wave(motion, 1, 909, "plain")
    found = _found(motions)[0]
    assert found.plain[1, found.orders.index(909) * 2] == pytest.approx(0.3, rel=0.02)
