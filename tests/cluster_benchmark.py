"""What a task of a study costs on a dask cluster: a scheduler and two workers on loopback. Run by hand:

    PYTHONPATH=src python tests/cluster_benchmark.py [tasks]

Beside ours stands the same empty task by dask's own `submit` and `gather`, in turn in one run: the difference is what
we add. Wall time says little on a loaded machine, the calmest round more; processor time of all four says most.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_study_resume import dask, killed, wait_for_workers

from tangere.apps.study.workers import Chunks, Cluster

TICKS = 100.0  # a second, in /proc
ROUNDS = 10


def nothing(number: int) -> int:
    """A task that does nothing."""
    return number


def processor(process: int) -> float:
    """Seconds of processor time that a process has had."""
    words = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def main() -> None:
    count = max(1, (int(sys.argv[1]) if len(sys.argv) > 1 else 4000) // ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        address, others = dask(Path(folder), 2)
        try:
            wait_for_workers(address, 2)
            with Cluster(address) as cluster:
                client: Any = cluster._client
                kept = [0]

                def bare() -> list[int]:
                    return list(client.gather([client.submit(nothing, k, pure=False) for k in range(count)]))

                def ours() -> list[int]:
                    return cluster.results([(nothing, (k,)) for k in range(count)])

                def filed() -> list[int]:
                    kept[0] += 1
                    place = Path(folder) / str(kept[0])
                    place.mkdir()
                    store = Chunks(place, {})
                    answers = cluster.results([(nothing, (k,)) for k in range(count)], store=store)
                    assert not store.error
                    return answers

                forms: dict[str, Callable[[], list[int]]] = {"dask's own": bare, "ours": ours, "with files": filed}
                walls: dict[str, list[float]] = {name: [] for name in forms}
                shares = {name: [0.0] * (1 + len(others)) for name in forms}
                for number in range(1 + ROUNDS):
                    for name, form in forms.items():
                        before, cpu = time.perf_counter(), time.process_time()
                        theirs = [processor(one.pid) for one in others]
                        assert form() == list(range(count))
                        if number:  # the first warms up
                            walls[name].append((time.perf_counter() - before) / count)
                            spent = [time.process_time() - cpu]
                            spent += [processor(one.pid) - was for one, was in zip(others, theirs, strict=True)]
                            shares[name] = [a + b for a, b in zip(shares[name], spent, strict=True)]
            print(f"{ROUNDS} x {count} tasks, each [ms]: by the clock, calmest and middle round; processor time")
            for name, spans in walls.items():
                each = [1e3 * seconds / (ROUNDS * count) for seconds in shares[name]]
                calm, middle = 1e3 * min(spans), 1e3 * sorted(spans)[ROUNDS // 2]
                parts = ", ".join(f"{who} {ms:.2f}" for who, ms in zip(("client", "two workers", "scheduler"),
                                  (each[0], each[1] + each[2], each[3]), strict=True))  # fmt: skip
                print(f"  {name:10} {calm:6.2f} {middle:6.2f}   {sum(each):5.2f} ({parts})")
        finally:
            killed(others)


if __name__ == "__main__":
    main()
