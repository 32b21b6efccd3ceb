"""How `tangere bench` times: contenders that take turns, and what they were timed on.

Times on a shared machine swing by a factor of two within minutes, ratios taken side by side do not. So one round times
every contender of a row once, a few hundred microseconds each, first to last and in the next round last to first; the
ratio is the median over rounds of peer / ours, the time shown the best round.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

from tangere.apps.bench.peers import cores

SLICE = 3e-4  # s that one contender runs at a time: long against the clock's 50 ns, short against the machine's moods
ROUNDS = 3  # at least, so that a median means something

Result = dict[str, Any]


@dataclass(frozen=True)
class Contender:
    """One statement in a race. evaluations: how many states one execution works through."""

    name: str
    timer: Timer
    evaluations: int = 1


def race(contenders: Sequence[Contender], seconds: float, refresh: Callable[[int], None]) -> dict[str, list[float]]:
    """Seconds per evaluation of each contender in each round; refresh(k) prepares round k."""
    numbers = []
    for c in contenders:
        refresh(0)
        once = c.timer.timeit(1)  # fills caches, and allocates what is allocated once
        if once < 10.0 * SLICE:
            once = min(c.timer.timeit(1) for _ in range(5))
        numbers.append(max(1, round(SLICE / max(once, 1e-7))))  # 0.1 us: nothing is faster, but the clock may say zero
    times: dict[str, list[float]] = {c.name: [] for c in contenders}
    order = list(zip(contenders, numbers, strict=True))
    start, k = time.perf_counter(), 0
    while k < ROUNDS or time.perf_counter() - start < seconds:
        refresh(k)
        for c, number in order if k % 2 == 0 else reversed(order):
            times[c.name].append(c.timer.timeit(number) / (number * c.evaluations))
        k += 1
    return times


def entry(times: dict[str, list[float]], main: str) -> Result:
    """Microseconds of the best round of each, and the median ratio to ours; `ratio` is that of the peer `main`."""
    out: Result = {}
    ours = np.array(times["tangere"])
    for name, values in times.items():
        out[f"{name}_us"] = rounded(1e6 * min(values))
        if name != "tangere":
            out["ratio" if name == main else f"{name}_ratio"] = rounded(float(np.median(np.array(values) / ours)))
    return out


def rounded(value: float) -> float:
    """The value with four figures; the fourth is noise already."""
    return float(f"{value:.4g}")


def best_time(timer: Timer, seconds: float) -> float:
    """Best of a few executions [s]; the first starts the threads."""
    timer.timeit(1)
    start, best, k = time.perf_counter(), np.inf, 0
    while k < ROUNDS or time.perf_counter() - start < seconds:
        best = min(best, timer.timeit(1))
        k += 1
    return best


def own_version() -> str:
    """Tangere's version, "source" where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tangere")
    except PackageNotFoundError:  # run from the source tree
        return "source"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def machine() -> Result:
    """What the numbers were measured on."""
    from tangere.kernels.backend import COMPILED

    sets: list[str] = []
    if COMPILED:
        from tangere._kernels import instruction_sets

        sets = instruction_sets()
    return {
        "processor": _processor(), "cores": cores(), "system": platform.platform(),
        "python": platform.python_version(), "kernels": "compiled" if COMPILED else "python",
        "instruction_set": sets[0] if sets else "none",  # the extension takes the first that the processor has
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip
