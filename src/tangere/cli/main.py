"""The command line: `tangere COMMAND`.

Start-up stays fast because each command imports what it needs itself. An error of our own becomes one line on standard
error and exit code 1, wrong usage exit code 2 (argparse); anything else is a fault of ours and keeps its traceback.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict
from importlib import import_module
from typing import Any, TextIO

from tangere import ends, foreign
from tangere.errors import BeyondLimits, InvalidValue, TangereError
from tangere.options import Parser, add_json, memory
from tangere.report.terminal import Plain, filled, paint, say, show, table, terminal_width, wants_colour

# Modules that add commands, in the order of the help, and the commands that each adds: only that of the command which
# was typed is loaded.
MODULES: dict[str, tuple[str, ...]] = {
    "tangere.cli.run": ("run", "scenarios", "report", "compare", "rerun"),
    "tangere.apps.touch.excite_command": ("excite",),
    "tangere.apps.touch.learn_commands": ("identify", "tune"),
    "tangere.apps.touch.watch_command": ("watch",),
    "tangere.apps.study.command": ("study",),
    "tangere.apps.drawing.command": ("draw", "write"),
    "tangere.apps.fmu.command": ("fmu",),
    "tangere.cli.export": ("export",),
    "tangere.cli.symbolic": ("symbolic",),
    "tangere.cli.script": ("script",),
    "tangere.apps.arm.command": ("doctor", "record", "calibration", "dashboard"),
    "tangere.apps.virtual_ur.command": ("virtual",),
    "tangere.ros2.face": ("virtual",),
    "tangere.ros2.command": ("ros2",),
    "tangere.studio.command": ("studio",),
    "tangere.cli.completion": ("completion",),
}

# how the system and its loader say that there is no memory left
_NO_ROOM = ("failed to map segment", "cannot allocate memory", "can't start new thread", "bad_alloc", "out of memory")

EXAMPLES = """\
examples:
  tangere studio                            an arm in the browser: grab it with the mouse and pull
  tangere run circle --push joint=2,torque=20,start=3,duration=2
                                            simulate, feel the push, leave a report
  tangere excite --robot ur3e --out excitation.script
                                            the motion worth recording, and what it will tell
  tangere identify LOG... --robot ur3e --out model.toml
                                            gains, friction, rotor inertia and links from logs of your arm
  tangere tune LOG... --robot ur3e --model model.toml --rate 0.1/h --out tuned.toml
                                            thresholds for a promised rate of false alarms
  tangere watch LOG --robot ur3e --model tuned.toml
                                            touches: when, where, how hard, of what kind
  tangere draw snail                        a picture, drawn with a pen pressed with 5 N
  tangere write "Hello" --height 12mm       a text, in a single-line font made for a pen
  tangere fmu fk --robot ur10e              a block for co-simulation tools, FMI 2.0
  tangere export --robot ur5e --format urdf an arm for ROS 2, Gazebo (sdf), MuJoCo (mjcf), or to change (toml)
  tangere symbolic jacobian --robot ur10e   formulas to read, or as Python, MATLAB or C
  tangere ros2 watch --robot ur5e           touch as messages of ROS 2, which need not be installed
  tangere script check program.script       errors of a URScript program, with line and column
  tangere models                            the arms that come with Tangere
  tangere check ur10e                       every number of an arm, with its source and grade
  tangere check ur10e --parameters ur-ros2  the same for another parameter set
  tangere check my_arm.urdf                 read and validate a file of your own (TOML, URDF or MuJoCo)
  tangere demo                              a UR10e: pose, inverse kinematics, dynamics
  tangere bench --quick                     speed beside the peers that are installed
"""


def models(arguments: argparse.Namespace) -> int:
    """Print the arms that come with the package and their parameter sets."""
    from tangere.errors import UnphysicalModel
    from tangere.model.loading import load, names, parameter_sets

    def refused(name: str, parameters: str) -> bool:
        try:
            load(name, parameters=parameters)
        except UnphysicalModel:
            return True
        return False

    arms: list[dict[str, Any]] = []
    for name in names():
        model, sets = load(name), parameter_sets(name)
        bad = [parameters for parameters in sets if refused(name, parameters)]
        arms.append({"name": name, "title": model.title, "joints": model.dof, "parameters": sets, "refused": bad})
    rows = [
        (arm["name"], arm["title"], str(arm["joints"]),
         ", ".join(one + "*" if one in arm["refused"] else one for one in arm["parameters"]))
        for arm in arms
    ]  # fmt: skip
    head = ("name", "title", "joints", "parameter sets (default first)")
    lines = table(rows, head, "llrl", indent=0, width=terminal_width())
    lines[0] = paint(lines[0], "heading", wants_colour())
    if any(arm["refused"] for arm in arms):
        why = "* refused: no rigid body can have these numbers, `tangere check NAME --parameters SET` says why"
        lines += ["", filled(why, terminal_width())]
    show({"models": arms}, "\n".join(lines), arguments.json)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Print every number of an arm with its source; an arm that cannot be is an error."""
    from tangere.cli.checked import check_text
    from tangere.model.loading import load

    if arguments.model.lower().endswith(".fmu"):
        if not os.path.exists(arguments.model):
            raise InvalidValue(f"{arguments.model}: there is no such file; blocks are examined by `tangere fmu check`")
        raise InvalidValue(f"{arguments.model}: no arm but a block: `tangere fmu check {arguments.model}` examines it")
    options = {key: getattr(arguments, key) for key in ("parameters", "calibration", "tip")}
    text = check_text(arguments.model, **options)
    show(asdict(load(arguments.model, **options)) if arguments.json else {}, text, arguments.json)
    return 0


def bench(arguments: argparse.Namespace) -> int:
    """Measure ourselves beside the peers that are installed."""
    from tangere.apps.bench import bench as benchmark

    return benchmark.main(arguments) or 0


def demo(arguments: argparse.Namespace) -> int:
    """Print a UR10e pose, its inverse kinematics and its dynamics."""
    from tangere.cli import demo as demonstration

    return demonstration.main(wants_colour())


class _Version(argparse.Action):
    """--version, read only when asked for: looking up package metadata costs more than the rest of the start."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        import tangere

        print(f"tangere {tangere.__version__}")  # parser.exit would write it to standard error
        parser.exit(0)


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """The command line as an argparse parser: all of it, or no more than the command `word` needs."""
    root = Parser(
        prog="tangere",
        description="Torque-level control and the sense of touch for Universal Robots arms.",
        epilog=EXAMPLES,
    )
    root.add_argument(
        "--memory", metavar="SIZE", type=memory,
        help="memory that reading a file of others may take, such as 2GB (default: 20 times its size, 500MB at most)",
    )  # fmt: skip
    root.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = root.add_subparsers(title="commands", metavar="COMMAND")

    wanted = [name for name, adds in MODULES.items() if word in adds] or list(MODULES)
    for name in wanted:
        import_module(name).add(commands)

    p = commands.add_parser(
        "models", help="list the arms that come with Tangere", description=models.__doc__,
        epilog="examples:\n  tangere models\n  tangere models --json",
    )  # fmt: skip
    add_json(p)
    p.set_defaults(run=models)

    p = commands.add_parser(
        "check",
        help="validate an arm and show its numbers with their sources",
        description="Load an arm, validate it, and show its joints, links, limits and drives, each group of numbers\n"
        "with its source and grade (vendor, measured, approximated). Exit code 1 if it cannot be loaded.",
        epilog="examples:\n  tangere check ur5e\n  tangere check ur10e --parameters 000-C\n"
        "  tangere check my_arm.urdf\n  tangere check ur5e --json                 every number in SI units and radians",
    )
    p.add_argument("model", metavar="NAME|FILE", help="a name from `tangere models`, or a TOML, URDF or MuJoCo file")
    p.add_argument("--parameters", metavar="SET", help="a parameter set's name, or a model file with the numbers")
    p.add_argument("--calibration", metavar="FILE", help="UR's calibration.yaml of one arm, for its true lengths")
    p.add_argument("--tip", metavar="LINK", help="for a file with several branches: the link at which the arm ends")
    add_json(p)
    p.set_defaults(run=check)

    p = commands.add_parser(
        "bench",
        help="measure speed beside the peers that are installed",
        description="Measure single calls, batches and inverse kinematics, each contender interleaved in one run,\n"
        "against pinocchio, mujoco, ur-analytic-ik and eaik where they are installed (pip install 'tangere[bench]').",
        epilog="examples:\n  tangere bench\n  tangere bench --quick --json\n  tangere bench --rollouts --json",
    )
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="print JSON instead of tables, or write FILE")
    p.add_argument("--robot", default="ur10e", metavar="NAME|FILE", help="the arm to measure (default: ur10e)")
    p.add_argument("--seconds", type=float, metavar="S", help="seconds of measuring (default: 42, with --quick 5)")
    p.add_argument("--quick", action="store_true", help="fewer rounds: a rough answer within seconds")
    p.add_argument("--goals", action="store_true", help="show how many times faster than the peer each row has to be")
    p.add_argument("--rollouts", action="store_true", help="measure closed loops of many robots beside mujoco.rollout")
    p.add_argument(
        "--run", action="store_true", dest="ordinary", help="measure a period of `tangere run circle` beside mj_step"
    )
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of --rollouts (default %(default)s)")
    p.set_defaults(run=bench)

    p = commands.add_parser(
        "demo", help="show a UR10e: pose, inverse kinematics, dynamics", description=demo.__doc__,
        epilog="examples:\n  tangere demo\n  tangere run circle                        the same arm in motion",
    )  # fmt: skip
    p.set_defaults(run=demo)
    return root


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a person at a terminal wants it: the sentence, without the line of code that it came from."""
    print(f"note: {foreign.line(str(message))}", file=sys.stderr)


def _failed(message: str) -> int:
    """The line of an error, whatever the message held: one line, nothing that a terminal obeys."""
    print(paint("error: ", "bad", wants_colour(sys.stderr)) + foreign.line(message), file=sys.stderr)
    return 1


@contextmanager
def _hushed(arguments: argparse.Namespace) -> Iterator[None]:
    """With --quiet nothing is heard but errors; what --json prints stays."""
    if not getattr(arguments, "quiet", False):
        yield
        return
    told = sys.stdout if getattr(arguments, "json", False) else None
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere), redirect_stdout(told or nowhere):
        yield


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    0 done; 1 an error of ours, a run or a drawing that ended early, a file that could not be written; 2 wrong usage;
    128 + the signal's number where a signal ended it: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
    """
    out, err = Plain(sys.stdout), Plain(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        code = _done(list(sys.argv[1:] if argv is None else argv), out)
        out.flush()  # what cannot be written shows itself here, not while the interpreter shuts down
        if out.lost is not None and not isinstance(out.lost, BrokenPipeError):
            code = _failed(f"cannot write: {out.lost.strerror}")
    out.leave()
    err.leave()
    return code


def _done(words: list[str], out: Plain) -> int:
    """`main`, where nothing that is written moves a terminal's cursor."""
    pairs = enumerate(zip(words, ["", *words], strict=False))
    limits = [k for k, (word, before) in pairs if "--memory" in (word.partition("=")[0], before)]
    plain = [word for k, word in enumerate(words) if k not in limits]
    root = parser(plain[0] if plain else None)
    arguments = root.parse_args([*(words[k] for k in limits), *plain])  # it may stand behind the command, too
    if not hasattr(arguments, "run"):
        root.print_help()
        return 0
    arguments.words = words  # as typed, for the manifest of a run
    out.text_is_all = getattr(arguments, "text_is_all", False)
    foreign.allow(arguments.memory or foreign.UNTOLD, net=True)
    try:
        attached = not getattr(arguments, "detached", False)
        with ends.ending(ends.PATIENCE, parent=attached), warnings.catch_warnings(), _hushed(arguments):
            warnings.showwarning = _note
            warnings.simplefilter("ignore", BeyondLimits)  # commands say it in the table of a run
            code: int = arguments.run(arguments)
        return code
    except TangereError as error:
        return _failed(str(error))
    except MemoryError:
        return _failed("there is not enough memory for this")
    except (ImportError, OSError, RuntimeError) as error:  # of libraries that a limit keeps from being loaded
        if isinstance(error, BrokenPipeError) and out.text_is_all:  # e.g. `tangere watch ARM | head -1`: not an error
            return 0
        if isinstance(error, OSError) and error.filename is not None:  # a name that is too long
            return _failed(f"{foreign.shown(os.fsdecode(error.filename))}: {error.strerror}")
        full = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
        if isinstance(error, OSError) and error.errno in full:
            return _failed(str(error.strerror))
        if not any(words in str(error).lower() for words in _NO_ROOM):
            raise
        return _failed(f"there is not enough memory for this: {error}")
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, ends.Ended):
            say(interrupt)
        return getattr(interrupt, "code", 130)  # 128 + SIGINT, what a shell expects
    finally:
        foreign.allow(foreign.UNTOLD, net=False)


if __name__ == "__main__":
    raise SystemExit(main())
