"""Standard streams that are closed, full of escapes or of another encoding; names that are no text, or too long."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tangere.cli import main as command_line
from tangere.cli.main import main, parser
from tangere.identification.model import value_text
from tangere.logs.files import write_text
from tangere.logs.recordings import read
from tangere.model.toml_text import quoted
from tangere.report.terminal import Plain

ROOT = Path(__file__).resolve().parent.parent
HOSTILE = "x\x1b[2Jy\x07\x9b\u202e"  # clears the screen, rings, and turns what follows
RUN = ("run", "hold", "--plant", "rigid", "--push", "none", "--set", "duration=0.2", "--out")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shell(line: str, folder: Path, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """A line of the shell, `tangere` in it."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        ["sh", "-c", line.replace("tangere", f"'{sys.executable}' -m tangere", 1)], cwd=folder,
        env={**os.environ, "PYTHONPATH": path}, check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="closes streams by the shell of Unix")
def test_streams_that_are_closed_lead_nowhere(tmp_path: Path) -> None:
    """As a job of cron may have them. The log would else be the file with the number of standard output."""
    done = shell(f"tangere {' '.join(RUN)} out <&- >&- 2>&-", tmp_path)
    assert done.returncode == 0
    log = read(tmp_path / "out" / "log.mcap")
    assert (len(log), log.complete) == (200, True)
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").endswith("</html>\n")
    assert shell("tangere models >&-", tmp_path).returncode == 0
    done = shell("tangere watch - --robot ur10e <&-", tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1][:6]) == (1, b"error:"), done.stderr
    assert shell("tangere check nosuch --json 2>&-", tmp_path).stdout == b""


def test_no_name_reaches_the_terminal_with_its_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / HOSTILE).mkdir()
    file = tmp_path / HOSTILE / f"{HOSTILE}.script"
    file.write_text("movej([0, 0, 0, 0, 0, 0])\n")
    assert main(["script", "check", str(file)]) == 0
    with pytest.raises(SystemExit):
        main(["models", HOSTILE])
    with pytest.raises(SystemExit):
        main(["models", f"--{HOSTILE}"])
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert "x?[2Jy" in text
        assert text.replace("\n", "").isprintable()


def test_colours_of_our_own_stay_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = "\x1b[31mbad\x1b[0m\x1b[2J\x1b[5F\r\n\t."
    terminal, pipe = Terminal(), io.StringIO()
    Plain(terminal).write(text)
    Plain(pipe).write(text)
    assert terminal.getvalue() == "\x1b[31mbad\x1b[0m?[2J?[5F?\n\t."
    assert pipe.getvalue() == "?[31mbad?[0m?[2J?[5F?\n\t."


def test_what_an_encoding_has_not_is_written_as_an_escape() -> None:
    latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    stream = Plain(latin)
    stream.write("10 µm, σ, \udcff")
    stream.flush()
    assert latin.buffer.getvalue() == b"10 \xb5m, \\u03c3, \\udcff"  # type: ignore[attr-defined]


def test_names_that_are_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = tmp_path / ("a" * 250)
    write_text(long, "as long as a name may be")
    assert [file.name for file in tmp_path.iterdir()] == [long.name]
    exported = ("export", "--robot", "ur10e", "--format", "urdf", "--out")
    for words in (exported, RUN, ("script", "emit", "impedance", "--model")):
        assert main([*words, str(tmp_path / ("a" * 5000))]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert "name too long" in said
        assert (said.count("\n"), len(said) < 700) == (1, True)


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes: Linux")
def test_a_name_of_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "d\udcff")
    assert main([*RUN, out]) == 0
    assert json.loads((Path(out) / "manifest.json").read_text(encoding="utf-8"))["command"][-1] == out
    assert read(Path(out) / "log.mcap").complete
    assert main(["rerun", out]) == 0
    assert main(["report", out]) == 0
    said = capsys.readouterr()
    assert "the same, bit by bit" in said.out
    assert said.err == ""


@pytest.mark.parametrize("name", ["\U0001f600.csv", "ü\x7f\\\"'\n\x00", "plain"])
def test_a_model_file_takes_every_name(name: str) -> None:
    """Beyond 16 bits JSON's escapes are no longer TOML's."""
    for text in (quoted(name), value_text(name)):
        assert tomllib.loads(f"name = {text}") == {"name": name}
    assert tomllib.loads(f"name = {value_text('l' + chr(0xDCFF))}") == {"name": "l?"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_work_goes_on_where_nobody_reads(tmp_path: Path) -> None:
    """A reader that left, a disk that takes no more lines: what was asked for is made all the same."""
    words = "tangere write i --height 8mm --preview --out"
    listening, said = os.pipe()
    os.close(listening)
    done = shell(f"{words} left", tmp_path, stdout=said)
    os.close(said)
    assert (done.returncode, done.stderr) == (0, b"")
    done = shell(f"{words} full >/dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"error: cannot write: No space left on device\n")
    assert shell(f"{words} none >/dev/full 2>&1", tmp_path).returncode == 1
    for name in ("left", "full", "none"):
        assert {file.name for file in (tmp_path / name).iterdir()} == {"plan.svg", "preview.png"}


def test_a_watch_ends_with_its_reader() -> None:
    listening, said = os.pipe()
    os.close(listening)
    with open(said, "w", encoding="utf-8") as pipe:
        stream = Plain(pipe)
        stream.text_is_all = True
        with pytest.raises(BrokenPipeError):
            print("an event", file=stream, flush=True)
        print("one more", file=stream, flush=True)  # nobody is told twice
    known = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
    assert known["watch"].get_default("text_is_all")
    assert not known["draw"].get_default("text_is_all")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_a_system_that_has_no_more_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def full(arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(command_line, "models", full)
    assert main(["models"]) == 1
    assert capsys.readouterr().err == f"error: {os.strerror(number)}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of Unix")
def test_a_text_to_be_written_that_is_none(tmp_path: Path) -> None:
    for given, why in ((r"printf '\377\376\000'", b"is not UTF-8 text"), ("yes", b"at most 10 are read")):
        done = shell(f"{given} | tangere write - --out none", tmp_path)
        assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
        assert why in done.stderr
    assert not (tmp_path / "none").exists()
