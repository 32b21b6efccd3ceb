"""Reactions to a touch: controllers that are given a Contact value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.control.joint_impedance import JointImpedance
from tangere.control.setpoint import Friction
from tangere.types import Command, Contact, Controller, State

if TYPE_CHECKING:
    from tangere.robot import Robot

# rad/s: frequency of the joints' springs after a touch. At 5 rad/s a UR10e's shoulder (M_ii = 8 kg m2) has 200 Nm/rad:
# a hand moves the tool by centimetres with 20 N, and the arm does not sink.
SOFT_OMEGA = 5.0


class StopOnContact:
    """Runs a controller until a Contact is given, from then on holds the position softly.

    After `on_contact` the next step starts a JointImpedance at the joint angles of that moment, with stiffness
    M_ii SOFT_OMEGA^2 and critical damping: the arm brakes, and gives way to who touched it.
    """

    def __init__(self, controller: Controller, robot: Robot, *, friction: Friction | None = None) -> None:
        self.controller = controller
        self.robot = robot
        self.friction = friction
        self.contact: Contact | None = None
        self._soft: JointImpedance | None = None

    def on_contact(self, contact: Contact) -> None:
        """The touch to react to; later ones are ignored."""
        if self.contact is None:
            self.contact = contact

    def start(self, state: State) -> None:
        """Start the controller; a contact from before is forgotten."""
        self.contact = self._soft = None
        self.controller.start(state)

    def step(self, state: State) -> Command:
        """The controller's torque, or the soft hold's."""
        if self.contact is None:
            return self.controller.step(state)
        if self._soft is None:
            stiffness = np.diag(self.robot.mass_matrix(state.q)) * SOFT_OMEGA**2
            self._soft = JointImpedance(self.robot, None, stiffness=stiffness, friction=self.friction)
            self._soft.start(state)
        return Command(self._soft.step(state).tau, "holding softly after a touch")

    def stop(self) -> None:
        """Stop the controller."""
        self.controller.stop()
