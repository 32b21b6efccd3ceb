"""Which pixels of a picture are lines.

Of a photograph its edges, by Canny's detector with thresholds from the picture itself:

    smoothed picture -> gradient g -> pixels where |g| is largest across the edge -> those above `high`,
    and those above `low` that hang together with one above `high`

The high threshold separates, by Otsu's rule, the weak from the strong among the gradients that stand out of the
noise; the low one is 0.4 of it (Canny's own advice is a third to a half). Of a line drawing ink against paper, without
areas that are too wide to be lines; of a coloured drawing its outlines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.picture.picture import Picture, opencv, strongest, tones
from tangere.apps.drawing.picture.skeleton import Mask, thinned
from tangere.errors import InvalidValue
from tangere.types import Array

# Smoothing [pixels] of a picture of 1000 pixels; larger pictures have wider edges, the noise of small ones is larger.
SIGMA = 1.4
# Low over high threshold.
RATIO = 0.4
# Gradients above this many times the median noise gradient are no noise: a Rayleigh variable exceeds 3.5 of its
# medians in 3 of 10 million pixels.
NOISE_FACTOR = 3.5
# An edge weaker than this [grey levels per pixel, after smoothing] is not seen on paper either.
WEAKEST = 3.0
# Every so many pixels each way tell the thresholds as well as all of them.
SAMPLE = 2
# Edges nearer to each other than this [pixels] become one line: a pen of 0.5 mm is 2.5 pixels wide at 200 mm.
TOGETHER = 3


def edge_mask(
    picture: Picture, *, thresholds: tuple[float, float] | None = None, shortest: float = 4.0
) -> tuple[Mask, tuple[float, float]]:
    """(mask (h, w) of edge pixels, the (low, high) thresholds used [grey levels per pixel])."""
    cv2 = opencv()
    image = tones(picture)
    sigma = SIGMA * float(np.clip(max(picture.width, picture.height) / 1000.0, 0.7, 2.0))
    # the median takes out single pixels, which a Gaussian only spreads
    smooth = cv2.GaussianBlur(cv2.medianBlur(image, 3), (0, 0), sigma)
    if thresholds is None:
        dx = cv2.Sobel(smooth, cv2.CV_16S, 1, 0, ksize=3)[::SAMPLE, ::SAMPLE].astype(np.float32)
        dy = cv2.Sobel(smooth, cv2.CV_16S, 0, 1, ksize=3)[::SAMPLE, ::SAMPLE].astype(np.float32)
        # the channel with the largest gradient counts; Sobel's kernel adds up 8 times the difference to the next pixel
        thresholds = found_thresholds(np.sqrt(strongest(dx * dx + dy * dy)) / 8.0)
    low, high = thresholds
    if not (0.0 < low <= high < 255.0):
        raise InvalidValue(f"edge thresholds {low}, {high}; 0 < low <= high < 255 grey levels per pixel is valid")
    edges = cv2.Canny(smooth, 8.0 * low, 8.0 * high, apertureSize=3, L2gradient=True)
    joined = cv2.morphologyEx(edges, cv2.MORPH_CLOSE, np.ones((TOGETHER, TOGETHER), np.uint8))
    return _long(joined, shortest), (float(low), float(high))


def _long(mask: NDArray[np.uint8], shortest: float) -> Mask:
    """The pieces of a mask that span `shortest` [pixels] and more."""
    cv2 = opencv()
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    large = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]) >= shortest
    large[0] = False
    kept: Mask = large[labels]
    return kept


def found_thresholds(size: np.ndarray) -> tuple[float, float]:
    """(low, high) from the gradients (h, w) of a picture, by Otsu's rule on their logarithms above the noise."""
    # most of a picture is no edge: the lower half of all gradients tells the noise
    noise = float(np.median(size[size <= np.quantile(size, 0.7)])) if size.size else 0.0
    floor = max(WEAKEST * RATIO, NOISE_FACTOR * noise * RATIO)
    strong = size[size > floor]
    if strong.size < 16:
        return max(WEAKEST * RATIO, floor), max(WEAKEST, floor / RATIO)
    high = max(float(np.exp(otsu(np.log(strong)))), WEAKEST, NOISE_FACTOR * noise)
    return RATIO * high, high


def otsu(values: np.ndarray, bins: int = 256) -> float:
    """Otsu's threshold of a sample: it splits it into two classes with the largest variance between them."""
    counts, borders = np.histogram(values, bins=bins)
    return float(np.interp(otsu_of(counts) + 1.0, np.arange(bins + 1), borders))


def otsu_of(counts: np.ndarray) -> float:
    """Otsu's threshold of a histogram, as an index: classes are the bins up to it and above it.

    Between two classes with empty bins in between every split is as good: the middle of the best ones.
    """
    index = np.arange(len(counts))
    if np.count_nonzero(counts) < 2:  # one class only: nothing lies above it
        return float(np.argmax(counts))
    weight = np.cumsum(counts).astype(float)
    mass = np.cumsum(counts * index).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mass[-1] * weight / weight[-1] - mass) ** 2 / (weight * (weight[-1] - weight))
    between = np.where(np.isfinite(between), between, -1.0)
    best = np.nonzero(between >= between.max() * (1.0 - 1e-9))[0]
    return float(index[best].mean())


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
# Less paper than this all round an area, and it is where lines meet: rays side by side leave next to none, those of a
# sun more than half.
HUB = 0.5
# Paper pixels walled in by ink, as a share of the ink: lines have none, a dithered grey up to one each.
DITHER = 0.02
# A speck as dark as this share of the usual ink is meant; more than this many (or than there are lines) are dirt.
DARK = 0.8
SPECKS = 20
# Wall [pixels] that is left of an area so that its outline is thinned like a line.
WALL = 3


@dataclass(frozen=True, eq=False)
class InkImage:
    """How far each pixel is from the paper."""

    ink: NDArray[np.uint8]  # (h, w) [0..255]
    even: bool  # the paper is one colour; else that of the surroundings
    lines: bool  # it looks like a line drawing


def ink_image(picture: Picture, even: bool | None = None) -> InkImage:
    """How far each pixel is from the colour of the paper near it: the largest of the three channels.

    The paper is the most frequent colour if that covers half of the picture and what is left looks like lines; where
    the light falls off over the sheet (a photographed drawing) it is the median over a window far wider than any line.
    even: which of the two it is, where known.
    """
    image = tones(picture)
    flat = from_paper(image)
    # a picture of some dozen pixels has no room for a window around a line
    plain = max(flat.shape) < 64 or float((flat < NEAR).mean()) > 0.5 if even is None else even
    if plain and (even or looks_like_lines(flat)):
        return InkImage(flat, True, True)
    if even is None and max(flat.shape) < 64:
        return InkImage(flat, True, False)
    local = _from_surroundings(image)
    lines = looks_like_lines(local, False)
    return InkImage(local, False, lines) if lines or not plain else InkImage(flat, True, False)


def softened(picture: Picture) -> Picture:
    """The picture; smoothed by 1.5 pixels where its tones are made of black and white dots.

    Such a picture has pixels of one tone with the other on all four sides, as a chess board has, for a good part of
    what is drawn.
    """
    grey = tones(picture)
    if grey.ndim == 3:
        return picture
    low, high = int(grey.min()), int(grey.max())
    dark = grey < (low + high) / 2.0
    if float(((grey > low + NEAR) & (grey < high - NEAR)).mean()) > HALF_TONES:
        return picture
    ink = dark if float(dark.mean()) < 0.5 else ~dark
    inside = ink[1:-1, 1:-1]
    walled = ~inside & ink[:-2, 1:-1] & ink[2:, 1:-1] & ink[1:-1, :-2] & ink[1:-1, 2:]
    if walled.sum() <= DITHER * inside.sum():
        return picture
    return Picture(opencv().GaussianBlur(picture.rgb, (0, 0), 1.5), picture.notes)


def line_mask(ink: NDArray[np.uint8], pixel: int = 1) -> Mask:
    """(h, w) where there is ink, from the contrast: Otsu's threshold, specks of one or two pixels removed.

    pixel: how many times the picture was enlarged. Specks stay where they are as dark as the lines and no more than
    these: the dot of a small i.
    """
    cv2 = opencv()
    if ink.max() < FAINTEST:
        return np.zeros(ink.shape, dtype=bool)
    # over all pixels, and over those that are not paper: the lower one, as faint lines beside black areas are lines too
    counts = np.bincount(ink.ravel(), minlength=256)
    threshold = max(min(otsu_of(counts), otsu_of(np.where(np.arange(256) < FAINTEST / 2, 0, counts))), FAINTEST)
    mask = (ink > threshold).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    if count == 1 or max(mask.shape) < 200 * pixel:
        return mask.astype(bool)
    kept = stats[:, cv2.CC_STAT_AREA] >= 3 * pixel * pixel
    kept[0] = False
    darkest = np.zeros(count, dtype=np.uint8)
    np.maximum.at(darkest, labels.ravel(), ink.ravel())
    dark = ~kept & (darkest >= DARK * np.median(ink[mask > 0]))
    dark[0] = False
    if dark.sum() <= max(SPECKS, kept.sum()):
        kept |= dark
    result: Mask = kept[labels]
    return result


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


def hollowed(mask: Mask, pixel: int = 1) -> tuple[Mask, int]:
    """(mask with the inside of its areas taken out, number of areas): what is much wider than a line becomes its wall.

    A core is what lies deeper than any line is wide. It is an area if it is compact (its own centre line is not
    ELONGATED times its width) and far wider than the lines of the picture, so that no crossing is taken for one; nor is
    the hub of a star, which has rays all round. pixel: how many times the picture was enlarged; what was a pixel wide
    is a line.
    """
    cv2 = opencv()
    image = np.pad(mask, 1).astype(np.uint8)
    longest = max(mask.shape)
    half = cv2.distanceTransform(image, cv2.DIST_L2, 5)
    least = max(0.5 * LINE_MAX * longest, WALL + 1.0, pixel if pixel > 1 else 0.0)
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
    if area.any():
        area &= _free_border(image, labels, least) > HUB
    if not area.any():
        return mask, 0
    # back from the cores to the areas' own border, then a wall inwards
    reach = cv2.distanceTransform((~area[labels]).astype(np.uint8), cv2.DIST_L2, 5)
    image[(reach <= least - WALL) & (half > WALL)] = 0
    return image[1:-1, 1:-1].astype(bool), int(area.sum())


def from_paper(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(h, w) how far each pixel is from the most frequent colour."""
    paper = np.empty_like(image)
    paper[:] = _paper(image)
    flat: NDArray[np.uint8] = strongest(opencv().absdiff(image, paper))
    return flat


def _from_surroundings(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(h, w) how far each pixel is from the median around it, as if all of the paper were as bright as its best part.

    Ink reflects a share of the light: half the light, half the contrast. Twice is the most that noise may be raised.
    """
    cv2 = opencv()
    # shares of the picture, not pixels: at 250 pixels a window of 41 spans a sixth of the sheet
    scale = 250.0 / max(image.shape[:2])
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    local = cv2.GaussianBlur(cv2.medianBlur(small, 41), (0, 0), 5.0)
    local = cv2.resize(local, image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    brightness = strongest(local).astype(np.float32)
    gain = np.clip(brightness.max() / np.maximum(brightness, 1.0), 1.0, 2.0)
    uneven: NDArray[np.uint8] = np.minimum(gain * strongest(cv2.absdiff(image, local)), 255.0).astype(np.uint8)
    return uneven


def _free_border(image: NDArray[np.uint8], labels: NDArray[np.int32], least: float) -> Array:
    """(count,) share of paper in the ring just outside of each core, at the distance of its own border."""
    cv2 = opencv()
    away, nearest = cv2.distanceTransformWithLabels(
        (labels == 0).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_CCOMP
    )
    ring = (away > least + 1.0) & (away <= least + 4.0)
    count = int(labels.max()) + 1
    core = np.zeros(int(nearest.max()) + 1, dtype=labels.dtype)
    core[nearest[labels > 0]] = labels[labels > 0]
    owner = core[nearest[ring]]
    total = np.bincount(owner, minlength=count)
    paper = np.bincount(owner, weights=image[ring] == 0, minlength=count)
    return np.asarray(paper / np.maximum(total, 1))


def _paper(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The most frequent colour of (h, w) or (h, w, 3), in steps of 8 levels, then the mean of its pixels."""
    few = image[::3, ::3] if min(image.shape[:2]) > 300 else image
    coarse = (few >> 3).astype(np.int32)
    code = coarse if few.ndim == 2 else (coarse[..., 0] << 10) | (coarse[..., 1] << 5) | coarse[..., 2]
    most = np.bincount(code.ravel()).argmax()
    result: NDArray[np.uint8] = np.rint(few[code == most].mean(axis=0)).astype(np.uint8)
    return result


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
    return lines | _long((borders & ~near).astype(np.uint8), shortest)
