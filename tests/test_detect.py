"""The detector on made-up residuals whose every property is known: when, what, which joint, masked or not."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from watched_logs import model_of

import tangere
from tangere import Robot
from tangere.errors import InvalidValue
from tangere.observe.detect import Detector, Event, PayloadChange, Thresholds, detect, wanted
from tangere.observe.detect.classify import MASS_EXPLAINED, History, payload_mass
from tangere.observe.detect.past import Onset, Past
from tangere.observe.friction_state import FrictionState
from tangere.types import State

N = 6
K = 50.0
NOISE = np.array([0.3, 0.3, 0.2, 0.05, 0.05, 0.05])  # Nm per sample before the lag
HOME = np.array([0.0, -1.2, 1.2, -1.2, -1.5, 0.0])


def _thresholds() -> Thresholds:
    row = np.array([2.0, 2.0, 1.0, 0.4, 0.4, 0.4])
    table = np.stack((row, 2.0 * row, 2.0 * row))
    return Thresholds(table, table, 2.0 * table, 8.0 * table, 0.1 * table, np.eye(N), np.zeros((3, N, N)))


def _log(tau_ext: np.ndarray, time: np.ndarray, seed: int = 0) -> np.ndarray:
    """Residual of an observer for an external torque (N, n) with noise."""
    y = tau_ext + NOISE * np.random.default_rng(seed).normal(size=tau_ext.shape)
    r = np.zeros_like(y)
    for k in range(1, len(time)):
        r[k] = r[k - 1] + -np.expm1(-K * (time[k] - time[k - 1])) * (y[k] - r[k - 1])
    return r


def _events(
    tau_ext: np.ndarray, time: np.ndarray, *, detector: Detector | None = None, qd: np.ndarray | None = None,
    q: np.ndarray | None = None, tau: np.ndarray | None = None,
) -> tuple[Event, ...]:  # fmt: skip
    speed = np.full((len(time), N), 0.3) if qd is None else qd
    q = np.tile(HOME, (len(time), 1)) if q is None else q
    return detect(detector or Detector(_thresholds()), time, _log(tau_ext, time), q, speed, tau)


def _push(time: np.ndarray, start: float, end: float, size: float, joint: int = 2, rise: float = 0.0) -> np.ndarray:
    shape = np.clip((time - start) / max(rise, 1e-9), 0.0, 1.0) * (time < end)
    out = np.zeros((len(time), N))
    out[:, joint - 1] = size * shape
    return out


@pytest.mark.parametrize(("low", "high"), [(0.001, 0.001), (0.002, 0.002), (0.008, 0.008), (0.002, 0.034)])
def test_a_hard_step_is_found_at_once_with_its_onset(rng: np.random.Generator, low: float, high: float) -> None:
    time = np.cumsum(rng.uniform(low, high, int(6.0 / (0.5 * (low + high)))))
    tau_ext = _push(time, 3.0, 3.2, 12.0) + _push(time, 3.0, 3.2, 6.0, joint=3)
    (event,) = _events(tau_ext, time)
    before = time[time <= 3.0][-1]
    assert event.alarm
    assert event.joint in (2, 3)
    # a second-order lag of 1/50 and 1/150 s passes a sixth of a step after 9 ms; two samples more for wrong ones
    assert 3.0 < event.time_s <= 3.011 + 2.0 * high
    assert abs(event.onset_s - before) <= max(0.004, 1.01 * high)  # the sample before, or one beside it
    assert event.kind == "collision"
    assert event.end_s is not None
    assert 3.2 < event.end_s < 3.4
    assert event.peak_nm[1] == pytest.approx(12.0, abs=1.0)
    assert event.record()["kind"] == "collision"


def test_quiet_motion_raises_nothing_and_one_touch_is_one_event() -> None:
    time = np.arange(0.0, 20.0, 0.002)
    assert _events(np.zeros((len(time), N)), time) == ()
    # a residual that lingers at its threshold and swings across it
    swing = _push(time, 5.0, 12.0, 3.0) * (1.0 + 0.3 * np.sin(8.0 * time))[:, None]
    assert len(_events(swing, time)) == 1


def test_kinds_by_rise_and_length() -> None:
    time = np.arange(0.0, 40.0, 0.005)
    two = _push(time, 5.0, 5.1, 10.0) + _push(time, 20.0, 24.0, 10.0, rise=0.5)
    hit, push = _events(two, time)
    assert hit.kind == "collision"
    assert push.kind == "push"
    assert push.rise_s == pytest.approx(0.45, abs=0.1)
    (drift,) = _events(_push(time, 2.0, 99.0, 6.0, rise=30.0), time)[:1]
    assert drift.kind == "drift"
    assert not drift.alarm


def test_payload_is_a_mass_that_follows_gravity() -> None:
    robot = tangere.robot("ur10e")
    time = np.arange(0.0, 16.0, 0.005)
    q = HOME + 0.5 * np.sin(0.8 * time)[:, None] * np.array([0.3, 1.0, 1.0, 1.0, 0.3, 0.3])
    qd = 0.4 * np.cos(0.8 * time)[:, None] * np.ones(N) + 0.5
    J = robot.jacobian(q)
    weight = np.einsum("mij,i->mj", J[:, :3], np.array([0.0, 0.0, -9.81 * 3.0]))
    tau_ext = weight * (time > 3.0)[:, None]
    detector = Detector(_thresholds(), robot=robot)
    events = _events(tau_ext, time, detector=detector, q=q, qd=qd)
    assert events[0].kind == "payload"
    assert events[0].mass_kg == pytest.approx(3.0, rel=0.05)
    assert events[0].first_kind == "unknown"  # at the alarm nobody knows
    # the same fit on a sideways push finds no mass that explains it
    side = np.einsum("mij,i->mj", J[:, :3], np.array([30.0, 0.0, 0.0]))
    rows = slice(600, 1400)
    _, share = payload_mass(robot, History(time[rows], side[rows], q[rows], None, np.ones(N), False))
    _, right = payload_mass(robot, History(time[rows], weight[rows], q[rows], None, np.ones(N), False))
    assert share < MASS_EXPLAINED - 0.15
    assert right > 0.99


def test_a_drive_that_gives_too_little_is_a_fault() -> None:
    time = np.arange(0.0, 12.0, 0.005)
    tau = np.zeros((len(time), N))
    tau[:, 3] = 8.0 + 4.0 * np.sin(3.0 * time)
    tau_ext = np.zeros((len(time), N))
    tau_ext[:, 3] = -0.3 * tau[:, 3] * (time > 4.0)
    event = _events(tau_ext, time, tau=tau)[0]
    assert event.kind == "fault"
    assert event.joint == 4
    # a push of the same size and joint, of which the motion's torque knows nothing: what the drive gives is less by it
    push = np.zeros((len(time), N))
    push[:, 3] = -(2.4 + 1.2 * np.sin(2.0 * time)) * (time > 4.0)
    assert _events(push, time, tau=tau - push)[0].kind == "push"


def test_stop_is_reported_and_does_not_alarm() -> None:
    time = np.arange(0.0, 6.0, 0.002)
    qd = np.full((len(time), N), 0.3) * np.clip(1.0 - (time - 3.0) / 0.03, 0.0, 1.0)[:, None]
    ring = 15.0 * np.exp(-np.maximum(time - 3.0, 0.0) / 0.08) * np.cos(120.0 * (time - 3.0)) * (time > 3.002)
    events = _events(ring[:, None] * np.array([1.0, 1.0, 0.5, 0.1, 0.1, 0.1]), time, qd=qd)
    assert [event.kind for event in events] == ["stop"]
    assert not events[0].alarm
    assert events[0].confidence + sum(p for _, p in events[0].alternatives) == pytest.approx(1.0)
    (felt_by_nothing,) = _events(np.zeros((len(time), N)), time, qd=qd)  # told from the velocities alone
    assert felt_by_nothing.kind == "stop"
    assert 3.0 <= felt_by_nothing.time_s < 3.03  # while it brakes
    # the same shock on an arm that moves on is none
    assert _events(ring[:, None] * np.ones(N), time)[0].kind == "collision"


def test_a_clear_touch_while_a_stop_settles_is_told() -> None:
    time = np.arange(0.0, 6.0, 0.002)
    brake = np.clip(1.0 - (time - 3.0) / 0.03, 0.0, 1.0)
    goes_on = np.full((len(time), N), 0.3) * np.maximum(brake, time > 3.05)[:, None]
    tau_ext = _push(time, 3.06, 3.6, 12.0)
    told = _log(tau_ext, time), np.tile(HOME, (len(time), 1)), goes_on
    stop, push = detect(Detector(_thresholds()), time, *told, target_qd=goes_on)
    assert (stop.kind, push.alarm) == ("stop", True)
    assert stop.end_s == push.time_s
    assert 3.06 < push.time_s < 3.12  # the arm wants to go on: at twice its threshold
    # nobody knows what is wanted, or it is to stand: once it can no longer be what rings after a stop
    stands = np.full((len(time), N), 0.3) * brake[:, None]
    for wanted_speed in (None, stands):
        stop, push = detect(Detector(_thresholds()), time, told[0], told[1], stands, target_qd=wanted_speed)[:2]
        assert (stop.kind, push.alarm) == ("stop", True)
        assert 3.15 <= push.time_s < 3.17
    # 5 Nm are not clear, 1.25 times the threshold of a standing joint: nobody is told while the stop settles
    weak = _log(_push(time, 3.06, 3.16, 5.0), time)
    (stop,) = detect(Detector(_thresholds()), time, weak, told[1], stands)
    assert stop.end_s == pytest.approx(3.18, abs=0.003)


def test_what_stops_the_arm_is_told_and_no_stop() -> None:
    """Joint 2 runs into something and takes the others with it, not in proportion; nobody knows what was wanted."""
    time = np.arange(0.0, 6.0, 0.002)
    speed = np.array([0.3, -0.4, 0.2, 0.3, 0.1, 0.2])
    rest = np.clip(1.0 - (time[:, None] - 3.0) / np.array([0.06, 0.03, 0.05, 0.09, 0.06, 0.09]), 0.0, 1.0)
    felt = np.array([0.0, 1.0, -0.3, 0.0, 0.0, 0.0]) * (20.0 * np.clip((time - 3.0) / 0.02, 0.0, 1.0))[:, None]
    events = _events(felt, time, qd=speed * rest)
    assert events[0].alarm
    assert 3.0 < events[0].time_s < 3.03
    assert all(event.kind != "stop" for event in events)
    # the same torque the other way is a motor that brakes before the velocities show it
    events = _events(-felt * (time < 3.03)[:, None], time, qd=speed * rest)
    assert [event.kind for event in events] == ["stop"]
    assert events[0].end_s is not None
    assert events[0].end_s - events[0].onset_s <= 0.2 + 0.003


def test_contact_that_ends_in_a_stop_gives_both() -> None:
    time = np.arange(0.0, 8.0, 0.002)
    qd = np.full((len(time), N), 0.3) * np.clip(1.0 - (time - 4.0) / 0.03, 0.0, 1.0)[:, None]
    tau_ext = _push(time, 3.6, 4.05, 12.0, rise=0.1)
    tau_ext[(time > 4.0) & (time < 4.05)] -= 9.0
    first, stop = _events(tau_ext, time, qd=qd)[:2]
    assert first.alarm
    assert first.time_s < 3.7
    assert stop.kind == "stop"
    assert first.end_s is not None
    assert first.end_s <= stop.time_s


def test_wanted_contact_and_payload_change_are_masked_up_to_a_limit() -> None:
    time = np.arange(0.0, 10.0, 0.002)
    press = _push(time, 3.0, 6.0, 4.0)
    detector = Detector(_thresholds())
    detector.wanted = wanted(N, factor=3.0)
    (event,) = _events(press, time, detector=detector)
    assert event.kind == "wanted"
    assert not event.alarm
    assert event.confidence + sum(p for _, p in event.alternatives) == pytest.approx(1.0)
    much = press + _push(time, 4.0, 6.0, 10.0)
    (event,) = _events(much, time, detector=detector)
    assert event.alarm  # more than was wanted
    assert event.first_kind == "wanted"
    detector.wanted = wanted(N, joints=(5, 6))
    assert _events(press, time, detector=detector)[0].alarm  # joint 2 was not meant
    detector.wanted = None
    detector.payload_change = PayloadChange(2.5, 3.5)
    (event,) = _events(press, time, detector=detector)
    assert (event.kind, event.alarm) == ("payload", False)
    assert event.confidence + sum(p for _, p in event.alternatives) == pytest.approx(1.0)
    detector.payload_change = PayloadChange(7.0, 8.0)
    assert _events(press, time, detector=detector)[0].alarm
    for wrong in ({"joints": (0,)}, {"factor": 0.5}, {"start": 2.0, "end": 1.0}):
        with pytest.raises(InvalidValue):
            wanted(N, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        PayloadChange(2.0, 1.0)


def test_gap_ends_an_event_and_raises_none() -> None:
    time = np.concatenate((np.arange(0.0, 4.0, 0.01), np.arange(6.0, 9.0, 0.01)))
    (event,) = _events(_push(time, 3.5, 99.0, 8.0), time)[:1]
    assert event.end_s is not None
    assert event.end_s <= 6.0
    jump = _push(time, 5.0, 99.0, 1.5)  # below its level: only the jump over the gap could raise it
    assert _events(jump, time) == ()


def test_onset_of_steps_and_ramps(rng: np.random.Generator) -> None:
    errors = []
    for _ in range(100):
        time = np.arange(0.0, 1.0, 0.002)
        began = rng.uniform(0.5, 0.9)
        raw = rng.normal(size=(len(time), N))
        raw[:, 1] += 8.0 * (time > began)
        k = int(np.searchsorted(time, began + 0.02))
        past, zero = Past(N), np.zeros(N)
        for t, y in zip(time[:k].tolist(), raw[:k], strict=True):
            past.append(t, np.zeros((2, N)), y, zero, zero, zero)
        back = Onset(N).search(past.lines(), zero, np.ones(N))
        errors.append(past.stamp(past.count - 1 - back) - began)
    assert np.median(np.abs(errors)) < 0.003  # a sample: eight standard deviations leave no doubt
    assert np.quantile(np.abs(errors), 0.9) < 0.01


def test_thresholds_of_another_arm_are_refused() -> None:
    robot = Robot(tangere.robot("ur10e").model)
    row = np.ones((3, 4))
    with pytest.raises(InvalidValue, match="joints"):
        Detector(Thresholds(row, row, row, row, row, np.eye(4), np.zeros((3, 4, 4))), robot=robot)


def test_a_detector_that_was_reset_is_a_new_one() -> None:
    """Its friction's memory too: the same samples give the same scores and events again."""
    detector = Detector(_thresholds(), memory=FrictionState(model_of(remembers=0.5).drive))
    time = np.arange(0.0, 3.0, 0.002)
    push = np.zeros((len(time), N))
    push[1000:1100, 1] = 30.0
    r, qd = _log(push, time), np.outer(np.cos(3.0 * time), np.full(N, 0.3))

    def told() -> tuple[list[float], list[dict[str, Any]]]:
        scores = []
        for k, t in enumerate(time.tolist()):
            detector.update(State(t, 0.002, HOME, qd[k], r[k]), r[k])
            scores.append(detector.score)
        return scores, [event.record() for event in detector.events]

    first = told()
    assert first[1]
    detector.reset()
    assert told() == first


def test_a_sample_is_cheap() -> None:
    """Counted, not timed: functions of Python that a quiet sample calls, and none of numpy's beyond a few."""
    detector = Detector(_thresholds())
    time = np.arange(0.0, 4.0, 0.002)
    r, qd = _log(np.zeros((len(time), N)), time), np.full(N, 0.3)
    calls: Counter[str] = Counter()
    for k, t in enumerate(time.tolist()):
        state = State(t, 0.002, HOME, qd, r[k])
        sys.setprofile(lambda frame, event, _: calls.update([event]))
        detector.update(state, r[k])
        sys.setprofile(None)
    assert calls["call"] < 6 * len(time)
    assert calls["c_call"] < 20 * len(time)


def test_a_noisy_joint_does_not_blur_the_onset_of_a_quiet_one(rng: np.random.Generator) -> None:
    """Each joint counts in units of its own noise: 8 of them on joint 2 beside a joint of a hundred times its noise."""
    spread, zero, errors = np.array([10.0, 0.1, 1.0, 1.0, 1.0, 1.0]), np.zeros(N), []
    for _ in range(40):
        past = Past(N)
        for k in range(300):
            raw = spread * rng.normal(size=N)
            raw[1] += 0.8 * (k >= 290)
            past.append(0.002 * k, np.zeros((2, N)), raw, zero, zero, zero)
        errors.append(Onset(N).search(past.lines(), zero, spread) - 10)
    assert np.quantile(np.abs(errors), 0.9) <= 1
