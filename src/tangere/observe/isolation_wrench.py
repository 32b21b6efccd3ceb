"""The wrench at the tool that a residual stands for, where the posture lets it be told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.robots import Robot
from tangere.types import Array

# N and Nm (standard deviation): a wrench that is not known this well in its worst direction is not given. A touch of
# some tens of N is then known to a third or better; near a singularity the figures grow without bound.
FORCE_SD_MAX = 10.0
MOMENT_SD_MAX = 1.0


@dataclass(frozen=True, slots=True)
class ToolWrench:
    """Force and moment of the environment on the robot at the tcp, base axes."""

    wrench: Array  # (6,) N, Nm
    covariance: Array  # (6, 6)


def tool_wrench(robot: Robot, q: Array, residual: Array, covariance: Array) -> ToolWrench | None:
    """The wrench w with J^T w = residual, by weighted least squares at the tcp; None where the posture does not allow.

        w = (J S^-1 J^T)^-1 J S^-1 r,   covariance (J S^-1 J^T)^-1

    q (n,), residual (n,) [Nm], covariance S (n, n) [Nm2]. Right only if nothing else is touched. None with fewer than
    six joints, near a singularity, and wherever the noise leaves more than FORCE_SD_MAX or MOMENT_SD_MAX in the worst
    direction.
    """
    if robot.dof < 6:
        return None
    J = robot.jacobian(q)
    weighted = np.linalg.solve(covariance, J.T)  # (n, 6) S^-1 J^T
    information = J @ weighted
    scale = np.repeat((1.0 / FORCE_SD_MAX, 1.0 / MOMENT_SD_MAX), 3)  # so that both limits read: eigenvalues >= 1
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    if values[0] < 1.0:
        return None
    spread = (vectors / values) @ vectors.T / np.outer(scale, scale)
    return ToolWrench(spread @ (weighted.T @ residual), spread)
