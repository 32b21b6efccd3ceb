"""Reaction: stop, on the path, as fast as the drives allow; and go on when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tangere.control.reactions.handover import Limit, stopping_time
from tangere.control.reactions.path_clock import PathClock
from tangere.types import Command, Controller, Event, State

if TYPE_CHECKING:
    from tangere.robots import Robot

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
