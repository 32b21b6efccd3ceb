"""Hand guiding: the arm floats and follows the hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import gain
from tangere.errors import InvalidValue
from tangere.types import Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# share of the friction that is taken away. At 1 the arm would never stop, above 1 it runs away by itself; friction of
# one arm differs by some 20 % between cold and warm, so 0.7 stays below 1 with what was identified warm.
COMPENSATION = 0.7
# 1/s: speed dies out with this rate through M_ii; 1 s to stop after a push feels free and does not coast far
RATE = 1.0
# rad (m) before a joint limit where a spring begins to push back: 6 degrees, a few cm at the tool
MARGIN = 0.1
# rad/s at which the edge spring oscillates with M_ii: stiff to the hand, slow against any control period
EDGE_OMEGA = 15.0


class HandGuiding:
    """Gravity compensation with zero torque against the hand: partial friction compensation, a little damping.

        tau = g(q) + compensation friction(qd) - d qd + edge(q)

    edge pushes back within MARGIN of q_min and q_max (a spring that is zero at the margin, with damping). Without
    friction and with d = 0 the arm stays wherever it is left, and goes on moving when pushed.

    friction: the arm's law, None: none to compensate. damping d [Nm s/rad]: one number or n; None: M_ii(q_start) RATE.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        friction: Friction | None = None,
        compensation: float = COMPENSATION,
        damping: ArrayLike | None = None,
    ) -> None:
        if not 0.0 <= compensation < 1.0:
            raise InvalidValue(f"compensation: must be in [0, 1), from 1 on it moves by itself, got {compensation!r}")
        self.robot = robot
        self.friction = friction
        self.compensation = compensation
        self._damping = None if damping is None else gain(damping, robot.dof, "damping")
        self._low, self._high = robot.q_min + MARGIN, robot.q_max - MARGIN

    def start(self, state: State) -> None:
        """Design the damping and the edges at this pose."""
        inertia = np.diag(self.robot.mass_matrix(state.q))
        self.damping = inertia * RATE if self._damping is None else self._damping
        self._edge = inertia * EDGE_OMEGA**2
        self._edge_damping = 2.0 * inertia * EDGE_OMEGA  # critical with M_ii

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        q, qd = state.q, state.qd
        tau = self.robot.gravity_torque(q)
        tau -= self.damping * qd
        if self.friction is not None:
            tau += self.compensation * self.friction.torque(qd)
        inside = np.minimum(np.maximum(q, self._low), self._high)
        beyond = q - inside
        if beyond.any():
            # the damper pulls only outwards motion back, so that the arm can be led away from the edge freely
            outwards = np.where(beyond * qd > 0.0, qd, 0.0)
            tau -= self._edge * beyond + self._edge_damping * outwards
            return Command(tau, "near a joint limit")
        return Command(tau)

    def stop(self) -> None:
        """Nothing to release."""
