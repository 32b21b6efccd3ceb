"""What a reaction to a touch is worth: a tool runs into a hand that lies on a table, with four reactions and without.

The arm moves down at 0.25 m/s under computed torque. A momentum observer feels the touch in its residual, a detector
tells the reaction, and the reaction takes over: all of it is `tangere.loop.run` with three arguments more. A hand is a
spring of 75 N/mm, as ISO/TS 15066 has it, which allows 280 N for a moment and 140 N for as long as it is clamped.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.control import ComputedTorque, Guarded
from tangere.control.reactions import FloatOnContact, PathClock, Retreat, StopOnContact, StopOnPath
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.planning.path_trajectory import TOOL_DOWN, PathTrajectory
from tangere.planning.paths import Line
from tangere.planning.timing import SmoothRate
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.scene.bodies import pad
from tangere.plants.scene.scene import Pen, Scene

SPEED, HEIGHT = 0.25, 0.13  # m/s; m, the back of the hand

finger = Pen(length=0.1, radius=0.02)
arm = tangere.robot("ur10e", tool=(0.0, 0.0, 0.1), payload=finger.payload(0.5), rotor_inertia=True)
hand = pad("hand", (0.7, 0.1, HEIGHT), (0.0, 0.0, 1.0), size=(0.3, 0.3, 0.03))

# straight down, and 0.1 m too far: what a wrong program does
path = Line((0.7, 0.1, HEIGHT + 0.1), (0.7, 0.1, HEIGHT - 0.1), TOOL_DOWN)
motion = PathTrajectory(arm, path, SmoothRate.over(path.length, SPEED, 0.4))


forces: dict[str, np.ndarray] = {}  # N, of each reaction, over time


def encounter(name: str) -> tuple[float, float, float, float]:
    """Peak force [N], force 1 s later [N], impulse [Ns], and how long the touch lasted [s]."""
    clock = PathClock(motion)  # a clock that can be halted; it is the motion itself until then
    task = ComputedTorque(arm, clock)
    reactions = {
        "none": None,
        "stop on path": StopOnPath(task, clock, arm),
        "hold softly": StopOnContact(task, arm),
        "retreat": Retreat(task, arm, distance=0.08, speed=0.25),
        "float": FloatOnContact(task, arm),
    }
    reaction = reactions[name]
    plant = MujocoPlant(arm, 1e-3, scene=Scene((hand,), finger), record_contacts=True)
    result = tangere.run(
        plant,
        Guarded(task if reaction is None else reaction, arm, period=1e-3),
        [MomentumObserver(arm, 50.0)],
        trajectory=clock,
        until=2.5,
        detector=Detector(Thresholds.constant(5.0)),
        reaction=reaction,
    )
    assert not result.aborted, result.aborted
    force = np.linalg.norm(plant.contact_forces, axis=1)
    forces[name] = force
    touched = force > 1.0
    later = int(np.argmax(touched)) + 1000
    return force.max(), force[later - 50 : later + 50].mean(), force.sum() * 1e-3, touched.sum() * 1e-3


print(f"a tool at {SPEED} m/s meets a hand on a table")
print(f"{'reaction':>14} {'peak [N]':>10} {'1 s later [N]':>14} {'impulse [Ns]':>13} {'touching [s]':>13}")
for name in ("none", "stop on path", "hold softly", "retreat", "float"):
    peak, later, impulse, lasting = encounter(name)
    print(f"{name:>14} {peak:10.0f} {later:14.1f} {impulse:13.1f} {lasting:13.3f}")
print("the peak comes 20 ms after the touch: a reaction takes a quarter off it, and nearly all of what follows")
log = tangere.Log({"time": 1e-3 * np.arange(len(forces["none"])), **forces})
print(f"picture: {log.plot(*forces).save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'forces.svg')}")
