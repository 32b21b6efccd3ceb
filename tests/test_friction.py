"""Joint friction: the law written out, opposition to motion, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue


def test_the_law_joint_by_joint(rng: np.random.Generator) -> None:
    """Against the scalar formula, 1e-14 relative: the same operations in another order."""
    friction = JointFriction(rng.uniform(0, 20, 6), rng.uniform(0, 20, 6), width=0.03)
    for qd in rng.normal(size=(50, 6)):
        expected = [
            c * math.tanh(v / 0.03) + b * v for c, b, v in zip(friction.coulomb, friction.viscous, qd, strict=True)
        ]
        assert friction.torque(qd) == pytest.approx(expected, rel=1e-14)


def test_it_only_takes_energy(rng: np.random.Generator) -> None:
    friction = JointFriction.of(tangere.robot("ur10e").drives)
    qd = rng.normal(size=(4, 25, 6)) * 10.0 ** rng.uniform(-4, 1, (4, 25, 1))
    power = friction.torque(qd) * qd
    assert power.shape == (4, 25, 6)
    assert np.all(power > 0.0)
    assert friction.torque(-qd) == pytest.approx(-friction.torque(qd))


def test_of_drives_takes_what_is_known() -> None:
    known, unknown = tangere.robot("ur10e").drives, tangere.robot("ur15").drives
    friction = JointFriction.of(known)
    assert friction.torque(np.ones(6)) == pytest.approx(known.coulomb + known.viscous)  # tanh(50) = 1
    assert np.isnan(unknown.coulomb).any()
    assert np.isnan(unknown.viscous).any()
    assert np.all(JointFriction.of(unknown).torque(np.ones(6)) == 0.0)  # of a UR15 nothing is known
    assert not JointFriction.none(3).torque(np.ones(3)).any()


def test_scaled(rng: np.random.Generator) -> None:
    friction, qd = JointFriction.of(tangere.robot("ur10e").drives), rng.normal(size=6)
    assert friction.scaled(0.7).torque(qd) == pytest.approx(0.7 * friction.torque(qd))
    share = rng.uniform(0, 1, 6)
    assert friction.scaled(share).torque(qd) == pytest.approx(share * friction.torque(qd))


def test_torque_leaves_its_argument_alone() -> None:
    qd = np.ones(6)
    JointFriction.of(tangere.robot("ur10e").drives).torque(qd)
    assert np.all(qd == 1.0)


@pytest.mark.parametrize(
    ("coulomb", "viscous", "width", "message"),
    [
        ([1.0, -1.0], [0.0, 0.0], 0.1, "negative"),
        ([1.0], [0.0, 0.0], 0.1, "per joint"),
        ([1.0, np.nan], [0.0, 0.0], 0.1, "finite"),
        ([1.0, 1.0], [0.0, 0.0], 0.0, "width"),
    ],
)
def test_refused(coulomb: list[float], viscous: list[float], width: float, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        JointFriction(np.array(coulomb), np.array(viscous), width)
