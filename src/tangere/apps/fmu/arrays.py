"""The variables of a block as FMI 3.0 has them: arrays, each of one type, with one value reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tangere.apps.fmu.variables import REFERENCE_OF, Placed, Table

TIME = 3000  # value reference of the independent variable
KINDS = {"Real": "Float64", "Integer": "Int32", "Boolean": "Boolean"}  # types of FMI 2.0 and 3.0


@dataclass(frozen=True)
class Array3:
    """A variable: a group, or the part of one whose elements have the same type (force and torque of a wrench)."""

    placed: Placed
    name: str
    shape: tuple[int, ...]
    offset: int  # of its first element in the group

    @property
    def size(self) -> int:
        """Number of its elements."""
        return prod(self.shape)

    @property
    def reference(self) -> int:
        """Its value reference: that of its first element in FMI 2.0."""
        return self.placed.reference + self.offset

    @property
    def declared(self) -> str:
        """Name of its type, "" for none."""
        return self.placed.group.type_of(self.offset)


def arrays_of(p: Placed) -> list[Array3]:
    """A group as variables: one, or one for each run of elements of the same type."""
    g = p.group
    runs: list[list[int]] = []
    for i in range(g.size):
        if runs and g.type_of(runs[-1][0]) == g.type_of(i):
            runs[-1].append(i)
        else:
            runs.append([i])
    if len(runs) == 1:
        return [Array3(p, g.name, g.shape, 0)]
    words = [_word(g.type_of(run[0])) for run in runs]
    if len(set(words)) < len(words):  # a type comes again: counted, q.angle_1, q.position_1, q.angle_2
        words = [f"{word}_{words[: i + 1].count(word)}" for i, word in enumerate(words)]
    head, tail = (g.name[:-1], ")") if g.name.startswith("der(") else (g.name, "")
    shapes = (_shape(g.shape, len(run)) for run in runs)
    return [Array3(p, f"{head}.{w}{tail}", s, r[0]) for w, s, r in zip(words, shapes, runs, strict=True)]


def _shape(whole: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Shape of `count` consecutive elements: rows of a matrix where they are whole ones."""
    row = prod(whole[1:])
    return (count // row, *whole[1:]) if count % row == 0 else (count,)


def _word(declared: str) -> str:
    return declared[:1].lower() + declared[1:]


def whole_name(name: str, declared: str) -> str:
    """The group that `arrays_of` has made several variables of, by one of their names and its type; "" for none."""
    head, dot, last = name.rstrip(")").rpartition(".")
    if not dot or not declared or re.sub(r"_\d+$", "", last) != _word(declared):
        return ""
    return head + (")" if name.endswith(")") else "")


def all_arrays(table: Table) -> Iterator[Array3]:
    """All variables in the order of the table."""
    for p in table:
        yield from arrays_of(p)


def arrays_text(table: Table) -> str:
    """arrays.h: where each variable is in the block's lists."""
    lines = ["/* Generated: the variables of FMI 3.0, in the order of their value references. */"]
    for kind, name in (("Real", "float64s"), ("Integer", "int32s"), ("Boolean", "booleans3")):
        found = [a for a in all_arrays(table) if a.placed.group.kind == kind]
        rows = [f"    {{{a.reference - REFERENCE_OF[kind]}, {a.size}}}," for a in found] or ["    {-1, 0},"]
        lines += [f"#define N_{name.upper()} {len(found)}", f"static const tg_array tg_{name}[] = {{", *rows, "};"]
    return "\n".join(lines) + "\n"
