"""Computed torque: the model cancels the arm's dynamics, a PD per joint does the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from tangere.control.setpoint import Follower, Goal, critical, gain
from tangere.dynamics.laws import servo_acceleration
from tangere.kernels.step import compiled_step
from tangere.types import Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

KP = 100.0  # 1/s2: two poles at -10 rad/s, 1 cm of error is gone in half a second; a fiftieth of a 500 Hz control rate


class ComputedTorque(Follower):
    """Follows a joint trajectory: 000 eqs 99-104, 004 eqs 1-2.

        e = q_d - q,  tau = M(q) (qdd_d + kp e + kv ed) + C qd + g + friction(qd) - J^T F

    With the exact model edd + kv ed + kp e = 0 for every joint by itself (000 eq 103). 000 eq 100 prints edd = u; it is
    edd = -u. Anything the model lacks acts as M^-1 tau_missing: rotor inertia and friction must be in robot and
    friction. J^T F is subtracted if `feed_wrench` and the state carries a measured wrench F (of the environment on the
    robot): without it a 5 N contact drags the tool some 15 mm sideways at kp = 100.

    goal: trajectory, or joint angles, or None (stay). kp, kv: one number or n, [1/s2], [1/s]; kv None: critical.
    friction is taken at the measured speed, or at the reference's if `friction_of_reference`: exact only when tracking
    well, but noise of the speed then makes no torque.
    """

    def __init__(
        self,
        robot: Robot,
        goal: Goal,
        *,
        kp: ArrayLike = KP,
        kv: ArrayLike | None = None,
        friction: Friction | None = None,
        friction_of_reference: bool = False,
        feed_wrench: bool = False,
    ) -> None:
        super().__init__(robot, goal, friction)
        self.friction_of_reference = friction_of_reference
        self.feed_wrench = feed_wrench
        self.kp = gain(kp, robot.dof, "kp")
        self.kv = critical(self.kp) if kv is None else gain(kv, robot.dof, "kv")
        self._servo = compiled_step("servo", robot.dof)

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        reference = self.trajectory.at(state.time - self._t0)
        q, qd, servo = state.q, state.qd, self._servo
        sample = (self.kp, self.kv, q, qd, reference.q, reference.qd, reference.qdd)
        if servo is None:
            qdd = servo_acceleration(*sample)
        else:
            servo.update(*sample)
            qdd = servo.after
        tau = self.robot.inverse_dynamics(q, qd, qdd)
        if self.friction is not None:
            tau += self.friction.torque(reference.qd if self.friction_of_reference else qd)
        if self.feed_wrench and state.wrench is not None:
            tau -= state.wrench.dot(self.robot.jacobian(q))
        return Command(tau)
