"""A system of blocks as one file, after SSP 1.0: controller, arm and observer, connected, ready to be simulated."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from tangere import foreign
from tangere.apps.fmu.build import Platform, default_platforms
from tangere.apps.fmu.kinds import kind_of
from tangere.apps.fmu.package import fmu_bytes, folders, zipped
from tangere.apps.fmu.part import arm_of
from tangere.apps.fmu.variables import TYPES, UNITS, Group, Table
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.logs.files import replacing
from tangere.model.urdf_tree import element
from tangere.robots import Robot, as_robot

BLOCKS = {"controller": "controller", "arm": "dynamics", "observer": "observer"}  # element: kind, in order of stepping
# from (element, group) to (element, group); no element: a connector of the system
WIRES = (
    (("", "q_des"), ("controller", "q_des")),
    (("", "qd_des"), ("controller", "qd_des")),
    (("", "qdd_des"), ("controller", "qdd_des")),
    (("arm", "q"), ("controller", "q")),
    (("arm", "qd"), ("controller", "qd")),
    (("controller", "tau"), ("arm", "tau")),
    (("", "tau_ext"), ("arm", "tau_ext")),
    (("arm", "q"), ("observer", "q")),
    (("arm", "qd"), ("observer", "qd")),
    (("controller", "tau"), ("observer", "tau")),
    (("arm", "q"), ("", "q")),
    (("arm", "qd"), ("", "qd")),
    (("controller", "tau"), ("", "tau")),
    (("observer", "residual"), ("", "residual")),
    (("observer", "contact"), ("", "contact")),
    (("observer", "contact_joint"), ("", "contact_joint")),
)
_SSD = "http://ssp-standard.org/SSP1/SystemStructureDescription"
_SSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"


def _group(table: Table, name: str) -> Group:
    return next(p.group for p in table if p.group.name == name)


def _connectors(group: Group, kind: str) -> list[list[str]]:
    """One connector for each number of a group: SSP 1.0 knows no arrays."""
    out = []
    for i, name in enumerate(group.names()):
        declared = group.type_of(i)
        unit = {"unit": TYPES[declared].unit} if group.kind == "Real" and declared in TYPES else {}
        out.append(element("ssd:Connector", {"name": name, "kind": kind}, [element(f"ssc:{group.kind}", dict(unit))]))
    return out


def structure_text(tables: dict[str, Table], files: dict[str, str], name: str, version: str) -> str:
    """SystemStructure.ssd: the elements, their connectors, and what is connected with what."""
    outer: dict[tuple[str, str], list[list[str]]] = {}
    own: dict[str, dict[str, list[list[str]]]] = {block: {} for block in tables}
    wires: list[list[str]] = []
    units = set()
    for (source, left), (target, right) in WIRES:
        group = _group(tables[source or target], left if source else right)
        units |= {TYPES[group.type_of(i)].unit for i in range(group.size) if group.type_of(i) in TYPES}
        if source:
            own[source].setdefault(left, _connectors(_group(tables[source], left), "output"))
        else:
            outer.setdefault(("input", left), _connectors(group, "input"))
        if target:
            own[target].setdefault(right, _connectors(_group(tables[target], right), "input"))
        else:
            outer.setdefault(("output", right), _connectors(group, "output"))
        for one in group.names():
            ends = {"startElement": source or None, "startConnector": one, "endElement": target or None}
            wires.append(element("ssd:Connection", ends | {"endConnector": one}))
    blocks = [
        element(
            "ssd:Component",
            {"name": block, "type": "application/x-fmu-sharedlibrary", "source": f"resources/{files[block]}"},
            [element("ssd:Connectors", {}, [line for lines in own[block].values() for line in lines])],
        )
        for block in tables
    ]
    system = element("ssd:System", {"name": "system"}, [
        element("ssd:Connectors", {}, [line for lines in outer.values() for line in lines]),
        element("ssd:Elements", {}, blocks),
        element("ssd:Connections", {}, wires),
    ])  # fmt: skip
    listed = [
        element("ssc:Unit", {"name": unit}, [element("ssc:BaseUnit", {k: str(v) for k, v in UNITS[unit][0].items()})])
        for unit in UNITS if unit in units
    ]  # fmt: skip
    root: dict[str, str | None] = {
        "xmlns:ssd": _SSD, "xmlns:ssc": _SSC, "version": "1.0", "name": name, "generationTool": f"Tangere {version}",
    }  # fmt: skip
    children = [
        system, element("ssd:Units", {}, listed), element("ssd:DefaultExperiment", {"startTime": "0", "stopTime": "2"})
    ]  # fmt: skip
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *element("ssd:SystemStructureDescription", root, children)]
    return "\n".join(lines) + "\n"


def write_system(
    robot: Robot | str,
    out: str | os.PathLike[str] | None = None,
    *,
    friction: JointFriction | None = None,
    q_start: ArrayLike | None = None,
    platforms: Sequence[Platform] | None = None,
    tell: Callable[[str], None] | None = None,
) -> tuple[Path, int]:
    """Write controller, arm and observer of a robot as one SSP package; the file, and how many connections it has.

    The blocks are FMI 2.0, which every simulator of SSP takes. Inputs of the system: q_des, qd_des, qdd_des, tau_ext (a
    push); outputs: q, qd, tau, residual, contact, contact_joint. q_start (n,) [rad, m]: where arm and reference begin;
    default zero, since simulators start every connector at zero and the reference would otherwise jump.
    """
    from tangere import __version__

    made = as_robot(robot)
    arm = arm_of(made, friction, np.zeros(made.dof) if q_start is None else q_start)
    path = Path(f"{foreign.file_name(arm.name)}.ssp" if out is None else out)
    if path.suffix.lower() != ".ssp":
        raise InvalidValue(f"{path}: a system is written as *.ssp")
    wanted = default_platforms() if platforms is None else tuple(platforms)
    tables: dict[str, Table] = {}
    files: dict[str, str] = {}
    content: dict[str, bytes] = {}
    for block, kind_name in BLOCKS.items():
        kind = kind_of(kind_name)
        tables[block] = kind.table(arm)
        files[block] = f"{kind.identifier(arm)}.fmu"
        content[f"resources/{files[block]}"] = fmu_bytes(kind, arm, wanted, tell)[0]
    text = structure_text(tables, files, f"{arm.name}_system", __version__)
    content["SystemStructure.ssd"] = text.encode()
    with folders(path.parent), replacing(path) as temporary:
        temporary.write_bytes(zipped(content, "SystemStructure.ssd"))
    return path, text.count("<ssd:Connection ")
