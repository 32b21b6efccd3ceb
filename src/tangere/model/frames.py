"""Rotations and transforms for model files, exact zeros and ones at multiples of 90 degrees; mounting and tool."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere import foreign
from tangere.errors import InvalidValue, UnknownName
from tangere.model.model import Array

# Largest entry of R^T R - I that still counts as a rotation: files round to 1e-9 or finer, a sheared or scaled matrix
# is off by far more.
ROTATION_TOLERANCE = 1e-6
TURNS_MAX = 1e6  # [rad] beyond it an angle's own rounding is a visible turn
EXACT = 4e-15  # error of R^T R that rounding of a product of rotations leaves; below it R is taken as it is
G0 = 9.81  # [m/s2] the value of the documents (000 eq 69, 002 section 4) and of the golden numbers, not a local one
TOOL_MAX = 10.0  # [m] of a tool: no arm carries a longer one, who writes 100 means mm

GRAVITY_MAX = 1e6  # [m/s2] far beyond any place where arms stand
# Direction of gravity in base axes. "wall" is UR's own wall mounting, the base tilted by 90 degrees about its x axis:
# the base z axis points away from the wall, the base y axis points up. Another wall is a vector, e.g. (-9.81, 0, 0)
# with the base x axis up.
MOUNTINGS = {"table": (0.0, 0.0, -G0), "wall": (0.0, -G0, 0.0), "ceiling": (0.0, 0.0, G0)}


def cos_sin_deg(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle in degrees, exactly 0 and +-1 at multiples of 90.

    math.cos(math.pi / 2) is 6e-17, and such an entry would keep a tracer from folding the zeros of a chain.
    """
    quarter, rest = divmod(angle % 360.0, 90.0)
    if rest == 0.0:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(quarter) % 4]
    return math.cos(math.radians(angle)), math.sin(math.radians(angle))


def cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle in rad, snapped to 0 and +-1 within 1e-9 of a multiple of 90 degrees.

    Why 1e-9: robot descriptions print pi/2 with nine digits (1.570796327 is off by 2e-10), and no calibration
    resolves 1e-9 rad (1 nm at 1 m).
    """
    degrees = math.degrees(angle)
    nearest = 90.0 * round(degrees / 90.0)
    if abs(math.radians(degrees - nearest)) < 1e-9:
        return cos_sin_deg(nearest)
    return math.cos(angle), math.sin(angle)


def _rpy(roll: tuple[float, float], pitch: tuple[float, float], yaw: tuple[float, float]) -> Array:
    (cr, sr), (cp, sp), (cy, sy) = roll, pitch, yaw
    R = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [0.0 - sp, cp * sr, cp * cr],
    ]
    return np.array(R) + 0.0  # + 0.0 turns -0.0 into 0.0


def rotation_rpy(roll: float, pitch: float, yaw: float, *, snap: bool = True) -> Array:
    """Rotation matrix R = Rz(yaw) Ry(pitch) Rx(roll) (003, Rotation Matrix; URDF's rpy), angles in rad, (3, 3).

    With `snap` angles within 1e-9 of a multiple of 90 degrees give exact zeros and ones.
    """
    pair = cos_sin if snap else (lambda angle: (math.cos(angle), math.sin(angle)))
    return _rpy(pair(roll), pair(pitch), pair(yaw))


def rotation_rpy_deg(rpy: Sequence[float]) -> Array:
    """Rotation matrix R = Rz(yaw) Ry(pitch) Rx(roll) from degrees, exact at multiples of 90, (3, 3)."""
    return _rpy(*(cos_sin_deg(float(angle)) for angle in rpy))


def rpy_from_rotation(R: Array) -> tuple[float, float, float]:
    """Roll, pitch, yaw in rad of a rotation matrix (001 eqs 3.44-3.46 with atan2 for the printed arctan).

    Yaw is taken after the roll has been undone, so that the three together reproduce R at gimbal lock too, where the
    roll alone means nothing (it is 0 in exact lock).
    """
    roll = math.atan2(R[2, 1], R[2, 2])
    c, s = math.cos(roll), math.sin(roll)
    yaw = math.atan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])
    return roll, math.atan2(-R[2, 0], math.hypot(R[2, 1], R[2, 2])), yaw


def rotation_vector(v: Sequence[float]) -> Array:
    """Rotation matrix of a rotation vector (axis times angle in rad; the rx ry rz of a UR TCP), (3, 3).

    R = I + sin(t) K + (1 - cos(t)) K^2, with t = |v| and K the cross-product matrix of v / t.
    """
    x, y, z = (float(value) for value in v)
    angle = math.hypot(x, y, z)
    if not angle <= TURNS_MAX:
        raise InvalidValue(f"a rotation vector of length {angle:g} rad means nothing: at most {TURNS_MAX:g} rad")
    if angle == 0.0:
        return np.eye(3)
    c, s = cos_sin(angle)
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]) / angle
    R: Array = np.eye(3) + s * K + (1.0 - c) * (K @ K) + 0.0
    return R


def transform(R: Array, p: Sequence[float] | Array) -> Array:
    """Homogeneous transform [R p; 0 1], (4, 4)."""
    T = np.eye(4)
    T[:3, :3] = R
    T[:3, 3] = p
    return T


def inverse(T: Array) -> Array:
    """Inverse [R^T, -R^T p; 0 1] of a rigid transform, (4, 4)."""
    R = T[:3, :3].T
    return transform(R, 0.0 - R @ T[:3, 3])


def check_transform(T: Array, what: str) -> Array:
    """Return T as a (4, 4) float array, or raise InvalidValue unless it is a finite rigid transform."""
    T = np.asarray(T, dtype=float)
    if T.shape != (4, 4) or not np.all(np.isfinite(T)):
        raise InvalidValue(f"{what} must be 4x4 and finite, got shape {T.shape}: {T.tolist()}")
    R = T[:3, :3]
    off = float(np.max(np.abs(R.T @ R - np.eye(3))))
    if off > ROTATION_TOLERANCE or np.linalg.det(R) < 0.0 or not np.array_equal(T[3], (0.0, 0.0, 0.0, 1.0)):
        raise InvalidValue(
            f"{what} must be a rigid transform: a right-handed rotation (R^T R = I within {ROTATION_TOLERANCE:g}, here "
            f"{off:.3g}; det {np.linalg.det(R):.3g}) above a last row 0 0 0 1, got {T.tolist()}"
        )
    if off > EXACT:  # take the nearest rotation, by two Newton steps: from 1e-6 to 1e-12 to 1e-24
        for _ in range(2):
            R = R @ (1.5 * np.eye(3) - 0.5 * R.T @ R)
        T = transform(R, T[:3, 3])
    return T


def numbers(value: Any, what: str) -> Array:
    """The value as an array of finite numbers, or InvalidValue."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(f"{what} must be numbers, got {foreign.shown(value, 200)}") from None
    if not np.all(np.isfinite(array)):
        raise InvalidValue(f"{what} must be finite, got {foreign.shown(value, 200)}")
    return array


def gravity_vector(gravity: str | Sequence[float] | Array) -> Array:
    """Gravity in base axes, (3,) in m/s2: a vector, or "table", "wall" (base y axis up), "ceiling" with 9.81 m/s2."""
    if isinstance(gravity, str):
        if gravity not in MOUNTINGS:
            raise UnknownName(f"unknown mounting {gravity!r}; known: {', '.join(MOUNTINGS)}, or a vector in base axes")
        gravity = MOUNTINGS[gravity]
    vector = numbers(gravity, "gravity")
    if vector.shape != (3,):
        raise InvalidValue(f"gravity must be 3 numbers in base axes [m/s2], got shape {vector.shape}")
    if np.max(np.abs(vector)) > GRAVITY_MAX:
        raise InvalidValue(f"gravity: at most {GRAVITY_MAX:g} m/s2, got {vector.tolist()}")
    vector.setflags(write=False)
    return vector


def tool_transform(tool: Sequence[float] | Array) -> Array:
    """T_flange_tcp, (4, 4): from a 4x4 matrix, from x y z rx ry rz (UR's TCP: m, rotation vector), or from x y z."""
    array = numbers(tool, "tool")
    if array.shape == (3,):
        T = transform(np.eye(3), array)
    elif array.shape == (6,):
        T = transform(rotation_vector(array[3:].tolist()), array[:3])
    elif array.shape == (4, 4):
        T = check_transform(array, "tool")
    else:
        raise InvalidValue(
            f"tool must be a 4x4 transform, 6 numbers x y z rx ry rz (UR's TCP form) or 3 numbers x y z, "
            f"got shape {array.shape}"
        )
    if np.abs(T[:3, 3]).max() > TOOL_MAX:
        lengths = ", ".join(f"{x:g}" for x in T[:3, 3])
        usual = f"up to {TOOL_MAX:g} m is what is meant as a rule"
        warnings.warn(f"tool: {lengths} m is unusual ({usual}); mm?", stacklevel=4)
    T.setflags(write=False)
    return T
