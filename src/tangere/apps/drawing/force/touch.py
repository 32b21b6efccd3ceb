"""A touch felt by the joints alone: the speeds stop doing what the model says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tangere.types import Array, State

if TYPE_CHECKING:
    from tangere.robots import Robot

# samples ago that the touch may have been, each with a filter of its own: a hard paper is felt after 3, a soft one
# after 24. A filter for 12 serves one for 11 as well: matched to 2 %
AGES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24)
WINDOW = AGES[-1]
# standard deviations, of two numbers together. White noise alone did not pass this in 3e4 s at 1 kHz, 5.5 it passed 15
# times; each stroke searches for a third of a second
ALARM = 6.0
# rad/s: what the model lacks is learnt within 2 / L = 0.1 s. A touch is learnt as slowly: in 10 ms it loses 7 %
BANDWIDTH = 20.0
# samples of even motion before anything is said: least squares then know the speed to 0.4 and what it will be in 10 ms
# to 0.5 of a sample's noise
LEARN = 30
TINY = 1e-9  # of a mobility [1/kg^2] or an acceleration per N: nothing moves sideways
EVEN = 1e-6  # m/s2, of the descent that is asked for: beyond, the pen still brakes


class JointTouch:
    """Finds a push along a normal in the joints' speeds: matched filters of a spring that is met at a steady speed.

        a = M^-1 J_v^T n,    b = M^-1 J_v^T (n + f)      what 1 N does to the joints: of a tip that slides, that sticks
        u = D qd,    D (2, n): a, and what b has beyond it, both of length 1
        u- = u_hat + h (D qdd_model + d),    e = u - u-,    u_hat = u- + alpha e,    d = d + beta e / h
        z_T = sum_t w_t e_t / sigma (2,),    w_t ~ t^2 over the last T samples, |w| = 1;    a touch: max_T |z_T| > ALARM

    f: the friction that holds the tip where it is; |f| is 0.23 to 0.38 on a table, so that a pen with a friction of 0.3
    sticks, or nearly: held at its tip the wrist turns far less, or the other way. Forces between both are n + l f with
    l from 0 to 1, so pushes lie in the plane of a and b, on one side of a: where z_2 < 0 only z_1 > 0 counts. From the
    touch on the force is k v t, and the speed lacks k v t^2 / 2 times |a| to |b|.

    d is what the model lacks (wrong masses): learnt by least squares over the descent at even speed, with two poles at
    BANDWIDTH once that has lasted 0.1 s. Braking begins it anew, since a mass that is wrong by 10 % then looks like a
    touch. speed_noise: sigma [rad/s] per sample. Positions are not used: a UR's q jitters by 1.8e-5 rad from sample to
    sample, which adds 3 % to what the speeds tell within 10 ms.

    The bound. After T [s] with rate = k v [N/s] the best that any filter can see, with noise sigma per period h, is

        s = |a| rate / (2 sigma) sqrt(T^5 / (5 h))

    UR5e, 200 N/s, 10 ms: 25 with the 3.5 rad/s2 per N of a tip that slides, 3 to 7 with the 0.5 to 1 of one that
    sticks.
    """

    def __init__(self, robot: Robot, normal: Array, speed_noise: float) -> None:
        self.robot, self._noise = robot, speed_noise
        # normal first, then two tangents (any: the last right singular vectors)
        self._axes = np.concatenate((normal[None], np.linalg.svd(normal[None])[2][1:]))
        self._weights = np.zeros((len(AGES), WINDOW))  # the oldest first
        for row, age in zip(self._weights, AGES, strict=True):
            row[WINDOW - age :] = np.arange(1.0, age + 1.0) ** 2
            row /= np.linalg.norm(row)

    def start(self, state: State) -> None:
        """Begin with this sample."""
        self._errors = np.zeros((WINDOW, 2))  # the oldest first
        self._q, self._qd, self._time = state.q, state.qd, state.time
        self._count, self._u, self._d = 0, np.zeros(2), np.zeros(2)
        self.score = 0.0

    def directions(self, q: Array, J: Array) -> Array:
        """D (2, n): how the joints' speeds change by a push along the normal, and what friction adds to that."""
        rows = self._axes.dot(J[:3])
        A = np.linalg.solve(self.robot.mass_matrix(q), rows.T)
        mobility = rows.dot(A)
        (x, shared), (_, y) = mobility[1:, 1:].tolist()
        along, across = mobility[1:, 0].tolist()
        inverse = 1.0 / max(x * y - shared * shared, TINY)
        a = A[:, 0]
        f = ((shared * across - y * along) * inverse, (shared * along - x * across) * inverse)
        b = a + f[0] * A[:, 1] + f[1] * A[:, 2]
        D = np.empty((2, len(q)))
        D[0] = a / math.sqrt(float(a.dot(a)))
        b -= D[0].dot(b) * D[0]
        D[1] = b / max(math.sqrt(float(b.dot(b))), TINY)
        return D

    def update(self, state: State, J: Array, acceleration: float = 0.0) -> bool:
        """Whether something pushes along the normal; J (6, n) at state.q, acceleration [m/s2] that is asked for."""
        h = state.period
        if state.time == self._time or not h > 0.0:  # a lost sample
            return False
        if abs(acceleration) > EVEN:
            self.start(state)
            return False
        self._time = state.time
        if not self._count:  # some millimetres of descent turn the directions by a hundredth
            self._D = self.directions(state.q, J)
            self._u = self._D.dot(self._qd)
        D = self._D
        model = D.dot(self.robot.forward_dynamics(self._q, self._qd, state.tau))
        self._q, self._qd = state.q, state.qd
        self._count += 1
        n = self._count
        many = (n + 1.0) * (n + 2.0)
        alpha = max((4.0 * n + 2.0) / many, 2.0 * BANDWIDTH * h)
        predicted = self._u + h * (model + self._d)
        error = D.dot(state.qd) - predicted
        self._u = predicted + alpha * error
        self._d = self._d + max(6.0 / many / h, BANDWIDTH**2 * h) * error
        errors = self._errors
        errors[:-1] = errors[1:]
        # the prediction's own error counts as well: e has sigma / sqrt(1 - alpha)
        errors[-1] = error * (math.sqrt(max(1.0 - alpha, 0.0)) / self._noise)
        self.score = max(_size(z) for z in self._weights.dot(errors).tolist())
        return self.score > ALARM and n > LEARN


def _size(z: list[float]) -> float:
    """|z| where a push with friction can make it, z_2 > 0; else what one without could."""
    return math.hypot(z[0], z[1]) if z[1] > 0.0 else z[0]
