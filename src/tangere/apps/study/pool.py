"""Tasks on several processes: the same results whatever their number, and what is done is kept when interrupted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import get_context
from types import TracebackType
from typing import Any

from tangere.errors import InvalidValue

Task = tuple[Callable[..., Any], tuple[Any, ...]]
Progress = Callable[[int, int], None]
# Small matrices gain nothing from threads of their own, and many processes with many threads each stand in each
# other's way. Read by the libraries when a process starts.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Workers:
    """A pool of `count` processes (None: one per core that this process may use); 1 works in this process itself.

    A task is a function of a module and its arguments; nothing else must decide its result. Processes are spawned, not
    forked: the same on every system, and no lock of this process is copied.
    """

    def __init__(self, count: int | None = None) -> None:
        if count is not None and count < 1:
            raise InvalidValue(f"workers: at least 1, got {count!r}")
        self.count = count or _cores()
        self.interrupted = False
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.count > 1:
            self._pool = ProcessPoolExecutor(self.count, mp_context=get_context("spawn"), initializer=_quiet)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def results(self, tasks: Sequence[Task], progress: Progress = lambda done, total: None) -> list[Any]:
        """The results in the order of the tasks; after an interruption (Ctrl-C) those that were done by then."""
        if self.interrupted:
            return []
        found: dict[int, Any] = {}
        try:
            if self._pool is None:
                for k, (function, arguments) in enumerate(tasks):
                    found[k] = function(*arguments)
                    progress(len(found), len(tasks))
            else:
                self._spread(tasks, found, progress)
        except KeyboardInterrupt:
            self.interrupted = True
        return [found[k] for k in sorted(found)]

    def _spread(self, tasks: Sequence[Task], found: dict[int, Any], progress: Progress) -> None:
        assert self._pool is not None
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        try:
            waiting: dict[Future[Any], int] = {self._pool.submit(f, *a): k for k, (f, a) in enumerate(tasks)}
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    found[waiting.pop(future)] = future.result()
                progress(len(found), len(tasks))
        finally:
            for future in waiting:
                future.cancel()


def _cores() -> int:
    """Cores that this process may use, where the system tells; else all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quiet() -> None:
    """Ctrl-C is for the process that asked; this one ends when told."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
