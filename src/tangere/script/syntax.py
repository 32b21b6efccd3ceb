"""The tree of a program: what the parser makes, and what names, colours and code are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Node:
    """Where something stands in the program, both counted from 1."""

    line: int
    column: int


# ---------------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A number, a truth value or a text."""

    value: int | float | bool | str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Items(Node):
    """[a, b, ...]; pose: p[x, y, z, rx, ry, rz]."""

    items: tuple[Node, ...]
    pose: bool = False


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """- x, or not x."""

    operator: str
    value: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """left operator right: arithmetic, comparison, and, or, xor."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Index(Node):
    """value[i], or value[i, j] of a matrix."""

    value: Node
    indices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member(Node):
    """value.name of a struct."""

    value: Node
    name: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function with its arguments; thread: `run NAME(...)`. value: whose method it is (list.append), else None."""

    name: str
    positional: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...]
    thread: bool = False
    value: Node | None = None


# ----------------------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Function(Node):
    """def, sec or thread with everything up to its end; parameters with their defaults (None: none)."""

    kind: Literal["def", "sec", "thread"]
    name: str
    parameters: tuple[tuple[str, Node | None], ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    """Conditions with what is done where they are the first to hold; otherwise: where none does."""

    arms: tuple[tuple[Node, tuple[Node, ...]], ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class While(Node):
    """While the condition holds."""

    condition: Node
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """place = value; scope: "global" or "local" where it was said. value None: declared only."""

    place: Node  # Name, Index or Member
    value: Node | None
    scope: str = ""

    @property
    def root(self) -> Name:
        """The variable that changes."""
        place = self.place
        while isinstance(place, Index | Member):
            place = place.value
        assert isinstance(place, Name)
        return place


@dataclass(frozen=True, slots=True)
class Return(Node):
    """return, with a value or without."""

    value: Node | None


@dataclass(frozen=True, slots=True)
class Word(Node):
    """break, continue, halt, pass, enter_critical, exit_critical."""

    word: str


@dataclass(frozen=True, slots=True)
class OnThread(Node):
    """kill or join of a thread."""

    word: str
    thread: Node


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """An expression for what it does, mostly a call."""

    value: Node


# -------------------------------------------------------------------------------------------------------------- walking


@cache
def _parts_of(kind: Any) -> tuple[str, ...]:
    """Fields of a class of nodes that may hold other nodes."""
    return tuple(field.name for field in fields(kind) if field.name not in ("line", "column", "name", "kind"))


def _gather(value: Any, found: list[Node]) -> None:
    if isinstance(value, Node):
        found.append(value)
    elif type(value) is tuple:
        for item in value:
            _gather(item, found)


def walk(body: tuple[Node, ...], *, inside: bool = True) -> Iterator[Node]:
    """Every node of some statements, each before what it is made of; inside: also those of functions among them."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Function) and not inside:
            continue
        found: list[Node] = []
        kind: Any = type(node)
        for name in _parts_of(kind):
            _gather(getattr(node, name), found)
        found.reverse()
        waiting += found
