"""Hybrid force-motion control of a pen: force along the paper's normal, motion along the paper, one task frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.drawing.force.sense import SPEED_NOISE, ContactForce, PenController
from tangere.apps.drawing.force.surface import STIFFEST, HybridGains, hybrid_gains
from tangere.apps.drawing.force.task import CONTACT, LOST, PenPlan
from tangere.control.task_space import ToolInertia
from tangere.errors import InvalidValue
from tangere.kernels.laws.task import tip_start
from tangere.kernels.step import arm_step
from tangere.types import Array, Command, Friction, Reference, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# rad/s, least and most of the crossover. Least: an acceleration that the model lacks is learnt within 2 / L = 0.1 s.
# Most: 2 L h = 0.6 at 1 ms; above, the filter only passes the measurement on.
LEAST, MOST = 20.0, 300.0


def speed_bandwidth(robot: Robot, q: Array, force_noise: float, speed_noise: float) -> Array:
    """L (n,) [rad/s] of the filter of the joint speeds (kernels.laws.task.tip_sense).

    What the model lacks as a joint acceleration is learnt on the way: the error of v has two poles at L. The measured
    force brings noise of its own into qdd_model; L of each joint is where both noises are equally strong,

        L_j = force_noise |M^-1 J_v^T|_j / speed_noise,    held within LEAST and MOST

    so a heavy shoulder is smoothed (its speed passes with sqrt(5 L h / 4), 0.16 at 20 rad/s and 1 ms) and a light
    wrist, which any newton shakes, is hardly. force_noise [N], speed_noise [rad/s] per sample; q (n,): where the
    inertia is taken.
    """
    if not (force_noise > 0.0 and speed_noise > 0.0):
        raise InvalidValue(f"noise: positive [N] and [rad/s], got {force_noise!r} and {speed_noise!r}")
    shaken = np.linalg.norm(np.linalg.solve(robot.mass_matrix(q), robot.jacobian(q)[:3].T), axis=1)
    return np.asarray(np.clip(force_noise * shaken / speed_noise, LEAST, MOST))


WILD = 1e4  # (rad/s2)^2 over all joints: beyond 100 rad/s2 the pose is singular, or nearly
NO_WRENCH = np.zeros(6)
NO_WRENCH.flags.writeable = False


class TipLaw:
    """The laws tip_sense and tip_torque of the kernel table for one arm: in each period first `sense`, then `torque`.

    bandwidth (n,): of the joint speeds' filter; T_canvas (4, 4): z out of the paper; gains (kp, kv, ki); limit (6,): of
    the integral b. The state is the filtered speed and b.
    """

    def __init__(
        self, robot: Robot, bandwidth: Array, T_canvas: Array, gains: tuple[float, float, float], limit: Array
    ) -> None:
        self._made = (robot, bandwidth, T_canvas, gains, limit)
        n, normal = robot.dof, T_canvas[:3, 2]
        told = np.concatenate((bandwidth, T_canvas[:3, :3].T.ravel(), T_canvas[:3, 3]))
        self._sense = arm_step("tip_sense", robot, told)
        self._torque = arm_step("tip_torque", robot, np.concatenate((gains, limit, [WILD], normal)))
        self._felt = slice(first := len(tip_start(n)), first + 6)
        self._speed = slice(first + 6 + n, first + 6 + 2 * n)
        self._external = slice(first + 6 + 2 * n, first + 6 + 3 * n)
        self._tau = slice(8, 8 + n)

    def __reduce__(self) -> Any:
        return TipLaw, self._made  # a copy begins anew

    def start(self, state: State) -> None:
        """Begin with the measured speed, and no integral."""
        n = len(state.q)
        begin = (np.array([state.time]), state.q, state.qd, np.zeros(n))
        self._sense.before[-1 - 3 * n :] = np.concatenate(begin)
        self._torque.before[-6:] = 0.0

    def sense(self, state: State, F: Array | None) -> tuple[float, float, float, float, float, float]:
        """Force along the normal, its whole size [N]; x, y, height of the tip [m]; its speed along the normal [m/s].

        F (6,): what is felt of the environment at the tcp, None where nothing is known.
        """
        sense, wrench = self._sense, NO_WRENCH if F is None else F
        sense.update((float(state.time), float(state.period)), state.q, state.qd, state.tau, wrench)
        W, push, x, y, z, speed = sense.after[self._felt].tolist()
        return W, push, x, y, z, speed

    def torque(self, reference: Reference, h: float, pressing: bool, along: float, integral: float) -> Array | None:
        """tau (n,), or None where the pose is singular or nearly; `pull` (6,) then says what J qdd was to be.

        along [m/s2]: in the normal's place where the pen presses, else on top; integral [m/s2]: what b gains along it.
        """
        law, r = self._torque, reference
        if r.T is None or r.v is None or r.a is None:
            raise InvalidValue("T, v, a: the reference has no path of the tool")
        knobs = (float(h), float(pressing), float(along), float(integral))
        regular = law.update(self._sense.after, r.T, r.v, r.a, knobs)
        return law.after[self._tau].copy() if regular else None

    @property
    def qd(self) -> Array:
        """Filtered joint speeds (n,) [rad/s]."""
        return self._sense.after[self._speed].copy()

    @property
    def external(self) -> Array:
        """Joint torque of the wrench that was compensated (n,) [Nm]."""
        return self._sense.after[self._external].copy()

    @property
    def pull(self) -> Array:
        """What J qdd was to be in the last period (6,) [m/s2, rad/s2]."""
        return self._torque.after[-6:].copy()

    @property
    def b(self) -> Array:
        """The integral (6,) [m/s2, rad/s2]."""
        return self._torque.before[-6:].copy()

    @property
    def full(self) -> bool:
        """Whether the integral is at its limit."""
        return bool(self._torque.after[7])


# rad/s, three poles each: a sixteenth of a 1 kHz loop (6.28e3 rad/s / 100), 9 degrees of phase per millisecond of delay
OMEGA = 60.0
OMEGA_FORCE = 80.0
# s from a force to the torque that answers it: the sample is a mean over the last period (half a period old), the
# torque is held for the next (half a period), and a period passes between
DELAY = 2e-3
HOP = 0.01  # m/s: a pen that has lost the paper for a moment comes back no faster than this
ANTI_WINDUP = 3.0  # m/s2 and 15 rad/s2: what the integral may hold; 5 % of wrong masses make 0.5 m/s2


class HybridForce(PenController):
    """Draws with a steady force: 004's "hybrid force-motion control", in the canvas frame (z out of the paper).

        wdot* = (1 - S) [a_d + kp e + kv ed + b] + S n [-(kp_f e_W) - kv_f v_n + b]     S = n n^T while in contact
        bdot  = (1 - S) ki e - S n ki_f e_W,      e_W = W_d - W,  W = n.F > 0: the paper presses on the pen
        tau   = J^T [Lambda (wdot* - Jdot qd) - F] + C qd + g + friction

    F is the full wrench as measured: with it compensated the tip accelerates as asked in every direction, friction of
    the paper included. One integral b serves motion and force: it holds what the model lacks, so switching between them
    is bumpless. W_d starts from what is felt at the touch and rises with a ramp. Gains: hybrid_gains from
    the stiffness (estimated at the first touch if not given; until then the stiffest one is assumed, which is stable
    for all softer ones), and three poles at OMEGA for the motion: kv = 3 w, kp = 3 w^2, ki = w^3. Speeds come from
    TipLaw's filter. Lambda as in OperationalSpace, capped near singularities.

    v_n is the speed against the paper, which may lean: the joints' n.v less the paper's own v_s, and that is what the
    joints see beyond the change of depth W / k, slowly:

        v_s = a / (s + a) (n.v + s W / k),    so    v_n = s / (s + a) (n.v - a W / k),    a = the loop's omega

    On even paper both parts are equal and v_s is 0: the damping is that of the joints' speeds, with none of the force's
    delay.

    delay [s] from a force to the torque that answers it; omega, omega_force [rad/s]: poles of motion and force.
    The other arguments: PenController.
    """

    def __init__(
        self, robot: Robot, plan: PenPlan, T_canvas: Array, force: float, *, stiffness: float | None = None,
        felt: ContactForce | None = None, listen: float = 0.0, noise: float = 0.1, delay: float = DELAY,
        omega: float = OMEGA, omega_force: float = OMEGA_FORCE, friction: Friction | None = None,
    ) -> None:  # fmt: skip
        super().__init__(robot, plan, T_canvas, force, stiffness, felt, listen, noise, friction)
        self.inertia = ToolInertia(robot)
        self._delay = delay
        # a sensor that is late needs a slower loop: the bound of hybrid_gains, with the share it leaves
        self._omega_force = min(omega_force, 0.5 / (3.0 * self._delay))
        self._kp, self._kv, self._ki = gains = 3.0 * omega**2, 3.0 * omega, omega**3
        reference = plan.at(0.0)
        if reference.T is None or reference.v is None or reference.a is None:
            raise InvalidValue("the plan has no path of the tool (T, v, a): hybrid control needs one")
        limit = np.repeat((ANTI_WINDUP, 5.0 * ANTI_WINDUP), 3)
        bandwidth = speed_bandwidth(robot, reference.q, noise, SPEED_NOISE)
        self._law = TipLaw(robot, bandwidth, T_canvas, gains, limit)
        J = robot.jacobian(reference.q)
        self.mass = 1.0 / float(self.normal @ self.inertia.mobility(reference.q, J)[:3, :3] @ self.normal)
        self._set_stiffness(STIFFEST if stiffness is None else stiffness)

    def _set_stiffness(self, stiffness: float) -> None:
        super()._set_stiffness(stiffness)
        self.gains: HybridGains = hybrid_gains(stiffness, self.mass, self._omega_force, self._delay)

    def start(self, state: State) -> None:
        """From the beginning of the plan."""
        super().start(state)
        self._law.start(state)
        self._leans: float | None = None  # m/s, of the paper's own speed and a W / k; None: not known

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        state = self._moved(state)
        law, task, h = self._law, self.task, state.period
        J = self.robot.jacobian(state.q)
        mode = task.mode
        F = self._felt(state, J)
        W, push, x, y, height, speed = law.sense(state, F)
        self.force = W
        knock = self._knocked(state, J)
        task.update(state.time, h, (x, y, height), W, height, knock, push)
        self._listened(mode, state)
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
        return self._answer(state, law.qd, tau)

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
