"""Figures that need no script: one quantity over another, how often values occur, the path of the tool square on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.figures.axes import Axes, curve, legend, marks, panel, panels, polyline, span
from tangere.figures.markup import Raw, csv_text, number, strided, tag
from tangere.types import Array

Mask = NDArray[np.bool_]

WIDTH, HEIGHT = 520, 230  # [px] of a plot of one quantity over another
LOW = 220  # [px] height of a histogram
VIEW = 640, 480  # [px] of a path, the same as the scene beside it
APART = 0.1  # of a histogram's height: 17 px, the height of a number where a page is narrow
MARGIN = 64  # px around the path, for the labels of the axes where letters are large: −0.3055
# How large the largest error shall appear, as a share of the drawing: seen at a glance, the shape still recognised.
SHOWN = 0.07
STANDS = 1e-9  # [m] from the middle of its path: rounding, the tool stands still
_ALONG = 1500  # points of a path, evenly taken: those of a 10 s run are 7 ms apart
_POINTS = 700  # of a cloud, evenly taken: more only darken it and cost 20 bytes each


@dataclass(frozen=True)
class XY:
    """A panel: points (x, y) as a cloud, curves as (name, style, x ascending, y), units of both axes."""

    title: str
    x_unit: str
    y_unit: str
    cloud: tuple[Array, Array]
    curves: tuple[tuple[str, str, Array, Array], ...]


def xy_figure(identifier: str, caption: str, plots: tuple[XY, ...], again: Raw | None = None) -> Raw:
    """The figure as HTML."""
    names: dict[str, str] = {}
    for plot in plots:
        names |= {name: style for name, style, _, _ in plot.curves if name not in names}
    boxes = [panel(plot.title, plot.y_unit, _still(plot)) for plot in plots]
    keys = legend((name, style, False) for name, style in names.items())
    told: dict[str, Array] = {}
    for plot in plots:
        some = strided(len(plot.cloud[0]), _POINTS)
        every = [("points", plot.cloud[0][some], plot.cloud[1][some]), *((name, a, b) for name, _, a, b in plot.curves)]
        for name, a, b in every:
            told |= {f"{plot.title}: {name} [{plot.x_unit}]": a, f"{plot.title}: {name} [{plot.y_unit}]": b}
    shown = csv_text(told, 2 * _POINTS)
    return tag("figure", keys, panels(boxes), tag("figcaption", caption, again), id=identifier, data_csv=shown)


def _still(plot: XY) -> Raw:
    x, y = plot.cloud
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    keep = np.linspace(0, len(x) - 1, min(len(x), _POINTS)).astype(int) if len(x) else np.zeros(0, dtype=int)
    x, y = x[keep], y[keep]
    # a few wild points must not flatten the curve: the cloud counts up to its 1st and 99th percentile
    inner = np.percentile(y, [1.0, 99.0]) if len(y) else np.zeros(0)
    wide, high = span([x, *(c[2] for c in plot.curves)]), span([inner, *(c[3] for c in plot.curves)])
    axes = Axes(WIDTH, HEIGHT, wide, high)
    parts = axes.rows(marks(*high, 5)) + axes.columns(marks(*wide, 6, plot.x_unit))
    seen = (y >= high[0]) & (y <= high[1])
    dots = "".join(f"M{a:.1f} {b:.1f}h.01" for a, b in zip(axes.across(x[seen]), axes.up(y[seen]), strict=True))
    parts.append(tag("path", class_="line soft", d=dots, stroke_linecap="round", style="stroke-width:2.6;opacity:.8"))
    for _, style, a, b in plot.curves:
        parts.append(tag("path", class_=f"line {style}", d=curve(axes.across(a), axes.up(b))))
    return axes.svg(plot.title, *parts)


def histogram(values: Array, bins: int = 48) -> Raw:
    """Counts of finite `values` (microseconds) between their smallest and their 99.5th percentile.

    What is longer is gathered in a last bar of another colour, so that one slow period does not flatten the rest. The
    height is the square root of the count: a single late period is still seen beside ten thousand good ones.
    """
    values = np.clip(values, 0.0, 1e12)  # nothing measured takes longer than a week
    low, high = float(values.min()), float(np.percentile(values, 99.5))
    if not high > low:
        high = low + max(1.0, 1e-3 * low)
    counts, edges = np.histogram(values[values <= high], bins=bins, range=(low, high))
    longer = int(np.sum(values > high))
    top = max(int(counts.max()), longer, 1)
    axes = Axes(WIDTH, LOW, (low, high), (0.0, top**0.5), left=50, right=36 if longer else 10, top=18, bottom=36)
    inner, scale = axes.inner[0], axes.inner[1] / top**0.5
    # lines at 1, 10, 100, ...: the three largest, where their numbers stand clear of the axis and of each other; they
    # go on behind the last bar
    steps = [(count**0.5, str(count)) for count in (10**k for k in range(7)) if APART**2 * top <= count <= top][-3:]
    parts = Axes(WIDTH, LOW, axes.x, axes.y, left=50, right=10, top=18, bottom=36).rows(steps)
    width = inner / bins
    for k, count in enumerate(counts.tolist()):
        if count:
            label = f"{number(edges[k].item(), 3)} to {number(edges[k + 1].item(), 3)} µs: {count} periods"
            parts.append(axes.bar(axes.left + k * width, width, max(scale * count**0.5, 1.0), label))
    if longer:
        label = f"longer than {number(high, 3)} µs: {longer} periods, the longest {number(float(values.max()), 4)} µs"
        parts.append(axes.bar(WIDTH - 30, 20, max(scale * longer**0.5, 1.0), label, "column late"))
    parts += axes.columns(marks(low, high, 6), below=15, lines=False)
    parts += [axes.below("µs"), tag("text", "periods", class_="unit", x=4, y=10)]
    return axes.svg("Histogram of times", *parts)


def exaggeration(error: Array, size: float) -> float:
    """1, 2 or 5 times a power of ten, at least 1: the largest error [m] becomes at most SHOWN of `size` [m].

    The 99th percentile stands for the largest, so that one bad sample does not hide all others.
    """
    finite = error[np.isfinite(error)]
    largest = float(np.percentile(finite, 99.0)) if finite.size else 0.0
    if not (largest > 0.0 and size > 0.0):
        return 1.0
    wanted = SHOWN * size / largest
    if not 1.0 < wanted < 1e6:  # beyond it the error is below a micrometre and nothing is worth showing
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= wanted))


def plane(points: Array) -> tuple[Array, Array, str]:
    """Two axes of the plane that the path lies in, and what the view is called.

    A base plane where the path lies in one (within 3 degrees), otherwise the two main directions of its points. A tool
    that stands still is seen from above: the directions of rounding say nothing.
    """
    centred = points - points.mean(axis=0)
    x, y, z = np.eye(3)
    if len(points) < 3 or np.max(np.abs(centred)) < STANDS:
        return x, y, "seen from above"
    directions = np.linalg.eigh(centred.T @ centred)[1].T[::-1]  # rows, the longest extent first
    normal = directions[2]
    for axis, (right, up, name) in zip(
        (z, y, x), ((x, y, "from above"), (x, z, "along y"), (y, z, "along x")), strict=True
    ):
        if abs(float(normal @ axis)) > math.cos(math.radians(3.0)):
            return right, up, f"seen {name}"
    return directions[0], directions[1], "seen square onto its plane"


def path_view(real: Array, desired: Array, disturbed: Mask | None = None) -> tuple[Raw, str]:
    """SVG of both paths (N, 3) [m], and a sentence that says from where and how much the error is exaggerated.

    disturbed (N,): samples of pushes and of the time after them; drawn apart, with a factor of their own, because their
    error is so much larger.
    """
    width, height = VIEW
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
    words, drawn = [], []
    for where, style, what in ((~pushed, "a", ""), (pushed, "b", "from an event to 1 s after it (other colour), ")):
        if np.any(where):
            factor = exaggeration(np.linalg.norm(error[where], axis=1), size)
            drawn.append((style, np.where(where[:, None], flat + factor * error, np.nan)))
            words.append(what + ("to scale" if factor == 1.0 else f"{factor:.0f} times larger than it is"))
    if len({told.rpartition(", ")[2] for told in words}) == 1 and len(words) == 2:  # one factor is said once
        words = [words[0], "other colour: from an event to 1 s after it"]
    # to scale in both directions: the height decides, the width shows as much more as there is room
    room = np.array([(width / 2 - MARGIN) / (height / 2 - MARGIN), 1.0])
    centre, half = (least + most) / 2.0, max(0.6 * size, 1e-3)
    paths = np.concatenate([flat, *(points for _, points in drawn)])
    if np.nanmax(np.abs(paths - centre) / room) > half:  # a tool that left the place where it should stand
        least, most = np.nanmin(paths, axis=0), np.nanmax(paths, axis=0)
        centre, half = (least + most) / 2.0, 0.6 * float(np.max((most - least) / room))
    reach = half * room
    wide, high = zip((centre - reach).tolist(), (centre + reach).tolist(), strict=True)
    view = Axes(width, height, wide, high, left=MARGIN, right=MARGIN, top=MARGIN, bottom=MARGIN)

    def path(points: Array) -> str:
        some = points[strided(len(points), _ALONG)]
        return polyline(np.stack([view.across(some[:, 0]), view.up(some[:, 1])], axis=1))

    letters = [("xyz"[int(np.argmax(np.abs(axis)))] if np.max(np.abs(axis)) > 1 - 1e-9 else "") for axis in axes]
    parts = view.columns(marks(*wide, 7), below=17) + view.rows(marks(*high, 7), gap=4, drop=4)
    parts.append(tag("text", f"{letters[0]} [m]", class_="x", x=width - MARGIN - 12, y=height - MARGIN - 6))
    parts.append(tag("text", f"{letters[1]} [m]", class_="unit", x=MARGIN + 5, y=MARGIN + 12))
    parts.append(tag("path", class_="line soft", d=path(flat)))
    parts += [tag("path", class_=f"line {style}", d=path(points)) for style, points in drawn]
    x, y = float(view.across(flat[0, 0])), float(view.up(flat[0, 1]))
    parts.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, class_="start"))
    sentence = f"The path {name}. The error is drawn {'; '.join(words)}."
    return view.svg(f"Path of the tool, {name}", *parts), sentence
