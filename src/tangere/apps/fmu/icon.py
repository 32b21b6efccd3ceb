"""model.png: a small picture of the block for tools that show one."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tangere.apps.fmu.kinds import Kind

Pixels = NDArray[np.float64]

SIZE = 96  # pixels
_ARM = ((20, 82), (20, 56), (46, 26), (74, 40), (74, 60))  # base, shoulder, elbow, wrist, tool


def _distance(x: Pixels, y: Pixels, a: tuple[int, int], b: tuple[int, int]) -> Pixels:
    """Distance of every pixel from the segment a b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    t = np.clip(((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
    return np.asarray(np.hypot(x - a[0] - t * dx, y - a[1] - t * dy))


def _over(image: Pixels, colour: tuple[int, int, int, int], cover: Pixels) -> None:
    """Paint a colour where cover is 1, a share of it at the edges."""
    share = np.clip(cover, 0.0, 1.0)[..., None]
    image += share * (np.array(colour, dtype=np.float64) - image)


@cache
def icon_png(kind: Kind) -> bytes:
    """The arm in a rounded square; the colour of the tool tells the kinds apart."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    image = np.zeros((SIZE, SIZE, 4))
    inside = np.hypot(np.maximum(np.abs(x - 48) - 34, 0), np.maximum(np.abs(y - 48) - 34, 0))
    _over(image, (23, 43, 77, 255), 12.5 - inside)
    for a, b in pairwise(_ARM):
        _over(image, (226, 232, 240, 255), 5.5 - _distance(x, y, a, b))
    for a in _ARM[1:4]:
        _over(image, (96, 165, 250, 255), 7.0 - np.hypot(x - a[0], y - a[1]))
    hues = {
        "fk": (52, 211, 153), "ik": (251, 191, 36), "dynamics": (248, 113, 113), "inverse-dynamics": (251, 146, 60),
        "controller": (167, 139, 250), "observer": (244, 114, 182), "arm": (45, 212, 191), "all": (255, 255, 255),
    }  # fmt: skip
    _over(image, (*hues[kind.name], 255), 8.0 - np.hypot(x - 74, y - 66))
    _over(image, (148, 163, 184, 255), 4.0 - _distance(x, y, (10, 84), (40, 84)))
    pixels = np.round(image).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
