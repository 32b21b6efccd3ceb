"""Nearest neighbours in the plane, by a grid that is made coarser where points are rare."""

from __future__ import annotations

import numpy as np

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
            owner = np.repeat(np.arange(len(wanted)), count)
            begin = np.cumsum(count) - count
            index = np.arange(len(owner)) - begin[owner] + first[owner]
            sources.append(owner)
            targets.append(order[index])
    owner, target = np.concatenate(sources), np.concatenate(targets)
    other = target != wanted[owner]
    owner, target = owner[other], target[other]
    distance = _distance(points, wanted[owner], target)
    rank = np.lexsort((target, distance, owner))
    owner, target = owner[rank], target[rank]
    count = np.bincount(owner, minlength=len(wanted))
    within = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
    found = np.full((len(wanted), k), -1, dtype=np.int64)
    chosen = within < k
    found[owner[chosen], within[chosen]] = target[chosen]
    return found, 2.0 * cell
