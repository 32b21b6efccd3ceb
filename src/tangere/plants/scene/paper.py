"""Paper to draw on in simulation: where it really lies, how uneven it is, and where it has a hole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.model import Array

_THICK = 0.05  # m, board under the paper: nothing tunnels through within a period
# Share d of MuJoCo's constraint impedance. A small one makes the contact a spring and damper with the mass 1/R added,
# R = (1 - d) / d / m with m what MuJoCo takes for the tool's mass (some kg): 1 % leaves some 50 g of added mass.
IMPEDANCE = 0.01
# Friction is held by this many times the normal damping: at 0.3 * 5 N a pen at rest creeps by 0.1 mm/s.
FRICTION_RATIO = 1000.0


@dataclass(frozen=True)
class Bump:
    """A spherical cap on the paper: its middle in paper coordinates, its height and the radius of its rim."""

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
    """A rectangle without paper or board under it: the pen falls through."""

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
class Paper:
    """A sheet on a board: T (4, 4) is T_base_paper, its plane z = 0, z towards the pen; size its edges [m].

    stiffness: of pen and paper together, in series, along the normal; damping: likewise. MuJoCo's contact is given both
    in N/m and N s/m (see MujocoPlant); the pen's tip, a point of the robot, sinks in by force / stiffness.
    bumps: caps on it; hole: one may be cut out. Nothing but the pen's tip meets it.
    """

    T: Array
    size: tuple[float, float] = (0.4, 0.4)
    friction: float = 0.3  # Coulomb; a felt pen on paper 0.2 to 0.4
    stiffness: float = 2e4  # N/m; 2e3 is a sponge under the sheet or a sprung pen, 1e5 a ballpoint on wood
    damping: float = 10.0  # N s/m: hardly any, 1 % of critical for 6 kg on 2e4 N/m; the controller must damp
    bumps: tuple[Bump, ...] = ()
    hole: Hole | None = None

    def __post_init__(self) -> None:
        T = np.array(self.T, dtype=np.float64)
        if T.shape != (4, 4) or not np.all(np.isfinite(T)):
            raise InvalidValue(f"paper: T must be a finite 4x4 pose, got {self.T!r}")
        T.flags.writeable = False
        object.__setattr__(self, "T", T)
        numbers = (*self.size, self.stiffness, self.damping, self.friction)
        if not (all(map(math.isfinite, numbers)) and min(numbers[:4]) > 0.0 and self.friction >= 0.0):
            raise InvalidValue(f"paper: size, stiffness, damping > 0 and friction >= 0, got {numbers}")

    def misplaced(self, offset: float = 0.0, tilt: float = 0.0, direction: float = 0.0) -> Paper:
        """The same paper, lifted by `offset` [m] along its normal and tilted by `tilt` [rad].

        The tilt is about the axis (cos direction, sin direction, 0) through the middle of the paper.
        """
        if not math.isfinite(offset + tilt + direction) or abs(tilt) > 0.5:
            raise InvalidValue(f"canvas error: finite and at most 0.5 rad of tilt, got {offset!r} m, {tilt!r} rad")
        k = np.array((math.cos(direction), math.sin(direction), 0.0))
        K = np.array(((0.0, 0.0, k[1]), (0.0, 0.0, -k[0]), (-k[1], k[0], 0.0)))
        error = np.eye(4)
        error[:3, :3] += math.sin(tilt) * K + (1.0 - math.cos(tilt)) * K @ K
        error[2, 3] = offset
        return replace(self, T=self.T @ error)

    def height(self, x: float, y: float) -> float:
        """Height of the surface above the paper's plane [m] at x, y in paper coordinates; -inf where there is none."""
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


def paper_xml(paper: Paper) -> list[str]:
    """Geoms "paper..." in the world body of an MJCF text: slabs (four around a hole) and the bumps' spheres."""
    axes = (*paper.T[:3, 0], *paper.T[:3, 1])
    contact = (
        f'contype="1" priority="1" condim="3" friction={_numbers((paper.friction, 0.005, 0.0001))} '
        f"solimp={_numbers((IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2.0))} "
        f'rgba="0.98 0.98 0.96 1"'
    )
    lines = []
    for i, (x0, x1, y0, y1) in enumerate(_slabs(paper)):
        centre = paper.T @ np.array((0.5 * (x0 + x1), 0.5 * (y0 + y1), -0.5 * _THICK, 1.0))
        half = (0.5 * (x1 - x0), 0.5 * (y1 - y0), 0.5 * _THICK)
        name = "paper" if i == 0 else f"paper_{i + 1}"
        lines.append(
            f'<geom name="{name}" type="box" size={_numbers(half)} pos={_numbers(centre[:3])} '
            f"xyaxes={_numbers(axes)} {contact}/>"
        )
    for i, bump in enumerate(paper.bumps):
        centre = paper.T @ np.array((bump.x, bump.y, bump.height - bump.sphere, 1.0))
        lines.append(
            f'<geom name="paper_bump_{i + 1}" type="sphere" size={_numbers([bump.sphere])} '
            f"pos={_numbers(centre[:3])} {contact}/>"
        )
    return lines


def _slabs(paper: Paper) -> list[tuple[float, float, float, float]]:
    """(x0, x1, y0, y1) of the boards: one, or up to four around a hole."""
    w, h = 0.5 * paper.size[0], 0.5 * paper.size[1]
    hole = paper.hole
    if hole is None:
        return [(-w, w, -h, h)]
    left, right = max(hole.x - 0.5 * hole.width, -w), min(hole.x + 0.5 * hole.width, w)
    low, high = max(hole.y - 0.5 * hole.height, -h), min(hole.y + 0.5 * hole.height, h)
    parts = [(-w, left, -h, h), (right, w, -h, h), (left, right, -h, low), (left, right, high, h)]
    return [(a, b, c, d) for a, b, c, d in parts if b - a > 1e-9 and d - c > 1e-9]


def _numbers(values: Sequence[float] | Array) -> str:
    return quoteattr(" ".join(repr(float(value) + 0.0) for value in values))
