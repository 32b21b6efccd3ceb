"""Hatching: areas filled with parallel lines, and the tones of a picture by more or fewer of them.

A pen of width w whose lines are d apart leaves the share w/d of the paper dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.apps.drawing.picture.areas import Area, lines_in, polygons_in, shapely
from tangere.apps.drawing.picture.picture import opencv
from tangere.apps.drawing.picture.shade import Shade
from tangere.types import Array

PEN = 0.5e-3  # m: width of the pen's line
DISTANCE = 1e-3  # m: of a black fill: two widths of the line, dark from afar and half as long to draw as black
SHORTEST = 0.5e-3  # m: shorter pieces are dots
# A lighter fill has its lines farther apart, but no more than this many times: beyond, it is no tone but stripes.
FARTHEST = 8.0
# The pen goes on to the next line, along the border, where its end is no farther than this many distances.
ONWARD = 2.5
# It does not, where less than this share of the way is free of lines that are drawn already: one that crosses them is.
TWICE = 0.4
# Of eight neighbouring lines these are drawn first, so that lines of a tone are as even as they can be: the bits of
# 0 to 7 in reverse order.
ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
LEVELS = len(ORDER)
STEP = 0.25e-3  # m along a line between two looks at the tone: half a pen's line
# m: a piece of a tone's line is this long at least, and a gap in it too: lifting the pen takes a second
PIECE, HOLE = 2e-3, 1e-3
SOFT = 0.5e-3  # m: the tones are smoothed by this much: what is finer the pen cannot draw


@dataclass(frozen=True)
class Hatch:
    """How areas and tones are hatched."""

    cross: bool = False  # a second set of lines across the first
    angle: float = math.radians(45.0)  # rad, of the lines, counter-clockwise from the horizontal
    distance: float | None = None  # m from line to line of black; None: DISTANCE for areas, the pen's width for tones

    @property
    def angles(self) -> tuple[float, ...]:
        """Of each set of lines [rad]."""
        return (self.angle, self.angle + 0.5 * math.pi) if self.cross else (self.angle,)


def hatched(areas: Sequence[Area], hatch: Hatch) -> list[Array]:
    """Lines (k, 2) [m] that fill areas [m], half a pen's line inside of their borders.

    Lines lie on one grid for the whole picture, so that neighbouring areas match; lighter areas have wider grids, in
    whole multiples of the distance for black. Within an area the pen goes on from line to line along the border; lines
    that cross end a pen's line farther in, so that their ways along the border are not those of the first.
    """
    shp = shapely()
    lines: list[Array] = []
    distance = hatch.distance or DISTANCE
    for area in areas:
        step = distance * min(max(1.0, round(1.0 / area.tone)), FARTHEST)
        drawn: list[Array] = []  # the first of two sets of lines
        for number, angle in enumerate(hatch.angles):
            taken = shp.buffer(shp.MultiLineString(drawn), 0.5 * PEN)
            for part in polygons_in(shp.buffer(area.shape, -(0.5 + number) * PEN), SHORTEST**2):
                drawn += _rows(part, angle, distance if area.shade else step, area.shade, taken)
        lines += drawn
    return lines


def _rows(part: Any, angle: float, step: float, shade: Shade | None, taken: Any) -> list[Array]:
    """One set of lines over one polygon, as few strokes as the ways along its border allow.

    shade: of eight neighbouring lines as many are drawn, piece by piece, as its tone has eighths. taken: what is drawn
    already, as an area; no way along the border lies in it.
    """
    shp = shapely()
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])  # rows: along, across
    level = shp.transform(part, lambda p: p @ turn.T)
    low_x, low_y, high_x, high_y = level.bounds
    first, last = math.ceil(low_y / step - 0.5), math.floor(high_y / step - 0.5)
    heights = (np.arange(first, last + 1) + 0.5) * step
    if not len(heights):
        return []
    ends = np.array([((low_x - step, y), (high_x + step, y)) for y in heights.tolist()])
    cuts = shp.intersection(shp.linestrings(ends), level)
    rows = [[piece[np.argsort(piece[:, 0])] for piece in lines_in(cut)] for cut in cuts]
    rows = [[piece for piece in row if np.ptp(piece[:, 0]) >= SHORTEST] for row in rows]
    if shade is not None:
        rows = [
            [piece for whole in row for piece in _pieces(whole, shade, (ORDER.index(k % LEVELS) + 0.5) / LEVELS, turn)]
            for k, row in enumerate(rows, first)
        ]
    roomy = shp.buffer(level, 1e-6)  # a way along the border is on it, to a micrometre
    taken = shp.transform(taken, lambda p: p @ turn.T)
    shp.prepare(roomy)
    strokes: list[Array] = []
    for k, row in enumerate(rows):
        while row:
            points = list(row.pop())
            here, above = k, True
            while above:
                above = False
                for piece in rows[here + 1] if here + 1 < len(rows) else []:
                    near = min((piece, piece[::-1]), key=lambda p: float(np.hypot(*(p[0] - points[-1]))))
                    way = shp.linestrings([points[-1], near[0]])
                    free = way.length - taken.intersection(way).length > TWICE * way.length
                    if way.length <= ONWARD * step and free and roomy.covers(way):
                        rows[here + 1] = [other for other in rows[here + 1] if other is not piece]
                        points += list(near)
                        here, above = here + 1, True
                        break
            strokes.append(np.array(points) @ turn)
    return strokes


def _pieces(row: Array, shade: Shade, limit: float, turn: Array) -> list[Array]:
    """The pieces of a level row (2, 2) along which a shade is darker than a limit."""
    count = max(2, math.ceil(float(np.ptp(row[:, 0])) / STEP) + 1)
    points = np.linspace(row[0], row[-1], count)
    return [points[[a, b - 1]] for a, b in _runs(shade.tone(points @ turn) > limit)]


def levels(hatch: Hatch) -> Array:
    """(n + 1,) share of the paper that is dark with the first 0 to n of the sets of lines drawn, eight per direction.

    With two directions they take turns: 1 - (1 - a)(1 - b), as lines that cross share their crossings.
    """
    share = min(1.0, PEN / (hatch.distance or PEN))
    count = LEVELS * len(hatch.angles)
    a, b = (np.arange(count + 1) + 1) // 2, np.arange(count + 1) // 2
    if not hatch.cross:
        a, b = np.arange(count + 1), np.zeros(count + 1, dtype=int)
    return np.asarray(1.0 - (1.0 - share * a / LEVELS) * (1.0 - share * b / LEVELS))


def toned(dark: Array, scale: float, hatch: Hatch) -> list[Array]:
    """Lines (k, 2) [m], canvas frame, whose density follows dark (h, w), the share of black; scale [m per pixel].

    Of eight neighbouring lines the k-th of ORDER is drawn where the tone is nearer to k than to k - 1 lines' share.
    """
    cv2 = opencv()
    rows, columns = dark.shape
    soft = cv2.GaussianBlur(dark.astype(np.float32), (0, 0), max(SOFT / scale, 0.3))
    shares = levels(hatch)
    limits = 0.5 * (shares[1:] + shares[:-1])
    distance = hatch.distance or PEN
    half = 0.5 * scale * np.array([columns, rows])
    radius = float(np.hypot(*half))
    lines: list[Array] = []
    count = math.ceil(radius / distance)
    s = np.arange(-radius, radius + STEP, STEP)
    for number, angle in enumerate(hatch.angles):
        along, across = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
        for k in range(-count, count):
            rank = ORDER.index(k % LEVELS)
            limit = float(limits[2 * rank + number if hatch.cross else rank])
            points = s[:, None] * along + (k + 0.5) * distance * across
            inside = (np.abs(points) <= half - 0.5 * PEN).all(axis=1)
            if not inside.any():
                continue
            points = points[inside]
            u = ((points[:, 0] + half[0]) / scale - 0.5).astype(np.float32)
            v = ((half[1] - points[:, 1]) / scale - 0.5).astype(np.float32)
            tone = cv2.remap(soft, u[:, None], v[:, None], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)[:, 0]
            lines += [points[[a, b - 1]] for a, b in _runs(tone > limit)]
    return lines


def _runs(on: np.ndarray) -> list[tuple[int, int]]:
    """Stretches (from, to) of samples that are on; short gaps are filled first, then short stretches left out."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(int))).reshape(-1, 2)
    runs: list[tuple[int, int]] = []
    for a, b in edges.tolist():
        if runs and (a - runs[-1][1]) * STEP < HOLE:
            runs[-1] = (runs[-1][0], b)
        else:
            runs.append((a, b))
    return [(a, b) for a, b in runs if (b - a) * STEP >= PIECE]
