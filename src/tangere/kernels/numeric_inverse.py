"""Inverse kinematics by iteration: factory-calibrated URs from their nominal closed form, other chains by search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kernels.inverse_kinematics import LAST_ROW, closed_batch
from tangere.kernels.shapes import argument
from tangere.kernels.solutions import ELBOW, ELBOW_UP, NO_BRANCH, SHOULDER, WRIST, FoundSolutions, IKBatch, IKSolutions
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics.inverse_search import polish, solve
from tangere.kinematics.rotation import project_to_rotation
from tangere.model.model import Array, Model

if TYPE_CHECKING:
    from tangere.robots import Robot

# m: nominal branches that miss by less are tried too; a calibration moves the tool by a few millimetres at most
NEARBY = 0.05
# steps of the damped search where Newton's method fails: next to a singularity it converges linearly
STEPS = 300


def numeric(robot: Robot, nominal: Model | None, T: ArrayLike, reference: ArrayLike | None) -> IKSolutions | IKBatch:
    """Solutions by iteration; leading axes are worked off one pose after the other.

    A calibrated UR differs from its nominal twin by millimetres, so each branch of the nominal closed form, and the
    reference, is the start of a search for a solution of the real arm. Any other chain is searched from the reference
    (default: the middle of the limits), and the one solution found is returned, without branch labels. `distance` is
    what the nominal arm misses [m], for other chains what the best attempt misses, with 1 rad counted as 1 m.
    """
    poses = argument(T, "T", (4, 4))
    if poses.size and np.max(np.abs(poses[..., 3, :] - [0.0, 0.0, 0.0, 1.0])) > inverse.ROTATION_TOLERANCE:
        raise InvalidValue(f"T: {LAST_ROW}")
    ref = None if reference is None else argument(reference, "reference", (robot.dof,))
    lead = poses.shape[:-2]
    if ref is not None and ref.ndim > 1 and ref.shape[:-1] != lead:
        raise InvalidValue("reference must be one joint vector (n,) or have the leading axes of the poses")
    if not lead:
        return _one(robot, nominal, poses, ref)
    slots = inverse.LANES if nominal is not None else 1
    q, flags = np.zeros((*lead, slots, robot.dof)), np.zeros((*lead, slots), np.uint8)
    valid, correction, distance = np.zeros((*lead, slots), bool), np.zeros(lead), np.zeros(lead)
    for index in np.ndindex(*lead):
        one = _one(robot, nominal, poses[index], ref if ref is None or ref.ndim == 1 else ref[index])
        places = _places(one, slots)
        q[index][places], flags[index][places], valid[index][places] = one.q, one.flags, True
        correction[index], distance[index] = one.correction, one.distance
    return IKBatch(q, valid, flags, correction, distance, robot)


def _places(one: IKSolutions, slots: int) -> list[int]:
    """Where the solutions go in a batch: each at its branch, or the next free place if two share one."""
    free = list(range(slots))
    places = []
    for lane in one.lanes.tolist():
        place = lane if lane in free else free[0]
        free.remove(place)
        places.append(place)
    return places


def _one(robot: Robot, nominal: Model | None, pose: Array, reference: Array | None) -> IKSolutions:
    R, change = project_to_rotation(pose[:3, :3])
    T = pose.copy()
    T[:3, :3] = R
    starts, miss = _starts(robot, nominal, T, reference)
    free = np.full(robot.dof, np.inf)
    found = []
    for start in starts:
        if nominal is not None:
            answer = polish(robot.pose, robot.jacobian, T, start)
            if not answer.converged:
                answer = solve(robot.pose, robot.jacobian, T, start, -free, free, restarts=0, iterations=STEPS)
        else:
            answer = solve(robot.pose, robot.jacobian, T, start, robot.q_min, robot.q_max)
        if nominal is None:
            miss = min(miss, float(answer.position_error + answer.rotation_error))
        if answer.converged:
            found.append(np.where(robot.revolute, inverse.wrapped(answer.q), answer.q))
    q = _distinct(np.array(found).reshape(-1, robot.dof), robot.revolute, reference)
    lanes, flags = _labels(nominal, q)
    order = np.argsort(lanes, kind="stable")
    distance = 0.0 if len(q) else max(miss, np.finfo(float).tiny)  # an empty answer never says "reached"
    return FoundSolutions(q[order], flags[order], lanes[order], float(change), distance, robot)


def _starts(
    robot: Robot, nominal: Model | None, T: Array, reference: Array | None
) -> tuple[list[Array], float]:
    """Where to search from, and by how much the nominal arm misses the pose (inf where there is none)."""
    given = [] if reference is None else [reference]
    if nominal is not None:
        branches, *_ = closed_batch(ur.parameters_of(nominal).tolist(), T, reference)
        return [*given, *branches[branches[:, 7] < NEARBY, :6]], float(np.min(branches[:, 7]))
    low = np.where(np.isfinite(robot.q_min), robot.q_min, -np.pi)
    high = np.where(np.isfinite(robot.q_max), robot.q_max, np.pi)
    return given or [(low + high) / 2], np.inf


def _distinct(q: Array, revolute: NDArray[np.bool_], reference: Array | None) -> Array:
    """Rows that are not the same solution, those nearest to the reference first; never more than a UR can have."""

    def gap(a: Array, b: Array) -> Array:
        return np.where(revolute, np.abs(inverse.wrapped(a - b)), np.abs(a - b))

    if reference is not None and len(q):
        q = q[np.argsort([float(np.sum(gap(row, reference) ** 2)) for row in q], kind="stable")]
    kept: list[Array] = []
    for row in q:
        if all(np.max(gap(row, other)) > inverse.MERGE for other in kept):
            kept.append(row)
    return np.array(kept[: inverse.LANES]).reshape(-1, q.shape[1])


def _labels(nominal: Model | None, q: Array) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Branch and flags of joint vectors (k, n) of a UR from its nominal lengths; no branch for other chains."""
    if nominal is None or nominal.dh is None:
        return np.full(len(q), NO_BRANCH, np.uint8), np.zeros(len(q), np.uint8)
    a2, a3, d5 = nominal.dh.a[1], nominal.dh.a[2], nominal.dh.d[4]
    X = a2 * np.cos(q[:, 1]) + a3 * np.cos(q[:, 1] + q[:, 2])
    reach = X + d5 * np.sin(q[:, 1] + q[:, 2] + q[:, 3])
    s3, s5 = np.sin(q[:, 2]), np.sin(q[:, 4])
    lanes = 4 * (reach < 0.0) + 2 * (s5 < 0.0) + (s3 < 0.0)  # the order of inverse.SIGNS
    small = [np.abs(x) <= inverse.SINGULAR for x in (reach, s3, s5)]
    flags = SHOULDER * small[0] + ELBOW * small[1] + WRIST * small[2] + ELBOW_UP * (s3 * X <= 0.0)
    return lanes.astype(np.uint8), flags.astype(np.uint8)
