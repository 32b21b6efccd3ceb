"""Cartesian impedance: the tool as a mass on springs, for contact with the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import Follower, Goal, Wrench, gain, wrench_of
from tangere.control.task_space import LENGTH, Bounds, ToolInertia, tool_reference
from tangere.kernels.step import arm_step, step
from tangere.types import Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# N/m and Nm/rad: 1000 N/m gives way 5 mm under the 5 N of the drawing tasks; turning the same at LENGTH
STIFFNESS = (1000.0, 1000.0, 1000.0, 1000.0 * LENGTH**2, 1000.0 * LENGTH**2, 1000.0 * LENGTH**2)
# rad/s: axes softer than this at the start (stiffness 0: free) are damped as if they had this frequency, so that a
# free axis does not fly
OMEGA_FREE = 4.0
# rad/s: lowest frequency the design believes. Where the tool loses a direction its frequency falls to 0 and damping and
# inertia would grow beyond all bounds; 1 rad/s is slower than anything one wants of a spring. Well below OMEGA_FREE, so
# that Lambda is exact along free axes too.
OMEGA_MIN = 1.0
REST = 5.0  # 1/s: speed of the null space, and of directions lost at singularities, dies out with this rate
NO_WRENCH = np.zeros(6)
NO_WRENCH.flags.writeable = False


class CartesianImpedance(Follower):
    """Springs and dampers at the tcp without cancelling the arm's own inertia.

        tau = J^T (Lambda (wdot_d - Jdot qd) + K e + D (w_d - w) - F) + (M - J^T Lambda J) y + C qd + g + friction(qd)

    Pushed with a wrench F_ext the tool gives way by K^-1 F_ext (small turns), at rest exactly. K is diagonal in base
    axes. D is designed every period for the inertia the tool has there, D = 2 zeta K^1/2 W omega^-1 W^T K^1/2 with
    K^1/2 (J M^-1 J^T) K^1/2 = W omega^2 W^T: each of the six vibrations has damping ratio zeta. y = -REST qd damps the
    null space dynamically consistently: it moves nothing at the tool. Near singularities omega is held at OMEGA_MIN in
    D and Lambda; J^T carries no force there, so torques stay bounded by |J| |K e|.

    goal: trajectory, joint angles, or None (stay). stiffness: one number or 6 [N/m, Nm/rad]; 0 frees an axis.
    damping_ratio zeta. wrench F (6,) or function of time: what the environment should do to the robot, as in
    QuasiStatic; with stiffness 0 along it the contact force is -F without any force sensor, as exactly as the model.
    """

    def __init__(
        self,
        robot: Robot,
        goal: Goal = None,
        *,
        stiffness: ArrayLike = STIFFNESS,
        damping_ratio: float = 1.0,
        rest_damping: float = REST,
        wrench: Wrench = None,
        mass_max: float | None = None,
        friction: Friction | None = None,
    ) -> None:
        super().__init__(robot, goal, friction)
        self.stiffness = gain(stiffness, 6, "stiffness")
        self.damping_ratio = float(gain(damping_ratio, 1, "damping_ratio")[0])
        self.rest_damping = float(gain(rest_damping, 1, "rest_damping")[0])
        self.wrench = wrench_of(wrench)
        self.inertia = ToolInertia(robot, mass_max)
        self._bounds = Bounds(robot)

    def start(self, state: State) -> None:
        """Time counts from here; free axes get the design stiffness that OMEGA_FREE means at this pose."""
        super().start(state)
        mobility = np.diag(self.inertia.mobility(state.q, self.robot.jacobian(state.q)))
        root = np.sqrt(np.maximum(self.stiffness, OMEGA_FREE**2 / np.maximum(mobility, 1.0 / self.inertia.mass_max)))
        told = np.concatenate((self.stiffness, root, [self.rest_damping]))
        self._sense = arm_step("springs_sense", self.robot, told)
        self._modes = step("modes", 6, np.zeros(0))  # of the tool, whatever the number of joints
        damper = np.concatenate((root, [self.damping_ratio, OMEGA_MIN**2]))
        self._torque = step("springs_torque", self.robot.dof, damper)

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        q, qd, time = state.q, state.qd, state.time - self._t0
        wrench = NO_WRENCH if self.wrench is None else self.wrench(time)
        sense, modes, torque = self._sense, self._modes, self._torque
        sense.update(q, qd, *tool_reference(self.robot, self.trajectory.at(time)), wrench)
        turned = modes.before
        turned[:] = sense.after[: len(turned)]
        modes.update()
        torque.update(sense.after, turned)
        tau = torque.after.copy()
        if self.friction is not None:
            tau += self.friction.torque(qd)
        return self._bounds.command(q, qd, tau)
