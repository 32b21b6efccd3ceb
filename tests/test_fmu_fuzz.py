"""Random calls with random arguments through drivers in C, FMI 2.0 and 3.0: right status, a message for every refusal.

In the short form, five kinds in either version; the long form has all of them, more calls, and valgrind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if shutil.which("cc") is None or not sys.platform.startswith("linux"):
    pytest.skip("needs a C compiler on Linux", allow_module_level=True)

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.driver import run_driver
from tangere.apps.fmu.opened import Opened, opened
from tangere.apps.fmu.package import Written
from tangere.apps.fmu.variables import all_arrays

SOAK = bool(os.environ.get("TANGERE_SOAK"))
CALLS = int(os.environ.get("TANGERE_FMU_CALLS", "400000" if SOAK else "100000"))
FIELDS = ("calls", "ok", "warning", "discard", "error", "wrong", "silent", "not_finite", "works", "living")
C = Path(tangere.__file__).parent / "apps" / "fmu" / "c"
HERE = Path(__file__).parent
SANITISED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1")
# one of each sort: poses, solutions, motion, samples, everything with a controller; an arm that is no UR
SHORT = (("fk", "ur10e"), ("ik", "ur10e"), ("dynamics", "scara"), ("observer", "ur10e"), ("arm", "ur10e"))
FEW = [(kind, arm) for kind in KINDS for arm in ("ur10e", "scara") if arm == "ur10e" or not KINDS[kind].closed]
CASES = FEW if SOAK else SHORT


class Blocks:
    """Files by kind, arm and version, each written once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[str, str, int], tuple[Written, Opened]] = {}

    def __call__(self, kind: str, arm: str = "ur10e", fmi: int = 2) -> tuple[Written, Opened]:
        key = (kind, arm, fmi)
        if key not in self.made:
            place = self.folder / "_".join(map(str, key))
            place.mkdir()
            written = write_fmu(kind, arm, place, platforms=(LINUX,), fmi=fmi)
            self.made[key] = written, opened(written.path, place / "x")
        return self.made[key]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory) -> Blocks:
    return Blocks(tmp_path_factory.mktemp("fmus"))


def counts(fmu: Opened) -> list[int]:
    return [sum(v.kind == k for v in fmu.variables) for k in ("Real", "Integer", "Boolean")]


def fuzzed(fmu: Opened, seed: int, calls: int) -> dict[str, int]:
    *complaints, last = run_driver("fuzz", fmu, seed, calls, *counts(fmu), seconds=300.0)
    assert complaints == []
    return dict(zip(FIELDS, map(int, last), strict=True))


def arrays_of(written: Written) -> list[str]:
    """Variables as the driver of FMI 3.0 takes them: type, reference, size."""
    letter = {"Real": "f", "Integer": "i", "Boolean": "b"}
    found = [(letter[a.placed.group.kind], a.reference, a.size) for a in all_arrays(written.table)]
    return [str(x) for row in (*found, ("f", 3000, 1)) for x in row]


def compiled(folder: Path, *flags: str) -> Path:
    """The driver of FMI 3.0."""
    out = folder / "fmi3_fuzz"
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", *(flags or ("-O2",)), f"-I{C}", HERE / "fmi3_fuzz.c"]
    subprocess.run([*command, "-o", out, "-ldl", "-lm"], check=True)
    return out


def fuzzed3(
    master: Path, written: Written, fmu: Opened, seed: int, calls: int, library: Path | None = None, wrapped: tuple = ()
) -> dict[str, int]:
    words = [*wrapped, master, library or fmu.library, f"{fmu.folder / 'resources'}/", fmu.guid, str(seed), str(calls)]
    done = subprocess.run([*words, *arrays_of(written)], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    *complaints, last = done.stdout.splitlines()
    assert complaints == []
    return dict(zip((*FIELDS[:-1],), map(int, last.split()), strict=True))


def sound(told: dict[str, int], calls: int, discarded: float = 0.002) -> None:
    """discarded: the least share of calls; lists of FMI 3.0 hold whole arrays, one that must not be set is an error."""
    assert told["calls"] == calls
    assert told["wrong"] == 0  # a status that the call must not have, or a wrong argument taken
    assert told["silent"] == 0  # a refusal without a message
    assert told["not_finite"] == 0  # a value that is none
    assert told["works"] == 1  # a new instance steps after all this
    # it went deep: many calls succeeded, many were refused in either way
    assert told["ok"] > 0.1 * calls
    assert told["discard"] > discarded * calls
    assert told["error"] > 0.1 * calls


@pytest.mark.parametrize(("kind", "arm"), CASES)
def test_random_calls(blocks, kind, arm):
    told = fuzzed(blocks(kind, arm)[1], list(KINDS).index(kind), CALLS)
    sound(told, CALLS, 0.005)
    assert told["living"] == 0  # all memory was given back


@pytest.mark.parametrize(("kind", "arm"), CASES)
def test_random_calls_of_fmi_3(blocks, kind, arm, tmp_path):
    sound(fuzzed3(compiled(tmp_path), *blocks(kind, arm, 3), list(KINDS).index(kind), CALLS), CALLS)


def test_the_same_seed_makes_the_same_calls(blocks, tmp_path):
    fmu = blocks("arm")[1]
    assert fuzzed(fmu, 7, 5000) == fuzzed(fmu, 7, 5000) != fuzzed(fmu, 8, 5000)
    master, both = compiled(tmp_path), blocks("arm", fmi=3)
    first = fuzzed3(master, *both, 7, 5000)
    assert first == fuzzed3(master, *both, 7, 5000) != fuzzed3(master, *both, 8, 5000)


@pytest.mark.parametrize(("name", "old", "new", "word"), [
    ("values3.h", "if (used != n_values) {", "if (used > 5000) {", "number of values"),
    ("values.h", "fmi2Discard", "fmi2OK", "took a value that is none|discard"),
    ("modes3.h", "*last = I->now.time;", "*last = NAN;", "another time"),
])  # fmt: skip
def test_faults_are_found(blocks, tmp_path, name, old, new, word):
    """The rules of the fuzz can fail: three faults in the sources."""
    written, fmu = blocks("arm", fmi=3)
    sources = tmp_path / "sources"
    shutil.copytree(fmu.folder / "sources", sources)
    text = (sources / name).read_text()
    assert old in text
    (sources / name).write_text(text.replace(old, new))
    library = tmp_path / "block.so"
    options = ["-std=c99", "-O1", "-fPIC", "-shared", "-ffp-contract=off"]
    subprocess.run(["cc", *options, "fmu3.c", "-o", library, "-lm"], cwd=sources, check=True)
    with pytest.raises(AssertionError, match=word):
        sound(fuzzed3(compiled(tmp_path), written, fmu, 3, 20000, library), 20000)


def sanitisers(folder: Path) -> None:
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }")
    tried = subprocess.run(["cc", *SANITISED, probe, "-o", folder / "probe"], capture_output=True, check=False)
    if tried.returncode != 0 or subprocess.run([folder / "probe"], check=False).returncode != 0:
        pytest.skip("the compiler has no sanitizers")


def build_sanitised(fmu: Opened, main: str, folder: Path) -> Path:
    library = folder / "block.so"
    options = ["-std=c99", *SANITISED, "-fPIC", "-shared", "-ffp-contract=off"]
    subprocess.run(["cc", *options, main, "-o", library, "-lm"], cwd=fmu.folder / "sources", check=True)
    return library


@pytest.mark.parametrize(("kind", "arm"), FEW if SOAK else (("ik", "ur10e"), ("arm", "scara")))
def test_sanitised(blocks, kind, arm, tmp_path):
    """The same calls in builds with address and undefined-behaviour sanitizers, both versions."""
    sanitisers(tmp_path)
    calls = 200_000 if SOAK else 20_000
    fmu, master = blocks(kind, arm)[1], tmp_path / "driver"
    library = build_sanitised(fmu, "fmu.c", tmp_path)
    subprocess.run(["cc", "-std=c99", *SANITISED, "driver.c", "-o", master, "-ldl", "-lm"], cwd=C, check=True)
    words = [master, "fuzz", library, fmu.resources_uri, fmu.guid, "11", str(calls), *map(str, counts(fmu))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    told = dict(zip(FIELDS, map(int, done.stdout.splitlines()[-1].split()), strict=True))
    assert told["wrong"] == told["silent"] == told["not_finite"] == 0
    written, fmu = blocks(kind, arm, 3)
    library = build_sanitised(fmu, "fmu3.c", tmp_path)
    sound(fuzzed3(compiled(tmp_path, *SANITISED), written, fmu, 11, calls, library), calls)


@pytest.mark.parametrize(("kind", "arm"), FEW if SOAK else (("arm", "scara"),))
def test_valgrind_has_no_complaint(blocks, kind, arm, tmp_path):
    """Both versions: nothing read that was not written, nothing beyond its end, all memory given back."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    watch = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite,possible")
    calls, fmu, master = 10_000 if SOAK else 3000, blocks(kind, arm)[1], tmp_path / "driver"
    subprocess.run(["cc", "-std=c99", "-O2", "driver.c", "-o", master, "-ldl", "-lm"], cwd=C, check=True)
    words = [*watch, master, "fuzz", fmu.library, fmu.resources_uri, fmu.guid, "5", str(calls), *map(str, counts(fmu))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.splitlines()[-1].split()[0]) == calls
    fuzzed3(compiled(tmp_path), *blocks(kind, arm, 3), 5, calls, wrapped=watch)
