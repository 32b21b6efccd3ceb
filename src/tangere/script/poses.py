"""UR poses as plain numbers: x y z [m] and a rotation vector [rad], composed, inverted, interpolated.

A program asks for one pose at a time, in every frame: lists of floats take a tenth of what arrays do. `Frame` is the
form to compute with, (R, p): rows of the rotation matrix, and the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, sin, sqrt

from tangere.kinematics.vectors import Matrix, Vector, add, cross, matmul, matvec, scale, subtract, transposed
from tangere.script.values import Pose

Frame = tuple[Matrix, Vector]
SMALL = 1e-9  # [rad] a turn below it is its own first order: the next term is 1e-18


def rotation(v: Sequence[float]) -> Matrix:
    """R of a rotation vector (3,) [rad], by Rodrigues' formula."""
    x, y, z = v
    angle = sqrt(x * x + y * y + z * z)
    if angle < SMALL:
        return [[1.0, -z, y], [z, 1.0, -x], [-y, x, 1.0]]
    s, c = sin(angle) / angle, 1.0 - cos(angle)
    c /= angle * angle
    xx, yy, zz, xy, xz, yz = c * x * x, c * y * y, c * z * z, c * x * y, c * x * z, c * y * z
    return [
        [1.0 - yy - zz, xy - s * z, xz + s * y],
        [xy + s * z, 1.0 - xx - zz, yz - s * x],
        [xz - s * y, yz + s * x, 1.0 - xx - yy],
    ]


def rotation_vector(R: Matrix) -> Vector:
    """The rotation vector (3,) [rad] of R, at most half a turn; by the quaternion, exact near none and near half."""
    (a, b, c), (d, e, f), (g, h, i) = R[0][:3], R[1][:3], R[2][:3]
    rows = (
        (1.0 + a + e + i, h - f, c - g, d - b),
        (h - f, 1.0 + a - e - i, b + d, c + g),
        (c - g, b + d, 1.0 - a + e - i, f + h),
        (d - b, c + g, f + h, 1.0 - a - e + i),
    )
    w, x, y, z = rows[max(range(4), key=lambda k: rows[k][k])]
    size = sqrt(x * x + y * y + z * z)
    if size == 0.0:
        return [0.0, 0.0, 0.0]
    factor = 2.0 * atan2(size, abs(w)) / size * (1.0 if w >= 0.0 else -1.0)
    return [factor * x, factor * y, factor * z]


def frame(pose: Sequence[float]) -> Frame:
    """(R, p) of x y z rx ry rz."""
    return rotation(pose[3:]), list(pose[:3])


def pose(one: Frame) -> Pose:
    """x y z rx ry rz of (R, p)."""
    return Pose([*one[1], *rotation_vector(one[0])])


def composed(a: Frame, b: Frame) -> Frame:
    """a b: b is given in the axes of a."""
    return matmul(a[0], b[0]), add(a[1], matvec(a[0], b[1]))


def inverted(a: Frame) -> Frame:
    """a^-1."""
    R = transposed(a[0])
    return R, scale(-1.0, matvec(R, a[1]))


def between(a: Frame, b: Frame, share: float) -> Frame:
    """From a (share 0) to b (share 1): straight on, turning about one axis."""
    turn = rotation_vector(matmul(transposed(a[0]), b[0]))
    return matmul(a[0], rotation(scale(share, turn))), add(a[1], scale(share, subtract(b[1], a[1])))


def wrench_moved(one: Frame, wrench: Sequence[float]) -> Vector:
    """Force and moment (6,) in the axes and about the origin of the frame that `one` is given in."""
    R, p = one
    force, moment = matvec(R, list(wrench[:3])), matvec(R, list(wrench[3:]))
    return [*force, *add(moment, cross(p, force))]
