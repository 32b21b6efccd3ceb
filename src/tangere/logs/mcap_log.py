"""Logs as MCAP files of ROS 2 messages: they open in Foxglove and in `ros2 bag`, and survive a kill."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from time import sleep

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs import mcap_records, ros_messages
from tangere.logs.channels import NOTES, NOTES_TOPIC, Channel, Encoder, channels_of
from tangere.logs.files import replacing
from tangere.logs.log import Log, Note, unit_of
from tangere.logs.mcap_records import Buffer
from tangere.types import Array

# rows encoded in one go while a loop runs beside: about 0.1 ms, the longest that the loop may wait for the interpreter
SLICE = 64
# s between two such goes: gives the interpreter back to the loop
PAUSE = 2e-4


class McapFile:
    """An MCAP file that grows by chunks of rows. Without `close` it has no end, and readers can tell.

    columns: name -> k, 0 for a column (N,). joints: names for the messages. start_ns: what time 0 is, in ns since 1970
    (0: stamps are run time, so that equal runs leave equal files).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, int],
        units: Mapping[str, str] | None = None,
        *,
        joints: Sequence[str] | None = None,
        start_ns: int = 0,
    ) -> None:
        if "time" not in columns:
            raise InvalidValue(f"columns: 'time' must be among them, got {list(columns)}")
        names = tuple(joints) if joints is not None else tuple(f"joint_{i + 1}" for i in range(columns.get("q", 0)))
        at, layout = 0, {}
        for name, k in columns.items():
            layout[name] = slice(at, at + max(k, 1))
            at += max(k, 1)
        self._time = layout["time"].start
        self.width = at
        self._start_ns = start_ns
        channels = channels_of(columns, names)
        self._encoder = Encoder(channels, layout, range(1, len(channels) + 1))
        self._notes_number = len(channels) + 1
        self._summary = mcap_records.Summary()
        self._rows = self._notes = 0
        about = {
            "columns": json.dumps(columns),
            "units": json.dumps({name: (units or {}).get(name, unit_of(name)) for name in columns}),
            "joints": json.dumps(names),
            "start_ns": str(start_ns),
        }
        self._open(Path(path), channels, about)

    def _open(self, path: Path, channels: Sequence[Channel], about: Mapping[str, str]) -> None:
        types = list(dict.fromkeys([*(channel.type for channel in channels), NOTES]))
        self._schemas = [mcap_records.schema(i + 1, t, ros_messages.DEFINITIONS[t]) for i, t in enumerate(types)]
        self._channels = [
            mcap_records.channel(i + 1, types.index(c.type) + 1, c.topic, {"columns": json.dumps(c.columns)})
            for i, c in enumerate(channels)
        ]
        number = types.index(NOTES) + 1
        self._channels.append(mcap_records.channel(self._notes_number, number, NOTES_TOPIC, {}))
        try:  # unbuffered: what is written the kernel has, whatever becomes of us
            self._file = path.open("wb", buffering=0)
        except OSError as problem:
            raise InvalidValue(f"cannot write {path}: {problem.strerror or problem}") from problem
        self._size = 0
        begin = mcap_records.MAGIC + mcap_records.header("ros2", "tangere")
        content = mcap_records.string("tangere") + mcap_records.mapping(about)
        metadata = mcap_records.record(mcap_records.METADATA, content)
        self._metadata_index = mcap_records.record(
            mcap_records.METADATA_INDEX,
            len(begin).to_bytes(8, "little") + len(metadata).to_bytes(8, "little") + mcap_records.string("tangere"),
        )
        try:
            self._write(begin + metadata + b"".join(self._schemas) + b"".join(self._channels))
        except OSError as problem:
            self._file.close()
            raise InvalidValue(f"cannot write {path}: {problem.strerror or problem}") from problem

    def write(self, rows: Array, notes: Sequence[Note] = (), *, gently: bool = False) -> None:
        """One chunk: rows (k, width), columns side by side as declared, and notes. gently: let others run meanwhile."""
        ns = np.maximum(self._start_ns + np.rint(rows[:, self._time] * 1e9).astype(np.int64), 0)  # stamps are unsigned
        pieces: list[Buffer] = []
        for first in range(0, len(rows), SLICE if gently else max(len(rows), 1)):
            part = slice(first, first + SLICE if gently else len(rows))
            pieces.append(self._encoder.encode(rows[part], ns[part], self._rows + first))
            if gently:
                sleep(PAUSE)
        indexes = {number: entries.tobytes() for number, entries in self._encoder.index(ns).items() if len(ns)}
        stamps = ns.tolist()
        at, entries = len(rows) * self._encoder.width, b""
        for note in notes:
            stamp = max(self._start_ns + round(note.time * 1e9), 0)
            data = ros_messages.note(stamp, note.text, note.time)
            pieces.append(mcap_records.message(self._notes_number, self._notes, stamp, data))
            entries += stamp.to_bytes(8, "little") + at.to_bytes(8, "little")
            stamps.append(stamp)
            at += len(pieces[-1])
            self._notes += 1
        if entries:
            indexes[self._notes_number] = entries
        if stamps:
            for piece in self._summary.chunk(self._size, pieces, min(stamps), max(stamps), indexes):
                self._write(piece)
        self._rows += len(rows)

    def close(self) -> None:
        """Write the end of the file: only now it is whole. May be called twice."""
        if not self._file.closed:
            self._write(self._summary.closing(self._size, self._schemas, self._channels, self._metadata_index))
            self._file.close()

    def abandon(self) -> None:
        """Close without an end."""
        self._file.close()

    def _write(self, data: Buffer) -> None:
        done = 0
        while done < len(data):  # an unbuffered write may take less than all of it
            done += self._file.write(data[done:]) or 0
        self._size += len(data)


class McapSink:
    """Writes rows that a Recorder hands on, in a thread of its own; the loop pays for a queue entry.

    Never raises in the loop: `error` says what went wrong (a full disk), and nothing more is written then.
    """

    def __init__(self, file: McapFile) -> None:
        self.error = ""
        self._file = file
        self._queue: SimpleQueue[Array | Note | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tangere-log", daemon=True)
        self._thread.start()

    def rows(self, block: Array) -> None:
        """Write these rows, later."""
        self._queue.put(block)

    def note(self, note: Note) -> None:
        """Write this note with the next rows."""
        self._queue.put(note)

    def close(self) -> None:
        """Wait for what is still to be written and end the file; may be called twice."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        notes: list[Note] = []
        try:
            while (item := self._queue.get()) is not None:
                if isinstance(item, Note):
                    notes.append(item)
                else:
                    self._file.write(item, notes, gently=True)
                    notes = []
            if notes:
                self._file.write(np.empty((0, self._file.width)), notes)
            self._file.close()
        except Exception as problem:  # a thread has nobody to raise to
            self.error = f"the log could not be written: {problem}"
            self._file.abandon()


def write_mcap(log: Log, path: str | os.PathLike[str], *, joints: Sequence[str] | None = None) -> None:
    """Write a whole log; the file appears when it is complete."""
    columns = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in log.columns.items()}
    rows = np.concatenate([a if a.ndim == 2 else a[:, None] for a in log.columns.values()], axis=1)
    with replacing(path) as temporary:
        file = McapFile(temporary, columns, log.units, joints=joints)
        try:
            # chunks of about 1 MB: readers load one at a time
            for first in range(0, max(len(rows), 1), 1024):
                file.write(rows[first : first + 1024], log.notes if first == 0 else ())
            file.close()
        finally:
            file.abandon()
