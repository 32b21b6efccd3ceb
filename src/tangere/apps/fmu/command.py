"""The command fmu: an arm, or a part of its software, as an FMI 2.0 block."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tangere.apps.fmu import bench  # light: what is heavy is imported when it runs
from tangere.apps.fmu.build import NAMES, ZIG, Platform, platforms_of
from tangere.apps.fmu.kinds import KINDS
from tangere.errors import InvalidValue, TangereError
from tangere.options import add_options, group_from
from tangere.report.terminal import Bar, Line, paint, table, wants_colour
from tangere.settings import setting, word

if TYPE_CHECKING:
    from tangere.dynamics.friction import JointFriction
    from tangere.robots import Robot
    from tangere.types import Array

EXAMPLES = """examples:
  tangere fmu fk --robot ur10e                        UR10e_FK.fmu
  tangere fmu dynamics --robot ur10e --drives full    with rotor inertia and friction of the drives
  tangere fmu controller --payload 2,0,0,0.05 --tool 0,0,0.1
  tangere fmu arm --robot ur16e --out blocks/ur16e.fmu
  tangere fmu dynamics --robot my_arm.urdf            any serial arm: URDF, TOML, scara, pendulum, planar3r
  tangere fmu all                                     UR10e.fmu: kinematics, inverse kinematics, dynamics"""

CATALOGUE = """examples:
  tangere fmu catalogue --out blocks                       all kinds for all arms
  tangere fmu catalogue --robot ur10e --robot ur16e        for two arms
  tangere fmu catalogue --kind fk --kind ik --out blocks   two kinds for all arms

Open index.html in the folder. The first time the binaries are compiled (half a minute), later it takes seconds."""
CHECK = """examples:
  tangere fmu check UR10e_FK.fmu
  tangere fmu check catalogue/*.fmu           a line each, and what is wrong
  tangere fmu check another_tools.fmu         what can be said about an FMU of others

This runs the code that is in the file: in a child process with limits of time and memory, but as you, and not behind
walls. Check files of strangers in a container. Binaries for Linux and, where wine is installed, for Windows are run,
others are not. Exit code 1 where anything is wrong."""
_MARKS = {"good": ("ok", "good"), "bad": ("WRONG", "bad"), "not checked": ("--", "dim"), "note": ("note", "dim")}


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
        None, "deg", "joints at the start, within limits [deg, m where one slides]", size=(), metavar="Q1,...,Qn"
    )


def add(commands: Any) -> None:
    """Add the command and its kinds to the parser's."""
    p = commands.add_parser(
        "fmu",
        help="write an FMI block of an arm: kinematics, dynamics, controller, observer",
        description="Write a block (FMU) after FMI 2.0 or 3.0, for model exchange and co-simulation: plain C with\n"
        "its sources, needs nothing on the host. The arm's numbers are its parameters.",
        epilog=EXAMPLES,
    )
    kinds = p.add_subparsers(title="kinds", metavar="KIND", dest="kind", required=True)
    for name, kind in KINDS.items():
        block = kinds.add_parser(name, help=kind.summary, description=f"{name}: {kind.summary}.")
        add_options(block, BlockSettings)
        block.add_argument(
            "--out", metavar="FILE|DIR",
            help="where to: NAME.fmu, or a folder that exists or ends in / (default: UR10e_FK.fmu and the like, here)",
        )  # fmt: skip
        block.add_argument(
            "--fmi", type=int, choices=[2, 3], default=2,
            help="version of the standard: 2 (2.0, read by every tool) or 3 (3.0, arrays as arrays) (default: 2)",
        )  # fmt: skip
        _platforms(block.add_argument)
        block.set_defaults(run=write)

    whole = kinds.add_parser(
        "system", help="controller, arm and observer, connected, as one SSP package",
        description="Write three blocks (FMI 2.0) and how they are connected as one package after SSP 1.0.\n"
        "Inputs: q_des, qd_des, qdd_des, tau_ext (a push); outputs: q, qd, tau, residual, contact, contact_joint.\n"
        "Simulators of SSP start every connector at zero, so the arm begins at zero unless --start says otherwise.",
        epilog="examples:\n  tangere fmu system --robot ur10e --out UR10e.ssp\n"
        "  python -c \"from fmpy.ssp.simulation import simulate_ssp; simulate_ssp('UR10e.ssp', step_size=1e-3)\"",
    )  # fmt: skip
    add_options(whole, BlockSettings)
    whole.add_argument("--out", metavar="FILE", help="where to: NAME.ssp (default: UR10e.ssp and the like, here)")
    _platforms(whole.add_argument)
    whole.set_defaults(run=write_package)

    def other(name: str, title: str, examples: str, run: Callable[[argparse.Namespace], int]) -> Any:
        parser = kinds.add_parser(name, help=title, description=f"{title}.", epilog=examples)
        parser.set_defaults(run=run)
        return parser.add_argument

    add = other("catalogue", "write every kind for every arm, with an index page", CATALOGUE, write_all)
    add("--out", default="fmu-catalogue", metavar="DIR", help="where to (default: fmu-catalogue)")
    add("--robot", action="append", metavar="NAME", help="an arm; may be repeated (default: all UR arms)")
    add("--kind", action="append", choices=list(KINDS), metavar="KIND", help="a kind; may be repeated")
    _platforms(add)
    add = other("check", "examine an FMU: checkers, and its answers against the library's", CHECK, check)
    add("files", nargs="+", metavar="FILE", help="an FMU, of ours or of others")
    add("--quick", action="store_true", help="without fmpy and fmutool: what is done here only")
    add = other("bench", bench.TITLE, bench.EXAMPLES, bench.main)
    add("--robot", default="ur10e", metavar="NAME", help="the arm (default: ur10e)")
    add("--steps", type=int, default=100_000, metavar="N", help="steps for memory (default: 100000)")


def _platforms(add: Callable[..., Any]) -> None:
    add(
        "--platforms", metavar="NAME[,NAME]", type=lambda text: text.split(","),
        help=f"binaries for {', '.join(NAMES)}, or all (default: linux64, and win64 where x86_64-w64-mingw32-gcc is "
        f"installed; darwin64 and aarch64-linux need {ZIG.split()[-1]})",
    )  # fmt: skip


def _wanted(arguments: argparse.Namespace) -> tuple[Platform, ...] | None:
    return None if arguments.platforms is None else platforms_of(arguments.platforms)


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


def _start(told: BlockSettings, made: Robot) -> Array | None:
    from tangere.planning.posture import posture

    return None if told.start is None else posture(told.start, made, "start")


def write(arguments: argparse.Namespace) -> int:
    """Write one FMU."""
    from tangere.apps.fmu.package import write_fmu
    from tangere.apps.fmu.variables import units_of

    told = group_from(BlockSettings, arguments)
    made, friction = robot_of(told)
    with Line() as line:
        more: dict[str, Any] = {"friction": friction, "q_start": _start(told, made), "fmi": arguments.fmi,
                                "platforms": _wanted(arguments)}  # fmt: skip
        done = write_fmu(arguments.kind, made, arguments.out, tell=line, **more)
    rows = []
    for p in done.table.with_causality("input", "output"):
        shape = "x".join(map(str, p.group.shape)) or "1"
        rows.append((p.group.causality, p.group.name, shape, units_of(p.group), p.group.text))
    print("\n".join(table(rows, ("", "name", "size", "unit", "what"), "llrll", indent=0)))
    print(f"\n{done.path}: {done.size / 1000:.0f} kB, {_listed(done.platforms)}, model exchange and co-simulation")
    if arguments.platforms is None:
        _missing(done.platforms, "binary")
    return 0


def write_package(arguments: argparse.Namespace) -> int:
    """Write a system of blocks."""
    from tangere.apps.fmu.package import BLOCKS, write_system

    told = group_from(BlockSettings, arguments)
    made, friction = robot_of(told)
    with Line() as line:
        more: dict[str, Any] = {"friction": friction, "q_start": _start(told, made), "platforms": _wanted(arguments)}
        path, wires = write_system(made, arguments.out, tell=line, **more)
    size = path.stat().st_size / 1000
    print(f"{path}: {size:.0f} kB, {', '.join(BLOCKS)} with {wires} connections, SSP 1.0; step it by 1 ms")
    return 0


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _missing(platforms: Collection[str], what: str) -> None:
    if not {"win64", "x86_64-windows"} & set(platforms):
        print(f"no win64 {what}: x86_64-w64-mingw32-gcc is not installed (Debian: gcc-mingw-w64-x86-64)")


def write_all(arguments: argparse.Namespace) -> int:
    """Write the catalogue and say where it is."""
    from tangere.apps.fmu.package import write_catalogue

    begin = time.perf_counter()
    with Bar() as bar:
        page, written = write_catalogue(
            arguments.out, arguments.robot, arguments.kind, platforms=_wanted(arguments),
            tell=lambda done, total, what: bar(f"{done} of {total}  {what}", done / total),
        )  # fmt: skip
    platforms = sorted({p for w in written for p in w.platforms})
    size = sum(w.size for w in written) / 1e6
    took = time.perf_counter() - begin
    print(f"{len(written)} FMUs, {size:.1f} MB, {_listed(platforms)}, in {took:.1f} s")
    if arguments.platforms is None:
        _missing(platforms, "binaries")
    print(page)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Check the files and print."""
    from tangere.apps.fmu.check import check_fmu

    colour, wrong = wants_colour(), 0
    doing = Line()
    for file in arguments.files:
        if not Path(file).exists():  # no verdict about an FMU
            print(f"{file}: there is no such file, so nothing was checked")
            wrong += 1
            continue
        try:
            found = check_fmu(file, quick=arguments.quick, tell=doing)
        except TangereError as error:
            doing.end()
            print(f"{paint('WRONG', 'bad', colour)}  {error}")
            wrong += 1
            continue
        doing.end()
        bad = [f for f in found if f.outcome == "bad"]
        absent = [f for f in found if f.outcome == "not checked"]
        wrong += bool(bad)
        verdict = f"{len(bad)} of {len(found)} checks failed" if bad else f"{len(found)} checks, nothing wrong"
        verdict += f", {len(absent)} not done" if absent else ""
        if len(absent) == len(found):
            verdict = f"not checked: {found[0].text}"
        print(f"{paint(Path(file).name, 'heading', colour)}: {verdict}")
        listed = found if len(arguments.files) == 1 else [*bad, *absent]
        rows = [[_MARKS[f.outcome][0], f.part, f.what, f.text] for f in listed]
        for line, f in zip(table(rows), listed, strict=True):
            print(paint(line, _MARKS[f.outcome][1], colour) if f.outcome != "good" else line)
    return 1 if wrong else 0
