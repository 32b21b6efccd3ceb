"""Another payload for a robot that exists: the same numbers as a robot made with it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles import random_arm

import tangere
from tangere.errors import InvalidValue, UnphysicalModel
from tangere.kernels.table import KERNELS
from tangere.model.inertia import payload_body
from tangere.model.model import Model

BODY = (1.7, (0.02, -0.05, 0.11), np.diag([0.03, 0.04, 0.05]))
ARMS: tuple[Model, ...] = (
    tangere.robot("ur10e", tool=(0.1, 0.0, 0.2), payload=3.0).model,
    tangere.robot("scara").model,
    random_arm(1, "rrrrrr"),
    random_arm(2, "rrrrrrr", payload=False),
    random_arm(3, "rpr"),
    random_arm(4, "r" * 9),
)


def numbers(robot: tangere.Robot, rng: np.random.Generator) -> list[Any]:
    """Every quantity of the table at one state."""
    x = rng.uniform(-2.0, 2.0, (3, robot.dof))
    answers = [getattr(robot, kernel.name)(*x[: len(kernel.inputs)]) for kernel in KERNELS]
    return [np.ravel(part) for a in answers for part in (a if isinstance(a, tuple) else (a,))]


@pytest.mark.parametrize("model", ARMS, ids=lambda m: f"{m.name}-{m.dof}")
@pytest.mark.parametrize("payload", [None, 2.5, BODY], ids=["none", "mass", "body"])
def test_as_if_made_with_it(model: Model, payload: Any) -> None:
    rotor = np.linspace(0.1, 1.0, model.dof)
    robot = tangere.Robot(model, rotor)
    other = robot.with_payload(payload)
    body = None if payload is None else payload_body(payload)
    made = tangere.Robot(replace(model, payload=body), rotor)
    ours, theirs = (numbers(r, np.random.default_rng(7)) for r in (other, made))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-12 * max(1.0, np.max(np.abs(b))))
    assert other.compiled == robot.compiled
    assert (other.model.payload is None) == (payload is None)


def test_the_robot_itself_stays_and_copies_keep_the_payload() -> None:
    robot = tangere.robot("ur5e")
    q = np.array([0.1, -1.2, 1.0, -0.5, 0.3, 0.2])
    before = robot.gravity_torque(q)
    heavy = robot.with_payload(5.0).with_payload((3.0, (0.0, 0.0, 0.1)))
    np.testing.assert_array_equal(robot.gravity_torque(q), before)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(heavy)).gravity_torque(q), heavy.gravity_torque(q), atol=1e-12)
    np.testing.assert_allclose(heavy.with_payload(None).gravity_torque(q), before, atol=1e-12)


def test_a_calibrated_arm_keeps_its_inverse_kinematics() -> None:
    nominal = tangere.robot("ur5e").model
    joints = tuple(replace(j, T_parent_joint=j.T_parent_joint + 1e-4 * np.eye(4, k=3)) for j in nominal.joints)
    robot = tangere.Robot(replace(nominal, joints=joints, dh=None), nominal=nominal)
    q = np.array([0.1, -1.2, 1.0, -0.5, 0.3, 0.2])
    found = robot.with_payload(2.0).inverse_kinematics(robot.pose(q))
    np.testing.assert_array_equal(found.q, robot.inverse_kinematics(robot.pose(q)).q)


def test_what_is_no_payload_is_refused() -> None:
    robot = tangere.robot("ur5e")
    with pytest.raises(UnphysicalModel, match="must be positive"):
        robot.with_payload(-1.0)
    with pytest.raises(InvalidValue, match="payload com must be finite"):
        robot.with_payload((1.0, (np.nan, 0.0, 0.0)))
    with pytest.raises(InvalidValue, match="payload must be a mass"):
        robot.with_payload("heavy")  # type: ignore[arg-type]
