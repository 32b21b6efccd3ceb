"""The paper as the pen has found it so far, and how stiff it is."""

from __future__ import annotations

import math

import numpy as np

from tangere.apps.drawing.force.gains import STIFFNESS

# m above the planned plane from where the pen comes slowly if nothing was touched: 3 mm, and 2 degrees at 170 mm
UNKNOWN = 0.009
NEAR = 7e-4  # m, margin right beside a touched point: the pen's own error and the spring under it
SLOPE = 0.06  # of the distance to the nearest point: a tilt of 2 deg (0.035) and the flank of a flat bump
FALL = 0.36  # of the distance from a touched point: paper does not fall steeper (20 degrees)
BELOW = 2.5e-3  # m, and right beside the point: a bump's height and the pen's own error
SURE = 0.1  # of k: the loop bears a k that is wrong by a factor 2 and more


class Found:
    """Points of the paper that the pen has touched (canvas frame), and what to expect elsewhere."""

    def __init__(self) -> None:
        self._points = np.zeros((64, 3))
        self._count = 0

    @property
    def points(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """(N, 3) x, y, height [m]."""
        return self._points[: self._count]

    def add(self, point: tuple[float, float, float]) -> None:
        """Remember a point that was touched."""
        if self._count == len(self._points):
            self._points = np.concatenate((self._points, np.zeros_like(self._points)))
        self._points[self._count] = point
        self._count += 1

    def expected(self, x: float, y: float) -> tuple[float, float]:
        """Height [m] of the paper at x, y as the nearest touched point has it, and a margin above which it is not."""
        if not self._count:
            return 0.0, UNKNOWN
        points = self.points
        squares = (points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2
        nearest = int(np.argmin(squares))
        return float(points[nearest, 2]), min(NEAR + SLOPE * math.sqrt(float(squares[nearest])), UNKNOWN)

    def lowest(self, x: float, y: float) -> float:
        """Height [m] below which there is no paper at x, y: a hole; minus infinity where nothing was touched."""
        if not self._count:
            return -math.inf
        points = self.points
        squares = (points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2
        nearest = int(np.argmin(squares))
        return float(points[nearest, 2]) - BELOW - FALL * math.sqrt(float(squares[nearest]))


class StiffnessEstimate:
    """k from the first presses: the slope of force over depth, by least squares over the samples of a growing force.

        k = sum (x - mean x)(W - mean W) / sum (x - mean x)^2,    sums over all presses, means of each

    One press is enough with a good sensor; the paper's height may differ from press to press. noise [N]: standard
    deviation of W per sample (white). x is the tip by the joints, exact to micrometres while the arm hardly turns. Held
    within STIFFNESS.
    """

    def __init__(self, noise: float = 0.1) -> None:
        self._noise = noise
        self.clear()

    def clear(self) -> None:
        """Forget every sample."""
        self._before = (0, 0.0, 0.0)
        self._n, self._x, self._w, self._xx, self._xw = 0, 0.0, 0.0, 0.0, 0.0

    def again(self) -> None:
        """Another press begins, at another height."""
        self._before = self._sums()
        self._n, self._x, self._w, self._xx, self._xw = 0, 0.0, 0.0, 0.0, 0.0

    def _sums(self) -> tuple[int, float, float]:
        """Samples, sum (x - mean x)^2, sum (x - mean x)(W - mean W) of all presses so far."""
        n, spread, joint = self._before
        if self._n:
            spread += self._xx - self._x * self._x / self._n
            joint += self._xw - self._x * self._w / self._n
        return n + self._n, spread, joint

    def add(self, depth: float, W: float) -> None:
        """A sample: depth [m] from any fixed height, force [N]."""
        if not self._n:
            self._x0 = depth
        x = depth - self._x0
        self._n += 1
        self._x += x
        self._w += W
        self._xx += x * x
        self._xw += x * W

    @property
    def value(self) -> float | None:
        """N/m, or None while its standard deviation, noise / sqrt(sum (x - mean x)^2), is more than SURE of it."""
        n, spread, joint = self._sums()
        if n < 10 or spread <= 0.0:
            return None
        k = joint / spread
        if not self._noise < SURE * k * math.sqrt(spread):
            return None
        return min(max(k, STIFFNESS[0]), STIFFNESS[1])

    @property
    def most(self) -> float:
        """N/m that the paper has at most: two standard deviations above the estimate."""
        n, spread, joint = self._sums()
        if n < 10 or spread <= 0.0:
            return STIFFNESS[1]
        k = joint / spread + 2.0 * self._noise / math.sqrt(spread)
        return min(max(k, STIFFNESS[0]), STIFFNESS[1])
