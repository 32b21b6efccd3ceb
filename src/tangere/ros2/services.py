"""Services as rmw_cyclonedds_cpp speaks them: client and sequence number stand before each request and reply.

The default middleware of ROS 2 (Fast DDS) keeps these elsewhere and does not understand them: topics work with both,
services and actions with rmw_cyclonedds_cpp only.
"""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tangere.errors import TangereError
from tangere.ros2 import names
from tangere.ros2.cdr import Message
from tangere.ros2.node import Node

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
