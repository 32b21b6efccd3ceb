"""Tokens of URScript text, and the tree of a program that the parser makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, NamedTuple

from tangere.errors import InvalidValue

KEYWORDS = frozenset(
    ("def", "sec", "thread", "end", "if", "elif", "else", "while", "return", "break", "continue", "halt", "pass",
     "global", "local", "run", "kill", "join", "enter_critical", "exit_critical", "and", "or", "xor", "not", "True",
     "False")
)  # fmt: skip
# Characters of a program; beyond it nothing is read. The largest script of a public client has some 60 000.
LONGEST = 4_000_000
_TOKEN = re.compile(
    r"""(?P<newline>\n)|(?P<blank>[ \t\r\f\v\ufeff\xa0]+|\#[^\n]*)
    |(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"[^"\n]*"|'[^'\n]*')
    |(?P<operator>==|!=|<=|>=|[-+*/%<>=()\[\],:.;])
    |(?P<label>\$[^\n]*)""",
    re.VERBOSE,
)


class ScriptError(InvalidValue):
    """A program that cannot be read: what is wrong, and its line and column, both counted from 1."""

    def __init__(self, message: str, line: int, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column

    def __reduce__(self) -> tuple[type[ScriptError], tuple[str, int, int]]:
        return ScriptError, (self.message, self.line, self.column)


class Token(NamedTuple):
    """One word of a program."""

    kind: str  # number, name, keyword, text, operator, end
    text: str  # as written; of a text what stands between its quotes
    line: int  # from 1
    column: int  # from 1
    first: bool  # nothing but blanks stands before it in its line (or since the last `;`)


def tokens(program: str) -> list[Token]:
    """The tokens of a program, the last of kind "end". Raises ScriptError for what is no URScript.

    Ends of lines mean little in URScript (see `parser`), so they are no tokens: each token knows if it begins a line. A
    `;` ends a statement as a new line does. A comment begins with #, a line that begins with $ is a label of a pendant
    program.
    """
    if len(program) > LONGEST:
        raise ScriptError(f"the program has {len(program)} characters, at most {LONGEST} are read", 1)
    found: list[Token] = []
    line, begin, position, first = 1, 0, 0, True
    match, size = _TOKEN.match, len(program)
    while position < size:
        one = match(program, position)
        if one is None:
            raise ScriptError(_unreadable(program[position]), line, position - begin + 1)
        kind, text, column = str(one.lastgroup), one.group(), position - begin + 1
        position = one.end()
        if kind == "newline":
            line, begin, first = line + 1, position, True
        elif kind == "blank":
            pass
        elif text == ";":
            first = True
        elif kind == "label":
            if not first:
                raise ScriptError("a label ($ ...) stands in a line of its own", line, column)
        else:
            if kind == "name" and text in KEYWORDS:
                kind = "keyword"
            elif kind == "text":
                text = text[1:-1]
            found.append(Token(kind, text, line, column, first))
            first = False
    found.append(Token("end", "", line, position - begin + 1, True))
    return found


def _unreadable(character: str) -> str:
    if character in "\"'":
        return f"the text that begins with {character} does not end in its line"
    return f"{character!r} means nothing in URScript"


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
