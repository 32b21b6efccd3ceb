"""What both force controllers learn by pressing: the stiffness of the paper, and the sensor's zero before a touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tangere.control.force_surface import StiffnessEstimate
from tangere.control.force_task import DRAW, GIVE, LISTEN, PenTask

if TYPE_CHECKING:
    from tangere.control.force_input import ContactForce
    from tangere.control.force_touch import JointTouch
    from tangere.types import State


class StiffnessLearner:
    """The stiffness from the press of the first stroke, and of those after it until it is sure.

    known [N/m]: given, nothing is learned then; noise [N] of the force per sample. sure: given or found.
    """

    def __init__(self, known: float | None, noise: float) -> None:
        self.known = known
        self.estimate = StiffnessEstimate(noise)
        self.start()

    def start(self) -> None:
        """Forget what was learned."""
        self.estimate.clear()
        self.sure = self.known is not None
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
        return value


def listened(task: PenTask, before: str, felt: ContactForce, touch: JointTouch | None, state: State) -> None:
    """After the mode changed: begin to listen to the sensor above the paper, or take up what was heard."""
    if task.mode == LISTEN:
        felt.listen()
        if touch is not None:
            touch.start(state)
    elif before == LISTEN:
        felt.heard()
        task.noise = max(task.noise, felt.noise)
