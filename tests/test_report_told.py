"""A page in words and pictures: its sentence, what was set, who made it, what stood around, what each figure saves."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.figures.arm import scene
from tangere.figures.diagram import LINE, diagram
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.figures.things import PATCH, thing
from tangere.report.data import About, RunData, put_together
from tangere.report.page import report_html
from tangere.report.section import event_marks, residual_panel
from tangere.report.sections_run import fact, label, row, short, value_text
from tangere.report.sentence import sentence
from tangere.types import Event


def made(**changes: Any) -> RunData:
    """Two seconds of a UR10e at rest, touched at 1 s on joint 2."""
    time = 0.01 * np.arange(200)
    q = np.tile([0.0, -1.2, 1.8, -2.1, -1.57, 0.0], (200, 1))
    felt = np.zeros((200, 6))
    felt[100:150, 1] = 20.0
    fields: dict[str, Any] = {
        "time": time, "q": q, "q_des": q, "robot": "ur10e", "residuals": {"": felt}, "thresholds": np.full(6, 2.0),
        "events": (Event.sample(1.0, 2, felt[120], end_s=1.5, kind="push"),), "did": "held still", "period": 0.01,
        "summary": {"events": [{"time_s": 1.0, "joint": 2, "torque_nm": 20.04, "delay_ms": 6.0}],
                    "tracking_max_mm": 0.0193, "tracking_push_max_mm": 9.56},
        "command": "tangere run hold", "parameters": {"observer_gain [1/s]": 50.0, "mass": 1.0},
    }  # fmt: skip
    return RunData("hold", **(fields | changes))


# --- words -----------------------------------------------------------------------------------------------------------


def test_the_sentence_says_who_what_and_when() -> None:
    said = sentence(made())
    assert said.startswith("A Universal Robots UR10e held still for 2 s, its tool at most 0.019 mm from where")
    assert "9.6 mm while it was touched" in said  # what is true of quiet times only is not said of all
    assert said.endswith("A push of 20 Nm on joint 2 at 1 s was felt after 6 ms.")
    assert said in report_html(made())


def test_a_push_by_a_force_is_told_as_it_was_given_and_as_it_was_felt() -> None:
    entry = {"time_s": 1.0, "joint": 2, "torque_nm": 20.04, "delay_ms": 6.0, "push_s": 0.994}
    pushes = [
        {"start_s": 0.2, "joint": 3, "torque_nm": 9.0, "link": 6, "force_n": 70.0, "felt_ms": 1.0},
        {"start_s": 0.994, "joint": 2, "torque_nm": 20.0, "link": 4, "force_n": 30.0, "felt_ms": 6.0},
    ]
    collision = (replace(made().events[0], kind="collision"),)
    told = made(summary={"events": [entry], "pushes": pushes}, events=collision)
    assert sentence(told).endswith("A push of 30 N on link 4 at 1 s was felt after 6 ms, as 20 Nm at joint 2.")
    told = made(summary={"events": [entry], "pushes": pushes})
    assert sentence(told).endswith("A push of 30 N on link 4 at 1 s was felt after 6 ms, as 20 Nm at joint 2.")
    by_torque = [pushes[0], pushes[1] | {"link": None, "force_n": None}]
    told = made(summary={"events": [entry], "pushes": by_torque})
    assert sentence(told).endswith("A push of 20 Nm on joint 2 at 1 s was felt after 6 ms.")
    told = made(summary={"events": [entry | {"torque_nm": -22.8}], "pushes": by_torque})
    assert sentence(told).endswith("A push of 20 Nm on joint 2 at 1 s was felt after 6 ms, as 22.8 Nm.")


def test_a_page_says_how_many_samples_the_run_had_not_how_many_it_kept() -> None:
    assert "2 s, 200 samples" in report_html(made())
    assert "2 s, 202000 samples" in report_html(made(summary={"events": [], "samples": 202_000}))


def test_what_an_arm_presses_against_is_no_push() -> None:
    told = sentence(made(summary=made().summary | {"force": {"mean_n": 5.0}}))
    assert told.endswith("The contact at 1 s was felt after 6 ms, as 20 Nm at joint 2.")


def test_the_page_of_a_log_of_others_has_no_empty_sections(tmp_path: Path) -> None:
    rows = "\n".join(",".join(str(1.55e6 + 0.2 * k) if i == 0 else f"{0.1 * i + 1e-3 * k}" for i in range(7))
                     for k in range(8))  # fmt: skip
    (tmp_path / "log.csv").write_text(rows + "\n")
    assert main(["report", str(tmp_path / "log.csv"), "--columns", "t,q", "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    shown = set(re.findall('<section id="([a-z-]+)"', page))
    assert "joints" in shown
    assert not shown & {"residual", "tracking", "timing", "again", "what", "setup"}
    assert "left no summary" not in page


def test_the_sentence_of_other_runs() -> None:
    quiet = made(events=(), summary={"events": [], "tracking_max_mm": 1e-13})
    assert sentence(quiet).endswith("less than a nanometre from where it should be. No touch was felt.")
    wanted = replace(quiet, events=(Event.sample(1.0, 2, np.ones(6), kind="wanted"),))
    assert "The contact was wanted and raised no alarm." in sentence(wanted)
    touch = {"obstacle": "hand", "speed_m_s": 0.25, "peak_n": 257.9, "felt_ms": 2.0, "remaining_n": 0.7}
    assert "It met a hand at 0.25 m/s: 258 N at most, felt after 2 ms, 0.7 N one second later." in sentence(
        made(summary={"touch": touch})
    )
    pressed = {"mean_n": 5.0001, "min_n": 4.2, "max_n": 5.3}
    assert "pressing with 5 N on average (4.2 to 5.3 N)." in sentence(made(events=(), summary={"force": pressed}))
    assert sentence(RunData("nothing")) == ""


def test_a_false_alarm_and_a_missed_push_are_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A payload that nobody told of: nothing touched at 0.301 s, and the push at 0.8 s went under. Page, terminal."""
    words = "run hold --plant rigid --push joint=2,torque=20,start=0.8,duration=0.2 --set duration=1.2 payload=3 --out"
    assert main([*words.split(), str(tmp_path)]) == 0
    page, told = (tmp_path / "report.html").read_text(), capsys.readouterr().out
    false = r"False alarm on joint 4 from 0.301 s to the end: nothing touched the arm, its model is off by "
    false += r"[\d.]+ Nm there \(rms\), most on joint 2: 19\.9 Nm\."
    missed = "The push of 20 Nm on joint 2 at 0.8 s was not told apart from the alarm that had gone on since 0.301 s."
    for text in (page, told):
        assert re.search(false, text)
        assert missed in text
        assert "was felt" not in text
    assert "touch at" not in told
    assert "pushes felt" in page
    said = re.search(r"off by ([\d.]+) Nm there", page)
    assert said
    assert f"<td>{said[1]} rms</td>" in page  # the table has the figure of the sentence
    assert "believed_payload" in page  # what to do
    assert "Before 0.3 s nothing is watched" in page  # why it came when it came


def test_a_push_below_its_threshold_is_said_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "run hold --plant rigid --push link=4,force=0/0/5,start=0.5,duration=0.2 --set duration=0.9"
    assert main([*words.split(), "threshold=40", "--out", str(tmp_path)]) == 0
    missed = r"The push of 5 N on link 4 at 0.5 s was not felt \([\d.]+ Nm on joint [23], threshold there: 40 Nm\)\."
    assert re.search(missed, capsys.readouterr().out)
    assert re.search(missed, (tmp_path / "report.html").read_text())


def test_a_curve_below_its_threshold_says_what_alarmed_instead() -> None:
    """An alarm by impact: the dashed level is another threshold, and the page says when the curve crossed that one."""
    time = np.linspace(0.0, 2.0, 201)
    curve = np.zeros((201, 6))
    curve[time >= 1.0, 1] = np.clip(20.0 * (time[time >= 1.0] - 1.0) / 0.5, 0.0, 20.0)
    event = Event.sample(1.0, 2, np.ones(6), channel="impact", reason="joint 2: impact of 2.77 Nm", end_s=2.0)
    data = made(time=time, residuals={"": curve}, thresholds=np.full(6, 8.0), events=(event,), q=None, q_des=None)
    assert "is that of the level, 8 Nm, which the curve crossed at 1.21 s." in report_html(data)
    assert "which the curve did not cross." in report_html(replace(data, thresholds=np.full(6, 30.0)))
    assert "of the level" not in report_html(replace(data, events=(replace(event, channel="level"),)))


def test_without_a_detector_nothing_is_said_of_thresholds() -> None:
    quiet = made(events=(), summary={"events": []})
    assert "nothing rose above its threshold" in report_html(quiet)
    for residuals in (quiet.residuals, {}):
        page = report_html(replace(quiet, residuals=residuals, thresholds=None))
        assert "rose above its threshold" not in page
        assert "without a detector nobody looks for one" in page


def test_only_what_differs_from_the_defaults_is_shown_first() -> None:
    page = report_html(made(changed=("observer_gain [1/s]",)))
    section = page[page.index('id="settings"') : page.index('id="summary"')]
    assert "observer gain [1/s]" in section
    assert "mass" not in section
    assert "every setting is at its default" in report_html(made(changed=()))
    program = made(parameters={"program": "def p():\nend"}, changed=("program",))
    assert "see Reproduce" in report_html(program)  # a text of many lines is no cell, and no default
    assert 'id="settings"' not in report_html(made())  # not known
    assert page.index("All 2 settings") > page.index('id="what"')


def test_numbers_have_three_digits_and_no_rounding_noise() -> None:
    assert value_text([-6.38e-17, -20.0, -3.08e-15]) == "0, −20, 0"
    assert value_text(0.013892665) == "0.0139"
    assert short(6.027e-16) == "0"
    assert short(6.0e-12) == "6.00e-12"  # small, but nothing is there to be rounded
    assert fact("tracking_rms_mm", 0.5) == ("tracking error, rms after the start ramp and without pushes", "0.5\xa0mm")
    assert label("own_speed_m_s") == "own speed [m/s]"
    page = report_html(made(summary={"force": {"mean_n": 5.0, "controllable": {"mean_n": 5.0}}}))
    assert page.count("force of the wall, mean") == 1  # a part that says the same again is left out
    assert "controllable" not in page


def test_figures_of_one_row_have_the_digits_of_the_largest_and_shares_are_per_cents() -> None:
    assert row([0.00107, 0.0125, 0.00116, 3.68e-05, 4.21e-05, 0.0]) == ["0.00107", "0.0125", "0.00116", "0", "0", "0"]
    assert row([0.00528, -2.48e-05, 4e-06]) == ["0.00528", "−0.00002", "0"]
    assert row([0.00528, 5.2e-6, 4.9e-6]) == ["0.00528", "0.00001", "0"]
    assert row([1e-9, -3e-16]) == ["0", "0"]
    assert row([float("nan"), 2.0]) == ["–", "2"]
    assert row([-1234.6, 0.4]) == ["−1235", "0"]
    assert fact("touch torque_share", 0.526) == ("largest torque, of its limit", "52.6\xa0%")
    assert fact("touch end_speed_rad_s", 9.01e-6) == ("fastest joint at the end", "< 0.0001\xa0rad/s")
    assert fact("touch end_speed_rad_s", 1.03e-9) == ("fastest joint at the end", "0\xa0rad/s")


def test_a_panel_that_is_alone_among_quiet_ones_is_no_larger_than_the_others_are_small() -> None:
    time = np.linspace(0.0, 1.0, 5)
    loud = Panel("loud", "Nm", (Series("residual", time, "a"),))
    figure = TimeFigure("touch", "", time, (loud, replace(loud, title="still", quiet=True)))
    page = str(figure.html())
    assert page.count('class="panels many"') == 1
    assert page.count('class="panels many quiet"') == 1
    assert 'class="panels"' in str(TimeFigure("one", "", time, (loud,)).html())


def test_title_author_logo_and_date(tmp_path: Path) -> None:
    logo = tmp_path / "logo.png"
    logo.write_bytes(b"\x89PNG")
    page = report_html(made(about=About.given("My <title>", "A. Author", str(logo), "2026-11-16")))
    assert "<h1>My &lt;title&gt;</h1>" in page
    assert "A. Author · 2026-11-16" in page
    assert 'src="data:image/png;base64,iVBORw=="' in page
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", About.given(author="A").date)
    assert About.given("only a title").date == ""
    with pytest.raises(InvalidValue, match=r"ends with \.svg, \.png or \.jpg"):
        About.given(logo="logo.bmp")
    with pytest.raises(InvalidValue, match="cannot read"):
        About.given(logo=str(tmp_path / "none.png"))


def test_a_live_arm_is_not_faster_than_real_time() -> None:
    told = {"summary": {"realtime_factor": 0.999}, "timing_us": np.full(200, 10.0)}
    assert "simulated seconds per second" in report_html(made(**told))
    assert "simulated seconds per second" not in report_html(made(**told, live=True))
    assert put_together(None, {"scenario": {"scenario": "hold", "arm": "192.168.0.10"}}).live
    assert not put_together(None, {"scenario": {"scenario": "hold"}}).live


# --- figures ---------------------------------------------------------------------------------------------------------


def test_quiet_joints_are_small_and_keep_their_place_in_the_data() -> None:
    data = made()
    panels = [residual_panel(data, i, f"J{i + 1}") for i in range(6)]
    assert [panel.quiet for panel in panels] == [True, False, True, True, True, True]
    figure = TimeFigure("x", "", data.time, tuple(panels))
    assert [panel["title"] for panel in figure.data()["panels"]] == [f"J{i}" for i in range(1, 7)]
    html = figure.html()
    assert html.index('data-panel="1"') < html.index('class="panels many quiet"') < html.index('data-panel="0"')
    nothing = TimeFigure("x", "", data.time, tuple(replace(panel, quiet=True) for panel in panels))
    assert "many quiet" not in nothing.html()


def test_shared_axes_have_one_scale() -> None:
    time = np.arange(3.0)
    panels = tuple(Panel(str(k), "m", (Series("s", k * time, "a"),)) for k in (1, 10))
    own, one = (TimeFigure("x", "", time, panels, shared=shared).html() for shared in (False, True))
    tops = [re.findall(r'class="y">([\d.]+)<', text) for text in (own, one)]
    assert tops[1][: len(tops[1]) // 2] == tops[1][len(tops[1]) // 2 :]
    assert tops[0] != tops[1]


def test_events_everywhere_are_marked_at_their_onset() -> None:
    long = Event.sample(0.1, 2, np.ones(6), end_s=1.95)
    (band,) = event_marks(made(events=(long,)))
    assert band.end - band.start < 0.02
    (band,) = event_marks(made())
    assert (band.start, band.end) == (1.0, 1.5)


def a_box(size: tuple[float, float, float], at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> dict[str, Any]:
    T = np.eye(4)
    T[:3, 3] = at
    return {"name": "wall", "kind": "surface", "parts": [{"kind": "box", "size": size, "T": T[:3].ravel().tolist()}]}


def test_faces_look_outwards_and_large_walls_are_cut() -> None:
    box = thing(a_box((0.1, 0.2, 0.05), (1.0, 0.0, 0.5)), np.array([1.0, 0.0, 0.5]))
    assert box is not None
    for face in box.faces:
        normal = np.cross(face[1] - face[0], face[2] - face[1])
        assert normal @ (face.mean(axis=0) - [1.0, 0.0, 0.5]) > 0.0
    wall = thing(a_box((0.6, 0.6, 0.02)), np.array([0.5, 0.0, 0.0]))
    assert wall is not None
    np.testing.assert_allclose(wall.points.min(axis=0), [0.5 - PATCH, -PATCH, -0.02])
    np.testing.assert_allclose(wall.points.max(axis=0), [0.6, PATCH, 0.02])
    for bad in ({}, {"parts": []}, {"parts": [{"kind": "box", "size": [1, 1], "T": [0] * 12}]}, {"parts": 3},
                {"parts": [{"kind": "box", "size": [float("nan")] * 3, "T": [0] * 12}]}):  # fmt: skip
        assert thing(bad, np.zeros(3)) is None


def test_what_stands_around_and_what_pushes_is_drawn() -> None:
    wrench = np.zeros((200, 6))
    wrench[120, :3] = [0.0, 0.0, 42.0]
    page = report_html(made(bodies=(a_box((0.1, 0.1, 0.02), (0.6, 0.2, 0.1)),), wrench=wrench))
    scene_part = page[page.index('id="motion"') : page.index("</figure>")]
    assert '<text class="thing"' in scene_part
    assert ">42 N</text>" in scene_part
    assert "Shown at 1.20 s" in scene_part  # the pose in which it pushes most


def test_names_of_frames_do_not_cover_each_other() -> None:
    robot = tangere.robot("ur10e")
    drawn = scene(robot, np.array([[0.1, -1.0, 1.5, -2.0, -1.57, 0.3]]), np.zeros(1), "x", frames=True).still()
    at = re.findall(r'<text class="frame" x="([-\d.]+)" y="([-\d.]+)"', drawn)
    places = np.array(at, dtype=float)
    assert len(places) == 7
    for k, place in enumerate(places):
        for other in places[:k]:
            assert abs(place[0] - other[0]) > 30.0 or abs(place[1] - other[1]) > 14.0


def test_long_names_stay_in_their_boxes_and_the_outer_loop_is_closed() -> None:
    names = {"controller": "Cartesian impedance, force fed forward", "plant": "x" * 90, "reaction": "soft"}
    drawn = diagram(names)
    lines = re.findall(r'<text class="name"[^>]*>([^<]*)<', drawn)
    assert max(len(line) for line in lines) <= LINE
    assert "force fed forward" in lines
    assert "takes over" in drawn
    assert "takes over" not in diagram({"controller": "x"})
    assert "events go to the log" in diagram({"controller": "x"})


def test_drives_that_failed_have_a_table_and_no_true_torque(tmp_path: Path) -> None:
    told = made()
    fault = {"joint": 2, "offset": -15.0, "start": 1.0, "felt_ms": 2.0, "felt_nm": -15.0, "kind": "fault", "why": ""}
    stuck = {"joint": 3, "stuck": "", "start": 1.5, "felt_ms": None, "felt_nm": None, "why": "it was not felt"}
    entry = {"time_s": 1.0, "joint": 2, "torque_nm": -15.0, "true_torque_nm": 0.0}
    event = replace(told.events[0], kind="fault")
    summary = {"faults": [fault, stuck], "events": [entry], "tracking_max_mm": 0.2, "tracking_push_max_mm": 21.0}
    page = report_html(made(events=(event,), summary=summary))
    words = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))
    assert "Drives that failed" in words
    assert "2 off by \N{MINUS SIGN}15 Nm 1 2 \N{MINUS SIGN}15 fault" in words
    assert "3 stuck 1.5 \N{EN DASH} \N{EN DASH} \N{EN DASH} it was not felt" in words
    assert "0.2 mm from where it should be and 21 mm once a drive had failed" in words
    assert "felt_ms" not in words
    assert "of 0 Nm" not in words


def test_a_tile_says_how_many_pushes_were_felt() -> None:
    def text(*felt: float | None) -> str:
        pushes = [{"start_s": 1.0 + k, "end_s": 1.5 + k, "felt_ms": ms} for k, ms in enumerate(felt)]
        return re.sub(r"<[^>]+>", " ", report_html(made(summary={**made().summary, "pushes": pushes})))

    assert re.search(r"pushes felt\s+1 of 2", text(6.0, None))
    assert "pushes felt" not in text(6.0, 7.0)
