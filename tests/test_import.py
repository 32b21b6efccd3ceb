"""Import of the package: light, quick, typed, and with the version of its metadata."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tangere

# what tests and extras use, and what must never ride along with `import tangere`
HEAVY = (
    "scipy", "pinocchio", "mujoco", "yaml", "matplotlib", "sympy", "ur_analytic_ik", "eaik", "pytest", "jax",
    "gymnasium",
)  # fmt: skip


def python(code: str, root: Path) -> str:
    """The output of `code` in a fresh interpreter that finds the package the way this one does."""
    path = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_heavy_module_comes_along(root: Path) -> None:
    loaded = python("import sys, tangere; print(*sys.modules)", root).split()
    assert "tangere" in loaded  # the question was asked of the right interpreter
    assert not {name.split(".")[0] for name in loaded}.intersection(HEAVY)


def test_a_robot_needs_no_heavy_module_either(root: Path) -> None:
    code = """
import sys, tangere
robot = tangere.robot("ur10e")
robot.inverse_kinematics(robot.pose([0.1, -1.2, 1.3, -1.4, -1.5, 0.6]))
robot.mass_matrix([0.0] * 6)
print(*sys.modules)
"""
    loaded = python(code, root).split()
    assert not {name.split(".")[0] for name in loaded}.intersection(HEAVY)


def test_import_is_quick(root: Path) -> None:
    """Beyond numpy, which the caller has loaded anyway, the import costs milliseconds.

    The bound is the promise of 0.2 s itself, of computing: what else a machine does is not asked.
    """
    code = """
import time, numpy
start = time.process_time()
import tangere
print(time.process_time() - start)
"""
    assert min(float(python(code, root)) for _ in range(5)) < 0.2


def test_import_does_no_work(root: Path) -> None:
    """Nothing is printed, and no model file is opened, before a robot is asked for."""
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import tangere
print([name for name in opened if name.endswith(".toml")])
"""
    assert python(code, root).strip() == "[]"


def test_version_is_that_of_the_metadata(root: Path) -> None:
    import tomllib

    stated = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert tangere.__version__ == stated


def test_every_public_name_exists() -> None:
    assert "robot" in tangere.__all__
    for name in tangere.__all__:
        assert getattr(tangere, name) is not None, name
    with pytest.raises(AttributeError):
        _ = tangere.no_such_name  # type: ignore[attr-defined]


def test_type_information_is_shipped() -> None:
    assert (Path(tangere.__file__).parent / "py.typed").is_file()
