"""Our own master in C: what it shows holds without Python. Instances, memory, valgrind, rebuilt binaries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

if shutil.which("cc") is None or not sys.platform.startswith("linux"):
    pytest.skip("needs a C compiler on Linux", allow_module_level=True)

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.driver import DriverFailed, NotLoaded, Talk, driver, ending, run_driver
from tangere.apps.fmu.opened import Opened, opened

ROBOT = tangere.robot("ur10e")


@pytest.fixture(scope="module")
def fmus(tmp_path_factory) -> dict[str, Opened]:
    folder = tmp_path_factory.mktemp("fmus")
    written = {kind: write_fmu(kind, ROBOT, folder, platforms=(LINUX,)) for kind in KINDS}
    return {kind: opened(w.path, folder / kind) for kind, w in written.items()}


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_thousand_instances_at_once(fmus, kind):
    count, wrong, each, _memory, left = (float(x) for x in run_driver("many", fmus[kind], 1000)[0])
    assert count == 1000
    assert wrong == 0  # every instance is at its own time
    assert left == 0  # everything was given back
    assert each < 1e-3  # s to instantiate, with the file read


@pytest.mark.parametrize("kind", list(KINDS))
def test_steps_take_no_memory(fmus, kind):
    """1e5 steps; TANGERE_FMU_STEPS=10000000 for the whole measure."""
    steps = int(os.environ.get("TANGERE_FMU_STEPS", "100000"))
    n, _each, first, highest, taken, left = (
        float(x) for x in run_driver("long", fmus[kind], steps, seconds=60 + 1e-4 * steps)[0]
    )
    assert n == steps
    assert taken == 0
    assert left == 0
    # pages are counted in lots of 64 kB and more; a lost double per step would be 800 kB
    assert highest - first <= 512 * 1024


def test_it_runs_where_python_is_absent(fmus, tmp_path):
    """In a root directory that holds the driver, the FMU and the C library, and nothing else."""
    if os.geteuid() != 0 or shutil.which("ldd") is None or shutil.which("chroot") is None:
        pytest.skip("chroot needs root")
    fmu = fmus["arm"]
    needed = subprocess.run(["ldd", driver(), fmu.library], capture_output=True, text=True, check=True).stdout.split()
    needed = [word for word in needed if ".so" in word and str(fmu.folder) not in word]
    for name in {word for word in needed if word.startswith("/")}:
        place = tmp_path / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, place)
    shutil.copy(driver(), tmp_path / "driver")
    shutil.copy(fmu.library, tmp_path / "block.so")
    shutil.copytree(fmu.folder / "resources", tmp_path / "resources")
    files = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    assert not any("python" in name for name in files)
    assert len(files) <= 6  # driver, block, its numbers, libc, libm, loader
    words = [str(shutil.which("chroot")), str(tmp_path), "/driver", "talk", "/block.so", "file:///resources", fmu.guid]
    q = [v.reference for v in fmu.variables if v.name.startswith("q[")]
    text = "new 0 1 alone\nsetup 0\nenter\nexit\n" + "".join(f"step {k * 1e-3!r} 1e-3\n" for k in range(100))
    text += f"getr 6 {' '.join(map(str, q))}\n"
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, env={}, timeout=600)
    if done.returncode != 0 and "Operation not permitted" in done.stderr:
        pytest.skip("chroot is not allowed here")
    assert done.returncode == 0, done.stderr
    found = [float.fromhex(x) for x in done.stdout.splitlines()[-1].split()[1:]]
    with Talk(fmu) as talk:  # the same bits as with everything around
        for command in (("new", 0, 1, "here"), ("setup", 0.0), ("enter",), ("exit",)):
            assert talk.ask(*command)[0] == 0
        for k in range(100):
            assert talk.ask("step", k * 1e-3, 1e-3)[0] == 0
        assert talk.get("Real", q) == (0, found)


@pytest.mark.parametrize("kind", list(KINDS))
def test_valgrind_has_no_complaint(fmus, kind):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    watch = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite,possible")
    f = fmus[kind]
    counts = [sum(v.kind == k for v in f.variables) for k in ("Real", "Integer", "Boolean")]
    run_driver("fuzz", f, 5, 3000, *counts, wrapped=watch)
    run_driver("many", f, 20, wrapped=watch)


@pytest.mark.parametrize("kind", list(KINDS))
def test_sources_of_the_file_give_the_same_answers(fmus, kind, tmp_path):
    """Compiled from sources/ alone, strictly, with another optimisation: bit by bit the answers of the binary."""
    fmu = fmus[kind]
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off", "-fPIC", "-shared"]
    other = fmu.folder / "binaries" / "linux64" / "again.so"
    subprocess.run(["cc", *flags, "fmu.c", "-o", other, "-lm"], cwd=fmu.folder / "sources", check=True)
    rebuilt = _Rebuilt(fmu, other)
    inputs = [v for v in fmu.of("input", "Real") if "R[" not in v.name and "quaternion" not in v.name]
    outputs = fmu.of("output", "Real")
    seen = []
    for each in (fmu, rebuilt):
        rng = np.random.default_rng(3)
        with Talk(each) as talk:  # type: ignore[arg-type]
            for command in (("new", 0, 1, "x"), ("setup", 0.0), ("enter",), ("exit",)):
                assert talk.ask(*command)[0] == 0
            rows = []
            for k in range(30):
                values = [float(v.start) + 0.05 * rng.normal() for v in inputs]
                assert talk.set("Real", (v.reference for v in inputs), values) == 0
                assert talk.ask("step", k * 1e-3, 1e-3)[0] <= 1
                rows.append(talk.get("Real", (v.reference for v in outputs))[1])
            seen.append(rows)
    assert seen[0] == seen[1]
    assert len({tuple(row) for row in seen[0]}) > 20  # something moved


class _Rebuilt:
    """The same FMU with another library."""

    def __init__(self, fmu: Opened, library: Path) -> None:
        self.path, self.folder, self.library = fmu.path, fmu.folder, library
        self.guid, self.resources, self.arrays = fmu.guid, fmu.resources, fmu.arrays


def test_a_crash_is_told_and_nothing_hangs(fmus, tmp_path):
    """An FMU that crashes, one that never answers, one that is no library."""
    fmu = fmus["fk"]
    for body, words in (("*(volatile int *)0 = 1;", "SIGSEGV"), ("for (;;) ;", "time limit")):
        source = tmp_path / "bad.c"
        source.write_text(f"void *fmi2Instantiate(void) {{ {body} return 0; }}")
        library = tmp_path / f"{len(body)}.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", library], check=True)
        with Talk(_Rebuilt(fmu, library), seconds=2.0) as talk:  # type: ignore[arg-type]
            assert "fmi2DoStep" in talk.absent
            with pytest.raises(DriverFailed, match=words):
                talk.ask("new", 0, 1, "x")
    (tmp_path / "none.so").write_text("nothing")
    with pytest.raises(NotLoaded, match="cannot be loaded"):
        Talk(_Rebuilt(fmu, tmp_path / "none.so"))  # type: ignore[arg-type]


def test_how_a_process_ended_is_said_in_words():
    for code, words in (
        (0, "ended with code 0"), (3, "ended with code 3"), (-11, "crashed (SIGSEGV)"), (-64, "crashed (SIGRTMAX)"),
        (-9, "was ended by the time limit (SIGKILL)"), (-24, "was ended by the time limit (SIGXCPU)"),
    ):  # fmt: skip
        assert ending(code) == words
