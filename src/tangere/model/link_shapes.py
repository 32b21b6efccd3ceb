"""Simple shapes for the links of any serial arm, and their skin as small patches.

Shapes: a housing along each joint's axis, a tube where a link goes sideways. They follow from the model alone (no
meshes): axes from the joints, the tube's place along the axis from the centre of mass, thickness from the torque limit.
Made to look at and, in a simulation, to meet a table or a wall.

Patches: where something can touch a link, and which way is out. What is buried in another shape of the same link, or in
a neighbouring link whatever the angle between them, is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.inertia import moved
from tangere.model.model import Array, Joint, Model

# [m/Nm^(1/3)] a motor's torque grows with its volume. 330 Nm gives 75 mm, 54 Nm 41 mm: a UR10e's housings.
_PER_CUBE_ROOT = 0.0108
_RADIUS = 0.04  # [m] where the torque limit is not known: like the wrist of a UR10e
_TUBE = 0.75  # radius of a tube against that of the housing it leaves: by eye, as on a UR
_SHORT = 1e-3  # [m] a next joint nearer than this to the axis needs no tube
_CAP = 0.008  # [m] thickness of the coloured caps
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
    radius: float  # [m]
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


_TOUCHING = 5e-4  # [m] a face that lies this near to another shape is covered by it (a cap on a housing touches it)
_ANGLES = 8  # of the joint between two links, at all of which a patch must be buried to be left out
_TOOL_RADIUS = 0.03  # [m] a tool is taken as a rod from flange to tcp: a gripper's finger or a pen holder
_TOOL_LENGTH = 0.01  # [m] a tcp nearer to the flange than this is no tool

_Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class LinkSurface:
    """Patches of one link's surface, in the link's own frame (DH: the distal frame).

    Around a patch the surface is point + x t1 + y t2 - (curvature_1 x^2 + curvature_2 y^2) normal / 2.
    """

    link: int  # counted from 1
    point: Array  # (m, 3) m
    normal: Array  # (m, 3) outwards
    t1: Array  # (m, 3) along the stronger curvature; (t1, t2, normal) is right-handed
    t2: Array  # (m, 3)
    curvature: Array  # (m, 2) 1/m along t1 and t2
    size: Array  # (m, 2) m along t1 and t2

    @property
    def area(self) -> Array:
        """(m,) m2."""
        return np.asarray(self.size[:, 0] * self.size[:, 1])

    def __len__(self) -> int:
        return len(self.point)


def link_surfaces(model: Model, spacing: float = 0.02) -> list[LinkSurface]:
    """The surface of every link in patches of about spacing x spacing [m]; a tool (a tcp off the flange) counts with
    the last link. A link of which nothing is to be seen has no patches."""
    if not (math.isfinite(spacing) and 1e-3 <= spacing <= 0.2):  # below: millions of patches, above: wider than a link
        raise InvalidValue(f"spacing: 0.001 to 0.2 m, got {spacing!r}")
    known = _known.get((id(model), spacing))
    if known is None or known[0] is not model:
        known = (model, _surfaces(model, spacing))
        _known[id(model), spacing] = known
        while len(_known) > _KEPT:
            _known.pop(next(iter(_known)))
    return list(known[1])


_KEPT = 4  # arms whose surfaces are kept: they take a quarter of a second, and studies ask for the same again and again
_known: dict[tuple[int, float], tuple[Model, list[LinkSurface]]] = {}


def _surfaces(model: Model, spacing: float) -> list[LinkSurface]:
    shapes = link_shapes(model)
    tool = model.T_flange_tcp[:3, 3]
    if np.linalg.norm(tool) > _TOOL_LENGTH:
        T = model.joints[-1].T_joint_link
        shapes[-1].append(Segment("pen", T[:3, 3], T[:3, 3] + T[:3, :3] @ tool, _TOOL_RADIUS, round=True))
    surfaces = []
    for i, parts in enumerate(shapes):
        seen = []
        for k, part in enumerate(parts):
            rows = _patches(part, spacing)
            hidden = _behind_neighbours(model, shapes, i, rows[:, :3])
            for other in parts[:k] + parts[k + 1 :]:
                hidden |= _inside(rows[:, :3], other)
            seen.append(rows[~hidden])
        surfaces.append(_surface(i + 1, np.concatenate(seen), model.joints[i].T_joint_link))
    return surfaces


def _surface(link: int, rows: Array, T_joint_link: Array) -> LinkSurface:
    """Rows of _patches, from the frame of the joint into that of the link."""
    R = T_joint_link[:3, :3]
    point, normal, t1 = (rows[:, :3] - T_joint_link[:3, 3]) @ R, rows[:, 3:6] @ R, rows[:, 6:9] @ R
    return LinkSurface(link, point, normal, t1, np.cross(normal, t1), rows[:, 9:11], rows[:, 11:])


def _patches(part: Segment, spacing: float) -> Array:
    """The whole surface of one shape, whatever may cover it: rows of point, normal, t1, curvature, size (m, 13)."""
    along = part.end - part.start
    length, r = float(np.linalg.norm(along)), part.radius
    axis = along / length
    count = math.ceil(length / spacing)
    rows = [
        _ring(part.start + (k + 0.5) / count * along, axis, r, 0.5 * math.pi, (1.0 / r, 0.0), length / count, spacing)
        for k in range(count)
    ]
    meridian = 0.5 * math.pi * r if part.round else r  # from the rim to the pole of an end
    bands = math.ceil(meridian / spacing)
    width = meridian / bands
    for end, out in ((part.start, -axis), (part.end, axis)):
        for k in range(bands):
            if part.round:
                polar = (k + 0.5) * width / r
                centre, radius = end + r * math.cos(polar) * out, r * math.sin(polar)
                rows.append(_ring(centre, out, radius, polar, (1.0 / r, 1.0 / r), width, spacing))
            else:
                rows.append(_ring(end, out, (k + 0.5) * width, 0.0, (0.0, 0.0), width, spacing))
    return np.concatenate(rows)


def _ring(
    centre: Array,
    axis: Array,
    radius: float,
    polar: float,
    curvature: tuple[float, float],
    width: float,
    spacing: float,
) -> Array:
    """Patches on a circle about the axis; their normals lean away from it by the angle polar [rad]."""
    side = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    side /= np.linalg.norm(side)
    count = max(6, math.ceil(2.0 * math.pi * radius / spacing))
    angle = (np.arange(count)[:, None] + 0.5) * (2.0 * math.pi / count)
    outward = np.cos(angle) * side + np.sin(angle) * np.cross(axis, side)
    normal = math.cos(polar) * axis + math.sin(polar) * outward
    rest = np.broadcast_to((*curvature, 2.0 * math.pi * radius / count, width), (count, 4))
    return np.column_stack((centre + radius * outward, normal, np.cross(axis, outward), rest))


def _inside(points: Array, part: Segment) -> _Mask:
    """Which points (m, 3) lie inside the shape or under its face."""
    along = part.end - part.start
    length = float(np.linalg.norm(along))
    axis = along / length
    height = (points - part.start) @ axis
    foot = np.clip(height, 0.0, length) if part.round else height
    near = np.linalg.norm(points - part.start - foot[:, None] * axis, axis=1) < part.radius - _TOUCHING
    if part.round:
        return np.asarray(near)
    return np.asarray(near & (height > -_TOUCHING) & (height < length + _TOUCHING))


def _behind_neighbours(model: Model, shapes: list[list[Segment]], i: int, points: Array) -> _Mask:
    """Which points of link i (in the frame of its joint) are buried in the link before, or in the one after, at every
    angle of the joint between them. A prismatic joint hides nothing: how far it slides is not asked."""
    joint = model.joints[i]
    before: _Mask = np.zeros(len(points), dtype=np.bool_)
    after = before
    if joint.kind == "revolute":
        T = joint.T_parent_joint if i == 0 else model.joints[i - 1].T_joint_link @ joint.T_parent_joint
        there = [points @ turn.T @ T[:3, :3].T + T[:3, 3] for turn in _turns()]
        before = _always(there, [base_shape(model)] if i == 0 else shapes[i - 1])
    if i + 1 < model.dof and model.joints[i + 1].kind == "revolute":
        T = joint.T_joint_link @ model.joints[i + 1].T_parent_joint
        after = _always([(points - T[:3, 3]) @ T[:3, :3] @ turn for turn in _turns()], shapes[i + 1])
    return np.asarray(before | after)


def _turns() -> list[Array]:
    """Rotations about z."""
    angles = np.arange(_ANGLES) * (2.0 * math.pi / _ANGLES)
    return [np.array(((math.cos(a), -math.sin(a), 0), (math.sin(a), math.cos(a), 0), (0, 0, 1))) for a in angles]


def _always(there: list[Array], parts: list[Segment]) -> _Mask:
    """Which points are inside some part, at every one of their places."""
    return np.asarray(np.all([np.any([_inside(points, part) for part in parts], axis=0) for points in there], axis=0))
