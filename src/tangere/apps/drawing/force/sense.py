"""What a pen feels and learns: the force at its tip, a touch without a sensor, the stiffness of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from tangere.apps.drawing.force.surface import STIFFEST, StiffnessEstimate
from tangere.apps.drawing.force.task import DRAW, GIVE, LISTEN, TOUCH, PenPlan, PenTask
from tangere.control.task_space import Bounds
from tangere.errors import UnknownName
from tangere.kernels.periods import finite
from tangere.types import Array, Command, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

SPEED_NOISE = 2e-3  # [rad/s] per sample, what a UR10e's speeds show at rest


class ContactForce:
    """The wrench F (6,) of the paper on the pen at the tcp, base axes, as far as it is known: at a pen's tip a force.

        sensor:    F = measured force - tare
        observer:  M^-1 J_v^T F = M^-1 (tau_ext_hat - tare) for the force, in the sense of least squares

    A tip carries no moment, so that of the sensor is not used: on a light wrist its noise and bias would be the largest
    disturbance of all. The observer's noise is K M times that of the speeds, hence the M^-1: joints with little inertia
    tell a force best. The tare is the mean of what is felt while listening, with the pen in the air; `needs_tare`:
    until then F is None. noise: standard deviation along the normal in that time [N].
    """

    def __init__(self, source: Literal["sensor", "observer"] = "sensor", *, needs_tare: bool | None = None) -> None:
        if source not in ("sensor", "observer"):
            raise UnknownName(f"unknown source of force {source!r}; known: sensor, observer")
        self.source = source
        self.needs_tare = source == "observer" if needs_tare is None else needs_tare
        self.start()

    def start(self) -> None:
        """Nothing is known yet."""
        self._tare: Array | None = None
        self._last: Array | None = None
        self.noise = 0.0
        self.listen()

    def listen(self) -> None:
        """Begin to hear what is felt in the air."""
        self._sum: Array | None = None
        self._along: list[float] = []

    def heard(self) -> None:
        """Take the mean of what was heard as the new zero."""
        if self._sum is not None and self._along:
            self._tare = self._sum / len(self._along)
            self.noise = float(np.std(self._along))
        self.listen()

    def wrench(self, robot: Robot, state: State, J: Array, normal: Array, listening: bool) -> Array | None:
        """F (6,), or None where nothing is known; the last one again where the measurement is broken."""
        raw = state.wrench if self.source == "sensor" else state.tau_ext_hat
        if raw is None:
            return None
        if not finite(raw):
            return self._last
        if self.source == "sensor":
            raw = raw[:3]
        force = raw if self._tare is None else raw - self._tare
        if self.source == "observer":
            force = _least_squares(robot.mass_matrix(state.q), J, force)
        if listening:
            self._sum = raw.copy() if self._sum is None else self._sum + raw
            self._along.append(float(normal.dot(force)))
        if self.needs_tare and self._tare is None:
            return None
        F = np.zeros(6)
        F[:3] = force
        self._last = F
        return F


def _least_squares(M: Array, J: Array, torque: Array) -> Array:
    """The force (3,) at the tip that explains the joint torques (n,) best, joints weighted by M^-2."""
    columns = np.empty((len(torque), 4))
    columns[:, :3] = J[:3].T
    columns[:, 3] = torque
    A = np.linalg.solve(M, columns)
    normal = A.T.dot(A)
    return np.asarray(np.linalg.solve(normal[:3, :3], normal[:3, 3]))


# samples ago that the touch may have been, each with a filter of its own: a hard paper is felt after 3, a soft one
# after 24. A filter for 12 serves one for 11 as well: matched to 2 %
AGES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24)
WINDOW = AGES[-1]
# standard deviations, of two numbers together. White noise alone did not pass this in 3e4 s at 1 kHz, 5.5 it passed 15
# times; each stroke searches for a third of a second
ALARM = 6.0
# rad/s: what the model lacks is learnt within 2 / L = 0.1 s. A touch is learnt as slowly: in 10 ms it loses 7 %
BANDWIDTH = 20.0
# samples of even motion before anything is said: least squares then know the speed to 0.4 and what it will be in 10 ms
# to 0.5 of a sample's noise
LEARN = 30
TINY = 1e-9  # of a mobility [1/kg^2] or an acceleration per N: nothing moves sideways
EVEN = 1e-6  # m/s2, of the descent that is asked for: beyond, the pen still brakes


class JointTouch:
    """Finds a push along a normal in the joints' speeds: matched filters of a spring that is met at a steady speed.

        a = M^-1 J_v^T n,    b = M^-1 J_v^T (n + f)      what 1 N does to the joints: of a tip that slides, that sticks
        u = D qd,    D (2, n): a, and what b has beyond it, both of length 1
        u- = u_hat + h (D qdd_model + d),    e = u - u-,    u_hat = u- + alpha e,    d = d + beta e / h
        z_T = sum_t w_t e_t / sigma (2,),    w_t ~ t^2 over the last T samples, |w| = 1;    a touch: max_T |z_T| > ALARM

    f: the friction that holds the tip where it is; |f| is 0.23 to 0.38 on a table, so that a pen with a friction of 0.3
    sticks, or nearly: held at its tip the wrist turns far less, or the other way. Forces between both are n + l f with
    l from 0 to 1, so pushes lie in the plane of a and b, on one side of a: where z_2 < 0 only z_1 > 0 counts. From the
    touch on the force is k v t, and the speed lacks k v t^2 / 2 times |a| to |b|.

    d is what the model lacks (wrong masses): learnt by least squares over the descent at even speed, with two poles at
    BANDWIDTH once that has lasted 0.1 s. Braking begins it anew, since a mass that is wrong by 10 % then looks like a
    touch. speed_noise: sigma [rad/s] per sample. Positions are not used: a UR's q jitters by 1.8e-5 rad from sample to
    sample, which adds 3 % to what the speeds tell within 10 ms.

    The bound. After T [s] with rate = k v [N/s] the best that any filter can see, with noise sigma per period h, is

        s = |a| rate / (2 sigma) sqrt(T^5 / (5 h))

    UR5e, 200 N/s, 10 ms: 25 with the 3.5 rad/s2 per N of a tip that slides, 3 to 7 with the 0.5 to 1 of one that
    sticks.
    """

    def __init__(self, robot: Robot, normal: Array, speed_noise: float) -> None:
        self.robot, self._noise = robot, speed_noise
        # normal first, then two tangents (any: the last right singular vectors)
        self._axes = np.concatenate((normal[None], np.linalg.svd(normal[None])[2][1:]))
        self._weights = np.zeros((len(AGES), WINDOW))  # the oldest first
        for row, age in zip(self._weights, AGES, strict=True):
            row[WINDOW - age :] = np.arange(1.0, age + 1.0) ** 2
            row /= np.linalg.norm(row)

    def start(self, state: State) -> None:
        """Begin with this sample."""
        self._errors = np.zeros((WINDOW, 2))  # the oldest first
        self._q, self._qd, self._time = state.q, state.qd, state.time
        self._count, self._u, self._d = 0, np.zeros(2), np.zeros(2)
        self.score = 0.0

    def directions(self, q: Array, J: Array) -> Array:
        """D (2, n): how the joints' speeds change by a push along the normal, and what friction adds to that."""
        rows = self._axes.dot(J[:3])
        A = np.linalg.solve(self.robot.mass_matrix(q), rows.T)
        mobility = rows.dot(A)
        (x, shared), (_, y) = mobility[1:, 1:].tolist()
        along, across = mobility[1:, 0].tolist()
        inverse = 1.0 / max(x * y - shared * shared, TINY)
        a = A[:, 0]
        f = ((shared * across - y * along) * inverse, (shared * along - x * across) * inverse)
        b = a + f[0] * A[:, 1] + f[1] * A[:, 2]
        D = np.empty((2, len(q)))
        D[0] = a / math.sqrt(float(a.dot(a)))
        b -= D[0].dot(b) * D[0]
        D[1] = b / max(math.sqrt(float(b.dot(b))), TINY)
        return D

    def update(self, state: State, J: Array, acceleration: float = 0.0) -> bool:
        """Whether something pushes along the normal; J (6, n) at state.q, acceleration [m/s2] that is asked for."""
        h = state.period
        if state.time == self._time or not h > 0.0:  # a lost sample
            return False
        if abs(acceleration) > EVEN:
            self.start(state)
            return False
        self._time = state.time
        if not self._count:  # some millimetres of descent turn the directions by a hundredth
            self._D = self.directions(state.q, J)
            self._u = self._D.dot(self._qd)
        D = self._D
        model = D.dot(self.robot.forward_dynamics(self._q, self._qd, state.tau))
        self._q, self._qd = state.q, state.qd
        self._count += 1
        n = self._count
        many = (n + 1.0) * (n + 2.0)
        alpha = max((4.0 * n + 2.0) / many, 2.0 * BANDWIDTH * h)
        predicted = self._u + h * (model + self._d)
        error = D.dot(state.qd) - predicted
        self._u = predicted + alpha * error
        self._d = self._d + max(6.0 / many / h, BANDWIDTH**2 * h) * error
        errors = self._errors
        errors[:-1] = errors[1:]
        # the prediction's own error counts as well: e has sigma / sqrt(1 - alpha)
        errors[-1] = error * (math.sqrt(max(1.0 - alpha, 0.0)) / self._noise)
        self.score = max(_size(z) for z in self._weights.dot(errors).tolist())
        return self.score > ALARM and n > LEARN


def _size(z: list[float]) -> float:
    """|z| where a push with friction can make it, z_2 > 0; else what one without could."""
    return math.hypot(z[0], z[1]) if z[1] > 0.0 else z[0]


BETTER = 0.8  # of the bound so far: below, a new one is worth new gains


class StiffnessLearner:
    """The stiffness from the press of the first stroke, and of those after it until it is sure.

    known [N/m]: given, nothing is learned then; noise [N] of the force per sample. sure: given or found.
    by_bounds: until it is sure, the most that it can be is taken: with a noisy force a soft paper would else never be
    pressed far enough to learn anything from, as the loop for a paper 50 times as stiff is 50 times too slow.
    """

    def __init__(self, known: float | None, noise: float, *, by_bounds: bool = False) -> None:
        self.known, self.by_bounds = known, by_bounds
        self.estimate = StiffnessEstimate(noise)
        self.start()

    def start(self) -> None:
        """Forget what was learned."""
        self.estimate.clear()
        self.sure = self.known is not None
        self.most = STIFFEST
        self._stroke = 1

    def press(self, task: PenTask, height: float, W: float) -> float | None:
        """A sample in contact: tip height [m] in the canvas frame, W [N]; a new stiffness [N/m], or None."""
        stroke = task.stroke
        if self.known is not None or task.mode == DRAW or (self.sure and stroke != self._stroke):
            return None
        if stroke != self._stroke:
            self._stroke = stroke
            self.estimate.again()
        self.estimate.add(-height, W)
        value = self.estimate.value
        if value is not None:
            self.sure = True
            task.give = GIVE * task.force_des / value
        elif self.by_bounds:
            most = self.estimate.most
            if most < BETTER * self.most:
                self.most = value = most
        return value


class PenController:
    """What both force controllers share: the task of the pen, what it feels, and the stiffness it learns by pressing.

    plan: where to draw, T_canvas (4, 4) its plane, force [N]. stiffness [N/m]: known; else the stiffest one is assumed,
    which is stable for all softer ones, until the first press tells. felt: where the force comes from; listen [s] in
    the air before each touch, for the tare; noise [N] of the force per sample. friction: of the joints, made up for at
    the speed that the controller takes. `task` has the state of the drawing.
    A controller says in `_set_stiffness` which gains follow from a stiffness.
    """

    def __init__(
        self, robot: Robot, plan: PenPlan, T_canvas: Array, force: float, stiffness: float | None,
        felt: ContactForce | None, listen: float, noise: float, friction: Friction | None,
    ) -> None:  # fmt: skip
        self.robot, self.friction = robot, friction
        self.felt = ContactForce() if felt is None else felt
        self.task = PenTask(plan, T_canvas, force, listen=listen)
        self.normal = self.task.normal
        self._bounds = Bounds(robot)
        # without a sensor the touch itself is felt in the joints, long before the force is known
        felt_by_joints = self.felt.source == "observer"
        self.touch = JointTouch(robot, self.normal, SPEED_NOISE) if felt_by_joints else None
        self.learner = StiffnessLearner(stiffness, noise, by_bounds=felt_by_joints)
        self.mass = 0.0  # [kg] that the tip feels of the arm along the normal; the controller's to say

    def _set_stiffness(self, stiffness: float) -> None:
        """Press paper of this stiffness [N/m] from now on."""
        self.stiffness = stiffness
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

    @property
    def learned(self) -> bool:
        """Whether the stiffness was given or found; else the stiffest one is assumed still."""
        return self.learner.sure

    def columns(self) -> dict[str, float | Array]:
        """Extra columns of the log: PenTask.columns."""
        return self.task.columns(self.force)

    def start(self, state: State) -> None:
        """From the beginning of the plan."""
        self.task.start()
        self.felt.start()
        self.learner.start()
        if self.touch is not None:
            self.touch.start(state)
        self._net: Array | None = None  # (n,) what moved the arm since the last sample: as asked, less friction
        self.force = 0.0  # [N] felt along the normal
        self.saturated = 0.0  # [s] in which the integral was at its limit while the pen pressed
        if self.learner.known is None:
            self._set_stiffness(STIFFEST)

    def stop(self) -> None:
        """Nothing to release."""

    def _moved(self, state: State) -> State:
        """The sample with the torque that moved the arm: a measured one has the noise of currents, and friction."""
        if self._net is None:
            return state
        s = state  # not by `replace`, which takes 2 us
        return State(s.time, s.period, s.q, s.qd, self._net, s.wrench, s.tau_ext_hat, s.qd_target)

    def _answer(self, state: State, qd: Array, tau: Array) -> Command:
        """The torque within bounds, with what makes up for friction at the speeds qd (n,)."""
        if self.friction is None:
            command = self._bounds.command(state.q, qd, tau, self.task.lost)
            self._net = command.tau
            return command
        drag = self.friction.torque(qd)
        command = self._bounds.command(state.q, qd, tau + drag, self.task.lost)
        self._net = command.tau - drag
        return command

    def _felt(self, state: State, J: Array) -> Array | None:
        """F (6,) of the paper on the pen, None where nothing is known; J (6, n) at state.q."""
        return self.felt.wrench(self.robot, state, J, self.normal, self.task.mode == LISTEN)

    def _knocked(self, state: State, J: Array) -> bool:
        """Whether the joints say that the pen has just touched."""
        task = self.task
        return self.touch is not None and task.mode == TOUCH and self.touch.update(state, J, task.rise_acc)

    def _listened(self, before: str, state: State) -> None:
        """After an update of the task in mode `before`: begin to listen above the paper, or take up what was heard."""
        task = self.task
        if task.mode == before:
            return
        if task.mode == LISTEN:
            self.felt.listen()
            if self.touch is not None:
                self.touch.start(state)
        elif before == LISTEN:
            self.felt.heard()
            task.noise = max(task.noise, self.felt.noise)
