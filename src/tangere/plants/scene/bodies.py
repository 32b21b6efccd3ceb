"""What an arm may touch in simulation: one kind of body, with a shape, a pose, a contact law, friction and mass.

A new thing to touch is a function here that makes a Body (`surface`, `table`, `wall`, `ball`, `pad`, `paper`), a new
way to give way is one more class in plants.scene.contacts. plants.scene.mjcf writes bodies as MuJoCo XML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.model import Array
from tangere.plants.scene.contacts import CalmSpring, Contact, Rebound, Rigid, Spring

THICK = 0.05  # [m] of a slab or board; a pen at 1 m/s moves 1 mm per period of 1 ms, so nothing tunnels through
BODY_COLOURS = {
    "surface": "0.93 0.92 0.89 1",
    "ball": "0.85 0.45 0.25 1",
    "pad": "0.90 0.72 0.60 1",
    "paper": "0.98 0.98 0.96 1",
}


class Part(NamedTuple):
    """A primitive of a shape, as MuJoCo has it."""

    name: str  # added to the body's
    kind: str  # box (half edges) or sphere (radius)
    size: tuple[float, ...]  # m
    T: Array  # (4, 4) T_body_part


class Shape(Protocol):
    """A form, in the frame of the body."""

    def parts(self) -> list[Part]:
        """The primitives that make it."""

    def lengths(self) -> Mapping[str, float]:
        """What must be above 0, by name."""


@dataclass(frozen=True)
class Box:
    """A box about the origin."""

    size: tuple[float, float, float]  # m, its edges

    def parts(self) -> list[Part]:
        """The box itself."""
        a, b, c = self.size
        return [Part("", "box", (0.5 * a, 0.5 * b, 0.5 * c), np.eye(4))]

    def lengths(self) -> Mapping[str, float]:
        """Its edges."""
        return {"size": min(self.size) if all(map(math.isfinite, self.size)) else math.nan}


@dataclass(frozen=True)
class Sphere:
    """A ball about the origin."""

    radius: float  # m

    def parts(self) -> list[Part]:
        """The ball itself."""
        return [Part("", "sphere", (self.radius,), np.eye(4))]

    def lengths(self) -> Mapping[str, float]:
        """Its radius."""
        return {"radius": self.radius}


@dataclass(frozen=True)
class Bump:
    """A spherical cap on a sheet: its middle in the sheet's coordinates, its height and the radius of its rim."""

    x: float  # m
    y: float
    height: float  # m above the plane
    radius: float  # m; the slope at the rim is 2 height / radius

    def __post_init__(self) -> None:
        if not (0.0 < self.height <= 0.5 * self.radius and math.isfinite(self.x + self.y + self.radius)):
            raise InvalidValue(
                f"bump: a height above 0, at most half the radius, and finite; got x {1e3 * self.x:g}, "
                f"y {1e3 * self.y:g}, height {1e3 * self.height:g}, radius {1e3 * self.radius:g} mm"
            )

    @property
    def sphere(self) -> float:
        """Radius of the sphere that the cap is cut from [m]."""
        return (self.radius**2 + self.height**2) / (2.0 * self.height)


@dataclass(frozen=True)
class Hole:
    """A rectangle without sheet or board under it: the pen falls through."""

    x: float  # m, middle
    y: float
    width: float  # m, along x
    height: float  # m, along y

    def __post_init__(self) -> None:
        if not (min(self.width, self.height) > 0.0 and math.isfinite(self.x + self.y + self.width + self.height)):
            raise InvalidValue(
                f"hole: width and height above 0 and finite; got x {1e3 * self.x:g}, y {1e3 * self.y:g}, "
                f"width {1e3 * self.width:g}, height {1e3 * self.height:g} mm"
            )


@dataclass(frozen=True)
class Sheet:
    """A face at z = 0 on a board of THICK, z towards the tool; bumps: caps on it; hole: one may be cut out."""

    size: tuple[float, float]  # m, its edges
    bumps: tuple[Bump, ...] = ()
    hole: Hole | None = None

    def height(self, x: float, y: float) -> float:
        """Height of the face above its plane [m] at x, y; -inf where there is none."""
        hole = self.hole
        if abs(x) > 0.5 * self.size[0] or abs(y) > 0.5 * self.size[1]:
            return -math.inf
        if hole is not None and abs(x - hole.x) < 0.5 * hole.width and abs(y - hole.y) < 0.5 * hole.height:
            return -math.inf
        top = 0.0
        for bump in self.bumps:
            away = bump.sphere**2 - (x - bump.x) ** 2 - (y - bump.y) ** 2
            top = max(top, math.sqrt(max(away, 0.0)) - bump.sphere + bump.height)
        return top

    def parts(self) -> list[Part]:
        """Boards (four around a hole), and the bumps' spheres."""
        found = []
        for i, (x0, x1, y0, y1) in enumerate(self._boards()):
            half = (0.5 * (x1 - x0), 0.5 * (y1 - y0), 0.5 * THICK)
            name = "" if i == 0 else f"_{i + 1}"
            found.append(Part(name, "box", half, _moved(0.5 * (x0 + x1), 0.5 * (y0 + y1), -0.5 * THICK)))
        for i, bump in enumerate(self.bumps):
            place = _moved(bump.x, bump.y, bump.height - bump.sphere)
            found.append(Part(f"_bump_{i + 1}", "sphere", (bump.sphere,), place))
        return found

    def lengths(self) -> Mapping[str, float]:
        """Its edges."""
        return {"size": min(self.size) if all(map(math.isfinite, self.size)) else math.nan}

    def _boards(self) -> list[tuple[float, float, float, float]]:
        """(x0, x1, y0, y1): one, or up to four around a hole."""
        w, h = 0.5 * self.size[0], 0.5 * self.size[1]
        hole = self.hole
        if hole is None:
            return [(-w, w, -h, h)]
        left, right = max(hole.x - 0.5 * hole.width, -w), min(hole.x + 0.5 * hole.width, w)
        low, high = max(hole.y - 0.5 * hole.height, -h), min(hole.y + 0.5 * hole.height, h)
        parts = [(-w, left, -h, h), (right, w, -h, h), (left, right, -h, low), (left, right, high, h)]
        return [(a, b, c, d) for a, b, c, d in parts if b - a > 1e-9 and d - c > 1e-9]


@dataclass(frozen=True)
class Body:
    """A thing beside the arm: where it is, what form it has, how it gives way, and whether it moves.

    T (4, 4): T_base_body, the frame of the shape. mass [kg]: of a body that moves freely, held in the air until
    `release` [s]; None: it is fixed. kind: a word for messages, and its colour.
    """

    name: str
    shape: Shape
    T: Array
    contact: Contact
    friction: float = 0.3  # Coulomb coefficient; 0.2 to 0.4 is a felt pen on paper or steel on wood
    mass: float | None = None  # kg
    release: float = 0.0  # s
    kind: str = "surface"

    def __post_init__(self) -> None:
        T = np.array(self.T, dtype=np.float64)
        if T.shape != (4, 4) or not np.all(np.isfinite(T)):
            raise InvalidValue(f"{self.kind} {self.name!r}: T must be a finite 4x4 pose, got {self.T!r}")
        T.flags.writeable = False
        object.__setattr__(self, "T", T)
        moving = {} if self.mass is None else {"mass": self.mass}
        law = self.contact
        positive = {**self.shape.lengths(), **{name: getattr(law, name) for name in law.POSITIVE}, **moving}
        least = {"friction": self.friction, "release": self.release}
        least |= {name: getattr(law, name) for name in law.LEAST}
        wrong = [name for name, value in positive.items() if not (math.isfinite(value) and value > 0.0)]
        wrong += [name for name, value in least.items() if not (math.isfinite(value) and value >= 0.0)]
        if wrong:
            raise InvalidValue(
                f"{self.kind} {self.name!r}: {', '.join(positive)} above 0, {', '.join(least)} from 0 on, all finite; "
                f"got {', '.join(f'{name} {(positive | least)[name]!r}' for name in wrong)}"
            )

    def misplaced(self, offset: float = 0.0, tilt: float = 0.0, direction: float = 0.0) -> Body:
        """The same body, lifted by `offset` [m] along its z axis and tilted by `tilt` [rad].

        The tilt is about the axis (cos direction, sin direction, 0) through its origin.
        """
        if not math.isfinite(offset + tilt + direction) or abs(tilt) > 0.5:
            raise InvalidValue(f"canvas error: finite and at most 0.5 rad of tilt, got {offset!r} m, {tilt!r} rad")
        k = np.array((math.cos(direction), math.sin(direction), 0.0))
        K = np.array(((0.0, 0.0, k[1]), (0.0, 0.0, -k[0]), (-k[1], k[0], 0.0)))
        error = np.eye(4)
        error[:3, :3] += math.sin(tilt) * K + (1.0 - math.cos(tilt)) * K @ K
        error[2, 3] = offset
        return replace(self, T=self.T @ error)


Point = tuple[float, float, float]


def surface(
    name: str, point: Point, normal: Point, size: tuple[float, float] = (1.2, 1.2), *, friction: float = 0.3,
    time_constant: float = 0.004, damping_ratio: float = 1.0, impedance: float = 0.99,
) -> Body:  # fmt: skip
    """A flat, hard rectangular face of a slab: `point` [m] is its middle, `normal` points to where the robot is.

    size [m]: the two edges. The others: Rigid. Give the tool a stiffness in N/m where the compliance must be known.
    """
    T = _facing(name, point, normal, THICK)
    return Body(name, Box((*size, THICK)), T, Rigid(time_constant, damping_ratio, impedance), friction)


def table(height: float = 0.0, centre: tuple[float, float] = (0.0, 0.0), **options: float) -> Body:
    """A horizontal surface at that height [m] in base axes (0: the plane the robot is bolted to)."""
    return surface("table", (*centre, height), (0.0, 0.0, 1.0), (2.4, 2.4), **options)


def wall(distance: float, azimuth: float = 0.0, height: float = 0.5, **options: float) -> Body:
    """A vertical surface facing the robot, `distance` [m] from the base axis in direction `azimuth` [rad] from x."""
    x, y = math.cos(azimuth), math.sin(azimuth)
    return surface("wall", (distance * x, distance * y, height), (-x, -y, 0.0), (1.2, 1.2), **options)


def ball(
    name: str, position: Point, mass: float = 1.0, radius: float = 0.05, release: float = 0.0, *,
    friction: float = 0.5, stiffness: float = 3e4,
) -> Body:  # fmt: skip
    """A ball of `mass` [kg] held in the air at `position` [m, its middle] until `release` [s], then it falls freely.

    friction: rubber or wood on a painted link. stiffness [N/m] of its contact with something much heavier: that of a
    filled bottle; 1 kg touches for 18 ms, which 1 kHz resolves.
    """
    T = _moved(*position)
    return Body(name, Sphere(radius), T, Rebound(stiffness), friction, mass, release, kind="ball")


def pad(
    name: str, point: Point, normal: Point, stiffness: float = 75e3, damping: float | None = None,
    size: Point = (0.10, 0.19, 0.03), friction: float = 0.5,
) -> Body:  # fmt: skip
    """A fixed box whose face gives way like a spring and a damper without mass: a hand on a support, a panel.

    point [m]: middle of its face, normal towards the robot; size [m]: the edges and the thickness, a man's hand.
    The default stiffness [N/m] is that of ISO/TS 15066:2016, table A.3, for hands and fingers: 75 N/mm; table A.2 there
    allows 140 N quasi-static (clamped) and twice that for a moment. The 0.6 kg that A.3 gives a hand are those of a
    free one: a clamped one does not move. damping [N s/m]: None is 0.05 of critical for 10 kg, a UR10e's tool: it
    hardly loses energy. friction: of skin. Exact (0.5 %) for what the last link carries.
    """
    resistance = 2.0 * 0.05 * math.sqrt(max(stiffness, 0.0) * 10.0) if damping is None else damping
    T = _facing(name, point, normal, size[2])
    return Body(name, Box(size), T, Spring(stiffness, resistance), friction, kind="pad")


def paper(
    T: Array, size: tuple[float, float], friction: float, stiffness: float, *, damping: float = 10.0,
    bumps: tuple[Bump, ...] = (), hole: Hole | None = None,
) -> Body:  # fmt: skip
    """A sheet on a board: T (4, 4) is T_base_paper, its plane z = 0, z towards the pen; size its edges [m].

    friction: a felt pen on paper has 0.2 to 0.4. stiffness [N/m] of pen and paper together, in series, along the
    normal: 2e3 is a sponge under the sheet or a sprung pen, 1e5 a ballpoint on wood; the pen's tip, a point of the
    robot, sinks in by force / stiffness. damping [N s/m]: hardly any, 1 % of critical for 6 kg on 2e4 N/m; the
    controller must damp.
    """
    return Body("paper", Sheet(size, bumps, hole), T, CalmSpring(stiffness, damping), friction, kind="paper")


def _facing(name: str, point: Point, normal: Point, thick: float) -> Array:
    """T_base_slab (4, 4) of a slab whose face's middle is at `point`: z the normal, the origin in its middle."""
    if not all(map(math.isfinite, (*point, *normal))) or not any(normal):
        raise InvalidValue(f"{name!r}: point or normal not finite, or the normal has no direction: {point}, {normal}")
    z = np.array(normal, dtype=float) / np.linalg.norm(normal)
    # the horizontal direction in the face, or base x for a horizontal face
    x = np.cross((0.0, 0.0, 1.0), z) if abs(z[2]) < 0.999 else np.cross((0.0, 1.0, 0.0), z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2] = x, np.cross(z, x), z
    T[:3, 3] = np.array(point) - 0.5 * thick * z
    return T


def _moved(x: float, y: float, z: float) -> Array:
    T = np.eye(4)
    T[:3, 3] = (x, y, z)
    return T
