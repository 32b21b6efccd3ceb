"""Rigid bodies: what is refused, and moving and joining against integrals over particles."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import random_pose

from tangere.errors import UnphysicalModel
from tangere.model.inertia import check_body, joined, moved, principal_moments, with_payload
from tangere.model.model import Array, Link, Payload


def of_particles(masses: Array, points: Array, name: str = "body") -> Link:
    """Mass, centre of mass and inertia of a cloud of particles, by the definition."""
    mass = float(np.sum(masses))
    com = masses @ points / mass
    r = points - com
    inertia = sum(m * ((p @ p) * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, r, strict=True))
    return Link(name, mass, com, np.asarray(inertia))


@pytest.fixture
def cloud(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.uniform(0.1, 2.0, 12), rng.normal(size=(12, 3)) * 0.3


def test_a_cloud_is_physical_and_so_is_a_plate(cloud: tuple[Array, Array]) -> None:
    check_body("cloud", *_numbers(of_particles(*cloud)))
    flat = cloud[1] * (1.0, 1.0, 0.0)  # I1 + I2 = I3 exactly: the border of the triangle inequality
    plate = of_particles(cloud[0], flat @ random_pose(np.random.default_rng(1))[:3, :3].T)
    low, middle, high = principal_moments(plate.inertia)
    assert abs(low + middle - high) < 1e-14
    check_body("plate", *_numbers(plate))


def _numbers(link: Link) -> tuple[float, Array, Array]:
    return link.mass, link.com, link.inertia


@pytest.mark.parametrize(
    ("mass", "com", "inertia", "message"),
    [
        (0.0, (0, 0, 0), np.eye(3), "mass 0 kg must be positive"),
        (-1.0, (0, 0, 0), np.eye(3), "mass -1 kg"),
        (np.nan, (0, 0, 0), np.eye(3), "finite"),
        (1.0, (0, np.inf, 0), np.eye(3), "finite"),
        (1.0, (0, 0, 0), np.array([[1, 0.1, 0], [0, 1, 0], [0, 0, 1.0]]), "symmetric"),
        (1.0, (0, 0, 0), np.diag((1.0, 1.0, 2.001)), r"triangle inequality.*2.001 > 1 \+ 1"),
        (1.0, (0, 0, 0), np.diag((0.0, 4e-4, 3e-4)), "triangle inequality"),
        (1.0, (0, 0, 0), np.diag((-1.0, 2.0, 2.0)), "triangle inequality"),
        (1.0, (0, 0, 0), np.diag((0.0, 1.0, 1.0)), "each moment"),
        (1.0, (0, 0, 0), np.zeros((3, 3)), "each moment"),
        (1.0, (0, 0, 0), np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]]), "triangle inequality"),
    ],
)
def test_impossible_bodies(mass: float, com: tuple[float, ...], inertia: Array, message: str) -> None:
    with pytest.raises(UnphysicalModel, match=f"thing: .*{message}"):
        check_body("thing", mass, np.array(com, float), inertia)


def test_point_mass_only_where_it_is_meant() -> None:
    check_body("bob", 1.0, np.zeros(3), np.zeros((3, 3)), point_mass=True)
    with pytest.raises(UnphysicalModel):
        check_body("bob", 1.0, np.zeros(3), np.diag((0.0, 1.0, 1.0)), point_mass=True)


def test_moving_and_joining_against_particles(cloud: tuple[Array, Array], rng: np.random.Generator) -> None:
    """1e-14: sums of a dozen terms of O(1)."""
    masses, points = cloud
    T = random_pose(rng)
    ours = moved(of_particles(masses, points), T)
    theirs = of_particles(masses, points @ T[:3, :3].T + T[:3, 3])
    np.testing.assert_allclose(ours.com, theirs.com, atol=1e-14)
    np.testing.assert_allclose(ours.inertia, theirs.inertia, atol=1e-14)
    both = joined(of_particles(masses[:5], points[:5], "first"), of_particles(masses[5:], points[5:]))
    whole = of_particles(masses, points)
    assert both.name == "first"
    assert both.mass == pytest.approx(whole.mass, rel=1e-15)
    np.testing.assert_allclose(both.com, whole.com, atol=1e-14)
    np.testing.assert_allclose(both.inertia, whole.inertia, atol=1e-14)


def test_massless_bodies_and_payload(cloud: tuple[Array, Array]) -> None:
    body, nothing = of_particles(*cloud), Link("nothing", 0.0, np.zeros(3), np.zeros((3, 3)))
    for both in (joined(body, nothing), joined(nothing, body)):
        np.testing.assert_allclose(both.com, body.com, atol=1e-15)
        np.testing.assert_allclose(both.inertia, body.inertia, atol=1e-15)
    assert joined(nothing, nothing).mass == 0.0
    assert with_payload(body, None) is body
    point = np.array([0.1, -0.2, 0.3])
    loaded = with_payload(body, Payload(1.5, point))
    whole = of_particles(np.append(cloud[0], 1.5), np.vstack([cloud[1], point]))
    np.testing.assert_allclose(loaded.inertia, whole.inertia, atol=1e-14)
