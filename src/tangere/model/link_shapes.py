"""Simple shapes for the links of any serial arm: a housing along each joint's axis, a tube where a link goes sideways.

They follow from the model alone (no meshes): axes from the joints, the tube's place along the axis from the centre of
mass, thickness from the torque limit. Made to look at and, in a simulation, to meet a table or a wall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.model.inertia import moved
from tangere.model.model import Array, Joint, Model

# m per Nm^(1/3): a motor's torque grows with its volume. 330 Nm gives 75 mm, 54 Nm 41 mm: a UR10e's housings.
_PER_CUBE_ROOT = 0.0108
_RADIUS = 0.04  # m; where the torque limit is not known: like the wrist of a UR10e
_TUBE = 0.75  # radius of a tube against that of the housing it leaves: by eye, as on a UR
_SHORT = 1e-3  # m; a next joint nearer than this to the axis needs no tube
_CAP = 0.008  # m; thickness of the coloured caps
# red, green, blue and opacity of each kind of shape, by eye: light grey metal, blue caps, a dark pen
COLOURS = {
    "tube": "0.80 0.82 0.84 1",
    "joint": "0.62 0.65 0.68 1",
    "cap": "0.34 0.63 0.83 1",
    "pen": "0.15 0.15 0.17 1",
}


@dataclass(frozen=True)
class Segment:
    """A capsule (round) or cylinder between two points [m] in the frame of the body."""

    colour: str  # "tube", "joint", "cap" or "pen"
    start: Array
    end: Array
    radius: float  # m
    round: bool = False


def radius_of(joint: Joint) -> float:
    """Radius of a joint's housing [m], 20 to 120 mm."""
    if not math.isfinite(joint.tau_max) or joint.tau_max <= 0.0:
        return _RADIUS
    return min(max(_PER_CUBE_ROOT * math.cbrt(joint.tau_max), 0.02), 0.12)


def base_shape(model: Model) -> Segment:
    """The foot below the first joint, base axes."""
    T = model.joints[0].T_parent_joint
    radius = radius_of(model.joints[0])
    return Segment("joint", T[:3, 3], T[:3, 3] + 0.4 * radius * T[:3, 2], 1.25 * radius)


def link_shapes(model: Model) -> list[list[Segment]]:
    """The shapes of every link, in the frame of its joint after the motion (z is the joint's axis)."""
    shapes: list[list[Segment]] = []
    arrive = 0.4 * radius_of(model.joints[0])  # height on this joint's axis where the link before ends
    for i, joint in enumerate(model.joints):
        last = i + 1 == model.dof
        T = joint.T_joint_link if last else joint.T_joint_link @ model.joints[i + 1].T_parent_joint
        end = T[:3, 3]
        sideways = math.hypot(end[0], end[1]) > _SHORT
        com = moved(model.links[i], joint.T_joint_link).com
        leave = float(com[2]) if sideways else float(end[2])
        radius = radius_of(joint)
        shapes.append(_housing(arrive, leave, radius, first=i == 0, last=last and not sideways))
        corner = np.array((end[0], end[1], leave))
        if sideways:
            shapes[-1].append(Segment("tube", _on_axis(leave), corner, _TUBE * radius, round=True))
        arrive = float(T[:3, 2] @ (corner - end))
    return shapes


def _on_axis(z: float) -> Array:
    return np.array((0.0, 0.0, z))


def _housing(arrive: float, leave: float, radius: float, *, first: bool, last: bool) -> list[Segment]:
    """A cylinder on the joint's axis that covers both heights, with caps; the last one ends at the flange."""
    low, high = min(arrive, leave), max(arrive, leave)
    if not first:
        low -= 0.9 * radius
    if not last:
        high += 0.9 * radius
    if high - low < 0.5 * radius:  # MuJoCo refuses a cylinder without a length
        low, high = low - 0.25 * radius, high + 0.25 * radius
    parts = [Segment("joint", _on_axis(low), _on_axis(high), radius)]
    if not last:
        parts.append(Segment("cap", _on_axis(high), _on_axis(high + _CAP), 0.93 * radius))
    if not first:
        parts.append(Segment("cap", _on_axis(low - _CAP), _on_axis(low), 0.93 * radius))
    return parts
