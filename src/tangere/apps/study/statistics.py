"""Rates, percentiles and counts with their confidence intervals; numpy only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, exp, inf, isfinite, isnan, lgamma, log, log1p, nan, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its two-sided confidence interval; nan where there is no data, inf where nothing bounds it."""

    value: float
    low: float
    high: float
    count: int = 0  # of what it comes from

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return isfinite(self.value)


def share(value: Estimate, to: str = "-", none: str = "-") -> str:
    """A rate in per cent with its interval, low `to` high; none: where it is not known."""
    if not value.known:
        return none
    return f"{100 * value.value:.1f} ({100 * value.low:.1f}{to}{100 * value.high:.1f})"


def span(
    value: Estimate, factor: float = 1.0, to: str = "-", none: str = "-", form: Callable[[float], str] = "{:.3g}".format
) -> str:
    """A value with its interval; open ends are said in words."""
    if isnan(value.value):
        return none
    middle, low, high = (form(factor * x) if isfinite(x) else "" for x in (value.value, value.low, value.high))
    open_ = f"{low} or more" if low else f"up to {high}" if high else "too few"
    between = f"{low}{to}{high}" if low and high else open_
    return f"{middle or 'never'} ({between})"


def rate(hits: int, trials: int, confidence: float = CONFIDENCE) -> Estimate:
    """Share hits / trials with Wilson's interval:

        (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    Holds its level on average also for shares near 0 and 1 (Wald's does not), and never leaves [0, 1].
    """
    if not 0 <= hits <= trials:
        raise InvalidValue(f"hits: from 0 to trials, got {hits!r} of {trials!r}")
    if trials == 0:
        return Estimate(nan, 0.0, 1.0, 0)
    z = _normal(confidence)
    p, n = hits / trials, trials
    middle = p + z * z / (2 * n)
    half = z * sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    scale = 1.0 + z * z / n
    low = 0.0 if hits == 0 else (middle - half) / scale
    high = 1.0 if hits == trials else (middle + half) / scale
    return Estimate(p, low, high, n)


def per_hour(events: int, hours: float, confidence: float = CONFIDENCE) -> Estimate:
    """Events per hour with the exact interval of a Poisson count: no rate in it makes `events` rarer than alpha / 2.

    With no event in T hours the upper end is 3.69 / T.
    """
    if events < 0 or not hours >= 0.0:
        raise InvalidValue(f"events, hours: not negative, got {events!r}, {hours!r}")
    if hours == 0.0:
        return Estimate(nan, 0.0, inf, 0)
    tail = 0.5 * (1.0 - _checked(confidence))
    low = 0.0 if events == 0 else _root(lambda mu: 1.0 - _poisson(events - 1, mu), tail, events)
    high = _root(lambda mu: -_poisson(events, mu), -tail, events)
    return Estimate(events / hours, low / hours, high / hours, events)


def quantile(values: ArrayLike | Sequence[float], share: float, confidence: float = CONFIDENCE) -> Estimate:
    """The `share` quantile of values (inf allowed: never) with the interval of order statistics, whatever their law.

    Value: the ceil(share n)-th smallest: an observation. Interval [x_(l), x_(u)]: P(B < l) <= alpha / 2 and
    P(B >= u) <= alpha / 2 for B binomial (n, share); -inf or inf where n is too small for such an observation.
    """
    if not 0.0 < share < 1.0:
        raise InvalidValue(f"share: above 0 and below 1, got {share!r}")
    x = np.sort(np.asarray(values, dtype=np.float64))
    if x.ndim != 1 or np.any(np.isnan(x)):
        raise InvalidValue("values: one row of numbers, none of them nan")
    n = len(x)
    if n == 0:
        return Estimate(nan, -inf, inf, 0)
    tail = 0.5 * (1.0 - _checked(confidence))
    below = np.cumsum(_binomial(n, share))  # below[k] = P(B <= k)
    lower = int(np.searchsorted(below, tail, side="right"))  # the largest l with P(B <= l - 1) <= tail
    upper = int(np.searchsorted(below, 1.0 - tail)) + 1  # the smallest u with P(B <= u - 1) >= 1 - tail
    k = max(1, int(np.ceil(share * n - 1e-9)))  # 0.99 * 100 is 99 and no rounding above
    return Estimate(
        float(x[k - 1]), float(x[lower - 1]) if lower >= 1 else -inf, float(x[upper - 1]) if upper <= n else inf, n
    )


def _checked(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise InvalidValue(f"confidence: above 0 and below 1, got {confidence!r}")
    return confidence


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + 0.5 * _checked(confidence))


def _binomial(n: int, p: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Probabilities of 0 .. n hits."""
    if n <= 60:  # exact integers, no cancellation
        return np.array([comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)])
    whole = lgamma(n + 1)
    logs = [whole - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p) for k in range(n + 1)]
    return np.asarray(np.exp(np.array(logs)))


def _poisson(k: int, mu: float) -> float:
    """P(at most k events) where mu are expected."""
    if mu <= 0.0:
        return 1.0
    return min(1.0, sum(exp(i * log(mu) - mu - lgamma(i + 1)) for i in range(k + 1)))


def _root(rising: Callable[[float], float], target: float, events: int) -> float:
    """Where a rising function of the mean reaches `target`."""
    low, high = 0.0, events + 10.0 * sqrt(events + 1.0) + 10.0  # ten standard deviations: beyond every interval
    for _ in range(200):
        middle = 0.5 * (low + high)
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
