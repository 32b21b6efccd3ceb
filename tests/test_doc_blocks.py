"""Code in the pages is true: Python blocks run, in order, page by page; commands are understood by their parser; the
rest is marked as text."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tangere.cli.main import parser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "```" in path.read_text()]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.S | re.M)
# Pages whose Python needs an arm or another node at the other end: it is compiled only.
OTHER_END = {"arm.md", "ros2.md"}


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


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.stem)
def test_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.parent.name == "howto" and page.stem == "gym":
        pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'tangere[gym]'")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for text in blocks(page, "python"):
        code = compile(text, page.name, "exec")
        if page.name not in OTHER_END:
            exec(code, names)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=lambda page: page.stem)
def test_commands_of_a_page_are_understood(page: Path) -> None:
    lines = [line for text in blocks(page, "console") for line in text.splitlines() if line.startswith("tangere ")]
    assert [line for line in lines if refused(line)] == []


def test_a_command_that_is_wrong_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert not refused("tangere run circle --set radius=100mm")
    assert refused("tangere rum circle")
    assert refused("tangere record --nonsense")
    capsys.readouterr()
