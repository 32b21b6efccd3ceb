"""Intervals: against scipy, against brute force, and at their ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tangere.apps.study.statistics import per_hour, quantile, rate
from tangere.errors import InvalidValue

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize(("hits", "trials"), [(0, 1), (1, 1), (0, 40), (40, 40), (3, 17), (970, 1000), (1, 5000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_a_rate_has_wilsons_interval(hits, trials, confidence):
    got = rate(hits, trials, confidence)
    want = stats.binomtest(hits, trials).proportion_ci(confidence, method="wilson")
    assert got.value == hits / trials
    assert got.count == trials
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=1e-12)


@pytest.mark.parametrize(("events", "hours"), [(0, 0.25), (1, 2.0), (7, 1.0), (400, 3.0)])
def test_a_count_has_the_exact_poisson_interval(events, hours):
    got = per_hour(events, hours)
    low = stats.chi2.ppf(0.025, 2 * events) / 2.0 if events else 0.0
    high = stats.chi2.ppf(0.975, 2 * events + 2) / 2.0
    assert got.value == events / hours
    # sums of lgamma with 400 terms are good to 1e-11
    assert (got.low, got.high) == pytest.approx((low / hours, high / hours), rel=1e-9)


def test_no_event_bounds_the_rate_by_3_69_per_time():
    assert per_hour(0, 2.0).high == pytest.approx(-math.log(0.025) / 2.0, rel=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 5, 40, 61, 400])
def test_a_quantile_has_the_interval_of_order_statistics(share, n, rng):
    """The narrowest ranks whose tails hold at most 2.5 % each, found by trying all of them."""
    x = np.sort(rng.standard_normal(n))
    got = quantile(x[rng.permutation(n)], share)
    lower = [k for k in range(1, n + 1) if stats.binom.cdf(k - 1, n, share) <= 0.025]
    upper = [k for k in range(1, n + 1) if stats.binom.cdf(k - 1, n, share) >= 0.975]
    assert got.low == (x[max(lower) - 1] if lower else -math.inf)
    assert got.high == (x[min(upper) - 1] if upper else math.inf)
    assert got.value == x[math.ceil(share * n - 1e-9) - 1]
    assert got.low <= got.value <= got.high


def test_the_interval_of_a_median_covers_it_as_often_as_it_says(rng):
    """2000 times 31 draws of a skewed law: coverage 95 % or a little more; three standard deviations of 2000 below."""
    true = math.log(2.0)
    held = sum(q.low <= true <= q.high for q in (quantile(rng.exponential(size=31), 0.5) for _ in range(2000)))
    assert 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / 2000) < held / 2000 < 0.99


def test_what_never_came_counts_as_late():
    got = quantile([0.01, 0.02, math.inf, math.inf, math.inf], 0.5)
    assert got.value == math.inf
    assert not got.known


def test_without_data_there_is_no_value_and_every_value_is_possible():
    assert not rate(0, 0).known
    assert (rate(0, 0).low, rate(0, 0).high) == (0.0, 1.0)
    assert (quantile([], 0.5).low, quantile([], 0.5).high) == (-math.inf, math.inf)
    assert per_hour(0, 0.0).high == math.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: rate(3, 2), lambda: rate(-1, 2), lambda: rate(1, 2, 1.0), lambda: per_hour(-1, 1.0),
        lambda: per_hour(1, -1.0), lambda: per_hour(1, math.nan), lambda: quantile([1.0], 0.0),
        lambda: quantile([1.0, math.nan], 0.5), lambda: quantile([1.0], 0.5, 0.0),
    ],
)  # fmt: skip
def test_nonsense_is_refused(call):
    with pytest.raises(InvalidValue):
        call()
