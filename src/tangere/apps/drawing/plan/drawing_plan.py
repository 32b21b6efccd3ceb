"""A planned drawing: a trajectory that knows what the pen is meant to do at a time, and what was checked."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import Drawn, Hop, Pace, Section
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.planning.samples import Sampled
from tangere.robots import Robot
from tangere.types import Array


@dataclass(frozen=True)
class PlanCheck:
    """What the checks of a whole drawing found."""

    room: dict[str, float]  # by kind (wrist, elbow, shoulder, joints, surface, self): 1 is just enough
    force_max: float  # N that the joints can press with everywhere
    sigma_min: float  # smallest singular value of J (a lower bound far from singularities)
    surface_distance: float  # m, links 2 to 6 to the surface, smallest
    joint_margin: float  # rad to the nearest joint limit
    velocity_share: float  # of the joints' limits, largest
    acceleration_share: float
    torque_share: float  # of the torque limits, with the pen's force while it draws
    tip_mass: float  # kg felt along the normal
    deviation: float  # m, of the pen's way from the strokes


class DrawingPlan(Sampled):
    """The motion of a drawing. A Trajectory (`duration`, `at`), with what the pen is meant to do at a time.

    The reference lies on the nominal paper; where the real one is found to be is the force controller's business.
    """

    __slots__ = (
        "R_canvas_tcp", "_bounds", "_contact", "_phases", "_stroke", "canvas", "check", "force", "pace", "sections",
        "start", "stroke_times", "strokes",
    )  # fmt: skip

    def __init__(
        self,
        robot: Robot,
        strokes: Strokes,
        canvas: Canvas,
        sections: list[Section],
        samples: tuple[Array, Array, Array],
        period: float,
        start: float,
        R_canvas_tcp: Array,
        pace: Pace,
        force: float,
        check: PlanCheck,
    ) -> None:
        self.strokes, self.canvas, self.sections, self.pace, self.force = strokes, canvas, tuple(sections), pace, force
        self.R_canvas_tcp, self.check, self.start = R_canvas_tcp, check, start
        bounds, phases, contact, stroke = [0.0], ["travel"], [False], [0]
        times = np.zeros((len(strokes.lines), 2))
        clock = start
        for section in sections:
            bounds.append(clock)
            phases.append(section.phase)
            contact.append(section.contact)
            stroke.append(section.stroke)
            if isinstance(section.motion, Hop):
                bounds.append(clock + section.slower * section.motion.clear_time(pace.touch_height))
                phases.append("travel")
                contact.append(False)
                stroke.append(section.stroke + 1)
            clock += section.duration
            if section.phase == "approach":
                times[section.stroke] = clock
            elif section.phase == "draw":
                times[section.stroke, 1] = clock
        self._bounds, self._phases, self._contact, self._stroke = bounds, phases, contact, stroke
        self.stroke_times = times  # (m, 2) s: drawing begins (after the pen has settled) and ends
        super().__init__(robot, *samples, period, clock)

    def phase(self, time: float) -> str:
        """ "travel" (pen in the air), "approach" (slowly down, then resting), "draw" or "lift" at that time [s]."""
        return self._phases[self._index(time)]

    def contact_wanted(self, time: float) -> bool:
        """Whether the pen should touch: from the start of the slow descent to the end of the stroke."""
        return self._contact[self._index(time)]

    def stroke(self, time: float) -> int:
        """The stroke (from 0) that is drawn at that time, or will be next."""
        return self._stroke[self._index(time)]

    def _index(self, time: float) -> int:
        if time > self.duration:
            return len(self._phases) - 1
        return max(bisect_right(self._bounds, time) - 1, 0)

    @property
    def draw_length(self) -> float:
        """Length [m] of what is drawn, as the pen goes."""
        return sum(s.motion.path.length for s in self.sections if isinstance(s.motion, Drawn))

    @property
    def pen_up_length(self) -> float:
        """Length [m] of the ways between strokes, along the paper."""
        return self.strokes.pen_up_length

    @property
    def phase_times(self) -> dict[str, float]:
        """Seconds that it "draw"s, comes down onto the paper ("touch") and moves in the air ("travel")."""
        found = {"draw": 0.0, "touch": 0.0, "travel": self.start}
        for section in self.sections:
            found[{"draw": "draw", "approach": "touch"}.get(section.phase, "travel")] += section.duration
        return found

    def polylines(self, spacing: float = 0.25e-3) -> tuple[Array, ...]:
        """The pen's way for each stroke, (k, 2) [m] on the canvas, a point every `spacing`: what to score against."""
        found: list[list[Array]] = [[] for _ in self.strokes.lines]
        for section in self.sections:
            if isinstance(section.motion, Drawn):
                path = section.motion.path
                count = max(2, math.ceil(path.length / spacing) + 1)
                found[section.stroke].append(path.at(np.linspace(0.0, path.length, count)).T[:, :2, 3])
        return tuple(
            np.concatenate(parts) if parts else self.strokes.lines[i][:1].copy() for i, parts in enumerate(found)
        )
