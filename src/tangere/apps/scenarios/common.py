"""What every scenario is made of: the settings that all have, the world of a run, and the parts that a scenario gives.

A scenario is one file: a group of settings that stands on RunSettings, a function that makes a Motion of a World, and
`SCENARIO`, which names both. `build` puts everything else together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.plants.scene.scene import Scene
from tangere.robots import Robot
from tangere.types import Array, Controller, Friction, Trajectory

if TYPE_CHECKING:
    from tangere.apps.scenarios.build import Built
    from tangere.identification.belief import Belief
    from tangere.loop.result import RunResult

BENT = 45.0  # deg: every other joint of another arm, so that it is not stretched


@dataclass(frozen=True)
class World:
    """The two robots of a run: what is simulated and what is believed, and their friction."""

    true: Robot
    believed: Robot
    friction: JointFriction | None
    believed_friction: Friction | None
    settings: Any  # the scenario's own group
    belief: Belief | None = None  # where a model file of identify or tune was named: drives, thresholds

    @property
    def planner(self) -> Robot:
        """The robot whose kinematics the reference is computed with."""
        return self.true if self.settings.path_by == "plant" else self.believed

    def computed_torque(self, trajectory: Trajectory) -> ComputedTorque:
        """Computed torque along it, with what is believed."""
        return ComputedTorque(self.believed, trajectory, kp=self.settings.kp, friction=self.believed_friction)


@dataclass(frozen=True)
class Motion:
    """What a scenario makes of a world: a reference, a controller for it, and what stands around the arm."""

    trajectory: Trajectory
    controller: Controller
    settle: float = 0.0  # s, end of the start ramp
    blocks: Mapping[str, str] = field(default_factory=lambda: {"controller": "computed torque"})  # names for the page
    scene: Scene | None = None  # what the arm can touch; only MuJoCo has contacts
    record_contacts: bool = False
    reaction: Any = None  # who is told of a touch
    presses: bool = False  # whether the tool presses on something with intent: that is no touch


@dataclass(frozen=True)
class Encounter:
    """When something was touched, as summary.summarise wants to know: from then on nothing is free motion."""

    start: float  # s
    duration: float


@dataclass(frozen=True)
class Findings:
    """A scenario's own part of the summary."""

    entries: Mapping[str, Any]  # further keys of summary.json
    touched: tuple[Encounter, ...] = ()
    settled: bool = True  # False: a touch was over before the residual could settle, so that no mean says anything


@dataclass(frozen=True)
class Scenario:
    """A name, one line about it, its settings, and how it is put together."""

    name: str
    title: str
    settings: type[Any]  # a group that stands on RunSettings
    motion: Callable[[World], Motion]
    # the settings as they suit the arm: (settings, names that were told) -> settings; what cannot be is refused here
    fitted: Callable[[Any, frozenset[str]], Any] | None = None
    tool_mass: str = ""  # name of the setting that is the mass [kg] of a tool as long as the arm's own
    findings: Callable[[Built, RunResult], Findings] | None = None


def posture(q: tuple[float, ...], robot: Robot) -> Array:
    """Joint positions (n,) [rad] from the setting `q` [deg; m for a prismatic joint's 1]."""
    if len(q) != robot.dof:
        raise InvalidValue(f"q: {robot.dof} angles in degrees for {robot.name}, got {len(q)}")
    return np.asarray(np.deg2rad(q))


def at_rest(robot: Robot) -> tuple[float, ...]:
    """Where an arm stands if nothing is said [deg]: a UR's READY, or every other joint bent, within its limits.

    A prismatic joint stands in the middle of its way.
    """
    if ur.is_ur(robot.model):
        return ur.READY
    bend = np.where(np.arange(robot.dof) % 2 == 1, BENT, 0.0)
    bend[3::4] *= -1.0  # bent the other way: over the base again
    limited = np.isfinite(robot.q_min) & np.isfinite(robot.q_max)
    low, high = (np.degrees(np.where(limited, limit, 0.0)) for limit in (robot.q_min, robot.q_max))
    inside = np.where(limited, np.clip(bend, 0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high), bend)
    found = np.where(robot.revolute, inside, 0.5 * (low + high))
    return tuple(round(float(x), 3) for x in found)
