"""A scenario run into a folder: what it leaves, that it can be run again, and what happens when something breaks."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere.apps.scenarios.execute as module
from tangere.apps.scenarios.build import Built, build
from tangere.apps.scenarios.execute import Executed, again, execute
from tangere.cli.main import main
from tangere.errors import InvalidValue, NoSolution
from tangere.logs.csv_log import read_csv
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.logs.mcap_read import read_mcap
from tangere.loop import result as results
from tangere.loop.folder import OURS, Claim, Manifest, difference, load_manifest, write_manifest
from tangere.plants.pushes import push_of
from tangere.types import State

ROOT = Path(__file__).resolve().parent.parent
PUSH = "joint=2,torque=20,start=0.1,duration=0.15"
FILES = {"log.mcap", "log.csv", "manifest.json", "summary.json"}


def short(out: Path, **given: Any) -> Executed:
    return execute("hold", {"plant": "rigid", "duration": 0.4, **given}, [push_of(PUSH)], out=out, command=["a", "b"])


def test_what_a_run_leaves(tmp_path: Path) -> None:
    done = short(tmp_path / "deep" / "out")
    assert done.folder == tmp_path / "deep" / "out"
    assert {file.name for file in done.folder.iterdir()} == FILES
    log = done.result.log
    assert len(log) == 400
    assert read_mcap(done.folder / "log.mcap") == log
    assert difference(read_csv(done.folder / "log.csv"), log) == ""
    summary = json.loads((done.folder / "summary.json").read_text())
    assert summary == json.loads(json.dumps(done.summary))


def test_the_summary_has_what_was_promised(tmp_path: Path) -> None:
    summary = short(tmp_path, threshold="5 Nm").summary  # from the first sample on: others settle for 0.3 s
    promised = {
        "tracking_rms_mm", "tracking_max_mm", "tracking_push_max_mm", "residual_rms_nm", "events", "realtime_factor",
    }  # fmt: skip
    assert promised <= set(summary)
    assert len(summary["residual_rms_nm"]) == 6
    assert summary["tracking_rms_mm"] <= summary["tracking_max_mm"] < summary["tracking_push_max_mm"]
    assert summary["realtime_factor"] > 0.0
    (event,) = summary["events"]
    assert {"time_s", "delay_ms", "joint", "torque_nm", "true_torque_nm"} <= set(event)
    assert event["joint"] == 2
    # without noise, from five time constants after the onset (0.1 s) until the end: exp(-5) is left at its beginning
    assert event["torque_nm"] == pytest.approx(20.0, rel=0.01)


def test_the_manifest_holds_everything_that_was_told(tmp_path: Path) -> None:
    done = short(tmp_path, seed=3, threshold="1,2,3,4,5,6", observer_gain="60 1/s")
    manifest = load_manifest(tmp_path)
    assert manifest.command == ("a", "b")
    assert manifest.seeds == {"seed": 3}
    told = dict(manifest.scenario)
    assert [push_of(push) for push in told["push"]] == [push_of(PUSH)]
    assert manifest.units["duration"] == "s"
    assert manifest.units["q"] == "deg"
    assert build(told.pop("scenario"), told).settings == done.built.settings
    assert manifest.models["plant"] == manifest.models["controller"]
    assert len(short(tmp_path, mass=1.1).built.pushes) == 1
    other = load_manifest(tmp_path)
    assert other.models["plant"] != other.models["controller"] == manifest.models["controller"]


@pytest.mark.parametrize(
    ("given", "pushes"),
    [
        ({"sensors": "ur10e", "seed": 7, "friction": "full"}, ["joint=2,torque=20,start=0.05"]),
        ({"plant": "rigid", "mass": 1.03, "payload": 0.5}, ["link=4,force=0/0/-30,point=0/0/0.1,start=0.1"]),
    ],
)
def test_a_run_can_be_made_again_bit_by_bit(tmp_path: Path, given: dict[str, Any], pushes: list[str]) -> None:
    if given.get("plant") != "rigid":
        pytest.importorskip("mujoco")
    first = execute("hold", {"duration": 0.3, **given}, [push_of(push) for push in pushes], out=tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    second, kept = again(tmp_path)
    assert difference(kept, second.result.log) == ""
    assert difference(first.result.log, second.result.log) == ""
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before  # the folder was only read
    assert not second.folder.exists()  # what was made for the comparison is gone


def test_one_altered_bit_is_found(tmp_path: Path) -> None:
    short(tmp_path)
    log = read_mcap(tmp_path / "log.mcap")
    residual = log["residual"].copy()
    residual[250, 3] = np.nextafter(residual[250, 3], np.inf)
    write_mcap(Log({**log.columns, "residual": residual}, log.units, log.notes), tmp_path / "log.mcap")
    second, kept = again(tmp_path)
    assert difference(kept, second.result.log) == "column residual from 0.250000 s on"


def test_differences_of_shape_and_of_the_clock() -> None:
    time = np.arange(4.0)
    log = Log({"time": time, "q": np.zeros((4, 2)), "cost": time})
    assert difference(log, Log({"time": time, "q": np.zeros((4, 2)), "cost": 2.0 * time})) == ""
    assert difference(log, log[:3]) == "column time: (4,) against (3,)"
    assert difference(log, log.without(["q"])) == "column q: (4, 2) against none"
    assert difference(log.without(["q"]), log) == "column q: none against (4, 2)"
    changed = np.zeros((4, 2))
    changed[2, 1] = np.nan
    assert difference(log, Log({"time": time, "q": changed, "cost": time})) == "column q from 2.000000 s on"
    assert difference(Log({"time": time, "q": changed}), Log({"time": time, "q": changed})) == ""


def test_what_cannot_be_run_again(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="cannot read"):
        again(tmp_path / "nowhere")
    short(tmp_path)
    (tmp_path / "log.mcap").unlink()
    with pytest.raises(InvalidValue, match=r"log\.mcap"):
        again(tmp_path)
    data = json.loads((tmp_path / "manifest.json").read_text())
    del data["scenario"]["scenario"]
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(InvalidValue, match="names no scenario"):
        again(tmp_path)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "below", Path("/proc/nothing")):
        with pytest.raises(InvalidValue, match=f"cannot write into {out}"):
            short(out)
    assert file.read_text() == "mine"
    if os.geteuid() != 0:  # root may write anywhere
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        with pytest.raises(InvalidValue, match="Permission denied"):
            short(closed)


def test_files_of_an_earlier_run_go_first_and_those_of_others_stay(tmp_path: Path) -> None:
    for name in (*FILES, "report.html", "video.mp4", ".log.csv.abc.part", "notes.txt"):
        (tmp_path / name).write_text("old")
    write_manifest(Manifest((), {}), tmp_path)
    assert Claim(tmp_path, OURS).path == tmp_path
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_wrong_setting_leaves_the_earlier_run_as_it_was(tmp_path: Path) -> None:
    short(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(InvalidValue, match="mass"):
        short(tmp_path, mass="nan")
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_what_is_asked_before_the_run_can_refuse_it(tmp_path: Path) -> None:
    """All is checked by then, and nothing is written."""
    asked: list[str] = []

    def refuse(built: Built) -> None:
        asked.append(built.scenario.name)
        raise InvalidValue("no")

    with pytest.raises(InvalidValue, match="no"):
        execute("hold", {"plant": "rigid", "duration": 0.1}, out=tmp_path / "out", before=refuse)
    assert asked == ["hold"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["write_json", "summary_of", "run"])
def test_nothing_half_written_looks_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    short(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt  # or a full disk, or a fault: what cannot go on

    monkeypatch.setattr(results if when == "write_json" else module, when, broken)
    with pytest.raises(KeyboardInterrupt):
        short(tmp_path)
    assert not (tmp_path / "summary.json").exists()
    assert not (tmp_path / "report.html").exists()


def _started(out: Path, *more: str) -> subprocess.Popen[str]:
    """`tangere run` in a process of its own, in real time, once its log grows."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    process = subprocess.Popen(
        [sys.executable, "-m", "tangere.cli.main", "run", "hold", "--plant", "rigid", "--paced", *more,
         "--out", str(out)],
        env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell in the background ignores it
    )  # fmt: skip
    give_up = time.monotonic() + 300.0  # it hangs; how fast it begins is not what is tested
    while not ((out / "log.mcap").exists() and (out / "log.mcap").stat().st_size > 200_000):  # a second or so
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return process


def test_ctrl_c_leaves_log_report_and_a_summary_that_says_so(tmp_path: Path) -> None:
    process = _started(tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert out.startswith("aborted: interrupted from the keyboard\n")
    assert {file.name for file in tmp_path.iterdir()} == FILES | {"report.html"}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["aborted"] == "interrupted from the keyboard"
    log = read_mcap(tmp_path / "log.mcap")
    assert log.complete
    assert 100 < len(log) == summary["samples"] < 10_000
    assert "interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_kill_leaves_a_log_that_can_be_read_and_nothing_that_looks_whole(tmp_path: Path) -> None:
    process = _started(tmp_path)
    process.kill()
    process.communicate(timeout=30)
    names = {file.name for file in tmp_path.iterdir()}
    assert "summary.json" not in names
    assert "report.html" not in names
    log = read_mcap(tmp_path / "log.mcap")
    assert not log.complete
    assert len(log) > 100
    assert main(["report", str(tmp_path)]) == 0  # and a report can be made of it, which says so
    assert (tmp_path / "report.html").exists()


def test_a_circle_out_of_reach_leaves_nothing(tmp_path: Path) -> None:
    given = {"centre": (-1.0, 0.0, 0.3), "radius": 0.3, "duration": 9, "branch": "right up no flip", "plant": "rigid"}
    with pytest.raises(NoSolution, match=r"\(-1\.\d+, .* m, by [\d.]+ mm"):
        execute("circle", given, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Broken:
    """A plant whose joint sensor answers NaN from a time on, for a while."""

    def __init__(self, plant: Any, start: float, end: float) -> None:
        self._plant, self._start, self._end = plant, start, end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plant, name)

    def read(self) -> State:
        state: State = self._plant.read()
        if not self._start <= state.time < self._end:
            return state
        return dataclasses.replace(state, q=np.full(6, np.nan), qd=np.full(6, np.nan))


def _with_nan(monkeypatch: pytest.MonkeyPatch, start: float, end: float) -> None:
    def built(*arguments: Any) -> Built:
        real = build(*arguments)
        return dataclasses.replace(real, plant=Broken(real.plant, start, end))

    monkeypatch.setattr(module, "build", built)


def test_nan_from_a_sensor_is_held_ramped_down_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_nan(monkeypatch, 0.1995, 9.0)
    done = execute("hold", {"plant": "rigid", "duration": 3.0}, out=tmp_path)
    assert done.summary["aborted"].startswith("the controller gave up: ")
    assert {"held", "aborted"} <= set(done.summary["interventions"])
    log = done.result.log
    assert np.isfinite(log["tau_cmd"]).all()
    broken = int(np.argmax(np.isnan(log["q"]).any(axis=1)))
    assert broken == 200
    assert np.array_equal(log["tau_cmd"][broken], log["tau_cmd"][broken - 1])  # held
    gravity = done.built.world.believed.gravity_torque(log["q"][broken - 1])
    assert np.allclose(log["tau_cmd"][-1], gravity, atol=1e-9)  # ramped down to what carries the arm
    assert len(log) == pytest.approx(1205, abs=5)  # a second more, not to the end
    summary = json.loads((tmp_path / "summary.json").read_text())  # JSON has no NaN: it must be readable
    assert summary["aborted"] == done.summary["aborted"]
    assert main(["report", str(tmp_path)]) == 0


def test_a_glitch_of_two_samples_is_held_and_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_nan(monkeypatch, 0.1995, 0.2015)
    done = execute("hold", {"plant": "rigid", "duration": 0.4}, out=tmp_path)
    assert done.summary["aborted"] == ""
    assert done.summary["interventions"] == {"held": 2}
    assert np.isfinite(done.result.log["residual"]).all()
    assert done.summary["events"] == []


def test_a_torque_limit_is_reported_not_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--plant", "rigid", "--set", "duration=0.6", "--push", "joint=2,torque=500,start=0.1,duration=0.4"]
    code = main(["run", "hold", *options, "--out", str(tmp_path)])
    said = capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    limited = {note: periods for note, periods in summary["interventions"].items() if "torque of joint" in note}
    assert sum(limited.values()) > 50
    assert "periods" in said
    assert "torque of joint 2 limited" in said
    assert code == (1 if summary["aborted"] else 0)
    log = read_csv(tmp_path / "log.csv")
    limit = build("hold", {"plant": "rigid"}).world.believed.tau_max
    assert np.all(np.abs(log["tau_cmd"]) <= limit * (1.0 + 1e-12))
    assert any("limited" in note.text for note in read_mcap(tmp_path / "log.mcap").notes)


def test_a_plant_that_stops_answering_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Broken):
        def read(self) -> State:
            state: State = self._plant.read()
            if state.time > self._start:
                raise TimeoutError("no sample for 1 s")
            return state

    def built(*arguments: Any) -> Built:
        real = build(*arguments)
        return dataclasses.replace(real, plant=Silent(real.plant, 0.2, 0.0))

    monkeypatch.setattr(module, "build", built)
    done = execute("hold", {"plant": "rigid", "duration": 1.0}, out=tmp_path)
    told = done.summary["aborted"]
    assert re.fullmatch(r"the plant was lost: no sample for 1 s \(TimeoutError in test_execute\.py, line \d+\)", told)
    assert {file.name for file in tmp_path.iterdir()} == FILES
    assert len(read_mcap(tmp_path / "log.mcap")) == len(done.result.log) > 190


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    """Files of the user's own that happen to have our names are not removed."""
    (tmp_path / "log.csv").write_text("mine")
    with pytest.raises(InvalidValue, match="no manifest"):
        Claim(tmp_path, OURS)
    assert (tmp_path / "log.csv").read_text() == "mine"


def test_a_push_after_the_end_and_a_pulling_pen_are_refused() -> None:
    with pytest.raises(InvalidValue, match="after the end of the run"):
        build("hold", {"duration": 1.0}, (push_of("joint=2,torque=5,start=2"),))
    with pytest.raises(InvalidValue, match="force: 0 N or more, got -5"):
        build("wall-circle", {"force": -5.0})


@pytest.mark.parametrize("arm", ["ur3e", "ur5e", "ur16e", "ur20"])
def test_the_circle_fits_every_arm(arm: str) -> None:
    """Without further words it is scaled with the arm, and the start is where the branch reaches."""
    built = build("circle", {"robot": arm, "duration": 2.0, "plant": "rigid"})
    T = built.motion.trajectory.at(0.0).T
    assert T is not None
    assert T[0, 3] == pytest.approx(built.settings.centre[0] + built.settings.radius)
