"""URDF of a model: base_link, base, the moving links, flange, tool0 and tcp, named and placed as in ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere.model.frames import rpy_from_rotation
from tangere.model.inertia import moved
from tangere.model.link_shapes import COLOURS, Segment, base_shape, link_shapes
from tangere.model.model import Array, Joint, Link, Model

# What stands for "no limit": URDF demands a number and has no infinity. Far beyond any joint; the importer knows it.
UNLIMITED = 1e9
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
    out = ['<?xml version="1.0"?>', f"<robot name={quoteattr(model.name)}>"]
    seen: list[list[Segment]] = link_shapes(model) if shapes else [[] for _ in model.links]
    out += ['  <link name="base_link"/>']
    if shapes:
        out += ['  <link name="base">', *_visuals([base_shape(model)], 0.0), "  </link>"]
    else:
        out += ['  <link name="base"/>']
    out += _fixed("base_link", "base", (0.0, 0.0, 0.0), (0.0, 0.0, math.pi))
    parent, T = "base", np.eye(4)
    for i, (joint, link) in enumerate(zip(model.joints, model.links, strict=True)):
        rise, rest = np.eye(4), joint.T_joint_link.copy()
        rise[2, 3], rest[2, 3] = rest[2, 3], 0.0
        out += _link(moved(link, rest, taken[i]), _visuals(seen[i], rise[2, 3]))
        out += _joint(joint, parent, taken[i], T @ joint.T_parent_joint @ rise, model, i if drives else None)
        parent, T = taken[i], rest
    half = 0.5 * math.pi
    R_z_up_to_x_forward = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # rpy 0 -90 -90 of tool0
    T_flange = T.copy()
    T_flange[:3, :3] = T[:3, :3] @ R_z_up_to_x_forward
    out += ['  <link name="flange"/>', *_fixed(parent, "flange", T_flange[:3, 3], rpy_from_rotation(T_flange[:3, :3]))]
    out += ['  <link name="tool0"/>', *_fixed("flange", "tool0", (0.0, 0.0, 0.0), (half, 0.0, half))]
    tool = model.T_flange_tcp
    out += ['  <link name="tcp"/>', *_fixed("tool0", "tcp", tool[:3, 3], rpy_from_rotation(tool[:3, :3]))]
    if model.payload is not None:
        body = Link("payload", model.payload.mass, model.payload.com, model.payload.inertia)
        out += [*_link(body), *_fixed("tool0", "payload", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))]
    return "\n".join([*out, "</robot>", ""])


def _numbers(values: Sequence[float] | Array) -> str:
    return quoteattr(" ".join(repr(float(value) + 0.0) for value in values))


def _origin(xyz: Sequence[float] | Array, rpy: Sequence[float]) -> str:
    return f"    <origin xyz={_numbers(xyz)} rpy={_numbers(rpy)}/>"


def _fixed(parent: str, child: str, xyz: Sequence[float] | Array, rpy: Sequence[float]) -> list[str]:
    return [
        f'  <joint name={quoteattr(f"{parent}-{child}_fixed_joint")} type="fixed">',
        f"    <parent link={quoteattr(parent)}/>",
        f"    <child link={quoteattr(child)}/>",
        _origin(xyz, rpy),
        "  </joint>",
    ]


def _visuals(segments: Sequence[Segment], rise: float) -> list[str]:
    """Cylinders, and balls where their ends are round; rise [m]: of the link's frame along the joint's axis."""
    out: list[str] = []
    for segment in segments:
        start, end = (point - (0.0, 0.0, rise) for point in (segment.start, segment.end))
        x, y, z = (end - start).tolist()
        length = math.hypot(x, y, z)
        places = [(0.5 * (start + end), f"<cylinder radius={_numbers([segment.radius])} length={_numbers([length])}/>")]
        places += [(p, f"<sphere radius={_numbers([segment.radius])}/>") for p in (start, end) if segment.round]
        for centre, geometry in places:
            out += [
                "    <visual>",
                f"  {_origin(centre, (0.0, math.atan2(math.hypot(x, y), z), math.atan2(y, x)))}",
                f"      <geometry>{geometry}</geometry>",
                f'      <material name="{segment.colour}"><color rgba="{COLOURS[segment.colour]}"/></material>',
                "    </visual>",
            ]
    return out


def _link(link: Link, visuals: Sequence[str] = ()) -> list[str]:
    keys = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
    entries = " ".join(f"{key}={_numbers([link.inertia[row, column]])}" for key, row, column in keys)
    return [
        f"  <link name={quoteattr(link.name)}>",
        "    <inertial>",
        f"  {_origin(link.com, (0.0, 0.0, 0.0))}",
        f"      <mass value={_numbers([link.mass])}/>",
        f"      <inertia {entries}/>",
        "    </inertial>",
        *visuals,
        "  </link>",
    ]


def _joint(joint: Joint, parent: str, child: str, T: Array, model: Model, drive: int | None) -> list[str]:
    endless = joint.kind == "revolute" and math.isinf(joint.q_min) and math.isinf(joint.q_max)
    kind = "continuous" if endless else joint.kind
    effort, velocity = (min(value, UNLIMITED) for value in (joint.tau_max, joint.qd_max))
    lower, upper = max(joint.q_min, -UNLIMITED), min(joint.q_max, UNLIMITED)
    reach = "" if endless else f"lower={_numbers([lower])} upper={_numbers([upper])} "
    out = [
        f"  <joint name={quoteattr(joint.name)} type={quoteattr(kind)}>",
        f"    <parent link={quoteattr(parent)}/>",
        f"    <child link={quoteattr(child)}/>",
        _origin(T[:3, 3], rpy_from_rotation(T[:3, :3])),
        '    <axis xyz="0 0 1"/>',
        f"    <limit {reach}effort={_numbers([effort])} velocity={_numbers([velocity])}/>",
    ]
    if drive is not None:
        known = {"damping": model.drives.viscous[drive], "friction": model.drives.coulomb[drive]}
        entries = " ".join(f"{key}={_numbers([value])}" for key, value in known.items() if math.isfinite(value))
        out += [f"    <dynamics {entries}/>"] if entries else []
    return [*out, "  </joint>"]
