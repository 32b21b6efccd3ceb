"""Speed of the blocks, where a machine that does other things cannot spoil the verdict."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig

import pytest

if shutil.which("cc") is None or not sys.platform.startswith("linux"):
    pytest.skip("needs a C compiler on Linux", allow_module_level=True)

import tangere
from tangere.apps.fmu import write_fmu
from tangere.apps.fmu.bench import compared, race
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.opened import opened
from tangere.cli.main import main


@pytest.mark.parametrize("kind", ["fk", "all"])
def test_an_instance_takes_less_than_a_millisecond(kind, tmp_path):
    w = write_fmu(kind, tangere.robot("ur10e"), tmp_path, platforms=(LINUX,))
    instantiate, step = race([opened(w.path, tmp_path / "x")], 1000)[0]
    assert instantiate < 1e-3
    assert step < 1e-3  # it takes 1 and 7 us


def test_fifty_times_faster_than_python(tmp_path):
    """The same forward kinematics by PythonFMU with numpy, both under our driver in one run: some 500 times."""
    if importlib.util.find_spec("pythonfmu") is None:
        pytest.skip("needs PythonFMU")
    if not str(sysconfig.get_config_var("LDLIBRARY")).endswith(".so"):
        pytest.skip("PythonFMU needs a Python that is a shared library")
    (_, ours), (_, theirs) = compared(tmp_path, "ur10e", steps=100)
    assert theirs > 50 * ours


@pytest.mark.parametrize("steps", ["-1", "9", "1" + 30 * "0"])
def test_steps_that_nobody_waits_for(steps, capsys):
    assert main(["fmu", "bench", f"--steps={steps}"]) == 1
    assert capsys.readouterr().err == f"error: --steps: 10 to 10000000000, got {steps}\n"
