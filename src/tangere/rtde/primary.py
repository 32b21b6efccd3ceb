"""The primary interface of a controller (ports 30001, 30002): state packages, messages, the factory calibration.

A message is `int32 size` (itself included), `uint8 type`, content; big endian. Of a state message (type 16) the parts
are `int32 size, uint8 type, content` again. Written for both sides: what a controller packs, a client reads.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tangere.errors import InvalidValue, PlantLost
from tangere.model.frames import inverse, rotation_rpy, transform
from tangere.model.loading import names
from tangere.robots import Robot
from tangere.rtde.client import WAIT, connect
from tangere.rtde.wire import ProtocolError
from tangere.types import Array

PORT = 30001
MESSAGE_BYTES = 1 << 20  # [bytes] of one message: a real one has some thousand
# robot type of the configuration -> name without the series
MODELS = {1: "UR5", 2: "UR10", 3: "UR3", 4: "UR16", 5: "UR18", 6: "UR8Long", 7: "UR20", 8: "UR30", 9: "UR15"}


class Kind(IntEnum):
    """Types of messages."""

    STATE = 16
    ROBOT = 20
    PROGRAM = 25


class Part(IntEnum):
    """Parts of a state message."""

    MODE = 0
    JOINTS = 1
    TOOL = 2
    BOARD = 3
    CARTESIAN = 4
    KINEMATICS = 5
    CONFIGURATION = 6
    FORCE = 7
    ADDITIONAL = 8


class Note(IntEnum):
    """Kinds of robot messages."""

    TEXT = 0
    VERSION = 3
    SAFETY = 5
    ERROR = 6
    KEY = 7
    EXCEPTION = 10


class Messages:
    """Cuts a stream of bytes into messages, however it was torn into pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Type and content of every message that is whole by now."""
        self._rest += data
        while len(self._rest) >= 5:
            size, kind = struct.unpack_from(">iB", self._rest)
            if not 5 <= size <= MESSAGE_BYTES:
                raise ProtocolError(f"a message cannot have {size} bytes")
            if len(self._rest) < size:
                return
            content, self._rest = self._rest[5:size], self._rest[size:]
            yield kind, content


def message(kind: int, content: bytes) -> bytes:
    """One message, or one part of a state."""
    return struct.pack(">iB", len(content) + 5, kind) + content


def parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The parts of a state message."""
    cut = Messages()
    yield from cut.feed(content)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Standard DH parameters of one arm as its controller has them (angles [rad], lengths [m]), joint by joint."""

    theta: tuple[float, ...]
    a: tuple[float, ...]
    d: tuple[float, ...]
    alpha: tuple[float, ...]
    checksum: tuple[int, ...] = (0,) * 6
    status: int = 1

    @classmethod
    def read(cls, content: bytes) -> Calibration:
        """From the kinematics part; documents say that its status has one byte, controllers send four."""
        if len(content) < 216:
            raise ProtocolError(f"kinematics of {len(content)} bytes, 216 at least")
        numbers = struct.unpack_from(">6I24d", content)
        status = int.from_bytes(content[216:220], "big")
        rows = [tuple(numbers[6 + 6 * k : 12 + 6 * k]) for k in range(4)]
        return cls(rows[0], rows[1], rows[2], rows[3], tuple(numbers[:6]), status)

    def flange(self, q: Sequence[float]) -> Array:
        """Where it is at these angles [rad]: T (4, 4) in base axes."""
        T = np.eye(4)
        for turn, theta, a, d, alpha in zip(q, self.theta, self.a, self.d, self.alpha, strict=True):
            T = T @ transform(rotation_rpy(0.0, 0.0, turn + theta, snap=False), (0.0, 0.0, d))
            T = T @ transform(rotation_rpy(alpha, 0.0, 0.0, snap=False), (a, 0.0, 0.0))
        return T

    def pack(self) -> bytes:
        """The kinematics part, as a controller sends it."""
        numbers = (*self.checksum, *self.theta, *self.a, *self.d, *self.alpha)
        return message(Part.KINEMATICS, struct.pack(">6I24dI", *numbers, self.status))


@dataclass(frozen=True, slots=True)
class Configuration:
    """What kind of arm the controller drives, and its nominal geometry."""

    robot_type: int
    subtype: int
    a: tuple[float, ...]
    d: tuple[float, ...]
    alpha: tuple[float, ...]
    theta: tuple[float, ...]

    @property
    def model(self) -> str:
        """UR5, UR10 ...; CB3 and e-Series have the same numbers."""
        return MODELS.get(self.robot_type, f"robot type {self.robot_type}")

    @classmethod
    def read(cls, content: bytes) -> Configuration:
        """From the configuration part: limits (24 doubles), defaults (5), DH (24), then four int32."""
        layout = struct.Struct(">53d4i")
        if len(content) < layout.size:
            raise ProtocolError(f"configuration of {len(content)} bytes, {layout.size} at least")
        numbers = layout.unpack_from(content)
        rows = [tuple(numbers[29 + 6 * k : 35 + 6 * k]) for k in range(4)]
        return cls(numbers[55], numbers[56], *rows)


def pack_configuration(
    configuration: Configuration, limits: Sequence[float], box_type: int, masterboard: int = 5
) -> bytes:
    """The configuration part; limits: 12 positions, 12 speeds and accelerations, v/a joint, v/a tool, radius."""
    dh = (*configuration.a, *configuration.d, *configuration.alpha, *configuration.theta)
    tail = (masterboard, box_type, configuration.robot_type, configuration.subtype)
    return message(Part.CONFIGURATION, struct.pack(">53d4i", *limits, *dh, *tail))


def read_version(content: bytes) -> tuple[str, tuple[int, int, int, int]]:
    """Name and version from a robot message; what comes first on every connection."""
    if len(content) < 11 or content[9] != Note.VERSION:
        raise ProtocolError("the first message of a controller tells its version")
    size = content[10]
    layout = struct.Struct(">BBii")
    if len(content) < 11 + size + layout.size:
        raise ProtocolError("a version that ends early")
    return content[11 : 11 + size].decode("utf-8", "replace"), layout.unpack_from(content, 11 + size)


def pack_version(time_us: int, name: str, version: Sequence[int], date: str) -> bytes:
    """The version message, as a controller sends it."""
    said = name.encode()
    head = struct.pack(">QbB", time_us, -1, Note.VERSION) + bytes([len(said)]) + said
    return message(Kind.ROBOT, head + struct.pack(">BBii", *version) + date.encode())


@dataclass(frozen=True, slots=True)
class Told:
    """What a controller says of itself when somebody connects."""

    name: str
    version: tuple[int, int, int, int] | None
    configuration: Configuration | None
    calibration: Calibration | None


def introduction(host: str, port: int = PORT, wait: float = WAIT) -> Told:
    """Listen on the primary interface until version, configuration and calibration were told, or `wait` [s] is over."""
    told: dict[str, object] = {}
    name = ""
    cut = Messages()
    deadline = time.monotonic() + wait
    with connect(host, port, wait) as sock:
        while len(told) < 3 and (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                chunk = sock.recv(1 << 16)
            except TimeoutError:
                break
            except OSError as error:
                raise PlantLost(f"{host}:{port}: {error.strerror or error}") from None
            if not chunk:
                break
            for kind, content in cut.feed(chunk):
                if kind == Kind.ROBOT and len(content) > 9 and content[9] == Note.VERSION:
                    name, told["version"] = read_version(content)
                for part, inner in parts(content) if kind == Kind.STATE else ():
                    if part == Part.KINEMATICS:
                        told["calibration"] = Calibration.read(inner)
                    elif part == Part.CONFIGURATION:
                        told["configuration"] = Configuration.read(inner)
    return Told(name, told.get("version"), told.get("configuration"), told.get("calibration"))  # type: ignore[arg-type]


# Arms whose controllers tell the number of the arm that they were made from
_MADE_FROM = {"ur7e": "ur5e", "ur12e": "ur10e"}
# [m] between the flange by a model of its own name and by the controller's calibration, beyond which it is another arm:
# a calibration moves it by some millimetres, UR3 and UR3e differ by 26 in this posture, other pairs by more.
ANOTHER, POSTURE = 0.02, (0.3, -1.2, 1.1, -0.9, -1.0, 0.5)


def another_arm(told: Told, robot: Robot) -> str:
    """The arm that the controller drives, where it is not that one; "" where it is, or nobody can say.

    A UR is known by its name; an arm by a name of its own by where its flange would be.
    """
    name, says = robot.name.lower(), "" if told.configuration is None else arm_name(told)
    if re.fullmatch(r"ur\d+(e|long)?", name):
        return "" if says in (name, _MADE_FROM.get(name)) else says
    if told.calibration is None or robot.dof != len(POSTURE):
        return ""
    ours = robot.pose(np.array(POSTURE)) @ inverse(robot.model.T_flange_tcp)
    off = float(np.linalg.norm(ours[:3, 3] - told.calibration.flange(POSTURE)[:3, 3]))
    return (says or "arm of another geometry") if off > ANOTHER else ""


def refuse_another(host: str, robot: Robot) -> None:
    """InvalidValue where the arm there is another one by its own controller: gravity, limits, moves would be wrong.

    Where that port is closed nobody can say.
    """
    try:
        says = another_arm(introduction(host, wait=3.0), robot)
    except (PlantLost, ProtocolError):
        return
    if says:
        told = f"{host} is a {says} by its own controller, and {robot.name} was given"
        raise InvalidValue(f"{told}: give that arm, or the address that was meant")


def arm_name(told: Told) -> str:
    """The name under which we know the arm that the controller says it drives."""
    if told.configuration is None:
        raise PlantLost("the controller did not say which arm it drives; give --robot")
    name = told.configuration.model.lower()
    known, old = names(), told.version is not None and told.version[0] < 5  # CB3: a UR5 is a ur5, not a ur5e
    lone = name in known and not older(name)  # of the large ones there is one series
    return name if old or lone else f"{name}e"


def older(arm: str) -> bool:
    """Whether it is one of CB3, whose name an e-Series arm has with an e. PolyScope 3 drives those alone."""
    return f"{arm}e" in names()


def told_name(arm: str) -> str:
    """The name by which the controller of an arm of ours speaks of it: without the series. Turned round: arm_name."""
    name = _MADE_FROM.get(arm.lower(), arm.lower()).removesuffix("e")
    return next((model for model in MODELS.values() if model.lower() == name), arm.upper())
