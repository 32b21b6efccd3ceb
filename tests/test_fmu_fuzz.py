"""Random calls with random arguments through the driver in C: right status, a message for every refusal, no crash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

if shutil.which("cc") is None or not sys.platform.startswith("linux"):
    pytest.skip("needs a C compiler on Linux", allow_module_level=True)

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.driver import run_driver
from tangere.apps.fmu.opened import Opened, opened

CALLS = int(os.environ.get("TANGERE_FMU_CALLS", "100000"))
FIELDS = ("calls", "ok", "warning", "discard", "error", "wrong", "silent", "not_finite", "works", "living")


@pytest.fixture(scope="module")
def fmus(tmp_path_factory) -> dict[str, Opened]:
    folder = tmp_path_factory.mktemp("fmus")
    robot = tangere.robot("ur10e")
    written = {kind: write_fmu(kind, robot, folder, platforms=(LINUX,)) for kind in KINDS}
    return {kind: opened(w.path, folder / kind) for kind, w in written.items()}


def fuzzed(fmu: Opened, seed: int, calls: int) -> dict[str, int]:
    counts = [sum(v.kind == k for v in fmu.variables) for k in ("Real", "Integer", "Boolean")]
    *complaints, last = run_driver("fuzz", fmu, seed, calls, *counts, seconds=120.0)
    assert complaints == []
    return dict(zip(FIELDS, map(int, last), strict=True))


@pytest.mark.parametrize("kind", list(KINDS))
def test_random_calls(fmus, kind):
    told = fuzzed(fmus[kind], list(KINDS).index(kind), CALLS)
    assert told["calls"] == CALLS
    assert told["wrong"] == 0  # a status that the call must not have, or a wrong argument taken
    assert told["silent"] == 0  # a refusal without a message
    assert told["not_finite"] == 0  # a value that is none
    assert told["works"] == 1  # a new instance steps after all this
    assert told["living"] == 0  # all memory was given back
    # it went deep: many calls succeeded, many were refused in either way
    assert told["ok"] > 0.1 * CALLS
    assert told["discard"] > 0.005 * CALLS
    assert told["error"] > 0.1 * CALLS


def test_the_same_seed_makes_the_same_calls(fmus):
    assert fuzzed(fmus["arm"], 7, 5000) == fuzzed(fmus["arm"], 7, 5000) != fuzzed(fmus["arm"], 8, 5000)


@pytest.mark.parametrize("kind", ["ik", "arm"])
def test_sanitised(fmus, kind, tmp_path):
    """The same calls in a build with address and undefined-behaviour sanitizers."""
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }")
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0"]
    tried = subprocess.run(["cc", *flags, probe, "-o", tmp_path / "probe"], capture_output=True, check=False)
    if tried.returncode != 0 or subprocess.run([tmp_path / "probe"], check=False).returncode != 0:
        pytest.skip("the compiler has no sanitizers")
    fmu = fmus[kind]
    library, master = tmp_path / "block.so", tmp_path / "driver"
    options = ["-std=c99", *flags, "-fPIC", "-shared", "-ffp-contract=off"]
    subprocess.run(["cc", *options, "fmu.c", "-o", library, "-lm"], cwd=fmu.folder / "sources", check=True)
    c = os.path.join(os.path.dirname(tangere.__file__), "apps", "fmu", "c")
    subprocess.run(["cc", "-std=c99", *flags, "driver.c", "-o", master, "-ldl", "-lm"], cwd=c, check=True)
    counts = [str(sum(v.kind == k for v in fmu.variables)) for k in ("Real", "Integer", "Boolean")]
    words = [master, "fuzz", library, fmu.resources_uri, fmu.guid, "11", "20000", *counts]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    told = dict(zip(FIELDS, map(int, done.stdout.splitlines()[-1].split()), strict=True))
    assert told["wrong"] == told["silent"] == told["not_finite"] == 0
