"""Hybrid force-motion control of a pen: force along the paper's normal, motion along the paper, one task frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.drawing.force.sense import SPEED_NOISE, ContactForce, PenController
from tangere.apps.drawing.force.surface import STIFFEST, HybridGains, hybrid_gains
from tangere.apps.drawing.force.task import CONTACT, LOST, PenPlan
from tangere.control.task_space import ToolInertia, pose_error
from tangere.errors import InvalidValue
from tangere.kernels import backend
from tangere.types import Array, Command, Friction, Reference, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# rad/s, least and most of the crossover. Least: an acceleration that the model lacks is learnt within 2 / L = 0.1 s.
# Most: 2 L h = 0.6 at 1 ms; above, the filter only passes the measurement on.
LEAST, MOST = 20.0, 300.0


class VelocityFilter:
    """qd from a noisy measurement and the dynamics, without lag where the model is right.

        v-   = v + h (qdd_model + d),   qdd_model = M^-1 (tau + J^T F - C v - g)
        v    = v- + 2 L h (qd - v-),    d = d + (L^2 h) (qd - v-)

    d is what the model lacks as a joint acceleration: the error of v has two poles at L. The measured force brings
    noise of its own into qdd_model; L of each joint is where both noises are equally strong,

        L_j = force_noise |M^-1 J_v^T|_j / speed_noise,    held within LEAST and MOST

    so a heavy shoulder is smoothed (its speed passes with sqrt(5 L h / 4), 0.16 at 20 rad/s and 1 ms) and a light
    wrist, which any newton shakes, is hardly. force_noise [N], speed_noise [rad/s] per sample; q (n,): where the
    inertia is taken.
    """

    def __init__(self, robot: Robot, q: Array, force_noise: float, speed_noise: float) -> None:
        if not (force_noise > 0.0 and speed_noise > 0.0):
            raise InvalidValue(f"noise: positive [N] and [rad/s], got {force_noise!r} and {speed_noise!r}")
        self.robot = robot
        shaken = np.linalg.norm(np.linalg.solve(robot.mass_matrix(q), robot.jacobian(q)[:3].T), axis=1)
        self.bandwidth: Array = np.clip(force_noise * shaken / speed_noise, LEAST, MOST)

    def start(self, state: State) -> None:
        """Begin with the measured speed and no disturbance."""
        self._q, self.qd = state.q, state.qd
        self._d = np.zeros(len(state.q))
        self.innovation = self._d
        self._time, self._h = state.time, -1.0

    def update(self, state: State, external: Array | None) -> Array:
        """qd (n,) now; external (n,) [Nm]: joint torque of what was measured to push since the sample before."""
        h = state.period
        if state.time == self._time or not h > 0.0:
            return self.qd
        self._time = state.time
        tau = state.tau if external is None else state.tau + external
        predicted = self.robot.forward_dynamics(self._q, self.qd, tau)
        predicted += self._d
        predicted *= h
        predicted += self.qd
        innovation = state.qd - predicted
        self.innovation = innovation.copy()  # (n,) rad/s, of this sample
        if h != self._h:
            self._h = h
            self._fast, self._slow = np.minimum(2.0 * self.bandwidth * h, 1.0), self.bandwidth**2 * h
        self._d = self._d + self._slow * innovation
        innovation *= self._fast
        predicted += innovation
        self._q, self.qd = state.q, predicted
        return predicted


WILD = 1e4  # (rad/s2)^2 over all joints: beyond 100 rad/s2 the pose is singular, or nearly


class TipLaw:
    """The equations of HybridForce, which says what they mean; the state is the filtered speed and the integral b.

        wdot* = (1 - S) [a_d + kp e + kv ed] + n along + b,      S = n n^T where the pen presses, else 0
        bdot h = ki h (1 - S) e + n integral
        tau   = M J^-1 (wdot* - Jdot qd) + C qd + g - J^T F

    In each period first `sense`, then `torque`. filter: of the joint speeds; axes (3, 3): rows x, y, n of the canvas
    frame; origin (3,) of it; gains (kp, kv, ki); limit (6,): of b. A UR has the same compiled, see tip_law.
    """

    def __init__(
        self, filter: VelocityFilter, axes: Array, origin: Array, gains: tuple[float, float, float], limit: Array
    ) -> None:
        self.robot, self._filter = filter.robot, filter
        self._axes, self._normal, self._origin = axes, axes[2], origin
        self._kp, self._kv, self._ki = gains
        self._limit = limit
        self._square = self.robot.dof == 6

    def start(self, state: State) -> None:
        """Begin with the measured speed, and no integral."""
        self._filter.start(state)
        self.qd = state.qd  # (n,) filtered
        self.b = np.zeros(6)  # m/s2, rad/s2
        self.full = False  # whether b is at its limit

    def sense(self, state: State, F: Array | None) -> tuple[float, float, float, float, float, float]:
        """Force along the normal, its whole size [N]; x, y, height of the tip [m]; its speed along the normal [m/s].

        F (6,): what is felt of the environment at the tcp, None where nothing is known.
        """
        self._q, n = state.q, self._normal
        self._J, self._T = self.robot.jacobian(state.q), self.robot.pose(state.q)
        external = None if F is None else F.dot(self._J)
        self.external: Array = np.zeros(len(state.q)) if external is None else external  # (n,) J^T F
        self.qd = self._filter.update(state, external)
        self._v = self._J.dot(self.qd)
        W, push = (0.0, 0.0) if F is None else (float(n.dot(F[:3])), math.sqrt(float(F[:3].dot(F[:3]))))
        x, y, z = self._axes.dot(self._T[:3, 3] - self._origin).tolist()
        return W, push, x, y, z, float(n.dot(self._v[:3]))

    def torque(self, reference: Reference, h: float, pressing: bool, along: float, integral: float) -> Array | None:
        """tau (n,), or None where the pose is singular or nearly; `pull` (6,) then says what J qdd was to be.

        along [m/s2]: in the normal's place where the pen presses, else on top; integral [m/s2]: what b gains along it.
        """
        robot, n = self.robot, self._normal
        assert reference.T is not None
        assert reference.v is not None
        assert reference.a is not None
        error = pose_error(reference.T, self._T)
        pull = reference.a + self._kp * error + self._kv * (reference.v - self._v)
        if pressing:
            error[:3] -= n.dot(error[:3]) * n
            along -= float(n.dot(pull[:3]))
        pull[:3] += along * n
        self.b += self._ki * h * error
        self.b[:3] += integral * n
        self.full = bool(np.any(np.abs(self.b) >= self._limit))
        np.clip(self.b, -self._limit, self._limit, out=self.b)
        pull += self.b
        self.pull: Array = pull - robot.jacobian_rate_times_velocity(self._q, self.qd)
        if not self._square:
            return None
        try:
            qdd = np.linalg.solve(self._J, self.pull)
        except np.linalg.LinAlgError:
            return None  # exactly singular
        if not qdd.dot(qdd) < WILD:
            return None
        return robot.inverse_dynamics(self._q, self.qd, qdd) - self.external


def tip_law(
    robot: Robot, filter: VelocityFilter, T_canvas: Array, gains: tuple[float, float, float], limit: Array,
) -> Any:  # fmt: skip
    """TipLaw of the arm: compiled for a UR (3 us a period), else as above (some 40 us)."""
    axes, origin = np.array(T_canvas[:3, :3].T), np.array(T_canvas[:3, 3])
    if robot.ur_kernels:
        return backend.TipLaw(robot, filter.bandwidth, axes, origin, gains, limit, WILD)
    return TipLaw(filter, axes, origin, gains, limit)


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
    VelocityFilter. Lambda as in OperationalSpace, capped near singularities.

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
        filter = VelocityFilter(robot, reference.q, noise, SPEED_NOISE)
        self._law: TipLaw = tip_law(robot, filter, T_canvas, gains, limit)
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
