"""The boundary for files of others: hostile files by hand, what a terminal gets to see, limits that can be raised."""

from __future__ import annotations

import os
import re
import resource
import struct
import subprocess
import sys
import threading
import tracemalloc
import warnings
from pathlib import Path

import fuzz_readers
import hostile_files
import numpy as np
import pytest

import tangere
from tangere import foreign
from tangere.apps.drawing.picture.picture import read_picture
from tangere.apps.fmu.opened import opened
from tangere.cli.main import main
from tangere.errors import InvalidValue, TangereError
from tangere.logs.csv_log import read_csv, write_csv
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap

HOSTILE = hostile_files.hostile()


def test_there_are_enough_of_them() -> None:
    assert sum(map(len, HOSTILE.values())) >= 150


@pytest.mark.parametrize("reader", HOSTILE)
def test_hostile_files_end_in_an_answer_or_a_sentence(reader: str, tmp_path: Path) -> None:
    """Not in a traceback, not in a hang, not in more memory than a file of its size may take."""
    every = fuzz_readers.seeds(tmp_path)
    if reader not in every:
        pytest.skip(f"what reads {reader} is not installed")
    right, read, ending = every[reader]
    place = tmp_path / f"hostile{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place.write_bytes(right[0])
        read(place)  # what is loaded late is loaded
        foreign.allow(foreign.UNTOLD, net=True)
        try:
            for what, data in HOSTILE[reader].items():
                place.write_bytes(data)
                before = set(tmp_path.iterdir())
                top = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                try:
                    read(place)
                except TangereError as problem:
                    said = foreign.line(str(problem))
                    assert said.isprintable(), what
                    assert len(said) <= foreign.LINE, what
                except Exception as problem:
                    pytest.fail(f"{reader}, {what}: {problem!r}")
                more = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - top)
                assert more < foreign.budget(len(data)) + foreign.LEAST, (what, more)
                assert set(tmp_path.iterdir()) == before, what
        finally:
            foreign.allow(foreign.UNTOLD, net=False)


def test_memory_is_limited_while_a_file_is_read_and_only_then() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    foreign.allow(foreign.UNTOLD, net=True)
    try:
        said = r"a\.bin: reading it takes more than 50 MB"
        with pytest.raises(InvalidValue, match=said), foreign.reading("a.bin", 10):
            np.ones(40_000_000)
    finally:
        foreign.allow(foreign.UNTOLD, net=False)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with foreign.reading("a.bin", 10):
        np.ones(20_000_000)  # a program of others that uses the library keeps its own limits


def test_reading_takes_no_more_than_there_is(tmp_path: Path) -> None:
    """Not as much as a file may have, and of a pipe as much as comes."""
    (tmp_path / "a").write_bytes(b"a" * 1000)
    tracemalloc.start()
    try:
        assert foreign.read_bytes(tmp_path / "a") == b"a" * 1000
        assert tracemalloc.get_traced_memory()[1] < 10 * foreign.MB
    finally:
        tracemalloc.stop()
    os.mkfifo(tmp_path / "pipe")
    for size, most in ((3_000_000, 3_000_000), (3_000_001, 3_000_000)):
        writer = threading.Thread(target=lambda n=size: (tmp_path / "pipe").write_bytes(b"a" * n), daemon=True)
        writer.start()
        if size <= most:
            assert foreign.read_bytes(tmp_path / "pipe", most) == b"a" * size
        else:
            with pytest.raises(InvalidValue, match="at most 3 are read"):
                foreign.read_bytes(tmp_path / "pipe", most)


def test_what_a_message_repeats_is_short() -> None:
    assert len(foreign.line("of " + "x" * 5000)) <= foreign.LINE
    assert foreign.line("x" * 5000 + " the end").endswith(" the end")
    assert len(foreign.shown("x" * 5000)) <= foreign.SHOWN
    assert foreign.names(f"name{k}" for k in range(100_000)).endswith("name11 and 99988 more")


def test_a_block_whose_identifier_is_a_path_is_refused(tmp_path: Path) -> None:
    """What `fmu check` would load with it lies outside the archive."""
    (tmp_path / "a.fmu").write_bytes(HOSTILE["fmu"]["identifier"])
    with pytest.raises(InvalidValue, match="no name of C"):
        opened(tmp_path / "a.fmu", tmp_path / "x")


def test_time_is_limited_by_what_was_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "SECONDS", 0.05)
    foreign.allow(foreign.UNTOLD, net=True)
    try:
        with pytest.raises(InvalidValue, match="of computing"), foreign.reading("a.bin"):
            all(x == 0 for x in iter(int, 1))  # zeros without end
    finally:
        foreign.allow(foreign.UNTOLD, net=False)


def test_whatever_a_library_raises_is_ours_and_names_the_file() -> None:
    for problem in (KeyError("x"), RecursionError(), MemoryError(), OSError(5, "Input/output error"), EOFError(),
                    UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")):  # fmt: skip
        with pytest.raises(InvalidValue, match=r"here\.bin"), foreign.reading("here.bin"):
            raise problem
    with pytest.raises(KeyboardInterrupt), foreign.reading("here.bin"):
        raise KeyboardInterrupt


def test_a_terminal_is_told_nothing_that_it_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "\n".join(f"{0.01 * k},1" for k in range(50))
    named = tmp_path / f"a{hostile_files.ESCAPE}.csv"
    named.write_text(f"timestamp,{hostile_files.ESCAPE}{'x' * 3000}\n{rows}\n")
    for words in (["watch", str(named), "--robot", "ur10e"], ["check", f"{hostile_files.ESCAPE}.toml"],
                  ["check", hostile_files.TURN]):  # fmt: skip
        assert main(words) == 1
        err = capsys.readouterr().err
        assert "\x1b" not in err
        assert "\x07" not in err
        assert hostile_files.TURN not in err
        assert len(err) < 800


def test_a_csv_is_cut_where_its_last_line_has_no_end(tmp_path: Path) -> None:
    """-1.2e-05 cut to -1.2 must not be believed; a delimiter or words behind it say that a number is whole."""
    head = "timestamp,q_0,q_1\n0.0,1,2\n0.1,1,2\n"
    (tmp_path / "a.csv").write_text(head + "0.2,1,-1.2")
    log = read_csv(tmp_path / "a.csv")
    assert not log.complete
    assert log["q"].shape == (3, 2)
    assert np.isnan(log["q"][-1, 1])
    assert log.problems == ("the last line has no line end and may be cut",)
    days = head.replace("\n", ",day\n", 1).replace("2\n", "2,Mo\n")
    for whole in (head + "0.2,1,-1.2\n", head + "0.2,1,-1.2,", days + "0.2,1,-1.2,Tu"):
        (tmp_path / "a.csv").write_text(whole)
        log = read_csv(tmp_path / "a.csv")
        assert log.complete
        assert log["q"][-1, 1] == -1.2


def test_a_line_without_end_is_cut_and_counted(tmp_path: Path) -> None:
    rows = "".join(f"{0.1 * k},{k}\n" for k in range(30))
    (tmp_path / "a.csv").write_text("timestamp,x\n" + rows + "9," * 1_500_000 + "\n" + "99.0,1\n")
    log = read_csv(tmp_path / "a.csv")
    assert len(log) == 31
    assert "another number of cells" in log.problems[0]
    told: list[int] = []
    with (tmp_path / "a.csv").open("rb") as file:
        lines = list(foreign.lines(file, lambda: told.append(1)))
    assert len(lines) == 33
    assert told == [1]


def test_a_long_csv_takes_less_memory_than_its_text(tmp_path: Path) -> None:
    row = ",".join(["0.12345678901234567"] * 20) + "\n"
    with (tmp_path / "a.csv").open("w") as file:
        file.write("timestamp," + ",".join(f"x_{i}" for i in range(20)) + "\n")
        file.writelines(f"{0.001 * k:.3f},{row}" for k in range(60_000))
    tracemalloc.start()
    try:
        log = read_csv(tmp_path / "a.csv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(log) == 60_000
    assert peak < 1.6 * (tmp_path / "a.csv").stat().st_size


def test_more_memory_is_allowed_by_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert foreign.budget(1) == foreign.LEAST
    assert foreign.budget(10 * foreign.MB) == 200 * foreign.MB
    assert foreign.budget(1000 * foreign.MB) == foreign.UNTOLD
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(600 * foreign.MB)  # a hole, no bytes on the disk
    assert main(["identify", str(tmp_path / "a.csv"), "--robot", "ur10e"]) == 1  # watch reads row by row
    assert "--memory" in capsys.readouterr().err
    assert main(["--memory", "1GB", "check", "ur10e"]) == 0
    with pytest.raises(SystemExit):
        main(["--memory", "plenty", "check", "ur10e"])
    assert foreign.allowed() == foreign.UNTOLD


@pytest.mark.parametrize("words", [["models"], ["check", "ur10e"], ["demo"], ["watch", "a.csv", "--robot", "ur10e"]])
def test_a_command_with_little_memory_ends_in_a_result_or_a_sentence(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HOSTILE["csv"]["wide"])
    for size in (1_000_000, 150_000) if os.environ.get("TANGERE_SOAK") else (1_000_000,):  # [kB]
        done = subprocess.run(
            ["bash", "-c", f'ulimit -v {size}; exec "$0" -m tangere "$@"', sys.executable, *words], cwd=tmp_path,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr


def test_what_a_file_calls_itself_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default name of an exported arm is a file in the current folder, whatever the model's name."""
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    assert main(["export", "--robot", "ur5e", "--out", "arm.toml"]) == 0
    text = (here / "arm.toml").read_text()
    for k, name in enumerate(("../../evil", "/tmp/evil", "..", ".hidden")):
        (here / "arm.toml").write_text(re.sub('(?m)^name = ".*"', f'name = "{name}"', text, count=1))
        assert main(["export", "--robot", "arm.toml", "--format", "sdf"]) == 0
        made = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "arm.toml"]
        assert len(made) == 1 + k
        assert all(file.parent == here and not file.name.startswith(".") for file in made)


def test_no_picture_is_handed_to_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow starts Ghostscript for PostScript, whatever the file is called: such a file is no picture here."""
    from PIL import EpsImagePlugin

    def run(*given: object, **how: object) -> None:
        raise AssertionError("Ghostscript was started")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", run)
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99 99\n%%EndComments\nshowpage\n")
    with pytest.raises(InvalidValue, match="not a picture that can be read"):
        read_picture(tmp_path / "a.png")


def test_a_long_bag_of_others_is_not_read_as_a_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tangere.loop import long_watch

    monkeypatch.setattr(long_watch, "LONG_FILE", 10)
    log = Log({"time": np.arange(9.0), "q": np.zeros((9, 6))})
    for name, long in {"a.csv": True, "a.txt": True, "a.mcap": True, "a.db3": False, "a.npz": False}.items():
        write_mcap(log, tmp_path / name) if long else (tmp_path / name).write_bytes(bytes(99))
        assert long_watch.is_long(tmp_path / name) is long
    (tmp_path / "b.mcap").write_bytes(b"\x89MCAP0\r\n" + struct.pack("<BQ", 6, 9) + bytes(99))
    assert not long_watch.is_long(tmp_path / "b.mcap")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"q": 2e6}, "log.csv: 2e+06 rad is no joint position"), ({"tau": 0.0}, "log.csv: all torques are zero"),
        ({"tau": 1e40}, "log.csv: torques of 1e+40 Nm in joint 4 (median), whose drive has 54: another column"),
    ],
)  # fmt: skip
def test_numbers_of_no_arm_are_no_model(wrong: dict[str, float], said: str, tmp_path: Path) -> None:
    time = np.arange(0.0, 3.0, 1e-2)
    q = 0.2 * np.sin(np.outer(time, np.linspace(0.5, 1.0, 6)))
    log = {"time": time, "q": q, "qd": np.gradient(q, time, axis=0), "tau": np.ones_like(q)}
    write_csv(Log(log | {name: np.full_like(q, value) for name, value in wrong.items()}), tmp_path / "log.csv")
    with pytest.raises(InvalidValue, match=re.escape(said)):
        tangere.identify(tmp_path / "log.csv", "ur10e")


def test_whole_numbers_without_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON: beyond 64 bits they are floats, which arrays take. TOML: those that no float holds are refused."""
    found = foreign.loads(f"[1, -{2**63}, {2**63 - 1}, {2**63}, {10**30}, 1{'0' * 400}]", "a.json")
    assert found == [1, -(2**63), 2**63 - 1, 2.0**63, 1e30, np.inf]
    assert [type(one) for one in found] == [int] * 3 + [float] * 3
    assert foreign.toml("a = 1e300\nb = " + "9" * 200, "a.toml")["b"] > 0
    for number in ("9" * 400, "1_" * 300 + "1", "0x" + "f" * 300):
        with pytest.raises(InvalidValue, match=r"a\.toml.*digits or more is not read"):
            foreign.toml(f"a = {number}", "a.toml")
        (tmp_path / "a.toml").write_text(f"schema_version = {number}\n")
        assert main(["check", str(tmp_path / "a.toml")]) == 1
        assert "digits or more" in capsys.readouterr().err


def test_a_program_from_a_pipe_and_a_logo_have_a_measure(tmp_path: Path) -> None:
    """What never ends is not waited for: /dev/zero as a program and as a logo."""
    words = [sys.executable, "-m", "tangere"]
    path = os.pathsep.join([str(Path(__file__).resolve().parent.parent / "src"), os.environ.get("PYTHONPATH", "")])
    how = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}, "text": True}
    with open("/dev/zero") as endless:
        done = subprocess.run([*words, "script", "check", "-"], stdin=endless, capture_output=True, check=False, **how)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "standard input: has more than 10 MB" in done.stderr
    (tmp_path / "logo.png").symlink_to("/dev/zero")
    write_csv(Log({"time": np.arange(3.0), "q": np.zeros((3, 6))}), tmp_path / "a.csv")
    done = subprocess.run([*words, "report", "a.csv", "--logo", "logo.png"], capture_output=True, check=False, **how)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert re.match(r"error: --logo: logo\.png: has .* MB, at most 1 are read", done.stderr)
