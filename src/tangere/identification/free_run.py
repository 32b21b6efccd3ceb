"""The twin: measured torque in, motion out, for a fifth of a second at a time, and drives that can run freely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.findings import Finding
from tangere.identification.model import IdentifiedModel
from tangere.identification.prior import prior_drive
from tangere.identification.recorder import unsmoothed
from tangere.identification.samples import GAP, Motion
from tangere.identification.solve import HUBER
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


FITTED = ("coulomb", "viscous", "offset", "lag")
_CHANGED = (*FITTED, "rotor_inertia")
# Of the rotor inertia that is known of the arm or of its peak torque: where less than this share was found, friction
# may be late. Found on a UR10e: 0.8 to 1.3; on a UR3e 1 to 2.6, 0.7 where it can hardly be told; on a UR10 0 to 0.55.
LEAST_ROTOR = 0.75
SHORTEST = 0.05  # [s] a shorter lag changes nothing in 0.2 s, and the joint keeps its drive
_STEP = 0.002  # [s] of integration, twice that of a free run: errors change by less than 3 %
_MOST = 300  # windows, evenly taken: half a minute of motion is enough for four numbers, and the fit takes seconds
_FEWEST = 10  # windows in which a joint must move, else it keeps what it has
_ROUNDS = 6  # of Gauss-Newton; the last changes errors by less than 1 %
_INDEPENDENT = 1.0  # [s] apart, errors of free runs count as independent: friction errs the same way for some tenths
_SHARE = 0.5 * WINDOW / _INDEPENDENT  # what a window counts: half a window after the one before
_LAG = 0.5  # [s] standard deviation of a lag of which nothing is known: the longest seen is 0.4
_FIRST = 0.1  # [s] lag with which the search begins: at 0 there is no slope
_NUDGE = 0.05  # standard deviations by which a number is changed for the slope of the errors
_DAMPING = 1e-3  # of Levenberg and Marquardt, at first


def refined(model: IdentifiedModel, base: Robot, motions: Sequence[Motion]) -> DriveModel | None:
    """Drives, with lags, that run along the logs; None where the model's own have rotors and need no others.

        min  sum_windows Huber(error_j / spread_j) + sum_p ((p - p_0) / sigma_p)^2        p in FITTED

    A fit of torques sees a rotor and a lag of friction behind the speed as one: slow motion needs the torque
    (rotor_inertia - lag viscous) qdd. Where friction lags, the rotor inertia found is too small, and the difference
    often below zero, which no fit may give and no arm can run with: a UR10's wrists need -0.2 to -0.3 kg m2, and with
    the 0 that is allowed they run away from any error of their friction. Joints with less than LEAST_ROTOR of the rotor
    that is known get that one, and their friction is fitted to where the arm is 200 ms later; those of which the lag
    then is shorter than SHORTEST keep their drive. p_0: the torque fit's, sigma its covariance, no lag. Rotors are not
    fitted: errors of the torque make a rotor that is too heavy predict better than the true one.

    motions: those that the model was identified from, in its torque. Logs with bad samples are left out.
    """
    known = prior_drive(base).rotor_inertia
    late = np.array(model.moved) & (model.drive.rotor_inertia < LEAST_ROTOR * known)
    clean = [motion for motion in motions if _clean(motion)]
    if not (np.any(late) and clean):
        return None
    try:
        body = Robot(model.model(base.model))
        start = starts(model.drive, [unsmoothed(body, model.drive, motion) for motion in clean], WINDOW, _STEP)
    except InvalidValue:  # gaps everywhere: nothing can be run, and nothing be told
        return None
    late &= start.moving.sum(axis=0) >= _FEWEST
    if len(start.time) > _MOST:
        start = start.taken(np.linspace(0, len(start.time) - 1, _MOST).astype(np.int64))
    # ripple is over before it has moved the arm, and most of the time that friction takes
    none = np.zeros((base.dof, 0))
    smooth = replace(model.drive, orders=(), ripple=none, ripple_load=none, ripple_drag=none)
    drive = replace(smooth, rotor_inertia=np.where(late, known, model.drive.rotor_inertia))
    x = _fitted(Robot(model.model(base.model), drive.rotor_inertia), drive, start, *_prior(model, base.dof), late)
    late &= x[-1] >= SHORTEST
    if not np.any(late):
        return None
    found = _with(drive, x)
    kept = {name: np.where(late, getattr(found, name), getattr(model.drive, name)) for name in _CHANGED}
    return replace(found, **kept)


def late_friction(drive: DriveModel) -> Finding:
    """What a refined drive says about its arm."""
    joints = np.flatnonzero(drive.lag > 0.0)
    which = ("joint " if len(joints) == 1 else "joints ") + ", ".join(str(j + 1) for j in joints)
    late = ", ".join(f"{drive.lag[j]:.2f}" for j in joints)
    text = (
        f"{which}: torque shows too little rotor inertia, as if viscous friction followed the speed {late} s late; "
        "the twin runs with such a lag and the rotors that are known of the arm"
    )
    return Finding("late", text, int(joints[0]) + 1 if len(joints) == 1 else None)


def _fitted(arm: Robot, drive: DriveModel, start: Starts, mean: Array, sigma: Array, late: NDArray[np.bool_]) -> Array:
    """Numbers (4, n): FITTED of each joint that is late, the mean of all others. Gauss-Newton, joint by joint.

    What a joint's numbers do to other joints is small and left out of the slopes, not out of the errors.
    """

    def errors(x: Array) -> Array:
        return np.where(start.moving, ran(arm, _with(drive, x), start) - start.end, 0.0)

    x = mean.copy()
    x[-1] = np.where(late, _FIRST, 0.0)
    damping = np.full(len(late), _DAMPING)
    error = errors(x)
    for _ in range(_ROUNDS):
        # of the windows in which it moves, robustly; never 0, for a log that the model itself has made
        spread = np.array([1.4826 * np.median(np.abs(e[m])) if np.any(m) else 1.0
                           for e, m in zip(error.T, start.moving.T, strict=True)]) + 1e-6  # fmt: skip
        slopes = np.empty((len(x), *error.shape))
        for k in range(len(x)):
            nudged = x.copy()
            nudged[k] += _NUDGE * sigma[k]
            slopes[k] = (errors(nudged) - error) / (_NUDGE * sigma[k])
        new = x.copy()
        for j in np.flatnonzero(late):
            A, e = slopes[:, :, j].T / spread[j], error[:, j] / spread[j]
            W = A * (_SHARE * np.minimum(1.0, HUBER / np.maximum(np.abs(e), 1e-12)))[:, None]
            information = W.T @ A + np.diag(1.0 / sigma[:, j] ** 2)
            downhill = W.T @ e + (x[:, j] - mean[:, j]) / sigma[:, j] ** 2
            new[:, j] -= np.linalg.solve(information + damping[j] * np.diag(np.diag(information)), downhill)
        positive = [k for k, name in enumerate(FITTED) if name != "offset"]
        new[positive] = np.maximum(new[positive], 0.0)
        tried = errors(new)
        before, after = (_cost(e / spread, (p - mean) / sigma) for e, p in ((error, x), (tried, new)))
        better = late & (after < before)
        x = np.where(better, new, x)
        damping = np.where(better, 0.3, 10.0) * damping
        error = tried if np.array_equal(better, late) else errors(x)
    return x


def _with(drive: DriveModel, x: Array) -> DriveModel:
    return replace(drive, coulomb=x[0], viscous=x[1], offset=x[2], lag=x[3])


def _prior(model: IdentifiedModel, n: int) -> tuple[Array, Array]:
    """Mean and standard deviation (4, n) of FITTED."""
    names = FITTED[:-1]
    at = np.array([[model.parameters.index(f"joint {j + 1} {name}") for j in range(n)] for name in names])
    mean = np.array([*(getattr(model.drive, name) for name in names), np.zeros(n)])
    sigma = np.concatenate([model.sigma[at], np.full((1, n), _LAG)])
    return mean, np.maximum(sigma, 1e-6)  # a joint that was not estimated has none, and is not fitted here


def _cost(size: Array, off: Array) -> Array:
    """Huber's loss (n,) of errors in spreads, and of what numbers are off in standard deviations."""
    size = np.abs(size)
    lost = np.where(size < HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
    return np.asarray(_SHARE * lost.sum(axis=0) + 0.5 * np.sum(off**2, axis=0))


def _clean(motion: Motion) -> bool:
    """Whether a log can be run freely at all, and is longer than a few windows."""
    rising = bool(np.all(np.diff(motion.time) > 0.0))
    finite = bool(np.isfinite(motion.q + motion.qd + motion.tau).all())
    return rising and finite and motion.time[-1] - motion.time[0] > 5.0 * WINDOW
