"""Which ROS 2 message carries which columns of a log, and the bytes of many rows at once.

Joint columns, the measured wrench and the numbers of a row go into one message of their topic per row: any ROS tool
plots them at full rate. Wide columns that no such message has a place for (poses, accelerations) go into one block per
chunk, whose bytes compress twice as well. What only an eye needs (frames, poses) is written 30 times a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.kinematics.rotation import (
    quaternion_from_matrix,
    quaternion_from_ypr,
    quaternion_product,
    quaternion_rotate,
)
from tangere.logs import ros_messages
from tangere.logs.mcap_records import MESSAGE, MESSAGE_HEAD
from tangere.logs.ros_messages import Template
from tangere.model.urdf_text import to_urdf
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.robots import Robot

JOINT_STATE, WRENCH = "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"
COLUMNS, BLOCK = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/UInt8MultiArray"
POSE, FRAMES, TEXT = "geometry_msgs/msg/PoseStamped", "tf2_msgs/msg/TFMessage", "std_msgs/msg/String"
NOTES_TOPIC, NOTES = "/tangere/notes", "rcl_interfaces/msg/Log"
BLOCKS_TOPIC, EVENTS_TOPIC = "/tangere/blocks", "/tangere/events"
VIEW_RATE = 30.0  # [1/s] messages that only an eye needs: a screen shows no more, and each costs some 100 bytes

# topic -> field of sensor_msgs/JointState -> column; a column that the log does not have leaves its field empty
_JOINT_STATES: Mapping[str, Mapping[str, str]] = {
    "/joint_states": {"position": "q", "velocity": "qd", "effort": "tau"},
    "/tangere/reference": {"position": "q_des", "velocity": "qd_des"},
    "/tangere/command": {"effort": "tau_cmd"},
    "/tangere/truth": {"position": "q_true", "velocity": "qd_true", "effort": "tau_ext_true"},
}
_BASE = "base"  # the frame of wrenches and poses: the controller's base frame, as in the URDF


@dataclass(frozen=True)
class Channel:
    """One topic: its message, and which hole of the message takes which column."""

    topic: str
    type: str
    template: Template
    columns: Mapping[str, tuple[str, ...]]  # hole -> columns, side by side


def channel_of(
    topic: str, kind: str, holes: Mapping[str, Sequence[str]], columns: Mapping[str, int], joints: Sequence[str]
) -> Channel:
    """The channel whose messages carry these columns: hole -> their names."""
    if kind == JOINT_STATE:
        template = ros_messages.joint_state(joints, list(holes))
    elif kind == WRENCH:
        template = ros_messages.stamped(_BASE, "wrench", 6)
    elif kind == COLUMNS:
        template = ros_messages.multi_array({name: max(columns[name], 1) for names in holes.values() for name in names})
    else:
        raise InvalidValue(f"{topic}: columns come as {JOINT_STATE}, {WRENCH} or {COLUMNS}, not as {kind}")
    return Channel(topic, kind, template, {hole: tuple(names) for hole, names in holes.items()})


def channels_of(columns: Mapping[str, int], joints: Sequence[str]) -> tuple[list[Channel], list[str]]:
    """Channels of one message per row for columns name -> k (0 for a column (N,)), and the columns left for blocks."""
    n, rest, channels = len(joints), dict(columns), []
    states = dict(_JOINT_STATES)
    states.update({f"/tangere/{name}": {"effort": name} for name in columns if name.startswith("residual")})
    for topic, fields in states.items():
        present = {part: (name,) for part, name in fields.items() if columns.get(name) == n and n > 0}
        if present:
            channels.append(channel_of(topic, JOINT_STATE, present, columns, joints))
            for (name,) in present.values():
                del rest[name]
    if columns.get("wrench") == 6:
        channels.append(channel_of("/tangere/wrench", WRENCH, {"wrench": ("wrench",)}, columns, joints))
        del rest["wrench"]
    numbers = [name for name, k in rest.items() if k == 0]
    channels.append(channel_of("/tangere/columns", COLUMNS, {"data": numbers}, columns, joints))
    return channels, [name for name, k in rest.items() if k > 0]


class Encoder:
    """Rows of numbers into message records: one record of each channel per row, in turn."""

    def __init__(self, channels: Sequence[Channel], layout: Mapping[str, slice], numbers: Sequence[int]) -> None:
        names, formats, offsets = [], [], []
        self._fills: list[tuple[str, slice | list[int]]] = []  # field, columns of the row that go there
        self._stamps: list[tuple[str, str]] = []  # field, what is counted there
        self.numbers = tuple(numbers)
        self._starts = []  # offset of each channel's record within a row
        raw = bytearray()
        for number, channel in zip(numbers, channels, strict=True):
            self._starts.append(len(raw))
            data = channel.template.data
            raw += MESSAGE_HEAD.pack(MESSAGE, MESSAGE_HEAD.size - 9 + len(data), number, 0, 0, 0)
            head = {"sequence": (11, "<u4", 1), "log_time": (15, "<u8", 1), "publish_time": (23, "<u8", 1)}
            holes = {name: (at + MESSAGE_HEAD.size, f, k) for name, (at, f, k) in channel.template.holes.items()}
            for name, (at, fmt, count) in (head | holes).items():
                names.append(f"{number}.{name}")
                if name not in channel.columns:
                    self._stamps.append((names[-1], name.rpartition(".")[2]))
                formats.append((fmt, (count,)) if fmt == "<f8" else fmt)
                offsets.append(self._starts[-1] + at)
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

    def index(self, ns: NDArray[np.int64], at: int) -> dict[int, bytes]:
        """Per channel number the (log time, offset) of its records, where `encode` of these times begins at `at`."""
        base = np.arange(len(ns), dtype=np.uint64) * np.uint64(self.width) + np.uint64(at)
        times = ns.astype(np.uint64)
        starts = zip(self.numbers, self._starts, strict=True)
        return {number: np.stack([times, base + np.uint64(start)], axis=1).tobytes() for number, start in starts}


def _as_slice(places: list[int]) -> slice | list[int]:
    """The same columns as a slice where they are neighbours: copied at once instead of one by one."""
    if places and places == list(range(places[0], places[0] + len(places))):
        return slice(places[0], places[0] + len(places))
    return places


def packed(columns: Mapping[str, Array]) -> bytes:
    """Columns (N, k) as the bytes of one std_msgs/UInt8MultiArray that compresses well, every bit kept.

    Of each number the difference of its 64 bits to those one row before; then of each column all first bytes, all
    second ones, and so on. The layout names "rows" with N, then every column with its k.
    """
    n = len(next(iter(columns.values())))
    parts = []
    for values in columns.values():
        bits = np.ascontiguousarray(values).view("<u8")
        bits = np.concatenate([bits[:1], bits[1:] - bits[:-1]])
        parts.append(bits.view(np.uint8).reshape(n, -1).T.tobytes())
    sizes = {"rows": n} | {name: values.shape[1] for name, values in columns.items()}
    return ros_messages.bytes_array(sizes, b"".join(parts))


def unpacked(message: bytes | memoryview) -> dict[str, Array]:
    """The columns of a message that `packed` made."""
    parts = ros_messages.Parts(message)
    sizes = parts.dimensions()
    n, raw = sizes.pop("rows"), np.frombuffer(message, dtype=np.uint8)
    parts.number("<I")
    columns = {}
    for name, k in sizes.items():
        planes = raw[parts.at : parts.at + 8 * n * k].reshape(8 * k, n)
        bits = np.cumsum(np.ascontiguousarray(planes.T).view("<u8"), axis=0, dtype=np.uint64)
        columns[name] = bits.view(np.float64)
        parts.at += 8 * n * k
    return columns


class Table:
    """Channels whose messages take numbers from a table of their own, in the order in which they were added."""

    def __init__(self) -> None:
        self.channels: list[Channel] = []
        self.layout: dict[str, slice] = {}
        self.width = 0

    def add(self, topic: str, kind: str, template: Template) -> None:
        """A topic; the numbers of its message come next in the table."""
        columns = {}
        for hole, (_, fmt, count) in template.holes.items():
            if fmt == "<f8":
                columns[hole] = (f"{topic} {hole}",)
                self.layout[f"{topic} {hole}"] = slice(self.width, self.width + count)
                self.width += count
        self.channels.append(Channel(topic, kind, template, columns))


class Views:
    """What a viewer shows without set-up: the frames of the arm and poses of the tcp, 30 times a second of run time.

    /tf: every moving link of the URDF; /tangere/tcp_pose: of the measured joints; /tangere/tcp_pose_des, _true and
    /tangere/wrench_true: of the columns. Once: /robot_description (URDF with simple shapes) and /tf_static.
    """

    def __init__(self, layout: Mapping[str, slice], robot: Robot | None) -> None:
        self._layout, self._slot = layout, -1.0
        self.often, self.once, self.first = Table(), Table(), np.zeros(0)  # first: what the messages of `once` take
        self._robot = robot if robot is not None and _width(layout, "q") == robot.dof else None
        if self._robot is not None:
            self._describe(self._robot)
            self.often.add("/tangere/tcp_pose", POSE, ros_messages.stamped(_BASE, "pose", 7))
        self._poses = [name for name in ("T_des", "T_true") if _width(layout, name) == 12]
        for name in self._poses:
            self.often.add(f"/tangere/tcp_pose{name[1:]}", POSE, ros_messages.stamped(_BASE, "pose", 7))
        self._wrench = _width(layout, "wrench_true") == 6
        if self._wrench:
            self.often.add("/tangere/wrench_true", WRENCH, ros_messages.stamped(_BASE, "wrench", 6))
        names = [*self._poses, *(["q"] if self._robot is not None else [])]
        self._needed = [i for name in names for i in range(layout[name].start, layout[name].stop)]

    def _describe(self, robot: Robot) -> None:
        urdf = to_urdf(robot.model, shapes=True)
        moving, still, places, origins, turns, slides = [], [], [], [], [], []
        for joint in ElementTree.fromstring(urdf).iter("joint"):
            parts = {part.tag: part.attrib for part in joint}
            xyz, rpy = (np.array(parts["origin"][key].split(), dtype=np.float64) for key in ("xyz", "rpy"))
            turn, pair = quaternion_from_ypr(rpy[::-1]), (parts["parent"]["link"], parts["child"]["link"])
            if joint.get("type") == "fixed":
                still.append(pair)
                places += [xyz, np.roll(turn, -1)]
            else:
                moving.append(pair)
                origins.append(xyz)
                turns.append(turn)
                slides.append(joint.get("type") == "prismatic")
        # of the moving joints (n, ...): x y z, quaternion w x y z, whether it slides, and its axis in the parent
        self._origins, self._turns, self._slides = np.array(origins), np.array(turns), np.array(slides)
        self._axes = quaternion_rotate(self._turns, (0.0, 0.0, 1.0))
        self.once.add("/robot_description", TEXT, Template(bytearray(ros_messages.text(urdf))))
        self.once.add("/tf_static", FRAMES, ros_messages.transforms(still))
        self.first = np.concatenate(places)
        self.often.add("/tf", FRAMES, ros_messages.transforms(moving))

    def table(self, rows: Array, time: Array) -> tuple[NDArray[np.intp], Array]:
        """Which of the rows are shown, and what the messages of `often` take for them; time (k,) [s]."""
        slots = np.floor(time * VIEW_RATE + 1e-6)  # a hair: a sample at 1/30 s belongs to the slot that begins there
        before = np.fmax.accumulate(np.concatenate([[self._slot], slots]))
        self._slot = before[-1]
        shown = np.flatnonzero((slots > before[:-1]) & np.isfinite(rows[:, self._needed]).all(axis=1))
        if not len(shown):
            return shown, np.zeros((0, self.often.width))
        try:
            return shown, self._values(rows[shown])
        except InvalidValue:  # a column of poses that are none: nothing to be shown, and no reason to end a log
            return shown[:0], np.zeros((0, self.often.width))

    def _values(self, rows: Array) -> Array:
        # all joints at once, and all poses: the cost is that of the calls, some 20 rows long
        k, poses = len(rows), [rows[:, self._layout[name]] for name in self._poses]
        values: list[Array] = [np.zeros((k, 0))]
        if self._robot is not None:
            q = rows[:, self._layout["q"]]
            half = 0.5 * np.where(self._slides, 0.0, q)
            about_z = np.zeros((*q.shape, 4))
            about_z[..., 0], about_z[..., 3] = np.cos(half), np.sin(half)
            places = self._origins + np.where(self._slides, q, 0.0)[..., None] * self._axes
            turns = np.roll(quaternion_product(self._turns, about_z), -1, axis=2)
            values.append(np.concatenate((places, turns), axis=2).reshape(k, -1))
            poses = [self._robot.pose(q)[:, :3].reshape(-1, 12), *poses]
        if poses:
            values.append(_pose(np.stack(poses, axis=1)).reshape(k, -1))
        values += [rows[:, self._layout["wrench_true"]]] if self._wrench else []
        return np.concatenate(values, axis=1)


def _pose(T: Array) -> Array:
    """x y z and the quaternion x y z w (..., 7) of poses (..., 12), upper three rows side by side."""
    T = T.reshape(*T.shape[:-1], 3, 4)
    return np.concatenate([T[..., 3], np.roll(quaternion_from_matrix(T[..., :3]), -1, axis=-1)], axis=-1)


def _width(layout: Mapping[str, slice], name: str) -> int:
    return layout[name].stop - layout[name].start if name in layout else 0
