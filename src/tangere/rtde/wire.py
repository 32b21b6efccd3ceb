"""RTDE as bytes: packages, types, recipes, and the texts of both directions. No socket in here.

A package is `uint16 size` (itself and the type included), `uint8 type`, payload; big endian. A controller streams one
output recipe per connection and takes any number of input recipes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from tangere.errors import TangereError

PORT = 30004
LISTED = 2048  # [bytes] a controller takes no longer list of names


class ProtocolError(TangereError):
    """Bytes that are not RTDE, or an answer that does not fit its question."""


class Kind(IntEnum):
    """Types of packages; each answer has the type of its question."""

    VERSION = ord("V")  # which protocol
    CONTROLLER = ord("v")  # version of the controller's software
    TEXT = ord("M")
    DATA = ord("U")
    OUTPUTS = ord("O")  # set up what is streamed
    INPUTS = ord("I")  # set up what is sent
    START = ord("S")
    PAUSE = ord("P")
    PROPERTIES = ord("R")  # newer controllers: constants by name


# RTDE's name of a type -> letters of struct
TYPES: dict[str, str] = {
    "BOOL": "?", "UINT8": "B", "UINT32": "I", "UINT64": "Q", "INT32": "i", "DOUBLE": "d",
    "VECTOR3D": "3d", "VECTOR6D": "6d", "VECTOR6INT32": "6i", "VECTOR6UINT32": "6I",
}  # fmt: skip
NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"  # answers in place of a type

Value = bool | int | float | tuple[float, ...] | tuple[int, ...]


def package(kind: int, payload: bytes = b"") -> bytes:
    """One package, ready to be sent."""
    return struct.pack(">HB", len(payload) + 3, kind) + payload


class Packages:
    """Cuts a stream of bytes into packages, however it was torn into pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Type and payload of every package that is whole by now; ProtocolError for a size below its own head."""
        self._rest += data
        while len(self._rest) >= 3:
            size, kind = struct.unpack_from(">HB", self._rest)
            if size < 3:
                raise ProtocolError(f"a package cannot have {size} bytes")
            if len(self._rest) < size:
                return
            payload, self._rest = self._rest[3:size], self._rest[size:]
            yield kind, payload


@dataclass(frozen=True, slots=True)
class Recipe:
    """Fields that travel together, in their order. number 0: none was set up."""

    number: int
    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Names that the controller does not know, or that somebody else holds (inputs)."""
        return tuple(n for n, t in zip(self.names, self.types, strict=True) if t not in TYPES)

    @property
    def width(self) -> int:
        """Bytes of the values, without the recipe's number."""
        return _layout(self.types)[0].size

    def pack(self, values: Sequence[Value]) -> bytes:
        """Bytes of the values, in the recipe's order, without its number."""
        flat: list[float | int | bool] = []
        for value in values:
            if isinstance(value, bool | int | float):
                flat.append(value)
            else:
                flat.extend(value)
        return _layout(self.types)[0].pack(*flat)

    def values(self, payload: bytes) -> list[Value]:
        """Values in the recipe's order; bytes beyond it are passed over."""
        layout, places = _layout(self.types)
        if len(payload) < layout.size:
            raise ProtocolError(f"{len(payload)} bytes of data, the recipe has {layout.size}")
        flat = layout.unpack_from(payload)
        return [flat[place] for place in places]

    def unpack(self, payload: bytes) -> dict[str, Value]:
        """Values by name."""
        return dict(zip(self.names, self.values(payload), strict=True))


@cache
def _layout(types: tuple[str, ...]) -> tuple[struct.Struct, tuple[int | slice, ...]]:
    """How the values lie in the bytes, and where each field's values stand among the numbers."""
    places: list[int | slice] = []
    k = 0
    for kind in types:
        count = int(TYPES[kind][0]) if TYPES[kind][0].isdigit() else 0
        places.append(slice(k, k + count) if count else k)
        k += count or 1
    return struct.Struct(">" + "".join(TYPES[kind] for kind in types)), tuple(places)


def names_of(text: bytes) -> tuple[str, ...]:
    """A comma separated list; blanks and a trailing comma are usual."""
    words = (word.strip() for word in text.decode("ascii", "replace").split(","))
    return tuple(word for word in words if word)


def listed(names: Sequence[str]) -> bytes:
    """The list as it is sent."""
    text = ",".join(names).encode()
    if len(text) > LISTED:
        raise ProtocolError(f"the list of fields has {len(text)} bytes, a controller takes {LISTED}")
    return text


def outputs_request(names: Sequence[str], frequency: float, protocol: int) -> bytes:
    """Ask for these fields; frequency [Hz] is said from protocol 2 on."""
    return package(Kind.OUTPUTS, (struct.pack(">d", frequency) if protocol >= 2 else b"") + listed(names))


def read_outputs_request(payload: bytes, protocol: int) -> tuple[float, tuple[str, ...]]:
    """Frequency [Hz] (0: none was said) and names that a client asks for."""
    if protocol < 2:
        return 0.0, names_of(payload)
    if len(payload) < 8:
        raise ProtocolError("a request for outputs without its frequency")
    return struct.unpack_from(">d", payload)[0], names_of(payload[8:])


def inputs_request(names: Sequence[str]) -> bytes:
    """Ask to send these fields."""
    return package(Kind.INPUTS, listed(names))


def recipe_answer(kind: Kind, recipe: Recipe, protocol: int) -> bytes:
    """A controller's answer to a request for outputs or inputs."""
    number = bytes([recipe.number]) if protocol >= 2 or kind == Kind.INPUTS else b""
    return package(kind, number + ",".join(recipe.types).encode())


def read_recipe(kind: Kind, names: Sequence[str], payload: bytes, protocol: int) -> Recipe:
    """The recipe that a controller answered."""
    number = 1
    if protocol >= 2 or kind == Kind.INPUTS:
        if not payload:
            raise ProtocolError("an empty answer to a request for fields")
        number, payload = payload[0], payload[1:]
    types = names_of(payload)
    if len(types) != len(names):
        raise ProtocolError(f"{len(names)} fields were asked for, {len(types)} were answered")
    unknown = [t for t in types if t not in TYPES and t not in (NOT_FOUND, IN_USE)]
    if unknown:
        raise ProtocolError(f"the controller answered a type that is not known: {unknown[0][:40]}")
    return Recipe(number, tuple(names), types)


def data(recipe: Recipe, values: Sequence[Value], protocol: int = 2, *, output: bool = False) -> bytes:
    """A package of values. The outputs of protocol 1 do not carry the recipe's number."""
    head = b"" if output and protocol < 2 else bytes([recipe.number])
    return package(Kind.DATA, head + recipe.pack(values))


LEVELS = ("exception", "error", "warning", "info")


def text(message: str, source: str, level: int, protocol: int) -> bytes:
    """A message for people; level: index of LEVELS."""
    said = message.encode()[:255]
    if protocol < 2:
        return package(Kind.TEXT, bytes([level]) + said)
    by = source.encode()[:255]
    return package(Kind.TEXT, bytes([len(said)]) + said + bytes([len(by)]) + by + bytes([level]))


def read_text(payload: bytes, protocol: int) -> tuple[str, str, int]:
    """Message, source and level of a message; what is cut short reads as it is."""
    if protocol < 2:
        return payload[1:].decode("utf-8", "replace"), "", payload[0] if payload else 3
    said, rest = _counted(payload)
    by, rest = _counted(rest)
    return said, by, rest[0] if rest else 3


def _counted(payload: bytes) -> tuple[str, bytes]:
    size = payload[0] if payload else 0
    return payload[1 : 1 + size].decode("utf-8", "replace"), payload[1 + size :]


def version_request(protocol: int) -> bytes:
    """Ask for a protocol; the answer is one bool."""
    return package(Kind.VERSION, struct.pack(">H", protocol))


def read_controller(payload: bytes) -> tuple[int, int, int, int]:
    """Version of the controller's software."""
    if len(payload) < 16:
        raise ProtocolError("a version of less than 16 bytes")
    return struct.unpack_from(">4I", payload)


def controller_answer(version: Sequence[int]) -> bytes:
    """A controller's answer to the question for its version."""
    return package(Kind.CONTROLLER, struct.pack(">4I", *version))


def accepted(kind: Kind, yes: bool) -> bytes:
    """A controller's answer yes or no (protocol, start, pause)."""
    return package(kind, b"\x01" if yes else b"\x00")
