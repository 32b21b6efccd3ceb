"""What holds whatever the numbers are: the start of time is arbitrary, no answer looks ahead, closing closes all."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from frozen_control import CONTROLLERS, PENS, controlled, pen, reacting
from test_detect import _log, _push, _thresholds
from test_observe_compare import run as observed
from test_reactions import KINDS
from test_wrench_sensor import Rising

import tangere
from tangere.identification import prior_drive
from tangere.observe.compare import all_observers
from tangere.observe.detect import Detector, Thresholds, detect
from tangere.observe.detect.refine import felt, sticking
from tangere.observe.detect.signals import Signals
from tangere.observe.friction_state import without_friction_state
from tangere.observe.isolation_added import added, observer_input
from tangere.observe.replay import replay_momentum
from tangere.plants.sensors import WithWrenchSensor, WrenchSensor
from tangere.types import State

LATER = 100.0  # s; stamps there round to 1.4e-14 s, a speed of 1 rad/s to as many rad: 1e-9 Nm behind a stiff loop
ROBOT = tangere.robot("ur10e", rotor_inertia=True)


# ----------------------------------------------------------------------------------------------------- start of time


@pytest.mark.parametrize("kind", KINDS)
def test_reactions_do_not_know_when_the_run_began(kind: str) -> None:
    assert reacting(kind, LATER) == pytest.approx(reacting(kind), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_controllers_do_not_know_when_the_run_began(kind: str) -> None:
    assert controlled(kind, LATER) == pytest.approx(controlled(kind), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", PENS)
def test_the_pen_does_not_know_when_the_run_began(name: str) -> None:
    one, two = pen(*PENS[name], listen=0.0), pen(*PENS[name], listen=0.0, by=LATER)
    # the plan's clock is its own; what waits for a time may wait one period more
    assert abs(len(one) - len(two)) <= 3
    assert list(dict.fromkeys(one[:, 0])) == list(dict.fromkeys(two[:, 0]))
    assert two[-1] == pytest.approx(one[-1], abs=1e-6)


def test_the_pen_listens_as_long_in_a_run_that_begins_later() -> None:
    one, two = pen(*PENS["soft"]), pen(*PENS["soft"], by=LATER)
    assert abs(len(one) - len(two)) <= 3


@pytest.fixture(scope="module")
def samples() -> list[State]:
    return observed(ROBOT, mass=1.1)[0][2600:3300]


@pytest.mark.parametrize("name", list(all_observers(ROBOT)))
def test_observers_do_not_know_when_the_run_began_and_do_not_look_ahead(name: str, samples: list[State]) -> None:
    rows = []
    for by, count in ((0.0, len(samples)), (LATER, len(samples)), (0.0, 300)):
        observer = all_observers(ROBOT)[name]
        moved = [dataclasses.replace(s, time=s.time + by) for s in samples[:count]]
        observer.reset(moved[0])
        rows.append(np.array([np.array(observer.update(s)) for s in moved[1:]]))
    assert np.array_equal(rows[0][:299], rows[2])
    # the raw acceleration divides speeds by periods, the others less
    assert rows[1] == pytest.approx(rows[0], rel=1e-6, abs=1e-6)


def _state(time: float, q: Any, qd: Any) -> State:
    return State(time, 0.0, q, qd, np.full(6, np.nan))


def _touched() -> tuple[Any, ...]:
    time = np.arange(0.0, 12.0, 0.004)
    tau = _push(time, 3.0, 3.2, 12.0) + _push(time, 6.0, 9.0, 7.0, joint=3, rise=0.4)
    q = np.tile([0.0, -1.2, 1.2, -1.2, -1.5, 0.0], (len(time), 1))
    return time, _log(tau, time), q, np.full((len(time), 6), 0.3)


def _compared(one: Any, two: Any, by: float) -> None:
    for name in ("time_s", "onset_s", "end_s", "residual_s"):
        first, second = getattr(one, name), getattr(two, name)
        assert (first is None) == (second is None)
        assert first is None or second == pytest.approx(first + by, abs=1e-9)
    for name in ("number", "kind", "joint", "channel", "masked", "alarm"):
        assert getattr(one, name) == getattr(two, name)
    assert two.residual_nm == pytest.approx(one.residual_nm, abs=1e-5)
    assert two.confidence == pytest.approx(one.confidence, abs=1e-5)


def test_the_detector_does_not_know_when_the_log_began() -> None:
    time, residual, q, qd = _touched()
    one, two = (detect(Detector(_thresholds()), time + by, residual, q, qd) for by in (0.0, LATER))
    assert len(one) == len(two) == 2
    for a, b in zip(one, two, strict=True):
        _compared(a, b, LATER)


@pytest.mark.parametrize("cut", [740, 760, 790, 1560, 2240, 2300])
def test_the_detector_does_not_look_ahead(cut: int) -> None:
    """What was raised by sample K, and how, is the same for a log that ends there."""
    time, residual, q, qd = _touched()
    whole, part = Detector(_thresholds()), Detector(_thresholds())
    part_events = [part.update(_state(time[k], q[k], qd[k]), residual[k]) for k in range(cut)]
    whole_events = [whole.update(_state(time[k], q[k], qd[k]), residual[k]) for k in range(len(time))][:cut]
    for one, two in zip(whole_events, part_events, strict=True):
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            _compared(one, two, 0.0)
    raised = [e.time_s for e in whole.events if e.time_s <= time[cut - 1]]
    assert [e.time_s for e in part.events] == raised


def test_the_threshold_detector_shifts_and_does_not_look_ahead() -> None:
    time, residual, q, qd, *_ = _touched()
    seen = []
    for by, count in ((0.0, len(time)), (LATER, len(time)), (0.0, 800)):
        detector = Detector(Thresholds.constant(2.0))
        seen.append([detector.update(_state(time[k] + by, q[k], qd[k]), residual[k]) for k in range(count)])
    raised = [[k for k, d in enumerate(row) if d is not None] for row in seen]
    assert raised[0] == raised[1]
    assert [k for k in raised[0] if k < 800] == raised[2]


def _feeling() -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    t = np.cumsum(rng.uniform(0.006, 0.014, 150))
    qd = 0.06 * np.sin(np.outer(t, [3.0, 5.0, 9.0, 2.0, 1.0, 4.0]) + np.arange(6.0)) + 0.01
    return t, rng.standard_normal((150, 6)) + np.arange(6.0), qd


def test_sticking_and_the_observers_input_do_not_look_ahead() -> None:
    t, y, qd = _feeling()
    for K in range(1, 150):
        assert np.array_equal(sticking(t, qd)[:K], sticking(t[:K], qd[:K]))
    assert np.array_equal(observer_input(t, y, 50.0)[:80], observer_input(t[:80], y[:80], 50.0))
    drive = prior_drive(ROBOT)
    whole = without_friction_state(drive, t, y, qd)
    assert np.array_equal(whole[:80], without_friction_state(drive, t[:80], y[:80], qd[:80]), equal_nan=True)
    q = np.cumsum(qd, axis=0) * 0.01
    whole = replay_momentum(ROBOT, t, q, qd, y)
    assert np.array_equal(whole[:80], replay_momentum(ROBOT, t[:80], q[:80], qd[:80], y[:80]))
    assert replay_momentum(ROBOT, t + LATER, q, qd, y) == pytest.approx(whole, abs=1e-6)


def test_signals_do_not_look_ahead_and_shift() -> None:
    t, y, qd = _feeling()
    rows = []
    for by, count in ((0.0, 150), (LATER, 150), (0.0, 90)):
        signals = Signals(6)
        kept = []
        for k in range(count):
            signals.update(t[k] + by, y[k], qd[k])
            kept.append(signals.values.copy())
        rows.append(np.array(kept))
    assert np.array_equal(rows[0][:90], rows[2], equal_nan=True)
    assert rows[1] == pytest.approx(rows[0], abs=1e-6, nan_ok=True)


def test_what_was_felt_and_added_shift() -> None:
    t, y, qd = _feeling()
    one, two = (felt(t + by, y, qd, np.full(6, 0.7), np.full(6, 3.0)) for by in (0.0, LATER))
    assert one.at == two.at
    assert two.time - one.time == pytest.approx(LATER, abs=1e-9)
    assert two.variance == pytest.approx(one.variance, rel=1e-9)
    q = np.cumsum(qd, axis=0) * 0.01
    first, second = (added(ROBOT, t + by, y, q, qd, 0.8 + by, np.full(6, 0.7)) for by in (0.0, LATER))
    assert first is not None
    assert second is not None
    assert second.torque == pytest.approx(first.torque, rel=1e-6)
    assert second.time - first.time == pytest.approx(LATER, abs=1e-9)


# ------------------------------------------------------------------------------------------------------------ closing


class Counted(Rising):
    """A plant that counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("sensor", [None, WrenchSensor.ideal()])
def test_closing_the_sensor_closes_the_plant_below(sensor: WrenchSensor | None) -> None:
    inner = Counted()
    outer = WithWrenchSensor(WithWrenchSensor(inner, sensor), None)
    outer.reset(np.zeros(6))
    outer.close()
    assert inner.closed == 1
