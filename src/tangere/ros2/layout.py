"""How a message would lie in the memory of a C program, in Cyclone DDS's codes: what it checks every sample against."""

from __future__ import annotations

import struct

from tangere.errors import InvalidValue
from tangere.logs.ros_types import PRIMITIVES, Field
from tangere.ros2.interfaces import Interfaces

_ADDRESS = 0x01000000  # a field: kind and kind of its entries beside it, then its place
_END = 0
_STRING, _BOUNDED_STRING, _SEQUENCE, _ARRAY, _STRUCT, _BOUNDED_SEQUENCE = 5, 6, 7, 8, 10, 11
_BOOL = 14
_BY_SIZE = {1: 1, 2: 2, 4: 3, 8: 4}
_POINTER, _SEQUENCE_SIZE = 8, 24  # [bytes]
SERVICE_HEAD = 16  # [bytes] client and sequence number before a request or a response


class Layout:
    """codes and size of a type. Members of a nested message are written out flat, those of sequences as a part."""

    def __init__(self, interfaces: Interfaces, name: str, service: bool = False) -> None:
        self._interfaces = interfaces
        self.codes: list[int] = []
        self._at = 0
        if service:
            for place in (0, 8):
                self.codes += [_ADDRESS | _BY_SIZE[8] << 16, place]
            self._at = SERVICE_HEAD
        self._add(name)
        self.size = max(8, self._placed(8))
        self.codes.append(_END)

    def _placed(self, alignment: int) -> int:
        self._at += -self._at % alignment
        return self._at

    def _field(self, kind: int, entries: int, alignment: int, size: int, *more: int) -> None:
        self.codes += [_ADDRESS | kind << 16 | entries << 8, self._placed(alignment), *more]
        self._at += size

    def _add(self, name: str) -> None:
        for field in self._interfaces.fields(name):
            if field.many == "one":
                self._one(field)
            elif field.many == "array":
                self._array(name, field)
            else:
                self._sequence(field)

    def _one(self, field: Field) -> None:
        if field.nested:
            self._placed(8)
            self._add(field.base)
            self._placed(8)
        elif field.base != "string":
            size = _size(field.base)
            self._field(_kind(field.base), 0, size, size)
        elif field.string_capacity:
            self._field(_BOUNDED_STRING, 0, 1, field.string_capacity + 1, field.string_capacity + 1)
        else:
            self._field(_STRING, 0, _POINTER, _POINTER)

    def _array(self, name: str, field: Field) -> None:
        if field.base not in PRIMITIVES:
            raise InvalidValue(f"{name}.{field.name}: arrays of fixed length are of numbers here")
        size = _size(field.base)
        self._field(_ARRAY, _kind(field.base), size, size * field.capacity, field.capacity)

    def _sequence(self, field: Field) -> None:
        kind = _BOUNDED_SEQUENCE if field.many == "bounded" else _SEQUENCE
        bound = [field.capacity] if field.many == "bounded" else []
        if field.nested:
            part = Layout(self._interfaces, field.base)
            first = 4 + len(bound)
            jump = (first + len(part.codes)) << 16 | first
            self._field(kind, _STRUCT, 8, _SEQUENCE_SIZE, *bound, part.size, jump, *part.codes)
        else:
            entries = _STRING if field.base == "string" else _kind(field.base)
            self._field(kind, entries, 8, _SEQUENCE_SIZE, *bound)


def _size(base: str) -> int:
    return struct.calcsize("<" + PRIMITIVES[base])


def _kind(base: str) -> int:
    return _BOOL if base == "bool" else _BY_SIZE[_size(base)]
