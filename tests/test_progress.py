"""Progress: a terminal sees one line, a file or a pipe sees nothing."""

from __future__ import annotations

import io
import sys

import pytest

from tangere.report.terminal import Bar, Clock, Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def opened(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as standard error; inside a test, as pytest changes it again after its fixtures."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def shown(terminal: Terminal) -> str:
    """What is on the line at last: every \\r starts to write over it."""
    line: list[str] = []
    for text in terminal.getvalue().split("\r"):
        line[: len(text)] = text
    return "".join(line).rstrip(" ")


def test_a_line_is_written_over_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    line = Line()
    line("a long text about what is being done")
    line("short")
    assert shown(terminal) == "short"
    line.end()
    assert shown(terminal) == ""
    assert "\n" not in terminal.getvalue()


def test_a_text_longer_than_the_line_does_not_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    Line()("x" * 500)
    assert len(shown(terminal)) < 100


def test_a_bar_grows_and_stays_within_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    bar = Bar()
    widths = []
    for share in (-0.1, 0.0, 0.5, 1.0, 1.7):
        bar("work", share)
        widths.append(shown(terminal).count("#"))
    assert widths == [0, 0, 15, 30, 30]


def test_a_clock_shows_seconds_and_leaves_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = opened(monkeypatch)
    clock = Clock()
    clock(2.5, 10.0)
    assert "2.5 of 10.0 s" in shown(terminal)
    assert shown(terminal).count("#") == 7
    clock.end()
    assert terminal.getvalue().endswith("\n")


def test_nothing_is_written_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    for progress in (Line(), Bar(), Clock()):
        if isinstance(progress, Clock):
            progress(1.0, 2.0)
        else:
            progress("work")
        progress.end()
    assert stream.getvalue() == ""
