"""Live inputs: what somebody does to a run while it goes on. The studio, a script and a test use the same channel."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, Literal, Protocol

from tangere.plants.pushes import Push, PushForce

Target = Literal["controller", "plant", "observer"]


@dataclass(frozen=True)
class Change:
    """A number of the controller (a gain), the plant (payload, friction) or the first observer (its gain) set anew."""

    target: Target
    name: str
    value: float | tuple[float, ...]


Input = Push | PushForce | Change


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


def apply(item: Input, time: float, plant: Any, controller: Any, observer: Any) -> str:
    """Do it; the note for the log: what was done, as JSON, or why it could not be. Nothing is raised in a loop."""
    target: Any
    arguments: tuple[Any, ...]
    if isinstance(item, Push | PushForce):
        item = replace(item, start=time + item.start)
        target, call, arguments = plant, "push", (item,)
        told = {"live": "push", **{k: v for k, v in asdict(item).items() if v != inf}}
    else:
        target = {"controller": controller, "plant": plant, "observer": observer}.get(item.target)
        call, arguments = "change", (item.name, item.value)
        told = {"live": "change", **asdict(item)}
    done = getattr(target, call, None)
    if done is None:
        return f"live: {type(target).__name__} takes no {call}: {json.dumps(told)}"
    try:
        done(*arguments)
    except Exception as problem:
        return f"live: refused: {problem}: {json.dumps(told)}"
    return json.dumps(told)
