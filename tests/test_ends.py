"""However it ends: signals, a closed terminal, a lost parent. What is done is kept, and nobody stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere import ends
from tangere.logs.recordings import read

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 120.0  # [s] for a start on a busy machine
HOLD = ("run", "hold", "--plant", "rigid", "--paced", "--set", "duration=60")


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path}


def listening() -> None:
    """A shell in the background ignores some signals; a person at a terminal does not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def begun(*words: str, **how: Any) -> subprocess.Popen[str]:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    return subprocess.Popen(
        [sys.executable, "-m", "tangere", *words], env=environment(), text=True, preexec_fn=listening, **how
    )


def until(true: Any, process: subprocess.Popen[str] | None = None) -> None:
    give_up = time.monotonic() + PATIENCE
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)


def grown(log: Path, size: int = 60_000) -> Any:
    return lambda: log.exists() and log.stat().st_size > size


@contextlib.contextmanager
def killed(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def whole(folder: Path, why: str) -> None:
    """Log, summary and page of a run that was told to end."""
    log = read(folder / "log.mcap")
    summary = json.loads((folder / "summary.json").read_text())
    assert log.complete
    assert summary["aborted"] == log.notes[-1].text.removeprefix("ended: ") == why
    assert len(log) == summary["samples"] > 100
    assert np.all(np.diff(log.time) > 0.0)
    assert why in (folder / "report.html").read_text(encoding="utf-8")
    assert not [file.name for file in folder.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (signal.SIGTERM, "interrupted: told to end (SIGTERM)"),
        (signal.SIGHUP, "interrupted: the terminal was closed (SIGHUP)"),
    ],
)
def test_a_signal_ends_a_run_with_all_its_files(tmp_path: Path, number: int, why: str) -> None:
    with killed(begun(*HOLD, "--out", str(tmp_path))) as process:
        until(grown(tmp_path / "log.mcap"), process)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert out.startswith(f"aborted: {why}\n")
    whole(tmp_path, why)


def test_a_lost_parent_ends_it_too(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-m', 'tangere', *{HOLD!r}, '--out', {str(tmp_path)!r}])\n"
        "time.sleep(1000)"
    )
    begin = subprocess.Popen([sys.executable, "-c", parent], env=environment(), text=True, preexec_fn=listening)
    with killed(begin) as process:
        until(grown(tmp_path / "log.mcap"), process)
    until((tmp_path / "log.csv").exists)  # the last of its files
    whole(tmp_path, "interrupted: the program that started it is gone")


def test_a_closed_terminal_costs_nothing(tmp_path: Path) -> None:
    """Progress is being drawn on the terminal that goes."""
    child, terminal = pty.fork()
    if child == 0:
        listening()
        os.execve(
            sys.executable, [sys.executable, "-m", "tangere", *HOLD, "--out", str(tmp_path)], environment()
        )  # pragma: no cover
    log = grown(tmp_path / "log.mcap")
    give_up = time.monotonic() + PATIENCE
    while not log():
        os.read(terminal, 10_000)  # somebody looks at it
        assert time.monotonic() < give_up
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    whole(tmp_path, "interrupted: the terminal was closed (SIGHUP)")


@contextlib.contextmanager
def stuck(setting: str = "") -> Iterator[subprocess.Popen[str]]:
    """A command whose plant does not let itself be closed: it was told to end once and goes on."""
    script = f"""
import time
from tangere import ends
from tangere.cli import main
{setting}
def stuck(arguments):
    ends.hold()
    print("ready", flush=True)
    time.sleep(1000)
main.models = stuck
raise SystemExit(main.main(["models"]))
"""
    with killed(
        subprocess.Popen([sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.PIPE, preexec_fn=listening)
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        yield process


def test_a_second_signal_ends_it_at_once() -> None:
    with stuck() as process:
        time.sleep(0.5)
        assert process.poll() is None  # results would be written now
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == -signal.SIGTERM  # 143 where it waits for its 8 s


def test_patience_has_an_end() -> None:
    with stuck("ends.PATIENCE = 0.5") as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert err == "error: ended 0.5 s after the signal, before all files were written\n"


class Arm:
    """A plant that counts: what the loop did to it."""

    def __init__(self, at: int, number: int, slow: float = 0.0) -> None:
        self.dof, self.period = 6, 1e-3
        self.done: list[str] = []
        self._reads, self._at, self._number, self._slow = 0, at, number, slow

    def reset(self, q: Any, qd: Any = None) -> Any:
        self._q = np.array(q)
        return self.read()

    def read(self) -> Any:
        from tangere.types import State

        self._reads += 1
        if self._reads == self._at:
            signal.raise_signal(self._number)
            time.sleep(self._slow)
        return State(self._reads * 1e-3, 1e-3, self._q, np.zeros(6), np.zeros(6))

    def write(self, command: Any) -> None:
        self.done.append("write")

    def close(self) -> None:
        self.done.append("close")


class Idle:
    def __init__(self, plant: Arm) -> None:
        self.plant = plant

    def start(self, state: Any) -> None:
        self.plant.done.append("start")

    def step(self, state: Any) -> Any:
        from tangere.types import Command

        return Command(np.zeros(6))

    def stop(self) -> None:
        self.plant.done.append("stop")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_within_a_period_the_controller_is_stopped_and_the_plant_closed(number: int) -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(one) for one in numbers]
    listening()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    handlers = [signal.getsignal(one) for one in numbers]
    try:
        plant = Arm(50, number)
        result = tangere.run(plant, Idle(plant), until=10.0, start=np.zeros(6))
        assert [signal.getsignal(one) for one in numbers] == handlers
    finally:
        for one, handler in zip(numbers, before, strict=True):
            signal.signal(one, handler)
    assert result.aborted.startswith("interrupted")
    assert isinstance(result.abort, ends.Ended)
    assert result.abort.code == 128 + number
    assert plant.done == ["start", *["write"] * 49, "stop", "close"]
    assert len(result.log) == 49


def test_a_source_that_waits_is_woken() -> None:
    plant = Arm(50, signal.SIGTERM, slow=1000.0)
    result = tangere.run(plant, Idle(plant), until=10.0, start=np.zeros(6))
    assert plant.done[-2:] == ["stop", "close"]
    assert len(result.log) == 49


def test_a_loop_in_another_thread_is_left_alone() -> None:
    found = []

    def work() -> None:
        plant = Arm(-1, 0)
        found.append(tangere.run(plant, Idle(plant), until=0.1, start=np.zeros(6)).aborted)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [""]


def test_ignored_signals_stay_ignored() -> None:
    """nohup: a closed terminal is no reason to end."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        plant = Arm(50, signal.SIGHUP)
        assert tangere.run(plant, Idle(plant), until=0.1, start=np.zeros(6)).aborted == ""
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupted_run_is_compared_up_to_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tangere.cli.main import main

    with killed(begun("run", "hold", "--plant", "rigid", "--set", "duration=60", "--out", str(tmp_path))) as process:
        until(grown(tmp_path / "log.mcap", 300_000), process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    told = json.loads((tmp_path / "manifest.json").read_text())
    told["scenario"]["duration"] = 5.0 + read(tmp_path / "log.mcap").duration  # as long as is compared, and no longer
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    assert main(["rerun", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("the same, bit by bit")
    assert "note: the run was interrupted: told to end (SIGTERM); compared up to there" in out


def test_ctrl_c_while_it_loads_is_no_fault(tmp_path: Path) -> None:
    """The first import takes long and is interrupted."""
    (tmp_path / "argparse.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from tangere.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=False,
        preexec_fn=listening,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_of_a_server_a_signal_is_the_usual_end(number: int) -> None:
    host = f"127.0.{os.getpid() % 250}.{number + 10}"
    with killed(begun("virtual", "ur5e", "--plant", "rigid", "--address", host)) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ur5e")
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_closed_terminal_costs_a_studio_nothing(tmp_path: Path, number: int) -> None:
    """A terminal, or a service, tells each process of the group: the log is whole all the same."""
    pytest.importorskip("viser")
    log = tmp_path / "log.mcap"
    studio = begun("studio", "--no-browser", "--log", str(log), start_new_session=True)
    with killed(studio) as process:
        until(grown(log, 20_000), process)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("studio at http://127.0.0.1:")
    assert read(log).complete
