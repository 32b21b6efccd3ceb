"""SVG files as lines: paths, shapes, groups, transforms and local <use>; nothing is fetched, run or expanded.

Strokes are drawn as they are, filled shapes by their outline, or as areas to be hatched; text in a font of the system
or in the single-line font. What an SVG may hold beyond that (pictures, scripts, references to elsewhere, entities) is
left out, and the notes say so. Of CSS the few properties count that decide whether and how a shape is drawn.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tangere import foreign
from tangere.apps.drawing.picture import svg_attributes as read
from tangere.apps.drawing.picture import svg_style as css
from tangere.apps.drawing.picture.areas import (
    OPAQUE,
    PAPER,
    Shape,
    TooTangled,
    area_of,
    borders,
    clipped_lines,
    covered,
    polygons_in,
    seen,
    shapely,
)
from tangere.apps.drawing.picture.shade import dark_of, painter, shade_of
from tangere.apps.drawing.picture.svg_attributes import Curve, clipped, dashed, flattened, subpaths
from tangere.apps.drawing.picture.svg_file import is_svg as is_svg
from tangere.apps.drawing.picture.svg_file import text_of, without_dtd
from tangere.apps.drawing.picture.svg_style import Rules, Style
from tangere.apps.drawing.picture.svg_text import runs_of
from tangere.apps.drawing.picture.tracing import Tracing
from tangere.apps.drawing.strokes.strokes import length
from tangere.errors import InvalidValue, MissingExtra
from tangere.types import Array

# Largest file [bytes]: a drawing of a million points is 20 MB.
BYTES_MAX = 32_000_000
# <use> of <use> and groups in groups: deeper is a mistake or an attack.
DEPTH_MAX = 100
# Elements drawn: 200 000 lines are weeks of drawing.
ELEMENTS_MAX = 200_000
# Points of all lines: 400 000 are weeks of drawing, and 100 MB.
POINTS_ALL = 400_000
# Sizes of the picture, and units of the file, that a point may be away: beyond, neighbours become one by rounding, and
# cutting such lines at each other takes memory without end.
FAR, FARTHEST = 1e6, 1e15
# Copies by <use>: more are an attack, or a texture that a pen should not draw.
COPIES_MAX = 10_000
# A curve is cut into lines within this share of the picture's longer side: 0.01 mm of 200 mm.
FLAT = 5e-5
# Dashes that repeat within less than this share of the longer side are none: 0.4 mm of 200, less than a pen's line.
FINEST = 2e-3
# Nor are more than this many of one line: days of drawing.
DASHES_MAX = 10_000
# Elements that hold others only for reference, and those of which nothing is to be seen.
HIDDEN = {"defs", "symbol", "clipPath", "mask", "pattern", "marker", "linearGradient", "radialGradient", "filter",
          "metadata"}  # fmt: skip
SILENT = {"title", "desc", "style", "namedview", "animate", "animateTransform", "animateMotion", "set", "view", "stop",
          "script"}  # fmt: skip
# Light that a mask must let through for what is under it to be drawn; and what is as good as none of it, or all.
MASKED, FAINT = 0.5, 0.05
GROUPS = {"g", "a", "svg", "switch"}
CAPS = {"butt": "flat", "round": "round", "square": "square"}
WHITE = {"white", "#fff", "#ffffff", "rgb(255,255,255)", "rgb(100%,100%,100%)"}


def read_svg(source: str | Path | bytes, *, font: str = "auto", areas: bool = False) -> Tracing:
    """The lines of an SVG in its own units: x right, y down, (0, 0) the upper left corner of its view box.

    font: of its text: "auto" what the SVG says where this machine has it, else the single-line font; or the name of a
    font for all of it. areas: filled shapes are areas of the result, and what they hide is left out; else they are
    drawn by their outline.
    """
    name = "the SVG" if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else foreign.read_bytes(source, BYTES_MAX)
    if len(data) > BYTES_MAX:
        raise InvalidValue(f"{name} has {len(data)} bytes; at most {BYTES_MAX} are read")
    notes: dict[str, int] = {}
    with suppress(MissingExtra):
        shapely()  # loaded before the limits that hold while reading
    with foreign.reading(name, len(data)), np.errstate(all="ignore"):
        try:
            root = foreign.xml(without_dtd(text_of(data), notes), name)
        except (InvalidValue, ValueError, LookupError) as error:
            cause = error.__cause__ if isinstance(error, InvalidValue) else error
            if cause is None or isinstance(cause, MemoryError):
                raise
            raise InvalidValue(f"{name} is not a readable SVG: {foreign.shown(cause, 200)}") from error
        if css.tag_of(root) != "svg":
            raise InvalidValue(f"{name} is not an SVG: its first element is <{foreign.shown(css.tag_of(root))[1:-1]}>")
        try:
            return _Reader(notes, font, areas).read(root, name)
        except TooTangled as error:
            raise InvalidValue(f"{name}: {error}") from error


@dataclass(frozen=True, eq=False)
class _Found:
    """A painted thing: curves with their transform and style."""

    curves: tuple[Curve, ...]
    matrix: Array
    style: Style
    clip: Any  # shapely's area, or None
    lettered: str = ""  # of text: "outlines" or "lines"


@dataclass
class _Reader:
    """Walks the tree and gathers what is painted."""

    notes: dict[str, int]
    font: str = "auto"
    areas: bool = False
    lost: dict[str, None] = field(default_factory=dict)  # the notes that say what is not drawn
    ids: dict[str, ElementTree.Element] = field(default_factory=dict)
    found: list[_Found] = field(default_factory=list)
    rules: Rules = field(default_factory=list)
    clip: Any = None  # outside of which nothing is seen just now
    count: int = 0
    copies: int = 0
    filled: int = 0  # shapes whose fill is drawn as their outline only
    frame: tuple[float, float] = (100.0, 100.0)  # what percentages refer to

    def read(self, root: ElementTree.Element, name: str) -> Tracing:
        for element in root.iter():
            tag = css.tag_of(element)
            self.ids.setdefault(element.get("id", ""), element)
            if tag == "style":
                self.rules += css.rules_of(element.text or "")
                if re.search(r"@import|url\(\s*[\"']?(?!#)", element.text or ""):
                    self._say("references to elsewhere were ignored")
            if tag == "script" or any(attribute.lower().startswith("on") for attribute in element.attrib):
                self._say("scripts were ignored")
        box, ratio = read.box_of(root), root.get("preserveAspectRatio", "")
        width, height = read.length_of(root.get("width"), None), read.length_of(root.get("height"), None)
        framed = bool(box or (width and height))
        left, top, wide, high = box or (0.0, 0.0, *((width, height) if width and height else self.frame))
        self.frame = (wide, high)
        base = np.array([[1.0, 0.0, -left], [0.0, 1.0, -top], [0.0, 0.0, 1.0]])
        if box and width and height and re.search("none|slice", ratio):
            # stretched or cut to its size; else the view box is the picture, and the empty paper beside it is left out
            base, wide, high = read.view_matrix(box, (width, height), ratio), width, height
        style = css.style_of(root, css.INHERITED, self.rules)
        if not css.gone(style):
            self._children(root, base, style, 0)
        firsts = [(one.matrix, curve[0]) for one in self.found for curve in one.curves]
        points = [abs(m[0, 0] * p.real) + abs(p.imag) for m, p in firsts] or [1.0]
        reach = max(wide, high) if framed else max(max(points), 1.0)
        shapes, count = [], 0
        for one in self.found:
            shapes.append(self._painted(one, reach))
            count += sum(map(len, shapes[-1].lines)) + sum(map(len, shapes[-1].drawn))
            if count > POINTS_ALL:
                raise InvalidValue(f"{name}: its lines have more than {POINTS_ALL} points: simplify it")
        lines, areas = seen(shapes, reach) if self.areas else (self._outlines(shapes), [])
        if framed:
            lines, cut = clipped(lines, wide, high)
            if cut:
                self._say("what lies outside the view box was cut off")
            page = shapely().box(0.0, 0.0, wide, high)
            areas = [replace(a, shape=shapely().intersection(a.shape, page)) for a in areas]
        elif lines:
            low = np.min([line.min(axis=0) for line in lines], axis=0)
            high_corner = np.max([line.max(axis=0) for line in lines], axis=0)
            wide, high = np.maximum(high_corner - low, 1e-9).tolist()
            lines = [line - low for line in lines]
            areas = [a.moved(np.array([[1.0, 0.0, -low[0]], [0.0, 1.0, -low[1]], [0.0, 0.0, 1.0]])) for a in areas]
        lines = [line if len(line) > 1 else np.repeat(line, 2, axis=0) for line in lines]
        notes = [self._counted(text) for text in self.notes]
        if not lines:
            why = f" ({'; '.join(notes)})" if notes else ""
            raise InvalidValue(f"{name}: nothing to draw in this SVG{why}")
        missing = [self._counted(text) for text in self.lost]
        if self.filled:
            many = "1 filled shape or letter is" if self.filled == 1 else f"{self.filled} filled shapes or letters are"
            missing.append(f"{many} drawn by the outline only: --hatch lines fills")
        areas = [area for area in areas if polygons_in(area.shape)]
        return Tracing(
            tuple(lines), wide, high, "svg", None, tuple(notes), areas=tuple(areas), missing=tuple(missing)
        )

    def _say(self, text: str, lost: bool = False) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1
        if lost:
            self.lost[text] = None

    def _lose(self, text: str) -> None:
        self._say(text, lost=True)

    def _once(self, text: str) -> None:
        self.notes.setdefault(text, 1)

    def _counted(self, text: str) -> str:
        count = self.notes[text]
        return text if count == 1 else f"{text} ({count} times)"

    def _painted(self, one: _Found, reach: float) -> Shape:
        """Curves as lines, and how they are painted."""
        style = one.style
        lines = [flattened(curve, one.matrix, FLAT * reach) for curve in one.curves]
        near = [line for line in lines if np.isfinite(line).all() and np.abs(line).max() <= min(FAR * reach, FARTHEST)]
        if len(near) < len(lines):
            self._say("a line far away from the picture was left out")
        lines = near
        stroked, filled = css.stroked(style), css.filled(style)
        drawn: list[Array] = []
        if stroked or one.lettered == "lines":
            drawn = [part for line in lines for part in self._dashed(line, one.matrix, style, reach)]
        tone = dark_of(style["fill"], style, self.ids) if filled and one.lettered != "lines" else None
        through = min(1.0, css.share(style["fill-opacity"]) * css.share(style.get("opacity", "1")))
        shade = None
        if self.areas and tone is not None and style["fill"].startswith("url("):
            if shade := shade_of(style["fill"], style, self.ids, lines, one.matrix, self.frame):
                shade = shade.weaker(through)
                tone = max(shade.tones)
            elif (drawer := painter(style["fill"], self.ids)) is not None and css.tag_of(drawer) == "pattern":
                self._lose("a pattern is hatched in black")
        # where the letter is its line, the paint of the line is that of the letter
        paint = style["fill"] if one.lettered == "lines" and filled else style["stroke"]
        width = 0.0
        if stroked and one.lettered != "lines":
            scale = float(np.sqrt(abs(np.linalg.det(one.matrix[:2, :2]))))
            width = scale * (read.length_of(style["stroke-width"], reach / scale if scale else None) or 0.0)
        pale = bool(drawn) and dark_of(paint, style, self.ids) < PAPER
        return Shape(
            tuple(lines), tuple(drawn), tone if tone is None or shade else tone * through, shade, through >= OPAQUE,
            style["fill-rule"], width, CAPS.get(style["stroke-linecap"], "flat"), pale, one.clip,
        )  # fmt: skip

    def _outlines(self, shapes: list[Shape]) -> list[Array]:
        """The lines of all shapes, whatever hides them; areas by their outline, but white ones without a line."""
        lines: list[Array] = []
        for shape, one in zip(shapes, self.found, strict=True):
            white = one.style["fill"] in WHITE
            if not shape.drawn and white and not one.lettered:
                self._say("white shapes without a line were taken for paper")
                continue
            if shape.tone is not None and shape.tone >= PAPER:
                self.filled += any(len(line) > 2 for line in shape.lines)
            own = list(shape.drawn or shape.lines)
            if shape.clip is None:
                lines += own
            elif shape.drawn or shape.tone is None:
                lines += clipped_lines(own, shape.clip)
            else:
                lines += borders(shapely().intersection(area_of(own, shape.rule), shape.clip))
        return lines

    def _children(self, element: ElementTree.Element, matrix: Array, style: Style, depth: int) -> None:
        for child in element:
            self._element(child, matrix, style, depth + 1)
            if css.tag_of(element) == "switch":
                return

    def _element(self, element: ElementTree.Element, matrix: Array, outer: Style, depth: int) -> None:
        tag = css.tag_of(element)
        if tag in HIDDEN or tag in SILENT:
            return
        self.count += 1
        if self.count > ELEMENTS_MAX or depth > DEPTH_MAX:
            self.notes["too many or too deeply nested elements: the rest was left out"] = 1
            self.lost["too many or too deeply nested elements: the rest was left out"] = None
            return
        style = css.style_of(element, outer, self.rules)
        if css.gone(style):
            return
        for note in dict.fromkeys(note for key, note in css.LEFT_OUT.items() if style.get(key, "none") != "none"):
            self._lose(note)
        matrix = matrix @ read.matrix_of(style.get("transform") or element.attrib.get("transform", ""))
        outside = self.clip
        for key, kind in (("clip-path", "clipPath"), ("mask", "mask")):
            if style.get(key, "none") != "none":
                self._clip(kind, style[key], matrix, depth)
        if tag in GROUPS:
            if tag == "svg":
                matrix = matrix @ self._viewport(element, element)
            self._children(element, matrix, style, depth)
        elif tag == "use":
            self._use(element, matrix, style, depth)
        elif tag == "text":
            self._text(element, matrix, style)
        elif tag == "foreignObject":
            self._lose("text in <foreignObject> is not drawn: turn it into paths")
        elif tag == "image":
            self._lose("pictures inside the SVG are not drawn")
        else:
            self._shape(tag, element, matrix, style)
        self.clip = outside

    def _clip(self, kind: str, link: str, matrix: Array, depth: int) -> None:
        """Narrow what is seen to a <clipPath> or a <mask>; one that cannot be applied is said."""
        element, what = painter(link, self.ids), "clip paths" if kind == "clipPath" else "masks"
        if element is None or css.tag_of(element) != kind or depth > DEPTH_MAX:
            self._lose(f"{what} are not applied: all of the lines are drawn")
            return
        if "objectBoundingBox" in (element.get("clipPathUnits"), element.get("maskContentUnits")):
            self._lose(f"{what} in shares of a shape's box are not applied: all of the lines are drawn")
            return
        inner = _Reader({}, self.font, ids=self.ids, rules=self.rules, count=self.count, frame=self.frame)
        matrix = matrix @ read.matrix_of(element.get("transform", ""))
        inner._children(element, matrix, css.style_of(element, css.INHERITED, self.rules), depth)
        own = shapely().geometry.Polygon()
        for one in inner.found:
            shape = inner._painted(one, max(self.frame))
            lets = 1.0
            if kind == "mask":  # what is painted brightly is seen; what is painted over it darkly is not
                lets = 1.0 - dark_of(one.style["fill" if shape.tone is not None else "stroke"], one.style, self.ids)
                lets *= css.share(one.style["fill-opacity"]) * css.share(one.style.get("opacity", "1"))
                if FAINT < lets < 1.0 - FAINT:
                    self._lose("a mask with tones is applied where it lets more than half through")
            part = covered(shape, one.style["clip-rule"] if kind == "clipPath" else None)
            own = shapely().union(own, part) if lets >= MASKED else shapely().difference(own, part)
        self.count, self.clip = inner.count, own if self.clip is None else shapely().intersection(self.clip, own)

    def _text(self, element: ElementTree.Element, matrix: Array, style: Style) -> None:
        for run in runs_of(element, style, self.rules, self.font, self.frame, self._lose, self._once):
            shown = run.style["visibility"] not in ("hidden", "collapse")
            if shown and (css.stroked(run.style) or css.filled(run.style)):
                kind = "outlines" if run.outlines else "lines"
                self.found.append(_Found(run.curves, matrix, {**run.style, "fill-rule": "nonzero"}, self.clip, kind))

    def _use(self, element: ElementTree.Element, matrix: Array, style: Style, depth: int) -> None:
        link = element.get("href") or element.get("{http://www.w3.org/1999/xlink}href") or ""
        target = self.ids.get(link[1:]) if len(link) > 1 and link.startswith("#") else None
        if target is None:
            self._say(f"references to {'nothing' if link.startswith('#') else 'elsewhere'} were ignored", lost=True)
            return
        self.copies += 1
        if self.copies > COPIES_MAX:
            self.notes[f"more than {COPIES_MAX} copies: the rest was left out"] = 1
            return
        matrix = matrix @ self._shift(element)
        if css.tag_of(target) == "symbol":
            self.count += 1
            style = css.style_of(target, style, self.rules)
            if self.count <= ELEMENTS_MAX and depth <= DEPTH_MAX and not css.gone(style):
                self._children(target, matrix @ self._viewport(target, element), style, depth + 1)
        else:
            self._element(target, matrix, style, depth + 1)

    def _shift(self, element: ElementTree.Element) -> Array:
        """(3, 3) to where an element's x and y are."""
        x, y = self._number(element, "x", 0), self._number(element, "y", 1)
        return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])

    def _viewport(self, element: ElementTree.Element, sized: ElementTree.Element) -> Array:
        """The transform of a nested <svg> or a <symbol>: its place, and its view box fitted into its size."""
        matrix = self._shift(element) if css.tag_of(element) == "svg" else np.eye(3)
        if box := read.box_of(element):
            sides = zip(("width", "height"), self.frame, strict=True)
            size = [read.length_of(sized.get(key) or element.get(key), whole) or whole for key, whole in sides]
            matrix = matrix @ read.view_matrix(box, (size[0], size[1]), element.get("preserveAspectRatio", ""))
        return matrix

    def _shape(self, tag: str, element: ElementTree.Element, matrix: Array, style: Style) -> None:
        data = read.shape_data(tag, element, lambda key, axis: self._number(element, key, axis))
        if data is None:
            if not element.tag.startswith("{") or element.tag.startswith("{http://www.w3.org/2000/svg}"):
                self._lose(f"<{tag}> is not drawn")
            return
        curves, whole = subpaths(data)
        if not whole:
            self._lose("a path with an error was drawn up to it")
        hidden = style["visibility"] in ("hidden", "collapse")
        if curves and not hidden and (css.stroked(style) or css.filled(style)):
            self.found.append(_Found(tuple(curves), matrix, style, self.clip))

    def _dashed(self, line: Array, matrix: Array, style: Style, reach: float) -> list[Array]:
        """The dashes of a line, or the line itself where it has none."""
        dashes = css.dashes_of(style["stroke-dasharray"])
        if not dashes or not css.stroked(style) or len(line) < 2:
            return [line]
        scale = float(np.sqrt(abs(np.linalg.det(matrix[:2, :2]))))
        period = scale * sum(dashes)
        if period < FINEST * reach or length(line) > DASHES_MAX * period:
            self._say("dashes too fine to draw became whole lines")
            return [line]
        return dashed(line, [scale * d for d in dashes], scale * css.share(style["stroke-dashoffset"]))

    def _number(self, element: ElementTree.Element, key: str, axis: int) -> float:
        """An attribute as a length; percentages of the width (axis 0), height (1) or the diagonal's share (2)."""
        whole = (*self.frame, float(np.hypot(*self.frame) / np.sqrt(2.0)))[axis]
        return read.length_of(element.get(key), whole) or 0.0
