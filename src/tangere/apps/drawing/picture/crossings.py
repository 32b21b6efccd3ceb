"""Lines through the junctions of a pixel graph: straight on where two lines cross, corners kept, ends laid straight.

Thinning bends lines where they meet, over half their width, and lets lines that cross at a small angle run into one for
a while. Both are undone here: such a stretch is one junction, and the line is bridged straight across it.
"""

from __future__ import annotations

import numpy as np

from tangere.apps.drawing.picture.skeleton import PixelChain, PixelGraph
from tangere.apps.drawing.strokes.strokes import root
from tangere.types import Array

# The direction in which a chain leaves a junction is taken over this many pixels: enough to see through the staircase.
REACH = 8
# Two chains are one line through a junction if they bend there by less than this [rad]: 60 degrees leaves the
# corner of a triangle a corner and lets a curve pass.
BEND_MAX = np.deg2rad(60.0)
# Bends below 30 degrees are bridged straight across the junction; a corner goes through its middle.
STRAIGHT = np.cos(np.deg2rad(30.0))
# Two lines that cross at 28 degrees run into one for four times their width, at 40 degrees for not quite three.
CROSSING = 4.0
# Share of a width by which lines that cross are off the middle of the stretch that they share: half, and the rounding.
PARTED = 0.6
# A junction of many spans at most this many times the piece that would be taken into it.
SPREAD = 2.0
# A loop of this many line widths is 0.6 to 1 wide: its two sides are one line.
LOOP = 2.0
# From so many widths before its end on a line may run into a corner: half a width ahead, and the rounding.
END = 0.7
# Share of a width from the middle of an end to its corner: half, and half as much again where the border is rough.
CORNER = 0.75
# The arms of such a crossing go on within 20 degrees.
STRAIGHT_ARMS = np.cos(np.deg2rad(20.0))

Side = tuple[int, int]  # (number of a chain, 0 its start or 1 its end)


def contracted(graph: PixelGraph, close: float = np.inf) -> None:
    """Make one junction of two that a piece shorter than the line is wide connects: a crossing of two lines.

    A piece longer than `close` [pixels] stays unless two lines cross there: the bar of a bold A is no longer than wide.
    Nor do junctions grow beyond SPREAD times that by a row of such pieces: hatching along a line is no crossing.
    """
    parent = {junction: junction for junction in graph.middles}
    boxes = {j: (graph.points[own].min(axis=0), graph.points[own].max(axis=0)) for j, own in graph.pixels_of.items()}

    at = _meeting(graph)
    for chain in graph.chains:
        a, b = chain.ends
        if chain.gone or chain.loop or a < 0 or b < 0 or root(parent, a) == root(parent, b):
            continue
        inside = chain.pixels or graph.pixels_of[a]
        wide = float(np.mean(graph.width[inside]))
        # in lines wider than that the bends of thinning, half a width long, look like arms that go straight on
        thin = wide <= 3.0 * close and len(chain.pixels) <= CROSSING * wide
        short = len(chain.pixels) <= min(wide, close)
        if not short and not (thin and _crossing(graph, chain, at)):
            continue
        p, r = root(parent, a), root(parent, b)
        low, high = np.minimum(boxes[p][0], boxes[r][0]), np.maximum(boxes[p][1], boxes[r][1])
        if float(np.hypot(*(high - low))) <= SPREAD * (min(wide, close) if short else CROSSING * wide) + 2.0:
            parent[r] = p
            boxes[p] = low, high
            graph.pixels_of[a] = graph.pixels_of[a] + chain.pixels
            chain.gone = True
    merged: dict[int, list[int]] = {}
    for junction, pixels in graph.pixels_of.items():
        merged.setdefault(root(parent, junction), []).extend(pixels)
    graph.pixels_of = merged
    graph.middles = {junction: graph.points[pixels].mean(axis=0) for junction, pixels in merged.items()}
    for chain in graph.chains:
        a, b = chain.ends = [end if end < 0 else root(parent, end) for end in chain.ends]
        if a != b or a < 0 or chain.gone:
            continue
        # a loop round less than the line is wide is a pinhole between lines that meet: part of the junction too
        if len(chain.pixels) <= LOOP * float(np.mean(graph.width[chain.pixels or graph.pixels_of[a]])):
            graph.pixels_of[a] = graph.pixels_of[a] + chain.pixels
            chain.gone = True


def lines_of(graph: PixelGraph) -> list[Array]:
    """Lines (k, 2) [pixels] through the chains: at each junction the straightest pairs go on, the rest end there."""
    partner, straight = _partners(graph)
    lines: list[Array] = []
    done = [chain.gone for chain in graph.chains]
    # free ends first, so that a line is met at its end and not in its middle; then what is left are rings
    starts = [(c, side) for c in range(len(done)) for side in (0, 1) if (c, side) not in partner]
    starts += [(c, 0) for c in range(len(done))]
    for first, side in starts:
        if done[first]:
            continue
        parts: list[Array] = []
        followed: list[int] = []
        chain, entry = first, side
        ring = False
        while True:
            done[chain] = True
            piece = graph.chains[chain]
            followed += piece.pixels
            pixels = graph.points[piece.pixels]
            if entry == 1:
                pixels = pixels[::-1]
            way = partner.get((chain, 1 - entry))
            pixels = pixels[straight.get((chain, entry), 0) : len(pixels) - straight.get((chain, 1 - entry), 0)]
            if parts and (chain, entry) in straight:
                parts.append(_between(parts[-1][-1], pixels[0]))
            elif parts:
                parts.append(graph.middles[piece.ends[entry]][None])
            if not parts and piece.ends[entry] >= 0 and (chain, entry) not in partner:
                parts.append(graph.middles[piece.ends[entry]][None])
            parts.append(pixels)
            if way is None:
                if piece.ends[1 - entry] >= 0:
                    parts.append(graph.middles[piece.ends[1 - entry]][None])
                break
            if done[way[0]]:
                ring = True
                break
            chain, entry = way
        line = np.concatenate(parts)
        if graph.chains[first].loop or ring:
            corner = graph.middles[piece.ends[1 - entry]][None] if ring and way not in straight else line[-1:]
            line = np.concatenate([line[:-1], corner, _between(corner[0], line[0]), line[:1]])
        else:
            wide = float(np.median(graph.width[followed]))
            if piece.ends[1 - entry] < 0:
                line = _straight_end(line, wide)
            if graph.chains[first].ends[side] < 0:
                line = _straight_end(line[::-1], wide)[::-1]
        if len(line) == 1:  # a dot: as long as it is wide, so that the pen leaves a mark
            half = max(0.5 * float(graph.width[graph.chains[first].pixels[0]]) - 0.5, 0.5)
            line = np.array([line[0] - [half, 0.0], line[0] + [half, 0.0]])
        lines.append(line)
    reached = {end for chain in graph.chains if not chain.gone for end in chain.ends}
    for junction, own in graph.pixels_of.items():
        if junction not in reached and len(own) > 1:  # no chain leaves it: a blot
            spread = graph.points[own]
            far = spread[np.argmax(((spread - spread.mean(axis=0)) ** 2).sum(axis=1))]
            other = spread[np.argmax(((spread - far) ** 2).sum(axis=1))]
            lines.append(np.array([far, other]))
    return lines


def _partners(graph: PixelGraph) -> tuple[dict[Side, Side], dict[Side, int]]:
    """((chain, side) -> the one that continues it, straightest first; pixels left out where it goes straight on)."""
    at = _meeting(graph)
    partner: dict[Side, Side] = {}
    straight: dict[Side, int] = {}
    for junction, here in at.items():
        if len(here) < 2:
            continue
        away = [_direction(graph, graph.chains[c], side, junction) for c, side in here]
        choices = []
        for i in range(len(here)):
            for j in range(i):
                cosine = -(away[i][0] * away[j][0] + away[i][1] * away[j][1])
                choices.append((cosine, i, j))
        choices.sort(reverse=True)
        # two that meet with no third are one line whatever the bend: a corner after its spur was pruned
        least = -2.0 if len(here) == 2 else float(np.cos(BEND_MAX))
        for cosine, i, j in choices:
            if cosine >= least and here[i] not in partner and here[j] not in partner:
                partner[here[i]], partner[here[j]] = here[j], here[i]
                if cosine >= STRAIGHT:
                    straight |= {side: _bend_reach(graph, graph.chains[side[0]]) for side in (here[i], here[j])}
    return partner, straight


def _meeting(graph: PixelGraph) -> dict[int, list[Side]]:
    """Junction -> the (chain, side) that meet there."""
    at: dict[int, list[Side]] = {}
    for number, chain in enumerate(graph.chains):
        if not chain.gone:
            for side in (0, 1):
                if chain.ends[side] >= 0:
                    at.setdefault(chain.ends[side], []).append((number, side))
    return at


def _crossing(graph: PixelGraph, middle: PixelChain, at: dict[int, list[Side]]) -> bool:
    """Whether a short piece is where two lines cross at a small angle: both pairs of arms beyond it go straight on.

    Their borders part where the lines are one width apart: an arm at the angle a to the piece of length s is off its
    line by s/2 sin a there, half a width. Arms that leave at a larger angle are those of two corners, no crossing.
    """
    along = graph.middles[middle.ends[1]] - graph.middles[middle.ends[0]]
    wide = float(np.mean(graph.width[middle.pixels]))
    arms = []
    for junction in middle.ends:
        ways = [(graph.chains[c], side) for c, side in at[junction] if graph.chains[c] is not middle]
        if len(ways) != 2:
            return False
        arms.append([_direction(graph, chain, side, junction) for chain, side in ways])
        if max(abs(x * along[1] - y * along[0]) for x, y in arms[-1]) > 2.0 * PARTED * wide + 2.0:
            return False
    (a, b), (c, d) = arms

    def straight(p: tuple[float, float], q: tuple[float, float]) -> float:
        return -(p[0] * q[0] + p[1] * q[1])

    return bool(max(min(straight(a, c), straight(b, d)), min(straight(a, d), straight(b, c))) > STRAIGHT_ARMS)


def _direction(graph: PixelGraph, chain: PixelChain, side: int, junction: int) -> tuple[float, float]:
    """Unit vector in which a chain leaves its junction, over its first REACH pixels."""
    pixels = chain.pixels[:REACH] if side == 0 else chain.pixels[-REACH:][::-1]
    middle = graph.middles[junction]
    tail = graph.points[pixels[-1]] - (graph.points[pixels[0]] if len(pixels) >= REACH // 2 else middle)
    size = float(np.hypot(tail[0], tail[1])) or 1.0
    return float(tail[0]) / size, float(tail[1]) / size


def _bend_reach(graph: PixelGraph, chain: PixelChain) -> int:
    """Pixels of a chain beside a junction that are left out: thinning bends lines there, over half their width."""
    wide = float(np.median(graph.width[chain.pixels])) if chain.pixels else 0.0
    return min(round(0.5 * wide), (len(chain.pixels) - 1) // 3)


def _between(a: Array, b: Array) -> Array:
    """Points a pixel apart on the straight way from a to b, without both."""
    count = max(1, round(float(np.hypot(b[0] - a[0], b[1] - a[1]))))
    share = np.arange(1, count)[:, None] / count
    return a + share * (b - a)


def _straight_end(line: Array, wide: float) -> Array:
    """The line with its last END widths laid straight on: thinning lets a line run into a corner of its end.

    That is half a width to the side; an end that would move farther is no such corner, but where the line does bend.
    """
    cut = round(END * wide)
    back = max(round(wide), 6)
    if len(line) < cut + back + 2:
        return line
    base, end = line[-1 - cut], line[-1]
    way = base - line[-1 - cut - back]
    size = float(np.hypot(way[0], way[1]))
    if cut < 1 or size == 0.0:
        return line
    steps = np.arange(1, cut + 1)[:, None] / cut * float(np.hypot(*(end - base)))
    laid = base + steps * way / size
    if float(np.hypot(*(laid[-1] - end))) > CORNER * wide + 1.0:
        return line
    return np.concatenate([line[: len(line) - cut], laid])
