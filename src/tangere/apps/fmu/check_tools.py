"""Checkers of others, each in a child process with limits: fmpy's validation, fmutool -check, symbols by nm."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys

from tangere.apps.fmu.driver import SECONDS, ending, limits
from tangere.apps.fmu.findings import Finding, judged
from tangere.apps.fmu.opened import Opened

PART = "checkers"
_FMPY = """
import sys
from fmpy.validation import validate_fmu
for problem in validate_fmu(sys.argv[1]):
    print("!", " ".join(str(problem).split()))
"""
_FMUTOOL = """
import logging, sys
class Out(logging.Handler):
    def emit(self, record):
        if record.levelno >= logging.WARNING:
            print("!", " ".join(record.getMessage().split()))
logger = logging.getLogger("fmu_manipulation_toolbox")
logger.addHandler(Out())
from fmu_manipulation_toolbox.checker import get_checkers
from fmu_manipulation_toolbox.operations import FMU
fmu = FMU(sys.argv[1])
for make in get_checkers():
    fmu.apply_operation(make())
"""
# the loader's own, weak, in every shared library
_LOADER = {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
_SYSTEM = re.compile(r"lib(c|m|dl|pthread|gcc_s)\.so|ld-linux|linux-vdso")


def _child(what: str, module: str, script: str, fmu: Opened) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(PART, what, "not checked", f"{module} is not installed: pip install 'tangere[fmu]'")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, str(fmu.path.resolve())], capture_output=True, text=True,
            timeout=SECONDS, check=False, preexec_fn=lambda: limits(4 << 30),  # numpy alone maps one
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Finding(PART, what, "bad", f"ended after {SECONDS:g} s")
    complaints = [line[2:] for line in done.stdout.splitlines() if line.startswith("! ")]
    if done.returncode != 0 and not complaints:
        last = (done.stderr.strip().splitlines() or [""])[-1][:300]
        return Finding(PART, what, "bad", f"it {ending(done.returncode)}: {last}")
    return judged(PART, what, complaints, "no complaint")


def _symbols(fmu: Opened) -> Finding:
    """What the library needs of the host."""
    if not fmu.library.is_file():
        return Finding(PART, "symbols", "not checked", "there is no linux64 binary")
    tools = [t for t in ("nm", "objdump") if shutil.which(t) is None]
    if tools:
        return Finding(PART, "symbols", "not checked", f"{' and '.join(tools)} not installed (Debian: binutils)")

    def lines(*command: str) -> list[str]:
        done = subprocess.run([*command, str(fmu.library)], capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    libraries = [x.split()[-1] for x in lines("objdump", "-p") if x.split()[:1] == ["NEEDED"]]
    symbols = [x.split() for x in lines("nm", "-D")]
    needed = {s[-1].split("@")[0] for s in symbols if len(s) > 1 and s[-2] in "Uwv"} - _LOADER
    foreign = [name for name in libraries if not _SYSTEM.match(name)]
    offered = [s[-1] for s in symbols if len(s) > 2 and s[1] == "T"]
    other = [name for name in offered if not name.startswith("fmi")]
    said = f"{len(offered)} functions offered, {len(needed)} taken from {', '.join(libraries) or 'nothing'}"
    if foreign or other:
        extra = [f"needs {', '.join(foreign)} on the host"] if foreign else []
        extra += [f"{len(other)} more symbols than FMI's are visible"] if other else []
        outcome = "bad" if fmu.kind is not None else "note"
        return Finding(PART, "symbols", outcome, f"{said}; {'; '.join(extra)}")  # type: ignore[arg-type]
    return Finding(PART, "symbols", "good", said)


def check_tools(fmu: Opened) -> list[Finding]:
    """fmpy, fmutool, nm."""
    return [
        _child("fmpy validation", "fmpy", _FMPY, fmu),
        _child("fmutool -check", "fmu_manipulation_toolbox", _FMUTOOL, fmu),
        _symbols(fmu),
    ]
