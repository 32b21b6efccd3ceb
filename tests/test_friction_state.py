"""What friction remembers: film and level taken off a residual, step by step, in one go, and learned from windows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tangere.identification.around_fit import SHARE, WORTH, friction_states
from tangere.identification.samples import TERMS, Windows
from tangere.observe.drive_model import DriveModel
from tangere.observe.friction_state import (
    FILM_SPEED,
    FILM_TRAVEL,
    MEMORY,
    MOST,
    FrictionState,
    without_friction_state,
)

N = 3
H = 0.002
ZERO = np.zeros(N)
DRIVE = DriveModel(
    gain=np.ones(N), rotor_inertia=ZERO, coulomb=np.full(N, 3.0), viscous=ZERO, offset=ZERO, quadratic=ZERO, load=ZERO,
    ripple=np.zeros((N, 0)), stiction=ZERO, spread=np.full(N, 0.1), mean_load=ZERO, orders=(),
    film=np.array([0.8, 0.0, 0.3]), level_sigma=np.array([0.2, 0.2, 0.0]), level_noise=np.array([0.01, 0.01, 0.0]),
)  # fmt: skip


def _motion(seconds: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Stamps and velocities: both directions, fast, crawling and standing."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(0.5, 1.5, round(seconds / H)) * H)
    qd = 0.3 * np.sin(2.0 * np.pi * np.outer(time, [0.2, 0.13, 0.31]) + rng.uniform(0.0, 6.0, N))
    qd[(time > 3.0) & (time < 4.0)] *= 0.05
    return time, qd


def test_a_whole_log_is_what_the_steps_give() -> None:
    time, qd = _motion(8.0)
    residual = np.random.default_rng(2).normal(0.0, 0.3, qd.shape)
    residual[700] = np.nan
    state = FrictionState(DRIVE)
    steps = [state.update(h, r, v) for h, r, v in zip(np.diff(time, prepend=np.nan), residual, qd, strict=True)]
    np.testing.assert_array_equal(without_friction_state(DRIVE, time, residual, qd), steps)
    state.reset()
    np.testing.assert_array_equal(state.update(np.nan, residual[0], qd[0]), steps[0])


def test_the_film_is_the_solution_of_its_equation() -> None:
    """At a constant speed w = u (1 - exp(-travel / FILM_TRAVEL)): what is taken off fades with the way."""
    for speed in (0.03, 0.3):
        drive = dataclasses.replace(DRIVE, level_sigma=ZERO)
        time = np.arange(0.0, 0.5 / speed, H)
        qd = np.full((len(time), N), -speed)
        got = without_friction_state(drive, time, np.zeros_like(qd), qd)
        u = np.exp(-speed / FILM_SPEED)
        want = np.outer(u * np.exp(-speed * time / FILM_TRAVEL), drive.film)  # u - w of the film, backwards
        # held for up to 10 ms: 0.03 * 0.01 / 0.08 = 0.4 % of it, at 0.3 rad/s 4 % of next to nothing
        np.testing.assert_allclose(got, want, atol=0.004 * 0.8)


def test_finds_the_level_of_the_day_with_the_gain_of_a_kalman_filter() -> None:
    """The filter's own equations, solved by another: da/dt = P (a_true - a) / R - a / T and Riccati's for P."""
    drive = dataclasses.replace(DRIVE, film=ZERO)
    level, seconds = 0.15, 3.0
    time = np.arange(0.0, seconds, H)
    qd = np.full((len(time), N), 0.2)
    state = FrictionState(drive)
    for h in np.diff(time, prepend=np.nan):
        left = state.update(h, np.full(N, -level), qd[0])
    from scipy.integrate import solve_ivp

    def filtered(_: float, y: np.ndarray) -> list[float]:
        a, P = y
        return [P / 0.01 * (level - a) - a / MEMORY, -P * P / 0.01 + 2.0 * (0.04 - P) / MEMORY]

    a, P = solve_ivp(filtered, (0.0, seconds), [0.0, 0.04], rtol=1e-8).y[:, -1]
    # steps of 10 ms: forgetting in a line, and up to 10 ms that were not looked at yet
    np.testing.assert_allclose(state.level[:2], a, rtol=0.005)
    np.testing.assert_allclose(state.sigma[:2] ** 2, P, rtol=0.005)
    assert 0.85 * level < a < 0.95 * level
    np.testing.assert_allclose(left, -level + state.level, atol=1e-3)
    assert state.level[2] == state.sigma[2] == 0.0  # no spread, nothing to learn
    # the same friction on the way back is of the other sign
    back = state.update(H, np.full(N, level), -qd[0])
    np.testing.assert_allclose(back[:2], level - state.level[:2], atol=1e-3)
    other = FrictionState(drive)
    for h in np.diff(time, prepend=np.nan):
        other.update(h, np.full(N, level), -qd[0])
    np.testing.assert_allclose(other.level[:2], a, rtol=0.005)


def test_a_push_is_hardly_learned() -> None:
    drive = dataclasses.replace(DRIVE, film=ZERO)
    state = FrictionState(drive)
    qd = np.full(N, 0.2)
    for _ in range(5000):
        state.update(H, ZERO, qd)
    before = state.level.copy()
    for _ in range(500):  # a push of 4 Nm for 1 s
        state.update(H, np.full(N, 4.0), qd)
    taken = np.abs(state.level - before)[:2]
    assert np.all((taken > 0.0) & (taken < 0.025 * 4.0))  # P / R = 0.36/s of at most 2 sqrt(P + spread^2) = 0.23 Nm
    for _ in range(10_000):  # for 200 s
        state.update(10.0 * H, np.full(N, 4.0), qd)
    np.testing.assert_allclose(state.level[:2], -MOST * drive.level_sigma[:2])
    held = state.level.copy()
    state.update(10.0 * H, np.full(N, -4.0), qd, hold=True)
    np.testing.assert_allclose(state.level, held * (1.0 - 10.0 * H / MEMORY))


@pytest.mark.parametrize("what", ["standing", "gap", "nan", "nan speed"])
def test_what_teaches_nothing(what: str) -> None:
    state = FrictionState(DRIVE)
    qd = np.full(N, {"standing": 0.01, "nan speed": np.nan}.get(what, 0.2))
    residual = np.full(N, np.nan if what == "nan" else 0.5)
    for _ in range(100):
        state.update(1.0 if what == "gap" else H, residual, qd)
    np.testing.assert_array_equal(state.level, ZERO)
    assert np.all(np.isfinite(state.update(10.0 * H, np.ones(N), np.ones(N))))


def test_without_film_and_level_the_residual_is_handed_back() -> None:
    state = FrictionState(dataclasses.replace(DRIVE, film=ZERO, level_sigma=ZERO))
    residual = np.ones(N)
    assert state.idle
    assert state.update(H, residual, np.ones(N)) is residual


def _windows(logs: int, level: float, film: float, seed: int) -> tuple[Windows, np.ndarray, np.ndarray]:
    """Windows of logs at speeds of their own, what a fit leaves of them, and the levels that were drawn."""
    rng = np.random.default_rng(seed)
    period, count = 0.02, 600
    speed = rng.choice([-1.0, 1.0], (logs, 1)) * rng.choice([0.03, 0.05, 0.1, 0.3], (logs, 1)) * np.ones((1, count))
    drawn = rng.normal(0.0, level, logs)
    u, travel = np.exp(-np.abs(speed) / FILM_SPEED), np.abs(speed) * period * np.arange(1, count + 1)
    more = drawn[:, None] - film * u * np.exp(-travel / FILM_TRAVEL) + rng.normal(0.0, 0.05, speed.shape)
    flat = speed.reshape(-1, 1)
    F = np.zeros((len(flat), 1, len(TERMS)))
    F[:, :, TERMS.index("viscous")] = flat
    rows = Windows(
        np.zeros((len(flat), 1, 10)), F, np.zeros_like(flat), np.ones_like(flat, dtype=bool),
        np.zeros_like(flat, dtype=bool), np.repeat(np.arange(logs), count), period, np.zeros(1),
    )  # fmt: skip
    return rows, -(more * np.sign(speed)).reshape(-1, 1), drawn


def test_learns_film_level_and_noise_from_what_a_fit_leaves() -> None:
    rows, error, drawn = _windows(40, 0.1, 0.5, 3)
    film, sigma, noise = friction_states(rows, error, np.array([0.2]), np.array([3.0]))
    # levels of the logs, 0.1 Nm, are noise of the film: 40 of them, half at speeds that see it
    assert film[0] == pytest.approx(0.5, abs=0.1)
    known = (SHARE * 3.0) ** 2
    want = np.sqrt((WORTH * known + np.sum(drawn**2)) / (WORTH + 39))
    assert sigma[0] == pytest.approx(want, rel=0.1)
    # white noise of 0.05 Nm in windows of 20 ms, and what a film that is a little off leaves
    assert 0.8 * 0.05**2 * 0.02 < noise[0] < 10.0 * 0.05**2 * 0.02


def test_finds_no_film_where_there_is_none_and_believes_the_type_of_a_single_log() -> None:
    found = [friction_states(*_windows(10, 0.1, 0.0, seed)[:2], np.array([0.2]), np.array([3.0])) for seed in range(10)]
    assert sum(film[0] > 0.0 for film, _, _ in found) <= 1
    rows, error, _ = _windows(1, 0.0, 0.0, 5)
    _, sigma, _ = friction_states(rows, error, np.array([0.2]), np.array([3.0]))
    assert sigma[0] == pytest.approx(SHARE * 3.0, rel=0.05)
