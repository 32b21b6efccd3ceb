"""ReplaySource gives back the recording, and says when it is over; PlantLost from a plant that falls silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, TangereError
from tangere.plants import PlantLost, Push, ReplaySource, RigidPlant, SensorModel
from tangere.types import Array, Command, Plant, Source, State


def recording(count: int = 200) -> dict[str, Array]:
    """A run with lost samples (irregular periods) of a pushed arm."""
    arm = tangere.robot("ur10e")
    plant = RigidPlant(arm, sensors=SensorModel(loss=0.2, seed=4), pushes=[Push(2, 20.0, 0.05, 0.05)])
    states: list[State] = [plant.reset(np.ones(6))]
    while len(states) < count:
        plant.write(Command(arm.gravity_torque(plant.read().q)))
        if plant.read() is not states[-1]:
            states.append(plant.read())
    names = ("time", "period", "q", "qd", "tau", "wrench")
    return {name: np.array([getattr(state, name) for state in states]) for name in names}


def test_it_returns_the_log() -> None:
    log = recording()
    source = ReplaySource.of(log)
    assert source.period == pytest.approx(1e-3, rel=1e-9)
    assert source.duration == pytest.approx(log["time"][-1])
    state = source.start()
    for k in range(200):
        assert state is not None
        for name in ("q", "qd", "tau", "wrench", "time"):
            assert np.array_equal(getattr(state, name), log[name][k])
        assert state.period == pytest.approx(log["period"][k], abs=1e-12)
        state = source.read()
    assert state is None
    assert source.read() is None
    assert source.start().time == 0.0  # from the beginning again
    source.close()
    source.close()


def test_stamps_may_start_anywhere_and_wrench_may_be_absent() -> None:
    t = np.array([100.0, 100.01, 100.03])
    source: Source = ReplaySource(t, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)), qd_target=np.ones((3, 2)))
    assert source.dof == 2
    first = source.start()
    assert first.wrench is None
    assert np.array_equal(first.qd_target, np.ones(2))
    source.read()
    last = source.read()
    assert last is not None
    assert last.time == pytest.approx(0.03, abs=1e-12)
    assert last.period == pytest.approx(0.02, abs=1e-12)


def test_a_real_recording(data_dir: Path) -> None:
    """A UR10e at 100 Hz with jitter: periods are kept as they are."""
    table = np.loadtxt(data_dir / "ur10e_contacts" / "ur-static.csv", delimiter=",", ndmin=2)
    rising = np.concatenate(([True], np.diff(table[:, 0]) > 0.0))
    t, q, qd, current = table[rising, 0], table[rising, 1:7], table[rising, 7:13], table[rising, 13:19]
    source = ReplaySource(t, q, qd, current * tangere.robot("ur10e").drives.gain)
    periods, state = [], source.start()
    while state is not None:
        periods.append(state.period)
        state = source.read()
    assert periods[1:] == pytest.approx(np.diff(t), abs=1e-12)
    assert max(periods) > 1.1 * source.period  # it does jitter: 10 to 12 ms and more


def test_misuse_is_refused() -> None:
    good = recording(5)
    for change, message in (
        ({"time": good["time"][::-1]}, "must rise"),
        ({"time": good["time"][:4]}, r"q: shape \(4, n\)"),
        ({"qd": good["qd"][:, :5]}, r"qd: shape \(5, 6\)"),
        ({"wrench": good["wrench"][:, :5]}, "wrench"),
        ({"time": [0.0]}, "two finite stamps"),
    ):
        with pytest.raises(InvalidValue, match=message):
            ReplaySource.of({**good, **change})
    del good["tau"]
    with pytest.raises(InvalidValue, match="missing: tau"):
        ReplaySource.of(good)


class FailingPlant:
    """A test double: any plant, that stops answering after some samples."""

    def __init__(self, plant: Plant, samples: int) -> None:
        self.plant, self.left = plant, samples
        self.period, self.dof = plant.period, plant.dof

    def reset(self, q: Array, qd: Array | None = None) -> State:
        return self.plant.reset(q, qd)

    def read(self) -> State:
        self.left -= 1
        if self.left < 0:
            raise PlantLost("no sample for 100 ms")
        return self.plant.read()

    def write(self, command: Command) -> None:
        self.plant.write(command)

    def close(self) -> None:
        self.plant.close()


def test_a_plant_that_falls_silent() -> None:
    plant: Plant = FailingPlant(RigidPlant(tangere.robot("ur5e")), samples=3)
    for _ in range(3):
        plant.write(Command(plant.read().tau))
    with pytest.raises(TangereError, match="no sample"):
        plant.read()
    plant.close()
