"""Collision or push: by how it rose and how long it stayed, and how sure that is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tangere
from tangere.observe.detect.classify import SHORT, History, Judgement, early, judged, payload_mass

H = 0.01
SPREAD = np.full(6, 0.3)
DIRECTION = np.array([3.0, -8.0, 4.0, 0.5, 0.2, 0.0])


def history(rise, length, *, ended=True, after=0.4, stuck=0.0, noise=0.3, seed=0):
    """A touch that grows over `rise` and is gone `length` later, behind an observer of 50/s; `stuck` [Nm] stays."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, rise + length + (after if ended else 0.0), H)
    shape = np.clip(time / max(rise, 1e-6), 0.0, 1.0) * (time < rise + length)
    added = np.zeros((len(time), 6))
    a = np.exp(-50.0 * H)
    for k in range(1, len(time)):
        kept = stuck * np.eye(6)[1] * (time[k] >= rise + length)
        added[k] = a * added[k - 1] + (1.0 - a) * (shape[k] * DIRECTION + kept)
    added += noise * SPREAD * rng.standard_normal(added.shape)
    return History(time, added, np.zeros_like(added), None, SPREAD, ended, slow=False)


@pytest.mark.parametrize("seed", range(5))
def test_hard_and_short_is_a_collision_soft_and_long_a_push(seed):
    for rise, length in ((0.01, 0.1), (0.02, 0.2), (0.04, 0.25)):
        assert judged(history(rise, length, seed=seed), None, None).kind == "collision"
    for rise, length in ((0.15, 0.4), (0.25, 0.7), (0.3, 0.5)):
        assert judged(history(rise, length, seed=seed), None, None).kind == "push"


def test_how_long_nothing_happens_afterwards_does_not_matter():
    """An event is closed a quarter second or more after what caused it: that is no part of its length."""
    short, long = (judged(history(0.03, 0.2, after=after), None, None) for after in (0.3, 1.5))
    assert short.kind == long.kind == "collision"
    assert long.confidence == pytest.approx(short.confidence, abs=1e-9)


def test_what_sticks_afterwards_does_not_make_it_longer():
    held = history(0.02, 0.2, stuck=6.0, after=1.5)  # two thirds of the touch, the other way
    assert held.added[-1, 1] > 5.0
    found, free = judged(held, None, None), judged(history(0.02, 0.2, after=1.5), None, None)
    assert found.kind == "collision"
    assert found.confidence == pytest.approx(free.confidence, abs=0.02)


def test_whatever_stays_for_seconds_is_a_push():
    found = judged(history(0.01, 5.0, noise=0.0), None, None)
    assert found.rise < 0.06  # as quick as a collision
    assert found.kind == "push"


def test_an_open_event_is_not_called_short():
    """While it lasts its length can only speak for a push: at 0.1 s nobody knows how long it will be."""
    open_, over = (judged(history(0.03, 0.15, ended=ended), None, None) for ended in (False, True))
    assert over.kind == open_.kind == "collision"
    assert over.confidence > open_.confidence + 0.03
    later = judged(history(0.03, 3.0 * SHORT, ended=False), None, None)
    assert later.confidence < open_.confidence or later.kind == "push"


def test_what_grows_for_seconds_is_a_drift_where_a_slow_signal_raised_it():
    def said(rise: float, slow: bool = True) -> Judgement:
        return judged(dataclasses.replace(history(rise, 2.0, ended=False, noise=0.0), slow=slow), None, None)

    assert said(12.0).kind == "drift"
    assert said(12.0, slow=False).kind == "push"
    assert said(2.5) != said(2.5, slow=False)  # beyond half of SLOW_RISE it counts a little
    for rise in (0.5, 1.5):  # nine tenths of them are less
        assert said(rise) == said(rise, slow=False)


def test_the_confidence_is_between_even_and_nearly_sure_and_falls_towards_the_border():
    said = [judged(history(rise, 0.3 + rise), None, None) for rise in np.geomspace(0.01, 0.6, 20)]
    hard = np.array([dict([(j.kind, j.confidence), *j.alternatives])["collision"] for j in said])
    assert np.all(hard > 0.01)
    assert np.all(hard < 0.96)  # simulated logs: 86 to 92 % right where it is said to be surest
    assert hard[0] > 0.8
    assert hard[-1] < 0.2
    assert np.all(np.diff(hard) < 0.12)  # falls, but for the noise of the moment that is nine tenths


def test_at_the_alarm_only_what_rises_slowly_is_told():
    """A jump may be an impact or a hand that stays; half a second up to the threshold is a hand."""
    jump = early(1.0 / 0.004, True)
    assert (jump.kind, jump.confidence) == ("unknown", 0.0)
    assert jump.alternatives[0][0] == "collision"
    assert sum(p for _, p in jump.alternatives) == pytest.approx(1.0)
    between = early(1.0 / 0.08, False)
    assert between.kind == "unknown"
    assert between.alternatives[0][0] == "push"
    slow = early(1.0 / 0.5, False)
    assert slow.kind == "push"
    assert slow.confidence >= 0.95


@pytest.mark.parametrize(("joint", "stands", "fault"), [(0, False, False), (4, True, False), (4, False, True)])
def test_a_hand_that_turns_one_joint_is_no_fault(joint, stands, fault):
    """A hand across the arm turns joint 1 alone; joints that stand hide what they feel. Else no push does it."""
    time = np.arange(0.0, 1.5, H)
    added = np.zeros((len(time), 6))
    added[:, joint] = 10.0
    q = (0.0 if stands else 0.3) * time[:, None] * np.ones(6)
    found = judged(History(time, added, q, None, SPREAD, False), None, 0.3)
    assert (found.kind == "fault") == fault
    if not fault:
        assert dict(found.alternatives).get("fault", 0.0) < 0.2


@pytest.mark.parametrize("spread", [np.ones(6), np.array([2.0, 1.5, 0.8, 0.2, 0.1, 0.1])])
def test_a_mass_is_found_whatever_the_spread_of_the_joints(spread):
    arm, loaded = tangere.robot("ur10e"), tangere.robot("ur10e", payload=(2.0, (0.01, 0.02, 0.05)))
    time = np.arange(0.0, 4.0, H)
    q = np.array([0.3, -1.2, 1.5, -1.0, -1.5, 0.2]) + 0.4 * np.sin(time[:, None] + np.arange(6))
    added = arm.gravity_torque(q) - loaded.gravity_torque(q)
    mass, share = payload_mass(arm, History(time, added, q, None, spread, False))
    assert mass == pytest.approx(2.0, rel=0.01)
    assert share > 0.999
