"""What attributes of SVG say: path data, shapes, lengths, transforms; lines cut and dashed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import numpy as np

from tangere.apps.drawing.strokes.strokes import along, between
from tangere.types import Array

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# What a path is made of, blanks and commas before it; the two flags of an arc may touch what follows.
VALUE, FLAG, COMMAND = (
    re.compile(rf"[\s,]*({part})") for part in (NUMBER.pattern, "[01]", "[MmZzLlHhVvCcSsQqTtAa]")
)
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
    here = start = handle = 0j  # handle: of the curve before, mirrored by S and T
    last, whole = "", True
    for command, values in _commands(data):
        kind, base = command.upper(), here if command.islower() else 0j
        if not kind or (not last and kind != "M"):
            whole = False
            break
        if kind == "Z":
            if current:
                current += [here, start, start] if here != start else []
                current[-1] = current[0]
            here, current = start, []
        elif kind == "M":
            here = start = base + complex(values[0], values[1])
            curves.append(current := [here])
        else:
            if not current:
                curves.append(current := [here])
            if kind in "HV":
                x, y = base.real + values[0], base.imag + values[0]
                pairs = [complex(x, here.imag) if kind == "H" else complex(here.real, y)]
            else:  # of an arc the last two numbers are a point
                pairs = [base + complex(*values[k : k + 2]) for k in range(len(values) % 2, len(values), 2)]
            end = pairs[-1]
            pieces = [here, end, end]
            if kind in "CS":
                mirrored = 2 * here - handle if last in ("C", "S") else here
                pieces = pairs if kind == "C" else [mirrored, *pairs]
                handle = pieces[-2]
            elif kind in "QT":  # a quadratic is a cubic with handles two thirds of the way to its own
                mirrored = 2 * here - handle if last in ("Q", "T") else here
                handle = pairs[0] if kind == "Q" else mirrored
                pieces = [here + (handle - here) * 2 / 3, end + (handle - end) * 2 / 3, end]
            elif kind == "A":
                pieces = arc(here, end, *values[:3], large=values[3] != 0.0, sweep=values[4] != 0.0)
            current += pieces
            here = end
        last = kind
    return [curve for curve in curves if len(curve) > 1], whole


def _commands(data: str) -> Iterator[tuple[str, list[float]]]:
    """Letter and numbers of each command, repeated ones too; the letter is "" where it cannot be read on."""
    data = data.rstrip(", \t\r\n\f\v")
    at, command = 0, ""
    while at < len(data):
        if found := COMMAND.match(data, at):
            command, at = found.group(1), found.end()
        elif command in ("", "Z", "z"):
            yield "", []
            return
        values: list[float] = []
        for k in range(TAKES[command.upper()]):
            found = (FLAG if command in "Aa" and k in (3, 4) else VALUE).match(data, at)
            if not found or not math.isfinite(float(found.group(1))):
                yield "", []
                return
            values.append(float(found.group(1)))
            at = found.end()
        yield command, values
        command = {"M": "L", "m": "l"}.get(command, command)


def arc(start: complex, end: complex, rx: float, ry: float, degrees: float, *, large: bool, sweep: bool) -> Curve:
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
    if not np.isfinite(angle):  # radii or ends of 1e308: a straight line
        return [start, end, end]
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
    counts = np.clip(np.nan_to_num(np.ceil(np.sqrt(0.75 * bend / tolerance))), 1, POINTS_MAX).astype(int)
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


def clipped(lines: list[Array], width: float, height: float) -> tuple[list[Array], bool]:
    """The parts of polylines (k, 2) inside 0..width x 0..height, and whether anything was outside.

    A line that leaves and comes back becomes two. Each segment p + t d is cut to the t for which all four borders have
    it inside (Liang and Barsky).
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
    return [np.clip(line, 0.0, [width, height]) for line in result], cut


def dashed(line: Array, pattern: list[float], offset: float = 0.0) -> list[Array]:
    """The drawn pieces of a polyline (k, 2): lengths drawn and left out in turn, from `offset` on in the pattern.

    A piece keeps the corners of the line within it; a dash of length 0 is a dot.
    """
    at = along(line)
    whole = float(at[-1])
    period = sum(pattern)
    begin = -(offset % period)
    result: list[Array] = []
    while begin < whole:
        for k, span in enumerate(pattern):
            first, last = max(begin, 0.0), min(begin + span, whole)
            begin += span
            if k % 2 == 0 and first <= last and first < whole:
                result.append(between(line, at, first, last))
    return result


# CSS pixels per unit: an inch has 96 of them; em and ex with the usual 16 pixel font.
UNITS = {
    "": 1.0, "px": 1.0, "in": 96.0, "mm": 96.0 / 25.4, "cm": 96.0 / 2.54, "pt": 96.0 / 72.0, "pc": 16.0,
    "q": 96.0 / 101.6, "em": 16.0, "ex": 8.0, "rem": 16.0,
}  # fmt: skip


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


def shape_data(tag: str, element: ElementTree.Element, number: Callable[[str, int], float]) -> str | None:
    """A shape as the path data that SVG says it is, "" where it has no size; None where it is no shape.

    number: an attribute as a length, by its name and the axis of its percentages.
    """
    if tag == "path":
        return element.get("d", "")
    if tag == "line":
        return f"M{number('x1', 0)} {number('y1', 1)} {number('x2', 0)} {number('y2', 1)}"
    if tag in ("polyline", "polygon"):
        values = numbers_of(element.get("points", ""))
        ring = tag == "polygon" and len(values) > 5
        return f"M{' '.join(map(str, values[: len(values) // 2 * 2]))}{'Z' if ring else ''}" if values[1:] else ""
    rx, ry = number("rx", 0), number("ry", 1)
    rx, ry = (rx if element.get("rx") else ry), (ry if element.get("ry") else rx)
    if tag in ("circle", "ellipse"):
        if tag == "circle":
            rx = ry = number("r", 2)
        x, y, turn = number("cx", 0), number("cy", 1), f"A{rx} {ry} 0 0 1"
        return f"M{x + rx} {y} {turn} {x - rx} {y} {turn} {x + rx} {y}" if rx > 0.0 and ry > 0.0 else ""
    if tag == "rect":
        x, y, width, height = number("x", 0), number("y", 1), number("width", 0), number("height", 1)
        if not (width > 0.0 and height > 0.0):
            return ""
        r, b, rx, ry = x + width, y + height, min(rx, width / 2), min(ry, height / 2)
        if rx <= 0.0 or ry <= 0.0:
            return f"M{x} {y} H{r} V{b} H{x} Z"
        turn = f"A{rx} {ry} 0 0 1"
        return (
            f"M{x + rx} {y} H{r - rx} {turn} {r} {y + ry} V{b - ry} {turn} {r - rx} {b} "
            f"H{x + rx} {turn} {x} {b - ry} V{y + ry} {turn} {x + rx} {y} Z"
        )
    return None


def box_of(element: ElementTree.Element) -> list[float]:
    """x, y, width and height of an element's view box, [] where it has none."""
    box = numbers_of(element.get("viewBox", ""))
    return box if len(box) == 4 and box[2] > 0.0 and box[3] > 0.0 else []
