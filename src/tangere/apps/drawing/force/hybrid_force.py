"""Hybrid force-motion control of a pen: force along the paper's normal, motion along the paper, one task frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.apps.drawing.force.gains import STIFFEST, HybridGains, hybrid_gains
from tangere.apps.drawing.force.learning import StiffnessLearner, listened
from tangere.apps.drawing.force.sense import ContactForce
from tangere.apps.drawing.force.task import CONTACT, LISTEN, LOST, TOUCH, PenTask, Plan
from tangere.apps.drawing.force.tip import TipLaw, tip_law
from tangere.apps.drawing.force.touch import JointTouch
from tangere.apps.drawing.force.velocity import SPEED_NOISE, VelocityFilter
from tangere.control.bounds import Bounds
from tangere.control.task_space import ToolInertia
from tangere.errors import InvalidValue
from tangere.types import Array, Command, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# rad/s, three poles each: a sixteenth of a 1 kHz loop (6.28e3 rad/s / 100), 9 degrees of phase per millisecond of delay
OMEGA = 60.0
OMEGA_FORCE = 80.0
# s from a force to the torque that answers it: the sample is a mean over the last period (half a period old), the
# torque is held for the next (half a period), and a period passes between
DELAY = 2e-3
HOP = 0.01  # m/s: a pen that has lost the paper for a moment comes back no faster than this
ANTI_WINDUP = 3.0  # m/s2 and 15 rad/s2: what the integral may hold; 5 % of wrong masses make 0.5 m/s2


class HybridForce:
    """Draws with a steady force: 004's "hybrid force-motion control", in the canvas frame (z out of the paper).

        wdot* = (1 - S) [a_d + kp e + kv ed + b] + S n [-(kp_f e_W) - kv_f v_n + b]     S = n n^T while in contact
        bdot  = (1 - S) ki e - S n ki_f e_W,      e_W = W_d - W,  W = n.F > 0: the paper presses on the pen
        tau   = J^T [Lambda (wdot* - Jdot qd) - F] + C qd + g + friction

    F is the full wrench as measured: with it compensated the tip accelerates as asked in every direction, friction of
    the paper included. One integral b serves motion and force: it holds what the model lacks, so switching between them
    is bumpless. W_d starts from what is felt at the touch and rises with a ramp. Gains: force_gains.hybrid_gains from
    the stiffness (estimated at the first touch if not given; until then the stiffest one is assumed, which is stable
    for all softer ones), and three poles at OMEGA for the motion: kv = 3 w, kp = 3 w^2, ki = w^3. Speeds come from
    VelocityFilter. Lambda as in OperationalSpace, capped near singularities.

    v_n is the speed against the paper, which may lean: the joints' n.v less the paper's own v_s, and that is what the
    joints see beyond the change of depth W / k, slowly:

        v_s = a / (s + a) (n.v + s W / k),    so    v_n = s / (s + a) (n.v - a W / k),    a = the loop's omega

    On even paper both parts are equal and v_s is 0: the damping is that of the joints' speeds, with none of the force's
    delay.

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
        delay: float = DELAY,
        omega: float = OMEGA,
        omega_force: float = OMEGA_FORCE,
    ) -> None:
        self.robot = robot
        self.felt = ContactForce() if felt is None else felt
        self.task = PenTask(plan, T_canvas, force, listen=listen)
        self.inertia = ToolInertia(robot)
        self._bounds = Bounds(robot)
        # without a sensor the touch itself is felt in the joints, long before the force is known
        felt_by_joints = self.felt.source == "observer"
        self.touch = JointTouch(robot, self.task.normal, SPEED_NOISE) if felt_by_joints else None
        self.learner = StiffnessLearner(stiffness, noise, by_bounds=felt_by_joints)
        self._delay = delay + self.felt.smoothing
        self._omega = omega
        # a sensor that is late needs a slower loop: the bound of hybrid_gains, with the share it leaves
        self._omega_force = min(omega_force, 0.5 / (3.0 * self._delay))
        self._kp, self._kv, self._ki = gains = 3.0 * omega**2, 3.0 * omega, omega**3
        reference = plan.at(0.0)
        if reference.T is None or reference.v is None or reference.a is None:
            raise InvalidValue("the plan has no path of the tool (T, v, a): hybrid control needs one")
        self.normal = self.task.normal
        limit = np.repeat((ANTI_WINDUP, 5.0 * ANTI_WINDUP), 3)
        filter = VelocityFilter(robot, reference.q, noise, SPEED_NOISE)
        self._law: TipLaw = tip_law(robot, filter, T_canvas, gains, limit)
        J = robot.jacobian(reference.q)
        self.mass = 1.0 / float(self.normal @ self.inertia.mobility(reference.q, J)[:3, :3] @ self.normal)
        self._set_stiffness(STIFFEST if stiffness is None else stiffness)

    def _set_stiffness(self, stiffness: float) -> None:
        self.stiffness = stiffness
        self.gains: HybridGains = hybrid_gains(stiffness, self.mass, self._omega_force, self._delay)
        known = stiffness if self.learner.sure else None
        self.task.approach(stiffness, known, self.mass, blind=self.touch is not None)

    @property
    def finished(self) -> bool:
        """Whether the drawing is over, well or not."""
        return self.task.finished

    @property
    def failed(self) -> str:
        """Why it ended early, "" if it did not."""
        return self.task.lost

    def columns(self) -> dict[str, float | Array]:
        """Extra columns of the log: PenTask.columns."""
        return self.task.columns(self.force)

    def start(self, state: State) -> None:
        """From the beginning of the plan."""
        self.task.start()
        self.felt.start()
        self._law.start(state)
        self.learner.start()
        if self.touch is not None:
            self.touch.start(state)
        self.force = 0.0
        self._leans: float | None = None  # m/s, of the paper's own speed and a W / k; None: not known
        self.saturated = 0.0  # s in which the integral was at its limit while the pen pressed
        if self.learner.known is None:
            self._set_stiffness(STIFFEST)

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        law, task, n, h = self._law, self.task, self.normal, state.period
        J = self.robot.jacobian(state.q)
        mode = task.mode
        F = self.felt.wrench(self.robot, state, J, n, mode == LISTEN)
        W, push, x, y, height, speed = law.sense(state, F)
        self.force = W
        knock = self.touch is not None and mode == TOUCH and self.touch.update(state, J, task.rise_acc)
        task.update(state.time, h, (x, y, height), W, height, knock, push)
        if task.mode != mode:
            listened(task, mode, self.felt, self.touch, state)
        if pressing := task.mode in CONTACT:
            along, integral = self._press(task.force, W, -speed, h)
            stiffness = self.learner.press(task, height, W)
            if stiffness is not None:
                self._set_stiffness(stiffness)
        else:
            along = self._kp * task.rise + self._kv * task.rise_rate + task.rise_acc
            integral = self._ki * h * task.rise
            self._leans = None
        tau = law.torque(task.reference, h, pressing, along, integral)
        if pressing and law.full:
            self.saturated += h
        if tau is None:
            tau = self._capped(state.q, J)
        return self._bounds.command(state.q, law.qd, tau, task.lost)

    def stop(self) -> None:
        """Nothing to release."""

    def _press(self, wanted: float, W: float, speed: float, h: float) -> tuple[float, float]:
        """Acceleration along n for the force, and what the integral gains; speed [m/s]: into the paper, by joints."""
        gains = self.gains
        if W < LOST * self.task.force_des:  # hardly touching, or not: come back gently, integrate nothing
            self._leans = None
            return -min(gains.kp * (wanted - W), gains.kv * HOP) + gains.kv * speed, 0.0
        integral = -gains.ki * (wanted - W) * h
        if self.learner.sure:
            a = self._omega_force
            pressed = a * W / self.stiffness
            if self._leans is None:
                self._leans = pressed
            self._leans += a * h * (speed + pressed - self._leans)
            speed += pressed - self._leans
        return -gains.kp * (wanted - W) + gains.kv * speed, integral

    def _capped(self, q: Array, J: Array) -> Array:
        """J^T Lambda pull + C qd + g - J^T F where the pose is singular or nearly: the tool's inertia is capped."""
        law = self._law
        Lambda, _ = self.inertia.capped(q, J)
        tau = self.robot.bias_torque(q, law.qd)
        tau += Lambda.dot(law.pull).dot(J)
        tau -= law.external
        return tau

    @property
    def learned(self) -> bool:
        """Whether the stiffness was given or found; else the stiffest one is assumed still."""
        return self.learner.sure
