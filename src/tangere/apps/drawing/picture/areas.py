"""Areas: what a painted shape covers, what of it is to be seen under the shapes painted later, and clipping.

Shapes are painted one over the other. From the last to the first, each is seen where none of the later ones covers it.
Cutting and joining of areas is done by shapely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.apps.drawing.picture.shade import Shade
from tangere.errors import InvalidValue, extra
from tangere.types import Array

# An area lighter than this [share of black] is paper.
PAPER = 0.03
# A fill that lets through more than this hides nothing.
OPAQUE = 0.5
# A line wider than this share of the picture's longer side, 2 mm of 200, is an area of its own.
WIDE = 0.01
# Pieces smaller than this share of the longer side squared are crumbs of cutting: 0.04 mm2 of 200 mm.
CRUMB = 1e-6


# Crossings of one border that are cut: each makes a face, whose inside is looked for among all lines.
CROSSINGS_MAX = 20_000
SAMPLE = 200  # pieces by which crossings are judged


class TooTangled(InvalidValue):
    """A shape whose border crosses itself too often to be cut."""


@dataclass(frozen=True)
class Area:
    """An area to be hatched."""

    shape: Any  # shapely's polygon or polygons, in the units of the picture, later in m
    tone: float  # share of black, 0 to 1; of a gradient the darkest
    shade: Shade | None = None  # of a gradient: the tone of each point

    def moved(self, matrix: Array) -> Area:
        """The same with every point p at matrix (3, 3) p."""
        shape = shapely().transform(self.shape, lambda p: p @ matrix[:2, :2].T + matrix[:2, 2])
        return Area(shape, self.tone, None if self.shade is None else self.shade.moved(matrix))


@dataclass(frozen=True, eq=False)
class Shape:
    """A painted shape in the units of its picture."""

    lines: tuple[Array, ...]  # each (k, 2): subpaths, for an area closed or not
    drawn: tuple[Array, ...] = ()  # the same as its line is drawn: with dashes; () where it has no line
    tone: float | None = None  # of its fill, share of black; None without a fill
    shade: Shade | None = None  # of its fill, where that is a gradient
    opaque: bool = True
    rule: str = "nonzero"  # or evenodd: which of its rings are holes
    width: float = 0.0  # of its line
    cap: str = "flat"  # how a wide line ends: flat, round or square
    pale: bool = False  # its line is white
    clip: Any = None  # shapely's area outside which nothing of it is seen


def shapely() -> Any:
    """shapely's module, or the error that says how to install it."""
    with extra("areas are cut and hatched by shapely: pip install 'tangere[draw]'"):
        import shapely as module
        import shapely.geometry
        import shapely.ops
    return module


def area_of(rings: Sequence[Array], rule: str = "nonzero") -> Any:
    """The area inside of rings (k, 2), by SVG's fill rules: winding number not zero, or odd.

    All lines are cut where they cross; of each face that they enclose a point inside decides, by the winding number
    w = sum over the rings of the times that they go round it.
    """
    shp = shapely()
    loops = []
    for ring in rings:
        closed = np.concatenate([ring, ring[:1]]) if (ring[0] != ring[-1]).any() else ring
        if len(closed) > 3:
            loops.append(closed)
    if not loops:
        return shp.geometry.Polygon()
    if len(loops) == 1:
        only = shp.geometry.Polygon(loops[0])
        if only.is_valid:
            return only
    _untangled(loops)
    borders = shp.unary_union([shp.geometry.LineString(loop) for loop in loops])
    faces = list(shp.ops.polygonize(borders))
    inside = [shp.point_on_surface(face) for face in faces]
    turns = _winding(np.array([(p.x, p.y) for p in inside]).reshape(-1, 2), loops)
    filled = turns % 2 != 0 if rule == "evenodd" else turns != 0
    return shp.unary_union([face for face, full in zip(faces, filled.tolist(), strict=True) if full])


def covered(shape: Shape, rule: str | None = None) -> Any:
    """What a shape covers as a mask or (rule: of its rings) as a clip path, where only its fill counts."""
    shp = shapely()
    fill = area_of(shape.lines, rule or shape.rule) if rule or shape.tone is not None else shp.geometry.Polygon()
    if not rule and shape.drawn and shape.width > 0.0:
        flat = [shp.geometry.LineString(line) for line in shape.drawn if len(line) > 1]
        fill = shp.union(fill, shp.unary_union(shp.buffer(flat, 0.5 * shape.width, cap_style=shape.cap)))
    return fill if shape.clip is None else shp.intersection(fill, shape.clip)


def _untangled(loops: Sequence[Array]) -> None:
    """Raise where lines cross each other more often than can be cut: judged by a sample of their pieces."""
    starts = np.concatenate([loop[:-1] for loop in loops])
    ways = np.concatenate([np.diff(loop, axis=0) for loop in loops])
    every = len(starts)
    some = np.random.default_rng(1).choice(every, min(every, SAMPLE), replace=False)
    found = 0
    for k in some.tolist():
        gap, way = starts - starts[k], ways[k]
        turn = way[0] * ways[:, 1] - way[1] * ways[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (gap[:, 0] * ways[:, 1] - gap[:, 1] * ways[:, 0]) / turn
            u = (gap[:, 0] * way[1] - gap[:, 1] * way[0]) / turn
        found += int(np.count_nonzero((t > 0.0) & (t < 1.0) & (u > 0.0) & (u < 1.0)))
    crossings = found * every / (2 * len(some))
    if crossings > CROSSINGS_MAX:
        raise TooTangled(f"an area whose border crosses itself about {crossings:.0f} times; {CROSSINGS_MAX} can be cut")


def _winding(points: Array, loops: Sequence[Array]) -> Any:
    """(n,) how many times the loops go round each point, counter-clockwise positive, by crossings of a ray to +x."""
    starts = np.concatenate([loop[:-1] for loop in loops])
    ends = np.concatenate([loop[1:] for loop in loops])
    turns = np.zeros(len(points), dtype=int)
    for k, (x, y) in enumerate(points.tolist()):
        up, down = (starts[:, 1] <= y) & (ends[:, 1] > y), (starts[:, 1] > y) & (ends[:, 1] <= y)
        left = (ends[:, 0] - starts[:, 0]) * (y - starts[:, 1]) - (x - starts[:, 0]) * (ends[:, 1] - starts[:, 1])
        turns[k] = int(np.count_nonzero(up & (left > 0.0))) - int(np.count_nonzero(down & (left < 0.0)))
    return turns


def clipped_lines(lines: Iterable[Array], clip: Any, outside: bool = False) -> list[Array]:
    """The parts of lines (k, 2) inside an area, or outside of it."""
    shp = shapely()
    result: list[Array] = []
    shp.prepare(clip)
    for line in lines:
        if len(line) < 2 or not np.ptp(line, axis=0).any():
            if shp.intersects_xy(clip, *line[0]) != outside:
                result.append(line)
            continue
        whole = shp.geometry.LineString(line)
        if shp.disjoint(clip, whole) or shp.contains_properly(clip, whole):
            if shp.disjoint(clip, whole) == outside:
                result.append(line)
            continue
        part = shp.difference(whole, clip) if outside else shp.intersection(whole, clip)
        result += lines_in(part, joined=True)
    return result


def lines_in(geometry: Any, joined: bool = False) -> list[Array]:
    """The lines of whatever shapely made, points left out; joined: ends that meet become one line."""
    shp = shapely()
    parts = [p for p in shp.get_parts(geometry, return_index=False) if p.geom_type in ("LineString", "LinearRing")]
    parts += [p for g in shp.get_parts(geometry) if g.geom_type.startswith("Multi") for p in shp.get_parts(g)]
    parts = [p for p in parts if p.geom_type in ("LineString", "LinearRing") and p.length > 0.0]
    if joined and len(parts) > 1:
        merged = shp.line_merge(shp.geometry.MultiLineString(parts))
        parts = list(shp.get_parts(merged))
    return [np.asarray(shp.get_coordinates(p)) for p in parts]


def polygons_in(geometry: Any, least: float = 0.0) -> list[Any]:
    """The polygons of whatever shapely made, above an area; lines and points are left out."""
    shp = shapely()
    parts = [p for g in shp.get_parts(geometry) for p in shp.get_parts(g)]
    return [p for p in parts if p.geom_type == "Polygon" and p.area > least]


def borders(geometry: Any, least: float = 0.0) -> list[Array]:
    """The rings round the polygons of whatever shapely made, and round their holes."""
    parts = polygons_in(geometry, least)
    return [np.asarray(ring.coords) for part in parts for ring in (part.exterior, *part.interiors)]


def seen(shapes: Sequence[Shape], longest: float) -> tuple[list[Array], list[Area]]:
    """(lines, areas) that are to be seen of shapes painted one after the other; longest: side of the picture.

    Lines are those of the shapes, and the borders of their areas; where two of these are the same, both are there.
    """
    shp = shapely()
    hidden = shp.geometry.Polygon()
    lines: list[list[Array]] = []
    areas: list[list[Area]] = []
    for shape in reversed(shapes):
        own_lines: list[Array] = []
        own_areas: list[Area] = []
        fill = area_of(shape.lines, shape.rule) if shape.tone is not None else None
        stroke = None
        if shape.drawn and (shape.pale or shape.width > WIDE * longest):
            flat = [shp.geometry.LineString(line) for line in shape.drawn if len(line) > 1]
            half = 0.5 * max(shape.width, 1e-3 * longest)
            stroke = shp.unary_union(shp.buffer(flat, half, cap_style=shape.cap, join_style="mitre"))
        elif shape.drawn:
            kept = shape.drawn if shape.clip is None else clipped_lines(shape.drawn, shape.clip)
            own_lines += clipped_lines(kept, hidden, outside=True)
        pen = (stroke, 0.0 if shape.pale else 1.0, True, None)
        for area, tone, opaque, shade in (pen, (fill, shape.tone or 0.0, shape.opaque, shape.shade)):
            if area is None or area.is_empty:
                continue
            whole = area if shape.clip is None else shp.intersection(area, shape.clip)
            rest = polygons_in(shp.difference(whole, hidden), CRUMB * longest**2)
            if tone >= PAPER and rest:
                own_areas.append(Area(shp.geometry.MultiPolygon(rest), tone, shade))
                own_lines += borders(own_areas[-1].shape)
            if opaque:
                hidden = shp.union(hidden, whole)
        lines.append(own_lines)
        areas.append(own_areas)
    return [one for own in reversed(lines) for one in own], [one for own in reversed(areas) for one in own]
