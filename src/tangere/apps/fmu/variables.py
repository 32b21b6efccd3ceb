"""Variables of an FMU: named groups of numbers, units and types, as modelDescription.xml and the C header need them;
in FMI 3.0 arrays, each of one type, with one value reference."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

BaseType = Literal["Real", "Integer", "Boolean"]
Causality = Literal["parameter", "input", "output", "local"]
Variability = Literal["fixed", "tunable", "discrete", "continuous"]

# Value references: one range per type, so that no tool can mistake one for another; no kind has a thousand numbers.
REFERENCE_OF = {"Real": 0, "Integer": 1000, "Boolean": 2000}

# unit: SI exponents of FMI's BaseUnit, and display units (name, factor: display = factor * value)
UNITS: dict[str, tuple[dict[str, int], tuple[tuple[str, float], ...]]] = {
    "1": ({}, ()),
    "s": ({"s": 1}, (("ms", 1e3),)),
    "rad": ({"rad": 1}, (("deg", 180.0 / math.pi),)),
    "rad/s": ({"rad": 1, "s": -1}, (("deg/s", 180.0 / math.pi),)),
    "rad/s2": ({"rad": 1, "s": -2}, (("deg/s2", 180.0 / math.pi),)),
    "m": ({"m": 1}, (("mm", 1e3),)),
    "m/s": ({"m": 1, "s": -1}, ()),
    "m/s2": ({"m": 1, "s": -2}, ()),
    "kg": ({"kg": 1}, ()),
    "kg.m2": ({"kg": 1, "m": 2}, ()),
    "N": ({"kg": 1, "m": 1, "s": -2}, ()),
    "N.m": ({"kg": 1, "m": 2, "s": -2}, ()),
    "N.m.s/rad": ({"kg": 1, "m": 2, "s": -1, "rad": -1}, ()),
    "N.s/m": ({"kg": 1, "s": -1}, ()),
    "J": ({"kg": 1, "m": 2, "s": -2}, ()),
    "1/s": ({"s": -1}, ()),
    "1/s2": ({"s": -2}, ()),
}


@dataclass(frozen=True)
class RealType:
    """A named kind of quantity."""

    unit: str
    text: str
    display: str = ""
    quantity: str = ""


@dataclass(frozen=True)
class Choice:
    """A choice: names with what they mean, counted from 1.

    An Integer in the file, not an Enumeration: masters that know no enumerations (libcosim) can still set it.
    """

    text: str
    items: tuple[tuple[str, str], ...] = field(default_factory=tuple)

    @property
    def meaning(self) -> str:
        """All of them as one sentence."""
        return "; ".join(f"{i} {name}: {text}" for i, (name, text) in enumerate(self.items, 1))


TYPES: dict[str, RealType] = {
    "Duration": RealType("s", "Length of time", "ms", "Time"),
    "Angle": RealType("rad", "Joint position or angle", "deg", "Angle"),
    "RotationVector": RealType("rad", "Component of axis times angle", "deg", "Angle"),
    "AngularVelocity": RealType("rad/s", "Joint velocity", "deg/s", "AngularVelocity"),
    "AngularAcceleration": RealType("rad/s2", "Joint acceleration", "deg/s2", "AngularAcceleration"),
    "Position": RealType("m", "Coordinate of a point", quantity="Length"),
    "Length": RealType("m", "Length of the arm", "mm", "Length"),
    "Velocity": RealType("m/s", "Linear velocity", quantity="Velocity"),
    "Acceleration": RealType("m/s2", "Linear acceleration", quantity="Acceleration"),
    "Mass": RealType("kg", "Mass", quantity="Mass"),
    "Inertia": RealType("kg.m2", "Moment or product of inertia", quantity="MomentOfInertia"),
    "Force": RealType("N", "Force", quantity="Force"),
    "Torque": RealType("N.m", "Joint torque or moment", quantity="Torque"),
    "Damping": RealType("N.m.s/rad", "Viscous friction", quantity="RotationalDampingConstant"),
    "LinearDamping": RealType("N.s/m", "Viscous friction, sliding", quantity="TranslationalDampingConstant"),
    "Energy": RealType("J", "Energy", quantity="Energy"),
    "Rate": RealType("1/s", "Inverse of a time constant"),
    "SquaredRate": RealType("1/s2", "Gain from position to acceleration"),
    "Cosine": RealType("1", "Entry of a rotation matrix or of a quaternion"),
}

CHOICES: dict[str, Choice] = {
    "QuaternionSign": Choice(
        "Which of q and -q is put out",
        (
            ("continuous", "the one nearer to the quaternion of the step before"),
            ("canonical", "the one whose first nonzero component is positive"),
        ),
    ),
    "Orientation": Choice(
        "Which input carries the orientation",
        (("matrix", "R"), ("quaternion", "quaternion (w, x, y, z)"), ("ypr", "yaw, pitch, roll")),
    ),
    "Selection": Choice(
        "How one of the solutions is chosen",
        (("nearest", "nearest to the solution of the step before"), ("branch", "the branch that the parameter names")),
    ),
}


@dataclass(frozen=True)
class Group:
    """A scalar, vector or matrix of an FMU.

    key: its name in C. declared: a name of TYPES or CHOICES, one for the whole group or one per row. start: numbers in
    row order (None: computed by the block). depends: keys of inputs and states it is computed from at each instant;
    beside them, a leading "=" marks the same element only, with factor one. initially: keys that its first value
    depends on beyond those (parameters, start values). derivative_of: key of the state whose rate it is.
    """

    key: str
    name: str
    shape: tuple[int, ...]
    kind: BaseType
    causality: Causality
    variability: Variability
    text: str
    declared: str | tuple[str, ...] = ""
    start: tuple[float, ...] | None = None
    low: tuple[float, ...] | float | None = None
    high: tuple[float, ...] | float | None = None
    nominal: float | None = None
    depends: tuple[str, ...] = ()
    initially: tuple[str, ...] = ()
    derivative_of: str | None = None
    state: bool = False

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)

    @property
    def initial(self) -> str | None:
        """What FMI calls `initial`; None where the standard forbids to say it."""
        if self.causality == "input":
            return None
        return "exact" if self.causality == "parameter" else "calculated"

    def names(self) -> Iterator[str]:
        """Names of the scalars, counted from 1 as people do: q[1], R[2,3]."""
        derivative = self.name.startswith("der(")
        base = self.name[4:-1] if derivative else self.name
        for index in product(*(range(1, n + 1) for n in self.shape)):
            name = f"{base}[{','.join(map(str, index))}]" if index else base
            yield f"der({name})" if derivative else name

    def type_of(self, element: int) -> str:
        """Declared type of an element, "" for none."""
        if isinstance(self.declared, str):
            return self.declared
        return self.declared[element * len(self.declared) // self.size]

    def bound(self, which: Literal["low", "high"], element: int) -> float | None:
        """Smallest or largest value of an element."""
        value = self.low if which == "low" else self.high
        return value[element] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Placed:
    """A group with its first value reference and the index (from 1) of its first scalar in the XML file."""

    group: Group
    reference: int
    index: int


class Table:
    """All groups of a block, placed."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self.placed: dict[str, Placed] = {}
        self.count = {"Real": 0, "Integer": 0, "Boolean": 0}
        index = 1
        for g in groups:
            if g.key in self.placed:
                raise AssertionError(f"two groups are called {g.key}")
            self.placed[g.key] = Placed(g, REFERENCE_OF[g.kind] + self.count[g.kind], index)
            self.count[g.kind] += g.size
            index += g.size

    def __iter__(self) -> Iterator[Placed]:
        return iter(self.placed.values())

    def __getitem__(self, key: str) -> Placed:
        return self.placed[key]

    def __contains__(self, key: object) -> bool:
        return key in self.placed

    @property
    def states(self) -> list[Placed]:
        """Continuous states."""
        return [p for p in self if p.group.state]

    def with_causality(self, *wanted: str) -> list[Placed]:
        """The groups that are inputs, outputs, parameters, ..."""
        return [p for p in self if p.group.causality in wanted]


def units_of(group: Group) -> str:
    """Units of a group for people: "N, N.m" where its rows differ, "" for what has none."""
    declared = (group.declared,) if isinstance(group.declared, str) else group.declared
    units = dict.fromkeys(TYPES[name].unit for name in declared if name in TYPES)
    return ", ".join(units) if group.kind == "Real" else ""


def _numbers(values: ArrayLike, shape: tuple[int, ...]) -> tuple[float, ...]:
    """In row order, one number for all where one is given; + 0.0: no negative zeros."""
    return tuple(float(x) + 0.0 for x in np.broadcast_to(np.asarray(values, dtype=np.float64), shape).ravel())


def parameter(
    key: str, name: str, shape: tuple[int, ...], text: str, declared: str | tuple[str, ...], start: ArrayLike,
    *, tunable: bool = True, low: float | None = None,
) -> Group:  # fmt: skip
    """A real parameter."""
    variability: Variability = "tunable" if tunable else "fixed"
    return Group(key, name, shape, "Real", "parameter", variability, text, declared, _numbers(start, shape), low)


def real_input(
    key: str, name: str, shape: tuple[int, ...], text: str, declared: str | tuple[str, ...], start: ArrayLike = 0.0,
    *, nominal: float | None = None, limits: tuple[ArrayLike, ArrayLike] | None = None,
) -> Group:  # fmt: skip
    """A real input, which may change at any time."""
    low, high = (None, None) if limits is None else (_numbers(x, shape) for x in limits)
    first = _numbers(start, shape)
    return Group(key, name, shape, "Real", "input", "continuous", text, declared, first, low, high, nominal)


def real_output(
    key: str, name: str, shape: tuple[int, ...], text: str, declared: str | tuple[str, ...], depends: tuple[str, ...],
    initially: tuple[str, ...], *, nominal: float | None = None, **more: Any,
) -> Group:  # fmt: skip
    """A real output, or a rate that is none (causality="local"), computed at any time; more: of Group."""
    more = {"causality": "output", "depends": depends, "initially": initially, "nominal": nominal} | more
    return Group(key, name, shape, "Real", variability="continuous", text=text, declared=declared, **more)


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
