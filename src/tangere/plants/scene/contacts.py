"""How a touched body gives way: contact laws in newtons and metres, and what MuJoCo must be told for them.

MuJoCo's contact is a constraint: with depth -r, the acceleration a that results, a share d (impedance), K and B,

    R f + a = -B v - K d r,     R = (1 - d) / d w,     w [1/kg]: inverse weight of what meets

so that stiffness in N/m depends on w, which only the compiled model knows: `tune` gets it. A solref of two positive
numbers is a time constant and a damping ratio instead, a negative one is (-K d^2, -B d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tangere.errors import InvalidValue

# Share d of a paper's contact. A small one makes the contact a spring and damper with the mass 1/R added,
# R = (1 - d) / d / m with m what MuJoCo takes for the tool's mass (some kg): 1 % leaves 12 to 41 g of added mass.
IMPEDANCE = 0.01
# kg, of it at most: with rotor inertia 1 % would be 51 to 177 g, whose own force a controller on soft paper hears a
# period late and answers with more than itself (9.6 m/s2 per N at 2e3 N/m): every other period up, every other down
ADDED = 0.027
# Friction on paper is held by this many times the normal damping: at 0.3 * 5 N a pen at rest creeps by 0.1 mm/s.
FRICTION_RATIO = 1000.0
# Friction of a scene with pads is this many times as stiff as the pads: 100 N then creep by some mm/s and no more
IMPRATIO = 100.0


class Contact:
    """A contact law; the default has nothing that depends on the arm."""

    POSITIVE: ClassVar[tuple[str, ...]] = ()  # names of what must be above 0
    LEAST: ClassVar[tuple[str, ...]] = ()  # of what must be 0 or more
    friction_ratio: float  # how many times stiffer than the normal the friction must be in MuJoCo

    def solver(self, mass: float | None) -> tuple[tuple[float, float] | None, float]:
        """MuJoCo's solref (None: its default) and impedance d as they are written; mass [kg] of a body that moves."""
        raise NotImplementedError

    def tune(self, model: Any, geoms: Sequence[int], weight: float, what: str) -> None:
        """Set what depends on the compiled model; weight [1/kg] of the arm's last body, what: for messages."""


@dataclass(frozen=True)
class Rigid(Contact):
    """As hard as stays smooth. MuJoCo's contacts are soft: one pushed with force F gives way by about

        depth = (1 - d) / d * F / (m_eff k),  k = 1 / (d time_constant damping_ratio)^2,  d = impedance

    with m_eff the inertia felt at the contact: for 5 N on a UR10e (8 kg) 0.1 um at the defaults, stiffer than any
    table. time_constant must be at least two periods of the simulation, or MuJoCo raises it to that.
    """

    POSITIVE = ("time_constant", "damping_ratio")
    time_constant: float = 0.004  # s; four periods of 1 ms: as stiff as stays smooth
    damping_ratio: float = 1.0  # critical: no bouncing
    impedance: float = 0.99  # of 1: share of the force that resists at once; 0.9 (MuJoCo's own) is ten times softer
    friction_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.impedance < 1.0:
            raise InvalidValue(f"contact: impedance between 0 and 1, got {self.impedance!r}")

    def solver(self, mass: float | None) -> tuple[tuple[float, float] | None, float]:
        """As given."""
        return (self.time_constant, self.damping_ratio), self.impedance


@dataclass(frozen=True)
class Rebound(Contact):
    """Of a body that moves and bounces off what is much heavier: stiffness [N/m], of its own mass's damping ratio.

    Almost all of the force resists at once (d = 0.99), whatever the depth. MuJoCo's spring and damper are per kg of
    what meets: of the body, where the other is much heavier.
    """

    POSITIVE = ("stiffness",)
    LEAST = ("damping_ratio",)
    stiffness: float  # N/m
    damping_ratio: float = 0.3  # it bounces to a seventh of its height, as wood on plastic
    friction_ratio: float = 1.0

    def solver(self, mass: float | None) -> tuple[tuple[float, float] | None, float]:
        """Per kg of the body."""
        if mass is None:
            raise InvalidValue("contact: a body that rebounds has a mass [kg]")
        k = self.stiffness / mass
        return (-k, -2.0 * self.damping_ratio * math.sqrt(k)), 0.99


@dataclass(frozen=True)
class Spring(Contact):
    """A spring and a damper without mass between the tool and what is fixed.

        force = stiffness x + damping x',     x: how deep the tool is behind the face; never a pull

    a = (1 - d) a_free - (k x + b x') / m in MuJoCo. Only with d near 0 a static force meets the same spring as a fast
    one (at d = 0.99 it meets one a hundred times as stiff). The force is (k x + b x') / w with w the tool's inverse
    weight. Friction would be as soft as the normal force: friction_ratio stiffens it. The spring is explicit: sqrt(k w)
    times the step must stay below 2 in every direction; w is a mean over three, of which one may have it all, so that
    at most 1 is safe.
    """

    POSITIVE = ("stiffness",)
    LEAST = ("damping",)
    stiffness: float  # N/m
    damping: float  # N s/m
    friction_ratio: float = IMPRATIO

    def solver(self, mass: float | None) -> tuple[tuple[float, float] | None, float]:
        """For 10 kg, until `tune` knows better."""
        return (-0.1 * self.stiffness, -0.1 * self.damping), 0.001

    def tune(self, model: Any, geoms: Sequence[int], weight: float, what: str) -> None:
        """For what the tool's body brings."""
        step = float(model.opt.timestep)
        if self.stiffness * weight * step**2 > 1.0:
            raise InvalidValue(
                f"{what}: stiffness at most {1.0 / (weight * step**2):.3g} N/m with this arm and steps of "
                f"{step:g} s, got {self.stiffness:g}"
            )
        for geom in geoms:
            model.geom_solref[geom] = (-self.stiffness * weight, -self.damping * weight)


@dataclass(frozen=True)
class CalmSpring(Contact):
    """A spring and damper that stays calm under a steady force, with some grams of mass: paper under a pen.

        f = (K d / R) depth + (B / R) speed - a / R:   K = k R / d,  B = D R,  and a mass of 1 / R added.

    The damping is explicit: B h < 1 keeps it calm; a light arm needs a larger d, less R, for that.
    """

    POSITIVE = ("stiffness", "damping")
    stiffness: float  # N/m
    damping: float  # N s/m
    friction_ratio: float = FRICTION_RATIO

    def solver(self, mass: float | None) -> tuple[tuple[float, float] | None, float]:
        """MuJoCo's own, until `tune` knows better."""
        return None, IMPEDANCE

    def tune(self, model: Any, geoms: Sequence[int], weight: float, what: str) -> None:
        """Stiffness k and damping D for what the tool's body brings, fixed at the zero pose when compiled."""
        h = model.opt.timestep
        # 0.9 of what is calm
        light = weight * ADDED / (1.0 + weight * ADDED)
        d = max(min(IMPEDANCE, light), weight / (weight + 0.9 / (self.damping * h)))
        if d > 5.0 * IMPEDANCE:  # no spring any more; a UR3e of half its mass needs 2 %
            raise InvalidValue(
                f"{what}: damping of {self.damping:g} N s/m is too much for steps of {h:g} s, "
                f"at most {0.9 * 5.0 * IMPEDANCE / (1.0 - 5.0 * IMPEDANCE) / (weight * h):.3g}"
            )
        R = (1.0 - d) / d * weight
        for geom in geoms:
            model.geom_solimp[geom, :2] = d
            model.geom_solref[geom] = (-self.stiffness * R * d, -self.damping * R * d)
