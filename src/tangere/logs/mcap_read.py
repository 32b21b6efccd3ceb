"""Reading logs back from MCAP, finished or not, chunk by chunk."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tangere import foreign
from tangere.errors import InvalidValue, MissingExtra
from tangere.logs import log as logs  # LONG is looked up when it is needed
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
from tangere.logs.log import CUT, Log, Note, StoredColumns
from tangere.logs.mcap_records import MESSAGE_HEAD, Fields
from tangere.types import Array

Rows = dict[str, Array]  # some rows: column -> (k,) or (k, width)


def read_mcap(path: str | os.PathLike[str], *, own: bool = False, long: bool = False) -> Log:
    """The log of an MCAP file: one that tangere wrote, every bit of it; else a ROS 2 bag with joint states.

    A file whose writer was killed has no end: everything up to its last whole chunk is read, and log.complete is False.
    A chunk that is damaged (its checksum does not match) is left out; log.problems says which seconds are missing.
    Chunks may have been compressed by other tools (zstd, lz4: needs their packages). A bag of others needs the packages
    mcap and mcap-ros2-support; see Bag for what becomes of it. own: this program has written it just now, and the
    limits for files of others do not hold. long: of a log with more than LONG rows only the time is kept, the other
    columns are read from the file when they are asked for.
    """
    path = Path(path)
    held: list[Rows] = []
    rows, stays = 0, False
    with _reading(path, own) as (reader, file):
        for part in reader.pieces(file, whole=not long):
            held.append({"time": part["time"]} if stays else part)
            rows += len(part["time"])
            if long and not stays and rows >= logs.LONG:
                held, stays = [{"time": one["time"]} for one in held], True
        if not reader.about and any(kind == JOINT_STATE for _, kind, _ in reader.channels.values()):
            from tangere.logs.mcap_bag import Bag

            return Bag(path, reader.streams()).log(reader.ended)
        log = reader.log(held)
        if stays:
            columns: Any = StoredColumns(path, reader.columns, log.time, own=own)
            return replace(log, columns=columns)
        return log


def pieces_of(path: str | os.PathLike[str], *, own: bool = False) -> Iterator[Rows]:
    """The rows of a log that tangere wrote, some at a time: no more than one chunk is in memory."""
    with _reading(Path(path), own) as (reader, file):
        yield from reader.pieces(file, whole=False)


def is_own(path: str | os.PathLike[str]) -> bool:
    """Whether tangere wrote an MCAP file, as it says before its first chunk; else it is a bag of others."""
    with _reading(Path(path), own=False) as (_, file):
        for opcode, content in mcap_records.surviving(file):
            if opcode == mcap_records.METADATA and Fields(content).string() == "tangere":
                return True
            if opcode == mcap_records.CHUNK:
                break
    return False


@contextmanager
def _reading(path: Path, own: bool) -> Iterator[tuple[McapReader, BinaryIO]]:
    try:
        file = path.open("rb")
    except (OSError, ValueError) as problem:
        raise InvalidValue(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from problem
    with file:
        size = os.fstat(file.fileno()).st_size
        begin = foreign.reading(path, size) if not own else nullcontext()
        with begin:
            magic = file.read(len(mcap_records.MAGIC))
            if magic != mcap_records.MAGIC:
                raise InvalidValue(f"{path} is not an MCAP file: it begins with {magic!r}")
            yield McapReader(path, sys.maxsize if own else foreign.budget(size)), file


class McapReader:
    """What an MCAP file holds; after `pieces`: notes, events, what is missing, and messages of a bag of others."""

    def __init__(self, path: Path, room: int) -> None:
        self.path = path
        self._most = self._room = room  # [bytes] that chunks may still unpack to
        self.about: dict[str, str] = {}
        self.schemas: dict[int, dict[str, Any]] = {}  # the fields of each, by its number
        self.schema_of: dict[int, int] = {}  # of a channel
        self.channels: dict[int, tuple[str, str, str]] = {}  # topic, message type, and which columns it carries (JSON)
        self.messages: dict[int, list[memoryview]] = {}  # of a bag of others
        self.notes: list[Note] = []
        self.events: list[Any] = []
        self.columns: dict[str, int] = {}  # name -> width, 0 for a column (N,)
        self.units: dict[str, str] = {}
        self.start_ns = 0
        self.ended = False  # the file has an end, and nothing before it is damaged
        self._joints: list[str] = []
        self._known: dict[int, Channel] = {}  # channels that carry columns
        self._waiting: dict[str, list[Array]] = {}  # rows of columns whose other columns have not come yet
        self._holes: list[tuple[int, int | None]] = []  # [ns] last time before damage, first one behind it
        self._before = 0  # [ns] the last time in the chunks so far

    def pieces(self, file: BinaryIO, whole: bool) -> Iterator[Rows]:
        """Rows as they come; none of a bag of others, whose messages are kept. whole: somebody will hold all of it."""
        for opcode, content in mcap_records.surviving(file):
            fields = Fields(content)
            if opcode == 0:
                self._damaged()
            elif opcode == mcap_records.METADATA and fields.string() == "tangere":
                self.declared(fields.mapping())
            elif opcode == mcap_records.CHUNK:
                inside = self.inside(fields, whole or not self.about)
                if inside is None:
                    self._damaged()
                    continue
                start, end = Fields(content).numbers("QQ")
                if self._holes and self._holes[-1][1] is None:
                    self._holes[-1] = (self._holes[-1][0], start)
                self._before = max(self._before, end)
                yield from self.rows(inside)
            elif opcode == mcap_records.FOOTER:
                self.ended = not self._holes
                break
            else:
                self.take(opcode, content)
        yield from self._ready()
        if not self.about and not any(kind == JOINT_STATE for _, kind, _ in self.channels.values()):
            topics = ", ".join(topic for topic, _, _ in self.channels.values()) or "none"
            raise InvalidValue(
                f"{self.path} holds no log: not of tangere, and no topic is of {JOINT_STATE}; it has {topics}"
            )

    def rows(self, inside: memoryview) -> Iterator[Rows]:
        """What a chunk holds; the rows that are whole with it."""
        at = self._table(inside) if self.about else 0
        for opcode, record in mcap_records.records(inside, at):
            self.take(opcode, record)
        yield from self._ready()

    @property
    def complete(self) -> bool:
        """Whether every row that was begun is there, and the file was closed."""
        return self.ended and not any(len(part) for parts in self._waiting.values() for part in parts)

    @property
    def problems(self) -> tuple[str, ...]:
        """What damage cost, in sentences."""
        said = []
        for before, behind in self._holes:
            begin = max(0.0, (before - self.start_ns) * 1e-9) if before else 0.0
            end = "on" if behind is None else f"to {(behind - self.start_ns) * 1e-9:.3f} s"
            said.append(f"damaged: rows from {begin:.3f} s {end} are missing")
        return tuple(said) or (() if self.complete else (CUT,))

    def log(self, parts: list[Rows]) -> Log:
        """Pieces one behind the other, all of them with the same columns, and what else was found."""
        found: Rows = {name: np.zeros((0, k) if k else 0) for name, k in self.columns.items()}
        if parts:
            names = [name for name in self.columns if name in parts[0]]
            found = {name: np.concatenate([part[name] for part in parts]) for name in names}
        notes, events = tuple(self.notes), tuple(self.events)
        return Log(found, self.units, notes, self.complete, self.problems, events, self.start_ns)

    def declared(self, about: dict[str, str]) -> None:
        """The columns, as a file of ours says them."""
        self.about = about
        try:
            told = (foreign.loads(self.about[name], self.path) for name in ("columns", "joints", "units"))
            self.columns, self._joints, self.units = told
        except (KeyError, ValueError) as problem:
            raise InvalidValue(f"{self.path} holds no log: what it says of its columns cannot be read") from problem
        self.start_ns = int(self.about.get("start_ns", 0))
        self._waiting = {name: [np.zeros((0, k) if k else 0)] for name, k in self.columns.items()}

    def _damaged(self) -> None:
        if not self._holes or self._holes[-1][1] is not None:
            self._holes.append((self._before, None))

    def inside(self, fields: Fields, whole: bool) -> memoryview | None:
        """What a chunk holds, None if it is damaged."""
        _, _, size, crc = fields.numbers("QQQI")
        compression = fields.string()
        (length,) = fields.numbers("Q")
        content = fields.content[fields.at : fields.at + length]
        if compression:
            room = self._room - size
            if room < 0:
                raise foreign.too_large(self.path, self._most - room, self._most, "unpacks to")
            self._room = room if whole else self._room
            content = memoryview(_decompressed(compression, content, size))
        return None if len(content) != size or (crc and zlib.crc32(content) != crc) else content

    def _table(self, inside: memoryview) -> int:
        """Take the rows that a chunk of ours begins with, all at once; where what follows them begins."""
        found, end = mcap_records.repeated(inside)
        if any(self._channel(number) is None for number in found):
            return 0
        for number, raw in found.items():
            self._columns(number, raw)
        return end

    def _channel(self, number: int) -> Channel | None:
        """The channel of a number where it carries columns."""
        if number not in self._known and self.channels.get(number, ("", "", ""))[2]:
            topic, kind, holes = self.channels[number]
            self._known[number] = channel_of(topic, kind, foreign.loads(holes, self.path), self.columns, self._joints)
        return self._known.get(number)

    def take(self, opcode: int, content: memoryview) -> None:
        """A record that is no chunk."""
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
                self._message(number, content)
            elif number in self.channels and self.channels[number][1] in (JOINT_STATE, WRENCH):
                self.messages.setdefault(number, []).append(memoryview(bytes(content)))  # not the pictures beside

    def streams(self) -> Iterator[tuple[str, dict[str, Any], Iterator[tuple[int, bytes]]]]:
        """What a Bag is made of."""
        for number, messages in self.messages.items():
            found = ((int.from_bytes(m[6:14], "little"), bytes(m[MESSAGE_HEAD.size - 9 :])) for m in messages)
            yield self.channels[number][0], self.schemas[self.schema_of[number]], found

    def _message(self, number: int, content: memoryview) -> None:
        """One message of a log of ours."""
        topic, body = self.channels.get(number, ("", "", ""))[0], content[MESSAGE_HEAD.size - 9 :]
        if self._channel(number) is not None:
            self.messages.setdefault(number, []).append(body)
        elif topic == NOTES_TOPIC:
            text, time = ros_messages.note_parts(body)
            self.notes.append(Note(time, text))
        elif topic == EVENTS_TOPIC:
            self.events.append(foreign.loads(ros_messages.Parts(body).string(), self.path))
        elif topic == BLOCKS_TOPIC:
            for name, values in unpacked(body).items():
                self._waiting[name].append(values)

    def _ready(self) -> Iterator[Rows]:
        """The rows of which every column has come."""
        if not self.about:
            return
        for number, messages in self.messages.items():
            size = len(self._known[number].template.data)
            if any(len(message) != size for message in messages):
                topic = self._known[number].topic
                raise InvalidValue(f"{topic}: messages of {size} bytes expected, as tangere writes them")
            self._columns(number, np.frombuffer(b"".join(messages), dtype=np.uint8).reshape(-1, size))
        self.messages.clear()
        rows = min((sum(map(len, parts)) for parts in self._waiting.values()), default=0)
        if rows:
            joined = {name: np.concatenate(parts) for name, parts in self._waiting.items()}
            self._waiting = {name: [values[rows:]] for name, values in joined.items()}
            yield {name: values[:rows] for name, values in joined.items()}

    def _columns(self, number: int, raw: NDArray[np.uint8]) -> None:
        """The columns of one channel, from messages (k, size) that all have the channel's layout."""
        channel = self._known[number]
        if raw.shape[1] != len(channel.template.data):
            size = len(channel.template.data)
            raise InvalidValue(f"{channel.topic}: messages of {size} bytes expected, as tangere writes them")
        for hole, names in channel.columns.items():
            at, _, count = channel.template.holes[hole]
            values = np.ascontiguousarray(raw[:, at : at + 8 * count]).view("<f8").astype(np.float64)
            first = 0
            for name in names:
                k = self.columns[name]
                self._waiting[name].append(values[:, first : first + k] if k else values[:, first])
                first += max(k, 1)


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
