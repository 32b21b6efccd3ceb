"""Tables of a study: counted by hand on results that are made up."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tangere.apps.study import collisions, promises, tables
from tangere.apps.study.plan import Plan
from tangere.apps.study.study import Study
from tangere.apps.study.trials import (
    FACTORS,
    Answer,
    FreeResult,
    Injected,
    Learned,
    TouchResult,
    _answer,
    ladder,
    step_copies,
)
from tangere.apps.study.world import world_of
from tangere.observe.detect import Thresholds

PLAN = Plan()
N = len(step_copies(world_of(PLAN, "exact")))


def answer(link, best=None, probability=0.9, error=math.nan):
    return Answer(link, link if best is None else best, probability, error, 60.0)


def touch(link, told, *, size=60.0, ratio=20.0, delay=0.01, score=5.0, world="exact"):
    kind = "push" if math.isfinite(delay) else ""
    return TouchResult(world, link, size, 0.3, ratio, delay, 0, score, kind, told if kind else None, told)


def free(delays, *, alarms=0, counts=None, moving=None):
    """Free motion of 30 min with steps: delays (m,) of the plan's step and of the ladder joint by joint."""
    steps = tuple(
        Injected(1.0, np.asarray(d, dtype=float), True, np.ones(6, dtype=bool) if moving is None else moving)
        for d in delays
    )
    return FreeResult("exact", 1800.0, alarms, np.zeros(len(FACTORS), dtype=int) if counts is None else counts, steps)


def made(touches=(), motions=()):
    rows = np.ones((3, 6))
    known = Learned(Thresholds(rows, rows, rows, rows, rows, np.eye(6), np.zeros((3, 6, 6))), np.ones(6))
    return Study(PLAN, {"exact": known, "wrong": known}, tuple(motions), tuple(touches), (), False, 1.0, 1)


def test_found_rates_count_detectable_contacts_and_all():
    done = made([
        touch(2, answer(2)), touch(3, answer(3), delay=math.inf), touch(1, answer(None), ratio=2.0, delay=math.inf),
        touch(4, answer(4), delay=0.03), touch(4, answer(4), size=20.0), touch(4, answer(4), world="wrong"),
    ])  # fmt: skip
    small, large = tables.found_rows(done, "exact")
    assert (small.size, small.trials, large.size, large.trials) == (20.0, 1, 60.0, 4)
    assert large.detectable.value == 0.75
    assert large.found.value == pytest.approx(2 / 3)
    assert large.found_all.value == 0.5
    assert large.median.value == 0.03  # of 0.01, 0.03, never
    assert large.late.value == math.inf


def test_the_best_link_is_the_one_told_else_the_likeliest_else_none():
    def found(link, *others):
        point, force = (np.ones(3), np.array([0.0, 3.0, 4.0])) if link is not None else (None, None)
        rest = tuple(SimpleNamespace(link=other) for other in others)
        return SimpleNamespace(link=link, probability=0.8, alternatives=rest, point=point, force=force)

    for isolation, best in ((found(2, 3), 2), (found(None, 3, 2), 3), (found(None), None)):
        said = _answer(isolation, 2, (1.0, 1.0, 1.0))
        assert (said.link, said.best, said.probability) == (isolation.link, best, 0.8)
        assert (said.force == 5.0) == (isolation.link is not None)


def test_isolation_is_judged_by_answers_and_points():
    done = made([
        touch(2, answer(2, error=0.01)), touch(2, answer(2, error=0.2)), touch(2, answer(3)),
        touch(2, answer(None, best=2, probability=0.6)), touch(5, answer(5, error=0.04)),
        touch(5, answer(5, error=0.01), ratio=1.0), touch(5, answer(5, error=0.01), size=20.0),
    ])  # fmt: skip
    every, second, fifth = tables.isolation_rows(done, "exact", "isolated", 60.0)
    assert (every.link, second.link, fifth.link) == (None, 2, 5)
    assert (every.trials, second.trials, fifth.trials) == (5, 4, 1)
    assert every.answered.value == 0.8
    assert every.right.value == 0.75
    assert every.near.value == pytest.approx(2 / 3)
    assert every.median_error == 0.04
    assert second.likeliest.value == 0.75
    counts = tables.isolation_matrix(done, "exact", "isolated", 60.0)
    assert counts.shape == (6, 7)
    assert counts[1].tolist() == [0, 2, 1, 0, 0, 0, 1]
    assert counts[4].tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert counts.sum() == 5


def test_events_that_were_not_found_are_not_judged_as_answers():
    done = made([touch(2, answer(2), delay=math.inf), touch(2, answer(2))])
    assert tables.isolation_rows(done, "exact", "told", 60.0)[0].trials == 1
    assert tables.isolation_rows(done, "exact", "isolated", 60.0)[0].trials == 2


def test_calibration_compares_what_was_stated_with_what_is_right():
    done = made([touch(2, answer(2, probability=0.85)) for _ in range(3)]
                + [touch(2, answer(None, best=4, probability=0.82)), touch(2, answer(2, probability=1.0))])  # fmt: skip
    first, last = tables.calibration_rows(done, "exact", "isolated")
    assert (first.low, first.high) == (0.8, 0.9)
    assert first.stated == pytest.approx((3 * 0.85 + 0.82) / 4)
    assert first.right.value == 0.75
    assert last.right.value == 1.0


def test_the_roc_falls_with_the_factor_on_both_axes():
    counts = np.where(FACTORS < 0.9, 40, 0)
    done = made([touch(2, answer(2), score=s) for s in (0.5, 1.5, 9.0)], [free([], counts=counts, alarms=1)])
    points = tables.roc(done, "exact", 60.0)
    assert points[0].false_alarms.value == 80.0  # 40 in half an hour
    assert points[-1].false_alarms.value == 0.0
    assert [p.found.value for p in points] == sorted((p.found.value for p in points), reverse=True)
    at = int(np.argmin(np.abs(FACTORS - 1.0)))
    assert points[at].found.value == pytest.approx(2 / 3)
    assert tables.false_alarms(done, "exact").value == 2.0
    assert math.isnan(tables.false_alarms(done, "wrong").value)


def test_the_smallest_step_is_that_from_which_on_all_are_found():
    """100 onsets; on joint 1 the fourth size is always found, in one onset a smaller one by luck; the 99 % quantile of
    what is needed is the fourth. A joint that does not move is not counted."""
    sizes = ladder(world_of(PLAN, "exact").robot.tau_max)
    assert sizes[[0, -1]] == pytest.approx(np.outer((0.01, 0.32), world_of(PLAN, "exact").robot.tau_max))
    delays = np.full((100, N), math.inf)
    delays[:, 0] = 0.018
    delays[:, 1 + 3 : 1 + 11] = 0.01  # joint 1, sizes 4 to 11
    delays[7, 1] = 0.01  # joint 1, size 1: but not sizes 2 and 3
    still = np.array([True, False, True, True, True, True])
    done = made([], [free(delays, moving=still)])
    first, second, third = tables.smallest_rows(done, "exact")[:3]
    assert first.smallest.value == pytest.approx(float(sizes[3, 0]))
    assert second.smallest.count == 0
    assert third.smallest.value == math.inf
    rates = dict(first.rates)
    assert rates[float(sizes[0, 0])].value == 0.01
    assert rates[float(sizes[3, 0])].value == 1.0
    assert np.all(tables.step_delays(done, "exact") == 0.018)


def test_a_study_without_anything_has_tables_without_anything():
    done = made()
    assert tables.found_rows(done, "exact") == []
    assert not tables.isolation_rows(done, "exact", "told", 60.0)[0].answered.known
    assert tables.calibration_rows(done, "exact", "told") == []
    assert len(tables.step_delays(done, "exact")) == 0
    assert tables.smallest_rows(done, "exact")[0].smallest.count == 0


def test_contacts_of_each_link_are_counted_on_that_link() -> None:
    """Three links with 1, 2 and 3 contacts, of which 0, 1 and 2 were not felt."""
    link = np.array([1, 2, 2, 5, 5, 5])
    delay = np.array([0.01, np.inf, 0.02, np.inf, np.inf, 0.03])
    ratio = np.full(6, 9.0)
    rows = collisions.links(SimpleNamespace(of=lambda world, *names: (link, delay, ratio)), "matched")
    assert [row.link for row in rows] == [1, 2, 5]
    assert [row.found.value for row in rows] == pytest.approx([1.0, 0.5, 1.0 / 3.0])
    assert [row.missed for row in rows] == pytest.approx([0.0, 1.0 / 3.0, 2.0 / 3.0])


def test_a_table_of_promises_has_a_row_of_each_world_and_rate(tmp_path) -> None:
    found = SimpleNamespace(count=3, value=1.5, low=0.5, high=2.5)
    known = {(world, rate): SimpleNamespace(thresholds=SimpleNamespace(rate=2.0 * rate))
             for world in promises.WORLDS for rate in promises.RATES}  # fmt: skip
    done = SimpleNamespace(known=known, counted=lambda world, asked: (found, 2.0))
    head, *rows = promises.write_promises(done, tmp_path).read_text().splitlines()
    assert len(rows) == len(promises.WORLDS) * len(promises.RATES)
    asked = promises.RATES[0]
    assert rows[0] == f"{promises.WORLDS[0]},{asked:.9g},{2.0 * asked:.9g},2,3,1.5,0.5,2.5"
    assert len(head.split(",")) == 8
