"""The drive model: one friction law, written twice; regimes; units at its border."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.identification import prior_drive
from tangere.identification.samples import TERMS, friction_terms
from tangere.observe.drive_model import STANDSTILL, DriveModel

N = 6


@pytest.fixture
def drive(rng: np.random.Generator) -> DriveModel:
    positive = rng.uniform(0.5, 3.0, (7, N))
    return DriveModel(
        gain=positive[0],
        rotor_inertia=positive[1],
        coulomb=positive[2],
        viscous=positive[3],
        offset=rng.normal(size=N),
        quadratic=-rng.uniform(0.0, 1.0, N),
        load=rng.uniform(0.0, 0.1, N),
        orders=(101, 200, 202),
        ripple=rng.normal(size=(N, 6)),
        ripple_load=rng.normal(size=(N, 6)),
        ripple_drag=rng.normal(size=(N, 6)),
        stiction=positive[4],
        spread=0.1 * positive[5],
        mean_load=10.0 * positive[6],
        width=rng.uniform(0.005, 0.1, N),
    )


def _law(d: DriveModel, j: int, q: float, qd: float, g: float) -> float:
    """The docstring's equation, one joint at a time, in plain Python."""
    value = (d.coulomb[j] + d.load[j] * abs(g)) * math.tanh(qd / d.width[j])
    value += d.viscous[j] * qd + d.quadratic[j] * qd * abs(qd) + d.offset[j]
    for k, order in enumerate(d.orders):
        own = slice(2 * k, 2 * k + 2)
        a, b = d.ripple[j, own] + d.ripple_load[j, own] * g + d.ripple_drag[j, own] * math.tanh(qd / d.width[j])
        value += a * math.sin(order * q) + b * math.cos(order * q)
    return float(value)


def test_friction_is_its_equation(drive: DriveModel, rng: np.random.Generator) -> None:
    q, qd, g = rng.normal(size=(3, 50, N)) * np.array([2.0, 0.5, 20.0])[:, None, None]
    want = np.array([[_law(drive, j, q[k, j], qd[k, j], g[k, j]) for j in range(N)] for k in range(50)])
    # the arguments of the ripple reach 400 rad, whose rounding alone is 1e-13
    np.testing.assert_allclose(drive.friction(q, qd, g), want, atol=1e-11)


def test_the_columns_of_identification_are_the_same_law(drive: DriveModel, rng: np.random.Generator) -> None:
    """friction_terms times the terms is friction without its ripple, and rotor inertia beside it."""
    q, qd, qdd, g = rng.uniform(-2.0, 2.0, (4, 50, drive.dof))
    named = {name: getattr(drive, name) for name in TERMS}
    columns = np.stack([named[name] for name in TERMS], axis=-1)
    F = friction_terms(qd, qdd, g, drive.width)
    smooth = dataclasses.replace(drive, orders=(), ripple=np.zeros((N, 0)), ripple_load=0.0, ripple_drag=0.0)
    want = smooth.friction(q, qd, g) + drive.rotor_inertia * qdd
    np.testing.assert_allclose(np.einsum("kjt,jt->kj", F, columns), want, rtol=1e-12, atol=1e-12)


def test_torque_of_velocity_alone_is_the_law_at_the_mean_load_without_ripple(
    drive: DriveModel, rng: np.random.Generator
) -> None:
    smooth = dataclasses.replace(drive, ripple=np.zeros((N, 6)), ripple_load=0.0, ripple_drag=0.0)
    qd = rng.normal(size=(20, N))
    want = smooth.friction(np.zeros((20, N)), qd, np.broadcast_to(drive.mean_load, (20, N)))
    np.testing.assert_allclose(drive.torque(qd), want, rtol=1e-13)


def test_agrees_with_the_friction_of_plants_where_both_say_something(rng: np.random.Generator) -> None:
    drives = tangere.robot("ur10e").drives
    known = dataclasses.replace(drives, coulomb=rng.uniform(1, 5, N), viscous=rng.uniform(1, 5, N))
    qd = rng.normal(size=(30, N))
    drive = DriveModel.of(known)
    np.testing.assert_allclose(drive.torque(qd), JointFriction.of(known, float(drive.width[0])).torque(qd), rtol=1e-13)


def test_smooth_through_zero(drive: DriveModel) -> None:
    """The largest slope is at zero and is the one of the equation: nothing jumps."""
    qd = np.linspace(-0.2, 0.2, 4001)[:, None] * np.ones(N)
    slope = np.diff(drive.torque(qd), axis=0) / 1e-4
    steepest = (drive.coulomb + drive.load * drive.mean_load) / drive.width + drive.viscous
    assert np.all(slope <= steepest * (1.0 + 1e-6) + 1e-6)
    assert np.all(slope.max(axis=0) > 0.99 * steepest)


def test_regimes_differ_in_what_is_not_known(drive: DriveModel) -> None:
    still, moving = np.full(N, 0.5 * STANDSTILL), np.full(N, -2.0 * STANDSTILL)
    assert not drive.moving(still).any()
    assert drive.moving(moving).all()
    np.testing.assert_array_equal(drive.band(still), np.maximum(drive.stiction, drive.spread))
    np.testing.assert_array_equal(drive.band(moving), drive.spread)


def test_currents_become_torques_or_an_error_that_names_the_joint(drive: DriveModel) -> None:
    current = np.arange(12.0).reshape(2, N)
    np.testing.assert_array_equal(drive.motor_torque(current), current * drive.gain)
    unknown = dataclasses.replace(drive, gain=np.where(np.arange(N) == 2, np.nan, drive.gain))
    with pytest.raises(tangere.InvalidValue, match="joint 3"):
        unknown.motor_torque(current)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"coulomb": -np.ones(N)}, "coulomb"),
        ({"offset": np.full(N, np.nan)}, "offset"),
        ({"ripple": np.zeros((N, 4))}, "ripple"),
        ({"ripple_load": np.ones((N, 4))}, "ripple_load"),
        ({"width": np.zeros(N)}, "width"),
        ({"smoothing": -1e-3}, "smoothing"),
        ({"smoothing": np.inf}, "smoothing"),
    ],
)
def test_refuses_what_cannot_be(drive: DriveModel, change: dict[str, np.ndarray], word: str) -> None:
    with pytest.raises(tangere.InvalidValue, match=word):
        dataclasses.replace(drive, **change)


def test_cannot_be_written_to(drive: DriveModel) -> None:
    with pytest.raises(ValueError, match="read-only"):
        drive.coulomb[0] = 0.0


@pytest.mark.parametrize("change", [{"width": np.array([0.0, 1, 1, 1, 1, 1]) * 0.01}, {"standstill": 0.0}])
def test_friction_that_jumps_has_no_slope_and_is_refused(change) -> None:
    with pytest.raises(InvalidValue, match="width, standstill: > 0"):
        dataclasses.replace(prior_drive(tangere.robot("ur10e")), **change)
