"""Positions in Cartesian, cylindrical and spherical coordinates, with rates and accelerations.

    cartesian    chi = (x, y, z)
    cylindrical  chi = (rho, theta, z):   x = rho cos(theta), y = rho sin(theta)
    spherical    chi = (r, theta, phi):   x = r sin(phi) cos(theta), y = r sin(phi) sin(theta), z = r cos(phi)

theta is the azimuth about z in (-pi, pi] in both, phi in [0, pi] the angle from +z. 003 names the letters but not the
angles, and writes the coordinates as if they were vector components; they are coordinates, and (xd, yd, zd) is the
velocity in the Cartesian row only. Lengths in m, angles in rad, p and chi (..., 3), base axes.

On the z axis the azimuth does not exist: `coordinates` returns theta = 0 there, and at the origin also phi = 0.
Rates on it are refused: some velocities would need an infinite thetad.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked

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
    return _apply(rate_matrix(system, chi), checked(rate, (3,), "rate"))


def rate(system: System, chi: ArrayLike, v: ArrayLike) -> Array:
    """chid = E^-1 v (..., 3) of a Cartesian velocity v [m/s]; refused on the z axis."""
    return _apply(rate_inverse(system, chi), checked(v, (3,), "v"))


def acceleration(system: System, chi: ArrayLike, rate: ArrayLike, second_rate: ArrayLike) -> Array:
    """Cartesian acceleration a = E chidd + Edot chid (..., 3) [m/s2]; valid everywhere."""
    chi, rate = checked(chi, (3,), "chi"), checked(rate, (3,), "rate")
    second = checked(second_rate, (3,), "second_rate")
    return _apply(rate_matrix(system, chi), second) + _curvature(system, chi, rate)


def second_rate(system: System, chi: ArrayLike, rate: ArrayLike, a: ArrayLike) -> Array:
    """chidd = E^-1 (a - Edot chid) (..., 3) of a Cartesian acceleration a [m/s2]; refused on the z axis."""
    chi, rate = checked(chi, (3,), "chi"), checked(rate, (3,), "rate")
    return _apply(rate_inverse(system, chi), checked(a, (3,), "a") - _curvature(system, chi, rate))


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
    return np.stack([np.stack(column, axis=-1) for column in columns], axis=-1), np.stack(lengths, axis=-1)


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
    return _apply(axes, np.stack(parts, axis=-1))


def _known(system: str) -> None:
    if system not in SYSTEMS:
        raise InvalidValue(f"system: got {system!r}, valid are {', '.join(SYSTEMS)}")


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])
