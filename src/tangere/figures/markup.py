"""HTML and SVG as text that is escaped unless it says otherwise, and numbers as people read them."""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

# What HTML 5 does not allow in text: control characters other than tab, line feed and carriage return.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


class Raw(str):
    """Text that is markup already; every other string is escaped where it enters a page."""

    __slots__ = ()


def text(value: object) -> Raw:
    """`value` as escaped text; control characters and lone surrogates (odd file names) become U+FFFD."""
    if isinstance(value, Raw):
        return value
    clean = str(value).encode("utf-8", "replace").decode("utf-8")
    return Raw(html.escape(_CONTROL.sub("\ufffd", clean), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Raw:
    """An element. Attribute names: `class_` is class, `stroke_width` is stroke-width; None leaves one out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key}="{text(value)}"' for key, value in given.items())
    if name in ("meta", "br", "input"):  # elements that HTML never closes
        return Raw(f"<{name}{written}>")
    return Raw(f"<{name}{written}>{join(*children)}</{name}>")


def join(*parts: object) -> Raw:
    """Parts one after the other; None is nothing, strings that are not Raw are escaped."""
    return Raw("".join(text(part) for part in parts if part is not None))


def json_block(identifier: str, data: Any) -> Raw:
    """`data` as a JSON data block that no text inside can leave: `<`, `>`, `&` and line separators are escaped.

    NaN and infinities, which JSON does not know, must be gone already (ValueError otherwise).
    """
    raw = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        raw = raw.replace(character, f"\\u{ord(character):04x}")
    return Raw(f'<script type="application/json" id="{text(identifier)}">{raw}</script>')


def finite(value: float) -> float | None:
    """A number that JSON knows, or None."""
    return float(value) if math.isfinite(value) else None


def number(value: object, digits: int = 4) -> str:
    """A number with that many significant digits, without needless zeros; "-" where there is none (NaN, None).

    Very large and very small values are written as 1.2e+30; a true minus sign is used so that columns line up.
    """
    if isinstance(value, bool) or value is None or not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    if isinstance(value, int):
        return str(value).replace("-", "−") if abs(value) < 10**9 else f"{value:.{digits}e}"
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0.0:
        return "0"
    magnitude = abs(value)
    # beyond these a plain decimal has more zeros than digits
    if magnitude >= 10 ** (digits + 3) or magnitude < 1e-4:
        return f"{value:.{digits - 1}e}".replace("-", "−", 1) if value < 0 else f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(magnitude)))
    written = f"{value:.{decimals}f}"
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return written.replace("-", "−")
