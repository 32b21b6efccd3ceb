"""002's circle on a wall, drawn with a pen that is pressed with 5 N: by a UR10 in a pose from which it can press.

Strokes are lines on a canvas; the plan is a trajectory that was checked as a whole (reach, singularities, joint limits,
clearance, force) before anything moves; the controller holds the force along the wall's normal and the motion along the
wall. The simulated arm is 5 % heavier than the controller believes, the wall is 2 mm nearer and tilted by a degree, and
neither planner nor controller is told.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np

from tangere.apps.drawing.drawing import Simulated, draw, drawing_robot
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.fit import DoesNotFit
from tangere.apps.drawing.plan.motion import PenMotion
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.strokes.strokes import Strokes

RADIUS, FORCE = 0.1, 5.0  # m, N: as in document 002

arm = drawing_robot("ur10")
angle = np.linspace(0.0, 2.0 * math.pi, 181)
circle = RADIUS * np.stack([np.sin(angle), np.cos(angle)], axis=1)  # from the top, clockwise
circle[-1] = circle[0]
strokes = Strokes((circle,), size=(0.22, 0.22))

# a wall beyond the arm's reach is refused, and the way to one that is not is said
far = Canvas.wall(arm, strokes.size).moved((0.0, 0.0, -0.9))
try:
    plan_drawing(arm, strokes, far, PenMotion(force=FORCE))
except DoesNotFit as problem:
    print("too far:", problem.problems[0])
    print("offered:", str(problem.offers[0]).partition(" (")[0])

canvas = Canvas.wall(arm, strokes.size)
plan = plan_drawing(arm, strokes, canvas, PenMotion(force=FORCE, speed=0.1))
x, y, z = canvas.origin
print(f"wall at x = {x:.2f} m, circle about z = {z:.2f} m; the arm could press with {plan.check.force_max:.0f} N there")
print(f"{plan.draw_length:.3f} m to draw, about {plan.duration:.1f} s")

stage = Simulated(canvas_error=(2e-3, math.radians(1.0)), seed=1)
for controller in ("hybrid", "height-pi"):
    drawn = draw(arm, plan, stage, force=FORCE, controller=controller)
    s = drawn.summary
    assert not drawn.aborted, drawn.aborted
    print(
        f"{controller:9}: line {s['path_rms_mm']:.3f} mm rms, force {s['force_mean_n']:.2f} N mean, "
        f"{s['force_rms_error_n']:.3f} N rms error, {s['force_max_n']:.2f} N at most, "
        f"ink {100.0 * s['ink_coverage']:.1f} %"
    )
picture = drawn.log.plot("q", "wrench").save(Path(tempfile.mkdtemp(prefix="tangere-")) / "drawn.svg")
print(f"picture of the last: {picture}")
