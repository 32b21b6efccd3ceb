"""Every joint swings under computed torque: runs on any arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.apps.scenarios.hold import SLIDE, fitted, posture_setting
from tangere.planning.joint_motions import Sine
from tangere.planning.posture import posture
from tangere.settings import setting, settings_of

INSIDE = 0.9  # of the room to a limit of position or speed


@dataclass(frozen=True)
class SineSettings(RunSettings):
    """About which posture, how far and how fast."""

    q: tuple[float, ...] = posture_setting()
    amplitude: float = setting(0.2, "rad", "of every joint; one that slides: a tenth of it in m")
    frequency: float = setting(0.5, "Hz", "of every joint")
    ramp: float = setting(1.0, "s", "smooth start and stop")


def motion(world: World) -> Motion:
    """q + amplitude sin(2 pi frequency t) in every joint, between two ramps."""
    s = world.settings
    arm, q = world.believed, posture(s.q, world.believed)
    swing = np.where(arm.revolute, s.amplitude, SLIDE * s.amplitude)
    if s.amplitude == settings_of(SineSettings)["amplitude"].default:  # as far as it suits the arm
        free = np.minimum(np.minimum(q - arm.q_min, arm.q_max - q), arm.qd_max / (2.0 * math.pi * s.frequency))
        swing = np.minimum(swing, INSIDE * np.maximum(free, 0.0))
    trajectory = Sine(
        arm, q, swing, s.frequency, ramp=s.ramp, duration=s.duration, joints=tuple(range(1, arm.dof + 1)),
    )  # fmt: skip
    return Motion(trajectory, world.computed_torque(trajectory), s.ramp)


SCENARIO = Scenario(
    "sine", "every joint swings under computed torque", SineSettings, motion, fitted, did="swung every joint"
)
