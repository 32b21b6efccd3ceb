"""Tools by name: what is screwed to a flange, with mass, centre of mass, its point, and where the figures are from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.errors import unknown
from tangere.model.model import Payload, Source


@dataclass(frozen=True)
class Tool:
    """A rigid body on the flange, along its z axis; fingers as they are closed."""

    title: str
    mass: float  # kg
    com: float  # m, along z
    tcp: float  # m, along z: between the fingertips, or the tip
    radius: float  # m, of the cylinder whose inertia it has
    source: Source

    @property
    def payload(self) -> Payload:
        """Mass, centre of mass, and the inertia about it of a solid cylinder from the flange to the tool's point."""
        side = self.mass * (3.0 * self.radius**2 + self.tcp**2) / 12.0
        return Payload(
            self.mass, np.array((0.0, 0.0, self.com)), np.diag((side, side, 0.5 * self.mass * self.radius**2))
        )


TOOLS: dict[str, Tool] = {
    # the manual has sensor and gripper together (1.205 kg, 76 mm) and the sensor alone (0.3 kg, 17 mm); 37.5 mm of
    # sensor are taken off
    "2f-85": Tool("Robotiq 2F-85, closed", 0.905, 0.058, 0.163, 0.0375, Source(
        "tool", "approximated", "Robotiq, FT 300 instruction manual, 5.2.1, less the sensor; inertia of a cylinder",
    )),
    # coupler 0.119 kg, body 0.864 kg, two fingers of 0.038 kg; the fingertips' middle 46.5 mm beyond the body
    "hand-e": Tool("Robotiq Hand-E, closed", 1.059, 0.058, 0.1565, 0.0375, Source(
        "tool", "approximated", "AGH-CEAI, robotiq_hande_description, sum of its parts; inertia of a cylinder",
    )),
    "pen": Tool("a pen of 100 mm", 0.1, 0.05, 0.1, 0.004, Source(
        "tool", "approximated", "002: a pen 100 mm long; mass assumed, a solid cylinder",
    )),
}  # fmt: skip


def tool_named(name: str) -> Tool:
    """The tool of that name."""
    if name not in TOOLS:
        raise unknown("tool", name, TOOLS, f"tool: {', '.join(TOOLS)}, or its point as x,y,z[,rx,ry,rz], got {name!r}")
    return TOOLS[name]
