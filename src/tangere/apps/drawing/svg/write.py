"""Strokes as SVG: a file in millimetres, one path per stroke, in drawing order, which any plotter tool reads.

And a preview before anything moves: pen-up moves dashed, the figures below.
"""

from __future__ import annotations

import os
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue

if TYPE_CHECKING:
    from tangere.apps.drawing.plan.motion import DrawingPlan

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


# First to last stroke, evenly bright, told apart by colour-blind readers too: dark blue over green to orange.
COLOURS = np.array([[38, 70, 160], [20, 140, 120], [120, 150, 30], [220, 120, 20]])


def preview_svg(strokes: Strokes, *, seconds: float | None = None, title: str = "", pen: float = 0.5e-3) -> str:
    """An SVG page: each stroke in the colour of its place in the order, travel dashed, start and end marked.

    seconds: how long the drawing will take, where the caller knows; title: a line above.
    """
    width, height = (1e3 * side for side in strokes.size)
    edge = 0.04 * max(width, height)
    text = 0.032 * width  # the figures are some 60 letters: they fill the width
    above = 2.0 * text if title else 0.0
    full = (width + 2.0 * edge, height + 2.0 * edge + above + 2.6 * text)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full[0]:.3f}mm" height="{full[1]:.3f}mm" '
        f'viewBox="0 0 {full[0]:.3f} {full[1]:.3f}" font-family="sans-serif" font-size="{text:.3f}">',
        f'<rect width="{full[0]:.3f}" height="{full[1]:.3f}" fill="#ffffff"/>',
    ]
    if title:
        parts.append(
            f'<text x="{edge:.3f}" y="{edge + 0.6 * text:.3f}" font-weight="bold" fill="#222222">{escape(title)}</text>'
        )
    parts.append(
        f'<g transform="translate({edge:.3f} {edge + above:.3f})" fill="none" '
        'stroke-linecap="round" stroke-linejoin="round">'
    )
    parts.append(f'<rect width="{width:.3f}" height="{height:.3f}" stroke="#bbbbbb" stroke-width="{0.1 * text:.3f}"/>')
    thin = 0.05 * text
    for before, after in zip(strokes.lines[:-1], strokes.lines[1:], strict=True):
        way = path_data(np.array([before[-1], after[0]]), strokes.size)
        parts.append(
            f'<path d="{way}" stroke="#999999" stroke-width="{thin:.3f}" '
            f'stroke-dasharray="{6 * thin:.3f} {6 * thin:.3f}"/>'
        )
    for number, line in enumerate(strokes.lines):
        share = number / max(1, len(strokes) - 1)
        parts.append(
            f'<path d="{path_data(line, strokes.size)}" stroke="{_colour(share)}" stroke-width="{1e3 * pen:.3f}"/>'
        )
    if strokes.lines:
        for point, colour in ((strokes.lines[0][0], "#26a269"), (strokes.lines[-1][-1], "#c01c28")):
            x, y = 1e3 * (point * [1.0, -1.0] + np.array(strokes.size) / 2.0)
            parts.append(f'<circle cx="{x:.3f}" cy="{y:.3f}" r="{0.35 * text:.3f}" fill="{colour}"/>')
    parts.append("</g>")
    parts.append(
        f'<text x="{edge:.3f}" y="{full[1] - 1.1 * text:.3f}" fill="#222222">'
        f"{escape(figures(strokes, seconds=seconds))}</text>"
    )
    return "\n".join(parts) + "\n</svg>\n"


def figures(strokes: Strokes, *, seconds: float | None = None) -> str:
    """One line for people: strokes, length drawn, travel with the pen up, size, and time where it is known."""
    count = len(strokes)
    words = [
        f"{count} stroke{'s' if count != 1 else ''}",
        f"{strokes.draw_length:.2f} m drawn",
        f"{strokes.pen_up_length:.2f} m pen up",
        f"{1e3 * strokes.size[0]:.0f} x {1e3 * strokes.size[1]:.0f} mm",
    ]
    if seconds is not None:
        words.append(
            f"about {int(seconds // 60)} min {int(seconds % 60):02d} s" if seconds >= 60.0 else f"about {seconds:.0f} s"
        )
    return ", ".join(words)


def time_figures(plan: DrawingPlan) -> str:
    """One line for people: what the time is made of, and how fast the pen is on average while it draws."""
    times = plan.phase_times
    average = f" at {1e3 * plan.draw_length / times['draw']:.0f} mm/s on average" if times["draw"] > 0.0 else ""
    # bends and short lines never reach the speed that was asked for: then a higher one gains next to nothing
    slow = plan.draw_length < 0.9 * plan.pace.speed * times["draw"]
    why = f" (of {1e3 * plan.pace.speed:.0f}: slower in bends and at ends)" if slow else ""
    return (
        f"time: {times['draw']:.0f} s drawing{average}{why}, {times['touch']:.0f} s touching down, "
        f"{times['travel']:.0f} s in the air"
    )


def _colour(share: float) -> str:
    place = share * (len(COLOURS) - 1)
    k = min(int(place), len(COLOURS) - 2)
    red, green, blue = np.rint(COLOURS[k] + (place - k) * (COLOURS[k + 1] - COLOURS[k])).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"
