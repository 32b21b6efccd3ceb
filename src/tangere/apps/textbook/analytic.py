"""Analytic Jacobians: how fast the chosen coordinates of a pose change, J_geometric = E J_A (003).

A pose is described by chi = (position coordinates, orientation coordinates). The geometric Jacobian J gives the
velocity w = (v, omega), linear first, base axes; E(chi) turns the rates chid into w, so that J_A = E^+ J gives
chid = J_A qd. J_A is what one gets by differentiating chi(q).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.textbook import coordinates as coords
from tangere.apps.textbook.coordinates import System
from tangere.errors import InvalidValue
from tangere.kinematics import rotation as rot
from tangere.kinematics.checks import Array, checked
from tangere.kinematics.resolution import damped_inverse

Orientation = Literal["ypr", "quaternion", "rotation_vector"]
# for each: chi_R of a rotation matrix, E_R of chi_R, E_R^+ of chi_R
ORIENTATIONS = {
    "ypr": (rot.ypr_from_matrix, coords.ypr_rate_matrix, coords.ypr_rate_inverse),
    "quaternion": (rot.quaternion_from_matrix, coords.quaternion_rate_matrix, coords.quaternion_rate_inverse),
    "rotation_vector": (
        rot.rotation_vector_from_matrix, coords.rotation_vector_rate_matrix, coords.rotation_vector_rate_inverse,
    ),
}  # fmt: skip


def pose_coordinates(T: ArrayLike, position: System = "cartesian", orientation: Orientation = "ypr") -> Array:
    """chi (..., 6), or (..., 7) with a quaternion, of a pose T (..., 4, 4): position, then orientation coordinates.

    The quaternion is canonical, the rotation vector at most pi long: both jump at half turns.
    """
    T = checked(T, (4, 4), "T")
    if orientation not in ORIENTATIONS:
        raise InvalidValue(f"orientation: got {orientation!r}, valid are {', '.join(ORIENTATIONS)}")
    part = ORIENTATIONS[orientation][0](T[..., :3, :3])
    return np.concatenate([coords.coordinates(position, T[..., :3, 3]), part], axis=-1)


def representation_matrix(T: ArrayLike, position: System = "cartesian", orientation: Orientation = "ypr") -> Array:
    """E (..., 6, 6) or (..., 6, 7) with w = E chid = blkdiag(E_P, E_R) chid; finite at every pose.

    It loses rank in gimbal lock (ypr) and on the z axis (cylindrical, spherical); never for quaternions.
    """
    chi = pose_coordinates(T, position, orientation)
    E_R = ORIENTATIONS[orientation][1](chi[..., 3:], "world")
    return coords.block_diagonal(coords.rate_matrix(position, chi[..., :3]), E_R)


def representation_inverse(T: ArrayLike, position: System = "cartesian", orientation: Orientation = "ypr") -> Array:
    """E^+ (..., 6, 6) or (..., 7, 6) with chid = E^+ w; refused where the representation is singular."""
    chi = pose_coordinates(T, position, orientation)
    E_R = ORIENTATIONS[orientation][2](chi[..., 3:], "world")
    return coords.block_diagonal(coords.rate_inverse(position, chi[..., :3]), E_R)


def analytic_jacobian(
    J: ArrayLike,
    T: ArrayLike,
    position: System = "cartesian",
    orientation: Orientation = "ypr",
    damping: float = 0.0,
) -> Array:
    """J_A (..., 6 or 7, n) with chid = J_A qd, from the geometric Jacobian J (..., 6, n) at the pose T (..., 4, 4).

        J = E J_A,  J_A = E^+ J

    At a singularity of the representation (gimbal lock, z axis) some motions have no finite rates: refused with
    InvalidValue when damping = 0; with damping lam > 0 the damped inverse of E is used, whose rates stay below
    1/(2 lam) per unit of velocity and are wrong near the singularity only. The arm's own singularities do not matter.
    """
    J = checked(J, (6, None), "J")
    if not (np.isfinite(damping) and damping >= 0.0):
        raise InvalidValue(f"damping: must be finite and not negative, got {damping!r}")
    if damping > 0.0:
        return np.asarray(damped_inverse(representation_matrix(T, position, orientation), damping) @ J)
    return np.asarray(representation_inverse(T, position, orientation) @ J)
