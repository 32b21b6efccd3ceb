"""The elementary functions of the kernels against mpmath with 60 digits, and in C through the kernels.

Errors are absolute: for sin and cos of an exact double x, so that near multiples of pi/2 the reduction is tested.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.codegen.functions import ANGLE_MAX
from tangere.codegen.polynomials import (
    DOUBLE,
    SINGLE,
    Coefficients,
    arctangent2,
    exponential_minus_one,
    hyperbolic_tangent,
    logarithm,
    sincos,
)
from tangere.codegen.trace import Graph
from tangere.kernels.emit import python as emit_python
from tangere.model.model import Array

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed (comes with sympy, extra test)")
mpmath.mp.dps = 60

# Largest errors over 5e6 samples in each of +-0.8, pi, 100, 1e4, 1e6 rad, against 80-bit arithmetic: 1.34e-16 for sin
# and cos (1.1e-16 is half an ulp of 1), 4.5e-16 for atan2 (an ulp of pi).
SINCOS, ATAN2 = 1.4e-16, 5e-16


def angles() -> Array:
    """Random angles of every size up to ANGLE_MAX, and the doubles around multiples of pi/4 and pi/2."""
    rng = np.random.default_rng(1)
    parts = [rng.uniform(-size, size, 3000) for size in (0.8, math.pi, 100.0, ANGLE_MAX)]
    parts.append(10.0 ** rng.uniform(-300.0, 6.0, 500) * rng.choice([-1, 1], 500))
    n = np.concatenate([np.arange(-40, 41), rng.integers(-(2**19), 2**19, 500), [636619, -636619, 636618]])
    for at in (n * (math.pi / 2), n * (math.pi / 4)):
        parts += [at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf), at + 1e-9, at - 1e-5]
    x = np.concatenate([*parts, [0.0, -0.0, 5e-324, 1e-308, ANGLE_MAX, -ANGLE_MAX]])
    return np.asarray(x[np.abs(x) <= ANGLE_MAX])


def error(got: Array, exact: list[Any]) -> float:
    """Largest |got - exact|, the difference taken in 60 digits."""
    return float(max(abs(mpmath.mpf(float(g)) - e) for g, e in zip(got, exact, strict=True)))


def check(x: Array, s: Array, c: Array) -> None:
    exact = [mpmath.mpf(float(v)) for v in x]
    assert error(s, [mpmath.sin(v) for v in exact]) < SINCOS
    assert error(c, [mpmath.cos(v) for v in exact]) < SINCOS


def test_sin_and_cos() -> None:
    x = angles()
    s, c = sincos(x)
    check(x, s, c)
    assert np.max(np.abs(s * s + c * c - 1.0)) < 5e-16
    assert np.array_equal(sincos(-x)[0], -s)
    assert np.array_equal(sincos(-x)[1], c)


def test_quarter_turns() -> None:
    """0 exactly; next to n pi/2 what is left over (1e-16 n or so) is right to 1e-20: pi/2 is held to 86 bits."""
    assert [float(v) for v in sincos(np.array(0.0))] == [0.0, 1.0]
    for n in (1, 2, 3, 4, 7, 1000, 636618):
        x = n * (math.pi / 2)
        s, c = (float(v) for v in sincos(np.array(x)))
        small, exact = (c, mpmath.cos(mpmath.mpf(x))) if n % 2 else (s, mpmath.sin(mpmath.mpf(x)))
        assert 0.0 < abs(small) < 1e-9
        assert abs(small - exact) < 1e-20


def test_small_angles_keep_their_relative_accuracy() -> None:
    """sin x = x where x^3 is below an ulp: small motions are not lost."""
    x = 10.0 ** np.linspace(-300, -9, 200)
    assert np.array_equal(sincos(x)[0], x)


def test_arctangent() -> None:
    rng = np.random.default_rng(2)
    steps = np.arange(-8, 9)
    phi = np.concatenate([rng.uniform(-math.pi, math.pi, 4000), steps * math.pi / 8, steps * 1e-9])
    size = 10.0 ** rng.uniform(-6.0, 6.0, phi.size)
    y, x = size * np.sin(phi), size * np.cos(phi)
    edge = [0.0, 1.0, -1.0, 1e-300, -1e-300, 1e300, 0.41421356237309503, -0.41421356237309515, 2.414213562373095]
    grid = np.array(np.meshgrid(edge, edge)).reshape(2, -1)
    y, x = np.concatenate([y, grid[0]]), np.concatenate([x, grid[1]])
    got = arctangent2(y, x)
    turn = 2 * mpmath.pi
    for g, a, b in zip(got, y, x, strict=True):
        exact = mpmath.atan2(mpmath.mpf(float(a)), mpmath.mpf(float(b))) if a or b else mpmath.mpf(0)
        off = mpmath.mpf(float(g)) - exact
        assert abs(off - turn * mpmath.nint(off / turn)) < ATAN2, (a, b)


def test_arctangent_next_to_the_cut() -> None:
    """Just below the negative x axis the angle rounds to -pi, as math.atan2's does; who wants (-pi, pi] folds it."""
    for y in (-1e-17, -1e-300, -5e-324, -1e-15, -1e-8, 1e-17, 1e-15):
        assert float(arctangent2(np.array(y), np.array(-1.0))) == math.atan2(y, -1.0)


def test_arctangent_of_axes() -> None:
    """Exact on the axes and diagonals; a negative zero counts as zero, so the cut is always +pi; 0 at the origin."""
    quarter = math.pi / 2
    for y, x, angle in (
        (0.0, 1.0, 0.0), (0.0, -1.0, math.pi), (-0.0, -1.0, math.pi), (1.0, 0.0, quarter), (-1.0, 0.0, -quarter),
        (0.0, 0.0, 0.0), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (1.0, 1.0, quarter / 2), (-2.0, -2.0, -1.5 * quarter),
    ):  # fmt: skip
        assert float(arctangent2(np.array(y), np.array(x))) == angle


def test_traced_form_gives_the_same_bits() -> None:
    """The functions are traced into C; printed as Python the trace repeats the bits of the arrays, single and batch."""
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    outputs = [*sincos(x)]
    single = emit_python.compiled(graph, ["x"], outputs, batch=False)
    batch = emit_python.compiled(graph, ["x"], outputs, batch=True)
    v = angles()[::7]
    s, c = sincos(v)
    assert np.array_equal(batch([v], [])[0], s)
    assert np.array_equal(batch([v], [])[1], c)
    for value, sine, cosine in zip(v[:300], s, c, strict=False):
        assert single([float(value)], []) == (sine, cosine)


def test_in_c_through_the_kernels() -> None:
    """The pose of joint 1 holds sin q1 and cos q1 as compiled: the same bound, up to ANGLE_MAX."""
    robot = tangere.robot("ur10e")
    v = angles()
    q = np.zeros((v.size, 6))
    q[:, 0] = v
    T = robot.link_poses(q)[:, 0]  # Rz(q1) Rx(90 deg): cos q1 and sin q1 in the first column
    check(v, T[:, 1, 0], T[:, 0, 0])
    with pytest.raises(tangere.InvalidValue, match=r"q: .* rad"):
        robot.pose([math.nextafter(ANGLE_MAX, math.inf), 0.0, 0.0, 0.0, 0.0, 0.0])
    robot.pose([ANGLE_MAX, -ANGLE_MAX, 0.0, 0.0, 0.0, 0.0])


# ----------------------------------------------------------------------------- expm1, tanh, log; float32

PRECISIONS = [pytest.param(DOUBLE, np.float64, id="float64"), pytest.param(SINGLE, np.float32, id="float32")]
# name: function, truth, ulp that it may be off (seen over 24 000 numbers: 1.76, 2.46 and 0.75)
ELEMENTARY = {
    "expm1": (exponential_minus_one, mpmath.expm1, 1.8),
    "tanh": (hyperbolic_tangent, mpmath.tanh, 2.5),
    "log": (logarithm, mpmath.log, 0.8),
}


def arguments(name: str, dtype: type) -> Array:
    """Random numbers of every size for which the function says something."""
    rng = np.random.default_rng(3)
    top = np.log(np.finfo(dtype).max)
    if name == "log":
        parts = [rng.uniform(0.5, 2.0, 2000), np.exp(rng.uniform(-0.98 * top, top, 1000)), rng.uniform(0.0, 1.0, 500)]
        x = np.concatenate([*parts, [1.0, 2.0, 0.5, math.sqrt(2.0), np.finfo(dtype).tiny, np.finfo(dtype).max]])
        return np.asarray(x.astype(dtype))
    small = 10.0 ** rng.uniform(-30.0, 0.0, 1000) * rng.choice([-1.0, 1.0], 1000)
    x = np.concatenate([small, rng.uniform(-3.0, 3.0, 1500), rng.uniform(-0.25, 0.99, 500) * top])
    return np.asarray(x.astype(dtype))


@pytest.mark.parametrize("name", ELEMENTARY)
@pytest.mark.parametrize(("of", "dtype"), PRECISIONS)
def test_elementary(name: str, of: Coefficients, dtype: type) -> None:
    function, truth, bound = ELEMENTARY[name]
    x = arguments(name, dtype)
    got = function(x, of)
    assert got.dtype == dtype
    for value, y in zip(x, got, strict=True):
        exact = truth(mpmath.mpf(float(value)))
        assert abs(mpmath.mpf(float(y)) - exact) <= bound * float(np.spacing(np.abs(y))), value


@pytest.mark.parametrize(("of", "dtype"), PRECISIONS)
def test_ends_of_the_elementary_functions(of: Coefficients, dtype: type) -> None:
    """Odd functions stay odd, zero stays zero, beyond the range the limit is reached and kept."""
    x = arguments("tanh", dtype)
    assert np.array_equal(hyperbolic_tangent(-x, of), -hyperbolic_tangent(x, of))
    zero, far = np.zeros(1, dtype), np.array([-1e4, -1e30, 1e4, 1e30], dtype)
    assert float(exponential_minus_one(zero, of)[0]) == float(hyperbolic_tangent(zero, of)[0]) == 0.0
    assert exponential_minus_one(far, of).tolist() == [-1.0, -1.0, math.inf, math.inf]
    assert hyperbolic_tangent(far, of).tolist() == [-1.0, -1.0, 1.0, 1.0]
    assert float(logarithm(np.ones(1, dtype), of)[0]) == 0.0


def test_float32_angles() -> None:
    """sin and cos within an ulp of 1 (6e-8 is half of it), atan2 within an ulp of pi."""
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(-100.0, 100.0, 3000).astype(np.float32) for _ in range(2))
    exact = [mpmath.mpf(float(v)) for v in x]
    s, c = sincos(x, SINGLE)
    assert s.dtype == c.dtype == np.float32
    assert error(s, [mpmath.sin(v) for v in exact]) < 9e-8
    assert error(c, [mpmath.cos(v) for v in exact]) < 9e-8
    angle = [mpmath.atan2(mpmath.mpf(float(b)), v) for b, v in zip(y, exact, strict=True)]
    assert error(arctangent2(y, x, SINGLE), angle) < 2.5e-7
