"""Inverse kinematics of a robot, one pose or many.

URs have a closed form: here in Python, from the same traced kernels (kinematics/inverse_closed_form.py) as the compiled
one, with the rescue of solutions that rounding lost. Factory-calibrated URs are searched from their nominal closed
form, other chains from a start (kinematics/inverse_search.py). Answers are IKSolutions or IKBatch (solutions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kernels.emit import python as emit_python
from tangere.kernels.solutions import (
    ELBOW,
    ELBOW_UP,
    MORE,
    NO_BRANCH,
    SHOULDER,
    WRIST,
    FoundSolutions,
    IKBatch,
    IKSolutions,
)
from tangere.kernels.table import IK_BRANCH_OUTPUTS, trace_ik
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics.checks import checked
from tangere.kinematics.inverse_search import polish, solve
from tangere.kinematics.rotation import project_to_rotation
from tangere.model.model import Array, Model

if TYPE_CHECKING:
    from tangere.robots import Robot

_BITS = 1 << np.arange(IK_BRANCH_OUTPUTS - 8)  # the flags follow six angles, valid and miss
LAST_ROW = "the last row of the pose is not (0, 0, 0, 1)"
# [m] nominal branches that miss by less are tried too; a calibration moves the tool by a few millimetres at most
NEARBY = 0.05
# steps of the damped search where Newton's method fails: next to a singularity it converges linearly
STEPS = 300


@lru_cache(maxsize=1)
def _kernels() -> dict[str, Any]:
    traces = trace_ik(ur.PARAMETER_COUNT)
    return {
        name: emit_python.compiled(t.graph, ["x"], t.outputs, batch=name != "ik_merge") for name, t in traces.items()
    }


def _problem(T: Array, prepared: Array) -> None:
    """Raise for the first pose that is none; the sentences are those of the compiled form."""
    correction, determinant, last = np.moveaxis(prepared[..., 12:15], -1, 0)
    for bad, sentence in (
        (~(last <= inverse.ROTATION_TOLERANCE), LAST_ROW),
        (
            # a matrix near zero is corrected by little as well, but has no volume; rotations have 1
            ~((correction <= inverse.ROTATION_TOLERANCE) & (np.abs(determinant) > 0.5)),
            "the upper left 3x3 block is not a rotation (entries off by more than 1e-5)",
        ),
        (
            ~(determinant > 0.0),
            "the upper left 3x3 block is a reflection (determinant -1), not a rotation",
        ),
    ):
        if np.any(bad):
            where = f"pose number {int(np.argmax(bad.ravel()))}" if T.ndim > 2 else "T"
            raise InvalidValue(f"{where}: {sentence}")


def _stacked(columns: tuple[Any, ...], lead: tuple[int, ...]) -> Array:
    out = np.empty((*lead, len(columns)))
    for i, column in enumerate(columns):
        out[..., i] = column
    return out


def _flags(branches: Array) -> NDArray[np.uint8]:
    """The flags of branches (..., 12) as bits."""
    bits: NDArray[np.uint8] = np.sum((branches[..., 8:] > 0.5) * _BITS, axis=-1).astype(np.uint8)
    return bits


def closed_batch(
    parameters: list[float], T: Array, reference: Array | None
) -> tuple[Array, NDArray[np.bool_], Array, Array]:
    """Branches (..., 8, 12), valid (..., 8), correction and distance (...)."""
    kernels, lead = _kernels(), T.shape[:-2]
    flat = T.reshape(*lead, 16)
    with np.errstate(over="ignore", invalid="ignore"):
        prepared = _stacked(kernels["ik_project"]([flat[..., i] for i in range(16)], parameters), lead)
    _problem(T, prepared)
    if reference is None:
        held: list[Any] = [np.zeros(1), np.zeros(1), np.zeros(1), 0.0]
    else:
        held = [reference[..., None, 0], reference[..., None, 2], reference[..., None, 5], 1.0]
    signs = np.array(inverse.SIGNS).T
    x: list[Any] = [prepared[..., None, i] for i in range(12)] + [*held, prepared[..., None, 12], *signs]
    branches = _stacked(kernels["ik_branch"](x, parameters), (*lead, inverse.LANES))
    valid = branches[..., 6] > 0.5
    # Lanes can only coincide next to a singularity: both shoulders nearly one, or the elbow or the wrist straight.
    near = np.abs(np.sin(branches[..., (2, 4)])).min(axis=(-1, -2)) <= inverse.NEAR
    near |= np.abs(inverse.wrapped(branches[..., 0, 0] - branches[..., -1, 0])) <= 10.0 * inverse.NEAR
    doubtful = near & valid.any(axis=-1)
    for index in zip(*np.nonzero(doubtful), strict=True) if lead else ([()] if doubtful else []):
        ref = np.zeros(6) if reference is None else reference[index] if reference.ndim > 1 else reference
        values = [*branches[index][:, :6].ravel(), *valid[index].astype(float), *ref, float(reference is not None)]
        valid[index] = np.array(kernels["ik_merge"]([float(v) for v in values], parameters)) > 0.5
    near = np.min(branches[..., 7], axis=-1)
    return branches, valid, prepared[..., 12], np.where(valid.any(axis=-1), 0.0, near)


def _unturned(robot: Robot) -> Callable[[Array], Array]:
    """The robot's pose as a search asks for it: iterates may be turns away, which is nobody's degrees."""
    return lambda q: robot.pose(np.where(robot.revolute, inverse.wrapped(q), q))


def _rescued(robot: Robot, T: Array, candidates: Array, reference: Array | None) -> Array:
    """Solutions (k, 6) by Newton's method from branches that miss by little, and their lanes in an extra column."""
    close = np.nonzero(candidates[:, 7] < inverse.RESCUE)[0]
    start = candidates[close, :6]
    found = polish(_unturned(robot), robot.jacobian, T, start)
    q: Array = inverse.wrapped(found.q[found.converged])
    lanes = close[found.converged]
    keep: list[int] = []  # the nearest to the reference first, then whatever is not the same
    order = np.argsort(np.sum(inverse.wrapped(q - reference) ** 2, axis=-1)) if reference is not None else range(len(q))
    for i in order:
        if all(np.max(np.abs(inverse.wrapped(q[i] - q[j]))) > inverse.MERGE for j in keep):
            keep.append(int(i))
    keep.sort(key=lambda i: int(lanes[i]))
    return np.column_stack([q[keep], lanes[keep]])


def rescue(answer: Any, T: ArrayLike, reference: ArrayLike | None) -> IKSolutions:
    """A second look at an empty answer that misses by less than RESCUE; the same answer where nothing is found."""
    pose = checked(T, (4, 4), "T")
    ref = None if reference is None else checked(reference, (6,), "reference")
    found = _rescued(answer.robot, pose, answer._candidates, ref)
    if not len(found):
        empty: IKSolutions = answer
        return empty
    lanes = found[:, 6].astype(np.uint8)
    flags = _flags(answer._candidates[lanes])
    return FoundSolutions(found[:, :6], flags, lanes, answer.correction, 0.0, answer.robot)


def batch_answer(
    q: Array,
    valid: NDArray[np.bool_],
    flags: NDArray[np.uint8],
    correction: Array,
    distance: Array,
    robot: Robot,
    T: Array,
    reference: Array | None,
) -> IKBatch:
    """The batch as a value; poses that miss by less than RESCUE, or have more solutions, are asked once more, alone."""
    crowded = flags[..., 0] >= MORE
    if crowded.any():
        flags[..., 0] &= MORE - 1
        answers = {}
        for index in zip(*np.nonzero(crowded), strict=True):
            ref = None if reference is None else reference[index] if reference.ndim > 1 else reference
            answers[index] = robot.inverse_kinematics(T[index], ref)
        room = [(0, 0)] * (flags.ndim - 1) + [(0, max(map(len, answers.values())) - inverse.LANES)]
        q, valid, flags = np.pad(q, [*room, (0, 0)]), np.pad(valid, room), np.pad(flags, room)
        for index, found in answers.items():
            places = _places(found, flags.shape[-1])
            valid[index][places], q[index][places], flags[index][places] = True, found.q, found.flags
    for index in zip(*np.nonzero((distance > 0.0) & (distance < inverse.RESCUE)), strict=True):
        ref = None if reference is None else reference[index] if reference.ndim > 1 else reference
        one: Any = robot.inverse_kinematics(T[index], ref)
        q[index][one.lanes], valid[index][one.lanes], flags[index][one.lanes] = one.q, True, one.flags
        distance[index] = one.distance
    return IKBatch(q, valid, flags, correction, distance, robot)


def closed_form(
    robot: Robot, parameters: list[float], T: ArrayLike, reference: ArrayLike | None
) -> IKSolutions | IKBatch:
    """All solutions of a UR, as the compiled kernels find them."""
    poses = checked(T, (4, 4), "T")
    ref = None if reference is None else checked(reference, (6,), "reference")
    if ref is not None and ref.ndim > 1 and ref.shape[:-1] != poses.shape[:-2]:
        raise InvalidValue("reference must be one joint vector (6,) or have the leading axes of the poses")
    branches, valid, correction, distance = closed_batch(parameters, poses, ref)
    if poses.ndim > 2:
        q, flags = branches[..., :6].copy(), _flags(branches)
        return batch_answer(q, valid, flags, correction, distance, robot, poses, ref)
    lanes = np.nonzero(valid)[0].astype(np.uint8)
    if not len(lanes) and distance < inverse.RESCUE:
        found = _rescued(robot, poses, branches, ref)
        if len(found):
            lanes = found[:, 6].astype(np.uint8)
            return FoundSolutions(found[:, :6], _flags(branches[lanes]), lanes, float(correction), 0.0, robot)
    chosen = branches[lanes]
    return FoundSolutions(chosen[:, :6], _flags(chosen), lanes, float(correction), float(distance), robot)


def numeric(robot: Robot, nominal: Model | None, T: ArrayLike, reference: ArrayLike | None) -> IKSolutions | IKBatch:
    """Solutions by iteration; leading axes are worked off one pose after the other.

    A calibrated UR differs from its nominal twin by millimetres, so each branch of the nominal closed form, and the
    reference, is the start of a search for a solution of the real arm. Any other chain is searched from the reference
    (default: the middle of the limits), and the one solution found is returned, without branch labels. `distance` is
    what the nominal arm misses [m], for other chains what the best attempt misses, with 1 rad counted as 1 m.
    """
    poses = checked(T, (4, 4), "T")
    if poses.size and np.max(np.abs(poses[..., 3, :] - [0.0, 0.0, 0.0, 1.0])) > inverse.ROTATION_TOLERANCE:
        raise InvalidValue(f"T: {LAST_ROW}")
    ref = None if reference is None else checked(reference, (robot.dof,), "reference")
    lead = poses.shape[:-2]
    if ref is not None and ref.ndim > 1 and ref.shape[:-1] != lead:
        raise InvalidValue("reference must be one joint vector (n,) or have the leading axes of the poses")
    if not lead:
        return _one(robot, nominal, poses, ref)
    answers = {
        index: _one(robot, nominal, poses[index], ref if ref is None or ref.ndim == 1 else ref[index])
        for index in np.ndindex(*lead)
    }
    slots = max([inverse.LANES if nominal is not None else 1, *map(len, answers.values())])
    q, flags = np.zeros((*lead, slots, robot.dof)), np.zeros((*lead, slots), np.uint8)
    valid, correction, distance = np.zeros((*lead, slots), bool), np.zeros(lead), np.zeros(lead)
    for index, one in answers.items():
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
            answer = polish(_unturned(robot), robot.jacobian, T, start)
            if not answer.converged:
                answer = solve(_unturned(robot), robot.jacobian, T, start, -free, free, restarts=0, iterations=STEPS)
        else:
            answer = solve(_unturned(robot), robot.jacobian, T, start, robot.q_min, robot.q_max)
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
