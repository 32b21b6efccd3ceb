"""What a drawing leaves in its folder: lines as pixels and PNG (numpy alone), the preview, the ink."""

from __future__ import annotations

import io
import math
import os
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.ink import Ink
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.strokes.strokes import Strokes, simplified
from tangere.apps.drawing.svg.write import COLOURS, figures
from tangere.errors import InvalidValue, MissingExtra
from tangere.logs.files import replacing
from tangere.types import Array

# Largest raster [pixels] that is made.
PIXELS_MAX = 25_000_000


def rendered(strokes: Strokes, *, pixel: float = 0.2e-3, pen: float = 0.5e-3) -> NDArray[np.uint8]:
    """(h, w) the drawing as a camera would see it: black lines of width `pen` [m] on white, `pixel` [m] per pixel.

    Grey is by the distance of the pixel's middle from the line, one pixel of slope at its border.
    """
    if not (np.isfinite(pixel) and np.isfinite(pen) and pixel > 0.0 and pen > 0.0):
        raise InvalidValue(f"pixel {pixel} m and pen {pen} m must be positive")
    columns, rows = (max(1, round(side / pixel)) for side in strokes.size)
    if columns * rows > PIXELS_MAX:
        raise InvalidValue(f"{columns} x {rows} pixels; at most {PIXELS_MAX} are drawn: choose a larger pixel")
    clear = np.full((rows, columns), np.inf)
    half = 0.5 * pen / pixel
    reach = half + 1.0
    scale = np.array([columns, rows]) / np.array(strokes.size)
    for line in strokes.lines:
        points = line * [1.0, -1.0] * scale + np.array([columns, rows]) / 2.0
        for (ax, ay), (bx, by) in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
            # long lines in short pieces: the box round a slanted one is mostly empty
            pieces = max(1, int(max(abs(bx - ax), abs(by - ay)) / 64.0))
            for k in range(pieces):
                s, t = k / pieces, (k + 1) / pieces
                _stamp(clear, ax + s * (bx - ax), ay + s * (by - ay), ax + t * (bx - ax), ay + t * (by - ay), reach)
    grey: NDArray[np.uint8] = np.rint(255.0 * np.clip(clear - half + 0.5, 0.0, 1.0)).astype(np.uint8)
    return grey


def _stamp(clear: np.ndarray, ax: float, ay: float, bx: float, by: float, reach: float) -> None:
    """Lower the distances `clear` near one segment."""
    rows, columns = clear.shape
    left, right = max(0, int(min(ax, bx) - reach)), min(columns, int(max(ax, bx) + reach) + 2)
    top, bottom = max(0, int(min(ay, by) - reach)), min(rows, int(max(ay, by) + reach) + 2)
    if left >= right or top >= bottom:
        return
    x = np.arange(left, right) + 0.5 - ax
    y = (np.arange(top, bottom) + 0.5 - ay)[:, None]
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    share = np.clip((x * dx + y * dy) / square, 0.0, 1.0) if square > 0.0 else np.zeros((1, 1))
    distance = np.hypot(x - share * dx, y - share * dy)
    window = clear[top:bottom, left:right]
    np.minimum(window, distance, out=window)


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of (h, w) grey or (h, w, 3) coloured pixels of eight bits."""
    array = np.ascontiguousarray(pixels)
    if (
        array.dtype != np.uint8
        or array.ndim not in (2, 3)
        or (array.ndim == 3 and array.shape[2] != 3)
        or not array.size
    ):
        raise InvalidValue(f"pixels {array.shape} {array.dtype}; (h, w) or (h, w, 3) of uint8 is written")
    rows, columns = array.shape[:2]
    flat = array.reshape(rows, -1)
    # filter 1, each byte less the one of the pixel to its left: half the size for pictures with soft tones
    step = 1 if array.ndim == 2 else 3
    lines = np.zeros((rows, 1 + flat.shape[1]), dtype=np.uint8)
    lines[:, 0] = 1
    lines[:, 1:] = flat
    lines[:, 1 + step :] -= flat[:, :-step]
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0 if array.ndim == 2 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


PEN = 0.5e-3  # m: width of the line at the wanted force, a fine felt pen
# The line is wider where the pen is pressed harder, as the cube root: the contact of a round elastic tip (Hertz). From
# half the wanted force on it is black; below, a dry line that grows paler with the force.
BLACK_FROM = 0.5
PIXEL = 0.1e-3  # m: five pixels across the line
SIDE_MAX = 3000  # pixels of the longer side; a larger drawing has larger pixels
STEP = 0.5  # pixels between two prints of the tip
LINE = 0.01e-3  # m: drawn.svg keeps the ink within this, a tenth of what its plan was simplified by
PREVIEW = 1000  # pixels of the preview's longer side


def write_ink(ink: Ink, path: str | os.PathLike[str]) -> None:
    """t [s], x, y [m] on the canvas and force [N] along its normal, a line for each sample in which the pen touched."""
    with replacing(path) as temporary:
        table = np.stack((ink.t, ink.x, ink.y, ink.force), axis=1)
        np.savetxt(temporary, table, fmt="%.6f", delimiter=",", header="t,x,y,force", comments="")


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
    for part in ink.strokes():
        x, y, pressed = _evenly(part, STEP * pixel)
        u, v = x / pixel + 0.5 * columns, 0.5 * rows - y / pixel
        share = np.maximum(pressed, 0.0) / force
        radius = 0.5 * PEN / pixel * np.cbrt(share)
        tone = np.minimum(share / BLACK_FROM, 1.0)
        reach = math.ceil(float(radius.max(initial=0.0))) + 1
        for down in range(-reach, reach + 1):
            for right in range(-reach, reach + 1):
                row, column = np.floor(v).astype(np.int64) + down, np.floor(u).astype(np.int64) + right
                away = np.hypot(column + 0.5 - u, row + 0.5 - v)
                cover = tone * np.clip(radius - away + 0.5, 0.0, 1.0)
                seen = (cover > 0.0) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
                np.maximum.at(dark, row[seen] * columns + column[seen], cover[seen])
    grey: NDArray[np.uint8] = np.rint(255.0 * (1.0 - dark)).astype(np.uint8).reshape(rows, columns)
    return grey


def _evenly(ink: Ink, step: float) -> tuple[Array, Array, Array]:
    """x, y, force at places `step` [m] apart along the ink, its first and last included; a resting pen: the hardest."""
    along = np.concatenate(((0.0,), np.cumsum(np.hypot(np.diff(ink.x), np.diff(ink.y)))))
    at = np.linspace(0.0, along[-1], max(2, math.ceil(along[-1] / step) + 1))
    x, y, force = (np.interp(at, along, values) for values in (ink.x, ink.y, ink.force))
    return x, y, force


def ink_marks(ink: Ink, canvas: Canvas, most: int) -> tuple[Array, Array]:
    """Times (K,) and points (K, 3) [m], base axes, of the ink for a picture in space; a row of NaN between two strokes.

    At most about `most` rows, evenly along the ink.
    """
    parts = ink.strokes()
    length = sum(float(np.hypot(np.diff(part.x), np.diff(part.y)).sum()) for part in parts)
    step = length / max(most - 3 * len(parts), 10)
    times, points = [], []
    for part in parts:
        along = np.concatenate(((0.0,), np.cumsum(np.hypot(np.diff(part.x), np.diff(part.y)))))
        rows = np.searchsorted(along, np.linspace(0.0, along[-1], max(2, math.ceil(along[-1] / max(step, 1e-6)))))
        rows = np.unique(rows.clip(0, len(part) - 1))
        times += [part.t[rows], part.t[-1:]]
        points += [canvas.to_base(part.points[rows]), np.full((1, 3), np.nan)]
    if not parts:
        return np.zeros(1), canvas.to_base(np.zeros((1, 2)))
    return np.concatenate(times), np.concatenate(points)


def ink_png(ink: Ink, size: tuple[float, float], force: float) -> bytes:
    """drawn.png."""
    return png_bytes(ink_picture(ink, size, force))


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
        pen.line(place(line), fill=_colour(number / count), width=max(2, round(fine * PEN * scale)), joint="curve")
    for point, colour in ((strokes.lines[0][:1], "#26a269"), (strokes.lines[-1][-1:], "#c01c28")):
        ((x, y),) = place(point)
        r = fine * 6
        pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    font = ImageFont.load_default(size=fine * letters)
    pen.text((fine * edge, fine * 10), _plain(title), fill="#222222", font=font)
    below = fine * (edge + 1.6 * letters + height)
    text = figures(strokes, seconds=seconds)
    room = (full[0] - 2 * edge) * fine
    wide = pen.textlength(text, font=font)
    if wide > room:
        font = ImageFont.load_default(size=fine * letters * room / wide)
    pen.text((fine * edge, below), text, fill="#222222", font=font)
    out = io.BytesIO()
    image.resize(full, Image.Resampling.BOX).save(out, "PNG")
    return out.getvalue()


def _plain(text: str) -> str:
    """Text that the built-in font can show."""
    return "".join(c if c.isprintable() and ord(c) < 0x250 else "?" for c in text)[:80]


def _colour(share: float) -> tuple[int, int, int]:
    place = share * (len(COLOURS) - 1)
    k = min(int(place), len(COLOURS) - 2)
    red, green, blue = np.rint(COLOURS[k] + (place - k) * (COLOURS[k + 1] - COLOURS[k])).astype(int).tolist()
    return red, green, blue


def _pillow() -> tuple[Any, Any, Any]:
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise MissingExtra("pictures are written by Pillow: pip install 'tangere[draw]'") from error
    return Image, ImageDraw, ImageFont
