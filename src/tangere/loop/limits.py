"""Limits of an arm that a run went beyond, guarded or not."""

from __future__ import annotations

import numpy as np

from tangere.logs.log import Log
from tangere.robots import Robot


def limits_reached(log: Log, robot: Robot) -> list[tuple[float, str, int]]:
    """Limits of the arm that were reached: when first [s], what, in how many periods."""
    found = []
    reached = {
        "speed": (np.abs(log["qd"]) > robot.qd_max, robot.qd_max, "rad/s"),
        "torque": (np.abs(log["tau_cmd"]) > robot.tau_max, robot.tau_max, "Nm"),
        "lower end": (log["q"] < robot.q_min, robot.q_min, "rad"),
        "upper end": (log["q"] > robot.q_max, robot.q_max, "rad"),
    }
    for what, (beyond, limit, unit) in reached.items():
        for j in np.flatnonzero(beyond.any(axis=0)).tolist():
            text = f"joint {j + 1} beyond its {what} of {limit[j]:.4g} {unit}"
            found.append((float(log.time[int(np.argmax(beyond[:, j]))]), text, int(beyond[:, j].sum())))
    return sorted(found)
