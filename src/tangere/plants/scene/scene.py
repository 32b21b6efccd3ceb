"""What stands around an arm in simulation, and what it carries; plants.scene.mjcf writes it into MuJoCo XML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.link_shapes import Segment
from tangere.model.model import Payload
from tangere.plants.scene.bodies import Body, Part


class Tool(Protocol):
    """Something fixed on the flange, along its z axis. It is shape only: its mass belongs to the robot,

        robot(..., tool=(0, 0, length), payload=tool.payload(mass))

    so that M of the simulation is M of the model.
    """

    @property
    def length(self) -> float:
        """m, flange to its end."""

    @property
    def stiffness(self) -> float | None:
        """N/m of the spring on which its tip slides; None: rigid."""

    def payload(self, mass: float) -> Payload:
        """The tool as a payload of that mass [kg], in flange axes."""

    def shafts(self) -> tuple[Segment, ...]:
        """Shapes in flange axes that meet other bodies only where the links do."""

    def tip(self) -> Part:
        """The shape that touches, T (4, 4) in flange axes."""


@dataclass(frozen=True)
class Pen:
    """A pen along the flange's z axis with a round tip, whose end is at `length` from the flange.

    stiffness: the tip slides along the pen against a spring (extra degree of freedom of `tip_mass`, taken out of the
    last link's mass, so M with the tip at rest is unchanged); None: rigid.
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

    def shafts(self) -> tuple[Segment, ...]:
        """The barrel; a fine tip stands out of it by the barrel's radius."""
        end = self.length - (self.ball if self.tip_radius is None else 2.0 * self.radius)
        return (Segment("pen", np.zeros(3), np.array((0.0, 0.0, end)), self.radius, round=True),)

    def tip(self) -> Part:
        """The ball at its end."""
        T = np.eye(4)
        T[2, 3] = self.length - self.ball
        return Part("", "sphere", (self.ball,), T)


@dataclass(frozen=True)
class Block:
    """A box along the flange's z axis: a closed gripper, a tool changer, a part that is carried."""

    size: tuple[float, float, float] = (0.075, 0.149, 0.163)  # m, edges along the flange's x, y, z: a 2F-85, closed

    def __post_init__(self) -> None:
        if not all(0.0 < edge < 2.0 for edge in self.size):
            raise InvalidValue(f"block: every edge above 0 and below 2 m, got {self.size}")

    @property
    def length(self) -> float:
        """m, flange to its end."""
        return self.size[2]

    @property
    def stiffness(self) -> None:
        """It does not slide."""
        return None

    def payload(self, mass: float) -> Payload:
        """A solid box of that mass [kg]."""
        squares = np.square(self.size)
        inertia = mass / 12.0 * np.diag(squares.sum() - squares)
        return Payload(mass, np.array((0.0, 0.0, 0.5 * self.length)), inertia)

    def shafts(self) -> tuple[Segment, ...]:
        """None: all of it touches."""
        return ()

    def tip(self) -> Part:
        """The box."""
        a, b, c = (0.5 * edge for edge in self.size)
        T = np.eye(4)
        T[2, 3] = c
        return Part("", "box", (a, b, c), T)


@dataclass(frozen=True)
class Scene:
    """Everything around the arm. links_collide: the links' shapes meet the bodies too, not only the tool's tip."""

    bodies: tuple[Body, ...] = ()  # see tangere.plants.scene.bodies
    tool: Tool | None = None
    links_collide: bool = False

    def __post_init__(self) -> None:
        names = [body.name for body in self.bodies]
        if len(set(names)) < len(names):
            raise InvalidValue(f"bodies of a scene need names of their own, got {', '.join(names)}")

    @property
    def sliding(self) -> Pen | None:
        """The tool, if its tip slides on a spring."""
        return self.tool if isinstance(self.tool, Pen) and self.tool.stiffness is not None else None
