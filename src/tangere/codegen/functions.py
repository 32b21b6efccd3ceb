"""Functions of one number that algorithms use: they accept floats, arrays and traced symbols alike.

On a symbol they add a node; on a float they call `math`, on an array numpy. In C all but the square root are
our own polynomials (codegen.polynomials): a library call would stop vectorisation and differ between machines.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tangere.codegen.trace import Symbol


def sin(x: Any) -> Any:
    """Sine of x [rad]."""
    if isinstance(x, Symbol):
        c = x.constant
        return x.graph.constant(math.sin(c)) if c is not None else x.graph.operation("sin", x)
    return math.sin(x) if isinstance(x, (float, int)) else np.sin(x)


def cos(x: Any) -> Any:
    """Cosine of x [rad]."""
    if isinstance(x, Symbol):
        c = x.constant
        return x.graph.constant(math.cos(c)) if c is not None else x.graph.operation("cos", x)
    return math.cos(x) if isinstance(x, (float, int)) else np.cos(x)


def sqrt(x: Any) -> Any:
    """Square root."""
    if isinstance(x, Symbol):
        c = x.constant
        return x.graph.constant(math.sqrt(c)) if c is not None else x.graph.operation("sqrt", x)
    return math.sqrt(x) if isinstance(x, (float, int)) else np.sqrt(x)


def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y), in [-pi, pi]; 0 at the origin."""
    for s in (y, x):
        if isinstance(s, Symbol):
            return s.graph.operation("atan2", s.graph.lift(y), s.graph.lift(x))
    return math.atan2(y, x) if isinstance(y, (float, int)) and isinstance(x, (float, int)) else np.arctan2(y, x)


def absolute(x: Any) -> Any:
    """Absolute value."""
    if isinstance(x, np.ndarray):
        return np.absolute(x)
    if isinstance(x, Symbol):
        c, n = x.constant, x.negated
        return x.graph.constant(abs(c)) if c is not None else x.graph.operation("abs", x if n is None else n)
    return abs(x)


def rounded(x: Any) -> Any:
    """Nearest whole number, halves to even; |x| < 2**51."""
    if isinstance(x, Symbol):
        return x.graph.operation("round", x)
    return float(round(x)) if isinstance(x, (float, int)) else np.rint(x)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return np.tanh(x) if isinstance(x, np.ndarray) else _elementary("tanh", x)  # arrays first: friction in a loop


def expm1(x: Any) -> Any:
    """e^x - 1, accurate for small x."""
    return _elementary("expm1", x)


def log(x: Any) -> Any:
    """Natural logarithm of x > 0."""
    return _elementary("log", x)


def _elementary(name: str, x: Any) -> Any:
    if isinstance(x, Symbol):
        c = x.constant
        return x.graph.operation(name, x) if c is None else x.graph.constant(getattr(math, name)(c))
    return getattr(math, name)(x) if isinstance(x, (float, int)) else getattr(np, name)(x)


def power_of_two(n: Any) -> Any:
    """2^n of a whole number that is the exponent of a normal number, or one more (infinity)."""
    if isinstance(n, Symbol):
        return n.graph.operation("power_of_two", n)
    whole = np.asarray(n)
    with np.errstate(over="ignore"):
        return np.ldexp(np.ones((), whole.dtype), whole.astype(np.int32))


def exponent(x: Any) -> Any:
    """The n of x = 2^n m with 1 <= m < 2; x a normal number > 0."""
    if isinstance(x, Symbol):
        return x.graph.operation("exponent", x)
    m, n = np.frexp(x)
    return n.astype(m.dtype) - 1.0


def mantissa(x: Any) -> Any:
    """The m of x = 2^n m with 1 <= m < 2; x a normal number > 0."""
    return x.graph.operation("mantissa", x) if isinstance(x, Symbol) else 2.0 * np.frexp(x)[0]


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b; both are computed."""
    if isinstance(condition, Symbol):
        g = condition.graph
        a, b = g.lift(a), g.lift(b)
        return a if a.index == b.index else g.operation("where", condition, a, b)
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    return np.where(condition, a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers."""
    return where(a < b, b, a)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two numbers."""
    return where(b < a, b, a)


# Largest angle for which the reduction of codegen.polynomials is exact: n times the head of pi/2 is, for n < 2**20.
ANGLE_MAX = 1.0e6  # [rad]
