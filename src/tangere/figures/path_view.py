"""The path of the tool seen square on, with the error drawn larger than it is, by a factor that is said."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import Axes, polyline, ticks
from tangere.figures.encode import strided
from tangere.figures.markup import Raw, number, tag

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

WIDTH, HEIGHT = 640, 480  # px, the same as the scene beside it
MARGIN = 36  # px around the path, for the labels of the axes
# How large the largest error shall appear, as a share of the drawing: seen at a glance, the shape still recognised.
SHOWN = 0.07
_POINTS = 1500  # of a path, evenly taken: those of a 10 s run are 7 ms apart


def exaggeration(error: Array, size: float) -> float:
    """1, 2 or 5 times a power of ten, at least 1: the largest error [m] becomes at most SHOWN of `size` [m].

    The 99th percentile stands for the largest, so that one bad sample does not hide all others.
    """
    finite = error[np.isfinite(error)]
    largest = float(np.percentile(finite, 99.0)) if finite.size else 0.0
    if not (largest > 0.0 and size > 0.0):
        return 1.0
    wanted = SHOWN * size / largest
    if not 1.0 < wanted < 1e9:  # beyond it the error is rounding and nothing is worth showing
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= wanted))


def plane(points: Array) -> tuple[Array, Array, str]:
    """Two axes of the plane that the path lies in, and what the view is called.

    A base plane where the path lies in one (within 3 degrees), otherwise the two main directions of its points.
    """
    centred = points - points.mean(axis=0)
    directions = np.linalg.eigh(centred.T @ centred)[1].T[::-1]  # rows, the longest extent first
    normal = directions[2]
    x, y, z = np.eye(3)
    for axis, (right, up, name) in zip(
        (z, y, x), ((x, y, "from above"), (x, z, "along y"), (y, z, "along x")), strict=True
    ):
        if abs(float(normal @ axis)) > math.cos(math.radians(3.0)) or len(points) < 3:
            return right, up, f"seen {name}"
    return directions[0], directions[1], "seen square onto its plane"


def path_view(real: Array, desired: Array, disturbed: Mask | None = None) -> tuple[Raw, str]:
    """SVG of both paths (N, 3) [m], and a sentence that says from where and how much the error is exaggerated.

    disturbed (N,): samples of pushes and of the time after them; drawn apart, with a factor of their own, because their
    error is so much larger.
    """
    good = np.all(np.isfinite(real), axis=1) & np.all(np.isfinite(desired), axis=1)
    pushed = np.zeros(len(real), dtype=bool) if disturbed is None else disturbed
    if np.all(pushed[good]):
        pushed = ~good  # nothing is undisturbed: all of it is drawn alike
    real, desired, pushed = real[good], desired[good], pushed[good]
    right, up, name = plane(desired)
    axes = np.stack([right, up])
    flat, error = desired @ axes.T, (real - desired) @ axes.T
    least, most = flat.min(axis=0), flat.max(axis=0)
    size = float(np.max(most - least))
    centre, half = (least + most) / 2.0, max(0.6 * size, 1e-4)
    # to scale in both directions: the height decides, the width shows as much more as there is room
    reach = np.array([half * (WIDTH / 2 - MARGIN) / (HEIGHT / 2 - MARGIN), half])
    wide, high = zip((centre - reach).tolist(), (centre + reach).tolist(), strict=True)
    view = Axes(WIDTH, HEIGHT, wide, high, left=MARGIN, right=MARGIN, top=MARGIN, bottom=MARGIN)

    def path(points: Array) -> str:
        some = points[strided(len(points), _POINTS)]
        return polyline(np.stack([view.across(some[:, 0]), view.up(some[:, 1])], axis=1))

    letters = [("xyz"[int(np.argmax(np.abs(axis)))] if np.max(np.abs(axis)) > 1 - 1e-9 else "") for axis in axes]
    across, up_marks = ([(value, number(value, 3)) for value in ticks(*ends, 7)] for ends in (wide, high))
    parts = view.columns(across, below=17) + view.rows(up_marks, gap=4, drop=4)
    parts.append(tag("text", f"{letters[0]} [m]", class_="x", x=WIDTH - MARGIN - 12, y=HEIGHT - MARGIN - 6))
    parts.append(tag("text", f"{letters[1]} [m]", class_="unit", x=MARGIN + 5, y=MARGIN + 12))
    parts.append(tag("path", class_="line soft", d=path(flat)))
    words = []
    for where, style, what in ((~pushed, "a", ""), (pushed, "b", "from an event to 1 s after it (other colour), ")):
        if np.any(where):
            factor = exaggeration(np.linalg.norm(error[where], axis=1), size)
            shown = np.where(where[:, None], flat + factor * error, np.nan)
            parts.append(tag("path", class_=f"line {style}", d=path(shown)))
            words.append(what + ("to scale" if factor == 1.0 else f"{factor:.0f} times larger than it is"))
    x, y = float(view.across(flat[0, 0])), float(view.up(flat[0, 1]))
    parts.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, class_="start"))
    sentence = f"The path {name}. The error is drawn {'; '.join(words)}."
    return view.svg(f"Path of the tool, {name}", *parts), sentence
