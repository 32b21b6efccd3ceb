"""The eight kinds of FMU by name."""

from __future__ import annotations

from dataclasses import replace

from tangere.apps.fmu import dynamic_blocks, kinematic_blocks, observer_blocks
from tangere.apps.fmu.dynamic_blocks import MASS, PLANT
from tangere.apps.fmu.kinematic_blocks import FK, IK, POSE
from tangere.apps.fmu.part import ArmNumbers, Kind, arm_parameters
from tangere.apps.fmu.variables import Group
from tangere.errors import UnknownName


def _named(prefix: str, groups: list[Group]) -> list[Group]:
    """The groups with `prefix.` before their names."""

    def name(g: Group) -> str:
        return f"der({prefix}.{g.name[4:-1]})" if g.name.startswith("der(") else f"{prefix}.{g.name}"

    return [replace(g, name=name(g)) for g in groups]


def _all(arm: ArmNumbers) -> list[Group]:
    forward = kinematic_blocks.forward(arm)
    return [
        *arm_parameters(arm), forward[0],
        *_named("fk", forward[1:]), *_named("ik", kinematic_blocks.inverse(arm)),
        *_named("dynamics", dynamic_blocks.plant(arm, "PL_tau")),
    ]  # fmt: skip


_SINGLE: dict[str, Kind] = {
    k.name: k for k in (*kinematic_blocks.KINDS, *dynamic_blocks.KINDS, *observer_blocks.KINDS)
}
_ALL = Kind(
    name="all",
    suffix="",
    title="Forward kinematics, inverse kinematics and dynamics",
    summary="forward kinematics, inverse kinematics and dynamics in one file",
    text="Three blocks in one file: fk, ik and dynamics, each with its own inputs and outputs.",
    colour=(255, 255, 255),
    parts=(MASS, POSE, FK, IK, PLANT),
    groups=_all,
    answers=tuple(replace(a, prefix=f"{name}.") for name in ("fk", "ik", "dynamics") for a in _SINGLE[name].answers),
)  # fmt: skip
KINDS: dict[str, Kind] = _SINGLE | {_ALL.name: _ALL}


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    if name not in KINDS:
        raise UnknownName(f"unknown kind of FMU {name!r}; known: {', '.join(KINDS)}")
    return KINDS[name]
