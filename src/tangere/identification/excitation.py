"""How exciting a motion was: which combinations of inertial parameters it can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.identification.prior import link_prior
from tangere.identification.samples import Windows
from tangere.identification.solve import Solution
from tangere.observe.inertial import SIZE
from tangere.robots import Robot
from tangere.types import Array

_POSES = 200  # random states: three times as many rows as parameters already give the rank, with certainty
_RANK = 1e-9  # of the largest singular value: rounding is at 1e-14, the weakest real direction of a UR at 1e-4


@dataclass(frozen=True)
class Excitation:
    """Base parameters: combinations of link parameters that move the joints at all, and those that this motion told."""

    condition: float  # ratio of the best to the worst seen of the base parameters, in units of their prior
    told: int  # base parameters for which the data say more than the data sheet
    base: int  # base parameters that any motion can tell


def excitation(robot: Robot, rows: Windows, solution: Solution) -> Excitation:
    """The condition number of the (weighted) observations in the space of base parameters, both whitened by the prior.

    A condition number in units of kg and m says nothing; here all parameters are counted in multiples of how far a
    real arm may be from its data sheet.
    """
    whiten = _whitening(robot)
    span = base_space(robot, whiten)
    information = solution.information[: SIZE * robot.dof, : SIZE * robot.dof]
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
