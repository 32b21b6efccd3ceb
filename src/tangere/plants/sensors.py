"""What a plant's sensors make of the truth: noise, quantisation, delay and lost samples, seeded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, UnknownName
from tangere.types import Array, State

# UR10e, standard deviations seen in recordings of a resting arm at 100 Hz (mikhel1984/ext_observer, MIT).
_UR10E_VELOCITY = 0.002  # rad/s
_UR10E_TORQUE = (2.3, 2.0, 0.9, 0.29, 0.43, 0.30)  # Nm per sample, motor current times drive gain
_UR10E_PERIOD = 0.01  # s between those samples
_BLOCK = 512  # samples whose noise is drawn at once


@dataclass(frozen=True)
class SensorModel:
    """Measured = quantised(true + noise), `delay` samples late, some samples lost. The default is ideal.

    noise_*: standard deviation of white noise, one number or one per joint (wrench: per component).
    step_*: resolution; 0 is unlimited. A reading is a whole multiple of it.
    delay: every reading is that many samples old while its stamp says now: nobody tells the reader. Before the first
        sample is due the first one is repeated.
    loss: probability that a sample does not arrive. `read` then gives the last one again, the very same State with its
        old stamp; the next that arrives has the longer period. Its tau is the torque held last, as hardware reports.
    seed: the same seed gives the same readings bit by bit; reset starts the sequence anew.
    """

    noise_q: ArrayLike = 0.0  # rad
    noise_qd: ArrayLike = 0.0  # rad/s
    noise_tau: ArrayLike = 0.0  # Nm
    noise_wrench: ArrayLike = 0.0  # N and Nm
    step_q: ArrayLike = 0.0  # rad
    step_qd: ArrayLike = 0.0  # rad/s
    step_tau: ArrayLike = 0.0  # Nm
    step_wrench: ArrayLike = 0.0
    delay: int = 0  # samples
    loss: float = 0.0  # probability per sample
    seed: int = 0

    @classmethod
    def preset(cls, name: str, period: float, seed: int = 0) -> SensorModel:
        """The sensors of an arm as measured: "ur10e".

        Velocity noise 0.002 rad/s at any rate. Torque noise was seen at 100 Hz; it is taken as white with that
        density, sigma(h) = sigma_100 sqrt(10 ms / h), so that what passes an observer's low-pass filter does not
        depend on the period chosen here (white samples of equal size would fade as the rate grows).
        """
        if name != "ur10e":
            raise UnknownName(f"unknown sensors {name!r}; known: ur10e")
        if not period > 0.0:
            raise InvalidValue(f"period: must be positive [s], got {period!r}")
        tau = np.array(_UR10E_TORQUE) * np.sqrt(_UR10E_PERIOD / period)
        return cls(noise_qd=_UR10E_VELOCITY, noise_tau=tau, seed=seed)


class Sensors:
    """The sensors of one plant at work: `first` at a reset, then `next` once a period."""

    def __init__(self, model: SensorModel | None, dof: int, period: float) -> None:
        model = SensorModel() if model is None else model
        self._model, self._period = model, period
        widths = {"q": dof, "qd": dof, "tau": dof, "wrench": 6}
        noise = [_spread(getattr(model, f"noise_{key}"), n, f"noise_{key}") for key, n in widths.items()]
        steps = [_spread(getattr(model, f"step_{key}"), n, f"step_{key}") for key, n in widths.items()]
        self._noise = np.concatenate(noise) if any(np.any(part) for part in noise) else None
        self._steps = [step if np.any(step) else None for step in steps]
        if not (isinstance(model.delay, int) and model.delay >= 0):
            raise InvalidValue(f"delay: a whole number of samples >= 0, got {model.delay!r}")
        if not 0.0 <= model.loss < 1.0:
            raise InvalidValue(f"loss: a probability in [0, 1), got {model.loss!r}")
        self._ideal = self._noise is None and not any(s is not None for s in self._steps)
        self._direct = self._ideal and not model.delay and not model.loss
        self._dof = dof
        self._random = np.random.default_rng(model.seed)
        # which of q, qd, tau, wrench have noise at all: adding nothing costs as much as adding something
        self._noisy = [bool(np.any(part)) for part in noise]
        self._rounds = any(s is not None for s in self._steps)
        self._drawn = 0
        self._late: deque[tuple[Array, Array, Array, Array | None]] = deque()
        self._last: State | None = None

    def first(self, q: Array, qd: Array, tau: Array, wrench: Array | None) -> State:
        """The first sample after a reset, at time 0 with the nominal period; it is never lost."""
        self._random, self._drawn = np.random.default_rng(self._model.seed), 0
        reading = self._reading(q, qd, tau, wrench)
        self._late = deque([reading] * self._model.delay)
        self._last = State(0.0, self._period, *reading)
        return self._last

    def next(self, time: float, q: Array, qd: Array, tau: Array, wrench: Array | None) -> State:
        """The sample at `time` [s]: a new State, or the last one again if this one was lost."""
        last = self._last
        if self._direct:
            self._last = State(time, self._period, q, qd, tau, wrench)
            return self._last
        reading = self._reading(q, qd, tau, wrench)
        if self._model.delay:
            self._late.append(reading)
            reading = self._late.popleft()
        assert last is not None
        if self._model.loss and self._random.random() < self._model.loss:
            return last
        periods = round((time - last.time) / self._period)  # whole periods: stamps are multiples of the period
        self._last = State(time, periods * self._period, *reading)
        return self._last

    def _reading(
        self, q: Array, qd: Array, tau: Array, wrench: Array | None
    ) -> tuple[Array, Array, Array, Array | None]:
        if self._ideal:
            return q, qd, tau, wrench
        if self._noise is not None:
            n = self._dof
            if self._model.loss:  # the same generator decides what is lost: it must be asked sample by sample
                noise = self._random.standard_normal(3 * n + 6) * self._noise
            else:
                i = self._drawn % _BLOCK
                if i == 0:  # the same numbers, many at once
                    self._block = self._random.standard_normal((_BLOCK, 3 * n + 6)) * self._noise
                self._drawn += 1
                noise = self._block[i]
            noisy = self._noisy
            q = q + noise[:n] if noisy[0] else q
            qd = qd + noise[n : 2 * n] if noisy[1] else qd
            tau = tau + noise[2 * n : 3 * n] if noisy[2] else tau
            wrench = wrench + noise[3 * n :] if wrench is not None and noisy[3] else wrench
        parts = (q, qd, tau, wrench)
        if not self._rounds:
            return parts
        rounded = [_rounded(part, step) for part, step in zip(parts, self._steps, strict=True)]
        return rounded[0], rounded[1], rounded[2], rounded[3]  # type: ignore[return-value]


def _rounded(values: Array | None, step: Array | None) -> Array | None:
    if values is None or step is None:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(step > 0.0, np.rint(values / step) * step, values))


def _spread(values: ArrayLike, n: int, what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (n,)) or not np.all(np.isfinite(array)) or np.any(array < 0.0):
        raise InvalidValue(f"{what}: one number or {n}, finite and >= 0, got {values!r}")
    return np.broadcast_to(array, (n,)).copy()
