"""Axes and curves of a still plot: round ticks, ranges that survive NaN and huge values, paths of few characters."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Values are drawn as if they ended here: beyond it the difference of two of them is no longer a number.
_END = 1e150


def span(columns: list[Array], at_least: float = 0.0) -> tuple[float, float]:
    """Smallest and largest finite value, widened to `at_least` and by 6 % of air; (-1, 1) where there is none."""
    finite = [column[np.isfinite(column)] for column in columns]
    finite = [np.clip(column, -_END, _END) for column in finite if column.size]
    if not finite:
        return -1.0, 1.0
    low, high = min(float(c.min()) for c in finite), max(float(c.max()) for c in finite)
    missing = max(at_least, 1e-9 * max(abs(low), abs(high)), 1e-12) - (high - low)
    if missing > 0.0:
        low, high = low - missing / 2.0, high + missing / 2.0
    air = 0.06 * (high - low)
    return low - air, high + air


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) inside [low, high], about `count` of them."""
    width = high - low
    if not (math.isfinite(width) and width > 0.0):
        return []
    power = 10.0 ** math.floor(math.log10(width / count))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if width / (power * factor) <= count)
    first = math.ceil(low / step - 1e-9)
    return [k * step + 0.0 for k in range(first, first + 2 * count) if k * step <= high + 1e-9 * width]


def tick_label(value: float, step: float) -> str:
    """A tick with as many decimals as its step needs; powers of ten for what would be too long."""
    if value == 0.0:
        return "0"
    if abs(value) >= 1e5 or step < 1e-4:
        return f"{value:.3g}".replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{decimals}f}".replace("-", "−")


def curve(x: Array, y: Array, columns: int = 300) -> str:
    """An SVG path through pixel coordinates, gaps where y is not finite, at most two points per pixel column.

    x ascending. With more samples than columns each column keeps its first, smallest, largest and last sample.
    """
    if len(x) > 4 * columns:
        edges = np.linspace(0, len(x), columns + 1).astype(int)
        kept: list[int] = []
        low = np.where(np.isfinite(y), y, np.inf)
        high = np.where(np.isfinite(y), y, -np.inf)
        for start, stop in pairwise(edges):
            a, b = start + int(np.argmin(low[start:stop])), start + int(np.argmax(high[start:stop]))
            # a straight stretch needs no more than its ends
            kept += [start] if high[b] - low[a] < 0.3 else sorted({start, a, b})
        kept.append(len(x) - 1)
        x, y = x[kept], y[kept]
    out: list[str] = []
    pen_down = False
    last = ""
    for px, py in zip(np.clip(x, -1e5, 1e5).tolist(), np.clip(y, -1e5, 1e5).tolist(), strict=True):
        if not (math.isfinite(px) and math.isfinite(py)):
            pen_down = False
            continue
        point = f"{px:.1f} {py:.1f}".replace(".0", "")
        if point != last or not pen_down:
            out.append(("L" if pen_down else "M") + point)
        pen_down, last = True, point
    if len(out) == 1:  # one sample: a dot, which a stroke with round ends shows
        out.append("h0.01")
    return "".join(out)
