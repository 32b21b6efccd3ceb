"""A hand's spring on a simulated arm: its force, its cap, the torque that joints feel, and the log of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tangere
from tangere.control import ComputedTorque
from tangere.errors import InvalidValue
from tangere.loop.run import run
from tangere.loop.sinks import LiveChannel
from tangere.observe import MomentumObserver
from tangere.plants import Load, MujocoPlant, Pull, Release, RigidPlant

Q = np.deg2rad([10.0, -90.0, 80.0, -70.0, -90.0, 20.0])


def pulled_run(make, link, point, offset, until=2.5, **more):
    """A run that is pulled from its first period on; plant, result, and the pull."""
    arm = tangere.robot("ur10e")
    T = arm.link_poses(Q)[link - 1]
    target = T[:3, :3] @ np.array(point) + T[:3, 3] + np.array(offset)
    pull = Pull(link, tuple(point), tuple(target.tolist()), **more)
    plant, live = make(arm, 2e-3), LiveChannel()
    live.put(pull)
    result = run(plant, ComputedTorque(arm, Q), MomentumObserver(arm), until=until, start=Q, live=live)
    return arm, plant, result, pull


@pytest.mark.parametrize("make", [RigidPlant, MujocoPlant])
@pytest.mark.parametrize("link", [2, 3, 6])
def test_at_rest_the_spring_is_felt_as_its_torque(make, link):
    arm, plant, result, pull = pulled_run(make, link, (0.02, 0.03, 0.04), (0.01, -0.03, 0.02))
    q, residual = result.log["q"][-1], result.log["residual"][-1]
    T = arm.link_poses(q)[link - 1]
    stretched = np.array(pull.target) - (T[:3, :3] @ np.array(pull.point) + T[:3, 3])
    assert np.linalg.norm(stretched) > 0.005  # the spring still pulls
    force = 1500.0 * stretched
    J = arm.jacobian(q, link=link, point=pull.point)[:3]
    assert plant.pulled.force == pytest.approx(force, rel=0.01)
    assert residual == pytest.approx(J.T @ force, abs=0.05)
    assert result.log["tau_ext_true"][-1] == pytest.approx(residual, abs=0.05)


def test_the_force_is_never_above_its_cap():
    _, plant, _, _ = pulled_run(RigidPlant, 5, (0.0, 0.0, 0.1), (0.0, 0.4, 0.0), until=0.5, force_max=40.0)
    assert np.linalg.norm(plant.pulled.force) <= 40.0 * (1 + 1e-12)
    assert np.linalg.norm(plant.pulled.force) == pytest.approx(40.0)


@pytest.mark.parametrize("make", [RigidPlant, MujocoPlant])
def test_while_it_pulls_nobody_sees_it_let_go(make):
    """A sink reads `pulled` from a thread of its own, at any instant of a period: None is set by a release only."""
    told = []

    class Watched(make):
        def __setattr__(self, name, value):
            if name == "pulled":
                told.append(value is not None)
            super().__setattr__(name, value)

    pulled_run(Watched, 3, (0.0, 0.0, 0.1), (0.0, 0.02, 0.0), until=0.05)
    assert told.count(True) == 25  # periods
    assert all(told[told.index(True) :])


def test_after_release_nothing_acts_and_the_log_names_both_with_their_time():
    arm = tangere.robot("ur10e")
    live, plant = LiveChannel(), RigidPlant(arm, 2e-3)

    class Later:
        def take(self, time):
            if 0.5 <= time < 0.502:
                return [Release("enough")]
            return live.take(time)

    live.put(Pull(4, (0.0, 0.0, 0.0), (0.3, 0.3, 0.5)))
    result = run(plant, ComputedTorque(arm, Q), MomentumObserver(arm), until=1.0, start=Q, live=Later())
    notes = [(note.time, json.loads(note.text)) for note in result.log.notes if note.text.startswith("{")]
    assert [(time, told["live"]) for time, told in notes] == [(0.0, "pull"), (0.5, "release")]
    assert notes[0][1]["target"] == [0.3, 0.3, 0.5]
    assert plant.pulled is None
    after = result.log.time > 0.503
    assert not np.any(result.log["tau_ext_true"][after])
    assert np.any(result.log["tau_ext_true"][result.log.time < 0.5])


@pytest.mark.parametrize("make", [RigidPlant, MujocoPlant])
def test_a_load_is_felt_until_it_is_replaced(make):
    arm = tangere.robot("ur10e")
    torque = np.array([1.0, -20.0, 3.0, 0.5, 0.2, 0.0])  # without its rotor joint 6 would reach its limit

    class Twice:
        def take(self, time):
            return [Load(tuple(torque * (time < 1.0)))] if time < 0.001 or 1.0 <= time < 1.002 else []

    plant = make(arm, 2e-3)
    result = run(plant, ComputedTorque(arm, Q), MomentumObserver(arm), until=2.0, start=Q, live=Twice())
    time, residual = result.log.time, result.log["residual"]
    assert residual[time < 0.999][-1] == pytest.approx(torque, abs=0.05)
    assert residual[-1] == pytest.approx(np.zeros(6), abs=0.05)
    assert result.log["tau_ext_true"][time < 0.999][-1] == pytest.approx(torque)
    with pytest.raises(InvalidValue, match="6 finite torques"):
        plant.load(Load((1.0, 2.0)))


def test_a_pull_that_cannot_be_is_refused_in_the_log_and_the_run_goes_on():
    arm = tangere.robot("ur10e")
    live = LiveChannel()
    live.put(Pull(7, (0.0, 0.0, 0.0), (0.3, 0.3, 0.5)))
    result = run(RigidPlant(arm, 2e-3), ComputedTorque(arm, Q), until=0.1, start=Q, live=live)
    assert result.log.notes[0].text.startswith("live: refused: link of a pull: got 7, valid are 1 to 6")
    assert not result.aborted
    with pytest.raises(InvalidValue, match="finite"):
        RigidPlant(arm).pull(Pull(1, (0.0, 0.0, 0.0), (float("nan"), 0.0, 0.0)))
