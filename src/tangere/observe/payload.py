"""What is mounted that nobody told of: mass and centre of mass from a residual that lasts, told from a push."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.observe.inertial import SIZE
from tangere.robots import Robot
from tangere.types import Array

STEP = 0.02  # [s] between the samples that are taken: the residual's own lag
LAG = 50.0  # [1/s] of the low-pass that speeds go through before they are differenced: that of the residual
# Samples that are worth one independent one: what friction leaves lasts for a fifth of a second
DEPENDENT = 10.0
LEVEL = 0.06  # of Coulomb friction, standard deviation of how much of it there is that day; offsets alike
# relative standard deviation of the mass beyond that: gains of the joints that carry it, its own inertia and the lag of
# accelerations. Simulated arms with 5 kg: 0.008
GAIN = 0.01
MASS, ARM = 10.0, 0.2  # [kg], [m] standard deviations of a payload before anything is known
LEAST_SECONDS = 2.0  # of motion before anything is claimed
LEAST_TRAVEL = 0.3  # [rad] of some joint: a mass follows gravity, a push does not
LEAST_MASS = 0.1  # [kg]
SIGMAS = 5.0  # standard deviations that the mass must be away from none
EXPLAINED = 0.9  # share of the whitened residual's square that gravity and inertia of the mass, and friction, explain
# Share of the mass's weight that a steady force across gravity may have besides: a push has any direction
ACROSS = 0.25
SURE = 3.0  # standard deviations from which on such a force is one
_TWO_SIGMAS = 1.96  # of an interval that holds the truth with 95 %


@dataclass(frozen=True)
class Mounted:
    """A payload that explains what is felt, beyond what was known of."""

    mass: float  # [kg]; negative: taken off
    mass_sigma: float
    com: Array  # (3,) [m] in flange axes
    com_sigma: Array  # (3,)
    parameters: Array  # (4,) mass and first moments in the last link's frame
    explained: float  # share of what is felt

    @property
    def interval(self) -> tuple[float, float]:
        """[kg] that holds the mass with 95 %."""
        half = _TWO_SIGMAS * self.mass_sigma
        low, high = self.mass - half, self.mass + half
        return (max(0.0, low), high) if self.mass > 0.0 else (low, min(0.0, high))


class PayloadEstimator:
    """Mass and first moments of what is mounted, by least squares over all samples since `restart`.

        residual = -Y(q, qd, qdd) (m, m c) + offset + level sign(qd) + force across gravity + noise

    Y: the last link's columns of the regressor. Offset and level of friction are known to `level` of Coulomb friction;
    the force across gravity at the flange, steady in base axes, is what a push has and a payload has not.
    """

    def __init__(self, robot: Robot, spread: Array, coulomb: Array, level: float = LEVEL) -> None:
        self.robot = robot
        n = robot.dof
        self._weight = 1.0 / (np.maximum(spread, 1e-3) ** 2 * DEPENDENT)
        g = robot.model.gravity
        down = g / max(float(np.linalg.norm(g)), 1e-9)
        side = np.cross(down, np.eye(3)[int(np.argmin(np.abs(down)))])
        side /= np.linalg.norm(side)
        self._across = np.stack([side, np.cross(down, side)])
        self._weight_of = float(np.linalg.norm(g))
        known = np.maximum(level * coulomb, 1e-3)
        self._known = np.concatenate([known, known])  # offset and level of friction, standard deviations
        force = MASS * self._weight_of
        sigma = np.concatenate([[MASS], np.full(3, MASS * ARM), known, known, [force, force]])
        self._prior = np.diag(1.0 / sigma**2)
        self._last = slice(SIZE * (n - 1), SIZE * (n - 1) + 4)
        self.restart()

    def restart(self) -> None:
        """Forget every sample, and the speed."""
        self._smooth: Array | None = None
        self._before: tuple[float, Array] | None = None
        self.begin()

    def begin(self) -> None:
        """Forget what was added."""
        size = len(self._prior)
        self._H, self._b, self._power = np.zeros((size, size)), np.zeros(size), 0.0
        self._low = self._high = np.zeros(0)
        self.seconds = 0.0  # of motion that were taken

    def acceleration(self, time: float, qd: Array) -> tuple[Array, Array] | None:
        """Speed and acceleration (n,) with the lag of the residual; None where a sample is missing before."""
        if self._before is None or not 0.0 < time - self._before[0] < 5.0 * STEP:
            self._before, self._smooth = (time, qd), qd.copy()
            return None
        h = time - self._before[0]
        self._before = (time, qd)
        assert self._smooth is not None
        before = self._smooth
        self._smooth = before + (1.0 - np.exp(-LAG * h)) * (qd - before)
        return self._smooth, (self._smooth - before) / h

    def torque(self, mounted: Mounted, q: Array, qd: Array, qdd: Array) -> Array:
        """What a payload takes of the joints' torque (n,) [Nm], as the residual has it with its sign turned."""
        return np.asarray(self.robot.regressor(q, qd, qdd)[:, self._last] @ mounted.parameters)

    def add(self, h: float, q: Array, qd: Array, qdd: Array, residual: Array) -> None:
        """A sample that stands for h [s]; residual (n,) [Nm]."""
        n = self.robot.dof
        A = np.zeros((n, len(self._prior)))
        A[:, :4] = -self.robot.regressor(q, qd, qdd)[:, self._last]
        A[:, 4 : 4 + n] = np.eye(n)
        A[:, 4 + n : 4 + 2 * n] = np.diag(np.tanh(qd / 0.02))
        A[:, 4 + 2 * n :] = self.robot.jacobian(q)[:3].T @ self._across.T
        weight = self._weight * (h / STEP)
        self._H += A.T @ (A * weight[:, None])
        self._b += A.T @ (weight * residual)
        self._power += float(weight @ residual**2)
        self._low = q if len(self._low) == 0 else np.minimum(self._low, q)
        self._high = q if len(self._high) == 0 else np.maximum(self._high, q)
        if np.max(np.abs(qd)) > 0.05:
            self.seconds += h

    def fit(self, most: float = 0.0) -> Mounted | None:
        """The payload, where it is one surely; None: too little motion, a push, or nothing.

        most [kg]: mass that is there and may have been taken off; what is taken off has a negative mass.
        """
        if self.seconds < LEAST_SECONDS or float(np.max(self._high - self._low)) < LEAST_TRAVEL:
            return None
        P = np.linalg.inv(self._H + self._prior)
        x = P @ self._b
        force, sure = x[-2:], np.sqrt(np.diag(P)[-2:])
        weight = x[0] * self._weight_of
        if np.any((np.abs(force) > SURE * sure) & (np.abs(force) > ACROSS * abs(weight))):
            return None
        keep = np.arange(len(x) - 2)  # no such force: then without it
        P = np.linalg.inv((self._H + self._prior)[np.ix_(keep, keep)])
        x = P @ self._b[keep]
        left = self._power - 2.0 * float(x @ self._b[keep]) + float(x @ self._H[np.ix_(keep, keep)] @ x)
        explained = 1.0 - left / max(self._power, 1e-12)
        m, sigma = float(x[0]), float(np.hypot(np.sqrt(P[0, 0]), GAIN * x[0]))
        if abs(m) < max(LEAST_MASS, SIGMAS * sigma) or explained < EXPLAINED or m < -most - SIGMAS * sigma:
            return None
        if np.any(np.abs(x[4:]) > SIGMAS * self._known):  # more than friction may have: a push on single joints
            return None
        com = np.asarray(x[1:4] / m)
        if float(np.linalg.norm(com)) > 5.0 * ARM:
            return None
        return Mounted(m, sigma, com, np.sqrt(np.diag(P)[1:4]) / abs(m), x[:4].copy(), explained)
