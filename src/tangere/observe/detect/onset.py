"""When an event began, estimated backwards from the sample that raised it."""

from __future__ import annotations

import numpy as np

from tangere.types import Array

WINDOW = 1.0  # s before the alarm that are searched: a hand pushes a standing arm that slowly


def onset(time: Array, raw: Array, spread: Array) -> float:
    """Stamp [s] of the last sample before the residual left its noise.

        p_i = (raw_i / spread) . d,    d: mean direction of the last samples
        gain(k) = (sum_{i >= k} p_i b_i)^2 / sum b_i^2,   b = 1 (a step from k on) or t_i - t_{k-1} (a ramp)

    time (m,), raw (m, n) [Nm]: the observer's input (Signals.raw) less the mean before, up to and with the sample that
    raised the event: without the observer's lag, so that nothing has to be subtracted for it. spread (n,) [Nm] of it.
    The k with the largest gain is the most likely one for white noise. raw_k is what acted between k - 1 and k: the
    stamp of k - 1 is the answer.
    """
    m = len(time)
    if m < 3:
        return float(time[0])
    z = raw / spread
    last = z[-min(m, 3) :].mean(axis=0)  # three: at 100 Hz a contact may be that young, and one sample is noise
    size = float(np.linalg.norm(last))
    if size == 0.0:
        return float(time[-1])
    p = z @ (last / size)
    p1, t1 = p[1:], time[1:] - time[-1]
    # suffix sums over i >= k of 1, t, t^2, p, p t
    ones = np.arange(len(p1), 0, -1.0)
    st, stt, sp, spt = (np.cumsum(x[::-1])[::-1] for x in (t1, t1 * t1, p1, p1 * t1))
    start = time[:-1] - time[-1]
    step = sp * np.maximum(sp, 0.0) / ones
    moment = spt - start * sp
    ramp = moment * np.maximum(moment, 0.0) / np.maximum(stt - 2.0 * start * st + start**2 * ones, 1e-12)
    best = int(np.argmax(step)) if step.max() >= ramp.max() else int(np.argmax(ramp))
    return float(time[best])
