"""Tasks of a study on an existing dask cluster: the same results as on this computer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from tangere import ends
from tangere.apps.study.chunks import versions
from tangere.apps.study.workers import Done, Keep, Task, Workers
from tangere.errors import InvalidValue, MissingExtra, NoSolution

PREFIX = "dask://"
WAIT = 10.0  # [s] for the scheduler to answer


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
        try:
            import distributed
        except ImportError as problem:
            raise MissingExtra("dask:// needs dask's distributed: pip install 'tangere[cluster]'") from problem
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
        finally:
            if not self.lost:
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
