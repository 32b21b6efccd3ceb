from tangere.control.cartesian_impedance import CartesianImpedance as CartesianImpedance
from tangere.control.computed_torque import ComputedTorque as ComputedTorque
from tangere.control.guard import ControlAborted as ControlAborted, Guarded as Guarded
from tangere.control.joint_impedance import (
    HandGuiding as HandGuiding,
    JointImpedance as JointImpedance,
    QuasiStatic as QuasiStatic,
)
from tangere.control.operational_space import OperationalSpace as OperationalSpace
from tangere.control.reactions import (
    FloatOnContact as FloatOnContact,
    PathClock as PathClock,
    Retreat as Retreat,
    StopOnContact as StopOnContact,
    StopOnPath as StopOnPath,
)
from tangere.control.setpoint import Setpoint as Setpoint
from tangere.control.tasks import JointTask as JointTask, PrioritisedTasks as PrioritisedTasks, ToolTask as ToolTask
