"""How far the links may leave the data sheet: chosen by parts of the logs that the fit did not see."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from tangere.identification.prior import LINK_SIGMA
from tangere.identification.samples import LEAST_WINDOWS, Windows
from tangere.identification.solve import HUBER, Problem, Solution, errors, solved
from tangere.observe.inertial import SIZE

# Relative standard deviations of a link from the data sheet that are tried. Simulated arms whose links are 4 % off are
# predicted by 0.03 no better than by 0.1 (0.5 % over all joints), and an arm 15 % off with contacts in its logs much
# worse; beyond the last, see LINK_SIGMA.
CHOICES = (0.1, LINK_SIGMA)
FOLDS = 4
ROWS = 3000  # windows that are used for the choice, evenly taken: a minute; the choice is clear long before
# Sum over the joints of the logarithm of the squared error by which a wider choice must be better: what two logs of one
# simulated arm differ by (0.5 % per joint).
MARGIN = 0.03
LEAST = 12.0  # s of windows below which a part is too short to judge: the narrowest


def link_freedom(problem: Problem, solution: Solution, links: int) -> float:
    """The relative standard deviation of the links under which unseen parts of the logs are predicted best.

    Four folds inside the logs that are used, whole logs where there are four, else stretches of time; every fold is
    predicted by a fit to the other three (friction and all). Joints count alike: the sum of the logarithms of their
    mean squared errors, each error bounded by Huber's limit, decides, the narrowest
    within MARGIN of the best. Which terms of friction are there is taken from
    the whole, for all choices alike.
    problem, solution: of all rows, the freedom being LINK_SIGMA. links: how many there are.
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
