"""The twin: measured torque in, motion out, for a fifth of a second at a time; how far it ends from the real arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.model import IdentifiedModel
from tangere.identification.residual import unsmoothed
from tangere.identification.samples import GAP, Motion
from tangere.observe.drive_model import DriveModel
from tangere.robots import Robot
from tangere.types import Array

WINDOW = 0.2  # [s] ten time constants of a momentum observer, far beyond what a controller's period needs
# [s] step of the integration. Half of it changes no median of a UR10 or a UR3e by more than 2 %.
STEP = 0.001
# Slope dtau/dqd of friction is taken from the chord to at least this speed [rad/s], so that a joint that turns round
# within a step does not fly off on the steep part of its Coulomb friction.
_CHORD = 1e-3
_FASTEST = 20.0  # [rad/s] three times what any UR can do: a wrist without friction and rotor inertia knows no bounds
_MEMORY = 1.5  # [s] before a window that fill the lag of viscous friction: three of the longest lags seen (0.43 s)
_PAST = 0.02  # [s] between the speeds of that past: a lag below is none


@dataclass(frozen=True)
class FreeRun:
    """Windows of a log in which the model ran freely."""

    start: Array  # (W,) [s], stamp at which the model was let go
    error: Array  # (W, n) [rad], model less arm at the end
    moving: NDArray[np.bool_]  # (W, n) whether the joint moved, in one direction, at start and end of the window

    @property
    def median(self) -> Array:
        """Median |error| (n,) [rad] over the windows in which the joint moves; nan where there is none."""
        out = np.full(self.error.shape[1], np.nan)
        for j in range(len(out)):
            if np.any(self.moving[:, j]):
                out[j] = np.median(np.abs(self.error[self.moving[:, j], j]))
        return out


@dataclass(frozen=True)
class Starts:
    """Windows to run through: where the arm is let go, what drives it, and where it was at the end."""

    time: Array  # (W,) [s]
    q: Array  # (W, n) [rad]
    qd: Array  # (W, n) [rad/s]
    past: Array  # (P, W, n) [rad/s], speeds at multiples of _PAST before, from now backwards; a log's first before it
    tau: Array  # (S, W, n) Nm in the middle of each step, the drive's delay counted
    end: Array  # (W, n) [rad], the arm at the end
    moving: NDArray[np.bool_]  # (W, n)
    step: float  # [s]

    def taken(self, rows: NDArray[np.int64]) -> Starts:
        """Some of the windows."""
        return Starts(
            self.time[rows], self.q[rows], self.qd[rows], self.past[:, rows], self.tau[:, rows], self.end[rows],
            self.moving[rows], self.step,
        )  # fmt: skip


def free_run(
    robot: Robot,
    drive: DriveModel,
    motions: Sequence[Motion],
    *,
    friction: bool = True,
    window: float = WINDOW,
) -> FreeRun:
    """Let the model go from measured q and qd with measured torque, every half window, and see where it is at its end.

        M(q) qdd = tau(t + delay) - C qd - g - friction(q, qd, z)        lag z' = qd - z

    Torque is interpolated between samples; steps of STEP, linearly implicit in the friction, so that its steep part
    at zero velocity is stable. robot: with rotor inertia if it shall count. z: the speed that viscous and quadratic
    friction feel, behind the joint's by the drive's lag; it begins with what was measured before the window. Windows
    with a gap are left out. The torque of a smoothed log, which knows the reversals ahead of it, has friction's steps
    given back along the measured motion (unsmoothed) where the drive comes from such logs. Standing joints have no
    stiction here and creep: `moving` says which errors mean something.
    """
    if friction:
        motions = [unsmoothed(robot, drive, motion) for motion in motions]
    start = starts(drive, motions, window)
    end = ran(robot, drive if friction else None, start)
    return FreeRun(start.time, end - start.end, start.moving)


def twin(model: IdentifiedModel, base: Robot, motions: Sequence[Motion]) -> dict[str, FreeRun]:
    """The four comparisons: the whole model, without friction, without rotor inertia, with neither.

    With the drives for running freely, where the model has some; then also without them: those of the torque fit.
    """
    drive = model.twin or model.drive
    light = Robot(model.model(base.model))
    whole = Robot(light.model, drive.rotor_inertia)
    runs = {
        "identified": free_run(whole, drive, motions),
        "without friction": free_run(whole, drive, motions, friction=False),
        "without rotor inertia": free_run(light, drive, motions),
        "with neither": free_run(light, drive, motions, friction=False),
    }
    return runs if model.twin is None else runs | {"torque fit": free_run(model.robot(base), model.drive, motions)}


def starts(drive: DriveModel, motions: Sequence[Motion], window: float = WINDOW, step: float = STEP) -> Starts:
    """All windows of some logs, half a window apart; drive: for its delay and its standstill speed."""
    if not (np.isfinite(window) and window > 0.0):
        raise InvalidValue(f"window: must be positive [s], got {window!r}")
    steps = max(1, round(window / step))
    middle = (np.arange(steps) + 0.5)[:, None] * (window / steps) + drive.delay
    before = -_PAST * np.arange(round(_MEMORY / _PAST) + 1)[:, None]
    parts: list[tuple[Array, ...]] = []
    for motion in motions:
        first, last = _windows(motion, window)
        if len(first) == 0:
            continue
        time, qd = motion.time[first], motion.qd
        one_way = np.sign(qd[first]) == np.sign(qd[last])
        moving = drive.moving(qd[first]) & drive.moving(qd[last]) & one_way
        parts.append((
            time, motion.q[first], qd[first], moving, _at(time + window, motion.time, motion.q),
            _at(time + before, motion.time, qd), _at(time + middle, motion.time, motion.tau),
        ))  # fmt: skip
    if not parts:
        raise InvalidValue(f"free_run: no window of {window:g} s without a gap in {len(motions)} logs")
    time, q, qd, moving, end = (np.concatenate([part[k] for part in parts]) for k in range(5))
    past, tau = (np.concatenate([part[k] for part in parts], axis=1) for k in (5, 6))
    return Starts(time, q, qd, past, tau, end, moving.astype(bool), window / steps)


def ran(robot: Robot, drive: DriveModel | None, start: Starts) -> Array:
    """q (W, n) [rad] at the end of the windows; drive: None for no friction."""
    q, qd, h = start.q.copy(), start.qd.copy(), start.step
    eye = np.eye(robot.dof)
    lag = np.zeros(robot.dof) if drive is None else drive.lag
    late = lag > _PAST
    lag = np.where(late, lag, 1.0)
    keep, z = np.exp(-h / lag), _lagged(start.past, lag)
    prompt = drive  # friction of the speed now; what is late comes by itself
    if drive is not None and np.any(late):
        viscous, quadratic = (np.where(late, 0.0, term) for term in (drive.viscous, drive.quadratic))
        prompt = replace(drive, viscous=viscous, quadratic=quadratic)
    for tau in start.tau:
        middle = q + 0.5 * h * qd
        force = tau - robot.bias_torque(middle, qd)
        M = robot.mass_matrix(middle)
        if drive is not None and prompt is not None:
            g = robot.gravity_torque(middle)
            rubbing = prompt.friction(middle, qd, g)
            ahead = np.where(qd >= 0.0, _CHORD, -_CHORD)
            slope = np.maximum((prompt.friction(middle, qd + ahead, g) - rubbing) / ahead, 0.0)
            force = force - rubbing
            if prompt is not drive:
                force = force - np.where(late, (drive.viscous + drive.quadratic * np.abs(z)) * z, 0.0)
            M = M + h * slope[..., None] * eye
        change = h * np.linalg.solve(M, force[..., None])[..., 0]
        q = q + h * (qd + 0.5 * change)
        z = keep * z + (1.0 - keep) * (qd + 0.5 * change)
        qd = np.clip(qd + change, -_FASTEST, _FASTEST)
    return q


def _lagged(past: Array, lag: Array) -> Array:
    """z (W, n) of lag z' = qd - z after the speeds of the past, which stood at the oldest of them before."""
    keep = np.exp(-_PAST / lag)
    z: Array = past[-1]
    for older, newer in zip(past[:0:-1], past[-2::-1], strict=True):
        z = keep * z + (1.0 - keep) * 0.5 * (older + newer)
    return np.asarray(z)


def _at(when: Array, time: Array, values: Array) -> Array:
    """values (N, n) between their stamps, at `when` (...): (..., n)."""
    return np.stack([np.interp(when, time, column) for column in values.T], axis=-1)


def _windows(motion: Motion, window: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last sample of windows without a gap or a touch, half a window apart."""
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
    if motion.free is not None:
        touched = np.concatenate(([0], np.cumsum(~motion.free)))
        whole &= touched[last + 1] == touched[at]
    return at[whole], last[whole]
