"""What `tangere bench` shows on screen: tables for single calls, for each batch size and for inverse kinematics."""

from __future__ import annotations

from typing import Any

from tangere.report.terminal import paint, table

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
