"""How much later than the motion the torque of a log is reported."""

from __future__ import annotations

import numpy as np

from tangere.identification.samples import LEAST_WINDOWS, Motion, Windows, grouped, midpoints
from tangere.types import Array

LONGEST = 0.024  # s by which reported torque may lag: filters of drives take some ms, one cycle of the recorder 8 ms
FEWEST = 3  # samples that are tried at least: slow recorders lag by one or two
_BETTER = 0.98  # a lag must leave less than this share of the squared error (mean over joints), or there is none
_CLEAR = 3.0  # standard deviations by which a delay must be better than none, all joints together
_AGREE = 2.0 / 3.0  # of the joints that must be better with it: a delay is the recorder's, so it is that of all joints
_BLOCK = 50  # windows (1 s) whose errors count as one: friction errs the same way for some tenths of a second
_ROWS = 4000  # per joint, evenly taken: enough for one number, and the cost stays below that of the fit itself
_SMALL = 1e-5  # of the largest singular value: columns below are combinations of others
# rad: friction that turns round over a distance (teeth and bearings that bend before they slide) lags as well, in
# travel instead of time. Measured on harmonic drives it is some tenths of a milliradian to some milliradians.
_MEMORY = np.array([1e-4, 3e-4, 1e-3, 3e-3, 1e-2])

_STEP = 0.0025  # s in which friction's memory is followed, speeds between samples taken as linear: it turns within one


def torque_delay(rows: Windows, motions: list[Motion], *, memory: bool = True) -> float:
    """The lag [s] of all torques that leaves the least of them to any linear model of these rows, 0 if none is clear.

    Free least squares on all columns, physical or not: only the residual is wanted. Joints count alike. Lags are tried
    in whole samples, whatever their jitter: between two, interpolation would average noise and win for that reason.
    memory: friction may lag behind a reversal by itself, z' = (sign(qd) - z) |qd| / s at several distances s; only what
    these cannot explain is a delay, and it must be clear and one of most joints. Without: whatever is best.
    """
    if not np.any(rows.moving.sum(axis=0) >= LEAST_WINDOWS):
        return 0.0
    period = float(np.median([np.median(np.diff(motion.time)) for motion in motions]))
    steps = max(FEWEST, round(LONGEST / period))
    torques = np.stack([_later(motions, step) for step in range(steps + 1)], axis=-1)  # (W, n, steps + 1)
    friction = [rows.F, _bent(motions)] if memory else [rows.F]
    shares, gains = [], []
    for j in range(rows.tau.shape[1]):
        if np.sum(rows.moving[:, j]) < LEAST_WINDOWS:
            continue
        # with its memory friction is known through a reversal as well: without the windows in which it turns, a lag
        # that is too long would look better than one that is too short
        use = np.flatnonzero(~rows.standing[:, j] if memory else rows.moving[:, j])
        use = use[:: max(1, len(use) // _ROWS)]
        A = np.concatenate([rows.Y[use, j], *(part[use, j] for part in friction)], axis=1)
        scale = np.sqrt(np.mean(A**2, axis=0))
        U, s, _ = np.linalg.svd(A[:, scale > 0.0] / scale[scale > 0.0], full_matrices=False)
        U = U[:, s > _SMALL * s[0]]
        target = torques[use, j]
        square = (target - U @ (U.T @ target)) ** 2
        error = np.mean(square, axis=0)
        if not error[0] > 0.0:
            continue
        shares.append(np.log(error / error[0]))
        better = np.add.reduceat(square[:, :1] - square, np.arange(0, len(use), _BLOCK))
        gains.append(better.sum(axis=0) / np.maximum(np.sqrt(np.sum(better**2, axis=0)), 1e-300))
    if not shares:
        return 0.0
    lost = np.mean(shares, axis=0)
    best = int(np.argmin(lost))
    if memory:
        t = np.array(gains)[:, best]
        if t.sum() < _CLEAR * np.sqrt(len(t)) or np.mean(t > 0.0) < _AGREE:
            return 0.0
    elif lost[best] >= np.log(_BETTER):
        return 0.0
    if best in (0, steps):
        return best * period
    # the vertex of the parabola through the best and its neighbours: squared errors are one, their logarithms are not
    near = np.array(shares)[:, best - 1 : best + 2]
    low, middle, high = np.mean(np.exp(near - near[:, 1:2]), axis=0)
    return float((best + 0.5 * (low - high) / (low - 2.0 * middle + high)) * period)


def _later(motions: list[Motion], step: int) -> Array:
    """Torque (W, n) of the windows, taken `step` samples later (the last samples keep the last)."""
    parts = []
    for motion in motions:
        m = midpoints(motion)
        rows, weight = grouped(m)
        last = len(motion.tau) - 1
        late = 0.5 * (motion.tau[np.minimum(m.index - 1 + step, last)] + motion.tau[np.minimum(m.index + step, last)])
        late = np.where(np.isfinite(late), late, m.tau)
        parts.append(np.einsum("ws,wsn->wn", weight, late[rows]))
    return np.concatenate(parts)


def _bent(motions: list[Motion]) -> Array:
    """Columns (W, n, len(_MEMORY)) of friction that turns round over distances: z' = (sign(qd) - z) |qd| / s."""
    parts = []
    for motion in motions:
        m = midpoints(motion)
        rows, weight = grouped(m)
        h, qd = np.diff(motion.time), np.nan_to_num(motion.qd)
        parts_of = max(1, round(float(np.median(h)) / _STEP))
        share = ((np.arange(parts_of) + 0.5) / parts_of)[:, None]
        speed = qd[:-1, None] + share * (qd[1:, None] - qd[:-1, None])  # (N - 1, parts_of, n)
        way = np.nan_to_num(speed * h[:, None, None] / parts_of).reshape(-1, qd.shape[1], 1)
        sign, keep = np.sign(way), np.exp(-np.abs(way) / _MEMORY)
        z = np.empty((len(way) + 1, qd.shape[1], len(_MEMORY)))
        z[0] = np.sign(qd[0])[:, None]
        for k in range(len(way)):
            z[k + 1] = sign[k] + (z[k] - sign[k]) * keep[k]
        z = z[::parts_of]
        middle = 0.5 * (z[m.index - 1] + z[m.index])
        parts.append(np.einsum("ws,ws...->w...", weight, middle[rows]))
    return np.concatenate(parts)
