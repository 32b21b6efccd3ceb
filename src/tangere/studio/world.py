"""What the studio simulates, as a plain value: which arm, under which controller, feeling what, and how it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.apps.scenarios.build import build
from tangere.control.cartesian_impedance import STIFFNESS, CartesianImpedance
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import Guarded
from tangere.control.joint_impedance import OMEGA, HandGuiding, JointImpedance
from tangere.control.reactions import FloatOnContact, Retreat, StopOnContact
from tangere.errors import InvalidValue, MissingExtra
from tangere.loop.run import run
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.detect.tuning import FreeMotion, tune
from tangere.observe.isolation import ANSWER, ContactIsolator
from tangere.observe.momentum import MomentumObserver
from tangere.planning.joint_motions import Sine
from tangere.planning.posture import at_rest, posture
from tangere.plants.scene.bodies import Body
from tangere.plants.sensors import SensorModel
from tangere.robots import Robot, robot
from tangere.studio.scenery import bodies_of, scene_of
from tangere.studio.settings import WorldSettings
from tangere.types import Array, Controller, Observer, Plant, Reaction, Trajectory

ENDLESS = 86400.0  # [s] a day: the studio's motion has no end that anybody waits for
CONTACT_PERIOD = 1e-3  # [s] with things to touch: a ball of 1 kg touches for 18 ms
# Friction with which links are told apart here. A push slides off beyond 0.5; a hand that holds a link pulls any way.
# Chosen on 60 random pulls of 60 N on links 3 to 6, then on 240 others: with 0.5 a link was named for 78, link
# and force right in 67 %; with 2 (63 deg) for 144, right in 84 %. Those were named from a probability of 0.5; here a
# link is named from the isolator's own ANSWER (tests/test_studio_pulls.py), below it the page says which it may be.
GRIP = 2.0
# [s] of free motion that a promised rate is learned from: with a reach of 300 times its length (observe.detect.tuning)
# some 0.3 false alarms an hour can be promised, and it takes some seconds of computing
HELD_STILL, MOVED = 12.0, 30.0
GUARD_LIMIT = 1e4  # [Nm] for a joint whose arm states none


@dataclass(frozen=True)
class World:
    """What run() takes."""

    settings: WorldSettings
    believed: Robot
    plant: Plant
    controller: Controller
    observer: Observer
    detector: Detector
    reaction: Reaction | None
    trajectory: Trajectory | None
    start: Array  # (n,) [rad]
    bodies: tuple[Body, ...] = ()  # what the arm can touch


def built(s: WorldSettings, start: Array | None = None) -> World:
    """The parts of a simulation; start: where the arm is, else where it rests."""
    base = robot(s.robot)
    q = posture(at_rest(base), base) if start is None else start
    known = bool(np.all(np.isfinite(base.drives.rotor_inertia)))
    given: dict[str, Any] = {
        "robot": s.robot, "q": tuple(np.where(base.revolute, np.rad2deg(q), q)),
        "kp": s.kp, "observer_gain": s.observer_gain, "sensors": s.sensors,
        "mass": s.mass, "period": s.period, "duration": ENDLESS / 100.0, "push": (), "drives": known,
        "plant": "mujoco" if _has_mujoco() else "rigid",
    }  # fmt: skip
    if s.payload:
        given["payload"] = s.payload
    if s.friction:
        given["friction"] = "full"
    bodies = bodies_of(s.scene, base, q)
    if bodies:
        if not _has_mujoco():
            raise MissingExtra("scene: things to touch need mujoco: pip install 'tangere[studio]'")
        given["period"] = min(s.period, CONTACT_PERIOD)
    parts = build("hold", given)
    plant: Any = parts.plant
    if bodies:
        from tangere.plants.mujoco_plant import MujocoPlant

        plant = MujocoPlant(
            parts.world.true, given["period"], friction=parts.world.friction, scene=scene_of(bodies),
            sensors=None if s.sensors == "ideal" else SensorModel.preset(s.sensors, given["period"], 0),
        )  # fmt: skip
    if s.friction and s.friction != 1.0:
        plant.change("friction", s.friction)
    believed = parts.world.believed
    believed = believed if not s.believed_payload else believed.with_payload(s.believed_payload)
    law = parts.world.believed_friction
    trajectory = _sine(believed, q) if s.motion == "sine" else None
    task = _controller(s, believed, q, q if trajectory is None else trajectory, law)
    reaction = _reaction(s, task, believed, law)
    limit = np.where(np.isfinite(believed.tau_max), believed.tau_max, GUARD_LIMIT)
    guarded = Guarded(task if reaction is None else reaction, believed, period=given["period"], torque_max=limit)
    observer = MomentumObserver(believed, s.observer_gain, friction=law)
    rubbing: Any = law
    thresholds = parts.detector.thresholds if not s.alarms else _promised(s, believed, law, q, given)
    detector = Detector(
        thresholds, isolator=ContactIsolator(believed, mu=GRIP),
        stiction=None if law is None else rubbing.coulomb, answered=True, named=ANSWER,
    )  # fmt: skip
    return World(s, believed, plant, guarded, observer, detector, reaction, trajectory, q, bodies)


def _sine(arm: Robot, q: Array) -> Sine:
    """All joints swing about q (n,)."""
    return Sine(arm, q, 0.2, 0.25, ramp=1.0, duration=ENDLESS, joints=tuple(range(1, arm.dof + 1)))


def _promised(s: WorldSettings, believed: Robot, law: Any, q: Array, given: dict[str, Any]) -> Thresholds:
    """Thresholds for a promised rate: the same arm is held, then moved, with nobody near it, as fast as it can be."""
    if s.sensors == "ideal":
        raise InvalidValue("alarms: perfect sensors raise no false alarm, there is nothing to promise; turn noise on")
    motions = []
    goals: tuple[tuple[str, float, Any], ...] = (("held", HELD_STILL, q), ("moved", MOVED, _sine(believed, q)))
    for name, seconds, goal in goals:
        plant: Any = build("hold", given).plant
        if s.friction and s.friction != 1.0:
            plant.change("friction", s.friction)
        observer = MomentumObserver(believed, s.observer_gain, friction=law)
        result = run(plant, ComputedTorque(believed, goal, kp=s.kp, friction=law), observer, start=q, until=seconds)
        log = result.log
        motions.append(FreeMotion(log.time, log["residual"], log["qd"], name))
    return tune(motions, s.alarms, gain=s.observer_gain)


def _controller(s: WorldSettings, arm: Robot, q: Array, goal: Any, law: Any) -> Controller:
    if s.controller == "computed torque":
        return ComputedTorque(arm, goal, kp=s.kp, friction=law)
    if s.controller == "hand guiding":
        if s.motion != "hold":
            raise InvalidValue("motion: an arm that is guided by hand follows no motion of its own; take hold")
        return HandGuiding(arm, friction=law)
    if s.controller == "cartesian impedance":
        return CartesianImpedance(arm, goal, stiffness=s.stiffness * np.asarray(STIFFNESS), friction=law)
    spring = s.stiffness * OMEGA**2 * np.diag(arm.mass_matrix(q))
    return JointImpedance(arm, goal, stiffness=spring, friction=law)


def _reaction(s: WorldSettings, task: Controller, arm: Robot, law: Any) -> Any:
    if s.reaction == "soft":
        return StopOnContact(task, arm, friction=law)
    if s.reaction == "float":
        return FloatOnContact(task, arm, friction=law)
    return Retreat(task, arm, friction=law) if s.reaction == "retreat" else None


def _has_mujoco() -> bool:
    from importlib.util import find_spec

    return find_spec("mujoco") is not None
