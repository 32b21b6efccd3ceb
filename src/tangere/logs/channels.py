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
from tangere.kernels.periods import messages as filled
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


_COUNTED = ("sequence", "ns", "sec", "nanosec")  # as kernels.periods.messages counts them


class Encoder:
    """Rows of numbers into message records: one record of each channel per row, in turn."""

    def __init__(self, channels: Sequence[Channel], layout: Mapping[str, slice], numbers: Sequence[int]) -> None:
        self.numbers = tuple(numbers)
        self._starts = []  # offset of each channel's record within a row
        raw, places, stamps = bytearray(), [], []
        for number, channel in zip(numbers, channels, strict=True):
            start, data = len(raw), channel.template.data
            self._starts.append(start)
            raw += MESSAGE_HEAD.pack(MESSAGE, MESSAGE_HEAD.size - 9 + len(data), number, 0, 0, 0)
            stamps += [("sequence", start + 11), ("ns", start + 15), ("ns", start + 23)]
            for hole, (at, _, _) in channel.template.holes.items():
                if hole in channel.columns:
                    wide = [layout[name] for name in channel.columns[hole]]
                    columns = [i for where in wide for i in range(where.start, where.stop)]
                    places += [(i, len(raw) + at + 8 * k) for k, i in enumerate(columns)]
                else:
                    stamps.append((hole.rpartition(".")[2], len(raw) + at))
            raw += data
        self.width = len(raw)
        self._row = np.frombuffer(bytes(raw), dtype=np.uint8)
        self._places = np.array(places, dtype=np.int64).reshape(-1, 2)
        self._stamps = np.array([(_COUNTED.index(name), at) for name, at in stamps], dtype=np.int64).reshape(-1, 2)

    def encode(self, rows: Array, ns: NDArray[np.int64], sequence: int) -> memoryview:
        """The bytes of the records of rows (k, width), log times ns (k,); sequence: number of the first row."""
        return filled(rows, ns, sequence, self._row, self._places, self._stamps).data

    def index(self, ns: NDArray[np.int64], at: int) -> dict[int, bytes]:
        """Per channel number the (log time, offset) of its records, where `encode` of these times begins at `at`."""
        table = np.empty((len(self.numbers), len(ns), 2), dtype=np.uint64)
        table[:, :, 0] = ns
        table[:, :, 1] = np.arange(len(ns)) * self.width + (np.array(self._starts)[:, None] + at)
        return dict(zip(self.numbers, map(bytes, table), strict=True))


def packed(columns: Mapping[str, Array]) -> bytes:
    """Columns (N, k) as the bytes of one std_msgs/UInt8MultiArray that compresses well, every bit kept.

    Of each number the difference of its 64 bits to those one row before; then of each column all first bytes, all
    second ones, and so on. The layout names "rows" with N, then every column with its k.
    """
    n = len(next(iter(columns.values())))
    bits = np.concatenate(list(columns.values()), axis=1).view("<u8")
    bits[1:] -= bits[:-1].copy()
    planes = bits.view(np.uint8).T.tobytes()
    sizes = {"rows": n} | {name: values.shape[1] for name, values in columns.items()}
    return ros_messages.bytes_array(sizes, planes)


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
        # a joint's turn times one about z: cos(q / 2) and sin(q / 2) times two that stay; x y z w, as in ROS
        across = quaternion_product(self._turns, (0.0, 0.0, 0.0, 1.0))
        self._turns, self._across = np.roll(self._turns, -1, axis=1), np.roll(across, -1, axis=1)
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
            half = (0.5 * np.where(self._slides, 0.0, q))[..., None]
            places = self._origins + np.where(self._slides, q, 0.0)[..., None] * self._axes
            turns = np.cos(half) * self._turns + np.sin(half) * self._across
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
