"""Reading logs back from MCAP, finished or not."""

from __future__ import annotations

import json
import os
import sys
import zlib
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere import foreign
from tangere.errors import InvalidValue, MissingExtra
from tangere.logs import mcap_records, ros_messages
from tangere.logs.channels import (
    BLOCKS_TOPIC,
    EVENTS_TOPIC,
    JOINT_STATE,
    NOTES_TOPIC,
    WRENCH,
    Channel,
    channel_of,
    unpacked,
)
from tangere.logs.log import CUT, Log, Note
from tangere.logs.mcap_records import MESSAGE_HEAD, Fields
from tangere.types import Array

# the joints of a UR from base to flange: drivers sort them by name
_UR = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


def read_mcap(path: str | os.PathLike[str], *, own: bool = False) -> Log:
    """The log of an MCAP file: one that tangere wrote, every bit of it; else a ROS 2 bag with joint states.

    A file whose writer was killed has no end: everything up to its last whole chunk is read, and log.complete is False.
    A chunk that is damaged (its checksum does not match) is left out; log.problems says which seconds are missing.
    Chunks may have been compressed by other tools (zstd, lz4: needs their packages). A bag of others needs the packages
    mcap and mcap-ros2-support; see _Bag for what becomes of it. own: this program has written it just now, and the
    limits for files of others do not hold.
    """
    path = Path(path)
    data = memoryview(_own_bytes(path) if own else foreign.read_bytes(path))
    if bytes(data[:8]) != mcap_records.MAGIC:
        raise InvalidValue(f"{path} is not an MCAP file: it begins with {bytes(data[:8])!r}")
    reader = _Reader(path, sys.maxsize if own else foreign.budget(len(data)))
    with nullcontext() if own else foreign.reading(path, len(data)):
        complete = reader.scan(data)
        if not reader.about and any(kind == JOINT_STATE for _, kind, _ in reader.channels.values()):
            return _Bag(reader).log(complete)
        return reader.log(complete)


def _own_bytes(path: Path) -> bytes:
    """All bytes of a file that this program wrote, however many: somebody may have taken it away since."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InvalidValue(f"cannot read {path}: {problem.strerror or problem}") from problem


class _Reader:
    def __init__(self, path: Path, room: int) -> None:
        self.path = path
        self._most = self._room = room  # [bytes] that chunks may still unpack to
        self.about: dict[str, str] = {}
        self.schemas: dict[int, dict[str, Any]] = {}  # the fields of each, by its number
        self.schema_of: dict[int, int] = {}  # of a channel
        self.channels: dict[int, tuple[str, str, str]] = {}  # topic, message type, and which columns it carries (JSON)
        self.messages: dict[int, list[memoryview]] = {}
        self.holes: list[tuple[int, int | None]] = []  # [ns] last time before damage, first one behind it
        self._before = 0  # [ns] the last time in the chunks so far

    def scan(self, data: memoryview) -> bool:
        """Collect the messages; True if the file has an end and nothing of it is damaged."""
        for opcode, content in mcap_records.surviving(data, 8):
            fields = Fields(content)
            if opcode == 0:
                self._damaged()
            elif opcode == mcap_records.METADATA and fields.string() == "tangere":
                self.about = fields.mapping()
            elif opcode == mcap_records.CHUNK:
                inside = self._inside(fields)
                if inside is None:
                    self._damaged()
                    continue
                start, end = Fields(content).numbers("QQ")
                if self.holes and self.holes[-1][1] is None:
                    self.holes[-1] = (self.holes[-1][0], start)
                self._before = max(self._before, end)
                for inner, record in mcap_records.records(inside, 0):
                    self._take(inner, record)
            elif opcode == mcap_records.FOOTER:
                return not self.holes
            else:
                self._take(opcode, content)
        return False

    def _damaged(self) -> None:
        if not self.holes or self.holes[-1][1] is not None:
            self.holes.append((self._before, None))

    def missing(self, start_ns: int) -> list[str]:
        """What damage cost, in sentences."""
        said = []
        for before, behind in self.holes:
            begin = max(0.0, (before - start_ns) * 1e-9) if before else 0.0
            end = "on" if behind is None else f"to {(behind - start_ns) * 1e-9:.3f} s"
            said.append(f"damaged: rows from {begin:.3f} s {end} are missing")
        return said

    def _inside(self, fields: Fields) -> memoryview | None:
        """What a chunk holds, None if it is damaged."""
        _, _, size, crc = fields.numbers("QQQI")
        compression = fields.string()
        (length,) = fields.numbers("Q")
        content = fields.content[fields.at : fields.at + length]
        if compression:
            self._room -= size
            if self._room < 0:
                room = self._most
                raise foreign.too_large(self.path, room - self._room, room, "unpacks to")
            content = memoryview(_decompressed(compression, content, size))
        return None if len(content) != size or (crc and zlib.crc32(content) != crc) else content

    def _take(self, opcode: int, content: memoryview) -> None:
        fields = Fields(content)
        if opcode == mcap_records.SCHEMA:
            (number,) = fields.numbers("H")
            name, encoding, data = fields.string(), fields.string(), fields.raw()
            self.schemas[number] = {"id": number, "name": name, "encoding": encoding, "data": data}
        elif opcode == mcap_records.CHANNEL:
            number, schema = fields.numbers("HH")
            topic, _ = fields.string(), fields.string()
            kind = self.schemas[schema]["name"] if schema in self.schemas else ""
            self.channels[number] = (topic, kind, fields.mapping().get("columns", ""))
            self.schema_of[number] = schema
        elif opcode == mcap_records.MESSAGE:
            number = content[0] | content[1] << 8
            if self.about:
                self.messages.setdefault(number, []).append(content)
            elif number in self.channels and self.channels[number][1] in (JOINT_STATE, WRENCH):
                self.messages.setdefault(number, []).append(memoryview(bytes(content)))  # not the pictures beside

    def log(self, complete: bool) -> Log:
        """The messages as columns."""
        try:
            columns: dict[str, int] = json.loads(self.about["columns"])
            joints: list[str] = json.loads(self.about["joints"])
            units: dict[str, str] = json.loads(self.about["units"])
        except (KeyError, ValueError) as problem:
            topics = ", ".join(topic for topic, _, _ in self.channels.values()) or "none"
            raise InvalidValue(
                f"{self.path} holds no log: not of tangere, and no topic is of {JOINT_STATE}; it has {topics}"
            ) from problem
        found: dict[str, Array] = {name: np.zeros((0, k) if k else 0) for name, k in columns.items()}
        for topic, kind, holes in self.channels.values():
            if holes:
                channel = channel_of(topic, kind, json.loads(holes), columns, joints)
                found |= _columns(channel, self._of(topic), columns)
        blocks = [unpacked(message) for message in self._of(BLOCKS_TOPIC)]
        found |= {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}
        rows = min(len(array) for array in found.values())
        complete = complete and all(len(array) == rows for array in found.values())
        notes = tuple(Note(time, text) for text, time in map(ros_messages.note_parts, self._of(NOTES_TOPIC)))
        events = tuple(json.loads(ros_messages.Parts(message).string()) for message in self._of(EVENTS_TOPIC))
        kept = {name: found[name][:rows] for name in columns}
        start_ns = int(self.about.get("start_ns", 0))
        missing = self.missing(start_ns)
        problems = (*missing, *(() if complete or missing else (CUT,)))
        return Log(kept, units, notes, complete, problems, events, start_ns)

    def _of(self, topic: str) -> list[memoryview]:
        """The messages of a topic."""
        numbers = [number for number, channel in self.channels.items() if channel[0] == topic]
        return [m[MESSAGE_HEAD.size - 9 :] for number in numbers for m in self.messages.get(number, [])]


class _Bag:
    """A ROS 2 bag of others: joint states as q, qd, tau, the newest wrench before each of them beside.

    Time counts from the first stamp. The joints are in the order of the first message; those of a UR from base to
    flange, without a gripper's. Rows are those of the topic with the most messages. A wrench in frame `base` is the
    column wrench, in another frame wrench_FRAME: turning it takes the arm's pose. Bad messages cost themselves and are
    in problems.
    """

    def __init__(self, reader: _Reader) -> None:
        self.path = reader.path
        self.problems: list[str] = []
        try:
            factory = import_module("mcap_ros2.decoder").DecoderFactory()
            schema = import_module("mcap.records").Schema
        except ImportError as problem:
            raise MissingExtra(
                f"{reader.path} is a ROS 2 bag: reading it needs mcap and mcap-ros2-support: pip install 'tangere[log]'"
            ) from problem
        self.found: dict[tuple[str, str], list[tuple[int, Any]]] = {}  # topic, type -> messages with log time [ns]
        bad = 0
        for number, messages in reader.messages.items():
            topic, kind, _ = reader.channels[number]
            decode = factory.decoder_for("cdr", schema(**reader.schemas[reader.schema_of[number]]))
            found = self.found.setdefault((topic, kind), [])
            for message in messages:
                try:
                    ns = int.from_bytes(message[6:14], "little")
                    found.append((ns, decode(bytes(message[MESSAGE_HEAD.size - 9 :]))))
                except Exception:  # whatever the decoder says of bytes that are no such message
                    bad += 1
        if bad:
            self.problems.append(f"{bad} messages could not be decoded and were left out")

    def log(self, complete: bool) -> Log:
        """The messages as columns."""
        states = self._topic(JOINT_STATE)
        if not states:
            raise InvalidValue(f"{self.path}: has no message of {JOINT_STATE} that can be read")
        names = list(states[0][1].name)
        order = _from_base(names)
        joints = [names[k] for k in order]
        if len(joints) < len(names):
            self.problems.append(f"joints beside the arm's were left out: {', '.join(set(names) - set(joints))}")
        fields = {"q": "position", "qd": "velocity", "tau": "effort"}
        present = {ours: field for ours, field in fields.items() if len(getattr(states[0][1], field)) == len(names)}
        rows: dict[str, list[Any]] = {name: [] for name in present}
        stamps: list[int] = []
        other = 0
        for ns, message in states:
            here = list(message.name)
            if sorted(here) != sorted(names) or any(len(getattr(message, f)) != len(here) for f in present.values()):
                other += 1
                continue
            at = [here.index(name) for name in joints]
            stamps.append(_stamp(message, ns))
            for ours, field in present.items():
                values = getattr(message, field)
                rows[ours].append([values[k] for k in at])
        if other:
            self.problems.append(f"{other} joint states with other joints or fields were left out")
        if "tau" in present:
            self.problems.append("effort was taken as torque [Nm]; UR's own driver puts motor currents [A] there")
        start = stamps[0]
        columns = {"time": (np.array(stamps) - start) * 1e-9} | {name: np.array(v) for name, v in rows.items()}
        columns |= self._wrench(np.array(stamps))
        self.problems += [] if complete else [CUT]
        units = {name: "N, Nm" for name in columns if name.startswith("wrench")}
        note = Note(0.0, f"joints: {', '.join(joints)}")
        return Log(columns, units, (note,), complete, tuple(self.problems), start_ns=start)

    def _topic(self, kind: str) -> list[Any]:
        """The messages of the topic of a type that has the most; the others are named in problems."""
        topics = {topic: messages for (topic, found), messages in self.found.items() if found == kind}
        if not topics:
            return []
        best = max(topics, key=lambda topic: len(topics[topic]))
        if len(topics) > 1:
            others = ", ".join(topic for topic in topics if topic != best)
            self.problems.append(f"{best} was read; topics of the same type were not: {others}")
        return topics[best]

    def _wrench(self, stamps: NDArray[np.int64]) -> dict[str, Array]:
        """The newest wrench at each stamp; nan before the first."""
        found = self._topic(WRENCH)
        if not found:
            return {}
        at = np.array([_stamp(message, ns) for ns, message in found])
        parts = [(message.wrench.force, message.wrench.torque) for _, message in found]
        values = np.array([[np.nan] * 6, *([f.x, f.y, f.z, m.x, m.y, m.z] for f, m in parts)])
        order = np.argsort(at, kind="stable")
        frame = found[0][1].header.frame_id.strip("/")
        name = "wrench" if frame in ("", "base") else f"wrench_{frame}"
        if name != "wrench":
            self.problems.append(f"the wrench is in frame {frame}: column {name}, not turned into base axes")
        newest = np.searchsorted(at[order], stamps, side="right")
        return {name: values[np.concatenate([[0], order + 1])[newest]]}


def _stamp(message: Any, ns: int) -> int:
    """[ns] of a message's header, its log time where the header has none."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec) or ns


def _from_base(names: list[str]) -> list[int]:
    """Places of the six joints from base to flange where a UR's are among them (any prefix), else all as they are."""
    found = [[k for k, name in enumerate(names) if name.removesuffix("_joint").endswith(joint)] for joint in _UR]
    if all(len(places) == 1 for places in found):
        return [places[0] for places in found]
    return list(range(len(names)))


def _columns(channel: Channel, messages: list[memoryview], columns: dict[str, int]) -> dict[str, Array]:
    """The columns of one channel, from messages that all have the channel's layout."""
    size = len(channel.template.data)
    if any(len(message) != size for message in messages):
        raise InvalidValue(f"{channel.topic}: messages of {size} bytes expected, as tangere writes them")
    raw = np.frombuffer(b"".join(messages), dtype=np.uint8).reshape(len(messages), size)
    found = {}
    for hole, names in channel.columns.items():
        at, _, count = channel.template.holes[hole]
        values = np.ascontiguousarray(raw[:, at : at + 8 * count]).view("<f8").astype(np.float64)
        first = 0
        for name in names:
            k = columns[name]
            found[name] = np.ascontiguousarray(values[:, first : first + k] if k else values[:, first])
            first += max(k, 1)
    return found


def _decompressed(compression: str, content: memoryview, size: int) -> bytes:
    """What was compressed; nothing where it is damaged."""
    package = {"zstd": "zstandard", "lz4": "lz4"}.get(compression)
    if package is None:
        raise InvalidValue(f"MCAP chunks compressed by {compression!r} cannot be read; zstd, lz4 or none can")
    try:
        if compression == "zstd":
            zstd = import_module("zstandard")
            with zstd.ZstdDecompressor().stream_reader(content) as stream:  # no more than the chunk says of itself
                return bytes(stream.read(size + 1))
        return bytes(import_module("lz4.frame").LZ4FrameDecompressor().decompress(bytes(content), max_length=size + 1))
    except ImportError as problem:
        raise MissingExtra(f"compressed MCAP chunks need {package}: pip install 'tangere[log]'") from problem
    except Exception:  # each package has errors of its own for damaged data
        return b""
