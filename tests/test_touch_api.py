"""identify, tune, watch, draw and fmu from Python: the same answers as the commands', as values."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from watched_logs import ROBOT, columns_of, model_of

import tangere
from tangere.apps.touch.api import LearnedModel, WatchedLogs, per_hour, recorded
from tangere.apps.touch.learn_commands import promise
from tangere.apps.touch.options import arm_of
from tangere.apps.touch.options import model_of as chosen_model
from tangere.apps.touch.page_watched import point_of, watched_html
from tangere.cli.main import main
from tangere.errors import InvalidValue, ModelFileError
from tangere.figures.arm import ELEVATION, HEIGHT, WIDTH, scene, view
from tangere.identification import read_model
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log
from tangere.logs.recordings import recordings
from tangere.loop.tuning import Tuned

PUSH = (2.0, 3.0, 40.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three free logs, one that is pushed, and an identified model, as files."""
    where = tmp_path_factory.mktemp("logs")
    for k in range(3):
        write_csv(Log(columns_of(16.0, seed=k + 1)), where / f"free_{k}.csv")
    write_csv(Log(columns_of(push=PUSH)), where / "pushed.csv")
    model_of().write(where / "model.toml")
    return where


@pytest.fixture(scope="module")
def tuned(folder: Path) -> LearnedModel:
    return tangere.tune(folder / "model.toml", str(folder / "free_*.csv"), rate="1/h")


def test_watch_gives_the_events_of_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched = tangere.watch(folder / "pushed.csv", "ur10e", folder / "model.toml")
    log, model = str(folder / "pushed.csv"), str(folder / "model.toml")
    assert main(["watch", log, "--robot", "ur10e", "--model", model, "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event.time_s for event in watched.events] == [line["time_s"] for line in told]
    assert watched.alarms[0].time_s == pytest.approx(52.0, abs=0.1)
    assert watched.alarms[0].joint == 2
    assert watched.score.shape == (len(watched.logs[0].residual),)
    assert np.nanmax(watched.score) > 1.0
    assert np.nanmax(watched.score[:300]) < 1.0  # before the push
    assert np.isnan(watched.score[0])  # settling
    t = watched.logs[0].traces  # either channel can be the largest: both count
    for values, bound in ((t.level, t.level_bound), (t.change, t.change_bound)):
        own = np.max(np.abs(values) / bound, axis=1)
        assert np.any(own[400:] == watched.score[400:])
        assert np.all(own[400:] <= watched.score[400:])


def test_a_log_a_file_and_lines_are_the_same(folder: Path) -> None:
    """One Log in memory, its file, and its lines: the same alarms."""
    path = folder / "pushed.csv"
    files = tangere.watch([path], ROBOT, folder / "model.toml")
    memory = tangere.watch(Log(columns_of(push=PUSH)), ROBOT, read_model(folder / "model.toml"))
    assert [e.record() for e in memory.events] == [e.record() for e in files.events]
    told: list[str] = []
    with path.open() as lines:
        stream = tangere.watch(lines, model=folder / "model.toml", tell=lambda event: told.append(event.phase))
    assert [e.time_s for e in stream.alarms] == [e.time_s for e in files.alarms]
    assert told[0] == "raised"
    assert stream.logs == ()
    assert stream.score.shape == (0,)
    with pytest.raises(InvalidValue, match="of a stream no page is written"):
        stream.report(folder / "no.html")


def test_the_page_names_a_link_no_more_surely_than_it_is_known(folder: Path) -> None:
    seen = tangere.watch(folder / "pushed.csv", ROBOT, folder / "model.toml").logs[0]
    known = {"link": 4, "point": np.zeros(3), "force": np.array((0.0, 0.0, 38.0)), "force_interval_n": (31.0, 44.0)}
    at = seen.alarms[0].time_s - float(seen.log.motion.time[0])
    for probability, words in (
        (0.99, f"at {at:.2f} s on link 4 (99 %) with 38 N (31 to 44)."),
        (0.60, f"at {at:.2f} s at joint 2, most likely on link 4 (60 %)."),
    ):
        event = dataclasses.replace(seen.alarms[0], link_probability=probability, **known)
        page = watched_html([dataclasses.replace(seen, events=(event,))])
        assert words in page
        assert f"push at {at:.2f} s: link 4 ({100 * probability:.0f} %), 38 N." in page


def test_without_a_model_each_log_teaches_its_own_friction(folder: Path) -> None:
    watched = tangere.watch(folder / "pushed.csv", robot="ur10e")
    assert any("learned from this log itself" in note for note in watched.notes)
    assert len(watched.alarms) == 1
    assert watched.logs[0].belief.model is None


def test_what_is_missing_or_wrong_is_said(folder: Path) -> None:
    with pytest.raises(InvalidValue, match="robot: the arm that was recorded"):
        tangere.watch(folder / "pushed.csv")
    with pytest.raises(InvalidValue, match=r"none_\*.csv: no file of that name"):
        tangere.watch(folder / "none_*.csv", "ur10e")
    with pytest.raises(InvalidValue, match="logs: at least one file or log"):
        tangere.watch([], "ur10e")
    with pytest.raises(ModelFileError, match="ur10e"):
        tangere.watch(folder / "pushed.csv", "ur5e", folder / "model.toml")
    with pytest.raises(InvalidValue, match="NUMBER/h"):
        tangere.tune(folder / "model.toml", folder / "free_0.csv", rate="1/hr or so")


def test_tuned_thresholds_are_kept_and_used(folder: Path, tuned: LearnedModel, tmp_path: Path) -> None:
    assert tuned.thresholds is not None
    assert tuned.robot.name == "ur10e"
    assert repr(tuned) == "LearnedModel('ur10e', tuned from 3 logs)"
    assert "false alarms per hour" in str(tuned)
    assert tuned._repr_html_().startswith("<pre>")
    where = tuned.save(tmp_path / "tuned.toml")
    assert read_model(where).detection == tuned.model.detection
    with pytest.raises(InvalidValue, match=r"ends in \.toml"):
        tuned.save(tmp_path / "tuned.json")
    assert "Thresholds" in tuned.report(tmp_path / "tuned.html").read_text()
    a, b = tangere.watch(folder / "pushed.csv", model=tuned), tangere.watch(folder / "pushed.csv", model=where)
    assert [e.record() for e in a.events] == [e.record() for e in b.events]
    assert len(a.alarms) == 1
    assert a.logs[0].belief.tuned


def test_what_is_mounted_counts(folder: Path) -> None:
    """A robot with a payload: thresholds are learned, and logs watched, with it."""
    loaded = tangere.robot("ur10e", payload=2.0)
    log = Log(columns_of(16.0, load=2.0))
    tuned = tangere.tune(folder / "model.toml", log, rate="10/h", robot=loaded)
    for seen in (*tuned.learned.logs, *tangere.watch(log, model=tuned).logs):
        payload = seen.belief.robot.model.payload
        assert payload is not None
        assert payload.mass == 2.0
    assert not tangere.watch(log, model=tuned).alarms


def test_a_rate_is_a_number_or_a_text() -> None:
    assert per_hour("0.1/h") == per_hour(0.1) == 0.1
    assert per_hour("1/day") == pytest.approx(1 / 24)
    with pytest.raises(InvalidValue, match="false alarms above zero"):
        per_hour(0.0)


def test_watched_logs_are_shown(folder: Path, tuned: LearnedModel, tmp_path: Path) -> None:
    watched = tangere.watch([folder / "pushed.csv", folder / "free_0.csv"], model=tuned)
    assert isinstance(watched, WatchedLogs)
    assert len(watched.logs) == 2
    assert len(watched.score) == sum(len(seen.residual) for seen in watched.logs)
    assert repr(watched).startswith("WatchedLogs(1 alarm, ")
    html = watched._repr_html_()
    assert "torque [Nm]" in html
    assert html.count("<tr>") == 1 + len(watched.events)
    assert "pushed.csv" in watched.report(tmp_path / "watched.html").read_text()
    twice = tangere.watch([folder / "pushed.csv"] * 2, model=tuned).report(tmp_path / "twice.html").read_text()
    found = re.findall(r' id="([^"]+)"', twice)
    assert len(set(found)) == len(found)
    assert {"places", "places-2"} <= set(found)


def test_the_arrow_of_a_push_ends_where_it_acts_and_points_along_it(rng: np.random.Generator) -> None:
    for numbers in rng.normal(size=(20, 12)):
        q, force, point = numbers[:6], numbers[6:9], numbers[9:]
        acts = point_of(ROBOT, q, 4, point)
        T = ROBOT.link_poses(q)[3]
        assert T[:3, :3].T @ (acts - T[:3, 3]) == pytest.approx(point)
        drawn = scene(ROBOT, q[None], np.zeros(1), "arm", frames=False, arrows=((acts, 30.0 * force),))
        scale = 1.12 * min(WIDTH, HEIGHT) / (2.0 * drawn.radius)
        right, up, _ = view(drawn.azimuth, ELEVATION)
        seen = np.array([WIDTH / 2, HEIGHT / 2]) + scale * np.array([right, -up]) @ (acts - drawn.centre)
        along = np.array([right, -up]) @ force  # as the page shows it, y downwards
        lines = []
        for name in ("force", "force tip"):
            (line,) = re.findall(rf'class="{name}" d="([^"]*)"', str(drawn.drawn()))
            lines.append(np.array(re.findall(r"-?[\d.]+", line), dtype=float).reshape(-1, 2))
        (start, neck), (tip, *wings) = lines
        assert tip == pytest.approx(seen, abs=0.11)  # px, as it is rounded
        length = float(np.hypot(*(tip - start)))
        size = np.linalg.norm(along)
        assert length == pytest.approx(0.3 * drawn.radius * scale * size / np.linalg.norm(force), abs=0.3)
        assert (tip - start) @ along == pytest.approx(length * size, rel=1e-3)
        assert (np.mean(wings, axis=0) - tip) @ along < 0.0
        assert np.mean(wings, axis=0) == pytest.approx(neck, abs=0.15)


@pytest.mark.parametrize(("rate", "hours"), [(1.0, 1.05), (1.0, 0.95), (1.05, 1.0)])
def test_tuning_says_what_it_was_asked_for_and_what_it_did_not_count(
    tuned: LearnedModel, rate: float, hours: float
) -> None:
    assert tuned.thresholds is not None
    thresholds = dataclasses.replace(tuned.thresholds, rate=rate, hours=hours)
    first = promise(Tuned(tuned.model, thresholds, (), ()), 1.0).splitlines()[0]
    assert ("(1/h was asked for)" in first) == (rate > 1.0)
    assert ("extrapolated from" in first) == (rate * hours < 1.0)  # less than one alarm in that time


def test_identify_takes_logs_and_files(folder: Path, tmp_path: Path) -> None:
    model = tangere.identify([folder / "free_0.csv", Log(columns_of(16.0, seed=2))], "ur10e", inertial="none")
    assert model.thresholds is None
    assert repr(model) == "LearnedModel('ur10e', identified from 1 log)"  # the other one judges
    assert "identified from" in str(model)
    assert read_model(model.save(tmp_path / "model.toml")).name == "ur10e"
    assert "<html" in model.report(tmp_path / "model.html").read_text()
    drive = model_of().drive
    np.testing.assert_allclose(model.model.drive.coulomb, drive.coulomb, rtol=0.2)
    assert isinstance(tangere.tune(model, folder / "free_2.csv", rate="10/h"), LearnedModel)


def test_a_model_of_an_arm_of_its_own_is_read_with_the_arms_file(tmp_path: Path) -> None:
    arm, file = tmp_path / "mine.toml", tmp_path / "model.toml"
    shipped = (Path(tangere.__file__).parent / "model" / "data" / "ur10e.toml").read_text()
    arm.write_text(shipped.replace('name = "ur10e"', 'name = "mine"', 1))
    dataclasses.replace(model_of(), name="mine").write(file)
    told = argparse.Namespace(robot=str(arm), model=str(file))
    model = chosen_model(told, tangere.robot(str(arm)))
    assert model is not None
    assert model.name == "mine"
    assert model.drive.coulomb == pytest.approx(model_of().drive.coulomb)


def test_recordings_pass_as_they_are(folder: Path) -> None:
    (one,) = recordings(folder / "pushed.csv")
    assert recorded(one, None, None) == [one]
    named = recorded([Log(columns_of()), one], None, None)
    assert [r.name for r in named] == ["log 1", "pushed.csv"]
    assert named[0].digest != recorded(Log(columns_of(seed=2)), None, None)[0].digest


def test_a_payload_that_looks_like_millimetres_is_doubted(capsys: pytest.CaptureFixture[str]) -> None:
    given = argparse.Namespace(robot="ur5e", columns=None, payload="1,0,0,50", gravity=None)
    arm_of(given)
    assert "payload: 0,0,50 m is unusual" in capsys.readouterr().err
    arm_of(argparse.Namespace(**{**vars(given), "payload": "1,0,0,50mm"}))
    assert capsys.readouterr().err == ""
