"""Units that a recording gets wrong are said; right ones are not."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.identification.findings import torque_findings, unit_findings

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
    ("time", "q", "qd", "effort", "word", "kind"),
    [
        (1000.0 * T, Q, QD, EFFORT, "look like milliseconds", "units"),
        (np.arange(1000.0), Q, QD, EFFORT, "look like milliseconds", "units"),  # 1 kHz
        (0.5 * np.arange(1000.0), Q, QD, EFFORT, "look like milliseconds", "units"),  # 2 kHz
        (1e-3 * T, Q, QD, EFFORT, "do not look like seconds", "units"),
        (T, DEGREES * Q, DEGREES * QD, EFFORT, "look like degrees: radians", "units"),
        (T, Q, DEGREES * QD, EFFORT, "velocities look like degrees per second", "units"),
        (T, DEGREES * Q, QD, EFFORT, "positions look like degrees", "units"),
        (T, Q, QD[::-1] * 3.0, EFFORT, "not those of the positions", "velocities"),
        (T, Q, QD, 0.0 * EFFORT, "all currents are zero", "zero"),
    ],
)
def test_what_is_wrong_is_said(
    time: np.ndarray, q: np.ndarray, qd: np.ndarray, effort: np.ndarray, word: str, kind: str
) -> None:  # fmt: skip
    said = unit_findings(time, q, qd, effort, "currents")
    assert any(word in str(finding) and finding.kind == kind for finding in said), said


@pytest.mark.parametrize(("name", "rated"), [("ur5e", 5.0), ("ur10e", 12.5), ("ur16e", 16.0), ("ur30", 30.0)])
def test_currents_that_are_torques_are_told_from_a_heavy_tool(name: str, rated: float) -> None:
    """Standing in postures at random: a tool of the rated payload that nobody gave is not taken for torques."""
    bare, loaded = tangere.robot(name), tangere.robot(name, payload=(rated, (0.0, 0.0, 0.1)))
    gain, rng = np.array([12.0, 12.0, 10.0, 10.0, 8.0, 8.0]), np.random.default_rng(5)
    for _ in range(100):
        q = rng.uniform(-3.0, 3.0, 6) + np.zeros((20, 1))
        g = bare.gravity_torque(q)
        assert torque_findings(g, loaded.gravity_torque(q) / gain, gain) == []
        said = torque_findings(g, g, gain)
        loads = np.abs(g[0]) > 4.0  # Nm below which gravity is no witness
        assert bool(said) == bool(loads.any())
        if said:
            assert f"joint {int(np.argmax(loads)) + 1} {gain[np.argmax(loads)]:.1f}" in said[0].sentence
            assert said[0].kind == "currents"
