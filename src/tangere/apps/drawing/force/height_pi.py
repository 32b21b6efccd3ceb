"""004's force control: a PI raises and lowers the pen's height, computed torque follows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tangere.apps.drawing.force.sense import ContactForce, PenController
from tangere.apps.drawing.force.surface import STIFFEST, HeightGains, height_gains
from tangere.apps.drawing.force.task import CONTACT, LOST, SETTLE, PenPlan
from tangere.errors import InvalidValue
from tangere.types import Array, Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# 1/s2: two poles at -50 rad/s. 5 % of wrong masses (0.5 to 1 m/s2 at the tip) leave 0.2 to 0.4 mm: a PD has no integral
KP = 2500.0
CLAMP = 0.02  # m, of Z either way: three times what a canvas error of 3 mm and 2 degrees needs


class HeightPI(PenController):
    """Draws with the height PI of 004 on computed torque.

        e_W = W_d - W (W > 0: the paper presses on the pen),   Z = -(kp_w e_W + ki_w int e_W),   z_d = z_touch + Z
        q_d = q_plan + J^-1 n z,   tau = M (qdd_d + kp e + kd ed) + C qd + g - J^T F

    004 eq 3 prints the integral as "int (W_d - W) d/dt". Z > 0 is up: too little force lowers the pen. The integral
    begins at the touch, where z_touch is where the reference was, is frozen while Z is clamped and, once drawing, while
    the pen hardly touches; F is the full measured wrench, friction of the paper included: without it the pen drags
    millimetres sideways. Gains from height_gains. kp, kd act on joints [1/s2, 1/s].

    feed_wrench: whether F is compensated. The other arguments: PenController.
    """

    def __init__(
        self, robot: Robot, plan: PenPlan, T_canvas: Array, force: float, *, stiffness: float | None = None,
        felt: ContactForce | None = None, listen: float = 0.0, feed_wrench: bool = True, noise: float = 0.1,
        kp: float = KP, kd: float | None = None, friction: Friction | None = None,
    ) -> None:  # fmt: skip
        if not kp > 0.0:
            raise InvalidValue(f"kp: positive [1/s2], got {kp!r}")
        super().__init__(robot, plan, T_canvas, force, stiffness, felt, listen, noise, friction)
        self.feed_wrench = feed_wrench
        self.kp, self.kd = kp, 2.0 * kp**0.5 if kd is None else kd
        self._along = np.concatenate((self.normal, np.zeros(3)))
        q = plan.at(0.0).q
        J = robot.jacobian(q)
        row = self._along.dot(J)
        self.mass = 1.0 / float(row @ np.linalg.solve(robot.mass_matrix(q), row))
        self._set_stiffness(STIFFEST if stiffness is None else stiffness)

    def _set_stiffness(self, stiffness: float) -> None:
        super()._set_stiffness(stiffness)
        self.gains: HeightGains = height_gains(stiffness, self.mass, self.kp, self.kd, fed=self.feed_wrench)

    def start(self, state: State) -> None:
        """From the beginning of the plan."""
        super().start(state)
        self._integral, self._touched, self._z = 0.0, 0.0, 0.0
        self._clamped = False

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        state = self._moved(state)
        robot, task, q, qd, n = self.robot, self.task, state.q, state.qd, self.normal
        J = robot.jacobian(q)
        mode, pressing = task.mode, task.pressing
        F = self._felt(state, J)
        W = 0.0 if F is None else float(n.dot(F[:3]))
        self.force = W
        tip = task.place(robot.pose(q)[:3, 3])
        nominal = task.planned(task.reference)[2]
        knock = self._knocked(state, J)
        push = 0.0 if F is None else math.sqrt(float(F[:3].dot(F[:3])))
        task.update(state.time, state.period, tip, W, nominal + self._z, knock, push)
        self._listened(mode, state)
        rate = acceleration = 0.0
        if task.mode in CONTACT:
            if not pressing:
                # bumpless: Z = 0 is where the reference was, although the plan's clock went on to the line on the plane
                self._touched = nominal + self._z - task.planned(task.reference)[2]
                self._integral = -self.gains.kp * (task.force - W)
            rate = self._press(W, state.period)
            stiffness = self.learner.press(task, tip[2], W)
            if stiffness is not None:
                before = self.gains
                self._set_stiffness(stiffness)
                # Z stays where it is when kp changes
                self._integral += (before.kp - self.gains.kp) * (task.force - W)
        else:
            self._z, rate, acceleration = task.rise, task.rise_rate, task.rise_acc
        reference = task.reference
        # where the joints are with the pen z higher: J at the middle of the way makes the error of third order in z
        J_d = robot.jacobian(reference.q)
        lift = np.linalg.solve(J_d, self._along)
        if abs(self._z) > 5e-4:  # below, the second order is 0.1 um
            lift = np.linalg.solve(robot.jacobian(reference.q + 0.5 * self._z * lift), self._along)
        error = reference.q - q
        error += self._z * lift
        speed = reference.qd - qd
        speed += rate * lift
        qdd = self.kp * error
        qdd += self.kd * speed
        qdd += reference.qdd
        qdd += acceleration * lift
        tau = robot.inverse_dynamics(q, qd, qdd)
        if self.feed_wrench and F is not None:
            tau -= F.dot(J)
        return self._answer(state, qd, tau)

    def _press(self, W: float, h: float) -> float:
        """Z from the force; the rate at which it moves."""
        gains, task = self.gains, self.task
        e = task.force - W
        alive = task.mode == SETTLE or W > LOST * task.force_des
        if alive and not (self._clamped and e * (self._z - self._touched) < 0.0):
            self._integral += gains.ki * h * e
        Z = -(gains.kp * e + self._integral)
        held = min(max(Z, -CLAMP), CLAMP)
        self._clamped = held != Z
        if self._clamped:
            self.saturated += h
        self._z = self._touched + held
        return 0.0  # no rate: e_W is noisy, and Routh's bound is without it
