"""Cartesian, cylindrical and spherical coordinates: there and back, rates and accelerations against derivatives.

The second opinion is sympy: it differentiates x(rho, theta, z), x(r, theta, phi) along a motion and is exact.
1e-12: a handful of products of numbers of order one.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from tangere.apps.textbook import coordinates as coords
from tangere.apps.textbook.coordinates import System
from tangere.errors import InvalidValue

TOLERANCE = 1e-12
CURVED: list[System] = ["cylindrical", "spherical"]
ALL: list[System] = ["cartesian", "cylindrical", "spherical"]


def points(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3))


@pytest.mark.parametrize("system", ALL)
def test_there_and_back(system: System) -> None:
    p = points(1000, 1).reshape(20, 50, 3)
    chi = coords.coordinates(system, p)
    assert np.max(np.abs(coords.position(system, chi) - p)) < TOLERANCE
    if system != "cartesian":
        assert np.all(chi[..., 0] >= 0)
        assert np.all(np.abs(chi[..., 1]) <= np.pi)
    if system == "spherical":
        assert np.all((chi[..., 2] >= 0) & (chi[..., 2] <= np.pi))


def test_convention() -> None:
    assert coords.coordinates("cylindrical", [0, 2, 3]) == pytest.approx([2, np.pi / 2, 3])
    assert coords.coordinates("spherical", [0, 2, 0]) == pytest.approx([2, np.pi / 2, np.pi / 2])
    assert coords.coordinates("spherical", [0, 0, -2]) == pytest.approx([2, 0, np.pi])


def test_singular_axis_rule() -> None:
    for x in (0.0, -0.0):
        for y in (0.0, -0.0):
            assert coords.coordinates("cylindrical", [x, y, 1.5]).tolist() == [0.0, 0.0, 1.5]
            assert coords.coordinates("spherical", [x, y, 1.5]).tolist() == [1.5, 0.0, 0.0]
            assert coords.coordinates("spherical", [x, y, 0.0]).tolist() == [0.0, 0.0, 0.0]


def exact(system: System, chi: np.ndarray, rate: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and acceleration by sympy along chi(t) = chi + rate t + second t^2 / 2."""
    t = sp.Symbol("t")
    a, b, c = (x + v * t + w * t**2 / 2 for x, v, w in zip(chi, rate, second, strict=True))
    if system == "cylindrical":
        p = sp.Matrix([a * sp.cos(b), a * sp.sin(b), c])
    else:
        p = sp.Matrix([a * sp.sin(c) * sp.cos(b), a * sp.sin(c) * sp.sin(b), a * sp.cos(c)])
    v = p.diff(t)
    return (
        np.array(v.subs(t, 0), dtype=float)[:, 0],
        np.array(v.diff(t).subs(t, 0), dtype=float)[:, 0],
    )


@pytest.mark.parametrize("system", CURVED)
def test_velocity_and_acceleration_against_sympy(system: System) -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        chi = coords.coordinates(system, rng.normal(size=3))
        rate, second = rng.normal(size=(2, 3))
        v, a = exact(system, chi, rate, second)
        assert coords.velocity(system, chi, rate) == pytest.approx(v, abs=TOLERANCE)
        assert coords.acceleration(system, chi, rate, second) == pytest.approx(a, abs=TOLERANCE)


@pytest.mark.parametrize("system", ALL)
def test_rates_invert_velocities(system: System) -> None:
    rng = np.random.default_rng(3)
    p = points(300, 4)
    p = p[np.hypot(p[:, 0], p[:, 1]) > 0.1]
    v, a = rng.normal(size=(2, *p.shape))
    chi = coords.coordinates(system, p)
    rate = coords.rate(system, chi, v)
    assert np.max(np.abs(coords.velocity(system, chi, rate) - v)) < TOLERANCE
    second = coords.second_rate(system, chi, rate, a)
    assert np.max(np.abs(coords.acceleration(system, chi, rate, second) - a)) < 1e-11  # rates up to 1/0.1, squared
    # and the coordinates really move with that rate: second-order difference, 1e-6 step
    h = 1e-6
    slope = (coords.coordinates(system, p + h * v) - coords.coordinates(system, p - h * v)) / (2 * h)
    wrapped = np.abs(slope[:, 1] * 2 * h) > 3  # a point that crosses theta = pi within the step
    assert np.max(np.abs(slope - rate)[~wrapped]) < 1e-6


@pytest.mark.parametrize("system", CURVED)
def test_rates_on_the_axis_are_refused_and_velocities_are_not(system: System) -> None:
    chi = coords.coordinates(system, [0.0, 0.0, 1.0])
    with pytest.raises(InvalidValue, match="z axis"):
        coords.rate(system, chi, [1, 0, 0])
    with pytest.raises(InvalidValue, match="z axis"):
        coords.rate_inverse(system, coords.coordinates(system, [1e-10, 0.0, 1.0]))
    coords.rate_inverse(system, coords.coordinates(system, [1e-8, 0.0, 1.0]))
    assert coords.velocity(system, chi, [0.0, 5.0, 0.0]) == pytest.approx([0, 0, 0], abs=1e-15)


def test_bad_input() -> None:
    with pytest.raises(InvalidValue, match="valid are cartesian, cylindrical, spherical"):
        coords.coordinates("polar", [0, 0, 0])  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="finite"):
        coords.coordinates("spherical", [np.nan, 0, 0])
    with pytest.raises(InvalidValue, match="expected shape"):
        coords.position("spherical", [0, 0])
