"""What stands around an arm in simulation: flat surfaces and a pen; plants.scene.mjcf writes it into MuJoCo XML."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.model import Array, Payload
from tangere.plants.scene.bodies import Body
from tangere.plants.scene.paper import Paper

_THICK = 0.05  # m; a pen at 1 m/s moves 1 mm per period of 1 ms, so nothing tunnels through


@dataclass(frozen=True)
class Surface:
    """A flat rectangular face of a slab: `point` is its middle, `normal` points to the side where the robot is.

    MuJoCo contacts are soft: a contact pushed with force F gives way by about

        depth = (1 - d) / d * F / (m_eff k),  k = 1 / (d time_constant damping_ratio)^2,  d = impedance

    with m_eff the inertia felt at the contact: for 5 N on a UR10e (8 kg) 0.1 um at the defaults, stiffer than any
    table. Give the pen a stiffness in N/m where the compliance must be known exactly. time_constant must be at least
    two periods of the simulation, or MuJoCo raises it to that.
    """

    name: str
    point: tuple[float, float, float]  # m, base axes
    normal: tuple[float, float, float]  # any length
    size: tuple[float, float] = (1.2, 1.2)  # m, the two edges
    friction: float = 0.3  # Coulomb coefficient; 0.2 to 0.4 is a felt pen on paper or steel on wood
    time_constant: float = 0.004  # s; four periods of 1 ms: as stiff as stays smooth
    damping_ratio: float = 1.0  # critical: no bouncing
    impedance: float = 0.99  # of 1: share of the force that resists at once; 0.9 (MuJoCo's own) is ten times softer

    def __post_init__(self) -> None:
        values = (*self.point, *self.normal, *self.size, self.friction, self.time_constant, self.damping_ratio)
        if not all(math.isfinite(value) for value in values):
            raise InvalidValue(f"surface {self.name!r}: every number must be finite, got {self!r}")
        if not any(self.normal):
            raise InvalidValue(f"surface {self.name!r}: the normal has no direction: {self.normal}")
        if min(*self.size, self.time_constant, self.damping_ratio) <= 0.0 or self.friction < 0.0:
            raise InvalidValue(f"surface {self.name!r}: size, time_constant, damping_ratio > 0 and friction >= 0")
        if not 0.0 < self.impedance < 1.0:
            raise InvalidValue(f"surface {self.name!r}: impedance between 0 and 1, got {self.impedance!r}")

    def pose(self) -> Array:
        """T_base_slab (4, 4): z is the normal, the origin is the middle of the slab."""
        z = np.array(self.normal, dtype=float) / np.linalg.norm(self.normal)
        # the horizontal direction in the face, or base x for a horizontal face
        x = np.cross((0.0, 0.0, 1.0), z) if abs(z[2]) < 0.999 else np.cross((0.0, 1.0, 0.0), z)
        x /= np.linalg.norm(x)
        T = np.eye(4)
        T[:3, 0], T[:3, 1], T[:3, 2] = x, np.cross(z, x), z
        T[:3, 3] = np.array(self.point) - 0.5 * _THICK * z
        return T

    def half_sizes(self) -> tuple[float, float, float]:
        """Half edges of the slab [m]."""
        return (0.5 * self.size[0], 0.5 * self.size[1], 0.5 * _THICK)


def table(height: float = 0.0, centre: tuple[float, float] = (0.0, 0.0), **options: float) -> Surface:
    """A horizontal surface at that height [m] in base axes (0: the plane the robot is bolted to)."""
    return Surface("table", (*centre, height), (0.0, 0.0, 1.0), (2.4, 2.4), **options)


def wall(distance: float, azimuth: float = 0.0, height: float = 0.5, **options: float) -> Surface:
    """A vertical surface facing the robot, `distance` [m] from the base axis in direction `azimuth` [rad] from x."""
    x, y = math.cos(azimuth), math.sin(azimuth)
    point = (distance * x, distance * y, height)
    return Surface("wall", point, (-x, -y, 0.0), **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Pen:
    """A pen along the flange's z axis with a round tip, whose end is at `length` from the flange.

    It is shape only: its mass belongs to the robot, robot(..., tool=(0, 0, length), payload=pen.payload(mass)), so
    that M of the simulation is M of the model. stiffness: the tip slides along the pen against a spring (extra degree
    of freedom of `tip_mass`, taken out of the last link's mass, so M with the tip at rest is unchanged); None: rigid.
    """

    length: float = 0.1  # m, flange to the end of the tip (002: 100 mm)
    radius: float = 0.004  # m
    stiffness: float | None = None  # N/m
    damping: float | None = None  # N s/m; None: 0.6 sqrt(k m), 0.3 of critical for the tip alone
    tip_mass: float = 0.02  # kg; with 10 kN/m it swings at 113 Hz, well below a 1 kHz simulation's limit
    tip_radius: float | None = None  # m, of the ball that touches; None: radius. A fine liner has 0.25 mm

    def __post_init__(self) -> None:
        if not (0.0 < 2.0 * self.radius < self.length < 2.0):
            raise InvalidValue(f"pen: 0 < 2 radius < length < 2 m, got {self.radius} and {self.length}")
        if self.tip_radius is not None and not 0.0 < self.tip_radius <= self.radius:
            raise InvalidValue(f"pen: 0 < tip_radius <= radius ({self.radius} m), got {self.tip_radius}")
        if self.damping is not None and not self.damping >= 0.0:
            raise InvalidValue(f"pen: damping must not be negative, got {self.damping}")
        if self.stiffness is not None and not (self.stiffness > 0.0 and self.tip_mass > 0.0):
            raise InvalidValue(f"pen: stiffness and tip_mass must be positive, got {self.stiffness}, {self.tip_mass}")

    def payload(self, mass: float = 0.1) -> Payload:
        """The pen as a payload: a solid cylinder of that mass [kg] from the flange to the tip."""
        side = mass * (3.0 * self.radius**2 + self.length**2) / 12.0
        inertia = np.diag((side, side, 0.5 * mass * self.radius**2))
        return Payload(mass, np.array((0.0, 0.0, 0.5 * self.length)), inertia)

    @property
    def ball(self) -> float:
        """Radius of the ball at the tip [m]."""
        return self.radius if self.tip_radius is None else self.tip_radius

    def tip_damping(self) -> float:
        """Damping of the sliding tip [N s/m]."""
        # 0.3 of critical: at 1 ms up to 10 kN/m far inside what the simulation bears (see MujocoPlant)
        return 0.6 * math.sqrt((self.stiffness or 0.0) * self.tip_mass) if self.damping is None else self.damping


@dataclass(frozen=True)
class Scene:
    """Everything around the arm. links_collide: the links' shapes meet the surfaces too, not only the pen's tip."""

    surfaces: tuple[Surface, ...] = ()
    pen: Pen | None = None
    links_collide: bool = False
    bodies: tuple[Body, ...] = ()  # what moves: see tangere.plants.scene.bodies
    paper: Paper | None = None

    def __post_init__(self) -> None:
        names = [thing.name for thing in (*self.surfaces, *self.bodies)]
        if len(set(names)) < len(names):
            raise InvalidValue(f"surfaces and bodies of a scene need names of their own, got {', '.join(names)}")
