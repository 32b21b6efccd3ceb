"""Commands ended at random moments: nothing that was done is lost, nobody stays behind, no file is half."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tangere.apps.study.plan import Plan
from tangere.apps.study.world import random_path, world_of
from tangere.logs.recordings import read

ROOT = Path(__file__).resolve().parent.parent
SOAK = bool(os.environ.get("TANGERE_SOAK"))
PATIENCE = 120.0  # [s] for a start on a busy machine
KINDS = ("run", "draw", "study", "watch", "identify")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def drawn(count: int) -> list[tuple[str, signal.Signals, float]]:
    """Command, signal, and the moment [s] after the first file appeared."""
    rng = np.random.default_rng(int(os.environ.get("TANGERE_SEED", "11")))
    return [(KINDS[k % 5], SIGNALS[rng.integers(4)], float(rng.uniform(0.0, 4.0))) for k in range(count)]


SHORT = [("study", signal.SIGKILL, 1.0), ("study", signal.SIGTERM, 1.0), ("draw", signal.SIGTERM, 0.6)]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A UR10e that moves, 250 samples per second."""
    world = world_of(Plan(frequency=250.0), "exact")
    rng = np.random.default_rng(1)
    run = world.simulate(rng, random_path(world, rng, 20.0))
    file = tmp_path_factory.mktemp("logs") / "free.csv"
    np.savetxt(file, np.column_stack((run.time, run.q, run.qd, run.tau)), delimiter=",", fmt="%.9g")
    return file


def words_of(kind: str, log: Path, out: Path) -> list[str]:
    columns = ["--columns", "t,q,qd,tau", "--robot", "ur10e"]
    return {
        "run": ["run", "hold", "--plant", "rigid", "--set", "duration=60", "--out", str(out)],
        "draw": ["draw", "snail", "--size", "60mm", "--out", str(out)],
        "study": ["study", "--trials", "200", "--learn", "0.2", "--workers", "2", "--out", str(out)],
        "watch": ["watch", str(log), "--follow", *columns, "--log", str(out / "log.mcap"), "--json"],
        "identify": ["identify", str(log), *columns, "--out", str(out / "model.toml")],
    }[kind]


def of_session(number: int) -> list[str]:
    """Processes that are left of a session."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] != "Z":
            left.append(entry.name)
    return left


def hears(number: int) -> bool:
    """Whether a process handles SIGTERM: before, it has not begun, and ends by it at once."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("kind", "number", "moment"), drawn(100) if SOAK else SHORT)
def test_an_end_at_any_moment(kind: str, number: signal.Signals, moment: float, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "model.toml").write_text("the old one")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)

    def listening() -> None:
        for one in SIGNALS[1:]:
            signal.signal(one, signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, "-m", "tangere", *words_of(kind, log, out)], env={**os.environ, "PYTHONPATH": path}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=listening,
    )  # fmt: skip
    wanted = {"run": "log.mcap", "draw": "log.mcap", "study": "unfinished-contacts.csv", "watch": "log.mcap"}.get(kind)
    give_up = time.monotonic() + PATIENCE
    while not (hears(process.pid) if wanted is None else (out / wanted).exists()) and process.poll() is None:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    time.sleep(moment)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors
    give_up = time.monotonic() + 20.0
    while of_session(process.pid) and time.monotonic() < give_up:
        time.sleep(0.1)
    assert of_session(process.pid) == []
    for file in out.iterdir():
        if file.name.startswith("."):
            assert number == signal.SIGKILL
        elif file.suffix == ".json":
            json.loads(file.read_text())
        elif file.suffix == ".html":
            assert file.read_text(encoding="utf-8").endswith("</html>\n")
        elif file.suffix == ".csv" and not file.name.startswith("unfinished"):
            assert file.read_text().endswith("\n")
        elif file.suffix == ".mcap":
            kept = read(file)
            assert np.all(np.diff(kept.time) > 0.0)
            assert kept.complete or number == signal.SIGKILL
    assert (out / "model.toml").read_text().startswith(("the old one", "# ur10e"))
    if number == signal.SIGKILL:
        assert process.returncode in (-signal.SIGKILL, 0)
    else:
        ended = {"run": 1, "draw": 1, "watch": 0}.get(kind, 128 + number)
        assert process.returncode in (ended, 0, 128 + number), errors
        if kind in ("run", "draw"):
            assert {"summary.json", "report.html"} <= {file.name for file in out.iterdir()}
    if kind == "study" and process.returncode:
        name = "unfinished-contacts.csv" if number == signal.SIGKILL else "contacts.csv"
        assert len(list(csv.DictReader((out / name).read_text().splitlines()))) >= 5
