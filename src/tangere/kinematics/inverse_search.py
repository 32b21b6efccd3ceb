"""Numeric inverse kinematics for any chain: Levenberg-Marquardt on the pose error, with joint limits and restarts.

The error of a joint vector is e = (p_des - p, log(R_des R^T)), m and rad, base axes. Some of its six rows may be left
out by a mask, for arms with fewer operational coordinates (003's SCARA: x, y, z and the turn about z; planar 3R).
Failure is a value, converged = False, with the distance by which it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked
from tangere.kinematics.resolution import pseudo_inverse
from tangere.kinematics.rotation import project_to_rotation, rotation_error

PoseFunction = Callable[[Array], Array]  # q (n,) -> T_base_tcp (4, 4)
JacobianFunction = Callable[[Array], Array]  # q (n,) -> geometric J (6, n), linear rows first, base axes

# Pose error asked of a solution [m and rad]: a thousand times the rounding of forward kinematics (1e-15 at 1 m), and
# far below anything an arm can repeat (1e-5 m).
TOLERANCE = 1e-12
# Damping mu = factor |e|^2: vanishing with the error keeps the convergence quadratic, also where J is nearly singular.
# The factor grows on a step that did not help and shrinks on one that did; it starts as a mild brake.
FACTOR_START, FACTOR_MIN, GROW, SHRINK = 10.0, 0.1, 4.0, 0.5
# A start that made no progress over this many rejected steps sits in a local minimum or at the rounding floor.
REJECTED_MAX = 12
# |e|^2 is judged by ten digits: a step that gains less is rounding.
PROGRESS = 1e-10


@dataclass(frozen=True)
class NumericSolution:
    """What a numeric search found; arrays have the batch axes of the poses asked for."""

    q: Array  # (..., n) best joint vector found, within the limits
    converged: Array  # (...) bool: both errors below the tolerance
    iterations: Array  # (...) int: steps taken, over all restarts
    position_error: Array  # (...) m, over the rows asked for
    rotation_error: Array  # (...) rad, over the rows asked for


def solve(
    pose_function: PoseFunction,
    jacobian_function: JacobianFunction,
    T: ArrayLike,
    q0: ArrayLike,
    q_min: ArrayLike,
    q_max: ArrayLike,
    *,
    mask: Sequence[bool] | None = None,
    frame: Literal["base", "target"] = "base",
    restarts: int = 40,
    iterations: int = 100,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> NumericSolution:
    """A joint vector within [q_min, q_max] that reaches the pose T, searched from q0, then from random starts.

    Each step solves (J^T J + mu I) dq = J^T e for the joints that are not held by a limit, and is kept only if the
    error falls. The random starts are drawn with `seed`, so that the same call gives the same answer.

    T (..., 4, 4), rotations off by up to 1e-5 are projected; q0 (..., n); q_min, q_max (n,), +-inf where unlimited;
    mask: which of (x, y, z, rx, ry, rz) count; frame: whether these are base axes or the target's own axes (free turn
    about the tool axis: mask (1, 1, 1, 1, 1, 0) in "target"); restarts: random starts after q0; iterations: per start.
    One solution is returned, not all; near singular targets the convergence is linear and takes more iterations.
    """
    low, high = _limits(q_min, q_max)
    n = low.shape[0]
    rows = _rows(mask)
    if restarts < 0 or iterations < 1:
        raise InvalidValue(f"restarts must be >= 0 and iterations >= 1, got {restarts} and {iterations}")
    problem = _Problem(pose_function, jacobian_function, rows, _in_target(frame), low, high)

    def search(target: Array, start: Array) -> _Attempt:
        rng = np.random.default_rng(seed)
        # an unlimited joint is drawn within half a turn of its start (a sliding one within 3.14 m)
        wide_low = np.where(np.isfinite(low), low, np.minimum(start, high) - np.pi)
        wide_high = np.where(np.isfinite(high), high, np.maximum(start, low) + np.pi)
        best = problem.descend(target, start, iterations, tolerance)
        total = best.iterations
        for _ in range(restarts):
            if best.converged(tolerance):
                break
            found = problem.descend(target, rng.uniform(wide_low, wide_high), iterations, tolerance)
            total += found.iterations
            best = found if found.cost < best.cost else best
        return _Attempt(best.q, total, best.position, best.rotation)

    return _over_batch(search, T, checked(q0, (n,), "q0"), low, high, tolerance)


def polish(
    pose_function: PoseFunction,
    jacobian_function: JacobianFunction,
    T: ArrayLike,
    q0: ArrayLike,
    *,
    mask: Sequence[bool] | None = None,
    frame: Literal["base", "target"] = "base",
    iterations: int = 10,
    tolerance: float = TOLERANCE,
) -> NumericSolution:
    """A good joint vector made exact: Newton's method q += J^+ e from q0, never worse than q0.

    For a factory-calibrated arm start from the closed-form answer of the nominal one (a millimetre off): three steps
    do. No limits, no restarts. At singular poses the pseudo-inverse drops the lost direction, so that q stays close
    and `converged` tells whether the pose could still be reached.
    """
    q0 = checked(q0, (None,), "q0")
    n = q0.shape[-1]
    unlimited = np.full(n, np.inf)
    problem = _Problem(pose_function, jacobian_function, _rows(mask), _in_target(frame), -unlimited, unlimited)

    def search(target: Array, start: Array) -> _Attempt:
        best, count = problem.attempt(target, start, 0), 0
        while count < iterations and not best.converged(0.01 * tolerance):  # on to the rounding floor, not just below
            e, J = problem.error(target, best.q)
            count += 1
            found = problem.attempt(target, best.q + pseudo_inverse(J) @ e, count)
            if not found.cost < best.cost:
                break
            best = found
        return _Attempt(best.q, count, best.position, best.rotation)

    return _over_batch(search, T, q0, -unlimited, unlimited, tolerance)


@dataclass(frozen=True)
class _Attempt:
    q: Array
    iterations: int
    position: float
    rotation: float

    @property
    def cost(self) -> float:
        return self.position**2 + self.rotation**2

    def converged(self, tolerance: float) -> bool:
        return self.position < tolerance and self.rotation < tolerance


@dataclass(frozen=True)
class _Problem:
    pose: PoseFunction
    jacobian: JacobianFunction
    rows: NDArray[np.bool_]  # (6,)
    in_target: bool
    low: Array
    high: Array

    def error(self, target: Array, q: Array) -> tuple[Array, Array]:
        """e (k,) and J (k, n) of the rows asked for; d e = - J dq to first order."""
        T, J = np.asarray(self.pose(q)), np.asarray(self.jacobian(q), dtype=np.float64)
        e = np.concatenate([target[:3, 3] - T[:3, 3], rotation_error(target[:3, :3], T[:3, :3])])
        if self.in_target:
            turn = np.kron(np.eye(2), target[:3, :3].T)
            e, J = turn @ e, turn @ J
        return e[self.rows], J[self.rows]

    def attempt(self, target: Array, q: Array, iterations: int) -> _Attempt:
        e = np.zeros(6)
        e[self.rows] = self.error(target, q)[0]
        return _Attempt(q, iterations, float(np.linalg.norm(e[:3])), float(np.linalg.norm(e[3:])))

    def descend(self, target: Array, start: Array, iterations: int, tolerance: float) -> _Attempt:
        """Levenberg-Marquardt from one start, joints held at their limits while they push against them."""
        q, factor, rejected, count = start, FACTOR_START, 0, 0
        e, J = self.error(target, q)
        cost = float(e @ e)
        # |e| well below the tolerance, so that each half of e is below it too and rounding cannot undo the verdict
        while count < iterations and rejected < REJECTED_MAX and cost > (0.1 * tolerance) ** 2:
            count += 1
            trial = np.clip(q + self._step(q, e, J, factor * cost), self.low, self.high)
            e_trial, J_trial = self.error(target, trial)
            cost_trial = float(e_trial @ e_trial)
            if cost_trial < cost * (1.0 - PROGRESS):
                q, e, J, cost, rejected = trial, e_trial, J_trial, cost_trial, 0
                factor = max(factor * SHRINK, FACTOR_MIN)
            else:
                factor, rejected = factor * GROW, rejected + 1
        return self.attempt(target, q, count)

    def _step(self, q: Array, e: Array, J: Array, mu: float) -> Array:
        """The damped step of the free joints; a joint at its limit that would be pushed out is taken out and it is
        solved again, at most n times."""
        free = np.ones(q.shape, dtype=bool)
        dq = np.zeros_like(q)
        for _ in range(q.size):
            A = J[:, free]
            # the damped least-squares solution as a plain one, [J; sqrt(mu) I] dq = [e; 0]: keeps all digits
            stacked = np.vstack([A, np.sqrt(mu) * np.eye(A.shape[1])])
            dq = np.zeros_like(q)
            dq[free] = np.linalg.lstsq(stacked, np.concatenate([e, np.zeros(A.shape[1])]), rcond=None)[0]
            pushed = free & (((q <= self.low) & (dq < 0.0)) | ((q >= self.high) & (dq > 0.0)))
            if not pushed.any() or not (free & ~pushed).any():
                break
            free &= ~pushed
        return dq


def _over_batch(
    search: Callable[[Array, Array], _Attempt], T: ArrayLike, q0: Array, low: Array, high: Array, tolerance: float
) -> NumericSolution:
    T = np.array(checked(T, (4, 4), "T"))
    T[..., :3, :3], _ = project_to_rotation(T[..., :3, :3])
    if not (np.isfinite(tolerance) and tolerance > 0.0):
        raise InvalidValue(f"tolerance: must be positive, got {tolerance!r}")
    batch = np.broadcast_shapes(T.shape[:-2], q0.shape[:-1])
    starts = np.broadcast_to(np.clip(q0, low, high), (*batch, q0.shape[-1]))
    targets = np.broadcast_to(T, (*batch, 4, 4))
    found = [search(targets[i], starts[i]) for i in np.ndindex(*batch)]
    return NumericSolution(
        q=np.array([a.q for a in found]).reshape(*batch, q0.shape[-1]),
        converged=np.array([a.converged(tolerance) for a in found]).reshape(batch),
        iterations=np.array([a.iterations for a in found]).reshape(batch),
        position_error=np.array([a.position for a in found]).reshape(batch),
        rotation_error=np.array([a.rotation for a in found]).reshape(batch),
    )


def _limits(q_min: ArrayLike, q_max: ArrayLike) -> tuple[Array, Array]:
    low, high = np.asarray(q_min, dtype=np.float64), np.asarray(q_max, dtype=np.float64)
    if low.ndim != 1 or low.shape != high.shape or low.size == 0:
        raise InvalidValue(f"q_min, q_max: expected two arrays of shape (n,), got {low.shape} and {high.shape}")
    if not np.all(low <= high):  # also refuses nan
        raise InvalidValue(f"q_min must not exceed q_max, got {low.tolist()} and {high.tolist()}")
    return low, high


def _rows(mask: Sequence[bool] | None) -> NDArray[np.bool_]:
    rows = np.ones(6, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if rows.shape != (6,) or not rows.any():
        raise InvalidValue(f"mask: six flags for (x, y, z, rx, ry, rz), at least one set, got {mask!r}")
    return rows


def _in_target(frame: str) -> bool:
    if frame not in ("base", "target"):
        raise InvalidValue(f"frame: got {frame!r}, valid are 'base' and 'target'")
    return frame == "target"
