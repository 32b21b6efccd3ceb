"""What `tangere bench` measures and shows: agreement of answers, fair timing, what it ran on, tables.

Times on a shared machine swing by a factor of two within minutes, ratios taken side by side do not. So one round times
every contender of a row once, a few hundred microseconds each, first to last and in the next round last to first. The
time is that of the best round; the tables show the ratio of these times, JSON the median over rounds of peer / ours.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

from tangere.apps.bench.peers import cores
from tangere.model.model import Array
from tangere.report.terminal import paint, table
from tangere.robots import Robot

SLICE = 3e-4  # [s] that one contender runs at a time: long against the clock's 50 ns, short against the machine's moods
ROUNDS = 3  # at least, so that a median means something

Result = dict[str, Any]
# How many times faster than Pinocchio each method has to be at least; a row without a goal is shown for information.
SINGLE_GOALS = {
    "pose": 4.0, "jacobian": 4.0, "mass_matrix": 4.0, "bias_torque": 4.0, "inverse_dynamics": 4.0,
    "coriolis_matrix": 5.0, "forward_dynamics": 6.0, "momentum_terms": 20.0,
}  # fmt: skip
# The same for a large batch against Pinocchio looped from Python.
BATCH_GOALS = {**dict.fromkeys(SINGLE_GOALS, 20.0), "momentum_terms": 150.0}
BATCH_GOAL_SIZE = 100_000
# For all solutions of one pose, by peer.
IK_GOALS = {"eaik": 8.0, "ur-analytic-ik": 25.0}

# For the momentum observer, by what the row's name begins with.
OBSERVER_GOALS = {"step": 8.0, "replay": 100.0}


def states(arm: Robot, count: int) -> dict[str, Array]:
    """Random states (count, n) by argument name; everyday sizes, the same ones in every run."""
    rng = np.random.default_rng(7)
    scales = {"q": 3.0, "qd": 2.0, "qdd": 5.0, "tau": 50.0}  # [rad, rad/s, rad/s2, Nm]
    return {name: rng.uniform(-scale, scale, (count, arm.dof)) for name, scale in scales.items()}


def poses(arm: Robot, count: int) -> Array:
    """Poses (count, 4, 4) of random states away from singularities, where peers lose solutions and would not agree."""
    q = states(arm, 2 * count + 64)["q"]
    regular = np.min(np.abs(np.sin(q[:, [2, 4]])), axis=1) > 0.1  # elbow and wrist; nearly 90 % of all states
    return arm.pose(q[regular][:count])


def difference(ours: Any, theirs: Any) -> float:
    """Largest |ours - theirs| / max(1, |ours|) over all parts of an answer; infinite where shapes differ or for NaN.

    Axes of length one do not count: Pinocchio hands a matrix with one column, of an arm with one joint, as a vector.
    """
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.squeeze(np.asarray(a, dtype=float)), np.squeeze(np.asarray(b, dtype=float))
        if a.shape != b.shape or not np.all(np.isfinite(a) & np.isfinite(b)):
            return np.inf
        worst = max(worst, float(np.max(np.abs(a - b) / np.maximum(1.0, np.abs(a)))))
    return worst


def solution_difference(ours: Any, theirs: Any) -> float:
    """Largest distance [rad] from a solution of either set to the nearest of the other; infinite if counts differ."""
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if a.shape != b.shape or not a.size or not np.all(np.isfinite(a) & np.isfinite(b)):
        return np.inf  # no solution at all is an error too: the poses compared are within reach
    apart = np.max(np.abs(np.remainder(a[:, None] - b[None] + np.pi, 2 * np.pi) - np.pi), axis=-1)
    return float(max(apart.min(axis=0).max(), apart.min(axis=1).max()))


@dataclass(frozen=True)
class Contender:
    """One statement in a race. evaluations: how many states one execution works through."""

    name: str
    timer: Timer
    evaluations: int = 1


def race(
    contenders: Sequence[Contender], seconds: float, refresh: Callable[[int], None] = lambda k: None
) -> dict[str, list[float]]:
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


@dataclass(frozen=True)
class _Row:
    """A line of a table: what was asked of whom, what came out, and how many times faster we have to be."""

    name: str
    values: Result
    peer: str = "pinocchio"
    goal: float | None = None
    size: str = "1"  # states in one call

    def us(self, key: str) -> str:
        """Microseconds with three figures, empty where not measured."""
        value = self.values.get(f"{key}_us")
        return "" if value is None else f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"

    @property
    def ratio(self) -> float | None:
        """Peer / ours, of the times as they are shown."""
        return float(self.us(self.peer)) / float(self.us("tangere")) if self.us(self.peer) else None

    @property
    def mark(self) -> str:
        """Whether the goal is reached; "" where there is none, or nobody to compare with."""
        if self.goal is None or self.ratio is None:
            return ""
        return "reached" if self.ratio >= self.goal else "missed"


_COLUMNS: dict[str, Callable[[_Row], str]] = {
    "poses": lambda row: row.size,
    "tangere": lambda row: row.us("tangere"),
    "M/s": lambda row: f"{row.values['million_per_second']:.2f}",
    "pinocchio": lambda row: row.us("pinocchio"),
    "peer": lambda row: row.us(row.peer),
    "ratio": lambda row: "" if row.ratio is None else f"{row.ratio:.1f}x",
    "goal": lambda row: "" if row.goal is None else f"{row.goal:.0f}x",
    "": lambda row: row.mark,
    "all cores": lambda row: row.us(f"{row.peer}_parallel"),
    "mujoco": lambda row: row.us("mujoco"),
}


def _table(title: str, columns: Sequence[str], rows: Sequence[_Row], goals: bool, colour: bool) -> list[str]:
    """The heading bold; with goals, rows that miss theirs red, those that reach it green."""
    shown = [name for name in columns if goals or name not in ("goal", "")]
    cells = [[row.name, *(_COLUMNS[name](row) for name in shown)] for row in rows]
    letters = "l" + "".join("r" if name else "l" for name in shown)
    head, rule, *lines = table(cells, (title, *shown), letters)
    styles = [{"reached": "good", "missed": "bad"}.get(row.mark if goals else "") for row in rows]
    body = [paint(line, style, colour) if style else line for line, style in zip(lines, styles, strict=True)]
    return ["", paint(head, "heading", colour), rule, *body]


def _tables(result: Result) -> Iterator[tuple[str, tuple[str, ...], list[_Row]]]:
    """Title, columns and rows of each table of a result."""
    single = [_Row(name, v, goal=SINGLE_GOALS.get(name)) for name, v in result["single"].items()]
    yield "single call [us]", ("tangere", "pinocchio", "ratio", "goal", "", "mujoco"), single
    for size, methods in result["batch"].items():
        goals = BATCH_GOALS if int(size) >= BATCH_GOAL_SIZE else {}
        columns = ("tangere", "M/s", "pinocchio", "ratio", "goal", "", "all cores", "mujoco")
        batch = [_Row(name, v, goal=goals.get(name)) for name, v in methods.items()]
        yield f"batch of {size} [us each]", columns, batch
    inverse = []
    for name, v in result["ik"].items():
        inverse.append(_Row(name, v, name, IK_GOALS.get(name)))
        inverse += [_Row(name, b, name, size=size) for size, b in v.get("batch", {}).items()]
    yield "inverse kinematics [us each]", ("poses", "tangere", "peer", "ratio", "goal", "", "all cores"), inverse
    observed = [
        _Row(name, v, goal=OBSERVER_GOALS.get(name.split()[0].rstrip(",")))
        for name, v in result.get("observer", {}).items()
    ]
    yield "momentum observer [us per sample]", ("tangere", "pinocchio", "ratio", "goal", ""), observed


def bench_text(result: Result, colour: bool = False, goals: bool = False) -> str:
    """The tables of a result of Bench.run, with what they were measured on and what could not be compared.

    goals: whether to show what each row has to reach.
    """
    machine, versions = result["machine"], result["versions"]
    title = f"{result['robot']}: {machine['processor']}, {machine['cores']} cores, Python {machine['python']}"
    lines = [
        paint(title, "heading", colour),
        f"kernels: {machine['kernels']}, instruction set {machine['instruction_set']}; "
        + ", ".join(f"{name} {number}" for name, number in versions.items()),
    ]
    for head, columns, rows in _tables(result):
        lines += _table(head, columns, rows, goals, colour) if rows else []
    lines += [
        "",
        "Times: best of the rounds in which all took turns. Ratio: peer / ours, of these times. One thread.",
        "In a batch, ours is one call and a peer loops in Python over at most 2000 of the samples.",
        "`all cores` is the peer's own parallel form. --json also has the median of the rounds' ratios.",
    ]
    for wrong in result["disagreements"]:
        off = wrong["difference"]
        size = off if isinstance(off, str) else f"{off:.1e}"
        lines.append(paint(f"not timed: {wrong['method']} of {wrong['peer']} differs from ours: {size}", "bad", colour))
    return "\n".join(lines)
