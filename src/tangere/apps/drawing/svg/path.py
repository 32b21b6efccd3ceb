"""SVG path data and shapes as lines and cubic curves; their points, cut at a border and into dashes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tangere.types import Array

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COMMAND = re.compile(r"[MmZzLlHhVvCcSsQqTtAa]")
BLANK = re.compile(r"[\s,]*")
# Numbers that each command takes.
TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
# An arc is cut into pieces of at most 45 degrees: a cubic is then within 4e-6 of the radius.
ARC_PIECE = np.pi / 4.0
# A curve has at most this many points, whatever its size.
POINTS_MAX = 1000

# A subpath: its points as cubics, (1 + 3 k) complex numbers: start, then two handles and an end per piece; straight
# pieces repeat their ends as handles.
Curve = list[complex]


def subpaths(data: str) -> tuple[list[Curve], bool]:
    """(the subpaths of a path's `d`, whether all of it could be read); an error ends the path there, as SVG asks."""
    curves: list[Curve] = []
    current: Curve = []
    here = start = 0j
    handle = 0j  # of the curve before, mirrored by S and T
    last = ""
    at = BLANK.match(data, 0).end()  # type: ignore[union-attr]  # a pattern that may be empty always matches
    command = ""
    while at < len(data):
        found = COMMAND.match(data, at)
        if found:
            command, at = found.group(), found.end()
        elif not command or command in "Zz":
            return _finished(curves, current), False
        kind, relative = command.upper(), command.islower()
        values, at = _values(data, at, kind)
        if values is None or (not curves and not current and kind != "M"):
            return _finished(curves, current), False
        base = here if relative else 0j
        if kind == "M":
            _finish(curves, current)
            here = start = base + complex(values[0], values[1])
            current = [here]
            command = "l" if relative else "L"
        elif kind == "Z":
            if current:
                if abs(here - start) > 0.0:
                    current += [here, start, start]
                current[-1] = current[0]
                _finish(curves, current)
            here = start
            current = []
        else:
            if not current:
                current = [here]
            if kind == "L":
                end = base + complex(values[0], values[1])
                pieces = [here, end, end]
            elif kind == "H":
                end = complex(values[0] + (here.real if relative else 0.0), here.imag)
                pieces = [here, end, end]
            elif kind == "V":
                end = complex(here.real, values[0] + (here.imag if relative else 0.0))
                pieces = [here, end, end]
            elif kind == "A":
                end = base + complex(values[5], values[6])
                pieces = arc(here, end, values[0], values[1], values[2], values[3] != 0.0, values[4] != 0.0)
            else:
                pairs = [base + complex(values[k], values[k + 1]) for k in range(0, len(values), 2)]
                end = pairs[-1]
                if kind == "C":
                    pieces = pairs
                elif kind == "S":
                    pieces = [2 * here - handle if last in ("C", "S") else here, *pairs]
                else:  # Q and T: a quadratic is a cubic with handles two thirds of the way to its own
                    control = pairs[0] if kind == "Q" else 2 * here - handle if last in ("Q", "T") else here
                    pieces = [here + (control - here) * 2 / 3, end + (control - end) * 2 / 3, end]
                    handle = control
            if kind in ("C", "S"):
                handle = pieces[-2]
            current += pieces
            here = end
        last = kind
        at = BLANK.match(data, at).end()  # type: ignore[union-attr]
    return _finished(curves, current), True


def arc(start: complex, end: complex, rx: float, ry: float, degrees: float, large: bool, sweep: bool) -> Curve:
    """Cubics (without the start) of an SVG arc: from end points to centre and angles as SVG's appendix does."""
    rx, ry = abs(rx), abs(ry)
    if rx == 0.0 or ry == 0.0 or start == end:
        return [start, end, end]
    turn = np.exp(1j * np.deg2rad(degrees))
    half = (start - end) / 2 / turn
    x, y = half.real, half.imag
    excess = (x / rx) ** 2 + (y / ry) ** 2
    if excess > 1.0:  # too small to reach: scaled up until it does
        rx, ry = rx * np.sqrt(excess), ry * np.sqrt(excess)
        excess = 1.0
    factor = np.sqrt(max(0.0, 1.0 / excess - 1.0)) * (-1.0 if large == sweep else 1.0)
    centre = factor * complex(rx * y / ry, -ry * x / rx)
    first = np.angle(complex((x - centre.real) / rx, (y - centre.imag) / ry))
    last = np.angle(complex((-x - centre.real) / rx, (-y - centre.imag) / ry))
    angle = last - first
    if sweep and angle < 0.0:
        angle += 2 * np.pi
    elif not sweep and angle > 0.0:
        angle -= 2 * np.pi
    middle = centre * turn + (start + end) / 2
    count = max(1, int(np.ceil(abs(angle) / ARC_PIECE - 1e-9)))
    step = angle / count
    reach = 4.0 / 3.0 * np.tan(step / 4.0)
    result: Curve = []
    for k in range(count):
        a, b = np.exp(1j * (first + k * step)), np.exp(1j * (first + (k + 1) * step))
        for unit in (a + 1j * reach * a, b - 1j * reach * b, b):
            result.append(complex(middle + complex(rx * unit.real, ry * unit.imag) * turn))
    result[-1] = end
    return result


def ellipse(x: float, y: float, rx: float, ry: float) -> Curve:
    """A closed ellipse."""
    right, left = complex(x + rx, y), complex(x - rx, y)
    return [right, *arc(right, left, rx, ry, 0.0, False, True), *arc(left, right, rx, ry, 0.0, False, True)]


def rectangle(x: float, y: float, width: float, height: float, rx: float, ry: float) -> Curve:
    """A closed rectangle, its corners rounded by rx, ry."""
    rx, ry = min(rx, width / 2), min(ry, height / 2)
    if rx <= 0.0 or ry <= 0.0:
        return polygon(
            [complex(x, y), complex(x + width, y), complex(x + width, y + height), complex(x, y + height)], True
        )
    r, b = x + width, y + height
    stops = [(x + rx, y, r - rx, y), (r, y + ry, r, b - ry), (r - rx, b, x + rx, b), (x, b - ry, x, y + ry)]
    curve: Curve = [complex(x + rx, y)]
    for k, (ax, ay, bx, by) in enumerate(stops):
        a, c = complex(ax, ay), complex(bx, by)
        curve += [a, c, c]
        following = stops[(k + 1) % 4]
        curve += arc(c, complex(following[0], following[1]), rx, ry, 0.0, False, True)
    return curve


def polygon(points: list[complex], closing: bool) -> Curve:
    """A polyline through points, closed if wanted."""
    curve: Curve = points[:1]
    for before, point in pairwise(points):
        curve += [before, point, point]
    if closing and len(points) > 2 and points[0] != points[-1]:
        curve += [points[-1], points[0], points[0]]
    return curve


def flattened(curve: Curve, matrix: Array, tolerance: float) -> Array:
    """(k, 2) points of a curve after the transform `matrix` (3, 3), nowhere farther than `tolerance` from it.

    A cubic with second differences of at most M is within 3/4 M / n^2 of n straight pieces.
    """
    z = np.array(curve)
    points = np.stack([z.real, z.imag], axis=1) @ matrix[:2, :2].T + matrix[:2, 2]
    z = points[:, 0] + 1j * points[:, 1]
    parts = [z[:1]]
    p0, p1, p2, p3 = z[0:-1:3], z[1::3], z[2::3], z[3::3]
    # straight pieces repeat their ends as handles: their second difference says nothing
    straight = (p1 == p0) & (p2 == p3)
    bend = np.where(straight, 0.0, np.maximum(np.abs(p0 - 2 * p1 + p2), np.abs(p1 - 2 * p2 + p3)))
    counts = np.clip(np.ceil(np.sqrt(0.75 * bend / tolerance)), 1, POINTS_MAX).astype(int)
    for k, count in enumerate(counts.tolist()):
        if count == 1:
            parts.append(p3[k : k + 1])
            continue
        t = np.arange(1, count + 1) / count
        s = 1.0 - t
        piece = s**3 * p0[k] + 3 * s * s * t * p1[k] + 3 * s * t * t * p2[k] + t**3 * p3[k]
        piece[-1] = p3[k]
        parts.append(piece)
    flat = np.concatenate(parts)
    moves = np.concatenate([[True], flat[1:] != flat[:-1]])
    flat = flat[moves]
    return np.stack([flat.real, flat.imag], axis=1)


def _finish(curves: list[Curve], current: Curve) -> None:
    if len(current) > 1:
        curves.append(current)


def _finished(curves: list[Curve], current: Curve) -> list[Curve]:
    _finish(curves, current)
    return curves


def _values(data: str, at: int, kind: str) -> tuple[list[float] | None, int]:
    """The numbers of one command from position `at`; None where they are missing. An arc's flags may touch."""
    values: list[float] = []
    for k in range(TAKES[kind]):
        at = BLANK.match(data, at).end()  # type: ignore[union-attr]
        if kind == "A" and k in (3, 4):
            if data[at : at + 1] not in ("0", "1"):
                return None, at
            values.append(float(data[at]))
            at += 1
            continue
        found = NUMBER.match(data, at)
        if not found:
            return None, at
        value = float(found.group())
        if not np.isfinite(value):
            return None, at
        values.append(value)
        at = found.end()
    return values, at


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
