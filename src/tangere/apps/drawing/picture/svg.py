"""SVG files as lines: paths, shapes, groups, transforms and local <use>; nothing is fetched, run or expanded.

Strokes are drawn as they are, filled shapes by their outline. What an SVG may hold beyond that (text, pictures,
scripts, references to elsewhere, entities) is left out, and the notes say so. Of CSS the few properties count that
decide whether and how a shape is drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from tangere.apps.drawing.picture import svg_attributes as read
from tangere.apps.drawing.picture.svg_attributes import Curve, Rules, Style, clipped, dashed, flattened, subpaths
from tangere.apps.drawing.picture.tracing import Tracing
from tangere.apps.drawing.strokes.strokes import length
from tangere.errors import InvalidValue
from tangere.types import Array

# Largest file [bytes]: a drawing of a million points is 20 MB.
BYTES_MAX = 32_000_000
# <use> of <use> and groups in groups: deeper is a mistake or an attack.
DEPTH_MAX = 100
# Elements drawn: 200 000 lines are weeks of drawing.
ELEMENTS_MAX = 200_000
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
GROUPS = {"g", "a", "svg", "switch"}
WHITE = {"white", "#fff", "#ffffff", "rgb(255,255,255)", "rgb(100%,100%,100%)"}


def is_svg(source: str | Path | bytes) -> bool:
    """Whether a file (or its bytes) is an SVG: by its content, by its name where it cannot be read."""
    named = not isinstance(source, bytes) and Path(source).suffix.lower() == ".svg"
    try:
        head = source[:4096] if isinstance(source, bytes) else _read(Path(source), 4096)
    except OSError:
        return named
    text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1", errors="ignore")
    return "<svg" in text or (named and text.lstrip("\ufeffï»¿ \t\r\n").startswith(("<?xml", "<!--", "<!DOCTYPE")))


def read_svg(source: str | Path | bytes) -> Tracing:
    """The lines of an SVG in its own units: x right, y down, (0, 0) the upper left corner of its view box."""
    name = "the SVG" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else _read(Path(source), BYTES_MAX + 1)
    except OSError as error:
        raise InvalidValue(f"cannot read {name}: {error.strerror or error}") from error
    if len(data) > BYTES_MAX:
        raise InvalidValue(f"{name} has {len(data)} bytes; at most {BYTES_MAX} are read")
    notes: dict[str, int] = {}
    try:
        root = ElementTree.fromstring(without_dtd(_text(data), notes))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidValue(f"{name} is not a readable SVG: {error}") from error
    if read.tag_of(root) != "svg":
        raise InvalidValue(f"{name} is not an SVG: its first element is <{read.tag_of(root)}>")
    return _Reader(notes).read(root, name)


def without_dtd(text: str, notes: dict[str, int]) -> str:
    """The document without its document type: short plain entities are filled in, every other is dropped and noted."""
    found = re.search(r"<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", text, flags=re.DOTALL)
    if not found:
        return text
    rest = text[: found.start()] + text[found.end() :]
    subset = found.group(1) or ""
    plain = {}
    for entity, _, value in re.findall(r"<!ENTITY\s+([\w.:-]+)\s+([\"'])(.*?)\2\s*>", subset, flags=re.DOTALL):
        # drawing programs name their namespaces this way; anything nested or long is no such name
        if len(value) <= 100 and "&" not in value and "<" not in value:
            plain[entity] = value
    if len(re.findall(r"<!ENTITY", subset)) > len(plain):
        notes["entities of the document type were ignored"] = 1
    if rest.count("&") > 10_000:
        plain = {}
    known = {"amp", "lt", "gt", "quot", "apos"}

    def fill(match: re.Match[str]) -> str:
        entity = match.group(1)
        return match.group(0) if entity in known or entity.startswith("#") else plain.get(entity, "")

    return re.sub(r"&([\w.:#-]+);", fill, rest)


@dataclass
class _Reader:
    """Walks the tree and gathers curves with their transforms."""

    notes: dict[str, int]
    ids: dict[str, ElementTree.Element] = field(default_factory=dict)
    found: list[tuple[Curve, Array, Style]] = field(default_factory=list)
    rules: Rules = field(default_factory=list)
    count: int = 0
    copies: int = 0
    frame: tuple[float, float] = (100.0, 100.0)  # what percentages refer to

    def read(self, root: ElementTree.Element, name: str) -> Tracing:
        for element in root.iter():
            tag = read.tag_of(element)
            self.ids.setdefault(element.get("id", ""), element)
            if tag == "style":
                self.rules += read.rules_of(element.text or "")
                if re.search(r"@import|url\(\s*[\"']?(?!#)", element.text or ""):
                    self._say("references to elsewhere were ignored")
            if tag == "script" or any(attribute.lower().startswith("on") for attribute in element.attrib):
                self._say("scripts were ignored")
        box, ratio = _box(root), root.get("preserveAspectRatio", "")
        width, height = read.length_of(root.get("width"), None), read.length_of(root.get("height"), None)
        framed = bool(box or (width and height))
        left, top, wide, high = box or (0.0, 0.0, *((width, height) if width and height else self.frame))
        self.frame = (wide, high)
        base = np.array([[1.0, 0.0, -left], [0.0, 1.0, -top], [0.0, 0.0, 1.0]])
        if box and width and height and re.search("none|slice", ratio):
            # stretched or cut to its size; else the view box is the picture, and the empty paper beside it is left out
            base, wide, high = read.view_matrix(box, (width, height), ratio), width, height
        style = read.style_of(root, read.INHERITED, self.rules)
        if not read.gone(style):
            self._children(root, base, style, 0)
        points = [abs(m[0, 0] * p.real) + abs(p.imag) for curve, m, _ in self.found for p in curve[:1]] or [1.0]
        reach = max(wide, high) if framed else max(max(points), 1.0)
        lines = []
        for curve, matrix, style in self.found:
            line = flattened(curve, matrix, FLAT * reach)
            if np.isfinite(line).all():
                lines += self._dashed(line, matrix, style, reach)
        if framed:
            lines, cut = clipped(lines, wide, high)
            if cut:
                self._say("what lies outside the view box was cut off")
        elif lines:
            low = np.min([line.min(axis=0) for line in lines], axis=0)
            high_corner = np.max([line.max(axis=0) for line in lines], axis=0)
            wide, high = np.maximum(high_corner - low, 1e-9).tolist()
            lines = [line - low for line in lines]
        lines = [line if len(line) > 1 else np.repeat(line, 2, axis=0) for line in lines]
        notes = [text if count == 1 else f"{text} ({count} times)" for text, count in self.notes.items()]
        if not lines:
            why = f" ({'; '.join(notes)})" if notes else ""
            raise InvalidValue(f"{name}: nothing to draw in this SVG{why}")
        return Tracing(tuple(lines), wide, high, "svg", None, tuple(notes))

    def _say(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1

    def _children(self, element: ElementTree.Element, matrix: Array, style: Style, depth: int) -> None:
        for child in element:
            self._element(child, matrix, style, depth + 1)
            if read.tag_of(element) == "switch":
                return

    def _element(self, element: ElementTree.Element, matrix: Array, outer: Style, depth: int) -> None:
        tag = read.tag_of(element)
        if tag in HIDDEN or tag in SILENT:
            return
        self.count += 1
        if self.count > ELEMENTS_MAX or depth > DEPTH_MAX:
            self.notes["too many or too deeply nested elements: the rest was left out"] = 1
            return
        style = read.style_of(element, outer, self.rules)
        if read.gone(style):
            return
        for note in dict.fromkeys(note for key, note in read.LEFT_OUT.items() if style.get(key, "none") != "none"):
            self._say(note)
        matrix = matrix @ read.matrix_of(style.get("transform") or element.attrib.get("transform", ""))
        if tag in GROUPS:
            if tag == "svg":
                matrix = matrix @ self._viewport(element, element)
            self._children(element, matrix, style, depth)
        elif tag == "use":
            self._use(element, matrix, style, depth)
        elif tag in ("text", "foreignObject"):
            self._say("text is not drawn: turn it into paths")
        elif tag == "image":
            self._say("pictures inside the SVG are not drawn")
        else:
            self._shape(tag, element, matrix, style)

    def _use(self, element: ElementTree.Element, matrix: Array, style: Style, depth: int) -> None:
        link = element.get("href") or element.get("{http://www.w3.org/1999/xlink}href") or ""
        target = self.ids.get(link[1:]) if len(link) > 1 and link.startswith("#") else None
        if target is None:
            self._say(f"references to {'nothing' if link.startswith('#') else 'elsewhere'} were ignored")
            return
        self.copies += 1
        if self.copies > COPIES_MAX:
            self.notes[f"more than {COPIES_MAX} copies: the rest was left out"] = 1
            return
        matrix = matrix @ self._shift(element)
        if read.tag_of(target) == "symbol":
            self.count += 1
            style = read.style_of(target, style, self.rules)
            if self.count <= ELEMENTS_MAX and depth <= DEPTH_MAX and not read.gone(style):
                self._children(target, matrix @ self._viewport(target, element), style, depth + 1)
        else:
            self._element(target, matrix, style, depth + 1)

    def _shift(self, element: ElementTree.Element) -> Array:
        """(3, 3) to where an element's x and y are."""
        x, y = self._number(element, "x", 0), self._number(element, "y", 1)
        return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])

    def _viewport(self, element: ElementTree.Element, sized: ElementTree.Element) -> Array:
        """The transform of a nested <svg> or a <symbol>: its place, and its view box fitted into its size."""
        matrix = self._shift(element) if read.tag_of(element) == "svg" else np.eye(3)
        if box := _box(element):
            sides = zip(("width", "height"), self.frame, strict=True)
            size = [read.length_of(sized.get(key) or element.get(key), whole) or whole for key, whole in sides]
            matrix = matrix @ read.view_matrix(box, (size[0], size[1]), element.get("preserveAspectRatio", ""))
        return matrix

    def _shape(self, tag: str, element: ElementTree.Element, matrix: Array, style: Style) -> None:
        data = self._data(tag, element)
        if data is None:
            if not element.tag.startswith("{") or element.tag.startswith("{http://www.w3.org/2000/svg}"):
                self._say(f"<{tag}> is not drawn")
            return
        curves, whole = subpaths(data)
        if not whole:
            self._say("a path with an error was drawn up to it")
        filled = style["fill"] not in read.NOTHING and read.share(style["fill-opacity"]) > 0.0
        if style["visibility"] in ("hidden", "collapse") or not (read.stroked(style) or filled):
            return
        if not read.stroked(style) and style["fill"] in WHITE:
            self._say("white shapes without a line were taken for paper")
            return
        self.found += [(curve, matrix, style) for curve in curves]

    def _dashed(self, line: Array, matrix: Array, style: Style, reach: float) -> list[Array]:
        """The dashes of a line, or the line itself where it has none."""
        dashes = read.dashes_of(style["stroke-dasharray"])
        if not dashes or not read.stroked(style) or len(line) < 2:
            return [line]
        scale = float(np.sqrt(abs(np.linalg.det(matrix[:2, :2]))))
        period = scale * sum(dashes)
        if period < FINEST * reach or length(line) > DASHES_MAX * period:
            self._say("dashes too fine to draw became whole lines")
            return [line]
        return dashed(line, [scale * d for d in dashes], scale * read.share(style["stroke-dashoffset"]))

    def _data(self, tag: str, element: ElementTree.Element) -> str | None:
        """A shape as the path data that SVG says it is, "" where it has no size; None where it is no shape."""

        def number(key: str, axis: int) -> float:
            return self._number(element, key, axis)

        if tag == "path":
            return element.get("d", "")
        if tag == "line":
            return f"M{number('x1', 0)} {number('y1', 1)} {number('x2', 0)} {number('y2', 1)}"
        if tag in ("polyline", "polygon"):
            values = read.numbers_of(element.get("points", ""))
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

    def _number(self, element: ElementTree.Element, key: str, axis: int) -> float:
        """An attribute as a length; percentages of the width (axis 0), height (1) or the diagonal's share (2)."""
        whole = (*self.frame, float(np.hypot(*self.frame) / np.sqrt(2.0)))[axis]
        return read.length_of(element.get(key), whole) or 0.0


def _read(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _text(data: bytes) -> str:
    """The document as text, without the declaration of its encoding."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16")
    else:
        declared = re.match(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*encoding=[\"']([\w-]+)", data[:200])
        text = data.decode(declared.group(1).decode() if declared else "utf-8").lstrip("\ufeff")
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1).lstrip()


def _box(element: ElementTree.Element) -> list[float]:
    """x, y, width and height of an element's view box, [] where it has none."""
    box = read.numbers_of(element.get("viewBox", ""))
    return box if len(box) == 4 and box[2] > 0.0 and box[3] > 0.0 else []
