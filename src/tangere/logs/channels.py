"""Which ROS 2 message carries which columns of a log, and the bytes of many rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.logs import ros_messages
from tangere.logs.mcap_records import MESSAGE, MESSAGE_HEAD
from tangere.logs.ros_messages import Template
from tangere.types import Array

JOINT_STATE, WRENCH = "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"
COLUMNS = "std_msgs/msg/Float64MultiArray"
NOTES_TOPIC, NOTES = "/tangere/notes", "rcl_interfaces/msg/Log"

# topic -> field of sensor_msgs/JointState -> column; a column that the log does not have leaves its field empty
_JOINT_STATES: Mapping[str, Mapping[str, str]] = {
    "/joint_states": {"position": "q", "velocity": "qd", "effort": "tau"},
    "/tangere/reference": {"position": "q_des", "velocity": "qd_des"},
    "/tangere/command": {"effort": "tau_cmd"},
    "/tangere/truth": {"position": "q_true", "velocity": "qd_true", "effort": "tau_ext_true"},
}
_WRENCHES: Mapping[str, str] = {"/tangere/wrench": "wrench", "/tangere/wrench_true": "wrench_true"}


@dataclass(frozen=True)
class Channel:
    """One topic: its message, and which hole of the message takes which column."""

    topic: str
    type: str
    template: Template
    columns: Mapping[str, tuple[str, ...]]  # hole -> columns, side by side


def channels_of(columns: Mapping[str, int], joints: Sequence[str]) -> list[Channel]:
    """The channels for these columns (name -> k, 0 for a column (N,)); every column is in exactly one of them."""
    n, rest, channels = len(joints), dict(columns), []
    states = dict(_JOINT_STATES)
    states.update({f"/tangere/{name}": {"effort": name} for name in columns if name.startswith("residual")})
    for topic, fields in states.items():
        present = {part: (name,) for part, name in fields.items() if columns.get(name) == n and n > 0}
        if present:
            channels.append(Channel(topic, JOINT_STATE, ros_messages.joint_state(joints, list(present)), present))
            for (name,) in present.values():
                del rest[name]
    for topic, name in _WRENCHES.items():
        if columns.get(name) == 6:
            channels.append(Channel(topic, WRENCH, ros_messages.wrench_stamped("base"), {"wrench": (name,)}))
            del rest[name]
    template = ros_messages.multi_array({name: max(k, 1) for name, k in rest.items()})
    channels.append(Channel("/tangere/columns", COLUMNS, template, {"data": tuple(rest)}))
    return channels


class Encoder:
    """Rows of numbers into message records: one record of each channel per row, in turn."""

    def __init__(self, channels: Sequence[Channel], layout: Mapping[str, slice], numbers: Sequence[int]) -> None:
        names, formats, offsets = [], [], []
        self._fills: list[tuple[str, slice | list[int]]] = []  # field, columns of the row that go there
        self._stamps: list[tuple[str, str]] = []  # field, what is counted there
        self.numbers = tuple(numbers)
        self.starts = []  # offset of each channel's record within a row
        raw = bytearray()
        for number, channel in zip(numbers, channels, strict=True):
            self.starts.append(len(raw))
            data = channel.template.data
            raw += MESSAGE_HEAD.pack(MESSAGE, MESSAGE_HEAD.size - 9 + len(data), number, 0, 0, 0)
            head = {"sequence": (11, "<u4", 1), "log_time": (15, "<u8", 1), "publish_time": (23, "<u8", 1)}
            holes = {name: (at + MESSAGE_HEAD.size, f, k) for name, (at, f, k) in channel.template.holes.items()}
            for name, (at, fmt, count) in (head | holes).items():
                names.append(f"{number}.{name}")
                if name not in channel.columns:
                    self._stamps.append((names[-1], name))
                formats.append((fmt, (count,)) if fmt == "<f8" else fmt)
                offsets.append(self.starts[-1] + at)
            for hole, columns in channel.columns.items():
                places = [i for name in columns for i in range(layout[name].start, layout[name].stop)]
                self._fills.append((f"{number}.{hole}", _as_slice(places)))
            raw += data
        self.width = len(raw)
        self._row = np.frombuffer(bytes(raw), dtype=np.uint8)
        self._dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": self.width})

    def encode(self, rows: Array, ns: NDArray[np.int64], sequence: int) -> memoryview:
        """The bytes of the records of rows (k, width), log times ns (k,); sequence: number of the first row."""
        out = np.empty((len(rows), self.width), dtype=np.uint8)
        out[:] = self._row
        table = out.view(self._dtype)[:, 0]
        sec, nanosec = np.divmod(ns, 1_000_000_000)
        counter = np.arange(sequence, sequence + len(rows))
        values = {"sequence": counter, "log_time": ns, "publish_time": ns, "sec": sec, "nanosec": nanosec}
        for name, what in self._stamps:
            table[name] = values[what]
        for name, places in self._fills:
            table[name] = rows[:, places]
        return out.reshape(-1).data

    def index(self, ns: NDArray[np.int64]) -> dict[int, NDArray[np.uint64]]:
        """Per channel number the (log time, offset) of its records, if `encode` of these times begins at 0."""
        base = np.arange(len(ns), dtype=np.uint64) * np.uint64(self.width)
        times = ns.astype(np.uint64)
        starts = zip(self.numbers, self.starts, strict=True)
        return {number: np.stack([times, base + np.uint64(start)], axis=1) for number, start in starts}


def _as_slice(places: list[int]) -> slice | list[int]:
    """The same columns as a slice where they are neighbours: copied at once instead of one by one."""
    if places == list(range(places[0], places[0] + len(places))):
        return slice(places[0], places[0] + len(places))
    return places
