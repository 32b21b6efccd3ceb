"""kill -9 at any moment: the log opens, and what is lost is at most half a second of wall time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log
from tangere.logs.recordings import read

ROOT = Path(__file__).resolve().parent.parent
# [s] after the log appeared at which it is killed; the first second is the one in which nothing could be read once
SOAK = bool(os.environ.get("TANGERE_SOAK"))
MOMENTS = np.random.default_rng(7).uniform(0.0, 3.0, 25).tolist() if SOAK else [0.05, 0.9]
PATIENCE = 120.0  # [s] for a start on a busy machine


@contextmanager
def started(*words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process of its own, once its log is there."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    process = subprocess.Popen(
        [sys.executable, "-m", "tangere", *words], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        give_up = time.monotonic() + PATIENCE
        while not log.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.005)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "words", [("run", "hold", "--plant", "rigid", "--set", "duration=30"), ("draw", "snail", "--size", "60mm")]
)
def test_a_kill_costs_half_a_second_at_most(words: tuple[str, ...], moment: float, tmp_path: Path) -> None:
    """What was handed on lies in the file, which was last written at most 0.5 s before the kill."""
    log = tmp_path / "out" / "log.mcap"
    with started(*words, "--out", str(tmp_path / "out"), log=log) as process:
        born = log.stat().st_mtime
        time.sleep(moment)
        process.kill()
        killed = time.time()
    kept = read(log)
    assert np.all(np.diff(kept.time) > 0.0)
    if not kept.complete:  # else it had come to its end before
        assert killed - log.stat().st_mtime < 0.5
        assert kept.problems == ("the end of the file is cut off",)
        assert len(kept) > 100 or killed - born < 0.5


def waits(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """[s] that each of its threads was ready to go on and had no processor, as a busy machine has it."""
    every = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return {stat.parent.name: 1e-9 * int(stat.read_text().split()[1]) for stat in every}


@pytest.mark.skipif(not SOAK, reason="minutes: TANGERE_SOAK=1")
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="asks the system how busy it is: Linux")
@pytest.mark.parametrize(
    ("fed", "moment"),
    [(3200, moment) for moment in MOMENTS] + [(fed, 0.4 * moment) for fed in (990, 2990) for moment in MOMENTS[:15]],
)
def test_a_kill_of_a_watch_costs_half_a_second_at_most(fed: int, moment: float, tmp_path: Path) -> None:
    """watch --follow of a file that grows: the rows that were there 0.5 s before the kill are in its log.

    Also where it learns from the rows so far, without a model at 5 s and 15 s: what comes meanwhile is in a file beside
    the log, but for what it has in hand. What it waited for the processor does not count.
    """
    t, w = np.arange(5000) * 5e-3, np.linspace(0.5, 1.0, 6)
    q = 0.2 * np.sin(np.outer(t, w)) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    tau = tangere.robot("ur10e").gravity_torque(q)
    write_csv(Log({"time": t, "q": q, "qd": 0.2 * w * np.cos(np.outer(t, w)), "tau": tau}), tmp_path / "whole.csv")
    rows = (tmp_path / "whole.csv").read_text().splitlines(keepends=True)
    growing, log = tmp_path / "growing.csv", tmp_path / "log.mcap"
    growing.write_text("".join(rows[: 1 + fed]))
    words = ("watch", str(growing), "--follow", "--robot", "ur10e", "--log", str(log))
    with started(*words, log=log) as process, growing.open("a") as file:
        while len(read(log)) < fed:  # what was there at first has been watched
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        written = [(time.monotonic(), waits(process), fed)]
        begin = time.monotonic()
        while time.monotonic() < begin + moment:
            file.write("".join(rows[1 + fed : 21 + fed]))
            file.flush()
            fed = min(fed + 20, len(t))
            written.append((time.monotonic(), waits(process), fed))
            time.sleep(0.05)
        killed, waited = time.monotonic(), waits(process)
        process.kill()
    kept = read(log)
    assert not kept.complete
    assert kept.problems[0] == "the end of the file is cut off"
    assert np.array_equal(kept["q"], q[: len(kept)])
    there = set(kept.time)
    for aside in tmp_path.glob("unfinished-log.*.csv"):
        there |= set(read(aside).time) if aside.read_text().count("\n") > 1 else set()
    wanted = t[: written[0][2]]
    for when, before, count in written:
        if killed - when - max(now - before.get(thread, 0.0) for thread, now in waited.items()) >= 0.5:
            wanted = t[:count]
    assert len(set(wanted) - there) <= 2


def test_a_stream_that_stalls_keeps_nothing_back(tmp_path: Path) -> None:
    """watch --follow waits for the next line; all that came before it is in its log meanwhile, and survives a kill."""
    robot = tangere.robot("ur10e")
    t = np.arange(0.0, 3.0, 5e-3)
    q = 0.2 * np.sin(np.outer(t, np.linspace(0.5, 1.0, 6))) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    qd = np.gradient(q, t, axis=0)
    write_csv(Log({"time": t, "q": q, "qd": qd, "tau": robot.gravity_torque(q)}), tmp_path / "growing.csv")
    log = tmp_path / "log.mcap"
    words = ("watch", str(tmp_path / "growing.csv"), "--follow", "--robot", "ur10e", "--log", str(log))
    with started(*words, log=log) as process:
        give_up = time.monotonic() + PATIENCE
        while len(read(log)) < len(t):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.1)
    kept = read(log)
    assert not kept.complete
    assert np.array_equal(kept["q"], q)
