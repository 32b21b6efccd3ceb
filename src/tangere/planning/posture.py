"""Where an arm stands: joint positions as people write them, and a posture for when nothing is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.errors import InvalidValue

if TYPE_CHECKING:
    from tangere.robots import Robot
    from tangere.types import Array

BENT = 45.0  # deg: every other joint of another arm, so that it is not stretched


def posture(q: tuple[float, ...], robot: Robot, name: str = "q") -> Array:
    """Joint positions (n,) [rad, m] from a setting `name`: degrees, and metres for a joint that slides.

    InvalidValue where they are not as many as the joints, or outside their limits.
    """
    if len(q) != robot.dof:
        sliding = [str(i + 1) for i in np.flatnonzero(~robot.revolute)]
        unit = "angles in degrees" if not sliding else f"numbers, in degrees (joint {', '.join(sliding)}: metres),"
        raise InvalidValue(f"{name}: {robot.dof} {unit} for {robot.name}, got {len(q)}")
    return within_limits(np.where(robot.revolute, np.deg2rad(q), q), robot, name)


def within_limits(q: Array, robot: Robot, name: str) -> Array:
    """Joint positions q (n,) [rad, m] as they are; InvalidValue with the first that is outside its joint's limits."""
    outside = np.flatnonzero((q < robot.q_min) | (q > robot.q_max))
    if not outside.size:
        return q
    i = int(outside[0])
    numbers, unit = np.array([q[i], robot.q_min[i], robot.q_max[i]]), "m"
    if robot.revolute[i]:
        numbers, unit = np.degrees(numbers), "deg"
    at, low, high = numbers
    which = f"{name}: joint {i + 1} of {robot.name} at {at:.9g} {unit}"
    raise InvalidValue(f"{which} is outside its limits, {low:.9g} to {high:.9g} {unit}")


def at_rest(robot: Robot) -> tuple[float, ...]:
    """Where an arm stands if nothing is said: a UR's READY, or every other joint bent, within its limits [deg].

    A prismatic joint stands in the middle of its way [m]. `posture` makes joint positions of it.
    """
    from tangere.kernels import ur

    if ur.is_ur(robot.model):
        return ur.READY
    bend = np.where(np.arange(robot.dof) % 2 == 1, BENT, 0.0)
    bend[3::4] *= -1.0  # bent the other way: over the base again
    limited = np.isfinite(robot.q_min) & np.isfinite(robot.q_max)
    low, high = (np.degrees(np.where(limited, limit, 0.0)) for limit in (robot.q_min, robot.q_max))
    inside = np.where(limited, np.clip(bend, 0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high), bend)
    found = np.where(robot.revolute, inside, np.deg2rad(0.5 * (low + high)))
    return tuple(round(float(x), 6) for x in found)
