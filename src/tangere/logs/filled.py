"""A message whose lengths never change, sent often: laid out once, its numbers filled in each time."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from tangere.logs.ros_messages import Template
from tangere.types import Array

_STAMP = struct.Struct("<iI")


class Filled:
    """The bytes of a template with its holes filled; some microseconds for each."""

    def __init__(self, template: Template) -> None:
        self._data = bytearray(template.data) + bytes(-len(template.data) % 4)
        self._stamps = [at for name, (at, _, _) in template.holes.items() if name.rpartition(".")[2] == "sec"]
        self._numbers = {
            name: np.frombuffer(self._data, fmt, count, at)
            for name, (at, fmt, count) in template.holes.items()
            if fmt == "<f8"
        }

    def bytes(self, ns: int, numbers: Mapping[str, Array]) -> bytes:
        """The message with this stamp [ns since 1970] and these numbers, by the names of the holes."""
        for at in self._stamps:
            _STAMP.pack_into(self._data, at, ns // 1_000_000_000, ns % 1_000_000_000)
        for name, values in numbers.items():
            self._numbers[name][:] = values
        return bytes(self._data)
