"""The command line: output, exit codes, one clear line for our errors, and no colour where it is not wanted."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.__main__ import main as entry
from tangere.cli import demo
from tangere.cli.main import MODULES, main, parser
from tangere.model.loading import load, names, parameter_sets
from tangere.report.terminal import matrix, number, paint, table, wants_colour

ROOT = Path(__file__).resolve().parent.parent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`tangere ...` in a process of its own."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-m", "tangere.cli.main", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"tangere {tangere.__version__}\n"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "tangere", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tangere {tangere.__version__}\n"


def test_alone_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: tangere")
    assert "examples:" in out
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["rnu", "circle"], "did you mean 'run'?"),
        (["run", "hold", "--plnt", "rigid"], "did you mean '--plant'?"),
        (["run", "hold", "--plant", "rigd"], "did you mean 'rigid'?"),
        (["draw", "snail", "--contrller", "both"], "did you mean '--controller'?"),
        (["fmu", "dynamic"], "did you mean 'dynamics'?"),
        (["run", "hold", "--push", "joint=2", "torque=20"], "with commas and without blanks: joint=2,torque=20"),
        (["export", "ur5e", "--format", "urdf"], "an arm is given as --robot ur5e"),
        (["run", "circle", "--kp", "400"], "a setting is given as --set kp=400"),
        (["write", "Nguyen", "Linh"], "a text of several words stands in quotes"),
        (["check", "ur5e", "--tpi", "x"], "usage: tangere check"),  # of the command that was typed
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert meant in capsys.readouterr().err


def test_a_block_is_no_arm_and_one_letter_is_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = tmp_path / "ik.fmu"
    assert main(["check", str(block)]) == 1
    assert f"{block}: there is no such file; blocks are examined by `tangere fmu check`" in capsys.readouterr().err
    block.touch()
    assert main(["check", str(block)]) == 1
    assert f"no arm but a block: `tangere fmu check {block}` examines it" in capsys.readouterr().err
    assert main(["check", "ur5f"]) != 0
    assert "did you mean 'ur5e'?" in capsys.readouterr().err


def test_no_option_of_another_command_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["models", "--plnt", "rigid"], ["report", "x", "--vido"], ["rerun", "x", "--rbot", "ur5e"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "did you mean" not in capsys.readouterr().err


def test_json_of_models_and_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    arms = {arm["name"]: arm for arm in json.loads(capsys.readouterr().out)["models"]}
    assert list(arms) == list(tangere.models())
    assert any(arm["refused"] for arm in arms.values())
    assert main(["check", "ur5e", "--json"]) == 0
    arm = json.loads(capsys.readouterr().out)
    assert [link["mass"] for link in arm["links"]] == [link.mass for link in tangere.robot("ur5e").model.links]


@pytest.mark.parametrize("command", [*(name for adds in MODULES.values() for name in adds), "models", "demo"])
def test_the_help_of_every_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"examples:\n  tangere {command}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["models"], ["check", "ur5e"], ["demo"], ["scenarios"]])
def test_tables_fit_the_terminal(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert main(words) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 70


@pytest.mark.parametrize("arguments", [["no-such-command"], ["check"], ["models", "--no-such-option"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: tangere" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "models", "check", "bench", "demo"])
def test_help_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: tangere {command}".rstrip())
    if command in ("", "check", "bench"):
        assert "examples:" in text
        assert f"\n  tangere {command}".rstrip() in text


def test_models_lists_every_arm_with_its_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    text, note = capsys.readouterr().out.split("\n\n")
    lines = text.splitlines()[2:]  # below header and rule
    assert [line.split()[0] for line in lines] == list(names())
    for line in lines:
        name = line.split()[0]
        model = load(name)
        sets = ", ".join(parameter_sets(name)).replace("001-literal", "001-literal*")  # the one that cannot be
        assert re.fullmatch(rf"{name} +{re.escape(model.title)} +{model.dof}  {re.escape(sets)}", line), line
    assert note.startswith("* refused")


def test_check_shows_numbers_and_grades(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "ur10e"]) == 0
    text = capsys.readouterr().out
    for part in ("UR10e", "-612.7", "13.051", "vendor"):
        assert part in text
    assert main(["check", "ur10e", "--parameters", "ur-ros2"]) == 0
    assert capsys.readouterr().out != text  # another set, other numbers


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["check", "ur11"], ["ur11", "ur10e"]),
        (["check", "ur10e", "--parameters", "nonsense"], ["nonsense", "ur-ros2"]),
        (["check", "nowhere/arm.toml"], ["arm.toml"]),
        (["check", "ur10e", "--parameters", "001-literal"], ["wrist_3", "inertia"]),
        (["check", "ur10e", "--tip", "tool0"], ["tip", "URDF"]),
        (["check", "ur10e", "--calibration", "nowhere.yaml"], ["nowhere.yaml"]),
    ],
)
def test_our_errors_are_one_line(arguments: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_exit_codes_reach_the_shell() -> None:
    assert shell("models").returncode == 0
    wrong = shell("check", "ur11")
    assert wrong.returncode == 1
    assert "Traceback" not in wrong.stderr
    assert shell("--no-such-option").returncode == 2


def test_a_warning_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANGERE_KERNELS", "python")
    done = shell("demo")
    assert done.returncode == 0
    assert done.stderr.startswith("note: ")
    assert done.stderr.count("\n") == 1
    monkeypatch.delenv("TANGERE_KERNELS")
    digits = re.compile("largest deviation.*")  # rounding may differ between the two forms, what is shown must not
    assert digits.sub("", done.stdout) == digits.sub("", shell("demo").stdout)


def test_a_reader_that_leaves_early_is_no_error() -> None:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    process = subprocess.Popen(
        [sys.executable, "-m", "tangere.cli.main", "models"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=600) == 0
    assert errors == b""


def test_help_waits_for_no_command() -> None:
    """Building the parser imports none of what the commands need beyond the package itself."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    code = "import sys, tangere.cli.main as c; c.parser(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "tangere.cli.main" in loaded
    assert loaded.isdisjoint({"tangere.apps.bench.bench", "tangere.cli.demo", "tangere.cli.checked"})


def test_a_command_loads_no_other() -> None:
    """MODULES names every command with the module that adds it: what is typed finds its own, and no other is built."""
    every = set(_commands(parser()))
    own = {"models", "check", "bench", "demo"}  # of cli/main.py itself
    assert {name for added in MODULES.values() for name in added} | own == every
    for added in MODULES.values():
        for name in added:
            assert set(_commands(parser(name))) == {*added, *own}
    assert set(_commands(parser("crawl"))) == every  # a wrong name is told all of them


def _commands(made: argparse.ArgumentParser) -> list[str]:
    """The commands of a parser."""
    (action,) = (a for a in made._actions if isinstance(a, argparse._SubParsersAction))
    return list(action.choices)


def test_demo_prints_what_the_robot_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert "\x1b" not in text  # captured output is no terminal
    assert max(len(line) for line in text.splitlines()) <= 120
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert "-0.00 " not in text

    robot, q, qd = tangere.robot("ur10e"), np.radians(demo.Q_DEG), np.radians(demo.QD_DEG)

    def numbers(heading: str, rows: int, skip: int = 0) -> np.ndarray:
        """The numbers of the `rows` lines that follow a heading."""
        lines = text[text.index(heading) :].splitlines()[1 + skip : 1 + skip + rows]
        return np.array([[float(v) for v in re.findall(r"(?<![\w.])-?\d+\.\d+", line)] for line in lines])

    # half of the last digit that is shown
    np.testing.assert_allclose(numbers("Pose of the tool", 3), robot.pose(q)[:3], atol=0.5001e-5)
    np.testing.assert_allclose(numbers("Mass matrix", 6), robot.mass_matrix(q), atol=0.5001e-4)
    np.testing.assert_allclose(numbers("Coriolis matrix", 6), robot.coriolis_matrix(q, qd), atol=0.5001e-4)
    torques = [robot.gravity_torque(q), robot.coriolis_matrix(q, qd) @ qd]
    np.testing.assert_allclose(numbers("Torques", 2, skip=2), torques, atol=0.5001e-3)
    solutions = np.radians(numbers("Inverse kinematics", 8, skip=2))
    assert "8 joint positions reach" in text
    # rounding to 0.01 deg is at most 8.8e-5 rad on each of six joints, at most 1.3 m away: 1.3 * 6 * 8.8e-5 < 7e-4
    for q_k in solutions:
        np.testing.assert_allclose(robot.pose(q_k), robot.pose(q), atol=7e-4)
    assert len({tuple(row.round(4)) for row in solutions}) == 8
    (marked,) = [line for line in text.splitlines() if "<- q itself" in line]
    assert all(f"{v:.2f}" in marked for v in demo.Q_DEG)


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.setenv("NO_COLOR", "")  # empty counts as not set
    assert wants_colour(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())


def test_colour_adds_nothing_but_colour() -> None:
    robot, q, qd = tangere.robot("ur10e"), np.radians(demo.Q_DEG), np.radians(demo.QD_DEG)
    plain, painted = demo.demo_text(robot, q, qd), demo.demo_text(robot, q, qd, colour=True)
    assert painted != plain
    assert re.sub(r"\x1b\[\d+m", "", painted) == plain
    assert paint("x", "good", False) == "x"


def test_tables_line_up() -> None:
    assert table([("a", "1"), ("bcd", "-22")], ("name", "n"), "lr", indent=1) == [
        " name    n",
        " ----  ---",
        " a       1",
        " bcd   -22",
    ]
    assert table([("1", "a", "!")], ("", "b"))[:2] == ["     b", "     -"]  # no rule where there is no title
    assert table([("a",), ("b", "c")]) == ["  a", "  b  c"]  # short rows are filled up, no trailing space
    assert table([]) == []


def test_numbers_have_no_minus_zero() -> None:
    assert number(-0.004, 2) == "0.00"
    assert number(-0.006, 2) == "-0.01"
    assert matrix([[1.0, -1e-9]], 2) == ["  1.00  0.00"]
    assert matrix([1.0, -20.0], 1, header=("a", "b"), names=("v",))[2] == "  v  1.0  -20.0"


def test_commands_use_one_thread_for_linear_algebra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless somebody asks for more."""
    monkeypatch.setattr(sys, "argv", ["tangere", "--version"])
    for given, used in ((None, "1"), ("4", "4")):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given or "")
        if given is None:
            monkeypatch.delenv("OPENBLAS_NUM_THREADS")
        with pytest.raises(SystemExit):
            entry()
        assert os.environ["OPENBLAS_NUM_THREADS"] == used
