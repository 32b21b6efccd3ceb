"""What a command left behind, reduced to small comparable data; and the comparison with what was frozen.

A reduced case is a dictionary of plain JSON values. Numbers have 12 significant digits. What depends on the clock or on
the machine (wall times, versions, folders) is taken out, everything else stays.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import html
import json
import math
import re
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

# keys of summary.json and manifest.json that the clock, the machine or the folder decide
CLOCK_KEYS = {"realtime_factor", "step_us", "seconds", "versions", "platform", "cost_us", "wall_s", "program"}
PERIOD_KEYS = {"nominal", "late", "pauses"}  # of period_us: what does not come from the clock
CLOCK_COLUMNS = {"period", "cost", "cost_log", "cost_s"}
# lines of pages and terminals: the clock decides the value that follows the label, in the same line or in the next one
CLOCK_LABELS = re.compile(
    r"^(faster than real time|simulated seconds per second.*|controller and observer of a period.*|version \w+"
    r"|.*mj_step.*|MuJoCo's own step.*|period[s]? .*\[us\]|.*\bwall time\b.*|strokes found in \[s\]|planned in \[s\])"
)
CLOCK_WORDS = (
    (re.compile(r"\b\d+ (?:s|min)(?= on \d+ processes)"), "SOME s"),
    (re.compile(r"(?<=onsets, )[\d.]+ (?:s|min)(?:, \d+ s)?(?=, seed)"), "SOME s"),
    (re.compile(r"^((?:exact|wrong) .+ \d+/\d+ .+) [\d.]+$"), r"\1 COST"),  # last column of the study's observers
    (re.compile(r"\b[0-9a-f]{16,64}\b"), "HASH"),  # of a log, which has a column of costs
)
COST_HEADING, COST_ROW, COST_PLACE = "cost per step [\u00b5s]", re.compile(r".*, (?:exact model|masses .*)$"), 6
VALUE = re.compile(r"[-+\u2212\d.e]+$")
NUMBER = re.compile(r"[-+\u2212]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
TINY = re.compile(r"[-+\u2212]?\d+(?:\.\d+)?e-(?:1[0-9]|[2-9]\d)", re.IGNORECASE)  # rounding noise: its size is luck
EXACT, SMOOTH, CONTACT = 1e-11, 1e-9, 1e-6  # relative: our own arithmetic, MuJoCo and BLAS, contacts and iterations
DRAWN = 1e-2  # relative: coordinates of a drawing, there
PRINTED = 2e-3  # relative: numbers as printed in three or four digits, where others computed them


def plain(value: Any) -> Any:
    """A JSON value with floats of 12 digits and without the clock's keys."""
    if isinstance(value, dict):
        kept = {str(k): v for k, v in value.items() if k not in CLOCK_KEYS}
        if isinstance(kept.get("period_us"), dict):
            kept["period_us"] = {k: v for k, v in kept["period_us"].items() if k in PERIOD_KEYS}
        return {k: plain(v) for k, v in kept.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)  # a date


def digest(data: bytes) -> str:
    """Enough of a hash to see a difference."""
    return hashlib.sha256(data).hexdigest()[:20]


def five(column: np.ndarray) -> list[Any]:
    """First, last, sum, sum of magnitudes and largest magnitude of what is finite."""
    finite = column[np.isfinite(column)]
    if not finite.size:
        return [None] * 5
    values = finite.tolist()
    size = [abs(v) for v in values]
    return plain([values[0], values[-1], math.fsum(values), math.fsum(size), max(size)])


def table(path: Path, exact: bool) -> dict[str, Any]:
    """A csv with a header: {column: numbers}; name_0, name_1, ... are one column. Exact: with a hash of the values."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    header, rows = rows[0], rows[1:]
    found: dict[str, Any] = {"rows": len(rows)}
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(header):
        groups.setdefault(re.sub(r"_\d+$", "", name), []).append(i)
    for name, members in groups.items():
        if name in CLOCK_COLUMNS:
            continue
        text = [[row[i] for i in members] for row in rows]
        try:
            values = np.array([[float(cell) if cell else math.nan for cell in row] for row in text])
        except ValueError:
            found[name] = {"text": digest(json.dumps(text).encode()), "first": text[0]}
            continue
        if exact:
            found[name] = {"width": len(members), "hash": digest(values.tobytes()), "all": five(values.ravel())}
        else:
            found[name] = {"width": len(members), "each": [five(c) for c in values.T]}
    return found


def page(text: str) -> dict[str, Any]:
    """A report page: its text as lines in order, and of each drawing the count and the sum of its coordinates."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    parts = re.split(r"(?=<h2\b)", text)
    text = "".join(part for part in parts if not re.match(r"<h2\b[^>]*>\s*(?:<[^>]*>)*\s*Timing", part))
    drawings = []
    for svg in re.findall(r"<svg\b.*?</svg>", text, flags=re.DOTALL):
        drawn = " ".join(re.findall(r'\b(?:d|points|x|y|x1|x2|y1|y2|cx|cy|width|height)="([^"]*)"', svg))
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", drawn)]
        drawings.append([len(numbers), plain(math.fsum(numbers))])
    words = html.unescape(re.sub(r"<[^>]*>", "\n", text))
    return {"lines": lines(words), "drawings": drawings}


def lines(text: str) -> list[str]:
    """Lines without blanks at their ends, empty ones and the clock's."""
    kept: list[str] = []
    label = ""  # of the clock: its values follow
    cost = 0  # lines until the cost in a row of the table that has them
    for line in (re.sub(r"\s+", " ", line).strip() for line in text.splitlines()):
        if not line or line == "\u00d7":  # the unit of a clock's figure
            continue
        if label == "new" or (label and VALUE.match(line)):
            label = "old"
            continue
        label = ""
        if found := CLOCK_LABELS.match(line):
            label = "new" if found.end() == len(line) else ""
            continue
        cost = max(cost - 1, 0)
        if cost == 1:
            continue
        if COST_HEADING in kept and COST_ROW.match(line):
            cost = COST_PLACE + 1
        for pattern, word in CLOCK_WORDS:
            line = pattern.sub(word, line)
        kept.append(TINY.sub("~0", line))
    return kept


def options(text: str) -> dict[str, Any]:
    """Of a help text: the option strings, the choices and the names at the beginning of indented lines."""
    names = re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text)
    choices = re.findall(r"\{([\w,\s-]+)\}", text)
    commands = re.findall(r"^ {4}([a-z][\w-]+)(?: {2,}|\n)", text, flags=re.MULTILINE)
    return {"set": sorted({*names, *(c.strip() for group in choices for c in group.split(",")), *commands})}


def fmu(path: Path) -> dict[str, Any]:
    """Identity and description of a block."""
    with zipfile.ZipFile(path) as archive:
        xml = archive.read("modelDescription.xml").decode()
        names = sorted(n for n in archive.namelist() if not n.endswith("/"))
    guid = re.search(r'guid="([^"]*)"', xml)
    xml = re.sub(r' (?:generationDateAndTime|generationTool|version)="[^"]*"', "", xml)
    found: dict[str, Any] = {"guid": guid.group(1) if guid else None, "xml": digest(xml.encode())}
    return {**found, "variables": xml.count("<ScalarVariable "), "set": names}


def reduce_file(path: Path, exact: bool) -> Any:
    """One file that a command left; None: only that it is there."""
    match path.suffix:
        case ".json":
            return plain(json.loads(path.read_text()))
        case ".csv":
            return table(path, exact)
        case ".toml":
            return plain(tomllib.loads(re.sub(r"\b[0-9a-f]{64}\b", "HASH", path.read_text())))
        case ".html":
            return page(path.read_text())
        case ".fmu":
            return fmu(path)
        case ".svg" if path.name == "plan.svg":
            return {"hash": digest(path.read_bytes())}
    return None


def difference(old: Any, new: Any, rtol: float, where: str = "", scale: float = 1.0) -> str | None:
    """The first difference as a sentence: every frozen key must be there with its value, others may be added."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return f"{where}: was an object, is {new!r:.80}"
        for key, value in old.items():
            if key not in new:
                return f"{where}/{key}: is missing, was {value!r:.80}"
            if key in ("lines", "stdout", "stderr"):
                found = _text(value, new[key], rtol, f"{where}/{key}")
            elif key == "set":
                gone = sorted(set(value) - set(new[key]))
                found = f"{where}: gone: {', '.join(gone)}" if gone else None
            elif key == "drawings":
                found = _drawn(value, new[key], rtol, f"{where}/{key}")
            else:
                found = difference(value, new[key], rtol, f"{where}/{key}")
            if found:
                return found
        return None
    if isinstance(old, list):
        if not isinstance(new, list) or len(old) != len(new):
            return f"{where}: was {len(old)} values, is {len(new) if isinstance(new, list) else new!r}"
        sizes = [abs(v) for v in old if isinstance(v, (int, float)) and math.isfinite(v)]
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            if found := difference(a, b, rtol, f"{where}/{i}", max(sizes, default=1.0)):
                return found
        return None
    if isinstance(old, float) or (isinstance(new, float) and isinstance(old, int) and not isinstance(old, bool)):
        near = isinstance(new, (int, float)) and abs(new - old) <= rtol * abs(old) + 1e-12 * max(scale, 1.0)
        return None if near else f"{where}: was {old!r}, is {new!r}"
    return None if old == new else f"{where}: was {old!r:.200}, is {new!r:.200}"


def _drawn(old: list[list[float]], new: list[list[float]], rtol: float, where: str) -> str | None:
    """Coordinates of the drawings; where others computed, a line may keep a point more or less."""
    if rtol > EXACT and len(old) == len(new):
        pairs = zip(np.ravel(old), np.ravel(new), strict=True)
        if all(math.isclose(a, b, rel_tol=DRAWN, abs_tol=2.0) for a, b in pairs):
            return None
    return difference(old, new, EXACT, where)


def _text(old: Sequence[str], new: Sequence[str], rtol: float, where: str) -> str | None:
    """Lines are equal; where others computed, their numbers are near."""
    if list(old) == list(new):
        return None
    if rtol > EXACT and len(old) == len(new) and all(map(_alike, old, new)):
        return None
    shown = list(difflib.unified_diff(list(old), list(new), "frozen", "now", lineterm="", n=1))
    return f"{where}:\n" + "\n".join(shown[:24])


def _alike(old: str, new: str) -> bool:
    if old == new:
        return True
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(math.isclose(_number(a), _number(b), rel_tol=PRINTED, abs_tol=1e-9) for a, b in pairs)


def _number(text: str) -> float:
    return float(text.replace("\u2212", "-"))
