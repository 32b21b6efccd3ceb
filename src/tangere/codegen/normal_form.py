"""Traced arithmetic over joint angles in its normal form: every output multiplied out, with few operations left.

An output of a kernel without division is a polynomial in sines and cosines of angles, in lengths that slide and in
rates. Multiplied out, with s^2 = 1 - c^2, it has one form only: what cancels is gone, whatever way it was computed.
Angles may be sums of joint positions (q2 + q3 where axes 2 and 3 are parallel): then sin(q3) is written as
sin(q2 + q3 - q2). Horner's scheme over several variables puts the factors back in front of brackets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tangere.codegen.functions import cos, sin
from tangere.codegen.trace import Graph, Symbol

# A polynomial: powers of all variables packed into one number, BITS each, and the coefficient. The product of two
# monomials is the sum of their numbers. No output of a chain has a power of 15.
Polynomial = dict[int, float]
BITS = 4
# what is smaller than this part of the largest coefficient of an output is the rounding of a quarter turn, no term
ROUNDING = 1e-14


class TooLong(Exception):
    """Multiplied out it has more terms than anybody reads."""


@dataclass(frozen=True)
class Angles:
    """Angles whose sines and cosines are the variables: angle k is q[parts[k][0]] + ... + q[parts[k][-1]].

    Of each joint that turns there is one, in the order of the joints; before[k] is the angle that ends one joint
    earlier in the same sum, or None.
    """

    parts: tuple[tuple[int, ...], ...]
    before: tuple[int | None, ...]

    @property
    def joints(self) -> list[int]:
        """The joint that each angle ends with."""
        return [part[-1] for part in self.parts]


def angle_sums(leaders: Sequence[int], turning: Sequence[bool]) -> Angles:
    """The angles of a chain: sums from the first joint of each group of parallel axes on."""
    parts: list[tuple[int, ...]] = []
    before: list[int | None] = []
    for i, leader in enumerate(leaders):
        if turning[i]:
            before.append(len(parts) - 1 if leader != i else None)
            parts.append(tuple(range(leader, i + 1)))
    return Angles(tuple(parts), tuple(before))


class _Ring:
    """Variables of the polynomials: cosine and sine of each angle, then the other inputs as they are met."""

    def __init__(self, angles: Angles, most: int) -> None:
        self.angles, self.most = angles, most
        n = len(angles.parts)
        self.variables: list[tuple[str, int]] = [(f, k) for f in ("cos", "sin") for k in range(n)]
        self._squares = sum(2 << self._at(n + k) for k in range(n))  # where a sine is squared

    def _at(self, variable: int) -> int:
        return BITS * variable

    def variable(self, name: tuple[str, int]) -> Polynomial:
        """One variable as a polynomial."""
        if name not in self.variables:
            self.variables.append(name)
        return {1 << self._at(self.variables.index(name)): 1.0}

    def turn(self, function: str, joint: int) -> Polynomial:
        """sin(q) or cos(q) of one joint, where it may be the difference of two angles."""
        k = self.angles.joints.index(joint)
        s, c = self.variable(("sin", k)), self.variable(("cos", k))
        b = self.angles.before[k]
        if b is None:
            return s if function == "sin" else c
        sb, cb = self.variable(("sin", b)), self.variable(("cos", b))
        if function == "sin":
            return self.sum(self.product(s, cb), self.product(c, sb), -1.0)
        return self.sum(self.product(c, cb), self.product(s, sb), 1.0)

    def sum(self, a: Polynomial, b: Polynomial, sign: float) -> Polynomial:
        out = dict(a)
        for monomial, c in b.items():
            out[monomial] = out.get(monomial, 0.0) + sign * c
        return out

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        out: Polynomial = {}
        if len(a) * len(b) > 50 * self.most:
            raise TooLong
        for m, x in a.items():
            for n, y in b.items():
                self._add(out, m + n, x * y)
        if len(out) > self.most:
            raise TooLong
        return out

    def _add(self, out: Polynomial, monomial: int, c: float) -> None:
        squared = monomial & self._squares
        if not squared:
            out[monomial] = out.get(monomial, 0.0) + c
            return
        at = (squared & -squared).bit_length() - 2  # s^2 = 1 - c^2 of the first of them
        rest = monomial - (2 << at)
        self._add(out, rest, c)
        self._add(out, rest + (2 << at - BITS * len(self.angles.parts)), -c)


def normal_form(
    graph: Graph, outputs: Sequence[Symbol], angles: Angles, *, most: int
) -> tuple[Graph, list[Symbol]]:
    """The same outputs in a graph of their own, from sines and cosines of the angles; TooLong beyond `most` terms.

    Inputs named x that stand for joints of `angles` may be used through sin and cos only.
    """
    ring = _Ring(angles, most)
    at: dict[int, Polynomial] = {}
    for i in graph.live(outputs):
        node = graph.nodes[i]
        a = [at[k] for k in node.args if k in at]
        match node.op:
            case "const":
                assert isinstance(node.value, float)
                at[i] = {0: node.value} if node.value else {}
            case "input":
                assert isinstance(node.value, tuple)
                if node.value[1] not in angles.joints:
                    at[i] = ring.variable(node.value)
            case "sin" | "cos":
                value = graph.nodes[node.args[0]].value
                assert isinstance(value, tuple)
                at[i] = ring.turn(node.op, value[1])
            case "add" | "sub":
                at[i] = ring.sum(a[0], a[1], 1.0 if node.op == "add" else -1.0)
            case "neg":
                at[i] = ring.sum({}, a[0], -1.0)
            case "mul":
                at[i] = ring.product(*a)
            case _:
                raise TypeError(f"no polynomial has the operation {node.op!r}")
    out = Graph()
    symbols = [_symbol(out, angles, name) for name in ring.variables]
    return out, [_horner(out, symbols, _cleaned(at[o.index])) for o in outputs]


def _cleaned(p: Polynomial) -> Polynomial:
    least = ROUNDING * max((abs(c) for c in p.values()), default=0.0)
    return {m: c for m, c in p.items() if abs(c) > least}


def _symbol(graph: Graph, angles: Angles, name: tuple[str, int]) -> Symbol:
    if name[0] == "x":
        return graph.input(*name)
    first, *rest = (graph.input("x", i) for i in angles.parts[name[1]])
    for x in rest:
        first = first + x
    turned: Symbol = sin(first) if name[0] == "sin" else cos(first)
    return turned


def _horner(graph: Graph, symbols: list[Symbol], p: Polynomial) -> Symbol:
    """p = x A + B with the variable x that most terms have, A and B alike."""
    if not p:
        return graph.constant(0.0)
    mask = (1 << BITS) - 1
    counts = [sum(1 for m in p if m >> BITS * k & mask) for k in range(len(symbols))]
    most = max(counts, default=0)
    if most == 0:
        return graph.constant(rounded(p[0]))
    # later variables first: rates and sliding lengths, then sines, then cosines of the last joints
    k = max(i for i, n in enumerate(counts) if n == most)
    unit = 1 << BITS * k
    with_x = {m - unit: c for m, c in p.items() if m >> BITS * k & mask}
    rest = {m: c for m, c in p.items() if not m >> BITS * k & mask}
    sign = -1.0 if all(c < 0.0 for c in with_x.values()) else 1.0
    front = symbols[k] * _horner(graph, symbols, {m: sign * c for m, c in with_x.items()})
    if not rest:
        return front if sign > 0.0 else -front
    behind = _horner(graph, symbols, rest)
    return behind + front if sign > 0.0 else behind - front


def rounded(value: float) -> float:
    """A coefficient without the rounding of its sums: fifteen digits."""
    return float(f"{value:.15g}")
