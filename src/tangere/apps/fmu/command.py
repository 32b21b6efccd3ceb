"""The command fmu: an arm, or a part of its software, as an FMI 2.0 block."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tangere.apps.fmu import bench, catalogue, check  # light: what is heavy is imported when they run
from tangere.apps.fmu.kinds import KINDS
from tangere.errors import InvalidValue
from tangere.options import add_options, group_from
from tangere.report.terminal import Line, table
from tangere.settings import setting, word

if TYPE_CHECKING:
    from tangere.dynamics.friction import JointFriction
    from tangere.robots import Robot

EXAMPLES = """examples:
  tangere fmu fk --robot ur10e                        UR10e_FK.fmu
  tangere fmu dynamics --robot ur10e --drives full    with rotor inertia and friction of the drives
  tangere fmu controller --payload 2,0,0,0.05 --tool 0,0,0.1
  tangere fmu arm --robot ur16e --out blocks/ur16e.fmu
  tangere fmu all                                     UR10e.fmu: kinematics, inverse kinematics, dynamics"""


@dataclass(frozen=True)
class BlockSettings:
    """The arm of a block, in SI."""

    robot: str = word("ur10e", "the arm", metavar="NAME|FILE")
    parameters: str | None = word(None, "another parameter set of the arm, by name or as a file", metavar="SET")
    payload: tuple[float, ...] | None = setting(
        None, "kg,m,m,m", "mass at the flange [kg], and its centre [m]", size=(1, 4), metavar="KG[,X,Y,Z]"
    )
    tool: tuple[float, ...] | None = setting(
        None, "m,m,m,rad,rad,rad", "tcp in the flange frame [m, deg]", typed="m,m,m,deg,deg,deg", size=(3, 6),
        metavar="X,Y,Z[,RX,RY,RZ]",
    )  # fmt: skip
    gravity: str = word("table", "mounting", ("table", "wall", "ceiling"))
    drives: str = word(
        "none", "what of the drives is in the start values: nothing, rotor inertia, or friction as well",
        ("none", "rotor", "full"),
    )  # fmt: skip
    start: tuple[float, ...] | None = setting(
        None, "rad", "joints at the start, within limits [deg]", typed="deg", size=(6,), metavar="Q1,...,Q6"
    )


def add(commands: Any) -> None:
    """Add the command and its kinds to the parser's."""
    p = commands.add_parser(
        "fmu",
        help="write an FMI 2.0 block of an arm: kinematics, dynamics, controller, observer",
        description="Write a block (FMU) after FMI 2.0, for model exchange and co-simulation: plain C with its\n"
        "sources, needs nothing on the host. The arm's numbers are its parameters.",
        epilog=EXAMPLES,
    )
    kinds = p.add_subparsers(title="kinds", metavar="KIND", dest="kind", required=True)
    for name, kind in KINDS.items():
        text = f"{name}: {kind.summary}."
        _options(kinds.add_parser(name, help=kind.summary, description=text))
    for name, module in (("catalogue", catalogue), ("check", check), ("bench", bench)):
        other = kinds.add_parser(name, help=module.TITLE, description=f"{module.TITLE}.")
        module.add(other)
        other.set_defaults(run=module.main)


def _options(p: argparse.ArgumentParser) -> None:
    add_options(p, BlockSettings)
    p.add_argument(
        "--out", metavar="FILE|DIR",
        help="where to: NAME.fmu, or a folder that exists or ends in / (default: UR10e_FK.fmu and the like, here)",
    )  # fmt: skip
    p.set_defaults(run=write)


def robot_of(told: BlockSettings) -> tuple[Robot, JointFriction | None]:
    """The arm that the options describe, and its friction."""
    import numpy as np

    from tangere.dynamics.friction import JointFriction
    from tangere.robots import Robot, robot

    load = told.payload
    payload = None if load is None else load[0] if len(load) == 1 else (load[0], load[1:])
    made = robot(told.robot, parameters=told.parameters, payload=payload, tool=told.tool, gravity=told.gravity)
    if told.drives == "none":
        return made, None
    drives = made.drives
    known = [drives.rotor_inertia] if told.drives == "rotor" else [drives.rotor_inertia, drives.coulomb]
    if not np.all(np.isfinite(known)):
        raise InvalidValue(
            f"the drives of {made.name} are not known: leave --drives out, and set rotor_inertia and friction of the "
            f"block where it is used"
        )
    return Robot(made.model, True), None if told.drives == "rotor" else JointFriction.of(drives)


def write(arguments: argparse.Namespace) -> int:
    """Write one FMU."""
    from tangere.apps.fmu.package import write_fmu
    from tangere.apps.fmu.variables import units_of

    told = group_from(BlockSettings, arguments)
    made, friction = robot_of(told)
    line = Line()
    try:
        done = write_fmu(arguments.kind, made, arguments.out, friction=friction, q_start=told.start, tell=line)
    finally:
        line.end()
    rows = []
    for p in done.table.with_causality("input", "output"):
        shape = "x".join(map(str, p.group.shape)) or "1"
        rows.append((p.group.causality, p.group.name, shape, units_of(p.group), p.group.text))
    print("\n".join(table(rows, ("", "name", "size", "unit", "what"), "llrll", indent=0)))
    print(f"\n{done.path}: {done.size / 1000:.0f} kB, {' and '.join(done.platforms)}, model exchange and co-simulation")
    if "win64" not in done.platforms:
        print("no win64 binary: x86_64-w64-mingw32-gcc is not installed (Debian: gcc-mingw-w64-x86-64)")
    return 0
