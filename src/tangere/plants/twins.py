"""A twin that differs: the robot a plant really is, when the controller believes in another one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.model.frames import gravity_vector, tool_transform
from tangere.model.inertia import check_body, payload_body
from tangere.model.loading import load
from tangere.model.model import DH, Array, Joint, Link, Model, Payload
from tangere.robots import Robot

PerLink = ArrayLike | Mapping[int, float]


def twin(
    robot: Robot,
    *,
    mass: PerLink = 1.0,
    inertia: PerLink = 1.0,
    com: ArrayLike | Mapping[int, Sequence[float]] = 0.0,
    lengths: PerLink = 1.0,
    friction: PerLink = 1.0,
    rotor_inertia: PerLink = 1.0,
    payload: Payload | float | Sequence[Any] | None = None,
    parameters: str | os.PathLike[str] | None = None,
    tool: Sequence[float] | Array | None = None,
    gravity: str | Sequence[float] | Array | None = None,
) -> Robot:
    """The same arm with other numbers, to be simulated while controller and observer keep `robot`.

    Factors are one number for all links or joints, one per link, or {number from 1: factor} for some.

    mass: of mass and inertia together (the same bodies, denser): mass=1.05 on every link gives 1.05 M exactly where
        there is neither payload nor rotor inertia.
    inertia: of the inertia about the centre of mass, on top of mass.
    com: shift of the centres of mass [m] in link frames: (3,) for all, (n, 3), or {link: (x, y, z)}.
    lengths: of the translations between joints (DH a and d); centres of mass keep their place in the distal frames.
    friction: of drives.coulomb and drives.viscous, for JointFriction.of(twin.drives).
    rotor_inertia: of what `robot` was made with.
    payload: what really hangs at the flange, in place of the payload `robot` has.
    parameters: another parameter set of the same arm (tangere.model.parameter_sets), or a TOML file; it comes first,
        the factors act on it. Tool, payload, gravity and rotor inertia stay those of `robot` unless given.
    tool, gravity: in place of the robot's, in the forms that tangere.robot takes.

    Raises UnphysicalModel if no rigid body can have the result.
    """
    model = robot.model
    n = model.dof
    if parameters is not None:
        model = dataclasses.replace(
            load(model.name, parameters=parameters),
            T_flange_tcp=model.T_flange_tcp,
            payload=model.payload,
            gravity=model.gravity,
        )
        if model.dof != n:
            raise InvalidValue(f"parameters {parameters!r} describe an arm of {model.dof} joints, not {n}")
    masses, inertias = _factors(mass, n, "mass"), _factors(inertia, n, "inertia")
    if np.any(masses == 0.0) or np.any(inertias == 0.0):
        raise InvalidValue(f"mass and inertia factors must be positive, got {mass!r} and {inertia!r}")
    links = tuple(
        _link(link, float(m), float(i), shift)
        for link, m, i, shift in zip(model.links, masses, inertias, _shifts(com, n), strict=True)
    )
    model = _lengthened(dataclasses.replace(model, links=links), _factors(lengths, n, "lengths"))
    wear = _factors(friction, n, "friction")
    drives = dataclasses.replace(
        model.drives, coulomb=_frozen(model.drives.coulomb * wear), viscous=_frozen(model.drives.viscous * wear)
    )
    changes: dict[str, Any] = {"drives": drives}
    if payload is not None:
        changes["payload"] = payload_body(payload)
    if tool is not None:
        changes["T_flange_tcp"] = tool_transform(tool)
    if gravity is not None:
        changes["gravity"] = gravity_vector(gravity)
    model = dataclasses.replace(model, **changes)
    rotor = robot.rotor_inertia * _factors(rotor_inertia, n, "rotor_inertia")
    return Robot(model, rotor if np.any(rotor) else False)


def _factors(given: PerLink, n: int, what: str) -> Array:
    if isinstance(given, Mapping):
        values = np.ones(n)
        for number, factor in given.items():
            if number not in range(1, n + 1):
                raise InvalidValue(f"{what}: links and joints are 1 to {n}, got {number!r}")
            values[number - 1] = factor
    else:
        values = np.asarray(given, dtype=np.float64)
        if values.shape not in ((), (n,)):
            raise InvalidValue(f"{what}: one factor, {n} factors or {{number: factor}}, got {given!r}")
        values = np.broadcast_to(values, (n,)).copy()
    if not np.all(np.isfinite(values)) or np.any(values < 0.0):
        raise InvalidValue(f"{what}: factors must be finite and not negative, got {given!r}")
    return values


def _shifts(given: ArrayLike | Mapping[int, Sequence[float]], n: int) -> Array:
    if isinstance(given, Mapping):
        shifts = np.zeros((n, 3))
        for number, shift in given.items():
            if number not in range(1, n + 1) or np.shape(shift) != (3,):
                raise InvalidValue(f"com: {{link 1 to {n}: (x, y, z)}}, got {number!r}: {shift!r}")
            shifts[number - 1] = shift
    else:
        array = np.asarray(given, dtype=np.float64)
        if array.shape not in ((), (3,), (n, 3)) or (array.shape == () and array != 0.0):
            raise InvalidValue(f"com: shifts of shape (3,) or ({n}, 3), or {{link: (x, y, z)}}, got {given!r}")
        shifts = np.broadcast_to(array, (n, 3)).copy()
    if not np.all(np.isfinite(shifts)):
        raise InvalidValue(f"com: shifts must be finite [m], got {given!r}")
    return shifts


def _link(link: Link, mass: float, inertia: float, shift: Array) -> Link:
    changed = Link(link.name, link.mass * mass, _frozen(link.com + shift), _frozen(link.inertia * (mass * inertia)))
    check_body(link.name, changed.mass, changed.com, changed.inertia, point_mass=not np.any(link.inertia))
    return changed


def _lengthened(model: Model, factors: Array) -> Model:
    if np.all(factors == 1.0):
        return model
    joints = tuple(_joint(joint, float(factor)) for joint, factor in zip(model.joints, factors, strict=True))
    dh = model.dh
    if dh is not None:
        dh = DH(_frozen(dh.a * factors), _frozen(dh.d * factors), dh.alpha)
    return dataclasses.replace(model, joints=joints, dh=dh)


def _joint(joint: Joint, factor: float) -> Joint:
    scale = np.ones((4, 4))
    scale[:3, 3] = factor
    return dataclasses.replace(
        joint,
        T_parent_joint=_frozen(joint.T_parent_joint * scale),
        T_joint_link=_frozen(joint.T_joint_link * scale),
    )


def _frozen(array: Array) -> Array:
    array = np.array(array)
    array.flags.writeable = False
    return array
