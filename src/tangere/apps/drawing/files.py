"""What a drawing leaves in its folder: plan.svg and drawn.svg, the preview, the ink; and its figures in words.

An SVG is in millimetres, one path per stroke, in drawing order, which any plotter tool reads.
"""

from __future__ import annotations

import io
import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.ink import Ink, colour, thinned
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import DrawingPlan
from tangere.apps.drawing.strokes.strokes import Strokes, along, length, simplified
from tangere.errors import extra
from tangere.logs.files import replacing, write_text
from tangere.report.terminal import plural
from tangere.types import Array

PEN = 0.5e-3  # m: width of the line at the wanted force, a fine felt pen
# The line is wider where the pen is pressed harder, as the cube root: the contact of a round elastic tip (Hertz). From
# half the wanted force on it is black; below, a dry line that grows paler with the force.
BLACK_FROM = 0.5
PIXEL = 0.1e-3  # m: five pixels across the line
SIDE_MAX = 3000  # pixels of the longer side; a larger drawing has larger pixels
INK_ROWS = 4096  # samples of ink that are written in one go: some 150 kB
STEP = 0.5  # pixels between two prints of the tip
LINE = 0.01e-3  # m: drawn.svg keeps the ink within this, a tenth of what its plan was simplified by
PREVIEW = 1000  # pixels of the preview's longer side
# Digits after the point [mm]: a nanometre, so that what is read back is what was written.
DIGITS = 6
# First to last stroke, evenly bright, told apart by colour-blind readers too: dark blue over green to orange.
COLOURS = ((38, 70, 160), (20, 140, 120), (120, 150, 30), (220, 120, 20))


def svg_text(strokes: Strokes, *, pen: float = PEN) -> str:
    """The SVG document: size in mm, one unit of its view box one mm, x right, y down, (0, 0) the upper left corner.

    pen: width [m] of the line as a viewer shows it.
    """
    width, height = (1e3 * side for side in strokes.size)
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" '
        f'width="{_number(width)}mm" height="{_number(height)}mm" '
        f'viewBox="0 0 {_number(width)} {_number(height)}">\n'
        f'<g id="strokes" fill="none" stroke="black" stroke-width="{_number(1e3 * pen)}" '
        'stroke-linecap="round" stroke-linejoin="round">\n'
    )
    return head + "".join(f'<path d="{path_data(line, strokes.size)}"/>\n' for line in strokes.lines) + "</g>\n</svg>\n"


def path_data(line: np.ndarray, size: tuple[float, float]) -> str:
    """One line (k, 2) [m], canvas frame, as the `d` of an SVG path in mm from the upper left corner."""
    points = 1e3 * (line * [1.0, -1.0] + np.array(size) / 2.0)
    return "M" + " L".join(f"{_number(x)},{_number(y)}" for x, y in points.tolist())


def write_svg(strokes: Strokes, path: str | os.PathLike[str], *, pen: float = PEN) -> None:
    """Write strokes to a file; it appears whole or not at all."""
    write_text(path, svg_text(strokes, pen=pen))


def _number(value: float) -> str:
    """A number with at most DIGITS digits after the point, without trailing zeros or a negative zero."""
    text = f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def figures(strokes: Strokes, *, seconds: float | None = None) -> str:
    """One line for people: strokes, length drawn, travel with the pen up, size, and time where it is known."""
    words = [
        plural(len(strokes), "stroke"),
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


def write_ink(ink: Ink, path: str | os.PathLike[str]) -> None:
    """t [s], x, y [m] on the canvas and force [N] along its normal, a line for each sample in which the pen touched."""
    with replacing(path) as temporary:
        table = np.stack((ink.t, ink.x, ink.y, ink.force), axis=1)
        row = "%.6f,%.6f,%.6f,%.6f\n"
        with temporary.open("w", encoding="ascii", newline="\n") as file:
            file.write("t,x,y,force\n")
            for first in range(0, len(table), INK_ROWS):
                some = table[first : first + INK_ROWS]
                file.write(row * len(some) % tuple(some.ravel().tolist()))


def write_bytes(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def ink_lines(ink: Ink, size: tuple[float, float]) -> Strokes:
    """The ink as lines, one for each time the pen touched; what touched in a single sample is a dot of two points."""
    lines = [np.repeat(part.points, 2, axis=0)[:2] if len(part) < 2 else part.points for part in ink.strokes()]
    return simplified(Strokes(tuple(lines), size), LINE)


def ink_picture(ink: Ink, size: tuple[float, float], force: float) -> NDArray[np.uint8]:
    """(h, w) grey: the paper (width, height) [m] with its ink, as a camera above it would see it.

    A round print of the tip every half pixel: diameter PEN (F / force)^(1/3), black from half the wanted force on.
    """
    pixel = max(PIXEL, max(size) / SIDE_MAX)
    columns, rows = (max(1, round(side / pixel)) for side in size)
    dark = np.zeros(rows * columns)
    prints = [np.stack(_evenly(part, STEP * pixel)) for part in ink.strokes()]
    x, y, pressed = np.concatenate([np.zeros((3, 0)), *prints], axis=1)
    u, v = x / pixel + 0.5 * columns, 0.5 * rows - y / pixel
    share = np.maximum(pressed, 0.0) / force
    radius = 0.5 * PEN / pixel * np.cbrt(share)
    tone = np.minimum(share / BLACK_FROM, 1.0)
    most = float(radius.max(initial=0.0)) + 0.5
    reach = math.ceil(most + 0.5)
    row, column = np.floor(v).astype(np.int64), np.floor(u).astype(np.int64)
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            if math.hypot(max(abs(down) - 0.5, 0.0), max(abs(right) - 0.5, 0.0)) > most:
                continue  # no print is so large
            there, beside = row + down, column + right
            away = np.hypot(beside + 0.5 - u, there + 0.5 - v)
            cover = tone * np.clip(radius - away + 0.5, 0.0, 1.0)
            seen = (cover > 0.0) & (there >= 0) & (there < rows) & (beside >= 0) & (beside < columns)
            np.maximum.at(dark, there[seen] * columns + beside[seen], cover[seen])
    grey: NDArray[np.uint8] = np.rint(255.0 * (1.0 - dark)).astype(np.uint8).reshape(rows, columns)
    return grey


def _evenly(ink: Ink, step: float) -> tuple[Array, Array, Array]:
    """x, y, force at places `step` [m] apart along the ink, its first and last included; a resting pen: the hardest."""
    way = along(ink.points)
    at = np.linspace(0.0, way[-1], max(2, math.ceil(way[-1] / step) + 1))
    x, y, force = (np.interp(at, way, values) for values in (ink.x, ink.y, ink.force))
    return x, y, force


def ink_marks(ink: Ink, canvas: Canvas, most: int) -> tuple[Array, Array]:
    """Times (K,) and points (K, 3) [m], base axes, of the ink for a picture in space; a row of NaN between two strokes.

    At most about `most` rows, evenly along the ink.
    """
    parts = ink.strokes()
    step = sum(length(part.points) for part in parts) / max(most - 4 * len(parts), 10)
    times, points = [], []
    for part in parts:
        rows = thinned(part, max(step, 1e-6))
        times += [part.t[rows], part.t[-1:]]
        points += [canvas.to_base(part.points[rows]), np.full((1, 3), np.nan)]
    if not parts:
        return np.zeros(1), canvas.to_base(np.zeros((1, 2)))
    return np.concatenate(times), np.concatenate(points)


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of (h, w) grey or (h, w, 3) coloured pixels of eight bits."""
    Image, _, _ = _pillow()
    return encoded(Image.fromarray(pixels), "PNG")


def encoded(image: Any, kind: str, **how: Any) -> bytes:
    """A picture of Pillow as a file of that kind."""
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def preview_png(strokes: Strokes, *, seconds: float | None = None, title: str = "") -> bytes:
    """The preview as a PNG: strokes coloured by their order, travel with the pen up in thin grey, the figures below."""
    Image, ImageDraw, ImageFont = _pillow()
    scale = PREVIEW / max(strokes.size)
    width, height = (max(1, round(scale * side)) for side in strokes.size)
    edge, letters = 40, 22
    fine = 2  # drawn twice as large and averaged: smooth lines
    full = (max(width, 700) + 2 * edge, height + 2 * edge + 3 * letters)
    image = Image.new("RGB", (fine * full[0], fine * full[1]), "white")
    pen = ImageDraw.Draw(image)
    left = (full[0] - width) / 2.0

    def place(points: Array) -> list[tuple[float, float]]:
        p = fine * (points * [scale, -scale] + [left + 0.5 * width, edge + letters + 0.5 * height])
        return [(float(x), float(y)) for x, y in p]

    corner = 0.5 * np.array(strokes.size)
    (x0, y0), (x1, y1) = place(np.array([corner * [-1.0, 1.0], corner * [1.0, -1.0]]))
    pen.rectangle((x0, y0, x1, y1), outline="#bbbbbb", width=fine)
    for before, after in zip(strokes.lines[:-1], strokes.lines[1:], strict=True):
        pen.line(place(np.array([before[-1], after[0]])), fill="#bbbbbb", width=fine)
    count = max(1, len(strokes) - 1)
    for number, line in enumerate(strokes.lines):
        tone, wide = colour(number / count, COLOURS), max(2, round(fine * PEN * scale))
        pen.line(place(line), fill=tone, width=wide, joint="curve")
    for point, mark in ((strokes.lines[0][:1], "#26a269"), (strokes.lines[-1][-1:], "#c01c28")):
        ((x, y),) = place(point)
        r = fine * 6
        pen.ellipse((x - r, y - r, x + r, y + r), fill=mark)
    font = ImageFont.load_default(size=fine * letters)
    pen.text((fine * edge, fine * 10), _plain(title), fill="#222222", font=font)
    below = fine * (edge + 1.6 * letters + height)
    text = figures(strokes, seconds=seconds)
    room = (full[0] - 2 * edge) * fine
    wide = pen.textlength(text, font=font)
    if wide > room:
        font = ImageFont.load_default(size=fine * letters * room / wide)
    pen.text((fine * edge, below), text, fill="#222222", font=font)
    return encoded(image.resize(full, Image.Resampling.BOX), "PNG")


def _plain(text: str) -> str:
    """Text that the built-in font can show."""
    return "".join(c if c.isprintable() and ord(c) < 0x250 else "?" for c in text)[:80]


def _pillow() -> tuple[Any, Any, Any]:
    with extra("pictures are written by Pillow: pip install 'tangere[draw]'"):
        from PIL import Image, ImageDraw, ImageFont
    return Image, ImageDraw, ImageFont
