"""Observers side by side: the figures of the table mean what they say, and the six are ranked as theory has it.

The run: a UR10e that swings all joints under computed torque at 500 Hz, 10 % heavier than every model of it, with the
noise of a real one, and 20 Nm on joint 2 from 6 s on.
"""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.errors import InvalidValue
from tangere.observe.compare import all_observers, compare
from tangere.planning.joint_motions import Sine
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin
from tangere.types import State

ONSET, END, H, PUSH = 6.0, 8.0, 2e-3, 20.0
Q0 = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e", rotor_inertia=True)


def run(robot, mass=1.0, noise=True):
    sensors = SensorModel.preset("ur10e", H, seed=3) if noise else None
    plant = RigidPlant(
        twin(robot, mass=mass), H, substeps=2, sensors=sensors, pushes=[Push(2, PUSH, ONSET)], force_sensor=False
    )
    swing = Sine(robot, Q0, [0.3, 0.3, 0.3, 0.4, 0.4, 0.4], [0.25, 0.2, 0.3, 0.35, 0.4, 0.45])
    controller = ComputedTorque(robot, swing)
    state = plant.reset(Q0)
    controller.start(state)
    samples, truth = [state], [np.zeros(6)]
    for _ in range(round(END / H)):
        plant.write(controller.step(state))
        state = plant.read()
        samples.append(state)
        truth.append(plant.truth().tau_ext)
    return samples, np.array(truth)


@pytest.fixture(scope="module")
def perfect(robot):
    samples, truth = run(robot, noise=False)
    rows = compare(all_observers(robot), samples, truth, joint=2, onset=ONSET, rounds=1)
    return {row.name: row for row in rows}


@pytest.fixture(scope="module")
def real(robot):
    samples, truth = run(robot, mass=1.1)
    rows = compare(all_observers(robot), samples, truth, joint=2, onset=ONSET, rounds=1)
    return {row.name: row for row in rows}


def test_perfect_data_show_the_lag_of_each(perfect):
    # half of a step: ln 2 / K = 13.9 ms for a first-order lag; 1.011 sqrt(2) / K = 28.6 ms for Butterworth's, where
    # e^-s (cos s + sin s) = 1/2 at s = 1.011; nothing for none
    half = {"momentum": 0.0139, "acceleration, filtered": 0.0139, "filtered dynamics": 0.0286, "acceleration, raw": 0.0}
    for name, seconds in half.items():
        assert 0.0 <= perfect[name].half_rise - seconds <= H + 1e-9, name
    # what is left of 20 Nm after 0.1 s: e^-5, and e^-s |cos s + sin s| at s = 5 / sqrt(2)
    left = {"momentum": 0.135, "acceleration, filtered": 0.135, "filtered dynamics": 0.763, "acceleration, raw": 0.0}
    for name, torque in left.items():
        assert abs(perfect[name].peak_error - torque) < 0.1 * torque + 1e-3, name
    for name, row in perfect.items():
        assert row.delay <= 2 * H + 1e-9, name  # nothing but the push is in the residual
        assert row.peak_error < 0.8, name


def test_with_a_wrong_mass_and_noise_all_err_alike_but_for_the_raw_acceleration(real):
    names = ["momentum", "disturbance", "kalman", "filtered dynamics", "acceleration, filtered"]
    filtered = [real[name].rms for name in names]
    # the 10 % of mass, about 6 Nm, is in all of them
    assert 4.0 < min(filtered) <= max(filtered) < 9.0
    assert max(filtered) < 1.2 * min(filtered)
    assert real["acceleration, raw"].rms > 1.5 * max(filtered)
    assert real["sliding mode"].peak_error > real["momentum"].peak_error


def test_the_figures_mean_what_they_say(robot):
    """An observer that answers what it is told: 1 Nm of noise until the push, then a ramp of 1 Nm per sample."""

    class Told:
        def reset(self, state):
            self.k = 0

        def update(self, state):
            self.k += 1
            r = np.zeros(6)
            r[1] = (-1.0) ** self.k if self.k <= 300 else min(self.k - 300.0, PUSH)
            return r

    nothing = np.zeros(6)
    samples = [State(H * k, H, nothing, nothing, nothing) for k in range(501)]
    truth = np.zeros((501, 6))
    truth[301:, 1] = PUSH
    (row,) = compare({"told": Told()}, samples, truth, joint=2, onset=300 * H)
    assert row.delay == pytest.approx(2 * H)  # 2 Nm is the first above 1 Nm
    assert row.half_rise == pytest.approx(10 * H)
    assert row.peak_error == 1.0
    assert row.rms == pytest.approx(np.sqrt(250 / 400))  # 1 Nm in 250 of the 250 + 150 samples that count
    assert np.array_equal(row.rms_all[[0, 2, 3, 4, 5]], np.zeros(5))
    assert 0.0 < row.cost < 1e-3


def test_misuse_is_refused(robot):
    samples = [State(H * k, H, np.zeros(6), np.zeros(6), np.zeros(6)) for k in range(200)]
    truth = np.zeros((200, 6))
    with pytest.raises(InvalidValue, match="tau_ext"):
        compare({}, samples, truth[1:], joint=2, onset=0.2)
    with pytest.raises(InvalidValue, match="joint: from 1 to 6, got 0"):
        compare({}, samples, truth, joint=0, onset=0.2)
    with pytest.raises(InvalidValue, match="onset"):
        compare({}, samples, truth, joint=2, onset=0.05)
