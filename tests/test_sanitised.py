"""The C extension built with ASAN and UBSAN, and under valgrind: no error in a bounded set of calls (c_calls.py).

The long form: a build of a minute or two. Nothing is skipped silently: without libasan or valgrind the reason says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOAK = bool(os.environ.get("TANGERE_SOAK"))
pytestmark = pytest.mark.skipif(not SOAK, reason="builds the extension anew with sanitisers; TANGERE_SOAK=1")


def libasan() -> str:
    """The library that must be loaded first; "" where gcc has none."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return ""
    said = subprocess.run([gcc, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    return said.stdout.strip() if os.path.isabs(said.stdout.strip()) else ""


def built(folder: Path, **environment: str) -> Path:
    """Where the package lies with extensions that are compiled anew."""
    for name in ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        place = ROOT / name
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(place, folder / name, ignore=ignored) if place.is_dir() else shutil.copy(place, folder)
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    made = subprocess.run(
        build, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "src"), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert list((folder / "src" / "tangere").glob("_kernels*.so")), made.stdout + made.stderr
    return folder / "src"


def test_no_error_of_memory_or_of_c(tmp_path: Path) -> None:
    library = libasan()
    if not library:
        pytest.skip("gcc has no libasan on this machine")
    package = built(tmp_path, TANGERE_SANITISE="1")
    options = {
        "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join([str(package), str(ROOT / "tests")]),
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "c_calls.py")], env={**os.environ, **options},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "runtime error" not in ran.stderr
    assert "calls" in ran.stdout


def test_valgrind_finds_nothing(tmp_path: Path) -> None:
    """Without our vectors of AVX: valgrind 3.19 ends at vmovq between two of its registers."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("valgrind is not installed")
    path = os.pathsep.join([str(built(tmp_path, CFLAGS="-DTG_PLAIN")), str(ROOT / "tests")])
    known = f"--suppressions={ROOT / 'tests' / 'valgrind.supp'}"
    ran = subprocess.run(
        [valgrind, "-q", "--error-exitcode=9", known, sys.executable, str(ROOT / "tests" / "c_calls.py"), "2"],
        env={**os.environ, "PYTHONMALLOC": "malloc", "PYTHONPATH": path, "OPENBLAS_CORETYPE": "Haswell"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
