"""A histogram as SVG whose bars say themselves what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import tick_label, ticks
from tangere.figures.markup import Raw, number, tag

WIDTH, HEIGHT = 520, 220  # px
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 8, 36


def histogram(values: NDArray[np.float64], bins: int = 48) -> Raw:
    """Counts of finite `values` (microseconds) between their smallest and their 99.5th percentile.

    What is longer is gathered in a last bar of another colour, so that one slow period does not flatten the rest. The
    height is the square root of the count: a single late period is still seen beside ten thousand good ones.
    """
    values = np.clip(values, 0.0, 1e12)  # nothing measured takes longer than a week
    low, high = float(values.min()), float(np.percentile(values, 99.5))
    if not high > low:
        high = low + max(1.0, 1e-3 * low)
    counts, edges = np.histogram(values[values <= high], bins=bins, range=(low, high))
    longer = int(np.sum(values > high))
    inner = WIDTH - LEFT - RIGHT - (26 if longer else 0)
    top = float(np.sqrt(max(int(counts.max()), longer, 1)))
    scale = (HEIGHT - TOP - BOTTOM) / top
    parts = []
    for value in _heights(round(top**2)):
        at = HEIGHT - BOTTOM - scale * value**0.5
        parts.append(tag("path", class_="grid", d=f"M{LEFT} {at:.1f}H{WIDTH - RIGHT}"))
        parts.append(tag("text", str(value), class_="y", x=LEFT - 5, y=f"{at + 3.5:.1f}"))
    width = inner / bins
    for k, count in enumerate(counts.tolist()):
        if count:
            label = f"{number(edges[k].item(), 3)} to {number(edges[k + 1].item(), 3)} µs: {count} periods"
            parts.append(_bar(LEFT + k * width, width, scale * count**0.5, label, "column"))
    if longer:
        label = f"longer than {number(high, 3)} µs: {longer} periods, the longest {number(float(values.max()), 4)} µs"
        parts.append(_bar(WIDTH - RIGHT - 20, 20, scale * longer**0.5, label, "column late"))
    marks = ticks(low, high, 6)
    for mark in marks:
        at = LEFT + (mark - low) / (high - low) * inner
        step = marks[1] - marks[0] if len(marks) > 1 else abs(mark) or 1.0
        parts.append(tag("text", tick_label(mark, step), class_="x", x=f"{at:.1f}", y=HEIGHT - BOTTOM + 15))
    parts.append(tag("text", "µs", class_="x", x=LEFT + inner / 2, y=HEIGHT - 5))
    parts.append(tag("text", "periods", class_="unit", x=4, y=TOP + 6))
    return tag("svg", tag("title", "Histogram of times"), *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img")


def _heights(largest: int) -> list[int]:
    """Counts worth a grid line: 1, 10, 100, ... and the round one nearest the top."""
    steps = [v for v in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000) if v <= largest]
    return steps[-3:]


def _bar(x: float, width: float, height: float, label: str, class_: str) -> Raw:
    height = max(height, 1.0)
    return tag("rect", tag("title", label), class_=class_, x=f"{x + 0.5:.1f}", y=f"{HEIGHT - BOTTOM - height:.1f}",
               width=f"{max(width - 1.0, 0.5):.1f}", height=f"{height:.1f}")  # fmt: skip
