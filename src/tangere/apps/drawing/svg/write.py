"""Strokes as an SVG file: millimetres, one path per stroke, in drawing order; vpype and any plotter tool read it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue

# Digits after the point [mm]: a nanometre, so that what is read back is what was written.
DIGITS = 6


def svg_text(strokes: Strokes, *, pen: float = 0.5e-3, colour: str = "black") -> str:
    """The SVG document: size in mm, one unit of its view box one mm, x right, y down, (0, 0) the upper left corner.

    pen: width [m] of the line as a viewer shows it; colour: an SVG colour name or #rrggbb.
    """
    if not all(c.isalnum() or c == "#" for c in colour):
        raise InvalidValue(f"colour {colour!r}; a name like black or #rrggbb is valid")
    width, height = (1e3 * side for side in strokes.size)
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" '
        f'width="{_number(width)}mm" height="{_number(height)}mm" '
        f'viewBox="0 0 {_number(width)} {_number(height)}">\n'
        f'<g id="strokes" fill="none" stroke="{colour}" stroke-width="{_number(1e3 * pen)}" '
        'stroke-linecap="round" stroke-linejoin="round">\n'
    )
    return head + "".join(f'<path d="{path_data(line, strokes.size)}"/>\n' for line in strokes.lines) + "</g>\n</svg>\n"


def path_data(line: np.ndarray, size: tuple[float, float]) -> str:
    """One line (k, 2) [m], canvas frame, as the `d` of an SVG path in mm from the upper left corner."""
    points = 1e3 * (line * [1.0, -1.0] + np.array(size) / 2.0)
    return "M" + " L".join(f"{_number(x)},{_number(y)}" for x, y in points.tolist())


def write_svg(strokes: Strokes, path: str | Path, *, pen: float = 0.5e-3) -> None:
    """Write strokes to a file; it appears whole or not at all."""
    target = Path(path)
    text = svg_text(strokes, pen=pen)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)  # mkstemp's own 0600 would hide the file from others
        os.replace(name, target)
    except OSError as error:
        raise InvalidValue(f"cannot write {target}: {error.strerror or error}") from error


def _number(value: float) -> str:
    """A number with at most DIGITS digits after the point, without trailing zeros or a negative zero."""
    text = f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
