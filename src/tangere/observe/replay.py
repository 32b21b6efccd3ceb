"""The momentum observer over a whole log at once."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.observe.inputs import Friction, initial_residual, per_joint
from tangere.observe.momentum import GAIN
from tangere.robot import Robot
from tangere.types import Array

# rows worked on at a time: a dozen arrays of 2048 x 6 numbers stay in a second-level cache of 1-2 MB
_ROWS = 2048
# samples that the recursion takes together: enough that numpy works and not the interpreter. Twice as many need memory
# that the system takes back after each call: its page faults cost more than all the arithmetic
_STRETCH = 8192


def replay_momentum(
    robot: Robot,
    time: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    gain: ArrayLike = GAIN,
    friction: Friction | None = None,
    *,
    period: ArrayLike | None = None,
    residual: ArrayLike | None = None,
) -> Array:
    """Residuals (N, n) [Nm] that MomentumObserver gives sample by sample, its reset at the first, in one go.

        y_k = (p_k - p_{k-1}) / h_k - tau_k - (beta_{k-1} + beta_k) / 2
        r_k = r_{k-1} + (1 - exp(-K h_k)) (y_k - r_{k-1})

    time (N,) [s], q, qd, tau (N, n); tau[k] is the torque held since sample k - 1, as State.tau. period (N,) [s]: what
    State.period would be; None: the differences of time. gain, friction (with torques for (N, n)), residual: as
    MomentumObserver. Samples are taken as it takes them: a repeated stamp is a lost sample and ignored; where the
    period is not positive or anything is not finite the residual is held.
    Equal to the observer up to rounding (1e-12 Nm); 0.1 to 0.2 us per sample, least for long logs.
    """
    n = robot.dof
    stamps = np.asarray(time, dtype=np.float64)
    if stamps.ndim != 1 or len(stamps) == 0:
        raise InvalidValue(f"time: one number per sample (N,), N > 0, got shape {stamps.shape}")
    q, qd, tau = (_log(value, (len(stamps), n), name) for value, name in ((q, "q"), (qd, "qd"), (tau, "tau")))
    h = np.diff(stamps, prepend=np.nan) if period is None else _log(period, stamps.shape, "period")
    K, start = per_joint(gain, n, "gain", "1/s"), initial_residual(residual, n)
    fresh = np.ones(len(stamps), dtype=np.bool_)
    np.not_equal(stamps[1:], stamps[:-1], out=fresh[1:])
    lost = not fresh.all()
    if lost:
        q, qd, tau, h = q[fresh], qd[fresh], tau[fresh], h[fresh]
    r = np.empty((len(q), n))
    r[0] = start
    y = r[1:]  # in place: filled with the raw balance, then filtered
    used = _balance(y, robot, h, q, qd, tau, friction)
    if used is None:
        _recursion(y, h[1:], K, start)
    else:
        steps = y[used]
        _recursion(steps, h[1:][used], K, start)
        y[:] = np.concatenate((start[None], steps))[np.cumsum(used)]  # the newest step so far, or the start
    return r[np.cumsum(fresh) - 1] if lost else r


def _log(values: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValue(f"{name}: must have shape {shape} as time has {shape[0]} samples, got {array.shape}")
    return array


def _balance(
    y: Array, robot: Robot, h: Array, q: Array, qd: Array, tau: Array, friction: Friction | None
) -> NDArray[np.bool_] | None:
    """Fill in y of samples 1.. (N - 1, n); which of them the observer takes, None for all."""
    finite = [True] * len(q)
    try:
        _fill(y, robot, h, q, qd, tau, friction)
        sound = isfinite(float(y.sum())) and bool(np.all(h[1:] > 0.0))
    except InvalidValue:  # the kernels refuse what is not finite: look for it, and put zeros in its place
        good: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(np.hstack((q, qd))), axis=1)
        finite = good.tolist()
        q, qd = np.where(good[:, None], q, 0.0), np.where(good[:, None], qd, 0.0)
        _fill(y, robot, h, q, qd, tau, friction)
        sound = False
    if sound:
        return None
    whole: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(y), axis=1)
    used, anchored = np.zeros(len(y), dtype=np.bool_), finite[0]
    for k, forward in enumerate(h[1:] > 0.0):  # the observer's own decisions, sample by sample
        if not anchored or not forward:
            anchored = finite[k + 1]
        else:
            anchored = used[k] = finite[k + 1] and bool(whole[k])
    return used


def _fill(y: Array, robot: Robot, h: Array, q: Array, qd: Array, tau: Array, friction: Friction | None) -> None:
    """y, a cacheful of rows at a time."""
    half = np.empty((min(_ROWS, len(y)), y.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # periods of zero: not used afterwards
        for first in range(0, len(y), _ROWS):
            rows = slice(first, min(first + _ROWS, len(y)))
            both = slice(rows.start, rows.stop + 1)
            p, beta, g = robot.momentum_terms(q[both], qd[both])
            beta -= g
            if friction is not None:
                beta -= friction.torque(qd[both])
            part, mean = y[rows], half[: rows.stop - rows.start]
            np.subtract(p[1:], p[:-1], out=part)
            part /= h[rows.start + 1 : rows.stop + 1, None]
            part -= tau[rows.start + 1 : rows.stop + 1]
            np.add(beta[1:], beta[:-1], out=mean)
            mean *= 0.5
            part -= mean


def _recursion(y: Array, h: Array, K: Array, start: Array) -> None:
    """y_k <- r_k = a_k r_{k-1} + (1 - a_k) y_k, a_k = exp(-K h_k), for all k in turn, from r_{-1} = start, in place.

    A stretch of the log is cut into B blocks of L samples that go side by side, one sample at a time: first all of them
    from zero, which tells what each hands to the next, then all from where they begin. 2 L steps on B n numbers instead
    of L B on n, stable for every K h (unlike sums weighted with exp(K t), which overflow).
    """
    N, n = y.shape
    rates = K[:1] if np.all(K == K[0]) else K
    space = np.empty((2, n * min(N, _STRETCH)))  # fresh memory is slow: what can be used again is
    now, first = start, 0
    while first < N:  # what one stretch leaves over, fewer than L samples, is the beginning of the next
        m = min(_STRETCH, N - first)
        L = max(1, round(0.35 * sqrt(m)))  # few calls of numpy, each on enough numbers: fastest between 0.2 and 0.6
        B = m // L
        rows = slice(first, first + B * L)
        values, spans = y[rows].reshape(B, L, n), h[rows].reshape(B, L)
        keep, new = (part[: B * L * n].reshape(L, B, n) for part in space)
        np.negative(np.expm1(-spans[:, :, None] * rates).transpose(1, 0, 2), out=keep)  # 1 - a
        new[:] = values.transpose(1, 0, 2)
        new *= keep
        np.subtract(1.0, keep, out=keep)
        ends = np.zeros((B, n))
        for a, b in zip(keep, new, strict=True):
            ends *= a
            ends += b
        _hand_on(ends, np.exp(-spans.sum(axis=1)[:, None] * K), now)
        before, now = np.concatenate((now[None], ends[:-1])), ends[-1]
        for a, b in zip(keep, new, strict=True):
            a *= before
            b += a
            before = b
        values[:] = new.transpose(1, 0, 2)
        first = rows.stop


def _hand_on(ends: Array, keeps: Array, start: Array) -> None:
    """ends_i <- ends_i + keeps_i ends_{i-1} for all i in turn, from ends_{-1} = start, in place; keeps is used up.

    By doubling: after each pass everything includes twice as many predecessors.
    """
    ends[0] += keeps[0] * start
    reach = 1
    while reach < len(ends):
        ends[reach:] += keeps[reach:] * ends[:-reach]
        keeps[reach:] *= keeps[:-reach].copy()
        reach *= 2
