"""The twin: measured torque in, motion out, for a fifth of a second at a time; how far it ends from the real arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.observe.drive_model import DriveModel
from tangere.observe.identify.model import IdentifiedModel
from tangere.observe.identify.samples import GAP, Motion
from tangere.robot import Robot
from tangere.types import Array

WINDOW = 0.2  # s: ten time constants of a momentum observer, far beyond what a controller's period needs
# s, step of the integration. Half of it changes no median of a UR10 or a UR3e by more than 2 %.
STEP = 0.001
# Slope dtau/dqd of friction is taken from the chord to at least this speed [rad/s], so that a joint that turns round
# within a step does not fly off on the steep part of its Coulomb friction.
_CHORD = 1e-3
_FASTEST = 20.0  # rad/s, three times what any UR can do: a wrist without friction and rotor inertia knows no bounds


@dataclass(frozen=True)
class FreeRun:
    """Windows of a log in which the model ran freely."""

    start: Array  # (W,) s, stamp at which the model was let go
    error: Array  # (W, n) rad, model less arm at the end
    moving: NDArray[np.bool_]  # (W, n) whether the joint moved, in one direction, at start and end of the window

    @property
    def median(self) -> Array:
        """Median |error| (n,) [rad] over the windows in which the joint moves; nan where there is none."""
        out = np.full(self.error.shape[1], np.nan)
        for j in range(len(out)):
            if np.any(self.moving[:, j]):
                out[j] = np.median(np.abs(self.error[self.moving[:, j], j]))
        return out


def free_run(
    robot: Robot, drive: DriveModel, motions: Sequence[Motion], *, friction: bool = True, window: float = WINDOW
) -> FreeRun:
    """Let the model go from measured q and qd with measured torque, every half window, and see where it is at its end.

        M(q) qdd = tau(t + delay) - C qd - g - friction(q, qd)

    Torque is interpolated between samples; steps of STEP, linearly implicit in the friction, so that its steep part
    at zero velocity is stable. robot: with rotor inertia if it shall count. Windows with a gap are left out. Standing
    joints have no stiction here and creep: `moving` says which errors mean something.
    """
    if not (np.isfinite(window) and window > 0.0):
        raise InvalidValue(f"window: must be positive [s], got {window!r}")
    parts = [_windows(motion, window) for motion in motions]
    if not sum(len(first) for first, _ in parts):
        raise InvalidValue(f"free_run: no window of {window:g} s without a gap in {len(parts)} logs")
    starts, errors, moving = [], [], []
    for motion, (first, last) in zip(motions, parts, strict=True):
        if len(first) == 0:
            continue
        start = motion.time[first]
        q, _ = _run(robot, drive if friction else None, motion, first, window, drive.delay)
        there = np.stack([np.interp(start + window, motion.time, column) for column in motion.q.T], axis=1)
        starts.append(start)
        errors.append(q - there)
        one_way = np.sign(motion.qd[first]) == np.sign(motion.qd[last])
        moving.append(drive.moving(motion.qd[first]) & drive.moving(motion.qd[last]) & one_way)
    return FreeRun(np.concatenate(starts), np.concatenate(errors), np.concatenate(moving))


def twin(model: IdentifiedModel, base: Robot, motions: Sequence[Motion]) -> dict[str, FreeRun]:
    """The four comparisons: the whole model, without friction, without rotor inertia, with neither."""
    whole = model.robot(base)
    light = Robot(whole.model)
    drive = model.drive
    return {
        "identified": free_run(whole, drive, motions),
        "without friction": free_run(whole, drive, motions, friction=False),
        "without rotor inertia": free_run(light, drive, motions),
        "with neither": free_run(light, drive, motions, friction=False),
    }


def _windows(motion: Motion, window: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last sample of windows without a gap, half a window apart."""
    time = motion.time
    h = np.diff(time)
    good = np.isfinite(motion.q + motion.qd + motion.tau).all(axis=1)
    if not np.all(h > 0.0) or not good.all():
        raise InvalidValue(f"{motion.name or 'log'}: stamps must rise and all samples be finite for a free run")
    at = np.searchsorted(time, np.arange(time[0], time[-1] - window, 0.5 * window))
    last = np.searchsorted(time, time[at] + window)
    inside = last < len(time)
    at, last = at[inside], last[inside]
    gaps = np.concatenate(([0], np.cumsum(h > GAP * np.median(h))))
    whole = gaps[last] == gaps[at]
    return at[whole], last[whole]


def _run(
    robot: Robot, drive: DriveModel | None, motion: Motion, first: NDArray[np.int64], window: float, delay: float
) -> tuple[Array, Array]:
    """q and qd (W, n) at the end of the windows that begin at the samples `first`."""
    q, qd = motion.q[first].copy(), motion.qd[first].copy()
    steps = max(1, round(window / STEP))
    h = window / steps
    eye = np.eye(robot.dof)
    for k in range(steps):
        time = motion.time[first] + (k + 0.5) * h + delay
        tau = np.stack([np.interp(time, motion.time, column) for column in motion.tau.T], axis=1)
        middle = q + 0.5 * h * qd
        force = tau - robot.bias_torque(middle, qd)
        M = robot.mass_matrix(middle)
        if drive is not None:
            g = robot.gravity_torque(middle)
            rubbing = drive.friction(middle, qd, g)
            ahead = np.where(qd >= 0.0, _CHORD, -_CHORD)
            slope = np.maximum((drive.friction(middle, qd + ahead, g) - rubbing) / ahead, 0.0)
            force = force - rubbing
            M = M + h * slope[..., None] * eye
        change = h * np.linalg.solve(M, force[..., None])[..., 0]
        q = q + h * (qd + 0.5 * change)
        qd = np.clip(qd + change, -_FASTEST, _FASTEST)
    return q, qd
