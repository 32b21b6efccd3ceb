"""An arm as ROS and Gazebo place its links: what URDF and SDF text are both written from.

There a link's frame turns with its joint about the joint's own axis, so it cannot be the DH frame. It is put at the far
end of the joint's z offset (Tz(d) commutes with the motion), which for a UR gives UR's own proximal frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tangere.model.frames import rotation_rpy, transform
from tangere.model.inertia import moved
from tangere.model.link_shapes import Segment, base_shape, link_shapes
from tangere.model.model import Array, Joint, Link, Model

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
