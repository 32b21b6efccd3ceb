"""Lines and circles of the tool of any arm, from the posture in which it stands, without inverse kinematics of poses.

For arms that have no closed form: seven joints, other wrists, fewer than six joints. The tool keeps the orientation
that it has; joints follow by velocities (velocity_ik.follow), which takes a fraction of a second, and what comes out is
checked: an arm that cannot go that way is refused in a sentence, with what was missing.
"""

from __future__ import annotations

import numpy as np

from tangere.errors import InvalidValue, NoSolution
from tangere.planning.paths import Circle, Line, Path
from tangere.planning.samples import Limits
from tangere.planning.timing import SmoothRate, TimeLaw
from tangere.planning.velocity_ik import FollowedPath, follow
from tangere.robots import Robot
from tangere.types import Array

STEP = 5e-3  # [s] of the integration: 1 mm at 0.2 m/s, which the feedback keeps within micrometres
GAIN = 20.0  # [1/s] of the feedback: STEP GAIN = 0.1, no ringing
OFF_PATH = 1e-3  # [m, rad] from where on a path was not followed: one that can stays within a thousandth of it
# [m] of tool motion per rad that a joint must make at least, without turning the tool: below, joints of 1 rad/s move it
# slower than 2 cm/s, and no path of this size is worth the name
LEAST = 0.02


def ways(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Directions (3, 3) in which the tool can move at q without turning, best first, and how far per rad (3,) [m].

    Columns are unit vectors in base axes; joints are counted together, so that 0 means: not at all.
    """
    J = robot.jacobian(q)
    _, s, Vt = np.linalg.svd(J[3:])
    rank = int(np.sum(s > 1e-9 * max(1.0, float(s[0]))))
    still = Vt[rank:].T  # joint motions that do not turn the tool
    if still.shape[1] == 0:
        return np.eye(3), np.zeros(3)
    U, gains, _ = np.linalg.svd(J[:3] @ still)
    return U, np.concatenate([gains, np.zeros(3)])[:3]


def room(robot: Robot, q: Array, direction: Array) -> float:
    """How far the tool moves per rad along a direction (3,) without turning [m]; 0 where it cannot."""
    axes, gains = ways(robot, q)
    along = axes.T @ direction
    if np.any(np.abs(along[gains < LEAST]) > 1e-6):
        return 0.0
    kept = gains >= LEAST
    return float(1.0 / np.linalg.norm(along[kept] / gains[kept])) if np.any(kept) else 0.0


def plane(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Two directions (3,) at right angles in which the tool can go round: level ones if it can, else its best two."""
    level = (np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    if min(room(robot, q, axis) for axis in level) >= LEAST:
        return level
    axes, gains = ways(robot, q)
    if gains[1] < LEAST:
        ways_left = int(np.sum(gains >= LEAST))
        raise NoSolution(
            f"{robot.name}: its tool has {ways_left} of the two directions that a circle takes, without turning, where "
            "the arm stands; hold and sine run on any arm"
        )
    return axes[:, 0], axes[:, 1]


def followed(robot: Robot, path: Path, law: TimeLaw, q_start: Array, limits: Limits | None = None) -> FollowedPath:
    """The joints along a path from q_start (n,), whose pose is the path's start; NoSolution where the arm cannot."""
    found = follow(robot, path, law, q_start, gain=GAIN, step=STEP, limits=limits)
    for error, unit in ((found.path_error, "m"), (found.turn_error, "rad")):
        worst = int(np.argmax(error))
        if error[worst] > OFF_PATH:
            raise NoSolution(
                f"{robot.name} leaves the path by {error[worst]:.3g} {unit} at t = {worst * STEP:.3g} s: out of reach, "
                "or a direction that its joints do not have there"
            )
    return found


def tool_circle(
    robot: Robot, q_start: Array, radius: float, *, rate: float, ramp: float, duration: float,
    centre: Array | None = None,
) -> FollowedPath:  # fmt: skip
    """A circle that begins where the tool is at q_start, its orientation kept; rate [rad/s], from rest to rest.

    Level where the arm can go round level, else in the plane of the two directions that it has. centre (3,): by
    default towards the base, so that the circle stays within reach.
    """
    T = robot.pose(q_start)
    x, y = plane(robot, q_start)
    if centre is None:
        base = T[:3, 3] @ np.column_stack([x, y])  # outwards, within the plane
        away = float(np.linalg.norm(base))
        x, y = ((x, y) if away < 1e-9 else ((x * base[0] + y * base[1]) / away, (y * base[0] - x * base[1]) / away))
        centre = T[:3, 3] - radius * x
    path = Circle(centre, radius, T[:3, :3], x_axis=T[:3, 3] - centre, y_axis=y)
    return followed(robot, path, SmoothRate(rate * radius, ramp, duration, stop=True), q_start)


def best_line(robot: Robot, q_start: Array, length: float, law: TimeLaw) -> tuple[FollowedPath, Array]:
    """A straight line of the tool from q_start that the arm can go, and its direction (3,): the best that there is.

    Tried are the directions in which the tool moves farthest per rad, both ways, those that do not lead upwards first.
    """
    axes, gains = ways(robot, q_start)
    both = [sign * axes[:, k] for k in range(3) if gains[k] >= LEAST for sign in (1.0, -1.0)]
    if not both:
        raise NoSolution(f"{robot.name}: its tool cannot move straight without turning where the arm stands")
    why: NoSolution | None = None
    for way in sorted(both, key=lambda way: bool(way[2] > 1e-6)):
        try:
            return tool_line(robot, q_start, way, length, law), way
        except NoSolution as problem:
            why = problem if why is None else why
    raise NoSolution(f"{robot.name}: no straight line of {length:.3g} m is free where the arm stands; {why}")


def tool_line(robot: Robot, q_start: Array, way: Array, length: float, law: TimeLaw) -> FollowedPath:
    """Straight along `way` (3,) from where the tool is at q_start, its orientation kept."""
    T = robot.pose(q_start)
    if room(robot, q_start, way) < LEAST:
        raise InvalidValue(f"{robot.name}: its tool cannot move straight along {np.round(way, 3).tolist()} there")
    return followed(robot, Line(T[:3, 3], T[:3, 3] + length * way, T[:3, :3]), law, q_start)
