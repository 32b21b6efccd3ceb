"""Filters over whole logs: slopes for accelerations, and the low-pass that people run over recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
