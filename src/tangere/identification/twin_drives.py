"""Drives for a twin, where the torque fit leaves none that can run freely: rotors as known, and friction that lags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.findings import Finding
from tangere.identification.free_run import WINDOW, Starts, ran, starts
from tangere.identification.model import IdentifiedModel
from tangere.identification.prior import prior_drive
from tangere.identification.residual import unsmoothed
from tangere.identification.samples import Motion
from tangere.identification.solve import HUBER
from tangere.observe.drive_model import DriveModel
from tangere.robots import Robot
from tangere.types import Array

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
    drive = replace(model.drive, rotor_inertia=np.where(late, known, model.drive.rotor_inertia))
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
