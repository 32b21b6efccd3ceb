"""The sense of touch as a part of a node: samples go in from any thread, events come out as messages; a node that
feels with the joint states and efforts of anybody."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np

from tangere.errors import TangereError
from tangere.identification.belief import Belief
from tangere.logs.recordings import StreamRow
from tangere.loop.follow import Follower
from tangere.robots import Robot
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import TOUCH
from tangere.ros2.node import Node, stamp_of
from tangere.ros2.participant import Quality
from tangere.types import Array, Event

WAITING = 5000  # samples that may wait for the observer: 10 s at 500 Hz; more are dropped, and counted
PATIENCE = 5.0  # [s] that the end waits for what is under way


class QueueRows:
    """Rows that somebody puts in, in the form of a stream; `end` ends it."""

    def __init__(self) -> None:
        self.problems: Counter[str] = Counter()
        self._queue: SimpleQueue[StreamRow | None] = SimpleQueue()
        self._last = float("-inf")

    def put(self, time: float, values: dict[str, Array]) -> None:
        """One sample [s]; stamps that repeat are left out, a clock that was set back by a second starts anew."""
        if self._queue.qsize() >= WAITING:
            self.problems["samples dropped: too many waited"] += 1
            return
        anew = time < self._last - 1.0
        if not anew and time <= self._last:
            self.problems["stamps that repeat or go back"] += 1
            return
        self._last = time
        self._queue.put(StreamRow(time, values, anew))

    def end(self) -> None:
        """There are no more."""
        self._queue.put(None)

    def __iter__(self) -> Iterator[StreamRow]:
        while (row := self._queue.get()) is not None:
            yield row


class TouchWatch:
    """Watches samples for touches in a thread of its own. tell: is given every event in each of its phases.

    options: of loop.follow.Follower. `error` says why it ended early.
    """

    def __init__(
        self, robot: Robot, believed: Belief, tell: Callable[[Event], None], *, name: str = "joint_states",
        log: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.rows = QueueRows()
        self.follower = Follower(robot, believed, name=name, **options)
        self.error = ""
        self._tell, self._log = tell, log
        self._thread = threading.Thread(target=self._work, name="touch", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still watches."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the stream and wait for what is under way."""
        self.rows.end()
        self._thread.join(PATIENCE)

    def _work(self) -> None:
        try:
            self.follower.follow(self.rows, self._tell, log=self._log)
        except TangereError as problem:
            self.error = str(problem)
        except KeyboardInterrupt:
            pass  # the program was told to end, and its loop has heard of it


def touch_message(event: Event, joints: tuple[str, ...], ns: Callable[[float], int], frame: str = "base") -> Message:
    """An event as tangere_msgs/msg/Touch; ns: what a stamp of the samples is in ns since 1970."""

    def vector(values: Array | None) -> Message:
        return Message() if values is None else Message(x=float(values[0]), y=float(values[1]), z=float(values[2]))

    return Message(
        header=Message(stamp=stamp_of(ns(event.time_s)), frame_id=frame),
        number=event.number, phase=event.phase, kind=event.kind, alarm=event.alarm, confidence=event.confidence,
        score=event.score, onset=stamp_of(ns(event.onset_s)),
        end=Message() if event.end_s is None else stamp_of(ns(event.end_s)),
        joint=event.joint, joint_name=joints[event.joint - 1] if 0 < event.joint <= len(joints) else "",
        torque=event.torque_nm, residual=event.residual_nm, link=event.link or 0,
        link_probability=event.link_probability, why_no_link=event.why_no_link, located=event.force is not None,
        force=vector(event.force), point=vector(event.point), impulse=vector(event.impulse), reason=event.reason,
    )  # fmt: skip


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
