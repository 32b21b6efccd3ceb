"""What most of a log agrees on: fits that a touch of some seconds does not bend, and which samples do not belong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.identification.samples import Motion, midpoints
from tangere.observe.drive_model import STANDSTILL, WIDTH, DriveModel
from tangere.robots import Robot
from tangere.types import Array

Mask = NDArray[np.bool_]
BLOCKS = 12  # parts of a log that are in or out together: a touch is some of them, not single samples
CHOSEN = 4  # of them in one trial: together they excite, and with a third of the log touched one trial in seven is free
TRIALS = 60  # so that 1 in 10000 logs touched for a third of its time has no free trial
QUANTILE = 0.6  # of |error| that a trial is judged by: up to four tenths of the log may be touched
# Share of the plain fit's error below which a trial replaces it: friction that the terms do not describe makes some
# parts of every real log fit better than others, but not by this much; a long touch does. Not calibrated
CLEARLY = 0.4
OUTSIDE = 6.0  # standard deviations from which on a sample does not belong to the rest
FLOOR = 0.5  # Nm: below, nothing is called an error; quantisation and unmodelled inertia are of that size
LEAST_ROWS = 50  # of a joint in motion
LONG = 0.2  # s of samples outside before a touch is suspected: shorter are jolts
AROUND = 0.1  # s on both sides that are left out with a touch: it rises and fades
SURE = 0.15  # standard error of a share of friction up to which it is believed: less than what arms of a type differ by
ONE_WAY = 0.1  # share of the motion in the rarer direction below which offset and friction cannot be told apart
MOST_SHARE = 1.5  # of the type's friction: more is an offset or a touch
_ROWS = 2000  # samples looked at, evenly taken


def agreed(A: Array, b: Array) -> tuple[Array, Mask, Array]:
    """x of b = A x as most rows have it, the rows that belong to it, and the standard error of x.

    Least squares, unless parts of the log (blocks of neighbours) lead to a solution that leaves a CLEARLY smaller
    error in QUANTILE of all rows: then least squares of the rows within OUTSIDE standard deviations of that one.
    The error of x counts neighbours as dependent: sums over blocks (sandwich).
    """
    rows = len(b)
    block = np.arange(rows) * BLOCKS // max(rows, 1)
    size = np.linalg.norm(A, axis=0)
    S = A / np.where(size > 0.0, size, 1.0)
    x = np.linalg.lstsq(S, b, rcond=None)[0]
    inside: Mask = np.ones(rows, dtype=bool)
    plain = max(float(np.quantile(np.abs(b - S @ x), QUANTILE)), 1e-12)
    random = np.random.default_rng(0)  # the same trials every time
    best, found = plain, None
    H = np.stack([S[block == k].T @ S[block == k] for k in range(BLOCKS)])
    g = np.stack([S[block == k].T @ b[block == k] for k in range(BLOCKS)])
    ridge = 1e-9 * np.eye(A.shape[1])  # a part without any change of one column leaves its number at zero
    for _ in range(TRIALS):
        k = random.choice(BLOCKS, CHOSEN, replace=False)
        trial = np.linalg.solve(H[k].sum(axis=0) + ridge, g[k].sum(axis=0))
        error = float(np.quantile(np.abs(b - S @ trial), QUANTILE))
        if error < best:
            best, found = error, trial
    # 0.84: the 0.6-quantile of |e| of a normal distribution, in standard deviations
    if found is not None and plain > FLOOR and best < CLEARLY * plain:
        for _ in range(3):  # rows that belong, and the fit of them
            scale = max(float(np.quantile(np.abs(b - S @ found), QUANTILE)) / 0.84, FLOOR / OUTSIDE)
            inside = np.asarray(np.abs(b - S @ found) <= OUTSIDE * scale)
            found = np.linalg.lstsq(S[inside], b[inside], rcond=None)[0]
        x = found
    left = np.where(inside, b - S @ x, 0.0)
    sums = np.stack([S[block == k].T @ left[block == k] for k in range(BLOCKS)])
    inverse = np.linalg.pinv(S[inside].T @ S[inside] + ridge)
    # a fit of p numbers makes the sums of few blocks smaller than they are
    fewer = BLOCKS / (BLOCKS - A.shape[1])
    sigma = np.sqrt(fewer * np.maximum(np.diag(inverse @ (sums.T @ sums) @ inverse), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    return np.asarray(x / unit), inside, np.asarray(sigma / unit)


def touched(arm: Robot, motion: Motion) -> tuple[Mask, tuple[tuple[int, float, float], ...]]:
    """Samples (N,) that do not belong to the rest of a log, and the stretches: joint (from 0), from, to [s, stamps].

    Joint by joint: tau less the rigid model's against friction, rotor inertia and an offset, as most of the log has it.
    A push that lasts for half of all motion of its joint in one direction cannot be told from friction: then the other
    half may be what does not belong.
    """
    out = np.zeros(len(motion.time), dtype=bool)
    if motion.q.shape[1] != arm.dof:
        return out, ()
    m = midpoints(motion)
    use = slice(None, None, max(1, len(m.h) // _ROWS))
    q, qd, qdd, tau, index = m.q[use], m.qd[use], m.qdd[use], m.tau[use], m.index[use]
    left = tau - arm.inverse_dynamics(q, qd, qdd)
    stamps = motion.time[index]
    spans: list[tuple[int, float, float]] = []
    for j in range(arm.dof):
        moving = np.flatnonzero(np.abs(qd[:, j]) > STANDSTILL)
        if len(moving) < LEAST_ROWS:
            continue
        speed = qd[moving, j]
        A = np.column_stack([np.tanh(speed / WIDTH), speed, qdd[moving, j], np.ones(len(speed))])
        _, inside, _ = agreed(A, left[moving, j])
        for a, b in runs(~inside):
            start, end = float(stamps[moving[a]]), float(stamps[moving[b]])
            if end - start >= LONG:
                spans.append((j, start, end))
                out |= (motion.time >= start - AROUND) & (motion.time <= end + AROUND)
    return out, tuple(spans)


def friction_share(arm: Robot, drive: DriveModel, motion: Motion) -> Array:
    """Times the friction of `drive` that a log shows, joint by joint (n,); 1 where it cannot be told.

    One number per joint, and an offset where it moves both ways, from however little motion: a simulated arm, or one
    whose controller has taken friction off its torques, shows none. Joints that cannot tell are as the others' median
    says, where two can.
    """
    n = arm.dof
    share = np.full(n, np.nan)
    if motion.q.shape[1] != n or len(motion.time) < 2:
        return np.ones(n)
    m = midpoints(motion)
    use = slice(None, None, max(1, len(m.h) // _ROWS))
    q, qd, qdd, tau = m.q[use], m.qd[use], m.qdd[use], m.tau[use]
    left = tau - arm.inverse_dynamics(q, qd, qdd)
    law = drive.friction(q, qd, arm.gravity_torque(q)) - drive.offset
    for j in range(n):
        moving = np.abs(qd[:, j]) > STANDSTILL
        if moving.sum() < LEAST_ROWS:
            continue
        columns = [law[moving, j], qdd[moving, j]]
        forth = float(np.mean(qd[moving, j] > 0.0))
        if ONE_WAY < forth < 1.0 - ONE_WAY:  # in one direction alone, friction and offset are one number: friction
            columns.append(np.ones(int(moving.sum())))
        x, _, sigma = agreed(np.column_stack(columns), left[moving, j])
        if sigma[0] < SURE:
            share[j] = np.clip(x[0], 0.0, MOST_SHARE)
    told = np.isfinite(share)
    if told.sum() < 2:
        return np.ones(n)
    return np.where(told, share, np.median(share[told]))


def runs(flags: Mask) -> list[tuple[int, int]]:
    """First and last index of every stretch of true values."""
    edges = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))
