"""Tracing: from a picture to centre lines in its pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.apps.drawing.picture.areas import Area
from tangere.apps.drawing.picture.crossings import contracted, lines_of
from tangere.apps.drawing.picture.line_art import edge_mask, hollowed, ink_image, line_mask, outlined, softened
from tangere.apps.drawing.picture.picture import Picture, enlarged, opencv
from tangere.apps.drawing.picture.skeleton import Mask, pixel_graph, pruned, thinned
from tangere.apps.drawing.strokes.merge import merged
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.apps.drawing.strokes.tidy import tidied
from tangere.errors import InvalidValue, UnknownName
from tangere.types import Array

# Edges that span less than this share of the picture's longer side are noise.
SHORTEST = 0.01
# Junctions this near each other, as a share of the longer side, may be one: each moves by 0.8 mm of 200 at most.
CLOSE = 0.008
# Smaller pictures [pixels, longer side] are enlarged by a whole factor, up to this: a line drawing to 0.2 mm of 200, so
# that the tones of its borders tell where they run; edges, which have no finer detail to gain, to 0.5 mm.
LINES_SIDE = 1000
EDGES_SIDE = 400
# Ends of edges nearer than this share of the longer side are one line: 0.5 mm of 200, the width of a pen's line.
MEET = 0.0025
OUTLINED = "drawn as outline"  # of a filled area: what is not drawn is its fill
STYLES = ("auto", "lines", "edges", "tones")


@dataclass(frozen=True, eq=False)
class Tracing:
    """Lines in the pixels of a picture: x right, y down, (0, 0) the upper left corner, pixel centres at halves."""

    lines: tuple[Array, ...]  # each (k, 2) [pixels], closed where first and last point coincide
    width: float  # [pixels], or units of an SVG
    height: float
    style: str  # "lines", "edges", "tones" or "svg"
    centre_line: Mask | None = None  # (h, w) the pixels that were followed, one pixel wide; None for an SVG
    notes: tuple[str, ...] = ()
    areas: tuple[Area, ...] = ()  # to be hatched, in the same units
    missing: tuple[str, ...] = ()  # what of the picture is not drawn, in words
    dark: Array | None = None  # (h, w) of style "tones": share of black of each pixel


def trace(
    picture: Picture, style: str = "auto", *, thresholds: tuple[float, float] | None = None,
    shortest: float | None = None,
) -> Tracing:  # fmt: skip
    """One centre line for each line (style "lines") or edge ("edges") of a picture; "auto" looks which it is.

    "lines": threshold against the paper, thinning; areas much wider than a line give their outline, coloured areas
        with dark outlines these. A small picture is enlarged: width and height of the result are then larger.
    "tones": no lines, but how dark each pixel is, to be hatched.
    "edges": Canny; `thresholds` (low, high) [grey levels per pixel, 0..255] instead of those found in the picture.
    shortest: pieces of an edge that span less than this many pixels are left out as noise (default: a hundredth of the
        picture's longer side, 2 mm of 200); lines keep every dot.
    """
    if style not in STYLES:
        raise UnknownName(f"unknown style {style!r}; there are {', '.join(STYLES)}")
    notes = list(picture.notes)
    if style == "tones":
        grey = opencv().cvtColor(picture.rgb, opencv().COLOR_RGB2GRAY)
        dark = 1.0 - grey.astype(np.float64) / 255.0
        return Tracing((), picture.width, picture.height, style, None, tuple(notes), dark=dark)
    found = None
    if style == "lines" or (style == "auto" and thresholds is None):
        found = _lines_in(picture, style, notes)
    if found is None and style == "auto":
        notes.append("style edges was chosen by the picture's tones")
    style = "lines" if found is not None else "edges"
    picture, mask = found or _edges_in(picture, thresholds, shortest, notes)
    longest = max(picture.width, picture.height)
    if not mask.any():
        raise InvalidValue(
            f"nothing to draw: the picture has no {'line' if style == 'lines' else 'edge'} that stands out"
        )
    cv2 = opencv()
    width = 2.0 * cv2.distanceTransform(np.pad(mask, 1).astype(np.uint8), cv2.DIST_L2, 5)[1:-1, 1:-1]
    centre = thinned(mask)
    graph = pixel_graph(centre, width)
    pruned(graph)
    contracted(graph, CLOSE * longest)
    # an end that is laid straight may reach beyond the picture by a part of the line's width
    lines = [np.clip(line, 0.0, (picture.width, picture.height)) for line in lines_of(graph)]
    kept = centre.copy()
    for chain in graph.chains:
        if chain.gone and -1 in chain.ends:  # a spur is no part of the picture's lines
            at = (graph.points[chain.pixels] - 0.5).astype(int)
            kept[at[:, 1], at[:, 0]] = False
    if style == "edges":
        lines, kept = _tidied(lines, kept, notes)
    missing = tuple(note for note in notes if note.endswith(OUTLINED))
    return Tracing(tuple(lines), picture.width, picture.height, style, kept, tuple(notes), missing=missing)


def _tidied(lines: list[Array], centre: Mask, notes: list[str]) -> tuple[list[Array], Mask]:
    """Edges with one line where two run side by side and without loose ends; and the pixels that are followed so."""
    every = Strokes(tuple(lines), (float(centre.shape[1]), float(centre.shape[0])))
    whole = merged(every, MEET * max(centre.shape))
    tidy = tidied(whole)
    followed = np.zeros(centre.shape, np.uint8)
    for line in tidy.lines:
        opencv().polylines(followed, [np.floor(line).astype(np.int32)], False, 1, thickness=3)
    if share := 1.0 - tidy.draw_length / whole.draw_length:
        notes.append(f"{100.0 * share:.0f} % of the edges, beside others or loose ends, were left out")
    return list(tidy.lines), centre & (followed > 0)


def _lines_in(picture: Picture, style: str, notes: list[str]) -> tuple[Picture, Mask] | None:
    """(the picture, enlarged where it is small, the mask of its lines); None where it is no drawing, in style auto."""
    picture = softened(picture)
    found = ink_image(picture)
    lines = found.lines or style == "lines"
    mask, areas = hollowed(line_mask(found.ink)) if lines else (None, 0)
    comic = outlined(picture, shortest=_shortest(picture)) if areas or not found.lines else None
    if mask is None and comic is None:
        return None
    if style == "auto":
        notes.append("style lines was chosen by the picture's tones")
    large = enlarged(picture, LINES_SIDE)
    pixel = large.width // picture.width
    if comic is not None:
        notes.append("the outlines of coloured areas are drawn")
        finer = outlined(large, shortest=_shortest(large)) if pixel > 1 else None
        if finer is None:
            return picture, comic
        mask, areas = finer, 0
    elif mask is None or pixel > 1:
        mask, areas = hollowed(line_mask(ink_image(large, found.even).ink, pixel), pixel)
    if pixel > 1:
        notes.append(_enlarged(picture, large))
    if areas:
        notes.append(f"{areas} filled area{'s are' if areas > 1 else ' is'} {OUTLINED}")
    return large, mask


def _edges_in(
    picture: Picture, thresholds: tuple[float, float] | None, shortest: float | None, notes: list[str]
) -> tuple[Picture, Mask]:
    """(the picture, enlarged where it is very small, the mask of its edges)."""
    large = enlarged(picture, EDGES_SIDE)
    pixel = large.width // picture.width
    if pixel > 1:
        notes.append(_enlarged(picture, large))
    least = _shortest(large) if shortest is None else shortest * pixel
    mask, used = edge_mask(large, thresholds=thresholds, shortest=least)
    if thresholds is None:
        notes.append(f"edge thresholds {used[0]:.0f} and {used[1]:.0f} grey levels found by themselves")
    return large, mask


def _shortest(picture: Picture) -> float:
    return SHORTEST * max(picture.width, picture.height)


def _enlarged(picture: Picture, large: Picture) -> str:
    return (
        f"enlarged from {picture.width} x {picture.height} to {large.width} x {large.height} pixels: "
        "steps become curves"
    )


def placing(tracing: Tracing, width: float, height: float, margin: float = 0.0) -> float:
    """Scale [m per pixel] with which a tracing fills width x height [m] less the margin all round, aspect kept.

    The whole picture is placed, its empty border too: p_canvas = scale (x - middle_x, middle_y - y).
    """
    inner = (width - 2.0 * margin, height - 2.0 * margin)
    if not (np.isfinite(width) and np.isfinite(height) and margin >= 0.0 and min(inner) > 0.0):
        raise InvalidValue(f"a margin of {margin} m leaves nothing of {width} x {height} m")
    return min(inner[0] / tracing.width, inner[1] / tracing.height)


def fitted(tracing: Tracing, width: float, height: float, margin: float = 0.0) -> Strokes:
    """A tracing on a canvas of width x height [m] with a margin [m] all round: aspect kept, centred, y up."""
    scale = placing(tracing, width, height, margin)
    middle, flip = np.array([tracing.width / 2.0, tracing.height / 2.0]), np.array([scale, -scale])
    lines = tuple((line - middle) * flip for line in tracing.lines)
    return Strokes(lines, (width, height), tracing.notes, tracing.missing)


def placed_areas(tracing: Tracing, scale: float) -> list[Area]:
    """The areas of a tracing on the canvas [m], as `fitted` places its lines."""
    matrix = np.diag([scale, -scale, 1.0])
    matrix[:2, 2] = -0.5 * scale * tracing.width, 0.5 * scale * tracing.height
    return [area.moved(matrix) for area in tracing.areas]
