"""What `tangere bench` measures and shows: agreement of answers, fair timing, what it ran on, tables.

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

Row = list[str]


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


def _us(values: dict[str, Any], key: str) -> str:
    """Microseconds with three figures, empty where not measured."""
    value = values.get(key)
    if value is None:
        return ""
    return f"{value:.3f}" if value < 10.0 else f"{value:.1f}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}x"


def _verdict(ratio: float | None, goal: float | None) -> Row:
    """The two cells goal and mark."""
    if goal is None:
        return ["", ""]
    return [f"{goal:.0f}x", "" if ratio is None else "reached" if ratio >= goal else "missed"]


def _painted(lines: list[str], colour: bool) -> list[str]:
    """The heading of a table bold, rows that miss their goal red, those that reach it green."""
    out = [paint(lines[0], "heading", colour), lines[1]]
    for line in lines[2:]:
        words = line.split()
        style = "bad" if "missed" in words else "good" if "reached" in words else ""
        out.append(paint(line, style, colour) if style else line)
    return out


def _single(methods: dict[str, Any]) -> list[str]:
    rows = []
    for method, v in methods.items():
        ratio = v.get("ratio")
        cells = [method, _us(v, "tangere_us"), _us(v, "pinocchio_us"), _times(ratio)]
        rows.append([*cells, *_verdict(ratio, SINGLE_GOALS.get(method)), _us(v, "mujoco_us")])
    return table(rows, ("single call [us]", "tangere", "pinocchio", "ratio", "goal", "", "mujoco"), "lrrrrlr")


def _batch(size: str, methods: dict[str, Any]) -> list[str]:
    goals = BATCH_GOALS if int(size) >= BATCH_GOAL_SIZE else {}
    rows = []
    for method, v in methods.items():
        ratio = v.get("ratio")
        cells = [method, _us(v, "tangere_us"), f"{v['million_per_second']:.2f}", _us(v, "pinocchio_us"), _times(ratio)]
        rest = [_us(v, "pinocchio_parallel_us"), _us(v, "mujoco_us")]
        rows.append([*cells, *_verdict(ratio, goals.get(method)), *rest])
    header = (f"batch of {size} [us each]", "tangere", "M/s", "pinocchio", "ratio", "goal", "", "all cores", "mujoco")
    return table(rows, header, "lrrrrrlrr")


def _inverse(peers: dict[str, Any]) -> list[str]:
    rows = []
    for name, v in peers.items():
        ratio = v.get("ratio")
        cells = [name, "1", _us(v, "tangere_us"), _us(v, f"{name}_us"), _times(ratio)]
        rows.append([*cells, *_verdict(ratio, IK_GOALS.get(name))])
        for size, b in v.get("batch", {}).items():
            rest = [_times(b.get("ratio")), "", "", _us(b, f"{name}_parallel_us")]
            rows.append([name, size, _us(b, "tangere_us"), _us(b, f"{name}_us"), *rest])
    header = ("inverse kinematics [us each]", "poses", "tangere", "peer", "ratio", "goal", "", "all cores")
    return table(rows, header, "lrrrrrlr")


def _observer(rows_by_name: dict[str, Any]) -> list[str]:
    rows = []
    for name, v in rows_by_name.items():
        ratio = v.get("ratio")
        cells = [name, _us(v, "tangere_us"), _us(v, "pinocchio_us"), _times(ratio)]
        rows.append([*cells, *_verdict(ratio, OBSERVER_GOALS.get(name.split()[0].rstrip(",")))])
    return table(rows, ("momentum observer [us per sample]", "tangere", "pinocchio", "ratio", "goal", ""), "lrrrrl")


def bench_text(result: dict[str, Any], colour: bool = False) -> str:
    """The tables of a result of Bench.run, with what they were measured on and what could not be compared."""
    machine, versions = result["machine"], result["versions"]
    title = f"{result['robot']}: {machine['processor']}, {machine['cores']} cores, Python {machine['python']}"
    lines = [
        paint(title, "heading", colour),
        f"kernels: {machine['kernels']}, instruction set {machine['instruction_set']}; "
        + ", ".join(f"{name} {number}" for name, number in versions.items()),
        "",
        *_painted(_single(result["single"]), colour),
    ]
    for size, methods in result["batch"].items():
        lines += ["", *_painted(_batch(size, methods), colour)]
    if result["ik"]:
        lines += ["", *_painted(_inverse(result["ik"]), colour)]
    if result.get("observer"):
        lines += ["", *_painted(_observer(result["observer"]), colour)]
    lines += [
        "",
        "Times: best round. Ratio: peer / ours, median over rounds in which all took turns. One thread.",
        "In a batch, ours is one call and a peer loops in Python over at most 2000 of the samples.",
        "`all cores` is the peer's own parallel form.",
    ]
    for wrong in result["disagreements"]:
        off = wrong["difference"]
        size = off if isinstance(off, str) else f"{off:.1e}"
        lines.append(paint(f"not timed: {wrong['method']} of {wrong['peer']} differs from ours: {size}", "bad", colour))
    return "\n".join(lines)
