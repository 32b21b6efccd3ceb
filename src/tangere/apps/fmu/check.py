"""`tangere fmu check FILE`: every checker there is, and the block driven against the library's own answers."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tangere.apps.fmu.opened import Finding

TITLE = "examine an FMU: checkers, and its answers against the library's"
EXAMPLES = """examples:
  tangere fmu check UR10e_FK.fmu
  tangere fmu check catalogue/*.fmu           a line each, and what is wrong
  tangere fmu check another_tools.fmu         what can be said about an FMU of others

The block runs in a child process with limits of time and memory. Exit code 1 where anything is wrong."""

_MARKS = {"good": ("ok", "good"), "bad": ("WRONG", "bad"), "not checked": ("--", "dim"), "note": ("note", "dim")}


def add(p: argparse.ArgumentParser) -> None:
    """Options."""
    p.epilog = EXAMPLES
    p.add_argument("files", nargs="+", metavar="FILE", help="an FMU, of ours or of others")
    p.add_argument("--quick", action="store_true", help="without fmpy and fmutool: what is done here only")


def check_fmu(path: str | Path, *, quick: bool = False, tell: Callable[[str], None] | None = None) -> list[Finding]:
    """All findings about a file. Never raises for what an FMU does; NotAnFmu where there is none to look at."""
    from tangere.apps.fmu.check_answers import check_answers
    from tangere.apps.fmu.check_block import check_block
    from tangere.apps.fmu.check_file import check_file, check_tools
    from tangere.apps.fmu.opened import opened

    found: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="fmu-") as folder:
        fmu = opened(path, Path(folder))
        if fmu.version != "2.0":  # checkers of others are asked about what they are made for only
            return check_file(fmu)
        for name, check in (
            ("file", check_file), ("checkers", check_tools), ("block", check_block), ("answers", check_answers),
        ):  # fmt: skip
            if not (quick and check is check_tools):
                if tell is not None:
                    tell(f"{fmu.path.name}: {name}")
                found += check(fmu)
    return found


def main(arguments: argparse.Namespace) -> int:
    """Check the files and print."""
    from tangere.errors import TangereError
    from tangere.report.terminal import Line, paint, table, wants_colour

    colour, wrong = wants_colour(), 0
    doing = Line()
    for file in arguments.files:
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
