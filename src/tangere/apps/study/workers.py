"""Who does the tasks of a study, processes or a dask cluster that is there: the same results whatever their number.

Results are kept as files, one each, written as they are done: a study goes on after any end."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tangere import ends
from tangere.apps.study.trials import Answer, Collided, FreeResult, Injected, TouchResult
from tangere.errors import CannotWrite, InvalidValue, NoSolution, extra
from tangere.kernels import backend
from tangere.logs.files import plain, write_text

FOLDER = "chunks"
_TYPES: dict[str, Any] = {one.__name__: one for one in (FreeResult, Injected, TouchResult, Answer, Collided)}


def versions() -> dict[str, str]:
    """What must be the same wherever a task is done: it decides the bits."""
    import tangere

    kernels = "compiled" if backend.COMPILED else "in Python"
    python = sys.version.split()[0]
    ours = f"{tangere.__version__} ({_source()})"
    return {"tangere": ours, "numpy": np.__version__, "python": python, "kernels": kernels}


@cache
def _source() -> str:
    """The package as it is here: two states of a repository may bear the same version."""
    import tangere

    digest, root = hashlib.sha256(), Path(tangere.__file__).parent
    for path in sorted(path for ending in ("py", "toml") for path in root.rglob(f"*.{ending}")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return f"source {digest.hexdigest()[:12]}"


class Chunks:
    """The chunks of one plan in the folder of a study: results of tasks, one file each.

    A chunk is plain JSON of our own result types: nothing in it is executed when it is read. What is not whole, or
    belongs to another plan, counts as not there.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self.folder = folder / FOLDER
        told = json.dumps({"plan": plain(plan), "versions": versions()}, sort_keys=True)
        self.digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        self.error = ""  # why nothing more is kept
        others = sum(not path.name.startswith(self.digest) for path in self.folder.glob("*.json"))
        self.said = f"{others} results of another tangere, Python or numpy are made anew" if others else ""

    def _path(self, task: int) -> Path:
        return self.folder / f"{self.digest}-{task:07d}.json"

    def get(self, task: int) -> Any:
        """The result of a task, None where it has not been done."""
        try:
            found = _decoded(json.loads(self._path(task).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        touches = isinstance(found, tuple) and all(isinstance(one, TouchResult) for one in found)
        return found if touches or isinstance(found, FreeResult | Collided) else None

    def put(self, task: int, result: Any) -> None:
        """Keep a result: whole under its name, or not at all. A full disk costs chunks, never the study."""
        if self.error:
            return
        try:
            self.folder.mkdir(exist_ok=True)
            write_text(self._path(task), json.dumps(_encoded(result)) + "\n")
        except (OSError, CannotWrite) as problem:
            self.error = str(problem)

    def clear(self) -> None:
        """The study is whole: its chunks go."""
        with suppress(OSError):
            shutil.rmtree(self.folder)


def _encoded(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        inner = {entry.name: _encoded(getattr(value, entry.name)) for entry in fields(value)}
        return {"type": type(value).__name__, "of": inner}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, tuple | list):
        return [_encoded(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(one) for one in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=value["dtype"]).reshape(value["shape"])
    return _TYPES[value["type"]](**{name: _decoded(one) for name, one in value["of"].items()})


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


PREFIX = "dask://"
WAIT = 10.0  # [s] for the scheduler to answer
KILLED_THERE = "workers of the cluster were killed again and again, by lack of memory perhaps; --resume goes on"


class Cluster(Workers):
    """The workers of a scheduler at dask://HOST:PORT; a worker that dies costs its tasks another try."""

    def __init__(self, address: str) -> None:
        super().__init__(1)
        host, _, port = address.removeprefix(PREFIX).rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise InvalidValue(f"workers: dask://HOST:PORT of a scheduler, got {address!r}")
        self._address = f"tcp://{host}:{port}"
        self._client: Any = None

    def __enter__(self) -> Cluster:
        with extra("dask:// needs dask's distributed: pip install 'tangere[cluster]'"):
            import distributed
        # what a client of dask logs when its scheduler is gone is its own traceback; what it means we say
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        client: Any = distributed.Client
        try:
            self._client = client(self._address, timeout=WAIT, set_as_default=False)
        except (OSError, TimeoutError) as problem:
            raise NoSolution(f"no dask scheduler answers at {self._address}: {problem}") from None
        try:
            self._same_versions()
        except BaseException:
            self._client.close()
            raise
        return self

    def _same_versions(self) -> None:
        ours = versions()
        try:
            theirs = self._client.run(versions)
        except Exception as problem:  # whatever its worker raised, a missing package most likely
            raise NoSolution(f"the workers at {self._address} cannot load tangere: {problem}") from None
        if not theirs:
            raise NoSolution(f"the scheduler at {self._address} has no workers: start some with `dask worker`")
        for worker, its in theirs.items():
            others = {name: its.get(name, "none") for name, own in ours.items() if its.get(name) != own}
            wrong = [f"{name} {other} instead of {ours[name]}" for name, other in others.items()]
            if wrong:
                raise NoSolution(f"the worker {worker} has {', '.join(wrong)}: results would not be the same")
        self.count = sum(self._client.nthreads().values())

    def __exit__(self, kind: object, *_: object) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _spread(self, tasks: Sequence[Task], found: dict[int, Any], progress: Done, keep: Keep) -> None:
        import distributed

        as_completed: Any = distributed.as_completed
        missing = [k for k in range(len(tasks)) if k not in found]
        waiting = {self._client.submit(tasks[k][0], *tasks[k][1], pure=False): k for k in missing}
        try:
            for batch in as_completed(list(waiting), loop=self._client.loop).batches():
                for future, result in zip(batch, self._client.gather(batch), strict=True):  # one message for all
                    k = waiting.pop(future)
                    found[k] = result
                    keep(k, result)
                    progress(len(found), len(tasks))
                    if ends.told() is not None:
                        raise KeyboardInterrupt
        except CancelledError:
            self.interrupted = True
            self.lost = f"the dask scheduler at {self._address} is gone; with --resume and a new one the study goes on"
            waiting.clear()
        except distributed.KilledWorker:  # one task, several times
            self.interrupted, self.lost = True, KILLED_THERE
        finally:
            self._client.cancel(list(waiting))

    @property
    def spreads(self) -> bool:
        """Always: nothing is done in this process."""
        return True


def workers_of(given: int | str | None) -> Workers:
    """The workers that --workers names: a number of processes, or dask://HOST:PORT."""
    if isinstance(given, str):
        if given.startswith(PREFIX):
            return Cluster(given)
        if not given.isdigit():
            raise InvalidValue(f"workers: a number of processes or dask://HOST:PORT, got {given!r}")
        return Workers(int(given))
    return Workers(given)


def reached(given: int | str | None) -> None:
    """Raise for workers that are refused or do not answer; a folder that is claimed later may hold an earlier study."""
    with workers_of(given):
        pass
