"""One of our blocks against the library: the arm is built anew from the file's numbers and asked the same questions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.apps.fmu.build import CompilerMissing
from tangere.apps.fmu.check_block import WARNING, begin
from tangere.apps.fmu.driver import DriverFailed, Talk
from tangere.apps.fmu.dynamic_blocks import PERIOD
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.opened import Finding, Opened, Variable
from tangere.dynamics.friction import JointFriction
from tangere.kinematics.rotation import matrix_from_rotation_vector
from tangere.model.assemble import dh_transform
from tangere.model.model import DH, Payload
from tangere.robots import Robot, robot
from tangere.types import Array

PART = "answers"
_ALPHA = (90.0, 0.0, 0.0, 90.0, -90.0, 0.0)  # [deg] of the DH table of every UR


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


class Asked:
    """An instance by the names of its groups, the library's arm to compare with, and the largest difference seen."""

    def __init__(self, fmu: Opened, prefix: str = "") -> None:
        self.fmu, self.prefix, self.groups = fmu, prefix, groups_of(fmu)
        self.robot, self.friction = robot_of(fmu)
        self.rng = np.random.default_rng(1)
        self.talk = Talk(fmu)  # last: a child process, which close() ends
        self.worst, self.time = 0.0, 0.0
        problem = begin(self.talk)
        if problem:
            self.talk.close()
            raise DriverFailed(problem)

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.talk.close()

    def get(self, name: str) -> Array:
        """A group, flat."""
        variables = self.groups[self.prefix + name]
        status, got = self.talk.get(variables[0].kind, (v.reference for v in variables))
        if status > WARNING:
            raise DriverFailed(f"{name} cannot be read: {self.talk.messages[-1][2] if self.talk.messages else ''}")
        return np.array(got)

    def set(self, **given: Any) -> None:
        """Groups by name."""
        for name, values in given.items():
            variables = self.groups[self.prefix + name]
            if self.talk.set(variables[0].kind, (v.reference for v in variables), np.ravel(values)) > WARNING:
                raise DriverFailed(f"{name} cannot be set: {self.talk.messages[-1][2] if self.talk.messages else ''}")

    def start(self, name: str) -> Array:
        """Start values of a parameter; parameters of the whole block have no prefix."""
        own = self.prefix + name
        return start_of(self.groups[own if own in self.groups else name])

    def step(self) -> None:
        """One period."""
        if self.talk.ask("step", self.time, PERIOD)[0] > WARNING:
            raise DriverFailed(f"a step was refused: {self.talk.messages[-1][2] if self.talk.messages else ''}")
        self.time += PERIOD

    def compare(self, name: str, want: Any) -> None:
        """Keeps the largest |got - want| / max(1, |want|)."""
        wanted = np.ravel(np.asarray(want, dtype=np.float64))
        off = np.abs(self.get(name) - wanted) / np.maximum(1.0, np.abs(wanted))
        self.worst = max(self.worst, float(off.max()) if np.all(np.isfinite(off)) else np.inf)


def check_answers(fmu: Opened) -> list[Finding]:
    """The library's answers against the block's; nothing for FMUs of others."""
    kind = KINDS.get(fmu.kind or "")
    if kind is None or not fmu.library.is_file():
        return []
    found = []
    for answer in kind.answers:
        what = answer.what
        try:
            with Asked(fmu, answer.prefix) as block:
                text = answer.ask(block)
                worst = block.worst
        except CompilerMissing as error:
            return [Finding(PART, what, "not checked", str(error))]
        except (DriverFailed, KeyError, ValueError) as error:
            found.append(Finding(PART, what, "bad", f"{type(error).__name__}: {error}"))
            continue
        if text.startswith("not checked: "):
            found.append(Finding(PART, what, "not checked", text.removeprefix("not checked: ")))
            continue
        outcome = "good" if worst <= answer.tolerance else "bad"
        found.append(Finding(PART, what, outcome, f"{text}; within {worst:.1e} (allowed {answer.tolerance:g})"))  # type: ignore[arg-type]
    return found
