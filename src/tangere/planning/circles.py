"""Two circles of the documents, ready made: 000's above a table, tool down, and 002's upright one on a wall."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.planning.path_trajectory import PathTrajectory
from tangere.planning.paths import Circle, positive, unit
from tangere.planning.samples import PERIOD, Limits
from tangere.planning.timing import SmoothRate
from tangere.robots import Robot
from tangere.types import Array

# Tool down, its x axis along base x: R = Rz(psi) Rx(pi) with yaw psi = 0. 000 leaves psi open (eq 93); another yaw
# only turns joint 6.
TOOL_DOWN = np.diag([1.0, -1.0, -1.0])
# [m] upper arm and forearm of the UR10e, the arm that the default numbers of `ramped_circle` fit; for another arm they
# are scaled with its length
UR10E_ARM = 0.6127 + 0.57155


def ramped_circle(
    robot: Robot,
    *,
    centre: ArrayLike = (0.7, 0.1, 0.3),
    radius: float = 0.15,
    rate: float = 1.0,
    ramp: float = 1.0,
    duration: float = 10.0,
    stop: bool = True,
    orientation: ArrayLike = TOOL_DOWN,
    q_start: ArrayLike | None = None,
    period: float = PERIOD,
    limits: Limits | None = None,
) -> PathTrajectory:
    """000's horizontal circle, tool down, with the smooth start that 000 eq 88 lacks.

    The default numbers are those of docs/results.md (000 itself names none), for a UR10e: 0.15 m
    radius, 1 rad/s, centre [m] in base axes. ramp [s]: until the full rate is reached. With stop (default) it comes to
    rest within the last `ramp` seconds; without, run it for less than the duration.
    """
    path = Circle(centre, radius, orientation)
    law = SmoothRate(positive(rate, "rate", "rad/s") * radius, ramp, duration, stop=stop)
    return PathTrajectory(robot, path, law, q_start=q_start, period=period, limits=limits)


def facing(normal: ArrayLike) -> Array:
    """R_base_tcp of a tool that looks straight at a wall: z against the wall's outward normal, x across and level.

    Right for walls that are not level (a table): there the level direction is not unique, base x is taken.
    """
    z = -unit(normal, "normal")
    x = np.cross(z, (0.0, 0.0, 1.0))
    x = np.array([1.0, 0.0, 0.0]) if np.linalg.norm(x) < 1e-9 else unit(x, "x")
    return np.stack([x, np.cross(z, x), z], axis=1)


def wall_circle(
    robot: Robot,
    *,
    centre: ArrayLike = (0.0, -0.8, 0.5),
    radius: float = 0.1,
    normal: ArrayLike = (0.0, 1.0, 0.0),
    round_time: float = 200.0,
    rounds: float = 1.0,
    ramp: float = 2.0,
    q_start: ArrayLike | None = None,
    period: float = PERIOD,
    limits: Limits | None = None,
) -> PathTrajectory:
    """002's upright circle (radius 100 mm, 200 s, from the top) in a pose where the arm can push on the wall.

    The default place, for a UR10 or UR10e that holds a pen of 0.1 m: the wall is the plane y = -0.8 m, the circle's
    centre 0.5 m above the base, the pen at right angles to the wall. The smallest singular value of J stays above 0.3
    all the way round (it is 0.36 at the best place there is; in 002's own pose it is 0), so that every joint torque of
    the 5 N is what the model says. normal: out of the wall, towards the robot. It runs the way 002 does: from the top
    to the robot's base -x. round_time [s] per round at full speed; the ramps add `ramp` seconds.
    """
    path = Circle.about(centre, radius, facing(normal), normal=-unit(normal, "normal"))
    speed = path.length / positive(round_time, "round_time", "s")
    law = SmoothRate.over(rounds * path.length, speed, ramp)
    return PathTrajectory(robot, path, law, q_start=q_start, period=period, limits=limits)
