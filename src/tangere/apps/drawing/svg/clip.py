"""Lines cut: at the border of a rectangle, and into dashes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tangere.types import Array


class Clipped(NamedTuple):
    """What lies inside, and whether anything did not."""

    lines: list[Array]
    cut: bool


def clipped(lines: list[Array], width: float, height: float) -> Clipped:
    """The parts of polylines (k, 2) inside 0..width x 0..height; a line that leaves and comes back becomes two.

    Each segment p + t d is cut to the t for which all four borders have it inside (Liang and Barsky).
    """
    # a rounding error is no leaving: drawings often touch the border of their page
    slack = 1e-9 * max(width, height)
    low, high = np.array([-slack, -slack]), np.array([width + slack, height + slack])
    result: list[Array] = []
    cut = False
    for line in lines:
        if (line >= low).all() and (line <= high).all():
            result.append(np.clip(line, 0.0, [width, height]))
            continue
        cut = True
        start, way = line[:-1], np.diff(line, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = (np.zeros(2) - start) / way, (np.array([width, height]) - start) / way
        inside = (start >= 0.0) & (start <= [width, height])
        still = way == 0.0
        enter = np.where(still, np.where(inside, -np.inf, np.inf), np.minimum(a, b)).max(axis=1)
        leave = np.where(still, np.where(inside, np.inf, -np.inf), np.maximum(a, b)).min(axis=1)
        enter, leave = np.maximum(enter, 0.0), np.minimum(leave, 1.0)
        part: list[Array] = []
        for k in np.nonzero(enter < leave)[0].tolist():
            first, last = start[k] + enter[k] * way[k], start[k] + leave[k] * way[k]
            if enter[k] > 0.0 or not part:
                if len(part) > 1:
                    result.append(np.array(part))
                part = [first]
            part.append(last)
            if leave[k] < 1.0:
                result.append(np.array(part))
                part = []
        if len(part) > 1:
            result.append(np.array(part))
    return Clipped([np.clip(line, 0.0, [width, height]) for line in result], cut)


def dashed(line: Array, pattern: list[float], offset: float = 0.0) -> list[Array]:
    """The drawn pieces of a polyline (k, 2): lengths drawn and left out in turn, from `offset` on in the pattern.

    A piece keeps the corners of the line within it; a dash of length 0 is a dot.
    """
    steps = np.diff(line, axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))])
    whole = float(along[-1])
    period = sum(pattern)
    begin = -(offset % period)
    result: list[Array] = []
    while begin < whole:
        for k, span in enumerate(pattern):
            first, last = max(begin, 0.0), min(begin + span, whole)
            begin += span
            if k % 2 or last < first or first >= whole:
                continue
            inside = line[(along > first) & (along < last)]
            ends = np.stack([np.interp([first, last], along, line[:, axis]) for axis in (0, 1)], axis=1)
            result.append(np.concatenate([ends[:1], inside, ends[1:]]))
    return result
