"""000's circle under computed torque: the tool points down and goes round a level circle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kinematics.rotation import pose
from tangere.planning.path_trajectory import TOOL_DOWN, UR10E_ARM, ramped_circle
from tangere.robots import Robot, robot
from tangere.settings import setting, word
from tangere.types import Array

BRANCHES = tuple(f"{s} {e} {w}" for s in ("left", "right") for e in ("up", "down") for w in ("no flip", "flip"))
JOINTS = 6  # a tool that points down, anywhere: what fewer joints cannot, and what inverse kinematics here is for


@dataclass(frozen=True)
class CircleSettings(RunSettings):
    """Where, how large and how fast; made for a UR10e, other URs get it scaled with their length."""

    centre: tuple[float, ...] = setting((0.7, 0.1, 0.3), "m", "centre in the base frame", size=(3,))
    radius: float = setting(0.15, "m", "radius; centre and radius are scaled with the arm where neither is told")
    rate: float = setting(1.0, "rad/s", "angular rate")
    ramp: float = setting(1.0, "s", "smooth start and stop")
    branch: str = word("left up no flip", "shoulder, elbow and wrist of the arm on its way", BRANCHES)


def fitted(s: CircleSettings, told: frozenset[str]) -> CircleSettings:
    """For another UR the circle is scaled with the arm's length, if nothing else is said."""
    if s.robot == "ur10e":
        return s
    arm = robot(s.robot, parameters=s.parameters)
    if arm.dof != JOINTS:
        raise InvalidValue(
            f"robot: a circle with the tool down is for arms of {JOINTS} joints, {arm.name} has {arm.dof}; "
            "hold and sine run on any arm"
        )
    if told & {"centre", "radius"} or not ur.is_ur(arm.model) or arm.model.dh is None:
        return s
    factor = round(float(np.abs(arm.model.dh.a[[1, 2]]).sum()) / UR10E_ARM, 2)
    return replace(
        s, centre=tuple(round(factor * x, 4) for x in s.centre), radius=round(factor * s.radius, 4)
    )  # fmt: skip


def motion(world: World) -> Motion:
    """Once round in 2 pi / rate, from rest to rest."""
    s = world.settings
    trajectory = ramped_circle(
        world.planner, q_start=_branch_start(world.planner, s), centre=s.centre, radius=s.radius,
        rate=s.rate, ramp=s.ramp, duration=s.duration, period=s.period,
    )  # fmt: skip
    return Motion(trajectory, world.computed_torque(trajectory), s.ramp)


def _branch_start(planner: Robot, s: CircleSettings) -> Array | None:
    """Joint positions at the circle's start in the branch asked for; None where the arm has no branches of a UR."""
    if not ur.is_ur(planner.model):
        return None
    T = pose(TOOL_DOWN, np.add(s.centre, (s.radius, 0.0, 0.0)))
    found: Any = planner.inverse_kinematics(T)
    labels = [" ".join(words) for words in zip(found.shoulder, found.elbow, found.wrist, strict=True)]
    if s.branch not in labels:
        if not found:
            where = ", ".join(f"{x:.3f}" for x in T[:3, 3])
            raise InvalidValue(f"the circle's start ({where}) m is out of reach by {found.distance:.3f} m")
        raise InvalidValue(
            f"branch: {s.branch!r} does not reach the circle's start; --set branch='...' with one of {labels}"
        )
    start: Array = found.q[labels.index(s.branch)]
    return start


SCENARIO = Scenario(
    "circle", "000's circle under computed torque, tool down", CircleSettings, motion, fitted, did="drew a circle"
)
