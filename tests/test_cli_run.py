"""run, scenarios, report and rerun on the command line: what they say, where they write, how they refuse."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tangere.apps.scenarios.build import scenario_of, scenarios
from tangere.apps.scenarios.common import RunSettings
from tangere.cli.main import main
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.logs.mcap_read import read_mcap
from tangere.settings import settings_of

ROOT = Path(__file__).resolve().parent.parent
SHORT = ("--plant", "rigid", "--set", "duration=0.3")
PUSH = ("--push", "joint=2,torque=20,start=0.1,duration=0.15")

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", ["run", "scenarios", "report", "rerun"])
def test_help_explains_itself(command: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: tangere {command}" in out
    # an option without a word about it, neither behind it nor on the line below
    for line in re.findall(r"^  (--?[^ \n]+)\n(?! {12})", out, re.MULTILINE):
        pytest.fail(f"{line} is not explained")


def test_the_examples_of_the_help_can_be_parsed(capsys: Captured) -> None:
    from tangere.cli.main import parser
    from tangere.cli.run import EXAMPLES

    lines = [line.split("   ")[0].split() for line in EXAMPLES.splitlines()[1:]]
    assert len(lines) >= 5
    for word, *arguments in lines:
        assert word == "tangere"
        parser().parse_args(arguments)


def test_scenarios_are_listed(capsys: Captured) -> None:
    assert main(["scenarios"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name, scenario in scenarios().items():
        assert f" {name} {scenario.title}" in out
        assert all(key in out for key in settings_of(scenario.settings))
    assert all(key in out for key in settings_of(RunSettings))


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("name", ["", *scenarios()])
def test_tables_of_settings_fit_the_terminal(
    name: str, columns: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["scenarios", *filter(None, [name])]) == 0
    longest = max(len(line) for line in capsys.readouterr().out.splitlines() if "=" not in line)  # a push is one word
    assert longest <= columns


@pytest.mark.parametrize("name", list(scenarios()))
def test_every_setting_of_a_scenario_is_shown_and_its_default_can_be_typed(
    name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["scenarios", name]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    shown = {row.split()[0]: row for row in rows}
    settings = settings_of(scenario_of(name).settings)
    assert set(shown) == set(settings)
    own = [key for key in settings if key not in settings_of(RunSettings)]
    assert max((list(shown).index(key) for key in own), default=0) < list(shown).index("sensors")  # own ones first
    for key, setting in settings.items():
        assert setting.help
        assert setting.label in shown[key]
        if typed := re.search(r"\(default: (.*)\)$", shown[key]):
            assert setting.read(typed[1]) == setting.default


def test_an_unknown_scenario_is_one_line(capsys: Captured) -> None:
    assert main(["scenarios", "squircle"]) == 1
    known = ", ".join(scenarios())
    said = capsys.readouterr().err
    assert said == f"error: unknown scenario 'squircle'; known: {known}; did you mean 'circle'?\n"


def test_run_leaves_a_folder_and_says_the_few_numbers(tmp_path: Path, capsys: Captured) -> None:
    assert main(["run", "hold", *SHORT, *PUSH, "--set", "threshold=5", "--out", str(tmp_path / "a")]) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no terminal: no progress bar
    assert re.search(r"^tracking rms +\S+ +mm$", out, re.MULTILINE)
    assert re.search(r"^faster than real time +\S+ +x$", out, re.MULTILINE)
    assert re.search(r"^quiet residual, largest rms +\S+ +Nm$", out, re.MULTILINE)
    # 20 (1 - exp(-50 t)) passes 5 Nm after 5.75 ms
    touch = re.search(r"\ntouch at 0.106 s on joint 2, (\S+) Nm \(true 20.00 Nm\), 6 ms after it began\n", out)
    assert touch is not None
    assert float(touch[1]) == pytest.approx(20.0, rel=0.01)  # its mean begins with exp(-5) still missing
    assert out.endswith(f"report: {tmp_path}/a/report.html\n")
    names = {file.name for file in (tmp_path / "a").iterdir()}
    assert names == {"log.mcap", "log.csv", "manifest.json", "summary.json", "report.html"}


def test_a_long_run_leaves_no_csv_unless_asked_and_says_so(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tangere.loop.folder.CSV_MAX", 10)
    assert main(["run", "hold", *SHORT, "--push", "none", "--out", str(tmp_path / "a")]) == 0
    said = capsys.readouterr().err
    assert re.fullmatch(r"note: no log\.csv: \d+ samples make a large one; log\.mcap has all, --csv .*\n", said)
    assert not (tmp_path / "a" / "log.csv").exists()
    assert main(["run", "hold", *SHORT, "--push", "none", "--csv", "--out", str(tmp_path / "b")]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "b" / "log.csv").exists()


def test_the_default_folder_is_out_and_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "hold", *SHORT]) == 0
    assert (tmp_path / "out" / "hold" / "report.html").exists()


def test_json_holds_what_summary_json_does(tmp_path: Path, capsys: Captured) -> None:
    assert main(["run", "hold", *SHORT, "--json", "--out", str(tmp_path)]) == 0
    out, said = capsys.readouterr()
    record = json.loads(out)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert {key: record[key] for key in summary} == summary
    assert record["report"] == str(tmp_path / "report.html")
    assert said == "note: nothing pushes: the push of hold starts at 3 s, the run ends at 0.3 s\n"
    assert summary["notes"] == [said.removeprefix("note: ").strip()]
    assert summary["notes"][0] in (tmp_path / "report.html").read_text()


def test_an_earlier_run_in_the_folder_is_replaced_and_that_is_said(tmp_path: Path, capsys: Captured) -> None:
    for k, said in enumerate(("", f"note: {tmp_path} held an earlier run, which this one replaced\n")):
        assert main(["run", "hold", *SHORT, "--push", "none", "--seed", str(k), "--out", str(tmp_path)]) == 0
        assert capsys.readouterr().err == said


def test_a_value_that_looks_like_another_unit_is_noted(tmp_path: Path, capsys: Captured) -> None:
    assert main(["run", "hold", *SHORT, "--set", "q=0,-1.57,1.57,-1.57,-1.57,0", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err.startswith("note: q: 0,-1.57,1.57,-1.57,-1.57,0 deg is unusual")
    assert json.loads((tmp_path / "summary.json").read_text())["notes"]


def test_a_push_may_be_switched_off(tmp_path: Path) -> None:
    words = ["--plant", "rigid", "--set", "duration=3.2", "--push", "none"]
    assert main(["run", "hold", *words, "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "manifest.json").read_text())["scenario"]["push"] == []


def test_options_reach_the_run(tmp_path: Path) -> None:
    options = ["--robot", "ur10e", "--model", "000-H", "--seed", "5", "--set", "kp=50", "period=2ms", "--set", "kp=60"]
    assert main(["run", "hold", *SHORT, *options, "--out", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "manifest.json").read_text())["scenario"]
    wanted = {"robot": "ur10e", "model": "000-H", "plant": "rigid", "seed": 5, "kp": 60.0, "period": 0.002}
    assert {key: told[key] for key in wanted} == wanted
    assert told["duration"] == 0.3


@pytest.mark.parametrize(
    "push",
    [
        '[[push]]\njoint = 2\ntorque = "20 Nm"\nstart = 0.1\nduration = 0.15\n',
        'push = "joint=2,torque=20,start=0.1,duration=0.15"\n',
        'push = ["joint=2,torque=20,start=0.1,duration=0.15"]\n',
        'push = { joint = 2, torque = 20, start = "100 ms", duration = "150 ms" }\n',
    ],
)
def test_a_scenario_file_does_the_same(tmp_path: Path, push: str, capsys: Captured) -> None:
    file = tmp_path / "mine.toml"
    table = push.startswith("[[")
    settings = 'scenario = "hold"\nplant = "rigid"\nduration = "300 ms"\n'
    file.write_text(settings + push if table else push + settings)
    assert main(["run", str(file), "--out", str(tmp_path / "file")]) == 0
    assert main(["run", "hold", *SHORT, *PUSH, "--out", str(tmp_path / "line")]) == 0
    told = [json.loads((tmp_path / name / "manifest.json").read_text())["scenario"] for name in ("file", "line")]
    assert told[0] == told[1]


def test_the_command_line_goes_over_the_file_and_adds_its_pushes(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('scenario = "hold"\nplant = "mujoco"\nduration = 9\nkp = 50\npush = "joint=1,torque=1,start=0"\n')
    assert main(["run", str(file), *SHORT, *PUSH, "--out", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "manifest.json").read_text())["scenario"]
    assert (told["plant"], told["duration"], told["kp"]) == ("rigid", 0.3, 50.0)
    assert [push["joint"] for push in told["push"]] == [1, 2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("duration = 1", "the field scenario is missing"),
        ('scenario = "hold"\nradius = 1', "unknown setting 'radius'; known: "),
        ('scenario = "circle"\nradius = "3 s"', "radius: '3 s' has the unit 's', valid units: m, mm, cm"),
        ('scenario = "hold"\npush = 5', "push: give joint=2"),
        ('scenario = "hold"\n[[push]]\njoint = 2', "'torque' is missing"),
        ('scenario = "hold"\n[push]\njoint = 2\nforce = 5\n', "push force: 3 numbers"),
        ('scenario = "hold"\nkp = nan', "kp: a finite number, got nan"),
        ('scenario = "hold"\n[kp]\nvalue = 3', "kp: a number"),
        ("hold", "is no TOML"),
    ],
)
def test_a_wrong_scenario_file_is_one_line(tmp_path: Path, content: str, words: str, capsys: Captured) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "squircle"], "unknown scenario 'squircle'; known: circle"),
        (["run", "nowhere.toml"], "cannot read nowhere.toml: No such file"),
        (["run", "hold", "--set", "duration"], "--set takes key=value, got 'duration'"),
        (["run", "hold", "--set", "duration=3 m"], "valid units: s, ms, us, min"),
        (["run", "hold", "--push", "joint=9,torque=1,start=0"], "joint of a push: got 9, valid are 1 to 6"),
        (["run", "hold", "--push", "jont=2"], "push: unknown 'jont'; known: joint"),
        (["run", "hold", "--push", "20"], "unknown '20'; known: joint, torque, "),
        (["run", "hold", "--push", "20"], "such as joint=2,torque=20,start=3,duration=2"),
        (["run", "hold", "--robot", "kuka"], "unknown robot 'kuka'; known: ur3e"),
        (["run", "hold", "--model", "000-X"], "unknown parameters '000-X'"),
        (["run", "circle", "--set", "centre=1.3,0,0.3"], "is out of reach by 0.156 m"),
        (["run", "hold", "--out", "/dev/null/x"], "cannot write into /dev/null/x: Not a directory"),
        (["report", "nowhere"], "no run at nowhere"),
        (["rerun", "nowhere"], "cannot read nowhere"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(
    arguments: list[str], words: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []  # nothing was begun


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "hold", "--plant", "gazebo"], ["run", "hold", "--seed", "x"], ["report"], ["rerun"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: tangere" in capsys.readouterr().err


def test_report_of_a_folder_and_of_each_log(tmp_path: Path, capsys: Captured) -> None:
    assert main(["run", "hold", *SHORT, *PUSH, "--out", str(tmp_path)]) == 0
    report = tmp_path / "report.html"
    report.unlink()
    capsys.readouterr()
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"report: {report}\n"
    assert report.stat().st_size > 100_000
    for name in ("log.mcap", "log.csv"):
        out = tmp_path / f"{name}.html"
        assert main(["report", str(tmp_path / name), "--out", str(out)]) == 0
        assert out.stat().st_size > 100_000


def test_rerun_says_the_same_or_where_it_differs(tmp_path: Path, capsys: Captured) -> None:
    assert main(["run", "hold", *SHORT, *PUSH, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["rerun", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "the same, bit by bit: 300 samples\n"
    log = read_mcap(tmp_path / "log.mcap")
    tau = log["tau_cmd"].copy()
    tau[120:, 0] += 1e-12
    write_mcap(Log({**log.columns, "tau_cmd": tau}, log.units, log.notes), tmp_path / "log.mcap")
    assert main(["rerun", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "differs: column tau_cmd from 0.120000 s on\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar_that_ends_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["run", "hold", *SHORT, "--push", "none", "--out", str(tmp_path)]) == 0
    last = terminal.getvalue().split("\r")[-1]
    assert re.fullmatch(r"\[#{30}\] +0\.3 of 0\.3 s, [\d.]+x real time +\n", last)


def test_an_error_begins_on_a_line_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tangere.logs.csv_log as module
    from tangere.errors import InvalidValue

    def full(*_: object) -> None:
        raise InvalidValue("no space left")

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "write_csv", full)
    assert main(["run", "hold", *SHORT, "--out", str(tmp_path)]) == 1
    assert re.search(r"\n[^\r\n]*error: [^\r\n]*no space left\n$", terminal.getvalue())


def test_an_incomplete_log_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from tangere.logs.mcap_log import McapFile

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(McapFile, "write", full)
    assert main(["run", "hold", *SHORT, "--out", str(tmp_path)]) == 1
    assert re.search(r"^log\.mcap is not complete: .*No space left on device", capsys.readouterr().out, re.MULTILINE)


def test_the_force_on_the_wall_is_said(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("mujoco")
    options = ["--set", "round_time=20", "duration=2.3", "--out", str(tmp_path)]
    assert main(["run", "wall-circle", *options]) == 0
    found = re.search(r"^force of the wall, mean +(\S+) +N$", capsys.readouterr().out, re.MULTILINE)
    assert found is not None
    assert np.isclose(float(found[1]), 5.0, rtol=0.02)


def test_a_process_of_its_own_without_a_terminal(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", "tangere.cli.main", "run", "hold", *SHORT, "--push", "none", "--out", "here"],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("report: here/report.html\n")
    command = json.loads((tmp_path / "here" / "manifest.json").read_text())["command"]
    assert command == ["tangere", "run", "hold", *SHORT, "--push", "none", "--out", "here"]
