"""A tool on springs: push it and it gives way by force over stiffness."""

from __future__ import annotations

from dataclasses import dataclass

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.apps.scenarios.hold import fitted, posture_setting
from tangere.control.cartesian_impedance import CartesianImpedance
from tangere.planning.joint_motions import Hold
from tangere.planning.posture import posture
from tangere.plants.pushes import Push
from tangere.settings import altered, setting


@dataclass(frozen=True)
class ImpedanceSettings(RunSettings):
    """How stiff, and what pushes: 20 N down on the last link, which 500 N/m answer with 40 mm."""

    push: tuple[Push, ...] = altered(
        RunSettings, "push", (Push(link=6, force=(0.0, 0.0, -20.0), start=3.0, duration=3.0),)
    )
    q: tuple[float, ...] = posture_setting()
    stiffness: float = setting(500.0, "N/m", "of the tool's position")
    turn_stiffness: float = setting(50.0, "Nm/rad", "of the tool's orientation")


def motion(world: World) -> Motion:
    """The tool stays where it is but for what pushes it."""
    s = world.settings
    trajectory = Hold(world.believed, posture(s.q, world.believed), s.duration)
    stiffness = [s.stiffness] * 3 + [s.turn_stiffness] * 3
    controller = CartesianImpedance(world.believed, trajectory, stiffness=stiffness, friction=world.believed_friction)
    return Motion(trajectory, controller, blocks={"controller": "Cartesian impedance"})


SCENARIO = Scenario(
    "impedance", "a tool on springs: push it and it gives way", ImpedanceSettings, motion, fitted, did="hung on springs"
)
