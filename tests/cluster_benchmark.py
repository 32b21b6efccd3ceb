"""What a task of a study costs on a dask cluster: a scheduler and two workers on loopback. Run by hand:

    PYTHONPATH=src python tests/cluster_benchmark.py [tasks]

Wall time says little on a loaded machine: beside it stands the processor time of client, scheduler and workers.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from test_study_resume import dask, killed, wait_for_workers

from tangere.apps.study.cluster import Cluster

TICKS = 100.0  # a second, in /proc


def nothing(number: int) -> int:
    """A task that does nothing."""
    return number


def processor(process: int) -> float:
    """Seconds of processor time that a process has had."""
    words = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as folder:
        address, others = dask(Path(folder), 2)
        try:
            wait_for_workers(address, 2)
            with Cluster(address) as cluster:
                cluster.results([(nothing, (k,)) for k in range(50)])
                before, cpu = time.perf_counter(), time.process_time()
                theirs = [processor(one.pid) for one in others]
                answers = cluster.results([(nothing, (k,)) for k in range(count)])
                spent = time.perf_counter() - before
                own = time.process_time() - cpu
                shares = [processor(one.pid) - was for one, was in zip(others, theirs, strict=True)]
            assert answers == list(range(count))
            print(f"{count} tasks: {1e3 * spent / count:.2f} ms each by the clock; processor time of each [ms]:")
            names = ("client", "worker", "worker", "scheduler")
            for name, seconds in zip(names, (own, *shares), strict=True):
                print(f"  {name:10} {1e3 * seconds / count:.2f}")
        finally:
            killed(others)


if __name__ == "__main__":
    main()
