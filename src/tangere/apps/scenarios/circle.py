"""000's circle under computed torque: the tool points down and goes round a level circle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World, reach_of
from tangere.errors import InvalidValue, NoSolution
from tangere.kernels import ur
from tangere.kinematics.inverse_search import solve
from tangere.kinematics.rotation import pose
from tangere.planning.branches import BRANCHES
from tangere.planning.path_trajectory import TOOL_DOWN, UR10E_ARM, ramped_circle
from tangere.planning.posture import at_rest, posture
from tangere.planning.tool_motions import tool_circle
from tangere.robots import Robot, robot
from tangere.settings import setting, settings_of, word
from tangere.types import Array, Trajectory

JOINTS = 6  # a tool that points down, anywhere: what fewer joints cannot
SHARE = 0.08  # of an arm's length: the radius of a circle of one that is no UR, about that of 000's
# Of the numeric search for the start: 20 starts of 60 steps take a third of a second, and find what is there
RESTARTS, ITERATIONS = 20, 60
ATTEMPTS = 6  # postures from which a circle is tried, a tenth of a second each


@dataclass(frozen=True)
class CircleSettings(RunSettings):
    """Where, how large and how fast; made for a UR10e, other URs get it scaled with their length."""

    centre: tuple[float, ...] = setting((0.7, 0.1, 0.3), "m", "centre in the base frame", size=(3,))
    radius: float = setting(0.15, "m", "radius; centre and radius are scaled with the arm where neither is told")
    rate: float = setting(1.0, "rad/s", "angular rate")
    ramp: float = setting(1.0, "s", "smooth start and stop")
    branch: str = word(BRANCHES[0], "shoulder, elbow and wrist of the arm on its way", BRANCHES)


def fitted(s: CircleSettings, told: frozenset[str]) -> CircleSettings:
    """For another UR the circle is scaled with the arm's length, if nothing else is said."""
    if s.robot == "ur10e":
        return s
    arm = robot(s.robot, parameters=s.parameters)
    if not arm.closed_form and not told & {"radius"}:
        return replace(s, radius=round(SHARE * reach_of(arm, posture(at_rest(arm), arm)), 4))
    if told & {"centre", "radius"} or not ur.is_ur(arm.model) or arm.model.dh is None:
        return s
    factor = round(float(np.abs(arm.model.dh.a[[1, 2]]).sum()) / UR10E_ARM, 2)
    return replace(
        s, centre=tuple(round(factor * x, 4) for x in s.centre), radius=round(factor * s.radius, 4)
    )  # fmt: skip


def motion(world: World) -> Motion:
    """Once round in 2 pi / rate, from rest to rest."""
    s = world.settings
    if not world.planner.closed_form:
        turning = _turning(world.planner, s)
        return Motion(turning, world.computed_torque(turning), s.ramp)
    trajectory = ramped_circle(
        world.planner, branch=s.branch, centre=s.centre, radius=s.radius,
        rate=s.rate, ramp=s.ramp, duration=s.duration, period=s.period,
    )  # fmt: skip
    return Motion(trajectory, world.computed_torque(trajectory), s.ramp)


def _turning(arm: Robot, s: CircleSettings) -> Trajectory:
    """The circle of an arm without closed form: from where it rests, or tool down about the centre that was told."""
    rest, centre = posture(at_rest(arm), arm), None
    duration = 2.0 * s.ramp if s.duration is None else s.duration
    if s.centre != settings_of(CircleSettings)["centre"].default:
        if arm.dof < JOINTS:
            raise InvalidValue(
                f"centre: a tool that points down at a place of one's own takes {JOINTS} joints, {arm.name} has "
                f"{arm.dof}; without centre= it goes round from where it stands"
            )
        centre = np.array(s.centre)
    how: dict[str, Any] = {"rate": s.rate, "ramp": s.ramp, "duration": duration, "centre": centre}
    if centre is None:
        return tool_circle(arm, rest, s.radius, **how)
    why, rng = "", np.random.default_rng(0)
    low, high = (np.where(np.isfinite(x), x, side * np.pi) for x, side in ((arm.q_min, -1.0), (arm.q_max, 1.0)))
    for attempt in range(ATTEMPTS):  # another posture, where joints meet their limits on the way round
        start = rest if attempt == 0 else rng.uniform(low, high)
        try:
            return tool_circle(arm, _tool_down(arm, start, centre + (s.radius, 0.0, 0.0)), s.radius, **how)
        except NoSolution as problem:
            why = why or str(problem)
            if str(problem).startswith("centre"):
                break
    tried = "" if why.startswith("centre") else f"no way round from {ATTEMPTS} postures; from the first: "
    raise NoSolution(tried + why)


def _tool_down(arm: Robot, start: Array, place: Array) -> Array:
    """Joints at which the tool is at a place (3,) and points down, searched from `start`."""
    found = solve(
        arm.pose, arm.jacobian, pose(TOOL_DOWN, place), start, arm.q_min, arm.q_max,
        restarts=RESTARTS, iterations=ITERATIONS,
    )  # fmt: skip
    if not found.converged:
        raise NoSolution(
            f"centre: {arm.name} does not reach the circle's start with the tool down, within its joint limits: "
            f"the nearest found is {1e3 * float(found.position_error):.3g} mm and "
            f"{np.degrees(float(found.rotation_error)):.3g} deg off"
        )
    return found.q


SCENARIO = Scenario(
    "circle", "000's circle under computed torque, tool down", CircleSettings, motion, fitted, did="drew a circle"
)
