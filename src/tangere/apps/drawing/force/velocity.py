"""Joint speeds with little noise: the model says how the speed changes, the measurement where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.errors import InvalidValue
from tangere.types import Array, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# rad/s, least and most of the crossover. Least: an acceleration that the model lacks is learnt within 2 / L = 0.1 s.
# Most: 2 L h = 0.6 at 1 ms; above, the filter only passes the measurement on.
LEAST, MOST = 20.0, 300.0
SPEED_NOISE = 2e-3  # rad/s per sample, what a UR10e's speeds show at rest


class VelocityFilter:
    """qd from a noisy measurement and the dynamics, without lag where the model is right.

        v-   = v + h (qdd_model + d),   qdd_model = M^-1 (tau + J^T F - C v - g)
        v    = v- + 2 L h (qd - v-),    d = d + (L^2 h) (qd - v-)

    d is what the model lacks as a joint acceleration: the error of v has two poles at L. The measured force brings
    noise of its own into qdd_model; L of each joint is where both noises are equally strong,

        L_j = force_noise |M^-1 J_v^T|_j / speed_noise,    held within LEAST and MOST

    so a heavy shoulder is smoothed (its speed passes with sqrt(5 L h / 4), 0.16 at 20 rad/s and 1 ms) and a light
    wrist, which any newton shakes, is hardly. force_noise [N], speed_noise [rad/s] per sample; q (n,): where the
    inertia is taken.
    """

    def __init__(self, robot: Robot, q: Array, force_noise: float, speed_noise: float) -> None:
        if not (force_noise > 0.0 and speed_noise > 0.0):
            raise InvalidValue(f"noise: positive [N] and [rad/s], got {force_noise!r} and {speed_noise!r}")
        self.robot = robot
        shaken = np.linalg.norm(np.linalg.solve(robot.mass_matrix(q), robot.jacobian(q)[:3].T), axis=1)
        self.bandwidth: Array = np.clip(force_noise * shaken / speed_noise, LEAST, MOST)

    def start(self, state: State) -> None:
        """Begin with the measured speed and no disturbance."""
        self._q, self.qd = state.q, state.qd
        self._d = np.zeros(len(state.q))
        self.innovation = self._d
        self._time, self._h = state.time, -1.0

    def update(self, state: State, external: Array | None) -> Array:
        """qd (n,) now; external (n,) [Nm]: joint torque of what was measured to push since the sample before."""
        h = state.period
        if state.time == self._time or not h > 0.0:
            return self.qd
        self._time = state.time
        tau = state.tau if external is None else state.tau + external
        predicted = self.robot.forward_dynamics(self._q, self.qd, tau)
        predicted += self._d
        predicted *= h
        predicted += self.qd
        innovation = state.qd - predicted
        self.innovation = innovation.copy()  # (n,) rad/s, of this sample
        if h != self._h:
            self._h = h
            self._fast, self._slow = np.minimum(2.0 * self.bandwidth * h, 1.0), self.bandwidth**2 * h
        self._d = self._d + self._slow * innovation
        innovation *= self._fast
        predicted += innovation
        self._q, self.qd = state.q, predicted
        return predicted
