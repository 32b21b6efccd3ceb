"""The sense of touch as a part of a node: samples go in from any thread, events come out as messages."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from tangere.errors import TangereError
from tangere.identification.belief import Belief
from tangere.logs.recordings import StreamRow
from tangere.loop.follow import Follower
from tangere.robots import Robot
from tangere.ros2.cdr import Message
from tangere.ros2.node import stamp_of
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
