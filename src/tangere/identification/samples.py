"""Logs as rows of a linear model: midpoints of the samples, accelerations without noise, means over short windows."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.observe.drive_model import STANDSTILL, WIDTH
from tangere.robots import Robot
from tangere.types import Array

LENGTHS = (0.06, 0.1, 0.2)  # [s] motion up to some 15, 9 and 4.5 Hz
# Of the Butterworth filter, run once each way. 4 and 5 are what people choose; on the one smoothed log known (a UR10's)
# 4 leaves 2 % less than 5 and 4 % less than 3.
ORDER = 4
_RINGING = 3.0  # periods of the cutoff by which both ends are continued: the response has then died to 0.1 %
# Share of the variance that counts as nothing. Noise of a drive is 1e-4 of its torque, of a UR's speeds 1e-5; what an
# arm does above its filter, smoothed, is less than 1e-9 two octaves on.
_NOTHING = 1e-9
_REGULAR = 0.01  # of the period by which stamps may be off, for a spectrum


def accelerations(time: Array, qd: Array, index: NDArray[np.int64], lengths: tuple[float, ...] = LENGTHS) -> Array:
    """Acceleration (K, n) [rad/s2] in the middle between samples index - 1 and index, without most of its noise.

        difference quotient ~ sum_L c_L slope_L        least squares, joint by joint; the right side is the answer

    The difference quotient of two neighbours has the noise of the velocity over their distance: 0.2 rad/s2 at 100 Hz
    on a UR, as much as the motion itself. In a least-squares fit noise in a column pulls its factor towards zero by
    1 / (1 + noise / signal): rotor inertias come out too small, or none. Slopes have a tenth of the noise, but round
    off what is fast, and would make rotor inertias too large. Their best combination does neither: this is the first
    stage of two-stage least squares with the slopes as instruments (consistent, as the noise of a slope over k samples
    has only 12 / k^3 of the difference quotient's variance in common with it).

    time (N,) rising, qd (N, n), index (K,) of the later sample of each pair.
    """
    raw = (qd[index] - qd[index - 1]) / (time[index] - time[index - 1])[:, None]
    smooth = np.stack([slopes(time, qd, index, length) for length in lengths], axis=-1)  # (K, n, lengths)
    out = np.empty_like(raw)
    for j in range(raw.shape[1]):
        A = smooth[:, j]
        c, *_ = np.linalg.lstsq(A, raw[:, j], rcond=1e-6)  # slopes that are alike (a log at 25 Hz) share the weight
        out[:, j] = A @ c
    return out


def slopes(time: Array, qd: Array, index: NDArray[np.int64], length: float) -> Array:
    """Slopes (K, n) of the velocity [rad/s2] over `length` [s] around the middle of each pair.

        sum (t_i - t_mean) (qd_i - qd_mean) / sum (t_i - t_mean)^2        |t_i - t| <= length / 2

    They do not reach over what `index` leaves out (gaps, bad samples), and shrink symmetrically towards both ends of
    a stretch, to the difference quotient.
    """
    out = np.empty((len(index), qd.shape[1]))
    if len(index) == 0:
        return out
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    for part in np.split(np.arange(len(index)), breaks):
        first, last = int(index[part[0]]) - 1, int(index[part[-1]])
        t = time[first : last + 1] - time[first]
        v = qd[first : last + 1] - qd[first]
        middle = 0.5 * (t[:-1] + t[1:])
        half = np.minimum(0.5 * length, np.minimum(middle, t[-1] - middle) + 1e-9)
        half = np.maximum(half, 0.5 * np.diff(t) + 1e-9)  # at least the two neighbours
        low = np.searchsorted(t, middle - half)
        high = np.searchsorted(t, middle + half, side="right")
        count = (high - low).astype(np.float64)
        mean = _sums(t, low, high) / count
        square = _sums(t**2, low, high) - count * mean**2
        product = _sums(t[:, None] * v, low, high) - mean[:, None] * _sums(v, low, high)
        out[part] = product / square[:, None]
    return out


def _sums(values: Array, low: NDArray[np.int64], high: NDArray[np.int64]) -> Array:
    """Sum of values[low:high] for every pair of these."""
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    return np.asarray(total[high] - total[low])


def smoothed(values: Array, period: float, cutoff: float) -> Array:
    """values (N, ...), one every `period` [s], through a Butterworth low-pass of ORDER forwards and backwards.

        |H(f)|^2 = 1 / (1 + (f / cutoff)^(2 ORDER))        no phase; cutoff [Hz]: where half is left of an amplitude

    Both ends are continued point-symmetrically, as such filters do.
    """
    pad = max(1, round(_RINGING / (cutoff * period)))
    wide = np.pad(values, [(pad, pad)] + [(0, 0)] * (values.ndim - 1), mode="reflect", reflect_type="odd")
    f = np.fft.rfftfreq(len(wide), period)
    response = 1.0 / (1.0 + (f / cutoff) ** (2 * ORDER))
    spectrum = np.fft.rfft(wide, axis=0) * response.reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(np.fft.irfft(spectrum, len(wide), axis=0)[pad : pad + len(values)])


def silent_above(time: Array, values: Array) -> float:
    """The frequency [Hz] above which nothing (_NOTHING) is left of any column of values (N, n).

    Half the rate where stamps are irregular, a value is bad or nothing changes: what is left then is not known; inf
    where there is no rate.
    """
    h = np.diff(time)
    period = float(np.median(h)) if len(h) else 0.0
    if not period > 0.0:
        return np.inf
    if not (np.all(np.abs(h - period) <= _REGULAR * period) and np.all(np.isfinite(values))):
        return 0.5 / period
    x = values - np.linspace(values[0], values[-1], len(values))  # no step from the end back to the start
    window = np.sin(np.pi * (np.arange(len(x)) + 0.5) / len(x)) ** 4  # its own spectrum falls as f^-10 in power
    power = np.abs(np.fft.rfft(x * window[:, None], axis=0)) ** 2
    above = np.cumsum(power[::-1], axis=0)[::-1]  # from each frequency up
    left = np.flatnonzero(np.any(above > _NOTHING * above[0], axis=1))
    return float(np.fft.rfftfreq(len(x), period)[left[-1] if len(left) else -1])


WINDOW = 0.02  # [s] about the lag of the momentum observer at its default gain: what identification and detection see
GAP = 3.0  # median periods: longer, and the difference quotient of two samples is no acceleration any more
ROWS = 2000  # samples looked at where one number of a joint is wanted, evenly taken: a slope needs no more
LEAST_ROWS = 50  # of a joint in motion, for such a number
REGRESSED = 1000  # windows whose regressors are in memory at once: 60 MB of a log at 1 kHz
ROUNDING = 1e-13  # of a regressor, whose entries are of order 1: what is left of terms that cancel exactly on paper
LEAST_WINDOWS = 50  # one second of motion in all: less cannot tell six numbers of a joint's friction apart
TERMS = ("coulomb", "viscous", "offset", "rotor_inertia", "quadratic", "load")
_STEPPED = [TERMS.index(name) for name in ("coulomb", "quadratic", "load")]  # not linear in the motion, nor smooth
_SILENT = 6.0  # times the cutoff: above, a smoothed log's speeds hold nothing; found: 1.6
# [rad/s] below which a sample counts as rest: ten times the noise of a UR's velocity (0.002 rad/s). While moving, the
# controller's target current contains its friction feed-forward and the target moment does not.
REST = 0.02
# Samples in a row at rest, of which the tenth at either end is left out: a turning point or a start is shorter at any
# rate, and there the target current already holds the friction of the motion to come.
LEAST_SAMPLES = 50


@dataclass(frozen=True)
class Motion:
    """One log: stamps (N,) [s], q, qd (N, n) and the joint torque of the drives tau (N, n) [Nm], gravity included."""

    time: Array
    q: Array
    qd: Array
    tau: Array
    name: str = ""
    digest: str = ""  # sha256 of the file that it comes from
    free: NDArray[np.bool_] | None = None  # (N,) which samples count: the others look touched; None: all

    def __post_init__(self) -> None:
        for entry in ("time", "q", "qd", "tau"):
            object.__setattr__(self, entry, np.asarray(getattr(self, entry), dtype=np.float64))
        if self.q.ndim != 2 or not (self.q.shape == self.qd.shape == self.tau.shape):
            raise InvalidValue(f"q, qd, tau: one shape (N, n), got {self.q.shape}, {self.qd.shape}, {self.tau.shape}")
        if self.time.shape != (len(self.q),):
            raise InvalidValue(f"time: shape ({len(self.q)},) to match q, got {self.time.shape}")
        if self.free is not None and self.free.shape != self.time.shape:
            raise InvalidValue(f"free: shape ({len(self.q)},) to match q, got {self.free.shape}")

    def rows(self, which: slice | NDArray[np.bool_], name: str) -> Motion:
        """Some of its samples, under another name."""
        free = None if self.free is None else self.free[which]
        return Motion(self.time[which], self.q[which], self.qd[which], self.tau[which], name, self.digest, free)


def was_smoothed(motion: Motion, cutoff: float) -> bool:
    """Whether a log went through a low-pass of this cutoff [Hz] (0: none), as its speeds show.

    Speeds, as the torque may have had contacts added since.
    """
    whole = cutoff > 0.0 and bool(np.isfinite(motion.q + motion.tau).all())
    return whole and silent_above(motion.time, motion.qd) < _SILENT * cutoff


@dataclass(frozen=True)
class Midpoints:
    """Between each two usable neighbours of a log: what the momentum residual is made of."""

    h: Array  # (K,) [s]
    q: Array  # (K, n)
    qd: Array
    qdd: Array  # difference quotient of the velocity
    tau: Array
    index: NDArray[np.int64]  # (K,) of the later sample


def midpoints(motion: Motion, delay: float = 0.0) -> Midpoints:
    """Midpoints of neighbours with a stamp that rises by at most GAP median periods, finite values, and free both.

    delay [s]: the torque is taken that much later, where the log has it (the last samples keep the last).
    """
    h = np.diff(motion.time)
    finite = np.asarray(np.isfinite(motion.q + motion.qd + motion.tau).all(axis=1))
    good = finite if motion.free is None else finite & motion.free
    rising = h[np.isfinite(h) & (h > 0.0)]
    if rising.size == 0:
        raise InvalidValue(f"{motion.name or 'log'}: no two samples with rising stamps among {len(motion.time)}")
    use = good[1:] & good[:-1] & (h > 0.0) & (h <= GAP * float(np.median(rising)))
    k = np.flatnonzero(use)
    q, qd, tau = motion.q, motion.qd, motion.tau
    if delay > 0.0:
        usable = finite & np.isfinite(motion.time)
        usable &= motion.time >= np.maximum.accumulate(np.where(usable, motion.time, -np.inf))  # np.interp needs order
        late, have = motion.time + delay, motion.time[usable]
        tau = np.stack([np.interp(late, have, column[usable]) for column in tau.T], axis=1)
    return Midpoints(
        h[k], 0.5 * (q[k] + q[k + 1]), 0.5 * (qd[k] + qd[k + 1]), (qd[k + 1] - qd[k]) / h[k, None],
        0.5 * (tau[k] + tau[k + 1]), k + 1,
    )  # fmt: skip


def thinned(*parts: Midpoints) -> Midpoints:
    """Some ROWS of all midpoints, evenly taken; `index` stays that of each log."""
    names = [entry.name for entry in fields(Midpoints)]
    whole = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    use = slice(None, None, max(1, len(whole[0]) // ROWS))
    return Midpoints(*(values[use] for values in whole))


def friction_terms(qd: Array, qdd: Array, gravity_torque: Array, width: Array | float = WIDTH) -> Array:
    """Columns (K, n, 6) of what a drive adds, by TERMS; its ripple is looked for in what these leave (ripples)."""
    sign = np.tanh(qd / width)
    columns = [sign, qd, np.ones_like(qd), qdd, qd * np.abs(qd), sign * np.abs(gravity_torque)]
    return np.stack(columns, axis=-1)


def simple_terms(qd: Array, qdd: Array) -> Array:
    """Columns (K, 4) of one joint in motion (K,): Coulomb and viscous friction, rotor inertia, offset."""
    return np.column_stack([np.tanh(qd / WIDTH), qd, qdd, np.ones(len(qd))])


@dataclass(frozen=True)
class Windows:
    """Means over windows: Y pi + F f = tau row by row, joint by joint, where the joint moves."""

    Y: Array  # (W, n, 10 n)
    F: Array  # (W, n, terms)
    tau: Array  # (W, n)
    moving: NDArray[np.bool_]  # (W, n): above the standstill speed all through the window, one direction
    standing: NDArray[np.bool_]  # (W, n): below it all through
    log: NDArray[np.int64]  # (W,) which log
    period: float  # [s] length of a window
    mean_load: Array  # (n,) [Nm], mean |g|


def grouped(m: Midpoints) -> tuple[NDArray[np.int64], Array]:
    """Rows (W, size) of the midpoints in each window, and their weights by duration (W, size)."""
    size = max(1, round(WINDOW / float(np.median(m.h))))
    start = np.arange(0, len(m.h) - size + 1, size)
    start = start[m.index[start + size - 1] - m.index[start] == size - 1]  # none with a gap inside
    rows = start[:, None] + np.arange(size)
    return rows, m.h[rows] / m.h[rows].sum(axis=1, keepdims=True)


def window_torques(motions: list[Motion], delay: float) -> Array:
    """Torque (W, n) of the same windows as windows() makes, taken `delay` [s] later."""
    parts = []
    for motion in motions:
        m = midpoints(motion, delay)
        rows, weight = grouped(m)
        parts.append(np.einsum("ws,wsn->wn", weight, m.tau[rows]))
    return np.concatenate(parts)


def windows(
    robot: Robot,
    motions: list[Motion],
    *,
    loaded: Robot | None = None,
    width: Array | float = WIDTH,
    delay: float = 0.0,
    lengths: tuple[float, ...] = LENGTHS,
    smoothing: float = 0.0,
) -> Windows:
    """Rows of all logs. Windows do not reach over gaps or from one log into another.

    loaded: whose gravity torque is the load of the load-dependent friction, if not that of `robot`. width: of the
    Coulomb term, (n,) or one for all [rad/s]. delay: of the reported torque [s]. lengths [s]: of the slopes that
    accelerations are made of, () for difference quotients. smoothing [Hz]: the low-pass that logs went through, and
    friction with them; 0: none.
    """
    parts: list[tuple[Array, ...]] = []
    logs: list[int] = []
    periods: list[float] = []
    for number, motion in enumerate(motions):
        if motion.q.shape[1] != robot.dof:
            raise InvalidValue(f"{motion.name or 'log'}: {motion.q.shape[1]} joints, {robot.name} has {robot.dof}")
        m = midpoints(motion, delay)
        rows, weight = grouped(m)
        size = rows.shape[1]
        g = (loaded or robot).gravity_torque(m.q)
        qdd = accelerations(motion.time, motion.qd, m.index, lengths) if lengths else m.qdd
        steps = None
        if was_smoothed(motion, smoothing):
            steps = friction_terms(m.qd, qdd, g, width)[..., _STEPPED]
            steps = smoothed(steps, float(np.median(m.h)), smoothing)
        blocks = []
        for first in range(0, max(len(rows), 1), REGRESSED):  # a regressor takes 3 kB for each sample
            use, own = rows[first : first + REGRESSED], weight[first : first + REGRESSED]
            here = (m.q[use], m.qd[use], qdd[use])
            friction = friction_terms(*here[1:], g[use], width)
            if steps is not None:
                friction[..., _STEPPED] = steps[use]
            Y = robot.regressor(*here)
            Y[np.abs(Y) < ROUNDING] = 0.0  # else what a joint does not feel counts as felt, scaled up
            columns = (Y, friction, m.tau[use], np.abs(g[use]))
            blocks.append(tuple(np.einsum("ws,ws...->w...", own, c) for c in columns))
        means = tuple(np.concatenate(column) for column in zip(*blocks, strict=True))
        speed = m.qd[rows]
        fast = (np.abs(speed) > STANDSTILL).all(axis=1) & (np.abs(np.sign(speed).sum(axis=1)) == size)
        slow = np.asarray((np.abs(speed) <= STANDSTILL).all(axis=1))
        parts.append((*means, np.asarray(fast, dtype=np.float64), slow.astype(np.float64)))
        logs += [number] * len(rows)
        periods.append(size * float(np.median(m.h)))
    Y, F, tau, load, fast, slow = (np.concatenate(part) for part in zip(*parts, strict=True))
    if len(tau) < LEAST_WINDOWS:
        raise InvalidValue(
            f"too short: {len(tau) * WINDOW:.2g} s of usable samples, {LEAST_WINDOWS * WINDOW:g} s needed at least"
        )
    return Windows(
        Y, F, tau, fast.astype(bool), slow.astype(bool), np.array(logs), float(np.median(periods)), load.mean(axis=0)
    )


def resting(qd: Array) -> NDArray[np.bool_]:
    """Which samples (N,) of velocities (N, n) are in the inner part of a rest of all joints that lasts."""
    finite = np.asarray(np.isfinite(qd).all(axis=1))
    still = finite & (np.abs(np.where(finite[:, None], qd, 0.0)).max(axis=1) < REST)
    out = np.zeros(len(still), dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], still.astype(np.int8), [0]))))
    for start, end in zip(edges[0::2], edges[1::2], strict=True):
        if end - start >= LEAST_SAMPLES:
            margin = (end - start) // 10
            out[start + margin : end - margin] = True
    return out
