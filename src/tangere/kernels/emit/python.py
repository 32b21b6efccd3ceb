"""Prints traced kernels as Python: plain floats for one state, numpy arrays for a batch, from the same graph.

Names in the text are made from numbers only; nothing that was read from a file becomes part of the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tangere.codegen.functions import exponent, mantissa, power_of_two
from tangere.codegen.polynomials import exponential_minus_one, hyperbolic_tangent, logarithm
from tangere.codegen.trace import Graph, Node, Symbol

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "and": "&", "or": "|"}
# our own polynomials, and the operations they are made of: the bits are those of the C form
_OWN: dict[str, Any] = {
    "expm1": exponential_minus_one, "tanh": hyperbolic_tangent, "log": logarithm, "power_of_two": power_of_two,
    "exponent": exponent, "mantissa": mantissa,
}  # fmt: skip
_SCALAR: dict[str, Any] = {"sin": math.sin, "cos": math.cos, "sqrt": math.sqrt, "atan2": math.atan2, "rint": round}
_ARRAY: dict[str, Any] = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "atan2": np.arctan2, "rint": np.rint}


def source(graph: Graph, inputs: Sequence[str], outputs: Sequence[Symbol], *, parameters: str, batch: bool) -> str:
    """Text of `def kernel(inputs..., parameters)` returning the outputs as a flat tuple."""
    lines = [f"def kernel({', '.join([*inputs, parameters])}):"]
    for i in graph.live(outputs):
        node = graph.nodes[i]
        if node.op not in ("const", "input"):
            lines.append(f"    t{i} = {_expression(graph, node, batch)}")
        elif node.op == "input":
            assert isinstance(node.value, tuple)
            lines.append(f"    t{i} = {node.value[0]}[{node.value[1]}]")
    lines.append(f"    return ({' '.join(_reference(graph, o.index) + ',' for o in outputs)})")
    return "\n".join(lines) + "\n"


def compiled(
    graph: Graph, inputs: Sequence[str], outputs: Sequence[Symbol], *, parameters: str = "P", batch: bool
) -> Callable[..., tuple[Any, ...]]:
    """The kernel as a Python function; `batch` picks numpy's functions over those of `math`."""
    text = source(graph, inputs, outputs, parameters=parameters, batch=batch)
    namespace: dict[str, Any] = dict(_ARRAY if batch else _SCALAR, where=np.where) | _OWN
    exec(compile(text, "<traced kernel>", "exec"), namespace)  # text consists of our own tokens and numbers only
    kernel: Callable[..., tuple[Any, ...]] = namespace["kernel"]
    return kernel


def _reference(graph: Graph, i: int) -> str:
    node = graph.nodes[i]
    if node.op == "const":
        assert isinstance(node.value, float)
        return f"({node.value!r})"
    return f"t{i}"


def _expression(graph: Graph, node: Node, batch: bool) -> str:
    a = [_reference(graph, k) for k in node.args]
    if node.op in _ARITHMETIC:
        return f"{a[0]} {_ARITHMETIC[node.op]} {a[1]}"
    if node.op == "neg":
        return f"-{a[0]}"
    if node.op == "where":
        return f"where({a[0]}, {a[1]}, {a[2]})" if batch else f"{a[1]} if {a[0]} else {a[2]}"
    if node.op == "round":
        return f"rint({a[0]})"
    if node.op in ("sin", "cos", "sqrt", "atan2", "abs") or node.op in _OWN:
        return f"{node.op}({', '.join(a)})"
    raise ValueError(f"no Python form for the operation {node.op!r}")
