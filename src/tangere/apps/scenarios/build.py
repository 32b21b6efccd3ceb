"""A scenario put together from its settings: everything that run() takes, checked before anything moves."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.scenarios.common import Motion, RunSettings, Scenario, World
from tangere.control.guard import Guarded
from tangere.errors import InvalidValue, unknown
from tangere.model.fields import read_toml
from tangere.model.joint_sizes import friction_spread
from tangere.model.model import Payload
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.detect import Detector, Thresholds, wanted
from tangere.observe.friction_state import FrictionState
from tangere.observe.isolation import ContactIsolator
from tangere.observe.momentum import MomentumObserver
from tangere.plants.joints import assumed, friction_of, sensors_of, with_drives, with_rotors
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.plants.scene.scene import Pen
from tangere.plants.torque_loop import FRAME, HOLD
from tangere.plants.twins import twin
from tangere.robots import Robot, robot
from tangere.settings import doubts, merged, numbers, settings_of
from tangere.types import Controller, Friction, Observer, Plant

if TYPE_CHECKING:
    from tangere.identification.belief import Belief
    from tangere.rtde.consent import Consent

# Nm: the guard's limit for a joint whose arm states none (those of 003): beyond any arm, finite so that NaN shows
UNLIMITED = 1e4
_ROOM = "tangere.apps.scenarios"


# Settings of a simulated arm, which a live one does not have; "push": people push it.
SIMULATED = ("plant", "parameters", "path_by", "mass", "payload", "sensors", "push", "fault")


@dataclass(frozen=True)
class OnArm:
    """A live arm in place of the simulated one."""

    host: str
    name: str  # the arm that it says it is
    consent: Consent | None = None
    hold: int = HOLD  # frames for which a torque is held when none comes

    def told(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a run on it; InvalidValue for those that only a simulation has."""
        wrong = [name for name in SIMULATED if given.get(name)]
        if wrong:
            raise InvalidValue(f"{wrong[0]}: of a simulated arm; with --arm the arm is as it is")
        if given.get("robot", self.name) != self.name:
            raise InvalidValue(f"robot: {self.host} is a {self.name}, got {given['robot']!r}")
        if float(numbers(given.get("period", FRAME), "period", "s", (1,))[0]) != FRAME:
            raise InvalidValue(f"period: a live arm has its own, {1e3 * FRAME:g} ms, got {given['period']!r}")
        # thresholds allow for what such sensors are like; they were measured on a UR10e
        return {**given, "robot": self.name, "period": FRAME, "push": (), "fault": (), "sensors": "ur10e"}

    def plant(self, world: World) -> Plant:
        """Where the model has no friction, the drives make up for it, as far as UR's own defaults go."""
        from tangere.plants.rtde_plant import RtdePlant
        from tangere.script.compliance import COULOMB, VISCOUS

        friction = (VISCOUS, COULOMB) if world.believed_friction is None else (0.0, 0.0)
        return RtdePlant(self.host, world.believed, consent=self.consent, friction=friction, hold=self.hold)


def _felt_friction(world: World, arm: OnArm | None) -> tuple[Friction | None, Friction | None]:
    """What observers take for friction, and all friction that the joints have, as far as it is known.

    Those of a live arm have some whatever a controller makes up for: that of typical drives where nothing else is
    believed. The share that its own drives do not make up for is then felt.
    """
    believed = world.believed_friction
    if arm is None or believed is not None:
        return believed, believed
    from tangere.dynamics.friction import JointFriction
    from tangere.model.joint_sizes import typical_drives
    from tangere.script.compliance import COULOMB, VISCOUS

    law = JointFriction.of(typical_drives(world.believed.model).drives)
    return JointFriction(law.coulomb * (1.0 - COULOMB), law.viscous * (1.0 - VISCOUS), law.width), law


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
    def pushes(self) -> tuple[Push, ...]:
        """What pushes the arm."""
        pushes: tuple[Push, ...] = self.settings.push
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


def _belief(model: str | None, arm: Robot, payload: Payload | None) -> Belief | None:
    """What a model file of identify or tune says of the arm; None where `model` is a parameter set or another file."""
    file = None if model is None or not model.endswith(".toml") else Path(model)
    if file is None or not file.is_file() or "identified" not in read_toml(file):
        return None
    from tangere.identification import read_model
    from tangere.identification.belief import belief

    return belief(arm, read_model(file), payload=payload)


def _robots(s: Any, tool_mass: str) -> tuple[Robot, Robot, Belief | None]:
    """The simulated arm and the believed one, and what a model file says of its drives."""
    base = robot(s.robot, parameters=s.parameters, tool=s.tool)
    pen: Payload | None = None
    tool: Any = s.tool
    if tool_mass and s.tool is not None:
        raise InvalidValue(f"tool: this scenario has a tool of its own (its mass: {tool_mass}), got {s.tool!r}")
    if tool_mass:  # a pen as long as the tool; 002's 100 mm where the arm has no tool
        mass = getattr(s, tool_mass)
        length = float(base.model.T_flange_tcp[2, 3]) or Pen().length
        pen, tool = Pen(length=length).payload(mass), (0.0, 0.0, length)
        base = robot(s.robot, parameters=s.parameters, payload=pen, tool=tool)
    base = with_drives(base, s.friction)
    known = _belief(s.model, base, pen)
    if known is not None:
        believed = known.robot
    else:
        believed = robot(s.robot, parameters=s.model or s.parameters, payload=pen, tool=tool)
    base = with_rotors(base, s.drives)
    if known is None and np.any(base.rotor_inertia):
        believed = Robot(believed.model, rotor_inertia=base.rotor_inertia)
    if s.believed_payload is not None:
        believed = believed.with_payload(s.believed_payload)
    if s.mass != 1.0 or s.payload is not None:
        base = twin(base, mass=s.mass, payload=s.payload)
    return base, believed, known


def build(
    scenario: str | Scenario,
    given: Mapping[str, Any],
    pushes: Sequence[Push] = (),
    arm: OnArm | None = None,
) -> Built:
    """Put a scenario together from its settings; everything is checked here, before anything moves.

    given: settings by name, as numbers or texts with units. pushes: in place of the setting `push`. arm: a live one in
    place of the simulated one; nothing moves here.
    """
    chosen = scenario_of(scenario)
    told = dict(given) if not pushes else {**given, "push": tuple(pushes)}
    told = told if arm is None else arm.told(told)
    settings = _fitted(chosen, told)
    said = doubts(settings, told)
    try:
        if settings.friction == "typical":
            said += assumed(robot(settings.robot, parameters=settings.parameters).model)
        return _built(chosen, settings, frozenset(told), said, arm)
    except InvalidValue as problem:
        if not said:
            raise
        # what looks like another unit is probably why
        raise InvalidValue("; ".join((str(problem), *said))) from problem


def _built(chosen: Scenario, settings: Any, told: frozenset[str], said: tuple[str, ...], arm: OnArm | None) -> Built:
    """The parts; told: which settings were asked for, and are not the scenario's own."""
    true, believed, known = _robots(settings, chosen.tool_mass)
    friction = friction_of(true, settings.friction)
    law: Friction | None = friction if known is None else known.drive
    world = World(true, believed, friction, law if settings.friction_model == "same" else None, settings, known)
    motion = chosen.motion(world)
    end = settings.duration or motion.trajectory.duration
    if settings.fault and settings.push and "push" not in told:
        settings = replace(settings, push=())
        said += (f"nothing pushes: the push of {chosen.name} is left out, as a drive fails; --push says another",)
    for name, nothing in (("push", "nothing pushes"), ("fault", "no drive fails")):
        every: tuple[Any, ...] = getattr(settings, name)
        late = [one for one in every if one.start >= end]
        if late and name in told:
            raise InvalidValue(f"{name}: it starts at {late[0].start:g} s, after the end of the run ({end:g} s)")
        if late:  # the scenario's own, in a run that is too short for it
            settings = replace(settings, **{name: tuple(one for one in every if one not in late)})
            begins = f"the {name} of {chosen.name} starts at {late[0].start:g} s"
            said += (f"{nothing}: {begins}, the run ends at {end:g} s",)
    gain, (law, rubs) = settings.observer_gain, _felt_friction(world, arm)
    observers: dict[str, Observer] = {"momentum": MomentumObserver(believed, gain, friction=law)}
    if settings.acceleration_residual:
        raw = settings.acceleration_residual == "raw"
        observers["acceleration"] = AccelerationObserver(believed, None if raw else gain, friction=law)
    torque_max = np.where(np.isfinite(believed.tau_max), believed.tau_max, UNLIMITED)
    controller = Guarded(motion.controller, believed, period=settings.period, torque_max=torque_max)
    return Built(
        chosen, settings, world, motion, _plant(world, motion, settings, arm), controller, observers,
        _detector(world, motion, settings, rubs, arm is not None), said,
    )  # fmt: skip


def _fitted(scenario: Scenario, told: Mapping[str, Any]) -> Any:
    """The scenario's settings with what was told, as they suit the arm."""
    settings = merged(scenario.settings, told)
    if settings.robot != settings_of(scenario.settings)["robot"].default and "parameters" not in told:
        settings = replace(settings, parameters=None)  # a scenario's own set belongs to its own arm
    return settings if scenario.fitted is None else scenario.fitted(settings, frozenset(told))


def _plant(world: World, motion: Motion, settings: Any, arm: OnArm | None) -> Plant:
    if arm is not None:
        if motion.scene is not None:
            raise InvalidValue("this scenario touches something that is only simulated; it does not run on an arm")
        return arm.plant(world)
    sensors = sensors_of(world.believed, settings.sensors, settings.period, settings.seed)
    options: dict[str, Any] = {"friction": world.friction, "sensors": sensors, "pushes": settings.push}
    options["faults"] = settings.fault
    stiction = settings.friction == "stiction"
    if settings.plant == "rigid":
        if stiction or motion.scene is not None:
            raise InvalidValue("plant: stiction and contacts need plant=mujoco")
        return RigidPlant(world.true, settings.period, **options)
    from tangere.plants.mujoco_plant import MujocoPlant

    if motion.scene is not None:
        options |= {"scene": motion.scene, "record_contacts": motion.record_contacts}
    return MujocoPlant(world.true, settings.period, stiction=stiction, **options)


def _friction_error(believed: Robot, s: Any, live: bool) -> float:
    """Share of the believed friction that detection allows for: as told, or what is known of typical friction."""
    told: float = s.uncertainty_friction
    return max(told, float(friction_spread(believed.model).max())) if live or s.friction == "typical" else told


def _detector(world: World, motion: Motion, settings: Any, rubs: Friction | None, live: bool) -> Detector:
    """With the believed thresholds; a contact that is wanted raises no alarm."""
    detector = _believed(world, settings, rubs, live)
    if motion.presses:
        detector.wanted = wanted(world.believed.dof)
    return detector


def _believed(world: World, settings: Any, law: Any, live: bool) -> Detector:
    """Constant thresholds where they are told, those of a tuned model where it has some, else from what is declared.

    law: the friction of the joints, None for none. live: they are an arm's own, which stick.
    """
    believed = world.believed
    dof, name = believed.dof, believed.name
    if settings.threshold is not None:
        if len(settings.threshold) not in (1, dof):
            raise InvalidValue(f"threshold: 1 or {dof} numbers for {name}, got {len(settings.threshold)}")
        constant = Thresholds.constant(np.broadcast_to(np.asarray(settings.threshold), (dof,)), dof=dof)
        return Detector(constant, robot=believed)
    # a push on a joint alone is what a failing drive does: it is taken at its word where it is told, and no drive fails
    fails = bool(settings.fault) or not any(push.joint for push in settings.push)
    if world.belief is not None and world.belief.tuned:
        drive, thresholds = world.belief.drive, world.belief.thresholds
        if thresholds.gain != settings.observer_gain:
            raise InvalidValue(
                f"observer_gain: {thresholds.gain:g} 1/s, which the thresholds of {settings.model} were learned with, "
                f"got {settings.observer_gain:g}"
            )
        return Detector(
            thresholds, isolator=ContactIsolator(believed), stiction=drive.stiction, memory=FrictionState(drive),
            answered=True, drives_fail=fails,
        )  # fmt: skip
    sensors = sensors_of(believed, settings.sensors, settings.period, settings.seed)
    thresholds = Thresholds.of_noise(
        believed, settings.period, sensors, law, gain=settings.observer_gain,
        mass_error=settings.uncertainty_mass, friction_error=_friction_error(believed, settings, live),
        sticks=live or settings.friction == "stiction",
    )  # fmt: skip
    stiction = None if law is None else law.coulomb
    isolator = ContactIsolator(believed)
    return Detector(thresholds, isolator=isolator, stiction=stiction, answered=True, drives_fail=fails)
