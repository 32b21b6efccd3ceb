"""Detection: begins above `on`, ends below `off`, one event per touch, the stamp of the sample that decided."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.observe.threshold import ThresholdDetector, thresholds_from_quiet

H = 1e-3


def feed(detector, rows):
    return [c for k, r in enumerate(rows) if (c := detector.update(k * H, np.asarray(r, dtype=float))) is not None]


def one(values, joint=2, n=6):
    rows = np.zeros((len(values), n))
    rows[:, joint - 1] = values
    return rows


def test_onset_and_end_carry_the_stamp_of_their_sample():
    detector = ThresholdDetector(2.0)
    contacts = feed(detector, one([0, 1.9, 2.0, 2.1, 5, 1.5, 1.01, 0.9, 0, 0]))
    assert [c.time for c in contacts] == [3 * H]  # 2.0 is not above 2.0
    (touch,) = detector.detections
    assert (touch.time, touch.end, touch.joint) == (3 * H, 7 * H, 2)
    assert touch.residual[1] == 2.1
    assert touch.contact.time == touch.time


def test_the_exponential_answer_is_found_at_the_first_sample_that_can_exceed_it():
    k = np.arange(200)
    detector = ThresholdDetector(1.0)
    feed(detector, one(20 * -np.expm1(-50.0 * H * k)))
    first = int(np.argmax(20 * (1 - np.exp(-50.0 * H * k)) > 1.0))
    assert detector.detections[0].time == first * H
    assert detector.detections[0].end is None
    assert detector.touching


def test_negative_torque_is_a_touch_too_and_the_joint_is_the_one_furthest_above_its_own_threshold():
    rows = np.zeros((3, 6))
    rows[1] = [5.0, -9.0, 0.0, 0.0, 0.0, -1.2]
    detector = ThresholdDetector([4.0, 10.0, 4.0, 1.0, 1.0, 0.5])
    (contact,) = feed(detector, rows)
    assert contact.joint == 6


def test_hysteresis_gives_one_event_where_a_plain_threshold_gives_many(rng):
    wobble = 2.0 + 0.4 * np.sin(np.arange(400))
    values = np.concatenate([np.zeros(10), wobble, np.zeros(10)])
    detector = ThresholdDetector(2.0)
    feed(detector, one(values))
    assert len(detector.detections) == 1
    plain = ThresholdDetector(2.0, 2.0)
    feed(plain, one(values))
    assert len(plain.detections) > 50


def test_minimum_durations_pass_over_short_peaks_and_gaps():
    values = np.zeros(60)
    values[5:7] = 9.0  # 2 samples: too short
    values[20:40] = 9.0
    values[30] = 0.0  # a gap of one sample
    detector = ThresholdDetector(2.0, minimum_duration=3 * H, release_duration=3 * H)
    feed(detector, one(values))
    (touch,) = detector.detections
    assert (round(touch.time / H), round(touch.end / H)) == (23, 43)


def test_what_is_not_finite_changes_nothing():
    detector = ThresholdDetector(2.0)
    feed(detector, one([0, 9, 9]))
    assert detector.update(3 * H, np.full(6, np.nan)) is None
    assert detector.touching
    detector.reset()
    assert detector.detections == ()
    assert detector.update(4 * H, np.full(6, np.inf)) is None


def test_thresholds_stand_above_a_quiet_run(rng):
    quiet = rng.normal(size=(500, 6)) * [1.0, 2.0, 3.0, 0.001, 1.0, 1.0]
    levels = thresholds_from_quiet(quiet)
    assert np.all(levels >= 2.0 * np.abs(quiet).max(axis=0))
    assert levels[3] == 0.1
    detector = ThresholdDetector(levels)
    assert feed(detector, quiet) == []
    assert feed(detector, quiet * 2.01) != []


def test_misuse_is_refused():
    with pytest.raises(InvalidValue, match="off: at most on"):
        ThresholdDetector(1.0, 2.0)
    with pytest.raises(InvalidValue, match="minimum_duration"):
        ThresholdDetector(1.0, minimum_duration=-1.0)
    with pytest.raises(InvalidValue, match="on:"):
        ThresholdDetector([1.0, 2.0])
    with pytest.raises(InvalidValue, match="residuals"):
        thresholds_from_quiet(np.zeros((0, 6)))
