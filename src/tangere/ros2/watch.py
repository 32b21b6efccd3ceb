"""A node that feels: it reads anybody's joint states with efforts and publishes what touched the arm."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

import numpy as np

from tangere.errors import TangereError
from tangere.identification.belief import Belief
from tangere.robots import Robot
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import TOUCH
from tangere.ros2.node import Node
from tangere.ros2.participant import Quality
from tangere.ros2.touching import TouchWatch, touch_message
from tangere.types import Array, Event

Effort = Literal["torque", "current"]
STATES = Quality(500)  # samples that may wait: one second at 500 Hz
SILENT = 10.0  # [s] without a usable message after which it is said what is missing


class WatchNode:
    """Reads JointState on `topic`, publishes Touch on /tangere/touch, tells of each event.

    Joints are found by their names; others, such as a gripper's, are left out. effort: what the robot's driver sends
    there: torque [Nm] with gravity, or motor current [A], as UR's driver did for long.
    """

    def __init__(
        self, node: Node, robot: Robot, believed: Belief, *, topic: str = "/joint_states", effort: Effort = "torque",
        tell: Callable[[Event], None] = lambda event: None, log: str | None = None,
    ) -> None:  # fmt: skip
        self.node, self.topic = node, topic
        self.joints = tuple(joint.name for joint in robot.model.joints)
        self.problems = node.problems
        self.used = 0  # messages
        self._column = "tau" if effort == "torque" else "actual_current"
        self._order: tuple[list[str], list[int] | None] = ([], None)
        self._first: int | None = None  # [ns] stamp of the first message
        self._tell = tell
        self._publisher = node.publisher("/tangere/touch", TOUCH)
        self._arrived = threading.Event()
        self.watch = TouchWatch(robot, believed, self._event, name=topic, log=log)
        self._reader = node.subscription(topic, "sensor_msgs/msg/JointState", self._state, STATES, anybody=True)

    def close(self) -> None:
        """End the watch; the node stays."""
        self.watch.close()

    @property
    def missing(self) -> str:
        """What keeps it from watching, in a sentence; "" while messages come."""
        if self._arrived.is_set():
            return ""
        if not self._reader.matched:
            return f"nobody publishes {self.topic} here; same --domain, --interface and type?"
        told = "; ".join(f"{count} {what}" for what, count in self.problems.items())
        return f"no message of {self.topic} could be used: {told or 'none came'}"

    def wait(self, seconds: float = SILENT) -> None:
        """Until the first message that can be used; an error says what is missing."""
        if not self._arrived.wait(seconds):
            raise TangereError(self.missing)

    def _state(self, message: Message) -> None:
        order = self._places(message.name)
        if order is None:
            self.problems["messages without this arm's joints"] += 1
            return
        columns: dict[str, Array] = {}
        for name, values in (("q", message.position), ("qd", message.velocity), (self._column, message.effort)):
            if len(values) == len(message.name):
                columns[name] = np.asarray(values, dtype=np.float64)[order]
        if "q" not in columns or self._column not in columns:
            self.problems["messages without position or effort"] += 1
            return
        if not all(np.isfinite(values).all() for values in columns.values()):
            self.problems["messages with numbers that are not finite"] += 1
            return
        stamp = message.header.stamp
        ns = stamp.sec * 1_000_000_000 + stamp.nanosec
        if ns <= 0:
            self.problems["messages without a stamp"] += 1
            return
        if self._first is None:
            self._first = ns
        self.used += 1
        self._arrived.set()
        self.watch.rows.put((ns - self._first) * 1e-9, columns)

    def _places(self, names: list[str]) -> list[int] | None:
        """Where the arm's joints stand in a message; worked out once for each order of names."""
        if names != self._order[0]:
            # the names as they are, or all with the same word before them (tf_prefix of UR's driver)
            first = self.joints[0]
            heads = {name.removesuffix(first) for name in names if name.endswith(first)}
            fit = [head for head in heads if all(names.count(head + joint) == 1 for joint in self.joints)]
            head = "" if "" in fit else fit[0] if len(fit) == 1 else None
            if head is None and len(fit) > 1:
                self.problems[f"messages with several arms: {', '.join(sorted(fit))}"] += 1
            order = None if head is None else [names.index(head + joint) for joint in self.joints]
            self._order = (list(names), order)
        return self._order[1]

    def _event(self, event: Event) -> None:
        first = self._first or 0
        self._publisher.publish(touch_message(event, self.joints, lambda seconds: max(first + round(seconds * 1e9), 0)))
        self._tell(event)
