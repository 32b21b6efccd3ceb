"""Lines one pixel wide in the middle of what was thick, and the graph that they make.

Thinning: two half-steps in turn remove border pixels from the south-east and the north-west until nothing changes (the
parallel thinning of Guo and Hall, 1989, its conditions evaluated once for all 256 neighbourhoods). A pixel goes only if
its eight neighbours stay one piece without it, so lines, loops and the number of pieces are kept.

Graph: chains of pixels between junctions and ends, spurs pruned. Two pixels are neighbours if they share a side, or a
corner and no pixel that touches both by a side (so a staircase is a chain, not a row of triangles). A pixel with three
or more neighbours is a junction; junctions that touch are one. Every pixel belongs to exactly one chain or junction:
nothing is drawn twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.picture.picture import opencv
from tangere.types import Array

Mask = NDArray[np.bool_]

# Weights of the eight neighbours in a code: clockwise from the north-west corner, as the kernel below lays them out.
WEIGHTS = np.array([[1, 2, 4], [128, 0, 8], [64, 32, 16]])


def thinned(mask: Mask) -> Mask:
    """The centre lines (h, w) of a mask (h, w): one pixel wide, connected as the mask is, ends kept.

    Pixels on the border of the picture are treated as if white paper went on outside.
    """
    cv2 = opencv()
    tables = [_table(0), _table(1)]
    kernel = WEIGHTS.astype(np.float32)
    image = np.pad(np.ascontiguousarray(mask), 1).astype(np.uint8)
    unchanged = 0
    half = 0
    while unchanged < 2:
        codes = cv2.filter2D(image, cv2.CV_8U, kernel, borderType=cv2.BORDER_CONSTANT)
        kept = cv2.LUT(codes, tables[half])
        after = cv2.bitwise_and(image, kept)
        unchanged = unchanged + 1 if np.array_equal(after, image) else 0
        image = after
        half = 1 - half
    result: Mask = image[1:-1, 1:-1].astype(bool)
    return result


def _table(half: int) -> NDArray[np.uint8]:
    """(256,) 0 where a pixel with these neighbours is removed in this half-step, else 1."""
    codes = np.arange(256)
    # p2..p9: north, north-east, ... north-west, clockwise, as in the literature
    p9, p2, p3, p4, p5, p6, p7, p8 = ((codes >> bit) & 1 for bit in range(8))
    pieces = (1 - p2) * (p3 | p4) + (1 - p4) * (p5 | p6) + (1 - p6) * (p7 | p8) + (1 - p8) * (p9 | p2)
    pairs = np.minimum((p9 | p2) + (p3 | p4) + (p5 | p6) + (p7 | p8), (p2 | p3) + (p4 | p5) + (p6 | p7) + (p8 | p9))
    side = ((p2 | p3 | (1 - p5)) & p4) if half == 0 else ((p6 | p7 | (1 - p9)) & p8)
    removed = (pieces == 1) & (pairs >= 2) & (pairs <= 3) & (side == 0)
    return np.where(removed, 0, 1).astype(np.uint8)


# A spur adds less than this share of the line's width to it: the corner of a blunt end adds a fifth ...
SPUR = 0.27
# ... and the steps of the pixels so much [pixels].
ROUGH = 1.0


@dataclass
class PixelChain:
    """Pixels between two junctions or ends, in order."""

    pixels: list[int]  # indices into the skeleton's pixels
    ends: list[int]  # the junction (or -1: a free end) at the start and at the end
    loop: bool = False  # closed, without any junction
    gone: bool = False


@dataclass
class PixelGraph:
    """A skeleton as chains and junctions."""

    points: Array  # (n, 2) pixel centres, x right, y down
    width: Array  # (n,) width of the line there [pixels]
    chains: list[PixelChain] = field(default_factory=list)
    middles: dict[int, Array] = field(default_factory=dict)  # junction -> where it is
    pixels_of: dict[int, list[int]] = field(default_factory=dict)  # junction -> its own pixels


def pixel_graph(skeleton: Mask, width: Array) -> PixelGraph:
    """The graph of a skeleton (h, w); `width` (h, w) is the width of the line at its pixels."""
    padded = np.pad(skeleton, 1)
    rows, columns = np.nonzero(padded)
    number = np.full(padded.shape, -1, dtype=np.int64)
    number[rows, columns] = np.arange(len(rows))
    neighbours = _neighbours(padded, number, rows, columns)
    degree = (neighbours >= 0).sum(axis=1)
    graph = PixelGraph(np.stack([columns - 0.5, rows - 0.5], axis=1), width[rows - 1, columns - 1].astype(float))
    junction = _junctions(graph, neighbours, degree)
    _follow(graph, neighbours, degree, junction)
    return graph


def pruned(graph: PixelGraph) -> None:
    """Remove spurs: chains with one free end that reach hardly farther than the line is wide where they begin.

    Thinning makes them out of every corner and bump of a line's border. The disc of the line's half width h about the
    junction lies inside the ink; what a chain to the tip t, with the half width h_t there, adds to it is

        |t - junction| + h_t - h

    which is 0.41 h for the corner of a blunt end and the whole arm for the bar of a t. Where two or more of them meet
    and nothing else does, they are the line itself and stay.
    """
    for _ in range(3):  # a spur on a spur needs a second look; more was never seen
        degree: dict[int, int] = {}
        for chain in graph.chains:
            if not chain.gone:
                for end in chain.ends:
                    degree[end] = degree.get(end, 0) + 1
        spurs = []
        for chain in graph.chains:
            if chain.gone or chain.loop or chain.ends.count(-1) != 1:
                continue
            base, tip = (chain.ends[0], chain.pixels[-1]) if chain.ends[1] == -1 else (chain.ends[1], chain.pixels[0])
            wide = max(graph.width[p] for p in graph.pixels_of[base])
            way = graph.points[tip] - graph.middles[base]
            beyond = float(np.hypot(way[0], way[1]) + 0.5 * (graph.width[tip] - wide))
            if beyond <= SPUR * wide + ROUGH:
                spurs.append((beyond, base, chain))
        spurs.sort(key=lambda spur: spur[0])
        changed = False
        for _, base, chain in spurs:
            if degree[base] > 2:
                chain.gone = changed = True
                degree[base] -= 1
        if not changed:
            return


def _neighbours(padded: Mask, number: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(n, 8) indices of the neighbours of each pixel, -1 where there is none."""
    found = []
    sides = {step: padded[rows + step[0], columns + step[1]] for step in ((-1, 0), (0, 1), (1, 0), (0, -1))}
    for step in sides:
        found.append(number[rows + step[0], columns + step[1]])
    for down, right in ((-1, 1), (1, 1), (1, -1), (-1, -1)):
        diagonal = number[rows + down, columns + right]
        found.append(np.where(sides[(down, 0)] | sides[(0, right)], -1, diagonal))
    return np.stack(found, axis=1)


def _junctions(graph: PixelGraph, neighbours: np.ndarray, degree: np.ndarray) -> list[int]:
    """The junction that each pixel belongs to (-1: none); junction pixels that touch are one junction."""
    junction = [-1] * len(degree)
    crowded = set(np.nonzero(degree > 2)[0].tolist())
    table = {p: [q for q in neighbours[p].tolist() if q >= 0] for p in crowded}
    count = 0
    for start in sorted(crowded):
        if junction[start] >= 0:
            continue
        junction[start] = count
        pixels = [start]
        for pixel in pixels:
            for other in table[pixel]:
                if other in crowded and junction[other] < 0:
                    junction[other] = count
                    pixels.append(other)
        graph.pixels_of[count] = pixels
        graph.middles[count] = graph.points[pixels].mean(axis=0)
        count += 1
    return junction


def _follow(graph: PixelGraph, neighbours: np.ndarray, degree: np.ndarray, junction: list[int]) -> None:
    """Fill graph.chains: every pixel that is no junction ends up in exactly one."""
    order = np.argsort(neighbours < 0, axis=1, kind="stable")
    pair = np.take_along_axis(neighbours, order, axis=1)[
        :, :2
    ].tolist()  # the (at most) two neighbours of a chain pixel
    degrees = degree.tolist()
    taken = [j >= 0 for j in junction]
    near_junction = np.zeros(len(degrees), dtype=bool)
    inside = np.array(junction) if len(junction) else np.zeros(0, dtype=int)
    for k in range(neighbours.shape[1]):
        valid = neighbours[:, k] >= 0
        near_junction[valid] |= inside[neighbours[valid, k]] >= 0
    ends = np.nonzero((inside < 0) & ((degree < 2) | near_junction))[0].tolist()

    def walk(start: int, came: int) -> tuple[list[int], int]:
        pixels, here, before = [start], start, came
        taken[start] = True
        while True:
            a, b = pair[here]
            onward = b if a == before else a
            if onward < 0 or onward == before:
                return pixels, -1
            if junction[onward] >= 0:
                return pixels, junction[onward]
            if taken[onward]:
                return pixels, -1
            taken[onward] = True
            pixels.append(onward)
            here, before = onward, here

    for start in ends:
        if taken[start]:
            continue
        a, b = pair[start]
        if degrees[start] == 0:
            taken[start] = True
            graph.chains.append(PixelChain([start], [-1, -1]))
            continue
        # leave on the side away from a junction; between two junctions there is only this pixel
        base = a if a >= 0 and junction[a] >= 0 else b if b >= 0 and junction[b] >= 0 else -1
        pixels, last = walk(start, base)
        graph.chains.append(PixelChain(pixels, [junction[base] if base >= 0 else -1, last]))
    for start in range(len(degrees)):
        if not taken[start]:
            pixels, _ = walk(start, -1)
            graph.chains.append(PixelChain(pixels, [-1, -1], loop=len(pixels) > 2))
