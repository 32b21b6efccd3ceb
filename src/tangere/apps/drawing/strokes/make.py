"""From a picture to ordered strokes in one call; the order with little travel between the strokes.

    minimise  sum_i |end(i) - start(i + 1)|   over the order, the direction of each line and the start of closed ones

A travelling salesman who may enter each town at either gate. First the shortest links that fit together (greedy), then
improvement until none of these helps: reversing a stretch (2-opt; it turns the lines in it round by itself), moving up
to three strokes elsewhere (or-opt); then many small disturbances, each kept only if the travel got shorter; last, all
pairs for 2-opt. Closed lines start where they are met. Everything is seeded: the same strokes give the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tangere.apps.drawing.picture.picture import Picture, read_picture
from tangere.apps.drawing.picture.svg import is_svg, read_svg
from tangere.apps.drawing.picture.tracing import Tracing, fitted, placed_areas, placing, trace
from tangere.apps.drawing.settings import TOLERANCE
from tangere.apps.drawing.strokes.hatch import LEVELS, ONWARD, PEN, Hatch, hatched, levels, toned
from tangere.apps.drawing.strokes.merge import merged, uncovered, unfolded
from tangere.apps.drawing.strokes.strokes import Strokes, closed, root, simplified, smoothed
from tangere.apps.drawing.strokes.tour import LEAST, Tour, nearest
from tangere.errors import InvalidValue
from tangere.types import Array

# Neighbours of each end that are tried; ten find nearly all that the whole list would.
NEIGHBOURS = 10
# Disturbances by default: as many as strokes, within these; each takes about 0.4 ms, the first ones gain most.
KICKS_MIN = 300
KICKS_MAX = 600
# Up to this many strokes all pairs are tried at the end (one pass over 6000 takes half a second).
ALL_PAIRS_MAX = 6000


def ordered(strokes: Strokes, *, kicks: int | None = None, seed: int = 0) -> Strokes:
    """The same lines in an order, direction and (closed ones) from a start that need little pen-up travel.

    kicks: number of disturbances (default: one per stroke, 300 to 600); more take longer and save a little.
    """
    lines = list(strokes.lines)
    if len(lines) < 2:
        return strokes
    rings = [closed(line) for line in lines]
    tour = Tour(_ends(lines), *_start(_ends(lines)))
    tour.improve()
    for _ in range(2):
        if not _turn_rings(lines, rings, tour):
            break
        tour = Tour(_ends(lines), tour.sequence(), nearest(_ends(lines), NEIGHBOURS))
        tour.improve()
    count = min(max(len(lines), KICKS_MIN), KICKS_MAX) if kicks is None else kicks
    tour.perturb(count, np.random.default_rng(seed))
    _turn_rings(lines, rings, tour)
    sequence = tour.sequence()
    if len(lines) <= ALL_PAIRS_MAX:
        sequence = two_opt(_ends(lines), sequence)
    before = Strokes(tuple(_laid(lines, sequence)), strokes.size)
    if before.pen_up_length >= strokes.pen_up_length:  # it was in a good order already
        return strokes
    result = _laid(lines, sequence)
    # a way of two ends: begin at the one nearer to the upper left, as one writes
    corner = np.array([-0.5, 0.5]) * np.array(strokes.size)
    if np.hypot(*(result[-1][-1] - corner)) < np.hypot(*(result[0][0] - corner)):
        result = [line[::-1] for line in reversed(result)]
    return replace(strokes, lines=tuple(np.ascontiguousarray(line) for line in result))


def two_opt(ends: Array, sequence: list[int]) -> list[int]:
    """2-opt over all pairs until none gains: `sequence` lists the end at which each stroke is entered.

    ends (2 n, 2): stroke s has its ends at 2 s and 2 s + 1. The way is open: its first and last stretch may be
    reversed on their own.
    """
    z = ends[:, 0] + 1j * ends[:, 1]
    enter = np.array(sequence)
    n = len(enter)
    improved = True
    while improved:
        improved = False
        for i in range(n):
            # reverse strokes i..j: the links before i and after j change (none before the first, none after the last)
            start, stop = z[enter[i:]], z[enter[i:] ^ 1]
            onward = np.abs(stop[:-1] - start[1:])
            after = np.concatenate([np.abs(start[0] - start[1:]) - onward, [0.0]])
            if i > 0:
                origin = z[enter[i - 1] ^ 1]
                after = after + np.abs(origin - stop) - np.abs(origin - start[0])
            j = int(np.argmin(after))
            if after[j] < -LEAST:
                enter[i : i + j + 1] = enter[i : i + j + 1][::-1] ^ 1
                improved = True
    result: list[int] = enter.tolist()
    return result


def _ends(lines: list[Array]) -> Array:
    """(2 n, 2) first and last point of each line."""
    return np.array([point for line in lines for point in (line[0], line[-1])])


def _laid(lines: list[Array], sequence: list[int]) -> list[Array]:
    """The lines in the order and direction of a sequence of ends."""
    return [lines[end >> 1] if end & 1 == 0 else lines[end >> 1][::-1] for end in sequence]


def _start(ends: Array) -> tuple[list[int], np.ndarray]:
    """(a first sequence, the neighbours of each end): the shortest links that leave one way through all strokes."""
    table = nearest(ends, NEIGHBOURS)
    count = len(ends) // 2
    a = np.repeat(np.arange(len(ends)), table.shape[1])
    b = table.ravel()
    valid = (b > a) & ((a >> 1) != (b >> 1))
    link = [-1] * len(ends)
    parent = list(range(count))

    def join(a: np.ndarray, b: np.ndarray) -> None:
        distance = np.hypot(*(ends[a] - ends[b]).T)
        rank = np.lexsort((b, a, distance))
        for i, j in zip(a[rank].tolist(), b[rank].tolist(), strict=True):
            if link[i] < 0 and link[j] < 0:
                p, r = root(parent, i >> 1), root(parent, j >> 1)
                if p != r:
                    link[i], link[j] = j, i
                    parent[r] = p

    join(a[valid], b[valid])
    while True:  # the ends of the pieces that are left, until one piece is left
        loose = np.array([e for e in range(len(ends)) if link[e] < 0])
        if len(loose) <= 2:
            break
        near = nearest(ends[loose], min(NEIGHBOURS, len(loose) - 1))
        a = np.repeat(loose, near.shape[1])
        b = np.where(near.ravel() >= 0, loose[near.ravel()], -1)
        pieces = np.array([root(parent, e >> 1) for e in range(len(ends))])
        valid = (b >= 0) & (pieces[a] != pieces[b])
        if not valid.any():  # all near ends are of the same piece: any other piece will do
            first = loose[0]
            other = loose[pieces[loose] != pieces[first]]
            a, b = np.full(len(other), first), other
            valid = np.ones(len(other), dtype=bool)
        join(a[valid], b[valid])
    here = next(e for e in range(len(ends)) if link[e] < 0)
    sequence = []
    while here >= 0:
        sequence.append(here)
        here = link[here ^ 1]
    return sequence, table


def _turn_rings(lines: list[Array], rings: list[bool], tour: Tour) -> bool:
    """Let each closed line start where coming from the one before and going on is shortest; whether any did."""
    sequence = tour.sequence()
    changed = False
    for k, end in enumerate(sequence):
        if not rings[end >> 1]:
            continue
        line = lines[end >> 1]
        body = line[:-1]
        cost = np.zeros(len(body))
        if k > 0:
            before = sequence[k - 1]
            origin = lines[before >> 1][-1 if before & 1 == 0 else 0]
            cost += np.hypot(*(body - origin).T)
        if k + 1 < len(sequence):
            after = sequence[k + 1]
            target = lines[after >> 1][0 if after & 1 == 0 else -1]
            cost += np.hypot(*(body - target).T)
        best = int(np.argmin(cost))
        if cost[best] < cost[0] - LEAST:
            lines[end >> 1] = np.concatenate([body[best:], body[: best + 1]])
            changed = True
    return changed


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
    source: str | Path | bytes | Picture | Tracing, size: float | tuple[float, float] = 0.2, *, style: str = "auto",
    margin: float = 0.0, tolerance: float = TOLERANCE, join: float = JOIN,
    thresholds: tuple[float, float] | None = None, hatch: Hatch | None = None, font: str = "auto",
    kicks: int | None = None, seed: int = 0, progress: Callable[[str], None] | None = None,
) -> Strokes:  # fmt: skip
    """A picture file (PNG, JPEG, SVG), its bytes, a Picture or a Tracing as strokes ready to draw.

    size: the longer side of the drawing area [m], the other follows the picture; or (width, height) [m] of an area in
        which the picture is centred, aspect kept. margin [m] all round stays empty.
    style, thresholds: see `trace`; an SVG is drawn as it is, its text in `font` (see `read_svg`). hatch: areas are
        filled so (None: by their outline only), tones are drawn so. tolerance [m]: of the simplification (Hausdorff).
        join [m]: ends nearer than this are joined. kicks, seed: see `ordered`.
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
            tracing = read_svg(source, font=font, areas=hatch is not None)
        else:
            picture = read_picture(source)
            say("tracing")
            tracing = trace(picture, style, thresholds=thresholds)
    width, height = area(tracing, size)
    strokes = fitted(tracing, width, height, margin)
    scale = placing(tracing, width, height, margin)
    if tracing.dark is not None:
        return _tones(strokes, tracing.dark, scale, hatch or Hatch(), say, kicks, seed)
    if tracing.centre_line is not None:
        strokes = smoothed(strokes, min(SMOOTH_PIXELS * scale, SMOOTH_MAX))
    say("merging")
    strokes = merged(on_grid(strokes), join)
    if tracing.centre_line is None:  # a traced one has no two lines in one place: each of its pixels is in one chain
        strokes = uncovered(strokes)
    strokes = unfolded(simplified(strokes, tolerance))
    if hatch is not None and tracing.areas:
        say("hatching")
        strokes = replace(strokes, lines=(*strokes.lines, *hatched(placed_areas(tracing, scale), hatch)))
    strokes = _visible(strokes)
    if not strokes.lines:
        raise InvalidValue("nothing to draw: no line is left")
    say("ordering")
    return ordered(strokes, kicks=kicks, seed=seed)


def _tones(
    strokes: Strokes, dark: Array, scale: float, hatch: Hatch, say: Callable[[str], None], kicks: int | None, seed: int
) -> Strokes:
    """Strokes that hatch the tones of a picture; neighbouring lines are joined where they end beside each other."""
    say("hatching")
    most = float(levels(hatch)[-1])
    lines = toned(dark, scale, hatch)
    if not lines:
        raise InvalidValue("nothing to draw: no tone of the picture is dark enough for a line")
    missing = strokes.missing
    if most < float(dark.max()) - 1.0 / LEVELS:
        missing = (*missing, f"tones darker than {100.0 * most:.0f} % black: the lines are too far apart for them")
    strokes = merged(on_grid(replace(strokes, lines=tuple(lines), missing=missing)), ONWARD * (hatch.distance or PEN))
    say("ordering")
    return ordered(_visible(strokes), kicks=kicks, seed=seed)


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
