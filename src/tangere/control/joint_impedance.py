"""Springs and dampers at the joints of a floating arm: impedance, a wrench to press with, and none for the hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import Follower, Goal, Wrench, gain, wrench_of
from tangere.dynamics.laws import spring_torque
from tangere.errors import InvalidValue
from tangere.types import Array, Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

OMEGA = 10.0  # rad/s: default stiffness M_ii OMEGA^2 gives every joint the poles of computed torque with kp = 100


class JointImpedance(Follower):
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
        super().__init__(robot, goal, friction)
        self.damping_ratio = float(gain(damping_ratio, 1, "damping_ratio")[0])
        self._stiffness = None if stiffness is None else gain(stiffness, robot.dof, "stiffness")
        self._damping = None if damping is None else gain(damping, robot.dof, "damping")

    @property
    def designs(self) -> bool:
        """Whether gains were left open: they follow from the pose at the start."""
        return self._stiffness is None or self._damping is None

    def start(self, state: State) -> None:
        """Design the gains that were left open at this pose; time counts from here."""
        inertia: Array = np.diag(self.robot.mass_matrix(state.q))
        self.stiffness = inertia * OMEGA**2 if self._stiffness is None else self._stiffness
        design = 2.0 * self.damping_ratio * np.sqrt(self.stiffness * inertia)
        self.damping = design if self._damping is None else self._damping
        super().start(state)

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        reference = self.trajectory.at(state.time - self._t0)
        q, qd, g = state.q, state.qd, self.robot.gravity_torque(state.q)
        tau = spring_torque(self.stiffness, self.damping, q, qd, reference.q, reference.qd, g)
        if self.friction is not None:
            tau += self.friction.torque(qd)
        return Command(tau)


class QuasiStatic(Follower):
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
        super().__init__(robot, goal, friction)
        self.wrench = wrench_of(np.zeros(6) if wrench is None else wrench)
        self.stiffness = gain(stiffness, robot.dof, "stiffness")
        self.damping = gain(damping, robot.dof, "damping")
        self._springs = bool(np.any(self.stiffness > 0.0) or np.any(self.damping > 0.0))

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
