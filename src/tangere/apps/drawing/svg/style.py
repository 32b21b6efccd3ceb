"""What SVG and a plain CSS say about an element: numbers, lengths, transforms; is it shown, its line and its fill."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from tangere.apps.drawing.svg.path import NUMBER
from tangere.types import Array

# CSS pixels per unit: an inch has 96 of them; em and ex with the usual 16 pixel font.
UNITS = {
    "": 1.0,
    "px": 1.0,
    "in": 96.0,
    "mm": 96.0 / 25.4,
    "cm": 96.0 / 2.54,
    "pt": 96.0 / 72.0,
    "pc": 16.0,
    "q": 96.0 / 101.6,
    "em": 16.0,
    "ex": 8.0,
    "rem": 16.0,
}


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


KEYS = (
    "fill",
    "stroke",
    "display",
    "visibility",
    "opacity",
    "fill-opacity",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
    "stroke-dashoffset",
    "transform",
    "clip-path",
    "mask",
    "marker-start",
    "marker-mid",
    "marker-end",
)
# What is told that it is left out, where an element has it.
LEFT_OUT = {
    "clip-path": "clip paths are not applied: all of the lines are drawn",
    "mask": "masks are not applied: all of the lines are drawn",
    "marker-start": "markers (arrow heads) are not drawn",
    "marker-mid": "markers (arrow heads) are not drawn",
    "marker-end": "markers (arrow heads) are not drawn",
}
NOTHING = {"none", "transparent"}
WHITE = {"white", "#fff", "#ffffff", "rgb(255,255,255)", "rgb(100%,100%,100%)"}


@dataclass(frozen=True)
class Style:
    """The few properties that decide whether and how a shape is drawn; fill is black and stroke none, as SVG begins."""

    fill: str = "black"
    stroke: str = "none"
    visibility: str = "visible"
    fill_opacity: float = 1.0
    stroke_opacity: float = 1.0
    stroke_width: float = 1.0
    gone: bool = False  # display: none or opacity 0, here or in a group round it
    transform: str = ""
    dashes: tuple[float, ...] = ()  # user units, drawn and left out in turn, an even number; () is a whole line
    dash_offset: float = 0.0  # user units
    left_out: frozenset[str] = frozenset()  # notes on what this element has and is not drawn

    @property
    def shown(self) -> bool:
        """Whether the element and what is in it may be drawn."""
        return not self.gone

    @property
    def stroked(self) -> bool:
        """Whether there is a visible line."""
        return self.stroke not in NOTHING and self.stroke_opacity > 0.0 and self.stroke_width > 0.0

    @property
    def inked(self) -> bool:
        """Whether there is a visible line or fill."""
        filled = self.fill not in NOTHING and self.fill_opacity > 0.0
        return self.visibility not in ("hidden", "collapse") and (self.stroked or filled)

    @property
    def white(self) -> bool:
        """Whether the fill is the colour of paper."""
        return self.fill in WHITE


def rules_of(text: str) -> list[tuple[str, dict[str, str]]]:
    """(selector, properties) of a style sheet: tag, .class, #id and tag.class; anything else is passed over."""
    rules = []
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", plain):
        for selector in selectors.split(","):
            if re.fullmatch(r"\s*(\*|[\w-]*([.#][\w-]+)?)\s*", selector):
                rules.append((selector.strip(), _declared(body)))
    return rules


def style_of(element: ElementTree.Element, outer: Style, rules: list[tuple[str, dict[str, str]]]) -> Style:
    """The style of an element inside `outer`: attributes, then the sheet's rules, then its own style attribute."""
    said = {key: element.attrib[key] for key in KEYS if key in element.attrib and key != "transform"}
    if rules:
        tag = str(element.tag).rpartition("}")[2]
        classes = set(element.get("class", "").split())
        for selector, properties in rules:
            name, mark, rest = re.fullmatch(r"([\w*-]*)([.#]?)(.*)", selector).groups()  # type: ignore[union-attr]
            if name not in ("", "*", tag):
                continue
            if (mark == "." and rest not in classes) or (mark == "#" and rest != element.get("id")):
                continue
            said.update(properties)
    said.update(_declared(element.get("style", "")))
    said = {key: _plain(value) for key, value in said.items()}
    said = {key: value for key, value in said.items() if value != "inherit"}
    return Style(
        said.get("fill", outer.fill),
        said.get("stroke", outer.stroke),
        said.get("visibility", outer.visibility),
        _share(said.get("fill-opacity"), outer.fill_opacity),
        _share(said.get("stroke-opacity"), outer.stroke_opacity),
        _share(said.get("stroke-width"), outer.stroke_width),
        outer.gone or said.get("display") == "none" or _share(said.get("opacity"), 1.0) <= 0.0,
        said.get("transform", ""),
        dashes_of(said["stroke-dasharray"]) if "stroke-dasharray" in said else outer.dashes,
        _share(said.get("stroke-dashoffset"), outer.dash_offset),
        frozenset(note for key, note in LEFT_OUT.items() if said.get(key, "none") != "none"),
    )


def dashes_of(text: str) -> tuple[float, ...]:
    """The lengths of a stroke-dasharray, an odd number of them twice; () for a whole line, as for what SVG forbids."""
    values = [length_of(word, None) for word in re.split(r"[\s,]+", text.strip()) if word]
    lengths = tuple(value for value in values if value is not None)
    if len(lengths) < len(values) or min(lengths, default=-1.0) < 0.0 or sum(lengths) <= 0.0:
        return ()
    return lengths * 2 if len(lengths) % 2 else lengths


def _declared(text: str) -> dict[str, str]:
    pairs = (part.split(":", 1) for part in text.split(";") if ":" in part)
    return {key.strip(): value.strip() for key, value in pairs if key.strip() in KEYS}


def _plain(value: str) -> str:
    return (
        re.sub(r"\s*,\s*", ",", value.replace("!important", "").strip().lower()).replace("( ", "(").replace(" )", ")")
    )


def _share(text: str | None, default: float) -> float:
    """A number or percentage; the default where there is none."""
    found = re.match(r"[-+]?[\d.]+(?:e[-+]?\d+)?", text or "")
    if not found:
        return default
    try:
        value = float(found.group())
    except ValueError:
        return default
    return value / 100.0 if (text or "").strip().endswith("%") else value
