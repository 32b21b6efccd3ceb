"""The records of the MCAP file format that a log needs, as bytes (https://mcap.dev/spec)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | memoryview

MAGIC = b"\x89MCAP0\r\n"

HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(0x01, 0x09)
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F

# opcode, length, channel, sequence, log time, publish time: what stands before the bytes of a message
LAST_OPCODE = DATA_END
MESSAGE_HEAD = struct.Struct("<BQHIQQ")
_READ = (HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, METADATA)  # records that a reader of logs asks for
_WINDOW = 1 << 20  # [bytes] that are searched at once for the next chunk
CHUNK_HEAD = struct.Struct("<QQQI")  # first and last time, size, crc of what is inside


def record(opcode: int, content: bytes) -> bytes:
    """Any record."""
    return struct.pack("<BQ", opcode, len(content)) + content


def string(text: str) -> bytes:
    """A string with its length before it."""
    raw = text.encode(errors="backslashreplace")  # a name of bytes that are no text
    return struct.pack("<I", len(raw)) + raw


def mapping(pairs: Mapping[str, str]) -> bytes:
    """A map of strings with its size in bytes before it."""
    raw = b"".join(string(k) + string(v) for k, v in pairs.items())
    return struct.pack("<I", len(raw)) + raw


def header(profile: str, library: str) -> bytes:
    """Header record."""
    return record(HEADER, string(profile) + string(library))


def schema(number: int, name: str, definition: str) -> bytes:
    """Schema record of a ROS 2 message."""
    return record(SCHEMA, struct.pack("<H", number) + string(name) + string("ros2msg") + string(definition))


def channel(number: int, schema_number: int, topic: str, metadata: Mapping[str, str]) -> bytes:
    """Channel record of CDR messages."""
    return record(
        CHANNEL, struct.pack("<HH", number, schema_number) + string(topic) + string("cdr") + mapping(metadata)
    )


@dataclass
class Chunk:
    """Message records that are written, compressed and read as one."""

    pieces: list[Buffer] = field(default_factory=list)  # the records; none is copied
    size: int = 0  # bytes of them
    indexes: dict[int, bytes] = field(default_factory=dict)  # per channel (log time, offset in the chunk), 8 bytes each
    times: list[int] = field(default_factory=list)  # [ns] log times that the first and the last are among

    def message(self, number: int, sequence: int, ns: int, data: bytes) -> None:
        """Add one message."""
        head = MESSAGE_HEAD.pack(MESSAGE, MESSAGE_HEAD.size - 9 + len(data), number, sequence, ns, ns)
        self.indexes[number] = self.indexes.get(number, b"") + struct.pack("<QQ", ns, self.size)
        self.add(head + data, [ns])

    def add(self, piece: Buffer, times: Sequence[int]) -> None:
        """Add records whose index is known to the caller."""
        self.pieces.append(piece)
        self.size += len(piece)
        self.times += times


@dataclass
class Summary:
    """What is known of the data section when it ends: chunks, counts and times."""

    compression: Any = None  # zstandard.ZstdCompressor; None: chunks stay as they are
    chunks: list[bytes] = field(default_factory=list)  # finished ChunkIndex records
    counts: dict[int, int] = field(default_factory=dict)  # messages per channel
    start: int = 2**64 - 1
    end: int = 0

    def forget(self, before: tuple[int, dict[int, int], int, int]) -> None:
        """Be as `state` was: a chunk could not be written."""
        length, self.counts, self.start, self.end = before
        del self.chunks[length:]

    @property
    def state(self) -> tuple[int, dict[int, int], int, int]:
        """What `forget` goes back to."""
        return len(self.chunks), dict(self.counts), self.start, self.end

    def chunk(self, offset: int, chunk: Chunk) -> list[Buffer]:
        """The records of a chunk that begins at `offset` of the file: itself, then its message indexes."""
        start, end, size, crc = min(chunk.times), max(chunk.times), chunk.size, 0
        for piece in chunk.pieces:
            crc = zlib.crc32(piece, crc)
        body: list[Buffer] = list(chunk.pieces)
        if self.compression:  # piece by piece, so that the interpreter is free meanwhile
            squeeze = self.compression.compressobj(size=size)
            body = [*(squeeze.compress(piece) for piece in chunk.pieces), squeeze.flush()]
        name, length = string("zstd" if self.compression else ""), sum(map(len, body))
        head = CHUNK_HEAD.pack(start, end, size, crc) + name + struct.pack("<Q", length)
        out: list[Buffer] = [struct.pack("<BQ", CHUNK, len(head) + length) + head, *body]
        whole = at = sum(map(len, out))
        places = b""
        for number, entries in chunk.indexes.items():
            places += struct.pack("<HQ", number, offset + at)
            out.append(record(MESSAGE_INDEX, struct.pack("<HI", number, len(entries)) + entries))
            at += len(out[-1])
            self.counts[number] = self.counts.get(number, 0) + len(entries) // 16
        self.start, self.end = min(self.start, start), max(self.end, end)
        self.chunks.append(
            record(
                CHUNK_INDEX,
                struct.pack("<QQQQI", start, end, offset, whole, len(places))
                + places
                + struct.pack("<Q", at - whole)
                + name
                + struct.pack("<QQ", length, size),
            )
        )
        return out

    def closing(self, offset: int, schemas: list[bytes], channels: list[bytes], metadata: bytes) -> bytes:
        """Everything behind the data section, which ends at `offset`: DataEnd, summary, footer, magic."""
        data_end = record(DATA_END, struct.pack("<I", 0))  # 0: the data section has no checksum, the chunks have
        start = self.start if self.chunks else 0
        statistics = record(
            STATISTICS,
            struct.pack(
                "<QHIIIIQQI",
                sum(self.counts.values()), len(schemas), len(channels), 0, 1, len(self.chunks), start, self.end,
                10 * len(self.counts),
            )
            + b"".join(struct.pack("<HQ", *pair) for pair in self.counts.items()),
        )  # fmt: skip
        groups = [
            (SCHEMA, b"".join(schemas)),
            (CHANNEL, b"".join(channels)),
            (CHUNK_INDEX, b"".join(self.chunks)),
            (METADATA_INDEX, metadata),
            (STATISTICS, statistics),
        ]
        at = summary_start = offset + len(data_end)
        offsets = b""
        for opcode, content in groups:
            if content:
                offsets += record(SUMMARY_OFFSET, struct.pack("<BQQ", opcode, at, len(content)))
            at += len(content)
        body = b"".join(content for _, content in groups) + offsets
        footer = struct.pack("<BQQQ", FOOTER, 20, summary_start, at)
        crc = zlib.crc32(footer, zlib.crc32(body))
        return data_end + body + footer + struct.pack("<I", crc) + MAGIC


def records(data: memoryview, at: int) -> Iterator[tuple[int, memoryview]]:
    """(opcode, content) of every whole record from `at` on; ends before one that is cut off."""
    while at + 9 <= len(data):
        opcode, length = struct.unpack_from("<BQ", data, at)
        if at + 9 + length > len(data):
            return
        yield opcode, data[at + 9 : at + 9 + length]
        at += 9 + length


def repeated(data: memoryview) -> tuple[dict[int, NDArray[np.uint8]], int]:
    """The messages at the beginning that repeat a pattern of channels and sizes, as rows of a log do: channel number ->
    their bytes (rows, size). And where what is no such message begins."""
    places: dict[int, tuple[int, int]] = {}  # channel -> where its record begins in a row, and its size
    at = 0
    for opcode, content in records(data, 0):
        number = content[0] | content[1] << 8 if opcode == MESSAGE and len(content) >= 2 else -1
        if number < 0 or number in places:
            break
        places[number] = at, 9 + len(content)
        at += 9 + len(content)
    if not places or at > len(data) or any(size < MESSAGE_HEAD.size for _, size in places.values()):
        return {}, 0
    table = np.frombuffer(data, dtype=np.uint8)[: len(data) // at * at].reshape(-1, at)
    heads = [slice(first, first + 11) for first, _ in places.values()]  # opcode, length and channel
    same = np.all([(table[:, head] == table[0, head]).all(axis=1) for head in heads], axis=0)
    rows = len(table) if same.all() else int(np.argmin(same))
    parts = {n: table[:rows, first + MESSAGE_HEAD.size : first + size] for n, (first, size) in places.items()}
    return parts, rows * at


def surviving(file: BinaryIO) -> Iterator[tuple[int, memoryview]]:
    """As `records`, of a file behind its first bytes, and past bytes that are no record to the next chunk: there an
    opcode of 0 is yielded. Of records that nobody asks for (indexes, attachments) only the place is looked at."""
    at, size = len(MAGIC), file.seek(0, 2)
    while at + 9 <= size:
        file.seek(at)
        opcode, length = struct.unpack("<BQ", file.read(9).ljust(9, b"\0"))
        if 0 < opcode <= LAST_OPCODE and at + 9 + length <= size:
            if opcode in _READ:
                content = file.read(length)
                if len(content) < length:  # somebody has cut the file meanwhile
                    return
                yield opcode, memoryview(content)
            at += 9 + length
            continue
        found = _next_chunk(file, size, at + 1)
        if found < 0:
            return
        yield 0, memoryview(b"")
        at = found


def _next_chunk(file: BinaryIO, size: int, at: int) -> int:
    """Where the next chunk begins, -1 if none does: opcode, a length that fits, times in order, a known compression."""
    while at + 45 <= size:
        file.seek(at)
        window = file.read(_WINDOW + 45)
        here = 0
        while 0 <= (here := window.find(CHUNK, here)) < _WINDOW and here + 41 <= len(window):
            length, start, end, _, _, word = struct.unpack_from("<QQQQII", window, here + 1)
            named = window[here + 41 : here + 41 + min(word, 4)]
            fits = at + here + 9 + length <= size and start <= end
            if fits and (word, named) in ((0, b""), (3, b"lz4"), (4, b"zstd")):
                return at + here
            here += 1
        at += _WINDOW
    return -1


class Fields:
    """Reads the fields of a record one after the other."""

    def __init__(self, content: memoryview) -> None:
        self.content = content
        self.at = 0

    def numbers(self, fmt: str) -> tuple[int, ...]:
        """Little-endian integers."""
        values = struct.unpack_from("<" + fmt, self.content, self.at)
        self.at += struct.calcsize("<" + fmt)
        return values

    def raw(self) -> bytes:
        """Bytes with their length before them."""
        (length,) = self.numbers("I")
        self.at += length
        return bytes(self.content[self.at - length : self.at])

    def string(self) -> str:
        """A string."""
        return self.raw().decode()

    def mapping(self) -> dict[str, str]:
        """A map of strings."""
        (length,) = self.numbers("I")
        end, pairs = self.at + length, {}
        while self.at < end:
            key = self.string()
            pairs[key] = self.string()
        return pairs
