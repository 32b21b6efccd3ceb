"""A force-torque sensor at the wrist: ideal, or a built-in one with bias, drift, noise, a filter and delay."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, UnknownName
from tangere.types import Array, Command, Plant, State, Truth

# UR5e, UR's technical specification: range, precision, accuracy [N]; then the same in Nm. The forces are UR's figures;
# of the moments only the range is sure, and no controller here uses them.
_UR5E = (50.0, 3.5, 4.0, 10.0, 0.2, 0.3)
# How a precision of 3.5 N splits into noise and drift is not published. Assumed, not measured: a tenth of it as the
# standard deviation of a reading, and a drift that walks as far within an hour. With ten minutes instead of an hour
# the force error of a drawing is some 15 % larger.
_NOISE_SHARE = 0.1
_DRIFT_TIME = 3600.0  # s
_RATE = 500.0  # Hz, of the controller that reports it
_BLOCK = 512  # readings whose errors are drawn at once
_DELAY = 2e-3  # s: one period of 500 Hz from the sensor to whoever reads


@dataclass(frozen=True)
class WrenchSensor:
    """Measured = hold(true + bias + drift + noise), cut at the range, `delay` late; in base axes at the tcp.

    noise (6,): standard deviation per sample [N, Nm]. bias (6,): largest constant offset, drawn evenly within it when
    the plant is reset. drift (6,): standard deviation of a random walk after one second [N, Nm / sqrt(s)].
    rate [Hz]: a new reading that often, held between (0: every period). delay [s]. range (6,): readings end there.
    """

    noise: ArrayLike = 0.0
    bias: ArrayLike = 0.0
    drift: ArrayLike = 0.0
    rate: float = 0.0
    delay: float = 0.0
    range: ArrayLike = np.inf
    seed: int = 0

    @classmethod
    def ideal(cls, noise: float = 0.1, seed: int = 0) -> WrenchSensor:
        """White noise only: 0.1 N per 1 kHz sample, and a twentieth of that in Nm (a lever of 50 mm)."""
        return cls(noise=(noise,) * 3 + (0.05 * noise,) * 3, seed=seed)

    @classmethod
    def builtin(cls, seed: int = 0) -> WrenchSensor:
        """The e-series' own, by UR's figures for a UR5e: range 50 N, precision 3.5 N, accuracy 4 N.

        bias within the accuracy; noise a tenth of the precision per reading; drift that walks to the precision in an
        hour; 500 Hz, 2 ms late. The split of the precision is an assumption. Every arm gets the UR5e's figures.
        """
        span, precision, accuracy, turn, turn_precision, turn_accuracy = _UR5E
        return cls(
            noise=(_NOISE_SHARE * precision,) * 3 + (_NOISE_SHARE * turn_precision,) * 3,
            bias=(accuracy,) * 3 + (turn_accuracy,) * 3,
            drift=np.array((precision,) * 3 + (turn_precision,) * 3) / np.sqrt(_DRIFT_TIME),
            rate=_RATE, delay=_DELAY, range=(span,) * 3 + (turn,) * 3, seed=seed,
        )  # fmt: skip

    @classmethod
    def preset(cls, name: str, seed: int = 0) -> WrenchSensor | None:
        """ "ideal", "builtin" or "none" (None)."""
        if name == "none":
            return None
        if name == "ideal":
            return cls.ideal(seed=seed)
        if name == "builtin":
            return cls.builtin(seed)
        raise UnknownName(f"unknown sensor {name!r}; known: ideal, builtin, none")


class WithWrenchSensor:
    """A plant whose State.wrench is what such a sensor makes of it; everything else is the plant's own.

    The plant inside must give the true wrench (no wrench noise of its own).
    """

    def __init__(self, plant: Plant, sensor: WrenchSensor | None) -> None:
        self.plant, self.sensor = plant, sensor
        self.period, self.dof = plant.period, plant.dof
        if sensor is not None:
            self._noise, self._bias, self._drift, self._range = (
                _six(getattr(sensor, name), name) for name in ("noise", "bias", "drift", "range")
            )
            if not (sensor.rate >= 0.0 and sensor.delay >= 0.0):
                raise InvalidValue(f"rate and delay: >= 0, got {sensor.rate!r} and {sensor.delay!r}")
            self._every = max(round(1.0 / (sensor.rate * plant.period)), 1) if sensor.rate else 1
            self._late = round(sensor.delay / plant.period)
            self._scale = np.concatenate((self._noise, self._drift * np.sqrt(self._every * plant.period)))
            self._cut = bool(np.any(np.isfinite(self._range)))

    def reset(self, q: Array, qd: Array | None = None) -> State:
        """As the plant; the sensor draws its bias."""
        state = self.plant.reset(q, qd)
        if self.sensor is not None:
            self._random = np.random.default_rng(self.sensor.seed)
            self._offset = self._random.uniform(-1.0, 1.0, 6) * self._bias
            self._count, self._drawn, self._held = 0, 0, np.zeros(6)
            self._queue: deque[Array] = deque()
        self._seen: State | None = None
        self._last: State = state
        return self._sensed(state)

    def read(self) -> State:
        """The newest sample."""
        return self._sensed(self.plant.read())

    def write(self, command: Command) -> None:
        """As the plant."""
        self.plant.write(command)

    def truth(self) -> Truth:
        """As the plant, where it knows."""
        plant: Any = self.plant
        truth: Truth = plant.truth()
        return truth

    def close(self) -> None:
        """As the plant."""
        self.plant.close()

    def _sensed(self, state: State) -> State:
        if state is self._seen:
            return self._last
        self._seen = state
        if self.sensor is None or state.wrench is None:
            self._last = State(state.time, state.period, state.q, state.qd, state.tau)
            return self._last
        if self._count % self._every == 0:
            i = self._drawn % _BLOCK
            if i == 0:  # drawn and scaled many at once: a few numbers at a time would cost as much as a block
                self._errors = self._random.standard_normal((_BLOCK, 12)) * self._scale
                walk = self._offset + np.cumsum(self._errors[:, 6:], axis=0)
                self._offset = walk[-1]
                self._errors = self._errors[:, :6] + walk
            self._drawn += 1
            reading = state.wrench + self._errors[i]
            if self._cut:
                np.minimum(np.maximum(reading, -self._range, out=reading), self._range, out=reading)
            self._held = reading
        self._count += 1
        value = self._held
        if self._late:
            self._queue.append(value)
            value = self._queue.popleft() if len(self._queue) > self._late else self._queue[0]
        self._last = State(state.time, state.period, state.q, state.qd, state.tau, value)
        return self._last


def _six(values: ArrayLike, what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (6,)) or np.any(np.isnan(array)) or np.any(array < 0.0):
        raise InvalidValue(f"{what}: one number or 6, >= 0, got {values!r}")
    return np.broadcast_to(array, (6,)).copy()


def quiet(sensor: WrenchSensor) -> WrenchSensor:
    """The same sensor without noise: bias, drift, rate and delay stay."""
    return replace(sensor, noise=0.0)
