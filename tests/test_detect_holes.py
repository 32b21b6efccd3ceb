"""Properties of the detector that only one rule of it holds: each of these fails when that rule is taken away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.observe.detect import Detector, Event, Thresholds, detect, wanted
from tangere.observe.detect.refine import AGE, HIDDEN, NAMED, felt
from tangere.observe.isolation import Candidate, ContactIsolator, Isolation
from tangere.observe.replay import replay_momentum
from tangere.types import State

N = 6
K = 50.0
H = 0.002
HOME = np.array([0.0, -1.2, 1.2, -1.2, -1.5, 0.0])
ROW = np.array([2.0, 2.0, 1.0, 0.4, 0.4, 0.4])  # Nm, thresholds while moving; twice that standing and turning


def _thresholds() -> Thresholds:
    table = np.stack((ROW, 2.0 * ROW, 2.0 * ROW))
    return Thresholds(table, table, 2.0 * table, 8.0 * table, 0.1 * table, np.eye(N), np.zeros((3, N, N)))


def _run(
    tau_ext: np.ndarray, time: np.ndarray, qd: np.ndarray, detector: Detector | None = None
) -> tuple[tuple[Event, ...], list[Event]]:
    """Events in their last form, and those that were handed out as alarms on the way."""
    detector = detector or Detector(_thresholds())
    noise = 0.05 * np.random.default_rng(0).normal(size=tau_ext.shape)
    r, told = np.zeros(N), []
    for k, t in enumerate(time.tolist()):
        r = r - np.expm1(-K * H) * (tau_ext[k] + noise[k] - r)
        event = detector.update(State(t, H, HOME, qd[k], np.full(N, np.nan)), r)
        if event is not None and event.alarm:
            told.append(event)
    return detector.events, told


def _braking(time: np.ndarray, start: float, within: float) -> np.ndarray:
    return np.full((len(time), N), 0.3) * np.clip(1.0 - (time - start) / within, 0.0, 1.0)[:, None]


def _joint_2(time: np.ndarray, start: float, end: float, size: float) -> np.ndarray:
    return size * np.outer((time > start) & (time < end), np.eye(N)[1])


def test_an_alarm_waits_while_the_arm_brakes_abruptly() -> None:
    """Half of the speed is lost 15 ms after the shock, which is above its threshold after 6: nobody is told of it."""
    time = np.arange(0.0, 5.0, H)
    events, told = _run(_joint_2(time, 3.0, 3.08, 15.0), time, _braking(time, 3.0, 0.03))
    assert [e.kind for e in events] == ["stop"]
    assert told == []
    # the same shock while the arm moves on is told within 10 ms: the wait is for braking arms only
    _, told = _run(_joint_2(time, 3.0, 3.08, 15.0), time, np.full((len(time), N), 0.3))
    assert 3.0 < told[0].time_s <= 3.01
    # and it ends: a touch on an arm that slows down hard, but goes on, is told 12 ms later
    slower = np.maximum(_braking(time, 3.0, 0.1), 0.2)
    _, told = _run(_joint_2(time, 3.0, 3.08, 15.0), time, slower)
    assert 3.01 < told[0].time_s <= 3.024


def test_what_brakes_the_arm_from_outside_does_not_wait() -> None:
    """Against the motion, and over within the wait: a knock that brakes the arm itself."""
    time = np.arange(0.0, 5.0, H)
    slower = np.maximum(_braking(time, 3.0, 0.02), 0.2)
    for end in (3.08, 3.006):
        _, told = _run(_joint_2(time, 3.0, end, -14.0), time, slower)
        assert len(told) == 1
        assert 3.0 < told[0].time_s <= 3.01


def test_a_current_that_jumps_before_the_arm_brakes_is_part_of_the_stop() -> None:
    time = np.arange(0.0, 5.0, H)
    shock = _joint_2(time, 3.0, 3.05, 15.0)
    events, _ = _run(shock, time, _braking(time, 3.01, 0.02))
    assert [e.kind for e in events] == ["stop"]
    assert events[0].first_kind == "unknown"
    # but what came 80 ms before may be why it stops
    events, told = _run(_joint_2(time, 2.92, 3.05, 15.0), time, _braking(time, 3.01, 0.02))
    assert [e.kind for e in events] == ["collision", "stop"]
    assert len(told) == 1


def test_standing_joints_have_thresholds_of_their_own() -> None:
    """3 Nm: above 2 while moving, below 4 while standing; and below 4 on a joint that turns."""
    time = np.arange(0.0, 4.0, H)
    push = _joint_2(time, 2.0, 3.0, 3.0)
    moving, standing = np.full((len(time), N), 0.3), np.zeros((len(time), N))
    assert len(_run(push, time, moving)[1]) == 1
    assert _run(push, time, standing)[0] == ()
    turning = moving.copy()
    turning[time > 1.99, 1] = -0.3  # reverses just before
    assert _run(_joint_2(time, 2.0, 2.08, 3.0), time, turning)[0] == ()
    assert len(_run(_joint_2(time, 2.0, 2.08, 3.0), time, moving)[1]) == 1


@pytest.mark.parametrize(("low", "seconds", "count"), [(1.3, 0.5, 1), (0.0, 0.15, 1), (0.0, 0.8, 2)])
def test_hysteresis_and_release(low: float, seconds: float, count: int) -> None:
    """A push of 2.6 Nm sinks to 0.65 of its threshold for long, or to nothing for a moment: one event; or for long."""
    time = np.arange(0.0, 8.0, H)
    push = _joint_2(time, 2.0, 3.0, 2.6) + _joint_2(time, 3.0 - 1e-9, 3.0 + seconds, low)
    push += _joint_2(time, 3.0 + seconds - 1e-9, 5.0, 2.6)
    assert len(_run(push, time, np.full((len(time), N), 0.3))[0]) == count


def test_what_sticks_in_a_standing_joint_does_not_keep_an_event_open() -> None:
    """A touch leaves 0.7 Nm in the stiction of joint 6, which stands; 7 s later comes another one."""
    time = np.arange(0.0, 12.0, H)
    qd = np.full((len(time), N), 0.3)
    qd[:, 5] = 0.0
    touch = _joint_2(time, 2.0, 2.4, 3.5) + _joint_2(time, 9.0, 9.4, 12.0)
    touch[time > 2.1, 5] = 0.7  # of 0.8
    told = _run(touch, time, qd, Detector(_thresholds(), stiction=np.full(N, 2.7)))[1]
    assert [round(e.time_s, 1) for e in told] == [2.0, 9.0], told
    # without stiction it is one event that lasts; raised by a change it is no drift, however late its largest residual
    events = _run(touch, time, qd)[0]
    assert len(events) == 1
    assert events[0].alarm


def test_a_wanted_contact_is_wanted_at_its_time_only() -> None:
    time = np.arange(0.0, 9.0, H)
    twice = _joint_2(time, 2.0, 2.5, 4.0) + _joint_2(time, 6.0, 6.5, 4.0)
    detector = Detector(_thresholds())
    detector.wanted = wanted(N, start=1.0, end=3.0)
    events, told = _run(twice, time, np.full((len(time), N), 0.3), detector)
    assert [e.kind == "wanted" for e in events] == [True, False]
    assert [round(e.time_s) for e in told] == [6]


def test_what_was_felt_is_taken_where_it_says_most() -> None:
    """A push of 10 Nm on joint 2 while it moves, then 15 Nm of stiction as it stands: the push is what counts."""
    time = np.arange(0.0, 1.0, 0.01)
    added, qd = np.zeros((len(time), N)), np.full((len(time), N), 0.2)
    added[(time > 0.2) & (time < 0.4), 1] = 10.0
    added[time > 0.6, 1], qd[time > 0.6, 1] = 15.0, 0.0
    spread, stiction = np.full(N, 0.5), np.full(N, 17.0)
    best = felt(time, added, qd, spread, stiction)
    assert 0.2 < best.time < 0.4
    assert best.added[1] == pytest.approx(10.0)
    assert best.variance[1] < 2.0
    assert 15.0 < felt(time[65:], added[65:], qd[65:], spread, stiction).added[1] + 0.1  # nothing else to choose
    assert felt(time[65:], added[65:], qd[65:], spread, stiction).variance[1] > (HIDDEN * 17.0) ** 2
    # a joint that reverses between two samples sticks too, and for a while
    turned = np.where(time[:, None] > 0.25, -0.2, 0.2) * np.ones(N)
    growing = added[:50] * np.where(time[:50] > 0.27, 1.5, 1.0)[:, None]
    assert felt(time[:50], growing, np.full((50, N), 0.2), spread, stiction).time > 0.27
    assert felt(time[:50], growing, turned[:50], spread, stiction).time < 0.25
    # of two equal pushes the earlier one: the mean before grows old
    added[:, 1] = np.where((time > 0.1) & (time < 0.2) | (time > 0.8) & (time < 0.9), 10.0, 0.0)
    early = felt(time, added, np.full((len(time), N), 0.2), spread, stiction)
    assert early.time < 0.2
    late = felt(time[30:] - 0.3, added[30:], np.full((len(time) - 30, N), 0.2), spread, stiction)
    grown = (1.0 + late.time / AGE) / (1.0 + early.time / AGE)
    assert late.variance[0] / early.variance[0] == pytest.approx(grown, rel=0.1)


@pytest.mark.parametrize("probability", [NAMED + 0.1, NAMED - 0.1])
def test_a_link_more_likely_than_all_else_is_named(probability: float) -> None:
    robot = tangere.robot("ur10e")

    class Unsure(ContactIsolator):
        def isolate(self, q: Any, residual: Any, covariance: Any) -> Isolation:
            best = Candidate(4, probability, force=np.array([30.0, 0.0, 0.0]))
            found = (best, Candidate(None, 0.3), Candidate(5, 0.1))
            return Isolation(None, probability, found, "ambiguous", explained=0.9)

    time = np.arange(0.0, 4.0, H)
    detector = Detector(_thresholds(), robot=robot, isolator=Unsure(robot))
    (event,) = _run(_joint_2(time, 2.0, 2.6, 8.0), time, np.full((len(time), N), 0.3), detector)[0]
    assert event.link_probability == probability if event.link else event.link is None
    if probability >= NAMED:
        assert (event.link, event.force_n, event.links) == (4, 30.0, ((None, 0.3), (5, 0.1)))
    else:
        assert (event.link, event.force_n) == (None, None)
        assert event.links[0] == (4, probability)  # the alternatives always stand there


@pytest.mark.parametrize("kind", ["payload", "drift", "fault", "push"])
def test_kinds_on_a_moving_arm(kind: str) -> None:
    """Torques of a simulated UR10e, through the observer: 4 kg more, friction that grows, a drive that gives 70 %."""
    robot = Robot(tangere.robot("ur10e").model, tangere.robot("ur10e").drives.rotor_inertia)
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 20.0, 0.004)
    rate, size = np.array([0.5, 0.6, 0.8, 0.9, 1.0, 1.1]), np.array([0.6, 0.3, 0.4, 0.5, 0.5, 0.5])
    angle = t[:, None] * rate + np.arange(N)
    q, qd, qdd = HOME + size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)
    needed = robot.inverse_dynamics(q, qd, qdd)
    tau = needed.copy()
    after = t > 5.0
    if kind == "payload":
        loaded = Robot(tangere.robot("ur10e", payload=(4.0, (0.0, 0.0, 0.05))).model, robot.rotor_inertia)
        tau[after] = loaded.inverse_dynamics(q[after], qd[after], qdd[after])
    elif kind == "drift":
        tau[:, 1] += 8.0 * np.clip((t - 2.0) / 15.0, 0.0, 1.0)
    elif kind == "fault":  # current says what the drive should give; what acts is what the motion needs
        tau[after, 2] /= 0.7
    else:
        J = robot.jacobian(q, link=4, point=np.zeros(3))[:, :3]
        tau -= (
            np.einsum("mij,i->mj", J, np.array([40.0, 20.0, 0.0]))
            * np.clip((t - 5.0) / 0.3, 0.0, 1.0)[:, None]
            * (t < 7.0)[:, None]
        )
    noise = np.array([1.0, 1.0, 0.5, 0.15, 0.15, 0.15])
    tau += noise * rng.normal(size=tau.shape)
    r = replay_momentum(robot, t, q, qd, tau)
    row = np.array([4.0, 4.0, 2.0, 0.8, 0.8, 0.8])
    table = np.stack((row, row, row))
    thresholds = Thresholds(table, table, 2.0 * table, 8.0 * table, 0.1 * table, np.eye(N), np.zeros((3, N, N)))
    events = detect(Detector(thresholds, robot=robot), t, r, q, qd, tau)
    assert events
    assert events[0].kind == kind, [(e.kind, e.time_s, e.alternatives) for e in events]
    if kind == "payload":
        assert events[0].mass_kg == pytest.approx(4.0, rel=0.1)
    if kind == "fault":
        assert events[0].joint == 3
