"""A connection to a controller's RTDE port, and how an arm's address is written."""

from __future__ import annotations

import ipaddress
import re
import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tangere.errors import InvalidValue, PlantLost
from tangere.rtde import wire
from tangere.rtde.wire import Kind, Recipe, Value

MANY = 64  # reads of 64 kB in one go, 10 s of every field: a controller on the fast clock never pauses
WAIT = 2.0  # [s] that an answer may take; a controller answers within a few frames of 2 ms


class Unreachable(PlantLost):
    """No connection to the arm; the message says what to look at."""


class InputsTaken(PlantLost):
    """Inputs that another client or a field bus holds; `names` lists them."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"{', '.join(names[:4])}{' ...' if len(names) > 4 else ''}: held by another client or a field bus "
            "(EtherNet/IP, PROFINET and some URCaps take registers 0 to 23 and the speed slider)"
        )
        self.names = tuple(names)


@dataclass(frozen=True, slots=True)
class Address:
    """Where an arm is."""

    host: str
    port: int = wire.PORT

    @property
    def loopback(self) -> bool:
        """Whether it is this computer."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


_URL = re.compile(r"rtde://(?P<host>\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+)(:(?P<port>\d+))?/?", re.ASCII)


def address(text: str) -> Address | None:
    """The arm that `rtde://HOST[:PORT]` or a bare IPv4 address names; None: it is something else, such as a file.

    A file of that name wins. InvalidValue for an address that begins well and is wrong.
    """
    if text.startswith("rtde://"):
        found = _URL.fullmatch(text)
        if found is None or not 0 < int(found["port"] or wire.PORT) < 65536:
            raise InvalidValue(f"{text[:80]!r} is not an arm's address; write rtde://HOST or rtde://HOST:PORT")
        return Address(found["host"].strip("[]"), int(found["port"] or wire.PORT))
    try:
        bare = str(ipaddress.IPv4Address(text))
    except ValueError:
        return None
    return None if Path(text).exists() else Address(bare)


def address_of(text: str) -> Address:
    """The arm that is meant; anything else is refused."""
    if text == "localhost":
        return Address("127.0.0.1")
    found = address(text)
    if found is None:
        raise InvalidValue(f"{text!r} is not an arm's address; write an IPv4 address or rtde://HOST[:PORT]")
    return found


def connect(host: str, port: int, wait: float = WAIT) -> socket.socket:
    """A connection without delay of small packages; Unreachable with what to look at."""
    try:
        sock = socket.create_connection((host, port), wait)
    except ConnectionRefusedError:
        why = "is this the arm's address? Its controller may still be booting, or the service is switched off "
        why += "(PolyScope: Settings, Security, Services)"
        if Address(host).loopback:  # this computer
            why = "is a virtual arm running? `tangere virtual ROBOT` (ur5e, ur10e ...) in another terminal starts one"
        raise Unreachable(f"nothing listens at {host}, port {port}: {why}") from None
    except TimeoutError:
        raise Unreachable(
            f"{host} does not answer on port {port} within {wait:g} s: is it switched on, same network?"
        ) from None
    except OSError as error:
        raise Unreachable(f"{host}:{port}: {error.strerror or error}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Rtde:
    """One RTDE connection. It only listens until `inputs` is called. A context manager.

    host, port: the controller; protocol: 2, or 1 where the controller refuses 2. `version` is that of its software.
    """

    def __init__(self, host: str, port: int = wire.PORT, *, wait: float = WAIT) -> None:
        self.host, self.port, self._wait = host, port, wait
        self._packages, self._data = wire.Packages(), deque[bytes]()
        self._answers = deque[tuple[int, bytes]]()
        self.texts = deque[tuple[str, str, int]](maxlen=100)  # message, source, level: the newest hundred
        self.recipe: Recipe | None = None
        self._sock = connect(host, port, wait)
        self.protocol = 2
        try:
            if self._ask(wire.version_request(2), Kind.VERSION)[:1] != b"\x01":
                self.protocol = 1
                if self._ask(wire.version_request(1), Kind.VERSION)[:1] != b"\x01":
                    raise Unreachable(f"{host}:{port} accepts neither protocol 2 nor 1 of RTDE")
            self.version = wire.read_controller(self._ask(wire.package(Kind.CONTROLLER), Kind.CONTROLLER))
        except wire.ProtocolError as problem:
            self.close()
            why = f"does not speak RTDE, which is port {wire.PORT}: {problem}"
            raise Unreachable(f"{host}, port {port}, {why}") from None
        except BaseException:
            self.close()
            raise

    def outputs(self, names: Sequence[str], frequency: float = 0.0) -> Recipe:
        """Set up what is streamed; frequency [Hz], 0: the controller's own. Unknown names: `Recipe.missing`."""
        asked = wire.outputs_request(names, frequency or (125.0 if self.version[0] < 5 else 500.0), self.protocol)
        self.recipe = wire.read_recipe(Kind.OUTPUTS, names, self._ask(asked, Kind.OUTPUTS), self.protocol)
        return self.recipe

    def known_outputs(self, names: Sequence[str], frequency: float = 0.0) -> Recipe:
        """The same without the names that this controller does not have."""
        recipe = self.outputs(names, frequency)
        if recipe.missing:
            recipe = self.outputs([name for name in names if name not in recipe.missing], frequency)
        return recipe

    def inputs(self, names: Sequence[str]) -> Recipe:
        """Set up what is sent; InputsTaken where somebody else holds one, InvalidValue where one does not exist."""
        recipe = wire.read_recipe(Kind.INPUTS, names, self._ask(wire.inputs_request(names), Kind.INPUTS), self.protocol)
        pairs = list(zip(recipe.names, recipe.types, strict=True))
        taken = [name for name, kind in pairs if kind == wire.IN_USE]
        if taken:
            raise InputsTaken(taken)
        if recipe.missing:
            raise InvalidValue(f"this controller has no input {', '.join(recipe.missing)}")
        return recipe

    def start(self) -> None:
        """Begin to stream."""
        if self._ask(wire.package(Kind.START), Kind.START)[:1] != b"\x01":
            raise wire.ProtocolError(f"{self.host} did not start: no outputs were set up")

    def pause(self) -> None:
        """Stop streaming."""
        self._ask(wire.package(Kind.PAUSE), Kind.PAUSE)

    def send(self, recipe: Recipe, values: Sequence[Value]) -> None:
        """Send values of an input recipe; PlantLost where the connection is gone."""
        self._send(wire.data(recipe, values))

    def receive(self, wait: float | None = None) -> dict[str, Value] | None:
        """The next values, in their order; None: nothing came within `wait` [s]. PlantLost: the connection ended."""
        if self.recipe is None:
            raise wire.ProtocolError("no outputs were set up")
        deadline = time.monotonic() + (self._wait if wait is None else wait)
        while not self._data:
            if not self._read(deadline):
                return None
        payload = self._data.popleft()
        if self.protocol >= 2:
            if payload[:1] != bytes([self.recipe.number]):
                return self.receive(wait)
            payload = payload[1:]
        return self.recipe.unpack(payload)

    def newest(self, wait: float | None = None) -> tuple[dict[str, Value] | None, int]:
        """The newest values that have arrived, else the next that come; and how many older ones were passed over."""
        passed_over = max(self.waiting - 1, 0)
        for _ in range(passed_over):
            self._data.popleft()
        return self.receive(wait), passed_over

    def round_trip(self) -> float:
        """[s] from a question (for the version) to its answer."""
        begin = time.perf_counter()
        self._ask(wire.package(Kind.CONTROLLER), Kind.CONTROLLER)
        return time.perf_counter() - begin

    @property
    def waiting(self) -> int:
        """Packages that have arrived and were not asked for yet."""
        for _ in range(MANY):
            if not self._read(0.0):
                break
        return len(self._data)

    def close(self) -> None:
        """End the connection; may be called twice."""
        self._sock.close()

    def fileno(self) -> int:
        """For select."""
        return self._sock.fileno()

    def __enter__(self) -> Rtde:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, what: bytes) -> None:
        try:
            self._sock.sendall(what)
        except OSError as error:
            raise PlantLost(f"the connection to {self.host} is gone: {error.strerror or error}") from None

    def _ask(self, what: bytes, kind: Kind) -> bytes:
        """Payload of the answer; data that stands between question and answer waits its turn."""
        self._send(what)
        deadline = time.monotonic() + self._wait
        while True:
            while self._answers:
                answered, payload = self._answers.popleft()
                if answered == kind:
                    return payload
            if not self._read(deadline):
                raise PlantLost(
                    f"{self.host}:{self.port} did not answer within {self._wait:g} s: is it a UR controller, and this "
                    f"its port of RTDE ({wire.PORT})?"
                )

    def _read(self, deadline: float) -> bool:
        """Take in what has arrived, waiting until the deadline for the first bytes; False: nothing came."""
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([self._sock], [], [], left)
        if not ready:
            return False
        try:
            chunk = self._sock.recv(1 << 16)
        except OSError as error:
            raise PlantLost(f"the connection to {self.host} is gone: {error.strerror or error}") from None
        if not chunk:
            raise PlantLost(f"{self.host} closed the connection")
        for kind, payload in self._packages.feed(chunk):
            if kind == Kind.DATA:
                self._data.append(payload)
            elif kind == Kind.TEXT:
                self.texts.append(wire.read_text(payload, self.protocol))
            else:
                self._answers.append((kind, payload))
        return True
