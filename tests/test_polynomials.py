"""sin, cos and atan2 of the kernels against mpmath with 60 digits, and in C through the kernels.

Errors are absolute: for sin and cos of an exact double x, so that near multiples of pi/2 the reduction is tested.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.codegen.functions import ANGLE_MAX
from tangere.codegen.polynomials import arctangent2, sincos
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
