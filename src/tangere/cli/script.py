"""The commands about URScript: script check, script run, script bench."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tangere.errors import InvalidValue

EXAMPLES = """examples:
  tangere script check program.script       every error with its line and column
  tangere script check program.script --polyscope 5.4.0
                                            also what that version does not have yet
  tangere script run program.script --robot ur10e --out out/mine
                                            a simulated arm does it: log, summary and report
  tangere script run program.script --push joint=2,torque=20,start=3,duration=2 --set friction=full
                                            the same with friction, and something pushes
  tangere script bench                      what a frame of 2 ms costs"""


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "script",
        help="check and run URScript programs",
        description="Programs of Universal Robots arms: look for errors, run them on a simulated arm.",
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
        "bench",
        help="what a frame of 2 ms costs, by what the program does",
        description="Run small programs in process, on an arm that follows at once, and print the median time of a\n"
        "frame: what the machine itself takes of the 2 ms.",
    )
    one.add_argument("--json", action="store_true", help="print JSON instead of a table")
    one.add_argument("--robot", default="ur10e", metavar="NAME|FILE", help="the arm (default: ur10e)")
    one.set_defaults(run=bench)


def _add_program(p: Any) -> None:
    p.add_argument("program", metavar="PROGRAM", help="a file with URScript, or - for standard input")
    p.add_argument("--polyscope", metavar="VERSION", help="version of the controller (default: 5.26.0)")


def _read(arguments: argparse.Namespace) -> tuple[str, Any]:
    """Text of the program and version; wrong usage ends here, with exit code 2."""
    from tangere.script.builtin import NEWEST, version

    try:
        running = NEWEST if arguments.polyscope is None else version(arguments.polyscope)
        file = arguments.program
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, InvalidValue) as problem:
        words = f"--polyscope: {problem}" if isinstance(problem, InvalidValue) else f"{arguments.program}: {problem}"
        if isinstance(problem, OSError):
            words = f"{arguments.program}: {problem.strerror or problem}"
        print(f"error: {words}", file=sys.stderr)
        raise SystemExit(2) from None
    return text, running


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
