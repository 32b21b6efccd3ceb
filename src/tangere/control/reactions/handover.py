"""From the task's controller to the one that answers a touch, without a jump of the torque; answers that give way.

These hold the position with little stiffness, or brake and float to be pushed by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from tangere.control.guard import RATE_TIME
from tangere.control.joint_impedance import COMPENSATION, HandGuiding, JointImpedance
from tangere.control.task_space import TORQUE, Bounds
from tangere.types import Array, Command, Controller, Event, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# Share of the guard's rate limit (tau_max within RATE_TIME) that the torque may change with after a touch: the guard
# then has nothing to cut. From full torque one way to full torque the other it takes 45 ms, mostly 10 to 15.
RATE = 0.9
# 1/s: rate at which the arm loses its speed at first, -BRAKE M(q) qd, where the answer asks for a brake: gone within
# 0.1 s; 10 m/s2 for a tool at 0.25 m/s, what the shortest stop on the path takes too
BRAKE = 40.0
# s in which the brake lets go: three of its own time constants, when 95 % of the speed is gone
RELEASE = 0.075
BRAKED = 1.0  # s after which it has: 2e-6 of it is left
# share of the torque that gravity and speed leave, which a stop may use: the rest is for the feedback around it
BRAKING = 0.7
# s: the shortest stop. Below 40 ms no gear of a UR answers without ringing (its first bending mode is near 10 Hz), and
# at the speed of a tool beside a person (0.25 m/s) it means 9 m/s2 at most
SHORTEST = 0.04
# s: a stop takes no longer, even where gravity leaves a joint no torque to brake with: UR's own stop of category 2
LONGEST = 0.5


class Limit:
    """Keeps the torques of a reaction within Bounds and their change within RATE of what the guard allows."""

    def __init__(self, robot: Robot) -> None:
        self._bounds = Bounds(robot)
        self._rate = RATE * robot.tau_max / RATE_TIME
        self._last: Array | None = None

    def passed(self, command: Command) -> Command:
        """The task's own command, remembered as where a reaction begins."""
        self._last = command.tau
        return command

    def command(self, state: State, tau: Array, note: str) -> Command:
        """The torque within both limits. After a touch at the very first sample there is nothing to begin from."""
        command = self._bounds.command(state.q, state.qd, tau, note)
        if self._last is not None:
            change = self._rate * state.period
            tau = self._last + np.minimum(np.maximum(command.tau - self._last, -change), change)
            command = Command(tau, command.note)
        self._last = command.tau
        return command


class Handover(ABC):
    """Runs the task's controller until an Event is given, then whatever `answer` makes of it.

        tau = tau_answer - BRAKE exp(-(t - t_c) / RELEASE) M(q) qd,   |d tau / dt| <= RATE tau_max / RATE_TIME

    From the last torque of the task (the touch is at t_c) every joint goes over at that rate, and stays within
    TORQUE tau_max; the brake shortens the motion and does not bend it. A joint without a torque limit jumps.
    A residual that is not finite is taken as zero: that there was a touch is known, from where is not.
    """

    note = "reacting to a touch"
    brakes = True  # whether the speed of the touch is braked beside the answer's own torque

    def __init__(self, controller: Controller, robot: Robot) -> None:
        self.controller = controller
        self.robot = robot
        self.event: Event | None = None
        self._limit = Limit(robot)
        self._answer: Controller | None = None
        self._since = 0.0

    @abstractmethod
    def answer(self, event: Event, state: State) -> Controller:
        """The controller that takes over at this state; it is started by the handover."""

    def on_event(self, event: Event) -> None:
        """The touch to react to; later ones are ignored."""
        if self.event is None and event.begins:
            self.event = event

    def start(self, state: State) -> None:
        """Start the controller; an event from before is forgotten."""
        self.event = self._answer = None
        self._limit = Limit(self.robot)
        self.controller.start(state)

    def step(self, state: State) -> Command:
        """The controller's torque, or the answer's."""
        if self.event is None:
            return self._limit.passed(self.controller.step(state))
        if self._answer is None:
            self._answer = self.answer(self.event, state)
            self._answer.start(state)
            self._since = state.time
        command, since = self._answer.step(state), state.time - self._since
        tau = command.tau
        if self.brakes and since < BRAKED:
            tau = tau - BRAKE * exp(-since / RELEASE) * self.robot.mass_matrix(state.q).dot(state.qd)
        note = f"{self.note}; {command.note}" if command.note else self.note
        return self._limit.command(state, tau, note)

    def stop(self) -> None:
        """Stop the controller, and the answer's."""
        if self._answer is not None:
            self._answer.stop()
        self.controller.stop()


def residual_of(event: Event, n: int) -> Array:
    """The residual (n,) of an event; zero where it is broken: a reaction must not fail over it."""
    r = np.asarray(event.residual_nm, dtype=np.float64)
    return r if r.shape == (n,) and np.isfinite(r).all() else np.zeros(n)


def stopping_time(robot: Robot, q: Array, qd: Array) -> float:
    """Seconds to bring qd (n,) to zero as 1 - 3 u^2 + 2 u^3 with the torque that the arm has left.

        T = max_i 1.5 |M qd|_i / (BRAKING (TORQUE tau_max - |C qd + g|)_i),  within SHORTEST and LONGEST

    1.5 / T is the largest deceleration of that law. M, C and g are those of q: an arm at 1 rad/s turns by 2 degrees
    meanwhile. Joints without a torque limit do not count.
    """
    momentum = np.abs(robot.mass_matrix(q).dot(qd))
    room = BRAKING * (TORQUE * robot.tau_max - np.abs(robot.bias_torque(q, qd)))
    longest = 1.5 * float(np.max(momentum / np.maximum(room, 1e-9)))
    return min(max(longest, SHORTEST), LONGEST)


# rad/s: frequency of the joints' springs after a touch. At 5 rad/s a UR10e's shoulder (M_ii = 8 kg m2) has 200 Nm/rad:
# a hand moves the tool by centimetres with 20 N, and the arm does not sink.
SOFT_OMEGA = 5.0


def soft_hold(robot: Robot, q: Array, friction: Friction | None) -> JointImpedance:
    """Joint springs M_ii(q) SOFT_OMEGA^2 with critical damping, around where the arm is when it is started."""
    stiffness = np.diag(robot.mass_matrix(q)) * SOFT_OMEGA**2
    return JointImpedance(robot, None, stiffness=stiffness, friction=friction)


class StopOnContact(Handover):
    """Runs a controller until an Event is given, from then on holds the position softly.

    After `on_event` the next step starts a JointImpedance at the joint angles of that moment, with stiffness
    M_ii SOFT_OMEGA^2 and critical damping: the arm brakes, and gives way to who touched it.
    """

    note = "holding softly after a touch"

    def __init__(self, controller: Controller, robot: Robot, *, friction: Friction | None = None) -> None:
        super().__init__(controller, robot)
        self.friction = friction

    def answer(self, event: Event, state: State) -> Controller:
        """Springs around the joint angles of this moment."""
        return soft_hold(self.robot, state.q, self.friction)


# 1/s: damping M_ii FLOAT_RATE once it floats: 0.1 m/s at a tool of 8 kg take 2 N, and a push dies out within a second
FLOAT_RATE = 3.0


class FloatOnContact(Handover):
    """Runs a controller until an Event is given, from then on brakes and floats.

        tau = g(q) + compensation friction(qd) - M_ii FLOAT_RATE qd + edge(q),      after the brake of Handover

    Nothing pulls back to any place: what the arm presses on pushes it off, down to the friction that is not
    compensated. See HandGuiding for compensation and edge; M_ii is that of the touch. It floats only as well as gravity
    is known: an arm that is heavier than its model by more than friction holds sinks, and presses on what is below.
    """

    note = "floating after a touch"

    def __init__(
        self,
        controller: Controller,
        robot: Robot,
        *,
        friction: Friction | None = None,
        compensation: float = COMPENSATION,
    ) -> None:
        super().__init__(controller, robot)
        HandGuiding(robot, compensation=compensation)  # refuses what it cannot do, now and not in the loop
        self.friction, self.compensation = friction, compensation

    def answer(self, event: Event, state: State) -> Controller:
        """The floating arm, from this moment on."""
        damping = FLOAT_RATE * np.diag(self.robot.mass_matrix(state.q))
        return HandGuiding(self.robot, friction=self.friction, compensation=self.compensation, damping=damping)
