"""Constant thresholds with hysteresis: the residual itself is watched, without filters and from the first sample on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.inputs import per_joint
from tangere.types import Array

# a touch ends below half of what began it: a residual that lingers at the threshold (noise, or its slow decay) then
# gives one event and not one per crossing
OFF_RATIO = 0.5
# [s] half a nanosecond: sums of periods such as 0.1 + 0.2 must not miss a duration by their rounding
ROUNDING = 5e-10


@dataclass(frozen=True, eq=False)
class Hysteresis:
    """A touch begins when |r_j| > on_j for some joint and ends when |r_j| < off_j for all of them.

    on, off (n,) [Nm]. minimum_duration [s]: the residual must stay above for that long before a touch is raised,
    release_duration [s]: below before it is ended; 0 raises with the first sample above.
    """

    on: Array
    off: Array
    minimum_duration: float = 0.0
    release_duration: float = 0.0

    def __post_init__(self) -> None:
        n = np.size(self.on)
        for name in ("on", "off"):
            value = per_joint(getattr(self, name), n, name, "Nm")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        if np.any(self.off > self.on):
            raise InvalidValue(f"off: at most on ({self.on.tolist()}) for every joint, got {self.off.tolist()}")
        for name in ("minimum_duration", "release_duration"):
            seconds = getattr(self, name)
            if not (np.isfinite(seconds) and seconds >= 0.0):
                raise InvalidValue(f"{name}: must be finite and >= 0 [s], got {seconds!r}")
            object.__setattr__(self, name, float(seconds))

    @classmethod
    def of(cls, on: ArrayLike, off: ArrayLike | None, n: int, minimum: float, release: float) -> Hysteresis:
        """on, off [Nm]: one or one per joint; off = OFF_RATIO on where it is not given."""
        begin = per_joint(on, n, "on", "Nm")
        return cls(begin, begin * OFF_RATIO if off is None else per_joint(off, n, "off", "Nm"), minimum, release)


class Crossing:
    """Follows a residual against a Hysteresis, one sample at a time."""

    __slots__ = ("_above", "_inverse", "_magnitude", "limits", "score", "since", "touching")

    def __init__(self, limits: Hysteresis) -> None:
        self.limits = limits
        self._inverse = 1.0 / limits.on
        self._magnitude = np.zeros(len(limits.on))
        self._above = np.zeros(len(limits.on), dtype=np.bool_)
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self.since: float | None = None  # [s] when the residual crossed the level that it is watched against
        self.touching = False
        self.score = 0.0  # the largest |r_j| / on_j of the newest sample

    def update(self, time: float, residual: Array) -> bool:
        """Whether a touch begins or ends with this sample; a residual that is not finite changes nothing.

        time [s] of the sample, residual (n,) [Nm]. `since` is then the stamp of the first sample beyond.
        """
        limits, magnitude = self.limits, self._magnitude
        np.abs(residual, out=magnitude)
        np.greater(magnitude, limits.off if self.touching else limits.on, out=self._above)
        self.score = float(np.maximum.reduce(magnitude * self._inverse))
        crossed = self._above.any() != self.touching
        if not crossed or not np.isfinite(residual).all():
            self.since = None if not crossed else self.since
            return False
        if self.since is None:
            self.since = time
        if time - self.since + ROUNDING < (limits.release_duration if self.touching else limits.minimum_duration):
            return False
        self.touching = not self.touching
        return True

    @property
    def joint(self) -> int:
        """Counted from 1: the largest residual against its threshold at the newest sample."""
        return int(np.argmax(self._magnitude / self.limits.on)) + 1
