"""Who takes part in a run while it goes on: sinks see its rows and events, live inputs change it."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from tangere.errors import InvalidValue
from tangere.plants.pull import Load, Pull, Release
from tangere.plants.pushes import Push, push_record
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

    def close(self, result: RunResult | None) -> str:
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


Target = Literal["controller", "plant"]


@dataclass(frozen=True)
class Change:
    """Something of the controller or the plant set anew.

    controller: any gain that it has as a public attribute (kp, stiffness, damping_ratio ...), one number or as many as
    it has. plant: payload [kg] at the flange, friction as a factor on its own law.
    """

    target: Target
    name: str
    value: float | tuple[float, ...]


Input = Push | Pull | Release | Load | Change


class Live(Protocol):
    """Where live inputs come from."""

    def take(self, time: float) -> list[Input]:
        """What came since the last call; time [s] of the sample. Called in every period: it returns at once."""


class LiveChannel:
    """A queue of live inputs that any thread may fill: `put(Push(2, 20.0, 0.0, 0.5))` acts from the next period on.

    The start of a push counts from the sample at which it is taken.
    """

    def __init__(self) -> None:
        self._waiting: deque[Input] = deque()

    def put(self, item: Input) -> None:
        """Add an input, from any thread."""
        self._waiting.append(item)

    def take(self, time: float) -> list[Input]:
        """What came since the last call."""
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken


def apply(item: Input, time: float, plant: Any, controller: Any) -> str:
    """Do it; the note for the log: what was done, as JSON, or why it could not be. Nothing is raised in a loop."""
    if isinstance(item, Push):
        item = replace(item, start=time + item.start)
        told = {"live": "push", **push_record(item)}
    else:
        told = {"live": type(item).__name__.lower(), **asdict(item)}
    try:
        if isinstance(item, Push):
            plant.push(item)
        elif isinstance(item, Pull | Release):
            plant.pull(item if isinstance(item, Pull) else None)
        elif isinstance(item, Load):
            plant.load(item)
        elif item.target == "plant":
            plant.change(item.name, item.value)
        else:
            _set_gain(controller, item.name, item.value)
    except Exception as problem:
        return f"live: refused: {problem}: {json.dumps(told)}"
    return json.dumps(told)


def _set_gain(controller: Any, name: str, value: float | tuple[float, ...]) -> None:
    """Set a gain of the controller, or of the one that it wraps."""
    owner = controller
    while not hasattr(owner, name) and hasattr(owner, "controller"):
        owner = owner.controller
    before = np.asarray(getattr(owner, name, None), dtype=np.float64) if not name.startswith("_") else np.array(np.nan)
    if not np.all(np.isfinite(before)):
        raise InvalidValue(f"{type(owner).__name__} has no gain {name!r}")
    after = np.broadcast_to(np.asarray(value, dtype=np.float64), before.shape)
    if not np.all(np.isfinite(after) & (after >= 0.0)):
        raise InvalidValue(f"{name}: finite and not negative, got {value!r}")
    setattr(owner, name, after.copy() if before.ndim else float(after))
