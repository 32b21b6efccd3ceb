"""What both force controllers learn by pressing: the stiffness of the paper, and the sensor's zero before a touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tangere.apps.drawing.force.gains import STIFFEST
from tangere.apps.drawing.force.surface import StiffnessEstimate
from tangere.apps.drawing.force.task import DRAW, GIVE, LISTEN, PenTask

if TYPE_CHECKING:
    from tangere.apps.drawing.force.sense import ContactForce
    from tangere.apps.drawing.force.touch import JointTouch
    from tangere.types import State

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


def listened(task: PenTask, before: str, felt: ContactForce, touch: JointTouch | None, state: State) -> None:
    """After the mode changed: begin to listen to the sensor above the paper, or take up what was heard."""
    if task.mode == LISTEN:
        felt.listen()
        if touch is not None:
            touch.start(state)
    elif before == LISTEN:
        felt.heard()
        task.noise = max(task.noise, felt.noise)
