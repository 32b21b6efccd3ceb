"""URDF out: a model as URDF text: base_link, base, the moving links, flange, tool0 and tcp, named and placed as in ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tangere.model.frames import rpy_from_rotation
from tangere.model.inertia import moved
from tangere.model.link_shapes import COLOURS, Segment, base_shape, link_shapes
from tangere.model.model import Array, Joint, Link, Model
from tangere.model.urdf import UNLIMITED
from tangere.model.urdf_tree import element

_RESERVED = ("base_link", "base", "flange", "tool0", "tcp", "payload")


def to_urdf(model: Model, *, drives: bool = False, shapes: bool = False) -> str:
    """The model as URDF text.

    A URDF link frame turns with the joint about its own z axis, so it cannot be the DH frame. It is put at the far end
    of the joint's z offset (Tz(d) commutes with the motion), which for a UR gives UR's own proximal frames, and each
    body is written there. As in ROS, `base` is the controller's base frame (ours) and `base_link` is yawed by 180
    degrees against it; `flange` has its x axis forward (REP 103), `tool0` is the last DH frame, `tcp` the tool point.
    A payload becomes a link of its own. With `drives` known friction is written as <dynamics>, with `shapes` what
    link_shapes makes of the arm as <visual>, to be looked at. Numbers are written in full precision.

    Not in a URDF, and so lost: gravity, motor gains, rotor inertia, DH parameters, sources and grades. A moving
    link that has the name of one of the frames above gets `_link` appended.
    """
    taken = [f"{link.name}_link" if link.name in _RESERVED else link.name for link in model.links]
    seen: list[list[Segment]] = link_shapes(model) if shapes else [[] for _ in model.links]
    foot = _visuals([base_shape(model)], 0.0) if shapes else []
    out = [element("link", {"name": "base_link"}), element("link", {"name": "base"}, foot)]
    out.append(_fixed("base_link", "base", (0.0, 0.0, 0.0), (0.0, 0.0, math.pi)))
    parent, T = "base", np.eye(4)
    for i, (joint, link) in enumerate(zip(model.joints, model.links, strict=True)):
        rise, rest = np.eye(4), joint.T_joint_link.copy()
        rise[2, 3], rest[2, 3] = rest[2, 3], 0.0
        out.append(_link(moved(link, rest, taken[i]), _visuals(seen[i], rise[2, 3])))
        out.append(_joint_text(joint, parent, taken[i], T @ joint.T_parent_joint @ rise, model, i if drives else None))
        parent, T = taken[i], rest
    half = 0.5 * math.pi
    R_flange = T[:3, :3] @ np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # rpy 0 -90 -90 of tool0
    tool = model.T_flange_tcp
    for before, name, xyz, rpy in (
        (parent, "flange", T[:3, 3], rpy_from_rotation(R_flange)),
        ("flange", "tool0", (0.0, 0.0, 0.0), (half, 0.0, half)),
        ("tool0", "tcp", tool[:3, 3], rpy_from_rotation(tool[:3, :3])),
    ):
        out += [element("link", {"name": name}), _fixed(before, name, xyz, rpy)]
    if model.payload is not None:
        body = Link("payload", model.payload.mass, model.payload.com, model.payload.inertia)
        out += [_link(body), _fixed("tool0", "payload", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))]
    return "\n".join(['<?xml version="1.0"?>', *element("robot", {"name": model.name}, out), ""])


def _numbers(*values: float) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)


def _origin(xyz: Sequence[float] | Array, rpy: Sequence[float] = (0.0, 0.0, 0.0)) -> list[str]:
    return element("origin", {"xyz": _numbers(*xyz), "rpy": _numbers(*rpy)})


def _joined(name: str, kind: str, parent: str, child: str, parts: Sequence[list[str]]) -> list[str]:
    ends = [element("parent", {"link": parent}), element("child", {"link": child})]
    return element("joint", {"name": name, "type": kind}, [*ends, *parts])


def _fixed(parent: str, child: str, xyz: Sequence[float] | Array, rpy: Sequence[float]) -> list[str]:
    return _joined(f"{parent}-{child}_fixed_joint", "fixed", parent, child, [_origin(xyz, rpy)])


def _visuals(segments: Sequence[Segment], rise: float) -> list[list[str]]:
    """Cylinders, and balls where their ends are round; rise [m]: of the link's frame along the joint's axis."""
    out = []
    for segment in segments:
        start, end = (point - (0.0, 0.0, rise) for point in (segment.start, segment.end))
        x, y, z = (end - start).tolist()
        size = {"radius": _numbers(segment.radius), "length": _numbers(math.hypot(x, y, z))}
        places = [(0.5 * (start + end), element("cylinder", size))]
        places += [(p, element("sphere", {"radius": size["radius"]})) for p in (start, end) if segment.round]
        for centre, (geometry,) in places:
            turned = (0.0, math.atan2(math.hypot(x, y), z), math.atan2(y, x))
            colour = f'<material name="{segment.colour}"><color rgba="{COLOURS[segment.colour]}"/></material>'
            out.append(element("visual", {}, [_origin(centre, turned), [f"<geometry>{geometry}</geometry>"], [colour]]))
    return out


def _link(link: Link, visuals: Sequence[list[str]] = ()) -> list[str]:
    keys = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
    entries = {key: _numbers(link.inertia[row, column]) for key, row, column in keys}
    body = [_origin(link.com), element("mass", {"value": _numbers(link.mass)}), element("inertia", entries)]
    return element("link", {"name": link.name}, [element("inertial", {}, body), *visuals])


def _joint_text(joint: Joint, parent: str, child: str, T: Array, model: Model, drive: int | None) -> list[str]:
    endless = joint.kind == "revolute" and math.isinf(joint.q_min) and math.isinf(joint.q_max)
    reach = {} if endless else {"lower": max(joint.q_min, -UNLIMITED), "upper": min(joint.q_max, UNLIMITED)}
    limits = reach | {"effort": min(joint.tau_max, UNLIMITED), "velocity": min(joint.qd_max, UNLIMITED)}
    parts = [
        _origin(T[:3, 3], rpy_from_rotation(T[:3, :3])),
        element("axis", {"xyz": "0 0 1"}),
        element("limit", {key: _numbers(value) for key, value in limits.items()}),
    ]
    if drive is not None:
        known = {"damping": model.drives.viscous[drive], "friction": model.drives.coulomb[drive]}
        entries = {key: _numbers(value) for key, value in known.items() if math.isfinite(value)}
        parts += [element("dynamics", entries)] if entries else []
    return _joined(joint.name, "continuous" if endless else joint.kind, parent, child, parts)
