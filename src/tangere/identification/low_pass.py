"""What smoothing does to a log: the low-pass that people run over recordings, forwards and backwards."""

from __future__ import annotations

import numpy as np

from tangere.types import Array

# Of the Butterworth filter, run once each way. 4 and 5 are what people choose; on the one smoothed log known (a UR10's)
# 4 leaves 2 % less than 5 and 4 % less than 3.
ORDER = 4
_RINGING = 3.0  # periods of the cutoff by which both ends are continued: the response has then died to 0.1 %
# Share of the variance that counts as nothing. Noise of a drive is 1e-4 of its torque, of a UR's speeds 1e-5; what an
# arm does above its filter, smoothed, is less than 1e-9 two octaves on.
_NOTHING = 1e-9
_REGULAR = 0.01  # of the period by which stamps may be off, for a spectrum


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
