"""Processes that do the tasks of a study: the same results whatever their number; what is done is kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import Any, Protocol

from tangere import ends
from tangere.errors import InvalidValue, NoSolution

Task = tuple[Callable[..., Any], tuple[Any, ...]]
Done = Callable[[int, int], None]  # tasks that are done, of how many
Keep = Callable[[int, Any], None]  # number and result of a task
KILLED = "a worker process was killed, by lack of memory perhaps; --workers 1 needs the least"
MOST = 16  # processes for each core: more only stand in each other's way, and each takes 0.2 GB
# Small matrices gain nothing from threads of their own, and many processes with many threads each stand in each
# other's way. Read by the libraries when a process starts.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Store(Protocol):
    """What was done before: results by the number of their task."""

    def get(self, task: int) -> Any:
        """The result, None where there is none."""

    def put(self, task: int, result: Any) -> None:
        """Keep a result."""


class Workers:
    """A pool of `count` processes (None: one per core that this process may use); 1 works in this process itself.

    A task is a function of a module and its arguments; nothing else must decide its result. Processes are spawned, not
    forked: the same on every system, and no lock of this process is copied. threads: of this process instead, for tasks
    that wait for a GPU.
    """

    def __init__(self, count: int | None = None, *, threads: bool = False) -> None:
        most = MOST * _cores()
        if count is not None and not 1 <= count <= most:
            raise InvalidValue(f"workers: 1 to {most}, {MOST} for each core of this computer, got {count!r}")
        self.count, self._threads = count or _cores(), threads
        self.interrupted = False
        self.lost = ""  # why, where nobody asked for it
        self._pool: Executor | None = None

    def __enter__(self) -> Workers:
        if self._threads:
            self._pool = ThreadPoolExecutor(self.count)
        elif self.count > 1:
            self._pool = ProcessPoolExecutor(self.count, mp_context=get_context("spawn"), initializer=ends.child)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool is not None:
            if self.interrupted or kind is not None:  # what they still work at nobody waits for
                for process in tuple(getattr(self._pool, "_processes", None) or {}):
                    with suppress(ProcessLookupError):
                        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    @property
    def spreads(self) -> bool:
        """Whether tasks go to other processes."""
        return self._pool is not None

    def results(
        self,
        tasks: Sequence[Task],
        progress: Done = lambda done, total: None,
        keep: Callable[[Any], None] = lambda result: None,
        store: Store | None = None,
    ) -> list[Any]:
        """The results in the order of the tasks; after an interruption (Ctrl-C) those that were done by then.

        keep: called with each as it comes, in any order. store: what it holds is not done again, what is done goes into
        it.
        """
        if self.interrupted:
            return []
        found: dict[int, Any] = {}
        if store is not None:
            found = {k: result for k in range(len(tasks)) if (result := store.get(k)) is not None}
            for result in found.values():
                keep(result)
            progress(len(found), len(tasks))

        def kept(task: int, result: Any) -> None:
            if store is not None:
                store.put(task, result)
            keep(result)

        try:
            if not self.spreads:
                for k, (function, arguments) in enumerate(tasks):
                    if k in found:
                        continue
                    found[k] = function(*arguments)
                    kept(k, found[k])
                    progress(len(found), len(tasks))
            else:
                self._spread(tasks, found, progress, kept)
        except KeyboardInterrupt:
            self.interrupted = True
        except BrokenProcessPool:
            self.interrupted, self.lost = True, KILLED
        return [found[k] for k in sorted(found)]

    def need(self, found: Sequence[Any], count: int) -> None:
        """Without so many there is nothing to show."""
        if self.lost and len(found) < count:
            raise NoSolution(self.lost)
        if len(found) < count:
            raise ends.told() or KeyboardInterrupt

    def _spread(self, tasks: Sequence[Task], found: dict[int, Any], progress: Done, keep: Keep) -> None:
        assert self._pool is not None
        before = {name: os.environ[name] for name in _THREADS if name in os.environ}
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        try:
            missing = [k for k in range(len(tasks)) if k not in found]
            waiting: dict[Future[Any], int] = {self._pool.submit(tasks[k][0], *tasks[k][1]): k for k in missing}
        finally:
            for name in _THREADS:
                del os.environ[name]
            os.environ.update(before)
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    k = waiting.pop(future)
                    found[k] = future.result()
                    keep(k, found[k])
                progress(len(found), len(tasks))
        finally:
            for future in waiting:
                future.cancel()


def _cores() -> int:
    """Cores that this process may use, where the system tells; else all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
