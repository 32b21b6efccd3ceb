"""Which samples can be compared: every rule alone, and a torque that lags the motion."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.observe.inputs import Neighbours
from tangere.types import State


def sample(t, h=0.01, q=None, qd=None):
    """A motion whose position says its time: q = t, qd = 2 t."""
    return State(t, h, np.full(2, t) if q is None else q, np.full(2, 2.0 * t) if qd is None else qd, np.zeros(2))


def took(neighbours, *states):
    """For each sample the times of the pair it gives (from q), None where there is none."""
    pairs = [neighbours.update(state) for state in states]
    return [None if pair is None else (pair[0][0][0], pair[1][0][0]) for pair in pairs]


def begun(delay=0.0, **options):
    neighbours = Neighbours(delay, **options)
    neighbours.reset(sample(0.0))
    return neighbours


def test_neighbours_are_the_last_two_samples():
    n = begun()
    assert took(n, sample(0.01), sample(0.02)) == [(0.0, 0.01), (0.01, 0.02)]
    assert not n.fresh


def test_without_a_reset_the_first_sample_is_the_beginning():
    assert took(Neighbours(), sample(0.0), sample(0.01)) == [None, (0.0, 0.01)]


def test_a_repeated_stamp_is_ignored():
    assert took(begun(), sample(0.01), sample(0.01, q=np.full(2, 9.0)), sample(0.02)) == [
        (0.0, 0.01), None, (0.01, 0.02),
    ]  # fmt: skip


@pytest.mark.parametrize("h", [0.0, -0.01, np.nan, 0.5])
def test_a_period_that_cannot_be_used_is_a_new_beginning(h):
    n = begun(gap=0.1)
    assert took(n, sample(0.01), sample(0.02, h), sample(0.03)) == [(0.0, 0.01), None, (0.02, 0.03)]
    assert n.fresh
    assert took(n, sample(0.04)) == [(0.03, 0.04)]
    assert not n.fresh


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e7])
def test_a_position_that_is_none_costs_two_pairs(bad):
    n = begun()
    broken = sample(0.02, q=np.array([0.0, bad]))
    assert took(n, sample(0.01), broken, sample(0.03), sample(0.04)) == [(0.0, 0.01), None, None, (0.03, 0.04)]
    assert n.fresh


def test_what_is_dropped_is_not_compared_again():
    n = begun()
    n.update(sample(0.01))
    n.drop()
    assert took(n, sample(0.02), sample(0.03)) == [None, (0.02, 0.03)]


@pytest.mark.parametrize("delay", [0.004, 0.01, 0.0251])
def test_with_a_delay_the_motion_is_that_much_older(delay):
    """q = t and qd = 2 t lie on lines: what is between samples is known exactly."""
    n, times = begun(delay), np.arange(1, 12) * 0.01
    pairs = [n.update(sample(t)) for t in times]
    reached = times - 0.01 - delay > -1e-12  # both ends of the period lie after the first sample
    assert [pair is not None for pair in pairs] == reached.tolist()
    for t, pair in zip(times, pairs, strict=True):
        if pair is not None:
            (q0, qd0), (q1, qd1) = pair
            np.testing.assert_allclose([q0[0], q1[1]], [t - 0.01 - delay, t - delay], atol=1e-15)
            np.testing.assert_allclose([qd0[0], qd1[1]], [2 * (t - 0.01 - delay), 2 * (t - delay)], atol=1e-15)


@pytest.mark.parametrize("fault", ["nan", "gap", "back"])
def test_a_delayed_motion_does_not_reach_over_a_break(fault):
    n = begun(0.015, gap=0.1)
    before = [sample(0.01 * k) for k in range(1, 6)]
    assert took(n, *before)[-1] is not None
    shift = {"nan": 0.0, "gap": 1.0, "back": -5.0}[fault]
    first = sample(0.06 + shift, 0.01 + shift, q=np.full(2, np.nan) if fault == "nan" else None)
    after = [sample(0.01 * k + shift) for k in range(7, 13)]
    got = took(n, first, *after)
    oldest = after[0].time if fault == "nan" else first.time
    want = [s.time - 0.025 >= oldest - 1e-12 for s in (first, *after)]
    assert [pair is not None for pair in got] == want
    assert 0 < sum(want) < len(want)
