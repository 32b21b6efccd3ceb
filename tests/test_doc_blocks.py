"""Code in the pages is true: Python blocks run, in order, page by page; commands are understood by their parser, and
run where that takes seconds; tutorials run as notebooks; the rest is marked as text."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tangere.cli.main import main, parser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "```" in path.read_text()]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.S | re.M)
# Pages whose Python needs an arm or another node at the other end: it is compiled only.
OTHER_END = {"arm.md", "ros2.md", "researcher.md", "integrator.md"}
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
# What is not run line by line: it stays until it is ended, needs an arm at the other end or files of the reader's, or
# takes a minute.
NOT_RUN = re.compile(
    r"tangere (virtual|studio|doctor|calibration|excite|script (run|send)|dashboard|record|identify|tune|watch|draw|"
    r"write)|.*--foxglove"
)
SOAK = os.environ.get("TANGERE_SOAK") == "1"


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCE.findall(page.read_text()) if kind == language]


def refused(line: str) -> bool:
    """Whether the parser of `tangere` does not understand a command line."""
    words = shlex.split(line, comments=True)[1:]
    try:
        parser(words[0]).parse_args(words)
    except SystemExit:
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    kinds = {kind for kind, _ in FENCE.findall(page.read_text())}
    assert kinds <= {"python", "console", "text", "toml", "xml"}, kinds


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=lambda page: page.stem)
def test_commands_of_a_page_are_understood(page: Path) -> None:
    lines = [line for text in blocks(page, "console") for line in text.splitlines() if line.startswith("tangere ")]
    assert [line for line in lines if refused(line)] == []


def cheap(text: str) -> list[str]:
    """The commands of a block that are run."""
    return [line for line in text.splitlines() if line.startswith("tangere ") and not NOT_RUN.match(line)]


def runs(page: Path) -> bool:
    return bool(blocks(page, "python") or any(cheap(text) for text in blocks(page, "console")))


@pytest.mark.parametrize("page", [p for p in PAGES if runs(p)], ids=lambda page: page.stem)
def test_python_and_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page.parent.name == "howto" and page.stem == "gym":
        pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'tangere[gym]'")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for kind, text in FENCE.findall(page.read_text()):
        if kind == "python":
            code = compile(text, page.name, "exec")
            if page.name not in OTHER_END:
                exec(code, names)
        for line in cheap(text) if kind == "console" else ():
            assert main(shlex.split(line)[1:]) == 0, f"{line}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_a_notebook(page: Path, tmp_path: Path) -> None:
    """From top to bottom, with a virtual arm at an address of its own; the long ones in the long form."""
    if page.stem != "researcher" and not SOAK:
        pytest.skip("minutes: TANGERE_SOAK=1 runs it")
    host = f"127.78.{os.getpid() % 250}.1"
    text = re.sub(r"(tangere virtual \w+)", rf"\1 --address {host}", page.read_text().replace("127.0.0.1", host))
    (tmp_path / "page.md").write_text(text)
    out = tmp_path / "page.ipynb"
    tool = str(ROOT / "docs" / "site" / "notebooks.py")
    command = [sys.executable, tool, str(tmp_path / "page.md"), str(out), "--run"]
    place = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=place, check=False)
    assert done.returncode == 0, done.stderr
    cells = json.loads(out.read_text())["cells"]
    assert [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"].count(None) == 0
    assert any(cell.get("outputs") for cell in cells)


def test_a_notebook_that_fails_says_where(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# x\n\n```python\na = 1\n```\n\n```console\nfalse\n```\n")
    command = [sys.executable, str(ROOT / "docs" / "site" / "notebooks.py"), "page.md", "page.ipynb", "--run"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "page.md: cell 2: !false" in done.stderr


def test_a_command_that_is_wrong_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert not refused("tangere run circle --set radius=100mm")
    assert refused("tangere rum circle")
    assert refused("tangere record --nonsense")
    capsys.readouterr()
