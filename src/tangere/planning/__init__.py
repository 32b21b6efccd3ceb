"""Trajectories: paths in space, time laws, and the joint motion that follows from both."""

from tangere.planning.circles import TOOL_DOWN, facing, ramped_circle, wall_circle
from tangere.planning.joint_motions import Hold, JointMove, Sequence, Sine, moved_to
from tangere.planning.limits import Limits
from tangere.planning.orientation import Constant, Slerp, Waypoints
from tangere.planning.path_trajectory import PathTrajectory
from tangere.planning.paths import Circle, Line, arc
from tangere.planning.polyline import Polyline
from tangere.planning.samples import Sampled
from tangere.planning.timing import JerkLimited, SmoothRate, Stretched
from tangere.planning.velocity_ik import FollowedPath, follow, singular_circle, singular_circle_path

__all__ = [
    "TOOL_DOWN",
    "Circle",
    "Constant",
    "FollowedPath",
    "Hold",
    "JerkLimited",
    "JointMove",
    "Limits",
    "Line",
    "PathTrajectory",
    "Polyline",
    "Sampled",
    "Sequence",
    "Sine",
    "Slerp",
    "SmoothRate",
    "Stretched",
    "Waypoints",
    "arc",
    "facing",
    "follow",
    "moved_to",
    "ramped_circle",
    "singular_circle",
    "singular_circle_path",
    "wall_circle",
]
