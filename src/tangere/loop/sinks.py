"""Sinks: whoever wants to see a run while it goes on, such as a live table, a studio or a bridge.

A sink never holds the loop up. Each has a thread and a queue of its own; rows that it cannot take in time are dropped
and counted, events are not. The log file is written by the recorder and drops nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tangere.types import Array, Command, Reference, State, Truth

if TYPE_CHECKING:
    from tangere.loop.result import RunResult
    from tangere.robots import Robot

QUEUE = 4096  # rows that may wait for a sink: 4 s of a run at 1 kHz
IDLE = 0.01  # [s] between two looks into an empty queue: what an eye cannot see
SINK_PATIENCE = 2.0  # [s] that the end of a run waits for a sink to take what it was given


@dataclass(frozen=True)
class RunInfo:
    """What is known of a run before its first row."""

    period: float  # [s] nominal
    dof: int
    columns: dict[str, int]  # name -> width of the log's columns, 0 for a column (N,)
    robot: Robot | None = None  # the arm as the controller believes it, where somebody said so
    joints: tuple[str, ...] = ()  # their names


class Sink(Protocol):
    """Takes rows and events of a run, in a thread of its own; `open` and `close` are called by the loop's."""

    def open(self, run: RunInfo) -> None:
        """Before the first row; what it raises ends the run before it begins."""

    def row(
        self,
        state: State,
        command: Command | None,
        residual: Array | None,
        reference: Reference | None,
        truth: Truth | None,
    ) -> None:
        """One period: the sample, what was answered, and what else is known of it."""

    def event(self, event: Any) -> None:
        """An event in one of its phases."""

    def close(self, result: RunResult) -> None:
        """The run is over."""


class Feed:
    """Hands rows on to a sink in a thread of its own."""

    def __init__(self, sink: Sink, run: RunInfo) -> None:
        self.sink = sink
        self.dropped = 0  # rows that the sink could not take
        self.error = ""  # what the sink raised; it gets nothing more then
        self._rows: deque[tuple[bool, Any]] = deque()  # (is an event, what)
        self._done = threading.Event()
        sink.open(run)
        self._thread = threading.Thread(target=self._work, name=f"sink {type(sink).__name__}", daemon=True)
        self._thread.start()

    def row(self, *row: Any) -> None:
        """From the loop: a deque and no lock, below 1 us."""
        if len(self._rows) >= QUEUE:
            self.dropped += 1
        else:
            self._rows.append((False, row))

    def event(self, event: Any) -> None:
        """From the loop; never dropped."""
        self._rows.append((True, event))

    def close(self, result: RunResult) -> str:
        """Wait for the sink, close it; a sentence where something was lost, else ""."""
        self._done.set()
        self._thread.join(SINK_PATIENCE)
        late = self._thread.is_alive()
        if not late and not self.error:
            self._guarded(self.sink.close, result)
        name = type(self.sink).__name__
        if self.error:
            return f"sink {name} failed: {self.error}"
        if late:
            return f"sink {name} did not take its rows within {SINK_PATIENCE:g} s"
        return f"sink {name}: {self.dropped} rows dropped" if self.dropped else ""

    def _work(self) -> None:
        while not self.error:
            try:
                is_event, what = self._rows.popleft()
            except IndexError:
                if self._done.wait(IDLE) and not self._rows:
                    return
                continue
            if is_event:
                self._guarded(self.sink.event, what)
            else:
                self._guarded(self.sink.row, *what)

    def _guarded(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as problem:  # a view that breaks must not break the run
            self.error = f"{problem or type(problem).__name__}"
