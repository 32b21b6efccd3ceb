"""Joint moves whose tool path leads through a wrist and an elbow singularity and back, followed in task space."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.control.operational_space import OperationalSpace
from tangere.kernels import ur
from tangere.planning.joint_motions import JointMove, Sequence
from tangere.planning.posture import BENT, at_rest, posture
from tangere.robots import Robot
from tangere.settings import altered
from tangere.types import Array

# deg: elbow bent; beyond the wrist singularity (sin q5 = 0); stretched (q3 = 0); and back
STOPS = ((0, -100, 100, -60, 40, 0), (0, -90, 80, -70, -40, 0), (0, -60, 0, -50, 50, 0), (0, -100, 100, -60, 40, 0))


@dataclass(frozen=True)
class ReachSettings(RunSettings):
    """As long as the moves take, if nothing else is said."""

    duration: float | None = altered(RunSettings, "duration", None)


def motion(world: World) -> Motion:
    """From stop to stop, rest to rest."""
    r, s = world.believed, world.settings
    stops = np.deg2rad(STOPS) if ur.is_ur(r.model) else _stops(r)
    moves = [JointMove(r, a, b, period=s.period) for a, b in pairwise(stops)]
    trajectory = Sequence(moves, s.period)
    controller = OperationalSpace(r, trajectory, kp=s.kp, kv=s.kv, friction=world.believed_friction)
    return Motion(trajectory, controller, blocks={"controller": "operational space"})


def _stops(robot: Robot) -> Array:
    """Of another arm: where it rests, stretched (where turning joints are at zero, if they can), bent the other way."""
    low, high = (np.where(np.isfinite(limit), limit, sign * np.pi) for limit, sign in
                 ((robot.q_min, -1.0), (robot.q_max, 1.0)))  # fmt: skip
    near, far = 0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high
    rest = posture(at_rest(robot), robot)
    if robot.dof == 1 and robot.revolute[0]:  # a single joint rests where it is stretched: it begins bent instead
        rest = np.clip(np.deg2rad([BENT]), near, far)
    straight = np.clip(np.where(robot.revolute, 0.0, rest), low, high)
    other = np.where(robot.revolute, 2.0 * straight - rest, 0.75 * low + 0.25 * high)
    return np.stack([rest, straight, np.clip(other, near, far), rest])


SCENARIO = Scenario(
    "reach", "through a wrist and an elbow singularity in task space, and back", ReachSettings, motion,
    did="went through two singularities and back",
)  # fmt: skip
