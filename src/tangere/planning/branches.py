"""Joint angles along a path of poses: one branch of the inverse kinematics, followed without a jump."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, NoSolution
from tangere.kernels import ur
from tangere.kernels.solutions import ELBOW_UP, IKBatch, IKSolutions, turns_to
from tangere.kinematics.inverse_closed_form import SIGNS
from tangere.kinematics.inverse_search import polish
from tangere.robots import Robot
from tangere.types import Array

TURN = 2.0 * np.pi
# the eight postures of a UR in which its tool is at one place, in words
BRANCHES = tuple(f"{s} {e} {w}" for s in ("left", "right") for e in ("up", "down") for w in ("no flip", "flip"))
# Poses looked at when a branch is chosen for a whole path: every 11 degrees of a circle.
COARSE = 33
# Poses followed at once within a branch: long enough that the loop costs nothing, short enough that a path which
# changes branch often does not look at its rest every time.
WINDOW = 2048


def joint_path(robot: Robot, T: Array, times: Array, q_start: Array | None, step_max: Array) -> Array:
    """q (k, n) with pose(q) = T (k, 4, 4), neighbours as near as the inverse kinematics allows.

    q_start: joints from which the motion begins: the solution nearest to it is taken, whole turns included (None: the
    branch that stays valid, has its elbow up, and keeps farthest from singularities along the path). step_max (n,)
    [rad]: a larger step between neighbours is a sign that the branch jumps, and the nearest of all solutions is looked
    for. times (k,) are for the message only. Raises NoSolution that says which point is out of reach, and by how much.
    """
    if not robot.closed_form:
        return _by_newton(robot, T, times, q_start)
    batch = robot.inverse_kinematics(T)
    assert isinstance(batch, IKBatch)
    _refuse_unreachable(T, times, batch.count > 0, batch.distance)
    if q_start is None:
        q = _follow(robot, T, batch, best_start(robot, T), step_max)
        return q - turns(robot, q.min(axis=0), q.max(axis=0))
    start = robot.inverse_kinematics(T[0], q_start)
    assert isinstance(start, IKSolutions)
    return _follow(robot, T, batch, start.nearest(q_start), step_max)


def _follow(robot: Robot, T: Array, batch: IKBatch, q_0: Array, step_max: Array) -> Array:
    """Stay in a lane (shoulder, wrist, elbow signs) while its steps are small, else take the nearest solution."""
    k = len(T)
    q = np.empty((k, robot.dof))
    q[0] = q_0
    lane, i = _lane(batch, 0, q_0), 0
    while i < k - 1:
        end = min(k, i + 1 + WINDOW)
        steps = _wrapped(np.diff(np.concatenate([q[i : i + 1], batch.q[i + 1 : end, lane]]), axis=0))
        good = batch.valid[i + 1 : end, lane] & np.all(np.abs(steps) <= step_max, axis=-1)
        m = len(good) if good.all() else int(np.argmin(good))
        if m:
            rough = q[i] + np.cumsum(steps[:m], axis=0)
            exact = batch.q[i + 1 : i + 1 + m, lane]
            q[i + 1 : i + 1 + m] = exact + TURN * np.rint((rough - exact) / TURN)  # no error of a long sum
            i += m
        else:
            ahead = q[i] + (np.clip(q[i] - q[i - 1], -step_max, step_max) if i else 0.0)
            found = robot.inverse_kinematics(T[i + 1], ahead)
            assert isinstance(found, IKSolutions)
            i += 1
            q[i] = found.nearest(ahead, limits=False)
            lane = _lane(batch, i, q[i])
    return q


def _lane(batch: IKBatch, i: int, q: Array) -> int:
    """The lane whose solution at pose i is q, or is nearest to it."""
    far = np.sum(_wrapped(batch.q[i] - q) ** 2, axis=-1)
    return int(np.argmin(np.where(batch.valid[i], far, np.inf)))


def branch_start(robot: Robot, T: Array, branch: str) -> Array | None:
    """Joints (n,) at a pose T (4, 4) in one of BRANCHES; None where the arm has no branches of a UR."""
    if branch not in BRANCHES:
        raise InvalidValue(f"branch: one of {', '.join(BRANCHES)}, got {branch!r}")
    if not ur.is_ur(robot.model):
        return None
    found = robot.inverse_kinematics(T)
    assert isinstance(found, IKSolutions)
    labels = [" ".join(words) for words in zip(found.shoulder, found.elbow, found.wrist, strict=True)]
    if not found:
        where = ", ".join(f"{x:.3f}" for x in T[:3, 3])
        raise InvalidValue(f"the start ({where}) m is out of reach by {found.distance:.3f} m")
    if branch not in labels:
        raise InvalidValue(f"branch: {branch!r} does not reach the start; take one of {labels}")
    start: Array = found.q[labels.index(branch)]
    return start


def best_start(robot: Robot, T: Array) -> Array:
    """Start of the branch that is valid longest, has the elbow up, and stays farthest from singularities."""
    coarse = T[np.unique(np.linspace(0, len(T) - 1, COARSE).round().astype(int))]
    batch = robot.inverse_kinematics(coarse)
    assert isinstance(batch, IKBatch)
    # next to singularities a calibrated arm has solutions beyond the eight; those last for a few poses only
    named = slice(len(SIGNS))
    q, valid, flags = batch.q[:, named], batch.valid[:, named], batch.flags[:, named]
    moved, allowed = turns_to(q, np.zeros(robot.dof), robot.q_min, robot.q_max, robot.revolute)
    usable = valid & allowed
    sigma = np.linalg.svd(robot.jacobian(np.where(valid[..., None], moved, 0.0)), compute_uv=False)[..., -1]
    room = np.min(np.where(usable, sigma, np.inf), axis=0)
    up = np.mean((flags & ELBOW_UP) > 0, axis=0) > 0.5
    # nearly equal room (0.01 m): the posture in which URs usually stand, shoulder left and wrist flipped (q5 < 0)
    left, flip = np.array(SIGNS)[:, 0] < 0, np.array(SIGNS)[:, 1] < 0
    order = np.lexsort((flip, left, room.round(2), up, usable.sum(axis=0)))  # last key first
    for lane in reversed(order):
        if usable[0, lane]:
            best: Array = moved[0, lane]
            return best
    raise NoSolution(f"the start of the path, {T[0, :3, 3]} m: all solutions lie outside the joint limits")


def turns(robot: Robot, low: Array, high: Array) -> Array:
    """Whole turns (n,) [rad] by which a path between these joints (n,) is to be taken back to lie nearest to zero."""
    return np.where(robot.revolute, TURN * np.rint(0.5 * (low + high) / TURN), 0.0)


def _by_newton(robot: Robot, T: Array, times: Array, q_start: Array | None) -> Array:
    """For arms without a closed form (no UR): Newton's method from the extrapolated joints."""
    found = robot.inverse_kinematics(T[0], q_start)
    assert isinstance(found, IKSolutions)
    if not found:
        _refuse_unreachable(T, times, np.zeros(1, dtype=np.bool_), np.array([found.distance]))
    q = np.empty((len(T), robot.dof))
    q[0] = found.nearest(np.zeros(robot.dof) if q_start is None else q_start)
    for i in range(1, len(T)):
        ahead = q[i - 1] if i == 1 else 2.0 * q[i - 1] - q[i - 2]
        answer = polish(robot.pose, robot.jacobian, T[i], ahead)
        if not answer.converged:
            miss = np.zeros(len(T))
            miss[i] = float(answer.position_error)
            _refuse_unreachable(T, times, miss == 0.0, miss)
        q[i] = answer.q
    return q


def _refuse_unreachable(T: Array, times: Array, reached: NDArray[np.bool_], distance: Array) -> None:
    if reached.all():
        return
    first, worst = int(np.argmin(reached)), int(np.argmax(np.where(reached, 0.0, distance)))
    message = f"the path leaves the arm's reach at t = {times[first]:.4g} s, {_place(T[first])}"
    message += f", by {1e3 * distance[first]:.3g} mm"
    if distance[worst] > 1.001 * distance[first]:  # else it is the same place over and over
        message += f"; farthest at t = {times[worst]:.4g} s, {_place(T[worst])}, by {1e3 * distance[worst]:.3g} mm"
    raise NoSolution(message + f" ({int(np.sum(~reached))} of {len(reached)} points)")


def _place(T: Array) -> str:
    return "(" + ", ".join(f"{x:.4f}" for x in T[:3, 3]) + ") m"


def _wrapped(angle: Array) -> Array:
    return np.asarray(angle - TURN * np.rint(angle / TURN))
