"""What every scenario is made of: the settings that all have, the world of a run, and the parts that a scenario gives.

A scenario is one file: a group of settings that stands on RunSettings, a function that makes a Motion of a World, and
`SCENARIO`, which names both. `build` puts everything else together. Light: the command line makes its options of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.plants.joints import JointSettings
from tangere.settings import altered, check, count, flag, other, setting, word

if TYPE_CHECKING:
    from tangere.apps.scenarios.build import Built
    from tangere.control.computed_torque import ComputedTorque
    from tangere.dynamics.friction import JointFriction
    from tangere.identification.belief import Belief
    from tangere.loop.result import RunResult
    from tangere.plants.pushes import Fault, Push
    from tangere.plants.scene.scene import Scene
    from tangere.robots import Robot
    from tangere.types import Array, Controller, Friction, Trajectory

# samples of the longest run: each takes some 0.8 kB in memory until the report is written; 1.4 h at 1 kHz
LONGEST = 5_000_000


def _pushes(given: Any, name: str) -> tuple[Push, ...]:
    from tangere.plants.pushes import pushes_of

    return pushes_of(given)


def _faults(given: Any, name: str) -> tuple[Fault, ...]:
    from tangere.plants.pushes import faults_of

    return faults_of(given)


def _records(pushes: Any) -> list[dict[str, Any]]:
    from tangere.plants.pushes import push_record

    return [push_record(push) for push in pushes]


@dataclass(frozen=True)
class RunSettings:
    """What every scenario can be told."""

    robot: str = word("ur10e", "arm: a name from `tangere models`, or a file", metavar="NAME|FILE")
    parameters: str | None = word(None, "parameter set of the simulated arm")
    model: str | None = word(
        None, "what controller and observer believe: a parameter set, or a model file of identify or tune",
        metavar="NAME|FILE",
    )  # fmt: skip
    path_by: str = word("model", "whose lengths turn the path into joint positions", ("model", "plant"))
    plant: str = word("mujoco", "what is simulated with", ("mujoco", "rigid"))
    # beyond 20 ms no arm is controlled by torque; below 0.1 ms no controller keeps up
    period: float = setting(1e-3, "s", "control period", low=0.0, above=True, usual=(1e-4, 0.02))
    duration: float | None = setting(10.0, "s", "length of the run")
    seed: int = count(0, "of everything random", low=0, metavar="N")
    drives: bool = altered(JointSettings, "drives", True)
    friction: str = altered(JointSettings, "friction", "none")
    friction_model: str = altered(JointSettings, "friction_model", "same")
    mass: float = setting(1.0, "", "masses and inertias of the plant against the model, as a factor")
    payload: float | None = setting(
        None, "kg", "mass at the plant's flange; the controller does not know it, unless believed_payload says so"
    )  # fmt: skip
    believed_payload: float | None = setting(
        None, "kg", "mass at the flange as controller and observer believe it; like payload: a payload that is known",
        low=0.0,
    )  # fmt: skip
    tool: str | None = word(None, "on the flange, known to the controller: 2f-85, hand-e or pen", metavar="NAME")
    sensors: str = altered(JointSettings, "sensors", "ideal")
    # poles at -sqrt(kp): 1e5 is one period of 3 ms, faster than any drive; below 1 a joint takes seconds
    kp: float | tuple[float, ...] = setting(
        100.0, "1/s2", "gain of computed torque, one or one per joint, and of operational space, one or one per axis",
        low=0.0, size=(), lone=True, usual=(1.0, 1e5),
    )  # fmt: skip
    kv: float | tuple[float, ...] | None = setting(
        None, "1/s", "damping gain beside kp, likewise; without it 2 sqrt(kp): as fast as possible without overshoot",
        low=0.0, size=(), lone=True, usual=(2.0, 1e3),
    )  # fmt: skip
    observer_gain: float = setting(50.0, "1/s", "K of the momentum observer")
    threshold: tuple[float, ...] | None = setting(
        None, "Nm", "residual that counts as a touch, one or one per joint; else from sensors and uncertainty", size=()
    )  # fmt: skip
    uncertainty_mass: float = setting(0.05, "", "of the believed masses, as a share: detection allows for it")
    uncertainty_friction: float = setting(0.2, "", "of the believed friction, as a share: detection allows for it")
    acceleration_residual: bool | str = flag(
        False, "also the residual from differentiated velocities (000 section 5.1); on: through the momentum "
        "observer's filter, raw: as it is", choices=("raw",),
    )  # fmt: skip
    fault: tuple[Fault, ...] = other(
        (), "drives that fail, and when; none: all are sound", _faults,
        plain=_records, metavar="joint=3,offset=-15,start=2",
    )  # fmt: skip
    push: tuple[Push, ...] = other(
        (), "what pushes the arm, and when; none: nothing", _pushes,
        plain=_records, metavar="joint=2,torque=20,start=3,duration=2",
    )  # fmt: skip

    def __post_init__(self) -> None:
        check(self)
        possible_time("duration", self.duration, self.period)


def possible_time(name: str, time: float | None, period: float) -> None:
    """Refuse a time [s] that no run can have, before anything is computed with it."""
    if time is not None and not period <= time <= LONGEST * period:
        valid = f"{period:g} to {LONGEST * period:g} s with a period of {period:g} s"
        raise InvalidValue(f"{name}: {valid}, got {time:g} s")


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
        from tangere.control.computed_torque import ComputedTorque

        s = self.settings
        return ComputedTorque(self.believed, trajectory, kp=s.kp, kv=s.kv, friction=self.believed_friction)


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
    did: str = ""  # what an arm did that has run it, for the sentence of its page: "drew a circle"


def reach_of(robot: Robot, q: Array) -> float:
    """How far the arm is from its base to its tool along its links at q [m]: its size, to scale things with."""
    places = np.concatenate([np.zeros((1, 3)), robot.link_poses(q)[:, :3, 3], robot.pose(q)[None, :3, 3]])
    return float(np.sum(np.linalg.norm(np.diff(places, axis=0), axis=1)))
