"""Thresholds: tails of known distributions, a rate that is kept, tables that read back, data too short that say so."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.observe.detect import Detector, FreeMotion, Thresholds, detect, tune
from tangere.observe.detect.margin import Tail, cluster_maxima, clusters, fitted
from tangere.observe.detect.scales import Watched, grown_spread, scales
from tangere.observe.detect.tuning import watched
from tangere.observe.drive_model import DriveModel

N = 6


def _free(seed: int, seconds: float, h: float = 0.01, heavy: bool = False) -> FreeMotion:
    """Noise behind a lag of 50/s, on joints that all move all the time."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, h)
    noise = rng.laplace(size=(len(time), N)) if heavy else rng.normal(size=(len(time), N))
    a = np.exp(-50.0 * h)
    r = np.empty_like(noise)
    state = np.zeros(N)
    for k, y in enumerate(noise * np.array([2.0, 2.0, 1.0, 0.3, 0.3, 0.3])):
        state = a * state + (1.0 - a) * y
        r[k] = state
    qd = np.full((len(time), N), 0.3)
    return FreeMotion(time, r, qd, f"noise {seed}", f"{seed:064x}")


def test_tail_of_normal_noise_reaches_its_return_level() -> None:
    """One in 1e6 of |x| is 4.89; from 2e4 samples, a factor of 50 beyond them. Median of 30 trials: 0.3 / sqrt(20)."""
    found = []
    for seed in range(30):
        x = np.random.default_rng(seed).normal(size=20000) ** 2
        u = float(np.quantile(x, 0.99))
        maxima = cluster_maxima(np.arange(len(x), dtype=np.float64), x, u, 0.5)
        assert len(maxima) == np.sum(x > u)  # apart by less than a sample: all of them
        found.append(fitted(maxima, u, float(len(x)), 1.7).level(1e-6))
    assert np.median(np.sqrt(found)) == pytest.approx(4.89, rel=0.04)
    tail = fitted(maxima, u, float(len(x)), 1.7)
    assert tail.rate(tail.level(1e-6)) == pytest.approx(1e-6)
    heavy = Tail(u, 1.5, 0.2, 0.01)
    assert heavy.rate(heavy.level(1e-5)) == pytest.approx(1e-5)


@pytest.mark.parametrize("shape", [0.0, 0.1, 0.2])
def test_scale_and_shape_of_a_known_tail_are_found_again(shape: float) -> None:
    """A generalised Pareto distribution at even probabilities: x = 3 ((1 - p)^-shape - 1)/shape above 5."""
    p = (np.arange(20000) + 0.5) / 20000
    x = 3.0 * (-np.log1p(-p) if shape == 0.0 else np.expm1(-shape * np.log1p(-p)) / shape)
    tail = fitted(5.0 + x, 5.0, 1e4, 3.0)
    assert tail.shape == pytest.approx(shape, abs=0.005)
    assert tail.scale == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.3])
def test_a_level_is_exceeded_at_its_rate(shape: float) -> None:
    tail = Tail(2.0, 0.5, shape, 0.1)
    for rate in (0.0999, 0.095, 0.05, 1e-6):
        assert tail.rate(tail.level(rate)) == pytest.approx(rate, rel=1e-9)
    assert tail.level(0.1) == tail.level(1.0) == 2.0


def test_clusters_count_once() -> None:
    time = np.arange(0.0, 10.0, 0.01)
    x = np.zeros(len(time))
    x[100:150], x[180], x[600] = 2.0, 5.0, 3.0
    np.testing.assert_array_equal(cluster_maxima(time, x, 1.0), [5.0, 3.0])
    assert clusters(time, x, 1.0)[1].tolist() == [180, 600]
    assert len(cluster_maxima(time, x, 9.0)) == 0
    assert len(clusters(time, x, 9.0)[1]) == 0


def test_a_spread_that_grows_with_jumps_is_found_again(rng: np.random.Generator) -> None:
    jumps = rng.exponential(size=(40000, N)) ** 2
    true = np.array([0.5, 0.2, 0.0, 0.0, 0.05, 0.0, 0.0])
    x = rng.standard_normal(len(jumps)) * np.sqrt(true[0] + jumps @ true[1:])
    found = grown_spread(x**2, jumps)
    assert found == pytest.approx(true, abs=0.05)
    still = grown_spread(x**2, np.zeros_like(jumps))
    assert still[0] == pytest.approx(float(np.mean(x**2)), rel=0.1)
    assert not still[1:].any()


@pytest.mark.parametrize("heavy", [False, True])
def test_keeps_the_rate_that_it_promised(heavy: bool) -> None:
    """60/h from 3 minutes; then 10 minutes unseen: at most 10 expected. P(more than 17 | 10) = 1.4 %."""
    thresholds = tune([_free(1, 180.0, heavy=heavy)], 60.0)
    assert thresholds.rate == 60.0
    other = _free(2, 600.0, heavy=heavy)
    events = detect(Detector(thresholds), other.time, other.residual, np.zeros_like(other.qd), other.qd)
    assert len([event for event in events if event.alarm]) <= 17
    # and is not kept by thresholds so high that nothing is found: eight standard deviations of the noise behind its lag
    assert thresholds.change[0, 0] < 8.0 * other.residual[:, 0].std()


def test_logs_stand_one_after_the_other_wherever_their_clocks_begin() -> None:
    """No excursion of one may count with the next: ten seconds lie between, and what is seen of each is its own."""
    one = _free(1, 30.0)
    late = FreeMotion(one.time + 1e4, one.residual, one.qd, one.name, one.digest)
    alone, both = watched([one], 50.0, 0.02), watched([one, late], 50.0, 0.02)
    first, second = np.split(both.time, 2)
    assert np.array_equal(first, alone.time)
    assert second == pytest.approx(alone.time + np.ptp(one.time) + 10.0)
    assert both.values == pytest.approx(np.concatenate([alone.values] * 2), abs=1e-6)  # stamps of 1e4 s are rounded
    assert both.seconds == pytest.approx(2 * alone.seconds)


def test_what_comes_just_before_a_stop_is_left_out_with_it() -> None:
    """Currents jump some samples before the velocities show that the arm stops."""
    calm = _free(1, 30.0)
    r, qd = calm.residual.copy(), calm.qd.copy()
    at = int(np.searchsorted(calm.time, 20.0))
    r[at - 3 : at] += 50.0
    qd[at : at + 3], qd[at + 3 :] = 0.05, 0.0
    seen = watched([FreeMotion(calm.time, r, qd)], 50.0, 0.02)
    assert seen.stops == 1
    assert np.abs(seen.values[seen.time < 20.0]).max() < 10.0
    assert seen.time[seen.time < 20.0].max() > 19.8


def test_rarer_alarms_need_higher_thresholds() -> None:
    motions = [_free(1, 120.0)]
    often, rarely = tune(motions, 10.0), tune(motions, 0.1)
    assert np.all(rarely.level >= often.level)
    assert np.all(rarely.change[0] > often.change[0])


def _jolted(motion: FreeMotion, seed: int, every: float, size: float) -> FreeMotion:
    """The same motion with a jolt every so many seconds: speed and residual of joint 2 jump there and swing back."""
    rng = np.random.default_rng(seed)
    r, qd = motion.residual.copy(), motion.qd.copy()
    for t in np.arange(1.0, motion.time[-1] - 1.0, every):
        k = int(np.searchsorted(motion.time, t))
        way = rng.choice((-1.0, 1.0))
        r[k : k + 3, 1] += size * way * np.array([0.7, 1.0, 0.5])
        qd[k : k + 3, 1] += 0.1 * way * np.array([1.0, -1.0, 0.3])
    return FreeMotion(motion.time, r, qd, motion.name + "j", motion.digest)


def test_jolts_do_not_make_steady_motion_blinder() -> None:
    """Logs full of jolts beside the same free ones: what is felt in steady motion stays, what is felt in a jolt not."""
    calm = [_free(seed, 60.0) for seed in range(1, 5)]
    alone = tune(calm, 1.0)
    with_jolts = tune([*calm, *(_jolted(_free(seed, 60.0), seed, 2.0, 8.0) for seed in range(5, 9))], 1.0)
    assert with_jolts.level[0] == pytest.approx(alone.level[0], rel=0.1)
    assert with_jolts.change[0] == pytest.approx(alone.change[0], rel=0.1)
    assert with_jolts.jolt[1, 1, 1] > 10.0 * alone.jolt[1, 1, 1]
    # and the jolts of others raise no alarm, though they reach several thresholds of steady motion
    other = _jolted(_free(11, 60.0), 11, 2.0, 8.0)
    events = detect(Detector(with_jolts), other.time, other.residual, np.zeros_like(other.qd), other.qd)
    assert not events
    assert len(detect(Detector(alone), other.time, other.residual, np.zeros_like(other.qd), other.qd)) > 5


def test_further_shares_count_for_all_of_a_signal(rng: np.random.Generator) -> None:
    """Of jolts as well: what is learned beyond them is what the law needs for signals f times as large."""
    m = 300
    weights = rng.dirichlet(np.ones(3), (m, N)).transpose(0, 2, 1)
    weights[:200] = np.eye(3)[rng.integers(3, size=(200, N))].transpose(0, 2, 1)
    seen = Watched(
        np.arange(m) * 0.01, rng.normal(size=(m, 4, N)), weights, 3.0, 0, np.abs(rng.normal(size=(m, N))),
        np.zeros(m, dtype=np.int64),
    )  # fmt: skip
    known, jolt = scales(seen), 0.05 * rng.uniform(size=(4, N, N))
    further = np.array([1.0, 1.25, 1.1])
    left = known.beyond(seen, jolt, further)
    for k in range(200):
        for j in range(N):
            g = int(np.argmax(weights[k, :, j]))
            threshold = further[g] * known.still[:, g, j] * left[k, :, j]
            bound = np.sqrt(threshold**2 + jolt[:, j] @ seen.jump[k] ** 2)
            value = further[g] * np.abs(seen.values[k, :, j])
            np.testing.assert_allclose(np.maximum(value, bound), bound, rtol=1e-12)  # at the threshold, or below it
            np.testing.assert_allclose(bound[left[k, :, j] > 0.0], value[left[k, :, j] > 0.0], rtol=1e-9)


def test_a_promise_says_how_well_it_is_known() -> None:
    short, long = (tune([_free(k, seconds) for k in range(1, 7)], 10.0) for seconds in (20.0, 100.0))
    for thresholds in (short, long):
        assert thresholds.expected is not None
        low, high = thresholds.expected
        assert 0.0 < low < thresholds.rate < high
        assert f"{low:.2g} to {high:.2g} false alarms per hour" in thresholds.notes[0]
    assert long.expected is not None
    assert short.expected is not None
    assert long.expected[1] / long.expected[0] < short.expected[1] / short.expected[0]


def test_says_what_short_data_cannot_promise() -> None:
    thresholds = tune([_free(1, 30.0)], 0.1)
    assert thresholds.supported == pytest.approx(1.0 / (300.0 * thresholds.hours))
    assert thresholds.rate == thresholds.supported > 0.1
    assert any("cannot be promised" in note and "record" in note for note in thresholds.notes)
    assert thresholds.logs == (("noise 1", f"{1:064x}"),)
    with pytest.raises(InvalidValue, match="too short"):
        tune([_free(1, 2.0)], 0.1)
    with pytest.raises(InvalidValue, match="at least one"):
        tune([])
    with pytest.raises(InvalidValue, match="rate"):
        tune([_free(1, 10.0)], 0.0)
    with pytest.raises(InvalidValue, match="one shape"):
        FreeMotion(np.zeros(3), np.zeros((3, 6)), np.zeros((2, 6)))


def test_table_reads_back_and_refuses_what_it_does_not_know() -> None:
    thresholds = tune([_free(1, 30.0)], 5.0)
    table = thresholds.to_table()
    again = Thresholds.from_table(table)
    assert again.expected == thresholds.expected
    for name in ("level", "change", "impact", "shock", "spread", "correlation", "arm", "jolt", "speed"):
        np.testing.assert_array_equal(getattr(again, name), getattr(thresholds, name))
    assert again.to_table() == table
    untuned = Thresholds.of_drive(DriveModel.of(tangere.robot("ur10e").drives))
    assert not untuned.tuned
    assert "rate" not in untuned.to_table()  # nan is no plain number
    assert not Thresholds.from_table(untuned.to_table()).tuned
    assert Thresholds.from_table(untuned.to_table()).speed is None
    for change, words in (
        ({"schema": 1}, "tangere tune"), ({"speed": [0.0] * 6}, "speed"), ({"arm": [[1.0] * 6] * 6}, "arm"),
        ({"colour": 1}, "colour"), ({"level": [[1.0] * 6] * 2}, "level"),
        ({"arm": "high"}, "read"), ({"rate": -1.0}, "rate"), ({"impact": [[-1.0] * 6] * 3}, "impact"),
        ({"correlation": np.ones((6, 6)).tolist()}, "correlation"), ({"logs": [1]}, "read"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=words):
            Thresholds.from_table({**table, **change}, "model.toml: detection")
    with pytest.raises(InvalidValue, match="lacks"):
        Thresholds.from_table({"schema": 2, "level": table["level"]})
    with pytest.raises(InvalidValue, match="table"):
        Thresholds.from_table([1, 2])


def test_thresholds_of_a_drive_model_stand_above_its_stiction() -> None:
    drive = DriveModel.of(tangere.robot("ur10e").drives)
    thresholds = Thresholds.of_drive(drive)
    assert np.all(thresholds.level[1:] > drive.stiction)
    assert np.all(thresholds.level[0] <= thresholds.level[1])
    np.testing.assert_allclose(thresholds.scaled(2.0).change, 2.0 * thresholds.change)
    with pytest.raises(InvalidValue, match="factor"):
        thresholds.scaled(0.0)


def test_stiction_hides_a_part_of_a_push_on_a_joint_that_turns_or_stands() -> None:
    """A quarter above the lower of level and change; at rest a gear that holds 2 and 5 Nm takes these first."""
    level, change = np.array([[3.0, 1.0], [9.0, 9.0], [4.0, 8.0]]), np.array([[2.0, 4.0], [2.5, 4.5], [6.0, 7.0]])
    rows = np.ones((3, 2))
    known = Thresholds(level, change, rows, rows, rows, np.eye(2), np.zeros((3, 2, 2)))
    np.testing.assert_array_equal(known.felt([2.0, 5.0]), [[2.5, 1.25], [5.125, 10.625], [7.0, 13.75]])
