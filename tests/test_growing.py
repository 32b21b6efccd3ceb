"""A file that is being written, followed for long: rotated, truncated, removed, with bad bytes, or silent; and a log
that is kept within a size."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tangere.apps.touch.alerts import Heartbeat
from tangere.apps.touch.event_table import json_object
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.logs import growing
from tangere.logs.growing import lines_of
from tangere.logs.mcap_log import mcap_sink
from tangere.logs.mcap_read import read_mcap
from tangere.options import size_of


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What happens to the file while it is waited for, one thing at each wait."""

    def steps(*todo: Callable[[], object]) -> None:
        rest = iter(todo)
        monkeypatch.setattr(growing.clock, "sleep", lambda seconds: next(rest, lambda: None)())

    return steps


def followed(path: Path, said: list[str]) -> Iterator[str]:
    return lines_of(path, patience=0.5, tell=said.append)


def test_rotation_is_followed(tmp_path: Path, said: list[str], step: Callable[..., None]) -> None:
    file = tmp_path / "log.csv"
    file.write_text("1\n")
    rotated = tmp_path / "log.csv.1"

    def rotate() -> None:
        with file.open("a") as more:
            more.write("2\n")  # the last line before it goes
        file.rename(rotated)

    step(rotate, lambda: file.write_text("3\n4\n"))
    assert list(followed(file, said)) == ["1\n", "2\n", "3\n", "4\n"]
    assert said == [
        "the file was removed; waiting for it", "the file was replaced: read on from the beginning of the new one",
    ]  # fmt: skip


def test_truncation_is_followed(tmp_path: Path, said: list[str], step: Callable[..., None]) -> None:
    file = tmp_path / "log.csv"
    file.write_text("1\n2\n3\nhal")

    def cut() -> None:
        with file.open("r+") as again:
            again.truncate(0)
            again.write("4\n")

    step(cut)
    assert list(followed(file, said)) == ["1\n", "2\n", "3\n", "4\n"]
    assert said == ["the file was truncated: read on from its beginning"]


def test_bad_bytes_cost_their_line(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(b"\xef\xbb\xbf1\n\xff\xfe,2\r\n" + b"x" * 300 + b"\n3\n")
    assert list(followed(file, said)) == ["1\n", "\ufffd\ufffd,2\r\n", "x" * 300 + "\n", "3\n"]
    monkeypatch.setattr(growing, "LONGEST", 100)
    monkeypatch.setattr(growing, "PIECE", 64)
    assert list(followed(file, said)) == ["1\n", "\ufffd\ufffd,2\r\n", "3\n"]
    assert said == ["a line of more than 100 characters was left out"]


def test_silence_is_said_once(tmp_path: Path, said: list[str], step: Callable[..., None]) -> None:
    file = tmp_path / "log.csv"
    file.write_text("1\n")

    def speak() -> None:
        with file.open("a") as more:
            more.write("2\n")

    step(*[lambda: None] * 7, speak)
    lines = lines_of(file, patience=0.5, tell=said.append, silent=0.2)
    assert list(lines) == ["1\n", "2\n"]
    assert said[:2] == ["no line has come for 0.2 s", "lines come again, after 0 s"]
    assert said.count("no line has come for 0.2 s") == 2


def test_a_log_keeps_within_its_size(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    sink = mcap_sink(path, {"time": 0, "q": 6}, most=200_000)
    rng = np.random.default_rng(0)
    for first in range(0, 20_000, 200):
        sink.rows(np.column_stack((1e-3 * np.arange(first, first + 200), rng.normal(size=(200, 6)))))
    sink.close()
    assert sink.error == ""
    assert {file.name for file in tmp_path.iterdir()} == {"log.mcap", "log.1.mcap"}
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 300_000  # a chunk, and the end of each file
    before, after = read_mcap(tmp_path / "log.1.mcap"), read_mcap(path)
    assert before.complete
    assert after.complete
    assert after.time[-1] == 19.999
    joined = np.concatenate((before.time, after.time))
    assert np.allclose(np.diff(joined), 1e-3)  # nothing is lost between the two


def test_a_service_that_starts_again_keeps_what_it_had_written(tmp_path: Path) -> None:
    """However often: the newest rows that have room stay, in parts."""
    rng, path = np.random.default_rng(0), tmp_path / "arm.mcap"
    for start in range(12):
        sink = mcap_sink(path, {"time": 0, "q": 6}, most=200_000)
        rows = 400 if start else 200
        sink.rows(np.column_stack((start + 1e-3 * np.arange(rows), rng.normal(size=(rows, 6)))))
        sink.close()
        parts = [path, *sorted(tmp_path.glob("arm.*.mcap"), key=lambda file: int(file.name.split(".")[1]))]
        begins = [read_mcap(part).time[0] for part in parts]
        assert begins == list(range(start, start - len(parts), -1))
        assert len(parts) == start + 1 or sum(part.stat().st_size for part in parts[1:]) <= 100_000
    assert len(parts) > 2
    assert sum(part.stat().st_size for part in parts[1:]) > 60_000  # no more is thrown away than must be


def test_sizes() -> None:
    assert size_of(None, "--max-log") is None
    assert [size_of(text, "x") for text in ("500MB", "2 GB", "100000", "1.5M")] == [5e8, 2e9, 1e5, 1.5e6]
    for bad in ("10", "-1GB", "many", "1XB", ""):
        with pytest.raises(InvalidValue, match="--max-log: a size from 100kB on"):
            size_of(bad, "--max-log")


def test_a_heartbeat_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd's socket is told that it lives and that it ends."""
    beats: list[int] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(30.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with Heartbeat(0.01, lambda: beats.append(1)):
            assert systemd.recv(100) == b"READY=1"
            assert systemd.recv(100) == b"WATCHDOG=1"
            give_up = time.monotonic() + 30.0
            while not beats and time.monotonic() < give_up:
                time.sleep(0.01)
        assert beats


def test_options_of_a_stream_are_refused_for_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text("t\n")
    for words in (["--heartbeat", "1"], ["--max-log", "1GB"], ["--durable"]):
        assert main(["watch", str(tmp_path / "log.csv"), "--robot", "ur10e", *words]) == 1
        assert "go with a live arm, a pipe or --follow" in capsys.readouterr().err
    for words, said in ((["--heartbeat", "0"], "--heartbeat: above 0 s, got 0"), (["--durable"], "go with --log")):
        assert main(["watch", str(tmp_path / "log.csv"), "--follow", "--robot", "ur10e", *words]) == 1
        assert said in capsys.readouterr().err


def test_a_heartbeat_and_an_event_are_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told at the same moment by two threads, on a file that is slow to take what is written."""
    written: list[str] = []

    def slow(text: str) -> None:
        written.append(text)
        time.sleep(1e-4)

    monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(write=slow, flush=lambda: None))
    speakers = [threading.Thread(target=lambda: [json_object({"a": k}) for k in range(20)]) for _ in range(3)]
    for speaker in speakers:
        speaker.start()
    for speaker in speakers:
        speaker.join()
    lines = "".join(written).splitlines()
    assert len(lines) == 60
    assert sum(json.loads(line)["a"] for line in lines) == 3 * sum(range(20))


def test_a_heartbeat_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from types import SimpleNamespace

    from tangere.apps.touch.watch_command import _alive

    follower = SimpleNamespace(source=SimpleNamespace(newest=12.5), seconds=2.5, events=(1, 2))
    _alive(True, follower, "arm")
    told = json.loads(capsys.readouterr().out)
    assert told == {"log": "arm", "phase": "heartbeat", "time_s": 12.5, "seconds": 2.5, "events": 2}
    _alive(False, follower, "arm")
    assert "alive: newest stamp 12.500 s, 2.5 s watched, 2 events" in capsys.readouterr().err


def test_a_csv_grows_under_another_name(tmp_path: Path) -> None:
    """As write_csv writes it; a kill leaves what was handed on; the recorder counts what it no longer holds."""
    from tangere.logs.csv_log import CsvSink, read_csv, write_csv
    from tangere.logs.log import Log
    from tangere.loop.recorder import BLOCK, Recorder

    path, q = tmp_path / "log.csv", np.random.default_rng(0).normal(size=(2 * BLOCK + 10, 6))
    sink = CsvSink(path, {"time": 0, "q": 6})
    recorder = Recorder(("time",), {"q": 6}, sink, keep=False)
    for k, row in enumerate(q):
        recorder.append((1e-3 * k,), (row,))
    recorder.flush()
    assert recorder.samples == len(q)
    assert [file.name for file in tmp_path.iterdir()] == ["unfinished-log.csv"]
    assert np.array_equal(read_csv(tmp_path / "unfinished-log.csv")["q"], q)
    sink.close()
    write_csv(Log({"time": 1e-3 * np.arange(len(q)), "q": q}), tmp_path / "whole.csv")
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    sink = CsvSink(path, {"time": 0})
    sink._file.close()
    sink._file = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115
    sink.rows(np.zeros((1, 1)))
    sink.close()
    assert "No space left on device; what there is is unfinished-log.csv" in sink.error
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()  # the old one stays
