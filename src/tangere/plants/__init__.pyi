from tangere.plants.pushes import Fault as Fault, Stuck as Stuck, TorqueLoss as TorqueLoss, TorqueOffset as TorqueOffset
from tangere.errors import PlantLost as PlantLost
from tangere.plants.mujoco_plant import MujocoPlant as MujocoPlant
from tangere.plants.pull import Load as Load, Pull as Pull, Release as Release
from tangere.plants.pushes import Push as Push
from tangere.plants.random_pushes import RandomPushes as RandomPushes
from tangere.plants.render import Camera as Camera
from tangere.plants.replay import ReplaySource as ReplaySource
from tangere.plants.rigid import RigidPlant as RigidPlant
from tangere.plants.rtde_plant import RtdePlant as RtdePlant
from tangere.plants.sensors import SensorModel as SensorModel
from tangere.plants.twins import twin as twin
