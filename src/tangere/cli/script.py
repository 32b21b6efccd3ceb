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
                                            also what that version does not have yet"""


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "script",
        help="check URScript programs",
        description="Programs of Universal Robots arms: look for errors.",
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
