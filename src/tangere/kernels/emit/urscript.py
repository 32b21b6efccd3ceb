"""Prints traced kernels as URScript functions, for programs that run inside a controller.

URScript has numbers, lists and sin, cos, sqrt, atan2, pow, norm; no choice within an expression and no tanh. Where a
kernel has one of those it calls a function of FUNCTIONS, which a program has once (`called`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tangere.codegen.trace import Graph, Node, Symbol

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "and": "and", "or": "or"}
_CALLS = {"sin": "sin", "cos": "cos", "sqrt": "sqrt", "abs": "norm", "tanh": "tangere_tanh", "where": "tangere_where"}

# beyond 20 tanh is 1 to the last digit, and pow would grow without need
FUNCTIONS = {
    "tangere_tanh": """\
def tangere_tanh(x):
  if x > 20.0:
    return 1.0
  elif x < -20.0:
    return -1.0
  end
  local e = pow(2.718281828459045, 2.0 * x)
  return (e - 1.0) / (e + 1.0)
end
""",
    "tangere_where": """\
def tangere_where(condition, a, b):
  if condition:
    return a
  end
  return b
end
""",
}


def function(
    name: str, graph: Graph, inputs: Sequence[str], outputs: Sequence[Symbol], *, scalars: Sequence[str] = ()
) -> str:
    """Text of `def name(inputs...)` that returns the outputs as one list, or as a number where there is one.

    Each input is a list of numbers, those of `scalars` one number each. The graph's inputs are those of the groups
    named by `inputs`; parameters must have been folded into it.
    """
    lines = [f"def {name}({', '.join(inputs)}):"]
    for i in graph.live(outputs):
        node = graph.nodes[i]
        if node.op == "input":
            assert isinstance(node.value, tuple)
            group, entry = node.value
            lines.append(f"  local t{i} = {group if group in scalars else f'{group}[{entry}]'}")
        elif node.op != "const":
            lines.append(f"  local t{i} = {_expression(graph, node)}")
    found = ", ".join(_reference(graph, o.index) for o in outputs)
    lines.append(f"  return {found}" if len(outputs) == 1 else f"  return [{found}]")
    return "\n".join([*lines, "end", ""])


def called(text: str) -> list[str]:
    """The functions of FUNCTIONS that a text calls."""
    return [body for name, body in FUNCTIONS.items() if f"{name}(" in text]


def number(value: float) -> str:
    """A number in full precision; URScript knows no bare `1.` and takes 1e-05."""
    return repr(float(value) + 0.0)


def _reference(graph: Graph, i: int) -> str:
    node = graph.nodes[i]
    if node.op == "const":
        assert isinstance(node.value, float)
        text = number(node.value)
        return f"({text})" if text.startswith("-") else text
    return f"t{i}"


def _expression(graph: Graph, node: Node) -> str:
    a = [_reference(graph, k) for k in node.args]
    if node.op in _ARITHMETIC:
        return f"{a[0]} {_ARITHMETIC[node.op]} {a[1]}"
    if node.op == "neg":
        return f"-{a[0]}"
    if node.op == "atan2":
        return f"atan2({a[0]}, {a[1]})"
    if node.op in _CALLS:
        return f"{_CALLS[node.op]}({', '.join(a)})"
    raise ValueError(f"no URScript form for the operation {node.op!r}")
