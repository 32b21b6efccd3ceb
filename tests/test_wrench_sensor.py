"""The wrist's sensor: noise, bias, drift, rate, delay and range as stated, and the same again with the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue, UnknownName
from tangere.plants.sensors import WithWrenchSensor, WrenchSensor
from tangere.types import Array, Command, State


class Rising:
    """A plant whose wrench is known: component i is i + 1000 times the time."""

    period, dof, adds = 1e-3, 6, frozenset[str]()

    def reset(self, q: Array, qd: Array | None = None) -> State:
        self.k = 0
        return self.read()

    def read(self) -> State:
        zero = np.zeros(6)
        return State(self.k * 1e-3, 1e-3, zero, zero, zero, np.arange(6.0) + self.k)

    def write(self, command: Command) -> None:
        self.k += 1

    def close(self) -> None:
        """Nothing."""


def readings(sensor: WrenchSensor | None, count: int) -> Array:
    plant = WithWrenchSensor(Rising(), sensor)
    states = [plant.reset(np.zeros(6))]
    for _ in range(count - 1):
        plant.write(Command(np.zeros(6)))
        states.append(plant.read())
    return np.array([s.wrench for s in states])


TRUE = np.arange(6.0) + np.arange(4000.0)[:, None]


def test_nothing_added_is_the_truth_and_none_measures_nothing() -> None:
    assert np.array_equal(readings(WrenchSensor(), 50), TRUE[:50])
    assert WithWrenchSensor(Rising(), None).reset(np.zeros(6)).wrench is None


def test_noise_has_its_standard_deviation_and_its_seed() -> None:
    """4000 samples: the standard deviation is known to 1.1 %, 5 % is more than 4 sigma."""
    error = readings(WrenchSensor.ideal(0.1, seed=3), 4000) - TRUE
    assert np.std(error[:, :3], axis=0) == pytest.approx(0.1, rel=0.05)
    assert np.std(error[:, 3:], axis=0) == pytest.approx(0.005, rel=0.05)
    assert np.array_equal(error, readings(WrenchSensor.ideal(0.1, seed=3), 4000) - TRUE)
    assert not np.array_equal(error, readings(WrenchSensor.ideal(0.1, seed=4), 4000) - TRUE)


def test_bias_is_constant_within_its_bound_and_drift_walks() -> None:
    error = readings(WrenchSensor(bias=4.0, seed=1), 100) - TRUE[:100]
    assert np.ptp(error, axis=0) == pytest.approx(0.0, abs=1e-9)
    assert np.all(np.abs(error) <= 4.0)
    assert np.max(np.abs(error)) > 0.5
    ends = [(readings(WrenchSensor(drift=2.0, seed=s), 250) - TRUE[:250])[-1] for s in range(60)]
    assert np.std(ends) == pytest.approx(2.0 * np.sqrt(0.25), rel=0.15)  # 360 values: 3.7 %, 4 sigma


def test_rate_holds_delay_is_late_and_range_cuts() -> None:
    held = readings(WrenchSensor(rate=250.0), 40)[:, 0]
    assert np.array_equal(held, 4.0 * (np.arange(40) // 4))
    late = readings(WrenchSensor(delay=3e-3), 40)[:, 0]
    assert np.array_equal(late, np.maximum(np.arange(40.0) - 3.0, 0.0))
    assert np.max(readings(WrenchSensor(range=20.0), 40)) == 20.0


def test_presets() -> None:
    """UR's figures for a UR5e: 50 N, 3.5 N, 4 N."""
    own = WrenchSensor.preset("builtin")
    assert own is not None
    assert np.asarray(own.range)[0] == 50.0
    assert np.asarray(own.bias)[0] == 4.0
    assert own.delay == 2e-3
    assert WrenchSensor.preset("none") is None
    with pytest.raises(UnknownName, match="ideal, builtin, none"):
        WrenchSensor.preset("wrist")
    with pytest.raises(InvalidValue, match="noise"):
        WithWrenchSensor(Rising(), WrenchSensor(noise=(1.0, 2.0)))
