"""URDF out: a model as URDF text, with links named and placed as in ROS (parts)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from tangere.errors import unknown
from tangere.model.frames import rotation_rpy, rpy_from_rotation, transform
from tangere.model.inertia import moved
from tangere.model.link_shapes import COLOURS, Segment, base_shape, link_shapes
from tangere.model.model import Array, Joint, Link, Model
from tangere.model.urdf import UNLIMITED
from tangere.model.urdf_tree import element

_RESERVED = ("world", "base_link", "base", "flange", "tool0", "tcp", "payload")
_TILTED = 1e-9  # of gravity's length: a base that stands straighter than this stands on a table


@dataclass(frozen=True)
class Part:
    """A link at its place in the link before it (at zero), moved by a joint or fixed."""

    name: str
    parent: str | None  # None: the root
    T: Array  # (4, 4) in the parent's frame
    joint: Joint | None = None  # None: fixed
    index: int = -1  # of the joint
    body: Link | None = None  # mass, centre of mass and inertia in the link's frame
    shapes: tuple[Segment, ...] = ()

    @property
    def joint_name(self) -> str:
        """Name of the joint that carries the link."""
        return f"{self.parent}-{self.name}_fixed_joint" if self.joint is None else self.joint.name


def parts(model: Model, *, shapes: bool = False) -> list[Part]:
    """The links of an arm from the root on.

    As in ROS, `base` is the controller's base frame (ours) and `base_link` is yawed by 180 degrees against it; `flange`
    has its x axis forward (REP 103), `tool0` is the last DH frame, `tcp` the tool point. A payload becomes a link of
    its own. Where the arm does not stand upright, a root `world` above them has gravity along its -z axis. A moving
    link that has the name of one of these frames gets `_link` appended.
    """
    taken = [f"{link.name}_link" if link.name in _RESERVED else link.name for link in model.links]
    seen = link_shapes(model) if shapes else [[] for _ in model.links]
    out = [Part("base_link", None, np.eye(4))]
    if (tilt := _tilt(model.gravity)) is not None:
        out = [Part("world", None, np.eye(4)), Part("base_link", "world", tilt @ _turned(0.0, 0.0, -math.pi))]
    foot = (base_shape(model),) if shapes else ()
    out.append(Part("base", "base_link", _turned(0.0, 0.0, math.pi), shapes=foot))
    parent, T = "base", np.eye(4)
    for i, (joint, link) in enumerate(zip(model.joints, model.links, strict=True)):
        rise, rest = np.eye(4), joint.T_joint_link.copy()
        rise[2, 3], rest[2, 3] = rest[2, 3], 0.0
        drawn = tuple(_lowered(segment, float(rise[2, 3])) for segment in seen[i])
        body = moved(link, rest, taken[i])
        out.append(Part(taken[i], parent, T @ joint.T_parent_joint @ rise, joint, i, body, drawn))
        parent, T = taken[i], rest
    forward = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # rpy 0 -90 -90 of tool0
    out.append(Part("flange", parent, transform(T[:3, :3] @ forward, T[:3, 3])))
    out.append(Part("tool0", "flange", _turned(0.5 * math.pi, 0.0, 0.5 * math.pi)))
    out.append(Part("tcp", "tool0", model.T_flange_tcp))
    if model.payload is not None:
        body = Link("payload", model.payload.mass, model.payload.com, model.payload.inertia)
        out.append(Part("payload", "tool0", np.eye(4), body=body))
    return out


def _turned(roll: float, pitch: float, yaw: float) -> Array:
    return transform(rotation_rpy(roll, pitch, yaw), np.zeros(3))


def _tilt(gravity: Array) -> Array | None:
    """T_world_base (4, 4) of an arm whose base does not stand upright, None where it does (or nothing pulls)."""
    length = float(np.linalg.norm(gravity))
    if length == 0.0 or float(np.linalg.norm(gravity + (0.0, 0.0, length))) < _TILTED * length:
        return None
    up = -gravity / length  # the world's z axis in base axes
    side = np.eye(3)[int(np.argmin(np.abs(up)))]
    x = side - (side @ up) * up
    x /= np.linalg.norm(x)
    return transform(np.array([x, np.cross(up, x), up]), np.zeros(3))


def _lowered(segment: Segment, rise: float) -> Segment:
    """A shape in the frame of a link that sits `rise` [m] above the joint's own."""
    start, end = (point - (0.0, 0.0, rise) for point in (segment.start, segment.end))
    return replace(segment, start=start, end=end)


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
