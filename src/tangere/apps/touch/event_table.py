"""An event as a line of JSON or of a table; of a stream line by line, or as a table that is kept up to date."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tangere.logs.files import plain
from tangere.report.section import link_words
from tangere.report.terminal import Live
from tangere.robots import Robot
from tangere.types import Event

HEAD = ("at [s]", "stamp", "onset", "lasts", "what", "sure", "link", "joint", "torque", "force", "")
ALIGN = "rrrrlrlrrrl"
_WIDTHS = (9, 12, 9, 6, 9, 5, 30, 5, 9, 6, 8)  # of a table that is written line by line
MOST = 12  # events in the table; older ones scroll away above it
_ONE_LINE = threading.Lock()  # print writes a text and its end of line apart


class EventTable:
    """`told(number, line)` writes an event, or in a table writes it anew; `status`: the line below it.

    While the block lasts everything else is printed within `above()`, so that the table stays at the bottom.
    """

    def __init__(self, head: str, status: Callable[[], str], live: Live | None = None) -> None:
        self._head, self._status = head, status
        self._rows: dict[int, str] = {}
        self._live = Live(self._lines) if live is None else live
        self.above = self._live.above

    def _lines(self) -> list[str]:
        return [self._head, *list(self._rows.values())[-MOST:], self._status()]

    def __enter__(self) -> EventTable:
        if not self._live.shown:
            print(self._head, flush=True)
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, value, trace)

    def told(self, number: int, line: str) -> None:
        """An event, or news of it."""
        if not self._live.shown:
            print(line, flush=True)
            return
        with self.above():
            self._rows[number] = line
            while len(self._rows) > MOST:
                print(self._rows.pop(next(iter(self._rows))))


def stream_line(phase: str, cells: tuple[str, ...]) -> str:
    """A line of the table of a stream, whose widths must be known beforehand."""
    set_ = (
        cell.rjust(width) if align == "r" else cell.ljust(width)
        for cell, width, align in zip(cells, _WIDTHS, ALIGN, strict=True)
    )
    return f"{phase:7s} {'  '.join(set_)}".rstrip()


def cells(event: Event, first: float, robot: Robot) -> tuple[str, ...]:
    """An event of an arm as cells of the table."""
    lasts = "open" if event.end_s is None else f"{event.end_s - event.onset_s:.2f}"
    link = event.why_no_link or ("-" if event.masked else "?")  # of what was expected nobody asks which link
    if event.link is not None:
        link = f"{event.link} ({100.0 * event.link_probability:.0f} %)"
    elif event.links:
        rest = [f"{'two' if name is None else name} {100.0 * p:.0f} %" for name, p in event.links[:2]]
        link += ": " + " or ".join(rest)
    if event.mass_interval_kg is not None:
        link = link_words(event)  # of a payload its mass
    remark = "" if event.alarm else "no alarm"
    force = "" if event.force_n is None else f"{event.force_n:.0f} N"
    return (
        f"{event.time_s - first:.3f}", f"{event.time_s:.3f}", f"{event.onset_s - first:.3f}", lasts, event.kind,
        f"{100.0 * event.confidence:.0f} %" if event.confidence else "-", link, str(event.joint),
        f"{event.torque_nm:.3g} {robot.unit(event.joint, 'Nm')}", force, remark,
    )  # fmt: skip


def json_line(event: Event, log: str, first: float, phase: str, **more: float) -> None:
    """Print an event as one line."""
    about = {"log": log, "event": event.number, "phase": phase, "since_start_s": event.time_s - first} | more
    json_object(about | event.record() | {"phase": phase})


def json_object(about: dict[str, Any]) -> None:
    """Print an object as one line; a heartbeat's thread and an event that come together are two lines."""
    line = json.dumps(plain(about), allow_nan=False)
    with _ONE_LINE:
        print(line, flush=True)
