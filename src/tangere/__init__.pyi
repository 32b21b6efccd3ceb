"""What `import tangere` offers; each is loaded when it is first used (tangere.lazy)."""

from tangere import control, identification, kinematics, logs, model, observe, planning, plants, types
from tangere.apps.arm.live import Arm, arm
from tangere.apps.drawing.api import draw, write
from tangere.apps.fmu.package import write_fmu as fmu
from tangere.apps.touch.api import excite, identify, tune, watch
from tangere.errors import (
    InvalidValue,
    MissingExtra,
    ModelFileError,
    NoSolution,
    TangereError,
    UnknownName,
    UnphysicalModel,
)
from tangere.kernels.rollouts import threads
from tangere.kernels.solutions import IKBatch, IKSolutions
from tangere.logs.log import Log
from tangere.logs.recordings import read
from tangere.loop.rollouts import Rollouts, rollouts
from tangere.loop.run import run
from tangere.model.loading import names as models
from tangere.model.model import Model, Payload
from tangere.robots import Robot, robot
from tangere.rtde.consent import consent
from tangere.studio.show import show
from tangere.types import Command, Event, State

__all__ = [
    "Arm",
    "Command",
    "Event",
    "IKBatch",
    "IKSolutions",
    "InvalidValue",
    "Log",
    "MissingExtra",
    "Model",
    "ModelFileError",
    "NoSolution",
    "Payload",
    "Robot",
    "Rollouts",
    "State",
    "TangereError",
    "UnknownName",
    "UnphysicalModel",
    "arm",
    "consent",
    "control",
    "draw",
    "excite",
    "fmu",
    "identification",
    "identify",
    "kinematics",
    "logs",
    "model",
    "models",
    "observe",
    "planning",
    "plants",
    "read",
    "robot",
    "rollouts",
    "run",
    "show",
    "threads",
    "tune",
    "types",
    "watch",
    "write",
]

__version__: str
