"""Reactions that give way: hold the position with little stiffness, or brake and float to be pushed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.control.joint_impedance import JointImpedance
from tangere.control.reactions.handover import Handover
from tangere.types import Controller, Event, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot
from typing import TYPE_CHECKING

from tangere.control.hand_guiding import COMPENSATION, HandGuiding

if TYPE_CHECKING:
    from tangere.robots import Robot

# rad/s: frequency of the joints' springs after a touch. At 5 rad/s a UR10e's shoulder (M_ii = 8 kg m2) has 200 Nm/rad:
# a hand moves the tool by centimetres with 20 N, and the arm does not sink.
SOFT_OMEGA = 5.0


def soft_hold(robot: Robot, q: np.ndarray, friction: Friction | None) -> JointImpedance:
    """Joint springs M_ii(q) SOFT_OMEGA^2 with critical damping, around where the arm is when it is started."""
    stiffness = np.diag(robot.mass_matrix(q)) * SOFT_OMEGA**2
    return JointImpedance(robot, None, stiffness=stiffness, friction=friction)


class StopOnContact(Handover):
    """Runs a controller until an Event is given, from then on holds the position softly.

    After `on_event` the next step starts a JointImpedance at the joint angles of that moment, with stiffness
    M_ii SOFT_OMEGA^2 and critical damping: the arm brakes, and gives way to who touched it.
    """

    note = "holding softly after a touch"

    def __init__(self, controller: Controller, robot: Robot, *, friction: Friction | None = None) -> None:
        super().__init__(controller, robot)
        self.friction = friction

    def answer(self, event: Event, state: State) -> Controller:
        """Springs around the joint angles of this moment."""
        return soft_hold(self.robot, state.q, self.friction)


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
