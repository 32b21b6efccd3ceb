"""A recording as a plant: it answers what was measured, whatever it is told."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.plants.lost import PlantLost
from tangere.types import Array, Command, State


class ReplayPlant:
    """Gives the samples of a recording one by one, with their own stamps and irregular periods.

    time (N,) [s] strictly rising (any origin: State.time counts from the first), q, qd, tau (N, n), wrench (N, 6) or
    None. tau row k is the torque held since sample k-1, as in State. A write is ignored and moves on to the next
    sample; read after the last sample was left behind raises PlantLost. `period` is the median one.
    adds: what is not in the recorded torque because the hardware adds it by itself ("gravity", "friction").
    """

    def __init__(
        self,
        time: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        wrench: ArrayLike | None = None,
        *,
        adds: frozenset[str] = frozenset(),
    ) -> None:
        stamps = np.array(time, dtype=np.float64)
        if stamps.ndim != 1 or stamps.size < 2 or not np.all(np.isfinite(stamps)):
            raise InvalidValue(f"time: at least two finite stamps, got shape {stamps.shape}")
        periods = np.diff(stamps)
        if np.any(periods <= 0.0):
            k = int(np.argmax(periods <= 0.0))
            raise InvalidValue(f"time: must rise from sample to sample, got {stamps[k]!r} then {stamps[k + 1]!r}")
        self._time = stamps - stamps[0]
        self._q = _rows(q, "q", stamps.size, None)
        self.dof = self._q.shape[1]
        self._qd, self._tau = (_rows(c, what, stamps.size, self.dof) for c, what in ((qd, "qd"), (tau, "tau")))
        self._wrench = None if wrench is None else _rows(wrench, "wrench", stamps.size, 6)
        self.period = float(np.median(periods))
        self._periods = np.concatenate(([self.period], periods))
        self.adds = adds
        self._index = 0

    @classmethod
    def of(cls, columns: Mapping[str, Array], *, adds: frozenset[str] = frozenset()) -> ReplayPlant:
        """From columns by name: "time", "q", "qd", "tau" and, where there is one, "wrench"."""
        missing = [name for name in ("time", "q", "qd", "tau") if name not in columns]
        if missing:
            raise InvalidValue(f"a recording needs time, q, qd and tau; missing: {', '.join(missing)}")
        wrench = columns.get("wrench")
        return cls(columns["time"], columns["q"], columns["qd"], columns["tau"], wrench, adds=adds)

    @property
    def duration(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self._time[-1])

    @property
    def ended(self) -> bool:
        """Whether the last sample was left behind."""
        return self._index >= len(self._time)

    def reset(self, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> State:
        """Back to the first sample; a recording cannot be placed, q and qd are ignored."""
        self._index = 0
        return self.read()

    def read(self) -> State:
        """The sample whose turn it is."""
        k = self._index
        if k >= self._time.size:
            raise PlantLost(f"the recording ended at {self.duration:.6g} s")
        wrench = None if self._wrench is None else self._wrench[k]
        return State(float(self._time[k]), float(self._periods[k]), self._q[k], self._qd[k], self._tau[k], wrench)

    def write(self, command: Command) -> None:
        """Move on to the next sample; the past does not listen."""
        self._index += 1

    def close(self) -> None:
        """Nothing to release."""


def _rows(values: ArrayLike, what: str, count: int, width: int | None) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != count or (width is not None and array.shape[1] != width):
        raise InvalidValue(f"{what}: shape ({count}, {width or 'n'}) to match the stamps, got {array.shape}")
    array.flags.writeable = False  # NaN passes: a sensor that gave none is part of a recording
    return array
