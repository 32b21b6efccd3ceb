"""Straight lines through points, the corners rounded within a tolerance; tangent and curvature continuous.

The blend. In the plane of a corner that turns by phi, with complex numbers and the incoming line along the real axis,
it is the curve with the hodograph (Pythagorean: its speed is a polynomial, so its arc length is one too)

    dC/du = sigma (w_0 (1 - u)^2 + w_1 u^2)^2,   w_0 = 1, w_1 = e^(i phi/2),  u in [0, 1]
    |dC/du| = sigma g(u),   g = (1 - u)^4 + 2 cos(phi/2) u^2 (1 - u)^2 + u^4
    curvature = 4 u (1 - u) sin(phi/2) / (sigma g^2):  zero where it joins the lines, largest in the middle,
                16 sin(phi/2) / (sigma cos^4(phi/4))

It leaves the line d = sigma (1/5 + 1/(30 cos(phi/2))) before the corner, joins the next one d after it, and passes the
corner at the distance delta = sigma (sin(phi/2)/80 + tan(phi/2)/30): that is what the tolerance bounds. A circular
blend would be shorter to write, but its curvature jumps, and with it the acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.planning.paths import (
    SHORTEST,
    Orientation,
    PathPoints,
    Piece,
    Waypoints,
    assembled,
    orientation_from,
    positive,
)
from tangere.types import Array

# Default distance [m] from a corner: ten times what a UR repeats (0.05 mm), a quarter of a pen's line.
TOLERANCE = 0.5e-3
# A turn below this [rad] is none: over 1 m the line misses by less than a nanometre.
STRAIGHT = 1e-9
# Sharper turns [rad] than 175 degrees are a way back: the blend would crawl round a tip of micrometres.
TURN_MAX = np.deg2rad(175.0)
# Share of a line that a blend may use up at each end; what is left keeps every straight piece longer than nothing.
SHARE = 0.49
# Newton's method for u(s) starts below the root of a concave function and climbs: quadratic, 12 steps at 175 degrees.
NEWTON_STEPS = 16


class Polyline:
    """Lines through points (m, 3) [m], m >= 2, with blends at the inner ones.

    orientation: one (3, 3), an Orientation over the whole length, or a list of m matrices (one per point, reached in
    the middle of its blend). tolerance [m]: largest distance between a corner and the path; short lines make it less.
    """

    __slots__ = ("_bends", "_origin", "_phi", "_sigma", "_starts", "_turning", "_x", "_y", "deviation", "length")
    closed = False

    def __init__(
        self, points: ArrayLike, orientation: Orientation | ArrayLike | Sequence[ArrayLike], *,
        tolerance: float = TOLERANCE,
    ) -> None:  # fmt: skip
        corners = checked(points, (None, 3), "points")
        if corners.ndim != 2 or len(corners) < 2:
            raise InvalidValue(f"points: two or more (m, 3) are needed, got shape {corners.shape}")
        positive(tolerance, "tolerance", "m")
        ways = np.diff(corners, axis=0)
        lengths = np.linalg.norm(ways, axis=1)
        if np.any(lengths < SHORTEST):
            i = int(np.argmin(lengths))
            raise InvalidValue(f"points {i} and {i + 1} coincide: {corners[i].tolist()}")
        t = ways / lengths[:, None]
        phi = 2.0 * np.arctan2(np.linalg.norm(t[1:] - t[:-1], axis=1), np.linalg.norm(t[1:] + t[:-1], axis=1))
        if np.any(phi > TURN_MAX):
            i = int(np.argmax(phi))
            raise InvalidValue(
                f"the path turns back by {np.rad2deg(phi[i]):.1f} degrees at point {i + 1}, "
                f"{corners[i + 1].tolist()}: split it there, the tool has to stop"
            )
        half = 0.5 * phi
        reach = 0.2 + 1.0 / (30.0 * np.cos(half))  # d/sigma
        miss = np.sin(half) / 80.0 + np.tan(half) / 30.0  # delta/sigma
        room = SHARE * np.minimum(lengths[:-1], lengths[1:])
        bends = phi > STRAIGHT
        sigma = np.where(bends, np.minimum(tolerance / np.maximum(miss, 1e-30), room / reach), 0.0)
        d = sigma * reach
        self.deviation = float(np.max(sigma * miss, initial=0.0))  # [m] at the corner that is cut most

        # pieces: line 0, blend 0, line 1, ... line m-2; a corner that does not bend has a blend of length zero
        straight = lengths - np.concatenate([[0.0], d]) - np.concatenate([d, [0.0]])
        curved = sigma * (0.4 + np.cos(half) / 15.0)
        sizes = np.empty(2 * len(straight) - 1)
        sizes[0::2], sizes[1::2] = straight, curved
        edges = np.concatenate([[0.0], np.cumsum(sizes)])
        self._starts, self.length = edges[:-1], float(edges[-1])
        across = t[1:] - np.cos(phi)[:, None] * t[:-1]
        size = np.linalg.norm(across, axis=1)[:, None]
        self._x, self._origin = np.repeat(t, 2, axis=0)[:-1], np.empty((len(sizes), 3))
        self._y, self._sigma, self._phi = np.zeros((len(sizes), 3)), np.ones(len(sizes)), np.zeros(len(sizes))
        self._y[1::2] = np.where(size > 0.0, across / np.where(size > 0.0, size, 1.0), 0.0)
        self._origin[0] = corners[0]
        self._origin[2::2] = corners[1:-1] + d[:, None] * t[1:]
        self._origin[1::2] = corners[1:-1] - d[:, None] * t[:-1]
        self._sigma[1::2], self._phi[1::2] = np.where(bends, sigma, 1.0), phi
        self._bends = np.zeros(len(sizes), dtype=np.bool_)
        self._bends[1::2] = bends
        self._turning = self._orientation(orientation, len(corners), edges)

    def _orientation(self, value: Orientation | ArrayLike | Sequence[ArrayLike], m: int, edges: Array) -> Orientation:
        if isinstance(value, Orientation):
            return value
        R = np.asarray(value, dtype=np.float64)
        if R.shape == (m, 3, 3):
            middle = 0.5 * (edges[1:-1:2] + edges[2:-1:2])
            return Waypoints(R, np.concatenate([[0.0], middle / self.length, [1.0]]))
        return orientation_from(R)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Lines and blends in turn; corners that do not bend are left out."""
        ends = np.append(self._starts[1:], self.length)
        u = np.linspace(0.0, 1.0, 65)
        found = []
        for i in np.nonzero(self._bends | (np.arange(len(ends)) % 2 == 0))[0]:
            curvature = sharpness = 0.0
            if self._bends[i]:
                k, kd = _curvature(u, self._phi[i], self._sigma[i])
                curvature, sharpness = float(k.max()), float(np.sqrt(kd**2 + k**4).max())
            found.append(Piece(float(self._starts[i]), float(ends[i]), curvature, sharpness))
        return tuple(found)

    def at(self, s: ArrayLike) -> PathPoints:
        """Position, unit tangent, curvature vector."""
        s = np.clip(checked(s, (None,), "s"), 0.0, self.length)
        i = np.clip(np.searchsorted(self._starts, s, side="right") - 1, 0, len(self._starts) - 1)
        along = s - self._starts[i]
        x, y = self._x[i], self._y[i]
        p, tangent, curvature = self._origin[i] + along[:, None] * x, x.copy(), np.zeros_like(x)
        b = np.nonzero(self._bends[i])[0]
        if len(b):
            phi, sigma = self._phi[i[b]], self._sigma[i[b]]
            u = _parameter(along[b], phi, sigma)
            turn = np.exp(0.5j * phi)
            c = (1.0 - (1.0 - u) ** 5) / 5.0 + turn * u**3 * (2.0 / 3.0 - u + 0.4 * u**2) + turn**2 * u**5 / 5.0
            w = (1.0 - u) ** 2 + turn * u**2
            direction = w**2 / np.abs(w) ** 2
            bent = 1j * direction * _curvature(u, phi, sigma)[0]
            for out, z in ((p, sigma * c), (tangent, direction), (curvature, bent)):
                out[b] = (self._origin[i[b]] if out is p else 0.0) + z.real[:, None] * x[b] + z.imag[:, None] * y[b]
        return assembled(p, tangent, curvature, s, self.length, self._turning)


def _speed(u: Array, phi: ArrayLike) -> Array:
    """g(u) = |dC/du|/sigma."""
    return np.asarray((1.0 - u) ** 4 + 2.0 * np.cos(np.asarray(phi) / 2) * (u * (1.0 - u)) ** 2 + u**4)


def _arc_length(u: Array, phi: Array) -> Array:
    """Integral of g from 0 to u."""
    return (1.0 - (1.0 - u) ** 5) / 5.0 + 2.0 * np.cos(phi / 2) * u**3 * (1.0 / 3.0 - u / 2 + u**2 / 5) + u**5 / 5.0


def _parameter(s: Array, phi: Array, sigma: Array) -> Array:
    """u with sigma _arc_length(u) = s; by symmetry only the first half is solved, where the arc length is concave."""
    total = 0.4 + np.cos(phi / 2) / 15.0
    wanted = np.clip(s / sigma, 0.0, total)
    mirrored = wanted > 0.5 * total
    wanted = np.where(mirrored, total - wanted, wanted)
    u = wanted.copy()  # g(0) = 1 is the steepest slope: never beyond the root
    for _ in range(NEWTON_STEPS):
        u = np.minimum(u + (wanted - _arc_length(u, phi)) / _speed(u, phi), 0.5)
    return np.where(mirrored, 1.0 - u, u)


def _curvature(u: Array, phi: ArrayLike, sigma: ArrayLike) -> tuple[Array, Array]:
    """Curvature [1/m] and its derivative by arc length [1/m2]."""
    phi, sigma = np.asarray(phi), np.asarray(sigma)
    g = _speed(u, phi)
    g_u = -4.0 * (1.0 - u) ** 3 + 4.0 * np.cos(phi / 2) * u * (1.0 - u) * (1.0 - 2.0 * u) + 4.0 * u**3
    factor = 4.0 * np.sin(phi / 2) / sigma
    k = factor * u * (1.0 - u) / g**2
    k_u = factor * ((1.0 - 2.0 * u) / g**2 - 2.0 * u * (1.0 - u) * g_u / g**3)
    return np.asarray(k), np.asarray(k_u / (sigma * g))
