"""A touch felt by the joints alone: the speeds stop doing what the model says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tangere.control.force_velocity import LEAST, VelocityFilter
from tangere.types import Array, State

if TYPE_CHECKING:
    from tangere.robot import Robot

# Page's cumulative sum, in standard deviations of the noise: what is taken off each sample, and the alarm. False alarms
# come every exp(2 * 0.5 * 10) = 2e4 samples of searching, 20 s; one only lets the pen come down as gently as before.
SLACK, ALARM = 0.5, 10.0


class JointTouch:
    """Finds a push along a normal in the joints' speeds: the matched filter of a force, summed up.

        a = M^-1 J_v^T n (what 1 N does to the joints),   s = max(0, s + a.(qd - v) / (sigma |a|) - SLACK) > ALARM

    v: VelocityFilter without external force at its least bandwidth, so it follows a touch only after 50 ms. A pen that
    meets 2e4 N/m at 10 mm/s (200 N/s) on a UR5e is felt after 10 ms, with 2 N.
    """

    def __init__(self, robot: Robot, q: Array, normal: Array, speed_noise: float) -> None:
        self.robot, self._normal, self._noise = robot, normal, speed_noise
        self.filter = VelocityFilter(robot, q, 1e-9, speed_noise)  # no force is measured: LEAST for every joint
        assert np.all(self.filter.bandwidth == LEAST)

    def start(self, state: State) -> None:
        """Begin with this sample."""
        self.filter.start(state)
        self.sum = 0.0

    def update(self, state: State, J: Array) -> bool:
        """Whether something pushes along the normal."""
        filter = self.filter
        filter.update(state, None)
        a = np.linalg.solve(self.robot.mass_matrix(state.q), self._normal.dot(J[:3]))
        size = math.sqrt(float(a.dot(a))) * self._noise
        self.sum = max(0.0, self.sum + float(a.dot(filter.innovation)) / size - SLACK)
        return self.sum > ALARM
