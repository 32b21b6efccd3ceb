"""Rotations in four forms - matrix, quaternion, yaw-pitch-roll, rotation vector - and the way between any two.

Conventions, for every function here:
    matrix R_a_b (..., 3, 3) maps vectors of frame b into frame a (active: it turns a vector of one frame);
    quaternion (..., 4) is (w, x, y, z), Hamilton product; q and -q are the same rotation (double cover);
    ypr (..., 3) is (yaw psi, pitch theta, roll phi) with R = Rz(psi) Ry(theta) Rx(phi), in rad
        (003 prints [theta, phi, psi] = [yaw, pitch, roll], which contradicts its own matrix);
    rotation vector (..., 3) is axis times angle, in rad.
Leading axes are batch axes. Rates are in `apps.textbook.coordinates`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked

# below this cos(pitch) yaw and roll are one angle: atan2 of two numbers of 1e-9 holds no more than 7 digits of either
GIMBAL_LOCK = 1e-9
# entry by which a matrix may miss a rotation: six printed digits or a float32 pass, another matrix does not
ROTATION_TOLERANCE = 1e-5


def skew(v: ArrayLike) -> Array:
    """The matrix of the cross product: skew(v) @ u = v x u. v (..., 3) -> (..., 3, 3)."""
    v = checked(v, (3,), "v")
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    return _matrix([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


# -------------------------------------------------------------------------------------------------------- quaternions


def quaternion_product(a: ArrayLike, b: ArrayLike) -> Array:
    """Hamilton product a (x) b: turning by b, then by a. (..., 4) each, broadcast."""
    a, b = checked(a, (4,), "a"), checked(b, (4,), "b")
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def quaternion_conjugate(quaternion: ArrayLike) -> Array:
    """q* = (w, -x, -y, -z): the inverse rotation of a unit quaternion. (..., 4)."""
    return np.asarray(checked(quaternion, (4,), "quaternion") * np.array([1.0, -1.0, -1.0, -1.0]))


def quaternion_rotate(quaternion: ArrayLike, v: ArrayLike) -> Array:
    """The vector v turned by q: (0, v') = q (x) (0, v) (x) q*, the same as R(q) @ v.

    003's example (90 degrees about z, v = (0, 1, 0)) prints a zero result; it is v' = (-1, 0, 0). The other reading,
    "the same vector seen from the turned frame", is q* v q = (+1, 0, 0): pass the conjugate for it.
    quaternion (..., 4), of any length but zero; v (..., 3) -> (..., 3).
    """
    q, v = normalised(quaternion), checked(v, (3,), "v")
    w, axis = q[..., :1], q[..., 1:]
    twice = 2.0 * np.cross(axis, v)
    return np.asarray(v + w * twice + np.cross(axis, twice))


def normalised(quaternion: ArrayLike) -> Array:
    """q / |q| (..., 4). Refuses the zero quaternion, which is no rotation."""
    q = checked(quaternion, (4,), "quaternion")
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    if np.any(length < 1e-150):  # the square of a smaller length underflows, its direction is lost
        raise InvalidValue(f"quaternion: the zero quaternion is no rotation, got {q.tolist()}")
    return np.asarray(q / length)


def canonical(quaternion: ArrayLike) -> Array:
    """The one of q and -q whose first nonzero component is positive: w > 0, or at w = 0 the first of x, y, z.

    Makes equal rotations have equal quaternions; it jumps at half turns, so along a path use `continuous`.
    quaternion (..., 4), normalised on the way.
    """
    q = normalised(quaternion)
    first = np.argmax(q != 0.0, axis=-1)[..., None]
    return np.asarray(q * np.sign(np.take_along_axis(q, first, axis=-1)) + 0.0)  # + 0.0 turns -0 into 0


def continuous(quaternions: ArrayLike) -> Array:
    """The same rotations with each sign chosen nearest to the quaternion before; the first one is kept.

    quaternions (..., k, 4) along a path. Between neighbours more than half a turn apart no choice is right:
    a path must be sampled finer than that.
    """
    q = normalised(checked(quaternions, (None, 4), "quaternions"))
    dots = np.sum(q[..., 1:, :] * q[..., :-1, :], axis=-1)
    signs = np.cumprod(np.where(dots < 0.0, -1.0, 1.0), axis=-1)
    return np.concatenate([q[..., :1, :], q[..., 1:, :] * signs[..., None]], axis=-2)


# -------------------------------------------------------------------------------------------------- into a matrix


def matrix_from_quaternion(quaternion: ArrayLike) -> Array:
    """R of a quaternion (..., 4) of any length but zero -> (..., 3, 3)."""
    w, x, y, z = np.moveaxis(normalised(quaternion), -1, 0)
    return _matrix(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def matrix_from_ypr(ypr: ArrayLike) -> Array:
    """R = Rz(psi) Ry(theta) Rx(phi), 003 and 001 eq 3.42. ypr (..., 3) = (yaw, pitch, roll) [rad]."""
    ypr = checked(ypr, (3,), "ypr")
    (cy, cp, cr), (sy, sp, sr) = np.moveaxis(np.cos(ypr), -1, 0), np.moveaxis(np.sin(ypr), -1, 0)
    return _matrix(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def matrix_from_rotation_vector(vector: ArrayLike) -> Array:
    """Rodrigues' formula R = I + (sin t / t) K + ((1 - cos t) / t^2) K^2, K = skew(vector), t = |vector|.

    Both quotients are written with sin(x)/x, so that nothing cancels near zero. vector (..., 3) [rad].
    """
    vector = checked(vector, (3,), "vector")
    t = np.linalg.norm(vector, axis=-1)[..., None, None]
    K = skew(vector)
    return np.asarray(np.eye(3) + np.sinc(t / np.pi) * K + 0.5 * np.sinc(t / (2 * np.pi)) ** 2 * (K @ K))


# -------------------------------------------------------------------------------------------------- out of a matrix


def quaternion_from_matrix(R: ArrayLike) -> Array:
    """Canonical unit quaternion (..., 4) of a rotation matrix (..., 3, 3): 001 eqs 9a-d with its table of signs.

    The rows of 4 q q^T are linear in R; the row of the component of largest magnitude (001 says "largest", it must
    be magnitude) is divided by its length, so that no small number is ever divided by.
    """
    R = checked_rotation(R)
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = np.moveaxis(R.reshape(*R.shape[:-2], 9), -1, 0)
    rows = _matrix(
        [
            [1 + r11 + r22 + r33, r32 - r23, r13 - r31, r21 - r12],
            [r32 - r23, 1 + r11 - r22 - r33, r12 + r21, r13 + r31],
            [r13 - r31, r12 + r21, 1 - r11 + r22 - r33, r23 + r32],
            [r21 - r12, r13 + r31, r23 + r32, 1 - r11 - r22 + r33],
        ]
    )
    largest = np.argmax(np.einsum("...ii->...i", rows), axis=-1)[..., None, None]
    return canonical(np.take_along_axis(rows, largest, axis=-2)[..., 0, :])


def ypr_from_matrix(R: ArrayLike) -> Array:
    """(yaw, pitch, roll) (..., 3) [rad] of a rotation matrix, pitch in [-pi/2, pi/2]: 001 eqs 3.44-3.46 with atan2.

        theta = atan2(-r31, hypot(r32, r33)), psi = atan2(r21, r11), phi = atan2(r32, r33)

    Plain arctan, as printed, is wrong for three quarters of all rotations. In gimbal lock, hypot(r32, r33) < 1e-9,
    only yaw -+ roll is defined: roll = 0 and yaw = atan2(-r12, r22).
    """
    R = checked_rotation(R)
    cos_pitch = np.hypot(R[..., 2, 1], R[..., 2, 2])
    locked = cos_pitch < GIMBAL_LOCK
    yaw = np.where(locked, np.arctan2(-R[..., 0, 1], R[..., 1, 1]), np.arctan2(R[..., 1, 0], R[..., 0, 0]))
    roll = np.where(locked, 0.0, np.arctan2(R[..., 2, 1], R[..., 2, 2]))
    return np.stack([yaw, np.arctan2(-R[..., 2, 0], cos_pitch), roll], axis=-1)


def rotation_vector_from_matrix(R: ArrayLike) -> Array:
    """log R as a vector (..., 3) [rad], length in [0, pi]; full accuracy near 0 and near pi.

    By way of the quaternion, because arccos of the trace loses half the digits at both ends. At exactly half a turn
    both directions of the axis are right: the one with positive first nonzero component is returned.
    """
    return rotation_vector_from_quaternion(quaternion_from_matrix(R))


def rotation_vector_from_quaternion(quaternion: ArrayLike) -> Array:
    """2 atan2(|v|, w) v / |v| for the canonical q = (w, v): the shorter way round, length in [0, pi]. (..., 4)."""
    q = canonical(quaternion)
    s = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    positive = s > 0.0
    factor = np.where(positive, np.arctan2(s, q[..., :1]) / np.where(positive, s, 1.0), 1.0)  # -> 1/w = 1 at s = 0
    return np.asarray(2.0 * factor * q[..., 1:])


# ------------------------------------------------------------------------------------------ the remaining ways across


def quaternion_from_rotation_vector(vector: ArrayLike) -> Array:
    """(cos(t/2), sin(t/2)/t * vector), t = |vector|; (..., 3) [rad] -> (..., 4), not canonical beyond t = pi."""
    vector = checked(vector, (3,), "vector")
    t = np.linalg.norm(vector, axis=-1, keepdims=True)
    return np.concatenate([np.cos(t / 2), 0.5 * np.sinc(t / (2 * np.pi)) * vector], axis=-1)


def quaternion_from_ypr(ypr: ArrayLike) -> Array:
    """q = q_z(yaw) (x) q_y(pitch) (x) q_x(roll), canonical. (..., 3) [rad] -> (..., 4)."""
    ypr = checked(ypr, (3,), "ypr")
    cos, sin, zero = np.cos(ypr / 2), np.sin(ypr / 2), np.zeros(ypr.shape[:-1])
    q_z = np.stack([cos[..., 0], zero, zero, sin[..., 0]], axis=-1)
    q_y = np.stack([cos[..., 1], zero, sin[..., 1], zero], axis=-1)
    q_x = np.stack([cos[..., 2], sin[..., 2], zero, zero], axis=-1)
    return canonical(quaternion_product(quaternion_product(q_z, q_y), q_x))


def ypr_from_quaternion(quaternion: ArrayLike) -> Array:
    """(yaw, pitch, roll) (..., 3) [rad] of a quaternion (..., 4), gimbal rule as in `ypr_from_matrix`."""
    return ypr_from_matrix(matrix_from_quaternion(quaternion))


def ypr_from_rotation_vector(vector: ArrayLike) -> Array:
    """(yaw, pitch, roll) (..., 3) [rad] of a rotation vector (..., 3) [rad]."""
    return ypr_from_matrix(matrix_from_rotation_vector(vector))


def rotation_vector_from_ypr(ypr: ArrayLike) -> Array:
    """Rotation vector (..., 3) [rad], length in [0, pi], of (yaw, pitch, roll) (..., 3) [rad]."""
    return rotation_vector_from_quaternion(quaternion_from_ypr(ypr))


def rotation_error(R_des: ArrayLike, R: ArrayLike) -> Array:
    """dphi = log(R_des R^T) (..., 3) [rad], base axes: the turn that takes R to R_des (003's Delta phi)."""
    return rotation_vector_from_matrix(checked_rotation(R_des) @ np.swapaxes(checked_rotation(R), -1, -2))


# -------------------------------------------------------------------------------------------------- rotation checks


def project_to_rotation(R: ArrayLike, tolerance: float | None = ROTATION_TOLERANCE) -> tuple[Array, Array]:
    """The nearest rotation (polar factor U V^T of R = U S V^T) and how far it is: (rotation, correction).

    correction (...) is the largest change of an entry. A matrix farther away than `tolerance` is refused
    (None: any distance), so is a reflection (determinant <= 0), which has no rotation near it.
    """
    R = checked(R, (3, 3), "R")
    U, _, Vt = np.linalg.svd(R)
    nearest = np.asarray(U @ Vt)
    if np.any(np.linalg.det(R) <= 0.0):
        raise InvalidValue(f"R: a reflection or singular matrix is no rotation, determinant {np.linalg.det(R)!s}")
    correction = np.max(np.abs(nearest - R), axis=(-2, -1))
    if tolerance is not None and np.any(correction > tolerance):
        raise InvalidValue(f"R: misses a rotation by {np.max(correction):.3g}, allowed is {tolerance:g}")
    return nearest, np.asarray(correction)


def checked_rotation(R: ArrayLike) -> Array:
    """R (..., 3, 3), refused where R^T R misses the identity by more than 2 ROTATION_TOLERANCE or det R < 0.

    Cheaper than the projection: R^T R - I is twice the distance to the nearest rotation, to first order.
    """
    R = checked(R, (3, 3), "R")
    miss = float(np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), initial=0.0))
    if miss > 2 * ROTATION_TOLERANCE or np.any(np.linalg.det(R) < 0.0):
        raise InvalidValue(
            f"R: not a rotation (R^T R misses the identity by {miss:.3g}, determinant {np.linalg.det(R)!s}); "
            "project_to_rotation finds the nearest one"
        )
    return R


# -------------------------------------------------------------------------------------------------------------- poses


def pose(R: ArrayLike, p: ArrayLike) -> Array:
    """T = [R p; 0 1] (..., 4, 4) of a rotation (..., 3, 3) and a position (..., 3) [m]; broadcast."""
    R, p = checked_rotation(R), checked(p, (3,), "p")
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def pose_from_ur(numbers: ArrayLike) -> Array:
    """T (..., 4, 4) of UR's x y z rx ry rz (..., 6): position [m] and rotation vector [rad], as on its pendant."""
    six = checked(numbers, (6,), "x y z rx ry rz")
    return pose(matrix_from_rotation_vector(six[..., 3:]), six[..., :3])


def ur_from_pose(T: ArrayLike) -> Array:
    """x y z rx ry rz (..., 6) of T (..., 4, 4): position [m] and rotation vector [rad] of length at most pi."""
    T = checked(T, (4, 4), "T")
    return np.concatenate([T[..., :3, 3], rotation_vector_from_matrix(T[..., :3, :3])], axis=-1)


def inverse_pose(T: ArrayLike) -> Array:
    """T_b_a = [R^T, -R^T p; 0 1] of T_a_b (..., 4, 4): exact for a pose, no matrix inverse."""
    T = checked(T, (4, 4), "T")
    R_transposed = np.swapaxes(checked_rotation(T[..., :3, :3]), -1, -2)
    return pose(R_transposed, -(R_transposed @ T[..., :3, 3:])[..., 0])


def _matrix(rows: list[list[Array]]) -> Array:
    """Stack a table of batch arrays into (..., rows, columns)."""
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
