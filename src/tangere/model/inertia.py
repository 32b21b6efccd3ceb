"""Rigid bodies: what a mass and an inertia must satisfy, moving them between frames, joining two into one; payloads."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, UnphysicalModel
from tangere.model.frames import numbers
from tangere.model.model import Array, Link, Payload, frozen

# Relative slack on the triangle inequality and on the sign of the smallest moment. A thin plate sits exactly on the
# border (I1 + I2 = I3) and eigenvalues of a 3x3 carry a few rounding errors of 1e-16; a printed table that is wrong
# misses it by parts in a hundred.
SLACK = 1e-9
# Beyond these a mass matrix loses the wrist's own inertia (1e-3 kg m2) to rounding, and is no longer positive definite
MASS_MAX, COM_MAX = 1e6, 100.0  # [kg], [m]


def inertia_matrix(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> Array:
    """The tensor (3, 3) of its six entries [kg m2]."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def principal_moments(inertia: Array) -> Array:
    """Principal moments of an inertia tensor, ascending, (3,) in kg m2."""
    return np.asarray(np.linalg.eigvalsh(inertia), dtype=np.float64)


def check_body(what: str, mass: float, com: Array, inertia: Array, *, point_mass: bool = False) -> None:
    """Raise UnphysicalModel unless a rigid body with these numbers can exist.

    mass > 0; inertia symmetric, I1 > 0 and I3 <= I1 + I2 for the principal moments I1 <= I2 <= I3, because
    I1 + I2 - I3 = 2 int z^2 dm >= 0. With `point_mass` an inertia of exactly zero is allowed as well.

    what: how to name the body in the message; mass [kg]; com (3,) [m]; inertia (3, 3) [kg m2] about the COM.
    """
    moments = inertia.ravel().tolist()  # plain numbers: a payload may change while the robot moves
    if not all(map(isfinite, (mass, *com.tolist(), *moments))):
        raise UnphysicalModel(
            f"{what}: mass {mass}, centre of mass {com.tolist()} and inertia {inertia.tolist()} must all be finite"
        )
    if mass <= 0.0:
        raise UnphysicalModel(f"{what}: mass {mass:g} kg must be positive")
    if mass > MASS_MAX or max(map(abs, com.tolist())) > COM_MAX or max(map(abs, moments)) > MASS_MAX * COM_MAX**2:
        raise UnphysicalModel(
            f"{what}: mass {mass:g} kg, centre of mass {com.tolist()} m: at most {MASS_MAX:g} kg, {COM_MAX:g} m away"
        )
    asymmetry = max(abs(moments[3 * i + j] - moments[3 * j + i]) for i, j in ((0, 1), (0, 2), (1, 2)))
    if asymmetry > SLACK * max(map(abs, moments)):
        raise UnphysicalModel(
            f"{what}: inertia must be symmetric, entries differ by {asymmetry:.3g} kg m2: {inertia.tolist()}"
        )
    if point_mass and not any(moments):
        return
    low, middle, high = (float(value) for value in principal_moments(inertia))
    shown = f"principal moments {low:.6g}, {middle:.6g}, {high:.6g} kg m2"
    if high > (low + middle) * (1.0 + SLACK):
        raise UnphysicalModel(
            f"{what}: {shown} break the triangle inequality: the largest moment of a rigid body never exceeds the sum "
            f"of the other two, here {high:.6g} > {low:.6g} + {middle:.6g}"
        )
    if low <= SLACK * high:
        raise UnphysicalModel(f"{what}: {shown}, but each moment of a body with an extent is positive")


def moved(link: Link, T: Array, name: str | None = None) -> Link:
    """The same body expressed in another frame: c' = R c + p, I' = R I R^T, where T = [R p; 0 1] maps old to new."""
    R, p = T[:3, :3], T[:3, 3]
    inertia = R @ link.inertia @ R.T
    return Link(link.name if name is None else name, link.mass, R @ link.com + p, 0.5 * (inertia + inertia.T))


def joined(first: Link, second: Link) -> Link:
    """Two bodies in one frame, rigidly joined, under the name of the first.

    m = m1 + m2, c = (m1 c1 + m2 c2) / m, I = I1 + I2 + mu (|e|^2 1 - e e^T) with e = c2 - c1, mu = m1 m2 / m.
    A massless body (mass 0) adds nothing.
    """
    mass = first.mass + second.mass
    if mass == 0.0:
        return first
    offset = second.com - first.com
    reduced = first.mass * second.mass / mass
    steiner = reduced * (float(offset @ offset) * np.eye(3) - np.outer(offset, offset))
    com = (first.mass * first.com + second.mass * second.com) / mass
    return Link(first.name, mass, com, first.inertia + second.inertia + steiner)


def with_payload(link: Link, payload: Payload | None) -> Link:
    """The last link with a payload fixed to the flange (the flange frame is the last link's frame)."""
    if payload is None:
        return link
    return joined(link, Link("payload", payload.mass, payload.com, payload.inertia))


def payload_body(payload: Payload | float | Sequence[Any]) -> Payload:
    """A validated Payload from a Payload, a mass, (mass, com) or (mass, com, inertia); flange axes, SI.

    com (3,) defaults to the flange's origin; inertia (3, 3) about the COM defaults to zero, a point mass.
    """
    if isinstance(payload, Payload):
        parts: tuple[Any, ...] = (payload.mass, payload.com, payload.inertia)
    elif isinstance(payload, int | float | np.number):
        parts = (payload,)
    elif isinstance(payload, Sequence | np.ndarray) and not isinstance(payload, str):
        parts = tuple(payload)
    else:
        raise InvalidValue(f"payload must be a mass, (mass, com) or (mass, com, inertia), got {payload!r}")
    if not 1 <= len(parts) <= 3:
        raise InvalidValue(f"payload must be a mass, (mass, com) or (mass, com, inertia), got {len(parts)} entries")
    shapes = ((), (3,), (3, 3))
    arrays = [np.zeros(shape) for shape in shapes]
    for i, (part, what) in enumerate(zip(parts, ("mass", "com", "inertia"), strict=False)):
        arrays[i] = numbers(part, f"payload {what}")
        if arrays[i].shape != shapes[i]:
            raise InvalidValue(f"payload {what} must have shape {shapes[i]}, got {arrays[i].shape}")
    mass, com, inertia = float(arrays[0]), arrays[1], arrays[2]
    check_body("payload", mass, com, inertia, point_mass=True)
    return frozen(Payload(mass, com, inertia))
