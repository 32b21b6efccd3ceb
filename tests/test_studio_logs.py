"""Logs in the studio: what they tell of touches, what is looked for in them, and long ones in pieces."""

from __future__ import annotations

import html

import numpy as np
import pytest
from studio_browser import until

import tangere
from tangere.control import ComputedTorque
from tangere.logs import mcap_pieces
from tangere.logs.csv_log import read_csv, write_csv
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.plants import Push, RigidPlant
from tangere.report.data import RunData
from tangere.studio.curves import picked
from tangere.studio.recorded import recorded


@pytest.fixture(scope="module")
def result():
    """An arm that is pushed on link 5 for a second."""
    arm = tangere.robot("ur10e")
    q = np.deg2rad([10.0, -80.0, 80.0, -70.0, -90.0, 20.0])
    push = Push(link=5, point=(0.0, 0.0, 0.05), force=(0.0, 90.0, 0.0), start=1.5, duration=1.0)
    plant = RigidPlant(arm, 2e-3, pushes=[push])
    observer = tangere.observe.MomentumObserver(arm)
    thresholds = tangere.observe.detect.Thresholds.of_noise(arm, 2e-3)
    isolator = tangere.observe.ContactIsolator(arm)
    detector = tangere.observe.detect.Detector(thresholds, isolator=isolator)
    return tangere.run(plant, ComputedTorque(arm, q), observer, detector=detector, until=4.0, start=q)


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("runs") / "pushed", report=False)


def test_a_log_by_itself_tells_its_events_and_a_folder_has_their_force(result, folder):
    alone, whole = recorded(folder / "log.mcap", "ur10e"), recorded(folder)
    true = result.events[0]
    assert true.link is not None
    for found in (alone, whole):
        event = found.events[0]
        assert (event.time_s, event.link, event.number) == (true.time_s, true.link, 1)
        assert event.force == pytest.approx(true.force)
        assert event.point == pytest.approx(true.point)
    assert [event.time_s for event in alone.events] == [event.time_s for event in whole.events]


def test_what_a_file_says_wrongly_of_an_event_is_left_out():
    from tangere.report.data import events_of

    told = {"time_s": 1.0, "joint": 2, "link": 9, "point": [1.0, 2.0], "force": [1.0, float("nan"), 0.0]}
    (event,) = events_of({}, 6, [told, "no event", {"time_s": "x", "joint": 1}])
    assert (event.joint, event.link, event.point, event.force) == (2, None, None, None)
    (event,) = events_of({}, 6, [told | {"link": 3, "force": [1.0, 2.0, 2.0]}])
    assert event.force_n == pytest.approx(3.0)
    assert event.point is None


def test_what_came_near_an_alarm_is_on_the_timeline_and_what_is_part_of_an_event_is_not():
    time = np.arange(0.0, 20.0, 0.01)
    residual = np.zeros((len(time), 6))
    residual[time.searchsorted(5.0), 2] = -4.5  # of 5
    residual[time.searchsorted(5.2), 2] = -4.2  # the same one
    residual[time.searchsorted(9.0), 1] = 7.0  # too little
    residual[time.searchsorted(15.0), 0] = 9.9  # beside an event
    event = tangere.types.Event.sample(15.2, 1, residual[-1], end_s=15.4)
    data = RunData(
        "run", robot="ur10e", time=time, q=np.zeros((len(time), 6)), residuals={"": residual}, tau=residual,
        thresholds=np.array([10.0, 10.0, 5.0, 5.0, 5.0, 5.0]), events=(event,),
    )  # fmt: skip
    run = recorded(data)
    assert run.near == ((pytest.approx(5.0), 3, pytest.approx(0.9)),)
    assert run.marks == ((pytest.approx(5.0), "near"), (15.2, "1"))


def test_touches_are_looked_for_in_a_log_that_has_none(result, tmp_path):
    log = result.log
    kept = {name: log[name] for name in ("time", "q", "qd", "tau")}
    write_csv(Log(kept), tmp_path / "plain.csv")
    run = recorded(tmp_path / "plain.csv", "ur10e")
    assert run.unfelt
    assert run.events == ()
    shares = []
    felt = run.watched(shares.append)
    assert shares[-1] == pytest.approx(1.0, abs=0.01)
    assert felt.unfelt == ""
    first = next(event for event in felt.events if event.alarm)
    assert 1.5 <= first.time_s <= 1.6
    seen = tangere.watch(tmp_path / "plain.csv", "ur10e").logs[0]
    for time in (1.0, 2.0, 3.3):
        there = seen.residual[int(np.argmin(np.abs(seen.log.motion.time - time)))]
        assert felt.residual[felt.index(time)] == pytest.approx(there)
    assert not any("tangere watch" in text for text in felt.said)


def test_the_page_shows_touches_once_they_are_found_and_says_where_none_can_be(result, tmp_path):
    pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
    write_csv(Log({name: result.log[name] for name in ("time", "q", "qd", "tau")}), tmp_path / "plain.csv")
    shown = tangere.show(tmp_path / "plain.csv", robot="ur10e", browser=False)
    try:
        page = shown.page
        until(lambda: page.run.events, "touches")
        until(lambda: "push" in page.told.content or "collision" in page.told.content, "the list")
        assert not page.next_button.disabled
        page.go(0.0)
        page.jump(1)
        assert page.time == page.run.events[0].time_s
        assert np.isfinite(np.concatenate([values.ravel() for _, _, values in page.plots])).all()
    finally:
        shown.close()
    quiet = {name: result.log[name][:100] for name in ("time", "q", "qd", "tau")}  # too short to be watched
    write_csv(Log(quiet), tmp_path / "short.csv")
    shown = tangere.show(tmp_path / "short.csv", robot="ur10e", browser=False)
    try:
        until(lambda: "cannot be looked for" in shown.page.told.content, "said so")
    finally:
        shown.close()


def test_a_result_is_shown_in_the_studio(result):
    pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
    shown = result.show(browser=False)
    try:
        assert [event.time_s for event in shown.page.run.events] == [event.time_s for event in result.events]
        assert html.escape(shown.address) in shown._repr_html_()
    finally:
        shown.close()


def test_a_long_log_is_an_overview_with_every_event_and_all_rows_where_one_looks(tmp_path, monkeypatch):
    rows = 40_000
    time = np.arange(rows) * 2e-3
    rng = np.random.default_rng(4)
    q, residual = rng.standard_normal((rows, 6)), rng.standard_normal((rows, 6))
    event = tangere.types.Event.sample(33.333, 2, np.ones(6))
    path = tmp_path / "long.mcap"
    write_mcap(Log({"time": time, "q": q, "residual": residual, "tau": q}, events=(event.record(),)), path)
    assert mcap_pieces.pieces(path) is None  # short: read as a whole
    monkeypatch.setattr(mcap_pieces, "IN_PIECES", 1000)
    monkeypatch.setattr(mcap_pieces, "OVERVIEW", 2_000_000)
    run = recorded(path, "ur10e")
    assert run.pieces is not None
    assert [e.time_s for e in run.events] == [33.333]
    assert (run.time[0], run.time[-1]) == (time[0], time[-1])
    assert len(run.time) < rows / 3
    for at in (0.0, 12.345, 33.333, float(time[-1])):
        stamps, seen = run.samples(at)
        k = int(np.searchsorted(time, stamps[0]))
        assert np.array_equal(stamps, time[k : k + len(stamps)])  # none is left out
        assert np.array_equal(seen, q[k : k + len(stamps)])
        assert stamps[0] <= at <= stamps[-1]
    pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
    from tangere.studio.recorded import export

    text = export(path, tmp_path / "long.html", "ur10e").read_text()
    assert 'id="residual"' in text
    assert len(text) < 3e6
    shown = tangere.show(path, robot="ur10e", browser=False)
    try:
        page = shown.page
        for at in (12.3456, 50.0, 3.3):
            page.go(at)
            assert np.array_equal(page.stage.arm.q, q[round(at / 2e-3)])
            page.step(1)
            assert np.array_equal(page.stage.arm.q, q[round(at / 2e-3) + 1])
    finally:
        shown.close()


def test_reading_a_csv_tells_how_far_it_is(result, tmp_path):
    log = Log({name: np.tile(result.log[name], (20, 1)) for name in ("q", "qd")} | {"time": np.arange(40000) * 2e-3})
    write_csv(log, tmp_path / "log.csv")
    shares = []
    assert read_csv(tmp_path / "log.csv", progress=shares.append) == read_csv(tmp_path / "log.csv")
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    told = []
    recorded(tmp_path / "log.csv", "ur10e", lambda what, share: told.append((what, share)))
    assert told[-1] == ("reading log.csv", 1.0)


def test_curves_leave_out_what_is_not_finite_and_keep_the_largest():
    time = np.arange(5000.0)
    values = np.zeros((5000, 2))
    values[:100] = np.nan
    values[3210, 1] = -9.0
    pick = picked(time, values)
    assert 3210 in pick
    assert np.isfinite(values[pick]).all()
    assert len(pick) <= 402
    assert len(picked(time, np.full((5000, 2), np.nan))) == 0
