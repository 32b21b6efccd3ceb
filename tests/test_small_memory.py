"""Every command with 1 GB of address space (ulimit -v): its result, or one sentence; never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.cli.main import parser
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log

ROOT = Path(__file__).resolve().parent.parent
SOAK = bool(os.environ.get("TANGERE_SOAK"))
ROOM = 1_000_000_000  # [bytes]
NOT_THERE = ("doctor", "dashboard", "record", "calibration", "ros2")  # no arm, nobody who publishes: that is said
SHORT = {
    "models": ("models",),
    "run": ("run", "hold", "--plant", "rigid", "--set", "duration=1", "--out", "run"),
}
LONG = {
    "check": ("check", "ur10e"),
    "scenarios": ("scenarios",),
    "mujoco": ("run", "hold", "--set", "duration=1", "--out", "mujoco"),
    "draw": ("draw", "snail", "--size", "40mm", "--out", "draw"),
    "write": ("write", "a", "--out", "write"),
    "study": ("study", "--trials", "4", "--minutes", "0.1", "--learn", "0.2", "--workers", "1", "--out", "study"),
    "watch": ("watch", "log.csv", "--robot", "ur10e", "--report", "watch.html"),
    "identify": ("identify", "log.csv", "--robot", "ur10e", "--out", "model.toml"),
    "report": ("report", "log.csv"),
    "fmu": ("fmu", "fk", "--out", "fk.fmu"),
    "export": ("export", "--robot", "ur10e", "--out", "arm.urdf"),
    "excite": ("excite", "--robot", "ur10e", "--out", "excite.csv"),
    "compare": ("compare", "a", "a", "--out", "compare.html"),
    "rerun": ("rerun", "a"),
    "tune": ("tune", "log.csv", "--robot", "ur10e", "--model", "model.toml", "--rate", "1/h", "--out", "tuned.toml"),
    "fmu check": ("fmu", "check", "fk.fmu"),
    "symbolic": ("symbolic", "jacobian", "--robot", "ur10e"),
    "script": ("script", "emit", "impedance", "--robot", "ur5e", "--out", "impedance.script"),
    "doctor": ("doctor", "127.0.0.99"),
    "dashboard": ("dashboard", "127.0.0.99", "robotmode"),
    "record": ("record", "127.0.0.99", "--seconds", "1", "--out", "record.mcap"),
    "calibration": ("calibration", "127.0.0.99", "--out", "calibration.yaml"),
    "virtual": ("virtual", "ur5e", "--address", "127.0.0.98", "--clock", "fast", "--seconds", "1"),
    "ros2": ("ros2", "watch", "--robot", "ur5e", "--domain", "99"),
    "studio": ("studio", "export", "a", "--out", "studio.html"),
    "completion": ("completion", "bash"),
    "bench": ("bench", "--quick"),
    "demo": ("demo",),
}
# what a command needs beside the log: it is made first, where memory is not limited
BEFORE = {
    "compare": ("run", "hold", "--plant", "rigid", "--set", "duration=1", "--out", "a"),
    "fmu check": ("fmu", "fk", "--out", "fk.fmu"),
    "tune": ("identify", "log.csv", "--robot", "ur10e", "--out", "model.toml"),
}
BEFORE |= dict.fromkeys(("rerun", "studio"), BEFORE["compare"])


def test_every_command_is_tried() -> None:
    known = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
    assert {words[0] for words in (SHORT | LONG).values()} == set(known)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a process: Linux")
@pytest.mark.parametrize("name", [*SHORT, *LONG] if SOAK else SHORT)
def test_a_command_in_little_memory(name: str, tmp_path: Path) -> None:
    time = np.arange(0.0, 6.0, 5e-3)
    q = 0.2 * np.sin(np.outer(time, np.linspace(0.5, 1.0, 6))) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    columns = {"time": time, "q": q, "qd": np.gradient(q, time, axis=0)}
    write_csv(Log(columns | {"tau": tangere.robot("ur10e").gravity_torque(q)}), tmp_path / "log.csv")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    where: Any = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": path}, "capture_output": True, "text": True}
    begin = [sys.executable, "-m", "tangere"]
    if name in BEFORE:
        subprocess.run([*begin, *BEFORE[name]], check=True, **where)
    done = subprocess.run(
        [*begin, *(SHORT | LONG)[name]], check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)), **where,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2), done.stderr
    if name == "doctor":
        assert done.stdout.splitlines()[-1].startswith("127.0.0.99: not OK")
    elif done.returncode:
        assert done.stderr.splitlines()[-1].startswith("error: "), done.stderr
    if name not in NOT_THERE:
        assert done.returncode == 0, done.stderr
