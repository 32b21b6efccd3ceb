"""Robots that answer: simulated, recorded or real, all behind the Plant protocol of tangere.types."""

from tangere.plants.faults import Fault, Stuck, TorqueLoss, TorqueOffset
from tangere.plants.lost import PlantLost
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.pushes import Push, PushForce
from tangere.plants.render import Camera
from tangere.plants.replay import ReplayPlant
from tangere.plants.rigid import RigidPlant
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin

__all__ = [
    "Camera",
    "Fault",
    "MujocoPlant",
    "PlantLost",
    "Push",
    "PushForce",
    "ReplayPlant",
    "RigidPlant",
    "SensorModel",
    "Stuck",
    "TorqueLoss",
    "TorqueOffset",
    "twin",
]
