"""Two that write one log: the second is refused, what the first has is kept, and a dead one is in nobody's way."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from test_ends import begun, killed, until

from tangere.errors import CannotWrite
from tangere.logs.csv_log import CsvSink
from tangere.logs.files import InUse, replacing
from tangere.logs.mcap_log import McapFile, mcap_sink
from tangere.logs.recordings import read

COLUMNS = {"time": 0, "q": 2}


def rows(first: float, number: int = 5) -> np.ndarray:
    return np.column_stack([first + np.arange(number), np.zeros((number, 2))])


def test_a_log_that_grows_is_not_replaced_nor_moved(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    for most in (None, 1e6):  # the service's --max-log would move it aside
        first = McapFile(path, COLUMNS)
        first.write(rows(0.0))
        with pytest.raises(InUse, match=r"a\.mcap is being written by another run; choose another log file, or wait"):
            mcap_sink(path, COLUMNS, most=most)
        first.write(rows(5.0))
        first.close()
        assert len(read(path)) == 10
        assert [file.name for file in tmp_path.iterdir()] == ["a.mcap"]
    mcap_sink(path, COLUMNS).close()  # whose writer is done is replaced as ever
    assert len(read(path)) == 0


def test_parts_of_a_log_are_kept_while_its_writer_goes_on(tmp_path: Path) -> None:
    """A log that has turned is locked like the one before it."""
    path = tmp_path / "a.mcap"
    with closing(mcap_sink(path, COLUMNS, most=40_000.0)) as sink:
        for k in range(1, 100):  # one at a time: none waits that would turn it once more
            sink.rows(np.random.default_rng(k).normal(size=(100, 3)))
            until(lambda k=k: sum(file.stat().st_size for file in tmp_path.glob("[!.]*")) > 7000 * k)
            if (tmp_path / "a.1.mcap").exists():
                break
        until(path.exists)
        with pytest.raises(InUse):
            McapFile(path, COLUMNS)
    assert not sink.error


def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    first = None
    with pytest.raises(InUse), replacing(path, log=True):  # nothing is there when it looks
        first = McapFile(path, COLUMNS)
    assert first is not None
    first.write(rows(0.0))
    first.close()
    assert len(read(path)) == 5
    assert [file.name for file in tmp_path.iterdir()] == ["a.mcap"]


def test_what_is_no_file_is_told_as_ever(tmp_path: Path) -> None:
    (tmp_path / "folder.mcap").mkdir()
    with pytest.raises(CannotWrite, match="folder") as told:
        McapFile(tmp_path / "folder.mcap", COLUMNS)
    assert not isinstance(told.value, InUse)
    for most in (None, 1e6):
        with pytest.raises(CannotWrite, match="File name too long"):
            mcap_sink(tmp_path / f"{'a' * 300}.mcap", COLUMNS, most=most)
    link = tmp_path / "link.mcap"
    link.symlink_to(tmp_path / "nowhere.mcap")
    McapFile(link, COLUMNS).close()
    assert len(read(link)) == 0
    null = McapFile("/dev/null", COLUMNS), McapFile("/dev/null", COLUMNS)  # as many as like
    for file in null:
        file.close()


def test_a_csv_that_grows_is_refused_and_one_that_a_kill_left_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    (tmp_path / "unfinished-a.csv").write_text("timestamp\n1\n2\n")
    first = CsvSink(path, {"time": 0})
    first.rows(rows(0.0)[:, :1])
    with pytest.raises(InUse, match="another run"):
        CsvSink(path, {"time": 0})
    first.close()
    assert path.read_text() == "timestamp\n0.0\n1.0\n2.0\n3.0\n4.0\n"
    CsvSink(path, {"time": 0}).close()
    assert path.read_text() == "timestamp\n"


def lines() -> Iterator[str]:
    """An arm that stands, at 100 Hz."""
    names = ("actual_q", "actual_qd", "actual_current", "target_q", "target_qd")
    yield ",".join(["timestamp", *(f"{name}_{j}" for name in names for j in range(6))]) + "\n"
    noise = np.random.default_rng(1)
    for k in range(100_000):
        numbers = np.concatenate([[0.5, -1.3, 1.7, -2.0, -1.6, 0.3], np.zeros(6), 0.01 * noise.normal(size=6),
                                  [0.5, -1.3, 1.7, -2.0, -1.6, 0.3], np.zeros(6)])  # fmt: skip
        yield ",".join(map(repr, [0.01 * k, *numbers.tolist()])) + "\n"


def test_a_second_watch_into_a_log_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    log = tmp_path / "same.mcap"
    words = ("watch", "-", "--robot", "ur10e", "--json", "--log", str(log))
    more = lines()
    begin = "".join(next(more) for _ in range(600))
    with killed(begun(*words, stdin=subprocess.PIPE)) as first:
        assert first.stdin is not None
        first.stdin.write(begin)
        first.stdin.flush()
        until(log.exists, first)
        with killed(begun(*words, stdin=subprocess.PIPE)) as second:
            out, errors = second.communicate(begin)
            assert (second.returncode, out) == (1, "")
            assert errors.count("error:") == 1
            assert "Traceback" not in errors
            assert f"error: {log} is being written by another run" in errors.splitlines()[-1]
        assert log.exists()
        first.send_signal(signal.SIGKILL)
        first.wait()
    with killed(begun(*words, stdin=subprocess.PIPE)) as again:
        _, errors = again.communicate(begin)
        assert again.returncode == 0, errors
    assert read(log).complete
    assert len(read(log)) > 500
