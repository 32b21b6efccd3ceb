"""Shares of a wrong model in the tracking error: each cause alone, against a simulation that has only that cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tangere import robot
from tangere.apps.scenarios.build import build
from tangere.apps.scenarios.execute import error_shares, summary_of
from tangere.logs.log import Log
from tangere.loop.run import run

# To first order in the error, and with joints that turn on meanwhile: some per cent of a few millimetres.
CLOSE = 0.2
CAUSES = ("inertia_mm", "gravity_mm", "friction_mm", "kinematics_mm")


def simulated(**given: Any) -> tuple[float, dict[str, float]]:
    """Tracking rms [mm] of a circle, and the shares."""
    built = build("circle", {"plant": "rigid", "duration": 4, **given})
    result = run(built.plant, built.controller, built.observers, until=4.0, trajectory=built.motion.trajectory)
    summary = summary_of(built, result)
    return summary["tracking_rms_mm"], summary["shares"]


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"mass": 1.02}, "gravity_mm"),
        ({"payload": 0.5}, "gravity_mm"),
        ({"friction": "viscous", "friction_model": "none"}, "friction_mm"),
        ({"friction": "full", "friction_model": "none"}, "friction_mm"),
        ({"model": "001-table8"}, "kinematics_mm"),  # other lengths, hardly other masses
        ({"model": "000-F", "drives": "off"}, "inertia_mm"),  # centres of mass as they are, inertias not
    ],
)
def test_a_cause_alone_costs_what_a_simulation_with_it_shows(given: dict[str, Any], cause: str) -> None:
    measured, shares = simulated(**given)
    assert measured > 0.05  # mm: well above the 0.01 mm of the exact model
    assert shares[cause] == pytest.approx(measured, rel=CLOSE)
    assert shares["together_mm"] == pytest.approx(measured, rel=CLOSE)
    others = [shares[name] for name in CAUSES if name != cause]
    assert max(others) < 0.2 * shares[cause]


def test_a_faster_circle_is_a_matter_of_inertia() -> None:
    # gravity costs the same at any rate; inertia grows with its square on the way round, linearly in the ramp
    _, slow = simulated(mass=1.02, rate=0.5)
    _, fast = simulated(mass=1.02, rate=1.0)
    assert fast["gravity_mm"] == pytest.approx(slow["gravity_mm"], rel=0.3)
    assert 2.0 < fast["inertia_mm"] / slow["inertia_mm"] < 4.0


def test_the_exact_model_has_no_share() -> None:
    measured, shares = simulated()
    assert measured < 0.02
    assert all(value == 0.0 for value in shares.values())


def test_what_is_compensated_costs_nothing() -> None:
    _, shares = simulated(friction="full")
    assert shares["friction_mm"] == 0.0


def test_a_standing_arm_sags_by_gravity_over_stiffness() -> None:
    """At rest e = Mhat^-1 (g - ghat) / kp, computed here by hand."""
    arm, heavy = robot("ur10e"), build("hold", {"mass": 1.05}).world.true
    q = np.deg2rad((0.0, -90.0, 90.0, -90.0, -90.0, 0.0))
    kp, N = 100.0, 3000
    zero = np.zeros((N, 6))
    T = np.tile(arm.pose(q)[:3].ravel(), (N, 1))
    log = Log({"time": np.arange(N) * 1e-3, "q_des": zero + q, "qd_des": zero, "qdd_des": zero, "T_des": T})
    shares = error_shares(log, heavy, arm, None, None, kp, settle=2.0)
    lacking = heavy.gravity_torque(q) - arm.gravity_torque(q)
    sag = arm.jacobian(q)[:3] @ np.linalg.solve(arm.mass_matrix(q), lacking) / kp
    # settled for 20 time constants: what is left of the ramp is 20 exp(-20)
    assert shares["gravity_mm"] == pytest.approx(1e3 * np.linalg.norm(sag), rel=1e-6)
    assert shares["inertia_mm"] < 1e-9
    assert shares["kinematics_mm"] < 1e-9
    assert error_shares(log, heavy, arm, None, None, kp, settle=9.0)["gravity_mm"] == 0.0  # nothing after the end
    each = np.array([100.0, 400.0, 225.0, 100.0, 100.0, 100.0])  # one for each joint, and more damping than it takes
    shares = error_shares(log, heavy, arm, None, None, each, settle=2.9, kv=2.2 * np.sqrt(each))
    sag = arm.jacobian(q)[:3] @ (np.linalg.solve(arm.mass_matrix(q), lacking) / each)
    assert shares["gravity_mm"] == pytest.approx(1e3 * np.linalg.norm(sag), rel=1e-6)
