"""Reading logs back from MCAP, finished or not."""

from __future__ import annotations

import json
import os
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue, MissingExtra
from tangere.logs import mcap_records, ros_messages
from tangere.logs.channels import BLOCKS_TOPIC, EVENTS_TOPIC, NOTES_TOPIC, Channel, channel_of, unpacked
from tangere.logs.log import CUT, Log, Note
from tangere.logs.mcap_records import MESSAGE_HEAD, Fields
from tangere.types import Array


def read_mcap(path: str | os.PathLike[str]) -> Log:
    """The log of an MCAP file that tangere wrote, every bit of it.

    A file whose writer was killed has no end: everything up to its last whole chunk is read, and log.complete is False;
    so too where a chunk is damaged (its checksum does not match): reading stops before it.
    Chunks may have been compressed by other tools (zstd, lz4: needs their packages).
    """
    path = Path(path)
    try:
        data = memoryview(path.read_bytes())
    except OSError as problem:
        raise InvalidValue(f"cannot read {path}: {problem.strerror or problem}") from problem
    if bytes(data[:8]) != mcap_records.MAGIC:
        raise InvalidValue(f"{path} is not an MCAP file: it begins with {bytes(data[:8])!r}")
    reader = _Reader(path)
    complete = reader.scan(data)
    return reader.log(complete)


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.about: dict[str, str] = {}
        self.types: dict[int, str] = {}  # of schemas
        self.channels: dict[int, tuple[str, str, str]] = {}  # topic, message type, and which columns it carries (JSON)
        self.messages: dict[int, list[memoryview]] = {}

    def scan(self, data: memoryview) -> bool:
        """Collect the messages; True if the file has an end."""
        for opcode, content in mcap_records.records(data, 8):
            fields = Fields(content)
            if opcode == mcap_records.METADATA and fields.string() == "tangere":
                self.about = fields.mapping()
            elif opcode == mcap_records.CHUNK:
                inside = self._inside(fields)
                if inside is None:
                    return False
                for inner, record in mcap_records.records(inside, 0):
                    self._take(inner, record)
            elif opcode == mcap_records.FOOTER:
                return True
            else:
                self._take(opcode, content)
        return False

    def _inside(self, fields: Fields) -> memoryview | None:
        """What a chunk holds, None if it is damaged."""
        _, _, size, crc = fields.numbers("QQQI")
        compression = fields.string()
        (length,) = fields.numbers("Q")
        content = fields.content[fields.at : fields.at + length]
        if compression:
            content = memoryview(_decompressed(compression, content, size))
        return None if len(content) != size or (crc and zlib.crc32(content) != crc) else content

    def _take(self, opcode: int, content: memoryview) -> None:
        fields = Fields(content)
        if opcode == mcap_records.SCHEMA:
            (number,) = fields.numbers("H")
            self.types[number] = fields.string()
        elif opcode == mcap_records.CHANNEL:
            number, schema = fields.numbers("HH")
            topic, _ = fields.string(), fields.string()
            self.channels[number] = (topic, self.types.get(schema, ""), fields.mapping().get("columns", ""))
        elif opcode == mcap_records.MESSAGE:
            number = content[0] | content[1] << 8
            self.messages.setdefault(number, []).append(content[MESSAGE_HEAD.size - 9 :])

    def log(self, complete: bool) -> Log:
        """The messages as columns."""
        try:
            columns: dict[str, int] = json.loads(self.about["columns"])
            joints: list[str] = json.loads(self.about["joints"])
            units: dict[str, str] = json.loads(self.about["units"])
        except (KeyError, ValueError) as problem:
            raise InvalidValue(f"{self.path} holds no log of tangere (no metadata record 'tangere')") from problem
        found: dict[str, Array] = {name: np.zeros((0, k) if k else 0) for name, k in columns.items()}
        for number, (topic, kind, holes) in self.channels.items():
            if holes:
                channel = channel_of(topic, kind, json.loads(holes), columns, joints)
                found |= _columns(channel, self.messages.get(number, []), columns)
        blocks = [unpacked(message) for message in self._of(BLOCKS_TOPIC)]
        found |= {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}
        rows = min(len(array) for array in found.values())
        complete = complete and all(len(array) == rows for array in found.values())
        notes = tuple(Note(time, text) for text, time in map(ros_messages.note_parts, self._of(NOTES_TOPIC)))
        events = tuple(json.loads(ros_messages.Parts(message).string()) for message in self._of(EVENTS_TOPIC))
        kept = {name: found[name][:rows] for name in columns}
        problems = () if complete else (CUT,)
        return Log(kept, units, notes, complete, problems, events, int(self.about.get("start_ns", 0)))

    def _of(self, topic: str) -> list[memoryview]:
        """The messages of a topic."""
        return [m for number, channel in self.channels.items() if channel[0] == topic
                for m in self.messages.get(number, [])]  # fmt: skip


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
            return bytes(zstd.ZstdDecompressor().decompress(bytes(content), max_output_size=size))
        return bytes(import_module("lz4.frame").decompress(bytes(content)))
    except ImportError as problem:
        raise MissingExtra(f"compressed MCAP chunks need {package}: pip install 'tangere[log]'") from problem
    except Exception:  # each package has errors of its own for damaged data
        return b""
