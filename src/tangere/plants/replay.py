"""A recording as a source: it tells what was measured, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.types import Array, State


class ReplaySource:
    """Gives the samples of a recording one by one, with their own stamps and irregular periods.

    time (N,) [s] strictly rising (any origin: State.time counts from the first), q, qd, tau (N, n), wrench (N, 6) and
    qd_target (N, n) or None. tau row k is the torque held since sample k-1, as in State: gravity included. After the
    last sample `read` gives None. `period` is the median one. A controller may answer: what it says is logged beside
    the recorded torque, and moves nothing.
    """

    def __init__(
        self,
        time: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        wrench: ArrayLike | None = None,
        qd_target: ArrayLike | None = None,
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
        self._target = None if qd_target is None else _rows(qd_target, "qd_target", stamps.size, self.dof)
        self.period = float(np.median(periods))
        self._periods = np.concatenate(([self.period], periods))
        self._next = 0

    @classmethod
    def of(cls, columns: Mapping[str, Array]) -> ReplaySource:
        """From columns by name: "time", "q", "qd", "tau" and, where there are, "wrench" and "qd_target"."""
        missing = [name for name in ("time", "q", "qd", "tau") if name not in columns]
        if missing:
            raise InvalidValue(f"a recording needs time, q, qd and tau; missing: {', '.join(missing)}")
        needed = (columns["time"], columns["q"], columns["qd"], columns["tau"])
        return cls(*needed, columns.get("wrench"), columns.get("qd_target"))

    @property
    def duration(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self._time[-1])

    def start(self) -> State:
        """The first sample."""
        self._next = 0
        first = self.read()
        assert first is not None  # at least two stamps
        return first

    def read(self) -> State | None:
        """The next sample; None after the last."""
        k = self._next
        if k >= self._time.size:
            return None
        self._next += 1
        wrench = None if self._wrench is None else self._wrench[k]
        target = None if self._target is None else self._target[k]
        return State(
            float(self._time[k]), float(self._periods[k]), self._q[k], self._qd[k], self._tau[k], wrench,
            qd_target=target,
        )  # fmt: skip

    def close(self) -> None:
        """Nothing to release."""


def _rows(values: ArrayLike, what: str, count: int, width: int | None) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != count or (width is not None and array.shape[1] != width):
        raise InvalidValue(f"{what}: shape ({count}, {width or 'n'}) to match the stamps, got {array.shape}")
    array.flags.writeable = False  # NaN passes: a sensor that gave none is part of a recording
    return array
