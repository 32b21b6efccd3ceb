"""The force at the pen: from a sensor in the wrist, or from an observer's joint torques; tared where it must be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from tangere.errors import InvalidValue, UnknownName
from tangere.types import Array, State

if TYPE_CHECKING:
    from tangere.robots import Robot


class ContactForce:
    """The wrench F (6,) of the paper on the pen at the tcp, base axes, as far as it is known: at a pen's tip a force.

        sensor:    F = measured force - tare, low-pass filtered with `smoothing` [s] where the sensor is noisy
        observer:  M^-1 J_v^T F = M^-1 (tau_ext_hat - tare) for the force, in the sense of least squares

    A tip carries no moment, so that of the sensor is not used: on a light wrist its noise and bias would be the largest
    disturbance of all. The observer's noise is K M times that of the speeds, hence the M^-1: joints with little inertia
    tell a force best. The tare is the mean of what is felt while listening, with the pen in the air; `needs_tare`:
    until then F is None. noise: standard deviation along the normal in that time [N].
    """

    def __init__(
        self,
        source: Literal["sensor", "observer"] = "sensor",
        *,
        smoothing: float = 0.0,
        needs_tare: bool | None = None,
    ) -> None:
        if source not in ("sensor", "observer"):
            raise UnknownName(f"unknown source of force {source!r}; known: sensor, observer")
        if not (math.isfinite(smoothing) and smoothing >= 0.0):
            raise InvalidValue(f"smoothing: finite and >= 0 [s], got {smoothing!r}")
        self.source, self.smoothing = source, smoothing
        self.needs_tare = source == "observer" if needs_tare is None else needs_tare
        self.start()

    def start(self) -> None:
        """Nothing is known yet."""
        self._tare: Array | None = None
        self._smooth: Array | None = None
        self._last: Array | None = None
        self.noise = 0.0
        self.listen()

    def listen(self) -> None:
        """Begin to hear what is felt in the air."""
        self._sum: Array | None = None
        self._along: list[float] = []

    def heard(self) -> None:
        """Take the mean of what was heard as the new zero."""
        if self._sum is not None and self._along:
            self._tare = self._sum / len(self._along)
            self.noise = float(np.std(self._along))
        self.listen()

    def wrench(self, robot: Robot, state: State, J: Array, normal: Array, listening: bool) -> Array | None:
        """F (6,), or None where nothing is known; the last one again where the measurement is broken."""
        raw = state.wrench if self.source == "sensor" else state.tau_ext_hat
        if raw is None:
            return None
        if not math.isfinite(raw.sum()):
            return self._last
        if self.source == "sensor":
            raw = raw[:3]
        if self.smoothing > 0.0:
            if self._smooth is not None:
                raw = self._smooth + (state.period / (state.period + self.smoothing)) * (raw - self._smooth)
            self._smooth = raw
        force = raw if self._tare is None else raw - self._tare
        if self.source == "observer":
            force = _least_squares(robot.mass_matrix(state.q), J, force)
        if listening:
            self._sum = raw.copy() if self._sum is None else self._sum + raw
            self._along.append(float(normal.dot(force)))
        if self.needs_tare and self._tare is None:
            return None
        F = np.zeros(6)
        F[:3] = force
        self._last = F
        return F


def _least_squares(M: Array, J: Array, torque: Array) -> Array:
    """The force (3,) at the tip that explains the joint torques (n,) best, joints weighted by M^-2."""
    columns = np.empty((len(torque), 4))
    columns[:, :3] = J[:3].T
    columns[:, 3] = torque
    A = np.linalg.solve(M, columns)
    normal = A.T.dot(A)
    return np.asarray(np.linalg.solve(normal[:3, :3], normal[:3, 3]))
