"""The momentum residual of a log, and what a recorder did to it before: torque reported late, everything smoothed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tangere.identification.findings import Finding
from tangere.identification.samples import (
    LEAST_WINDOWS,
    Motion,
    Windows,
    grouped,
    midpoints,
    silent_above,
    smoothed,
    was_smoothed,
    windows,
)
from tangere.observe.drive_model import DriveModel
from tangere.observe.friction_state import without_friction_state
from tangere.observe.momentum import GAIN
from tangere.observe.replay import replay_momentum
from tangere.robots import Robot
from tangere.types import Array

SETTLING = 0.2  # [s] after the start of a log that are left out of the figures: ten time constants of the observer


def momentum_residual(robot: Robot, drive: DriveModel, motion: Motion, gain: ArrayLike = GAIN) -> Array:
    """Residual (N, n) [Nm] of a log; nan where there is none (the first sample, beside a gap or a bad sample).

    replay_momentum with the drive model's whole law, and what a log of measured torques asks for: tau of a period is
    the mean of its two ends; r begins with the first y and not with 0, as a log may begin in motion, and so it does
    after a gap or a bad sample. A drive model with a delay compares motion with the torque reported that much later:
    r at t is known at t + delay (an observer at work, which cannot wait, gives it then). Where the drive model comes
    from smoothed logs, another such log has friction's steps given back to its torque (unsmoothed). robot: made with
    rotor inertia if the drive model's shall count (IdentifiedModel.robot does).
    """
    motion = unsmoothed(robot, drive, motion)
    m = midpoints(motion, drive.delay)
    period, tau = np.full(len(motion.time), np.nan), np.zeros_like(motion.q)
    period[m.index], tau[m.index] = m.h, m.tau
    residual = replay_momentum(
        robot, motion.time, motion.q, motion.qd, tau, gain, drive, period=period, start="first", delay=0.0
    )
    out = np.full(motion.q.shape, np.nan)
    out[m.index] = residual[m.index]
    return out


def moving_rms(
    robot: Robot, drive: DriveModel, motions: list[Motion], gain: ArrayLike = GAIN, *, following: bool = False
) -> Array:
    """Root mean square (n,) [Nm] of the residual over the samples at which the joint itself moves; nan where none.

    following: with what each log has shown of its friction up to the sample taken off (FrictionState).
    """
    total, count = np.zeros(robot.dof), np.zeros(robot.dof)
    for motion in motions:
        residual = momentum_residual(robot, drive, motion, gain)
        if following:
            residual = without_friction_state(drive, motion.time, residual, motion.qd)
        use = np.isfinite(residual) & drive.moving(np.nan_to_num(motion.qd))
        use &= (motion.time - motion.time[0] > SETTLING)[:, None]
        total += np.where(use, np.nan_to_num(residual) ** 2, 0.0).sum(axis=0)
        count += use.sum(axis=0)
    return np.asarray(np.sqrt(np.divide(total, count, out=np.full(robot.dof, np.nan), where=count > 0)))


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


LONGEST = 0.024  # [s] by which reported torque may lag: filters of drives take some ms, one cycle of the recorder 8 ms
FEWEST = 3  # samples that are tried at least: slow recorders lag by one or two
_BETTER = 0.98  # a lag must leave less than this share of the squared error (mean over joints), or there is none
_CLEAR = 3.0  # standard deviations by which a delay must be better than none, all joints together
_AGREE = 2.0 / 3.0  # of the joints that must be better with it: a delay is the recorder's, so it is that of all joints
_BLOCK = 50  # windows (1 s) whose errors count as one: friction errs the same way for some tenths of a second
_ROWS = 4000  # per joint, evenly taken: enough for one number, and the cost stays below that of the fit itself
_SMALL = 1e-5  # of the largest singular value: columns below are combinations of others
# [rad] friction that turns round over a distance (teeth and bearings that bend before they slide) lags as well, in
# travel instead of time. Measured on harmonic drives it is some tenths of a milliradian to some milliradians.
_MEMORY = np.array([1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
_STEP = 0.0025  # [s] step in which friction's memory is followed, speeds between samples taken as linear
_SHARE = 0.2  # of the rate: a log that is silent only above has not been smoothed by more than its recorder
_SHORTEST = 5.0  # [s] of a shorter log too few reversals are left to tell; 7 s told it within 5 %
# Cutoffs that are tried, as shares of the frequency above which nothing is left: 0.42 for friction's steps
_TRIED = 0.42 * np.geomspace(0.5, 2.0, 17)  # 9 % from one to the next, the error is a parabola over some 30 %
_SMOOTHER = 0.7  # of the squared error (mean over joints) that smoothed friction may leave at most; found: 0.07 to 0.2
# Periods of the lowest cutoff, at both ends of a log, that do not choose among cutoffs: friction of beyond is in them
_BEYOND = 0.5


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
        square = _unexplained(A, torques[use, j]) ** 2
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


def smoothing(robot: Robot, motions: Sequence[Motion]) -> float:
    """The cutoff [Hz] of the low-pass that torque and motion went through before they were written; 0 if none.

    Suspected where the torque of the longest log is silent above a low frequency, and believed where its speeds are as
    well (was_smoothed) and friction that went through the same filter then leaves clearly less of the torque
    (_SMOOTHER)
    to any linear model, which also tells the cutoff. A filter without phase is meant: one that delays leaves no less.
    """
    longest = max(motions, key=lambda motion: len(motion.time))
    silent = silent_above(longest.time, longest.tau)
    if not (np.isfinite(silent) and silent < _SHARE / float(np.median(np.diff(longest.time)))):
        return 0.0
    if longest.time[-1] - longest.time[0] < _SHORTEST:
        return 0.0
    tried = silent * _TRIED
    rows = [windows(robot, [longest], smoothing=float(cutoff)) for cutoff in (0.0, *tried)]
    ends = round(_BEYOND / (tried[0] * rows[0].period))
    left = np.log([_left(row, ends) for row in rows])
    if left.shape[1] == 0:  # no joint moves for long enough
        return 0.0
    total = np.mean(left[1:] - left[0], axis=1)
    best = int(np.argmin(total))
    if best in (0, len(tried) - 1) or not total[best] < np.log(_SMOOTHER):
        return 0.0
    low, middle, high = total[best - 1 : best + 2]
    return float(tried[best] * (tried[1] / tried[0]) ** (0.5 * (low - high) / (low - 2.0 * middle + high)))


def smooth_log(cutoff: float) -> Finding:
    """What is said about such a log."""
    text = (
        f"the log was smoothed at {cutoff:.1f} Hz, forwards and backwards: friction is smoothed alike for the fit, and "
        "its steps are given back to the torque for residuals and the twin; what is faster the log cannot tell"
    )
    return Finding("smoothed", text)


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
        # [Nm2] a log that a model made leaves nothing
        left.append(float(np.mean(_unexplained(A, rows.tau[use, j]) ** 2)) + 1e-12)
    return np.array(left)


def _unexplained(A: Array, target: Array) -> Array:
    """What no combination of the columns of A (K, m) explains of target (K, ...): target - U U^T target."""
    scale = np.sqrt(np.mean(A**2, axis=0))
    U, s, _ = np.linalg.svd(A[:, scale > 0.0] / scale[scale > 0.0], full_matrices=False)
    U = U[:, s > _SMALL * s[0]]
    return np.asarray(target - U @ (U.T @ target))
