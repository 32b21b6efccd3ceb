"""Paths in space, geometry only: straight lines, arcs and circles in any plane, and how the tool turns along them.

A path answers for arc lengths s (k,) [m] with the pose T_base_tcp and its derivatives by s: tangent and curvature
vector, and how the tool turns. A time law s(t) makes a motion of it:

    v = X' sd,   a = X' sdd + X'' sd^2        X' = (tangent, w'), X'' = (curvature vector, w'')

The tool does not turn, turns evenly between two orientations, or from waypoint to waypoint. Every orientation is a
function of u in [0, 1], the share of the path's length that is behind. `at(u)` gives the rotation R_base_tcp (k, 3, 3),
its angular velocity per unit of u, w = (dR/du R^T)^vee (k, 3) in base axes, and dw/du. Each piece turns about an axis
that is fixed in the base, so dw/du lies along w and nothing has to be differentiated numerically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.kinematics.rotation import checked_rotation, matrix_from_rotation_vector, rotation_error
from tangere.types import Array

# Shorter paths [m] have no direction to speak of: a tenth of a micrometre is below what any arm repeats (30 um) and
# far above rounding at one metre.
SHORTEST = 1e-7
# Two orientations that differ by more than this [rad] have no unique shortest turn: at exactly half a turn both ways
# are equally long, and rounding would choose. 1e-6 is far above the rounding of a rotation (1e-15).
HALF_TURN = np.pi - 1e-6


@dataclass(frozen=True, slots=True)
class PathPoints:
    """Poses along a path and their derivatives by arc length; base axes."""

    T: Array  # (k, 4, 4)
    first: Array  # (k, 6) d/ds: unit tangent, then turn [rad/m]
    second: Array  # (k, 6) d2/ds2: curvature vector [1/m], then [rad/m2]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a path and how sharply it bends, for the choice of a speed."""

    start: float  # [m] arc length
    end: float
    curvature: float  # 1/m, the largest on the piece: a = curvature sd^2 at constant speed
    sharpness: float  # 1/m2, largest |d(curvature vector)/ds|: jerk = sharpness sd^3 at constant speed


class Path(Protocol):
    """Geometry over arc length."""

    @property
    def length(self) -> float:
        """Arc length [m]."""

    @property
    def closed(self) -> bool:
        """True where s may run on past the length, round after round."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """How it bends, in order, without gaps."""

    def at(self, s: ArrayLike) -> PathPoints:
        """Poses and derivatives at the arc lengths s (k,)."""


@runtime_checkable
class Orientation(Protocol):
    """R(u) with its first two derivatives, u in [0, 1]."""

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R (k, 3, 3), w (k, 3) [rad per unit of u], dw/du (k, 3)."""


class Constant:
    """The tool keeps one orientation R_base_tcp (3, 3)."""

    __slots__ = ("R",)

    def __init__(self, R: ArrayLike) -> None:
        self.R = _one(R)

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R repeated, no turning."""
        k = len(u)
        zero = np.zeros((k, 3))
        return np.broadcast_to(self.R, (k, 3, 3)), zero, zero


class Slerp:
    """The shortest turn from R_start to R_end, evenly over the length: R(u) = exp(u phi) R_start.

    phi = log(R_end R_start^T), so w = phi is constant (spherical linear interpolation). At constant path speed the
    tool turns at constant rate; it starts and stops with the path.
    """

    __slots__ = ("R_start", "phi")

    def __init__(self, R_start: ArrayLike, R_end: ArrayLike) -> None:
        self.R_start = _one(R_start)
        self.phi = _turn(self.R_start, _one(R_end), "R_start and R_end")

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R, w = phi, dw/du = 0."""
        R = matrix_from_rotation_vector(u[:, None] * self.phi) @ self.R_start
        return R, np.broadcast_to(self.phi, (len(u), 3)), np.zeros((len(u), 3))


class Waypoints:
    """Orientations R (m, 3, 3) at the shares `knots` (m,) of the length, joined by turns that start and end softly.

        between knots i and i+1:  R = exp(f(x) phi_i) R_i,  x = (u - u_i)/(u_{i+1} - u_i),  f = 10 x^3 - 15 x^4 + 6 x^5

    f' and f'' vanish at both ends, so that the angular velocity is continuously differentiable across the knots (an
    even turn would jump there). The price: its peak is 15/8 of the even rate.
    """

    __slots__ = ("R", "knots", "phi")

    def __init__(self, R: Sequence[ArrayLike] | Array, knots: ArrayLike) -> None:
        self.R = checked_rotation(np.asarray(R, dtype=np.float64))
        self.knots = np.asarray(knots, dtype=np.float64)
        if self.R.ndim != 3 or self.knots.shape != (len(self.R),) or len(self.R) < 2:
            raise InvalidValue(f"need as many knots as orientations, two or more: {self.R.shape}, {self.knots.shape}")
        if not (np.all(np.diff(self.knots) > 0.0) and self.knots[0] == 0.0 and self.knots[-1] == 1.0):
            raise InvalidValue(f"knots: must increase from 0 to 1, got {self.knots.tolist()}")
        self.phi = np.array(
            [_turn(self.R[i], self.R[i + 1], f"orientations {i} and {i + 1}") for i in range(len(self.R) - 1)]
        )

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """R, w = f' phi, dw/du = f'' phi."""
        i = np.clip(np.searchsorted(self.knots, u, side="right") - 1, 0, len(self.phi) - 1)
        width = np.diff(self.knots)[i]
        x = np.clip((u - self.knots[i]) / width, 0.0, 1.0)
        f = x**3 * (10.0 + x * (-15.0 + 6.0 * x))
        f1 = 30.0 * x**2 * (1.0 - x) ** 2 / width
        f2 = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / width**2
        phi = self.phi[i]
        R = matrix_from_rotation_vector(f[:, None] * phi) @ self.R[i]
        return R, f1[:, None] * phi, f2[:, None] * phi


def orientation_from(value: Orientation | ArrayLike) -> Orientation:
    """An orientation as it is; a matrix (3, 3) as a constant one."""
    if isinstance(value, Orientation):
        return value
    return Constant(value)


def _one(R: ArrayLike) -> Array:
    R = checked_rotation(R)
    if R.shape != (3, 3):
        raise InvalidValue(f"R: one rotation (3, 3) is needed, got shape {R.shape}")
    return R


def _turn(R_start: Array, R_end: Array, names: str) -> Array:
    phi = rotation_error(R_end, R_start)
    angle = float(np.linalg.norm(phi))
    if angle > HALF_TURN:
        raise InvalidValue(f"{names}: half a turn apart, the way round is not unique; put an orientation between them")
    return phi


class Line:
    """Straight from start to end (3,) [m]; orientation (3, 3), or a Slerp."""

    __slots__ = ("_turning", "length", "start", "tangent")
    closed = False

    def __init__(self, start: ArrayLike, end: ArrayLike, orientation: Orientation | ArrayLike) -> None:
        self.start = point(start, "start")
        way = point(end, "end") - self.start
        self.length = float(np.linalg.norm(way))
        if self.length < SHORTEST:
            raise InvalidValue(f"start and end: {self.length:g} m apart, a line needs {SHORTEST:g} m (see JointMove)")
        self.tangent = way / self.length
        self._turning = orientation_from(orientation)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """One, not bent."""
        return (Piece(0.0, self.length, 0.0, 0.0),)

    def at(self, s: ArrayLike) -> PathPoints:
        """p = start + s tangent."""
        s = checked(s, (None,), "s")
        p = self.start + s[:, None] * self.tangent
        return assembled(p, np.broadcast_to(self.tangent, p.shape), np.zeros_like(p), s, self.length, self._turning)


class Circle:
    """Circle or arc in any plane.

        p(s) = centre + R (x_axis cos th + y_axis sin th),  th = s/R

    It starts at centre + R x_axis and goes towards y_axis, `angle` [rad] in all (default: once round, and s may go on
    for further rounds). Axes of any length, made orthonormal: y_axis only says on which side it starts to bend.
    000 eq 88 is x_axis = (1, 0, 0), y_axis = (0, 1, 0); 002's vertical circle is (0, 0, 1), (1, 0, 0) in its base.
    """

    __slots__ = ("_turning", "angle", "centre", "closed", "radius", "x_axis", "y_axis")

    def __init__(
        self, centre: ArrayLike, radius: float, orientation: Orientation | ArrayLike, *,
        x_axis: ArrayLike = (1.0, 0.0, 0.0), y_axis: ArrayLike = (0.0, 1.0, 0.0), angle: float | None = None,
    ) -> None:  # fmt: skip
        self.centre = point(centre, "centre")
        self.radius = positive(radius, "radius", "m")
        if self.radius < SHORTEST:
            raise InvalidValue(f"radius: must be at least {SHORTEST:g} m, got {radius!r}")
        self.x_axis = unit(x_axis, "x_axis")
        y = unit(y_axis, "y_axis")
        self.y_axis = unit(y - (y @ self.x_axis) * self.x_axis, "y_axis, as far as it is across x_axis,")
        self.closed = angle is None
        self.angle = 2.0 * np.pi if angle is None else positive(angle, "angle", "rad")
        self._turning = orientation_from(orientation)

    @classmethod
    def about(
        cls, centre: ArrayLike, radius: float, orientation: Orientation | ArrayLike, *, normal: ArrayLike,
        start: ArrayLike | None = None, angle: float | None = None,
    ) -> Circle:  # fmt: skip
        """The circle that goes counter-clockwise about `normal`; `start` (3,): direction from the centre to its start.

        Without `start` it begins at its highest point (normal upright: in base x direction).
        """
        z = unit(normal, "normal")
        if start is None:
            # nearly upright: up is no direction in the plane any more (0.999 is 2.6 degrees)
            start = (1.0, 0.0, 0.0) if abs(z[2]) > 0.999 else (0.0, 0.0, 1.0)
        x = point(start, "start")
        x = unit(x - (x @ z) * z, "start, as far as it lies in the plane,")
        return cls(centre, radius, orientation, x_axis=x, y_axis=np.cross(z, x), angle=angle)

    @property
    def normal(self) -> Array:
        """(3,) x_axis x y_axis."""
        return np.cross(self.x_axis, self.y_axis)

    @property
    def length(self) -> float:
        """Radius times angle [m]."""
        return self.radius * self.angle

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """One, with curvature 1/R; d(curvature vector)/ds = -tangent/R^2."""
        return (Piece(0.0, self.length, 1.0 / self.radius, 1.0 / self.radius**2),)

    def at(self, s: ArrayLike) -> PathPoints:
        """p, tangent = -x sin + y cos, curvature vector = -(x cos + y sin)/R."""
        s = checked(s, (None,), "s")
        th = s / self.radius
        c, sn = np.cos(th)[:, None], np.sin(th)[:, None]
        outward = c * self.x_axis + sn * self.y_axis
        tangent = c * self.y_axis - sn * self.x_axis
        p = self.centre + self.radius * outward
        return assembled(p, tangent, outward / -self.radius, s, self.length, self._turning)


def arc(start: ArrayLike, via: ArrayLike, end: ArrayLike, orientation: Orientation | ArrayLike) -> Circle:
    """The circular arc from start over via to end (3,) [m] each: the only circle through three points.

    With a = start - via, b = end - via: centre = via + ((|a|^2 b - |b|^2 a) x (a x b)) / (2 |a x b|^2).
    """
    p0, p1, p2 = point(start, "start"), point(via, "via"), point(end, "end")
    a, b = p0 - p1, p2 - p1
    n = np.cross(a, b)
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    # sin of the angle at via: below 1e-6 the radius is half a million times the chord, and rounding decides where
    if size < SHORTEST**2 or np.linalg.norm(n) < 1e-6 * size:
        raise InvalidValue(f"start, via, end: {p0}, {p1}, {p2} lie on a line (or coincide), no arc; use Line")
    centre = p1 + np.cross((a @ a) * b - (b @ b) * a, n) / (2.0 * (n @ n))
    x, radius = p0 - centre, float(np.linalg.norm(p0 - centre))
    y = np.cross(-n, x)  # from start over via to end the arc turns about b x a
    angle = np.arctan2((p2 - centre) @ y / np.linalg.norm(y), (p2 - centre) @ x / radius)
    return Circle(centre, radius, orientation, x_axis=x, y_axis=y, angle=float(angle % (2.0 * np.pi)))


def assembled(p: Array, tangent: Array, curvature: Array, s: Array, length: float, turning: Orientation) -> PathPoints:
    """Positions with unit tangents and curvature vectors (k, 3) at s (k,), joined with the orientation at s/length."""
    R, w, wd = turning.at(s / length)
    T = np.zeros((len(p), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = R, p, 1.0
    first = np.concatenate([tangent, w / length], axis=1)
    second = np.concatenate([curvature, wd / length**2], axis=1)
    return PathPoints(T, first, second)


def point(value: ArrayLike, name: str) -> Array:
    """Three finite numbers [m]."""
    array = checked(value, (3,), name)
    if array.shape != (3,):
        raise InvalidValue(f"{name}: one point (3,) is needed, got shape {array.shape}")
    return array


def unit(value: ArrayLike, name: str) -> Array:
    """The direction of a vector (3,) that is not zero."""
    vector = point(value, name)
    size = float(np.linalg.norm(vector))
    if size < 1e-9:  # of vectors of order one nothing but rounding is left
        raise InvalidValue(f"{name}: must not vanish, got {vector}")
    return np.asarray(vector / size)


def positive(value: float, name: str, unit_name: str) -> float:
    """A finite number above zero."""
    if not (np.isfinite(value) and value > 0.0):
        raise InvalidValue(f"{name}: must be positive and finite [{unit_name}], got {value!r}")
    return float(value)
