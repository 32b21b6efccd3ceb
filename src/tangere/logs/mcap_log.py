"""Logs as MCAP files of ROS 2 messages: they open in Foxglove and in `ros2 bag`, and survive a kill."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic, sleep, time_ns
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import CannotWrite, InvalidValue
from tangere.logs import channels as messages
from tangere.logs import mcap_records, ros_messages
from tangere.logs.channels import BLOCKS_TOPIC, EVENTS_TOPIC, NOTES_TOPIC, Channel, Encoder, Views, channels_of, packed
from tangere.logs.columns import unit_of
from tangere.logs.files import locked, plain, put_by, replacing
from tangere.logs.log import Log, Note
from tangere.logs.mcap_records import Buffer, Chunk
from tangere.types import Array, Event

if TYPE_CHECKING:
    from tangere.robots import Robot

# rows encoded in one go while a loop runs beside: about 0.1 ms, the longest that the loop may wait for the interpreter
SLICE = 64
# [s] between two such goes: gives the interpreter back to the loop
PAUSE = 2e-4
# rows of a chunk while something runs: some 400 kB in the file, the most that a full disk or a quota costs. Each chunk
# costs some 0.3 ms besides its rows
CHUNK_ROWS = 1024
# zstd's level: 1 takes half the time of 3 (its default) for 1 % more bytes, -1 two thirds of that for 1 % more again;
# -5 takes half, for 7 %. Noise does not get smaller at any
COMPRESSION = -1
# rows that wait where they cannot be written (a full disk): some 160 MB
WAITING = 200_000
RETRY = 1.0  # [s] until the next try
# [s] without anything to write after which rows are asked for that somebody still holds back
ASK_AFTER = 0.2
PLAIN = "this log is not compressed: zstandard is not installed (pip install 'tangere[log]')"


class McapFile:
    """An MCAP file that grows by chunks of rows. Without `close` it has no end, and readers can tell.

    columns: name -> k, 0 for a column (N,). joints: their names in the messages; those of the robot where not given.
    robot: adds /robot_description, /tf and the pose of the tcp, which viewers show. start_ns: what time 0 is, in ns
    since 1970; now where not given (equal runs leave equal files but for it). durable: every chunk is on the disk, not
    only in the system's memory, before the next: a power cut costs no more than a kill.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, int],
        units: Mapping[str, str] | None = None,
        *,
        joints: Sequence[str] | None = None,
        start_ns: int | None = None,
        robot: Robot | None = None,
        durable: bool = False,
    ) -> None:
        self._durable = durable
        if "time" not in columns:
            raise InvalidValue(f"columns: 'time' must be among them, got {list(columns)}")
        if joints is None and robot is not None and robot.dof == columns.get("q"):
            joints = [joint.name for joint in robot.model.joints]
        names = tuple(joints) if joints is not None else tuple(f"joint_{i + 1}" for i in range(columns.get("q", 0)))
        at, layout = 0, {}
        for name, k in columns.items():
            layout[name] = slice(at, at + max(k, 1))
            at += max(k, 1)
        self.width = at
        self._layout = layout
        self._start_ns = time_ns() if start_ns is None else start_ns
        self._summary = mcap_records.Summary(_compressor())
        self._views = Views(layout, robot)
        channels, self._blocks = channels_of(columns, names)
        once, often = self._views.once, self._views.often
        extra = [Channel(topic, kind, ros_messages.Template(), {}) for topic, kind in (
            (NOTES_TOPIC, messages.NOTES), (EVENTS_TOPIC, messages.TEXT), (BLOCKS_TOPIC, messages.BLOCK))]  # fmt: skip
        every = [*channels, *once.channels, *often.channels, *extra]
        number = {channel.topic: i + 1 for i, channel in enumerate(every)}
        self._number = number
        self._rows, self._once, self._often = (
            Encoder(some, where, [number[channel.topic] for channel in some])
            for some, where in ((channels, layout), (once.channels, once.layout), (often.channels, often.layout))
        )
        about = {
            "columns": json.dumps(columns),
            "units": json.dumps({name: (units or {}).get(name, unit_of(name)) for name in columns}),
            "joints": json.dumps(names),
            "start_ns": str(self._start_ns),
        }
        self._open(Path(path), every, about)

    def _open(self, path: Path, channels: Sequence[Channel], about: Mapping[str, str]) -> None:
        """Begin the file: it appears with its head in it, so that there is no moment at which it cannot be read."""
        types = list(dict.fromkeys(channel.type for channel in channels))
        self._schemas = [mcap_records.schema(i + 1, t, ros_messages.DEFINITIONS[t]) for i, t in enumerate(types)]
        self._channels = [
            mcap_records.channel(
                i + 1, types.index(c.type) + 1, c.topic,
                {"columns": json.dumps(c.columns)} if i < len(self._rows.numbers) else {},
            )
            for i, c in enumerate(channels)
        ]  # fmt: skip
        begin = mcap_records.MAGIC + mcap_records.header("ros2", "tangere")
        content = mcap_records.string("tangere") + mcap_records.mapping(about)
        metadata = mcap_records.record(mcap_records.METADATA, content)
        self._metadata_index = mcap_records.record(
            mcap_records.METADATA_INDEX,
            len(begin).to_bytes(8, "little") + len(metadata).to_bytes(8, "little") + mcap_records.string("tangere"),
        )
        self._size = 0
        with replacing(path, log=True) as temporary:
            self._file = temporary.open("wb", buffering=0)  # unbuffered: what is written the kernel has
            try:
                locked(self._file.fileno())
                self._write(begin + metadata + b"".join(self._schemas) + b"".join(self._channels))
                first = Chunk()
                if self._once.numbers:
                    self._messages(first, self._once, self._views.first[None], np.array([max(self._start_ns, 0)]))
                if not self._summary.compression:
                    self._note(first, Note(0.0, PLAIN))
                self._close(first)
            except BaseException:
                self._file.close()
                raise

    def write(
        self,
        rows: Array,
        notes: Sequence[Note] = (),
        *,
        events: Sequence[Mapping[str, Any]] = (),
        gently: bool = False,
    ) -> None:
        """One chunk: rows (k, width), columns side by side as declared, notes, and events in their form for JSON.

        gently: let others run meanwhile.
        """
        chunk = Chunk()
        ns = self._stamps(rows[:, self._layout["time"].start])
        self._messages(chunk, self._rows, rows, ns, gently)
        if len(rows):
            if self._blocks:
                block = packed({name: rows[:, self._layout[name]] for name in self._blocks})
                self._message(chunk, BLOCKS_TOPIC, int(ns[-1]), block)
            shown, values = self._views.table(rows, rows[:, self._layout["time"].start])
            self._messages(chunk, self._often, values, ns[shown])
        for note in notes:
            self._note(chunk, note)
        for event in events:
            when = event.get("end_s") or event.get("time_s") or 0.0
            stamp = int(self._stamps(np.array([when], dtype=np.float64))[0])
            self._message(chunk, EVENTS_TOPIC, stamp, ros_messages.text(json.dumps(plain(event), allow_nan=False)))
        self._close(chunk)

    def _stamps(self, time: Array) -> NDArray[np.int64]:
        """Times of a run [s] as ns since 1970; never negative, since MCAP's stamps are unsigned."""
        return np.maximum(self._start_ns + np.rint(time * 1e9).astype(np.int64), 0)

    def _messages(
        self, chunk: Chunk, encoder: Encoder, rows: Array, ns: NDArray[np.int64], gently: bool = False
    ) -> None:
        """Add one message of each of an encoder's channels per row."""
        if not len(rows) or not encoder.numbers:
            return
        chunk.indexes |= encoder.index(ns, chunk.size)
        sequence = self._summary.counts.get(encoder.numbers[0], 0)
        step = SLICE if gently else len(rows)
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            times = [int(ns[part].min()), int(ns[part].max())]
            chunk.add(encoder.encode(rows[part], ns[part], sequence + first), times)
            if gently:
                sleep(PAUSE)

    def _message(self, chunk: Chunk, topic: str, ns: int, data: bytes) -> None:
        number = self._number[topic]
        before = len(chunk.indexes.get(number, b"")) // 16
        chunk.message(number, self._summary.counts.get(number, 0) + before, ns, data)

    def _note(self, chunk: Chunk, note: Note) -> None:
        stamp = int(self._stamps(np.array([note.time]))[0])
        self._message(chunk, NOTES_TOPIC, stamp, ros_messages.note(stamp, note.text, note.time))

    def _close(self, chunk: Chunk) -> None:
        """Write a chunk, in one call: a kill between two calls would leave a longer tail that cannot be read."""
        if chunk.pieces:
            before = self._summary.state
            try:
                self._write(b"".join(self._summary.chunk(self._size, chunk)))
            except OSError:
                self._summary.forget(before)
                raise

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
        try:
            while done < len(data):  # an unbuffered write may take less than all of it
                done += self._file.write(data[done:]) or 0
        except OSError:
            with suppress(OSError):  # half a chunk is no use, and its room may be needed for a summary
                self._file.truncate(self._size)
                self._file.seek(self._size)
            raise
        self._size += len(data)
        if self._durable:
            os.fsync(self._file.fileno())

    @property
    def size(self) -> int:
        """[bytes] so far."""
        return self._size


class McapSink:
    """Writes rows that a Recorder hands on, in a thread of its own; the loop pays for a queue entry.

    Never raises in the loop: `error` says what goes wrong (a full disk). What could not be written waits, and is tried
    again every second and at the end, when `error` is "" again. More than WAITING rows do not wait: they are lost.
    turn: makes the next file where this one has grown to `most` bytes; notes and events go into the one that is open.
    gently: in small goes, for a loop that a clock drives; one that runs as fast as it can is sooner done without.
    """

    def __init__(
        self,
        file: McapFile,
        turn: Callable[[], McapFile] | None = None,
        most: float = float("inf"),
        gently: bool = True,
    ) -> None:
        self.error, self._gently = "", gently
        self._file, self._turn, self._most = file, turn, most
        self._nothing: Array = np.empty((0, file.width))
        self._queue: SimpleQueue[Array | Note | Event | None] = SimpleQueue()
        self._idle: Callable[[], None] = lambda: None
        self._notes: list[Note] = []
        self._events: list[Mapping[str, Any]] = []
        self._rows: deque[Array] = deque()  # chunks that are still to be written
        self._lost = 0  # rows
        self._retry = 0.0  # [s] of the monotonic clock: not before, where something went wrong
        self._thread = threading.Thread(target=self._work, name="tangere-log", daemon=True)
        self._thread.start()

    def rows(self, block: Array) -> None:
        """Write these rows, later."""
        self._queue.put(block)

    def note(self, note: Note) -> None:
        """Write this note with the next rows."""
        self._queue.put(note)

    def event(self, event: Event) -> None:
        """Write this event, as it is now, with the next rows."""
        self._queue.put(event)

    def when_idle(self, call: Callable[[], None]) -> None:
        """What to call where nothing came for a while: whoever holds rows back hands them on."""
        self._idle = call

    def close(self) -> None:
        """Wait for what is still to be written and end the file; may be called twice."""
        if self._thread.is_alive():
            self._gently = False  # nobody waits for the interpreter any more
            self._queue.put(None)
            self._thread.join()

    def _next(self) -> Array | Note | Event | None:
        """The next thing to write; nothing, in form of no rows, where none came for a while."""
        try:
            return self._queue.get(timeout=ASK_AFTER)
        except Empty:
            self._idle()
            return self._nothing if self._queue.empty() else self._queue.get()

    def _work(self) -> None:
        try:
            while (item := self._next()) is not None:
                if isinstance(item, Note):
                    self._notes.append(item)
                elif isinstance(item, np.ndarray):
                    self._take(item)
                else:
                    self._events.append(item.record())
            self._retry = 0.0
            self._take(self._nothing)
            if not self._rows:
                self._file.close()
        except Exception as problem:  # a thread has nobody to raise to
            self._failed(problem)
        self._file.abandon()
        if self._lost:
            self.error = self.error or f"{self._lost} rows are missing from the log: the disk was full for too long"

    def _take(self, block: Array) -> None:
        if len(self._rows) * CHUNK_ROWS > WAITING:
            self._lost += len(block)
        elif len(block) or not self._rows:
            self._rows.extend(block[first : first + CHUNK_ROWS] for first in range(0, max(len(block), 1), CHUNK_ROWS))
        if self.error and monotonic() < self._retry:
            return
        while self._rows:
            try:
                if self._turn is not None and len(self._rows[0]) and self._file.size > self._most:
                    self._file.close()
                    self._file = self._turn()
                self._file.write(self._rows[0], self._notes, events=self._events, gently=self._gently)
            except (OSError, CannotWrite) as problem:
                self._failed(problem)
                self._retry = monotonic() + RETRY
                return
            self._rows.popleft()
            self._notes, self._events, self.error = [], [], ""

    def _failed(self, problem: Exception) -> None:
        self.error = f"the log could not be written: {getattr(problem, 'strerror', None) or problem}"


def mcap_sink(
    path: str | os.PathLike[str],
    columns: Mapping[str, int],
    *,
    most: float | None = None,
    gently: bool = True,
    **how: Any,
) -> McapSink:
    """A log that is written while something runs; most [bytes]: of it and the parts before, NAME.1.mcap, together.

    Where it has grown to half of that it becomes the part before, and a new one begins: the newest half is there. So
    does what an earlier program left, which may have been ended after a minute: then there are more parts.
    """
    if most is None:
        return McapSink(McapFile(path, columns, **how), gently=gently)

    def turn() -> McapFile:
        put_by(Path(path), 0.5 * most)
        return McapFile(path, columns, **how)

    return McapSink(turn(), turn, 0.5 * most, gently)


def write_mcap(
    log: Log, path: str | os.PathLike[str], *, joints: Sequence[str] | None = None, robot: Robot | None = None
) -> None:
    """Write a whole log; the file appears when it is complete. joints, robot: as for McapFile."""
    with replacing(path) as temporary:
        file = McapFile(temporary, log.shapes(), log.units, joints=joints, start_ns=log.start_ns, robot=robot)
        try:
            once: dict[str, Any] = {"notes": log.notes, "events": log.events}
            for part in log.pieces():
                rows = part.table()
                # chunks of about 2 MB before compression: readers load one at a time
                for first in range(0, max(len(rows), 1), 1024):
                    file.write(rows[first : first + 1024], **once)
                    once = {}
            file.close()
        finally:
            file.abandon()


def _compressor() -> Any:
    """zstd, None where it is not installed."""
    try:
        return import_module("zstandard").ZstdCompressor(level=COMPRESSION)
    except ImportError:
        return None
