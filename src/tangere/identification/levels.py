"""Film and level of friction from what a fit leaves: what FrictionState starts from."""

from __future__ import annotations

import numpy as np

from tangere.identification.samples import LEAST_WINDOWS, TERMS, Windows
from tangere.observe.friction_state import FILM_SPEED, FILM_TRAVEL
from tangere.types import Array

# Standard deviation of Coulomb friction from log to log before any log is read, as a share of it: six joints of a UR3e
# had 2 to 4.5 % over 40 runs, two logs of a UR10e differ by 7 to 13 % in its wrists.
SHARE = 0.08
WORTH = 4.0  # logs that this counts for: fewer say little about a spread
BLOCK = 2.0  # s: what is left after identification repeats itself for 1 to 3 s (40 runs of a UR3e)
CLIP = 3.0  # standard deviations of a window that count: contacts and stops are no friction
SUPPORT = 5.0  # standard deviations that a film must be away from 0, as for the optional terms of friction


def friction_states(rows: Windows, error: Array, spread: Array, friction: Array) -> tuple[Array, Array, Array]:
    """film, level_sigma (n,) [Nm] and level_noise (n,) [Nm2 s] of a DriveModel.

        film    = sum x e / sum x^2          x = w - u of FrictionState, e: what is left, against the motion; both less
                                             their means over a log, which are its level
        sigma^2 = (WORTH (SHARE friction)^2 + sum_k (m_k^2 - noise / t_k)) / (WORTH + logs - 1)

    m_k: mean of what film leaves of log k, t_k [s]: how long the joint moved in it; noise: variance of means over BLOCK
    seconds about m_k, times BLOCK. error (W, n): model less measured torque [Nm] of the windows, spread (n,) [Nm] of it
    while moving, friction (n,) [Nm]. A film that is less than SUPPORT standard deviations from 0, or negative, is 0.
    """
    n = error.shape[1]
    speed = rows.F[:, :, TERMS.index("viscous")]  # the velocity itself
    more = -np.clip(error, -CLIP * spread, CLIP * spread) * np.sign(speed)
    lag = _lag(np.abs(speed), rows)
    film, sigma, noise = np.zeros(n), np.empty(n), np.empty(n)
    for j in range(n):
        each = [rows.moving[:, j] & (rows.log == k) for k in np.unique(rows.log)]
        each = [own for own in each if own.sum() >= LEAST_WINDOWS]
        e, x = [more[own, j] for own in each], [lag[own, j] for own in each]
        power = sum(float(np.sum((part - part.mean()) ** 2)) for part in x)
        value = sum(float((b - b.mean()) @ a) for a, b in zip(e, x, strict=True)) / max(power, 1e-12)
        left = [a - value * b for a, b in zip(e, x, strict=True)]
        if value * np.sqrt(power * rows.period) > SUPPORT * np.sqrt(_noise(left, rows.period, spread[j])):
            film[j], e = value, left
        noise[j] = _noise(e, rows.period, spread[j])
        seen = sum(float(part.mean()) ** 2 - noise[j] / (len(part) * rows.period) for part in e)
        known = WORTH * (SHARE * friction[j]) ** 2
        sigma[j] = np.sqrt((known + max(seen, 0.0)) / (WORTH + max(len(e) - 1, 0)))
    return film, sigma, noise


def _noise(logs: list[Array], period: float, spread: float) -> float:
    """Nm2 s: of means over BLOCK seconds about those of the whole logs."""
    size = max(1, round(BLOCK / period))
    blocks = [
        (e[: len(e) // size * size] - e.mean()).reshape(-1, size).mean(axis=1) for e in logs if len(e) >= 2 * size
    ]
    freedom = sum(len(block) - 1 for block in blocks)  # a log's mean is taken off its own blocks
    square = sum(float(block @ block) for block in blocks) / freedom if freedom else float(spread) ** 2
    return square * size * period


def _lag(speed: Array, rows: Windows) -> Array:
    """w - u (W, n) of FrictionState, window by window: a window is short against the film's travel."""
    want = np.exp(-speed / FILM_SPEED)
    part = np.minimum(speed * (rows.period / FILM_TRAVEL), 1.0) * (~rows.standing)
    out = np.empty_like(want)
    thin = np.zeros(speed.shape[1])
    for k in range(len(want)):
        if k == 0 or rows.log[k] != rows.log[k - 1]:
            thin = np.zeros(speed.shape[1])
        thin = thin + part[k] * (want[k] - thin)
        out[k] = thin - want[k]
    return out
