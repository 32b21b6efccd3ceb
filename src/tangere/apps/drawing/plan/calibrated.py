"""Inverse kinematics of many poses at once for factory-calibrated URs too, which have no closed form of their own.

A calibrated arm differs from its nominal twin by millimetres: the twin's closed form gives every branch, and Newton's
method on all poses together does the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.kernels import ur
from tangere.kinematics.rotation import rotation_error
from tangere.robots import Robot
from tangere.types import Array

# From an error of 1e-2 (mm and mrad of a calibration) Newton's method needs 1e-4, 1e-8, 1e-16; one more for safety
STEPS = 5
# m and rad: what is left where it has converged, and the largest step [rad] that is still a correction
LEFT, STEP_MAX = 1e-9, 0.5


def closed_form(robot: Robot) -> Robot:
    """The arm whose closed form is used: the nominal twin of a calibrated UR, else the arm itself."""
    nominal = robot._nominal
    return Robot(nominal) if nominal is not None and not ur.is_ur(robot.model) else robot


def polished(robot: Robot, T: Array, q: Array) -> tuple[Array, NDArray[np.bool_]]:
    """q (k, 6) with pose(q) = T (k, 4, 4), from near ones, and where that was reached: q += J^-1 (T - pose(q))."""
    q = q.copy()
    error = _error(robot, T, q)
    for _ in range(STEPS):
        J = robot.jacobian(q)
        regular = np.abs(np.linalg.det(J)) > 1e-9  # near singularities the pose is left as it is, and said to be missed
        step = np.zeros_like(q)
        step[regular] = np.linalg.solve(J[regular], error[regular][:, :, None])[:, :, 0]
        q += np.where(np.abs(step).max(axis=1, keepdims=True) < STEP_MAX, step, 0.0)
        error = _error(robot, T, q)
        if np.abs(error).max(initial=0.0) < LEFT:
            break
    return q, np.asarray(np.abs(error).max(axis=1) < LEFT)


def _error(robot: Robot, T: Array, q: Array) -> Array:
    """(k, 6) what is missing: position [m], then rotation vector [rad], base axes."""
    here = robot.pose(q)
    return np.concatenate([T[:, :3, 3] - here[:, :3, 3], rotation_error(T[:, :3, :3], here[:, :3, :3])], axis=1)
