"""A table at the bottom of a terminal: written over, cut to the width, and what is said meanwhile stands above it."""

from __future__ import annotations

import io
import re
import sys

import pytest

from tangere.apps.touch.event_table import MOST, EventTable


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(text: str) -> list[str]:
    """What a terminal shows after this text: lines, and the two codes that we use (up and to the left, clear below)."""
    lines, row = [""], 0
    for part in re.split(r"(\x1b\[\d*[FJ]|\n)", text):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("F") and part.startswith("\x1b"):
            row -= int(part[2:-1])
        elif part == "\x1b[J":
            del lines[row:]
            lines.append("")
        else:
            lines[row] = part + lines[row][len(part) :]
    return lines


def test_events_are_written_anew_and_notes_stay_above(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    with EventTable("head", lambda: "status") as table:
        table.told(1, "raised 1")
        table.told(2, "raised 2 " + "x" * 100)
        with table.above():
            print("a note")
        table.told(1, "ended 1")
        shown = screen(terminal.getvalue())
        assert shown == ["a note", "head", "ended 1", ("raised 2 " + "x" * 100)[:39], "status", ""]
        for number in range(3, MOST + 2):
            table.told(number, f"raised {number}")
    print("the end")
    shown = screen(terminal.getvalue())
    assert shown[:2] == ["a note", "ended 1"]  # the oldest scrolls away and stays
    assert shown[2] == "head"
    assert shown[-4:] == [f"raised {MOST + 1}", "status", "the end", ""]


def test_a_pipe_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with EventTable("head", lambda: "status") as table:
        table.told(1, "raised 1")
        with table.above():
            print("a note")
        table.told(1, "ended 1")
    assert pipe.getvalue() == "head\nraised 1\na note\nended 1\n"
