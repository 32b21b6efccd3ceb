"""A guard around any controller: limits, and a sane answer to broken measurements, missed periods and broken code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.control.setpoint import gain, positive
from tangere.errors import InvalidValue, TangereError
from tangere.kernels.periods import below, squared
from tangere.types import Array, Command, Controller, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# Periods for which the last good torque is held. Constant torque for 5 ms moves a UR by less than 1 mm from any speed
# change of 10 rad/s2; a dropped packet or a glitch of an encoder is over by then.
HOLD = 5
# A period longer than this many nominal ones was missed. Two may be one late sample, three are not.
MISSED = 3.0
# s without a sample after which nobody knows where the arm is: with 10 rad/s2 of error it has moved 3 degrees
SILENCE = 0.1
# s from the held torque to gravity compensation: slower than the drives, faster than a person
RAMP = 0.2
# 1/s: the arm's speed dies out with this rate once given up (damping M_ii BRAKE): at rest within half a second
BRAKE = 10.0
# Speeds beyond this multiple of qd_max, and steps of q that would need them, are broken measurements.
PLAUSIBLE = 2.0
# s within which the torque may go from 0 to its limit: 50 times a second is faster than any task of an arm, and a
# controller that flickers with noise or a wrong sign shows
RATE_TIME = 0.02
INFINITE = float("inf")
WORDS = 200  # characters of a foreign error message that a note repeats
HISTORY = 200  # samples in the black box: 0.4 s at 500 Hz, the run-up to any fault of the loop


class ControlAborted(TangereError):
    """The guard gave up: reason, time [s], and the last states before (oldest first), as a black box."""

    def __init__(self, reason: str, time: float, states: tuple[State, ...]) -> None:
        super().__init__(f"control aborted at {time:.4f} s: {reason} (the last {len(states)} states are in .states)")
        self.reason = reason
        self.time = time
        self.states = states


class Guarded:
    """Passes a controller's torque on while all is well; holds, then ramps down, then reports when it is not.

    Limited and noted: torque beyond torque_max (default robot.tau_max), change beyond rate_max [Nm/s] (default
    torque_max / RATE_TIME). Held for up to `hold` periods in a row with the last good torque: q or qd not finite or
    implausible, a period longer than `missed` nominal ones, a controller that raises or answers something not finite.
    After that, or after SILENCE, the guard gives up for good: the torque goes within RAMP to

        tau = g(q) - M_ii BRAKE qd     with the measured q, qd; where they are broken, with the last good q and no brake

    and `abort` holds a ControlAborted with the last states. step never raises. A good period costs less than 5 us.

    period: nominal [s]. start() does raise for a broken first sample: nothing moves yet.
    """

    def __init__(
        self,
        controller: Controller,
        robot: Robot,
        *,
        period: float,
        torque_max: ArrayLike | None = None,
        rate_max: ArrayLike | None = None,
        hold: int = HOLD,
        missed: float = MISSED,
        history: int = HISTORY,
    ) -> None:
        for name, value in (("period", period), ("missed", missed), ("history", history)):
            positive(value, name)
        n = robot.dof
        self.controller = controller
        self.robot = robot
        self.period = period
        self.torque_max = gain(robot.tau_max if torque_max is None else torque_max, n, "torque_max")
        self.rate_max = self.torque_max / RATE_TIME if rate_max is None else gain(rate_max, n, "rate_max")
        if not (np.all(self.torque_max > 0.0) and np.all(self.rate_max > 0.0)):
            raise InvalidValue(f"torque_max, rate_max: must be positive, got {self.torque_max}, {self.rate_max}")
        self.hold = int(gain(hold, 1, "hold")[0])
        self._late = missed * period
        self._shape = (n,)
        self._history = int(history)
        self.abort: ControlAborted | None = None
        speed = PLAUSIBLE * robot.qd_max
        self._per_speed = 1.0 / speed
        self._per_step = 1.0 / (speed * period)
        self._per_torque = 1.0 / self.torque_max
        self._change = self.rate_max * period
        self._per_change = 1.0 / self._change

    def start(self, state: State) -> None:
        """Start the controller; refuses a first sample that is broken."""
        self._q = self._q_before = state.q
        fault = self._sample_fault(state)
        if fault:
            raise InvalidValue(f"the first sample is broken: {fault}")
        self.abort = None
        self.limited = self.rate_limited = self.held = 0  # periods in which each happened
        self._bad = 0  # in a row
        self._tau: Array | None = None  # last good
        self._ring: deque[State] = deque(maxlen=self._history)
        self._brake = np.diag(self.robot.mass_matrix(state.q)) * BRAKE
        self.controller.start(state)

    def step(self, state: State) -> Command:
        """The controller's torque, limited; or the held one; or the way down."""
        self._ring.append(state)
        if self.abort is not None:
            return self._down(state)
        q = state.q
        if below(state.qd, self._per_speed, None, q, self._per_step, self._q_before):
            self._q_before = q  # as in `_sample_fault`, which says what is wrong
        elif fault := self._sample_fault(state):
            return self._hold(state, fault)
        self._q = q
        if not 0.0 < state.period <= self._late:
            return self._hold(state, f"period of {1e3 * state.period:.3g} ms, nominal {1e3 * self.period:.3g} ms")
        try:
            command = self.controller.step(state)
            tau, note, before = command.tau, command.note, self._tau
            # within both limits, as nearly always
            if before is not None and below(tau, self._per_torque, None, tau, self._per_change, before):
                self._bad, self._tau = 0, tau
                return command
            size = squared(tau, self._per_torque)
            if not (size < INFINITE and tau.shape == self._shape):
                return self._hold(state, f"controller answered {tau}")
        except Exception as error:  # whatever it is: the arm must not be left alone with it
            return self._hold(state, f"controller raised {type(error).__name__}: {error}"[:WORDS])
        self._bad = 0
        if size > 1.0 and abs(tau * self._per_torque).max() > 1.0:  # the sum first: it is cheap, and mostly below
            tau, note = self._within(tau, note)
        if before is not None and squared(tau, self._per_change, before) > 1.0:
            change = (tau - before) * self._per_change
            if abs(change).max() > 1.0:
                joint = int(abs(change).argmax()) + 1
                tau = before + np.clip(change, -1.0, 1.0) * self._change
                self.rate_limited += 1
                note = _joined(note, f"torque rate of joint {joint} limited")
        self._tau = tau
        return command if tau is command.tau and note is command.note else Command(tau, note)

    def stop(self) -> None:
        """Stop the controller."""
        self.controller.stop()

    @property
    def finished(self) -> bool:
        """Of a controller that can finish; others have none (AttributeError). So are the next two."""
        return bool(self._inside().finished)

    @property
    def failed(self) -> str:
        """Why its task ended early."""
        return str(self._inside().failed)

    @property
    def said(self) -> Callable[[], Sequence[str]]:
        """Sentences since the last period."""
        said: Callable[[], Sequence[str]] = self._inside().said
        return said

    def _inside(self) -> Any:
        return self.controller

    def states(self) -> tuple[State, ...]:
        """The black box: the last states, oldest first."""
        return tuple(self._ring)

    # ------------------------------------------------------------------------------------------------- not so well

    def _sample_fault(self, state: State) -> str:
        """What is wrong with q and qd, "" if nothing. The comparisons are false for NaN."""
        q, qd = state.q, state.qd
        if squared(qd, self._per_speed) <= 1.0 and squared(q, self._per_step, self._q_before) <= 1.0:
            self._q_before = q
            return ""
        return self._named_fault(state, qd * self._per_speed, (q - self._q_before) * self._per_step)

    def _named_fault(self, state: State, speed: Array, step: Array) -> str:
        """The same joint by joint, in words: the sums above are cheap, but all joints together may pass 1."""
        for name, value in (("q", state.q), ("qd", state.qd)):
            if not np.isfinite(value).all():
                return f"{name} of joint {int(np.argmin(np.isfinite(value))) + 1} is not finite"
        self._q_before = state.q  # a jump is judged once: if the new place stays, it is where the arm is
        if abs(speed).max() > 1.0:
            joint = int(abs(speed).argmax())
            return f"joint {joint + 1} reports {state.qd[joint]:.3g} rad/s"
        step = step * (self.period / max(self.period, state.period))  # measured against the time that passed
        if abs(step).max() > 1.0:
            return f"q of joint {int(abs(step).argmax()) + 1} jumped"
        return ""

    def _hold(self, state: State, fault: str) -> Command:
        """The last good torque for a few periods, then give up."""
        self._bad += 1
        if self._bad > self.hold or self._tau is None or state.period > SILENCE:
            self.abort = ControlAborted(fault, state.time, self.states())
            self._given_up = 0.0
            self._from = self.robot.gravity_torque(self._q) if self._tau is None else self._tau
            return self._down(state)
        self.held += 1
        return Command(self._tau, f"held: {fault}")

    def _down(self, state: State) -> Command:
        """From the last torque to gravity compensation with a brake."""
        assert self.abort is not None
        self._given_up += self.period
        good = self._sample_fault(state) == ""
        if good:
            self._q = state.q
        goal = self.robot.gravity_torque(self._q)
        if good:
            goal -= self._brake * state.qd
        share = min(1.0, self._given_up / RAMP)
        tau = np.minimum(np.maximum((1.0 - share) * self._from + share * goal, -self.torque_max), self.torque_max)
        return Command(tau, f"aborted: {self.abort.reason}")

    def _within(self, tau: Array, note: str) -> tuple[Array, str]:
        excess = np.abs(tau) - self.torque_max
        joint = int(excess.argmax())
        self.limited += 1
        text = f"torque of joint {joint + 1} limited: {tau[joint]:.4g} Nm to {self.torque_max[joint]:.4g} Nm"
        return np.clip(tau, -self.torque_max, self.torque_max), _joined(note, text)


def _joined(note: str, more: str) -> str:
    return f"{note}; {more}" if note else more
