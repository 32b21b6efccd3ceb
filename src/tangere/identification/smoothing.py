"""Logs that were smoothed before anybody saw them: found by their silence, and the steps of friction given back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tangere.identification.low_pass import silent_above, smoothed
from tangere.identification.samples import LEAST_WINDOWS, Motion, Windows, was_smoothed, windows
from tangere.observe.drive_model import DriveModel
from tangere.robots import Robot
from tangere.types import Array

_SHARE = 0.2  # of the rate: a log that is silent only above has not been smoothed by more than its recorder
_SHORTEST = 5.0  # s: of a shorter log too few reversals are left to tell; 7 s told it within 5 %
# Cutoffs that are tried, as shares of the frequency above which nothing is left: 0.42 for friction's steps
_TRIED = 0.42 * np.geomspace(0.5, 2.0, 17)  # 9 % from one to the next, the error is a parabola over some 30 %
_BETTER = 0.7  # of the squared error (mean over joints) that smoothed friction may leave at most; found: 0.07 to 0.2
# Periods of the lowest cutoff, at both ends of a log, that do not choose among cutoffs: friction of beyond is in them
_BEYOND = 0.5
_SMALL = 1e-5  # of the largest singular value: columns below are combinations of others


def smoothing(robot: Robot, motions: Sequence[Motion]) -> float:
    """The cutoff [Hz] of the low-pass that torque and motion went through before they were written; 0 if none.

    Suspected where the torque of the longest log is silent above a low frequency, and believed where its speeds are as
    well (was_smoothed) and friction that went through the same filter then leaves clearly less of the torque (_BETTER)
    to any linear model, which also tells the cutoff. A filter without phase is meant: one that delays leaves no less.
    """
    longest = max(motions, key=lambda motion: len(motion.time))
    silent = silent_above(longest.time, longest.tau)
    if not (np.isfinite(silent) and silent < _SHARE / float(np.median(np.diff(longest.time)))):
        return 0.0
    if longest.time[-1] - longest.time[0] < _SHORTEST:
        return 0.0
    tried = silent * _TRIED
    rows = [windows(robot, [longest], (), smoothing=float(cutoff)) for cutoff in (0.0, *tried)]
    ends = round(_BEYOND / (tried[0] * rows[0].period))
    left = np.log([_left(row, ends) for row in rows])
    if left.shape[1] == 0:  # no joint moves for long enough
        return 0.0
    total = np.mean(left[1:] - left[0], axis=1)
    best = int(np.argmin(total))
    if best in (0, len(tried) - 1) or not total[best] < np.log(_BETTER):
        return 0.0
    low, middle, high = total[best - 1 : best + 2]
    return float(tried[best] * (tried[1] / tried[0]) ** (0.5 * (low - high) / (low - 2.0 * middle + high)))


def unsmoothed(robot: Robot, drive: DriveModel, motion: Motion) -> Motion:
    """A smoothed log with the steps of its friction given back to the torque; the log itself where it was not smoothed.

        tau + f - smoothed(f)        f: Coulomb friction, its load, quadratic friction and ripple along the log

    A filter that looks ahead has rounded each step of friction, with ringing before it and after: half a second ahead
    of a reversal the torque knows of it. A law of the speed now, as observers and free runs have it, does not. Only
    what is known of the drive is given back; contacts stay as rounded as they are. drive: its smoothing [Hz].
    """
    if not was_smoothed(motion, drive.smoothing):
        return motion
    nothing = np.zeros(drive.dof)  # what is linear in the speed has been smoothed with it
    steps = replace(drive, viscous=nothing, offset=nothing)
    f = steps.friction(motion.q, motion.qd, robot.gravity_torque(motion.q))
    lost = f - smoothed(f, float(np.median(np.diff(motion.time))), drive.smoothing)
    reported = motion.time - drive.delay  # when what the torque says happened
    late = np.stack([np.interp(reported, motion.time, column) for column in lost.T], axis=1)
    return replace(motion, tau=motion.tau + late)


def smooth_log(cutoff: float) -> str:
    """What is said about such a log."""
    return (
        f"the log was smoothed at {cutoff:.1f} Hz, forwards and backwards: friction is smoothed alike for the fit, and "
        "its steps are given back to the torque for residuals and the twin; what is faster the log cannot tell"
    )


def _left(rows: Windows, ends: int) -> Array:
    """Mean squared torque [Nm2] of each moving joint that the best linear model of the rows leaves, physical or not.

    ends: how many rows to leave out at both.
    """
    left = []
    moving = rows.moving.copy()
    moving[:ends] = moving[len(moving) - ends :] = False
    for j in np.flatnonzero(moving.sum(axis=0) >= LEAST_WINDOWS):
        use = moving[:, j]
        A = np.concatenate([rows.Y[use, j], rows.F[use, j]], axis=1)
        scale = np.sqrt(np.mean(A**2, axis=0))
        U, s, _ = np.linalg.svd(A[:, scale > 0.0] / scale[scale > 0.0], full_matrices=False)
        U = U[:, s > _SMALL * s[0]]
        rest = rows.tau[use, j] - U @ (U.T @ rows.tau[use, j])
        left.append(float(np.mean(rest**2)) + 1e-12)  # Nm2: a log that a model made leaves nothing
    return np.array(left)
