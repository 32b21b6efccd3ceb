"""Reaction: stop on the path, as fast as the drives allow, by a clock of the path that halts; go on when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tangere.control.reactions.handover import Limit, stopping_time
from tangere.control.setpoint import positive
from tangere.types import Command, Controller, Event, Reference, State, Trajectory

if TYPE_CHECKING:
    from tangere.robots import Robot

# Rate that counts as standing: 20 us before the end of a halt of 1 s, so that rounding of the time decides nothing
STANDS = 1e-9


class PathClock:
    """Runs a trajectory by a clock s(t) of its own, that `halt` slows to a stop and `resume` sets going again.

        q = q_0(s),   qd = q_0'(s) sd,   qdd = q_0''(s) sd^2 + q_0'(s) sdd       (T, v, a of the tcp likewise)

    While sd = 1 it is the trajectory itself. A change takes `duration` T with u = (t - t_c) / T:

        halt:    sd = sd_c (1 - 3 u^2 + 2 u^3) + sdd_c T u (1 - u)^2,   resume: sd = 3 u^2 - 2 u^3

    so sd and sdd are continuous, jerk is bounded (6 / T^2), sd is never negative: the arm never goes back. A halt may
    come while resuming; resume only once the clock stands. at(t) depends on the changes made so far alone, and may be
    asked several times; changes must come in order. Implements types.Trajectory.
    """

    __slots__ = ("_changes", "trajectory")

    def __init__(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        self.reset()

    def reset(self) -> None:
        """Run at full rate from the start; every change is forgotten."""
        # t_c, T, s_c, and the coefficients of 1, u, u^2, u^3 in sd; after T the rate is their sum. The newest first
        self._changes = [(0.0, 1.0, 0.0, (1.0, 0.0, 0.0, 0.0))]

    @property
    def duration(self) -> float:
        """Seconds of the trajectory if nothing halts it."""
        return self.trajectory.duration

    def clock(self, time: float) -> tuple[float, float, float]:
        """s [s], sd, sdd [1/s] at that time [s]."""
        at, T, s, (a, b, c, d) = self._changes[0]
        if time < at and len(self._changes) > 1:  # asked for the past
            at, T, s, (a, b, c, d) = next((c for c in self._changes if c[0] <= time), self._changes[-1])
        u = (time - at) / T
        if u >= 1.0:
            rate = a + b + c + d
            return s + T * (a + b / 2 + c / 3 + d / 4) + rate * (time - at - T), rate, 0.0
        s += T * u * (a + u * (b / 2 + u * (c / 3 + u * d / 4)))
        return s, a + u * (b + u * (c + u * d)), (b + u * (2.0 * c + u * 3.0 * d)) / T

    def halt(self, time: float, duration: float) -> None:
        """Come to a stop within `duration` [s] from this time on."""
        T = positive(duration, "duration", " [s]")
        s, rate, slope = self.clock(time)
        m = slope * T
        self._changes.insert(0, (time, T, s, (rate, m, -3.0 * rate - 2.0 * m, 2.0 * rate + m)))

    def resume(self, time: float, duration: float) -> bool:
        """Reach full rate within `duration` [s]; False, and nothing changes, while the clock does not stand."""
        T = positive(duration, "duration", " [s]")
        s, rate, _ = self.clock(time)
        if rate > STANDS:
            return False
        self._changes.insert(0, (time, T, s, (0.0, 0.0, 3.0, -2.0)))
        return True

    def at(self, time: float) -> Reference:
        """The reference at that time [s]."""
        s, rate, slope = self.clock(time)
        r = self.trajectory.at(s)
        if rate == 1.0 and slope == 0.0:
            return r
        v = None if r.v is None else r.v * rate
        a = None if r.a is None or r.v is None else r.a * (rate * rate) + r.v * slope
        return Reference(r.q, r.qd * rate, r.qdd * (rate * rate) + r.qd * slope, r.T, v, a)


RESUME = 0.5  # s to full speed again: whoever stands beside the arm sees it start


class StopOnPath:
    """Slows the trajectory's own time to a halt after an Event; the task's controller goes on holding it there.

    controller: one that follows `clock`, a PathClock around the task's trajectory. The stop takes as long as the
    torques need (handover.stopping_time), the pose stays on the path. What was touched is pressed on with the
    controller's stiffness times how far the path goes on meanwhile: this reaction does not let go. `resume` goes on.
    """

    def __init__(self, controller: Controller, clock: PathClock, robot: Robot) -> None:
        self.controller = controller
        self.clock = clock
        self.robot = robot
        self.event: Event | None = None
        self._limit = Limit(robot)
        self._halted = self._wanted = False
        self._t0 = 0.0

    def on_event(self, event: Event) -> None:
        """The touch to react to; further ones until `resume` are ignored."""
        if self.event is None and event.begins:
            self.event = event

    def resume(self) -> None:
        """Go on along the path from the next step at which it stands still."""
        self._wanted = self.event is not None

    def start(self, state: State) -> None:
        """Start the controller with its clock at full rate; an event from before is forgotten."""
        self.event, self._halted, self._wanted = None, False, False
        self._t0 = state.time
        self._limit = Limit(self.robot)
        self.clock.reset()
        self.controller.start(state)

    def step(self, state: State) -> Command:
        """The controller's torque, for a reference that slows down after a touch."""
        if self.event is None:
            return self._limit.passed(self.controller.step(state))
        time = state.time - self._t0
        if not self._halted:
            rate = self.clock.at(time).qd
            self.clock.halt(time, stopping_time(self.robot, state.q, rate))
            self._halted = True
        elif self._wanted and self.clock.resume(time, RESUME):
            self.event, self._halted, self._wanted = None, False, False
            return self._limit.passed(self.controller.step(state))
        command = self.controller.step(state)
        note = "stopped on its path after a touch"
        if command.note:
            note = f"{note}; {command.note}"
        return self._limit.command(state, command.tau, note)

    def stop(self) -> None:
        """Stop the controller."""
        self.controller.stop()
