"""URDF out: a model as URDF text, with links named and placed as in ROS (model.proximal)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

from tangere.errors import unknown
from tangere.model.frames import rpy_from_rotation
from tangere.model.link_shapes import COLOURS, Segment
from tangere.model.model import Array, Joint, Link, Model
from tangere.model.proximal import Part, parts
from tangere.model.urdf import UNLIMITED
from tangere.model.urdf_tree import element

Hardware = Literal["gazebo", "mock", "topic", "ur"]
# What ros2_control loads to move the arm: Gazebo, a stand-in that follows commands, any simulator that speaks
# JointState both ways, UR's own driver.
_PLUGINS: dict[str, str] = {
    "gazebo": "gz_ros2_control/GazeboSimSystem",
    "mock": "mock_components/GenericSystem",
    "topic": "topic_based_ros2_control/TopicBasedSystem",
    "ur": "ur_robot_driver/URPositionHardwareInterface",
}


def to_urdf(
    model: Model,
    *,
    drives: bool = False,
    shapes: bool = False,
    collision: bool = False,
    control: Hardware | None = None,
) -> str:
    """The model as URDF text.

    With `drives` known friction is written as <dynamics>, with `shapes` what link_shapes makes of the arm as <visual>,
    to be looked at, with `collision` the same as <collision>. `control` adds a <ros2_control> system with position,
    velocity and effort, for "gazebo" Gazebo's plugin, too. Numbers are written in full precision.

    Not in a URDF, and so lost: the strength of gravity, motor gains, rotor inertia, DH parameters, sources and grades.
    """
    if control is not None and control not in _PLUGINS:
        raise unknown("hardware", str(control), get_args(Hardware))
    out = []
    for part in parts(model, shapes=shapes or collision):
        drawn = [_shape("visual", part.shapes)] if shapes else []
        drawn += [_shape("collision", part.shapes)] if collision else []
        out.append(_link(part, [line for lines in drawn for line in lines]))
        if part.parent is not None:
            out.append(_joint(part, model if drives else None))
    if control is not None:
        out.append(_system(model, control))
        out += [_gazebo()] if control == "gazebo" else []
    return "\n".join(['<?xml version="1.0"?>', *element("robot", {"name": model.name}, out), ""])


def numbers(*values: float) -> str:
    """Numbers in full precision, separated by blanks; no negative zero."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def cylinders(segments: Sequence[Segment]) -> list[tuple[Array, tuple[float, float, float], str, dict[str, str], str]]:
    """(centre, roll pitch yaw, kind, sizes, colour) of cylinders, and of balls where their ends are round."""
    out = []
    for segment in segments:
        x, y, z = (segment.end - segment.start).tolist()
        size = {"radius": numbers(segment.radius), "length": numbers(math.hypot(x, y, z))}
        turned = (0.0, math.atan2(math.hypot(x, y), z), math.atan2(y, x))
        out.append((0.5 * (segment.start + segment.end), turned, "cylinder", size, segment.colour))
        ball = {"radius": size["radius"]}
        ends = (segment.start, segment.end) if segment.round else ()
        out += [(point, turned, "sphere", ball, segment.colour) for point in ends]
    return out


def _origin(xyz: Sequence[float] | Array, rpy: Sequence[float] = (0.0, 0.0, 0.0)) -> list[str]:
    return element("origin", {"xyz": numbers(*xyz), "rpy": numbers(*rpy)})


def _shape(tag: str, segments: Sequence[Segment]) -> list[list[str]]:
    out = []
    for centre, turned, kind, size, colour in cylinders(segments):
        (geometry,) = element(kind, size)
        inside = [_origin(centre, turned), [f"<geometry>{geometry}</geometry>"]]
        if tag == "visual":
            inside.append([f'<material name="{colour}"><color rgba="{COLOURS[colour]}"/></material>'])
        out.append(element(tag, {}, inside))
    return out


def _link(part: Part, drawn: Sequence[list[str]]) -> list[str]:
    body = [_inertial(part.body)] if part.body is not None else []
    return element("link", {"name": part.name}, [*body, *drawn])


def _inertial(body: Link) -> list[str]:
    keys = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
    entries = {key: numbers(body.inertia[row, column]) for key, row, column in keys}
    mass = element("mass", {"value": numbers(body.mass)})
    return element("inertial", {}, [_origin(body.com), mass, element("inertia", entries)])


def _joint(part: Part, model: Model | None) -> list[str]:
    ends = [element("parent", {"link": part.parent}), element("child", {"link": part.name})]
    place = _origin(part.T[:3, 3], rpy_from_rotation(part.T[:3, :3]))
    joint = part.joint
    if joint is None:
        return element("joint", {"name": part.joint_name, "type": "fixed"}, [*ends, place])
    endless = turns_without_end(joint)
    reach = {} if endless else {"lower": max(joint.q_min, -UNLIMITED), "upper": min(joint.q_max, UNLIMITED)}
    limits = reach | {"effort": min(joint.tau_max, UNLIMITED), "velocity": min(joint.qd_max, UNLIMITED)}
    bounds = element("limit", {key: numbers(value) for key, value in limits.items()})
    lines = [*ends, place, element("axis", {"xyz": "0 0 1"}), bounds]
    if model is not None and (known := friction(model, part.index)):
        lines.append(element("dynamics", known))
    return element("joint", {"name": joint.name, "type": "continuous" if endless else joint.kind}, lines)


def turns_without_end(joint: Joint) -> bool:
    """Whether a joint is URDF's and SDF's `continuous`."""
    return joint.kind == "revolute" and math.isinf(joint.q_min) and math.isinf(joint.q_max)


def friction(model: Model, index: int) -> dict[str, str]:
    """damping and friction of a joint, as far as they are known."""
    values = {"damping": model.drives.viscous[index], "friction": model.drives.coulomb[index]}
    return {key: numbers(value) for key, value in values.items() if math.isfinite(value)}


def _system(model: Model, control: str) -> list[str]:
    """ros2_control: each joint takes position, velocity or effort and tells all three."""
    rows = [element("hardware", {}, [[f"<plugin>{_PLUGINS[control]}</plugin>"]])]
    for joint in model.joints:
        ranges = {
            "position": (joint.q_min, joint.q_max),
            "velocity": (-joint.qd_max, joint.qd_max),
            "effort": (-joint.tau_max, joint.tau_max),
        }
        inside = [element("command_interface", {"name": name}, _range(*ends)) for name, ends in ranges.items()]
        inside += [element("state_interface", {"name": name}) for name in ranges]
        rows.append(element("joint", {"name": joint.name}, inside))
    return element("ros2_control", {"name": model.name, "type": "system"}, rows)


def _range(low: float, high: float) -> list[list[str]]:
    known = (("min", low), ("max", high))
    return [[f'<param name="{key}">{numbers(value)}</param>'] for key, value in known if math.isfinite(value)]


def _gazebo() -> list[str]:
    """Gazebo's side of ros2_control; which controllers run is said in a file of the user's."""
    names = {"filename": "gz_ros2_control-system", "name": "gz_ros2_control::GazeboSimROS2ControlPlugin"}
    return element("gazebo", {}, [element("plugin", names, [["<parameters>controllers.yaml</parameters>"]])])
