"""The benchmark measures the same thing in every library, and says what it measured. Nothing here looks at a time."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.apps.bench import bench, results
from tangere.apps.bench import peers as bench_peers
from tangere.apps.bench.bench import ROWS, Bench, observer_rows, peer_residuals
from tangere.apps.bench.peers import ARGUMENTS, IKPeer, Peer, Recipe
from tangere.apps.bench.results import difference, solution_difference
from tangere.errors import CannotWrite, InvalidValue

MODULES = {
    "pinocchio": "pinocchio", "mujoco": "mujoco", "eaik": "eaik.IK_DH", "ur-analytic-ik": "ur_analytic_ik",
}  # fmt: skip
TINY = (3, 50)  # batch sizes: the smallest that are no single call and differ


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As if these were not installed: None in sys.modules makes their import fail."""
    for name in names:
        monkeypatch.setitem(sys.modules, MODULES[name], None)


def tiny(arm: str = "ur10e") -> Bench:
    return Bench(tangere.robot(arm), seconds=0.0, sizes=TINY)


# ----------------------------------------------------------------------------------------------------- the JSON


def test_the_json_has_the_agreed_structure(capsys: pytest.CaptureFixture[str]) -> None:
    for module in MODULES.values():
        pytest.importorskip(module)
    assert bench.main(Namespace(json=True, quick=True, seconds=0.0)) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["single"]) == set(ARGUMENTS)
    for values in result["single"].values():
        assert {"tangere_us", "pinocchio_us", "ratio"} <= set(values)
    assert set(result["batch"]) == {"1000", "100000"}
    assert set(result["batch"]["1000"]) == set(ARGUMENTS)
    assert set(ARGUMENTS) - set(result["batch"]["100000"]) == {"regressor"}
    for methods in result["batch"].values():
        for method, values in methods.items():
            assert {"tangere_us", "pinocchio_us", "ratio", "million_per_second"} <= set(values)
            assert ("pinocchio_parallel_us" in values) == (method in ("inverse_dynamics", "forward_dynamics"))
    assert set(result["ik"]) == {"eaik", "ur-analytic-ik"}
    for name, values in result["ik"].items():
        assert {"tangere_us", f"{name}_us", "ratio", "batch"} <= set(values)
        assert set(values["batch"]) == {"1000", "100000"}
    assert set(result["observer"]) == set(ROWS)
    for values in result["observer"].values():
        assert {"tangere_us", "pinocchio_us", "ratio"} == set(values)
    assert result["disagreements"] == []
    assert result["missing"] == []
    numbers = list(leaves([result["single"], result["batch"], result["ik"], result["observer"]]))
    assert len(numbers) > 100
    assert all(isinstance(x, float) and np.isfinite(x) and x > 0.0 for x in numbers)


def leaves(tree: Any) -> Any:
    for value in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(value, (dict, list)):
            yield from leaves(value)
        else:
            yield value


def test_json_into_a_file_leaves_the_tables_on_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, *MODULES)
    monkeypatch.setattr(bench, "SIZES", TINY)
    target = tmp_path / "bench.json"
    assert bench.main(Namespace(json=str(target), seconds=0.0)) == 0
    out = capsys.readouterr().out
    assert "momentum_terms" in out
    assert set(json.loads(target.read_text())["batch"]) == {str(size) for size in TINY}


def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_measured", None)
    with pytest.raises(CannotWrite, match="cannot write"):
        bench.main(Namespace(json="/nowhere/at/all.json", seconds=0.0))


def test_seconds_below_zero_are_refused() -> None:
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(InvalidValue, match="seconds"):
            bench.main(Namespace(seconds=value))


# ------------------------------------------------------------------------------------- agreement before timing


@pytest.mark.parametrize("arm", ["ur10e", "ur3e", "scara", "pendulum"])
def test_every_recipe_gives_our_answer(arm: str) -> None:
    """Each method of each peer at 1e-9; the bench itself would only leave a wrong one out."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    b = tiny(arm)
    assert b.disagreements == []
    assert {p.name: len(p.recipes) for p in b.peers} == {"pinocchio": 13, "mujoco": 9}
    for method, peers in b.agreeing.items():
        assert [p.name for p in peers] == [p.name for p in b.peers if method in p.recipes]


def test_a_wrong_peer_is_reported_and_not_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pinocchio")
    right = bench_peers.pinocchio

    def wrong(model: tangere.Model) -> Peer:
        peer = right(model)
        faults = {
            "mass_matrix": Recipe((), ("pin.crba(model, data, q) + 1e-8",)),  # just above the tolerance
            "bias_torque": Recipe((), ("pin.nonLinearEffects(model, data, q, 1.001 * qd)",)),
            "gravity_torque": Recipe((), ("pin.computeGeneralizedGravity(model, data, q)[:3]",)),  # another shape
            "inverse_dynamics": Recipe((), ("pin.rnea(model, data, q, qd, qdd) * float('nan')",)),
        }
        return replace(peer, recipes={**peer.recipes, **faults})

    wrong.__name__ = "pinocchio"
    monkeypatch.setattr(bench_peers, "pinocchio", wrong)
    monkeypatch.setattr(bench, "SIZES", TINY)
    assert bench.main(Namespace(json="-", seconds=0.0)) == 1
    result = json.loads(capsys.readouterr().out)
    bad = {"mass_matrix", "bias_torque", "gravity_torque", "inverse_dynamics"}
    assert {(d["peer"], d["method"]) for d in result["disagreements"]} == {("pinocchio", method) for method in bad}
    for methods in (result["single"], *result["batch"].values()):
        assert {m for m, values in methods.items() if "pinocchio_us" not in values} == bad
        assert all(("ratio" in values) == ("pinocchio_us" in values) for values in methods.values())
    text = results.bench_text(result)
    assert "not timed: mass_matrix of pinocchio differs from ours: 1.0e-08" in text


@pytest.mark.parametrize("arm", ["ur10e", "ur3e", "scara", "pendulum"])
def test_the_observer_on_pinocchio_gives_our_residuals(arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pinocchio")
    monkeypatch.setattr(bench, "LOG_SECONDS", 1.0)  # of the log: arms that are no UR go through it in Python
    monkeypatch.setattr(bench, "OBSERVED", 200)
    robot = tangere.robot(arm)
    seen: list[tuple[str, float]] = []

    def agrees(peer: str, method: str, ours: Any, theirs: Any) -> bool:
        assert np.abs(ours).max() > 0.1  # there is something to agree about
        seen.append((method, difference((ours,), (theirs,))))
        return True

    rows = observer_rows(robot, tiny(arm).peers, 0.0, agrees, lambda text: None)
    assert [method for method, _ in seen] == ["momentum observer", "momentum observer, with friction"]
    assert max(off for _, off in seen) < bench.TOLERANCE
    assert list(rows) == list(ROWS)
    assert all("ratio" in values for values in rows.values())


def test_a_wrong_observer_is_reported_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pinocchio")
    monkeypatch.setattr(bench, "_STEP", bench._STEP.replace("0.5 *", "0.49 *"))
    b = tiny()
    rows = observer_rows(b.arm, b.peers, 0.0, b._same, b.tell)
    assert [d["method"] for d in b.disagreements] == ["momentum observer", "momentum observer, with friction"]
    assert all(set(values) == {"tangere_us"} for values in rows.values())
    assert peer_residuals(b.arm, b.peers[0], None, 5).shape == (4, 6)


def test_wrong_inverse_kinematics_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = tangere.robot("ur10e")
    off = {"arm": arm, "np": np}
    complete = "arm.inverse_kinematics(T).q"
    without(monkeypatch, *MODULES)
    for found, agrees in (
        (complete, True),
        (f"{complete}[::-1] + 2 * np.pi", True),
        (f"{complete}[1:]", False),
        (f"{complete} + 1e-8", False),
    ):
        b = Bench(arm, 0.0, TINY)
        assert b._agrees_ik(IKPeer("twin", "1", off, complete, found)) is agrees
        assert len(b.disagreements) == (0 if agrees else 1)
        json.dumps(b.disagreements, allow_nan=False)


def test_difference() -> None:
    assert difference([np.array([1.0, 200.0])], [np.array([1.1, 201.0])]) == pytest.approx(0.1)
    assert difference([1.0, np.zeros(2)], [1.0, np.array([0.0, -0.3])]) == pytest.approx(0.3)
    assert difference([np.zeros(3)], [np.zeros(2)]) == np.inf
    assert difference([np.zeros(2)], [np.array([0.0, np.nan])]) == np.inf


def test_solution_difference_knows_turns_and_order() -> None:
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (8, 6))
    turned = q[::-1] + 2 * np.pi * np.array([1, 0, -1, 0, 1, 0])
    assert solution_difference(q, turned) < 1e-14  # rounding of adding a turn
    assert solution_difference(q, turned + 1e-3) == pytest.approx(1e-3)
    assert solution_difference(q, q[1:]) == np.inf
    doubled = q.copy()
    doubled[0] = q[1]  # one lost, another twice: each of theirs is one of ours, not the reverse
    assert solution_difference(q, doubled) > 0.01
    assert solution_difference(q, np.full((8, 6), np.nan)) == np.inf
    assert solution_difference(np.empty((0, 6)), np.empty((0, 6))) == np.inf


# ----------------------------------------------------------------------------------------------- missing peers


def test_without_peers_ours_is_still_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, *MODULES)
    monkeypatch.setattr(bench, "SIZES", TINY)
    assert bench.main(Namespace(json=False, seconds=0.0)) == 0
    captured = capsys.readouterr()
    assert "pip install 'tangere[bench]'" in captured.err
    assert all(name in captured.err for name in MODULES)
    assert "inverse_dynamics" in captured.out
    assert "reached" not in captured.out
    assert "missed" not in captured.out


@pytest.mark.parametrize("name", list(MODULES))
def test_one_missing_peer_leaves_the_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in MODULES.values():
        pytest.importorskip(module)
    without(monkeypatch, name)
    peers, ik_peers, missing = bench_peers.find(tangere.robot("ur10e").model)
    assert missing == [name]
    assert {p.name for p in peers} | {p.name for p in ik_peers} == set(MODULES) - {name}


def test_an_arm_that_ik_peers_cannot_hold() -> None:
    model = tangere.robot("ur10e", tool=[0.0, 0.0, 0.1]).model
    assert bench_peers.find(model)[1] == []
    assert bench_peers.find(tangere.robot("scara").model)[1] == []


# ------------------------------------------------------------------------------------- text, timing and tables


def test_a_looped_recipe_fills_its_arrays() -> None:
    recipe = Recipe(("s = q + qd",), ("s", "s.sum()"))
    assert recipe.single() == "s = q + qd; s; s.sum()"
    rng = np.random.default_rng(1)
    Q, QD, out_0, out_1 = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), np.zeros((5, 3)), np.zeros(5)
    names = {"Q": Q, "QD": QD, "out_0": out_0, "out_1": out_1}
    Timer(recipe.looped(("q", "qd")), globals=names).timeit(1)
    assert np.array_equal(out_0, Q + QD)
    assert np.allclose(out_1, (Q + QD).sum(axis=1), rtol=1e-15, atol=1e-15)  # the same three additions
    out_0[:] = 0.0
    Timer(Recipe((), ("-q",)).looped(("q",)), globals=names).timeit(1)
    assert np.array_equal(out_0, -Q)


def test_the_parallel_forms_give_our_answer() -> None:
    pytest.importorskip("pinocchio")
    arm = tangere.robot("ur10e")
    peer = bench_peers.pinocchio(arm.model)
    given = bench.states(arm, 100)
    for method, text in peer.parallel.items():
        out = np.empty((100, 6))
        exec(text, {**peer.namespace, **{name.upper(): value for name, value in given.items()}, "out_0": out})
        ours = getattr(arm, method)(*(given[name] for name in ARGUMENTS[method]))
        assert difference([ours], [out]) < bench.TOLERANCE


def test_rounds_alternate_and_every_state_comes() -> None:
    log: list[str] = []
    seen: list[int] = []
    contenders = [
        results.Contender(
            name, Timer("log.append(name); time.sleep(0.004)", "import time", globals={"log": log, "name": name})
        )
        for name in ("tangere", "peer")
    ]  # 4 ms exceed ten slices, so that one warm-up and one execution per round is all
    times = results.race(contenders, 0.0, seen.append)
    assert log == ["tangere", "peer"] + ["tangere", "peer", "peer", "tangere", "tangere", "peer"]
    assert seen == [0, 0, 0, 1, 2]
    assert {name: len(values) for name, values in times.items()} == {"tangere": 3, "peer": 3}


def test_entry_takes_best_times_and_median_ratios() -> None:
    times = {"tangere": [1e-6, 2e-6, 4e-6], "pinocchio": [5e-6, 6e-6, 40e-6], "mujoco": [7e-6, 14e-6, 28e-6]}
    assert results.entry(times, "pinocchio") == {
        "tangere_us": 1.0, "pinocchio_us": 5.0, "ratio": 5.0, "mujoco_us": 7.0, "mujoco_ratio": 7.0,
    }  # fmt: skip


def shown_result() -> dict[str, Any]:
    """Times whose ratio differs from the median `ratio` of the rounds, which only the JSON shows."""

    def row(ours: float, theirs: float, peer: str = "pinocchio") -> dict[str, float]:
        return {"tangere_us": ours, f"{peer}_us": theirs, "ratio": 1.0, "million_per_second": 1.0 / ours}

    return {
        "robot": "ur10e", "missing": [], "disagreements": [],
        "machine": results.machine(), "versions": {"tangere": "0"},
        "single": {"pose": row(0.2, 0.8), "momentum_terms": row(0.01, 0.1999), "energy": row(0.2, 0.2)},
        "batch": {
            "1000": {"pose": row(0.2, 0.2)},
            "100000": {"pose": row(0.012346, 0.23458), "momentum_terms": row(0.1, 15.0)},
        },
        "ik": {"eaik": row(0.5, 4.0, "eaik") | {"batch": {"1000": row(0.25, 4.0, "eaik")}}},
    }  # fmt: skip


def test_the_table_marks_what_is_reached_and_what_is_not() -> None:
    lines = results.bench_text(shown_result(), goals=True).splitlines()
    marks = [(line.split()[0], word) for line in lines for word in ("reached", "missed") if word in line.split()]
    assert marks == [
        ("pose", "reached"), ("momentum_terms", "reached"), ("pose", "missed"), ("momentum_terms", "reached"),
        ("eaik", "reached"),
    ]  # fmt: skip
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b[31m" in results.bench_text(shown_result(), colour=True, goals=True)


def test_goals_are_shown_where_they_are_asked_for() -> None:
    text = results.bench_text(shown_result(), colour=True)
    assert not {"goal", "reached", "missed"} & set(text.split())
    assert "\x1b[31m" not in text


def test_the_ratio_is_that_of_the_columns_shown() -> None:
    seen = 0
    for line in results.bench_text(shown_result()).splitlines():
        words = line.split()
        ratios = [word for word in words if re.fullmatch(r"[0-9.]+x", word)]
        if ratios:
            at = words.index(ratios[0])
            numbers = [float(word) for word in words[1:at]]
            ours, theirs = (numbers[-2], numbers[-1]) if words[0] in ("eaik",) or len(numbers) == 2 else numbers[::2]
            assert ratios[0] == f"{theirs / ours:.1f}x", line
            seen += 1
    assert seen == 8


def test_progress_is_silent_unless_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, *MODULES)
    monkeypatch.setattr(bench, "SIZES", TINY)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        assert bench.main(Namespace(seconds=0.0)) == 0
        assert ("pose, single call" in capsys.readouterr().err) == terminal


def test_rollouts_beside_mujoco(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench --rollouts --json`: the agreed keys; a ratio is that of the two rates shown; without MuJoCo none."""
    from tangere.apps.bench import rollouts
    from tangere.kernels.rollouts import COMPILED, available

    if not COMPILED:
        pytest.skip("the compiled rollouts are not built")
    monkeypatch.setattr(rollouts, "ROBOTS", 3)
    monkeypatch.setattr(rollouts, "THEIRS", 1)
    assert bench.main(Namespace(rollouts=True, json="-", seconds=0.0)) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["device"] == "cpu"
    assert result["threads"] == 1
    assert result["instruction_set"] == available()[0]
    for suffix in ("", "_rk4"):
        ours, theirs = result[f"tangere{suffix}_steps_per_s"], result[f"mujoco_rollout{suffix}_steps_per_s"]
        assert ours > 0.0
        assert theirs > 0.0
        assert result[f"ratio{suffix}"] == pytest.approx(ours / theirs, rel=1e-3)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert bench.main(Namespace(rollouts=True, seconds=0.0)) == 0
    assert "Runge-Kutta" in capsys.readouterr().out
    assert rollouts.measured(tangere.robot("ur5e"), 0.0)["ratio"] is None
    with pytest.raises(InvalidValue, match="scara has no fused kernel; it measures UR arms"):
        bench.main(Namespace(rollouts=True, robot="scara"))
