"""How much later than the motion the torque of a log is reported."""

from __future__ import annotations

import numpy as np

from tangere.observe.identify.samples import LEAST_WINDOWS, Motion, Windows, window_torques

# Samples by which reported torque may lag: a filter on the current (UR10: 1 to 2 samples of 8 ms) or the wait of one
# cycle; more than three would be seen as a broken recorder.
# Whole samples only: between two, interpolation would average their noise and win for that reason.
STEPS = (0, 1, 2, 3)
_BETTER = 0.98  # a lag must leave less than this share of the squared error (mean over joints), or there is none
_ROWS = 4000  # per joint, evenly taken: enough for one number, and the cost stays below that of the fit itself
_RIDGE = 1e-10  # of the columns' squares: against columns that are combinations of others


def torque_delay(rows: Windows, motions: list[Motion]) -> float:
    """The lag [s] that leaves the least of the torque to any linear model of these rows.

    Free least squares on all columns, physical or not: only the residual is wanted. Joints count alike.
    """
    if not np.any(rows.moving.sum(axis=0) >= LEAST_WINDOWS):
        return 0.0
    period = float(np.median([np.median(np.diff(motion.time)) for motion in motions]))
    torques = np.stack([window_torques(motions, step * period) for step in STEPS], axis=-1)  # (W, n, steps)
    shares = []
    for j in range(rows.tau.shape[1]):
        use = np.flatnonzero(rows.moving[:, j])
        if len(use) < LEAST_WINDOWS:
            continue
        use = use[:: max(1, len(use) // _ROWS)]
        A = np.concatenate([rows.Y[use, j], rows.F[use, j]], axis=1)
        scale = np.sqrt(np.mean(A**2, axis=0))
        A = A[:, scale > 0.0] / scale[scale > 0.0]
        target = torques[use, j]
        x = np.linalg.solve(A.T @ A + _RIDGE * len(A) * np.eye(A.shape[1]), A.T @ target)
        error = np.mean((A @ x - target) ** 2, axis=0)
        shares.append(np.log(error / error[0] if error[0] > 0.0 else np.ones(len(STEPS))))
    lost = np.mean(shares, axis=0)
    best = int(np.argmin(lost))
    if lost[best] >= np.log(_BETTER):
        return 0.0
    if best == len(STEPS) - 1:
        return STEPS[best] * period
    low, middle, high = lost[best - 1 : best + 2]  # the vertex of the parabola through the best and its neighbours
    return float((best + 0.5 * (low - high) / (low - 2.0 * middle + high)) * period)
