"""SVG files as lines: paths, shapes, groups, transforms and local <use>; nothing is fetched, run or expanded.

Strokes are drawn as they are, filled shapes by their outline. What an SVG may hold beyond that (text, pictures,
scripts, references to elsewhere, entities) is left out, and the notes say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from tangere.apps.drawing.picture.tracing import Tracing
from tangere.apps.drawing.strokes.strokes import length
from tangere.apps.drawing.svg.path import Curve, clipped, dashed, ellipse, flattened, polygon, rectangle, subpaths
from tangere.apps.drawing.svg.style import Style, length_of, matrix_of, numbers_of, rules_of, style_of, view_matrix
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
# Elements that hold others only for reference.
HIDDEN = {
    "defs",
    "symbol",
    "clipPath",
    "mask",
    "pattern",
    "marker",
    "linearGradient",
    "radialGradient",
    "filter",
    "metadata",
}
SILENT = {"title", "desc", "style", "namedview", "animate", "animateTransform", "animateMotion", "set", "view", "stop"}
GROUPS = {"g", "a", "svg", "switch"}


def is_svg(source: str | Path | bytes) -> bool:
    """Whether a file (or its bytes) is an SVG: by its content, by its name where it cannot be read."""
    if isinstance(source, bytes):
        head = source[:4096]
    else:
        try:
            with Path(source).open("rb") as file:
                head = file.read(4096)
        except OSError:
            return Path(source).suffix.lower() == ".svg"
    text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1", errors="ignore").lstrip(
        "\ufeffï»¿ \t\r\n"
    )
    return "<svg" in text or (
        text.startswith(("<?xml", "<!--", "<!DOCTYPE"))
        and not isinstance(source, bytes)
        and Path(source).suffix.lower() == ".svg"
    )


def read_svg(source: str | Path | bytes) -> Tracing:
    """The lines of an SVG in its own units: x right, y down, (0, 0) the upper left corner of its view box."""
    name = "the SVG" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else _read(Path(source))
    except OSError as error:
        raise InvalidValue(f"cannot read {name}: {error.strerror or error}") from error
    if len(data) > BYTES_MAX:
        raise InvalidValue(f"{name} has {len(data)} bytes; at most {BYTES_MAX} are read")
    notes: dict[str, int] = {}
    try:
        root = ElementTree.fromstring(without_dtd(_text(data), notes))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidValue(f"{name} is not a readable SVG: {error}") from error
    if _tag(root) != "svg":
        raise InvalidValue(f"{name} is not an SVG: its first element is <{_tag(root)}>")
    reader = _Reader(notes)
    return reader.read(root, name)


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
    rules: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    count: int = 0
    copies: int = 0
    frame: tuple[float, float] = (100.0, 100.0)  # what percentages refer to

    def read(self, root: ElementTree.Element, name: str) -> Tracing:
        for element in root.iter():
            tag = _tag(element)
            key = element.get("id")
            if key and key not in self.ids:
                self.ids[key] = element
            if tag == "style":
                self.rules += rules_of(element.text or "")
                if re.search(r"@import|url\(\s*[\"']?(?!#)", element.text or ""):
                    self._say("references to elsewhere were ignored")
            if tag == "script" or any(attribute.lower().startswith("on") for attribute in element.attrib):
                self._say("scripts were ignored")
        box = numbers_of(root.get("viewBox", ""))
        width = length_of(root.get("width"), None)
        height = length_of(root.get("height"), None)
        framed = True
        if len(box) == 4 and box[2] > 0.0 and box[3] > 0.0:
            left, top, wide, high = box
        elif width and height:
            left, top, wide, high = 0.0, 0.0, width, height
        else:
            left, top, wide, high = 0.0, 0.0, 100.0, 100.0
            framed = False
        self.frame = (wide, high)
        base = np.array([[1.0, 0.0, -left], [0.0, 1.0, -top], [0.0, 0.0, 1.0]])
        ratio = root.get("preserveAspectRatio", "")
        if len(box) == 4 and framed and width and height and re.search("none|slice", ratio):
            # stretched or cut to its size; else the view box is the picture, and the empty paper beside it is left out
            base, wide, high = view_matrix([left, top, wide, high], (width, height), ratio), width, height
        self._children(root, base, style_of(root, Style(), self.rules), 0)
        points = [abs(m[0, 0] * p.real) + abs(p.imag) for curve, m, _ in self.found for p in curve[:1]] or [1.0]
        reach = max(wide, high) if framed else max(max(points), 1.0)
        lines = []
        for curve, matrix, style in self.found:
            line = flattened(curve, matrix, FLAT * reach)
            if np.isfinite(line).all():
                lines += self._dashed(line, matrix, style, reach)
        if framed:
            inside = clipped(lines, wide, high)
            if inside.cut:
                self._say("what lies outside the view box was cut off")
            lines = inside.lines
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
            if _tag(element) == "switch":
                return

    def _element(self, element: ElementTree.Element, matrix: Array, outer: Style, depth: int) -> None:
        tag = _tag(element)
        if tag in HIDDEN or tag in SILENT or tag == "script":
            return
        self.count += 1
        if self.count > ELEMENTS_MAX or depth > DEPTH_MAX:
            self.notes["too many or too deeply nested elements: the rest was left out"] = 1
            return
        style = style_of(element, outer, self.rules)
        if not style.shown:
            return
        for note in style.left_out:
            self._say(note)
        matrix = matrix @ matrix_of(style.transform or element.get("transform", ""))
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
        target = self.ids.get(link[1:]) if link.startswith("#") else None
        if target is None:
            self._say(
                "references to elsewhere were ignored"
                if not link.startswith("#")
                else "references to nothing were ignored"
            )
            return
        self.copies += 1
        if self.copies > COPIES_MAX:
            self.notes[f"more than {COPIES_MAX} copies: the rest was left out"] = 1
            return
        shift = np.eye(3)
        shift[:2, 2] = self._number(element, "x", 0), self._number(element, "y", 1)
        matrix = matrix @ shift
        if _tag(target) == "symbol":
            self.count += 1
            style = style_of(target, style, self.rules)
            if self.count <= ELEMENTS_MAX and depth <= DEPTH_MAX and style.shown:
                self._children(target, matrix @ self._viewport(target, element), style, depth + 1)
        else:
            self._element(target, matrix, style, depth + 1)

    def _viewport(self, element: ElementTree.Element, sized: ElementTree.Element) -> Array:
        """The transform of a nested <svg> or a <symbol>: its place, and its view box fitted into its size."""
        matrix = np.eye(3)
        if _tag(element) == "svg":
            matrix[:2, 2] = self._number(element, "x", 0), self._number(element, "y", 1)
        box = numbers_of(element.get("viewBox", ""))
        width = length_of(sized.get("width") or element.get("width"), self.frame[0])
        height = length_of(sized.get("height") or element.get("height"), self.frame[1])
        if len(box) == 4 and box[2] > 0.0 and box[3] > 0.0:
            size = (width or self.frame[0], height or self.frame[1])
            matrix = matrix @ view_matrix(box, size, element.get("preserveAspectRatio", ""))
        return matrix

    def _shape(self, tag: str, element: ElementTree.Element, matrix: Array, style: Style) -> None:
        curves = self._curves(tag, element)
        if curves is None:
            return
        if not style.inked:
            return
        if not style.stroked and style.white:
            self._say("white shapes without a line were taken for paper")
            return
        self.found += [(curve, matrix, style) for curve in curves if len(curve) > 1]

    def _dashed(self, line: Array, matrix: Array, style: Style, reach: float) -> list[Array]:
        """The dashes of a line, or the line itself where it has none."""
        scale = float(np.sqrt(abs(np.linalg.det(matrix[:2, :2]))))
        if not style.dashes or not style.stroked or len(line) < 2:
            return [line]
        period = scale * sum(style.dashes)
        if period < FINEST * reach or length(line) > DASHES_MAX * period:
            self._say("dashes too fine to draw became whole lines")
            return [line]
        return dashed(line, [scale * d for d in style.dashes], scale * style.dash_offset)

    def _curves(self, tag: str, element: ElementTree.Element) -> list[Curve] | None:
        def number(key: str, axis: int) -> float:
            return self._number(element, key, axis)

        if tag == "path":
            curves, whole = subpaths(element.get("d", ""))
            if not whole:
                self._say("a path with an error was drawn up to it")
            return curves
        if tag == "line":
            return [
                polygon([complex(number("x1", 0), number("y1", 1)), complex(number("x2", 0), number("y2", 1))], False)
            ]
        if tag in ("polyline", "polygon"):
            values = numbers_of(element.get("points", ""))
            points = [complex(values[k], values[k + 1]) for k in range(0, len(values) - 1, 2)]
            return [polygon(points, tag == "polygon")] if len(points) > 1 else []
        if tag == "circle":
            radius = number("r", 2)
            return [ellipse(number("cx", 0), number("cy", 1), radius, radius)] if radius > 0.0 else []
        if tag == "ellipse":
            rx, ry = number("rx", 0), number("ry", 1)
            rx, ry = (rx if element.get("rx") else ry), (ry if element.get("ry") else rx)
            return [ellipse(number("cx", 0), number("cy", 1), rx, ry)] if rx > 0.0 and ry > 0.0 else []
        if tag == "rect":
            width, height = number("width", 0), number("height", 1)
            rx, ry = number("rx", 0), number("ry", 1)
            rx, ry = (rx if element.get("rx") else ry), (ry if element.get("ry") else rx)
            return (
                [rectangle(number("x", 0), number("y", 1), width, height, rx, ry)]
                if width > 0.0 and height > 0.0
                else []
            )
        if not element.tag.startswith("{") or element.tag.startswith("{http://www.w3.org/2000/svg}"):
            self._say(f"<{tag}> is not drawn")
        return None

    def _number(self, element: ElementTree.Element, key: str, axis: int) -> float:
        """An attribute as a length; percentages of the width (axis 0), height (1) or the diagonal's share (2)."""
        whole = (*self.frame, float(np.hypot(*self.frame) / np.sqrt(2.0)))[axis]
        return length_of(element.get(key), whole) or 0.0


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(BYTES_MAX + 1)


def _text(data: bytes) -> str:
    """The document as text, without the declaration of its encoding."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16")
    else:
        declared = re.match(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*encoding=[\"']([\w-]+)", data[:200])
        text = data.decode(declared.group(1).decode() if declared else "utf-8").lstrip("\ufeff")
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1).lstrip()


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""
