"""The scenarios: what can be run by one command, each a reference, a controller and a world put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tangere.apps.scenarios import touch
from tangere.control.cartesian_impedance import CartesianImpedance
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import Guarded
from tangere.control.operational_space import OperationalSpace
from tangere.control.setpoint import Friction
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, UnknownName
from tangere.kernels import ur
from tangere.kinematics.rotation import pose
from tangere.loop.settings import Key, merged, value_of
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.momentum import MomentumObserver
from tangere.observe.threshold import ThresholdDetector
from tangere.planning.circles import TOOL_DOWN, UR10E_ARM, ramped_circle
from tangere.planning.joint_motions import Hold, JointMove, Sequence, Sine
from tangere.plants.pushes import Push, PushForce
from tangere.plants.rigid import RigidPlant
from tangere.plants.scene.scene import Pen
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin
from tangere.robots import Robot, robot
from tangere.types import Array, Controller, Observer, Plant, Trajectory

# samples of the longest run: each takes some 0.8 kB in memory until the report is written; 1.4 h at 1 kHz
LONGEST = 5_000_000

# Nm: the guard's limit for a joint whose arm states none (those of 003): beyond any arm, finite so that NaN shows
UNLIMITED = 1e4


BRANCHES = tuple(f"{s} {e} {w}" for s in ("left", "right") for e in ("up", "down") for w in ("no flip", "flip"))

COMMON: dict[str, Key] = {
    "robot": Key("word", "ur10e", "arm: a name from `tangere models`, or a file"),
    "parameters": Key("word", None, "parameter set of the simulated arm"),
    "model": Key("word", None, "what controller and observer believe: a parameter set's name, or a model file"),
    "path_by": Key("word", "model", "whose lengths turn the path into joint positions", ("model", "plant")),
    "plant": Key("word", "mujoco", "what is simulated with", ("mujoco", "rigid")),
    "period": Key("time", 1e-3, "control period"),
    "duration": Key("time", 10.0, "length of the run"),
    "seed": Key("count", 0, "of everything random"),
    "drives": Key("flag", True, "rotor inertia of the arm's drives, where it is known, in plant and model"),
    "friction": Key("word", "none", "of the plant's joints", ("none", "viscous", "full", "stiction")),
    "friction_model": Key("word", "same", "what the controller compensates", ("same", "none")),
    "mass": Key("number", 1.0, "masses and inertias of the plant against the model, as a factor"),
    "payload": Key("mass", None, "mass at the plant's flange that the controller does not know"),
    "sensors": Key("word", "ideal", "noise and resolution of the measurements", ("ideal", "ur10e")),
    "kp": Key("stiffness of the error", 100.0, "gain of computed torque and operational space"),
    "observer_gain": Key("gain", 50.0, "K of the momentum observer"),
    "threshold": Key("torque", (5.0,), "residual that counts as a touch, one or one per joint", size=(1, 3, 4, 6)),
    "acceleration_residual": Key("flag", False, "also the residual from differentiated velocities (000 section 5.1)"),
}


@dataclass(frozen=True)
class World:
    """The two robots of a run: what is simulated and what is believed, and their friction."""

    true: Robot
    believed: Robot
    friction: JointFriction | None
    believed_friction: Friction | None
    settings: Mapping[str, Any]

    @property
    def planner(self) -> Robot:
        """The robot whose kinematics the reference is computed with."""
        return self.true if self.settings["path_by"] == "plant" else self.believed


@dataclass(frozen=True)
class Motion:
    """What a scenario makes of a world: a reference, a controller for it, and what is peculiar about the plant."""

    trajectory: Trajectory
    controller: Controller
    settle: float  # s, end of the start ramp
    blocks: Mapping[str, str]  # names for the block diagram
    plant: Mapping[str, Any] = field(default_factory=dict)  # further arguments of the plant
    reaction: Any = None  # who is told of a touch


@dataclass(frozen=True)
class Scenario:
    """A name, one line about it, its own settings, and how it is put together."""

    title: str
    keys: Mapping[str, Key]
    build: Callable[[World], Motion]
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of common settings, where they differ


@dataclass(frozen=True)
class Built:
    """Everything that run() takes, and what the report and the summary want to know beside it."""

    name: str
    settings: dict[str, Any]
    world: World
    motion: Motion
    plant: Plant
    controller: Controller
    observers: dict[str, Observer]
    detector: ThresholdDetector
    pushes: tuple[Push | PushForce, ...]


def _computed_torque(world: World, trajectory: Trajectory) -> ComputedTorque:
    return ComputedTorque(world.believed, trajectory, kp=world.settings["kp"], friction=world.believed_friction)


def _circle(world: World) -> Motion:
    s = world.settings
    trajectory = ramped_circle(
        world.planner, q_start=_branch_start(world.planner, s), centre=s["centre"], radius=s["radius"],
        rate=s["rate"], ramp=s["ramp"], duration=s["duration"], period=s["period"],
    )  # fmt: skip
    return Motion(trajectory, _computed_torque(world, trajectory), s["ramp"], {"controller": "computed torque"})


def _fitted(s: dict[str, Any], given: Mapping[str, Any]) -> None:
    """000's circle is made for a UR10e: for another UR it is scaled with the arm's length, if nothing else is said."""
    if s["robot"] == "ur10e" or "centre" in given or "radius" in given:
        return
    arm = robot(s["robot"], parameters=s["parameters"])
    if ur.is_ur(arm.model) and arm.model.dh is not None:
        factor = round(float(np.abs(arm.model.dh.a[[1, 2]]).sum()) / UR10E_ARM, 2)
        s["centre"], s["radius"] = tuple(round(factor * x, 4) for x in s["centre"]), round(factor * s["radius"], 4)


def _branch_start(planner: Robot, s: Mapping[str, Any]) -> Array | None:
    """Joint positions at the circle's start in the branch asked for; None where the arm has no branches of a UR."""
    if not ur.is_ur(planner.model):
        return None
    T = pose(TOOL_DOWN, np.add(s["centre"], (s["radius"], 0.0, 0.0)))
    found: Any = planner.inverse_kinematics(T)
    labels = [" ".join(words) for words in zip(found.shoulder, found.elbow, found.wrist, strict=True)]
    if s["branch"] not in labels:
        if not found:
            where = ", ".join(f"{x:.3f}" for x in T[:3, 3])
            raise InvalidValue(f"the circle's start ({where}) m is out of reach by {found.distance:.3f} m")
        raise InvalidValue(
            f"branch: {s['branch']!r} does not reach the circle's start; --set branch='...' with one of {labels}"
        )
    start: Array = found.q[labels.index(s["branch"])]
    return start


def _hold(world: World) -> Motion:
    s = world.settings
    trajectory = Hold(world.believed, np.deg2rad(_posture(s["q"], world)), s["duration"])
    return Motion(trajectory, _computed_torque(world, trajectory), 0.0, {"controller": "computed torque"})


def _sine(world: World) -> Motion:
    s = world.settings
    n = world.believed.dof
    trajectory = Sine(
        world.believed, np.deg2rad(_posture(s["q"], world)), s["amplitude"], s["frequency"], ramp=s["ramp"],
        duration=s["duration"], joints=tuple(range(1, n + 1)),
    )  # fmt: skip
    return Motion(trajectory, _computed_torque(world, trajectory), s["ramp"], {"controller": "computed torque"})


def _impedance(world: World) -> Motion:
    s = world.settings
    trajectory = Hold(world.believed, np.deg2rad(_posture(s["q"], world)), s["duration"])
    stiffness = [s["stiffness"]] * 3 + [s["turn_stiffness"]] * 3
    controller = CartesianImpedance(world.believed, trajectory, stiffness=stiffness, friction=world.believed_friction)
    return Motion(trajectory, controller, 0.0, {"controller": "Cartesian impedance"})


def _reach(world: World) -> Motion:
    """Joint moves whose tool path leads through a wrist and an elbow singularity and back, followed in task space."""
    r, s = world.believed, world.settings
    if not ur.is_ur(r.model):
        raise InvalidValue(f"robot: the postures of reach are those of a UR arm, got {r.name}")
    bent, wrist, stretched = (0, -100, 100, -60, 40, 0), (0, -90, 80, -70, -40, 0), (0, -60, 0, -50, 50, 0)  # deg
    stops = np.deg2rad((bent, wrist, stretched, bent))
    moves = [JointMove(r, a, b, period=s["period"]) for a, b in pairwise(stops)]
    trajectory = Sequence(moves, s["period"])
    controller = OperationalSpace(r, trajectory, kp=s["kp"], friction=world.believed_friction)
    return Motion(trajectory, controller, 0.0, {"controller": "operational space"})


def _wall_circle(world: World) -> Motion:
    from tangere.apps.scenarios.wall_circle import wall_circle_motion

    return Motion(*wall_circle_motion(world.believed, world.settings, world.believed_friction))


def _touch(world: World) -> Motion:
    return Motion(*touch.touch_motion(world.believed, world.settings, world.believed_friction))


def _posture(q: Any, world: World) -> Array:
    values = np.asarray(q, dtype=np.float64)
    if values.shape != (world.believed.dof,):
        raise InvalidValue(f"q: {world.believed.dof} angles in degrees for {world.believed.name}, got {len(values)}")
    return values


_Q = {"q": Key("number", ur.READY, "joint positions in degrees", size=(1, 3, 4, 6))}
SCENARIOS: dict[str, Scenario] = {
    "circle": Scenario(
        "000's circle under computed torque, tool down",
        {
            "centre": Key("length", (0.7, 0.1, 0.3), "centre in the base frame", size=(3,)),
            "radius": Key("length", 0.15, "radius"),
            "rate": Key("rate", 1.0, "angular rate"),
            "ramp": Key("time", 1.0, "smooth start and stop"),
            "branch": Key("word", "left up no flip", "shoulder, elbow and wrist of the arm on its way", BRANCHES),
        },
        _circle,
    ),
    "hold": Scenario("standing still under computed torque", _Q, _hold),
    "sine": Scenario(
        "every joint swings under computed torque",
        {
            **_Q,
            "amplitude": Key("angle", 0.2, "of every joint"),
            "frequency": Key("frequency", 0.5, "of every joint"),
            "ramp": Key("time", 1.0, "smooth start and stop"),
        },
        _sine,
    ),
    "impedance": Scenario(
        "a tool on springs: push it and it gives way",
        {
            **_Q,
            "stiffness": Key("stiffness", 500.0, "of the tool's position"),
            "turn_stiffness": Key("number", 50.0, "of the tool's orientation, Nm/rad"),
        },
        _impedance,
    ),
    "reach": Scenario(
        "through a wrist and an elbow singularity in task space, and back", {}, _reach, {"duration": None}
    ),
    "wall-circle": Scenario(
        "002's circle on a wall with 5 N, in its own singular pose or in a regular one",
        {
            "pose": Key("word", "regular", "where the wall is", ("own", "regular")),
            "force": Key("force", 5.0, "of the pen against the wall"),
            "round_time": Key("time", 200.0, "once round"),
            "pen_mass": Key("mass", 0.1, "mass of the pen"),
            "wall_stiffness": Key("stiffness", 1e4, "of the pen's tip"),
        },
        _wall_circle,
        {"robot": "ur10", "parameters": "002", "duration": None},
    ),
    "touch": Scenario(touch.TITLE, touch.KEYS, _touch, {"duration": 3.0}),
}


def keys_of(name: str) -> dict[str, Key]:
    """All settings of a scenario with its own defaults."""
    if name not in SCENARIOS:
        raise UnknownName(f"unknown scenario {name!r}; known: {', '.join(SCENARIOS)}")
    scenario = SCENARIOS[name]
    common = {
        key: Key(k.kind, scenario.defaults.get(key, k.default), k.help, k.choices, k.size) for key, k in COMMON.items()
    }
    return {**common, **scenario.keys}


def push_of(given: str | Mapping[str, Any]) -> Push | PushForce:
    """A push from joint=2,torque=20,start=3,duration=2 or link=4,force=0/0/20,point=0/0/0,start=3,duration=2."""
    kinds = {"joint": "count", "torque": "torque", "link": "count", "force": "force", "point": "length",
             "start": "time", "duration": "time"}  # fmt: skip
    example = "joint=2,torque=20,start=3,duration=2 or link=4,force=0/0/20,start=3,duration=2"
    if isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(given, Mapping):
        raise InvalidValue(f"push: give {example}, got {given!r}")
    values = {}
    for name, value in given.items():
        if name not in kinds:
            raise UnknownName(f"push: unknown {name!r}; known: {', '.join(kinds)}")
        size = (3,) if name in ("force", "point") else ()
        values[name] = value_of(f"push {name}", Key(kinds[name], None, "", size=size), value)
    foreign = ("link", "force", "point") if "joint" in values else ("torque",)
    mixed = [name for name in foreign if name in values]
    if mixed and ("joint" in values or "link" in values):
        raise InvalidValue(f"push: {', '.join(mixed)} beside the other kind; give {example}")
    try:
        if "joint" in values:
            return Push(values["joint"], values["torque"], values["start"], values.get("duration", math.inf))
        return PushForce(
            values["link"], values.get("point", (0.0, 0.0, 0.0)), values["force"], values["start"],
            values.get("duration", math.inf),
        )  # fmt: skip
    except KeyError as missing:
        raise InvalidValue(f"push: {missing.args[0]!r} is missing; give {example}") from None


def _robots(s: Mapping[str, Any]) -> tuple[Robot, Robot]:
    """The simulated arm and the believed one."""
    base = robot(s["robot"], parameters=s["parameters"])
    pen, tool = None, None
    mass = s.get("pen_mass", s.get("tool_mass"))
    if mass is not None:  # a pen as long as the tool; 002's 100 mm where the arm has no tool
        length = float(base.model.T_flange_tcp[2, 3]) or Pen().length
        pen, tool = Pen(length=length).payload(mass), (0.0, 0.0, length)
        base = robot(s["robot"], parameters=s["parameters"], payload=pen, tool=tool)
    known = bool(np.all(np.isfinite(base.drives.rotor_inertia)))
    rotor = s["drives"] and known
    believed = robot(s["robot"], parameters=s["model"] or s["parameters"], payload=pen, tool=tool)
    if rotor:
        base = Robot(base.model, rotor_inertia=True)
        believed = Robot(believed.model, rotor_inertia=base.rotor_inertia)
    if s["mass"] != 1.0 or s["payload"] is not None:
        return twin(base, mass=s["mass"], payload=s["payload"]), believed
    return base, believed


def _friction(true: Robot, s: Mapping[str, Any]) -> JointFriction | None:
    if s["friction"] == "none":
        return None
    law = JointFriction.of(true.drives)
    if s["friction"] == "viscous":
        law = JointFriction(np.zeros(true.dof), law.viscous)
    if not np.any(law.viscous) and not np.any(law.coulomb):
        raise InvalidValue(f"friction: the drives of {true.name} are not known; only friction=none is possible")
    return law


def _possible(s: Mapping[str, Any]) -> None:
    """Refuse times that no run can have, before anything is computed with them."""
    period = s["period"]
    if not period > 0.0:
        raise InvalidValue(f"period: must be positive [s], got {period}")
    if s["seed"] < 0:
        raise InvalidValue(f"seed: must not be negative, got {s['seed']}")
    for name in ("duration", "round_time"):
        time = s.get(name)
        if time is not None and not period <= time <= LONGEST * period:
            valid = f"{period:g} to {LONGEST * period:g} s with a period of {period:g} s"
            raise InvalidValue(f"{name}: {valid}, got {time:g} s")


def build(name: str, given: Mapping[str, Any], pushes: tuple[Push | PushForce, ...] = ()) -> Built:
    """Put a scenario together from its settings; everything is checked here, before anything moves."""
    settings = merged(keys_of(name), given)
    if settings["robot"] != keys_of(name)["robot"].default and "parameters" not in given:
        settings["parameters"] = None  # a scenario's own set belongs to its own arm
    _possible(settings)
    if name == "circle":
        _fitted(settings, given)
    if settings.get("force", 0.0) < 0.0:
        raise InvalidValue(f"force: the pen can only press, 0 or more, got {settings['force']:g} N")
    true, believed = _robots(settings)
    friction = _friction(true, settings)
    world = World(true, believed, friction, friction if settings["friction_model"] == "same" else None, settings)
    motion = SCENARIOS[name].build(world)
    end = settings["duration"] or motion.trajectory.duration
    for push in pushes:
        if push.start >= end:
            raise InvalidValue(f"push: it starts at {push.start:g} s, after the end of the run ({end:g} s)")
    sensors = None
    if settings["sensors"] != "ideal":
        sensors = SensorModel.preset(settings["sensors"], settings["period"], settings["seed"])
    options: dict[str, Any] = {"friction": friction, "sensors": sensors, "pushes": pushes, **motion.plant}
    plant: Plant
    if settings["plant"] == "rigid":
        if settings["friction"] == "stiction" or "scene" in motion.plant:
            raise InvalidValue("plant: stiction and contacts need plant=mujoco")
        plant = RigidPlant(true, settings["period"], **options)
    else:
        from tangere.plants.mujoco_plant import MujocoPlant

        plant = MujocoPlant(true, settings["period"], stiction=settings["friction"] == "stiction", **options)
    gain, law = settings["observer_gain"], world.believed_friction
    observers: dict[str, Observer] = {"momentum": MomentumObserver(believed, gain, friction=law)}
    if settings["acceleration_residual"]:
        observers["acceleration"] = AccelerationObserver(believed, gain, friction=law)
    threshold = np.asarray(settings["threshold"], dtype=np.float64)
    if len(threshold) not in (1, believed.dof):
        raise InvalidValue(f"threshold: 1 or {believed.dof} numbers for {believed.name}, got {len(threshold)}")
    threshold = np.broadcast_to(threshold, (believed.dof,))
    torque_max = np.where(np.isfinite(believed.tau_max), believed.tau_max, UNLIMITED)
    controller = Guarded(motion.controller, believed, period=settings["period"], torque_max=torque_max)
    detector = ThresholdDetector(threshold, dof=believed.dof)
    return Built(name, settings, world, motion, plant, controller, observers, detector, pushes)
