"""Quasi-static torque: hold the arm up and press with a given wrench, document 002."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import Goal, Wrench, gain, started, trajectory_of, wrench_of
from tangere.types import Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot


class QuasiStatic:
    """Balances gravity and a contact wrench: 002's tau = g - J^T F, with joint springs if wanted.

        tau = g(q) - J(q)^T F + k (q_d - q) + d (qd_d - qd) + friction(qd)

    F (6,) is the wrench of the environment ON the robot at the tcp, base axes: 002's F = (0, -5, 0, 0, 0, 0) presses
    with 5 N along +y. At rest with F really acting qdd = 0; where nothing answers, the arm accelerates along -F, so
    some damping (or springs along a trajectory) belongs to it. There is no force feedback: an error of g of 1 Nm is
    about 1 N at the tool. In a singular pose only J^T F reaches the drives, the structure carries the rest.

    wrench: (6,) or a function of the time since the start. goal, stiffness, damping as in JointImpedance; both 0 here.
    """

    def __init__(
        self,
        robot: Robot,
        wrench: Wrench,
        goal: Goal = None,
        *,
        stiffness: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        friction: Friction | None = None,
    ) -> None:
        self.robot = robot
        self.wrench = wrench_of(np.zeros(6) if wrench is None else wrench)
        self.friction = friction
        self.stiffness = gain(stiffness, robot.dof, "stiffness")
        self.damping = gain(damping, robot.dof, "damping")
        self._springs = bool(np.any(self.stiffness > 0.0) or np.any(self.damping > 0.0))
        self._goal = trajectory_of(robot, goal)

    def start(self, state: State) -> None:
        """Time counts from here."""
        self.trajectory = started(self.robot, self._goal, state)
        self._t0 = state.time

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        q, time = state.q, state.time - self._t0
        tau = self.robot.gravity_torque(q)
        if self.wrench is not None:
            tau -= self.wrench(time).dot(self.robot.jacobian(q))
        if self._springs:
            reference = self.trajectory.at(time)
            tau += self.stiffness * (reference.q - q)
            tau += self.damping * (reference.qd - state.qd)
        if self.friction is not None:
            tau += self.friction.torque(state.qd)
        return Command(tau)

    def stop(self) -> None:
        """Nothing to release."""
