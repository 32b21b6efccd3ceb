"""What a payload's uncertainty owes to the links and gains that were taken as known."""

from __future__ import annotations

import numpy as np

from tangere.identification.scales import SIGMA
from tangere.identification.solve import Problem, Solution
from tangere.observe.inertial import SIZE
from tangere.types import Array

# Relative standard deviation of a link from its data sheet while a payload is sought: half way (in ratio) between the
# exact sheet and the freedom of a fit of links; cables and covers are a few per cent, a forgotten bracket more.
LINKS = 0.1


def considered(problem: Problem, solution: Solution, known: Array, link_information: Array) -> Array:
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
