"""A trajectory through joint positions at given times, as other programs send it."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.planning.samples import basis
from tangere.types import Array, Reference

PROBES = 16  # places in each interval at which speeds are looked for
BLOCK = 2048  # intervals at a time: 1.7 MB


class Waypoints:
    """Joint positions q (k, n) at times (k,) [s] from 0 on; between two a polynomial.

    With velocities qd (k, n) it is of degree three, with accelerations qdd (k, n) too of degree five: what is given is
    met. Without velocities the motion starts with `start` (n,) and ends at rest; between, a joint has the mean slope of
    its neighbours, and none where it turns round, so that it never overshoots (the slopes of a monotone cubic).
    Implements types.Trajectory.
    """

    def __init__(
        self, times: ArrayLike, q: ArrayLike, qd: ArrayLike | None = None, qdd: ArrayLike | None = None, *,
        start: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        t, places = np.asarray(times, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if t.ndim != 1 or places.ndim != 2 or len(t) != len(places) or len(t) < 2:
            raise InvalidValue(f"waypoints: times (k,) and q (k, n) with k > 1, got {t.shape} and {places.shape}")
        h = np.diff(t)
        if not (np.isfinite(t).all() and t[0] == 0.0 and (h > 0.0).all()):
            raise InvalidValue("waypoints: times begin with 0 and increase")
        if not np.isfinite(places).all():
            raise InvalidValue("waypoints: positions must be finite")
        slopes = np.diff(places, axis=0) / h[:, None]
        if qd is None:
            first = np.zeros(places.shape[1]) if start is None else np.asarray(start, dtype=np.float64)
            speeds = _monotone(slopes, h, first)
        else:
            speeds = _like(qd, places, "velocities")
        if qdd is None:  # end accelerations of the cubic in each interval: the quintic through them is that cubic
            before = (6.0 * slopes - 4.0 * speeds[:-1] - 2.0 * speeds[1:]) / h[:, None]
            after = (2.0 * speeds[:-1] + 4.0 * speeds[1:] - 6.0 * slopes) / h[:, None]
        else:
            given = _like(qdd, places, "accelerations")
            before, after = given[:-1], given[1:]
        self._times, self._h = t.tolist(), h
        self._ends = np.stack([places[:-1], speeds[:-1], before, places[1:], speeds[1:], after], axis=1)  # (k-1, 6, n)
        zero = np.zeros(places.shape[1])
        self._last = Reference(places[-1], zero, zero)
        self.duration = float(t[-1])

    def at(self, time: float) -> Reference:
        """The reference at that time [s]; the first one before 0, the last position at rest from the duration on."""
        if time >= self.duration:
            return self._last
        k = max(0, bisect_right(self._times, time) - 1)
        q, qd, qdd = basis(max(time - self._times[k], 0.0) / self._h[k], self._h[k]) @ self._ends[k]
        return Reference(q, qd, qdd)

    def fastest(self, intervals: int | None = None) -> Array:
        """The greatest speed (n,) [rad/s] of each joint, in all intervals or the first ones."""
        found = np.zeros(self._ends.shape[2])
        probes = np.stack([basis(k / PROBES, 1.0)[1] for k in range(PROBES + 1)])  # (probes, 6) of an interval of 1 s
        for k in range(0, len(self._h) if intervals is None else intervals, BLOCK):
            own = slice(k, k + BLOCK if intervals is None else min(k + BLOCK, intervals))
            h = self._h[own, None]
            scaled = self._ends[own] * np.hstack((1.0 / h, h**0, h, 1.0 / h, h**0, h))[:, :, None]
            found = np.maximum(found, np.abs(probes @ scaled).max(axis=(0, 1)))
        return found


def _monotone(slopes: Array, h: Array, first: Array) -> Array:
    """Velocities (k, n) at the points: harmonic means of the slopes beside (Fritsch and Butland), rest at the end."""
    speeds = np.zeros((len(slopes) + 1, slopes.shape[1]))
    speeds[0] = first
    if len(slopes) > 1:
        before, after = slopes[:-1], slopes[1:]
        wide, wider = (2.0 * h[1:] + h[:-1])[:, None], (h[1:] + 2.0 * h[:-1])[:, None]
        same = before * after > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (wide + wider) / (wide / before + wider / after)
        speeds[1:-1] = np.where(same, mean, 0.0)
    return speeds


def _like(given: ArrayLike, q: Array, what: str) -> Array:
    values = np.asarray(given, dtype=np.float64)
    if values.shape != q.shape or not np.isfinite(values).all():
        raise InvalidValue(f"waypoints: {what} as many as positions, all finite")
    return values
