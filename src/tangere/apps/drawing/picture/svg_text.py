"""Text of an SVG as curves: <text> and <tspan> set in a font of the system, or in the single-line font."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

from tangere.apps.drawing.picture import svg_style as css
from tangere.apps.drawing.picture.svg_attributes import Curve, length_of
from tangere.apps.drawing.picture.svg_style import Rules, Style
from tangere.apps.drawing.text.fonts import Face, Glyph, SingleLine, face
from tangere.errors import InvalidValue, MissingExtra, UnknownName

SPACE = "{http://www.w3.org/XML/1998/namespace}space"
HEAVY = {"bold", "bolder", "600", "700", "800", "900"}
# What may have text inside <text>.
INSIDE = {"text", "tspan", "a"}
# How far below the given height the text stands, in heights of a capital, by dominant-baseline.
RISE = {"middle": 0.38, "central": 0.5, "hanging": 1.0, "text-before-edge": 1.3, "text-after-edge": -0.3}

Say = Callable[[str], None]


@dataclass
class _Letter:
    """A character and where it is put."""

    character: str
    style: Style
    x: float | None = None  # said, not following from the letter before
    y: float | None = None
    dx: float = 0.0
    dy: float = 0.0


@dataclass(frozen=True)
class Run:
    """Letters of one style as curves, y down."""

    curves: tuple[Curve, ...]
    style: Style
    outlines: bool


def runs_of(
    element: ElementTree.Element, style: Style, rules: Rules, font: str, frame: tuple[float, float], lost: Say,
    note: Say,
) -> list[Run]:  # fmt: skip
    """The text of an element as runs of curves in its own units.

    font: "auto" for what the SVG says, else the name of a face for all of it. frame: width and height that percentages
    refer to. lost, note: called with a sentence on what is not drawn, and on what is drawn otherwise.
    """
    letters = _collapsed(_gathered(element, style, rules, frame, lost), element.get(SPACE) == "preserve")
    runs: list[Run] = []
    x = y = 0.0
    missing: set[str] = set()
    for chunk in _chunks(letters):
        x = chunk[0].x if chunk[0].x is not None else x
        y = chunk[0].y if chunk[0].y is not None else y
        placed: list[tuple[list[Curve], Style, bool]] = []
        begin = x
        for one in chunk:
            size = float(one.style["font-size"])
            own = _face(one.style, font, note)
            glyph, outlines = _glyph(own, one.character)
            if glyph is None:
                missing.add(one.character)
                continue
            x, y = x + one.dx, y + one.dy
            rise = RISE.get(one.style["dominant-baseline"], 0.0) * own.capital * size
            at = complex(x, y + rise)
            curves = [[size * point.conjugate() + at for point in curve] for curve in glyph.curves]
            if curves:
                placed.append((curves, one.style, outlines))
            x += size * glyph.advance + (length_of(one.style["letter-spacing"], None) or 0.0)
        share = {"middle": 0.5, "end": 1.0}.get(chunk[0].style["text-anchor"], 0.0)
        shift = -share * (x - begin)
        x += shift
        runs += [
            Run(tuple([point + shift for point in curve] for curve in curves), own_style, outlines)
            for curves, own_style, outlines in placed
        ]
    if missing:
        shown = " ".join(f"{c} (U+{ord(c):04X})" for c in sorted(missing)[:8])
        lost(f"letters that no font here has are left out: {shown}")
    return runs


def _gathered(
    element: ElementTree.Element, style: Style, rules: Rules, frame: tuple[float, float], lost: Say
) -> list[_Letter]:
    """All characters in their order, with the places that the elements around them give."""
    tag = css.tag_of(element)
    if tag not in INSIDE:
        if tag not in ("title", "desc", "animate", "set"):
            lost("text along a path is not drawn" if tag == "textPath" else f"<{tag}> in a text is not drawn")
        return []
    letters = [_Letter(c, style) for c in element.text or ""]
    for child in element:
        own = css.style_of(child, style, rules)
        if not css.gone(own):
            letters += _gathered(child, own, rules, frame, lost)
        letters += [_Letter(c, style) for c in child.tail or ""]
    # the first letters get the places, in their order; blanks at the very beginning are none
    solid = [one for k, one in enumerate(letters) if not one.character.isspace() or k]
    for key, whole in (("x", frame[0]), ("y", frame[1]), ("dx", frame[0]), ("dy", frame[1])):
        words = [word for word in re.split(r"[\s,]+", element.get(key, "").strip()) if word]
        for one, word in zip(solid, words, strict=False):
            size = float(one.style["font-size"])
            ems = word[:-2] if word.endswith("em") and not word.endswith("rem") else None
            value = size * (length_of(ems, None) or 0.0) if ems else length_of(word, whole)
            if value is not None and (key in ("dx", "dy") or getattr(one, key) is None):
                setattr(one, key, value)
    return letters


def _collapsed(letters: list[_Letter], preserve: bool) -> list[_Letter]:
    """Blanks as SVG has them: several are one, none at the ends; line breaks are blanks."""
    result: list[_Letter] = []
    for one in letters:
        if one.character.isspace() and one.character != "\u00a0":
            if not preserve and (not result or result[-1].character == " "):
                continue
            one.character = " "
        result.append(one)
    while result and not preserve and result[-1].character == " ":
        result.pop()
    return result


def _chunks(letters: list[_Letter]) -> list[list[_Letter]]:
    """Letters that hang together: a new chunk begins where a place is said."""
    chunks: list[list[_Letter]] = []
    for one in letters:
        if not chunks or one.x is not None or one.y is not None:
            chunks.append([])
        chunks[-1].append(one)
    for chunk in chunks:  # a blank before a place that is said is not seen, but would move what is anchored
        while len(chunk) > 1 and chunk[-1].character == " ":
            chunk.pop()
    return chunks


def _glyph(own: Face, character: str) -> tuple[Glyph | None, bool]:
    """The character in a face, else in the single-line font; and whether it is an outline."""
    glyph = own.glyph(character)
    return (glyph, own.outlines) if glyph is not None else (SingleLine().glyph(character), False)


def _face(style: Style, font: str, note: Say) -> Face:
    """What a style asks for; the single-line font where nothing is asked for, or it is not there."""
    weight = "bold" if style["font-weight"] in HEAVY else ""
    slant = "italic" if style["font-style"].startswith(("italic", "oblique")) else ""
    if font != "auto":
        return face(font, weight, slant)
    families = [name.strip().strip("'\"") for name in style["font-family"].split(",")]
    for name in filter(None, families):
        try:
            return face(name, weight, slant)
        except MissingExtra:
            note("fonts are read by fontTools (pip install 'tangere[draw]'): text is drawn in the single-line font")
            return SingleLine()
        except (UnknownName, InvalidValue):
            continue
    if any(families):
        note(f"no font {', '.join(filter(None, families))} here: its text is drawn in the single-line font")
    return SingleLine()
