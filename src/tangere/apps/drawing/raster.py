"""Lines as pixels, and pixels as a PNG file; numpy alone."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue

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
