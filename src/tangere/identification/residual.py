"""The momentum residual of a log with a drive model: what identification is judged by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tangere.identification.samples import Motion, midpoints, smoothed, was_smoothed
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
