"""Joint moves whose tool path leads through a wrist and an elbow singularity and back, followed in task space."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.control.operational_space import OperationalSpace
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.planning.joint_motions import JointMove, Sequence
from tangere.settings import altered

# deg: elbow bent; beyond the wrist singularity (sin q5 = 0); stretched (q3 = 0); and back
STOPS = ((0, -100, 100, -60, 40, 0), (0, -90, 80, -70, -40, 0), (0, -60, 0, -50, 50, 0), (0, -100, 100, -60, 40, 0))


@dataclass(frozen=True)
class ReachSettings(RunSettings):
    """As long as the moves take, if nothing else is said."""

    duration: float | None = altered(RunSettings, "duration", None)


def motion(world: World) -> Motion:
    """From stop to stop, rest to rest."""
    r, s = world.believed, world.settings
    if not ur.is_ur(r.model):
        raise InvalidValue(f"robot: the postures of reach are those of a UR arm, got {r.name}")
    moves = [JointMove(r, a, b, period=s.period) for a, b in pairwise(np.deg2rad(STOPS))]
    trajectory = Sequence(moves, s.period)
    controller = OperationalSpace(r, trajectory, kp=s.kp, friction=world.believed_friction)
    return Motion(trajectory, controller, blocks={"controller": "operational space"})


SCENARIO = Scenario(
    "reach", "through a wrist and an elbow singularity in task space, and back", ReachSettings, motion,
    did="went through two singularities and back",
)  # fmt: skip
