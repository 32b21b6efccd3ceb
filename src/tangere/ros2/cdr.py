"""Messages as bytes: plain CDR (XCDR1), aligned to 8 bytes at most, counted from behind the four bytes of its head.

Written little endian, read in either order. Whatever bytes come in: a message or a MessageError.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.ros_messages import CDR_LITTLE_ENDIAN
from tangere.logs.ros_types import PRIMITIVES, Field
from tangere.ros2.interfaces import Interfaces

CDR_BIG_ENDIAN = b"\x00\x00"
_SIZES = {name: struct.calcsize("<" + code) for name, code in PRIMITIVES.items()}


class MessageError(InvalidValue):
    """Bytes that are no message of the type, or values that do not fit into one."""


class Message(SimpleNamespace):
    """A message: its fields as attributes, those of nested messages as messages. Numbers of a sequence are an array."""


class Codec:
    """Encodes and decodes the types of a distribution. Fields that a message does not have are zero or empty."""

    def __init__(self, interfaces: Interfaces) -> None:
        self.interfaces = interfaces

    def encode(self, name: str, message: Message | Mapping[str, Any], head: bytes = b"") -> bytes:
        """The bytes of a message; head: what a service puts before it (16 bytes)."""
        out = bytearray(head)
        try:
            self._put(out, name, message)
        except (TypeError, ValueError, OverflowError, struct.error, AttributeError, UnicodeError) as problem:
            if isinstance(problem, MessageError):
                raise
            raise MessageError(f"{name}: a value does not fit: {problem}") from None
        return CDR_LITTLE_ENDIAN + bytes(out) + bytes(-len(out) % 4)

    def decode(self, name: str, data: bytes | memoryview) -> Message:
        """The message in these bytes."""
        return self.decode_service(name, data, "")[1]

    def decode_service(self, name: str, data: bytes | memoryview, head: str = "Qq") -> tuple[Any, Message]:
        """The numbers before a message, by their codes (of a service: client and sequence number), and the message."""
        order = {CDR_LITTLE_ENDIAN[:2]: "<", CDR_BIG_ENDIAN: ">"}.get(bytes(data[:2]))
        if order is None or len(data) < 4:
            raise MessageError(f"{name}: not plain CDR, begins with {bytes(data[:4]).hex() or 'nothing'}")
        cursor = _Cursor(memoryview(data)[4:], order, name)
        first = tuple(cursor.number(code, 8) for code in head)
        return first, self._get(cursor, name)

    def _put(self, out: bytearray, name: str, message: Any) -> None:
        values = message if isinstance(message, Mapping) else vars(message)
        fields = self.interfaces.fields(name)
        if foreign := values.keys() - {field.name for field in fields}:
            raise MessageError(f"{name} has no field {min(foreign)!r}; it has {', '.join(f.name for f in fields)}")
        for field in fields:
            value = values.get(field.name)
            if field.many == "one":
                self._put_one(out, field, _empty(field) if value is None else value)
            else:
                self._put_many(out, name, field, value)

    def _put_many(self, out: bytearray, name: str, field: Field, given: Any) -> None:
        empty: list[Any] = [_empty(field)] * field.capacity if field.many == "array" else []
        value = empty if given is None else given
        count = len(value)
        wrong = count != field.capacity if field.many == "array" else field.many == "bounded" and count > field.capacity
        if wrong:
            raise MessageError(f"{name}.{field.name}: {field.capacity} values, got {count}")
        if field.many != "array":
            out += bytes(-len(out) % 4) + struct.pack("<I", count)
        if field.base in PRIMITIVES:
            if count:
                out += bytes(-len(out) % _SIZES[field.base])
            if isinstance(value, bytes | bytearray | memoryview):
                if _SIZES[field.base] != 1:
                    raise MessageError(f"{name}.{field.name}: numbers, not bytes")
                out += value
            else:
                out += _numbers(value, _dtype(field.base, "<")).tobytes()
        else:
            for entry in value:
                self._put_one(out, field, entry)

    def _put_one(self, out: bytearray, field: Field, value: Any) -> None:
        if field.base == "string":
            text = value.encode() + b"\x00"
            if 0 < field.string_capacity < len(text) - 1:
                raise MessageError(f"{field.name}: {field.string_capacity} characters at most, got {len(text) - 1}")
            out += bytes(-len(out) % 4) + struct.pack("<I", len(text)) + text
        elif field.nested:
            self._put(out, field.base, value)
        else:
            out += bytes(-len(out) % _SIZES[field.base]) + struct.pack("<" + PRIMITIVES[field.base], value)

    def _get(self, cursor: _Cursor, name: str) -> Message:
        message = Message()
        for field in self.interfaces.fields(name):
            setattr(message, field.name, self._get_field(cursor, field))
        return message

    def _get_field(self, cursor: _Cursor, field: Field) -> Any:
        if field.many == "one":
            return self._get_one(cursor, field)
        count = field.capacity if field.many == "array" else cursor.number("I", 4)
        if field.many == "bounded" and count > field.capacity:
            raise MessageError(f"{cursor.name}: {field.name} has {count} entries, {field.capacity} at most")
        if field.base in PRIMITIVES:
            return cursor.numbers(field.base, count)
        if count > cursor.left:  # each has a byte at least: a count without measure costs nothing
            raise cursor.short()
        return [self._get_one(cursor, field) for _ in range(count)]

    def _get_one(self, cursor: _Cursor, field: Field) -> Any:
        if field.base == "string":
            return cursor.string()
        if field.nested:
            return self._get(cursor, field.base)
        return cursor.number(PRIMITIVES[field.base], _SIZES[field.base])


class _Cursor:
    """Where the next value is read."""

    def __init__(self, data: memoryview, order: str, name: str) -> None:
        self._data, self._order, self.name, self._at = data, order, name, 0

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def number(self, code: str, size: int) -> Any:
        at = self._at + -self._at % size
        self._at = at + size
        try:
            return struct.unpack_from(self._order + code, self._data, at)[0]
        except struct.error:
            raise self.short() from None

    def numbers(self, base: str, count: int) -> Any:
        size = _SIZES[base]
        if count:
            self._at += -self._at % size
        if count * size > self.left:
            raise self.short()
        found = np.frombuffer(self._data, _dtype(base, self._order), count, self._at) if count else np.zeros(0)
        self._at += count * size
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def string(self) -> str:
        length = self.number("I", 4)
        if length > self.left:
            raise self.short()
        raw = bytes(self._data[self._at : self._at + length])
        self._at += length
        try:
            return raw.removesuffix(b"\x00").decode()
        except UnicodeDecodeError:
            raise MessageError(f"{self.name}: a text that is no UTF-8") from None

    def short(self) -> MessageError:
        """The error for bytes that are too few."""
        return MessageError(f"{self.name}: the bytes end before the message does")


def _dtype(base: str, order: str) -> np.dtype[Any]:
    return np.dtype("u1" if base == "bool" else order + PRIMITIVES[base])


def _numbers(given: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers as the type has them; whole numbers beyond its range and fractions in whole numbers are refused."""
    values = np.asarray(given)
    if not values.size:
        return np.zeros(0, dtype)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or (values.dtype.kind == "f" and dtype.kind != "f"):
        raise MessageError(f"numbers of {dtype.name} in one row, got {values.dtype.name} {values.shape}")
    if dtype.kind in "iu":
        about = np.iinfo(dtype)
        if values.min() < about.min or values.max() > about.max:
            raise MessageError(f"numbers of {dtype.name}, {about.min} to {about.max}")
    return values.astype(dtype)


def _empty(field: Field) -> Any:
    return "" if field.base == "string" else {} if field.nested else 0
