"""Joint trajectories as messages: checked, put into the arm's order, made a motion from where the arm is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue
from tangere.planning.waypoints import Waypoints
from tangere.robots import Robot
from tangere.ros2.cdr import Message
from tangere.ros2.node import seconds_of
from tangere.types import Array

# codes of a result of FollowJointTrajectory
SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_TIME, PATH_TOLERANCE, GOAL_TOLERANCE = 0, -1, -2, -3, -4, -5
AT_REST = 0.05  # [rad/s] at which a trajectory may end: the servo takes up as much without a jerk
NEAR = 0.01  # [rad] that a first point at time 0 may be away from the arm
POINTS = 100_000  # of one trajectory: 200 s at 500 Hz
NOW = 1e-6  # [s] times from the start that count as zero


class Refused(InvalidValue):
    """A trajectory that is not followed; `code` as FollowJointTrajectory has it."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True)
class Points:
    """Points of a trajectory in the arm's order: times (k,) [s] from its start, q, qd, qdd (k, n); None: not given."""

    times: Array
    q: Array
    qd: Array | None
    qdd: Array | None
    start: float  # [s] since 1970 at which time 0 is; 0: now


def points_of(trajectory: Message, joints: Sequence[str]) -> Points:
    """The points of a trajectory_msgs/JointTrajectory for joints of these names, in whatever order it has them."""
    names = list(trajectory.joint_names)
    if sorted(names) != sorted(joints):
        raise Refused(
            INVALID_JOINTS,
            f"joints {', '.join(names) or '(none)'}: this arm has {', '.join(joints)}, each is needed once",
        )
    points = trajectory.points
    if not points or len(points) > POINTS:
        raise Refused(INVALID_GOAL, f"{len(points)} points: 1 to {POINTS} are followed")
    order = [names.index(joint) for joint in joints]
    n = len(joints)

    def column(what: str, needed: bool = False) -> Array | None:
        rows = [getattr(point, what) for point in points]
        if not needed and not any(len(row) for row in rows):
            return None
        if any(len(row) != n for row in rows):
            raise Refused(INVALID_GOAL, f"{what}: {n} numbers in every point{'' if needed else ', or none in any'}")
        values = np.array(rows, dtype=np.float64)[:, order]
        if not np.isfinite(values).all():
            raise Refused(INVALID_GOAL, f"{what}: finite numbers only")
        return values

    q, qd, qdd = column("positions", True), column("velocities"), column("accelerations")
    assert q is not None
    times = np.array([seconds_of(point.time_from_start) for point in points])
    if not (times[0] >= 0.0 and (np.diff(times) > 0.0).all()):
        raise Refused(INVALID_GOAL, "time_from_start: must increase from point to point, and not be negative")
    if qdd is not None and qd is None:
        raise Refused(INVALID_GOAL, "accelerations without velocities: give both, or positions alone")
    if qd is not None and np.abs(qd[-1]).max() > AT_REST:
        joint = int(np.abs(qd[-1]).argmax())
        raise Refused(
            INVALID_GOAL, f"{joints[joint]} turns at {qd[-1, joint]:.3g} rad/s in the last point: it must be at rest"
        )
    return Points(times, q, qd, qdd, seconds_of(trajectory.header.stamp))


def motion_of(
    points: Points, robot: Robot, now: float, q: Array, qd: Array, intervals: int | None = None
) -> Waypoints:
    """The motion from q (n,) and qd (n,) at this moment [s since 1970] on; points of the past are left out.

    intervals: of which speeds are looked at; None: all.
    """
    times = points.times + (points.start - now if points.start > 0.0 else 0.0)
    if points.start > 0.0 and times[-1] <= 0.0:
        raise Refused(OLD_TIME, f"the trajectory would have ended {-times[-1]:.3g} s ago: is a clock wrong?")
    keep = times > NOW
    if not keep.any():
        raise Refused(INVALID_GOAL, "time_from_start: the last point is due at once; give the arm time to get there")
    if points.start <= 0.0 and not keep[0] and np.abs(points.q[0] - q).max() > NEAR:
        far = float(np.abs(points.q[0] - q).max())
        raise Refused(INVALID_GOAL, f"the first point is {far:.3g} rad from the arm, and due at once")
    t = np.concatenate(([0.0], times[keep]))
    path = np.vstack((q, points.q[keep]))
    speeds = None if points.qd is None else np.vstack((qd, points.qd[keep]))
    rates = None if points.qdd is None else np.vstack((np.zeros_like(q), points.qdd[keep]))
    low, high = robot.q_min, robot.q_max
    outside = (path[1:] < low) | (path[1:] > high)
    if outside.any():
        joint = int(np.flatnonzero(outside.any(axis=0))[0])
        raise Refused(INVALID_GOAL, f"joint {joint + 1} cannot turn so far: {low[joint]:.4g} to {high[joint]:.4g} rad")
    motion = Waypoints(t, path, speeds, rates, start=qd)
    fast = motion.fastest(intervals) / robot.qd_max
    if fast.max() > 1.0:
        joint = int(fast.argmax())
        most = robot.qd_max[joint]
        raise Refused(
            INVALID_GOAL,
            f"joint {joint + 1} would turn at {fast[joint] * most:.3g} rad/s, at most {most:.3g}: give it more time",
        )
    return motion


def tolerances_of(given: Sequence[Message], joints: Sequence[str], default: float) -> Array:
    """Position tolerances (n,) [rad] of a goal; 0: the default, -1: none."""
    found = np.full(len(joints), default)
    for one in given:
        if one.name not in joints:
            raise Refused(INVALID_JOINTS, f"a tolerance for {one.name!r}: this arm has {', '.join(joints)}")
        if not np.isfinite(one.position):
            raise Refused(INVALID_GOAL, f"tolerance of {one.name}: a finite number, 0 (default) or -1 (none)")
        if one.position != 0.0:
            found[joints.index(one.name)] = one.position if one.position > 0.0 else np.inf
    return found
