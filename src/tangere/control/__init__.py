"""Controllers, one file each: start once, step every period, stop once (types.Controller)."""

from tangere.control.cartesian_impedance import CartesianImpedance
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import ControlAborted, Guarded
from tangere.control.hand_guiding import HandGuiding
from tangere.control.joint_impedance import JointImpedance
from tangere.control.operational_space import OperationalSpace
from tangere.control.quasi_static import QuasiStatic
from tangere.control.reactions import FloatOnContact, PathClock, Retreat, StopOnContact, StopOnPath
from tangere.control.setpoint import Setpoint
from tangere.control.tasks import JointTask, PrioritisedTasks, ToolTask

__all__ = [
    "CartesianImpedance",
    "ComputedTorque",
    "ControlAborted",
    "FloatOnContact",
    "Guarded",
    "HandGuiding",
    "JointImpedance",
    "JointTask",
    "OperationalSpace",
    "PathClock",
    "PrioritisedTasks",
    "QuasiStatic",
    "Retreat",
    "Setpoint",
    "StopOnContact",
    "StopOnPath",
    "ToolTask",
]
