"""A hand that pulls a simulated arm: a spring from a point of a link to a point in space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue
from tangere.robots import Robot
from tangere.types import Array

STIFFNESS = 1500.0  # [N/m] 4 cm of the mouse are 60 N: what a hand does without effort
DAMPING = 30.0  # [N s/m] of the grabbed point: takes the swing out of some 2 kg on that spring within a second
FORCE_MAX = 150.0  # [N] what ISO/TS 15066 allows a quasi-static contact with a hand, rounded: more is no touch


@dataclass(frozen=True)
class Pull:
    """A spring between a point of a link and a target, until it is replaced or released.

        F = stiffness (target - p) - damping v,   |F| cut at force_max,   tau_ext = J_point(q)^T F

    p, v: the point's position and velocity in base axes. Once per period, held over it.
    """

    link: int  # counted from 1
    point: tuple[float, float, float]  # [m] in the link's own frame (DH: the distal frame)
    target: tuple[float, float, float]  # [m] base axes
    stiffness: float = STIFFNESS  # [N/m]
    damping: float = DAMPING  # [N s/m]
    force_max: float = FORCE_MAX  # [N]


@dataclass(frozen=True)
class Load:
    """Torques on all joints until they are replaced: tau_ext = torque."""

    torque: tuple[float, ...]  # (n,) [Nm]


@dataclass(frozen=True)
class Release:
    """The hand lets go."""

    why: str = ""  # "": it was let go; else who decided so


def checked_load(load: Load, dof: int) -> Array:
    """The torques (n,); InvalidValue where they cannot be."""
    torque = np.array(load.torque, dtype=np.float64)
    if torque.shape != (dof,) or not np.isfinite(torque).all():
        raise InvalidValue(f"a load has {dof} finite torques, got {load.torque!r}")
    return torque


def checked_pull(pull: Pull, dof: int) -> Pull:
    """The pull as it is; InvalidValue for one that cannot be."""
    if not (isinstance(pull.link, int) and 1 <= pull.link <= dof):
        raise InvalidValue(f"link of a pull: got {pull.link!r}, valid are 1 to {dof}")
    numbers = (*pull.point, *pull.target)
    if len(numbers) != 6 or not all(math.isfinite(value) for value in numbers):
        raise InvalidValue(f"a pull has a point and a target of 3 finite numbers each, got {pull!r}")
    if not all(math.isfinite(v) and v >= 0.0 for v in (pull.stiffness, pull.damping, pull.force_max)):
        raise InvalidValue(f"stiffness, damping and force_max of a pull: finite and not negative, got {pull!r}")
    return pull


@dataclass(frozen=True)
class Pulled:
    """What a pull does at one state."""

    torque: Array  # (n,) [Nm] tau_ext
    force: Array  # (3,) [N] base axes, on the robot
    point: Array  # (3,) [m] base axes, where it acts


def pulled(pull: Pull, robot: Robot, q: Array, qd: Array) -> Pulled:
    """Force and joint torque of the pull at q, qd (n,)."""
    at = np.array(pull.point, dtype=np.float64)
    T = robot.link_poses(q)[pull.link - 1]
    J = robot.jacobian(q, link=pull.link, point=at)[:3]
    p = T[:3, :3] @ at + T[:3, 3]
    force = pull.stiffness * (np.array(pull.target, dtype=np.float64) - p) - pull.damping * (J @ qd)
    size = float(np.linalg.norm(force))
    if size > pull.force_max:
        force = force * (pull.force_max / size)
    return Pulled(force @ J, force, p)
