"""The records of the MCAP file format that a log needs, as bytes (https://mcap.dev/spec)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Buffer = bytes | memoryview

MAGIC = b"\x89MCAP0\r\n"

HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(0x01, 0x09)
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F

# opcode, length, channel, sequence, log time, publish time: what stands before the bytes of a message
LAST_OPCODE = DATA_END
MESSAGE_HEAD = struct.Struct("<BQHIQQ")
CHUNK_HEAD = struct.Struct("<QQQI")  # first and last time, size, crc of what is inside


def record(opcode: int, content: bytes) -> bytes:
    """Any record."""
    return struct.pack("<BQ", opcode, len(content)) + content


def string(text: str) -> bytes:
    """A string with its length before it."""
    raw = text.encode()
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


def surviving(data: memoryview, at: int) -> Iterator[tuple[int, memoryview]]:
    """As `records`, but past bytes that are no record, to the next chunk: there an opcode of 0 is yielded."""
    while at + 9 <= len(data):
        opcode, length = struct.unpack_from("<BQ", data, at)
        if 0 < opcode <= LAST_OPCODE and at + 9 + length <= len(data):
            yield opcode, data[at + 9 : at + 9 + length]
            at += 9 + length
            continue
        found = _next_chunk(data, at + 1)
        if found < 0:
            return
        yield 0, data[at:found]
        at = found


def _next_chunk(data: memoryview, at: int) -> int:
    """Where the next chunk begins, -1 if none does: opcode, a length that fits, times in order, a known compression."""
    whole = data.obj if isinstance(data.obj, bytes) else bytes(data)
    while (at := whole.find(CHUNK, at)) >= 0 and at + 41 <= len(whole):
        length, start, end, _, _, word = struct.unpack_from("<QQQQII", whole, at + 1)
        named = whole[at + 41 : at + 41 + min(word, 4)]
        if at + 9 + length <= len(whole) and start <= end and (word, named) in ((0, b""), (3, b"lz4"), (4, b"zstd")):
            return at
        at += 1
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
