"""Strokes: what a pen draws on a canvas, line by line, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.types import Array


@dataclass(frozen=True)
class Strokes:
    """Lines in drawing order and direction.

    Canvas frame: origin in the middle of the canvas, x to the right, y up, as one looks at the paper. Between the last
    point of a line and the first of the next the pen is lifted; a line whose first and last point coincide is closed.
    """

    lines: tuple[Array, ...]  # each (k, 2) [m], k >= 2
    size: tuple[float, float]  # (width, height) [m] of the drawing area; every line lies inside
    notes: tuple[str, ...] = ()  # what was reduced, ignored or chosen on the way here, for the reader

    def __post_init__(self) -> None:
        lines = tuple(np.ascontiguousarray(line, dtype=float) for line in self.lines)
        for number, line in enumerate(lines, start=1):
            if line.ndim != 2 or line.shape[1] != 2 or len(line) < 2:
                raise InvalidValue(f"line {number} has shape {line.shape}; a stroke is (k, 2) with k >= 2")
            if not np.isfinite(line).all():
                raise InvalidValue(f"line {number} holds a value that is not finite")
        if len(self.size) != 2 or not all(np.isfinite(side) and side > 0.0 for side in self.size):
            raise InvalidValue(f"size {self.size} must be two positive lengths (width, height) in m")
        object.__setattr__(self, "lines", lines)
        object.__setattr__(self, "size", (float(self.size[0]), float(self.size[1])))

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def draw_length(self) -> float:
        """Length [m] of everything drawn."""
        return float(sum(length(line) for line in self.lines))

    @cached_property
    def pen_up_length(self) -> float:
        """Length [m] of the straight ways from the end of each line to the start of the next."""
        if len(self.lines) < 2:
            return 0.0
        ends = np.array([line[-1] for line in self.lines[:-1]])
        starts = np.array([line[0] for line in self.lines[1:]])
        return float(np.hypot(*(starts - ends).T).sum())

    @cached_property
    def points(self) -> int:
        """Number of points of all lines together."""
        return sum(len(line) for line in self.lines)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """(lower, upper) corner [m] of the box round everything drawn; both zero where nothing is."""
        if not self.lines:
            return np.zeros(2), np.zeros(2)
        low = np.min([line.min(axis=0) for line in self.lines], axis=0)
        high = np.max([line.max(axis=0) for line in self.lines], axis=0)
        return low, high

    def reversed(self) -> Strokes:
        """The same drawing from its end: order and directions reversed, so that both lengths stay."""
        return replace(self, lines=tuple(line[::-1].copy() for line in reversed(self.lines)))

    def transformed(
        self,
        *,
        scale: float = 1.0,
        angle: float = 0.0,
        offset: ArrayLike = (0.0, 0.0),
        size: tuple[float, float] | None = None,
    ) -> Strokes:
        """p -> scale R(angle) p + offset: scaled, turned counter-clockwise [rad] about the middle, then moved [m].

        The drawing area keeps its size (scaled with the drawing) unless one is given; it is not turned.
        """
        if not (np.isfinite(scale) and scale > 0.0):
            raise InvalidValue(f"scale {scale} must be a positive number")
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shift = np.asarray(offset, dtype=float)
        area = (self.size[0] * scale, self.size[1] * scale) if size is None else size
        return replace(self, lines=tuple(line @ turn.T + shift for line in self.lines), size=area)

    def fitted(self, width: float, height: float, margin: float = 0.0) -> Strokes:
        """What is drawn (not the empty paper round it) scaled to fill width x height [m] less a margin, and centred."""
        if not (width - 2.0 * margin > 0.0 and height - 2.0 * margin > 0.0 and margin >= 0.0):
            raise InvalidValue(f"a margin of {margin} m leaves nothing of {width} x {height} m")
        low, high = self.bounds
        extent = np.maximum(high - low, 1e-12)
        scale = float(min((width - 2.0 * margin) / extent[0], (height - 2.0 * margin) / extent[1]))
        middle = (low + high) / 2.0
        return replace(self, lines=tuple((line - middle) * scale for line in self.lines), size=(width, height))


def length(line: Array) -> float:
    """Length of a polyline (k, 2), in its unit."""
    steps = np.diff(line, axis=0)
    return float(np.sqrt((steps * steps).sum(axis=1)).sum())


def closed(line: Array) -> bool:
    """Whether a line ends where it started (and went somewhere in between)."""
    return len(line) > 3 and bool((line[0] == line[-1]).all())
