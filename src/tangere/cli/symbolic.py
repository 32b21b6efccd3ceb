"""The command symbolic: the formulas of an arm as text."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from tangere.options import add_options


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    from tangere.cli.export import ArmSettings
    from tangere.kernels.emit.formulas import LANGUAGES
    from tangere.kernels.formulas import QUANTITIES, At

    p = commands.add_parser(
        "symbolic",
        help="formulas of an arm as text: Jacobian, mass matrix, Coriolis matrix, gravity",
        description="Print a quantity of an arm as formulas on standard output: multiplied out, simplified and\n"
        "factored, with the arm's numbers in it. The first lines say what it is and how many operations it takes.\n"
        "Where that would be longer than the steps from joint to joint (arms whose axes point anywhere), those are\n"
        "printed. Python, MATLAB (Octave) and C texts are functions that can be called as they are.",
        epilog="examples:\n  tangere symbolic jacobian --robot ur10e --link 5 --format latex\n"
        "  tangere symbolic mass-matrix --robot ur10e --format matlab > mass_matrix.m\n"
        "  tangere symbolic coriolis --robot ur5e --format c > coriolis.c\n"
        "  tangere symbolic gravity --robot my_arm.urdf --payload 1.2,0,0,0.05",
    )
    p.add_argument("quantity", choices=list(QUANTITIES), help="what to print")
    add_options(p, ArmSettings)
    p.add_argument("--format", choices=LANGUAGES, default="python", help="the language (default: %(default)s)")
    p.add_argument("--link", type=int, metavar="K", help="Jacobian of link K, from 1 on (default: of the tool point)")
    p.add_argument(
        "--at", choices=get_args(At), default="com",
        help="with --link: at the link's centre of mass or at the origin of its frame (default: %(default)s)",
    )  # fmt: skip
    p.set_defaults(run=symbolic)


def symbolic(arguments: argparse.Namespace) -> int:
    """Print the formulas of an arm."""
    from tangere.cli.export import model_of
    from tangere.kernels.formulas import formula_text

    a = arguments
    print(formula_text(model_of(a), a.quantity, a.format, link=a.link, at=a.at), end="")
    return 0
