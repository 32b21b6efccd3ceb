"""The command fmu: an arm, or a part of its software, as an FMI 2.0 block."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tangere.apps.fmu import bench, catalogue, check  # light: what is heavy is imported when they run
from tangere.apps.fmu.kinds import KINDS
from tangere.errors import InvalidValue
from tangere.report.progress import Line
from tangere.report.terminal import table

if TYPE_CHECKING:
    from tangere.dynamics.friction import JointFriction
    from tangere.robots import Robot

EXAMPLES = """examples:
  tangere fmu fk --robot ur10e                        UR10e_FK.fmu
  tangere fmu dynamics --robot ur10e --drives full    with rotor inertia and friction of the drives
  tangere fmu controller --payload 2,0,0,0.05 --tool 0,0,0.1
  tangere fmu arm --robot ur16e --out blocks/ur16e.fmu
  tangere fmu all                                     UR10e.fmu: kinematics, inverse kinematics, dynamics"""


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
    p.add_argument("--robot", default="ur10e", metavar="NAME|FILE", help="the arm (default: ur10e)")
    p.add_argument("--parameters", metavar="SET", help="another parameter set of the arm, by name or as a file")
    p.add_argument("--payload", type=_numbers, metavar="KG[,X,Y,Z]", help="mass at the flange, and its centre [m]")
    p.add_argument("--tool", type=_numbers, metavar="X,Y,Z[,RX,RY,RZ]", help="tcp in the flange frame [m, deg]")
    p.add_argument("--gravity", choices=("table", "wall", "ceiling"), default="table", help="mounting (default: table)")
    p.add_argument(
        "--drives", choices=("none", "rotor", "full"), default="none",
        help="what of the drives is in the start values: nothing, rotor inertia, or friction as well (default: none)",
    )  # fmt: skip
    p.add_argument("--start", type=_numbers, metavar="Q1,...,Q6", help="joints at the start, within limits [deg]")
    p.add_argument(
        "--out", metavar="FILE|DIR",
        help="where to: NAME.fmu, or a folder that exists or ends in / (default: UR10e_FK.fmu and the like, here)",
    )  # fmt: skip
    p.set_defaults(run=write)


def _numbers(text: str) -> list[float]:
    try:
        values = [float(word) for word in text.replace("/", ",").split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers, as in 0,0,0.1") from None
    if not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"{text!r} holds a number that is not finite")
    return values


def _sized(values: Sequence[float] | None, name: str, sizes: tuple[int, ...]) -> list[float] | None:
    if values is not None and len(values) not in sizes:
        raise InvalidValue(f"--{name}: {' or '.join(map(str, sizes))} numbers, got {len(values)}")
    return None if values is None else list(values)


def robot_of(arguments: argparse.Namespace) -> tuple[Robot, JointFriction | None]:
    """The arm that the options describe, and its friction."""
    import numpy as np

    from tangere.dynamics.friction import JointFriction
    from tangere.robots import Robot, robot

    tool = _sized(arguments.tool, "tool", (3, 6))
    if tool is not None and len(tool) == 6:
        tool[3:] = [math.radians(x) for x in tool[3:]]
    load = _sized(arguments.payload, "payload", (1, 4))
    payload = None if load is None else load[0] if len(load) == 1 else (load[0], load[1:])
    made = robot(
        arguments.robot, parameters=arguments.parameters, payload=payload, tool=tool, gravity=arguments.gravity
    )
    if arguments.drives == "none":
        return made, None
    drives = made.drives
    known = [drives.rotor_inertia] if arguments.drives == "rotor" else [drives.rotor_inertia, drives.coulomb]
    if not np.all(np.isfinite(known)):
        raise InvalidValue(
            f"the drives of {made.name} are not known: leave --drives out, and set rotor_inertia and friction of the "
            f"block where it is used"
        )
    return Robot(made.model, True), None if arguments.drives == "rotor" else JointFriction.of(drives)


def write(arguments: argparse.Namespace) -> int:
    """Write one FMU."""
    from tangere.apps.fmu.package import write_fmu
    from tangere.apps.fmu.variables import units_of

    made, friction = robot_of(arguments)
    start = _sized(arguments.start, "start", (6,))
    q_start = None if start is None else [math.radians(x) for x in start]
    line = Line()
    try:
        done = write_fmu(arguments.kind, made, arguments.out, friction=friction, q_start=q_start, tell=line)
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
