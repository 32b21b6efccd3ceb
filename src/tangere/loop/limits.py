"""Limits of an arm that a run went beyond, guarded or not."""

from __future__ import annotations

import warnings

import numpy as np

from tangere.errors import BeyondLimits
from tangere.logs.log import Log
from tangere.loop.recorder import Recorder
from tangere.robots import Robot
from tangere.types import BEYOND


class Limits:
    """Which limits were reached, from the rows of a run in their order."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._found: dict[str, tuple[float, int]] = {}  # what -> when first [s], in how many periods

    def take(self, log: Log) -> None:
        """Look at some rows."""
        robot = self._robot
        reached = {
            "speed": (np.abs(log["qd"]) > robot.qd_max, robot.qd_max, "rad/s"),
            "torque": (np.abs(log["tau_cmd"]) > robot.tau_max, robot.tau_max, "Nm"),
            "lower end": (log["q"] < robot.q_min, robot.q_min, "rad"),
            "upper end": (log["q"] > robot.q_max, robot.q_max, "rad"),
        }
        for what, (beyond, limit, turning) in reached.items():
            for j in np.flatnonzero(beyond.any(axis=0)).tolist():
                text = f"joint {j + 1}{BEYOND}{what} of {limit[j]:.4g} {robot.unit(j + 1, turning)}"
                first, periods = self._found.get(text, (float(log.time[int(np.argmax(beyond[:, j]))]), 0))
                self._found[text] = first, periods + int(beyond[:, j].sum())

    def told(self, recorder: Recorder) -> dict[str, int]:
        """Note the limits in the log, warn of the first; each with the number of its periods."""
        for time, text, _ in self.reached:
            recorder.note(time, text)
        if self.reached:
            warnings.warn(
                f"{self.reached[0][1]}, and the run went on; its page and result.interventions say how often. "
                "Often gains that are too large for the period",
                BeyondLimits,
                stacklevel=3,
            )
        return {text: periods for _, text, periods in sorted(self.reached, key=lambda one: one[1])}

    @property
    def reached(self) -> list[tuple[float, str, int]]:
        """When first [s], what, in how many periods."""
        return sorted((first, text, periods) for text, (first, periods) in self._found.items())
