"""Detection over a whole log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tangere.observe.detect.detector import Detector
from tangere.types import Array, Event, State

TICK = 1e-9  # s: sums of stamps and delays must not miss a sample by their rounding


def detect(
    detector: Detector,
    time: Array,
    residual: Array,
    q: Array,
    qd: Array,
    tau: Array | None = None,
    target_qd: Array | None = None,
    *,
    delay: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Event, ...]:
    """Events of a log: time (N,), all else (N, n); the detector is reset first. Rows of the residual may be nan.

    tau: nan where it is not known (None: nowhere); it tells a faulty drive from a push. target_qd: State.qd_target.

    delay [s]: how much later than its stamp a row of the residual could have been known; the drive model's, where the
    residual is that of momentum_residual, which looks that far ahead for the torque. time_s is then the stamp of the
    sample that completed it.
    """
    detector.reset()
    total = len(time)
    torque = np.full_like(residual, np.nan) if tau is None else tau
    before = float(time[0]) if total else 0.0
    for k, t in enumerate(time.tolist()):
        target = None if target_qd is None else target_qd[k]
        detector.update(State(t, t - before, q[k], qd[k], torque[k], qd_target=target), residual[k])
        before = t
        if progress is not None and k % 500 == 0:
            progress(k, total)
    if progress is not None:
        progress(total, total)
    if delay == 0.0:
        return detector.events
    late = np.minimum(np.searchsorted(time, [e.time_s + delay - TICK for e in detector.events]), total - 1)
    return tuple(replace(e, time_s=float(time[k])) for e, k in zip(detector.events, late, strict=True))
