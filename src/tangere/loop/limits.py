"""Limits of an arm that a run reached or went beyond, guarded or not."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from tangere.errors import BeyondLimits
from tangere.logs.log import Log
from tangere.loop.recorder import Recorder
from tangere.robots import Robot
from tangere.types import AT, BEYOND


class Limits:
    """Which limits were reached, from the rows of a run in their order."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._found: dict[str, tuple[float, int]] = {}  # what -> when first [s], in how many periods

    def take(self, log: Log) -> None:
        """Look at some rows."""
        robot = self._robot
        torque = np.abs(log["tau_cmd"])
        reached = {
            f"{BEYOND}speed": (np.abs(log["qd"]) > robot.qd_max, robot.qd_max, "rad/s"),
            f"{BEYOND}torque": (torque > robot.tau_max, robot.tau_max, "Nm"),
            f"{AT}torque": (torque == robot.tau_max, robot.tau_max, "Nm"),  # a controller that cuts it off itself
            f"{BEYOND}lower end": (log["q"] < robot.q_min, robot.q_min, "rad"),
            f"{BEYOND}upper end": (log["q"] > robot.q_max, robot.q_max, "rad"),
        }
        for what, (beyond, limit, turning) in reached.items():
            for j in np.flatnonzero(beyond.any(axis=0)).tolist():
                text = f"joint {j + 1}{what} of {limit[j]:.4g} {robot.unit(j + 1, turning)}"
                first, periods = self._found.get(text, (float(log.time[int(np.argmax(beyond[:, j]))]), 0))
                self._found[text] = first, periods + int(beyond[:, j].sum())

    def told(self, recorder: Recorder, said: Mapping[str, int]) -> dict[str, int]:
        """Note the limits in the log, warn of the first; each with its periods. said: what the controller noted."""
        reached = self.reached(said)
        for time, text, _ in reached:
            recorder.note(time, text)
        beyond = next((text for _, text, _ in reached if BEYOND in text), "")
        if beyond:
            warnings.warn(
                f"{beyond}, and the run went on; its page and result.interventions say how often. "
                "Often gains that are too large for the period",
                BeyondLimits,
                stacklevel=3,
            )
        return {text: periods for _, text, periods in reached}

    def reached(self, said: Mapping[str, int]) -> list[tuple[float, str, int]]:
        """When first [s], what, in how many periods; not what the controller itself said of a joint's torque."""
        cut = {f"joint {j}" for j in range(1, self._robot.dof + 1) if any(f"torque of joint {j} " in x for x in said)}
        found = {x: one for x, one in self._found.items() if x.partition(f"{AT}torque ")[0] not in cut}
        return sorted((first, text, periods) for text, (first, periods) in found.items())


def by_joint(said: Mapping[str, int]) -> dict[str, int]:
    """What was said of a run, in the order of its words, joint 2 before joint 10."""
    return dict(sorted(said.items(), key=lambda one: [w.zfill(3) if w.isdigit() else w for w in one[0].split()]))
