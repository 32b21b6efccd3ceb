"""A node of ROS 2: publishers, subscriptions, services and clients, and the graph that shows them to others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tangere.ros2 import names
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import GRAPH
from tangere.ros2.network import Network
from tangere.ros2.participant import DEFAULT, GRAPH_READER, LATCHED, Participant, Quality, Reader, Writer, identifier

POLL = 0.01  # [s] between two looks whether somebody is there


def stamp_of(ns: int) -> Message:
    """builtin_interfaces/Time of ns since 1970."""
    return Message(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


def now() -> Message:
    """The computer's clock."""
    return stamp_of(time.time_ns())


def seconds_of(stamp: Message) -> float:
    """A stamp or a duration in seconds."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


class Publisher:
    """Publishes messages of one type; `writer` takes bytes that are encoded already."""

    def __init__(self, node: Node, writer: Writer) -> None:
        self._codec, self.writer = node.participant.codec, writer

    def publish(self, message: Message | Mapping[str, Any]) -> bool:
        """Send it; False: dropped, a reader does not keep up."""
        return self.writer.write(self._codec.encode(self.writer.kind, message))


class Node:
    """A node in a domain, with a participant of its own.

    Callbacks run in the participant's one reading thread, one after the other; they return soon and may publish. What
    they raise, and messages that are none, is counted in `problems`.
    """

    def __init__(self, name: str, network: Network | None = None, namespace: str = "/") -> None:
        self.name, self.namespace = names.node(name), names.namespace(namespace)
        self.participant = Participant(network or Network(), "enclave=/;")
        self.problems = self.participant.problems
        self._readers: list[Reader] = []
        self._writers: list[Writer] = []
        self._count = 0
        self._lock = threading.Lock()
        self._seen: dict[bytes, tuple[Message, int]] = {}  # of other participants: snapshot, handle of its writer
        about = self._typed(GRAPH)
        self._graph = self.participant.writer("ros_discovery_info", GRAPH, LATCHED, about)
        self._others = self.participant.reader(
            "ros_discovery_info", GRAPH, self._heard, GRAPH_READER, about, not_own=True
        )
        self.announce()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye and leave; may be called twice."""
        if not self.participant.closed:
            self.announce(gone=True)
            self.participant.close()

    def full(self, name: str) -> str:
        """The full name of a topic or service of this node."""
        return names.full(name, self.namespace)

    def publisher(self, topic: str, kind: str, quality: Quality = DEFAULT) -> Publisher:
        """Publish on a topic messages of a type such as sensor_msgs/msg/JointState."""
        writer = self.writer(names.topic(self.full(topic)), kind, quality)
        self.announce()
        return Publisher(self, writer)

    def subscription(
        self, topic: str, kind: str, callback: Callable[[Message], None], quality: Quality = DEFAULT, *,
        anybody: bool = False,
    ) -> Reader:  # fmt: skip
        """Call back with every message of a topic.

        anybody: also of publishers that promise nothing (best effort: cameras, fast drivers). A reader that asks for
        reliable delivery never gets theirs, one that does not may lose the others': there are two, each for its own.
        """
        decode = self.participant.codec.decode
        name = names.topic(self.full(topic))
        reader = self.reader(name, kind, lambda data, _: callback(decode(kind, data)), quality)
        if anybody:

            def unpromised(data: bytes, writer: int) -> None:
                if reader.beside is not None and not reader.beside.promises(writer):
                    callback(decode(kind, data))

            reader.beside = self.reader(name, kind, unpromised, replace(quality, reliable=False))
        self.announce()
        return reader

    def writer(self, topic: str, kind: str, quality: Quality = DEFAULT, about: str = "") -> Writer:
        """A writer of a DDS topic that belongs to this node; `announce` tells of it."""
        writer = self.participant.writer(topic, kind, quality, about + self._typed(kind))
        self._writers.append(writer)
        return writer

    def reader(
        self, topic: str, kind: str, received: Callable[[bytes, int], None], quality: Quality = DEFAULT,
        about: str = "",
    ) -> Reader:  # fmt: skip
        """A reader of a DDS topic that belongs to this node; `announce` tells of it."""
        reader = self.participant.reader(topic, kind, received, quality, about + self._typed(kind))
        self._readers.append(reader)
        return reader

    def identity(self) -> str:
        """A text for one service or client of this node."""
        with self._lock:
            self._count += 1
            return identifier(self.participant.guid, self._count)

    def announce(self, gone: bool = False) -> None:
        """Tell everybody what belongs to this node."""
        size = self.participant.interfaces.gid_size

        def gid(guid: bytes) -> Message:
            return Message(data=guid + bytes(size - len(guid)))

        own = Message(
            node_namespace=self.namespace, node_name=self.name,
            reader_gid_seq=[gid(reader.guid) for reader in self._readers],
            writer_gid_seq=[gid(writer.guid) for writer in self._writers],
        )  # fmt: skip
        whole = Message(gid=gid(self.participant.guid), node_entities_info_seq=[] if gone else [own])
        self._graph.write(self.participant.codec.encode(GRAPH, whole))

    def others(self) -> tuple[str, ...]:
        """Full names of the nodes that were heard of, as `ros2 node list` has them."""
        found, there = [], self._others.writers()
        for gid, (snapshot, writer) in list(self._seen.items()):
            if writer not in there:  # it died without a goodbye
                self._seen.pop(gid, None)
                continue
            for each in snapshot.node_entities_info_seq:
                found.append(f"{each.node_namespace.rstrip('/')}/{each.node_name}")
        return tuple(sorted(found))

    def wait(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Whether something becomes true in time."""
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL)
        return True

    def _heard(self, data: bytes, writer: int) -> None:
        snapshot = self.participant.codec.decode(GRAPH, data)
        gid = bytes(snapshot.gid.data)
        if snapshot.node_entities_info_seq:
            self._seen[gid] = (snapshot, writer)
        else:
            self._seen.pop(gid, None)

    def _typed(self, kind: str) -> str:
        interfaces = self.participant.interfaces
        return f"typehash={interfaces.hash(kind)};" if interfaces.hashes else ""
