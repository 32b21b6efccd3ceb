"""Payload, tool and gravity in the forms a caller may give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import random_pose
from scipy.spatial.transform import Rotation

from tangere.errors import InvalidValue, UnknownName, UnphysicalModel
from tangere.model.frames import gravity_vector, tool_transform
from tangere.model.inertia import payload_body
from tangere.model.loading import load
from tangere.model.model import Payload


def test_mountings() -> None:
    assert gravity_vector("table").tolist() == [0.0, 0.0, -9.81]
    assert gravity_vector("ceiling").tolist() == [0.0, 0.0, 9.81]
    # UR's wall: the base tilted by 90 degrees about its x axis; world up, seen from the tilted base, is its y axis
    up = Rotation.from_euler("x", -90, degrees=True).apply((0.0, 0.0, 1.0))
    np.testing.assert_allclose(gravity_vector("wall"), -9.81 * up, atol=1e-14)  # 9.81 times a rounding
    assert load("ur5e", gravity=[-9.81, 0, 0]).gravity.tolist() == [-9.81, 0.0, 0.0]


@pytest.mark.parametrize("bad", ["floor", [0.0, -9.81], [0.0, 0.0, np.nan], "", [[0, 0, 1]], ["a", 0, 0]])
def test_bad_gravity(bad: Any) -> None:
    with pytest.raises(InvalidValue):
        gravity_vector(bad)
    if isinstance(bad, str):
        with pytest.raises(UnknownName, match="table, wall, ceiling"):
            gravity_vector(bad)


def test_tools(rng: np.random.Generator) -> None:
    T = random_pose(rng)
    assert np.array_equal(tool_transform(T), T)
    six = [0.1, 0.2, 0.3, *Rotation.from_matrix(T[:3, :3]).as_rotvec()]
    np.testing.assert_allclose(tool_transform(six)[:3, :3], T[:3, :3], atol=1e-14)
    assert tool_transform(six)[:3, 3].tolist() == [0.1, 0.2, 0.3]
    assert np.array_equal(tool_transform((0.0, 0.0, 0.1))[:3, :3], np.eye(3))
    mirror = np.diag((1.0, 1.0, -1.0, 1.0))
    for bad in (mirror, np.eye(3), [0.1] * 5, [0.0, 0.0, np.inf], "gripper"):
        with pytest.raises(InvalidValue, match="tool"):
            tool_transform(bad)  # type: ignore[arg-type]


def test_payloads() -> None:
    com, inertia = [0.0, 0.01, 0.05], np.diag((0.01, 0.01, 0.005))
    assert payload_body(2).mass == 2.0
    assert payload_body(np.float64(2.5)).com.tolist() == [0.0, 0.0, 0.0]
    assert payload_body((2.0, com)).com.tolist() == com
    full = payload_body((2.0, com, inertia))
    assert np.array_equal(full.inertia, inertia)
    assert np.array_equal(payload_body(full).inertia, inertia)
    given = np.array(com)
    assert payload_body(Payload(1.0, given)).com is not given  # a copy: the caller may go on using the array


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (-1.0, UnphysicalModel),
        (0.0, UnphysicalModel),
        (np.nan, InvalidValue),
        ((1.0, [0.0, 0.0]), InvalidValue),
        ((1.0, [0.0] * 3, np.diag((1.0, 1.0, 3.0))), UnphysicalModel),
        ((1.0, [0.0] * 3, [1.0, 1.0, 1.0]), InvalidValue),
        ((1.0, [0.0] * 3, np.eye(3), 4), InvalidValue),
        ((), InvalidValue),
        ("heavy", InvalidValue),
    ],
)
def test_bad_payloads(bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="payload"):
        load("ur10e", payload=bad)
