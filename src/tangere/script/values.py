"""Values of URScript: all are copied when they are given to a variable or a function.

Lists, poses, structs and texts cannot be changed here, so that copying one costs nothing: `a[1] = 2` gives the variable
a new list. Numbers are Python's. A matrix is a list of lists of equal length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add, mod, mul, sub, truediv
from typing import Any, NoReturn

from tangere.errors import TangereError

Value = Any  # int, float, bool, Text, List, Pose, Struct

# Entries of a list and characters of a text: beyond it a program has run away. UR's own lists are shorter.
LONGEST = 100_000
# Whole numbers have 32 bits on the controller. What it does beyond is not known; here a product goes on as a float.
INT_MAX = 2**31 - 1


class ScriptException(TangereError):
    """A program that failed while it ran; the machine adds the line (from 1; 0 while it is not known)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message, self.line = message, line


class Text(str):
    """A text; joined by str_cat only, and no number of characters is an element."""

    __slots__ = ()

    def _refuse(self, *others: object) -> NoReturn:
        raise ScriptException("a text has no arithmetic and no elements; use str_cat, str_sub, str_at")

    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = __getitem__ = _refuse

    def __bool__(self) -> bool:
        raise ScriptException("a text is no condition")


class List(tuple[Value, ...]):
    """[a, b, ...]. Arithmetic goes entry by entry, with a list of the same length or with a number.

    A matrix times a matrix or a list is the product of linear algebra.
    """

    __slots__ = ()

    def _each(self, other: Value, operation: Callable[[Value, Value], Value]) -> List:
        if isinstance(other, tuple):
            if len(other) != len(self):
                raise ScriptException(f"lists of {len(self)} and {len(other)} entries")
            return type(self)(map(operation, self, other))
        return type(self)([operation(entry, other) for entry in self])

    def __add__(self, other: Value) -> List:
        return self._each(other, add)

    def __radd__(self, other: Value) -> List:
        return self._each(other, add)

    def __sub__(self, other: Value) -> List:
        return self._each(other, sub)

    def __rsub__(self, other: Value) -> List:
        return type(self)([other - entry for entry in self])

    def __truediv__(self, other: Value) -> List:
        return self._each(other, truediv)

    def __rtruediv__(self, other: Value) -> List:
        return type(self)([other / entry for entry in self])

    def __mod__(self, other: Value) -> List:
        return self._each(other, mod)

    def __mul__(self, other: Value) -> List:
        if len(self) and isinstance(self[0], tuple) and isinstance(other, tuple):
            return _matrix_product(self, other)
        return self._each(other, mul)

    def __rmul__(self, other: Value) -> List:
        return self._each(other, mul)

    def __neg__(self) -> List:
        return type(self)([-entry for entry in self])

    def _refuse(self, *others: object) -> NoReturn:
        raise ScriptException("lists are only compared by == and !=, and a list is no condition")

    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
    __hash__ = tuple.__hash__


class Pose(List):
    """p[x, y, z, rx, ry, rz]: position [m] and rotation vector [rad]."""

    __slots__ = ()


class Struct(dict[str, Value]):
    """struct(a=1, b=2); changed by `stored` only, which copies."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise ScriptException("a struct is no condition")


def numbers(values: Iterable[float]) -> List:
    """A list of floats."""
    return List(map(float, values))


def _matrix_product(a: List, b: tuple[Value, ...]) -> List:
    rows, inner = a, len(a[0])
    if len(b) != inner or any(len(row) != inner for row in rows):
        raise ScriptException(f"a matrix with {inner} columns times {len(b)} rows")
    if len(b) and isinstance(b[0], tuple):
        columns = list(zip(*b, strict=True))
        return List([List([sum(map(mul, row, column)) for column in columns]) for row in rows])
    return List([sum(map(mul, row, b)) for row in rows])


def product(a: Value, b: Value) -> Value:
    """a * b; a whole number of more than 32 bits becomes a float, so that no program makes numbers without end."""
    result = a * b
    if type(result) is int and not -INT_MAX <= result <= INT_MAX:
        return float(result)
    return result


def exclusive(a: Value, b: Value) -> bool:
    """a xor b."""
    return bool(a) != bool(b)


# ------------------------------------------------------------------------------------------------- elements and members


def _whole(index: Value) -> int:
    if isinstance(index, bool) or not isinstance(index, int | float) or index != int(index):
        raise ScriptException(f"an index is a whole number, got {shown(index)}")
    return int(index)


def element(value: Value, index: Value) -> Value:
    """value[index], counted from 0."""
    if type(index) is int and isinstance(value, tuple) and 0 <= index < len(value):  # what nearly all of them are
        return value[index]
    if not isinstance(value, tuple):
        raise ScriptException(f"{shown(value)} has no elements")
    i = index if type(index) is int else _whole(index)
    if not 0 <= i < len(value):
        raise ScriptException(f"index {i} of a list with {len(value)} entries (they count from 0)")
    return value[i]


def member(value: Value, name: str) -> Value:
    """value.name of a struct."""
    if not isinstance(value, Struct):
        raise ScriptException(f"{shown(value)} has no members")
    if name not in value:
        raise ScriptException(f"the struct has no member {name!r}; it has: {', '.join(value)}")
    return value[name]


def stored(value: Value, path: tuple[Value, ...], new: Value) -> Value:
    """The value with what is at the path changed; entries of the path: indices, and texts for members."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(key, str):
        before = member(value, key) if rest else None
        if not isinstance(value, Struct):
            raise ScriptException(f"{shown(value)} has no members")
        return Struct({**value, key: stored(before, rest, new)})
    before = element(value, key)
    entries = list(value)
    entries[int(key)] = stored(before, rest, new)
    return type(value)(entries)


# ------------------------------------------------------------------------------------------------------------- as text


def shown(value: Value) -> str:
    """A value as textmsg prints it: six digits, True, [1, 2], p[...]."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, Pose):
        return f"p[{', '.join(map(shown, value))}]"
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={shown(part)}" for name, part in value.items()) + "}"
    return str.__str__(value) if isinstance(value, str) else str(value)


def text(value: str) -> Text:
    """A text of bearable length."""
    if len(value) > LONGEST:
        raise ScriptException(f"a text of {len(value)} characters, at most {LONGEST} are possible")
    return Text(value)
