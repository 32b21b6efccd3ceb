"""Limits of an arm that a run reached or went beyond, guarded or not."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tangere.errors import BeyondLimits
from tangere.logs.log import Log
from tangere.loop.recorder import Recorder
from tangere.robots import Robot

AT_TORQUE = "at its torque"


@dataclass(frozen=True, order=True)
class Reached:
    """A limit that a joint reached or went beyond."""

    time: float  # [s] when first
    text: str  # joint 6 beyond its speed of 3.14 rad/s
    periods: int
    beyond: bool
    cut: int = 0  # the joint (from 1) whose torque lay at its limit: a controller may have cut it off itself


class Limits:
    """Which limits were reached, from the rows of a run in their order."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._found: dict[str, Reached] = {}  # by their text

    def take(self, log: Log) -> None:
        """Look at some rows."""
        robot = self._robot
        torque = np.abs(log["tau_cmd"])
        reached = {
            "beyond its speed": (np.abs(log["qd"]) > robot.qd_max, robot.qd_max, "rad/s"),
            "beyond its torque": (torque > robot.tau_max, robot.tau_max, "Nm"),
            AT_TORQUE: (torque == robot.tau_max, robot.tau_max, "Nm"),
            "beyond its lower end": (log["q"] < robot.q_min, robot.q_min, "rad"),
            "beyond its upper end": (log["q"] > robot.q_max, robot.q_max, "rad"),
        }
        for what, (beyond, limit, turning) in reached.items():
            for j in np.flatnonzero(beyond.any(axis=0)).tolist():
                text = f"joint {j + 1} {what} of {limit[j]:.4g} {robot.unit(j + 1, turning)}"
                first, at = float(log.time[int(np.argmax(beyond[:, j]))]), what == AT_TORQUE
                one = self._found.get(text, Reached(first, text, 0, not at, j + 1 if at else 0))
                self._found[text] = replace(one, periods=one.periods + int(beyond[:, j].sum()))

    def told(self, recorder: Recorder, said: Mapping[str, int]) -> list[Reached]:
        """Note the limits in the log, warn of the first that was exceeded. said: what the controller noted."""
        reached = self.reached(said)
        for one in reached:
            recorder.note(one.time, one.text)
        if beyond := next((one.text for one in reached if one.beyond), ""):
            warnings.warn(
                f"{beyond}, and the run went on; its page and result.interventions say how often. "
                "Often gains that are too large for the period",
                BeyondLimits,
                stacklevel=3,
            )
        return reached

    def reached(self, said: Mapping[str, int]) -> list[Reached]:
        """In their order; not what the controller itself said of a joint's torque."""
        return sorted(x for x in self._found.values() if not any(f"torque of joint {x.cut} " in note for note in said))


def by_joint(said: Mapping[str, int]) -> dict[str, int]:
    """What was said of a run, in the order of its words, joint 2 before joint 10."""
    return dict(sorted(said.items(), key=lambda one: [w.zfill(3) if w.isdigit() else w for w in one[0].split()]))
