"""The inverse kinematics node: poses of the tool in, joint trajectories out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from tangere.errors import InvalidValue, TangereError
from tangere.kinematics.rotation import matrix_from_quaternion
from tangere.planning.branches import joint_path
from tangere.planning.joint_motions import JointMove
from tangere.robots import Robot
from tangere.ros2.cdr import Message
from tangere.ros2.motion import CONTROLLERS
from tangere.ros2.node import Node, seconds_of
from tangere.types import Array

PATH, TARGET = "/tangere/path", "/tangere/target_pose"
PATH_TYPE, POSE_TYPE = "nav_msgs/msg/Path", "geometry_msgs/msg/PoseStamped"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
JUMP = 0.5  # [rad] between two poses that are neighbours: more is another branch of the solutions
UNIT = 1e-3  # by which the length of a quaternion may differ from 1
POSES = 100_000  # of one path


class IkNode:
    """Poses of tool0 in base: a nav_msgs/Path with a stamp for each pose, or a PoseStamped to go to.

    It publishes a JointTrajectory that first goes to the first pose, from where the arm is, and then follows the path
    in its own time. What cannot be reached is told and not published.
    """

    def __init__(
        self, node: Node, robot: Robot, *, controller: str = CONTROLLERS[0],
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.node, self.robot = node, robot
        self.joints = tuple(joint.name for joint in robot.model.joints)
        self.done = 0  # trajectories that were published
        self._tell = tell
        self._q: Array | None = None
        self._lock = threading.Lock()
        self._publisher = node.publisher(f"/{controller}/joint_trajectory", TRAJECTORY)
        node.subscription("/joint_states", "sensor_msgs/msg/JointState", self._state, anybody=True)
        node.subscription(PATH, PATH_TYPE, lambda message: self._guarded(self._path, message))
        node.subscription(TARGET, POSE_TYPE, lambda message: self._guarded(self._target, message))

    def _state(self, message: Message) -> None:
        try:
            places = [message.name.index(joint) for joint in self.joints]
            q = np.asarray(message.position, dtype=np.float64)[places]
        except (ValueError, IndexError):
            return  # of another robot
        if np.isfinite(q).all():
            self._q = q

    def _guarded(self, act: Callable[[Message, Array], Message], message: Message) -> None:
        try:
            if self._q is None:
                raise TangereError(f"no /joint_states of {self.robot.name} yet: where is the arm?")
            trajectory = act(message, self._q)
        except TangereError as problem:
            self._tell(str(problem))
            return
        self._publisher.publish(trajectory)
        self.done += 1
        seconds = seconds_of(trajectory.points[-1].time_from_start)
        self._tell(f"{len(trajectory.points)} joint targets, {seconds:.1f} s")

    def _target(self, message: Message, q: Array) -> Message:
        T = pose_of(message)[None]
        goal = joint_path(self.robot, T, np.zeros(1), q, np.full(self.robot.dof, JUMP))[0]
        return self._trajectory(np.zeros((0,)), goal[None], q)

    def _path(self, message: Message, q: Array) -> Message:
        poses = message.poses
        if not 2 <= len(poses) <= POSES:
            raise InvalidValue(f"{PATH}: 2 to {POSES} poses, got {len(poses)}")
        times = np.array([seconds_of(pose.header.stamp) for pose in poses])
        times -= times[0]
        if not (np.diff(times) > 0.0).all():
            raise InvalidValue(f"{PATH}: the stamps of the poses say when, and must increase")
        T = np.array([pose_of(pose, message.header.frame_id) for pose in poses])
        found = joint_path(self.robot, T, times, q, np.full(self.robot.dof, JUMP))
        return self._trajectory(times[1:], found, q)

    def _trajectory(self, times: Array, path: Array, q: Array) -> Message:
        """From q to the first joints of the path (k, n), then on at times (k - 1,) [s]; positions and velocities."""
        move = JointMove(self.robot, q, path[0])
        steps = max(2, round(move.duration / 0.05) + 1)
        points = []
        for t in np.linspace(0.0, move.duration, steps)[1:] if move.duration > 0.0 else ():
            at = move.at(float(t))
            points.append(_point(float(t), at.q, at.qd))
        if len(times):
            whole = np.concatenate(([0.0], times))
            speeds = np.gradient(path, whole, axis=0)
            speeds[0] = speeds[-1] = 0.0
            if not points:
                points.append(_point(1e-3, path[0], speeds[0]))
            begin = seconds_of(points[-1].time_from_start)
            points += [_point(begin + t, a, b) for t, a, b in zip(whole[1:], path[1:], speeds[1:], strict=True)]
        if not points:
            raise InvalidValue(f"{TARGET}: the arm is there already")
        return Message(joint_names=list(self.joints), points=points)


def _point(time: float, q: Array, qd: Array) -> Message:
    ns = round(time * 1e9)
    since = Message(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)
    return Message(positions=q, velocities=qd, time_from_start=since)


def pose_of(message: Message, frame: str = "") -> Array:
    """T (4, 4) in base of a PoseStamped; frame: where the message names none."""
    named = message.header.frame_id or frame or "base"
    p, o = message.pose.position, message.pose.orientation
    quaternion = np.array([o.w, o.x, o.y, o.z])
    T = np.eye(4)
    T[:3, 3] = (p.x, p.y, p.z)
    size = float(np.linalg.norm(quaternion))
    if not (np.isfinite(T).all() and abs(size - 1.0) < UNIT):
        raise InvalidValue("a pose has finite numbers and a quaternion (x y z w) of length 1")
    T[:3, :3] = matrix_from_quaternion(quaternion / size)
    if named == "base_link":  # turned by half a turn about z against base, as in ROS's descriptions of URs
        T = np.diag([-1.0, -1.0, 1.0, 1.0]) @ T
    elif named != "base":
        raise InvalidValue(f"poses are taken in the frames base and base_link, not in {named!r}")
    return T


def path_message(T: Array, times: Sequence[float], frame: str = "base") -> Message:
    """nav_msgs/Path of poses (k, 4, 4) at times [s]."""
    from tangere.kinematics.rotation import quaternion_from_matrix

    poses = []
    for at, quaternion, time in zip(
        T[:, :3, 3].tolist(), quaternion_from_matrix(T[:, :3, :3]).tolist(), times, strict=True
    ):
        ns = round(time * 1e9)
        w, x, y, z = quaternion
        header = Message(stamp=Message(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000), frame_id=frame)
        pose = Message(position=Message(x=at[0], y=at[1], z=at[2]), orientation=Message(x=x, y=y, z=z, w=w))
        poses.append(Message(header=header, pose=pose))
    return Message(header=Message(frame_id=frame), poses=poses)
