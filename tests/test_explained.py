"""What set the thresholds, near misses and the score of a log: said at the second where they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tangere
from tangere.apps.touch.explained import peaks, peaks_text
from tangere.apps.touch.watch_command import summary
from tangere.identification.belief import belief
from tangere.identification.samples import Motion
from tangere.identification.touch_logs import TouchLog
from tangere.loop.watching import Traces, Watched
from tangere.report.section import BESIDE, NEAR, near_rows
from tangere.types import Event

N, COUNT = 6, 1000


def _seen(name: str, level: np.ndarray, events: tuple[Event, ...] = ()) -> Watched:
    """A log of 10 s whose level is given (COUNT,) for joint 2, against thresholds of 2 Nm."""
    time = 100.0 + 0.01 * np.arange(COUNT)
    zeros = np.zeros((COUNT, N))
    values = zeros.copy()
    values[:, 1] = level
    bound = np.full((COUNT, N), 2.0)
    joint = np.full(COUNT, 2)
    traces = Traces(values, zeros, bound, bound, np.abs(level) / 2.0, joint)
    log = TouchLog(name, Motion(time, zeros, zeros, zeros), np.full(N, np.nan), ("torque",) * N, ())
    return Watched(log, belief(tangere.robot("ur10e")), zeros, 9.7, events, traces)


def test_the_largest_value_of_all_logs_is_named_with_its_second() -> None:
    one, two = np.zeros(COUNT), np.zeros(COUNT)
    one[500:505], two[300] = -1.5, 0.5
    one[900] = 0.75  # seconds away from the largest, and more than any of the other log
    (found,) = peaks([_seen("a", one), _seen("b", two)])
    assert (found.joint, found.channel, found.log) == (2, "level", "a")
    assert found.since_start_s == pytest.approx(5.0)
    assert (found.torque_nm, found.score, found.times) == pytest.approx((-1.5, 0.75, 2.0))
    assert any("5.00" in line and "0.75" in line for line in peaks_text([found]))
    assert peaks([]) == []


def test_what_an_event_did_set_no_threshold_and_is_no_near_miss() -> None:
    level = np.zeros(COUNT)
    level[500:520], level[800] = 1.9, 1.7
    event = Event.sample(105.05, 2, np.zeros(N), 1, onset_s=104.9, score=1.2)
    event = replace(event, end_s=105.3, kind="stop", masked=True)
    seen = _seen("a", level, (event,))
    (found,) = peaks([seen])
    assert found.since_start_s == pytest.approx(8.0)
    assert seen.near == ((pytest.approx(108.0), 2, pytest.approx(0.85)),)
    assert seen.masked == pytest.approx(0.4 / 9.7)
    text = summary([seen])
    assert "stops mask 4 % of the time" in text
    assert "near an alarm, which is 1: 0.85 at 8.00 s (joint 2)" in text


def test_a_near_miss_counts_once_and_the_largest_is_first() -> None:
    level = np.zeros(COUNT)
    level[200:260] = 1.0 + 0.01 * np.arange(60)  # up to 1.59 Nm: 0.795
    level[600:610] = 1.95
    level[900:950] = 1.65
    near = _seen("a", level).near
    assert [round(score, 3) for _, _, score in near] == [0.975, 0.825]
    assert min(score for _, _, score in near) >= NEAR
    assert _seen("b", np.zeros(COUNT)).near == ()


def test_what_is_near_an_event_is_no_miss_of_its_own() -> None:
    time = np.arange(0.0, 20.0, 0.1)
    score = np.zeros_like(time)
    event = Event.sample(10.0, 1, np.ones(6), end_s=11.0, onset_s=10.0)
    for at in (10.0 - 0.9 * BESIDE, 11.0 + 0.9 * BESIDE):
        score[np.argmin(np.abs(time - at))] = 0.99
    assert near_rows(time, score, [event]) == []
    far = int(np.argmin(np.abs(time - (11.0 + 2.0 * BESIDE))))
    score[far] = 0.98
    assert near_rows(time, score, [event]) == [(pytest.approx(time[far]), 0.98, far)]
