"""A way through all strokes that is improved step by step: 2-opt and or-opt with neighbour lists, and disturbances.

The way is kept as a ring of ends, entry and exit of each stroke in turn; a stroke that costs nothing to reach closes
it. Of a stretch to be reversed the shorter side is turned: read round the ring both are the same way. Every change
is noted in a journal, so that a disturbance that did not help is taken back. Neighbours are found in a grid that is
made coarser where points are rare.
"""

from __future__ import annotations

from array import array

import numpy as np

from tangere.apps.drawing.strokes.strokes import ranges
from tangere.types import Array

# Points of one cell that are looked at: where more lie in one place any of them will do.
CROWD = 48


def nearest(points: Array, k: int) -> np.ndarray:
    """(n, k) indices of the k nearest other points of each of (n, 2), nearest first; -1 where there are fewer.

    Exact unless more than CROWD points share a cell of the grid; those beyond may be missed.
    """
    n = len(points)
    result = np.full((n, k), -1, dtype=np.int64)
    if n < 2:
        return result
    low = points.min(axis=0)
    span = float(max((points.max(axis=0) - low).max(), 1e-300))
    cell = span / max(1.0, np.sqrt(n))  # one point per cell where they lie evenly
    waiting = np.arange(n)
    while len(waiting):
        found, reached = _in_window(points, low, cell, waiting, k)
        full = found[:, -1] >= 0
        farthest = np.where(full, _distance(points, waiting, found[:, -1]), np.inf)
        # the window reaches two cells each way: what is nearer than that cannot have been missed
        done = (full & (farthest <= 2.0 * cell)) | (reached >= span)
        result[waiting[done]] = found[done]
        waiting = waiting[~done]
        cell *= 2.0
    return result


def _distance(points: Array, a: np.ndarray, b: np.ndarray) -> Array:
    step = points[a] - points[b]
    result: Array = np.hypot(step[:, 0], step[:, 1])
    return result


def _in_window(points: Array, low: Array, cell: float, wanted: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """((m, k) nearest of the wanted points among those of 5 x 5 cells round each, how far the window reaches)."""
    place = np.floor((points - low) / cell).astype(np.int64) + 2
    columns = int(place[:, 0].max()) + 3
    code = place[:, 1] * columns + place[:, 0]
    order = np.argsort(code, kind="stable")
    ranked = code[order]
    mine = code[wanted]
    sources, targets = [], []
    for down in range(-2, 3):
        for right in range(-2, 3):
            there = mine + down * columns + right
            first = np.searchsorted(ranked, there, side="left")
            count = np.minimum(np.searchsorted(ranked, there, side="right") - first, CROWD)
            owner, index = ranges(first, count)
            sources.append(owner)
            targets.append(order[index])
    owner, target = np.concatenate(sources), np.concatenate(targets)
    other = target != wanted[owner]
    owner, target = owner[other], target[other]
    distance = _distance(points, wanted[owner], target)
    rank = np.lexsort((target, distance, owner))
    owner, target = owner[rank], target[rank]
    count = np.bincount(owner, minlength=len(wanted))
    _, within = ranges(np.zeros(len(wanted), dtype=np.int64), count)
    found = np.full((len(wanted), k), -1, dtype=np.int64)
    chosen = within < k
    found[owner[chosen], within[chosen]] = target[chosen]
    return found, 2.0 * cell


# What is gained must be more than rounding [m]: a millionth of a micrometre.
LEAST = 1e-12
# Strokes that or-opt moves together.
SEGMENT = 3
# Strokes between the cuts of a disturbance, at most: a local one is repaired in a few steps.
KICK = 5


class Tour:
    """A ring of ends: positions 2 i and 2 i + 1 hold entry and exit of the i-th stroke."""

    def __init__(self, ends: Array, sequence: list[int], near: np.ndarray) -> None:
        self.z: list[complex] = (ends[:, 0] + 1j * ends[:, 1]).tolist()
        self.nowhere = len(ends)  # the two ends of the stroke that closes the ring
        self.z += [0j, 0j]
        # arrays that Python reads one by one (faster than numpy's) and numpy writes in stretches, over the same memory
        self.ring = array("q", [end for first in [*sequence, self.nowhere] for end in (first, first ^ 1)])
        self.position = array("q", bytes(8 * len(self.ring)))
        self._ring = np.frombuffer(self.ring, dtype=np.int64)
        self._position = np.frombuffer(self.position, dtype=np.int64)
        self._places = np.arange(len(self.ring))
        self._position[self._ring] = self._places
        # each end's neighbours with their distances, nearest first; of one's own stroke it is no link
        self.near: list[list[tuple[int, float]]] = []
        for end, row in enumerate(near.tolist()):
            here = self.z[end]
            self.near.append(
                [(other, abs(here - self.z[other])) for other in row if other >= 0 and other >> 1 != end >> 1]
            )
        self.near += [[], []]
        self.journal: list[
            tuple[int, np.ndarray]
        ] = []  # (position, what stood there) of each change since a disturbance

    def sequence(self) -> list[int]:
        """The end at which each stroke is entered, in order."""
        at = self.position[self.nowhere]
        size = len(self.ring)
        if at % 2 == 0:  # entered by its first end: the way goes on after its exit
            return [self.ring[(at + 2 + 2 * i) % size] for i in range(size // 2 - 1)]
        # the closing stroke was turned round: its entry is its other end, one place before
        return [self.ring[(at + 1 + 2 * i) % size] for i in range(size // 2 - 1)]

    def improve(self, queue: list[int] | None = None) -> float:
        """Apply 2-opt and or-opt until neither gains anywhere (or round the ends queued); what was gained [m]."""
        waiting = list(range(self.nowhere)) if queue is None else list(queue)
        queued = set(waiting)
        gained = 0.0
        while waiting:
            end = waiting.pop()
            queued.discard(end)
            if end >= self.nowhere:
                continue
            while True:
                gain, touched = self._two_opt(end)
                if gain == 0.0:
                    gain, touched = self._or_opt(end)
                if gain == 0.0:
                    break
                gained += gain
                for other in touched:
                    if other not in queued:
                        queued.add(other)
                        waiting.append(other)
        return gained

    def perturb(self, kicks: int, rng: np.random.Generator) -> float:
        """Exchange two short neighbouring stretches at random and improve; keep what is shorter; the gain [m]."""
        strokes = len(self.ring) // 2
        if strokes < 5:
            return 0.0
        reach = min(KICK, (strokes - 1) // 3)
        starts = rng.integers(0, strokes, kicks).tolist()
        first = rng.integers(1, reach + 1, kicks).tolist()
        second = rng.integers(1, reach + 1, kicks).tolist()
        total = 0.0
        size = len(self.ring)
        for start, one, two in zip(starts, first, second, strict=True):
            a, b, c = 2 * start, 2 * (start + one), 2 * (start + one + two)
            cuts = [self.ring[place % size] for place in (a - 1, a, b - 1, b, c - 1, c)]
            before = self._link(cuts[0], cuts[1]) + self._link(cuts[2], cuts[3]) + self._link(cuts[4], cuts[5])
            after = self._link(cuts[0], cuts[3]) + self._link(cuts[4], cuts[1]) + self._link(cuts[2], cuts[5])
            self.journal = []
            self._write(a % size, np.concatenate([self._stretch(b, c - b), self._stretch(a, b - a)]))
            gain = before - after + self.improve(cuts)
            if gain > LEAST:
                total += gain
            else:
                for place, ends in reversed(self.journal):
                    self._write(place, ends)
        self.journal = []
        return total

    def _link(self, a: int, b: int) -> float:
        if a >= self.nowhere or b >= self.nowhere:
            return 0.0
        return abs(self.z[a] - self.z[b])

    def _two_opt(self, a: int) -> tuple[float, tuple[int, ...]]:
        """Link end `a` with a near one of the same kind (both exits or both entries), the stretch between reversed."""
        ring, position, size = self.ring, self.position, len(self.ring)
        place = position[a]
        step = 1 if place & 1 else -1
        b = ring[(place + step) % size]
        old = self._link(a, b)
        for c, distance in self.near[a]:
            if distance >= old - LEAST:
                return 0.0, ()
            there = position[c]
            if (there ^ place) & 1:
                continue
            d = ring[(there + step) % size]
            gain = old - distance + self._link(c, d) - self._link(b, d)
            if gain > LEAST:
                if step == 1:
                    self._reverse(place + 1, there)
                else:
                    self._reverse(there, place - 1)
                return gain, (a, b, c, d)
        return 0.0, ()

    def _or_opt(self, a: int) -> tuple[float, tuple[int, ...]]:
        """Move one to three strokes, of which `a` is an outer end, next to an end near `a`."""
        ring, position, size = self.ring, self.position, len(self.ring)
        place = position[a]
        forward = place & 1 == 0  # the segment lies after a (a is an entry) or before it
        for count in range(1, min(SEGMENT, size // 2 - 2) + 1):
            span = 2 * count - 1
            first, last = (place, place + span) if forward else (place - span, place)
            before, after = ring[(first - 1) % size], ring[(last + 1) % size]
            other = ring[last % size] if forward else ring[first % size]
            left, right = ring[first % size], ring[last % size]
            saved = self._link(before, left) + self._link(right, after) - self._link(before, after)
            if saved <= LEAST:
                continue
            for c, distance in self.near[a]:
                if distance >= saved - LEAST:
                    break
                there = position[c]
                if (there - first) % size <= span:  # inside the segment
                    continue
                d = ring[(there + 1) % size] if there & 1 else ring[(there - 1) % size]
                if (position[d] - first) % size <= span:  # the link that was just cut
                    continue
                gain = saved + self._link(c, d) - distance - self._link(other, d)
                if gain > LEAST:
                    self._move(first, last, there, a == left)
                    return gain, (a, other, before, after, c, d)
        return 0.0, ()

    def _move(self, first: int, last: int, there: int, left: bool) -> None:
        """Move positions first..last into the link at `there`, with its left end (or its right one) at `there`."""
        size = len(self.ring)
        span = last - first + 1
        first %= size
        gap = there if there & 1 else (there - 1) % size  # the exit before the link
        ahead = (gap - first) % size  # how far the link lies after the segment's first position
        segment = self._stretch(first, span)
        # the segment keeps its direction if its left end joins the exit, or its right end the entry
        if left != bool(there & 1):
            segment = segment[::-1]
        if ahead < size // 2:
            self._write(first, np.concatenate([self._stretch(first + span, ahead + 1 - span), segment]))
        else:
            start = (gap + 1) % size
            self._write(start, np.concatenate([segment, self._stretch(start, (first - start) % size)]))

    def _reverse(self, i: int, j: int) -> None:
        """Reverse positions i..j (round the ring), or, which is the same way, all the others if they are fewer."""
        size = len(self.ring)
        i %= size
        count = (j - i) % size + 1
        if 2 * count > size:
            i, count = (i + count) % size, size - count
        self._write(i, self._stretch(i, count)[::-1])

    def _stretch(self, start: int, count: int) -> np.ndarray:
        """A copy of the ends at `count` positions from `start` on, round the ring."""
        size = len(self.ring)
        start %= size
        stop = start + count
        if stop <= size:
            return self._ring[start:stop].copy()
        return np.concatenate([self._ring[start:], self._ring[: stop - size]])

    def _write(self, start: int, ends: np.ndarray) -> None:
        """Put ends at the positions from `start` on; what was there goes into the journal."""
        size = len(self.ring)
        self.journal.append((start, self._stretch(start, len(ends))))
        stop = start + len(ends)
        if stop <= size:
            self._ring[start:stop] = ends
            self._position[ends] = self._places[start:stop]
        else:
            head = size - start
            self._ring[start:] = ends[:head]
            self._ring[: stop - size] = ends[head:]
            self._position[ends[:head]] = self._places[start:]
            self._position[ends[head:]] = self._places[: stop - size]
