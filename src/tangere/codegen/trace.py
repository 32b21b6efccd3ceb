"""The tracer: run an algorithm once on symbols and keep the straight-line arithmetic it performs.

An algorithm written in plain Python over +, -, *, /, comparisons and the functions of `codegen.functions` is called
with `Symbol` arguments. Every operation becomes a node of a `Graph`; equal operations become the same node
(hash-consing), zeros, ones and constants fold away. What is left is a list of nodes in an order in which they can
be computed, which the emitters print.

Folding never changes a finite result by more than the sign of a zero: x + 0 -> x, x * 0 -> 0, x * 1 -> x,
x + (-y) -> x - y. Nothing is re-associated, so the printed code rounds as the algorithm was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Operations whose result does not depend on the order of their two arguments, bit by bit.
_COMMUTATIVE = frozenset({"add", "mul", "and", "or"})


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: its name, the indices of its arguments, and a value (constant) or slot (input)."""

    op: str
    args: tuple[int, ...]
    value: float | tuple[str, int] | None
    mask: bool  # result is a truth value
    uniform: bool  # depends on parameters only: the same for every sample of a batch


class Graph:
    """Nodes in the order of their computation, each stored once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._index: dict[tuple[str, tuple[int, ...], float | tuple[str, int] | None], int] = {}
        self.alike: list[tuple[int, ...]] = []  # see `alike`
        self.unfolded = False  # see `fresh`

    def input(self, group: str, index: int, *, uniform: bool = False) -> Symbol:
        """Element `index` of the argument `group`; `uniform` marks parameters, equal for all samples."""
        return self._node("input", (), (group, index), uniform=uniform)

    def inputs(self, group: str, count: int, *, uniform: bool = False) -> list[Symbol]:
        """The argument `group` as `count` symbols."""
        return [self.input(group, i, uniform=uniform) for i in range(count)]

    def constant(self, value: float) -> Symbol:
        """A number written into the code; the two zeros are kept apart from nothing else."""
        return self._node("const", (), 0.0 if value == 0.0 else float(value), uniform=True)

    def lift(self, x: float | int | Symbol) -> Symbol:
        """The number or symbol as a node of this graph."""
        if isinstance(x, Symbol):
            if x.graph is not self:
                raise TypeError("a symbol of another trace was used: trace one kernel at a time")
            return x
        return self.constant(float(x))

    def operation(self, op: str, *args: Symbol, mask: bool = False) -> Symbol:
        """A node for `op` on `args`, reusing an equal one."""
        indices = tuple(a.index for a in args)
        if op in _COMMUTATIVE and indices[0] > indices[1]:
            indices = (indices[1], indices[0])
        return self._node(op, indices, None, mask=mask, uniform=all(self.nodes[i].uniform for i in indices))

    def _node(
        self,
        op: str,
        args: tuple[int, ...],
        value: float | tuple[str, int] | None,
        *,
        mask: bool = False,
        uniform: bool = False,
    ) -> Symbol:
        key = (op, args, value)
        index = self._index.get(key)
        if index is None:
            index = len(self.nodes)
            self.nodes.append(Node(op, args, value, mask, uniform))
            self._index[key] = index
        return Symbol(self, index)

    def find(self, op: str, args: tuple[int, ...]) -> int | None:
        """Index of the node for `op` on `args`, if the trace has one."""
        return self._index.get((op, args, None))

    def live(self, outputs: Iterable[Symbol]) -> list[int]:
        """Indices of the nodes that the outputs need, in order of computation."""
        needed: set[int] = set()
        stack = [o.index for o in outputs]
        while stack:
            i = stack.pop()
            if i not in needed:
                needed.add(i)
                stack.extend(self.nodes[i].args)
        return sorted(needed)


def alike(*values: float | Symbol) -> None:
    """Say that these numbers come of the same operations, each of a joint or an axis of its own.

    Emitters may compute them side by side, in the lanes of a vector; numbers and results are the same either way.
    """
    graph = next((x.graph for x in values if isinstance(x, Symbol)), None)
    if graph is not None and len(values) > 1:
        graph.alike.append(tuple(graph.lift(x).index for x in values))


def fresh(values: Sequence[float | Symbol], of: float | Symbol) -> Sequence[float | Symbol]:
    """Numbers that join others which are alike, of the trace that `of` belongs to.

    Where that trace is to be computed side by side (`unfolded`), zeros and signs in them do not fold away: what is made
    of them has the operations of what is made of the others.
    """
    if not isinstance(of, Symbol) or not of.graph.unfolded:
        return values
    return [of.graph.operation("copy", of.graph.lift(x)) for x in values]


def operation_count(graph: Graph, outputs: Sequence[Symbol]) -> int:
    """Number of arithmetic operations per sample that the outputs cost (sin and cos count one each)."""
    free = {"input", "const", "neg"}
    return sum(1 for i in graph.live(outputs) if graph.nodes[i].op not in free and not graph.nodes[i].uniform)


class Symbol:
    """A number that is not known yet: arithmetic on it extends its graph."""

    __slots__ = ("graph", "index")
    __array_ufunc__ = None  # numpy must not try to make arrays of symbols

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

    @property
    def node(self) -> Node:
        """The operation that this symbol stands for."""
        return self.graph.nodes[self.index]

    @property
    def constant(self) -> float | None:
        """Its value where it is a constant."""
        node = self.node
        return node.value if node.op == "const" and isinstance(node.value, float) else None

    @property
    def negated(self) -> Symbol | None:
        """What it is the negative of, where it is one."""
        node = self.node
        return Symbol(self.graph, node.args[0]) if node.op == "neg" else None

    def __add__(self, other: float | int | Symbol) -> Symbol:
        g, b = self.graph, self.graph.lift(other)
        x, y = self.constant, b.constant
        if x is not None and y is not None:
            return g.constant(x + y)
        if x == 0.0:
            return b
        if y == 0.0:
            return self
        if (n := b.negated) is not None:
            return self - n
        if (n := self.negated) is not None:
            return b - n
        return g.operation("add", self, b)

    __radd__ = __add__

    def __sub__(self, other: float | int | Symbol) -> Symbol:
        g, b = self.graph, self.graph.lift(other)
        x, y = self.constant, b.constant
        if x is not None and y is not None:
            return g.constant(x - y)
        if y == 0.0:
            return self
        if x == 0.0:
            return -b
        if self.index == b.index:
            return g.constant(0.0)
        if (n := b.negated) is not None:
            return self + n
        if (n := self.negated) is not None:
            return -(n + b)
        return g.operation("sub", self, b)

    def __rsub__(self, other: float | int | Symbol) -> Symbol:
        return self.graph.lift(other) - self

    def __mul__(self, other: float | int | Symbol) -> Symbol:
        g, b = self.graph, self.graph.lift(other)
        x, y = self.constant, b.constant
        if x is not None and y is not None:
            return g.constant(x * y)
        if x == 0.0 or y == 0.0:
            return g.constant(0.0)
        for value, factor in ((x, b), (y, self)):
            if value == 1.0:
                return factor
            if value == -1.0:
                return -factor
        m, n = self.negated, b.negated
        if m is not None and n is not None:
            return m * n
        if m is not None:
            return -(m * b)
        if n is not None:
            return -(self * n)
        return g.operation("mul", self, b)

    __rmul__ = __mul__

    def __truediv__(self, other: float | int | Symbol) -> Symbol:
        g, b = self.graph, self.graph.lift(other)
        x, y = self.constant, b.constant
        if x is not None and y is not None and y != 0.0:
            return g.constant(x / y)
        if x == 0.0:
            return g.constant(0.0)
        if y == 1.0:
            return self
        if (m := self.negated) is not None:
            return -(m / b)
        return g.operation("div", self, b)

    def __rtruediv__(self, other: float | int | Symbol) -> Symbol:
        return self.graph.lift(other) / self

    def __neg__(self) -> Symbol:
        x, n = self.constant, self.negated
        if x is not None:
            return self.graph.constant(-x)
        return n if n is not None else self.graph.operation("neg", self)

    def __pos__(self) -> Symbol:
        return self

    def __lt__(self, other: float | int | Symbol) -> Symbol:
        return self.graph.operation("lt", self, self.graph.lift(other), mask=True)

    def __le__(self, other: float | int | Symbol) -> Symbol:
        return self.graph.operation("le", self, self.graph.lift(other), mask=True)

    def __gt__(self, other: float | int | Symbol) -> Symbol:
        return self.graph.lift(other) < self

    def __ge__(self, other: float | int | Symbol) -> Symbol:
        return self.graph.lift(other) <= self

    def __and__(self, other: Symbol) -> Symbol:
        return self.graph.operation("and", self, other, mask=True)

    def __or__(self, other: Symbol) -> Symbol:
        return self.graph.operation("or", self, other, mask=True)

    def __bool__(self) -> bool:
        raise TypeError("a traced value has no truth value: write where(condition, a, b) instead of if")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise TypeError("traced values are not compared for equality: use <= and >=")


def derivative(graph: Graph, outputs: Sequence[Symbol], seeds: dict[int, float | Symbol]) -> list[Symbol]:
    """Directional derivative of the outputs: d out = sum over inputs (d out / d x) seed[x].

    Forward mode over the nodes; `seeds` maps the index of an input node to its rate. Comparisons count as constant,
    so at a switch of `where` the derivative of the chosen side is returned.
    """
    rates: dict[int, Symbol] = {i: graph.lift(s) for i, s in seeds.items()}
    zero = graph.constant(0.0)
    for i in graph.live(outputs):
        node = graph.nodes[i]
        if i in rates or not node.args or node.mask:
            continue
        d = [rates.get(a, zero) for a in node.args]
        if all(x.constant == 0.0 for x in d):
            continue
        a = [Symbol(graph, k) for k in node.args]
        rates[i] = _rate(Symbol(graph, i), node.op, a, d)
    return [rates.get(o.index, zero) for o in outputs]


def _rate(y: Symbol, op: str, a: list[Symbol], d: list[Symbol]) -> Symbol:
    """Rate of y = op(a) from the rates d of its arguments."""
    g = y.graph

    match op:
        case "add":
            return d[0] + d[1]
        case "sub":
            return d[0] - d[1]
        case "neg":
            return -d[0]
        case "mul":
            return d[0] * a[1] + a[0] * d[1]
        case "div":
            return (d[0] - y * d[1]) / a[1]
        case "sqrt":
            return d[0] / (2.0 * y)
        case "sin":
            return g.operation("cos", a[0]) * d[0]
        case "cos":
            return -(g.operation("sin", a[0]) * d[0])
        case "atan2":
            return (a[1] * d[0] - a[0] * d[1]) / (a[0] * a[0] + a[1] * a[1])
        case "tanh":
            return (1.0 - y * y) * d[0]
        case "expm1":
            return (y + 1.0) * d[0]
        case "log":
            return d[0] / a[0]
        case "where":
            return g.operation("where", a[0], d[1], d[2])
        case _:
            raise TypeError(f"no derivative is known for the operation {op!r}")



def hoisted(graph: Graph, outputs: Sequence[Symbol], group: str, *, uniform: bool) -> tuple[list[Symbol], list[Symbol]]:
    """The outputs over a graph of their own in which what depends on parameters alone is read from the input `group`.

    The second list has, in the order of `group`, the parameters' expressions in the old graph: computed once, not in
    every call. uniform: whether the group is equal for all samples again, or differs from sample to sample.
    """
    new, moved, heads = Graph(), dict[int, Symbol](), list[Symbol]()
    live = graph.live(outputs)
    read = {a for i in live if not graph.nodes[i].uniform for a in graph.nodes[i].args} | {o.index for o in outputs}
    for i in live:
        node = graph.nodes[i]
        if node.op == "const":
            assert isinstance(node.value, float)
            moved[i] = new.constant(node.value)
        elif node.uniform:
            if i in read:
                number = new.input(group, len(heads), uniform=uniform)
                head = Symbol(graph, i)
                if node.mask:  # a group has numbers: a truth value becomes 1 or 0, and is asked again
                    head = graph.operation("where", head, graph.constant(1.0), graph.constant(0.0))
                moved[i] = 0.5 < number if node.mask else number
                heads.append(head)
        elif node.op == "input":
            assert isinstance(node.value, tuple)
            moved[i] = new.input(*node.value)
        else:
            moved[i] = new.operation(node.op, *(moved[a] for a in node.args), mask=node.mask)
    return [moved[o.index] for o in outputs], heads
