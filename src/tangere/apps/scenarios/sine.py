"""Every joint swings under computed torque: runs on any arm."""

from __future__ import annotations

from dataclasses import dataclass

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World, posture
from tangere.apps.scenarios.hold import fitted, posture_setting
from tangere.planning.joint_motions import Sine
from tangere.settings import setting


@dataclass(frozen=True)
class SineSettings(RunSettings):
    """About which posture, how far and how fast."""

    q: tuple[float, ...] = posture_setting()
    amplitude: float = setting(0.2, "rad", "of every joint")
    frequency: float = setting(0.5, "Hz", "of every joint")
    ramp: float = setting(1.0, "s", "smooth start and stop")


def motion(world: World) -> Motion:
    """q + amplitude sin(2 pi frequency t) in every joint, between two ramps."""
    s = world.settings
    trajectory = Sine(
        world.believed, posture(s.q, world.believed), s.amplitude, s.frequency, ramp=s.ramp,
        duration=s.duration, joints=tuple(range(1, world.believed.dof + 1)),
    )  # fmt: skip
    return Motion(trajectory, world.computed_torque(trajectory), s.ramp)


SCENARIO = Scenario(
    "sine", "every joint swings under computed torque", SineSettings, motion, fitted, did="swung every joint"
)
