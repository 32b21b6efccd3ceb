"""Actuator faults: what really acts differs from what is reported, in exactly the periods it should."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.plants import RigidPlant, Stuck, TorqueLoss, TorqueOffset
from tangere.plants.pushes import Actuators, Fault, braked
from tangere.types import Array, Command

ARM = tangere.robot("ur10e")
START = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
SPEED = np.array([0.4, -0.3, 0.4, 0.5, -0.3, 0.2])
TAU = np.array([3.0, -60.0, -30.0, -2.0, 0.05, 0.001])


def motion(faults: list[Fault], tau: Array, count: int = 50) -> Array:
    plant = RigidPlant(ARM, faults=faults)
    plant.reset(START, SPEED)
    rows = []
    for _ in range(count):
        plant.write(Command(tau))
        assert np.array_equal(plant.read().tau, tau)  # the hardware does not know of its fault
        assert not np.any(plant.truth().tau_ext)  # and nobody pushes
        rows.append(np.concatenate((plant.read().q, plant.read().qd)))
    return np.array(rows)


def test_loss_and_offset_are_another_torque() -> None:
    changed = TAU * [1.0, 0.25, 1.0, 1.0, 1.0, 1.0] + [0.0, 0.0, 0.0, 1.5, 0.0, 0.0]
    faults: list[Fault] = [TorqueLoss(joint=2, factor=0.25), TorqueOffset(joint=4, torque=1.5)]
    assert np.array_equal(motion(faults, TAU), motion([], changed))
    assert not np.allclose(motion([], TAU)[-1], motion([], changed)[-1], atol=1e-3)


def test_a_fault_acts_in_its_periods_only() -> None:
    actuators = Actuators(ARM.tau_max, [TorqueOffset(1, 5.0, start=0.3, duration=0.2)])
    acted = [float(actuators.apply(np.zeros(6), (k + 0.5) * 1e-3)[0]) for k in range(1000)]
    assert acted == [0.0] * 300 + [5.0] * 200 + [0.0] * 500


def test_a_brake_keeps_the_momentum_of_the_free_joints(rng: np.random.Generator) -> None:
    """The brakes' impulse has no part on the free joints: M (qd' - qd) is zero there."""
    for stuck in ((1,), (0, 4), (0, 1, 2, 3, 4, 5)):
        M, qd = ARM.mass_matrix(rng.uniform(-2.0, 2.0, 6)), rng.uniform(-1.0, 1.0, 6)
        after = braked(M, qd, stuck)
        assert not np.any(after[list(stuck)])
        impulse = np.delete(M @ (after - qd), stuck)
        assert np.max(np.abs(impulse), initial=0.0) < 1e-12  # rounding of numbers of order 1


def test_a_stuck_joint_stands_and_the_others_move_as_an_arm_without_it() -> None:
    """Until it is released. Checked against Lagrange: the free joints' own equations, tau - bias = M_ff qdd there."""
    plant = RigidPlant(ARM, 1e-4, faults=[Stuck(joint=2, start=0.01, duration=0.02)])
    plant.reset(START, SPEED)
    held, free = None, [0, 2, 3, 4, 5]
    for k in range(500):
        before = plant.read()
        plant.write(Command(TAU))
        state = plant.read()
        if 100 <= k < 300:
            held = before.q[1] if held is None else held
            assert (state.qd[1], state.q[1]) == (0.0, held)
            if k > 100:  # not across the impact
                qdd = (state.qd - before.qd) / 1e-4
                balance = ARM.inverse_dynamics(before.q, before.qd, qdd) - TAU
                # differences of first order: 1e-4 s times the jerk, inertia of a few kg m2
                assert np.max(np.abs(balance[free])) < 0.02
                assert abs(balance[1]) > 1.0  # what the brake holds
    assert abs(plant.read().qd[1]) > 1e-3


def test_misuse_is_refused() -> None:
    for fault, message in (
        (Stuck(0), "joint of a fault: got 0, valid are 1 to 6"),
        (TorqueLoss(1, 1.5), "0 to 1"),
        (TorqueOffset(1, np.nan), "finite"),
        (Stuck(1, start=0.0, duration=-1.0), "lasts > 0 s"),
    ):
        with pytest.raises(InvalidValue, match=message):
            RigidPlant(ARM, faults=[fault])
