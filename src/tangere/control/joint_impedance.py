"""Joint impedance: every joint a spring and a damper on a floating arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import Goal, gain, started, trajectory_of
from tangere.types import Array, Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

OMEGA = 10.0  # rad/s: default stiffness M_ii OMEGA^2 gives every joint the poles of computed torque with kp = 100


class JointImpedance:
    """Pulls the joints towards a trajectory with springs, gravity taken away: 003, "Joint Impedance Control".

        tau = k (q_d - q) + d (qd_d - qd) + g(q) + friction(qd)

    At rest under a load the joints give way by exactly tau_ext / k (friction compensated). No inertia is cancelled: a
    moving reference is followed with a lag; for tracking take ComputedTorque.

    stiffness k [Nm/rad]: one number or n; None: M_ii(q_start) OMEGA^2. damping d [Nm s/rad]: None makes each joint
    alone critically damped at the start pose, d_i = 2 zeta sqrt(k_i M_ii); coupling between joints shifts that.
    """

    def __init__(
        self,
        robot: Robot,
        goal: Goal = None,
        *,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        damping_ratio: float = 1.0,
        friction: Friction | None = None,
    ) -> None:
        self.robot = robot
        self.friction = friction
        self.damping_ratio = float(gain(damping_ratio, 1, "damping_ratio")[0])
        self._goal = trajectory_of(robot, goal)
        self._stiffness = None if stiffness is None else gain(stiffness, robot.dof, "stiffness")
        self._damping = None if damping is None else gain(damping, robot.dof, "damping")

    def start(self, state: State) -> None:
        """Design the gains that were left open at this pose; time counts from here."""
        inertia: Array = np.diag(self.robot.mass_matrix(state.q))
        self.stiffness = inertia * OMEGA**2 if self._stiffness is None else self._stiffness
        design = 2.0 * self.damping_ratio * np.sqrt(self.stiffness * inertia)
        self.damping = design if self._damping is None else self._damping
        self.trajectory = started(self.robot, self._goal, state)
        self._t0 = state.time

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        reference = self.trajectory.at(state.time - self._t0)
        tau = self.robot.gravity_torque(state.q)
        tau += self.stiffness * (reference.q - state.q)
        tau += self.damping * (reference.qd - state.qd)
        if self.friction is not None:
            tau += self.friction.torque(state.qd)
        return Command(tau)

    def stop(self) -> None:
        """Nothing to release."""
