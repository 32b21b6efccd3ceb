"""What keeps task-space torques within the arm: a brake for joints that get too fast, and torque limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.types import Array, Command

if TYPE_CHECKING:
    from tangere.robots import Robot

SPEED = 0.8  # of qd_max, where the brake begins: the rest is room to brake in before the arm's own supervision trips
BRAKE = 20.0  # 1/s: excess speed dies out with this rate through M_ii: ten periods or more of any control loop
TORQUE = 0.95  # of tau_max: the rest is left to friction compensation errors and to the drives


class Bounds:
    """Limits a task-space torque: joint speeds first, then torques.

        tau -= M_ii BRAKE (qd_i beyond SPEED qd_max_i),  tau = h + alpha (tau - h),  h = C qd + g

    with the largest alpha in [0, 1] for which |tau| <= TORQUE tau_max: gravity stays compensated and the task keeps
    its direction, it only gets slower. Near a singularity a straight path asks for any joint speed; this bounds it.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._speed = SPEED * robot.qd_max
        self._torque = TORQUE * robot.tau_max
        self._per_speed = 1.0 / self._speed
        self._per_torque = 1.0 / self._torque

    def command(self, q: Array, qd: Array, tau: Array, note: str = "") -> Command:
        """The torque within the bounds; tau (n,) may be changed. Costs 2 us while nothing is at a bound."""
        share = qd * self._per_speed
        if share.dot(share) > 1.0:  # cheaper than joint by joint, and mostly below
            excess = qd - np.minimum(np.maximum(qd, -self._speed), self._speed)
            if excess.any():
                tau -= BRAKE * self.robot.mass_matrix(q).diagonal() * excess
                note = f"{note}; joint speed limited" if note else "joint speed limited"
        share = tau * self._per_torque
        if share.dot(share) > 1.0 and abs(share).max() > 1.0:
            tau = self._shortened(q, qd, tau)
            note = f"{note}; torque limited" if note else "torque limited"
        return Command(tau, note)

    def _shortened(self, q: Array, qd: Array, tau: Array) -> Array:
        h = self.robot.bias_torque(q, qd)
        task = tau - h
        size = np.abs(task)
        room = self._torque - np.sign(task) * h
        alpha = np.min(room[size > 0.0] / size[size > 0.0])
        return np.clip(h + min(max(alpha, 0.0), 1.0) * task, -self._torque, self._torque)
