"""A drive fails while every joint swings: what the observer makes of it (000 section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.apps.scenarios import hold
from tangere.apps.scenarios.common import RunSettings, Scenario
from tangere.apps.scenarios.sine import SineSettings, motion
from tangere.kernels import ur
from tangere.planning.posture import posture
from tangere.plants.pushes import Fault, TorqueOffset
from tangere.robots import robot
from tangere.settings import altered

SHARE = 0.1  # of a joint's torque limit, at most: -15 Nm on joint 3 of a UR10e, as 000 has a push of 20 Nm on joint 2


@dataclass(frozen=True)
class FaultSettings(SineSettings):
    """Which drive fails, how and when; about which posture the joints swing."""

    fault: tuple[Fault, ...] = altered(RunSettings, "fault", (TorqueOffset(3, -15.0, 2.0),))


def fitted(s: Any, told: frozenset[str]) -> Any:
    """Posture and fault as the arm has joints for, where nothing else is said."""
    s = hold.fitted(s, told)
    short = 1.0 if s.duration is None else s.duration / (2.0 * s.ramp)
    if "ramp" not in told and short < 1.0:  # no room for two ramps: shorter ones, and as smooth by less of a swing
        s = replace(s, ramp=short * s.ramp, amplitude=short**3 * s.amplitude)
    if "fault" in told or s.robot == "ur10e":
        return s
    arm = robot(s.robot, parameters=s.parameters)
    joint, offsets = 2, SHARE * arm.tau_max
    if not ur.is_ur(arm.model) or not np.isfinite(offsets[joint]):
        offsets = np.minimum(offsets, hold.borne(arm, posture(s.q, arm), float(np.min(s.kp))))
        joint = int(np.argmax(offsets))
    return replace(s, fault=(TorqueOffset(joint + 1, -float(offsets[joint]), 2.0),))


SCENARIO = Scenario(
    "joint-fault", "a drive fails while every joint swings", FaultSettings, motion, fitted, did="swung every joint"
)
