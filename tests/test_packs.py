"""Like quantities side by side: every lane has the number of its node, to the last bit, whatever it was packed with."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import random_arm

from tangere.codegen.packs import FOUR, Packs, statements
from tangere.codegen.trace import Graph, alike, derivative, fresh
from tangere.dynamics import composite, newton_euler
from tangere.kernels import general
from tangere.kernels.table import KERNELS, Trace, trace
from tangere.kinematics.chain import chain_of

PACKED = ("mass_matrix", "coriolis_matrix", "forward_dynamics", "inverse_dynamics_derivatives", "regressor")
TWO = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}
ONE = {"neg": lambda a: -a, "copy": lambda a: a, "sin": math.sin, "cos": math.cos}


def traced(name: str) -> Trace:
    kernel = next(k for k in KERNELS if k.name == name)
    return trace(kernel, 6, general.SIX.chain, general.SIX.parameter_count, unfolded=True)


def values(graph: Graph, rng: np.random.Generator) -> list[float]:
    """A number for every node."""
    found: list[float] = []
    for node in graph.nodes:
        args = [found[i] for i in node.args]
        if node.op == "input":
            found.append(rng.uniform(-2.0, 2.0))
        elif node.op == "const":
            assert isinstance(node.value, float)
            found.append(node.value)
        else:
            found.append((TWO | ONE)[node.op](*args))
    return found


def lanes_of(packs: Packs, number: int, node: list[float], known: dict[int, list[float]]) -> list[float]:
    """The four numbers of a pack, made as its text makes them."""
    if number in known:
        return known[number]
    _, operation, pieces = packs.made[number]

    def piece(p: int | str) -> list[float]:
        if isinstance(p, int):
            return list(lanes_of(packs, p, node, known))
        if p[:1] == "=":
            return [node[int(p[1:])]] * FOUR
        each = [node[int(i)] if i else 0.0 for i in p[1:].split(",")]
        return [*each, *[0.0] * (FOUR - len(each))]

    if operation == "with":
        found = [0.0] * FOUR if pieces[0] == "" else piece(pieces[0])
        for p in pieces[1:]:
            lane, i = map(int, str(p).split(":"))
            found[lane] = node[i]
    else:
        found = [TWO[operation](a, b) for a, b in zip(*map(piece, pieces), strict=True)]
    return known.setdefault(number, found)


@pytest.mark.parametrize("name", PACKED)
def test_every_lane_is_its_node(name: str, rng: np.random.Generator) -> None:
    t = traced(name)
    packs = Packs(t.graph, t.outputs)
    node = values(t.graph, rng)
    known: dict[int, list[float]] = {}
    checked = 0
    for number, (lanes, _, _) in enumerate(packs.made):
        have = lanes_of(packs, number, node, known)
        for lane, i in enumerate(lanes):
            if i is not None:
                assert have[lane] == node[i]
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("name", PACKED)
def test_a_text_names_everything_before_it_is_used_and_is_shorter(name: str) -> None:
    t = traced(name)
    packs = Packs(t.graph, t.outputs)
    lines = statements(t.graph, t.outputs, packs, lambda i: f"t{i}")
    made = set()
    for line in lines:
        left, _, right = line.partition(" = ")
        words = set(right.replace("[", " ").replace(",", " ").replace("(", " ").replace("{", " ").split())
        used = {w.strip(";})") for w in words if w[:1] == "v" and w.strip(";})")[1:].isdigit()}
        made.add(left.split()[-1])
        assert used <= made
    assert len([line for line in lines if "[" not in line.split("=")[-1]]) < 0.95 * len(t.graph.live(t.outputs))


def test_what_would_need_itself_is_not_packed() -> None:
    """Products of products, of which one is made of the other: side by side neither could be first."""
    graph = Graph()
    a, b, c, d = graph.inputs("x", 4)
    one, two = a * b + c * d, a * c + b * d
    three = one * a + two * b
    alike(one, three)
    packs = Packs(graph, [three])
    assert all(operation == "with" for _, operation, _ in packs.made)


def test_sums_may_be_turned_round_differences_not(rng: np.random.Generator) -> None:
    """Where the arguments of two lanes lie the other way round a sum is packed all the same, with the same numbers."""
    graph = Graph()
    s, a, b, c, d = graph.inputs("x", 5)
    lanes = ((s * a) + b, c + (s * d)), ((s * a) - b, c - (s * d))
    for pair in lanes:
        alike(*pair)
    packs = Packs(graph, [x for pair in lanes for x in pair])
    node, known = values(graph, rng), dict[int, list[float]]()
    assert {operation for _, operation, _ in packs.made} >= {"add", "mul"}
    for number, (have, _, _) in enumerate(packs.made):
        numbers = lanes_of(packs, number, node, known)
        assert all(i is None or numbers[k] == node[i] for k, i in enumerate(have))


def test_fresh_numbers_fold_only_where_nothing_is_packed() -> None:
    for unfolded in (False, True):
        graph = Graph()
        graph.unfolded = unfolded
        (x,) = graph.inputs("x", 1)
        zero, _ = fresh([0.0, 1.0], x)
        assert ((x + zero) is x or (x + zero).index == x.index) is not unfolded


@pytest.mark.parametrize("kinds", ["rrrrrr", "rprrp", "prr"])
def test_derivatives_are_those_of_the_traced_recursion(kinds: str, rng: np.random.Generator) -> None:
    """One sweep over the chain against forward differentiation of inverse dynamics, operation by operation."""
    n = len(kinds)
    chain = chain_of(random_arm(n, kinds), rotor_inertia=rng.uniform(0.1, 1.0, n))
    graph = Graph()
    x = graph.inputs("x", 3 * n)
    tau = [graph.lift(t) for t in newton_euler.inverse_dynamics(chain, x[:n], x[n : 2 * n], x[2 * n :])]
    rates = [derivative(graph, tau, {s.index: 1.0}) for s in x]
    node = values(graph, rng)
    wanted = np.array([[node[r.index] for r in column] for column in rates]).reshape(3, n, n).transpose(0, 2, 1)
    at = [node[s.index] for s in x]
    made = composite.inverse_dynamics_derivatives(chain, at[:n], at[n : 2 * n], at[2 * n :])
    np.testing.assert_allclose(np.reshape(made, (3, n, n)), wanted, rtol=0.0, atol=1e-12 * np.abs(wanted).max())
