"""Hybrid force-motion control of a pen: force along the paper's normal, motion along the paper, one task frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tangere.control.bounds import Bounds
from tangere.control.force_depth import DepthObserver
from tangere.control.force_gains import STIFFNESS, TOUCH_SPEED_MAX, HybridGains, hybrid_gains, touch_speed
from tangere.control.force_input import ContactForce
from tangere.control.force_learning import StiffnessLearner, listened
from tangere.control.force_task import CONTACT, LISTEN, LOST, TOUCH, PenTask, Plan
from tangere.control.force_touch import JointTouch
from tangere.control.force_velocity import SPEED_NOISE, VelocityFilter
from tangere.control.task_space import ToolInertia, pose_error
from tangere.errors import InvalidValue
from tangere.types import Array, Command, State

if TYPE_CHECKING:
    from tangere.robot import Robot

# rad/s, three poles each: a sixteenth of a 1 kHz loop (6.28e3 rad/s / 100), 9 degrees of phase per millisecond of delay
OMEGA = 60.0
OMEGA_FORCE = 80.0
# s from a force to the torque that answers it: the sample is a mean over the last period (half a period old), the
# torque is held for the next (half a period), and a period passes between
DELAY = 2e-3
HOP = 0.01  # m/s: a pen that has lost the paper for a moment comes back no faster than this
ANTI_WINDUP = 3.0  # m/s2 and 15 rad/s2: what the integral may hold; 5 % of wrong masses make 0.5 m/s2
WILD = 1e4  # (rad/s2)^2 over all joints: beyond 100 rad/s2 the pose is singular, or nearly


class HybridForce:
    """Draws with a steady force: 004's "hybrid force-motion control", in the canvas frame (z out of the paper).

        wdot* = (1 - S) [a_d + kp e + kv ed + b] + S n [-(kp_f e_W) - kv_f n.v + b]     S = n n^T while in contact
        bdot  = (1 - S) ki e - S n ki_f e_W,      e_W = W_d - W,  W = n.F > 0: the paper presses on the pen
        tau   = J^T [Lambda (wdot* - Jdot qd) - F] + C qd + g + friction

    F is the full wrench as measured: with it compensated the tip accelerates as asked in every direction, friction of
    the paper included. One integral b serves motion and force: it holds what the model lacks, so switching between them
    is bumpless. W_d starts from what is felt at the touch and rises with a ramp. Gains: force_gains.hybrid_gains from
    the stiffness (estimated at the first touch if not given; until then the stiffest one is assumed, which is stable
    for all softer ones), and three poles at OMEGA for the motion: kv = 3 w, kp = 3 w^2, ki = w^3. Speeds come from
    VelocityFilter. Lambda as in OperationalSpace, capped near singularities.

    plan: where to draw (force_task.Plan), T_canvas (4, 4) its plane, force [N]. `task` has the state of the drawing.
    """

    def __init__(
        self,
        robot: Robot,
        plan: Plan,
        T_canvas: Array,
        force: float,
        *,
        stiffness: float | None = None,
        felt: ContactForce | None = None,
        listen: float = 0.0,
        noise: float = 0.1,
        period: float = 1e-3,
        delay: float = DELAY,
        omega: float = OMEGA,
        omega_force: float = OMEGA_FORCE,
    ) -> None:
        self.robot = robot
        self.felt = ContactForce() if felt is None else felt
        self.task = PenTask(plan, T_canvas, force, listen=listen)
        self.inertia = ToolInertia(robot)
        self.filter = VelocityFilter(robot, plan.at(0.0).q, noise, SPEED_NOISE)
        self._bounds = Bounds(robot)
        # without a sensor the touch itself is felt in the joints, long before the force is known
        felt_by_joints = self.felt.source == "observer"
        q = plan.at(0.0).q
        self.touch = JointTouch(robot, q, self.task.normal, SPEED_NOISE) if felt_by_joints else None
        self._square = robot.dof == 6
        self.learner = StiffnessLearner(stiffness, noise)
        self._delay = delay + self.felt.smoothing
        self._omega = omega
        # a sensor that is late needs a slower loop: the bound of hybrid_gains, with the share it leaves
        self._omega_force = min(omega_force, 0.5 / (3.0 * self._delay))
        self._kp, self._kv, self._ki = 3.0 * omega**2, 3.0 * omega, omega**3
        reference = plan.at(0.0)
        if reference.T is None or reference.v is None or reference.a is None:
            raise InvalidValue("the plan has no path of the tool (T, v, a): hybrid control needs one")
        self.normal = self.task.normal
        self._limit = np.repeat((ANTI_WINDUP, 5.0 * ANTI_WINDUP), 3)
        self._per_limit = 1.0 / self._limit
        self.depth = DepthObserver(noise, period, self._delay - DELAY + period)
        J = robot.jacobian(reference.q)
        self.mass = 1.0 / float(self.normal @ self.inertia.mobility(reference.q, J)[:3, :3] @ self.normal)
        self._set_stiffness(STIFFNESS[1] / 2.0 if stiffness is None else stiffness)

    def _set_stiffness(self, stiffness: float) -> None:
        self.stiffness = stiffness
        self.gains: HybridGains = hybrid_gains(stiffness, self.mass, self._omega_force, self._delay)
        self.depth.set_stiffness(stiffness)
        fast = self.touch is not None  # a slow touch is not felt at all
        self.task.touch_speed = TOUCH_SPEED_MAX if fast else touch_speed(self.task.force_des, stiffness, self.mass)

    @property
    def finished(self) -> bool:
        """Whether the drawing is over, well or not."""
        return self.task.finished

    def start(self, state: State) -> None:
        """From the beginning of the plan."""
        self.task.start()
        self.felt.start()
        self.filter.start(state)
        self.learner.start()
        if self.touch is not None:
            self.touch.start(state)
        self._b = np.zeros(6)
        self._external: Array | None = None
        self.force = self._into = 0.0
        self._sure = False
        self.saturated = 0.0  # s in which the integral was at its limit while the pen pressed
        if self.learner.known is None:
            self._set_stiffness(STIFFNESS[1] / 2.0)

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        robot, task, q, n, h = self.robot, self.task, state.q, self.normal, state.period
        J, T = robot.jacobian(q), robot.pose(q)
        mode = task.mode
        F = self.felt.wrench(robot, state, J, n, mode == LISTEN)
        external = None if F is None else F.dot(J)
        qd = self.filter.update(state, external)
        v = J.dot(qd)
        W = 0.0 if F is None else float(n.dot(F[:3]))
        self.force = W
        tip = task.place(T[:3, 3])
        knock = self.touch is not None and mode in (LISTEN, TOUCH) and self.touch.update(state, J) and mode == TOUCH
        push = 0.0 if F is None else math.sqrt(float(F[:3].dot(F[:3])))
        task.update(state.time, h, tip, W, tip[2], knock, push)
        if task.mode != mode:
            listened(task, mode, self.felt, self.touch, state)
        reference = task.reference
        assert reference.T is not None
        assert reference.v is not None
        assert reference.a is not None
        error = pose_error(reference.T, T)
        rate = reference.v - v
        b, linear = self._b, error[:3]
        pull = self._kp * error
        pull += self._kv * rate
        pull += reference.a
        if task.mode in CONTACT:
            linear -= n.dot(linear) * n
            b += (self._ki * h) * error
            along = self._press(task.force, W, -float(n.dot(v[:3])), h)
            if self._sure and external is not None:  # the force now, not as it was when it was measured
                external = external + (self.depth.k * self.depth.x - W) * n.dot(J[:3])
            pull[:3] += (along - n.dot(pull[:3])) * n
            stiffness = self.learner.press(task, tip[2], W)
            if stiffness is not None:
                self._set_stiffness(stiffness)
        else:
            pull[:3] += (self._kp * task.rise + self._kv * task.rise_rate + task.rise_acc) * n
            linear += task.rise * n
            b += (self._ki * h) * error
        share = b * self._per_limit
        if share.dot(share) > 1.0:  # cheaper than each by itself, and mostly below
            if task.mode in CONTACT and bool(np.any(np.abs(b) >= self._limit)):
                self.saturated += h
            np.minimum(np.maximum(b, -self._limit, out=b), self._limit, out=b)
        pull += b
        self._into = -float(n.dot(pull[:3]))
        pull -= robot.jacobian_rate_times_velocity(q, qd)
        tau = self._torque(q, qd, J, pull)
        if external is not None:
            tau -= external
        return self._bounds.command(q, qd, tau, task.lost)

    def stop(self) -> None:
        """Nothing to release."""

    def _press(self, wanted: float, W: float, speed: float, h: float) -> float:
        """Acceleration along n for the force; speed [m/s]: into the paper, by the joints."""
        gains, depth = self.gains, self.depth
        if W < LOST * self.task.force_des:  # hardly touching, or not: come back gently, integrate nothing
            self._sure = False
            return -min(gains.kp * (wanted - W), gains.kv * HOP) + gains.kv * speed
        self._b[:3] -= (gains.ki * (wanted - W) * h) * self.normal
        if not self.learner.sure:
            return -gains.kp * (wanted - W) + gains.kv * speed
        if not self._sure:
            self._sure = True
            depth.start(W, speed, -self._into)
        else:
            depth.update(W, self._into)
        return -gains.kp * (wanted - depth.k * depth.x) + gains.kv * depth.v

    def _torque(self, q: Array, qd: Array, J: Array, pull: Array) -> Array:
        """J^T Lambda pull + C qd + g: by way of the joints, M J^-1 pull, where that is harmless; else capped."""
        robot = self.robot
        if self._square:
            try:
                qdd = np.linalg.solve(J, pull)
                if qdd.dot(qdd) < WILD:
                    return robot.inverse_dynamics(q, qd, qdd)
            except np.linalg.LinAlgError:
                pass  # exactly singular
        Lambda, _ = self.inertia.capped(q, J)
        tau = robot.bias_torque(q, qd)
        tau += Lambda.dot(pull).dot(J)
        return tau

    @property
    def learned(self) -> bool:
        """Whether the stiffness was given or found; else the stiffest one is assumed still."""
        return self.learner.sure
