"""Numbers, lengths and transforms as SVG writes them."""

from __future__ import annotations

import re

import numpy as np

from tangere.apps.drawing.svg.path import NUMBER
from tangere.types import Array

# CSS pixels per unit: an inch has 96 of them; em and ex with the usual 16 pixel font.
UNITS = {
    "": 1.0,
    "px": 1.0,
    "in": 96.0,
    "mm": 96.0 / 25.4,
    "cm": 96.0 / 2.54,
    "pt": 96.0 / 72.0,
    "pc": 16.0,
    "q": 96.0 / 101.6,
    "em": 16.0,
    "ex": 8.0,
    "rem": 16.0,
}


def numbers_of(text: str) -> list[float]:
    """All numbers in a text, in order; nothing where one is not finite."""
    values = [float(value) for value in NUMBER.findall(text)]
    return values if np.isfinite(values).all() else []


def length_of(text: str | None, whole: float | None) -> float | None:
    """A length in user units; a percentage of `whole` (None where that is unknown); None where it is no length."""
    found = re.fullmatch(rf"\s*({NUMBER.pattern})\s*([a-zA-Z]*|%)\s*", text or "")
    if not found:
        return None
    value, unit = float(found.group(1)), found.group(2).lower()
    if not np.isfinite(value):
        return None
    if unit == "%":
        return None if whole is None else value / 100.0 * whole
    return value * UNITS[unit] if unit in UNITS else None


def matrix_of(text: str) -> Array:
    """(3, 3) of a transform list: matrix, translate, scale, rotate, skewX, skewY; what is unknown is the identity."""
    result = np.eye(3)
    for name, inside in re.findall(r"(\w+)\s*\(([^)]*)\)", text):
        v = numbers_of(inside)
        step = np.eye(3)
        if name == "matrix" and len(v) == 6:
            step[:2] = [[v[0], v[2], v[4]], [v[1], v[3], v[5]]]
        elif name == "translate" and v:
            step[:2, 2] = v[0], v[1] if len(v) > 1 else 0.0
        elif name == "scale" and v:
            step[0, 0], step[1, 1] = v[0], v[1] if len(v) > 1 else v[0]
        elif name == "rotate" and v:
            c, s = np.cos(np.deg2rad(v[0])), np.sin(np.deg2rad(v[0]))
            step[:2, :2] = [[c, -s], [s, c]]
            if len(v) > 2:
                middle = np.array(v[1:3])
                step[:2, 2] = middle - step[:2, :2] @ middle
        elif name == "skewX" and v:
            step[0, 1] = np.tan(np.deg2rad(v[0]))
        elif name == "skewY" and v:
            step[1, 0] = np.tan(np.deg2rad(v[0]))
        result = result @ step
    return result


def view_matrix(box: list[float], size: tuple[float, float], ratio: str) -> Array:
    """(3, 3) that fits a view box (x, y, width, height) into a size, by preserveAspectRatio."""
    sx, sy = size[0] / box[2], size[1] / box[3]
    align = ratio.split()[0] if ratio.split() else "xMidYMid"
    if align != "none":
        sx = sy = max(sx, sy) if "slice" in ratio else min(sx, sy)
    share = {"Min": 0.0, "Mid": 0.5, "Max": 1.0}
    spare_x, spare_y = size[0] - sx * box[2], size[1] - sy * box[3]
    x = spare_x * share.get(align[1:4], 0.5) if align != "none" else 0.0
    y = spare_y * share.get(align[5:8], 0.5) if align != "none" else 0.0
    return np.array([[sx, 0.0, x - sx * box[0]], [0.0, sy, y - sy * box[1]], [0.0, 0.0, 1.0]])
