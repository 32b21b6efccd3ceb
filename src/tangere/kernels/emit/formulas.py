"""Prints a traced quantity for people: named sines and cosines, brackets, one line per entry, in four languages.

What is used once stands where it is used; what is used twice has a name. Names in the text are made from numbers only;
nothing that was read from a file becomes part of the code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tangere.codegen.trace import Graph, Symbol

Language = Literal["latex", "python", "matlab", "c"]
LANGUAGES: tuple[Language, ...] = ("latex", "python", "matlab", "c")
WIDTH = 108  # [characters] of a line; then it is broken before a sum's next term
# [pt] of a line that LaTeX sets, right of the equals sign: 345 of an article in 10 pt, less 45 for the longest name
SET_WIDTH = 300.0
# [pt] in Computer Modern of 10 pt, generously: marks, digits and letters, what stands below, signs with their spaces
_MARKS = re.compile(
    r"(?P<none>\\dot|[ {}&^])|(?P<sub>_\{[^}]*\})|(?P<word>\\[a-z]+)|(?P<thin>\\,)|(?P<sign>[-+=])|(?P<small>[().,])"
)
_SIZES = {"sub": 4.0, "word": 14.0, "thin": 1.7, "sign": 12.3, "none": 0.0, "small": 3.9}
_SUM, _PRODUCT, _ATOM = 1, 2, 3  # how firmly an expression holds together


def set_width(text: str) -> float:
    """How wide LaTeX sets a piece of a formula, about [pt]: what pdfTeX measures and up to a fifth more."""
    found = [(m.lastgroup or "", m[0]) for m in _MARKS.finditer(text)]
    marks = sum(_SIZES[kind] * (len(mark) - 3 if kind == "sub" else 1) for kind, mark in found)
    return marks + 5.3 * len(_MARKS.sub("", text))


@dataclass(frozen=True)
class Dialect:
    """How one language writes what the formulas need."""

    comment: str
    times: str
    input: str  # of a vector's name and a number, counted from `first`
    first: int
    entry: str  # of a matrix, rows and columns counted from `first`
    vector_entry: str
    assign: str  # name and expression
    declare: str  # the same for an intermediate
    broken: tuple[str, str, str]  # around an expression over several lines, and where a line ends
    indent: str
    names: str = "{}{}"  # of an intermediate: letter and number


DIALECTS: dict[Language, Dialect] = {
    "python": Dialect(
        "#", "*", "{}[{}]", 0, "{}[{}, {}]", "{}[{}]", "{} = {}", "{} = {}", ("(", ")", ""), "    "
    ),
    "matlab": Dialect(
        "%", "*", "{}({})", 1, "{}({}, {})", "{}({})", "{} = {};", "{} = {};", ("", "", " ..."), "  "
    ),
    "c": Dialect(
        "//", "*", "{}[{}]", 0, "{}[{}][{}]", "{}[{}]", "{} = {};", "const double {} = {};", ("", "", ""), "    "
    ),
    "latex": Dialect(
        "%", r" \, ", "{}_{{{}}}", 1, "{}_{{{},{}}}", "{}_{{{}}}", r"{} &= {} \\", r"{} &= {} \\",
        ("", "", r" \\"), "  ", "{}_{{{}}}",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Formula:
    """A quantity ready to be printed: `symbol` of `shape` from vectors of `joints` entries each."""

    name: str
    symbol: str
    shape: tuple[int, ...]
    inputs: tuple[str, ...]
    joints: int
    graph: Graph
    outputs: Sequence[Symbol]
    title: str
    way: str  # how it was simplified


def function(formula: Formula, language: Language) -> str:
    """The whole text: comments, then a function of that language (LaTeX: an align environment of amsmath)."""
    d, f = DIALECTS[language], formula
    writer = _Writer(f, d, latex=language == "latex")
    lines = [d.declare.format(name, value) for name, value in writer.parts()]
    lines += [d.assign.format(name, value) for name, value in writer.entries()]
    turns, products, sums = (writer.done[op] for op in ("turn", "mul", "add"))
    count = f"{turns + products + sums} operations: {turns} sines and cosines, {products} products, {sums} sums"
    remarks = [f"{d.comment} {r}" for r in (f.title, f"{count}; {f.way}", "an entry that is not written is zero")]
    head, tail = _frame(f, language)
    return "\n".join([*remarks, *head, *(f"{d.indent}{line}" for line in lines), *tail, ""])


def _frame(f: Formula, language: Language) -> tuple[list[str], list[str]]:
    arguments = ", ".join(f.inputs)
    size = ", ".join(map(str, f.shape))
    match language:
        case "python":
            head = [
                "from math import cos, sin", "", "import numpy as np", "", "", f"def {f.name}({arguments}):",
                f"    {f.symbol} = np.zeros(({size}{',' if len(f.shape) == 1 else ''}))",
            ]  # fmt: skip
            return head, [f"    return {f.symbol}"]
        case "matlab":
            zeros = size if len(f.shape) == 2 else f"{size}, 1"
            return [f"function {f.symbol} = {f.name}({arguments})", f"  {f.symbol} = zeros({zeros});"], ["end"]
        case "c":
            given = ", ".join(f"const double {name}[{f.joints}]" for name in f.inputs)
            brackets = "".join(f"[{n}]" for n in f.shape)
            first = f"{f.symbol}{'[0]' * len(f.shape)}"
            count = " * ".join(map(str, f.shape))
            head = [
                "#include <math.h>", "", f"void {f.name}({given}, double {f.symbol}{brackets})", "{",
                f"    for (int i = 0; i < {count}; i++) (&{first})[i] = 0.0;",
            ]  # fmt: skip
            return head, ["}"]
        case "latex":
            return [r"\begin{align*}"], [r"\end{align*}"]


class _Writer:
    """Nodes as text, each named node once."""

    def __init__(self, formula: Formula, dialect: Dialect, *, latex: bool) -> None:
        self.f, self.d, self.latex = formula, dialect, latex
        self.nodes = formula.graph.nodes
        self.done: Counter[str] = Counter()  # operations as they were written
        live = formula.graph.live(formula.outputs)
        users: dict[int, list[str]] = {i: [] for i in live}
        for i in live:
            for k in self.nodes[i].args:
                users[k].append(self.nodes[i].op)
        for o in formula.outputs:
            users[o.index].append("output")
        self.names: dict[int, str] = {}
        number = 0
        for i in live:
            op = self.nodes[i].op
            if op in ("sin", "cos"):
                self.names[i] = dialect.names.format(op[0], self._angle(self.nodes[i].args[0]))
            elif op in ("add", "sub", "mul") and len(users[i]) > 1 and not self._plain(i):
                number += 1
                self.names[i] = dialect.names.format("t", number)

    def _plain(self, i: int) -> bool:
        """Whether it needs no name: a number times something that has one, a sum of joint positions."""
        node = self.nodes[i]
        if node.op == "mul":
            return "const" in {self.nodes[k].op for k in node.args} and any(k in self.names for k in node.args)
        return all(self.nodes[k].op == "input" or (self.nodes[k].op == "add" and self._plain(k)) for k in node.args)

    def _angle(self, i: int) -> str:
        """234 for q2 + q3 + q4."""
        found: list[int] = []
        stack = [i]
        while stack:
            node = self.nodes[stack.pop()]
            stack += node.args
            if isinstance(node.value, tuple):
                found.append(node.value[1] + 1)
        return ("" if max(found) < 10 else "_").join(str(k) for k in sorted(found))

    def parts(self) -> list[tuple[str, str]]:
        """Names and expressions of all intermediates, in order."""
        return [(name, self._broken(*self._expression(i))) for i, name in self.names.items()]

    def entries(self) -> list[tuple[str, str]]:
        """Names and expressions of the entries that are not zero."""
        d, shape, first = self.d, self.f.shape, self.d.first
        out = []
        for k, o in enumerate(self.f.outputs):
            if o.constant != 0.0:
                if len(shape) == 1:
                    name = d.vector_entry.format(self.f.symbol, k + first)
                else:
                    name = d.entry.format(self.f.symbol, k // shape[1] + first, k % shape[1] + first)
                out.append((name, self._broken(*self._reference(o.index))))
        return out

    def _reference(self, i: int) -> tuple[str, int]:
        return (self.names[i], _ATOM) if i in self.names else self._expression(i)

    def _expression(self, i: int) -> tuple[str, int]:
        node = self.nodes[i]
        if node.op == "const":
            assert isinstance(node.value, float)
            return self._number(node.value), _ATOM if node.value >= 0.0 else _SUM
        if node.op == "input":
            assert isinstance(node.value, tuple)
            return self._input(node.value[1]), _ATOM
        if node.op in ("sin", "cos"):
            self.done["turn"] += 1
            call = f"\\{node.op}" if self.latex else node.op
            return f"{call}({self._reference(node.args[0])[0]})", _ATOM
        if node.op == "mul":
            factors = self._factors(i)
            self.done["mul"] += len(factors) - 1
            factors.sort(key=lambda k: self.nodes[k].op != "const")  # numbers first
            return self.d.times.join(self._held(self._reference(k), _PRODUCT) for k in factors), _PRODUCT
        a = [self._reference(k) for k in node.args]
        if node.op == "neg":
            return "-" + self._held(a[0], _PRODUCT), _SUM
        self.done["add"] += 1
        if node.op == "add" and a[0][0].startswith("-") and not a[1][0].startswith("-"):
            a.reverse()
        plus = node.op == "add"
        right = self._held(a[1], _SUM if plus else _PRODUCT)
        if plus and right.startswith("-"):
            return f"{a[0][0]} - {right[1:]}", _SUM
        return f"{a[0][0]} {'+' if plus else '-'} {right}", _SUM

    def _factors(self, i: int) -> list[int]:
        """What a product multiplies, products within it that have no name included."""
        out: list[int] = []
        for k in self.nodes[i].args:
            out += self._factors(k) if self.nodes[k].op == "mul" and k not in self.names else [k]
        return out

    def _held(self, x: tuple[str, int], least: int) -> str:
        return x[0] if x[1] >= least else f"({x[0]})"

    def _input(self, index: int) -> str:
        vector, joint = self.f.inputs[index // self.f.joints], index % self.f.joints
        if self.latex:
            vector = {"qd": r"\dot{q}"}.get(vector, vector)
        return self.d.input.format(vector, joint + self.d.first)

    def _number(self, value: float) -> str:
        text = repr(value)
        if self.latex and "e" in text:
            digits, power = text.split("e")
            return f"{digits} \\cdot 10^{{{int(power)}}}"
        return text

    def _broken(self, text: str, _: int) -> str:
        """An expression over several lines where it is long, broken before terms, of an outer sum where one is near."""
        widest, width = (SET_WIDTH, set_width) if self.latex else (WIDTH, len)
        lines: list[tuple[str, int]] = []  # and in how many brackets it begins
        line, at, depth = "", 0, 0
        breaks: list[tuple[int, int]] = []  # in this line: brackets that are open, where a term begins
        for word in text.split(" "):
            if word in ("+", "-") and line:
                breaks.append((depth, len(line)))
            line += f" {word}" if line else word
            depth += word.count("(") - word.count(")")
            while breaks and width(line) > widest:
                late = [b for b in breaks if width(line[: b[1]]) > widest / 2] or breaks
                least, place = min(late, key=lambda b: (b[0], -b[1]))
                lines.append((line[:place], at))
                line, at = line[place + 1 :], least
                breaks = [(d, k - place - 1) for d, k in breaks if k > place]
        if not lines:
            return text
        before, after, end = self.d.broken
        begin = [f"{end}\n{self.d.indent}{'  & ' if self.latex else '    '}" for _ in lines] + [""]
        lines.append((line, at))
        inner = ["\\quad " if self.latex and d else "" for _, d in lines]
        return before + "".join(i + part + b for i, (part, _), b in zip(inner, lines, begin, strict=True)) + after
