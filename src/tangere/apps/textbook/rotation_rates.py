"""How fast a rotation changes: angular velocity and the rates of quaternion, yaw-pitch-roll and rotation vector.

Each representation chi has one matrix E with omega = E(chi) chi_dot, in two versions: omega in world axes
(Rdot = skew(omega_world) R) and in body axes (Rdot = R skew(omega_body)), omega_world = R omega_body. 003 mixes the
two: its Rdot R^T is world, its quaternion rate is body. The argument `frame` always says which one is meant.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked
from tangere.kinematics.rotation import GIMBAL_LOCK, normalised, skew

Frame = Literal["world", "body"]


def quaternion_rate_matrix(quaternion: ArrayLike, frame: Frame) -> Array:
    """E (..., 3, 4) with omega = E qdot = 2 H qdot, and E^+ = E^T / 4: qdot = 1/2 H^T omega.

        body:  H = [-x w z -y; -y -z w x; -z y -x w]     world: H = [-x w -z y; -y z w -x; -z -y x w]

    quaternion (..., 4), normalised on the way.
    """
    w, x, y, z = np.moveaxis(normalised(quaternion), -1, 0)
    if _is_body(frame):
        rows = [[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]
    else:
        rows = [[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]]
    return 2.0 * np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_rate(quaternion: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """qdot (..., 4) = 1/2 q (x) (0, omega_body) = 1/2 (0, omega_world) (x) q.

    003's matrix Omega holds for body omega only, though the line before it defines omega in world axes.
    """
    E = quaternion_rate_matrix(quaternion, frame)
    return _apply(np.swapaxes(E, -1, -2) / 4.0, checked(omega, (3,), "omega"))


def omega_from_quaternion_rate(quaternion: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """omega (..., 3) [rad/s] of a quaternion and its rate (..., 4); a part of the rate along q is ignored."""
    return _apply(quaternion_rate_matrix(quaternion, frame), checked(rate, (4,), "rate"))


def ypr_rate_matrix(ypr: ArrayLike, frame: Frame) -> Array:
    """E (..., 3, 3) with omega = E (psid, thetad, phid), columns for yaw, pitch, roll.

        world: [0 -s_psi c_theta c_psi; 0 c_psi c_theta s_psi; 1 0 -s_theta]
        body:  [-s_theta 0 1; c_theta s_phi, c_phi, 0; c_theta c_phi, -s_phi, 0]

    det E = -cos(pitch): singular in gimbal lock. ypr (..., 3) [rad].
    """
    ypr = checked(ypr, (3,), "ypr")
    (cy, cp, cr), (sy, sp, sr) = np.moveaxis(np.cos(ypr), -1, 0), np.moveaxis(np.sin(ypr), -1, 0)
    zero, one = np.zeros_like(cy), np.ones_like(cy)
    if _is_body(frame):
        rows = [[-sp, zero, one], [cp * sr, cr, zero], [cp * cr, -sr, zero]]
    else:
        rows = [[zero, -sy, cp * cy], [zero, cy, cp * sy], [one, zero, -sp]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def ypr_rate_inverse(ypr: ArrayLike, frame: Frame) -> Array:
    """E^-1 (..., 3, 3) in closed form: (psid, thetad, phid) = E^-1 omega.

    Refused in gimbal lock, |cos(pitch)| < 1e-9, where no finite rates exist for some omega; close to it the entries
    grow like 1/cos(pitch).
    """
    ypr = checked(ypr, (3,), "ypr")
    (cy, cp, cr), (sy, sp, sr) = np.moveaxis(np.cos(ypr), -1, 0), np.moveaxis(np.sin(ypr), -1, 0)
    if np.any(np.abs(cp) < GIMBAL_LOCK):
        raise InvalidValue(f"ypr: gimbal lock, |cos(pitch)| is {np.min(np.abs(cp)):.3g}, needed {GIMBAL_LOCK:g}")
    zero, one = np.zeros_like(cy), np.ones_like(cy)
    if _is_body(frame):
        rows = [[zero, sr / cp, cr / cp], [zero, cr, -sr], [one, sr * sp / cp, cr * sp / cp]]
    else:
        rows = [[cy * sp / cp, sy * sp / cp, one], [-sy, cy, zero], [cy / cp, sy / cp, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def ypr_rate(ypr: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """(psid, thetad, phid) (..., 3) [rad/s] of an angular velocity; refused in gimbal lock."""
    return _apply(ypr_rate_inverse(ypr, frame), checked(omega, (3,), "omega"))


def omega_from_ypr_rate(ypr: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """omega (..., 3) [rad/s] of yaw-pitch-roll and its rates (..., 3) [rad/s]; valid everywhere."""
    return _apply(ypr_rate_matrix(ypr, frame), checked(rate, (3,), "rate"))


def rotation_vector_rate_matrix(vector: ArrayLike, frame: Frame) -> Array:
    """E (..., 3, 3) with omega = E vdot:  world I + b K + c K^2, body its transpose I - b K + c K^2,

        K = skew(v), t = |v|, b = (1 - cos t)/t^2, c = (t - sin t)/t^3.

    Invertible for t < 2 pi. vector (..., 3) [rad].
    """
    K, t = _skew_and_angle(vector)
    b = 0.5 * np.sinc(t / (2 * np.pi)) ** 2
    # below 0.5 the difference t - sin t loses digits; there seven terms of its series are exact to rounding
    small = t < 0.5
    safe = np.where(small, 1.0, t)
    series = _series(t * t, [1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800, 1 / 1307674368000])
    c = np.where(small, series, (safe - np.sin(safe)) / safe**3)
    return np.asarray(np.eye(3) + (-b if _is_body(frame) else b) * K + c * (K @ K))


def rotation_vector_rate_inverse(vector: ArrayLike, frame: Frame) -> Array:
    """E^-1 (..., 3, 3) with vdot = E^-1 omega:  world I - K/2 + e K^2, body I + K/2 + e K^2,

        e = (1 - (t/2) cot(t/2)) / t^2.

    Refused at and beyond a whole turn (t >= 2 pi - 1e-6), where E is singular; reduce the vector to length <= pi.
    """
    K, t = _skew_and_angle(vector)
    if np.any(t >= 2 * np.pi - 1e-6):  # cot(t/2) grows like 2/(2 pi - t): 1e-6 keeps ten digits
        raise InvalidValue(f"vector: length {np.max(t):.6g} rad is a whole turn or more; reduce it to at most pi")
    small = t < 0.3  # six terms leave 1e-17 at 0.3, the closed form loses two digits there and ever more below
    half = np.where(small, 1.0, t) / 2
    series = _series(t * t, [1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000])
    e = np.where(small, series, (1 - half * np.cos(half) / np.sin(half)) / (4 * half**2))
    return np.asarray(np.eye(3) + (0.5 if _is_body(frame) else -0.5) * K + e * (K @ K))


def rotation_vector_rate(vector: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """vdot (..., 3) [rad/s] of a rotation vector shorter than a whole turn and an angular velocity (..., 3)."""
    return _apply(rotation_vector_rate_inverse(vector, frame), checked(omega, (3,), "omega"))


def omega_from_rotation_vector_rate(vector: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """omega (..., 3) [rad/s] of a rotation vector and its rate (..., 3) [rad/s]."""
    return _apply(rotation_vector_rate_matrix(vector, frame), checked(rate, (3,), "rate"))


def _is_body(frame: str) -> bool:
    if frame not in ("world", "body"):
        raise InvalidValue(f"frame: got {frame!r}, valid are 'world' and 'body'")
    return frame == "body"


def _skew_and_angle(vector: ArrayLike) -> tuple[Array, Array]:
    vector = checked(vector, (3,), "vector")
    return skew(vector), np.linalg.norm(vector, axis=-1)[..., None, None]


def _series(x: Array, coefficients: list[float]) -> Array:
    """Polynomial by Horner's rule, lowest power first."""
    total = np.zeros_like(x)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])
