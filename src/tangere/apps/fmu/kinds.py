"""The eight kinds of FMU: which parts each is made of, and how it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tangere.apps.fmu import parts
from tangere.apps.fmu.numbers import Arm
from tangere.apps.fmu.variables import Group, Table
from tangere.errors import UnknownName


@dataclass(frozen=True)
class Kind:
    """A kind of block: title, ending of its name, parts (macros of the C code), and its variables for an arm."""

    name: str
    suffix: str  # UR10e_FK
    title: str
    text: str
    parts: tuple[str, ...]
    groups: Callable[[Arm], list[Group]]
    directional: bool = True  # whether anything in it is smooth
    memory: bool = True  # whether a completed step changes anything

    def table(self, arm: Arm) -> Table:
        """All variables, placed."""
        return Table(self.groups(arm))

    def identifier(self, arm: Arm) -> str:
        """Model identifier and file name without ending."""
        return f"{arm.name}_{self.suffix}" if self.suffix else arm.name


def _named(prefix: str, groups: list[Group]) -> list[Group]:
    """The groups with `prefix.` before their names."""

    def name(g: Group) -> str:
        return f"der({prefix}.{g.name[4:-1]})" if g.name.startswith("der(") else f"{prefix}.{g.name}"

    return [replace(g, name=name(g)) for g in groups]


def _arm(arm: Arm) -> list[Group]:
    torque = Group(
        "CT_tau", "tau", (6,), "Real", "output", "discrete", "joint torques of the controller, gravity included",
        "Torque", nominal=10.0, depends=("CT_q_des", "CT_qd_des", "CT_qdd_des", "PL_q", "PL_qd"),
        initially=(*parts.DYNAMIC, *parts.FRICTION, "KP", "KV"),
    )  # fmt: skip
    return [
        *parts.dynamics(arm), *parts.friction(arm), *parts.gains(), *parts.detection(), parts.quaternion_sign(),
        *parts.desired(arm), *parts.plant(arm, "CT_tau"), torque, *parts.touch(depends=("PL_q", "PL_qd")),
    ]  # fmt: skip


def _all(arm: Arm) -> list[Group]:
    forward = parts.forward(arm)
    return [
        *parts.dynamics(arm), *parts.friction(arm), forward[0],
        *_named("fk", forward[1:]), *_named("ik", parts.inverse(arm)), *_named("dynamics", parts.plant(arm, "PL_tau")),
    ]  # fmt: skip


KINDS: dict[str, Kind] = {
    k.name: k
    for k in (
        Kind(
            "fk", "FK", "Forward kinematics",
            "Pose of the tool and geometric Jacobian from the joint positions.",
            ("POSE", "FK"), lambda arm: [*parts.kinematics(arm), *parts.forward(arm)],
        ),
        Kind(
            "ik", "IK", "Inverse kinematics",
            "All eight closed-form solutions of a pose, and the one nearest to the step before.",
            ("IK",), lambda arm: [*parts.kinematics(arm), *parts.inverse(arm)],
        ),
        Kind(
            "dynamics", "Dynamics", "Forward dynamics",
            "The moving arm: joint torques and external forces in, motion, energy and pose of the tool out.",
            ("MASS", "POSE", "PLANT"),
            lambda arm: [
                *parts.dynamics(arm), *parts.friction(arm), parts.quaternion_sign(), *parts.plant(arm, "PL_tau"),
            ],
        ),
        Kind(
            "inverse-dynamics", "InverseDynamics", "Inverse dynamics",
            "Joint torques that a motion needs.",
            ("MASS", "INVERSE"),
            lambda arm: [*parts.dynamics(arm), *parts.friction(arm), *parts.inverse_dynamics(arm)], memory=False,
        ),
        Kind(
            "controller", "Controller", "Computed-torque controller",
            "Joint torques that make the arm follow a reference: inverse dynamics with a PD per joint.",
            ("MASS", "CONTROL"),
            lambda arm: [*parts.dynamics(arm), *parts.friction(arm), *parts.controller(arm)], memory=False,
        ),
        Kind(
            "observer", "Observer", "Momentum observer",
            "External joint torques from applied torques and motion, and whether something touches the arm.",
            ("MASS", "OBSERVER"),
            lambda arm: [*parts.dynamics(arm), *parts.friction(arm), *parts.observer(arm)], directional=False,
        ),
        Kind(
            "arm", "Arm", "Arm with controller and observer",
            "The moving arm under computed torque, with the momentum observer: reference and pushes in.",
            ("MASS", "POSE", "PLANT", "CONTROL", "OBSERVER"), _arm,
        ),
        Kind(
            "all", "", "Forward kinematics, inverse kinematics and dynamics",
            "Three blocks in one file: fk, ik and dynamics, each with its own inputs and outputs.",
            ("MASS", "POSE", "FK", "IK", "PLANT"), _all,
        ),
    )
}  # fmt: skip


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    if name not in KINDS:
        raise UnknownName(f"unknown kind of FMU {name!r}; known: {', '.join(KINDS)}")
    return KINDS[name]
