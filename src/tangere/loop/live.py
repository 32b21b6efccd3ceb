"""Live inputs: what somebody does to a run while it goes on. The studio, a script and a test use the same channel."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, Literal, Protocol

import numpy as np

from tangere.errors import InvalidValue
from tangere.plants.pushes import Push, PushForce

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


def apply(item: Input, time: float, plant: Any, controller: Any) -> str:
    """Do it; the note for the log: what was done, as JSON, or why it could not be. Nothing is raised in a loop."""
    if isinstance(item, Push | PushForce):
        item = replace(item, start=time + item.start)
        told = {"live": "push", **{k: v for k, v in asdict(item).items() if v != inf}}
    else:
        told = {"live": "change", **asdict(item)}
    try:
        if isinstance(item, Push | PushForce):
            plant.push(item)
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
