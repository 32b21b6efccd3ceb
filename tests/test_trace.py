"""The tracer: folding, sharing of equal operations, forward-mode derivatives, and the size of what is traced."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import random_arm

from tangere.codegen import functions as f
from tangere.codegen.trace import Graph, Symbol, derivative, hoisted, operation_count
from tangere.kernels import ur
from tangere.kernels.emit import python as emit_python
from tangere.kernels.table import KERNELS, trace
from tangere.kinematics.chain import chain_of


def two() -> tuple[Graph, Symbol, Symbol]:
    graph = Graph()
    x, y = graph.inputs("x", 2)
    return graph, x, y


def evaluated(graph: Graph, outputs: list[Symbol], values: list[float], *, batch: bool = False) -> list[float]:
    kernel = emit_python.compiled(graph, ["x"], outputs, batch=batch)
    arguments = [np.array([v]) for v in values] if batch else values
    return [float(np.ravel(y)[0]) for y in kernel(arguments, [])]


# ------------------------------------------------------------------------------------------------------------ folding


def test_zeros_and_ones_fold_away() -> None:
    _, x, _ = two()
    negative = -x
    for same in (x + 0.0, 0.0 + x, x - 0.0, x * 1.0, 1.0 * x, x / 1.0, -negative, +x, -1.0 * negative):
        assert same.index == x.index
    assert f.where(x < 1.0, x, x).index == x.index
    for nothing in (x * 0.0, 0.0 * x, x - x, 0.0 / x):
        assert nothing.constant == 0.0
    assert (0.0 - x).index == (-x).index


def test_constants_fold() -> None:
    graph, _, _ = two()
    a, b = graph.constant(6.0), graph.constant(4.0)
    for value, symbol in (
        (10.0, a + b), (2.0, a - b), (24.0, a * b), (1.5, a / b), (-6.0, -a), (math.sin(6.0), f.sin(a)),
        (math.cos(6.0), f.cos(a)), (2.0, f.sqrt(b)), (6.0, f.absolute(-a)), (7.0, 1 + a), (5.0, a - 1), (1.0, 7 - a),
    ):  # fmt: skip
        assert symbol.constant == value


def test_signs_move_outwards() -> None:
    """x + (-y) = x - y and (-x)(-y) = x y: exact in floating point, and cheaper."""
    _, x, y = two()
    assert (x + (-y)).index == (x - y).index
    assert ((-x) + y).index == (y - x).index
    assert (x - (-y)).index == (x + y).index
    assert ((-x) * (-y)).index == (x * y).index
    assert ((-x) * y).index == (-(x * y)).index
    assert (x * (-y)).index == (-(x * y)).index
    assert ((-x) / y).index == (-(x / y)).index
    assert ((-x) - y).index == (-(x + y)).index


def test_equal_operations_are_one_node() -> None:
    graph, x, y = two()
    assert (x + y).index == (y + x).index
    assert (x * y).index == (y * x).index
    assert (x - y).index != (y - x).index
    assert f.sin(x + y).index == f.sin(y + x).index
    assert (x < y).index == (y > x).index
    before = len(graph.nodes)
    (x + y) * f.sin(y + x)
    assert len(graph.nodes) == before + 1


def test_nothing_is_reassociated() -> None:
    """(x + y) + z and x + (y + z) round differently, so they stay different."""
    graph = Graph()
    x, y, z = graph.inputs("x", 3)
    left, right = (x + y) + z, x + (y + z)
    assert left.index != right.index
    assert evaluated(graph, [left, right], [1e16, -1e16, 1.0]) == [1.0, 0.0]


def test_uniform_operations_cost_nothing_per_sample() -> None:
    graph = Graph()
    (P,) = graph.inputs("P", 1, uniform=True)
    (x,) = graph.inputs("x", 1)
    out = (P * P + 1.0) * x
    assert operation_count(graph, [out]) == 1
    assert operation_count(graph, [P * P]) == 0
    assert operation_count(graph, [-x]) == 0


def test_only_what_is_needed_is_live() -> None:
    graph, x, y = two()
    wanted, other = x * y, x / y
    live = graph.live([wanted])
    assert other.index not in live
    assert live == sorted(live)


def test_misuse_says_what_to_do() -> None:
    graph, x, _ = two()
    with pytest.raises(TypeError, match="where"):
        bool(x < 1.0)
    with pytest.raises(TypeError, match="equality"):
        x == x  # noqa: B015
    with pytest.raises(TypeError, match="another trace"):
        x + Graph().inputs("x", 1)[0]
    with pytest.raises(TypeError, match="no derivative"):
        derivative(graph, [f.rounded(x)], {x.index: 1.0})


# ------------------------------------------------------------------------------- functions: floats, arrays, symbols

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x * y,
    "sin": lambda x, y: f.sin(x * y),
    "cos": lambda x, y: f.cos(x - y),
    "sqrt": lambda x, y: f.sqrt(x * x + y * y),
    "atan2": f.atan2,
    "atan2 of one": lambda x, y: f.atan2(x, 2.0) + f.atan2(3.0, y),
    "where": lambda x, y: f.where(x < y, x * x, y * y * y),
    "where and": lambda x, y: f.where((0.0 < x) & (y <= 1.0), x * y, x + y),
    "where or": lambda x, y: f.where((x > 1.0) | (y >= 0.5), x * y, x / y),
    "maximum": f.maximum,
    "minimum": f.minimum,
    "all together": lambda x, y: f.sqrt(1.0 + f.sin(x) * f.sin(x)) / f.atan2(y, x + 3.0) - f.cos(x * y) * (x - y),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_derivatives_against_differences(name: str, rng: np.random.Generator) -> None:
    """In a random direction. 1e-8: central differences of O(1) functions with h = 1e-5 leave 1e-10, rounding 1e-11."""
    graph, x, y = two()
    function, h = FUNCTIONS[name], 1e-5
    for _ in range(20):
        a, b = rng.uniform(0.3, 2.0, 2) * rng.choice([-1.0, 1.0], 2)
        da, db = rng.normal(size=2)
        (rate,) = derivative(graph, [function(x, y)], {x.index: da, y.index: db})
        difference = (function(a + h * da, b + h * db) - function(a - h * da, b - h * db)) / (2 * h)
        if "where" in name and min(abs(a - b), abs(a - 1.0), abs(b - 0.5), abs(b - 1.0), abs(a)) < 1e-3:
            continue  # next to the switch the difference sees both sides
        assert evaluated(graph, [rate], [a, b])[0] == pytest.approx(difference, abs=1e-8, rel=1e-8)


def test_derivative_with_symbolic_seeds_and_of_constants() -> None:
    graph, x, y = two()
    (rate,) = derivative(graph, [x * x], {x.index: y})
    assert evaluated(graph, [rate], [3.0, 5.0]) == [30.0]
    assert [s.constant for s in derivative(graph, [y, graph.constant(2.0)], {x.index: 1.0})] == [0.0, 0.0]


@pytest.mark.parametrize("name", [*FUNCTIONS, "rounded", "absolute"])
def test_symbols_arrays_and_floats_agree(name: str, rng: np.random.Generator) -> None:
    extra: dict[str, Callable[..., Any]] = {
        "rounded": lambda x, y: f.rounded(3.0 * x) * y,
        "absolute": lambda x, y: f.absolute(x * y),
    }
    function = {**FUNCTIONS, **extra}[name]
    graph, x, y = two()
    out = function(x, y)
    for a, b in rng.uniform(-3.0, 3.0, (50, 2)).tolist():
        plain = function(a, b)
        assert evaluated(graph, [out], [a, b]) == [plain]
        # numpy's own sin, cos and arctan2 may differ from math's by an ulp
        assert evaluated(graph, [out], [a, b], batch=True)[0] == pytest.approx(plain, abs=1e-14, rel=1e-14)
        assert float(function(np.array([a]), np.array([b]))[0]) == pytest.approx(plain, abs=1e-14, rel=1e-14)


def test_rounding_is_to_even() -> None:
    assert [f.rounded(v) for v in (0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 7.0)] == [0.0, 2.0, 2.0, 0.0, -2.0, 0.0, 7.0]
    graph, x, _ = two()
    assert [evaluated(graph, [f.rounded(x)], [v, 0.0])[0] for v in (0.5, 1.5, 2.5, -1.5)] == [0.0, 2.0, 2.0, -2.0]


# ------------------------------------------------------------------------------------------ size of the UR's kernels

# Operations per state (a sine or cosine counts one): the counts when this was written, plus two percent. More means
# that something is computed that need not be.
MOST = {
    "pose": 149,
    "jacobian": 158,
    "mass_matrix": 294,
    "coriolis_matrix": 818,
    "gravity_torque": 113,
    "bias_torque": 417,
    "inverse_dynamics": 533,
    "forward_dynamics": 820,
    "momentum_terms": 476,
}


@pytest.mark.parametrize("name", list(MOST))
def test_operation_counts(name: str) -> None:
    kernel = next(k for k in KERNELS if k.name == name)
    t = trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)
    assert operation_count(t.graph, t.outputs) <= MOST[name]


def test_parallel_axes_and_quarter_turns_are_used() -> None:
    """The UR's structure is worth a third: the same arm with general joint frames costs more than 1.3 times as much."""
    kernel = next(k for k in KERNELS if k.name == "inverse_dynamics")
    special = trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)
    arm = random_arm(3, "rrrrrr")
    general = trace(kernel, 6, lambda _: chain_of(arm), 0)
    ratio = operation_count(general.graph, general.outputs) / operation_count(special.graph, special.outputs)
    assert ratio > 1.3


def test_a_kernel_must_give_what_its_table_says() -> None:
    wrong = dataclasses.replace(KERNELS[0], outputs=lambda n: ((3, 3),))
    with pytest.raises(AssertionError, match="pose gives 16 numbers, its table says 9"):
        trace(wrong, ur.DOF, ur.chain, ur.PARAMETER_COUNT)


def test_what_parameters_alone_decide_is_computed_once() -> None:
    """Numbers and truth values of parameters leave the graph; what is left reads them, and gives the same."""
    graph = Graph()
    x, y = graph.inputs("x", 2)
    a, b = graph.inputs("P", 2, uniform=True)
    out = [x * (a * b + 1.0), f.where((a < b) & (x < y), x, a / b), a, graph.constant(2.0), f.where(a < b, x, y)]
    for uniform in (True, False):
        moved, heads = hoisted(graph, out, "u", uniform=uniform)
        left = moved[0].graph
        assert not any(node.op == "input" and node.value[0] == "P" for node in left.nodes)  # type: ignore[index]
        whole = emit_python.compiled(graph, ["x"], out, batch=False)
        once = emit_python.compiled(graph, [], heads, parameters="P", batch=False)
        rest = emit_python.compiled(left, ["x"], moved, parameters="u", batch=False)
        for P in ([2.0, 3.0], [3.0, 2.0]):
            for point in ([1.0, 4.0], [4.0, 1.0]):
                assert rest(point, once(P)) == whole(point, P)
