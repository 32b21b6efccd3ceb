"""One participant of a DDS domain: topics, writers and readers of bytes, and the one thread that reads."""

from __future__ import annotations

import ctypes as ct
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tangere.errors import TangereError
from tangere.ros2 import library as c
from tangere.ros2.cdr import Codec
from tangere.ros2.interfaces import interfaces_of
from tangere.ros2.layout import Layout
from tangere.ros2.library import checked, library
from tangere.ros2.names import dds_type
from tangere.ros2.network import Network

_ANY = 0x7F  # states of samples, all of them
_DATA = 2  # kind of serialised data: a whole sample
_XCDR1 = 0
_AT_ONCE = 32  # samples that are taken in one call
_NEVER = 2**63 - 1  # [ns]
_EXISTS = -4  # the domain was made by somebody else in this process: theirs holds
_FULL = -10  # the writer's queue is full: somebody does not read


@dataclass(frozen=True)
class Quality:
    """Quality of service, as ROS 2 means it. transient: late readers get the kept samples."""

    depth: int = 10
    reliable: bool = True
    transient: bool = False
    keep_all: bool = False
    blocking: float = 0.0  # [s] that a write may wait for readers that do not keep up


DEFAULT = Quality()
SENSOR = Quality(5, reliable=False)
LATCHED = Quality(1, transient=True)
TF = Quality(100)
GRAPH_READER = Quality(keep_all=True, transient=True)

Received = Callable[[bytes, int], None]  # bytes of a sample, handle of the writer that it came from


class Participant:
    """A participant; `close` takes everything away again. A callback that raises is counted in `problems`."""

    def __init__(self, network: Network, user_data: str = "") -> None:
        self.network = network
        self.interfaces = interfaces_of(network.distro)
        self.codec = Codec(self.interfaces)
        self.problems: Counter[str] = Counter()
        self._lib = library()
        self._domain = _Domain(network)
        qos = self._qos(Quality(), user_data, bare=True)
        self.ref = self._lib.dds_create_participant(network.domain, qos, None)
        self._lib.dds_delete_qos(qos)
        if self.ref < 0:
            self._domain.leave()
        checked(self.ref, f"{network.text}: is the interface there?")
        self.guid = self._guid(self.ref)
        self._topics: dict[tuple[str, str, bool], int] = {}
        self._kept: list[Any] = []  # descriptors: the library keeps pointers to them
        self._readers: dict[int, Reader] = {}
        self._waitset = checked(self._lib.dds_create_waitset(self.ref), "waitset")
        self._wake = checked(self._lib.dds_create_guardcondition(self.ref), "condition")
        self._lib.dds_waitset_attach(self._waitset, self._wake, 0)
        self._closing = self.closed = False
        self._lock = threading.Lock()  # nothing is written while the participant goes
        self._thread = threading.Thread(target=self._read, name="ros2", daemon=True)
        self._thread.start()

    def writer(self, topic: str, kind: str, quality: Quality = DEFAULT, user_data: str = "") -> Writer:
        """Sends samples of a type on a DDS topic."""
        return Writer(self, topic, kind, quality, user_data)

    def reader(
        self, topic: str, kind: str, received: Received, quality: Quality = DEFAULT, user_data: str = "",
        not_own: bool = False,
    ) -> Reader:  # fmt: skip
        """Calls `received` in the reading thread. not_own: leaves out what this participant sends itself."""
        reader = Reader(self, topic, kind, received, quality, user_data, not_own)
        self._readers[reader.ref] = reader
        self._lib.dds_waitset_attach(self._waitset, reader.condition, reader.ref)
        return reader

    def forget(self, endpoint: Writer | Reader) -> None:
        """Take one away."""
        if isinstance(endpoint, Reader):
            self._lib.dds_waitset_detach(self._waitset, endpoint.condition)
            self._readers.pop(endpoint.ref, None)
        self._lib.dds_delete(endpoint.ref)

    def close(self) -> None:
        """Leave the domain; may be called twice."""
        if self._closing:
            return
        self._closing = True
        self._lib.dds_set_guardcondition(self._wake, True)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        with self._lock:
            self._lib.dds_delete(self.ref)
            self.closed = True
        self._domain.leave()

    def topic(self, name: str, kind: str) -> int:
        """The topic's entity; requests and replies of services have a head before the message."""
        service = name.startswith(("rq/", "rr/"))
        key = (name, kind, service)
        if key not in self._topics:
            layout = Layout(self.interfaces, kind, service)
            codes = (ct.c_uint32 * len(layout.codes))(*layout.codes)
            nothing = c.Blob(None, 0)
            its = c.Descriptor(
                layout.size, 8, 0, 0, dds_type(kind).encode(), None, len(codes), codes, b"", nothing, nothing,
                1 << _XCDR1,
            )  # fmt: skip
            self._kept.append((codes, its))
            made = self._lib.dds_create_topic(self.ref, ct.byref(its), name.encode(), None, None)
            self._topics[key] = checked(made, f"topic {name} of {kind}")
        return self._topics[key]

    def _qos(
        self, quality: Quality, user_data: str, *, writer: bool = False, not_own: bool = False, bare: bool = False
    ) -> Any:
        lib = self._lib
        qos = lib.dds_create_qos()
        if user_data:
            data = user_data.encode()
            lib.dds_qset_userdata(qos, data, len(data))
        if bare:
            return qos
        lib.dds_qset_reliability(qos, int(quality.reliable), round(quality.blocking * 1e9))
        lib.dds_qset_durability(qos, int(quality.transient))
        depth = -1 if quality.keep_all else quality.depth
        lib.dds_qset_history(qos, int(quality.keep_all), depth)
        lib.dds_qset_data_representation(qos, 1, (ct.c_int16 * 1)(_XCDR1))
        if writer:
            lib.dds_qset_writer_data_lifecycle(qos, False)
            if quality.transient:
                lib.dds_qset_durability_service(qos, 0, int(quality.keep_all), depth, -1, -1, -1)
        if not_own:
            lib.dds_qset_ignorelocal(qos, 1)
        return qos

    def _guid(self, ref: int) -> bytes:
        raw = (ct.c_uint8 * 16)()
        checked(self._lib.dds_get_guid(ref, ct.byref(raw)), "identifier")
        return bytes(raw)

    def _read(self) -> None:
        """The reading thread: waits, takes until empty, calls."""
        fired = (ct.c_ssize_t * 64)()
        while not self._closing:
            count = self._lib.dds_waitset_wait(self._waitset, fired, len(fired), _NEVER)
            if count < 0:
                return
            for ref in fired[: min(count, len(fired))]:
                reader = self._readers.get(ref)
                if reader is not None:
                    reader.take()


class _Domain:
    """A domain as this process has configured it: it lasts as long as one of its participants; the first one's holds.

    The library has one domain of each number per process, and deletes its participants with it: they are counted.
    """

    _users: ClassVar[dict[int, tuple[int, int]]] = {}  # number -> entity, participants
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, network: Network) -> None:
        self._number = network.domain
        config = network.config()
        with self._lock:
            entity, users = self._users.get(self._number, (0, 0))
            if config and not users:
                made = library().dds_create_domain(self._number, config.encode(errors="replace"))
                entity = 0 if made == _EXISTS else checked(made, f"{network.text}: is the interface there?")
            self._users[self._number] = (entity, users + 1)

    def leave(self) -> None:
        """One participant less."""
        with self._lock:
            entity, users = self._users.pop(self._number)
            if users > 1:
                self._users[self._number] = (entity, users - 1)
            elif entity:
                library().dds_delete(entity)


class _Endpoint:
    """What readers and writers have in common."""

    def __init__(self, participant: Participant, topic: str, kind: str) -> None:
        self.topic, self.kind = topic, kind
        self._participant, self._lib = participant, participant._lib
        self.ref = 0

    def _made(self, ref: int) -> None:
        self.ref = checked(ref, f"{self.topic}: {self.kind}")
        self.guid = self._participant._guid(self.ref)
        handle = c.Handle()
        checked(self._lib.dds_get_instance_handle(self.ref, ct.byref(handle)), "handle")
        self.handle = handle.value

    def _user_data(self, endpoint: Any) -> str:
        """What another's reader or writer says of itself; "" where it is gone."""
        if not endpoint:
            return ""
        value, size = ct.c_void_p(), ct.c_size_t()
        told = b""
        if self._lib.dds_qget_userdata(endpoint.contents.qos, ct.byref(value), ct.byref(size)) and value.value:
            told = ct.string_at(value.value, size.value)
            self._lib.dds_free(value)
        self._lib.dds_builtintopic_free_endpoint(endpoint)
        return told.decode(errors="replace")


class Writer(_Endpoint):
    """Sends bytes. `dropped` counts samples that readers were too slow for."""

    def __init__(self, participant: Participant, topic: str, kind: str, quality: Quality, user_data: str) -> None:
        super().__init__(participant, topic, kind)
        self.dropped = 0
        qos = participant._qos(quality, user_data, writer=True)
        try:
            self._made(self._lib.dds_create_writer(participant.ref, participant.topic(topic, kind), qos, None))
        finally:
            self._lib.dds_delete_qos(qos)
        self._type = ct.c_void_p()
        checked(self._lib.dds_get_entity_sertype(self.ref, ct.byref(self._type)), topic)

    def write(self, data: bytes) -> bool:
        """Send a sample with its head; False: dropped, a reader does not keep up. Returns at once."""
        piece = c.Piece(ct.cast(ct.c_char_p(data), ct.c_void_p), len(data))
        with self._participant._lock:
            if self._participant.closed:
                return False
            sample = self._lib.ddsi_serdata_from_ser_iov(self._type, _DATA, 1, ct.byref(piece), len(data))
            if not sample:
                raise TangereError(f"{self.topic}: these bytes are no {self.kind}")
            code = self._lib.dds_writecdr(self.ref, sample)
        if code == _FULL:
            self.dropped += 1
            return False
        checked(code, f"{self.topic}: a sample of {len(data)} bytes")
        return True

    @property
    def matched(self) -> int:
        """How many readers it has."""
        return max(0, int(self._lib.dds_get_matched_subscriptions(self.ref, None, 0)))

    def readers(self) -> list[str]:
        """What its readers say of themselves."""
        handles = (c.Handle * 64)()
        count = min(self._lib.dds_get_matched_subscriptions(self.ref, handles, 64), 64)
        call = self._lib.dds_get_matched_subscription_data
        return [self._user_data(call(self.ref, handle)) for handle in handles[: max(count, 0)]]


class Reader(_Endpoint):
    """Takes bytes and hands them on."""

    def __init__(
        self, participant: Participant, topic: str, kind: str, received: Received, quality: Quality, user_data: str,
        not_own: bool,
    ) -> None:  # fmt: skip
        super().__init__(participant, topic, kind)
        self._received = received
        self._promises: dict[int, bool] = {}  # of writers, by handle
        self.beside: Reader | None = None  # see Node.subscription
        qos = participant._qos(replace(quality, blocking=0.0), user_data, not_own=not_own)
        try:
            self._made(self._lib.dds_create_reader(participant.ref, participant.topic(topic, kind), qos, None))
        finally:
            self._lib.dds_delete_qos(qos)
        self.condition = checked(self._lib.dds_create_readcondition(self.ref, _ANY), topic)

    @property
    def matched(self) -> int:
        """How many writers it has; with one beside it, that one's, too."""
        own = max(0, int(self._lib.dds_get_matched_publications(self.ref, None, 0)))
        return own if self.beside is None else max(own, self.beside.matched)

    def promises(self, handle: int) -> bool:
        """Whether the writer with this handle delivers reliably; False where it is gone."""
        if handle not in self._promises:
            kind, blocking = ct.c_int(), ct.c_int64()
            endpoint = self._lib.dds_get_matched_publication_data(self.ref, handle)
            if not endpoint:
                return False
            self._lib.dds_qget_reliability(endpoint.contents.qos, ct.byref(kind), ct.byref(blocking))
            self._lib.dds_builtintopic_free_endpoint(endpoint)
            self._promises[handle] = kind.value == 1
        return self._promises[handle]

    def writers(self) -> set[int]:
        """Handles of its writers; of a participant that died they are gone when its lease is over (10 s)."""
        handles = (c.Handle * 1024)()
        count = self._lib.dds_get_matched_publications(self.ref, handles, len(handles))
        return set(handles[: max(0, min(count, len(handles)))])

    def writer(self, handle: int) -> str:
        """What a writer says of itself, by the handle that came with a sample."""
        return self._user_data(self._lib.dds_get_matched_publication_data(self.ref, handle))

    def take(self) -> None:
        """Everything that is there; in the reading thread."""
        found, infos = (ct.c_void_p * _AT_ONCE)(), (c.Info * _AT_ONCE)()
        while (count := self._lib.dds_takecdr(self.ref, found, _AT_ONCE, infos, _ANY)) > 0:
            for sample, info in zip(found[:count], infos[:count], strict=True):
                size = self._lib.ddsi_serdata_size(sample)
                data = ct.create_string_buffer(size)
                self._lib.ddsi_serdata_to_ser(sample, 0, size, data)
                self._lib.ddsi_serdata_unref(sample)
                if info.valid:
                    self._hand_on(data.raw, info.publication)

    def _hand_on(self, data: bytes, publication: int) -> None:
        try:
            self._received(data, publication)
        except Exception as problem:  # a message that breaks its receiver must not end the reading of others
            self._participant.problems[f"{self.topic}: {problem or type(problem).__name__}"] += 1


def identifier(guid: bytes, number: int) -> str:
    """One text per service or client, as ROS 2 makes it."""
    return ".".join(f"{byte:x}" for byte in guid[:12] + struct.pack(">I", number))
