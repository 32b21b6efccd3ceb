"""SensorModel: noise of the size it says, readings on their grid, late and lost samples, all repeatable."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, UnknownName
from tangere.plants import Push, RigidPlant, SensorModel
from tangere.plants.sensors import Sensors
from tangere.types import Array, Command, State

H = 1e-3
ZERO, Z6 = np.zeros(6), np.zeros(6)


def readings(model: SensorModel | None, count: int, truth: Array | None = None, period: float = H) -> list[State]:
    """`count` samples; q of sample k is k (or a row of truth), the rest zero."""
    sensors = Sensors(model, 6, period)
    rows = np.repeat(np.arange(count, dtype=float)[:, None], 6, axis=1) if truth is None else truth
    states = [sensors.first(rows[0], ZERO, ZERO, Z6)]
    return states + [sensors.next(k * period, rows[k], ZERO, ZERO, Z6) for k in range(1, count)]


def test_the_default_is_ideal() -> None:
    truth = np.random.default_rng(1).normal(size=(50, 6))
    for model in (None, SensorModel()):
        states = readings(model, 50, truth)
        assert np.array_equal([s.q for s in states], truth)
        assert [s.period for s in states] == [H] * 50


def test_noise_has_its_size_and_is_white() -> None:
    """Of 20 000 samples a standard deviation is known to 0.5 %, mean and correlation to 0.7 %: five of each allowed."""
    sizes = {"q": 1e-4 * np.arange(1, 7), "qd": np.full(6, 2e-3), "tau": np.arange(6) * 0.5, "wrench": np.full(6, 3.0)}
    count = 20_000
    states = readings(SensorModel(**{f"noise_{k}": v for k, v in sizes.items()}, seed=3), count, np.zeros((count, 6)))
    for key, size in sizes.items():
        noise = np.array([getattr(s, key) for s in states])
        assert np.std(noise, axis=0) == pytest.approx(size, rel=0.025)
        used = noise[:, size > 0.0] / size[size > 0.0]
        assert np.max(np.abs(np.mean(used, axis=0))) < 0.035
        assert np.max(np.abs(np.mean(used[1:] * used[:-1], axis=0))) < 0.035
        assert np.max(np.abs(np.corrcoef(used.T) - np.eye(used.shape[1]))) < 0.035


def test_quantised_readings_lie_on_the_grid() -> None:
    step = np.array([0.1, 0.01, 0.0, 0.003, 1.0, 0.1])
    truth = np.random.default_rng(2).normal(size=(500, 6))
    q = np.array([s.q for s in readings(SensorModel(step_q=step), 500, truth)])
    assert np.array_equal(q[:, 2], truth[:, 2])  # a step of 0 leaves the joint alone
    grid = step > 0.0
    assert np.max(np.abs(q - truth)[:, grid] / step[grid]) <= 0.5 + 1e-9
    assert np.max(np.abs(q[:, grid] / step[grid] - np.rint(q[:, grid] / step[grid]))) < 1e-9


def test_a_delay_is_whole_samples_and_unknown_to_the_reader() -> None:
    states = readings(SensorModel(delay=3), 20)
    assert [s.q[0] for s in states] == [0.0, 0.0, 0.0] + [float(k) for k in range(17)]
    assert [s.time for s in states] == [k * H for k in range(20)]
    assert {s.period for s in states} == {H}


def test_a_lost_sample_repeats_the_last_and_the_period_grows() -> None:
    """30 % lost of 5000: 0.3 +- 0.032 is five standard deviations. Periods always sum up to the time."""
    states = readings(SensorModel(loss=0.3, seed=5), 5000)
    assert states[0].q[0] == 0.0
    lost = 0
    for k in range(1, 5000):
        before, state = states[k - 1], states[k]
        if state is before:
            lost += 1
        else:
            assert (state.q[0], state.time) == (k, k * H)
            assert state.period == pytest.approx(state.time - before.time, abs=1e-12)
    assert lost / 5000 == pytest.approx(0.3, abs=0.032)
    assert max(s.period for s in states) > 2.5 * H


def test_seeds_repeat_bit_by_bit() -> None:
    arm = tangere.robot("ur10e")

    def run(plant: RigidPlant) -> list[Array]:
        plant.reset([0.0, -1.0, 1.0, 0.0, 1.0, 0.0])
        out = []
        for _ in range(50):
            state = plant.read()
            out.append(np.concatenate((state.q, state.qd, state.tau, [state.time, state.period])))
            plant.write(Command(arm.gravity_torque(state.q)))
        return out

    def plant(seed: int) -> RigidPlant:
        return RigidPlant(arm, sensors=SensorModel(noise_q=1e-4, noise_qd=1e-3, noise_tau=0.1, loss=0.1, seed=seed))

    one = plant(7)
    first = run(one)
    assert np.array_equal(first, run(one))  # reset starts the sequence anew
    assert np.array_equal(first, run(plant(7)))
    assert not np.array_equal(first, run(plant(8)))


def test_the_truth_stays_clean() -> None:
    arm = tangere.robot("ur10e")
    push = Push(link=6, force=(0.0, 0.0, 10.0))
    noisy = RigidPlant(arm, pushes=[push], sensors=SensorModel(noise_q=0.1, noise_wrench=1.0))
    clean = RigidPlant(arm, pushes=[push])
    for plant in (noisy, clean):
        plant.reset(np.ones(6))
        for _ in range(10):
            plant.write(Command(np.ones(6)))
    a, b = noisy.truth(), clean.truth()
    assert all(np.array_equal(getattr(a, key), getattr(b, key)) for key in ("q", "qd", "tau_ext", "T", "wrench"))
    assert np.std(noisy.read().q - a.q) > 0.01
    assert noisy.read().wrench is not None
    assert np.std(np.asarray(noisy.read().wrench) - a.wrench) > 0.1
    assert RigidPlant(arm, force_sensor=False, sensors=SensorModel(noise_wrench=1.0)).reset(np.ones(6)).wrench is None


def test_the_preset_has_the_same_noise_density_at_any_rate() -> None:
    """Averaged over 10 ms the torque noise is what was measured at 100 Hz; 2000 averages tell 1.6 %, five allowed."""
    measured = np.array([2.3, 2.0, 0.9, 0.29, 0.43, 0.30])
    for period, block in ((1e-3, 10), (2e-3, 5), (1e-2, 1)):
        model = SensorModel.preset("ur10e", period, seed=11)
        count = 2000 * block
        states = readings(model, count, np.zeros((count, 6)), period)
        means = np.array([s.tau for s in states]).reshape(2000, block, 6).mean(axis=1)
        assert np.std(means, axis=0) == pytest.approx(measured, rel=0.08)
        assert np.std([s.qd for s in states]) == pytest.approx(0.002, rel=0.03)


def test_misuse_is_refused() -> None:
    with pytest.raises(UnknownName, match="known: ur10e"):
        SensorModel.preset("ur99", H)
    with pytest.raises(InvalidValue, match="period"):
        SensorModel.preset("ur10e", 0.0)
    for model, message in (
        (SensorModel(noise_q=-1.0), "noise_q"),
        (SensorModel(noise_qd=[1.0, 2.0]), "noise_qd: one number or 6"),
        (SensorModel(step_tau=np.nan), "step_tau"),
        (SensorModel(delay=-1), "delay"),
        (SensorModel(delay=1.5), "delay"),  # type: ignore[arg-type]
        (SensorModel(loss=1.0), "loss"),
    ):
        with pytest.raises(InvalidValue, match=message):
            Sensors(model, 6, H)
