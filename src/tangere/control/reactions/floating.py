"""Reaction: brake, then float, so that the arm can be pushed away by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.control.hand_guiding import COMPENSATION, HandGuiding
from tangere.control.reactions.handover import Handover
from tangere.types import Controller, Event, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# 1/s: damping M_ii RATE once it floats: 0.1 m/s at a tool of 8 kg take 2 N, and a push dies out within a second
RATE = 3.0


class FloatOnContact(Handover):
    """Runs a controller until an Event is given, from then on brakes and floats.

        tau = g(q) + compensation friction(qd) - M_ii RATE qd + edge(q),      after the brake of Handover

    Nothing pulls back to any place: what the arm presses on pushes it off, down to the friction that is not
    compensated. See HandGuiding for compensation and edge; M_ii is that of the touch. It floats only as well as gravity
    is known: an arm that is heavier than its model by more than friction holds sinks, and presses on what is below.
    """

    note = "floating after a touch"

    def __init__(
        self,
        controller: Controller,
        robot: Robot,
        *,
        friction: Friction | None = None,
        compensation: float = COMPENSATION,
    ) -> None:
        super().__init__(controller, robot)
        HandGuiding(robot, compensation=compensation)  # refuses what it cannot do, now and not in the loop
        self.friction, self.compensation = friction, compensation

    def answer(self, event: Event, state: State) -> Controller:
        """The floating arm, from this moment on."""
        damping = RATE * np.diag(self.robot.mass_matrix(state.q))
        return HandGuiding(self.robot, friction=self.friction, compensation=self.compensation, damping=damping)
