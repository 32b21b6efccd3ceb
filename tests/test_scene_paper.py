"""Paper in MuJoCo: the stiffness and friction that were asked for, tilt, bump and hole where they were put."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tangere.apps.drawing.drawing import drawing_robot, heavier
from tangere.control.operational_space import OperationalSpace
from tangere.control.setpoint import Setpoint
from tangere.errors import InvalidValue
from tangere.plants import MujocoPlant
from tangere.plants.scene.bodies import Body, Bump, Hole, Sheet
from tangere.plants.scene.bodies import paper as sheet
from tangere.plants.scene.scene import Pen, Scene
from tangere.robots import Robot
from tangere.types import Array

pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra sim)")

T = np.eye(4)
T[:3, 3] = (-0.45, -0.13, 0.05)
DOWN = np.diag((1.0, -1.0, -1.0, 1.0))
ROBOT = drawing_robot("ur5e")


def pose(x: float, y: float, height: float, paper: Array = T) -> Array:
    """T_base_tcp with the pen across the paper, its tip at x, y, height in paper coordinates."""
    local = DOWN.copy()
    local[:3, 3] = (x, y, height)
    return paper @ local


def joints(target: Array) -> Array:
    found = [q for q in ROBOT.inverse_kinematics(target).q if np.all(np.isfinite(q)) and q[1] < 0.0 < q[2]]
    return np.array(found[0])


def held(
    paper: Body, x: float, y: float, height: float, seconds: float = 0.6, real: Robot = ROBOT
) -> tuple[float, float, Robot]:
    """(force along the normal, height of the tip) after pressing towards a pose: a stiff operational-space hold."""
    target = pose(x, y, height, paper.T)
    plant = MujocoPlant(real, scene=Scene((paper,), Pen(length=0.15, tip_radius=5e-4)))
    state = plant.reset(joints(pose(x, y, max(height, paper_top(paper, x, y)) + 2e-4, paper.T)))
    law = OperationalSpace(real, Setpoint(real, state.q, target), kp=900.0, posture=False)
    law.start(state)
    for _ in range(round(seconds / plant.period)):
        plant.write(law.step(state))
        state = plant.read()
    truth = plant.truth()
    tip = paper.T[:3, :3].T @ (truth.T[:3, 3] - paper.T[:3, 3])
    return float(truth.wrench[:3] @ paper.T[:3, 2]), float(tip[2]), ROBOT


def lay(T: np.ndarray, **told: Any) -> Body:
    """A sheet of 0.4 m with the friction of a felt pen and a firm board, unless told otherwise."""
    return sheet(T, **({"size": (0.4, 0.4), "friction": 0.3, "stiffness": 2e4} | told))


def height_of(paper: Body, x: float, y: float) -> float:
    assert isinstance(paper.shape, Sheet)
    return paper.shape.height(x, y)


def paper_top(paper: Body, x: float, y: float) -> float:
    top = height_of(paper, x, y)
    return top if math.isfinite(top) else 0.0


@pytest.mark.parametrize("stiffness", [2e3, 2e4, 1e5])
def test_static_stiffness(stiffness: float) -> None:
    """Force over depth is the stiffness within 1 % (what is left is the last creep of the hold)."""
    force, height, _ = held(lay(T, stiffness=stiffness), 0.0, 0.0, -1e-3)
    assert force > 1.0
    assert force / -height == pytest.approx(stiffness, rel=0.01)


def test_misplaced_paper_is_where_it_was_put() -> None:
    """3 mm up and 2 degrees about x through the middle: heights by trigonometry, and the contact there."""
    paper = lay(T).misplaced(3e-3, math.radians(2.0), 0.0)
    point = paper.T @ np.array((0.02, 0.05, 0.0, 1.0))
    assert point[2] - T[2, 3] == pytest.approx(3e-3 + 0.05 * math.sin(math.radians(2.0)))
    force, height, _ = held(paper, 0.02, 0.05, -1e-3)
    assert force / -height == pytest.approx(2e4, rel=0.01)
    with pytest.raises(InvalidValue, match="canvas error"):
        lay(T).misplaced(0.0, 1.0)


def test_a_bump_stands_out_and_a_hole_holds_nothing() -> None:
    bump = Bump(0.02, 0.01, 1e-3, 0.03)
    paper = lay(T, bumps=(bump,), hole=Hole(-0.05, 0.0, 0.02, 0.04))
    assert height_of(paper, 0.02, 0.01) == pytest.approx(1e-3)
    assert height_of(paper, 0.02, 0.0399) == pytest.approx(0.0, abs=1e-5)
    assert height_of(paper, 0.0, -0.1) == 0.0
    assert height_of(paper, -0.05, 0.0) == height_of(paper, 1.0, 0.0) == -math.inf
    force, height, _ = held(paper, 0.02, 0.01, 0.0)
    assert force / (1e-3 - height) == pytest.approx(2e4, rel=0.01)
    assert held(paper, -0.05, 0.0, -1e-3)[0] == 0.0
    assert held(paper, -0.05, 0.03, -1e-3)[0] > 1.0  # beside the hole


def test_an_arm_of_half_its_mass_feels_the_same_paper() -> None:
    force, height, _ = held(lay(T), 0.02, 0.01, -1e-3, real=heavier(ROBOT, -0.5))
    assert force > 1.0
    assert force / -height == pytest.approx(2e4, rel=0.01)


def test_bad_paper_is_refused() -> None:
    for wrong in ({"stiffness": 0.0}, {"size": (0.0, 1.0)}, {"friction": -1.0}, {"damping": math.nan}):
        with pytest.raises(InvalidValue, match="paper"):
            lay(T, **wrong)
    with pytest.raises(InvalidValue, match="too much"):
        MujocoPlant(ROBOT, scene=Scene((lay(T, damping=1e4),), Pen(length=0.15)))
    with pytest.raises(InvalidValue, match="bump"):
        Bump(0.0, 0.0, 0.1, 0.1)
    with pytest.raises(InvalidValue, match="hole"):
        Hole(0.0, 0.0, 0.0, 0.1)
    with pytest.raises(InvalidValue, match="tip_radius"):
        Pen(tip_radius=0.1)
