"""ROS 2 messages: their definitions, and templates that give the bytes of a thousand of them at once.

A message whose strings and array lengths never change differs from the next in its numbers only. So it is laid out once
as a template with holes (CDR, little endian), and a whole second of a run is the template repeated, its holes filled by
array assignment.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tangere.logs.ros_types import definition
from tangere.types import Array

# The first four bytes say: CDR, little endian, no options. Alignment counts from behind them.
CDR_LITTLE_ENDIAN = b"\x00\x01\x00\x00"

DEFINITIONS: Mapping[str, str] = {
    name: definition(name)
    for name in (
        "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/PoseStamped",
        "tf2_msgs/msg/TFMessage", "std_msgs/msg/String", "std_msgs/msg/Float64MultiArray",
        "std_msgs/msg/UInt8MultiArray", "rcl_interfaces/msg/Log",
    )
}  # fmt: skip


@dataclass
class Template:
    """Bytes of a message with holes: where each hole lies, its numpy format and how many numbers it takes."""

    data: bytearray = field(default_factory=lambda: bytearray(CDR_LITTLE_ENDIAN))
    holes: dict[str, tuple[int, str, int]] = field(default_factory=dict)  # name -> offset, format, count

    def _align(self, size: int) -> None:
        self.data.extend(b"\x00" * (-(len(self.data) - len(CDR_LITTLE_ENDIAN)) % size))

    def number(self, fmt: str, value: int) -> None:
        """A constant: "<I", "<i" or "<B"."""
        self._align(struct.calcsize(fmt))
        self.data.extend(struct.pack(fmt, value))

    def string(self, text: str) -> None:
        """A constant string: length with its closing zero, then the bytes."""
        raw = text.encode() + b"\x00"
        self.number("<I", len(raw))
        self.data.extend(raw)

    def hole(self, name: str, fmt: str, count: int = 1) -> None:
        """`count` numbers to be filled in."""
        size = int(fmt[-1])
        self._align(size)
        self.holes[name] = (len(self.data), fmt, count)
        self.data.extend(bytes(size * count))

    def sequence(self, name: str, count: int) -> None:
        """A float64[] of fixed length; an empty one has no elements to be aligned."""
        self.number("<I", count)
        if count:
            self.hole(name, "<f8", count)

    def header(self, frame_id: str, which: str = "") -> None:
        """std_msgs/Header with holes for the stamp; which: put before their names where a message has several."""
        self.hole(f"{which}sec", "<i4")
        self.hole(f"{which}nanosec", "<u4")
        self.string(frame_id)

    def dimensions(self, columns: Mapping[str, int]) -> None:
        """std_msgs/MultiArrayLayout of columns that lie side by side, each a dimension with its name and size.

        (The stride of a dimension is its size too: the columns do not span a product.)
        """
        self.number("<I", len(columns))
        for name, size in columns.items():
            self.string(name)
            self.number("<I", size)
            self.number("<I", size)
        self.number("<I", 0)


def joint_state(names: Sequence[str], filled: Sequence[str]) -> Template:
    """sensor_msgs/JointState; filled: which of position, velocity, effort have numbers (the others are empty)."""
    message = Template()
    message.header("")
    message.number("<I", len(names))
    for name in names:
        message.string(name)
    for part in ("position", "velocity", "effort"):
        message.sequence(part, len(names) if part in filled else 0)
    return message


def stamped(frame_id: str, hole: str, count: int) -> Template:
    """A header and numbers: WrenchStamped (6), PoseStamped (7: x y z [m], then the quaternion x y z w)."""
    message = Template()
    message.header(frame_id)
    message.hole(hole, "<f8", count)
    return message


def transforms(frames: Sequence[tuple[str, str]]) -> Template:
    """tf2_msgs/TFMessage of (parent, child) frames; hole `transform.CHILD`: x y z [m], then the quaternion x y z w."""
    message = Template()
    message.number("<I", len(frames))
    for parent, child in frames:
        message.header(parent, f"{child}.")
        message.string(child)
        message.hole(f"transform.{child}", "<f8", 7)
    return message


def multi_array(columns: Mapping[str, int]) -> Template:
    """std_msgs/Float64MultiArray: columns one after the other in `data`, named by its layout."""
    message = Template()
    message.dimensions(columns)
    message.sequence("data", sum(columns.values()))
    return message


def bytes_array(sizes: Mapping[str, int], data: bytes) -> bytes:
    """std_msgs/UInt8MultiArray, the whole message."""
    message = Template()
    message.dimensions(sizes)
    message.number("<I", len(data))
    return bytes(message.data) + data


def text(data: str) -> bytes:
    """std_msgs/String, the whole message."""
    message = Template()
    message.string(data)
    return bytes(message.data)


def note(ns: int, said: str, time: float) -> bytes:
    """rcl_interfaces/Log at level INFO, the whole message; `function` holds the time [s], which ns have rounded."""
    message = Template()
    message.number("<i", ns // 1_000_000_000)
    message.number("<I", ns % 1_000_000_000)
    message.number("<B", 20)
    for string in ("tangere", said, "", repr(float(time))):
        message.string(string)
    message.number("<I", 0)
    return bytes(message.data)


class Parts:
    """Reads the fields of a message that was not laid out beforehand, one after the other."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data
        self.at = len(CDR_LITTLE_ENDIAN)

    def number(self, fmt: str) -> int:
        """An integer: "<I", "<i" or "<B"."""
        size = struct.calcsize(fmt)
        self.at += -(self.at - len(CDR_LITTLE_ENDIAN)) % size + size
        return int(struct.unpack_from(fmt, self.data, self.at - size)[0])

    def string(self) -> str:
        """A string; its closing zero is left out."""
        length = self.number("<I")
        self.at += length
        return bytes(self.data[self.at - length : self.at - 1]).decode()

    def dimensions(self) -> dict[str, int]:
        """std_msgs/MultiArrayLayout as name -> size."""
        sizes = {}
        for _ in range(self.number("<I")):
            name = self.string()
            sizes[name] = self.number("<I")
            self.number("<I")
        self.number("<I")
        return sizes


def note_parts(data: bytes | memoryview) -> tuple[str, float]:
    """Text and time [s] of a note."""
    parts = Parts(data)
    for fmt in ("<i", "<I", "<B"):  # stamp and level
        parts.number(fmt)
    _, said, _, time = (parts.string() for _ in range(4))
    return said, float(time)


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
