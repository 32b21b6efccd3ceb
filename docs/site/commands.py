"""A page for each command of `tangere`: its help, word for word."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from pathlib import Path


def help_of(*words: str) -> str:
    """What `tangere WORDS --help` prints, 100 columns wide and without colours."""
    from tangere.cli.main import main

    text = io.StringIO()
    before = {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR")}
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    return text.getvalue().rstrip()


def words() -> list[tuple[str, str]]:
    """Each command and the line that says what it does."""
    from tangere.cli.main import parser

    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return [(choice.dest, str(choice.help)) for choice in commands._choices_actions]


def write(stage: Path) -> None:
    """commands/index.md and a page for each command."""
    folder = stage / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Commands", "", "Each command has `--help` with examples; these pages are that help.", ""]
    lines += ["| command | what it does |", "|---|---|"]
    for word, says in words():
        lines.append(f"| [`tangere {word}`]({word}.md) | {says} |")
        text = f"# tangere {word}\n\n{says[0].upper() + says[1:]}.\n\n```text\n{help_of(word)}\n```\n"
        (folder / f"{word}.md").write_text(text)
    (folder / "index.md").write_text("\n".join(lines) + "\n")
