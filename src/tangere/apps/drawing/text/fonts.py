"""Faces: the single-line font, and the fonts of the system as outlines (read by fontTools)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from tangere.apps.drawing.picture.svg_attributes import Curve, subpaths
from tangere.apps.drawing.text.letters import CAPITAL, letter
from tangere.apps.drawing.text.settings import SINGLE
from tangere.errors import InvalidValue, UnknownName, extra

# height of a capital in ems: that of most fonts for reading, 0.70 to 0.74
CAPITAL_EM = 0.72
# what a browser takes for these words, best first
GENERIC = {
    "sans-serif": ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica"),
    "serif": ("DejaVu Serif", "Liberation Serif", "Noto Serif", "Times New Roman", "Times"),
    "monospace": ("DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono", "Courier New", "Menlo"),
}
GENERIC |= {"system-ui": GENERIC["sans-serif"], "ui-sans-serif": GENERIC["sans-serif"]}
ENDINGS = (".ttf", ".otf", ".ttc", ".otc")
FILES_MAX = 10_000  # fonts looked at; more are a mistake of the folder
LISTED = 40  # families named in an error
REGULAR = {"", "regular", "book", "roman", "normal", "medium"}


@dataclass(frozen=True)
class Glyph:
    """A character: how far it moves on, and its curves, in ems, x right, y up from the line that letters stand on."""

    advance: float
    curves: tuple[Curve, ...]


class Face(Protocol):
    """What text is set in."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def outlines(self) -> bool:
        """Whether the curves are the borders of areas; else they are lines."""
        ...

    @property
    def capital(self) -> float:
        """Height of a capital [em]."""
        ...

    def glyph(self, character: str) -> Glyph | None:
        """The character, None where the face does not have it."""
        ...


@dataclass(frozen=True)
class SingleLine:
    """The font of our own, for a pen: each letter by its middle line."""

    name: str = SINGLE
    outlines: bool = False
    capital: float = CAPITAL_EM

    def glyph(self, character: str) -> Glyph | None:
        found = letter(character)
        if found is None:
            return None
        scale = CAPITAL_EM / CAPITAL
        return Glyph(scale * found[0], tuple([scale * point for point in curve] for curve in found[1]))


@dataclass(frozen=True, eq=False)
class SystemFont:
    """A font file; kerning and ligatures are not applied."""

    name: str
    font: Any  # fontTools' TTFont
    outlines: bool = True
    known: dict[str, Glyph | None] = field(default_factory=dict)

    @property
    def capital(self) -> float:
        """By the font's own word; else by its H."""
        units = float(self.font["head"].unitsPerEm)
        said = getattr(self.font["OS/2"], "sCapHeight", 0) if "OS/2" in self.font else 0
        if said:
            return float(said) / units
        high = self.glyph("H")
        tops = [point.imag for curve in high.curves for point in curve] if high else []
        return max(tops, default=CAPITAL_EM) or CAPITAL_EM

    def glyph(self, character: str) -> Glyph | None:
        if character not in self.known:
            self.known[character] = self._glyph(character)
        return self.known[character]

    def _glyph(self, character: str) -> Glyph | None:
        from fontTools.pens.svgPathPen import SVGPathPen

        name = (self.font.getBestCmap() or {}).get(ord(character))
        if name is None:
            return None
        glyphs = self.font.getGlyphSet()
        pen = SVGPathPen(glyphs)
        glyphs[name].draw(pen)
        scale = 1.0 / float(self.font["head"].unitsPerEm)
        curves, _ = subpaths(pen.getCommands())
        return Glyph(scale * float(glyphs[name].width), tuple([scale * point for point in c] for c in curves))


@dataclass(frozen=True)
class FontFile:
    """A font of the system by its names."""

    path: Path
    number: int  # in a collection
    family: str
    style: str

    @property
    def full(self) -> str:
        """Family and style, as one asks for it."""
        return self.family if self.style.lower() in REGULAR else f"{self.family} {self.style}"


def face(name: str, weight: str = "", slant: str = "") -> Face:
    """The face of that name: single-line, a font of the system by family or full name, a font file, or a generic word.

    weight "bold", slant "italic": asked for beside the name, taken where the family has it. Raises UnknownName with
    the families that there are.
    """
    wanted = name.strip().strip("'\"")
    if wanted.lower() in (SINGLE, "single line", "singleline"):
        return SingleLine()
    _fonttools()
    path = Path(wanted).expanduser()
    if path.suffix.lower() in ENDINGS:
        found = next(iter(_files_in(path)), None)
        if found is None:
            raise InvalidValue(f"font {wanted!r}: no such file, or no font that can be read")
        return _opened(found)
    for family in GENERIC.get(wanted.lower(), (wanted,)):
        best = _best(family, weight, slant)
        if best is not None:
            return _opened(best)
    families = sorted({one.family for one in every_font()})
    more = f" and {len(families) - LISTED} more" if len(families) > LISTED else ""
    raise UnknownName(f"no font {wanted!r}; there are: {', '.join([SINGLE, *families[:LISTED]])}{more}, or a file")


def _best(family: str, weight: str, slant: str) -> FontFile | None:
    """The font of a family, or of a full name, that suits best; files that are named like it are looked at first."""
    key = _plain(family)
    quick = [path for path in font_paths() if _plain(path.stem).startswith(key[:8])]
    for fonts in (_named(quick), every_font()):
        exact = [one for one in fonts if key in (_plain(one.full), _plain(one.path.stem))]
        mine = [one for one in fonts if _plain(one.family) == key]
        if (weight or slant) and mine:
            return min(mine, key=lambda one: _misfit(one, weight, slant))
        if exact or mine:
            return min(exact or mine, key=lambda one: _misfit(one, "", ""))
    return None


def _misfit(one: FontFile, weight: str, slant: str) -> tuple[int, int, str]:
    """How far a font is from what was asked for; fewer words of style are the plainer font."""
    words = set(re.findall(r"[a-z]+", one.style.lower()))
    bold, italic = bool(words & {"bold", "black", "heavy"}), bool(words & {"italic", "oblique"})
    rest = words - REGULAR - {"bold", "italic", "oblique"}
    return int(bold != (weight == "bold")) + int(italic != (slant == "italic")), len(rest), str(one.path)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(maxsize=1)
def font_paths() -> tuple[Path, ...]:
    """The font files in the system's folders for fonts, and in the user's."""
    found: list[Path] = []
    for folder in _folders():
        if folder.is_dir():
            found += sorted(p for p in folder.rglob("*") if p.suffix.lower() in ENDINGS)
        if len(found) > FILES_MAX:
            break
    return tuple(found[:FILES_MAX])


def _folders() -> list[Path]:
    home = Path.home()
    if sys.platform == "darwin":
        return [home / "Library/Fonts", Path("/Library/Fonts"), Path("/System/Library/Fonts")]
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", str(home))
        return [Path(local) / "Microsoft/Windows/Fonts", Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts"]
    data = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    own = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    return [own / "fonts", home / ".fonts", *(Path(place) / "fonts" for place in data.split(":"))]


@lru_cache(maxsize=1)
def every_font() -> tuple[FontFile, ...]:
    """All fonts of the system that can be read."""
    return tuple(_named(font_paths()))


def _named(paths: Any) -> list[FontFile]:
    return [one for path in paths for one in _files_in(path)]


def _files_in(path: Path) -> Iterator[FontFile]:
    """The fonts of a file: one, or those of a collection; none where it cannot be read."""
    from fontTools.ttLib import TTFont

    number, count = 0, 1
    while number < count:
        try:
            with TTFont(path, fontNumber=number, lazy=True) as font:
                names = font["name"]
                family = names.getDebugName(16) or names.getDebugName(1) or path.stem
                style = names.getDebugName(17) or names.getDebugName(2) or ""
                count = getattr(font.reader, "numFonts", 1)
        except Exception:  # fontTools raises whatever a broken file makes it stumble over; that font is none
            return
        yield FontFile(path, number, family, style)
        number += 1


@lru_cache(maxsize=32)
def _opened(one: FontFile) -> SystemFont:
    from fontTools.ttLib import TTFont

    return SystemFont(one.full, TTFont(one.path, fontNumber=one.number, lazy=True))


def _fonttools() -> None:
    with extra("fonts of the system are read by fontTools: pip install 'tangere[draw]'"):
        import fontTools  # noqa: F401
