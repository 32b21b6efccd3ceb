"""Thinning: a mask of lines becomes lines one pixel wide in their middle.

Two half-steps in turn remove border pixels from the south-east and the north-west until nothing changes (the parallel
thinning of Guo and Hall, 1989, its conditions evaluated once for all 256 neighbourhoods). A pixel goes only if its
eight neighbours stay one piece without it, so lines, loops and the number of pieces are kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.picture.picture import opencv

Mask = NDArray[np.bool_]

# Weights of the eight neighbours in a code: clockwise from the north-west corner, as the kernel below lays them out.
WEIGHTS = np.array([[1, 2, 4], [128, 0, 8], [64, 32, 16]])


def thinned(mask: Mask) -> Mask:
    """The centre lines (h, w) of a mask (h, w): one pixel wide, connected as the mask is, ends kept.

    Pixels on the border of the picture are treated as if white paper went on outside.
    """
    cv2 = opencv()
    tables = [_table(0), _table(1)]
    kernel = WEIGHTS.astype(np.float32)
    image = np.pad(np.ascontiguousarray(mask), 1).astype(np.uint8)
    unchanged = 0
    half = 0
    while unchanged < 2:
        codes = cv2.filter2D(image, cv2.CV_8U, kernel, borderType=cv2.BORDER_CONSTANT)
        kept = cv2.LUT(codes, tables[half])
        after = cv2.bitwise_and(image, kept)
        unchanged = unchanged + 1 if np.array_equal(after, image) else 0
        image = after
        half = 1 - half
    result: Mask = image[1:-1, 1:-1].astype(bool)
    return result


def _table(half: int) -> NDArray[np.uint8]:
    """(256,) 0 where a pixel with these neighbours is removed in this half-step, else 1."""
    codes = np.arange(256)
    # p2..p9: north, north-east, ... north-west, clockwise, as in the literature
    p9, p2, p3, p4, p5, p6, p7, p8 = ((codes >> bit) & 1 for bit in range(8))
    pieces = (1 - p2) * (p3 | p4) + (1 - p4) * (p5 | p6) + (1 - p6) * (p7 | p8) + (1 - p8) * (p9 | p2)
    pairs = np.minimum((p9 | p2) + (p3 | p4) + (p5 | p6) + (p7 | p8), (p2 | p3) + (p4 | p5) + (p6 | p7) + (p8 | p9))
    side = ((p2 | p3 | (1 - p5)) & p4) if half == 0 else ((p6 | p7 | (1 - p9)) & p8)
    removed = (pieces == 1) & (pairs >= 2) & (pairs <= 3) & (side == 0)
    return np.where(removed, 0, 1).astype(np.uint8)
