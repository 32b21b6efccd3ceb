"""When an event began, searched backwards from the sample that raised it: one step of the search is a law."""

from __future__ import annotations

from typing import Any

from tangere.codegen.functions import maximum, where

Number = Any  # float or codegen.trace.Symbol
Row = list[Any]

LEAST = 1e-12  # [s2] keeps the newest sample, whose ramp has no length yet, from a division by nothing


def parameters_size(n: int) -> int:
    """Numbers that the search is told once: weights (n,), what they make of the mean before, and the newest stamp."""
    return n + 2


def start(n: int) -> list[float]:
    """The state before the newest sample: count, sums of t, t^2, p and p t, then gain and count of step and ramp."""
    return [0.0] * 9


def output_size(n: int) -> int:
    """Numbers of an answer beside the state."""
    return 1


def step(n: int, P: Row, raw: Row, stamps: Row, state: Row) -> list[Number]:
    """One sample further back: the sums over all samples i >= k, and where the gain was largest so far.

        p_i = raw_i . w - c,    w: the direction of the last samples in units of their noise, c: of the mean before
        gain(k) = (sum_{i >= k} p_i b_i)^2 / sum b_i^2,   b = 1 (a step from k on) or t_i - t_{k-1} (a ramp)

    raw (n,) [Nm] of sample k; stamps: t_k and t_{k-1} [s]. Output: how many samples
    back the best k - 1 lies, step or ramp, whichever has the larger gain. Of equal gains the earlier one counts.
    """
    t, before = stamps[0] - P[n + 1], stamps[1] - P[n + 1]
    count, st, stt, sp, spt, best_step, at_step, best_ramp, at_ramp = state
    p = sum((w * y for w, y in zip(P[:n], raw, strict=True)), 0.0) - P[n]
    count, st, stt, sp, spt = count + 1.0, st + t, stt + t * t, sp + p, spt + p * t
    moment = spt - before * sp
    length = maximum(stt - 2.0 * before * st + before * before * count, LEAST)
    gains = (sp * maximum(sp, 0.0) / count, moment * maximum(moment, 0.0) / length)
    at_step, at_ramp = (
        where(best <= gain, count, at)
        for gain, best, at in zip(gains, (best_step, best_ramp), (at_step, at_ramp), strict=True)
    )
    best_step, best_ramp = maximum(best_step, gains[0]), maximum(best_ramp, gains[1])
    found = where(best_step < best_ramp, at_ramp, at_step)
    return [count, st, stt, sp, spt, best_step, at_step, best_ramp, at_ramp, found]
