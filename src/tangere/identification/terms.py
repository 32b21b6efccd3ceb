"""Terms of a drive's friction around the linear fit: how Coulomb friction turns round, and what friction remembers."""

from __future__ import annotations

import numpy as np

from tangere.identification.samples import LEAST_WINDOWS, TERMS, Windows
from tangere.identification.solve import HUBER, Solution
from tangere.observe.drive_model import WIDTH
from tangere.observe.friction_state import FILM_SPEED, FILM_TRAVEL
from tangere.observe.inertial import SIZE
from tangere.types import Array

# [rad/s] a factor of about two from one to the next; the error changes by a few percent between neighbours
WIDTHS = (0.004, 0.008, 0.015, 0.03, 0.06, 0.12)
_ROUNDS = 4  # of reweighting, for each width: contacts and stops must not choose it
_BETTER = 0.98  # a width other than the default must leave less than this share of the cost
_RIDGE = 1e-6  # of the largest column's square: only against columns that a log leaves at zero
# Standard deviation of Coulomb friction from log to log before any log is read, as a share of it: six joints of a UR3e
# had 2 to 4.5 % over 40 runs, two logs of a UR10e differ by 7 to 13 % in its wrists.
SHARE = 0.08
WORTH = 4.0  # logs that this counts for: fewer say little about a spread
BLOCK = 2.0  # [s] what is left after identification repeats itself for 1 to 3 s (40 runs of a UR3e)
CLIP = 3.0  # standard deviations of a window that count: contacts and stops are no friction
FILM_SUPPORT = 5.0  # standard deviations that a film must be away from 0, as for the optional terms of friction


def coulomb_widths(rows: Windows, solution: Solution) -> Array:
    """The width (n,) [rad/s] that leaves the least of each joint's torque, its other terms fitted anew for each."""
    n, terms = rows.F.shape[1:]
    rest = rows.tau - rows.Y @ solution.x[: SIZE * n]
    best = np.full(n, WIDTH)
    coulomb, viscous, load = (TERMS.index(name) for name in ("coulomb", "viscous", "load"))
    for j in range(n):
        moving = rows.moving[:, j]
        if moving.sum() < LEAST_WINDOWS:
            continue
        F, target = rows.F[moving, j].copy(), rest[moving, j]
        sign, carried = F[:, coulomb].copy(), F[:, load].copy()
        lost: dict[float, float] = {}
        for width in WIDTHS:
            turned = np.tanh(F[:, viscous] / width)  # the velocity itself is the viscous column
            F[:, coulomb] = turned
            F[:, load] = carried * np.divide(turned, sign, out=np.ones_like(sign), where=sign != 0.0)
            scale = np.abs(F).max(axis=0) + 1e-12
            A = F / scale
            weight, limit = np.ones(len(A)), HUBER * solution.spread[j]
            for _ in range(_ROUNDS):
                W = A * weight[:, None]
                x = np.linalg.solve(W.T @ A + _RIDGE * len(A) * np.eye(terms), W.T @ target)
                size = np.abs(A @ x - target)
                weight = np.minimum(1.0, limit / np.maximum(size, 1e-12))
            lost[width] = float(np.sum(np.where(size < limit, 0.5 * size**2, limit * (size - 0.5 * limit))))
        choice = min(lost, key=lost.__getitem__)
        if lost[choice] < _BETTER * lost[WIDTH]:
            best[j] = choice
    return best


def friction_states(rows: Windows, error: Array, spread: Array, friction: Array) -> tuple[Array, Array, Array]:
    """film, level_sigma (n,) [Nm] and level_noise (n,) [Nm2 s] of a DriveModel.

        film    = sum x e / sum x^2          x = w - u of FrictionState, e: what is left, against the motion; both less
                                             their means over a log, which are its level
        sigma^2 = (WORTH (SHARE friction)^2 + sum_k (m_k^2 - noise / t_k)) / (WORTH + logs - 1)

    m_k: mean of what film leaves of log k, t_k [s]: how long the joint moved in it; noise: variance of means over BLOCK
    seconds about m_k, times BLOCK. error (W, n): model less measured torque [Nm] of the windows, spread (n,) [Nm] of it
    while moving, friction (n,) [Nm]. A film less than FILM_SUPPORT standard deviations from 0, or negative, is 0.
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
        if value * np.sqrt(power * rows.period) > FILM_SUPPORT * np.sqrt(_noise(left, rows.period, spread[j])):
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
