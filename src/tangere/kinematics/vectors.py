"""Three-vectors and 3x3 matrices as plain lists, over any number type: floats, arrays or traced symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tangere.codegen import trace as codegen

Scalar = Any  # float, numpy array or codegen.trace.Symbol
Vector = list[Any]
Matrix = list[list[Any]]

IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def subtract(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(k: Scalar, a: Vector) -> Vector:
    """k a."""
    return [k * x for x in a]


def dot(a: Vector, b: Vector) -> Scalar:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """a x b."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def matvec(A: Matrix, x: Vector) -> Vector:
    """A x."""
    return [dot(row, x) for row in A]


def transposed(A: Matrix) -> Matrix:
    """A^T."""
    return [[A[j][i] for j in range(3)] for i in range(3)]


def matmul(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    columns = transposed(B)
    return [[dot(row, c) for c in columns] for row in A]


def matadd(A: Matrix, B: Matrix) -> Matrix:
    """A + B."""
    return [add(a, b) for a, b in zip(A, B, strict=True)]


def outer(a: Vector, b: Vector) -> Matrix:
    """a b^T."""
    return [[x * y for y in b] for x in a]


def trace(A: Matrix) -> Scalar:
    """Sum of the diagonal."""
    return A[0][0] + A[1][1] + A[2][2]


def turn(s: Scalar, c: Scalar, v: Vector) -> Vector:
    """Rz(angle) v with s = sin(angle), c = cos(angle)."""
    return [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]]


def unturn(s: Scalar, c: Scalar, v: Vector) -> Vector:
    """Rz(angle)^T v."""
    return [c * v[0] + s * v[1], c * v[1] - s * v[0], v[2]]


def turn_symmetric(s: Scalar, c: Scalar, S: Matrix) -> Matrix:
    """Rz S Rz^T for a symmetric S, through the double angle: the half sum of Sxx and Syy stays, the rest turns."""
    mean, half = 0.5 * (S[0][0] + S[1][1]), 0.5 * (S[0][0] - S[1][1])
    c2, s2 = c * c - s * s, 2.0 * (s * c)
    part = c2 * half - s2 * S[0][1]
    xy = s2 * half + c2 * S[0][1]
    xz, yz = c * S[0][2] - s * S[1][2], s * S[0][2] + c * S[1][2]
    return [[mean + part, xy, xz], [xy, mean - part, yz], [xz, yz, S[2][2]]]


def tilt_symmetric(s: Scalar, c: Scalar, S: Matrix) -> Matrix:
    """Rx S Rx^T for a symmetric S: a turn about z with the axes called y z x."""
    T = turn_symmetric(s, c, [[S[i][j] for j in (1, 2, 0)] for i in (1, 2, 0)])
    return [[T[i][j] for j in (2, 0, 1)] for i in (2, 0, 1)]


def conjugate_symmetric(R: Matrix, S: Matrix) -> Matrix:
    """R S R^T for a symmetric S, keeping it symmetric to the last bit."""
    RS = matmul(R, S)
    out: Matrix = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(i, 3):
            out[i][j] = out[j][i] = dot(RS[i], R[j])
    return out


def alike(groups: Sequence[Sequence[Vector]]) -> None:
    """Say of traced vectors that those of a group come of the same operations, number by number (codegen.trace)."""
    for group in groups:
        for numbers in zip(*group, strict=True):
            codegen.alike(*numbers)


def fresh(vectors: Sequence[Vector], of: Scalar) -> list[Vector]:
    """Vectors that join others which are alike (codegen.trace.fresh)."""
    return [list(codegen.fresh(x, of)) for x in vectors]
