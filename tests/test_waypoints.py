"""Waypoints: what is given is met, nothing overshoots, speeds are known."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.planning.waypoints import Waypoints


def test_waypoints_meet_what_is_given_and_never_overshoot() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        t = np.concatenate(([0.0], np.cumsum(rng.uniform(0.1, 1.0, 6))))
        q, qd, qdd = rng.normal(size=(3, 7, 2))
        for motion in (Waypoints(t, q, qd), Waypoints(t, q, qd, qdd)):
            for k in range(6):
                at = motion.at(float(t[k]))
                assert np.abs(at.q - q[k]).max() < 1e-9
                assert np.abs(at.qd - qd[k]).max() < 1e-9
            end = motion.at(99.0)
            assert np.array_equal(end.q, q[-1])
            assert not end.qd.any()
        assert np.abs(Waypoints(t, q, qd, qdd).at(float(t[3])).qdd - qdd[3]).max() < 1e-9
        plain = Waypoints(t, q)
        for k in range(6):
            way = np.array([plain.at(float(s)).q for s in np.linspace(t[k], t[k + 1], 50)])
            low, high = np.minimum(q[k], q[k + 1]), np.maximum(q[k], q[k + 1])
            assert (way >= low - 1e-12).all()
            assert (way <= high + 1e-12).all()
        fine = np.array([plain.at(float(s)).qd for s in np.linspace(0.0, t[-1], 2000)])
        assert plain.fastest() == pytest.approx(np.abs(fine).max(axis=0), rel=0.02)
        begun = np.array([plain.at(float(s)).qd for s in np.linspace(0.0, t[2], 2000)])
        assert plain.fastest(2) == pytest.approx(np.abs(begun).max(axis=0), rel=0.02)
        h = 1e-6
        at, before, after = (plain.at(0.7 * t[-1] + s) for s in (0.0, -h, h))
        assert (after.q - before.q) / (2 * h) == pytest.approx(at.qd, abs=1e-6)


@pytest.mark.parametrize(
    ("times", "q"), [([0.0], [[1.0]]), ([0.0, 0.0], [[1.0], [2.0]]), ([1.0, 2.0], [[1.0], [2.0]]),
                     ([0.0, 1.0], [[1.0], [np.nan]]), ([0.0, np.nan], [[1.0], [2.0]])],
)  # fmt: skip
def test_waypoints_that_are_none(times: list[float], q: list[list[float]]) -> None:
    with pytest.raises(InvalidValue, match="waypoints"):
        Waypoints(times, q)
