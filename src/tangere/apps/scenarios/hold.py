"""Standing still under computed torque, and pushed: the smallest run in which something is felt."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.kernels import ur
from tangere.planning.joint_motions import Hold
from tangere.planning.posture import at_rest, posture
from tangere.plants.pushes import Push, PushForce
from tangere.robots import robot
from tangere.settings import altered, setting


def posture_setting() -> Any:
    """The setting `q` [deg] of the scenarios that start from a posture."""
    usual = (2.0 * math.pi, 720.0)  # deg: all below 2 pi looks like radians; no joint turns more than two rounds
    what = "joint positions, m where a joint slides; an arm that is no UR begins bent"
    return setting(ur.READY, "deg", what, size=(), usual=usual)


@dataclass(frozen=True)
class HoldSettings(RunSettings):
    """Where the arm stands, and what pushes it: 20 Nm on joint 2, as in the README's circle."""

    push: tuple[Push | PushForce, ...] = altered(RunSettings, "push", (Push(2, 20.0, 3.0, 2.0),))
    q: tuple[float, ...] = posture_setting()


def fitted(s: Any, told: frozenset[str]) -> Any:
    """Posture and push as the arm has joints for, where nothing else is said."""
    if told >= {"q", "push"} or s.robot == "ur10e":
        return s
    arm = robot(s.robot, parameters=s.parameters)
    q = s.q if "q" in told else at_rest(arm)
    if "push" in told:
        return replace(s, q=q)
    return replace(s, q=q, push=tuple(_onto(push, arm.dof) for push in s.push))


def _onto(push: Push | PushForce, dof: int) -> Push | PushForce:
    """The push on a joint that the arm has, or on its last link."""
    return replace(push, joint=min(push.joint, dof)) if isinstance(push, Push) else replace(push, link=dof)


def motion(world: World) -> Motion:
    """Nothing moves but by a push."""
    trajectory = Hold(world.believed, posture(world.settings.q, world.believed), world.settings.duration)
    return Motion(trajectory, world.computed_torque(trajectory))


SCENARIO = Scenario("hold", "standing still under computed torque", HoldSettings, motion, fitted, did="held still")
