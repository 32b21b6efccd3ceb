"""A touch felt by the joints alone: the speeds stop doing what the model says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tangere.control.force_velocity import LEAST, VelocityFilter
from tangere.types import Array, State

if TYPE_CHECKING:
    from tangere.robot import Robot

# Samples that are looked at, and the alarm in standard deviations. From the touch on the speed lacks k v t^2 / 2 of
# what it should be: weights t^2 over the last 12 ms. A sample of noise alone passes 4.0 once in 3e4 (30 s of searching,
# a tenth of a second a stroke); such a mistake only lets the pen come down as gently as before
WINDOW, ALARM = 12, 4.0
WEIGHTS = np.arange(1.0, WINDOW + 1.0) ** 2
WEIGHTS /= np.linalg.norm(WEIGHTS)


class JointTouch:
    """Finds a push along a normal in the joints' speeds: the matched filter of a spring that is met at a steady speed.

        a = M^-1 J_v^T n (what 1 N does to the joints),   s = sum_t w_t a.(qd - v)_t / (sigma |a|) > ALARM,  |w| = 1

    matched over the joints by a and over time by w_t ~ t^2. v: VelocityFilter without external force at its least
    bandwidth, so it follows a touch only after 50 ms.
    """

    def __init__(self, robot: Robot, q: Array, normal: Array, speed_noise: float) -> None:
        self.robot, self._normal, self._noise = robot, normal, speed_noise
        self.filter = VelocityFilter(robot, q, 1e-9, speed_noise)  # no force is measured: LEAST for every joint
        assert np.all(self.filter.bandwidth == LEAST)

    def start(self, state: State) -> None:
        """Begin with this sample."""
        self.filter.start(state)
        self._scores = np.zeros(WINDOW)  # the oldest first
        self.sum = 0.0

    def update(self, state: State, J: Array) -> bool:
        """Whether something pushes along the normal."""
        filter = self.filter
        filter.update(state, None)
        a = np.linalg.solve(self.robot.mass_matrix(state.q), self._normal.dot(J[:3]))
        size = math.sqrt(float(a.dot(a))) * self._noise
        scores = self._scores
        scores[:-1] = scores[1:]
        scores[-1] = float(a.dot(filter.innovation)) / size
        self.sum = float(WEIGHTS.dot(scores))
        return self.sum > ALARM
