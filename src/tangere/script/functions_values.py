"""Builtins that only compute: numbers, lists, matrices, texts, poses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.kinematics.vectors import matmul, transposed
from tangere.script import poses
from tangere.script.builtin import builtin
from tangere.script.values import LONGEST, List, Pose, ScriptException, Struct, Text, Value, numbers, shown, text

NESTED = 3  # lists inside each other: a list of matrices


def pose_argument(value: Value, what: str) -> poses.Frame:
    """A pose that a program gave, to compute with."""
    if not isinstance(value, tuple) or len(value) != 6 or not all(isinstance(x, int | float) for x in value):
        raise ScriptException(f"{what}: a pose p[x, y, z, rx, ry, rz] is needed, got {shown(value)[:60]}")
    if not all(map(math.isfinite, value)):
        raise ScriptException(f"{what}: the pose is not finite")
    return poses.frame(value)


def entries(items: tuple[Value, ...]) -> List:
    """A list of these; refuses lists that are nested without end."""
    _nested(items, NESTED)
    return List(items)


def members(**named: Value) -> Struct:
    """struct(a=..., b=...)."""
    _nested(tuple(named.values()), NESTED)
    return Struct(named)


def _nested(items: tuple[Value, ...], left: int) -> None:
    for item in items:
        if isinstance(item, tuple | dict):
            if not left:
                raise ScriptException(f"lists and structs nest at most {NESTED + 1} deep")
            _nested(item if isinstance(item, tuple) else tuple(item.values()), left - 1)


def _text(value: Value, what: str) -> str:
    if not isinstance(value, str):
        raise ScriptException(f"{what}: a text is needed, got {shown(value)[:60]}")
    return str(value)


def _matrix(value: Value, what: str) -> Any:
    rows = value if isinstance(value, tuple) and len(value) and isinstance(value[0], tuple) else None
    if rows is None or any(not isinstance(row, tuple) or len(row) != len(rows[0]) for row in rows):
        raise ScriptException(f"{what}: a matrix [[...], [...]] is needed, got {shown(value)[:60]}")
    return rows


def _of_one(name: str, of: Callable[[float], float]) -> Any:
    """A builtin of one number f."""

    def function(f: Value) -> float:
        return of(f)

    return staticmethod(builtin(name)(function))


class Values:
    """Functions without a world."""

    # ------------------------------------------------------------------------------------------------------ numbers

    sin, cos, tan = _of_one("sin", math.sin), _of_one("cos", math.cos), _of_one("tan", math.tan)
    asin, acos, atan = _of_one("asin", math.asin), _of_one("acos", math.acos), _of_one("atan", math.atan)  # [rad]
    sqrt, floor, ceil = _of_one("sqrt", math.sqrt), _of_one("floor", math.floor), _of_one("ceil", math.ceil)

    @staticmethod
    @builtin()
    def d2r(d: Value) -> float:
        """Degrees to radians."""
        return math.radians(d)

    @staticmethod
    @builtin()
    def r2d(r: Value) -> float:
        """Radians to degrees."""
        return math.degrees(r)

    @staticmethod
    @builtin()
    def atan2(x: Value, y: Value) -> float:
        """Arc tangent of x/y with both signs; the first is the ordinate, whatever UR calls it."""
        return math.atan2(x, y)

    @staticmethod
    @builtin()
    def pow(base: Value, exponent: Value) -> float:
        """base to the power of exponent."""
        return math.pow(base, exponent)

    @staticmethod
    @builtin()
    def log(b: Value, f: Value) -> float:
        """Logarithm of f to the base b."""
        return math.log(f) / math.log(b)

    @staticmethod
    @builtin()
    def norm(a: Value) -> float:
        """Length of a list of numbers; of one number its size."""
        return math.hypot(*a) if isinstance(a, tuple) else abs(a)

    @staticmethod
    @builtin()
    def integer_to_binary_list(x: Value) -> List:
        """The 32 bits of a whole number, the lowest first."""
        return List([bool(int(x) >> k & 1) for k in range(32)])

    @staticmethod
    @builtin()
    def binary_list_to_integer(l: Value) -> int:  # noqa: E741 - UR's name
        """The whole number (32 bits, signed) of a list of bits, the lowest first."""
        bits = tuple(l)
        if len(bits) > 32:
            raise ScriptException(f"binary_list_to_integer: at most 32 bits, got {len(bits)}")
        value = sum(1 << k for k, bit in enumerate(bits) if bit)
        return value - (1 << 32) if value >= 1 << 31 else value

    # -------------------------------------------------------------------------------------------- lists and matrices

    @staticmethod
    @builtin("length", "get_list_length")
    def length(v: Value) -> int:
        """Number of entries, or of characters."""
        if not isinstance(v, tuple | str):
            raise ScriptException(f"length: a list or a text is needed, got {shown(v)[:60]}")
        return len(v)

    @staticmethod
    @builtin(since="5.15")
    def make_list(length: Value, initial_value: Value = 0, capacity: Value = 0) -> List:
        """A list of equal entries."""
        if not 0 <= length <= LONGEST:
            raise ScriptException(f"make_list: 0 to {LONGEST} entries, got {shown(length)}")
        return entries((initial_value,) * int(length))

    @staticmethod
    @builtin()
    def inv(m: Value) -> Value:
        """Inverse of a pose or of a square matrix."""
        if isinstance(m, Pose):
            return poses.pose(poses.inverted(pose_argument(m, "inv")))
        rows = _matrix(m, "inv")
        try:
            found = np.linalg.inv(np.array(rows, dtype=np.float64))
        except np.linalg.LinAlgError as problem:
            raise ScriptException(f"inv: {problem}") from None
        return List([numbers(row) for row in found.tolist()])

    @staticmethod
    @builtin()
    def transpose(m: Value) -> List:
        """Rows become columns."""
        return List([List(row) for row in zip(*_matrix(m, "transpose"), strict=True)])

    @staticmethod
    @builtin()
    def size(v: Value) -> Value:
        """Entries of a list; rows and columns of a matrix."""
        if isinstance(v, tuple) and len(v) and isinstance(v[0], tuple):
            return List((len(v), len(v[0])))
        return Values.length(v)

    # -------------------------------------------------------------------------------------------------------- texts

    @staticmethod
    @builtin()
    def str_cat(op1: Value, op2: Value) -> Text:
        """Both as one text."""
        return text(shown(op1) + shown(op2))

    @staticmethod
    @builtin()
    def to_str(val: Value) -> Text:
        """A value as text."""
        return text(shown(val))

    @staticmethod
    @builtin()
    def to_num(str: Value) -> float:
        """The number that a text begins with nothing but."""
        written = _text(str, "to_num").strip()
        try:
            return float(written) if any(c in written for c in ".eE") else int(written[:20])
        except ValueError:
            raise ScriptException(f"to_num: {written[:40]!r} is no number") from None

    @staticmethod
    @builtin()
    def str_len(str: Value) -> int:
        """Characters of a text."""
        return len(_text(str, "str_len"))

    @staticmethod
    @builtin()
    def str_empty(str: Value) -> bool:
        """Whether there is none."""
        return not len(_text(str, "str_empty"))

    @staticmethod
    @builtin()
    def str_at(src: Value, index: Value) -> Text:
        """One character, counted from 0."""
        found = _text(src, "str_at")
        if not 0 <= index < len(found):
            raise ScriptException(f"str_at: index {shown(index)} of a text with {len(found)} characters")
        return Text(found[int(index)])

    @staticmethod
    @builtin()
    def str_sub(src: Value, index: Value, len: Value = -1) -> Text:
        """`len` characters from `index` on; all that are left where len is not given."""
        found = _text(src, "str_sub")
        if index < 0:
            raise ScriptException(f"str_sub: index {shown(index)}")
        return Text(found[int(index) :] if len < 0 else found[int(index) : int(index) + int(len)])

    @staticmethod
    @builtin()
    def str_find(src: Value, target: Value, start_from: Value = 0) -> int:
        """Where a text stands in another; -1: nowhere."""
        return _text(src, "str_find").find(_text(target, "str_find"), int(start_from))

    # -------------------------------------------------------------------------------------------------------- poses

    @staticmethod
    @builtin()
    def pose_trans(p_from: Value, p_from_to: Value) -> Pose:
        """p_from p_from_to: the second is given in the axes of the first."""
        a, b = pose_argument(p_from, "pose_trans"), pose_argument(p_from_to, "pose_trans")
        return poses.pose(poses.composed(a, b))

    @staticmethod
    @builtin()
    def pose_inv(p_from: Value) -> Pose:
        """The inverse."""
        return poses.pose(poses.inverted(pose_argument(p_from, "pose_inv")))

    @staticmethod
    @builtin()
    def pose_add(p_1: Value, p_2: Value) -> Pose:
        """Positions added, turns one after the other."""
        (R_1, x_1), (R_2, x_2) = pose_argument(p_1, "pose_add"), pose_argument(p_2, "pose_add")
        return poses.pose((matmul(R_1, R_2), [a + b for a, b in zip(x_1, x_2, strict=True)]))

    @staticmethod
    @builtin()
    def pose_sub(p_to: Value, p_from: Value) -> Pose:
        """Positions subtracted, and the turn from p_from to p_to."""
        (R_1, x_1), (R_2, x_2) = pose_argument(p_to, "pose_sub"), pose_argument(p_from, "pose_sub")
        return poses.pose((matmul(R_1, transposed(R_2)), [a - b for a, b in zip(x_1, x_2, strict=True)]))

    @staticmethod
    @builtin()
    def pose_dist(p_from: Value, p_to: Value) -> float:
        """Distance of two positions [m]."""
        return math.dist(pose_argument(p_from, "pose_dist")[1], pose_argument(p_to, "pose_dist")[1])

    @staticmethod
    @builtin()
    def point_dist(p_from: Value, p_to: Value) -> float:
        """The same."""
        return Values.pose_dist(p_from, p_to)

    @staticmethod
    @builtin()
    def interpolate_pose(p_from: Value, p_to: Value, alpha: Value) -> Pose:
        """From p_from (alpha 0) to p_to (alpha 1)."""
        a, b = pose_argument(p_from, "interpolate_pose"), pose_argument(p_to, "interpolate_pose")
        return poses.pose(poses.between(a, b, float(alpha)))

    @staticmethod
    @builtin()
    def wrench_trans(T_from_to: Value, w_from: Value) -> List:
        """A wrench (6,) about the origin of one frame, about that of another; T_from_to: between them."""
        return List(poses.wrench_moved(pose_argument(T_from_to, "wrench_trans"), tuple(w_from)))

    @staticmethod
    @builtin()
    def rotvec2rpy(rotation_vector: Value) -> List:
        """Roll, pitch, yaw [rad] of a rotation vector."""
        R = poses.rotation(tuple(rotation_vector))
        pitch = math.atan2(-R[2][0], math.hypot(R[2][1], R[2][2]))
        return List((math.atan2(R[2][1], R[2][2]), pitch, math.atan2(R[1][0], R[0][0])))

    @staticmethod
    @builtin()
    def rpy2rotvec(rpy_vector: Value) -> List:
        """Rotation vector of roll, pitch, yaw [rad]."""
        roll, pitch, yaw = rpy_vector
        turns = [poses.rotation(v) for v in ((0.0, 0.0, yaw), (0.0, pitch, 0.0), (roll, 0.0, 0.0))]
        return numbers(poses.rotation_vector(matmul(matmul(turns[0], turns[1]), turns[2])))
