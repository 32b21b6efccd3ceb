"""The momentum observer over a whole log at once, with a drive model: what identification is judged by."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.observe.drive_model import DriveModel
from tangere.observe.identify.samples import Motion, midpoints
from tangere.observe.inputs import per_joint
from tangere.robot import Robot
from tangere.types import Array

GAIN = 50.0  # 1/s, as the momentum observer's own
SETTLING = 0.2  # s after the start of a log that are left out of the figures: ten time constants of the observer


def momentum_residual(robot: Robot, drive: DriveModel, motion: Motion, gain: ArrayLike = GAIN) -> Array:
    """Residual (N, n) [Nm] of a log; nan where there is none (the first sample, beside a gap or a bad sample).

        y_k = M (qd_k - qd_{k-1}) / h + C qd + g + friction - tau,  all at the midpoint of two samples
        r_k = a r_{k-1} + (1 - a) y_k,  a = exp(-K h),  r = y after a start or a gap

    With the midpoint this y is the one of MomentumObserver up to O(h^2). robot: made with rotor inertia if the drive
    model's shall count (IdentifiedModel.robot does). It starts from the first y and not from 0, as a log may begin in
    motion. A drive model with a delay compares motion with the torque reported that much later: r at t is known at
    t + delay.
    """
    K = per_joint(gain, robot.dof, "gain", "1/s")
    m = midpoints(motion, drive.delay)
    y = robot.inverse_dynamics(m.q, m.qd, m.qdd) - m.tau
    y += drive.friction(m.q, m.qd, robot.gravity_torque(m.q))
    weight = -np.expm1(-m.h[:, None] * K)
    fresh = np.concatenate(([True], np.diff(m.index) != 1)).tolist()
    out = np.full(motion.q.shape, np.nan)
    r = np.zeros(robot.dof)
    filtered = np.empty_like(y)
    for k, anew in enumerate(fresh):
        r = y[k] if anew else r + weight[k] * (y[k] - r)
        filtered[k] = r
    out[m.index] = filtered
    return out


def moving_rms(robot: Robot, drive: DriveModel, motions: list[Motion], gain: ArrayLike = GAIN) -> Array:
    """Root mean square (n,) [Nm] of the residual over the samples at which the joint itself moves; nan where none."""
    total, count = np.zeros(robot.dof), np.zeros(robot.dof)
    for motion in motions:
        residual = momentum_residual(robot, drive, motion, gain)
        use = np.isfinite(residual) & drive.moving(np.nan_to_num(motion.qd))
        use &= (motion.time - motion.time[0] > SETTLING)[:, None]
        total += np.where(use, np.nan_to_num(residual) ** 2, 0.0).sum(axis=0)
        count += use.sum(axis=0)
    return np.asarray(np.sqrt(np.divide(total, count, out=np.full(robot.dof, np.nan), where=count > 0)))
