"""The events of a stream: a line each as they come, or on a terminal a table that is kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from tangere.report.terminal import Live

MOST = 12  # events in the table; older ones scroll away above it


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
