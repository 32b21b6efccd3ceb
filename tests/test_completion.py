"""The script that completes commands, asked by a real shell; and --quiet, under which only errors are heard."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tangere.cli.completion import script
from tangere.cli.main import main, parser
from tangere.report.terminal import _left, table


def offered(path: Path, *words: str) -> set[str]:
    """What bash offers for the last of these words."""
    typed = " ".join(f"'{word}'" for word in words)
    ask = f"source {path}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _tangere; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, cwd=path.parent, timeout=600)
    return set(done.stdout.split())


def test_bash_completes_commands_options_and_words(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash to complete in")
    path = tmp_path / "completion.bash"
    path.write_text(script(parser(), "bash"))
    (tmp_path / "wall.csv").write_text("")
    assert offered(path, "tangere", "com") == {"compare", "completion"}  # a command, never a file
    assert offered(path, "tangere", "run", "wa") == {"wall-circle", "wall.csv"}
    assert "--push" in offered(path, "tangere", "run", "circle", "--p")
    assert offered(path, "tangere", "run", "--robot", "ur5") == {"ur5", "ur5e"}
    assert "fk" in offered(path, "tangere", "fmu", "f")
    assert offered(path, "tangere", "completion", "z") >= {"zsh"}


def test_every_command_is_in_every_script() -> None:
    root = parser()
    commands = next(action.choices for action in root._actions if action.dest == "==SUPPRESS==" and action.choices)
    assert commands is not None
    for shell in ("bash", "zsh", "fish"):
        text = script(root, shell)
        assert all(name in text for name in commands)
        assert "--out" in text or "-l out" in text


def test_quiet_is_quiet_but_for_errors_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["models", "--quiet", "--json"]) == 0
    assert "models" in json.loads(capsys.readouterr().out)
    assert main(["check", "no_such_arm", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no_such_arm" in err


def test_the_time_left_is_told_when_it_can_be() -> None:
    assert _left(0.05, 10.0) == ""
    assert _left(0.5, 0.2) == ""
    assert _left(0.5, 10.0) == ", 10 s left"
    assert _left(0.25, 100.0) == ", 5 min left"
    assert _left(1.0, 10.0) == ""


def test_a_table_of_many_columns_fits_the_terminal() -> None:
    head = [f"column {k}" for k in range(9)]
    rows = [[f"{k * 1.5:.3f}" for k in range(9)], [f"-{k}" for k in range(8)] + [""]]
    whole = table(rows, head, "r" * 9)
    assert table(rows, head, "r" * 9, width=200) == whole
    for width in (40, 60, 80):
        lines = table(rows, head, "r" * 9, width=width)
        assert max(len(line) for line in lines) <= width
        assert [word for line in lines for word in line.split() if word.strip("-")] == [
            word for line in whole for word in line.split() if word.strip("-")
        ]
