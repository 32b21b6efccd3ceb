"""Drive gains from the controller's own targets: torque over current of a standing arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.types import Array

# rad/s below which a sample counts as rest: ten times the noise of a UR's velocity (0.002 rad/s). While moving, the
# controller's target current contains its friction feed-forward and the target moment does not.
REST = 0.02
# Nm that the target moment must reach to tell a gain. Both targets come from one computation, so that their quotient
# is exact up to the last recorded digit: 1e-6 of 1e-3 Nm is 0.1 %. A joint that carries nothing (the first and often
# the last of a UR on a table) has exactly 0 and tells nothing.
LEAST_MOMENT = 1e-3
# standard deviation (relative) above which a gain is reported as not observable
LEAST_PRECISION = 0.02
# Samples in a row at rest, of which the tenth at either end is left out: a turning point or a start is shorter at any
# rate, and there the target current already holds the friction of the motion to come.
LEAST_SAMPLES = 50


@dataclass(frozen=True)
class DriveGains:
    """Nm per A of motor current, joint by joint, with its standard deviation and whether the log could tell it."""

    gain: Array  # (n,) Nm/A, nan where not observable
    sigma: Array  # (n,) Nm/A, nan where not observable
    observable: tuple[bool, ...]
    reasons: tuple[str, ...]  # "" where observable, else why not

    def filled(self, known: Array) -> Array:
        """The gains with those of `known` (robot.drives.gain) where the log cannot tell; nan where neither can."""
        return np.where(self.observable, self.gain, known)


def drive_gains(target_current: ArrayLike, target_moment: ArrayLike, qd: ArrayLike) -> DriveGains:
    """Gains from the targets at rest: k = sum(moment current) / sum(current^2), least squares through the origin.

    At rest the controller's target moment is gravity, and its target current is that over the gain: the quotient is
    the gain, exactly what its firmware uses. Joints that carry no gravity are reported as not observable.

    target_current (N, n) [A], target_moment (N, n) [Nm], qd (N, n) [rad/s]. Samples with anything not finite are
    left out. The standard deviation comes from ten blocks of the samples, since neighbours repeat one another.
    """
    current, moment, speed = (np.asarray(a, dtype=np.float64) for a in (target_current, target_moment, qd))
    if current.ndim != 2 or current.shape != moment.shape or current.shape != speed.shape:
        raise InvalidValue(
            f"target_current, target_moment and qd: one shape (N, n), got {current.shape}, {moment.shape}, "
            f"{speed.shape}"
        )
    n = current.shape[1]
    rest = resting(np.where(np.isfinite(current + moment), speed, np.nan))
    gain, sigma, reasons = np.full(n, np.nan), np.full(n, np.nan), []
    for j in range(n):
        value, error, reason = _one(current[rest, j], moment[rest, j])
        reasons.append(reason)
        if not reason:
            gain[j], sigma[j] = value, error
    return DriveGains(gain, sigma, tuple(not reason for reason in reasons), tuple(reasons))


def resting(qd: Array) -> NDArray[np.bool_]:
    """Which samples (N,) of velocities (N, n) are in the inner part of a rest of all joints that lasts."""
    finite = np.asarray(np.isfinite(qd).all(axis=1))
    still = finite & (np.abs(np.where(finite[:, None], qd, 0.0)).max(axis=1) < REST)
    out = np.zeros(len(still), dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], still.astype(np.int8), [0]))))
    for start, end in zip(edges[0::2], edges[1::2], strict=True):
        if end - start >= LEAST_SAMPLES:
            margin = (end - start) // 10
            out[start + margin : end - margin] = True
    return out


def _step(values: Array) -> float:
    """The last decimal place that the values were recorded with."""
    for digits in range(10):  # beyond nine digits rounding is no matter any more
        if np.all(np.round(values, digits) == values):
            return float(10.0**-digits)
    return 0.0


def _one(current: Array, moment: Array) -> tuple[float, float, str]:
    if len(current) == 0:
        return np.nan, np.nan, f"the arm never rests for {LEAST_SAMPLES} samples in a row"
    largest = float(np.abs(moment).max())
    if largest < LEAST_MOMENT:
        reason = f"carries no load at rest: target moment at most {largest:.3g} Nm, {LEAST_MOMENT:g} needed"
        return np.nan, np.nan, reason
    loaded = np.abs(moment) >= LEAST_MOMENT
    current, moment = current[loaded], moment[loaded]
    power = float(current @ current)
    if power == 0.0:
        return np.nan, np.nan, "target current is zero although the joint carries a load"
    value = float(moment @ current) / power
    error = moment - value * current
    blocks = [(b @ c, c @ c) for b, c in zip(np.array_split(error, 10), np.array_split(current, 10), strict=True)]
    sigma = float(np.sqrt(sum(b**2 for b, _ in blocks)) / power)
    sigma = max(sigma, float(np.sqrt(error @ error / len(error) / power)))
    # a pose that is held repeats one rounding error: half a step of the recorded digits does not average out
    rms_current, rms_moment = np.sqrt(power / len(current)), np.sqrt(float(moment @ moment) / len(moment))
    sigma = max(sigma, value * 0.5 * (_step(current) / rms_current + _step(moment) / rms_moment))
    if value <= 0.0:
        return np.nan, np.nan, f"target moment and current have opposite signs (quotient {value:.3g} Nm/A)"
    if sigma > LEAST_PRECISION * value:
        return np.nan, np.nan, f"quotient scatters: {value:.4g} +- {sigma:.2g} Nm/A"
    return value, sigma, ""
