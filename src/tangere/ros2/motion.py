"""What moves a virtual arm from ROS 2: trajectories by topic or action, and joint torques.

Messages are checked in the reading thread and wait; the controller's thread takes the newest in its next frame, and
moves the arm while no program of its own runs. The newest command wins: torques end a trajectory, and the reverse.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.virtual_ur.inside import STEP
from tangere.errors import InvalidValue
from tangere.planning.waypoints import Waypoints
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import FOLLOW
from tangere.ros2.node import Node, now, seconds_of
from tangere.ros2.services import ABORTED, CANCELED, SUCCEEDED, ActionServer, End, Goal
from tangere.ros2.trajectories import (
    GOAL_TOLERANCE,
    INVALID_GOAL,
    PATH_TOLERANCE,
    SUCCESSFUL,
    Points,
    Refused,
    motion_of,
    points_of,
    tolerances_of,
)
from tangere.script.compliance import COULOMB, VISCOUS
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller
    from tangere.script.arm import Arm

CONTROLLERS = ("joint_trajectory_controller", "scaled_joint_trajectory_controller")  # both names of UR's driver
HELD = 0.1  # [s] for which a torque holds without a new one: then the arm stops where it is
FEEDBACK = 0.05  # [s] between two messages of feedback: 20 a second, as ROS 2's own controller has it
ARRIVED = 5e-3  # [rad] from the goal that count as there, where a goal does not say
LATE = 1.0  # [s] after the end within which the arm must be there, where a goal does not say


@dataclass
class Follow:
    """A trajectory that waits or is followed."""

    points: Points
    goal: Goal | None
    path: Array  # (n,) [rad] tolerances, inf: none
    final: Array
    late: float  # [s]
    motion: Waypoints | None = None
    time: float = 0.0  # [s] since its start
    told: float = -1.0  # [s] of the newest feedback


class Motion:
    """Follows what ROS 2 says; `problems` counts what was refused, by its reason."""

    def __init__(self, node: Node, controller: Controller, joints: tuple[str, ...], simulated: bool = False) -> None:
        self._controller, self._joints = controller, joints
        self.problems = node.problems
        self._simulated = simulated
        self._waiting: deque[Follow | Array | Goal] = deque(maxlen=64)
        self._follow: Follow | None = None
        self._torque: Array | None = None
        self._age = 0.0
        self.servers = []
        for name in CONTROLLERS:
            node.subscription(f"/{name}/joint_trajectory", "trajectory_msgs/msg/JointTrajectory", self._sent)
            self.servers.append(ActionServer(node, f"/{name}/follow_joint_trajectory", FOLLOW, self))
        node.subscription("/forward_effort_controller/commands", "std_msgs/msg/Float64MultiArray", self._torques)
        controller.guest = self.move

    # ---------------------------------------------------------------------------------------- in the reading thread

    def _sent(self, message: Message) -> None:
        n = len(self._joints)
        points = points_of(message, self._joints)
        self._check(points)
        self._waiting.append(Follow(points, None, np.full(n, np.inf), np.full(n, np.inf), LATE))

    def _torques(self, message: Message) -> None:
        tau = np.asarray(message.data, dtype=np.float64)
        if tau.shape != (len(self._joints),) or not np.isfinite(tau).all():
            raise InvalidValue(f"{len(self._joints)} finite torques [Nm] in the arm's order")
        self._waiting.append(tau)

    def accept(self, goal: Goal) -> str | Mapping[str, Any]:
        """A goal of the action; refused with its reason, or begun in the next frame."""
        try:
            if not self._may:
                raise Refused(INVALID_GOAL, f"the arm does not take commands now: {self._why_not()}")
            wish = goal.request
            points = points_of(wish.trajectory, self._joints)
            self._check(points)
            late = seconds_of(wish.goal_time_tolerance)
            self._waiting.append(Follow(
                points, goal, tolerances_of(wish.path_tolerance, self._joints, np.inf),
                tolerances_of(wish.goal_tolerance, self._joints, ARRIVED), late if late > 0.0 else LATE,
            ))  # fmt: skip
            return ""
        except Refused as problem:
            self.problems[f"goal refused: {problem}"] += 1
            return {"error_code": problem.code, "error_string": str(problem)}

    def cancel(self, goal: Goal) -> bool:
        """Stop a goal, in the next frame."""
        self._waiting.append(goal)
        return True

    def _check(self, points: Points) -> None:
        """What can be said without moving: that the arm could follow the points from where it is."""
        state = self._controller.arm
        motion_of(points, self._controller.arm.robot, self._now(), state.q, state.qd)

    # ------------------------------------------------------------------------------------- in the controller's thread

    def move(self, arm: Arm) -> None:
        """One frame in which no program runs."""
        self._take(arm)
        if self._torque is not None:
            self._age += arm.frame
            if self._age > HELD:
                self._release(arm)  # nobody steers any more: the arm stops
            else:
                arm.torque(self._torque, VISCOUS, COULOMB)
        elif self._follow is not None:
            self._step(self._follow, arm)

    def frame(self) -> None:
        """After each frame: whoever is not allowed to move any more is told."""
        if not self._may:
            why = self._why_not()
            while self._waiting:
                item = self._waiting.popleft()
                if isinstance(item, Follow):
                    self._end(item, ABORTED, INVALID_GOAL, why)
                if not isinstance(item, Goal):
                    self.problems[f"a command was refused: {why}"] += 1
            if self._follow is not None:
                self._end(self._follow, ABORTED, PATH_TOLERANCE, why)
            self._torque = None

    def close(self) -> None:
        """The arm goes: so does what it was to do."""
        self._controller.guest = None
        if self._follow is not None:
            self._end(self._follow, ABORTED, INVALID_GOAL, "the arm is switched off")

    def _take(self, arm: Arm) -> None:
        while self._waiting:
            item = self._waiting.popleft()
            if isinstance(item, Goal):
                if self._follow is not None and self._follow.goal is item:
                    self._end(self._follow, CANCELED, SUCCESSFUL, "canceled")
                else:
                    item.end(CANCELED, {"error_code": SUCCESSFUL, "error_string": "canceled"})
                continue
            if self._follow is not None:
                self._end(self._follow, ABORTED, INVALID_GOAL, "another command came")
            if isinstance(item, Follow):
                self._release(arm)
                self._begin(item, arm)
            else:
                self._torque, self._age = item, 0.0

    def _release(self, arm: Arm) -> None:
        """From torques to positions while the arm moves, without a jerk.

        The servo compares the target at the end of its step with where the arm is at the beginning: an arm that follows
        is always one step late. Without that a servo that takes over would push it forward.
        """
        if self._torque is not None:
            arm.q = arm.q - arm.qd * STEP
        self._torque = None

    def _begin(self, follow: Follow, arm: Arm) -> None:
        if follow.goal is not None and not follow.goal.live:
            return
        try:
            # all of it was looked at when it came: where the arm is now changes the speeds of two intervals
            follow.motion = motion_of(follow.points, arm.robot, self._now(), arm.q, arm.qd, 2)
            self._follow = follow
        except InvalidValue as problem:
            self.problems[str(problem)] += 1
            self._end(follow, ABORTED, problem.code if isinstance(problem, Refused) else INVALID_GOAL, str(problem))

    def _step(self, follow: Follow, arm: Arm) -> None:
        assert follow.motion is not None
        actual = arm.state
        # where the arm should be now: at the end of the frame before
        wanted = follow.motion.at(follow.time)
        error = wanted.q - actual.q
        if follow.goal is not None:
            if follow.time > 0.0 and (np.abs(error) > follow.path).any():
                joint = int((np.abs(error) / follow.path).argmax())
                self._end(
                    follow, ABORTED, PATH_TOLERANCE, f"{self._joints[joint]} is {error[joint]:.3g} rad off its path"
                )
                return
            if follow.time - follow.told >= FEEDBACK or follow.told < 0.0:
                follow.told = follow.time
                self._tell(follow, arm, wanted.q, wanted.qd, error)
        follow.time += arm.frame * self._controller.speed
        target = follow.motion.at(follow.time)
        arm.move(target.q, target.qd, target.qdd)
        past = follow.time - follow.motion.duration
        if past > 0.0:
            rest = np.abs(target.q - actual.q)
            if (rest <= follow.final).all():
                self._end(follow, SUCCEEDED, SUCCESSFUL, "")
            elif past > follow.late:
                joint = int((rest - follow.final).argmax())
                self._end(
                    follow, ABORTED, GOAL_TOLERANCE, f"{self._joints[joint]} is {rest[joint]:.3g} rad from the goal"
                )

    def _end(self, follow: Follow, status: End, code: int, why: str) -> None:
        if self._follow is follow:
            self._follow = None
        if follow.goal is not None:
            follow.goal.end(status, {"error_code": code, "error_string": why})

    def _tell(self, follow: Follow, arm: Arm, q: Array, qd: Array, error: Array) -> None:
        assert follow.goal is not None
        ns = round(follow.time * 1e9)
        since = Message(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)
        follow.goal.feedback(
            Message(
                header=Message(stamp=now()), joint_names=list(self._joints),
                desired=Message(positions=q, velocities=qd, time_from_start=since),
                actual=Message(positions=arm.state.q, velocities=arm.state.qd, time_from_start=since),
                error=Message(positions=error, velocities=qd - arm.state.qd, time_from_start=since),
            )
        )  # fmt: skip

    @property
    def _may(self) -> bool:
        return self._controller.may_move and not self._controller.playing

    def _why_not(self) -> str:
        c = self._controller
        if c.playing:
            return "a program runs on the controller"
        return f"robot mode {c.robot_mode_name}, safety mode {c.safety_mode_name}"

    def _now(self) -> float:
        return self._controller.time if self._simulated else time.time()
