"""The arm inside one of our FMUs, built anew from the start values of its file."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from tangere.apps.fmu.opened import Opened, Variable
from tangere.dynamics.friction import JointFriction
from tangere.kinematics.rotation import matrix_from_rotation_vector
from tangere.model.assemble import dh_transform
from tangere.model.model import DH, Payload
from tangere.robots import Robot, robot
from tangere.types import Array

_ALPHA = (90.0, 0.0, 0.0, 90.0, -90.0, 0.0)  # deg


def group_name(name: str) -> str:
    """q of q[3], der(q) of der(q[3])."""
    return re.sub(r"\[[0-9,]+\]", "", name)


def groups_of(fmu: Opened) -> dict[str, list[Variable]]:
    """Variables by the name of their vector or matrix, in row order."""
    found: dict[str, list[Variable]] = {}
    for v in fmu.variables:
        found.setdefault(group_name(v.name), []).append(v)
    return found


def start_of(variables: list[Variable]) -> Array:
    """Start values of a group."""
    return np.array([float(v.start or 0.0) for v in variables])


def _inertia(x: Array) -> Array:
    xx, yy, zz, xy, xz, yz = x
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def robot_of(fmu: Opened) -> tuple[Robot, JointFriction | None]:
    """The robot whose numbers the file holds, by way of the library's own model, and its friction."""
    groups = groups_of(fmu)
    base = robot("ur10e").model  # only its shape is taken, where the file holds the numbers
    d1, a2, a3, d4, d5, d6 = start_of(groups["arm.dh"])
    a, d = np.array([0.0, a2, a3, 0.0, 0.0, 0.0]), np.array([d1, 0.0, 0.0, d4, d5, d6])
    limits = (-np.inf, np.inf)
    low, high = (
        start_of(groups[name]) if name in groups else np.full(6, limit)
        for name, limit in zip(("q_min", "q_max"), limits, strict=True)
    )
    joints = tuple(
        replace(j, T_joint_link=dh_transform(a[i], d[i], _ALPHA[i]), q_min=float(low[i]), q_max=float(high[i]))
        for i, j in enumerate(base.joints)
    )
    tool = np.eye(4)
    offset = start_of(groups["tool"])
    tool[:3, 3], tool[:3, :3] = offset[:3], matrix_from_rotation_vector(offset[3:])
    model = replace(base, joints=joints, dh=DH(a, d, np.radians(_ALPHA)), T_flange_tcp=tool, payload=None)
    if "arm.mass" not in groups:
        return Robot(model), None
    mass, com = start_of(groups["arm.mass"]), start_of(groups["arm.com"]).reshape(6, 3)
    inertia = start_of(groups["arm.inertia"]).reshape(6, 6)
    links = tuple(
        replace(link, mass=float(mass[i]), com=com[i], inertia=_inertia(inertia[i]))
        for i, link in enumerate(base.links)
    )
    load = float(start_of(groups["payload.mass"])[0])
    payload = Payload(load, start_of(groups["payload.com"]), _inertia(start_of(groups["payload.inertia"])))
    model = replace(
        model, links=links, gravity=start_of(groups["gravity"]), payload=payload if load > 0.0 else None
    )  # fmt: skip
    friction = None
    if "friction.width" in groups:
        friction = JointFriction(
            start_of(groups["friction.coulomb"]), start_of(groups["friction.viscous"]),
            float(start_of(groups["friction.width"])[0]),
        )  # fmt: skip
    return Robot(model, start_of(groups["rotor_inertia"])), friction
