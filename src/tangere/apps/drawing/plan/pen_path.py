"""A stroke as a curve the pen can follow without jolts: smooth within a tolerance, with corners where it must stop.

A stroke arrives as a polyline, mostly a smooth line that was simplified. It becomes one or more curves, split at sharp
corners, where the pen stops for an instant and which are met exactly. Each curve is a cubic spline (tangent and
curvature continuous) through the points; where it strays from the polyline by more than the tolerance, points are added
between, as far from the polyline as the tolerance allows in the direction the spline wanted to go.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.planning.paths import Constant, PathPoints, Piece, assembled, positive
from tangere.types import Array

# m: how far the pen's way may stray from the sides of the stroke (its points are passed exactly): what a stroke is
# simplified by, since the smooth line it came from bulges as far over its sides; a fine pen draws 0.3 mm
TOLERANCE = 0.1e-3
# rad: a turn sharper than 45 degrees is a corner, unless its sides are so short that rounding it stays in tolerance.
# Passing 45 degrees so near means to slow down to some mm/s; to stop there costs 0.1 s and keeps the corner sharp.
CORNER = np.deg2rad(45.0)
# A spline whose speed over its parameter falls below this share of the chord is about to come to a cusp, round a fold
# or spike, where its curvature has no bound: there the pen stops instead. Through points on a gentle line it stays
# above 0.7. Between two of CUSP_PROBES the speed changes by 0.2 of the chord at most, so none slips through.
CUSP = 0.25
CUSP_PROBES = np.linspace(0.0, 1.0, 17)
# m: points nearer together are one; a tenth of what any arm resolves
SAME = 1e-6
# Neighbouring knots of a spline differ in spacing by this factor at most: beyond, it swings on the long side
GRADING = 3.0
# Where one side strays too far, those that nearly do (this share) get a point too: one alone pushes its neighbour out
NEARLY = 0.85
# Share of the tolerance that an added point uses: the spline between the points needs the rest
USED = 0.7
# An arc that strays by less than this many tolerances is pulled in to the tolerance and stays an arc
SWING = 3.0
# Each round halves what strays: 14 rounds go from 100 mm to 0.01 mm
ROUNDS = 14
# 1/m and 1/m2: what bends less is a straight line for any speed a pen goes (1 m/s at 1 m/s2 and 1000 m/s3)
FLAT, EVEN = 1.0, 1e3
# Gauss-Legendre on [0, 1], four points: degree 7; on a quarter of a spline piece the arc length is then exact to 1e-9
GAUSS_X, GAUSS_W = (0.5 * np.polynomial.legendre.leggauss(4)[0] + 0.5, 0.5 * np.polynomial.legendre.leggauss(4)[1])
PARTS = 4  # of a spline piece in the table of arc lengths
_PROBES = np.linspace(0.0, 1.0, 9)[1:-1]


class PenCurve:
    """A smooth curve on the paper over its arc length: a cubic spline through points (k, 2) [m]; a planning Path.

    Canvas axes, the tool's orientation not turning (identity). deviation [m]: largest distance from the polyline.
    """

    __slots__ = ("_c", "_columns", "_edges", "_s", "_turning", "deviation", "length", "pieces", "points")
    closed = False

    def __init__(self, points: Array, deviation: float = 0.0) -> None:
        self.points, self.deviation = points, deviation
        h, self._c = _spline(points)
        self._columns = np.ascontiguousarray(self._c.swapaxes(1, 2))  # x and y apart
        self._turning = Constant(np.eye(3))
        # arc length over the parameter, at PARTS places per piece; u runs over piece number plus share of the piece
        m = len(h)
        self._edges = np.linspace(0.0, m, PARTS * m + 1)
        step = 1.0 / PARTS
        u = self._edges[:-1, None] + step * GAUSS_X
        speed = self._speed(u)
        self._s = np.concatenate([[0.0], np.cumsum(step * speed @ GAUSS_W)])
        self.length = float(self._s[-1])
        self.pieces = self._pieces()

    @property
    def knots(self) -> Array:
        """Arc lengths [m] at which it passes its points."""
        return self._s[::PARTS]

    def at(self, s: ArrayLike) -> PathPoints:
        """Poses at arc lengths s (k,) in canvas axes: position on the paper, unit tangent, curvature vector."""
        s = np.clip(checked(s, (None,), "s"), 0.0, self.length)
        u = self._parameter(s)
        p, d1, d2, _ = self._values(u)
        speed = np.linalg.norm(d1, axis=-1, keepdims=True)
        t = d1 / speed
        bend = (d2 - np.sum(d2 * t, axis=-1, keepdims=True) * t) / speed**2
        flat = np.zeros((len(s), 1))
        p, t, bend = (np.concatenate([x, flat], axis=1) for x in (p, t, bend))
        return assembled(p, t, bend, s, self.length, self._turning)

    def _parameter(self, s: Array) -> Array:
        """u with arc length s: from the table, then Newton's method."""
        i = np.clip(np.searchsorted(self._s, s, side="right") - 1, 0, len(self._s) - 2)
        low, high, start = self._edges[i], self._edges[i + 1], self._s[i]
        u = low + (high - low) * (s - start) / (self._s[i + 1] - start)
        for _ in range(2):  # the speed hardly varies within a quarter of a piece: 1e-3, 1e-6, 1e-12
            nodes = low[:, None] + (u - low)[:, None] * GAUSS_X
            here = start + (u - low) * (self._speed(nodes) @ GAUSS_W)
            u = np.clip(u - (here - s) / self._speed(u), low, high)
        return np.asarray(u)

    def _speed(self, u: Array) -> Array:
        """Size of the derivative for parameters u of any shape."""
        i = np.clip(u.astype(np.intp), 0, self._c.shape[1] - 1)
        x, c = u - i, self._columns
        right, up = (c[1, k, i] + x * (2.0 * c[2, k, i] + 3.0 * x * c[3, k, i]) for k in (0, 1))
        return np.asarray(np.sqrt(right * right + up * up))

    def _values(self, u: Array) -> tuple[Array, Array, Array, Array]:
        i = np.clip(u.astype(np.intp), 0, self._c.shape[1] - 1)
        x = (u - i)[:, None]
        c = self._c[:, i]
        p = c[0] + x * (c[1] + x * (c[2] + x * c[3]))
        return p, c[1] + x * (2.0 * c[2] + 3.0 * x * c[3]), 2.0 * c[2] + 6.0 * x * c[3], 6.0 * c[3]

    def _pieces(self) -> tuple[Piece, ...]:
        """One per spline piece, with its largest curvature; neighbours that are both straight are joined."""
        m = self._c.shape[1]
        x = np.linspace(0.0, 1.0, 9)
        u = np.minimum((np.arange(m)[:, None] + x), np.nextafter(np.arange(1, m + 1), 0)[:, None])
        _, d1, d2, d3 = self._values(u.ravel())
        speed = np.linalg.norm(d1, axis=-1)
        cross = d1[:, 0] * d2[:, 1] - d1[:, 1] * d2[:, 0]
        k = cross / speed**3
        k_u = (d1[:, 0] * d3[:, 1] - d1[:, 1] * d3[:, 0]) / speed**3 - 3.0 * cross * np.sum(d1 * d2, axis=1) / speed**5
        curvature = np.abs(k).reshape(m, -1).max(axis=1)
        sharpness = np.hypot(k_u / speed, k**2).reshape(m, -1).max(axis=1)
        edges = self._s[::PARTS]
        found: list[Piece] = []
        for i in range(m):
            flat = curvature[i] < FLAT and sharpness[i] < EVEN
            if flat and found and found[-1].curvature < FLAT and found[-1].sharpness < EVEN:
                last = found.pop()
                found.append(
                    Piece(last.start, float(edges[i + 1]), max(last.curvature, float(curvature[i])),
                          max(last.sharpness, float(sharpness[i])))
                )  # fmt: skip
            else:
                found.append(Piece(float(edges[i]), float(edges[i + 1]), float(curvature[i]), float(sharpness[i])))
        return tuple(found)


def pen_curves(line: ArrayLike, tolerance: float = TOLERANCE) -> list[PenCurve]:
    """The curves of one stroke (k, 2) [m], in order, the pen stopping between them; none for a dot."""
    positive(tolerance, "tolerance", "m")
    points = checked(line, (None, 2), "line")
    if points.ndim != 2:
        raise InvalidValue(f"line: a stroke (k, 2) is needed, got shape {points.shape}")
    points = _distinct(points)
    if len(points) < 2:
        return []
    ways = np.diff(points, axis=0)
    lengths = np.linalg.norm(ways, axis=1)
    turn = np.abs(np.angle(_complex(ways[1:]) / _complex(ways[:-1])))
    # the arc over both sides of a corner strays by turn * side / 8
    sharp = (turn > CORNER) & (turn * np.minimum(lengths[1:], lengths[:-1]) / 8.0 > tolerance)
    corners = [0, *(np.nonzero(sharp)[0] + 1).tolist(), len(points) - 1]
    found: list[PenCurve] = []
    for a, b in pairwise(corners):
        found += _curves(points[a : b + 1], tolerance)
    return found


def _curves(polyline: Array, tolerance: float) -> list[PenCurve]:
    """One spline within the tolerance of a polyline without corners; two, with a stop between, where none is found.

    The stop is where the polyline turns most; at the latest, every straight side is a curve of its own.
    """
    curve = _curve(polyline, tolerance)
    if curve is not None:
        return [curve]
    ways = _complex(np.diff(polyline, axis=0))
    stop = int(np.argmax(np.abs(np.angle(ways[1:] / ways[:-1])))) + 1
    return _curves(polyline[: stop + 1], tolerance) + _curves(polyline[stop:], tolerance)


def _curve(polyline: Array, tolerance: float) -> PenCurve | None:
    points, owner = _graded(*_guarded(polyline, tolerance))
    for _ in range(ROUNDS):
        h, c = _spline(points)
        x = _PROBES[None, :, None]
        on = c[0][:, None] + x * (c[1][:, None] + x * (c[2][:, None] + x * c[3][:, None]))  # (m, 7, 2)
        away = _distance(on, polyline, owner)
        if away.max() <= tolerance:
            x = CUSP_PROBES[None, :, None]
            speed = np.linalg.norm(c[1][:, None] + x * (2.0 * c[2][:, None] + 3.0 * x * c[3][:, None]), axis=-1)
            if len(points) > 2 and np.any(speed.min(axis=1) < CUSP * h):
                return None
            return PenCurve(points, float(away.max(initial=0.0)))
        chord = 0.5 * (points[1:] + points[:-1])
        wish = on[:, len(_PROBES) // 2] - chord
        size = np.linalg.norm(wish, axis=1, keepdims=True)
        added = chord + wish * np.minimum(1.0, USED * tolerance / np.maximum(size, 1e-12))
        # far off it is no arc but swings: then onto the side; nor farther out where the chord joins two added points
        out = _distance(chord[:, None], polyline, owner)[:, 0]
        straight = (size[:, 0] > SWING * tolerance) | (out > 0.3 * tolerance)
        added[straight] = chord[straight]
        where = np.nonzero(away.max(axis=1) > NEARLY * tolerance)[0]
        points = np.insert(points, where + 1, added[where], axis=0)
        owner = np.insert(owner, where + 1, owner[where])
    return None


def _spline(points: Array) -> tuple[Array, Array]:
    """Cubic spline through points (k, 2) over their chord lengths: h (k-1,), coefficients (4, k-1, 2).

    Piece i is c0 + c1 x + c2 x^2 + c3 x^3 with x from 0 to 1. The tangents m at the points follow from a tridiagonal
    system: second derivatives continuous, and constant over the first and the last piece, so that a circle keeps its
    curvature to its ends.
    """
    way = np.diff(points, axis=0)
    h = np.maximum(np.linalg.norm(way, axis=1), 1e-12)
    slope = _complex(way) / h
    n = len(points)
    if n == 2:
        tangent = np.repeat(slope, 2)
    else:
        low, high = (1.0 / h).tolist(), slope.tolist()
        # rows: m_{i-1}/h_{i-1} + 2 m_i (1/h_{i-1} + 1/h_i) + m_{i+1}/h_i = 3 (d_{i-1}/h_{i-1} + d_i/h_i)
        diagonal, right = [low[0]], [2.0 * high[0] * low[0]]
        for i in range(1, n):
            a = low[i - 1]
            d, r = a, 2.0 * high[i - 1] * a
            if i < n - 1:
                d, r = 2.0 * (a + low[i]), 3.0 * (high[i - 1] * a + high[i] * low[i])
            w = a / diagonal[-1]
            diagonal.append(d - w * a)
            right.append(r - w * right[-1])
        out = [right[-1] / diagonal[-1]]
        for i in range(n - 2, -1, -1):
            out.append((right[i] - low[i] * out[-1]) / diagonal[i])
        tangent = np.array(out[::-1])
    p0, p1, m0, m1 = _complex(points[:-1]), _complex(points[1:]), tangent[:-1] * h, tangent[1:] * h
    c = np.stack([p0, m0, 3.0 * (p1 - p0) - 2.0 * m0 - m1, 2.0 * (p0 - p1) + m0 + m1])
    return h, np.stack([c.real, c.imag], axis=-1)


def _guarded(polyline: Array, tolerance: float) -> tuple[Array, NDArray[np.intp]]:
    """A point on each long side of a bend, so near that the arc through them strays by half the tolerance.

    Over two sides of length d that enclose a turn phi an arc strays by phi d / 8. Also: the side each interval is on.
    """
    ways = np.diff(polyline, axis=0)
    h = np.linalg.norm(ways, axis=1)
    turn = np.abs(np.angle(_complex(ways[1:]) / _complex(ways[:-1])))
    near = np.concatenate([[np.inf], 4.0 * tolerance / np.maximum(turn, 1e-9), [np.inf]])
    cuts = [
        [near[i]] * bool(2.5 * near[i] < side) + [side - near[i + 1]] * bool(2.5 * near[i + 1] < side)
        for i, side in enumerate(h)
    ]
    return _cut(polyline, cuts)


def _graded(polyline: Array, owner: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
    """Points put into long sides next to short ones, so that the spacing grows by GRADING at most."""
    h = np.linalg.norm(np.diff(polyline, axis=0), axis=1)
    every: list[list[float]] = []
    for i, side in enumerate(h):
        before = h[i - 1] if i else side
        after = h[i + 1] if i + 1 < len(h) else side
        kept: list[float] = []
        for cut in sorted({*_steps(before, side), *(side - x for x in _steps(after, side))}):
            if not kept or cut - kept[-1] > 0.3 * min(before, after, side):
                kept.append(cut)
        every.append(kept)
    points, sides = _cut(polyline, every)
    return points, owner[sides]


def _cut(polyline: Array, cuts: list[list[float]]) -> tuple[Array, NDArray[np.intp]]:
    """The polyline with points `cuts` [m] after the start of each side; and the side that each interval is on."""
    ways = np.diff(polyline, axis=0)
    h = np.linalg.norm(ways, axis=1)
    points, owner = [polyline[0]], []
    for i, places in enumerate(cuts):
        points += [polyline[i] + cut / h[i] * ways[i] for cut in places] + [polyline[i + 1]]
        owner += [i] * (len(places) + 1)
    return np.array(points), np.array(owner, dtype=np.intp)


def _steps(near: float, side: float) -> list[float]:
    """Places on a side next to one of length `near`, each step GRADING times the one before, up to its middle."""
    found, step, place = [], near, 0.0
    while step * GRADING < side - place and place + step * GRADING < 0.5 * side:
        step *= GRADING
        place += step
        found.append(place)
    return found


def _distance(points: Array, polyline: Array, owner: NDArray[np.intp]) -> Array:
    """(m, j) distance of points (m, j, 2) from the sides owner - 1, owner and owner + 1 (m,) of a polyline."""
    least = np.full(points.shape[:2], np.inf)
    sides = len(polyline) - 1
    for shift in (-1, 0, 1):
        i = np.clip(owner + shift, 0, sides - 1)
        a, way = polyline[i][:, None], (polyline[i + 1] - polyline[i])[:, None]
        x = np.clip(np.sum((points - a) * way, axis=-1) / np.sum(way * way, axis=-1), 0.0, 1.0)
        least = np.minimum(least, np.linalg.norm(points - a - x[..., None] * way, axis=-1))
    return least


def _distinct(points: Array) -> Array:
    """Without points that repeat the one before; the last one is kept as it is."""
    kept = [0]
    for i in range(1, len(points)):
        if np.hypot(*(points[i] - points[kept[-1]])) > SAME:
            kept.append(i)
    while kept and np.hypot(*(points[-1] - points[kept[-1]])) <= SAME:
        kept.pop()
    return np.asarray(points[[*kept, -1]])


def _complex(points: Array) -> NDArray[np.complex128]:
    return np.asarray(points[..., 0] + 1j * points[..., 1])
