"""Robust weighted least squares whose answer is a set of bodies and drives that can exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.samples import Windows
from tangere.observe.inertial import SIZE, pseudo_inertia_basis
from tangere.types import Array

HUBER = 1.345  # standard deviations: costs 5 % of efficiency for normal errors, bounds the pull of contacts and stops
ROUNDS = 6  # of reweighting; in the last the spread of a joint changes by at most 3 % (recordings of UR10 and UR3e)
BLOCK = 1.0  # [s] over which errors of neighbouring windows are taken as dependent
# Weight of the logarithmic barrier at the end, in units of chi^2 / 2: with 4 eigenvalues per link and 3 positive
# numbers per joint the cost of staying inside is below 42 * 0.01 = 0.4, less than the statistics can tell.
BARRIERS = (1.0, 0.1, 0.01)
NEWTON_STEPS = 60  # per barrier; 24 to 56 for all three together were seen
NEWTON_DONE = 1e-8  # half the squared decrement, in units of chi^2 / 2
# [Nm] smallest spread that a joint is given: the resolution of a UR's current times its gain. A simulated log without
# noise would otherwise be weighted without bound.
LEAST_SPREAD = 1e-3
_ROUNDING = 1e-13  # of the cost: a decrement below is not seen in a difference of two costs
BLOCKS = 12  # parts of a log that are in or out together: a touch is some of them, not single samples
CHOSEN = 4  # of them in one trial: together they excite, and with a third of the log touched one trial in seven is free
TRIALS = 60  # so that 1 in 10000 logs touched for a third of its time has no free trial
QUANTILE = 0.6  # of |error| that a trial is judged by: up to four tenths of the log may be touched
# Share of the plain fit's error below which a trial replaces it: friction that the terms do not describe makes some
# parts of every real log fit better than others, but not by this much; a long touch does. Not calibrated
CLEARLY = 0.4
OUTSIDE = 6.0  # standard deviations from which on a sample does not belong to the rest
FLOOR = 0.5  # [Nm] below, nothing is called an error; quantisation and unmodelled inertia are of that size


@dataclass(frozen=True)
class Problem:
    """min 1/2 |(A x - b) / s|_huber^2 + 1/2 (x - x0)^T prior (x - x0), bodies > 0, positive entries > 0."""

    rows: Windows
    x0: Array  # (m,) inertial parameters of all links, then the terms of each joint
    prior: Array  # (m, m)
    free: NDArray[np.bool_]  # (m,) what may change
    positive: NDArray[np.int64]  # entries that must stay above `floor`
    floor: Array  # (len(positive),)
    bodies: range  # links whose pseudo-inertia must stay positive definite: the first ones, all or none


@dataclass(frozen=True)
class Solution:
    """The estimate, its covariance, and what it leaves."""

    x: Array
    covariance: Array  # (m, m), zero where not free; the prior included
    information: Array  # (m, m), of the data alone
    spread: Array  # (n,) [Nm], robust standard deviation of the windows while moving
    dependence: Array  # (n,) how many neighbouring windows are worth one independent one
    weights: Array  # (W, n) of the windows in the information


def solved(problem: Problem, start: Solution | None = None) -> Solution:
    """Iteratively reweighted least squares; every round is a convex problem solved to the end.

    Raises InvalidValue where numbers of the log are such that nothing can be solved.
    start: the solution of a problem much like this one; two rounds are then enough.
    """
    try:
        return _solved(problem, start)
    except np.linalg.LinAlgError:
        most = ", ".join(f"{value:.3g}" for value in np.abs(problem.rows.tau).max(axis=0))
        raise InvalidValue(
            f"no model explains these logs (largest torque of each joint: {most} Nm): look for spikes and wrong columns"
        ) from None


def _solved(problem: Problem, start: Solution | None) -> Solution:
    rows = problem.rows
    n = rows.tau.shape[1]
    x = problem.x0.copy() if start is None else start.x.copy()
    spread, dependence = np.ones(n), np.ones(n)
    weights = np.ones(rows.tau.shape)
    H, b = np.zeros((len(x), len(x))), np.zeros(len(x))
    for turn in range(ROUNDS if start is None else 2):
        if turn > 0 or start is not None:
            error = errors(rows, x)
            for j in range(n):
                spread[j], dependence[j] = spread_of(error[:, j], rows, j)
            weights = np.minimum(1.0, HUBER * spread / np.maximum(np.abs(error), 1e-12))
        H, b = normal_equations(rows, weights / (spread**2 * dependence), len(x))
        x = _minimum(problem, H, b, x)
    free = np.flatnonzero(problem.free)
    covariance = np.zeros_like(H)
    inverse = np.linalg.inv((H + problem.prior)[np.ix_(free, free)])
    covariance[np.ix_(free, free)] = 0.5 * (inverse + inverse.T)
    return Solution(x, covariance, H, spread, dependence, weights / (spread**2 * dependence))


def errors(rows: Windows, x: Array) -> Array:
    """Y pi + F f - tau (W, n) [Nm]."""
    n, terms = rows.F.shape[1:]
    f = x[SIZE * n :].reshape(n, terms)
    return np.asarray(rows.Y @ x[: SIZE * n] + np.einsum("wjt,jt->wj", rows.F, f) - rows.tau)


def spread_of(error: Array, rows: Windows, joint: int) -> tuple[float, float]:
    """Robust standard deviation of a joint's errors while moving, and the factor by which neighbours repeat."""
    moving = rows.moving[:, joint]
    if not np.any(moving):
        return 1.0, 1.0
    e = error[moving]
    s = max(1.4826 * float(np.median(np.abs(e))), LEAST_SPREAD)  # of a normal distribution
    size = max(1, round(BLOCK / rows.period))
    clipped = np.clip(e, -3.0 * s, 3.0 * s)
    count = len(e) // size
    if count < 3:
        return s, float(size)
    sums = clipped[: count * size].reshape(count, size).sum(axis=1)
    return s, float(np.clip(np.mean(sums**2) / (size * np.mean(clipped**2)), 1.0, size))


def normal_equations(rows: Windows, weights: Array, m: int) -> tuple[Array, Array]:
    """A^T W A (m, m) and A^T W b (m,) of all rows in which the joint moves; weights (W, n)."""
    n, terms = rows.F.shape[1:]
    H, b = np.zeros((m, m)), np.zeros(m)
    inertial = slice(0, SIZE * n)
    for j in range(n):
        moving = rows.moving[:, j]
        own = slice(SIZE * n + j * terms, SIZE * n + (j + 1) * terms)
        Y, F, w = rows.Y[moving, j], rows.F[moving, j], weights[moving, j]
        weighted, target = F * w[:, None], rows.tau[moving, j]
        H[inertial, inertial] += Y.T @ (Y * w[:, None])
        H[own, own] += F.T @ weighted
        cross = Y.T @ weighted
        H[inertial, own] += cross
        H[own, inertial] += cross.T
        b[inertial] += Y.T @ (w * target)
        b[own] += weighted.T @ target
    return H, b


def _minimum(problem: Problem, H: Array, b: Array, start: Array) -> Array:
    """Newton's method on the quadratic with a logarithmic barrier, from a point inside."""
    A = H + problem.prior
    target = b + problem.prior @ problem.x0
    free = np.flatnonzero(problem.free)
    x = start.copy()
    for mu in BARRIERS:
        for _ in range(NEWTON_STEPS):
            gradient, hessian = _barrier(problem, x)
            slope = (A @ x - target + mu * gradient)[free]
            curvature = (A + mu * hessian)[np.ix_(free, free)]
            scale = 1.0 / np.sqrt(np.diag(curvature))  # columns of ripple and of mass differ by 1e6
            step = -scale * np.linalg.solve(curvature * np.outer(scale, scale), scale * slope)
            decrement = float(-slope @ step)
            if decrement < 2.0 * NEWTON_DONE:
                break
            # damped inside the region where the quadratic model of the barrier holds (self-concordance), full after
            length = 1.0
            here = _cost(problem, A, target, x, mu)
            if decrement < _ROUNDING * abs(here):
                break  # no descent left that could be told from rounding
            for _ in range(40):
                trial = x.copy()
                trial[free] += length * step
                if _cost(problem, A, target, trial, mu) <= here - 0.25 * length * decrement:
                    break
                length *= 0.5
            else:
                break  # no descent left within rounding
            x = trial
    return x


def _inside(problem: Problem, x: Array) -> tuple[Array, Array]:
    """Pseudo-inertias (bodies, 4, 4), and how far the positive entries are above their floor."""
    own = x[: SIZE * len(problem.bodies)] if len(problem.bodies) else x[:0]
    return np.tensordot(own.reshape(-1, SIZE), pseudo_inertia_basis(), axes=1), x[problem.positive] - problem.floor


def _cost(problem: Problem, A: Array, target: Array, x: Array, mu: float) -> float:
    bodies, slack = _inside(problem, x)
    if np.any(slack <= 0.0):
        return np.inf
    try:
        roots = np.linalg.cholesky(bodies)
    except np.linalg.LinAlgError:  # some body cannot exist
        return np.inf
    total = -float(np.log(slack).sum()) - 2.0 * float(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum())
    return 0.5 * float(x @ A @ x) - float(target @ x) + mu * total


def _barrier(problem: Problem, x: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of -sum log det P_i - sum log x_k."""
    gradient, hessian = np.zeros(len(x)), np.zeros((len(x), len(x)))
    bodies, slack = _inside(problem, x)
    gradient[problem.positive] -= 1.0 / slack
    hessian[problem.positive, problem.positive] += 1.0 / slack**2
    for i, inverse in enumerate(np.linalg.inv(bodies)):
        steps = inverse @ pseudo_inertia_basis()
        own = slice(SIZE * i, SIZE * (i + 1))
        gradient[own] -= np.trace(steps, axis1=1, axis2=2)
        hessian[own, own] += np.einsum("kab,lba->kl", steps, steps)
    return gradient, hessian


def agreed(A: Array, b: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """x of b = A x as most rows have it, the rows that belong to it, and the standard error of x.

    Least squares, unless parts of the log (blocks of neighbours) lead to a solution that leaves a CLEARLY smaller
    error in QUANTILE of all rows: then least squares of the rows within OUTSIDE standard deviations of that one.
    The error of x counts neighbours as dependent: sums over blocks (sandwich).
    """
    rows = len(b)
    block = np.arange(rows) * BLOCKS // max(rows, 1)
    size = np.linalg.norm(A, axis=0)
    S = A / np.where(size > 0.0, size, 1.0)
    x = np.linalg.lstsq(S, b, rcond=None)[0]
    inside: NDArray[np.bool_] = np.ones(rows, dtype=bool)
    plain = max(float(np.quantile(np.abs(b - S @ x), QUANTILE)), 1e-12)
    random = np.random.default_rng(0)  # the same trials every time
    best, found = plain, None
    H = np.stack([S[block == k].T @ S[block == k] for k in range(BLOCKS)])
    g = np.stack([S[block == k].T @ b[block == k] for k in range(BLOCKS)])
    ridge = 1e-9 * np.eye(A.shape[1])  # a part without any change of one column leaves its number at zero
    for _ in range(TRIALS):
        k = random.choice(BLOCKS, CHOSEN, replace=False)
        trial = np.linalg.solve(H[k].sum(axis=0) + ridge, g[k].sum(axis=0))
        error = float(np.quantile(np.abs(b - S @ trial), QUANTILE))
        if error < best:
            best, found = error, trial
    # 0.84: the 0.6-quantile of |e| of a normal distribution, in standard deviations
    if found is not None and plain > FLOOR and best < CLEARLY * plain:
        for _ in range(3):  # rows that belong, and the fit of them
            scale = max(float(np.quantile(np.abs(b - S @ found), QUANTILE)) / 0.84, FLOOR / OUTSIDE)
            inside = np.asarray(np.abs(b - S @ found) <= OUTSIDE * scale)
            found = np.linalg.lstsq(S[inside], b[inside], rcond=None)[0]
        x = found
    left = np.where(inside, b - S @ x, 0.0)
    sums = np.stack([S[block == k].T @ left[block == k] for k in range(BLOCKS)])
    inverse = np.linalg.pinv(S[inside].T @ S[inside] + ridge)
    # a fit of p numbers makes the sums of few blocks smaller than they are
    fewer = BLOCKS / (BLOCKS - A.shape[1])
    sigma = np.sqrt(fewer * np.maximum(np.diag(inverse @ (sums.T @ sums) @ inverse), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    return np.asarray(x / unit), inside, np.asarray(sigma / unit)
