"""Accelerations of a noisy log: noise must not shrink an inertia, nor smoothing enlarge it."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.identification.samples import accelerations, slopes


def _factor(column: np.ndarray, torque: np.ndarray) -> float:
    """The inertia that least squares finds."""
    return float(column @ torque / (column @ column))


def test_slopes_are_those_of_straight_lines_and_do_not_reach_over_gaps(rng: np.random.Generator) -> None:
    time = np.cumsum(rng.uniform(0.002, 0.03, 200))
    qd = rng.normal(size=(200, 2))
    index = np.r_[1:100, 121:200]  # nothing between samples 99 and 120
    got = slopes(time, qd, index, 0.1)
    for k in rng.integers(0, len(index), 40):
        middle = 0.5 * (time[index[k] - 1] + time[index[k]])
        first, last = (0, 99) if index[k] < 100 else (120, 199)
        half = min(0.05, middle - time[first], time[last] - middle)
        half = max(half, 0.5 * (time[index[k]] - time[index[k] - 1])) + 1e-9
        near = np.flatnonzero((np.abs(time - middle) <= half) & (np.arange(200) >= first) & (np.arange(200) <= last))
        np.testing.assert_allclose(got[k], np.polyfit(time[near], qd[near], 1)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("rate", "fastest"), [(100.0, 1.0), (500.0, 8.0)])
def test_inertia_is_neither_shrunk_by_noise_nor_enlarged_by_smoothing(rate: float, fastest: float) -> None:
    """Velocity noise of a UR (2 mrad/s); motion of a second or so with a share that is fast."""
    rng = np.random.default_rng(4)
    time = np.arange(0.0, 40.0, 1.0 / rate)
    middle = 0.5 * (time[1:] + time[:-1])
    qd, qdd = np.zeros((len(time), 1)), np.zeros(len(middle))
    for f in (0.2, 0.5, fastest):
        size, phase = 0.06 / f, rng.uniform(0.0, 6.0)
        qd[:, 0] += size * np.sin(2.0 * np.pi * f * time + phase)
        qdd += size * 2.0 * np.pi * f * np.cos(2.0 * np.pi * f * middle + phase)
    noisy = qd + 0.002 * rng.normal(size=qd.shape)
    index = np.arange(1, len(time))
    raw = np.diff(noisy[:, 0]) * rate
    assert _factor(raw, qdd) < 0.8  # what noise does to the difference quotient: a quarter or more is lost
    # 4 %: 12 / k^3 of the noise of the shortest slope is in common with the difference quotient
    assert _factor(accelerations(time, noisy, index)[:, 0], qdd) == pytest.approx(1.0, abs=0.04)
    if fastest > 5.0:  # and one slope alone makes it too large where the motion is fast
        assert _factor(slopes(time, noisy, index, 0.1)[:, 0], qdd) > 1.08
