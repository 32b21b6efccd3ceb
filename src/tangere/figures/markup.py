"""What a page is written with: HTML and SVG that is escaped unless it says otherwise, numbers as people read them,
and columns as short text (base64 of little-endian floats), thinned where a plot cannot show them all."""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.types import Array

# What HTML 5 does not allow in text: control characters other than tab, line feed and carriage return.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# Samples up to which a column is embedded whole: a 10 s run at 1 kHz, with room. Above it every bucket of samples keeps
# its smallest and its largest, so that no peak is lost: a third as many, with a time of their own each, so that a long
# run is no larger than a short one.
WHOLE = 12_000
# Largest value that a 4-byte float holds, with room; columns beyond it take 8 bytes.
_LARGEST = 3e38


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
    if name in ("meta", "br", "input", "img"):  # elements that HTML never closes
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


def floats(values: Array) -> dict[str, str]:
    """{"f4": ...} or, where 4 bytes would overflow, {"f8": ...}: base64 of the little-endian numbers, NaN included."""
    finite = values[np.isfinite(values)]
    kind = "f8" if finite.size and float(np.max(np.abs(finite))) > _LARGEST else "f4"
    return {kind: base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode("ascii")}


def csv_text(columns: Mapping[str, Array], limit: int = 1000) -> str:
    """Columns (N,) as csv with their names, about `limit` rows evenly taken, seven digits; empty where not a number."""
    count = max((len(values) for values in columns.values()), default=0)
    rows = [",".join(columns)]
    for k in strided(count, limit).tolist():
        cells = (float(values[k]) if k < len(values) else math.nan for values in columns.values())
        rows.append(",".join(f"{v:.7g}" if math.isfinite(v) else "" for v in cells))
    return "\n".join(rows) + "\n"


def decode(block: dict[str, str]) -> Array:
    """The numbers of `floats` (what the page's script does, for tests and for whoever wants them back)."""
    ((kind, raw),) = ((k, v) for k, v in block.items() if k in ("f4", "f8"))
    return np.frombuffer(base64.b64decode(raw), dtype=f"<{kind}").astype(np.float64)


def thinned(values: Array, limit: int = WHOLE) -> NDArray[np.intp]:
    """Indices worth keeping: all; without the inside of constant stretches; or per bucket the two extremes.

    First and last sample always stay. NaN counts as a value of its own (a gap starts and ends where it did).
    """
    count = len(values)
    if count < 3:
        return np.arange(count)
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    keep = np.ones(count, dtype=bool)
    keep[1:-1] = ~(same[:-1] & same[1:])
    indices = np.flatnonzero(keep)
    if len(indices) <= min(count, limit) // 2:  # a time for every value: worth it from half of them on
        return indices
    if count <= limit:
        return np.arange(count)
    buckets = limit // 6
    edges = np.linspace(0, count, buckets + 1).astype(int)
    return np.unique(np.concatenate(([0, count - 1], *extremes(values, edges))))


def extremes(values: Array, edges: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where values (N,) are smallest and largest between neighbouring edges (from 0 to N): the first such place of
    each, the first of all where no value is finite."""
    starts, found = edges[:-1], []
    for least in (np.where(np.isfinite(values), sign * values, np.inf) for sign in (1.0, -1.0)):
        there = np.flatnonzero(least == np.repeat(np.minimum.reduceat(least, starts), np.diff(edges)))
        found.append(there[np.searchsorted(there, starts)])
    return found[0], found[1]


def series(time: Array, values: Array, limit: int = WHOLE) -> dict[str, Any]:
    """A column as {"v": floats} on the shared time, or with times of its own as {"t": floats, "v": floats}."""
    indices = thinned(values, limit)
    if len(indices) == len(values) and len(values) <= limit:
        return {"v": floats(values)}
    return {"t": floats(time[indices]), "v": floats(values[indices])}


def strided(count: int, limit: int) -> NDArray[np.intp]:
    """At most about `limit` evenly spread indices of `count` samples, the last one included: for smooth columns."""
    step = max(1, -(-count // limit))
    indices = np.arange(0, count, step)
    return indices if count == 0 or indices[-1] == count - 1 else np.append(indices, count - 1)
