"""All checks of an FMU, and our blocks against the library.

For the last, the arm is built anew from the file's numbers and asked the same questions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tangere.apps.fmu.build import CompilerMissing
from tangere.apps.fmu.check_block import check_block
from tangere.apps.fmu.check_file import check_file, check_tools
from tangere.apps.fmu.driver import WARNING, DriverFailed, Talk, deadline
from tangere.apps.fmu.dynamic_blocks import PERIOD
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.opened import Finding, Opened, Outcome, Variable, opened
from tangere.dynamics.friction import JointFriction
from tangere.kinematics.rotation import matrix_from_rotation_vector
from tangere.model.assemble import dh_transform
from tangere.model.frames import transform
from tangere.model.inertia import inertia_matrix
from tangere.model.model import DH, Drives, Model, Payload
from tangere.robots import Robot, robot
from tangere.types import Array

PART = "answers"
_ALPHA = (90.0, 0.0, 0.0, 90.0, -90.0, 0.0)  # [deg] of the DH table of every UR


def start_of(variables: list[Variable]) -> Array:
    """Start values of a group."""
    return np.array([v.number for v in variables])


def _frame(six: Array) -> Array:
    return transform(matrix_from_rotation_vector(six[3:]), six[:3])


def _geometry(fmu: Opened, given: dict[str, Array]) -> Model:
    """A model with the joints of the file; of everything else only the shape is meant."""
    base = robot("ur10e").model
    if "arm.dh" not in given:
        n = len(given["arm.joints.position"]) // 3
        parts = [
            np.hstack([given[f"{name}.{what}"].reshape(n, 3) for what in ("position", "rotation")])
            for name in ("arm.joints", "arm.links")
        ]
        q = next(fmu.groups[name] for name in ("q", "q_start", "q_des") if name in fmu.groups)
        kinds = ["revolute" if v.attributes.get("declaredType") == "Angle" else "prismatic" for v in q]
        joints = tuple(
            replace(base.joints[0], kind=kind, T_parent_joint=_frame(before), T_joint_link=_frame(after), q_min=-np.inf,
                    q_max=np.inf)
            for kind, before, after in zip(kinds, *parts, strict=True)
        )  # fmt: skip
        nan = np.full(n, np.nan)
        return replace(base, name="of the file", joints=joints, links=(base.links[0],) * n, dh=None,
                       drives=Drives(nan, nan, nan, nan))  # fmt: skip
    d1, a2, a3, d4, d5, d6 = given["arm.dh"]
    a, d = np.array([0.0, a2, a3, 0.0, 0.0, 0.0]), np.array([d1, 0.0, 0.0, d4, d5, d6])
    low, high = given.get("q_min", np.full(6, -np.inf)), given.get("q_max", np.full(6, np.inf))
    turning = tuple(
        replace(j, T_joint_link=dh_transform(a[i], d[i], _ALPHA[i]), q_min=float(low[i]), q_max=float(high[i]))
        for i, j in enumerate(base.joints)
    )
    return replace(base, joints=turning, dh=DH(a, d, np.radians(_ALPHA)))


def robot_of(fmu: Opened) -> tuple[Robot, JointFriction | None]:
    """The robot whose numbers the file holds, by way of the library's own model, and its friction."""
    given = {name: start_of(variables) for name, variables in fmu.groups.items()}
    model = replace(_geometry(fmu, given), T_flange_tcp=_frame(given["tool"]), payload=None)
    n = model.dof
    if "arm.mass" not in given:
        return Robot(model), None
    links = tuple(
        replace(link, mass=float(mass), com=com, inertia=inertia_matrix(*inertia))
        for link, mass, com, inertia in zip(model.links, given["arm.mass"], given["arm.com"].reshape(n, 3),
                                            given["arm.inertia"].reshape(n, 6), strict=True)
    )  # fmt: skip
    load = Payload(float(given["payload.mass"][0]), given["payload.com"], inertia_matrix(*given["payload.inertia"]))
    model = replace(model, links=links, gravity=given["gravity"], payload=load if load.mass > 0.0 else None)
    friction = None
    if "friction.width" in given:
        width = float(given["friction.width"][0])
        friction = JointFriction(given["friction.coulomb"], given["friction.viscous"], width)
    return Robot(model, given["rotor_inertia"]), friction


class Asked:
    """An instance by the names of its groups, the library's arm to compare with, and the largest difference seen."""

    def __init__(self, fmu: Opened, talk: Talk, prefix: str = "") -> None:
        self.fmu, self.talk, self.prefix, self.groups = fmu, talk.begin(), prefix, fmu.groups
        self.robot, self.friction = robot_of(fmu)
        self.rng = np.random.default_rng(1)
        self.worst, self.time = 0.0, 0.0

    def _taken(self, status: int, what: str) -> None:
        if status > WARNING:
            raise DriverFailed(f"{what}: {self.talk.said}")

    def get(self, name: str) -> Array:
        """A group, flat."""
        variables = self.groups[self.prefix + name]
        status, got = self.talk.get(variables[0].kind, (v.reference for v in variables))
        self._taken(status, f"{name} cannot be read")
        return np.array(got)

    def set(self, **given: Any) -> None:
        """Groups by name."""
        for name, values in given.items():
            variables = self.groups[self.prefix + name]
            status = self.talk.set(variables[0].kind, (v.reference for v in variables), np.ravel(values))
            self._taken(status, f"{name} cannot be set")

    def start(self, name: str) -> Array:
        """Start values of a parameter; parameters of the whole block have no prefix."""
        own = self.prefix + name
        return start_of(self.groups[own if own in self.groups else name])

    def step(self) -> None:
        """One period."""
        self._taken(self.talk.ask("step", self.time, PERIOD)[0], "a step was refused")
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
        outcome: Outcome
        try:
            with Talk(fmu) as talk:
                block = Asked(fmu, talk, answer.prefix)
                text = answer.ask(block)
        except CompilerMissing as error:
            return [Finding(PART, answer.what, "not checked", str(error))]
        except (DriverFailed, KeyError, ValueError) as error:
            outcome, text = "bad", f"{type(error).__name__}: {error}"
        else:
            if text.startswith("not checked: "):
                outcome, text = "not checked", text.removeprefix("not checked: ")
            else:
                outcome = "good" if block.worst <= answer.tolerance else "bad"
                text += f"; within {block.worst:.1e} (allowed {answer.tolerance:g})"
        found.append(Finding(PART, answer.what, outcome, text))
    return found


def check_fmu(path: str | Path, *, quick: bool = False, tell: Callable[[str], None] | None = None) -> list[Finding]:
    """All findings about a file. Never raises for what an FMU does; NotAnFmu where there is none to look at."""
    found: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="fmu-") as folder, deadline():
        fmu = opened(path, Path(folder))
        if fmu.version not in ("2.0", "3.0"):  # checkers are asked about what they are made for only
            return check_file(fmu)
        checks = {"file": check_file, "checkers": check_tools, "block": check_block, "answers": check_answers}
        for name, check in checks.items():
            if not (quick and name == "checkers"):
                if tell is not None:
                    tell(f"{fmu.path.name}: {name}")
                found += check(fmu)
    return found
