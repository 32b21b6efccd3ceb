"""SDF out: a model as Gazebo reads it, with the same links, joints and numbers as the URDF (urdf_text.parts)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tangere.model.frames import rpy_from_rotation
from tangere.model.link_shapes import COLOURS
from tangere.model.model import Array, Joint, Link, Model
from tangere.model.urdf import UNLIMITED
from tangere.model.urdf_text import Part, cylinders, friction, numbers, parts, turns_without_end
from tangere.model.urdf_tree import element

VERSION = "1.9"  # read by Gazebo Fortress and everything later
# What a frame without a body of its own weighs: Gazebo refuses a link without mass, and 1e-9 kg moves no digit that
# anybody reads. 1e-12 kg m2 goes with it.
_NOTHING = (1e-9, 1e-12)
_STEP = 0.001  # [s] Gazebo's usual step


def to_sdf(model: Model, *, drives: bool = False, shapes: bool = False, world: bool = False) -> str:
    """The model as SDF text for Gazebo.

    Joints stand in their parent link, links in their joint, so that the numbers are the URDF's. Each joint takes a
    torque on the topic /model/NAME/joint/JOINT/cmd_force. With `drives` known friction is written, with `shapes` what
    link_shapes makes of the arm, to be looked at and to collide with others (not with itself). `world` puts the arm
    into a world of its own with a floor and the arm's own gravity; without it the arm is a model to be included, and
    gravity is the world's.

    Frames without a body (base, flange, tcp, ...) are written as <frame>. Not in SDF, and so lost: motor gains, rotor
    inertia, DH parameters, sources and grades.
    """
    placed = parts(model, shapes=shapes)
    upright = placed[0].name != "world"  # a tilted arm stands in a world whose -z axis is gravity's: Gazebo's own
    root, *others = placed if upright else placed[1:]
    heavy = {part.name for part in others if part.joint is not None or part.body is not None or part.shapes}
    foot = element("link", {"name": root.name}, [_pose(root.T), _inertial(None)])
    ends = [_text("parent", "world"), _text("child", root.name)]
    out = [foot, element("joint", {"name": "root_to_world", "type": "fixed"}, ends)]
    for part in others:
        if part.name in heavy:
            out += [_joint(part, model if drives else None), _link(part)]
        else:
            out.append(element("frame", {"name": part.name, "attached_to": part.parent}, [_pose(part.T)]))
    names = [joint.name for joint in model.joints]
    out += [_plugin("apply-joint-force", "ApplyJointForce", [_text("joint_name", name)]) for name in names]
    out.append(_plugin("joint-state-publisher", "JointStatePublisher", [_text("joint_name", name) for name in names]))
    arm = element("model", {"name": model.name}, [_text("self_collide", "false"), *out])
    inside = _world(model, arm, upright=upright) if world else arm
    return "\n".join(['<?xml version="1.0"?>', *element("sdf", {"version": VERSION}, [inside]), ""])


def _text(tag: str, text: str) -> list[str]:
    return [f"<{tag}>{text.replace('&', '&amp;').replace('<', '&lt;')}</{tag}>"]


def _pose(T: Array, relative_to: str | None = None) -> list[str]:
    values = numbers(*T[:3, 3], *rpy_from_rotation(T[:3, :3]))
    (line,) = element("pose", {"relative_to": relative_to})
    return [line.replace("/>", f">{values}</pose>")]


def _link(part: Part) -> list[str]:
    drawn = [_shape(f"{part.name}_{i}", *row) for i, row in enumerate(cylinders(part.shapes))]
    inside = [_pose(np.eye(4), part.joint_name), _inertial(part.body), *(lines for pair in drawn for lines in pair)]
    return element("link", {"name": part.name}, inside)


def _inertial(body: Link | None) -> list[str]:
    mass, com, inertia = _NOTHING[0], np.zeros(3), _NOTHING[1] * np.eye(3)
    if body is not None:
        mass, com = body.mass, body.com
        inertia = body.inertia if np.any(body.inertia) else inertia
    keys = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
    entries = [_text(key, numbers(inertia[row, column])) for key, row, column in keys]
    place = [f"<pose>{numbers(*com, 0.0, 0.0, 0.0)}</pose>"]
    return element("inertial", {}, [place, _text("mass", numbers(mass)), element("inertia", {}, entries)])


def _shape(
    name: str, centre: Array, turned: Sequence[float], kind: str, size: dict[str, str], colour: str
) -> list[list[str]]:
    place = [f"<pose>{numbers(*centre, *turned)}</pose>"]
    geometry = element("geometry", {}, [element(kind, {}, [_text(key, value) for key, value in size.items()])])
    paint = element("material", {}, [_text(key, COLOURS[colour]) for key in ("ambient", "diffuse")])
    visual = element("visual", {"name": f"{name}_visual"}, [place, geometry, paint])
    if colour == "cap":  # thin discs to look at
        return [visual]
    return [visual, element("collision", {"name": f"{name}_collision"}, [place, geometry])]


def _joint(part: Part, model: Model | None) -> list[str]:
    ends = [_pose(part.T, part.parent), _text("parent", part.parent or "world"), _text("child", part.name)]
    joint = part.joint
    if joint is None:
        return element("joint", {"name": part.joint_name, "type": "fixed"}, ends)
    kind = "continuous" if turns_without_end(joint) else joint.kind
    return element("joint", {"name": joint.name, "type": kind}, [*ends, _axis(joint, part.index, model)])


def _axis(joint: Joint, index: int, model: Model | None) -> list[str]:
    inside = [_text("xyz", "0 0 1"), element("limit", {}, _limits(joint))]
    if model is not None and (known := friction(model, index)):
        inside.append(element("dynamics", {}, [_text(key, value) for key, value in known.items()]))
    return element("axis", {}, inside)


def _limits(joint: Joint) -> list[list[str]]:
    values = {"lower": joint.q_min, "upper": joint.q_max, "effort": joint.tau_max, "velocity": joint.qd_max}
    known = {key: value for key, value in values.items() if math.isfinite(value)}
    if not turns_without_end(joint):
        known = {"lower": max(joint.q_min, -UNLIMITED), "upper": min(joint.q_max, UNLIMITED)} | known
    return [_text(key, numbers(value)) for key, value in known.items()]


def _plugin(file: str, name: str, inside: Sequence[list[str]]) -> list[str]:
    return element("plugin", {"filename": f"gz-sim-{file}-system", "name": f"gz::sim::systems::{name}"}, inside)


def _world(model: Model, arm: list[str], *, upright: bool) -> list[str]:
    """A world with the arm in it; the root `world` of a tilted arm has gravity along -z already."""
    pull = np.array((0.0, 0.0, -float(np.linalg.norm(model.gravity))))
    systems = [("physics", "Physics"), ("user-commands", "UserCommands"), ("scene-broadcaster", "SceneBroadcaster")]
    steps = [_text("max_step_size", numbers(_STEP)), _text("real_time_factor", "1.0")]
    plane = element("geometry", {}, [element("plane", {}, [_text("normal", "0 0 1"), _text("size", "10 10")])])
    floor = [element("visual", {"name": "visual"}, [plane])]
    sun = [
        _text("cast_shadows", "true"), _text("pose", "0 0 10 0 0 0"), _text("diffuse", "0.8 0.8 0.8 1"),
        _text("direction", "-0.5 0.1 -0.9"),
    ]  # fmt: skip
    ground = element("model", {"name": "floor"}, [_text("static", "true"), element("link", {"name": "link"}, floor)])
    inside = [
        element("physics", {"name": "step", "type": "ignored"}, steps),
        *(_plugin(file, name, []) for file, name in systems),
        _text("gravity", numbers(*pull)),
        element("light", {"name": "sun", "type": "directional"}, sun),
        *([ground] if upright else []),
        arm,
    ]
    return element("world", {"name": f"{model.name}_world"}, inside)
