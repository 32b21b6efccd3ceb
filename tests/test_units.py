"""Units that a recording gets wrong are said; right ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.run.units import unit_findings

T = np.arange(1000) / 100.0
SPEED = np.linspace(0.5, 1.0, 6)
Q = 0.4 * np.sin(T[:, None] * SPEED) - 1.0
QD = 0.4 * SPEED * np.cos(T[:, None] * SPEED)
EFFORT = np.ones((1000, 6))
DEGREES = 180.0 / np.pi


def test_a_right_log_says_nothing() -> None:
    noisy = QD + 0.01 * np.random.default_rng(0).normal(size=QD.shape)
    assert unit_findings(T, Q, noisy, EFFORT, "torques") == []
    assert unit_findings(T, 0.0 * Q, 0.0 * Q, EFFORT, "torques") == []  # an arm that stands
    assert unit_findings(T, Q, None, None, "torques") == []
    turned = Q + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 20.0])  # the last joint of a UR3e turns without end
    assert unit_findings(T, turned, QD, EFFORT, "torques") == []


@pytest.mark.parametrize(
    ("time", "q", "qd", "effort", "word"),
    [
        (1000.0 * T, Q, QD, EFFORT, "look like milliseconds"),
        (1e-3 * T, Q, QD, EFFORT, "do not look like seconds"),
        (T, DEGREES * Q, DEGREES * QD, EFFORT, "look like degrees: radians"),
        (T, Q, DEGREES * QD, EFFORT, "velocities look like degrees per second"),
        (T, DEGREES * Q, QD, EFFORT, "positions look like degrees"),
        (T, Q, QD[::-1] * 3.0, EFFORT, "not those of the positions"),
        (T, Q, QD, 0.0 * EFFORT, "all currents are zero"),
    ],
)
def test_what_is_wrong_is_said(
    time: np.ndarray, q: np.ndarray, qd: np.ndarray, effort: np.ndarray, word: str
) -> None:  # fmt: skip
    said = unit_findings(time, q, qd, effort, "currents")
    assert any(word in text for text in said), said
