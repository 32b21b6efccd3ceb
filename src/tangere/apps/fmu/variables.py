"""Variables of an FMU: groups of numbers with one name, as both modelDescription.xml and the C header need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

Kind = Literal["Real", "Integer", "Boolean"]
Causality = Literal["parameter", "input", "output", "local"]
Variability = Literal["fixed", "tunable", "discrete", "continuous"]

# Value references: one range per type, so that no tool can mistake one for another; no kind has a thousand numbers.
REFERENCE_OF = {"Real": 0, "Integer": 1000, "Boolean": 2000}


@dataclass(frozen=True)
class Group:
    """A scalar, vector or matrix of an FMU.

    key: its name in C. declared: a type of `units.TYPES`, one for the whole group or one per row. start: numbers in row
    order (None: computed by the block). depends: keys of inputs and states that it is computed from at each instant;
    beside them, a leading "=" marks the same element only, with factor one. initially: keys that its first value
    depends on beyond those (parameters, start values). derivative_of: key of the state whose rate it is.
    """

    key: str
    name: str
    shape: tuple[int, ...]
    kind: Kind
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
        return prod(self.shape)

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
