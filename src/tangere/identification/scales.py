"""How far the true torque of each joint is from what its gain says: gravity, seen by several joints, tells."""

from __future__ import annotations

import dataclasses

import numpy as np

from tangere.identification.samples import Windows
from tangere.identification.solve import HUBER, Problem, Solution, normal_equations
from tangere.observe.inertial import SIZE
from tangere.types import Array

# Relative standard deviation of a motor's torque constant about the controller's number: made to a few per cent, and
# falling with the temperature of the magnets by 0.1 to 0.2 % per K. On a UR3e the gains of joints 2 to 5 differ by 9 %
# from one another.
SIGMA = 0.03
_ROUNDS = 6  # of Gauss-Newton; the scales change by less than 1e-4 after four
# Wald statistic of the scales together below which all stay 1. With 4 loaded joints it is 4 +- 3 by chance: seven
# standard deviations.
SUPPORT = 25.0
LEAST_LOAD = 0.1  # Nm, mean |g| below which a joint feels no gravity: its scale stays 1 (the first and the last)


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
