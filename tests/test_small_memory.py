"""Every command with 1 GB of address space (ulimit -v): its result, or one sentence; never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log

ROOT = Path(__file__).resolve().parent.parent
SOAK = bool(os.environ.get("TANGERE_SOAK"))
ROOM = 1_000_000_000  # [bytes]
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
    "export": ("export", "ur10e", "--out", "arm.urdf"),
    "excite": ("excite", "ur10e", "--out", "excite"),
    "compare": ("compare", "run", "run"),
    "textbook": ("textbook", "--out", "textbook"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a process: Linux")
@pytest.mark.parametrize("name", [*SHORT, *LONG] if SOAK else SHORT)
def test_a_command_in_little_memory(name: str, tmp_path: Path) -> None:
    time = np.arange(0.0, 6.0, 5e-3)
    q = 0.2 * np.sin(np.outer(time, np.linspace(0.5, 1.0, 6))) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    columns = {"time": time, "q": q, "qd": np.gradient(q, time, axis=0)}
    write_csv(Log(columns | {"tau": tangere.robot("ur10e").gravity_torque(q)}), tmp_path / "log.csv")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", "tangere", *(SHORT | LONG)[name]], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)),
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2), done.stderr
    if done.returncode:
        assert done.stderr.splitlines()[-1].startswith(("error: ", "tangere")), done.stderr
    if name in SHORT:
        assert done.returncode == 0, done.stderr
