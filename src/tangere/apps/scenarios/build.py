"""A scenario put together from its settings: everything that run() takes, checked before anything moves."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.apps.scenarios.common import Motion, Scenario, World
from tangere.apps.scenarios.settings import RunSettings
from tangere.control.guard import Guarded
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, unknown
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.pushes import Push, PushForce
from tangere.plants.rigid import RigidPlant
from tangere.plants.scene.scene import Pen
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin
from tangere.robots import Robot, robot
from tangere.settings import doubts, merged, settings_of
from tangere.types import Controller, Observer, Plant

# Nm: the guard's limit for a joint whose arm states none (those of 003): beyond any arm, finite so that NaN shows
UNLIMITED = 1e4
_ROOM = "tangere.apps.scenarios"


@dataclass(frozen=True)
class Built:
    """Everything that run() takes, and what the report and the summary want to know beside it."""

    scenario: Scenario
    settings: Any  # the scenario's own group
    world: World
    motion: Motion
    plant: Plant
    controller: Controller
    observers: dict[str, Observer]
    detector: Detector
    notes: tuple[str, ...] = ()  # doubts about what was told

    @property
    def pushes(self) -> tuple[Push | PushForce, ...]:
        """What pushes the arm."""
        pushes: tuple[Push | PushForce, ...] = self.settings.push
        return pushes

    @property
    def duration(self) -> float | None:
        """Length of the run [s]: as told, else that of the motion."""
        told: float | None = self.settings.duration
        return self.motion.trajectory.duration if told is None else told


def scenarios() -> dict[str, Scenario]:
    """Every scenario that ships: the files of this folder that hold a SCENARIO, by name."""
    files = pkgutil.iter_modules(importlib.import_module(_ROOM).__path__, f"{_ROOM}.")
    found = (getattr(importlib.import_module(file.name), "SCENARIO", None) for file in files)
    return {scenario.name: scenario for scenario in found if scenario is not None}


def scenario_of(name: str | Scenario) -> Scenario:
    """The scenario of that name; one of your own is taken as it is."""
    if isinstance(name, Scenario):
        return name
    file = name.replace("-", "_")
    if file.isidentifier() and importlib.util.find_spec(f"{_ROOM}.{file}") is not None:
        scenario = getattr(importlib.import_module(f"{_ROOM}.{file}"), "SCENARIO", None)
        if isinstance(scenario, Scenario) and scenario.name == name:
            return scenario
    raise unknown("scenario", name, scenarios())


def own_settings(scenario: Scenario) -> list[str]:
    """Names of the settings that are the scenario's own, or that have a default of its own."""
    common = settings_of(RunSettings)
    return [n for n, one in settings_of(scenario.settings).items() if n not in common or one != common[n]]


def _robots(s: Any, tool_mass: str) -> tuple[Robot, Robot]:
    """The simulated arm and the believed one."""
    base = robot(s.robot, parameters=s.parameters)
    pen, tool = None, None
    if tool_mass:  # a pen as long as the tool; 002's 100 mm where the arm has no tool
        mass = getattr(s, tool_mass)
        length = float(base.model.T_flange_tcp[2, 3]) or Pen().length
        pen, tool = Pen(length=length).payload(mass), (0.0, 0.0, length)
        base = robot(s.robot, parameters=s.parameters, payload=pen, tool=tool)
    known = bool(np.all(np.isfinite(base.drives.rotor_inertia)))
    rotor = s.drives and known
    believed = robot(s.robot, parameters=s.model or s.parameters, payload=pen, tool=tool)
    if rotor:
        base = Robot(base.model, rotor_inertia=True)
        believed = Robot(believed.model, rotor_inertia=base.rotor_inertia)
    if s.mass != 1.0 or s.payload is not None:
        return twin(base, mass=s.mass, payload=s.payload), believed
    return base, believed


def _friction(true: Robot, s: Any) -> JointFriction | None:
    if s.friction == "none":
        return None
    law = JointFriction.of(true.drives)
    if s.friction == "viscous":
        law = JointFriction(np.zeros(true.dof), law.viscous)
    if not np.any(law.viscous) and not np.any(law.coulomb):
        raise InvalidValue(f"friction: the drives of {true.name} are not known; only friction=none is possible")
    return law


def build(
    scenario: str | Scenario, given: Mapping[str, Any], pushes: Sequence[Push | PushForce] = ()
) -> Built:
    """Put a scenario together from its settings; everything is checked here, before anything moves.

    given: settings by name, as numbers or texts with units. pushes: in place of the setting `push`.
    """
    chosen = scenario_of(scenario)
    told = dict(given) if not pushes else {**given, "push": tuple(pushes)}
    settings = _fitted(chosen, told)
    true, believed = _robots(settings, chosen.tool_mass)
    friction = _friction(true, settings)
    world = World(true, believed, friction, friction if settings.friction_model == "same" else None, settings)
    motion = chosen.motion(world)
    end = settings.duration or motion.trajectory.duration
    late = [push for push in settings.push if push.start >= end]
    if late and "push" in told:
        raise InvalidValue(f"push: it starts at {late[0].start:g} s, after the end of the run ({end:g} s)")
    if late:  # the scenario's own push, in a run that is too short for it
        settings = replace(settings, push=tuple(push for push in settings.push if push not in late))
    gain, law = settings.observer_gain, world.believed_friction
    observers: dict[str, Observer] = {"momentum": MomentumObserver(believed, gain, friction=law)}
    if settings.acceleration_residual:
        observers["acceleration"] = AccelerationObserver(believed, gain, friction=law)
    torque_max = np.where(np.isfinite(believed.tau_max), believed.tau_max, UNLIMITED)
    controller = Guarded(motion.controller, believed, period=settings.period, torque_max=torque_max)
    return Built(
        chosen, settings, world, motion, _plant(world, motion, settings), controller, observers,
        _detector(world, settings), doubts(settings, told),
    )  # fmt: skip


def _fitted(scenario: Scenario, told: Mapping[str, Any]) -> Any:
    """The scenario's settings with what was told, as they suit the arm."""
    settings = merged(scenario.settings, told)
    if settings.robot != settings_of(scenario.settings)["robot"].default and "parameters" not in told:
        settings = replace(settings, parameters=None)  # a scenario's own set belongs to its own arm
    return settings if scenario.fitted is None else scenario.fitted(settings, frozenset(told))


def _plant(world: World, motion: Motion, settings: Any) -> Plant:
    sensors = None
    if settings.sensors != "ideal":
        sensors = SensorModel.preset(settings.sensors, settings.period, settings.seed)
    options: dict[str, Any] = {"friction": world.friction, "sensors": sensors, "pushes": settings.push}
    stiction = settings.friction == "stiction"
    if settings.plant == "rigid":
        if stiction or motion.scene is not None:
            raise InvalidValue("plant: stiction and contacts need plant=mujoco")
        return RigidPlant(world.true, settings.period, **options)
    from tangere.plants.mujoco_plant import MujocoPlant

    if motion.scene is not None:
        options |= {"scene": motion.scene, "record_contacts": motion.record_contacts}
    return MujocoPlant(world.true, settings.period, stiction=stiction, **options)


def _detector(world: World, settings: Any) -> Detector:
    dof, name = world.believed.dof, world.believed.name
    if len(settings.threshold) not in (1, dof):
        raise InvalidValue(f"threshold: 1 or {dof} numbers for {name}, got {len(settings.threshold)}")
    return Detector(Thresholds.constant(np.broadcast_to(np.asarray(settings.threshold), (dof,)), dof=dof))
