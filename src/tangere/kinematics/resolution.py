"""Joint velocities for wanted tool velocities: inverses, damping near singularities, null space, several tasks.

Everywhere w = J qd with J (..., m, n), qd (..., n), w (..., m); batch axes lead. 003 calls the damped inverse
"Moore-Penrose" and writes w with a dot; here `pseudo_inverse` is Moore-Penrose and `damped_inverse` is not, because
a damped inverse must never be used for a null-space projector: J (I - J^D J) is not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked

# Singular values below this count as zero. It is ABSOLUTE (J of an arm has entries of order 1): a tolerance relative
# to the largest value blows up when J N is all noise. 1e-6 would ask for 1e6 rad/s per m/s, which no arm has.
TOLERANCE = 1e-6
# Damping schedule. With both numbers equal to t the gain of the weakest direction is s/(s^2 + lam^2) = s/t^2 inside:
# continuous, at most 1/t = 25 rad/s per m/s, so that 0.1 m/s (contact work) stays within what a UR turns (3.1 rad/s).
THRESHOLD = 0.04
DAMPING_MAX = 0.04


@dataclass(frozen=True)
class Task:
    """One wish: J qd = w, and for `weighted` how much it counts."""

    J: Array  # (..., m, n)
    w: Array  # (..., m) m/s, rad/s or whatever the rows of J give
    weight: float = 1.0  # > 0; only ratios matter, and only in `weighted`


def pseudo_inverse(J: ArrayLike, tolerance: float = TOLERANCE) -> Array:
    """Moore-Penrose J^+ (..., n, m): least squares, shortest qd. Singular values below `tolerance` are dropped.

    Jumps where a singular value crosses the tolerance: along a motion through singularities use `damped_inverse`.
    """
    J = checked(J, (None, None), "J")
    return _inverse(J, np.zeros(J.shape[:-2]), _positive(tolerance, "tolerance"))


def damped_inverse(J: ArrayLike, damping: ArrayLike | None = None) -> Array:
    """J^T (J J^T + lam^2 I)^-1 = (J^T J + lam^2 I)^-1 J^T (..., n, m): trades tracking error against joint speed.

    damping lam (...) >= 0, in the unit of J; None takes `damping_schedule`, which is zero away from singularities.
    |J^D| <= 1/(2 lam). With lam = 0 it is the Moore-Penrose inverse.
    """
    J = checked(J, (None, None), "J")
    lam = damping_schedule(J) if damping is None else checked(damping, (), "damping")
    if np.any(lam < 0.0):
        raise InvalidValue(f"damping: must not be negative, got {np.min(lam):g}")
    return _inverse(J, np.broadcast_to(lam, J.shape[:-2]), TOLERANCE)


def damping_schedule(J: ArrayLike, threshold: float = THRESHOLD, damping_max: float = DAMPING_MAX) -> Array:
    """lam (...): 0 where sigma_min >= threshold, else lam^2 = damping_max^2 (1 - (sigma_min/threshold)^2).

    sigma_min is the smallest of the min(m, n) singular values, so a redundant arm counts as regular.
    """
    J = checked(J, (None, None), "J")
    threshold, damping_max = _positive(threshold, "threshold"), _positive(damping_max, "damping_max")
    sigma_min = np.linalg.svd(J, compute_uv=False)[..., -1]
    return np.asarray(damping_max * np.sqrt(np.maximum(0.0, 1.0 - (sigma_min / threshold) ** 2)))


def null_space_projector(J: ArrayLike, tolerance: float = TOLERANCE) -> Array:
    """N = I - J^+ J (..., n, n), with the undamped inverse: J N = 0, N N = N = N^T."""
    J = checked(J, (None, None), "J")
    return np.asarray(np.eye(J.shape[-1]) - pseudo_inverse(J, tolerance) @ J)


def null_space_motion(J: ArrayLike, w: ArrayLike, qd_0: ArrayLike, tolerance: float = TOLERANCE) -> Array:
    """qd = J^+ w + (I - J^+ J) qd_0 (..., n): does w, and within that comes as near to qd_0 as it can."""
    J, w = checked(J, (None, None), "J"), checked(w, (None,), "w")
    qd_0 = checked(qd_0, (J.shape[-1],), "qd_0")
    inverse = pseudo_inverse(J, tolerance)
    return _apply(inverse, w) + qd_0 - _apply(inverse, _apply(J, qd_0))


def equal_priority(tasks: Sequence[Task], tolerance: float = TOLERANCE) -> Array:
    """qd = [J_1; ..; J_k]^+ (w_1; ..; w_k) (..., n): least squares over all tasks at once.

    003 prints the transpose for the pseudo-inverse, which fulfils no task at all.
    """
    J, w, _ = _stacked(tasks)
    return _apply(pseudo_inverse(J, tolerance), w)


def weighted(tasks: Sequence[Task], damping: float = 0.0) -> Array:
    """qd = (J^T W J + lam^2 I)^-1 J^T W w (..., n), W = blkdiag(weight_i I): heavier tasks err less.

    003's form needs J of rank n; without damping the rest is filled with the shortest qd.
    """
    J, w, root = _stacked(tasks)
    lam = checked(damping, (), "damping")
    if lam < 0.0:
        raise InvalidValue(f"damping: must not be negative, got {damping:g}")
    J_scaled = root[:, None] * J  # J^T W J = (sqrt(W) J)^T (sqrt(W) J)
    return _apply(_inverse(J_scaled, np.broadcast_to(lam, J.shape[:-2]), TOLERANCE), root * w)


def prioritised(tasks: Sequence[Task], tolerance: float = TOLERANCE) -> Array:
    """qd (..., n) that does the first task as well as possible, the second within what that leaves, and so on.

        qd = 0, N = I;  for each i:  qd += N (J_i N)^+ (w_i - J_i qd),  N = I - S^+ S,  S = [J_1; ..; J_i]

    003 prints N_i = I - J_i^+ J_i of the task's own Jacobian: with that J_i N_i = 0 and nothing moves.
    """
    _stacked(tasks)
    n = np.asarray(tasks[0].J).shape[-1]
    batch = np.broadcast_shapes(*(np.asarray(task.w).shape[:-1] for task in tasks))
    qd, N = np.zeros((*batch, n)), np.eye(n)
    for count, task in enumerate(tasks, start=1):
        J, w = checked(task.J, (None, None), "task.J"), checked(task.w, (None,), "task.w")
        qd = qd + _apply(N, _apply(pseudo_inverse(J @ N, tolerance), w - _apply(J, qd)))
        N = null_space_projector(_stacked(tasks[:count])[0], tolerance)
    return qd


def _inverse(J: Array, lam: Array, tolerance: float) -> Array:
    """V diag(s / (s^2 + lam^2)) U^T; where lam is zero, singular values below the tolerance are dropped."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    lam = lam[..., None]
    kept = (s >= tolerance) | (lam > 0.0)
    factor = np.where(kept, s / np.where(kept, s * s + lam * lam, 1.0), 0.0)
    return np.asarray((np.swapaxes(Vt, -1, -2) * factor[..., None, :]) @ np.swapaxes(U, -1, -2))


def _stacked(tasks: Sequence[Task]) -> tuple[Array, Array, Array]:
    """All J on top of each other, all w, and the square root of each row's weight."""
    if not tasks:
        raise InvalidValue("tasks: at least one Task is needed, got none")
    Js = [checked(task.J, (None, None), f"tasks[{i}].J") for i, task in enumerate(tasks)]
    ws = [checked(task.w, (J.shape[-2],), f"tasks[{i}].w") for i, (task, J) in enumerate(zip(tasks, Js, strict=True))]
    if len({J.shape[-1] for J in Js}) > 1:
        raise InvalidValue(f"tasks: every J needs the same number of columns, got {[J.shape[-1] for J in Js]}")
    roots = [np.full(J.shape[-2], np.sqrt(_positive(t.weight, "weight"))) for t, J in zip(tasks, Js, strict=True)]
    batch = np.broadcast_shapes(*(J.shape[:-2] for J in Js), *(w.shape[:-1] for w in ws))
    J = np.concatenate([np.broadcast_to(J, (*batch, *J.shape[-2:])) for J in Js], axis=-2)
    w = np.concatenate([np.broadcast_to(w, (*batch, w.shape[-1])) for w in ws], axis=-1)
    return J, w, np.concatenate(roots)


def _positive(value: float, name: str) -> float:
    if not (np.isfinite(value) and value > 0.0):
        raise InvalidValue(f"{name}: must be positive and finite, got {value!r}")
    return float(value)


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])
