from tangere.planning.joint_motions import (
    Hold as Hold, JointMove as JointMove, Sequence as Sequence, Sine as Sine, moved_to as moved_to,
)  # fmt: skip
from tangere.planning.path_trajectory import (
    TOOL_DOWN as TOOL_DOWN, PathTrajectory as PathTrajectory, facing as facing, ramped_circle as ramped_circle,
    wall_circle as wall_circle,
)  # fmt: skip
from tangere.planning.paths import (
    Circle as Circle, Constant as Constant, Line as Line, Slerp as Slerp, Waypoints as Waypoints, arc as arc,
)  # fmt: skip
from tangere.planning.polyline import Polyline as Polyline
from tangere.planning.samples import Limits as Limits, Sampled as Sampled
from tangere.planning.timing import JerkLimited as JerkLimited, SmoothRate as SmoothRate, Stretched as Stretched
from tangere.planning.velocity_ik import (
    FollowedPath as FollowedPath, follow as follow, singular_circle as singular_circle,
    singular_circle_path as singular_circle_path,
)  # fmt: skip
