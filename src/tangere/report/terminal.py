"""Plain text for the terminal: tables that line up, numbers without minus zeros, colour only where it is wanted.

Progress of long work is shown on a terminal only: standard error, one line that is written over and over.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TextIO

import numpy as np
from numpy.typing import ArrayLike

_WIDTH = 30  # characters of the bar
_LINE = 100  # characters that are cleared at the end: bar and words
# the escape codes of a terminal (ECMA-48, SGR) that we use, by meaning
_MANY = 6  # columns from which a table that is too wide takes several lines a row
LEAST = 24  # columns: narrower text is hard to read, it goes below
STYLES = {"heading": "1", "good": "32", "bad": "31", "dim": "2"}
# what a terminal obeys: control characters (escapes, too) but tab and end of line, marks of direction
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OURS = re.compile(rf"(?!\x1b\[(?:0|{'|'.join(STYLES.values())})m){_OBEYED.pattern}")  # all of it but STYLES


class Plain:
    """A stream of text without what a terminal obeys: names of files hold it, and so do the words of libraries.

    Our own colours stay where they are wanted. Characters that the stream's encoding does not have are written as
    \\u....; `obeyed` is the stream itself. What cannot be written (a full disk, a reader that left) ends no work: why
    is `lost`. Where the text is all that a command makes, `text_is_all`, a reader that left is a BrokenPipeError.
    """

    def __init__(self, stream: TextIO) -> None:
        self.obeyed = _obeyed(stream)
        self.lost: OSError | None = None
        self.text_is_all = False
        self._wrong = _OURS if wants_colour(self.obeyed) else _OBEYED

    def write(self, text: str) -> int:
        """All of the text, escapes as question marks."""
        text = self._wrong.sub("?", text)
        with self._going_on():
            try:
                self.obeyed.write(text)
            except UnicodeEncodeError:
                code = self.obeyed.encoding
                self.obeyed.write(text.encode(code, "backslashreplace").decode(code))
        return len(text)

    def flush(self) -> None:
        """Hand on what waits."""
        with self._going_on():
            self.obeyed.flush()

    def leave(self) -> None:
        """What could not be written is not tried again while the interpreter shuts down."""
        if self.lost is not None:
            with suppress(OSError, ValueError):  # no file of the system
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.obeyed.fileno())

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self.lost = problem
            if isinstance(problem, BrokenPipeError):
                self.leave()
                if self.text_is_all:
                    raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.obeyed, name)


def _obeyed(stream: TextIO) -> TextIO:
    """Where a line that moves the cursor is written: its text is cleaned by itself."""
    return stream.obeyed if isinstance(stream, Plain) else stream


def wants_colour(stream: TextIO | None = None) -> bool:
    """Whether escape codes may be written: only to a terminal that understands them, never where NO_COLOR is set.

    NO_COLOR counts as set when it is not empty (no-color.org); TERM=dumb is a terminal without escape codes.
    """
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(getattr(stream, "isatty", lambda: False)())


def paint(text: str, style: str, colour: bool) -> str:
    """`text` in one of STYLES if `colour`, otherwise unchanged."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colour else text


def show(record: Mapping[str, Any] | Sequence[Any], text: str, as_json: bool) -> None:
    """Print the figures of a command: as text, or with --json as one JSON object (NaN and infinity as null)."""
    if as_json:
        import json

        from tangere.logs.files import plain

        text = json.dumps(plain(record), allow_nan=False)
    print(text, flush=as_json)


def say(words: object) -> None:
    """A last line on standard error, which may be gone."""
    with suppress(OSError):
        print(words, file=sys.stderr, flush=True)


def plural(count: int, noun: str) -> str:
    """1 log, 2 logs, no logs."""
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def number(value: float, decimals: int) -> str:
    """`value` with a fixed number of decimals and no "-0.00" (rounding to zero drops the sign)."""
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"


def table(
    rows: Iterable[Sequence[str]], header: Sequence[str] = (), align: str = "", indent: int = 2,
    width: int | None = None,
) -> list[str]:  # fmt: skip
    """Lines of a table whose columns line up, two spaces apart.

    align: one letter per column, "l" or "r"; columns beyond its length are set to the left. width: that the last column
    is wrapped into (0: never), and where the others leave it no room it begins a line of its own. Without it a table
    that is wider than the terminal takes several lines a row.
    The header, if given, is underlined where it has text. No line ends in a space, so that output compares as text.
    """
    body = [list(row) for row in rows]
    every = ([list(header)] if header else []) + body
    if not every:
        return []
    columns = max(len(row) for row in every)
    every = [row + [""] * (columns - len(row)) for row in every]
    widths = [max(len(row[k]) for row in every) for k in range(columns)]
    if width and columns < _MANY and sum(widths[:-1]) + 2 * (columns - 2) <= width - indent:
        return _wrapped(every, widths[:-1], bool(header), width - indent)
    width = terminal_width() if width is None else width
    if width and sum(widths) + 2 * (columns - 1) > width - indent:
        return _stacked(every, widths, bool(header), align, width - indent, indent)
    if header:
        every.insert(1, ["-" * width if title else "" for title, width in zip(every[0], widths, strict=True)])

    def line(row: list[str]) -> str:
        cells = (
            cell.rjust(width) if align[k : k + 1] == "r" else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return (" " * indent + "  ".join(cells)).rstrip()

    return [line(row) for row in every]


def _stacked(every: list[list[str]], widths: list[int], headed: bool, align: str, room: int, indent: int) -> list[str]:
    """A table of many columns on a narrow terminal: each row takes as many lines as it needs, the rest further in."""
    parts: list[list[int]] = [[]]
    used = 0
    for k, wide in enumerate(widths):
        if parts[-1] and used + 2 + wide > room - (4 if len(parts) > 1 else 0):
            parts.append([])
            used = 0
        used += wide + (2 if parts[-1] else 0)
        parts[-1].append(k)
    lines = []
    for row in every:
        for i, part in enumerate(parts):
            cells = (
                row[k].rjust(widths[k]) if align[k : k + 1] == "r" else row[k].ljust(widths[k]) for k in part
            )  # fmt: skip
            text = (" " * (indent + (4 if i else 0)) + "  ".join(cells)).rstrip()
            lines += [text] if i == 0 or text else []
        if headed and row is every[0]:
            lines.append(" " * indent + "-" * min(room, max(len(line) for line in lines) - indent))
    return lines


def _wrapped(every: list[list[str]], widths: list[int], headed: bool, room: int) -> list[str]:
    """The same, set to the left, the last column within `room`."""
    left = sum(widths) + 2 * len(widths)
    below = room - left < LEAST
    lines = []
    for k, row in enumerate(every):
        head = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        text = textwrap.wrap(row[-1], max(room - (4 if below else left), 10), break_on_hyphens=False) or [""]
        if below:
            lines += [head.rstrip(), *("    " + part for part in text if part)]
        else:
            lines += [f"{head if i == 0 else ' ' * (left - 2)}  {part}".rstrip() for i, part in enumerate(text)]
        if k == 0 and headed:
            lines.append("-" * max(len(line) for line in lines))
    return lines


def terminal_width() -> int:
    """Columns of the terminal, or COLUMNS; 0 in a pipe without it: there a line is an entry, however long."""
    if not (os.environ.get("COLUMNS") or sys.stdout.isatty()):
        return 0
    return max(shutil.get_terminal_size().columns, 40)


def filled(text: str, width: int) -> str:
    """A paragraph wrapped into the width (0: one line)."""
    return textwrap.fill(text, width) if width else text


def matrix(values: ArrayLike, decimals: int, header: Sequence[str] = (), names: Sequence[str] = ()) -> list[str]:
    """Lines of a matrix or, as one row, a vector: right-aligned numbers, with column titles and row names if given.

    values: (m, n) or (n,).
    """
    rows = [[number(v, decimals) for v in row] for row in np.atleast_2d(np.asarray(values, dtype=float))]
    if names:
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
        header = ["", *header] if header else header
    columns = max((len(row) for row in rows), default=0)
    align = ("l" if names else "r") + "r" * (columns - 1)
    return table(rows, header, align)


def _drawn(share: float) -> str:
    full = int(_WIDTH * min(1.0, max(0.0, share)))
    return "[" + "#" * full + "-" * (_WIDTH - full) + "]"


def _left(share: float, past: float) -> str:
    """The time that is left after `past` seconds; before a tenth of the work and half a second it is a guess."""
    if not (0.1 < share < 1.0 and past > 0.5):
        return ""
    left = past / share - past
    return f", {left:.0f} s left" if left < 90.0 else f", {left / 60.0:.0f} min left"


class Line:
    """What is being done: `with Line() as say`, then `say(text)`; at the end the line is cleared."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        self._print(f"\r{_OBEYED.sub('?', text)[: _LINE - 1].ljust(_LINE - 1)}", "")

    def end(self) -> None:
        """Clear the line; may be called twice."""
        self._print("\r" + " " * _LINE + "\r", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def leave(self) -> None:
        """Let the line stay and go to the next."""
        self._print("", "\n")

    def _print(self, text: str, end: str) -> None:
        if self._shown:
            try:
                print(text, end=end, file=_obeyed(sys.stderr), flush=True)
            except OSError:  # the terminal was closed: no reason to end what is being done
                self._shown = False


class Bar(Line):
    """Work of a known size: `bar(what, share)` with the seconds that are left once they can be told."""

    def __init__(self) -> None:
        super().__init__()
        self._start = time.perf_counter()

    def __call__(self, what: str, share: float = 0.0) -> None:
        past = time.perf_counter() - self._start
        super().__call__(f"{_drawn(share)} {what}{_left(share, past)}")


class Clock:
    """A simulation: `clock(elapsed, duration)` in simulated seconds, with the real-time factor; the line stays."""

    def __init__(self) -> None:
        self._line = Line()
        self._start = time.perf_counter()

    def __call__(self, elapsed: float, duration: float) -> None:
        past = time.perf_counter() - self._start
        words = f"{elapsed:6.1f} of {duration:.1f} s, {elapsed / max(1e-9, past):.1f}x real time"
        self._line(f"{_drawn(elapsed / duration)} {words}{_left(elapsed / duration, past)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Leave the line."""
        self._line.leave()


class Live:
    """Lines at the bottom of a terminal that are written over and over: `make()` gives them, some times a second.

    In a file, a pipe or a terminal without escape codes (`shown` is False) nothing is written. What is printed within
    `above()` stands above them and stays.
    """

    def __init__(self, make: Callable[[], list[str]], seconds: float = 0.25) -> None:
        self._make, self._seconds, self._drawn = make, seconds, 0
        self.shown = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._lock, self._over = threading.RLock(), threading.Event()

    def __enter__(self) -> Live:
        if self.shown:
            self._draw()
            threading.Thread(target=self._work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self._over.set()
            with self._lock:
                self._draw()
                self._drawn = 0  # the last of it stays

    @contextmanager
    def above(self) -> Iterator[None]:
        """Print what is to stay: the lines are taken away and come back below it."""
        with self._lock:
            self._clear()
            yield
            if self.shown and not self._over.is_set():
                self._draw()

    def _work(self) -> None:
        while not self._over.wait(self._seconds):
            with self._lock, suppress(OSError, ValueError):  # a terminal that is gone
                if not self._over.is_set():
                    self._draw()

    def _clear(self) -> None:
        if self._drawn:
            _obeyed(sys.stdout).write(f"\x1b[{self._drawn}F\x1b[J")
            sys.stdout.flush()
            self._drawn = 0

    def _draw(self) -> None:
        wide = shutil.get_terminal_size().columns
        # a line that wraps would be counted wrongly
        lines = [_OURS.sub("?", line)[: wide - 1] for line in self._make()]
        up = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        _obeyed(sys.stdout).write(up + "\n".join(lines) + "\n")
        sys.stdout.flush()
        self._drawn = len(lines)
