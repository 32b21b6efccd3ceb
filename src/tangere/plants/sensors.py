"""What sensors make of the truth, seeded: joints (noise, quantisation, delay, loss), and the wrench in the wrist."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, UnknownName
from tangere.kernels.counter_noise import CounterNoise
from tangere.kernels.periods import plus
from tangere.types import Array, Command, Plant, State, Truth

# UR10e, standard deviations seen in recordings of a resting arm at 100 Hz (mikhel1984/ext_observer, MIT).
_UR10E_VELOCITY = 0.002  # rad/s
_UR10E_TORQUE = (2.3, 2.0, 0.9, 0.29, 0.43, 0.30)  # Nm per sample, motor current times drive gain
_UR10E_LIMITS = (330.0, 330.0, 150.0, 56.0, 56.0, 56.0)  # Nm, of its joints
_UR10E_PERIOD = 0.01  # s between those samples
_BLOCK = 512  # samples whose noise is drawn at once
# [N] and [rad/s] per 1 kHz sample: of an ideal wrist sensor, and of any UR's speeds
NOISE_WRENCH, NOISE_SPEED = 0.1, _UR10E_VELOCITY
# UR5e, UR's technical specification: range, precision, accuracy [N]; then the same in Nm. The forces are UR's figures;
# of the moments only the range is sure, and no controller here uses them.
_UR5E = (50.0, 3.5, 4.0, 10.0, 0.2, 0.3)
# How a precision of 3.5 N splits into noise and drift is not published. Assumed, not measured: a tenth of it as the
# standard deviation of a reading, and a drift that walks as far within an hour. With ten minutes instead of an hour
# the force error of a drawing is some 15 % larger.
_NOISE_SHARE = 0.1
_DRIFT_TIME = 3600.0  # s
_RATE = 500.0  # Hz, of the controller that reports it
_DELAY = 2e-3  # s: one period of 500 Hz from the sensor to whoever reads


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
    robot: a number gives this arm among many noise of its own, as tangere.rollouts has it (kernels.counter_noise).
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
    robot: int | None = None

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

    @classmethod
    def typical(cls, torque_max: ArrayLike, period: float, seed: int = 0) -> SensorModel:
        """Sensors of an arm of which none were measured: a UR10e's, in proportion to the joints' torque limits (n,).

        Joint by joint for an arm of six joints, else with the UR10e's mean share of the limit, 0.64 %. A joint without
        a limit has no scale for its noise: InvalidValue.
        """
        limits = np.asarray(torque_max, dtype=np.float64)
        if limits.ndim != 1 or not np.all(np.isfinite(limits)):
            raise InvalidValue(
                f"sensors: typical noise is a share of each joint's torque limit, got the limits {limits.tolist()}"
            )
        share = np.array(_UR10E_TORQUE) / _UR10E_LIMITS
        tau = limits * (share if len(limits) == len(share) else share.mean()) * np.sqrt(_UR10E_PERIOD / period)
        return cls(noise_qd=_UR10E_VELOCITY, noise_tau=tau, seed=seed)


def sensor_model(given: Any) -> SensorModel:
    """A model of sensors as it is; None: perfect ones."""
    if not isinstance(given, SensorModel | None):
        raise InvalidValue(f"sensors: a SensorModel or None, got {given!r}")
    return SensorModel() if given is None else given


class Sensors:
    """The sensors of one plant at work: `first` at a reset, then `next` once a period."""

    def __init__(self, model: SensorModel | None, dof: int, period: float) -> None:
        model = sensor_model(model)
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
        self.direct = self._ideal and not model.delay and not model.loss
        self._dof = dof
        self._random: Any = self._generator()
        # which of q, qd, tau, wrench have noise at all: adding nothing costs as much as adding something
        self._noisy = [bool(np.any(part)) for part in noise]
        self._rounds = any(s is not None for s in self._steps)
        self._drawn = 0
        self._late: deque[tuple[Array, Array, Array, Array | None]] = deque()
        self._last: State | None = None

    def first(self, q: Array, qd: Array, tau: Array, wrench: Array | None) -> State:
        """The first sample after a reset, at time 0 with the nominal period; it is never lost."""
        self._random, self._drawn = self._generator(), 0
        reading = self._reading(q, qd, tau, wrench)
        self._late = deque([reading] * self._model.delay)
        self._last = State(0.0, self._period, *reading)
        return self._last

    def next(self, time: float, q: Array, qd: Array, tau: Array, wrench: Array | None) -> State:
        """The sample at `time` [s]: a new State, or the last one again if this one was lost."""
        last = self._last
        if self.direct:  # whoever knows need not ask
            return State(time, self._period, q, qd, tau, wrench)
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

    def _generator(self) -> Any:
        model = self._model
        if model.robot is None:
            return np.random.default_rng(model.seed)
        if model.loss:
            raise InvalidValue("loss: noise numbered by robot and sample knows no lost samples")
        return CounterNoise(model.seed, model.robot, self._dof)

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
            q = plus(q, noise) if noisy[0] else q
            qd = plus(qd, noise, n) if noisy[1] else qd
            tau = plus(tau, noise, 2 * n) if noisy[2] else tau
            wrench = plus(wrench, noise, 3 * n) if wrench is not None and noisy[3] else wrench
        parts = (q, qd, tau, wrench)
        if not self._rounds:
            return parts
        rounded = [_rounded(part, step) for part, step in zip(parts, self._steps, strict=True)]
        return rounded[0], rounded[1], rounded[2], rounded[3]  # type: ignore[return-value]


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
    def ideal(cls, noise: float = NOISE_WRENCH, seed: int = 0) -> WrenchSensor:
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
                _spread(getattr(sensor, name), 6, name, endless=True) for name in ("noise", "bias", "drift", "range")
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
            reading = plus(state.wrench, self._errors[i])
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



def _rounded(values: Array | None, step: Array | None) -> Array | None:
    if values is None or step is None:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(step > 0.0, np.rint(values / step) * step, values))


def _spread(values: ArrayLike, n: int, what: str, *, endless: bool = False) -> Array:
    """(n,) of one number or n, >= 0; endless: infinity too."""
    array = np.asarray(values, dtype=np.float64)
    numbers = ~np.isnan(array) if endless else np.isfinite(array)
    if array.shape not in ((), (n,)) or not np.all(numbers) or np.any(array < 0.0):
        raise InvalidValue(f"{what}: one number or {n}, {'' if endless else 'finite and '}>= 0, got {values!r}")
    return np.broadcast_to(array, (n,)).copy()
