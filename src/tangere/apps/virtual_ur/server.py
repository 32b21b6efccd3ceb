"""The ports of a virtual controller: one process, one thread, one loop of frames.

No client can hold the loop up: what a socket does not take waits in a buffer, and beyond it packages are skipped. Only
the fast clock waits for clients of RTDE that read slowly; one that has stopped reading holds it up once.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import time
from collections.abc import Callable
from typing import Literal, Protocol

from tangere.apps.virtual_ur import primary_port
from tangere.apps.virtual_ur.controller import Controller
from tangere.apps.virtual_ur.dashboard_port import DashboardPort
from tangere.apps.virtual_ur.primary_port import Programs
from tangere.apps.virtual_ur.rtde_port import Owners, RtdePort
from tangere.errors import InvalidValue, TangereError
from tangere.rtde.wire import ProtocolError

Clock = Literal["real", "fast", "lockstep"]
DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE = 29999, 30001, 30002, 30003, 30004
READ_ONLY = {30011: PRIMARY, 30012: SECONDARY, 30013: REALTIME}
PORTS = (DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE, *READ_ONLY)
BUFFER = 1 << 18  # [bytes] that wait for a client that does not read; half a second of every field
BEHIND = 0.1  # [s] of lateness after which time is dropped instead of made up for
PATIENCE = 0.05  # [s] that lock-step waits for a client
# [bytes] that the fast clock lets the system keep for a client of RTDE. By itself it keeps megabytes, and a client that
# reads a little slower than the arm moves learns of the end of a move seconds later.
AHEAD = 1 << 14
STOPPED = 1.0  # [s] without taking a byte after which the fast clock waits no longer: a busy computer holds readers up
CLIENTS = 64  # connections at once; more are closed at once


class Face(Protocol):
    """Another way into the controller, beside its ports: it sees every frame, and must not hold it up."""

    def frame(self) -> None:
        """A frame is over."""

    def close(self) -> None:
        """The controller ends."""


class Connection:
    """One client on one port."""

    def __init__(self, sock: socket.socket, port: int) -> None:
        self.sock, self.port, self.skipped = sock, port, 0
        self.waiting, self.took = b"", time.perf_counter()  # the latter: when it last took what was sent
        self.rtde: RtdePort | None = None
        self.desk: DashboardPort | None = None
        self.programs: Programs | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """For select."""
        return self.sock.fileno()

    def send(self, data: bytes) -> None:
        """Now, or as soon as the client reads; packages for a client that does not are skipped and counted."""
        if not data:
            return
        if len(self.waiting) > BUFFER:
            self.skipped += 1
            return
        self.waiting += data
        self.flush()

    def flush(self) -> None:
        """What the socket takes."""
        try:
            sent = self.sock.send(self.waiting)
            self.waiting = self.waiting[sent:]
            self.took = time.perf_counter()
        except BlockingIOError:
            pass
        except OSError:
            self.waiting = b""


class Sockets:
    """Connections that a program opens. They go to this computer only, unless the server serves others, too."""

    def __init__(self, open_to_all: bool) -> None:
        self._all, self._by = open_to_all, dict[str, socket.socket]()

    def open(self, name: str, address: str, port: int) -> bool:
        """Connect; False: refused, or nobody there."""
        self.close(name)
        try:
            if not self._all and not ipaddress.ip_address(socket.gethostbyname(address)).is_loopback:
                return False
            sock = socket.create_connection((address, port), 0.5)
        except (OSError, ValueError):
            return False
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._by[name] = sock
        return True

    def send(self, name: str, data: bytes) -> bool:
        """Send what the socket takes at once."""
        try:
            return name in self._by and self._by[name].send(data) == len(data)
        except OSError:
            return False

    def receive(self, name: str) -> bytes | None:
        """What has come since; None: not open, or closed by the other side."""
        if name not in self._by:
            return None
        try:
            data = self._by[name].recv(1 << 16)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.close(name)
            return None
        return data

    def close(self, name: str) -> None:
        """Close; nothing happens where it is not open."""
        sock = self._by.pop(name, None)
        if sock is not None:
            sock.close()

    def close_all(self) -> None:
        """A program has ended."""
        for name in list(self._by):
            self.close(name)


class Server:
    """Listens on the ports of an address and runs the controller's frames by a clock.

    real: 500 (125) frames a second, never bursts; more than 0.1 s late, time is dropped. fast: the next frame as soon
    as all sockets are read and RTDE's clients have room for more (at the real rate while nobody is connected).
    lockstep: as soon as every client that sends inputs has sent one package since the last frame, without it after
    50 ms (`wait_for_ever`: never).
    """

    def __init__(
        self, controller: Controller, address: str = "127.0.0.1", *, clock: Clock = "real", wait_for_ever: bool = False,
        anywhere: bool = False,
    ) -> None:  # fmt: skip
        if clock not in ("real", "fast", "lockstep"):
            raise InvalidValue(f"unknown clock {clock!r}; known: real, fast, lockstep")
        if not anywhere and not _loopback(address):
            raise InvalidValue(
                f"{address} can be reached from other computers; a virtual arm listens on 127.0.0.x, "
                "unless --anywhere is given"
            )
        self.controller, self.clock, self.address = controller, clock, address
        self._patience = float("inf") if wait_for_ever else PATIENCE
        self._owners = Owners(controller.profile.taken)
        self._connections: list[Connection] = []
        self.faces: list[Face] = []
        self._stopping = False
        self.frames, self.late, self.dropped_time = 0, 0, 0.0
        self._sockets = Sockets(anywhere)
        controller.sockets = self._sockets
        controller.listeners.append(self._said)
        self._notes: list[tuple[str, str, int]] = []
        self._realtime = primary_port.realtime(controller)
        self._listeners: dict[socket.socket, int] = {}
        try:
            for port in PORTS:
                self._listen(port)
        except BaseException:
            self.close()
            raise

    def _listen(self, port: int) -> None:
        sock = socket.socket()
        self._listeners[sock] = port
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self.address, port))
        except OSError as error:
            raise TangereError(
                f"{self.address}:{port}: {error.strerror}; another virtual arm may be there, give --address 127.0.0.x"
            ) from None
        sock.listen(16)
        sock.setblocking(False)

    def stop(self) -> None:
        """End `serve` after the frame that runs."""
        self._stopping = True

    def close(self) -> None:
        """Every port, connection and other face."""
        while self.faces:
            self.faces.pop().close()
        for connection in self._connections:
            connection.sock.close()
        for sock in self._listeners:
            sock.close()
        self._connections, self._listeners = [], {}
        self._sockets.close_all()

    def serve(self, until: Callable[[], bool] = lambda: False) -> None:
        """Frames until `stop`, or until the function says so."""
        period = self.controller.frame
        due = time.perf_counter() + period
        stepped = time.perf_counter()
        while not self._stopping and not until():
            now = time.perf_counter()
            if self.clock == "real" or self._idle():
                wait = due - now
            elif self.clock == "fast":
                wait = PATIENCE if self._full(now) else 0.0
            else:
                wait = 0.0 if self._all_sent() else min(stepped + self._patience - now, 0.5)
            self._exchange(max(wait, 0.0))
            now = time.perf_counter()
            if self.clock == "real" or self._idle():
                if now < due:
                    continue
                self.late += now - due > period
                if now - due > BEHIND:
                    self.dropped_time += now - due
                    due = now
                due += period
            elif self._full(now) if self.clock == "fast" else now - stepped < self._patience and not self._all_sent():
                continue
            else:
                due = now + period
            self.frame()
            stepped = time.perf_counter()

    def frame(self) -> None:
        """One frame and what every client is told of it."""
        c = self.controller
        playing = c.machine
        c.tick()
        if playing is not None and c.machine is not playing:
            self._sockets.close_all()
        self.frames += 1
        state = realtime = b""
        for connection in self._connections:
            if connection.rtde is not None:
                connection.rtde.fresh = False
                connection.send(connection.rtde.outputs())
            elif connection.port == REALTIME:
                realtime = realtime or self._realtime()
                connection.send(realtime)
            elif connection.port in (PRIMARY, SECONDARY) and self.frames % primary_port.EVERY == 0:
                state = state or primary_port.state(c)
                connection.send(state)
        for kind, text, line in self._notes:
            told = primary_port.note(c, kind, text, line)
            for connection in self._connections:
                if connection.port == PRIMARY:
                    connection.send(told)
        self._notes.clear()
        for face in self.faces:
            face.frame()

    def _said(self, kind: str, text: str, line: int) -> None:
        self._notes.append((kind, text, line))

    def _idle(self) -> bool:
        return not self._connections or (
            self.clock == "lockstep" and not any(c.rtde is not None and c.rtde.writes for c in self._connections)
        )

    def _all_sent(self) -> bool:
        return all(c.rtde.fresh for c in self._connections if c.rtde is not None and c.rtde.writes)

    def _full(self, now: float) -> bool:
        """Whether a client of RTDE has yet to take what was sent, and still reads."""
        return any(c.rtde is not None and c.waiting and now - c.took < STOPPED for c in self._connections)

    def _exchange(self, wait: float) -> None:
        """Take in what clients sent, waiting for the first for a while [s]."""
        full = [c for c in self._connections if c.waiting]
        watched: list[Connection | socket.socket] = [*self._listeners, *self._connections]
        ready, writable, _ = select.select(watched, full, [], wait)
        for connection in writable:
            connection.flush()
        for one in ready:
            if isinstance(one, Connection):
                self._read(one)
            else:
                self._accept(one)

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        if len(self._connections) >= CLIENTS:
            sock.close()
            return
        port = self._listeners[listener]
        connection = Connection(sock, READ_ONLY.get(port, port))
        if port == RTDE:
            connection.rtde = RtdePort(self.controller, self._owners)
            if self.clock == "fast":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, AHEAD)
        elif port == DASHBOARD:
            connection.desk = DashboardPort(self.controller)
            connection.send(connection.desk.greeting())
        else:
            connection.programs = None if port in READ_ONLY else Programs()
            if port != REALTIME and READ_ONLY.get(port) != REALTIME:
                connection.send(primary_port.introduction(self.controller))
        self._connections.append(connection)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        try:
            if connection.rtde is not None:
                connection.send(connection.rtde.feed(data))
            elif connection.desk is not None:
                connection.send(connection.desk.feed(data))
                if connection.desk.ended:
                    self._drop(connection)
            elif connection.programs is not None:
                for text in connection.programs.feed(data):
                    self.controller.upload(text)
        except ProtocolError as problem:
            self.controller.log(str(problem))
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            if connection.rtde is not None:
                connection.rtde.close()
            connection.sock.close()


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
