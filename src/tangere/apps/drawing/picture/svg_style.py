"""The style of an element of an SVG, by attributes and a plain CSS: whether, how and how dark it is painted."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tangere.apps.drawing.picture.svg_attributes import NUMBER, length_of

# Properties that pass on to what is inside, as SVG begins: black areas without a line.
INHERITED = {
    "fill": "black", "stroke": "none", "visibility": "visible", "fill-opacity": "1", "stroke-opacity": "1",
    "stroke-width": "1", "stroke-dasharray": "none", "stroke-dashoffset": "0", "stroke-linecap": "butt",
    "fill-rule": "nonzero", "clip-rule": "nonzero", "color": "black", "font-family": "", "font-size": "16",
    "font-weight": "normal", "font-style": "normal", "text-anchor": "start", "letter-spacing": "0",
    "dominant-baseline": "auto",
}  # fmt: skip
# What is told that it is left out, where an element has it.
LEFT_OUT = dict.fromkeys(("marker-start", "marker-mid", "marker-end"), "markers (arrow heads) are not drawn")
# Properties that are one number or percentage; what is none is passed over.
SHARES = {"opacity", "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dashoffset"}
KEYS = {*INHERITED, *LEFT_OUT, *SHARES, "display", "transform", "clip-path", "font", "mask"}
# Words for the size of a font, in user units, as browsers have them.
SIZES = {"xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0,
         "xx-large": 32.0}  # fmt: skip
NOTHING = {"none", "transparent"}

Style = dict[str, str]  # property -> what is said of it
Rules = list[tuple[str, Style]]  # of a style sheet: selector, properties


def rules_of(text: str) -> Rules:
    """(selector, properties) of a style sheet: tag, .class, #id and tag.class; anything else is passed over."""
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [
        (selector.strip(), _declared(body))
        for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", plain)
        for selector in selectors.split(",")
        if re.fullmatch(r"\s*(\*|[\w-]*([.#][\w-]+)?)\s*", selector)
    ]


def tag_of(element: ElementTree.Element) -> str:
    """Name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


def style_of(element: ElementTree.Element, outer: Style, rules: Rules) -> Style:
    """The style of an element inside `outer`: attributes, then the sheet's rules, then its own style attribute."""
    said = {key: value for key, value in element.attrib.items() if key in KEYS and key != "transform"}
    classes = set(element.get("class", "").split()) if rules else set()
    for selector, properties in rules:
        name, mark, rest = re.fullmatch(r"([\w*-]*)([.#]?)(.*)", selector).groups()  # type: ignore[union-attr]
        marked = not mark or (rest in classes if mark == "." else rest == element.get("id"))
        if marked and name in ("", "*", tag_of(element)):
            said.update(properties)
    said.update(_declared(element.get("style", "")))
    own = {key: plain(value) for key, value in said.items()}
    kept = {key for key, value in own.items() if value != "inherit" and (key not in SHARES or NUMBER.match(value))}
    style = {key: outer[key] for key in INHERITED} | {key: own[key] for key in kept}
    if "font" in kept:
        style |= _font(own["font"]) | {key: own[key] for key in kept if key.startswith("font-")}
    style["font-size"] = f"{_font_size(style['font-size'], float(outer['font-size'])):.9g}"
    return style


def _font(text: str) -> Style:
    """The properties in CSS's short form of a font: style and weight, size, families."""
    found = re.fullmatch(r"(.*?)([\d.]+(?:[a-z]+|%))(?:/\S+)?\s+(.+)", text)
    if not found:
        return {}
    words = set(found[1].split())
    heavy = next((word for word in words if word in ("bold", "bolder") or word.isdigit()), "normal")
    slanted = "italic" if words & {"italic", "oblique"} else "normal"
    return {"font-weight": heavy, "font-style": slanted, "font-size": found[2], "font-family": found[3]}


def _font_size(text: str, outer: float) -> float:
    """In user units; em, ex and percentages are shares of the size outside; what is no size is that size."""
    if found := re.fullmatch(rf"({NUMBER.pattern})(em|ex|%)", text):
        return float(found[1]) * outer * {"em": 1.0, "ex": 0.5, "%": 0.01}[found[2]]
    size = SIZES.get(text) or length_of(text, None)
    return size if size is not None and size > 0.0 else outer


def gone(style: Style) -> bool:
    """Whether an element and all that is in it is not drawn."""
    return style.get("display") == "none" or share(style.get("opacity", "1")) <= 0.0


def stroked(style: Style) -> bool:
    """Whether there is a visible line."""
    seen = share(style["stroke-opacity"]) > 0.0 and share(style["stroke-width"]) > 0.0
    return seen and style["stroke"] not in NOTHING


def filled(style: Style) -> bool:
    """Whether there is a visible fill."""
    return style["fill"] not in NOTHING and share(style["fill-opacity"]) > 0.0


def dashes_of(text: str) -> tuple[float, ...]:
    """The lengths of a stroke-dasharray, an odd number of them twice; () for a whole line, as for what SVG forbids."""
    values = [length_of(word, None) for word in re.split(r"[\s,]+", text.strip()) if word]
    lengths = tuple(value for value in values if value is not None)
    if len(lengths) < len(values) or min(lengths, default=-1.0) < 0.0 or sum(lengths) <= 0.0:
        return ()
    return lengths * 2 if len(lengths) % 2 else lengths


def _declared(text: str) -> Style:
    pairs = (part.split(":", 1) for part in text.split(";") if ":" in part)
    return {key.strip(): value.strip() for key, value in pairs if key.strip() in KEYS}


def plain(value: str) -> str:
    """A value of a style in lower case and without blanks that mean nothing."""
    bare = value.replace("!important", "").strip()
    text = re.sub(r"\s*,\s*", ",", bare if "url(" in bare else bare.lower())  # names of elements keep their case
    return text.replace("( ", "(").replace(" )", ")")


def share(text: str) -> float:
    """A number at the beginning of a text, or a percentage, as style_of leaves them."""
    found = NUMBER.match(text)
    assert found is not None
    return float(found.group()) / (100.0 if text.endswith("%") else 1.0)
