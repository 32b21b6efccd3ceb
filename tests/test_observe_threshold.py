"""Detection: begins above `on`, ends below `off`, one event per touch, the stamp of the sample that decided."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.observe.detect import Detector, Thresholds
from tangere.types import State

H = 1e-3


def constant(*limits, **durations):
    return Detector(Thresholds.constant(*limits, **durations))


def at(k):
    return State(k * H, H, np.zeros(6), np.zeros(6), np.zeros(6))


def feed(detector, rows):
    return [e for k, r in enumerate(rows) if (e := detector.update(at(k), np.asarray(r, dtype=float))) is not None]


def one(values, joint=2, n=6):
    rows = np.zeros((len(values), n))
    rows[:, joint - 1] = values
    return rows


def test_onset_and_end_carry_the_stamp_of_their_sample():
    detector = constant(2.0)
    raised = feed(detector, one([0, 1.9, 2.0, 2.1, 5, 1.5, 1.01, 0.9, 0, 0]))
    assert [e.time_s for e in raised] == [3 * H]  # 2.0 is not above 2.0
    (touch,) = detector.events
    assert (touch.time_s, touch.end_s, touch.joint) == (3 * H, 7 * H, 2)
    assert touch.residual_nm[1] == touch.torque_nm == 2.1
    assert (touch.kind, touch.alarm, touch.channel, touch.phase) == ("unknown", True, "residual", "ended")
    assert (raised[0].phase, raised[0].onset_s, raised[0].number) == ("raised", 3 * H, 1)
    assert raised[0].score == pytest.approx(1.05)
    assert touch.score == pytest.approx(2.5)  # the largest of all
    assert touch.peak_nm[1] == 5.0
    assert raised[0].reason == "joint 2: residual of 2.1 Nm, 1.05 times its threshold of 2 Nm"
    assert detector.score == 0.0


def test_the_exponential_answer_is_found_at_the_first_sample_that_can_exceed_it():
    k = np.arange(200)
    detector = constant(1.0)
    feed(detector, one(20 * -np.expm1(-50.0 * H * k)))
    first = int(np.argmax(20 * (1 - np.exp(-50.0 * H * k)) > 1.0))
    assert detector.events[0].time_s == first * H
    assert detector.events[0].end_s is None
    assert detector.touching


def test_negative_torque_is_a_touch_too_and_the_joint_is_the_one_furthest_above_its_own_threshold():
    rows = np.zeros((3, 6))
    rows[1] = [5.0, -9.0, 0.0, 0.0, 0.0, -1.2]
    detector = constant([4.0, 10.0, 4.0, 1.0, 1.0, 0.5])
    (event,) = feed(detector, rows)
    assert event.joint == 6


def test_hysteresis_gives_one_event_where_a_plain_threshold_gives_many(rng):
    wobble = 2.0 + 0.4 * np.sin(np.arange(400))
    values = np.concatenate([np.zeros(10), wobble, np.zeros(10)])
    detector = constant(2.0)
    feed(detector, one(values))
    assert len(detector.events) == 1
    plain = constant(2.0, 2.0)
    feed(plain, one(values))
    assert len(plain.events) > 50


def test_minimum_durations_pass_over_short_peaks_and_gaps():
    values = np.zeros(60)
    values[5:7] = 9.0  # 2 samples: too short
    values[20:40] = 9.0
    values[30] = 0.0  # a gap of one sample
    detector = constant(2.0, minimum_duration=3 * H, release_duration=3 * H)
    feed(detector, one(values))
    (touch,) = detector.events
    assert (round(touch.time_s / H), round(touch.end_s / H)) == (23, 43)


def test_what_is_not_finite_changes_nothing():
    detector = constant(2.0)
    feed(detector, one([0, 9, 9]))
    assert detector.update(at(3), np.full(6, np.nan)) is None
    assert detector.touching
    detector.reset()
    assert detector.events == ()
    assert detector.update(at(4), np.full(6, np.inf)) is None


def test_thresholds_stand_above_a_quiet_run(rng):
    quiet = rng.normal(size=(500, 6)) * [1.0, 2.0, 3.0, 0.001, 1.0, 1.0]
    thresholds = Thresholds.of_quiet(quiet)
    levels = thresholds.level[0]
    assert np.all(levels >= 2.0 * np.abs(quiet).max(axis=0))
    assert levels[3] == 0.1
    detector = Detector(thresholds)
    assert feed(detector, quiet) == []
    assert feed(detector, quiet * 2.01) != []


def test_misuse_is_refused():
    with pytest.raises(InvalidValue, match="off: at most on"):
        constant(1.0, 2.0)
    with pytest.raises(InvalidValue, match="minimum_duration"):
        constant(1.0, minimum_duration=-1.0)
    with pytest.raises(InvalidValue, match="on:"):
        constant([1.0, 2.0])
    with pytest.raises(InvalidValue, match="residuals"):
        Thresholds.of_quiet(np.zeros((0, 6)))


def test_constant_thresholds_go_through_a_table_and_scale():
    given = Thresholds.constant(2.0, [1.5, 1.0, 1.0, 1.0, 1.0, 0.5], minimum_duration=2 * H, release_duration=H)
    again = Thresholds.from_table(given.to_table())
    twice = again.scaled(2.0)
    assert np.array_equal(again.hysteresis.off, given.hysteresis.off)
    assert (again.hysteresis.minimum_duration, again.hysteresis.release_duration) == (2 * H, H)
    assert np.array_equal(twice.hysteresis.on, np.full(6, 4.0))
    assert np.array_equal(twice.hysteresis.off, 2.0 * given.hysteresis.off)
