"""The commands about URScript: script check, script run, script send, script emit, script bench."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.options import add_json, add_options, group_from, refuse_foreign, told
from tangere.rtde.consent import OPTION
from tangere.settings import count, setting

EXAMPLES = """examples:
  tangere script check program.script       every error with its line and column
  tangere script check program.script --polyscope 5.4.0
                                            also what that version does not have yet
  tangere script run program.script --robot ur10e --out out/mine
                                            a simulated arm does it: log, summary and report
  tangere script run program.script --push joint=2,torque=20,start=3,duration=2 --set friction=full
                                            the same with friction, and something pushes
  tangere script send program.script 127.0.0.1
                                            an arm does it, here a virtual one
  tangere script emit observer --robot ur5e --model model.toml --out observer.script
                                            touch inside the controller, without a computer
  tangere script bench                      what a frame of 2 ms costs"""


@dataclass(frozen=True)
class EmitSettings:
    """What a program that `script emit` writes may be told; each belongs to the laws in OWN."""

    gain: float | tuple[float, ...] | None = setting(
        None, "1/s", "observer: gain, one or six (default: 50)", size=(1, 6), lone=True, metavar="K"
    )
    threshold: float | tuple[float, ...] | None = setting(
        None, "Nm", "observer: what counts as felt, one or six", size=(1, 6), lone=True, metavar="NM"
    )
    set_output: int | None = count(None, "observer: digital output that is on while it feels", metavar="N")
    stiffness: float | tuple[float, ...] | None = setting(
        None, "Nm/rad", "impedance: one or six (default: 100/s2 times the inertia)", size=(1, 6), lone=True,
    )  # fmt: skip
    kp: float | tuple[float, ...] | None = setting(
        None, "1/s2", "computed-torque: one or six (default: 100)", size=(1, 6), lone=True
    )
    amplitude: float | tuple[float, ...] | None = setting(
        None, "rad", "computed-torque: of its motion, one or six (default: 0.1 rad)", size=(1, 6), lone=True
    )
    frequency: float | None = setting(None, "Hz", "computed-torque: of its motion (default: 0.25 Hz)")
    seconds: float | None = setting(None, "s", "impedance, computed-torque: until it ends by itself (default: 60 s)")


# settings of `emit` by the law that they belong to
OWN = {
    "observer": ("gain", "threshold", "set_output"),
    "impedance": ("stiffness", "seconds"),
    "computed-torque": ("kp", "amplitude", "frequency", "seconds"),
}


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "script",
        help="check, run, send and write URScript programs",
        description="Programs of Universal Robots arms: look for errors, run them on a simulated arm, send them to\n"
        "one, write those that bring observer and controllers into the arm's own controller.",
        epilog=EXAMPLES,
    )
    p.set_defaults(run=lambda arguments: p.print_help() or 2)
    kinds = p.add_subparsers(title="commands", metavar="COMMAND")

    one = kinds.add_parser(
        "check",
        help="errors of a program, with line and column",
        description="Read a program without running it: errors of its text, names and functions that do not exist,\n"
        "wrong arguments, and functions that a version of PolyScope does not have.\n"
        "Exit code 0: nothing wrong; 1: it would not run; 2: wrong usage, or a file that cannot be read.",
        epilog=EXAMPLES,
    )  # fmt: skip
    _add_program(one)
    one.add_argument("--json", action="store_true", help="a list of problems as JSON")
    one.set_defaults(run=check)

    from tangere.cli.run import add_run_options

    one = kinds.add_parser(
        "run",
        help="run a program on a simulated arm: log, summary and report into a folder",
        description="Run a program on a simulated arm, from a posture (--set q=...), and leave log.mcap, log.csv,\n"
        "manifest.json, summary.json and report.html in a folder: `tangere run script --set program=FILE` does the\n"
        "same, `tangere scenarios script` shows all settings. A program without end is run for `duration` (60 s).\n"
        "It has no network: socket_open answers False. Exit code 1 where the program fails.",
        epilog=EXAMPLES,
    )
    _add_program(one)
    add_run_options(one, "PROGRAM")
    one.set_defaults(run=run)

    one = kinds.add_parser(
        "send",
        help="let an arm run a program",
        description="Send a program to an arm's controller and say when it has begun; the program that runs is\n"
        "replaced. Errors that `script check` finds are refused. The arm moves: outside this computer that needs the\n"
        "confirmation of somebody who stands beside it. Not a safety function.",
        epilog=EXAMPLES,
    )
    _add_program(one)
    one.add_argument("host", metavar="HOST", help="the arm: an IPv4 address, or rtde://HOST[:PORT]")
    one.add_argument(OPTION, action="store_true", dest="beside", help="the confirmation, said in advance")
    one.set_defaults(run=send)

    _add_emit(kinds)

    one = kinds.add_parser(
        "bench",
        help="what a frame of 2 ms costs, by what the program does",
        description="Run small programs in process, on an arm that follows at once, and print the median time of a\n"
        "frame: what the machine itself takes of the 2 ms.",
    )
    one.add_argument("--json", action="store_true", help="print JSON instead of a table")
    one.add_argument("--robot", default="ur10e", metavar="NAME|FILE", help="the arm (default: ur10e)")
    one.set_defaults(run=bench)


def _add_emit(kinds: Any) -> None:
    from tangere.cli.export import ArmSettings

    one = kinds.add_parser(
        "emit",
        help="write a program that runs our observer or a controller inside the arm's controller",
        description="Write URScript from the same kernels that run here, so that the loop runs 500 times a second\n"
        "inside the controller, without a network:\n"
        "  observer          external torque by joint in registers, the joint that feels something, an output\n"
        "  impedance         springs about the posture where it starts\n"
        "  computed-torque   follows a motion (put yours into tangere_reference)\n"
        "The last two command torques: they need PolyScope 5.23, and somebody beside the arm. Limits of torque, speed\n"
        "and range are in the program; they are no safety function. Never tried on a real arm.",
        epilog="examples:\n  tangere script emit observer --robot ur5e --model model.toml --out observer.script\n"
        "  tangere script emit impedance --robot ur10e --stiffness 200,200,100,30,30,30 --out soft.script\n"
        "  tangere script emit computed-torque --robot ur5e --out follow.script\n"
        "  tangere script run follow.script --robot ur5e          then see it on a simulated arm",
    )
    one.add_argument("law", choices=["observer", "impedance", "computed-torque"], help="what the program does")
    add_options(one, ArmSettings, ("robot", "calibration", "payload"))
    one.add_argument("--model", metavar="FILE", help="a model of `tangere identify`: masses, friction, gains")
    one.add_argument("--out", metavar="FILE", help="the program (default: LAW.script; - for standard output)")
    one.add_argument("--polyscope", metavar="VERSION", help="version of the controller (default: 5.26.0)")
    add_options(one, EmitSettings)
    add_json(one)
    one.set_defaults(run=emit)


def emit(arguments: argparse.Namespace) -> int:
    """Write a program."""
    from tangere.cli.export import ArmSettings
    from tangere.identification.model import read_model
    from tangere.logs.files import write_text
    from tangere.plants.inside import emitted
    from tangere.report.terminal import show
    from tangere.robots import Robot, robot
    from tangere.script.builtin import NEWEST, version

    for law, names in OWN.items():
        others = [name for name in names if name not in OWN[arguments.law]]
        refuse_foreign(EmitSettings, arguments, f"belongs to {law}, not to {arguments.law}", others)
    running = NEWEST if arguments.polyscope is None else version(arguments.polyscope)
    meant = group_from(ArmSettings, arguments)
    arm = robot(meant.robot, calibration=meant.calibration, payload=meant.held)
    given: dict[str, Any] = {}
    if arguments.model is not None:
        model = read_model(arguments.model, meant.robot)
        arm = Robot(model.model(arm.model), model.drive.rotor_inertia)
        given |= {"friction": model.drive, "gains": model.drive.gain if _finite(model.drive.gain) else None}
    called = {"gain": "observer_gain", "set_output": "output"}
    given |= {called.get(name, name): value for name, value in told(EmitSettings, arguments).items()}
    program = emitted(arguments.law, arm, version=running, **given)
    if arguments.out == "-":
        print(program.text, end="")
        return 0
    path = Path(arguments.out or f"{arguments.law}.script")
    write_text(path, program.text)
    lines = len(program.text.splitlines())
    said = {
        "file": str(path), "law": program.law, "robot": arm.model.name, "lines": lines,
        "operations_per_frame": program.operations, "torque": program.torque,
    }  # fmt: skip
    source = f" Torque: {program.torque}." if program.torque else ""
    counted = f"{lines} lines, {program.operations} operations in a frame"
    show(said, f"{path}: {program.law} of a {arm.model.title}, {counted}.{source}", arguments.json)
    return 0


def _finite(values: Any) -> bool:
    import numpy as np

    return bool(np.all(np.isfinite(values)))


def _add_program(p: Any) -> None:
    p.add_argument("program", metavar="PROGRAM", help="a file with URScript, or - for standard input")
    p.add_argument("--polyscope", metavar="VERSION", help="version of the controller (default: 5.26.0)")


def _read(arguments: argparse.Namespace) -> tuple[str, Any]:
    """Text of the program and version; wrong usage ends here, with exit code 2."""
    from tangere.script.builtin import NEWEST, version

    what, file = "--polyscope: ", arguments.program
    try:
        running = NEWEST if arguments.polyscope is None else version(arguments.polyscope)
        what = ""
        text = foreign.standard_input() if file == "-" else foreign.read_text(file)
    except InvalidValue as problem:
        words = f"{what}{problem}"
    except (OSError, UnicodeDecodeError) as problem:
        words = f"{file}: {getattr(problem, 'strerror', None) or problem}"
    else:
        return text, running
    print(f"error: {foreign.line(words)}", file=sys.stderr)
    raise SystemExit(2) from None


def send(arguments: argparse.Namespace) -> int:
    """Let an arm run a program."""
    from tangere.rtde import programs
    from tangere.rtde.client import address as live
    from tangere.rtde.client import address_of
    from tangere.rtde.consent import asked
    from tangere.script.resolve import check as problems_of

    if live(arguments.program) is not None:
        raise InvalidValue(f"the program comes first, then the arm: tangere script send PROGRAM {arguments.program}")
    text, running = _read(arguments)
    wrong = next((problem for problem in problems_of(text, running) if problem.error), None)
    if wrong is not None:
        raise InvalidValue(f"{arguments.program}: line {wrong.line}: {wrong.message}; nothing was sent")
    address = address_of(arguments.host)
    programs.send(address, text, asked(address, arguments.beside))
    print(f"{arguments.program}: runs at {address.host}")
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Print what is wrong with a program."""
    from tangere.script.resolve import check as problems_of

    text, running = _read(arguments)
    problems = problems_of(text, running)
    errors = sum(problem.error for problem in problems)
    if arguments.json:
        found = [{"line": p.line, "column": p.column, "error": p.error, "message": p.message} for p in problems]
        print(json.dumps(found, indent=1))
        return int(errors > 0)
    name = "standard input" if arguments.program == "-" else arguments.program
    for problem in problems:
        print(f"{name}:{problem}")
    warnings = len(problems) - errors
    counts = ((errors, "error"), (warnings, "warning"))
    counted = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    print(f"{name}: {counted}" if problems else f"{name}: nothing wrong ({len(text.splitlines())} lines)")
    return int(errors > 0)


def run(arguments: argparse.Namespace) -> int:
    """Run a program into a folder."""
    from tangere.cli import run as scenarios

    text, running = _read(arguments)
    name = "stdin" if arguments.program == "-" else Path(arguments.program).stem
    arguments.scenario = "script"
    arguments.given = {"program": text.rstrip("\n") + "\n", "polyscope": ".".join(map(str, running))}
    arguments.out = arguments.out or str(Path("out") / name)
    return scenarios.run(arguments)


def bench(arguments: argparse.Namespace) -> int:
    """Print what a frame costs."""
    from tangere.report.terminal import table
    from tangere.robots import robot
    from tangere.script.cost import costs

    found = costs(robot(arguments.robot))
    if arguments.json:
        print(json.dumps({name: round(1e6 * cost, 3) for name, cost in found.items()}, indent=1))
        return 0
    rows = [(name, f"{1e6 * cost:.1f}") for name, cost in found.items()]
    print("\n".join(table(rows, ("in every frame", "median [us]"), "lr", indent=0)))
    return 0
