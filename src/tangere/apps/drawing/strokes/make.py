"""From a picture to ordered strokes in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tangere.apps.drawing.picture.picture import Picture, read_picture
from tangere.apps.drawing.picture.tracing import Tracing, fitted, trace
from tangere.apps.drawing.settings import TOLERANCE
from tangere.apps.drawing.strokes.merge import merged, uncovered, unfolded
from tangere.apps.drawing.strokes.order import ordered
from tangere.apps.drawing.strokes.strokes import Strokes, simplified, smoothed
from tangere.apps.drawing.svg.read import is_svg, read_svg
from tangere.errors import InvalidValue

# Ends nearer than this [m] are joined: the width of a pen's line.
JOIN = 0.5e-3
# Smoothing moves a point by at most this share of a pixel (a pixel's place is not known better) and this far [m].
SMOOTH_PIXELS = 0.75
SMOOTH_MAX = 0.4e-3
# Grid [m] of the points: a tenth of a micrometre, so that a file with some digits holds exactly what is drawn.
GRID = 1e-7
# A stroke that is shorter than this [m] leaves a dot; it is drawn that long so that the pen has a way to go.
DOT = 0.3e-3


def strokes_of(
    source: str | Path | bytes | Picture | Tracing,
    size: float | tuple[float, float] = 0.2,
    *,
    style: str = "auto",
    margin: float = 0.0,
    tolerance: float = TOLERANCE,
    join: float = JOIN,
    thresholds: tuple[float, float] | None = None,
    kicks: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Strokes:
    """A picture file (PNG, JPEG, SVG), its bytes, a Picture or a Tracing as strokes ready to draw.

    size: the longer side of the drawing area [m], the other follows the picture; or (width, height) [m] of an area in
        which the picture is centred, aspect kept. margin [m] all round stays empty.
    style, thresholds: see `trace`; an SVG is drawn as it is. tolerance [m]: of the simplification (Hausdorff). join
        [m]: ends nearer than this are joined. kicks, seed: see `ordered`.
    progress: called with the name of each step as it begins.
    Traced, placed, smoothed, merged, (an SVG:) what is drawn already left out, simplified, ordered; the notes of the
    result say what was chosen on the way.
    """
    say = progress or (lambda step: None)
    if isinstance(source, Tracing):
        tracing = source
    elif isinstance(source, Picture):
        say("tracing")
        tracing = trace(source, style, thresholds=thresholds)
    else:
        say("reading")
        if is_svg(source):
            tracing = read_svg(source)
        else:
            picture = read_picture(source)
            say("tracing")
            tracing = trace(picture, style, thresholds=thresholds)
    width, height = area(tracing, size)
    strokes = fitted(tracing, width, height, margin)
    if tracing.centre_line is not None:
        pixel = min((width - 2.0 * margin) / tracing.width, (height - 2.0 * margin) / tracing.height)
        strokes = smoothed(strokes, min(SMOOTH_PIXELS * pixel, SMOOTH_MAX))
    say("merging")
    strokes = merged(on_grid(strokes), join)
    if tracing.centre_line is None:  # a traced one has no two lines in one place: each of its pixels is in one chain
        strokes = uncovered(strokes)
    strokes = unfolded(simplified(strokes, tolerance))
    strokes = _visible(strokes)
    if not strokes.lines:
        raise InvalidValue("nothing to draw: no line is left")
    say("ordering")
    return ordered(strokes, kicks=kicks, seed=seed)


def area(tracing: Tracing, size: float | tuple[float, float]) -> tuple[float, float]:
    """(width, height) [m] of the drawing area: as given, or with its longer side as given and the picture's aspect."""
    sides = np.asarray(size, dtype=float)
    if sides.shape not in ((), (2,)) or not np.isfinite(sides).all() or (sides <= 0.0).any():
        raise InvalidValue(f"size {size}; a positive length in m, or (width, height), is valid")
    if sides.shape == (2,):
        return float(sides[0]), float(sides[1])
    longest = max(tracing.width, tracing.height)
    return float(sides) * tracing.width / longest, float(sides) * tracing.height / longest


def on_grid(strokes: Strokes, step: float = GRID) -> Strokes:
    """The strokes with every coordinate rounded to a multiple of `step` [m]."""
    # dividing by the whole number 1/step gives the double nearest to the decimal that a file shows
    per_metre = round(1.0 / step)
    return replace(strokes, lines=tuple(np.rint(line * per_metre) / per_metre for line in strokes.lines))


def _visible(strokes: Strokes) -> Strokes:
    """Lines too short to see are drawn DOT long, along themselves (level where they have no direction)."""
    lines = []
    for line in strokes.lines:
        low, high = line.min(axis=0), line.max(axis=0)
        if float(np.hypot(*(high - low))) < DOT:
            way = line[-1] - line[0]
            size = float(np.hypot(way[0], way[1]))
            unit = way / size if size > 0.0 else np.array([1.0, 0.0])
            middle = 0.5 * (low + high)
            limit = np.array(strokes.size) / 2.0
            line = np.clip(np.array([middle - 0.5 * DOT * unit, middle + 0.5 * DOT * unit]), -limit, limit)
        lines.append(line)
    return on_grid(replace(strokes, lines=tuple(lines)))
