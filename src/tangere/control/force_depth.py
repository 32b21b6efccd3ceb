"""How deep the pen is in the paper and how fast it goes in: the force knows both better than the joints."""

from __future__ import annotations

import numpy as np

from tangere.control.force_gains import STIFFNESS
from tangere.types import Array

# m/s2 per sample: acceleration that neither command nor disturbance explains. Noise of the compensated force, 0.1 N on
# 2.5 to 6 kg, is 0.02 to 0.04; the rest is left to the masses (5 % of what is asked for) and to friction
ACCELERATION = 0.1
# m/s2 per sample, by which the disturbance may wander: 0.6 m/s2 within a second, all that 5 % of wrong masses make
WANDER = 0.02
GRID = 16  # stiffnesses for which the gains are computed beforehand, a factor 1.4 apart: gains go with k^(1/3)
ITERATIONS = 400  # of Riccati's equation: it settles within some 1 / (bandwidth h) = 50


class DepthObserver:
    """Kalman filter of depth x, speed v and disturbance d along the normal, from the force W = k x alone.

        x+ = x + h v + h^2/2 (a + d),   v+ = v + h (a + d),   d+ = d,   W / k = x - lag v

    a: the acceleration into the paper that was commanded. lag [s]: how old the force is: a period for the mean of the
    last one, more for a sensor or an observer that is late; k x is then the force now. With 0.1 N and 2e4 N/m a sample
    tells the depth to 5 um: the joints' speed (0.002 rad/s, 1.5 mm/s at the tip) would take 3 ms to say as much, but it
    also sees the slope of the paper as speed, which this does not.
    Gains are those of the steady state, computed once for a grid of stiffnesses.
    """

    def __init__(self, noise: float, period: float, lag: float | None = None) -> None:
        self._h, self._lag = period, period if lag is None else lag
        low, high = STIFFNESS
        self._grid = np.geomspace(low, high, GRID)
        self._table = np.array([steady_gain(noise / k, period, self._lag) for k in self._grid])
        self.set_stiffness(high)

    def set_stiffness(self, stiffness: float) -> None:
        """Use this k [N/m]."""
        self.k = stiffness
        nearest = int(np.argmin(np.abs(np.log(self._grid / stiffness))))
        self._gain = self._table[nearest].tolist()

    def start(self, W: float, v: float, d: float) -> None:
        """Begin at force W [N] with speed v [m/s] into the paper and disturbance d [m/s2]."""
        self.x, self.v, self.d = W / self.k, v, d

    def update(self, W: float, a: float) -> None:
        """A new force W [N]; a [m/s2]: what was commanded since the sample before."""
        h, total = self._h, a + self.d
        x = self.x + h * self.v + 0.5 * h * h * total
        v = self.v + h * total
        error = W / self.k - (x - self._lag * v)
        g = self._gain
        self.x, self.v, self.d = x + g[0] * error, v + g[1] * error, self.d + g[2] * error


def steady_gain(noise: float, h: float, lag: float) -> Array:
    """Gain (3,) of the filter for a depth noise [m] per sample, `lag` [s] late: Riccati's equation, iterated."""
    A = np.array(((1.0, h, 0.5 * h * h), (0.0, 1.0, h), (0.0, 0.0, 1.0)))
    H = np.array((1.0, -lag, 0.0))
    push = np.array((0.5 * h * h, h, 0.0)) * ACCELERATION
    Q = np.outer(push, push)
    Q[2, 2] = WANDER**2
    P = np.diag((noise**2, 1e-4, 1.0))
    K = np.zeros(3)
    for _ in range(ITERATIONS):
        P = A @ P @ A.T + Q
        K = P @ H / (H @ P @ H + noise**2)
        P = P - np.outer(K, H @ P)
        P = 0.5 * (P + P.T)
    return K
