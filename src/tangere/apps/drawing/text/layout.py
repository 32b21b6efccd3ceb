"""Lines of text as curves on paper, as an SVG of their paths, and as a picture file that is drawn as any other."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

import numpy as np

from tangere.apps.drawing.picture.svg_attributes import Curve, flattened
from tangere.apps.drawing.settings import SIZE, DrawingSettings
from tangere.apps.drawing.text.fonts import Face, face
from tangere.apps.drawing.text.settings import ALIGNS, TextSettings
from tangere.errors import InvalidValue

LETTERS_MAX = 20_000  # hours of writing
PEN = 0.5e-3  # m, the width of the line: half of it on every side of its middle


@dataclass(frozen=True)
class SetText:
    """Text as curves [m], x right and y down; its upper left corner is (0, 0)."""

    curves: tuple[Curve, ...]
    outlines: bool
    size: tuple[float, float] = field(default=(0.0, 0.0))  # of the paper: what is drawn, 10 mm at least


def lines_in(text: str) -> list[str]:
    """The lines of a text; the two characters \\n, as a shell leaves them, break a line too."""
    lines = text.replace("\\n", "\n").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not any(line.strip() for line in lines):
        raise InvalidValue("nothing to write: the text has no letters")
    if sum(map(len, lines)) > LETTERS_MAX:
        raise InvalidValue(f"a text of {sum(map(len, lines))} letters; at most {LETTERS_MAX} are written")
    return lines


def missing_in(text: str, own: Face) -> str:
    """Sentence about the characters of a text that a face does not have, "" if it has all."""
    lacks = sorted({c for c in text if c not in "\r\n" and own.glyph(c) is None})
    if not lacks:
        return ""
    shown = " ".join(f"{c} (U+{ord(c):04X})" if c.isprintable() else f"U+{ord(c):04X}" for c in lacks[:12])
    more = f" and {len(lacks) - 12} more" if len(lacks) > 12 else ""
    return f"the font {own.name} has no {shown}{more}"


def line_curves(line: str, own: Face, spacing: float = 0.0) -> tuple[list[Curve], float]:
    """(curves, width) of one line [em], y up, from x = 0; what the face does not have is passed over.

    spacing [em]: added after every letter.
    """
    curves: list[Curve] = []
    at = 0.0
    for character in line:
        glyph = own.glyph(character)
        if glyph is not None:
            curves += [[point + at for point in curve] for curve in glyph.curves]
            at += glyph.advance + spacing
    return curves, at


def set_text(text: str, settings: TextSettings) -> SetText:
    """Text as curves on the paper that it needs. Raises InvalidValue where the font lacks a character."""
    own = face(settings.font)
    lines = lines_in(text)
    if lacks := missing_in("".join(lines), own):
        other = "" if own.outlines else "; --font NAME takes a font of the system"
        raise InvalidValue(f"cannot write that: {lacks}{other}")
    scale = settings.height / own.capital
    spacing = settings.letter_distance / scale
    if settings.wrap is not None:
        lines = [part for line in lines for part in _broken(line, own, spacing, settings.wrap / scale)]
    rows = [line_curves(line.rstrip(), own, spacing) for line in lines]
    spans = [_span(curves) for curves, _ in rows]
    widest = max(high - low for low, high in spans)
    share = ALIGNS.index(settings.align) / 2.0
    step = settings.line_distance * own.capital
    placed: list[Curve] = []
    for number, ((curves, _), (low, high)) in enumerate(zip(rows, spans, strict=True)):
        shift = complex(share * (widest - (high - low)) - low, -number * step)
        placed += [[scale * (point + shift).conjugate() for point in curve] for curve in curves]
    points = np.concatenate([flattened(curve, np.eye(3), 1e-5) for curve in placed])
    corner, end = points.min(axis=0), points.max(axis=0)
    room = np.maximum(end - corner + PEN, SIZE[0])
    offset = complex(*(0.5 * (room - (end - corner)) - corner))
    moved = tuple([point + offset for point in curve] for curve in placed)
    return SetText(moved, own.outlines, (float(room[0]), float(room[1])))


def _span(curves: list[Curve]) -> tuple[float, float]:
    xs = [point.real for curve in curves for point in curve] or [0.0]
    return min(xs), max(xs)


def _broken(line: str, own: Face, spacing: float, most: float) -> list[str]:
    """A line as several that are no wider than `most` [em]; a word that is wider stays whole."""
    parts, here = [], ""
    for piece in line.split(" "):
        longer = f"{here} {piece}" if here else piece
        if here and line_curves(longer, own, spacing)[1] > most:
            parts.append(here)
            here = piece
        else:
            here = longer
    return [*parts, here]


def text_svg(text: SetText, filled: bool = False, title: str = "") -> str:
    """The text as an SVG in millimetres, one path; filled: letters of an outline font are. title: its own."""
    width, height = (1e3 * side for side in text.size)
    paint = 'fill="black"' if text.outlines and filled else 'fill="none" stroke="black" stroke-width="0.5"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.6f}mm" height="{height:.6f}mm" '
        f'viewBox="0 0 {width:.6f} {height:.6f}">\n<title>{escape(title, quote=False)}</title>\n'
        f'<path {paint} stroke-linecap="round" stroke-linejoin="round" d="{_data(text.curves)}"/>\n</svg>\n'
    )


def _data(curves: Sequence[Curve]) -> str:
    """Path data of curves [m], in mm."""

    def pair(point: complex) -> str:
        return f"{1e3 * point.real:.5f} {1e3 * point.imag:.5f}"

    parts = []
    for curve in curves:
        ring = len(curve) > 4 and curve[0] == curve[-1]
        pieces = []
        for k in range(1, len(curve), 3):
            a, b, end = curve[k : k + 3]
            straight = a == curve[k - 1] and b == end
            pieces.append(f"L{pair(end)}" if straight else f"C{pair(a)} {pair(b)} {pair(end)}")
        parts.append(f"M{pair(curve[0])}{''.join(pieces)}{'Z' if ring else ''}")
    return "".join(parts)


NAME_MAX = 32  # letters of a text that its file is named by


@contextmanager
def written(text: str, settings: TextSettings, filled: bool = False) -> Iterator[tuple[Path, tuple[float, float]]]:
    """(an SVG file with the text in a temporary folder, the width and height [m] of what is written).

    filled: letters of an outline font are areas, to be hatched.
    """
    laid = set_text(text, settings)
    if max(laid.size) > SIZE[1]:
        wide, high = laid.size
        raise InvalidValue(
            f"the text is {1e3 * wide:.0f} x {1e3 * high:.0f} mm at a height of {1e3 * settings.height:g} mm: no arm "
            "reaches that; a smaller --height, shorter lines (\\n), or --wrap 300mm"
        )
    with tempfile.TemporaryDirectory(prefix="tangere-") as folder:
        path = Path(folder) / f"{named(text)}.svg"
        path.write_text(text_svg(laid, filled, " ".join(lines_in(text))), encoding="utf-8")
        yield path, laid.size


def named(text: str) -> str:
    """A file name that recalls a text: its letters and digits, "text" where it has none."""
    words = re.sub(r"[^\w-]+", "_", text.replace("\\n", " "), flags=re.ASCII)[:NAME_MAX].strip("_")
    return words or "text"


def sized(settings: DrawingSettings, size: tuple[float, float]) -> DrawingSettings:
    """The settings with the paper as large as the text and its margin."""
    return replace(settings, size=(size[0] + 2.0 * settings.margin, size[1] + 2.0 * settings.margin), style="auto")
