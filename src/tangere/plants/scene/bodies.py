"""Things around a simulated arm that move or give way: a ball that falls, a soft pad; and their MuJoCo XML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere.errors import InvalidValue

# Contact of these bodies: almost all of the force resists at once, whatever the depth
_CONTACT = 'priority="1" condim="3" solimp="0.99 0.99 0.001 0.5 2"'
# Contact of a pad: a = (1 - d) a_free - (k x + b x') / m in MuJoCo. Only with d near 0 a static force meets the same
# spring as a fast one (at d = 0.99 it meets one a hundred times as stiff)
_SPRING = 'solimp="0.001 0.001 0.001 0.5 2"'
_BOUNCE = 0.3  # damping ratio of a ball's contact: it bounces to a seventh of its height, as wood on plastic


@dataclass(frozen=True)
class Ball:
    """A ball held in the air at `position` until `release` [s], then it falls freely."""

    name: str
    position: tuple[float, float, float]  # m, its middle, base axes
    mass: float = 1.0  # kg
    radius: float = 0.05  # m
    release: float = 0.0  # s
    friction: float = 0.5  # Coulomb coefficient: rubber or wood on a painted link
    # N/m of its contact with something much heavier: a filled bottle. 1 kg touches for 18 ms, which 1 kHz resolves
    stiffness: float = 3e4

    def __post_init__(self) -> None:
        positive = (self.mass, self.radius, self.stiffness)
        _finite("ball", self.name, (*self.position, *positive, self.release, self.friction))
        if min(positive) <= 0.0 or self.release < 0.0 or self.friction < 0.0:
            raise InvalidValue(f"ball {self.name!r}: mass, radius, stiffness > 0; release, friction >= 0, got {self!r}")


@dataclass(frozen=True)
class Pad:
    """A fixed box whose face gives way like a spring and a damper without mass: a hand on a support, a panel.

        force = stiffness x + damping x',     x: how deep the tool is behind the face, along -normal; never a pull

    The default stiffness is that of ISO/TS 15066:2016, table A.3, for hands and fingers: 75 N/mm; table A.2 there
    allows 140 N quasi-static (clamped) and twice that for a moment. The 0.6 kg that A.3 gives a hand are those of a
    free one: a clamped one does not move. Exact (0.5 %) for what the last link carries.
    """

    name: str
    point: tuple[float, float, float]  # m, middle of its face, base axes
    normal: tuple[float, float, float]  # any length, towards the robot
    stiffness: float = 75e3  # N/m
    damping: float | None = None  # N s/m; None: 0.05 of critical for 10 kg, a UR10e's tool: it hardly loses energy
    size: tuple[float, float, float] = (0.10, 0.19, 0.03)  # m, the edges and the thickness: a man's hand
    friction: float = 0.5  # Coulomb coefficient of skin

    def __post_init__(self) -> None:
        damping = 0.0 if self.damping is None else self.damping
        _finite("pad", self.name, (*self.point, *self.normal, self.stiffness, damping, *self.size, self.friction))
        if not any(self.normal):
            raise InvalidValue(f"pad {self.name!r}: the normal has no direction: {self.normal}")
        if min(self.stiffness, *self.size) <= 0.0 or damping < 0.0 or self.friction < 0.0:
            raise InvalidValue(f"pad {self.name!r}: stiffness, size > 0 and damping, friction >= 0, got {self!r}")

    def resistance(self) -> float:
        """Damping [N s/m]."""
        return 2.0 * 0.05 * math.sqrt(self.stiffness * 10.0) if self.damping is None else self.damping


Body = Ball | Pad


def body_lines(body: Body) -> list[str]:
    """The body as MuJoCo XML; geoms meet the arm's shapes that collide, and a ball the surfaces too."""
    name = quoteattr(body.name)
    friction = f"friction={_numbers((body.friction, 0.005, 0.0001))}"
    if isinstance(body, Ball):
        inertia = 0.4 * body.mass * body.radius**2
        # MuJoCo's contact spring and damper are per kg of what meets: of the ball, where the other is much heavier
        k = body.stiffness / body.mass
        spring = f"solref={_numbers((-k, -2.0 * _BOUNCE * math.sqrt(k)))}"
        return [
            f'<body name={name} pos={_numbers(body.position)} gravcomp="1">',  # until the plant lets it go
            f"  <freejoint name={name}/>",
            f'  <inertial mass={_numbers([body.mass])} pos="0 0 0" diaginertia={_numbers([inertia] * 3)}/>',
            f'  <geom name={name} type="sphere" size={_numbers([body.radius])} contype="1" conaffinity="1" '
            f'{friction} {spring} {_CONTACT} rgba="0.85 0.45 0.25 1"/>',
            "</body>",
        ]
    a, b, c = (0.5 * edge for edge in body.size)
    z = np.array(body.normal) / np.linalg.norm(body.normal)
    # MuJoCo's contact spring is per kg of what meets; the plant, which knows that mass, replaces these 10 kg by it
    spring = f"solref={_numbers((-0.1 * body.stiffness, -0.1 * body.resistance()))}"
    return [
        f'<geom name={name} type="box" size={_numbers((a, b, c))} pos={_numbers(np.array(body.point) - c * z)} '
        f'zaxis={_numbers(z)} contype="1" priority="1" condim="3" {friction} {spring} {_SPRING} '
        f'rgba="0.90 0.72 0.60 1"/>',
    ]


def _numbers(values: Iterable[float]) -> str:
    return quoteattr(" ".join(repr(float(value) + 0.0) for value in values))


def _finite(kind: str, name: str, values: Iterable[float]) -> None:
    if not all(math.isfinite(value) for value in values):
        raise InvalidValue(f"{kind} {name!r}: every number must be finite")
