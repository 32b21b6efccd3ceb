"""Detection of a touch: a threshold per joint on a residual, with hysteresis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.inputs import per_joint
from tangere.types import Array, Contact

# a contact ends below half of what began it: a residual that lingers at the threshold (noise, or its slow decay)
# then gives one event and not one per crossing
OFF_RATIO = 0.5
# thresholds stand this much above the largest residual of a quiet run: the maximum over another such run is rarely
# more than 1.3 times the first, and the rest is left to the temperature of the gears
QUIET_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class Detection:
    """One touch from onset to end."""

    time: float  # s, stamp of the sample that raised it
    joint: int  # counted from 1: the joint with the largest residual against its threshold
    residual: Array  # (n,) Nm at that sample
    end: float | None = None  # s, stamp of the sample that ended it; None while it lasts

    @property
    def contact(self) -> Contact:
        """The onset as reactions are given it."""
        return Contact(self.time, self.joint, self.residual)


class ThresholdDetector:
    """A touch begins when |r_j| > on_j for some joint and ends when |r_j| < off_j for all of them.

    on, off: Nm, one or one per joint; off = on / 2 where not given. minimum_duration [s]: the residual must stay above
    for that long before a touch is raised, release_duration [s]: below before it is ended; 0 raises with the first
    sample above. Not a safety function.
    """

    def __init__(
        self,
        on: ArrayLike,
        off: ArrayLike | None = None,
        *,
        dof: int = 6,
        minimum_duration: float = 0.0,
        release_duration: float = 0.0,
    ) -> None:
        self.on = per_joint(on, dof, "on", "Nm")
        self.off = self.on * OFF_RATIO if off is None else per_joint(off, dof, "off", "Nm")
        if np.any(self.off > self.on):
            raise InvalidValue(f"off: at most on ({self.on.tolist()}) for every joint, got {self.off.tolist()}")
        for name, value in (("minimum_duration", minimum_duration), ("release_duration", release_duration)):
            if not (np.isfinite(value) and value >= 0.0):
                raise InvalidValue(f"{name}: must be finite and >= 0 [s], got {value!r}")
        self.minimum_duration = float(minimum_duration)
        self.release_duration = float(release_duration)
        self.on.flags.writeable = self.off.flags.writeable = False
        self._magnitude = np.zeros(dof)
        self._above = np.zeros(dof, dtype=np.bool_)
        self.reset()

    def reset(self) -> None:
        """Forget every touch."""
        self._detections: list[Detection] = []
        self._since: float | None = None  # when the residual crossed the level it is watched against
        self.touching = False

    @property
    def detections(self) -> tuple[Detection, ...]:
        """Every touch so far, in order; the last one has end = None while it lasts."""
        return tuple(self._detections)

    def update(self, time: float, residual: Array) -> Contact | None:
        """The onset of a touch at the sample that raises it, else None. A residual that is not finite changes nothing.

        time [s] of the sample, residual (n,) [Nm].
        """
        np.abs(residual, out=self._magnitude)
        np.greater(self._magnitude, self.off if self.touching else self.on, out=self._above)
        crossed = self._above.any() != self.touching
        if not crossed or not np.isfinite(residual).all():
            self._since = None if not crossed else self._since
            return None
        if self._since is None:
            self._since = time
        # half a nanosecond: sums of periods such as 0.1 + 0.2 must not miss a duration by their rounding
        if time - self._since + 5e-10 < (self.release_duration if self.touching else self.minimum_duration):
            return None
        self._since = None
        self.touching = not self.touching
        if not self.touching:
            self._detections[-1] = replace(self._detections[-1], end=time)
            return None
        joint = int(np.argmax(self._magnitude / self.on)) + 1
        self._detections.append(Detection(time, joint, residual.copy()))
        return self._detections[-1].contact


def thresholds_from_quiet(residuals: Array, margin: float = QUIET_MARGIN, floor: float = 0.1) -> Array:
    """Thresholds (n,) [Nm] from residuals (N, n) of a motion that nobody touched: max(margin * max|r|, floor).

    The floor keeps a perfect simulation (1e-5 Nm) from thresholds that numerical noise crosses.
    """
    residuals = np.asarray(residuals, dtype=np.float64)
    if residuals.ndim != 2 or len(residuals) == 0 or not np.all(np.isfinite(residuals)):
        raise InvalidValue(f"residuals: a finite (N, n) array with N > 0, got shape {residuals.shape}")
    return np.asarray(np.maximum(margin * np.max(np.abs(residuals), axis=0), floor))
