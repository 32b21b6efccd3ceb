"""What an event is: collision, push, payload, drift or fault, from how it rose, how long it lasted and what it did."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from tangere.model.frames import G0
from tangere.robots import Robot
from tangere.types import Array, Kind

HARD_RISE = 0.08  # s: a link that hits something stiff is at nine tenths within some 10 to 50 ms, a hand takes 0.1 s
SHORT = 0.4  # s: a collision bounces, or a reaction ends it; who pushes stays longer
SHARP = 1.5  # in log(time): half as long as one of these two limits says nine tenths of what it can
# Log-odds of collision against push that rise and length are worth at most, chosen on simulated logs of a UR10e with
# friction (5 arms, 120 contacts: right in 92 %). On six others, 141 contacts: right in 86 %
RISE_ODDS, LENGTH_ODDS = 2.0, 1.0
LONG_ODDS = 3.0  # the same of a length far above SHORT: what stays for seconds is no collision, however it began
SURE = 0.95  # probability from which a kind is told at the alarm itself
TOUCH = 1.0  # log-odds of being touched, collision or push, before anything else is known: what happens most
FIRST = 0.6  # s in which a touch is taken to be at its largest: later, joints stick where it has pushed them
SLOW_RISE = 3.0  # s: nobody pushes that slowly; gears warm up in minutes
LASTING = 2.0  # s from which on a payload is thought of: a mass that was picked up stays
MASS_EXPLAINED = 0.9  # share of the residual's square that a mass at the tool must explain
LEAST_MASS = 0.1  # kg, below which no payload is claimed
MOVED = 0.2  # rad of motion that tell a mass, which follows gravity, from a push, which does not
STANDS = 0.02  # rad/s, mean speed below which a joint stands: the standstill speed
ALONE = 0.95  # share of the whitened residual's square in one joint from which on it is that joint's alone
# of what was added, share that is in proportion to the torque that the motion takes, beyond a constant: a drive that
# gives too little. A push that comes, goes or turns with the motion reaches half of it by chance
SCALES = 0.8
MOTION = 1.0  # times what was added that this torque must vary, for a proportion to say anything
BLOCK = 0.1  # s of averages that are compared: the reported torque is noisy, and the residual lags it by 20 ms
BLOCKS = 10  # of them at least: a second of motion
SETTLED = 0.1  # s after the onset: five time constants of the observer
# of a torque on one joint, how much it may change while the arm moves by MOVED, to be that of a drive: a force on a
# link changes its lever by more, and no hand holds a torque so well
STEADY = 0.02
DEAD = 0.1  # of the torque that a drive reports, and of the weight: what its joint needs by the model, to have had none
DRIVEN = 5.0  # log-odds of a fault then: against 2 for a push at most
HELD = 1e-3  # rad or m: a joint that moved in the second before, and less than that while others move by MOVED, is held


@dataclass(frozen=True)
class History:
    """Samples of one event from its onset on: what it added to the residual."""

    time: Array  # (m,) s, from the onset on
    added: Array  # (m, n) Nm, residual less the mean before
    q: Array  # (m, n)
    tau: Array | None  # (m, n)
    spread: Array  # (n,) Nm
    ended: bool  # whether the residual is back
    slow: bool = True  # whether the level raised it, and no change: drift is never quick
    moved: Array | None = None  # (n,) rad or m, of each joint in the second before


@dataclass(frozen=True, slots=True)
class Judgement:
    """A kind with its probability, and the others."""

    kind: Kind
    confidence: float
    alternatives: tuple[tuple[Kind, float], ...]
    rise: float  # s
    mass: float | None = None  # kg, of the payload that fits best


def early(slope: float, impact: bool) -> Judgement:
    """At the alarm: unknown, unless it rises so slowly that nothing but a hand does.

    slope [1/s]: of the whitened residual against its threshold, raised by impact or not. What jumps may be an impact
    that is over at once or a hand that stays: nobody knows before it has ended or lasted. The alternatives say which is
    likelier.
    """
    # thresholds per second: a touch that needs HARD_RISE to reach its threshold lies between the two
    odds = log(max(slope, 1e-3) * HARD_RISE) + (0.7 if impact else -0.3)
    p = 1.0 / (1.0 + exp(-2.0 * odds))
    if 1.0 - p >= SURE:
        return Judgement("push", 1.0 - p, (("collision", p),), 0.0)
    kinds: tuple[tuple[Kind, float], ...] = (("collision", p), ("push", 1.0 - p))
    return Judgement("unknown", 0.0, kinds if p >= 0.5 else kinds[::-1], 0.0)


def judged(history: History, robot: Robot | None, explained: float | None, *, drives_fail: bool = False) -> Judgement:
    """The kind after some time. explained: share that one push on the surface explains (isolation), None: not asked.
    drives_fail: whether a steady torque on one joint is rather a drive's than somebody's, who could only act on links.

    Log-odds of each kind, added up from what speaks for and against it; the confidence is their softmax. Between
    collision and push it is about how often it is right in simulation; for the other kinds it is no more than a guess.

        log p(collision) / p(push) = RISE_ODDS soft(log(HARD_RISE / rise)) + LENGTH_ODDS log(SHORT / length)

    both times SHARP and bounded. rise: to nine tenths of the largest; length: above half of it (while it lasts, it can
    only speak for a push).
    """
    z = history.added / history.spread
    length = np.linalg.norm(z, axis=1)
    top = int(np.argmax(length))
    rise = _rise(history.time, length)
    duration = float(history.time[-1] - history.time[0])
    score: dict[Kind, float] = {}
    brief = SHARP * log(SHORT / max(_length(history.time, z, length), 1e-3))
    brief = _soft(brief) if brief > 0.0 else max(brief, -LONG_ODDS)
    hard = RISE_ODDS * _soft(SHARP * log(HARD_RISE / max(rise, 1e-3)))
    hard += LENGTH_ODDS * (brief if history.ended else min(0.0, brief))
    score["collision"], score["push"] = TOUCH + 0.5 * hard, TOUCH - 0.5 * hard
    if history.slow and rise > 0.5 * SLOW_RISE:
        score["drift"] = 4.0 * _soft(2.0 * log(rise / SLOW_RISE))
    mass = None
    if robot is not None and duration > LASTING:
        mass, share = payload_mass(robot, history)
        if mass >= LEAST_MASS:
            travel = float(np.ptp(history.q, axis=0).max())
            lasts = 0.0 if history.ended else 1.5
            score["payload"] = 6.0 * _soft((share - MASS_EXPLAINED) / 0.05) + lasts + (2.0 if travel > MOVED else -1.0)
    alone = z[top] ** 2 / max(float(length[top]) ** 2, 1e-12)
    joint = int(np.argmax(alone))
    if alone[joint] > ALONE:
        # a hand across the arm turns joint 1 alone, and joints that stand hide what they feel: no sign of a fault
        others = np.delete(np.abs(np.diff(history.q, axis=0)), joint, axis=1)
        told = joint > 0 and bool(np.all(others.sum(axis=0) > STANDS * duration))
        driven = drives_fail and _driven(history, joint, robot)
        score["fault"] = DRIVEN if driven else _fault(history, joint, explained if told else None)
    best = max(score, key=lambda kind: score[kind])
    total = sum(exp(value - score[best]) for value in score.values())
    rest = sorted(((kind, exp(v - score[best]) / total) for kind, v in score.items() if kind != best), key=_negative)
    return Judgement(best, 1.0 / total, tuple((k, p) for k, p in rest if p >= 0.01), rise, mass)


def payload_mass(robot: Robot, history: History) -> tuple[float, float]:
    """Mass [kg] at the tool that explains what was added, and the share of its square that it explains.

        added = J_v^T f + J_w^T (c x f),  f = m g,  linear in m and the first moment m c (tool axes)

    c is kept small (0.1 m) by a weight: a mass far outside the tool is none.
    """
    rows = np.linspace(0, len(history.time) - 1, min(len(history.time), 40)).astype(int)  # 40 postures tell 4 numbers
    J = robot.jacobian(history.q[rows])
    R = robot.pose(history.q[rows])[:, :3, :3]
    down = np.array([0.0, 0.0, -G0])
    columns = np.empty((len(rows), J.shape[2], 4))
    columns[:, :, 0] = np.einsum("mij,i->mj", J[:, :3], down)
    for k in range(3):
        columns[:, :, 1 + k] = np.einsum("mij,mi->mj", J[:, 3:], np.cross(R[:, :, k], down))
    weight = 1.0 / history.spread
    A = (columns * weight[:, None]).reshape(-1, 4)
    b = (history.added[rows] * weight).ravel()
    A = A * np.array([1.0, 0.1, 0.1, 0.1])  # the unknowns are m and m c / 0.1 m
    size = float(np.trace(A.T @ A)) / 4.0
    x = np.linalg.solve(A.T @ A + 1e-3 * size * np.eye(4), A.T @ b)
    left = b - A @ x
    return float(x[0]), 1.0 - float(left @ left) / max(float(b @ b), 1e-12)


def _fault(history: History, joint: int, explained: float | None) -> float:
    """Log-odds of a fault of that joint's drive."""
    score = -2.0  # a push through all other axes is rare, a fault rarer
    # of a joint that hardly moves stiction hides what the others feel: a push, too, is then this joint's alone
    if explained is not None and float(np.ptp(history.q[:, joint])) > MOVED:
        score += 5.0 * _soft((0.8 - explained) / 0.1)
    since = history.time - history.time[0] - SETTLED
    if history.tau is not None and since[-1] > BLOCKS * BLOCK:
        rows = since > 0.0
        block = (since[rows] / BLOCK).astype(int)
        count = np.maximum(np.bincount(block), 1)
        full = count > 1
        added = (np.bincount(block, history.added[rows, joint]) / count)[full]
        # what the motion takes by the model; a push knows nothing of it
        needed = (np.bincount(block, history.tau[rows, joint]) / count)[full] + added
        if len(added) >= BLOCKS and np.ptp(needed) > MOTION * np.ptp(added) > 0.0:
            left = added - needed * float(needed @ added) / float(needed @ needed)
            share = 1.0 - float(left @ left) / float(np.sum((added - added.mean()) ** 2))
            score += 8.0 * _soft((share - SCALES) / 0.1)
    return score


def _driven(history: History, joint: int, robot: Robot | None) -> bool:
    """Whether one joint's drive gives a constant torque too much, gives nothing, or is held.

    Only while the arm moves: where it stands still, a steady push through the other axes does the same.
    """
    since = history.time - history.time[0]
    rows = since > SETTLED
    if since[-1] < BLOCKS * BLOCK:
        return False
    travel = np.ptp(history.q[rows], axis=0)
    z, own = history.added[rows] / history.spread, history.added[rows, joint]
    if travel.max() < MOVED or float(np.sum(z[:, joint] ** 2)) < ALONE * float(np.sum(z**2)):
        return False
    if travel[joint] < HELD and history.moved is not None and history.moved[joint] > STANDS:
        return True
    if travel[joint] > HELD and np.std(own) < STEADY * abs(np.mean(own)) + history.spread[joint]:
        return True
    if history.tau is None or robot is None:
        return False
    tau, weight = history.tau[rows, joint], robot.gravity_torque(history.q[rows])[:, joint]
    block = (since[rows] / BLOCK).astype(int)
    count = np.maximum(np.bincount(block), 1)
    needed, given, wanted = (
        float(np.median(np.abs(np.bincount(block, x) / count))) for x in (tau + own, tau, weight)
    )
    return needed < DEAD * min(given, wanted)


def _rise(time: Array, length: Array) -> float:
    """Seconds from the onset to nine tenths of the largest."""
    return float(time[int(np.argmax(length >= 0.9 * length.max()))] - time[0])


def _length(time: Array, z: Array, size: Array) -> float:
    """Seconds for which the residual is above half of its largest, along the direction that it has there."""
    top = int(np.argmax(np.where(time - time[0] <= FIRST, size, 0.0)))
    along = z @ z[top]
    return float(np.sum(np.diff(time, prepend=time[0])[along >= 0.5 * along[top]]))


def _soft(x: float) -> float:
    """x, bounded to -1 .. 1."""
    return float(np.tanh(x))


def _negative(entry: tuple[Kind, float]) -> float:
    return -entry[1]
