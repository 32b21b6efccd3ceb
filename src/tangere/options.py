"""Options of a command line from groups of settings, a parser that says what was meant, and tables of settings."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from dataclasses import MISSING
from typing import Any, NoReturn, TypeVar

from tangere.errors import InvalidValue
from tangere.foreign import line
from tangere.settings import Setting, settings_of

Group = TypeVar("Group")
FOXGLOVE_PORT = 8765  # Foxglove's own


class Parser(argparse.ArgumentParser):
    """argparse's, with the examples of a command set as they are, values such as -3mm, and the name that was meant."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **keywords)
        # a value such as -0.4,0,0.1 or -3mm,2deg is a value, not an option: argparse knows that of plain numbers only
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self.add_argument(
            "--quiet", action="store_true", default=argparse.SUPPRESS, help="print nothing but errors, and --json"
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command refuses what it does not know itself, so that its own usage and its own options are named."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Exit code 2 with the usage; of a wrong choice or option the nearest that there is."""
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        known = re.findall(r"'([^']+)'|([\w-]+)", found[2]) if found else []
        word, names = (found[1], [a or b for a, b in known]) if found else ("", [])
        if wrong := re.search(r"unrecognized arguments: (--[\w-]+)", message):
            word, names = wrong[1], [name for action in self._actions for name in action.option_strings]
        stray = re.search(r"unrecognized arguments: (\w\S*)", message)
        if stray and "=" in stray[1]:
            message += "; parts of one value stand together, with commas and without blanks: joint=2,torque=20"
        elif stray and "--robot" in self._option_string_actions and re.fullmatch(r"ur\d+\w*|\S+\.urdf", stray[1]):
            message += f"; an arm is given as --robot {stray[1]}"
        elif stray and self.prog.endswith(" write"):
            message += "; a text of several words stands in quotes"
        bare = {name.lstrip("-"): name for name in names}  # the dashes make any two options alike
        close = difflib.get_close_matches(word.lstrip("-"), bare, 1)
        if wrong and not close and "--set" in names:
            value = re.search(r"--[\w-]+[ =]([^- ]\S*)", message)
            message += f"; a setting is given as --set {word[2:].replace('-', '_')}={value[1] if value else 'VALUE'}"
        super().error(line(f"{message}; did you mean {bare[close[0]]!r}?" if close else message))


def size_of(text: str | None, option: str) -> float | None:
    """Bytes of "500MB", "2 GB", "100000"; None for None. 100 kB at least: less holds no log."""
    if text is None:
        return None
    size = _bytes(text)
    if size < 1e5:
        raise InvalidValue(f"{option}: a size from 100kB on, such as 500MB or 2GB, got {text!r}")
    return size


def memory(text: str) -> int:
    """Bytes of --memory, as argparse reads it: 50 MB at least, less holds no Python."""
    size = _bytes(text)
    if not 5e7 <= size <= 1e15:
        raise argparse.ArgumentTypeError(f"a size from 50MB on, such as 2GB, got {text[:40]!r}")
    return int(size)


def _bytes(text: str) -> float:
    """0 where the text is no size."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kMGT]?)B?\s*", text)
    return 0.0 if found is None else float(found[1]) * 1e3 ** " kMGT".index(found[2] or " ")


def add_json(parser: Any) -> None:
    """--json, of a command that prints figures (report.terminal.show)."""
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object instead of text")


def add_about(parser: Any, title: bool = True) -> None:
    """--title, --author, --logo, --date, of a command that writes a page (report.data.About.given)."""
    if title:
        parser.add_argument("--title", default="", metavar="TEXT", help="title of the page (default: what was run)")
    parser.add_argument("--author", default="", metavar="NAME", help="who made it, under the title")
    parser.add_argument("--logo", default="", metavar="FILE", help="a picture above the title (svg, png, jpg)")
    parser.add_argument("--date", default="", metavar="DATE", help="date of the page (with --author or --logo: today)")


def add_foxglove(parser: Any) -> None:
    """--foxglove [PORT], of a command whose samples can be seen while it runs (loop.foxglove)."""
    parser.add_argument(
        "--foxglove", nargs="?", const=str(FOXGLOVE_PORT), metavar="PORT",
        help=f"show it live in Foxglove, on this port of this computer (default: {FOXGLOVE_PORT})",
    )  # fmt: skip


def add_options(parser: Any, group: type[Any], names: Sequence[str] | None = None, *, defaults: bool = True) -> None:
    """An option for each setting of a group (those of `names`, in that order): --name, with help, unit and default.

    What was not said is None in the namespace, so that a default is the group's alone. defaults: False where another
    group may have others, so that the help names none.
    """
    known = settings_of(group)
    for one in known.values() if names is None else (known[name] for name in names):
        _add(parser, one, defaults)


def _add(parser: Any, one: Setting, defaults: bool) -> None:
    spelled = option_of(one)
    about: dict[str, Any] = {"help": one.help.replace("%", "%%"), "dest": one.option or one.name}
    if one.kind == "flag":
        parser.add_argument(spelled, action="store_true", default=None, **about)
        return
    if one.default is MISSING:
        about["required"] = True
    elif defaults and (text := one.default_text):
        about["help"] += f" (default: {text})".replace("%", "%%")
    if one.choices:
        about["choices"] = one.choices
    else:
        about["metavar"] = one.metavar or (one.typed or one.unit).split(",")[0] or "X"
    if one.kind == "count" and one.size is None:
        about["type"] = int
    if one.repeat:
        about["action"] = "append"
    parser.add_argument(spelled, **about)


def option_of(one: Setting) -> str:
    """--name of a setting."""
    return "--" + (one.option or one.name).replace("_", "-")


def told(group: type[Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """What was said of a group's settings, by name; an error calls a setting by its option."""
    found = {}
    for name, one in settings_of(group).items():
        given = getattr(arguments, one.option or name, None)
        if given is not None:
            found[name] = one.read(given, option_of(one))
    return found


def group_from(group: type[Group], arguments: argparse.Namespace) -> Group:
    """A group of its defaults and what was said."""
    return group(**told(group, arguments))


def refuse_foreign(
    group: type[Any], arguments: argparse.Namespace, why: str, names: Sequence[str] | None = None
) -> None:
    """Refuse options of a group (those of `names`) that do not go with the others."""
    for name, one in settings_of(group).items():
        if (names is None or name in names) and getattr(arguments, one.option or name, None) is not None:
            raise InvalidValue(f"{option_of(one)} {why}")


def rows(group: type[Any], names: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Setting with its unit, and what it is with its choices and its default, for a table of documentation."""
    known = settings_of(group)
    found = []
    for one in known.values() if names is None else (known[name] for name in names):
        what = f"{one.help}: {' | '.join(one.choices)}" if one.choices else one.help
        default = one.text(one.default)
        found.append((one.label, f"{what} (default: {default})" if default else what))
    return found
