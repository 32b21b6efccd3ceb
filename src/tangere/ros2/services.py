"""Services as rmw_cyclonedds_cpp speaks them, and actions: three services and two topics under NAME/_action.

Client and sequence number stand before each request and reply. The default middleware of ROS 2 (Fast DDS) keeps these
elsewhere and does not understand them: topics work with both, services and actions with rmw_cyclonedds_cpp only.
"""

from __future__ import annotations

import re
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from tangere.errors import TangereError
from tangere.ros2 import names
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import CANCEL
from tangere.ros2.node import Node, now
from tangere.ros2.participant import LATCHED, Quality

_HEAD = struct.Struct("<Qq")
WAIT = 0.1  # [s] that a reply waits for the client's reader, as ROS 2 has it
PATIENCE = 5.0  # [s] that a client waits for an answer
_CLIENT = re.compile(r"clientid=([^;]*);")

Reply = Callable[[Message | Mapping[str, Any]], None]


class Service:
    """Answers requests. handler(request, reply) in the reading thread: it calls reply, then or later, from anywhere."""

    def __init__(self, node: Node, name: str, kind: str, handler: Callable[[Message, Reply], None]) -> None:
        full = node.full(name)
        about = f"serviceid={node.identity()};"
        self._codec, self._kind, self._handler = node.participant.codec, kind, handler
        self._known: set[str] = set()  # clients whose reader was seen
        self._writer = node.writer(names.reply(full), f"{kind}_Response", about=about)
        self._reader = node.reader(names.request(full), f"{kind}_Request", self._asked, about=about)
        node.announce()

    def _asked(self, data: bytes, publication: int) -> None:
        head, request = self._codec.decode_service(f"{self._kind}_Request", data)
        found = _CLIENT.search(self._reader.writer(publication))
        client = found[1] if found else ""

        def reply(message: Message | Mapping[str, Any]) -> None:
            answer = self._codec.encode(f"{self._kind}_Response", message, _HEAD.pack(*head))
            if not client or client in self._known or self._there(client):
                self._writer.write(answer)
            else:  # the client's reader is not known yet: wait for it beside
                threading.Thread(target=self._later, args=(client, answer), daemon=True).start()

        self._handler(request, reply)

    def _there(self, client: str) -> bool:
        if any(f"clientid={client};" in about for about in self._writer.readers()):
            self._known.add(client)
            return True
        return False

    def _later(self, client: str, answer: bytes) -> None:
        deadline = time.monotonic() + WAIT
        while not self._there(client) and time.monotonic() < deadline:
            time.sleep(0.002)
        self._writer.write(answer)


def answering(handle: Callable[[Message], Message | Mapping[str, Any]]) -> Callable[[Message, Reply], None]:
    """A handler that answers at once, of a function from request to response."""
    return lambda request, reply: reply(handle(request))


class Client:
    """Calls a service, from any thread but the reading one."""

    def __init__(self, node: Node, name: str, kind: str) -> None:
        full = node.full(name)
        about = f"clientid={node.identity()};"
        self.name, self._node, self._kind = full, node, kind
        self._codec = node.participant.codec
        self._count = 0
        self._waiting: dict[int, list[Any]] = {}  # sequence number -> event, response
        self._lock = threading.Lock()
        self._writer = node.writer(names.request(full), f"{kind}_Request", about=about)
        self._guid = self._writer.handle
        self._reader = node.reader(names.reply(full), f"{kind}_Response", self._answered, about=about)
        node.announce()

    def ready(self, seconds: float = PATIENCE) -> bool:
        """Whether a server is there, in both directions, within a time."""
        return self._node.wait(lambda: self._writer.matched > 0 and self._reader.matched > 0, seconds)

    def call(self, request: Message | Mapping[str, Any], seconds: float = PATIENCE) -> Message:
        """Ask and wait for the answer; no answer in time is an error."""
        with self._lock:
            self._count += 1
            number = self._count
            slot = self._waiting[number] = [threading.Event(), None]
        self._writer.write(self._codec.encode(f"{self._kind}_Request", request, _HEAD.pack(self._guid, number)))
        if not slot[0].wait(seconds):
            self._waiting.pop(number, None)
            raise TangereError(f"{self.name}: no answer within {seconds:g} s; does a server run?")
        answer: Message = slot[1]
        return answer

    def _answered(self, data: bytes, _: int) -> None:
        (guid, number), response = self._codec.decode_service(f"{self._kind}_Response", data)
        if guid != self._guid:
            return  # of another client
        slot = self._waiting.pop(number, None)
        if slot is not None:
            slot[1] = response
            slot[0].set()


UNKNOWN, ACCEPTED, EXECUTING, CANCELING = range(4)
SUCCEEDED: Final = 4
CANCELED: Final = 5
ABORTED: Final = 6
_LIVE = (ACCEPTED, EXECUTING, CANCELING)
NONE, REJECTED, UNKNOWN_GOAL, TERMINATED = range(4)  # codes of a cancel request
KEPT = 900.0  # [s] that the result of a goal is kept for who asks late; ROS 2: 15 minutes in Humble, 10 s in newer ones
MOST = 1000  # goals that are remembered: a client that sends without end does not fill the memory
STATUS = "action_msgs/msg/GoalStatusArray"

End = Literal[4, 5, 6]  # succeeded, canceled, aborted


class Executor(Protocol):
    """Who does what goals say."""

    def accept(self, goal: Goal) -> str | Mapping[str, Any]:
        """ "" to take it (and begin), else the result of a goal that is refused, with the reason in it."""

    def cancel(self, goal: Goal) -> bool:
        """Whether the goal is being stopped; `goal.end` follows."""


@dataclass
class Goal:
    """One goal. `feedback` and `end` may be called from any thread."""

    id: bytes
    request: Message
    server: ActionServer
    stamp: Message = field(default_factory=now)
    status: int = ACCEPTED
    result: Message | Mapping[str, Any] | None = None
    ended: float = 0.0  # by time.monotonic
    waiting: list[Reply] = field(default_factory=list)

    def feedback(self, message: Message | Mapping[str, Any]) -> None:
        """Tell who listens how far it is."""
        self.server._feedback(self, message)

    def end(self, status: End, result: Message | Mapping[str, Any]) -> None:
        """It is over; the second time nothing happens."""
        self.server._ended(self, status, result)

    @property
    def live(self) -> bool:
        """Whether it is not over."""
        return self.status in _LIVE


class ActionServer:
    """Takes goals of an action type such as control_msgs/action/FollowJointTrajectory."""

    def __init__(self, node: Node, name: str, kind: str, executor: Executor) -> None:
        base = f"{node.full(name)}/_action"
        self._executor = executor
        self._goals: dict[bytes, Goal] = {}
        self._refused: dict[bytes, Message | Mapping[str, Any]] = {}
        self._lock = threading.RLock()
        self._feedbacks = node.publisher(f"{base}/feedback", f"{kind}_FeedbackMessage")
        self._states = node.publisher(f"{base}/status", STATUS, LATCHED)
        self._services = [
            Service(node, f"{base}/send_goal", f"{kind}_SendGoal", answering(self._send_goal)),
            Service(node, f"{base}/cancel_goal", CANCEL, answering(self._cancel_goal)),
            Service(node, f"{base}/get_result", f"{kind}_GetResult", self._get_result),
        ]
        self._publish()

    def _send_goal(self, request: Message) -> Message:
        key = bytes(request.goal_id.uuid)
        with self._lock:
            self._forget()
            if key in self._goals:
                return Message(accepted=False, stamp=now())
            goal = Goal(key, request.goal, self)
            self._goals[key] = goal  # before it is accepted: it may end at once
            refused = self._executor.accept(goal)
            if refused:
                del self._goals[key]
                assert not isinstance(refused, str)
                self._refused[key] = refused
                return Message(accepted=False, stamp=goal.stamp)
            if goal.live:
                goal.status = EXECUTING
            self._publish()
        return Message(accepted=True, stamp=goal.stamp)

    def _cancel_goal(self, request: Message) -> Message:
        info = request.goal_info
        key, stamp = bytes(info.goal_id.uuid), (info.stamp.sec, info.stamp.nanosec)
        with self._lock:
            named, dated = any(key), stamp != (0, 0)
            if named and not dated and key not in self._goals:
                return Message(return_code=UNKNOWN_GOAL)
            if named and not dated and not self._goals[key].live:
                return Message(return_code=TERMINATED)
            meant = [
                goal for goal in self._goals.values()
                if goal.live and (goal.id == key or (not named and not dated)
                                  or (dated and (goal.stamp.sec, goal.stamp.nanosec) <= stamp))
            ]  # fmt: skip
            stopping = []
            for goal in meant:
                before, goal.status = goal.status, CANCELING
                if self._executor.cancel(goal):
                    stopping.append(goal)
                elif goal.live:
                    goal.status = before
            self._publish()
            code = NONE if stopping or not meant else REJECTED
            listed = [Message(goal_id=Message(uuid=goal.id), stamp=goal.stamp) for goal in stopping]
            return Message(return_code=code, goals_canceling=listed)

    def _get_result(self, request: Message, reply: Reply) -> None:
        key = bytes(request.goal_id.uuid)
        with self._lock:
            goal = self._goals.get(key)
            if goal is not None and goal.live:
                goal.waiting.append(reply)  # answered when it ends
                return
        if goal is None:
            reply(Message(status=UNKNOWN, result=self._refused.get(key, {})))
        else:
            reply(Message(status=goal.status, result=goal.result))

    def _feedback(self, goal: Goal, message: Message | Mapping[str, Any]) -> None:
        self._feedbacks.publish(Message(goal_id=Message(uuid=goal.id), feedback=message))

    def _ended(self, goal: Goal, status: End, result: Message | Mapping[str, Any]) -> None:
        with self._lock:
            if not goal.live:
                return
            goal.status, goal.result, goal.ended = status, result, time.monotonic()
            waiting, goal.waiting = goal.waiting, []
            self._publish()
        for reply in waiting:
            reply(Message(status=status, result=result))

    def _publish(self) -> None:
        listed = [
            Message(goal_info=Message(goal_id=Message(uuid=goal.id), stamp=goal.stamp), status=goal.status)
            for goal in self._goals.values()
        ]
        self._states.publish(Message(status_list=listed))

    def _forget(self) -> None:
        """Goals that ended long ago, and the oldest where there are too many."""
        over = [goal for goal in self._goals.values() if not goal.live]
        surplus = len(self._goals) - MOST
        for k, goal in enumerate(over):
            if k <= surplus or time.monotonic() - goal.ended > KEPT:
                del self._goals[goal.id]
        while len(self._refused) > MOST:
            del self._refused[next(iter(self._refused))]


class ActionClient:
    """Sends goals; waits for what becomes of them."""

    def __init__(
        self, node: Node, name: str, kind: str, on_feedback: Callable[[Message], None] = lambda message: None,
        on_status: Callable[[Message], None] = lambda message: None,
    ) -> None:  # fmt: skip
        base = f"{node.full(name)}/_action"
        self._goal = Client(node, f"{base}/send_goal", f"{kind}_SendGoal")
        self._cancel = Client(node, f"{base}/cancel_goal", CANCEL)
        self._result = Client(node, f"{base}/get_result", f"{kind}_GetResult")
        node.subscription(f"{base}/feedback", f"{kind}_FeedbackMessage", on_feedback)
        node.subscription(f"{base}/status", STATUS, on_status, Quality(10, transient=True))

    def ready(self, seconds: float = PATIENCE) -> bool:
        """Whether a server is there."""
        return all(client.ready(seconds) for client in (self._goal, self._cancel, self._result))

    def send(self, goal: Message | Mapping[str, Any], seconds: float = PATIENCE) -> tuple[bytes, bool]:
        """Its identifier, and whether it was accepted."""
        key = uuid.uuid4().bytes
        return key, bool(self._goal.call(Message(goal_id=Message(uuid=key), goal=goal), seconds).accepted)

    def cancel(self, key: bytes = bytes(16), seconds: float = PATIENCE) -> int:
        """Stop a goal, all of them where none is named; the return code."""
        return int(self._cancel.call(Message(goal_info=Message(goal_id=Message(uuid=key))), seconds).return_code)

    def result(self, key: bytes, seconds: float = 60.0) -> tuple[int, Message]:
        """Wait for the end of a goal: its status and result."""
        answer = self._result.call(Message(goal_id=Message(uuid=key)), seconds)
        return int(answer.status), answer.result
