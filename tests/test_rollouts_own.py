"""Rollouts with parts that the fused kernel does not have: the Python loop serves, and says why."""

from __future__ import annotations

import numpy as np
import pytest
from test_rollouts import compiled, parts

import tangere
from tangere.plants.sensors import SensorModel
from tangere.types import Command, State


@pytest.fixture(scope="module")
def robot() -> tangere.Robot:
    return tangere.robot("ur10e", rotor_inertia=True)


class Floating:
    """A controller of one's own: gravity alone; it names no robot."""

    def __init__(self, robot: tangere.Robot) -> None:
        self._arm = robot

    def start(self, state: State) -> None:
        pass

    def step(self, state: State) -> Command:
        return Command(self._arm.gravity_torque(state.q))

    def stop(self) -> None:
        pass


def test_a_controller_that_names_no_robot(robot: tangere.Robot) -> None:
    given = parts(robot, 0.02, controller=Floating(robot), pushes=(), sensors=None, friction=None)
    q = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
    with pytest.warns(RuntimeWarning, match="the controller Floating has no kernel"):
        rolls = tangere.rollouts(robot, count=1, start=q, **given)
    assert np.abs(rolls.q[0] - q).max() < 1e-9


@compiled
def test_gains_that_noise_designs_are_left_to_the_python_loop(robot: tangere.Robot) -> None:
    given = parts(robot, 0.02, springs={}, sensors=SensorModel(noise_q=1e-5))
    with pytest.warns(RuntimeWarning, match="noisy first sample"):
        assert tangere.rollouts(robot, count=1, **given).instruction_set == "python"
