"""Runs and logs again: the timeline, a ghost, the page that needs no server, all solutions of a dragged tool."""

from __future__ import annotations

import html
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from studio_browser import browser, needs_browser, until

import tangere
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log
from tangere.studio.learn import singular
from tangere.studio.recorded import recorded
from tangere.studio.stage import words

pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
EVIL = "<img src=x onerror=\"window.evil='ran'\"> `x` [y](javascript:window.evil='ran')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that was pushed, with a note that a page must not obey."""
    from tangere.control import ComputedTorque
    from tangere.planning.joint_motions import Sine
    from tangere.plants import Push, RigidPlant

    arm = tangere.robot("ur10e")
    q = np.deg2rad([10.0, -80.0, 80.0, -70.0, -90.0, 20.0])
    goal = Sine(arm, q, 0.3, 0.5, ramp=0.3, duration=2.0, joints=(1, 2, 3, 4, 5, 6))
    plant = RigidPlant(arm, 2e-3, pushes=[Push(2, 25.0, 0.8, 0.5)])
    observer = tangere.observe.MomentumObserver(arm)
    result = tangere.run(plant, ComputedTorque(arm, goal), observer, detector=5.0, until=2.0, start=q)
    assert result.events
    notes = (*result.log.notes, type(result.log.notes[0])(1.0, EVIL))
    place = tmp_path_factory.mktemp("runs") / "pushed"
    return replace(result, log=replace(result.log, notes=notes)).save(place, report=False)


@pytest.fixture(scope="module")
def replay(folder):
    from tangere.studio.door import guarded_server, stop
    from tangere.studio.replay import ReplayPage

    server, door = guarded_server()
    page, end = ReplayPage(server, recorded(folder), recorded(folder), frames=8.0), threading.Event()
    worker = threading.Thread(target=page.work, args=(end,), daemon=True)
    worker.start()
    yield server, door, page
    end.set()
    worker.join()
    stop(server)


def test_any_time_shows_the_nearest_sample(replay):
    _, _, page = replay
    run = page.run
    rng = np.random.default_rng(3)
    for time in rng.uniform(run.time[0] - 0.1, run.time[-1] + 0.1, 50):
        page.go(float(time))
        nearest = int(np.argmin(np.abs(run.time - np.clip(time, run.time[0], run.time[-1]))))
        assert abs(page.index - nearest) <= 1
        assert page.stage.arm.q == pytest.approx(run.q[page.index])
        assert abs(run.time[page.index] - page.time) <= 0.5001 * 2e-3


def test_marks_are_the_events_and_jumps_go_from_one_to_the_next(replay):
    _, _, page = replay
    times = [event.time_s for event in page.run.events]
    assert [time for time, _ in page.run.marks] == times
    page.go(0.0)
    page.jump(1)
    assert page.time == times[0]
    page.step(1)
    assert page.time == pytest.approx(times[0] + 2e-3)
    page.step(-2)
    assert page.time == pytest.approx(times[0] - 2e-3)
    page.go(page.run.time[-1])
    page.jump(-1)
    assert page.time == times[-1]


def test_in_the_browser_the_slider_moves_the_arm_keys_step_and_notes_run_nothing(replay):
    needs_browser()
    from tangere.studio.door import address

    server, door, page = replay
    with browser((1280, 560)) as open_page:
        seen = open_page(address(server, door))
        client = until(lambda: list(server.get_clients().values()), "a client")[0]
        client.local_storage.get_item("tangere", timeout=60.0)

        def shown():
            found = seen.page.evaluate(
                "(() => { const o = window.__viserMutable.nodeRefFromName['/arm/6'];"
                " return o ? [o.position.x, o.position.y, o.position.z] : null })()"
            )
            return None if found is None else np.array(found)

        for time in (0.3, 1.1, 1.9):
            page.go(time)
            wanted = np.array(page.stage.arm.frames[6].position)
            until(lambda wanted=wanted: (p := shown()) is not None and np.abs(p - wanted).max() < 1e-5, "the arm")
        seen.slide("t [s]", 0.5)
        until(lambda: 0.8 < page.time < 1.2, "the slider is followed")
        wanted = page.stage.robot.link_poses(page.run.q[page.run.index(page.slider.value)])[5, :3, 3]
        placed = np.array(page.stage.arm.frames[6].position)
        assert np.allclose(page.stage.arm.links[5, :3, 3], wanted, atol=1e-9)
        until(lambda: np.abs(shown() - placed).max() < 1e-5, "the arm there")
        page.go(page.run.time[-1])
        seen.page.get_by_role("button", name="Next event").click()  # from the end: nothing follows
        seen.page.get_by_role("button", name="Event before").click()
        until(lambda: page.time == page.run.events[-1].time_s, "the event")
        seen.page.keyboard.press("ArrowRight")
        until(lambda: page.time > page.run.events[-1].time_s, "a sample on")
        before = page.time
        field = seen.page.locator("input[type=text]").first  # the number beside the slider
        field.click()
        seen.page.keyboard.press("n")  # while typing keys are letters
        seen.page.keyboard.press("p")
        seen.page.keyboard.press("ArrowRight")
        client.local_storage.get_item("tangere", timeout=60.0)  # whatever they told has come by now
        assert not page.playing
        assert page.time == before
        seen.page.get_by_text("Notes of the log").click()
        until(lambda: seen.page.get_by_text("onerror").count(), "the note is shown as text")
        assert seen.page.evaluate("window.evil") is None
        assert seen.page.locator("img[src=x]").count() == 0
        assert seen.outside == []
        assert seen.errors == []


def test_the_exported_page_opens_from_a_file_moves_and_asks_nobody(folder, tmp_path, capsys):
    out = tmp_path / "run.html"
    assert main(["studio", "export", str(folder), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert out.stat().st_size < 1e6 + 20e3 * 2.0
    text = out.read_text()
    assert 'id="residual"' in text
    assert re.search(r"<svg|<canvas", text)  # curves of the report
    assert "https://" not in re.sub(r"srcdoc=\"[^\"]*\"", "", text)
    needs_browser()
    with browser((1000, 700)) as open_page:
        seen = open_page(out.as_uri(), wait="iframe")
        frame = until(lambda: len(seen.page.frames) > 1 and seen.page.frames[1], "the frame")
        node = "window.__viserMutable?.nodeRefFromName['/arm/6']"
        where = f"(() => {{ const o = {node}; return o ? o.position.x : null }})()"
        first = until(lambda: frame.evaluate(where), "the arm")
        until(lambda: frame.evaluate(where) != first, "it moves")
        assert [url for url in seen.requests if not url.startswith(("file:", "blob:", "data:", "about:"))] == []


def test_what_cannot_be_shown_is_one_sentence(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    cases = [
        (["studio", str(tmp_path / "empty"), "--no-browser"], "no run in"),
        (["studio", str(tmp_path / "nowhere"), "--no-browser"], "no run at"),
        (["studio", "export", str(tmp_path / "empty"), "--out", str(tmp_path / "a.html")], "no run in"),
        (["studio", "export", str(tmp_path / "empty")], "say what and where to"),
        (["studio", "--ghost", "x"], "--ghost: stands beside a RUN or LOG"),
        (["studio", "rtde://127.0.0.1:1", "--no-browser", "--robot", "ur5e"], "127.0.0.1"),
        (["studio", "rtde://", "--no-browser"], "is not an arm's address"),
    ]
    for words_, sentence in cases:
        assert main(words_) == 1, words_
        said = capsys.readouterr()
        assert said.out == ""
        assert sentence in said.err
        assert said.err.count("\n") == 1


def test_a_log_without_torque_is_shown_and_says_so(tmp_path):
    time = np.arange(100) * 0.01
    q = np.tile(np.deg2rad([0.0, -90.0, 90.0, -90.0, -90.0, 0.0]), (100, 1))
    write_csv(Log({"time": time, "q": q}), tmp_path / "log.csv")
    with pytest.raises(InvalidValue, match="--robot NAME"):
        recorded(tmp_path / "log.csv")
    run = recorded(tmp_path / "log.csv", "ur5e")
    assert run.said == ("the log has no torque: what the arm felt cannot be shown, only how it moved",)
    write_csv(Log({"time": time, "qd": q}), tmp_path / "speeds.csv")
    with pytest.raises(InvalidValue, match="no joint positions"):
        recorded(tmp_path / "speeds.csv", "ur5e")


def test_words_of_a_log_mean_nothing_to_a_page():
    assert not set(words(EVIL)) & set("<>`[]()\"'")
    assert words("plain text 1.5 N") == "plain text 1.5 N"


def test_as_many_ghosts_as_solutions_each_with_its_tool_at_the_handle():
    arm = tangere.robot("ur10e")
    shown = arm.show(browser=False)
    try:
        learn = shown.page.learn
        learn.drag(True)
        rng = np.random.default_rng(5)
        for q in rng.uniform(-np.pi, np.pi, (20, 6)):
            T = arm.pose(q)
            learn.solve(T)
            visible = [ghost for ghost, text in zip(learn.ghosts, learn.labels, strict=True) if text.visible]
            assert len(visible) == len(learn.solutions) == len(arm.inverse_kinematics(T, reference=learn.arm.q))
            for ghost in visible:
                assert arm.pose(ghost.q) == pytest.approx(T, abs=1e-6)
            assert f"**{len(visible)} solutions**" in learn.said
            numbers = np.array([text.position for text in learn.labels if text.visible])
            apart = np.linalg.norm(numbers[:, None] - numbers, axis=2) + np.eye(len(numbers))
            assert apart.min() > 0.06  # no number stands on another one
        far = arm.pose(np.zeros(6))
        far[:3, 3] = (3.0, 0.0, 0.5)
        learn.solve(far)
        assert "out of reach" in learn.said
        assert not any(text.visible for text in learn.labels)
        assert not any(frame.visible for ghost in learn.ghosts for frame in ghost.frames)
        straight = np.array([0.3, -1.2, 1.4, -0.7, 0.0, 0.2])  # a wrist that is straight: a singularity
        learn.solve(arm.pose(straight))
        assert "singular" in learn.said
        for i, ghost in enumerate(learn.ghosts[: len(learn.solutions)]):  # singular: red, beyond a limit: amber
            wrong = (214, 69, 46) if singular(learn.solutions, i) else (232, 146, 12)
            fine = learn.solutions.within_limits[i] and not singular(learn.solutions, i)
            painted = {tuple(part.color) for parts in ghost.parts[1:] for part in parts.values()}
            assert painted == ({ghost.ghost} if fine else {wrong})
        assert any(singular(learn.solutions, i) for i in range(len(learn.solutions)))
        learn.drag(False)
        assert learn.handle is None
    finally:
        shown.close()


def test_show_takes_runs_and_robots_and_refuses_the_rest(folder):
    shown = tangere.show(folder, ghost=folder, browser=False)
    assert html.escape(shown.address) in shown._repr_html_()
    shown.close()
    with pytest.raises(InvalidValue, match="a robot, or a run"):
        tangere.show(3, browser=False)


def test_an_arm_at_an_address_is_watched_with_touch_and_nothing_is_sent_to_it(monkeypatch):
    from virtual_arms import virtual

    from tangere.rtde.client import Rtde
    from tangere.rtde.client import address as arm_address
    from tangere.studio.door import guarded_server, stop
    from tangere.studio.watched import WatchedPage

    monkeypatch.setattr(Rtde, "send", lambda *_: pytest.fail("something was sent to the arm"))
    monkeypatch.setattr(Rtde, "inputs", lambda *_: pytest.fail("inputs were asked for"))
    with virtual("--push", "joint=2,torque=40,start=6,duration=2", clock="real") as host:
        server, _ = guarded_server()
        page, end = WatchedPage(server, arm_address(f"rtde://{host}"), frames=8.0), threading.Event()
        worker = threading.Thread(target=page.work, args=(end,), daemon=True)
        worker.start()
        assert page.robot.name == "ur5e"
        event = until(lambda: next(iter(page.events.values()), None), "the push is felt")
        assert event.joint == 2
        until(lambda: np.isfinite(page.stage.arm.q).all(), "the arm is shown")
        assert not [part for parts in page.stage.arm.parts for part in parts.values() if part._impl.drag_cb]
        end.set()
        worker.join()
        page.close()
        stop(server)
