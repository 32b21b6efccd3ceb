"""A long log of ours in pieces: an overview at once, and the rows around a time when somebody looks there."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere import foreign
from tangere.logs import mcap_records
from tangere.logs.channels import EVENTS_TOPIC, NOTES_TOPIC
from tangere.logs.log import Log
from tangere.logs.mcap_read import McapReader
from tangere.logs.mcap_records import Fields

IN_PIECES = 50_000_000  # [bytes] unpacked, from which a log is looked at in pieces: about two seconds of reading
OVERVIEW = 40_000_000  # [bytes] unpacked that an overview reads: evenly chosen chunks, and those that tell of events
SIDE = 1.0  # [s] before and after a time that are read with it


@dataclass(frozen=True)
class _Chunk:
    start: int  # [ns]
    end: int
    size: int  # [bytes] unpacked
    content: memoryview
    channels: frozenset[int]  # that have messages in it


class Pieces:
    """The chunks of a log that tangere wrote; `own` is False for a file of others, which has no pieces."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._head: list[tuple[int, memoryview]] = []
        self._about: dict[str, str] = {}
        self.complete = False
        chunks: list[_Chunk] = []
        for opcode, content in mcap_records.records(memoryview(self._map), 8):
            fields = Fields(content)
            if opcode == mcap_records.CHUNK:
                start, end, size = fields.numbers("QQQ")
                chunks.append(_Chunk(start, end, size, content, frozenset()))
            elif opcode == mcap_records.MESSAGE_INDEX and chunks:
                last = chunks[-1]
                channels = last.channels | {*fields.numbers("H")}
                chunks[-1] = _Chunk(last.start, last.end, last.size, last.content, channels)
            elif opcode == mcap_records.METADATA and fields.string() == "tangere":
                self._about = fields.mapping()
            elif opcode in (mcap_records.SCHEMA, mcap_records.CHANNEL):
                self._head.append((opcode, content))
            elif opcode in (mcap_records.DATA_END, mcap_records.FOOTER):
                self.complete = True
                break
        self._chunks = chunks
        self.size = sum(chunk.size for chunk in chunks)  # [bytes] unpacked

    @property
    def own(self) -> bool:
        """Whether tangere wrote it."""
        return bool(self._about) and bool(self._chunks)

    def overview(self) -> Log:
        """Some rows of all the time, and every note and event."""
        count = max(2, round(len(self._chunks) * min(1.0, OVERVIEW / max(self.size, 1))))
        evenly = set(np.linspace(0, len(self._chunks) - 1, count).round().astype(int).tolist())
        topics = self._reader().channels
        told = {number for number, (topic, _, _) in topics.items() if topic in (NOTES_TOPIC, EVENTS_TOPIC)}
        telling = [k for k, chunk in enumerate(self._chunks) if chunk.channels & told]
        evenly |= set(telling[:count])  # a log that notes something all the time stays an overview
        return self._log([self._chunks[k] for k in sorted(evenly)])

    def around(self, time: float) -> Log:
        """Every row from SIDE before a time [s] to SIDE after it."""
        zero = int(self._about.get("start_ns", 0))
        low, high = (zero + int((time + by) * 1e9) for by in (-SIDE, SIDE))
        # notes may stand in a chunk of other times: its rows are cut away again
        log = self._log([chunk for chunk in self._chunks if chunk.end >= low and chunk.start <= high])
        near = log.between(time - SIDE, time + SIDE)
        return near if len(near) else self._log([min(self._chunks, key=lambda chunk: abs(chunk.start - low))])

    def _log(self, chunks: list[_Chunk]) -> Log:
        reader, held = self._reader(), []
        for chunk in chunks:
            inside = reader.inside(Fields(chunk.content), whole=True)
            held += [] if inside is None else list(reader.rows(inside))
        reader.ended = self.complete
        return reader.log(held)

    def _reader(self) -> McapReader:
        reader = McapReader(self.path, foreign.allowed())
        reader.declared(self._about)
        for opcode, content in self._head:
            reader.take(opcode, content)
        return reader


def pieces(path: str | os.PathLike[str]) -> Pieces | None:
    """The pieces of a long log of ours; None for a short one, one of others, or what is no MCAP file."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            if opened.read(8) != mcap_records.MAGIC:
                return None
        found = Pieces(file)
    except (OSError, ValueError):  # whoever reads it as a whole says what is wrong with it
        return None
    return found if found.own and found.size > IN_PIECES else None
