"""Edges of a photograph: Canny's detector with thresholds from the picture itself.

    smoothed picture -> gradient g -> pixels where |g| is largest across the edge -> those above `high`,
    and those above `low` that hang together with one above `high`

The high threshold separates, by Otsu's rule, the weak from the strong among the gradients that stand out of the
noise; the low one is 0.4 of it (Canny's own advice is a third to a half).
"""

from __future__ import annotations

import numpy as np

from tangere.apps.drawing.picture.picture import Picture, opencv, strongest, tones
from tangere.apps.drawing.picture.skeleton import Mask
from tangere.errors import InvalidValue

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
    count, labels, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT])
    large = extent >= shortest
    large[0] = False
    mask: Mask = large[labels] if count > 1 else np.zeros(joined.shape, dtype=bool)
    return mask, (float(low), float(high))


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
