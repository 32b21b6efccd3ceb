"""Prints traced kernels as C.

The text is a template over the number type: it is included once with V = double and once per SIMD width, with the
macros of kernels/lanes.h giving V, the mask type and the few operations that C has no vector operator for. Every
operation is a single IEEE operation, so all widths give the same bits (contraction is switched off at compile time).
Names in the text are made here from numbers and from the kernel names of our own table, never from data.
"""

from __future__ import annotations

from collections.abc import Sequence

from tangere.codegen.trace import Graph, Node, Symbol

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_CALLS = {"sqrt": "TG_SQRT", "abs": "TG_ABS", "round": "TG_ROUND", "lt": "TG_LT", "le": "TG_LE"}


def function(
    name: str, graph: Graph, inputs: Sequence[str], outputs: Sequence[Symbol], *, parameters: str = "P", inline: bool
) -> str:
    """A C function `TG_FN(name)(inputs..., P, out)` that computes the outputs.

    inputs: names of the argument groups that differ between samples, in the order of the call; each is an array of V.
    parameters: name of the group that is equal for all samples, an array of double.
    """
    if not name.isidentifier():
        raise ValueError(f"kernel name {name!r} is not an identifier")
    arguments = [f"const V *restrict {g}" for g in inputs]
    arguments += [f"const double *restrict {parameters}", "V *restrict out"]
    lines = [f"{'TG_INLINE' if inline else 'TG_KERNEL'} void TG_FN({name})({', '.join(arguments)})", "{"]
    lines.append(f"    (void){parameters};")
    done: set[int] = set()
    if any(_joint_angle(graph, i) is not None for i in graph.live(outputs)):
        lines.append(f"    TG_ANGLES({inputs[0]})")
    for i in graph.live(outputs):
        line = _statement(graph, i, done)
        if line:
            lines.append("    " + line)
    for k, o in enumerate(outputs):
        lines.append(f"    out[{k}] = {_vector(graph, o.index)};")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _reference(graph: Graph, i: int) -> str:
    node = graph.nodes[i]
    if node.op == "const":
        assert isinstance(node.value, float)
        return f"({node.value.hex()})" if node.value < 0 else node.value.hex()
    if node.op == "input":
        assert isinstance(node.value, tuple)
        return f"{node.value[0]}[{node.value[1]}]"
    return f"t{i}"


def _vector(graph: Graph, i: int) -> str:
    """The node as a V (or mask), spread over the lanes if it is a scalar."""
    node = graph.nodes[i]
    text = _reference(graph, i)
    if not node.uniform:
        return text
    return f"TG_SPREAD_MASK({text})" if node.mask else f"TG_SPREAD({text})"


def _statement(graph: Graph, i: int, done: set[int]) -> str:
    node = graph.nodes[i]
    if i in done or node.op in ("const", "input"):
        return ""
    done.add(i)
    if node.op in ("sin", "cos"):
        return _sincos(graph, node, i, done)
    expression = _expression(graph, node)
    if node.mask:
        return f"const {'int' if node.uniform else 'TG_MASK'} t{i} = {expression};"
    return f"const {'double' if node.uniform else 'V'} t{i} = {expression};"


def _expression(graph: Graph, node: Node) -> str:
    # An operation on scalars only stays scalar; otherwise scalars are spread, so that types always agree.
    read = _reference if node.uniform else _vector
    a = [read(graph, k) for k in node.args]
    prefix = "TG_U" if node.uniform else "TG"  # scalar twins of the lane macros
    if node.op in _ARITHMETIC:
        return f"{a[0]} {_ARITHMETIC[node.op]} {a[1]}"
    if node.op == "neg":
        return f"-{a[0]}"
    if node.op == "where":
        return f"{prefix}_SELECT({a[0]}, {a[1]}, {a[2]})"
    if node.op in ("and", "or"):
        return f"{a[0]} {'&' if node.op == 'and' else '|'} {a[1]}"
    if node.op == "atan2":
        if node.uniform:
            raise ValueError("trigonometry of parameters belongs into the parameters themselves")
        return f"TG_FN(atan2)({a[0]}, {a[1]})"
    if node.op in _CALLS:
        return f"{_CALLS[node.op].replace('TG', prefix, 1)}({', '.join(a)})"
    raise ValueError(f"no C form for the operation {node.op!r}")


def _joint_angle(graph: Graph, i: int) -> int | None:
    """Which joint's angle a sine or cosine is of: its argument is one of the first six inputs."""
    node = graph.nodes[i]
    if node.op in ("sin", "cos"):
        value = graph.nodes[node.args[0]].value
        if isinstance(value, tuple) and value[0] == "x" and value[1] < 6:
            return value[1]
    return None


def _sincos(graph: Graph, node: Node, i: int, done: set[int]) -> str:
    """sin and cos of one angle come from one call; the twin node may or may not be needed."""
    twin_op = "cos" if node.op == "sin" else "sin"
    twin = graph.find(twin_op, node.args)
    pair = {node.op: f"t{i}", twin_op: f"t{twin}" if twin is not None else f"unused{i}"}
    if twin is not None:
        done.add(twin)
    if node.uniform:
        raise ValueError("trigonometry of parameters belongs into the parameters themselves")
    argument = _vector(graph, node.args[0])
    joint = _joint_angle(graph, i)
    if joint is not None:
        return f"TG_SINCOS({joint}, {argument}, {pair['sin']}, {pair['cos']})"
    return f"V {pair['sin']}, {pair['cos']}; TG_FN(sincos)({argument}, &{pair['sin']}, &{pair['cos']});"


def math_functions() -> str:
    """The C forms of sincos and atan2, traced from codegen.polynomials."""
    from tangere.codegen.polynomials import arctangent2, sincos

    g = Graph()
    (x,) = g.inputs("x", 1)
    body = function("sincos_", g, ["x"], list(sincos(x)), inline=True)
    g = Graph()
    y, x = g.inputs("p", 2)
    body += "\n" + function("atan2_", g, ["p"], [arctangent2(y, x)], inline=True)
    return body + _WRAPPERS


_WRAPPERS = """
TG_INLINE void TG_FN(sincos)(V x, V *s, V *c)
{
    V out[2];
    TG_FN(sincos_)(&x, 0, out);
    *s = out[0];
    *c = out[1];
}

TG_INLINE V TG_FN(atan2)(V y, V x)
{
    V in[2] = {y, x}, out[1];
    TG_FN(atan2_)(in, 0, out);
    return out[0];
}
"""
