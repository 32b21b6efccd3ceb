"""The single-line font: every letter is drawn by its middle line, as one writes, not by its outline.

Path data as in SVG, but with y up: the line that letters stand on is y = 0, capitals are 20 high, small letters 13,
and tails reach down to -6. A letter may begin anywhere: its left end is moved to 0. Letters with accents are put
together from the letter and its marks.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from tangere.apps.drawing.picture.svg_attributes import Curve, subpaths

CAPITAL = 20.0  # height of a capital letter, in the units of the table
SMALL = 13.0  # height of a small letter without ascender
GAP = 5.0  # between two letters: a quarter of a capital, so that a pen's line leaves paper between them
SPACE = 9.0  # width of a space, the gap beside it included

_BOWL_LEFT = "M11 6.5 A5.5 6.5 0 0 1 0 6.5 A5.5 6.5 0 0 1 11 6.5"  # of a, d, g, q
_BOWL_RIGHT = "M0 6.5 A5.5 6.5 0 0 0 11 6.5 A5.5 6.5 0 0 0 0 6.5"  # of b, p
_O = "M7.5 20 A7.5 10 0 0 1 7.5 0 A7.5 10 0 0 1 7.5 20 Z"
_SMALL_O = "M5.7 13 A5.7 6.5 0 0 1 5.7 0 A5.7 6.5 0 0 1 5.7 13 Z"
_S = (
    "M12.4 16.6 C11.2 18.9 9 20 6.5 20 C3 20 .6 18 .6 15.2 C.6 11.8 3.6 10.9 6.6 10.2 C10 9.4 13 8.4 13 4.9 "
    "C13 1.9 10.2 0 6.6 0 C3.6 0 1.2 1.2 0 3.8"
)
_C = "M12.8 17.07 A7.5 10 0 1 1 12.8 2.93"
_SMALL_C = "M9.04 11.48 A5.5 6.5 0 1 1 9.04 1.52"
_D = "M0 0 V20 H5 A9.5 10 0 0 0 5 0 H0"
_P = "M0 0 V20 H8 A5.4 5.4 0 0 0 8 9.2 H0"
_TWO = "C.5 18 2.7 20 5.8 20 C9.2 20 11.4 18 11.4 15 C11.4 12.4 9.9 10.4 7.6 8.1 L0 0 H12"
_QUOTE = "M1.4 20 L0 15.5"

LETTERS = {
    "A": "M0 0 L7.5 20 15 0 M2.6 7 H12.4",
    "B": "M0 0 V20 H7.5 A4.8 4.8 0 0 0 7.5 10.4 H0 M7.5 10.4 H8 A5.2 5.2 0 0 0 8 0 H0",
    "C": _C,
    "D": _D,
    "E": "M12 0 H0 V20 H12 M0 10.4 H10",
    "F": "M0 0 V20 H12 M0 10.4 H10",
    "G": f"{_C} V9 H8",
    "H": "M0 0 V20 M14 0 V20 M0 10.4 H14",
    "I": "M0 0 V20",
    "J": "M9 20 V5 A4.5 5 0 0 0 0 5",
    "K": "M0 0 V20 M13 20 L0 7.5 M4.8 12.12 L13.5 0",
    "L": "M0 20 V0 H11.5",
    "M": "M0 0 V20 L8.5 4 17 20 V0",
    "N": "M0 0 V20 L14 0 V20",
    "O": _O,
    "P": _P,
    "Q": f"{_O} M9.5 5 L15 -1.5",
    "R": f"{_P} M7.5 9.2 L13.5 0",
    "S": _S,
    "T": "M0 20 H14 M7 20 V0",
    "U": "M0 20 V7 A7 7 0 0 1 14 7 V20",
    "V": "M0 20 L7.5 0 15 20",
    "W": "M0 20 L5 0 10 17 15 0 20 20",
    "X": "M0 0 L14 20 M0 20 L14 0",
    "Y": "M0 20 L7 10 14 20 M7 10 V0",
    "Z": "M0 20 H13.5 L0 0 H13.5",
    "a": f"M11 13 V0 {_BOWL_LEFT}",
    "b": f"M0 20 V0 {_BOWL_RIGHT}",
    "c": _SMALL_C,
    "d": f"M11 20 V0 {_BOWL_LEFT}",
    "e": "M0 6.5 H11 A5.5 6.5 0 1 1 9.04 1.52",
    "f": "M7.6 19.6 C5 20.6 3 19.4 3 16.2 V0 M0 12.5 H7",
    "g": f"M11 13 V-1.2 C11 -4.6 8.8 -6 5.7 -6 C3.6 -6 1.9 -5.5 .7 -4.2 {_BOWL_LEFT}",
    "h": "M0 20 V0 M0 7.5 A5 5.5 0 0 0 10 7.5 V0",
    "i": "M0 13 V0 M0 17.6 V18.4",
    "j": "M4 13 V-2 C4 -4.8 2.6 -6 0 -6 M4 17.6 V18.4",
    "k": "M0 20 V0 M9.5 13 L0 4.5 M3.6 7.72 L10 0",
    "l": "M0 20 V3 C0 1 1 0 3 0",
    "m": "M0 13 V0 M0 8.3 A4.2 4.7 0 0 0 8.4 8.3 V0 M8.4 8.3 A4.2 4.7 0 0 0 16.8 8.3 V0",
    "n": "M0 13 V0 M0 7.5 A5 5.5 0 0 0 10 7.5 V0",
    "o": _SMALL_O,
    "p": f"M0 13 V-6 {_BOWL_RIGHT}",
    "q": f"M11 13 V-6 {_BOWL_LEFT}",
    "r": "M0 13 V0 M0 7.5 C0 10.8 2.6 13.4 6.5 12.8",
    "s": "M9 10.6 C8.2 12.2 6.7 13 4.8 13 C2.3 13 .5 11.7 .5 9.8 C.5 7.7 2.6 7.1 4.8 6.6 C7.2 6.1 9.4 5.4 9.4 3.2 "
         "C9.4 1.2 7.4 0 4.8 0 C2.6 0 .9 .8 0 2.5",
    "t": "M3 18 V3.4 C3 1 4.2 -.3 7.4 .4 M0 13 H7",
    "u": "M0 13 V5.5 A5 5.5 0 0 1 10 5.5 M10 13 V0",
    "v": "M0 13 L5.3 0 10.6 13",
    "w": "M0 13 L3.8 0 7.8 11 11.8 0 15.6 13",
    "x": "M0 0 L10 13 M0 13 L10 0",
    "y": "M0 13 L5.3 0 M10.6 13 L4 -3.2 C3 -5.4 2 -6.2 0 -5.8",
    "z": "M0 13 H9.5 L0 0 H9.5",
    "0": "M6 20 A6 10 0 0 1 6 0 A6 10 0 0 1 6 20 Z",
    "1": "M0 15.5 L5 20 V0",
    "2": f"M.3 15 {_TWO}",
    "3": "M.5 16.6 C1.5 18.8 3.3 20 5.8 20 C8.9 20 11.1 18.2 11.1 15.4 C11.1 12.5 8.8 10.8 5 10.8 "
         "C9.3 10.8 11.9 8.8 11.9 5.5 C11.9 2.1 9.4 0 5.8 0 C3 0 .9 1.3 0 3.8",
    "4": "M9 0 V20 L0 6 H12.5",
    "5": "M11 20 H2 L1 11 C2.3 12.2 4 12.8 5.8 12.8 C9.5 12.8 12 10.3 12 6.5 C12 2.5 9.4 0 5.6 0 C2.9 0 .9 1.2 0 3.4",
    "6": "M10.8 17.4 C9.9 19.1 8.3 20 6.3 20 C2.3 20 0 16 0 9.5 V6.3 A6 6.3 0 0 1 12 6.3 A6 6.3 0 0 1 0 6.3",
    "7": "M0 20 H12 L4 0",
    "8": "M6 10.8 A5.2 4.6 0 0 1 6 20 A5.2 4.6 0 0 1 6 10.8 A6 5.4 0 0 0 6 0 A6 5.4 0 0 0 6 10.8 Z",
    "9": "M1.2 2.6 C2.1 .9 3.7 0 5.7 0 C9.7 0 12 4 12 10.5 V13.7 A6 6.3 0 0 1 0 13.7 A6 6.3 0 0 1 12 13.7",
    "!": "M0 20 V6.5 M0 0 V.8",
    '"': "M0 20 V14.5 M4 20 V14.5",
    "#": "M3 0 L6 20 M9 0 L12 20 M1 13.5 H15 M0 6.5 H14",
    "$": f"{_S} M6.5 23 V-3",
    "%": "M14 20 L2 0 M3.5 20 A3.5 4.5 0 0 1 3.5 11 A3.5 4.5 0 0 1 3.5 20 Z "
         "M12.5 9 A3.5 4.5 0 0 1 12.5 0 A3.5 4.5 0 0 1 12.5 9 Z",
    "&": "M14 0 L3.2 14 C1.8 15.9 2.6 20 6.2 20 C9.6 20 10 16.6 8.6 14.4 C7 12 0 10.5 0 5 C0 2 2.3 0 5.4 0 "
         "C9.4 0 12.6 3.6 13.2 9",
    "'": "M0 20 V14.5",
    "(": "M4 22 A22 22 0 0 1 4 -4",
    ")": "M0 22 A22 22 0 0 0 0 -4",
    "*": "M5 20 V10 M.7 17.5 L9.3 12.5 M.7 12.5 L9.3 17.5",
    "+": "M6 3 V15 M0 9 H12",
    ",": "M1.4 .9 L0 -3.6",
    "-": "M0 7.5 H8",
    ".": "M0 0 V.8",
    "/": "M0 -3 L9 22",
    ":": "M0 0 V.8 M0 10 V10.8",
    ";": "M1.4 .9 L0 -3.6 M1.4 10 V10.8",
    "<": "M11 15 L0 9 11 3",
    "=": "M0 12 H12 M0 6 H12",
    ">": "M0 15 L11 9 0 3",
    "?": "M0 15.6 C.3 18.3 2.4 20 5.2 20 C8.4 20 10.4 18.1 10.4 15.2 C10.4 11.4 5.2 11.2 5.2 6.5 M5.2 0 V.8",
    "@": "M13.3 12.5 V7.5 C13.3 3.5 18 3.8 18 9.5 C18 15.5 14.5 20 9 20 C3.5 20 0 15 0 8.5 C0 1.5 4 -3 9.5 -3 "
         "C12 -3 14 -2.3 15.5 -1.2 M13.3 8.6 A4.2 4.6 0 0 1 4.9 8.6 A4.2 4.6 0 0 1 13.3 8.6",
    "[": "M4 22 H0 V-4 H4",
    "\\": "M0 22 L9 -3",
    "]": "M0 22 H4 V-4 H0",
    "^": "M0 13 L5 20 10 13",
    "_": "M0 -4 H13",
    "`": "M0 20 L3 16",
    "{": "M5 22 C2 22 3 18 3 14 C3 11 2 9 0 9 C2 9 3 7 3 4 C3 0 2 -4 5 -4",
    "|": "M0 23 V-5",
    "}": "M0 22 C3 22 2 18 2 14 C2 11 3 9 5 9 C3 9 2 7 2 4 C2 0 3 -4 0 -4",
    "~": "M0 8 C1 12 4 11.5 6 9 C8 6.5 11 6 12 10",
    "ß": "M0 0 V14.5 C0 18 2 20 5.2 20 C8.4 20 10 18.2 10 15.8 C10 13.2 8 11.8 5 11.2 C9 11 11.6 9 11.6 5.6 "
         "C11.6 2 9.4 0 6 0 C4.8 0 4 .2 3 .6",
    "Æ": "M0 0 L9 20 H20 M3.15 7 H10 M10 20 V0 H20 M10 10.4 H18",
    "æ": f"{_BOWL_LEFT} H22 A5.5 6.5 0 0 1 11 6.5 A5.5 6.5 0 0 1 20.04 1.52 M11 13 V0",
    "Œ": "M20 20 H7.5 A7.5 10 0 0 1 7.5 0 H20 M11 20 V0 M11 10.4 H18",
    "œ": f"{_BOWL_LEFT} H22 A5.5 6.5 0 0 1 11 6.5 A5.5 6.5 0 0 1 20.04 1.52",
    "Ø": f"{_O} M1 -2 L14 22",
    "ø": f"{_SMALL_O} M.5 -1.5 L10.9 14.5",
    "Ð": f"{_D} M-3 10.4 H6",
    "ð": f"{_SMALL_O} M11.4 6.5 C11.4 12 9 17.5 4 20 M3.5 15.8 L10 19.4",
    "Þ": "M0 0 V20 M0 16 H8 A5.2 5.2 0 0 0 8 5.6 H0",
    "þ": f"M0 20 V-6 {_BOWL_RIGHT}",
    "Ł": "M3 20 V0 H14 M0 8 L8 13",
    "ł": "M2.5 20 V3 C2.5 1 3.5 0 5.5 0 M0 9 L5 12.5",
    "Đ": f"{_D} M-3 10.4 H6",
    "đ": f"M11 20 V0 {_BOWL_LEFT} M6 16.5 H14",
    "ı": "M0 13 V0",
    "ȷ": "M4 13 V-2 C4 -4.8 2.6 -6 0 -6",
    "¡": "M0 -6 V7.5 M0 13 V12.2",
    "¿": "M10.4 -1.6 C10.1 -4.3 8 -6 5.2 -6 C2 -6 0 -4.1 0 -1.2 C0 2.6 5.2 2.8 5.2 7.5 M5.2 13 V12.2",
    "¢": f"{_SMALL_C} M5.5 15.5 V-2.5",
    "£": "M11.5 16.8 C10.8 18.8 9.4 20 7.2 20 C4.4 20 2.8 18.2 2.8 15.2 V5 C2.8 2.5 1.8 .9 0 0 H12 M0 9.5 H9",
    "€": "M14.8 17.07 A7.5 10 0 1 1 14.8 2.93 M0 12 H11 M0 8 H10",
    "¥": "M0 20 L7 10 14 20 M7 10 V0 M2 9 H12 M2 5 H12",
    "§": "M9 17.5 C8.4 19.2 7 20 5 20 C2.6 20 1 18.7 1 16.9 C1 12.8 10 13.4 10 8.6 C10 6.4 7.6 5.4 6 5 "
         "M2 3.5 C2.6 1.2 4 .2 6 .2 M4.4 14.8 C2 14.2 0 13 0 10.6 C0 6.2 9 7 9 3 C9 1.2 7.6 0 5.4 -.2 "
         "C3.4 -.2 2.2 .8 1.6 2.4",
    "©": f"{_O} M10.4 13 A3.6 4.6 0 1 1 10.4 7",
    "®": f"{_O} M5 6 V14 H8 A2.2 2.2 0 0 0 8 9.6 H5 M7.6 9.6 L10.2 6",
    "°": "M3 20 A3 3 0 0 1 3 14 A3 3 0 0 1 3 20 Z",
    "±": "M6 5 V17 M0 11 H12 M0 1 H12",
    "²": "M.2 17.6 C.3 19 1.4 20 2.9 20 C4.6 20 5.7 19.1 5.7 17.6 C5.7 16.3 5 15.3 3.8 14.1 L0 10.4 H6",
    "³": "M.2 18.4 C.7 19.4 1.6 20 2.9 20 C4.4 20 5.5 19.2 5.5 17.8 C5.5 16.4 4.4 15.6 2.5 15.6 "
         "C4.6 15.6 5.9 14.6 5.9 13 C5.9 11.4 4.7 10.4 2.9 10.4 C1.5 10.4 .4 11 0 12.2",
    "¹": "M0 17.8 L2.6 20 V10.4",
    "µ": "M0 13 V-6 M0 5.5 A5 5.5 0 0 1 10 5.5 M10 13 V0",
    "·": "M0 8.6 V9.4",
    "×": "M0 4 L10 14 M0 14 L10 4",
    "÷": "M0 9 H12 M6 4 V4.8 M6 13.2 V14",
    "¬": "M0 10 H12 V5",
    "«": "M5 12 L0 7 5 2 M11 12 L6 7 11 2",
    "»": "M0 12 L5 7 0 2 M6 12 L11 7 6 2",
    "‘": "M0 15.5 L1.4 20",
    "’": _QUOTE,
    "‚": _QUOTE.replace("20", ".9").replace("15.5", "-3.6"),
    "“": "M0 15.5 L1.4 20 M4 15.5 L5.4 20",
    "”": f"{_QUOTE} M5.4 20 L4 15.5",
    "„": "M1.4 .9 L0 -3.6 M5.4 .9 L4 -3.6",
    "–": "M0 7.5 H12",
    "—": "M0 7.5 H20",
    "…": "M0 0 V.8 M6 0 V.8 M12 0 V.8",
    "•": "M1.5 9.5 A1.5 1.5 0 0 1 1.5 6.5 A1.5 1.5 0 0 1 1.5 9.5 Z",
}  # fmt: skip

# Marks about x = 0, over a small letter; over a capital they stand higher by the difference. By their Unicode name.
MARKS = {
    "\u0300": "M-2 19.5 L1 15.8",
    "\u0301": "M2 19.5 L-1 15.8",
    "\u0302": "M-3 15.8 L0 19.5 3 15.8",
    "\u0303": "M-3.6 16.5 C-2.5 19.5 -1 18.5 0 17.6 C1 16.7 2.5 15.8 3.6 18.6",
    "\u0304": "M-3 17.5 H3",
    "\u0306": "M-3 19.5 C-2 15.6 2 15.6 3 19.5",
    "\u0307": "M0 17.3 V18.1",
    "\u0308": "M-2.8 17.3 V18.1 M2.8 17.3 V18.1",
    "\u030a": "M0 20 A2 2 0 0 1 0 16 A2 2 0 0 1 0 20 Z",
    "\u030b": "M0 19.5 L-2 15.8 M4 19.5 L2 15.8",
    "\u030c": "M-3 19.5 L0 15.8 3 19.5",
    "\u0323": "M0 -3 V-2.2",
    "\u0327": "M.3 0 L-.4 -2 C1.2 -2 2 -2.8 2 -3.8 C2 -5.2 .4 -6 -1.8 -5.5",
    "\u0328": "M1 0 C-1 -2 -1.5 -5.5 2 -5.5",
}
BELOW = {"\u0323", "\u0327", "\u0328"}
TALL = set("bdfhklijtþð")  # small letters whose marks stand as high as those of capitals; i and j lose their dot
SPACES = {" ": 1.0, "\u00a0": 1.0, "\t": 4.0, "\u2009": 0.5, "\u202f": 0.5, "\u2003": 2.0, "\u2002": 1.0}
# Written alike
ALIKE = {"\u2010": "-", "\u2011": "-", "\u2212": "–", "\u03bc": "µ", "´": "\u0301", "¨": "\u0308", "¸": "\u0327",
         "¯": "\u0304", "\u00ad": "", "¦": "|", "ſ": "f", "º": "°", "ẞ": "ß"}  # fmt: skip


@lru_cache(maxsize=1024)
def letter(character: str) -> tuple[float, tuple[tuple[complex, ...], ...]] | None:
    """(advance, curves) of a character, y up, in the units of the table; None where the font does not have it."""
    if character in SPACES:
        return SPACE * SPACES[character], ()
    character = ALIKE.get(character, character)
    if not character:
        return 0.0, ()
    parts = unicodedata.normalize("NFD", character) if character not in LETTERS else character
    base, marks = (parts[0], parts[1:]) if parts[0] not in MARKS else ("", parts)
    if (base and base not in LETTERS) or any(mark not in MARKS for mark in marks):
        return None
    over = any(mark not in BELOW for mark in marks)
    drawn = {"i": "ı", "j": "ȷ"}.get(base, base) if over else base
    curves: list[Curve] = subpaths(LETTERS[drawn])[0] if drawn else []
    points = [point.real for curve in curves for point in curve] or [0.0]
    left, right = min(points), max(points)
    middle = 4.0 if base == "j" else 0.5 * (left + right)
    high = base.isupper() or (base in TALL and base not in "ij")
    for mark in marks:
        shift = middle + (1j * (CAPITAL - SMALL) if high and mark not in BELOW else 0.0)
        curves += [[point + shift for point in curve] for curve in subpaths(MARKS[mark])[0]]
    left = min(left, *(point.real for curve in curves for point in curve))
    right = max(right, *(point.real for curve in curves for point in curve))
    return right - left + GAP, tuple(tuple(point - left for point in curve) for curve in curves)
