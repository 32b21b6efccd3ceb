"""What `mcap doctor` looks for, with the MCAP project's own library: our files have none of it, damaged ones have."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcap", reason="the package mcap is not installed")

from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    Message,
    MessageIndex,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)
from mcap.stream_reader import StreamReader, breakup_chunk
from test_mcap import some_log

from tangere.logs.mcap_log import write_mcap


def doctor(data: bytes) -> list[str]:
    """Complaints about a file: order, references, times, indices, counts, checksums."""
    wrong: list[str] = []
    try:
        records = list(StreamReader(BytesIO(data), emit_chunks=True, validate_crcs=True).records)
        for record in records:
            if isinstance(record, Chunk):
                breakup_chunk(record, validate_crc=True)
    except Exception as error:
        return [f"cannot be read: {type(error).__name__} {error}"]
    if not isinstance(records[0], Header) or not isinstance(records[-1], Footer):
        wrong.append("it does not begin with a header and end with a footer")
    if sum(isinstance(r, DataEnd) for r in records) != 1:
        wrong.append("the data have no end, or several")
    end = next((i for i, r in enumerate(records) if isinstance(r, DataEnd)), len(records))
    body, summary = records[:end], records[end + 1 : -1]
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    counts: dict[int, int] = {}
    first, last, latest = 2**63, 0, 0
    chunks = [r for r in body if isinstance(r, Chunk)]
    at = -1
    for record in body:
        if isinstance(record, Chunk | Schema | Channel | Message):
            at += isinstance(record, Chunk)
            times = []
            for inner in breakup_chunk(record, validate_crc=True) if isinstance(record, Chunk) else [record]:
                if isinstance(inner, Schema):
                    schemas.setdefault(inner.id, inner)
                    wrong += ["a schema changes"] * (schemas[inner.id] != inner)
                elif isinstance(inner, Channel):
                    wrong += [f"channel {inner.topic} has no schema"] * (inner.schema_id not in schemas)
                    wrong += ["a channel changes"] * (channels.setdefault(inner.id, inner) != inner)
                elif isinstance(inner, Message):
                    wrong += ["a message has no channel"] * (inner.channel_id not in channels)
                    counts[inner.channel_id] = counts.get(inner.channel_id, 0) + 1
                    times.append(inner.log_time)
            spans = isinstance(record, Chunk) and (record.message_start_time, record.message_end_time)
            if spans and times and (min(times), max(times)) != spans:
                wrong.append("a chunk does not span the times of its messages")
            if times:
                wrong += ["a chunk begins before the one before it"] * (min(times) < latest)
                latest, first, last = min(times), min(first, *times), max(last, *times)
        elif isinstance(record, MessageIndex):
            stamps = [r.log_time for r in breakup_chunk(chunks[at]) if isinstance(r, Message)
                      and r.channel_id == record.channel_id]  # fmt: skip
            if sorted(t for t, _ in record.records) != sorted(stamps):
                wrong.append("a message index does not list the messages of its chunk")
    indices = [r for r in summary if isinstance(r, ChunkIndex)]
    wrong += ["not every chunk is in the index"] * (len(indices) != len(chunks))
    for index, chunk in zip(sorted(indices, key=lambda i: i.chunk_start_offset), chunks, strict=False):
        wrong += ["a chunk index points elsewhere"] * (data[index.chunk_start_offset] != 6)
        same = (index.message_start_time, index.message_end_time, index.uncompressed_size, index.compressed_size)
        if same != (chunk.message_start_time, chunk.message_end_time, chunk.uncompressed_size, len(chunk.data)):
            wrong.append("a chunk index says other things than its chunk")
    for where in (r for r in summary if isinstance(r, MetadataIndex)):
        wrong += ["a metadata index points elsewhere"] * (data[where.offset] != 12)
    found = [r for r in summary if isinstance(r, Statistics)]
    metadata = sum(isinstance(r, Metadata) for r in body)
    if len(found) != 1:
        return [*wrong, "there are no statistics"]
    told = found[0]
    if (told.message_count, told.chunk_count, told.metadata_count) != (sum(counts.values()), len(chunks), metadata):
        wrong.append("the statistics count otherwise")
    if {k: n for k, n in told.channel_message_counts.items() if n} != counts:
        wrong.append("the statistics count messages of a channel otherwise")
    if counts and (told.message_start_time, told.message_end_time) != (first, last):
        wrong.append("the statistics have other times")
    if (told.schema_count, told.channel_count) != (len(schemas), len(channels)):
        wrong.append("the statistics count schemas or channels otherwise")
    return wrong


@pytest.mark.parametrize("n", [1, 300, 3000])
def test_nothing_is_wrong(rng: np.random.Generator, tmp_path: Path, n: int) -> None:
    write_mcap(some_log(rng, n), tmp_path / "log.mcap")
    assert doctor((tmp_path / "log.mcap").read_bytes()) == []


def test_damage_is_found(rng: np.random.Generator, tmp_path: Path) -> None:
    """A bit in a chunk, a count in the statistics, half a file: each is a complaint."""
    write_mcap(some_log(rng, 300), tmp_path / "log.mcap")
    data = bytearray((tmp_path / "log.mcap").read_bytes())
    middle = bytearray(data)
    middle[len(data) // 2] ^= 1
    assert doctor(bytes(middle))
    assert doctor(bytes(data[: len(data) // 2]))
    records = list(StreamReader(BytesIO(bytes(data)), emit_chunks=True).records)
    told = next(r for r in records if isinstance(r, Statistics))
    place = data.rindex(struct.pack("<QH", told.message_count, told.schema_count))
    data[place] ^= 1
    footer = len(data) - 8 - 4
    data[footer : footer + 4] = bytes(4)  # no checksum of the summary: the count itself must be noticed
    assert "the statistics count otherwise" in doctor(bytes(data))
