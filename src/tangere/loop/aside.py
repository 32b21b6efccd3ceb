"""Rows of a stream that come while somebody computes: read on in a thread, kept in a file until the log has them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from tangere.errors import CannotWrite
from tangere.logs.csv_log import CsvSink
from tangere.logs.recordings import StreamRow

# [s] between two writes: each may wait for the interpreter, which who computes gives away every 5 ms
BESIDE_EVERY = 0.1
BESIDE_LEFT = 2.0  # [s] that the file stays when its rows have been taken: the log is written five times a second


class Aside:
    """Reads on in `rows` until `rest` is asked for; a kill meanwhile leaves unfinished-NAME.K.csv beside NAME.mcap.

    log: NAME.mcap; number: K, which no other has. Where that file cannot be written (a full disk) there is none: the
    rows are read all the same. No log: they wait.
    """

    def __init__(self, rows: Iterator[StreamRow], log: str | os.PathLike[str] | None, number: int) -> None:
        self._rows, self._log, self._number = rows, log, number
        self._read: SimpleQueue[StreamRow | BaseException | None] = SimpleQueue()
        self._enough, self._taken, self._over = threading.Event(), threading.Event(), threading.Event()
        self._fresh: deque[StreamRow] = deque()  # not in the file yet
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._work, self._keep)]
        for thread in self._threads if log is not None else ():
            thread.start()

    def rest(self) -> Iterator[StreamRow]:
        """What was read meanwhile, the row that is waited for, then all others."""
        self._enough.set()
        while self._log is not None and (row := self._read.get()) is not None:
            if isinstance(row, BaseException):
                raise row
            yield row
        self._taken.set()
        yield from self._rows

    def close(self) -> None:
        """The rows that were taken are in good hands; a file with others stays."""
        self._over.set()
        if self._log is None or not self._enough.is_set():
            return
        while not self._taken.is_set() and not self._read.empty():
            if self._read.get() is not None:  # a row that nobody has taken
                return
        self._taken.set()
        self._threads[1].join()

    def _work(self) -> None:
        try:
            for row in self._rows:
                self._read.put(row)
                self._fresh.append(row)
                if self._enough.is_set():
                    break
        except BaseException as problem:  # raised where the row is asked for
            self._read.put(problem)
        self._read.put(None)

    def _keep(self) -> None:
        sink: CsvSink | None = None
        while not self._taken.wait(BESIDE_EVERY):
            rows = [self._fresh.popleft() for _ in range(len(self._fresh))]
            sink = self._sink(rows[0]) if rows and sink is None else sink
            if rows and sink is not None:
                parts = [(np.array([row.time]), *map(np.ravel, row.values.values())) for row in rows]
                sink.rows(np.array([np.concatenate(part) for part in parts]))
        self._over.wait(BESIDE_LEFT)
        if sink is not None:
            sink.drop()

    def _sink(self, row: StreamRow) -> CsvSink | None:
        widths = {name: np.size(value) if np.ndim(value) else 0 for name, value in row.values.items()}
        with suppress(CannotWrite):
            return CsvSink(Path(self._log or "").with_suffix(f".{self._number}.csv"), {"time": 0, **widths})
        return None
