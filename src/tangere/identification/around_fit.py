"""Around the linear fit: friction that turns round and remembers; links, torque scales, covariance, excitation."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from tangere.identification.model import Excitation
from tangere.identification.prior import LINK_SIGMA, link_prior
from tangere.identification.samples import LEAST_WINDOWS, TERMS, Windows
from tangere.identification.solve import HUBER, Problem, Solution, errors, normal_equations, solved
from tangere.observe.drive_model import WIDTH
from tangere.observe.friction_state import FILM_SPEED, FILM_TRAVEL
from tangere.observe.inertial import SIZE
from tangere.robots import Robot
from tangere.types import Array

# Relative standard deviations of a link from the data sheet that are tried. Simulated arms whose links are 4 % off are
# predicted by 0.03 no better than by 0.1 (0.5 % over all joints), and an arm 15 % off with contacts in its logs much
# worse; beyond the last, see LINK_SIGMA.
CHOICES = (0.1, LINK_SIGMA)
FOLDS = 4
ROWS = 3000  # windows that are used for the choice, evenly taken: a minute; the choice is clear long before
# Sum over the joints of the logarithm of the squared error by which a wider choice must be better: what two logs of one
# simulated arm differ by (0.5 % per joint).
MARGIN = 0.03
LEAST = 12.0  # [s] of windows below which a part is too short to judge: the narrowest
# Relative standard deviation of a link from its data sheet while a payload is sought: half way (in ratio) between the
# exact sheet and the freedom of a fit of links; cables and covers are a few per cent, a forgotten bracket more.
LINKS = 0.1
# Relative standard deviation of a motor's torque constant about the controller's number: made to a few per cent, and
# falling with the temperature of the magnets by 0.1 to 0.2 % per K. On a UR3e the gains of joints 2 to 5 differ by 9 %
# from one another.
SIGMA = 0.03
_ROUNDS = 6  # of Gauss-Newton; the scales change by less than 1e-4 after four
# Wald statistic of the scales together below which all stay 1. With 4 loaded joints it is 4 +- 3 by chance: seven
# standard deviations.
SUPPORT = 25.0
LEAST_LOAD = 0.1  # [Nm] mean |g| below which a joint feels no gravity: its scale stays 1 (the first and the last)
_POSES = 200  # random states: three times as many rows as parameters already give the rank, with certainty
_RANK = 1e-9  # of the largest singular value: rounding is at 1e-14, the weakest real direction of a UR at 1e-4


def chosen_link_sigma(problem: Problem, solution: Solution, links: int) -> float:
    """The relative standard deviation of the links under which unseen parts of the logs are predicted best.

    Four folds inside the logs that are used, whole logs where there are four, else stretches of time; every fold is
    predicted by a fit to the other three (friction and all). Joints count alike: the sum of the logarithms of their
    mean squared errors decides, each error bounded by Huber's limit. The narrowest choice within MARGIN of the best is
    taken. Which terms of friction are there is taken from the whole, for all choices alike.
    problem, solution: of all rows, with LINK_SIGMA. links: how many there are.
    """
    rows, own = problem.rows, slice(0, SIZE * links)
    if len(rows.tau) * rows.period < LEAST:
        return CHOICES[0]
    rows = _taken(rows, np.arange(0, len(rows.tau), -(-len(rows.tau) // ROWS)))
    logs = len(np.unique(rows.log))
    place = rows.log / (rows.log.max() + 1) if logs >= FOLDS else np.arange(len(rows.tau)) / len(rows.tau)
    fold = (place * FOLDS).astype(np.int64)
    limit = 2.0 * HUBER * solution.spread  # one for all: the choices must not differ by it
    lost = []
    for sigma in CHOICES:
        prior = problem.prior.copy()
        prior[own, own] *= (LINK_SIGMA / sigma) ** 2
        total, count = np.zeros(rows.tau.shape[1]), np.zeros(rows.tau.shape[1])
        for k in range(FOLDS):
            part = dataclasses.replace(problem, rows=_taken(rows, np.flatnonzero(fold != k)), prior=prior)
            fitted = solved(part, solution)
            judged = _taken(rows, np.flatnonzero(fold == k))
            error = np.minimum(np.abs(errors(judged, fitted.x)), limit)
            total += np.where(judged.moving, error**2, 0.0).sum(axis=0)
            count += judged.moving.sum(axis=0)
        told = count >= LEAST_WINDOWS
        lost.append(float(np.sum(np.log(np.maximum(total[told], 1e-12) / count[told]))))
    return next(sigma for sigma, cost in zip(CHOICES, lost, strict=True) if cost <= min(lost) + MARGIN)


def _taken(rows: Windows, at: NDArray[np.int64]) -> Windows:
    step = float(at[1] - at[0]) if len(at) > 1 else 1.0
    return dataclasses.replace(
        rows, Y=rows.Y[at], F=rows.F[at], tau=rows.tau[at], moving=rows.moving[at], standing=rows.standing[at],
        log=rows.log[at], period=rows.period * step,
    )  # fmt: skip


def payload_covariance(problem: Problem, solution: Solution, known: Array, link_information: Array) -> Array:
    """Covariance (m, m) of the estimate with what was held fixed, but is not exactly known, considered (Schmidt).

        P + K S K^T,   K = -P A^T W B

    B: the columns of what was not estimated: the links' parameters, of the arm's data +- LINKS, and the gain of each
    joint, +- SIGMA, whose column is the torque of the gravity and inertia that the joint feels. P alone says how well
    the noise lets the payload be told if all else were exact; on a few seconds of data that is a fifth of the truth.
    known (W, n) [Nm]: torque of what was not estimated. link_information (10 n, 10 n): of the links for a relative
    standard deviation of 1.
    """
    rows, P = problem.rows, solution.covariance
    n, terms = rows.F.shape[1:]
    inertial = SIZE * n
    links = slice(0, inertial)
    K = -P @ solution.information[:, links]
    total = P + LINKS**2 * K @ np.linalg.solve(link_information, K.T)
    rigid = rows.Y @ solution.x[links] + known
    for j in range(n):
        moving = rows.moving[:, j]
        column = solution.weights[moving, j] * rigid[moving, j]
        cross = np.zeros(len(P))
        cross[links] = rows.Y[moving, j].T @ column
        cross[inertial + j * terms : inertial + (j + 1) * terms] = rows.F[moving, j].T @ column
        k = P @ cross
        total = total + SIGMA**2 * np.outer(k, k)
    return np.asarray(0.5 * (total + total.T))


def torque_scales(rows: Windows, problem: Problem, solution: Solution, load: Array) -> Array:
    """What reported torque is to be multiplied by (n,), 1 where the logs do not say otherwise.

        tau = (1 + k) Y pi + F f,   k ~ N(0, SIGMA^2),   scale = 1 / (1 + k)

    The load of a link beyond the elbow is seen by several joints, each with its own gain; where these contradict one
    another, and the data sheet, beyond what links may weigh, the gains are at fault. Bilinear in k and pi: a few rounds
    of Gauss-Newton, with the weights of the solution that is given. rows: before a known payload was taken off.
    load (n,) [Nm]: mean |g| of the arm as the solution has it.
    """
    n, terms = rows.F.shape[1:]
    known = rows.tau - problem.rows.tau  # torque of what is not estimated
    at = SIZE * n + np.arange(n) * (terms + 1) + terms  # where the scales are among the numbers
    others = np.setdiff1d(np.arange(SIZE * n + n * (terms + 1)), at)
    x0, prior = np.zeros(len(others) + n), np.zeros((len(others) + n, len(others) + n))
    x0[others] = problem.x0
    prior[np.ix_(others, others)] = problem.prior
    prior[at, at] = 1.0 / SIGMA**2
    free = np.ones(len(x0), dtype=bool)
    free[others] = problem.free
    free[at] = load > LEAST_LOAD
    use, fixed = np.flatnonzero(free), np.flatnonzero(~free)
    x = x0.copy()
    x[others] = solution.x
    k, H = np.zeros(n), prior
    for _ in range(_ROUNDS):
        rigid = known + rows.Y @ x[: SIZE * n]
        F = np.concatenate([rows.F, rigid[:, :, None]], axis=2)
        step = dataclasses.replace(
            rows, Y=rows.Y * (1.0 + k)[:, None], F=F, tau=rows.tau - (1.0 + k) * known + k * rigid
        )  # fmt: skip
        f = x[SIZE * n :].reshape(n, terms + 1)
        error = step.Y @ x[: SIZE * n] + np.einsum("wjt,jt->wj", F, f) - step.tau
        weight = np.minimum(1.0, HUBER * solution.spread / np.maximum(np.abs(error), 1e-12))
        H, b = normal_equations(step, weight / (solution.spread**2 * solution.dependence), len(x))
        H = H + prior
        right = b + prior @ x0 - H[:, fixed] @ x[fixed]
        x[use] = np.linalg.solve(H[np.ix_(use, use)], right[use])
        k = x[at].copy()
    told = np.flatnonzero(np.isin(use, at))
    if len(told) == 0:
        return np.ones(n)
    covariance = np.linalg.inv(H[np.ix_(use, use)])[np.ix_(told, told)]
    value = x[use][told]
    wald = float(value @ np.linalg.solve(covariance, value))
    return 1.0 / (1.0 + k) if wald > SUPPORT else np.ones(n)


def excitation(robot: Robot, rows: Windows, solution: Solution) -> Excitation:
    """The condition number of the (weighted) observations in the space of base parameters, both whitened by the prior.

    A condition number in units of kg and m says nothing; here all parameters are counted in multiples of how far a
    real arm may be from its data sheet.
    """
    return excitation_of(robot, solution.information[: SIZE * robot.dof, : SIZE * robot.dof])


def excitation_of(robot: Robot, information: Array) -> Excitation:
    """The same of any information (10 n, 10 n) about the links' parameters."""
    whiten = _whitening(robot)
    span = base_space(robot, whiten)
    seen = np.linalg.eigvalsh(span.T @ whiten.T @ information @ whiten @ span)
    condition = float(np.sqrt(seen[-1] / seen[0])) if seen[0] > _RANK**2 * seen[-1] else np.inf
    return Excitation(condition, int(np.sum(seen > 1.0)), span.shape[1])


def _whitening(robot: Robot) -> Array:
    """L with pi = mean + L z, z of unit variance before any data."""
    _, information = link_prior(robot.model)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(information)).T)


def base_space(robot: Robot, whiten: Array) -> Array:
    """Orthonormal basis (10 n, r) of the combinations z that any motion can see, from random states."""
    rng = np.random.default_rng(1)  # any: the rank is the same for almost every choice
    q, qd, qdd = rng.uniform(-np.pi, np.pi, (3, _POSES, robot.dof))
    Y = robot.regressor(q, qd, qdd).reshape(-1, SIZE * robot.dof) @ whiten
    _, s, Vt = np.linalg.svd(Y, full_matrices=False)
    return np.asarray(Vt[s > _RANK * s[0]].T)


# [rad/s] a factor of about two from one to the next; the error changes by a few percent between neighbours
WIDTHS = (0.004, 0.008, 0.015, 0.03, 0.06, 0.12)
WIDTH_ROUNDS = 4  # of reweighting, for each width: contacts and stops must not choose it
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
            for _ in range(WIDTH_ROUNDS):
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
