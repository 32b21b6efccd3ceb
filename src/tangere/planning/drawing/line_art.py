"""Line drawings: ink against paper, and areas that are too wide to be lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.planning.drawing.edges import otsu_of
from tangere.planning.drawing.picture import Picture, opencv, strongest, tones
from tangere.planning.drawing.skeleton import Mask, thinned

# Ink that differs from the paper by less than this [of 255 levels] is none: JPEG leaves ghosts of 10 round lines.
FAINTEST = 24.0
# Within this [of 255 levels] a pixel is paper: the noise and ghosts of a scan.
NEAR = 20.0
# Share of half-tones above which a picture is no line drawing.
HALF_TONES = 0.03
# A width below this share of the picture's longer side is a line whatever its shape (6 mm of 200) ...
LINE_MAX = 0.03
# ... above it an area, unless it is this many times as long as wide (a square's centre line, its diagonals, is 2.8) ...
ELONGATED = 4.0
# ... or, from this share on (12 mm of 200), so many times.
AREA_MIN = 0.06
AREA_ELONGATED = 10.0
# An area is this many times as wide as the lines beside it: two lines that cross at 50 degrees are 2.4 times as wide
# where they do.
WIDER = 2.5
# More areas than this are a texture.
AREAS_MAX = 5000
# Wall [pixels] that is left of an area so that its outline is thinned like a line.
WALL = 3


def contrast(picture: Picture) -> NDArray[np.uint8]:
    """(h, w) how far [0..255] each pixel is from the colour of the paper near it: the largest of the three channels.

    The paper is the most frequent colour; where the light falls off over the sheet (a photographed drawing) it is
    the median over a window far wider than any line.
    """
    cv2 = opencv()
    image = tones(picture)
    flat = _from_paper(image)
    if _even(flat):
        return flat
    longest = max(image.shape[:2])
    # shares of the picture, not pixels: at 250 pixels a window of 41 spans a sixth of the sheet
    scale = 250.0 / longest
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    local = cv2.GaussianBlur(cv2.medianBlur(small, 41), (0, 0), 5.0)
    local = cv2.resize(local, (picture.width, picture.height), interpolation=cv2.INTER_LINEAR)
    uneven: NDArray[np.uint8] = strongest(cv2.absdiff(image, local))
    return uneven


def line_mask(ink: NDArray[np.uint8]) -> Mask:
    """(h, w) where there is ink, from the contrast: Otsu's threshold, specks of one or two pixels removed."""
    cv2 = opencv()
    if ink.max() < FAINTEST:
        return np.zeros(ink.shape, dtype=bool)
    # over all pixels, and over those that are not paper: the lower one, as faint lines beside black areas are lines too
    counts = np.bincount(ink.ravel(), minlength=256)
    threshold = max(min(otsu_of(counts), otsu_of(np.where(np.arange(256) < FAINTEST / 2, 0, counts))), FAINTEST)
    mask = (ink > threshold).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    large = stats[:, cv2.CC_STAT_AREA] >= (3 if max(mask.shape) >= 200 else 1)
    large[0] = False
    result: Mask = large[labels] if count > 1 else mask.astype(bool)
    return result


def even_paper(picture: Picture) -> bool:
    """Whether one colour, the paper's, covers half of a picture; else `contrast` is against the median around."""
    return _even(_from_paper(tones(picture)))


def looks_like_lines(ink: NDArray[np.uint8], even: bool = True) -> bool:
    """Whether a picture with this contrast is a line drawing: mostly paper, few half-tones, and ink on less than half.

    Half-tones are pixels between paper and full ink that no border between the two explains. Where the paper is not
    even, what is wider than a line is no ink: the median around it would be its own tone, a photograph's.
    """
    cv2 = opencv()
    if ink.max() < FAINTEST or float((ink < NEAR).mean()) < 0.5:
        return False  # a faint picture may still have edges
    mask = line_mask(ink).astype(np.uint8)
    if not 0.0 < float(mask.mean()) < 0.5:
        return False
    if not even and hollowed(mask.astype(bool))[1] > 0:
        return False
    full = float(np.median(ink[mask > 0]))
    square = np.ones((5, 5), np.uint8)
    border = cv2.dilate(mask, square) - cv2.erode(mask, square)
    between = (ink > 0.25 * full) & (ink < 0.75 * full) & (border == 0)
    return bool(between.mean() < HALF_TONES)


def hollowed(mask: Mask) -> tuple[Mask, int]:
    """(mask with the inside of its areas taken out, number of areas): what is much wider than a line becomes its wall.

    A core is what lies deeper than any line is wide. It is an area if it is compact (its own centre line is not
    ELONGATED times its width) and far wider than the lines of the picture, so that no crossing is taken for one.
    """
    cv2 = opencv()
    image = np.pad(mask, 1).astype(np.uint8)
    longest = max(mask.shape)
    half = cv2.distanceTransform(image, cv2.DIST_L2, 5)
    least = max(0.5 * LINE_MAX * longest, WALL + 1.0)
    if half.max() <= least:
        return mask, 0
    centre = thinned(image.astype(bool))
    lines = half[centre & (half <= least)]
    # lines are what the picture is made of if they are a twentieth of all centre lines; else there are only shapes
    usual = float(np.median(lines)) if lines.size > 0.05 * centre.sum() else 0.0
    count, labels = cv2.connectedComponents((half > least).astype(np.uint8), connectivity=8)
    if count - 1 > AREAS_MAX:  # a texture, no drawing with areas
        return mask, 0
    widest = np.zeros(count)
    np.maximum.at(widest, labels.ravel(), half.ravel())
    along = np.bincount(labels[centre], minlength=count)
    elongated = along / np.maximum(2.0 * widest, 1.0)
    area = (elongated < np.where(2.0 * widest > AREA_MIN * longest, AREA_ELONGATED, ELONGATED)) & (
        widest > WIDER * usual
    )
    area[0] = False
    if not area.any():
        return mask, 0
    # back from the cores to the areas' own border, then a wall inwards
    reach = cv2.distanceTransform((~area[labels]).astype(np.uint8), cv2.DIST_L2, 5)
    image[(reach <= least - WALL) & (half > WALL)] = 0
    return image[1:-1, 1:-1].astype(bool), int(area.sum())


def _from_paper(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(h, w) how far each pixel is from the most frequent colour."""
    paper = np.empty_like(image)
    paper[:] = _paper(image)
    flat: NDArray[np.uint8] = strongest(opencv().absdiff(image, paper))
    return flat


def _even(flat: NDArray[np.uint8]) -> bool:
    # a picture of some dozen pixels has no room for a window around a line
    return max(flat.shape) < 64 or float((flat < NEAR).mean()) > 0.5


def _paper(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The most frequent colour of (h, w) or (h, w, 3), in steps of 8 levels, then the mean of its pixels."""
    few = image[::3, ::3] if min(image.shape[:2]) > 300 else image
    coarse = (few >> 3).astype(np.int32)
    code = coarse if few.ndim == 2 else (coarse[..., 0] << 10) | (coarse[..., 1] << 5) | coarse[..., 2]
    most = np.bincount(code.ravel()).argmax()
    result: NDArray[np.uint8] = np.rint(few[code == most].mean(axis=0)).astype(np.uint8)
    return result
