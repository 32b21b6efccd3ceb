"""Coloured drawings: areas of flat colour with dark outlines, as in a comic. The outlines are its lines."""

from __future__ import annotations

import numpy as np

from tangere.apps.drawing.picture.edges import edge_mask
from tangere.apps.drawing.picture.line_art import FAINTEST, LINE_MAX, from_paper, line_mask
from tangere.apps.drawing.picture.picture import Picture, opencv, tones
from tangere.apps.drawing.picture.skeleton import Mask

# Share of pixels that differ from their neighbours by less than FLAT [of 255 levels]: of a comic nine in ten, of a
# photograph, whose sensor is noisy, half at most.
FLAT_SHARE = 0.8
FLAT = 2.0
# Share of the borders between colours that have an outline: fewer, and the outlines are details of something else.
OUTLINED = 0.6
# An outline is darker than both sides by this [of 255 levels] ...
DARKER = 40.0
# ... and of what is not paper at least this share is flat and that much brighter: else it is a drawing in ink alone.
COLOURED = 0.2
# Pixels on both sides of an outline, as a share of the picture's longer side, in which its own two borders are found.
BESIDE = 0.006


def outlined(picture: Picture, *, shortest: float) -> Mask | None:
    """(h, w) the outlines of a coloured drawing, and the borders that have none; None where it is no such drawing.

    Outlines are what closing (dilation, then erosion, by more than a line's width) fills: thin and darker than both
    sides. shortest [pixels]: borders without an outline that span less are left out.
    """
    cv2 = opencv()
    grey = cv2.cvtColor(picture.rgb, cv2.COLOR_RGB2GRAY)
    steps = np.maximum(np.abs(cv2.Sobel(grey, cv2.CV_16S, 1, 0)), np.abs(cv2.Sobel(grey, cv2.CV_16S, 0, 1))) / 8.0
    if float((steps < FLAT).mean()) < FLAT_SHARE:
        return None
    longest = max(grey.shape)
    size = 2 * round(0.5 * LINE_MAX * longest) + 3
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    dark = cv2.morphologyEx(grey, cv2.MORPH_BLACKHAT, disc)
    dark[dark < DARKER] = 0
    lines = line_mask(dark)
    if not lines.any():
        return None
    inked = from_paper(tones(picture)) > FAINTEST
    coloured = inked & (steps < FLAT) & (grey > float(np.median(grey[lines])) + DARKER)
    if float(coloured.sum()) < COLOURED * float(inked.sum()):
        return None
    near = cv2.dilate(lines.astype(np.uint8), np.ones((2 * round(BESIDE * longest) + 3,) * 2, np.uint8)) > 0
    borders, _ = edge_mask(picture, shortest=shortest)
    if float((borders & near).sum()) < OUTLINED * float(borders.sum()):
        return None
    rest = (borders & ~near).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(rest, connectivity=8)
    large = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]) >= shortest
    large[0] = False
    result: Mask = lines | (large[labels] if count > 1 else False)
    return result
