"""Standing still under computed torque, and pushed: the smallest run in which something is felt."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.kernels import ur
from tangere.planning.joint_motions import Hold
from tangere.planning.posture import at_rest, posture
from tangere.plants.pushes import Push
from tangere.robots import Robot, robot
from tangere.settings import altered, setting
from tangere.types import Array

SLIDE = 0.1  # m per rad: a joint that slides swings about as far as a link of 10 cm
# rad, SLIDE of it in m: how far the joints of an arm that is no UR may give way to a push or a fault that nobody gave
SWERVE = 0.1


def posture_setting() -> Any:
    """The setting `q` [deg] of the scenarios that start from a posture."""
    usual = (2.0 * math.pi, 720.0)  # deg: all below 2 pi looks like radians; no joint turns more than two rounds
    what = "joint positions, m where a joint slides; an arm that is no UR begins bent"
    return setting(ur.READY, "deg", what, size=(), usual=usual)


@dataclass(frozen=True)
class HoldSettings(RunSettings):
    """Where the arm stands, and what pushes it: 20 Nm on joint 2, as in the README's circle."""

    push: tuple[Push, ...] = altered(RunSettings, "push", (Push(2, 20.0, 3.0, 2.0),))
    q: tuple[float, ...] = posture_setting()


def fitted(s: Any, told: frozenset[str]) -> Any:
    """Posture and push as the arm has joints for, where nothing else is said."""
    if told >= {"q", "push"} or s.robot == "ur10e":
        return s
    arm = robot(s.robot, parameters=s.parameters)
    q = s.q if "q" in told else at_rest(arm)
    if "push" in told:
        return replace(s, q=q)
    most = np.full(arm.dof, np.inf) if ur.is_ur(arm.model) else borne(arm, posture(q, arm), float(np.min(s.kp)))
    return replace(s, q=q, push=tuple(_onto(push, most) for push in s.push))


def borne(arm: Robot, q: Array, kp: float) -> Array:
    """Torque (n,) [Nm, N] on each joint that moves the joint which it moves furthest by SWERVE.

    At rest computed torque has kp e = M^-1 times it: a light joint bears less than a heavy one.
    """
    gives = np.abs(np.linalg.inv(arm.mass_matrix(q))) / np.where(arm.revolute, 1.0, SLIDE)[:, None]
    return np.asarray(kp * SWERVE / gives.max(axis=0))


def _onto(push: Push, most: Array) -> Push:
    """The push on a joint that the arm has, no larger than it bears (n,) [Nm, N]; or on its last link."""
    if not push.joint:
        return replace(push, link=len(most))
    joint = min(push.joint, len(most))
    return replace(push, joint=joint, torque=math.copysign(min(abs(push.torque), float(most[joint - 1])), push.torque))


def motion(world: World) -> Motion:
    """Nothing moves but by a push."""
    trajectory = Hold(world.believed, posture(world.settings.q, world.believed), world.settings.duration)
    return Motion(trajectory, world.computed_torque(trajectory))


SCENARIO = Scenario("hold", "standing still under computed torque", HoldSettings, motion, fitted, did="held still")
