"""Positions in Cartesian, cylindrical and spherical coordinates, rotations as angles and quaternions, and their rates.

    cartesian    chi = (x, y, z)
    cylindrical  chi = (rho, theta, z):   x = rho cos(theta), y = rho sin(theta)
    spherical    chi = (r, theta, phi):   x = r sin(phi) cos(theta), y = r sin(phi) sin(theta), z = r cos(phi)

theta is the azimuth about z in (-pi, pi] in both, phi in [0, pi] the angle from +z. 003 names the letters but not the
angles, and writes the coordinates as if they were vector components; they are coordinates, and (xd, yd, zd) is the
velocity in the Cartesian row only. Lengths in m, angles in rad, p and chi (..., 3), base axes.

On the z axis the azimuth does not exist: `coordinates` returns theta = 0 there, and at the origin also phi = 0.
Rates on it are refused: some velocities would need an infinite thetad.

Rotations: angular velocity and the rates of quaternion, yaw-pitch-roll and rotation vector. Each representation chi has
one matrix E with omega = E(chi) chi_dot, in two versions: omega in world axes (Rdot = skew(omega_world) R) and in body
axes (Rdot = R skew(omega_body)), omega_world = R omega_body. 003 mixes the two: its Rdot R^T is world, its quaternion
rate is body. The argument `frame` always says which one is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked
from tangere.kinematics.rotation import GIMBAL_LOCK, normalised, skew

System = Literal["cartesian", "cylindrical", "spherical"]
SYSTEMS = ("cartesian", "cylindrical", "spherical")

# Distance from the z axis [m] below which rates are refused: at a nanometre 1 m/s across is 1e9 rad/s, and the azimuth
# of a position known to 1e-16 m holds only seven digits.
AXIS = 1e-9


def coordinates(system: System, p: ArrayLike) -> Array:
    """chi (..., 3) of a Cartesian position p (..., 3); theta = 0 on the z axis, phi = 0 at the origin."""
    _known(system)
    p = checked(p, (3,), "p")
    if system == "cartesian":
        return p
    x, y, z = np.moveaxis(p, -1, 0)
    rho = np.hypot(x, y)
    theta = np.where(rho == 0.0, 0.0, np.arctan2(y, x))
    if system == "cylindrical":
        return np.stack([rho, theta, z], axis=-1)
    r = np.hypot(rho, z)
    return np.stack([r, theta, np.where(r == 0.0, 0.0, np.arctan2(rho, z))], axis=-1)


def position(system: System, chi: ArrayLike) -> Array:
    """Cartesian position p (..., 3) of chi (..., 3); any angles, any sign of rho and r."""
    _known(system)
    chi = checked(chi, (3,), "chi")
    if system == "cartesian":
        return chi
    radial, theta, last = np.moveaxis(chi, -1, 0)
    if system == "cylindrical":
        return np.stack([radial * np.cos(theta), radial * np.sin(theta), last], axis=-1)
    across = radial * np.sin(last)
    return np.stack([across * np.cos(theta), across * np.sin(theta), radial * np.cos(last)], axis=-1)


def rate_matrix(system: System, chi: ArrayLike) -> Array:
    """E (..., 3, 3) with v = E chid: unit vectors of the coordinate lines times the lengths they sweep.

    cylindrical: columns e_rho, rho e_theta, e_z;  spherical: e_r, r sin(phi) e_theta, r e_phi.
    """
    axes, lengths = _frame(system, checked(chi, (3,), "chi"))
    return np.asarray(axes * lengths[..., None, :])


def rate_inverse(system: System, chi: ArrayLike) -> Array:
    """E^-1 (..., 3, 3) with chid = E^-1 v; refused within 1e-9 m of the singular axis."""
    axes, lengths = _frame(system, checked(chi, (3,), "chi"))
    if np.any(np.abs(lengths) < AXIS):
        raise InvalidValue(
            f"chi: {np.min(np.abs(lengths)):.3g} m from the z axis, where {system} rates are not defined; "
            f"at least {AXIS:g} m is needed"
        )
    return np.asarray(np.swapaxes(axes, -1, -2) / lengths[..., None])


def velocity(system: System, chi: ArrayLike, rate: ArrayLike) -> Array:
    """Cartesian velocity v = E chid (..., 3) [m/s]; valid everywhere."""
    return apply(rate_matrix(system, chi), checked(rate, (3,), "rate"))


def rate(system: System, chi: ArrayLike, v: ArrayLike) -> Array:
    """chid = E^-1 v (..., 3) of a Cartesian velocity v [m/s]; refused on the z axis."""
    return apply(rate_inverse(system, chi), checked(v, (3,), "v"))


def acceleration(system: System, chi: ArrayLike, rate: ArrayLike, second_rate: ArrayLike) -> Array:
    """Cartesian acceleration a = E chidd + Edot chid (..., 3) [m/s2]; valid everywhere."""
    chi, rate = checked(chi, (3,), "chi"), checked(rate, (3,), "rate")
    second = checked(second_rate, (3,), "second_rate")
    return apply(rate_matrix(system, chi), second) + _curvature(system, chi, rate)


def second_rate(system: System, chi: ArrayLike, rate: ArrayLike, a: ArrayLike) -> Array:
    """chidd = E^-1 (a - Edot chid) (..., 3) of a Cartesian acceleration a [m/s2]; refused on the z axis."""
    chi, rate = checked(chi, (3,), "chi"), checked(rate, (3,), "rate")
    return apply(rate_inverse(system, chi), checked(a, (3,), "a") - _curvature(system, chi, rate))


def _frame(system: System, chi: Array) -> tuple[Array, Array]:
    """Orthonormal directions of the three coordinate lines as columns, and the length swept per unit of each."""
    _known(system)
    one = np.ones(chi.shape[:-1])
    if system == "cartesian":
        return np.broadcast_to(np.eye(3), (*one.shape, 3, 3)), np.stack([one, one, one], axis=-1)
    radial, theta, last = np.moveaxis(chi, -1, 0)
    c, s, zero = np.cos(theta), np.sin(theta), np.zeros_like(one)
    if system == "cylindrical":
        columns = [[c, s, zero], [-s, c, zero], [zero, zero, one]]
        lengths = [one, radial, one]
    else:
        cp, sp = np.cos(last), np.sin(last)
        columns = [[sp * c, sp * s, cp], [-s, c, zero], [cp * c, cp * s, -sp]]
        lengths = [one, radial * sp, radial]
    return np.swapaxes(_matrix(columns), -1, -2), np.stack(lengths, axis=-1)


def _curvature(system: System, chi: Array, rate: Array) -> Array:
    """Edot chid (..., 3): centrifugal and Coriolis parts, along the coordinate lines, then turned into base axes.

    cylindrical: (-rho thetad^2, 2 rhod thetad, 0)
    spherical: (-r phid^2 - r sin^2 thetad^2, 2 rd thetad sin + 2 r thetad phid cos, 2 rd phid - r thetad^2 sin cos)
    """
    axes, _ = _frame(system, chi)
    if system == "cartesian":
        return np.zeros(np.broadcast_shapes(chi.shape, rate.shape))
    radial, _, last = np.moveaxis(chi, -1, 0)
    d1, d2, d3 = np.moveaxis(rate, -1, 0)
    if system == "cylindrical":
        parts = [-radial * d2**2, 2 * d1 * d2, np.zeros(np.broadcast_shapes(radial.shape, d1.shape))]
    else:
        c, s = np.cos(last), np.sin(last)
        parts = [
            -radial * (d3**2 + (s * d2) ** 2),
            2 * d1 * d2 * s + 2 * radial * d2 * d3 * c,
            2 * d1 * d3 - radial * d2**2 * s * c,
        ]
    return apply(axes, np.stack(parts, axis=-1))


def _known(system: str) -> None:
    if system not in SYSTEMS:
        raise InvalidValue(f"system: got {system!r}, valid are {', '.join(SYSTEMS)}")


def apply(matrix: Array, vector: Array) -> Array:
    """matrix @ vector (..., m), batched."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def block_diagonal(*blocks: Array) -> Array:
    """blkdiag of (..., rows, columns), batched: at least one of them has the batch's axes."""
    lead = np.broadcast_shapes(*(block.shape[:-2] for block in blocks))
    out = np.zeros((*lead, sum(b.shape[-2] for b in blocks), sum(b.shape[-1] for b in blocks)))
    row = column = 0
    for block in blocks:
        m, n = block.shape[-2:]
        out[..., row : row + m, column : column + n] = block
        row, column = row + m, column + n
    return out


def _matrix(rows: Sequence[Sequence[Array]]) -> Array:
    """(..., m, n) of its entries (...)."""
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


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
    return 2.0 * _matrix(rows)


def quaternion_rate_inverse(quaternion: ArrayLike, frame: Frame) -> Array:
    """E^+ (..., 4, 3) = 1/2 H^T with qdot = E^+ omega, tangent to the unit sphere; valid everywhere."""
    return np.asarray(np.swapaxes(quaternion_rate_matrix(quaternion, frame), -1, -2) / 4.0)


def quaternion_rate(quaternion: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """qdot (..., 4) = 1/2 q (x) (0, omega_body) = 1/2 (0, omega_world) (x) q.

    003's matrix Omega holds for body omega only, though the line before it defines omega in world axes.
    """
    return apply(quaternion_rate_inverse(quaternion, frame), checked(omega, (3,), "omega"))


def omega_from_quaternion_rate(quaternion: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """omega (..., 3) [rad/s] of a quaternion and its rate (..., 4); a part of the rate along q is ignored."""
    return apply(quaternion_rate_matrix(quaternion, frame), checked(rate, (4,), "rate"))


def ypr_rate_matrix(ypr: ArrayLike, frame: Frame) -> Array:
    """E (..., 3, 3) with omega = E (psid, thetad, phid), columns for yaw, pitch, roll.

        world: [0 -s_psi c_theta c_psi; 0 c_psi c_theta s_psi; 1 0 -s_theta]
        body:  [-s_theta 0 1; c_theta s_phi, c_phi, 0; c_theta c_phi, -s_phi, 0]

    det E = -cos(pitch): singular in gimbal lock. ypr (..., 3) [rad].
    """
    (cy, cp, cr), (sy, sp, sr), zero, one = _cosines(ypr)
    if _is_body(frame):
        rows = [[-sp, zero, one], [cp * sr, cr, zero], [cp * cr, -sr, zero]]
    else:
        rows = [[zero, -sy, cp * cy], [zero, cy, cp * sy], [one, zero, -sp]]
    return _matrix(rows)


def ypr_rate_inverse(ypr: ArrayLike, frame: Frame) -> Array:
    """E^-1 (..., 3, 3) in closed form: (psid, thetad, phid) = E^-1 omega.

    Refused in gimbal lock, |cos(pitch)| < 1e-9, where no finite rates exist for some omega; close to it the entries
    grow like 1/cos(pitch).
    """
    (cy, cp, cr), (sy, sp, sr), zero, one = _cosines(ypr)
    if np.any(np.abs(cp) < GIMBAL_LOCK):
        raise InvalidValue(f"ypr: gimbal lock, |cos(pitch)| is {np.min(np.abs(cp)):.3g}, needed {GIMBAL_LOCK:g}")
    if _is_body(frame):
        rows = [[zero, sr / cp, cr / cp], [zero, cr, -sr], [one, sr * sp / cp, cr * sp / cp]]
    else:
        rows = [[cy * sp / cp, sy * sp / cp, one], [-sy, cy, zero], [cy / cp, sy / cp, zero]]
    return _matrix(rows)


def _cosines(ypr: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Cosines and sines of yaw, pitch and roll, first axis first; zero and one of their shape."""
    ypr = np.moveaxis(checked(ypr, (3,), "ypr"), -1, 0)
    return np.cos(ypr), np.sin(ypr), np.zeros_like(ypr[0]), np.ones_like(ypr[0])


def ypr_rate(ypr: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """(psid, thetad, phid) (..., 3) [rad/s] of an angular velocity; refused in gimbal lock."""
    return apply(ypr_rate_inverse(ypr, frame), checked(omega, (3,), "omega"))


def omega_from_ypr_rate(ypr: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """omega (..., 3) [rad/s] of yaw-pitch-roll and its rates (..., 3) [rad/s]; valid everywhere."""
    return apply(ypr_rate_matrix(ypr, frame), checked(rate, (3,), "rate"))


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
    series = polyval(t * t, [1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800, 1 / 1307674368000])
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
    series = polyval(t * t, [1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000])
    e = np.where(small, series, (1 - half * np.cos(half) / np.sin(half)) / (4 * half**2))
    return np.asarray(np.eye(3) + (0.5 if _is_body(frame) else -0.5) * K + e * (K @ K))


def rotation_vector_rate(vector: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """vdot (..., 3) [rad/s] of a rotation vector shorter than a whole turn and an angular velocity (..., 3)."""
    return apply(rotation_vector_rate_inverse(vector, frame), checked(omega, (3,), "omega"))


def omega_from_rotation_vector_rate(vector: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """omega (..., 3) [rad/s] of a rotation vector and its rate (..., 3) [rad/s]."""
    return apply(rotation_vector_rate_matrix(vector, frame), checked(rate, (3,), "rate"))


def _is_body(frame: str) -> bool:
    if frame not in ("world", "body"):
        raise InvalidValue(f"frame: got {frame!r}, valid are 'world' and 'body'")
    return frame == "body"


def _skew_and_angle(vector: ArrayLike) -> tuple[Array, Array]:
    vector = checked(vector, (3,), "vector")
    return skew(vector), np.linalg.norm(vector, axis=-1)[..., None, None]
