"""An FMU as a file: what is in it, whether modelDescription.xml says what FMI 2.0 lets it say, and checkers of others.

The others run in child processes with limits: fmpy's validation, fmutool -check, symbols by nm.
"""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict

from tangere import foreign
from tangere.apps.fmu.driver import SECONDS, DriverFailed, ending, limits, remaining
from tangere.apps.fmu.opened import Finding, Opened, Variable, judged

PART, TOOLS = "file", "checkers"
# FMI 2.0.4, section 2.2.7: which variability a causality may have
_ALLOWED = {
    "parameter": {"fixed", "tunable"},
    "calculatedParameter": {"fixed", "tunable"},
    "input": {"discrete", "continuous"},
    "output": {"constant", "discrete", "continuous"},
    "local": {"constant", "fixed", "tunable", "discrete", "continuous"},
    "independent": {"continuous"},
}
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


def effective_initial(v: Variable) -> str | None:
    """`initial` as written, or the standard's default for its causality and variability."""
    if v.initial is not None:
        return v.initial
    if v.causality in ("input", "independent"):
        return None
    if v.causality == "parameter" or v.variability == "constant":
        return "exact"
    return "calculated"


def _numbers(v: Variable) -> list[str]:
    wrong: list[str] = []
    values: dict[str, float] = {}
    if v.kind not in ("Real", "Integer", "Enumeration"):
        return wrong
    for key in ("min", "max", "nominal", "start"):
        if key in v.attributes:
            try:
                values[key] = float(v.attributes[key])
            except ValueError:
                wrong.append(f"{v.name}: {key} is {v.attributes[key]!r}")
    if any(not math.isfinite(x) for x in values.values()):
        wrong.append(f"{v.name}: a number is not finite")
    if "nominal" in values and values["nominal"] <= 0.0:
        wrong.append(f"{v.name}: nominal is not positive")
    low, high = values.get("min", -math.inf), values.get("max", math.inf)
    if low > high or not low <= values.get("start", low if math.isfinite(low) else high) <= high:
        wrong.append(f"{v.name}: start {v.start} is not within min {low:g} and max {high:g}")
    return wrong


def _variables(fmu: Opened) -> Finding:
    wrong = [f"two variables are called {n!r}" for n, k in Counter(v.name for v in fmu.variables).items() if k > 1]
    for v in fmu.variables:
        if not v.name:
            wrong.append(f"variable {v.index} has no name")
        if v.causality not in _ALLOWED:
            wrong.append(f"{v.name}: unknown causality {v.causality!r}")
        elif v.variability not in _ALLOWED[v.causality]:
            wrong.append(f"{v.name}: {v.causality} must not be {v.variability}")
        if v.kind != "Real" and v.variability == "continuous" and v.causality != "local":
            wrong.append(f"{v.name}: only a Real can be continuous")
        initial = effective_initial(v)
        if v.causality in ("input", "independent") and v.initial is not None:
            wrong.append(f"{v.name}: {v.causality} must not say initial")
        if (initial in ("exact", "approx") or v.causality == "input") and v.start is None:
            wrong.append(f"{v.name}: needs a start value")
        if initial == "calculated" and v.start is not None:
            wrong.append(f"{v.name}: is calculated and must have no start value")
        wrong += _numbers(v)
    by_reference: dict[tuple[str, int], list[Variable]] = defaultdict(list)
    for v in fmu.variables:
        by_reference[v.kind, v.reference].append(v)
    for aliases in by_reference.values():
        settable = [v for v in aliases if v.causality in ("input", "parameter")]
        if len(settable) > 1:
            wrong.append(f"{', '.join(v.name for v in settable)}: one value reference, more than one can be set")
    return judged(PART, "variables", wrong, f"{len(fmu.variables)}, each with what its causality asks for")


def _types(fmu: Opened) -> Finding:
    defined = fmu.root.findall("UnitDefinitions/Unit")
    units = {u.get("name") for u in defined}
    shown = {(u.get("name"), d.get("name")) for u in defined for d in u.findall("DisplayUnit")}
    types = {t.get("name"): next(iter(t), None) for t in fmu.root.findall("TypeDefinitions/SimpleType")}
    wrong, bare = [], 0
    for v in fmu.variables:
        declared = v.attributes.get("declaredType")
        if declared is not None and declared not in types:
            wrong.append(f"{v.name}: the type {declared!r} is not defined")
        base = types.get(declared) if declared else None
        if base is not None and base.tag != v.kind:
            wrong.append(f"{v.name}: is {v.kind}, its type {declared!r} is {base.tag}")
        unit = v.attributes.get("unit") or (base.get("unit") if base is not None else None)
        display = v.attributes.get("displayUnit") or (base.get("displayUnit") if base is not None else None)
        if unit is not None and unit not in units:
            wrong.append(f"{v.name}: the unit {unit!r} is not defined")
        if display is not None and display != unit and (unit, display) not in shown:
            wrong.append(f"{v.name}: the display unit {display!r} is not defined for {unit!r}")
        bare += v.kind == "Real" and unit is None
    if not wrong and bare:
        return Finding(PART, "units", "note", f"{bare} Real variables have no unit")
    return judged(PART, "units", wrong, f"{len(units)} units, {len(types)} types, all that are used are defined")


def _structure(fmu: Opened) -> Finding:
    wrong = []
    count, by_index = len(fmu.variables), {v.index: v for v in fmu.variables}
    for part, entries in fmu.structure.items():
        for u in entries:
            if u.index not in by_index:
                wrong.append(f"{part}: there is no variable {u.index}")
            if u.dependencies is not None and any(not 1 <= i <= count for i in u.dependencies):
                wrong.append(f"{part}: {u.index} depends on a variable that does not exist")
            if u.kinds is not None and (u.dependencies is None or len(u.kinds) != len(u.dependencies)):
                wrong.append(f"{part}: {u.index} has {len(u.kinds)} kinds of dependency for its dependencies")
        if len({u.index for u in entries}) != len(entries):
            wrong.append(f"{part}: an index is there twice")
    listed = {part: {u.index for u in entries} for part, entries in fmu.structure.items()}
    outputs = {v.index for v in fmu.of("output")}
    wrong += [f"{by_index[i].name} is an output and not in Outputs" for i in sorted(outputs - listed["Outputs"])]
    wrong += [
        f"{by_index[i].name} is in Outputs and no output" for i in sorted(listed["Outputs"] - outputs) if i in by_index
    ]
    states = set()
    for i in listed["Derivatives"] & set(by_index):
        of = by_index[i].attributes.get("derivative", "")
        if not of.isdigit() or int(of) not in by_index:
            wrong.append(f"{by_index[i].name} is in Derivatives and names no state")
        else:
            states.add(int(of))
    first = {v.index for v in fmu.of("output") if effective_initial(v) in ("approx", "calculated")}
    first |= {v.index for v in fmu.of("calculatedParameter")}
    first |= {i for i in states | listed["Derivatives"] if effective_initial(by_index[i]) in ("approx", "calculated")}
    wrong += [f"{by_index[i].name} is not in InitialUnknowns" for i in sorted(first - listed["InitialUnknowns"])]
    wrong += [
        f"{by_index[i].name} must not be in InitialUnknowns"
        for i in sorted((listed["InitialUnknowns"] & set(by_index)) - first)
    ]
    return judged(PART, "structure", wrong, f"{len(outputs)} outputs, {len(states)} states, first values listed")


def _content(fmu: Opened) -> Finding:
    wrong = []
    if not fmu.guid:
        wrong.append("the GUID is empty")
    names = set(fmu.names)
    interfaces = [fmu.interface(n) for n in ("ModelExchange", "CoSimulation")]
    for element in [e for e in interfaces if e is not None]:
        identifier = element.get("modelIdentifier", "")
        if not identifier.isidentifier():
            wrong.append(f"the model identifier {identifier!r} is no name of C")
        binaries = [n for n in names if n.startswith("binaries/") and not n.endswith("/")]
        if not any(n.rsplit("/", 1)[-1].rsplit(".", 1)[0] == identifier for n in binaries):
            wrong.append(f"no binary is called {identifier}")
        for file in element.findall("SourceFiles/File"):
            if f"sources/{file.get('name')}" not in names:
                wrong.append(f"sources/{file.get('name')} is named and not there")
    if all(e is None for e in interfaces):
        wrong.append("neither model exchange nor co-simulation")
    platforms = sorted({n.split("/")[1] for n in names if n.startswith("binaries/") and n.count("/") >= 2})
    size = fmu.path.stat().st_size / 1000
    return judged(PART, "content", wrong, f"{size:.0f} kB, binaries for {', '.join(platforms) or 'nothing'}")


def check_file(fmu: Opened) -> list[Finding]:
    """Own checks of the file; those of the description for FMI 2.0 only."""
    if fmu.version == "3.0":
        return [_content(fmu), Finding(PART, "description", "not checked", "FMI 3.0: by the checkers of others only")]
    if fmu.version != "2.0":
        return [Finding(PART, "version", "not checked", f"FMI {fmu.version or '?'}: only 2.0 and 3.0 are known here")]
    return [_content(fmu), _variables(fmu), _types(fmu), _structure(fmu)]


def _child(what: str, module: str, script: str, fmu: Opened) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(TOOLS, what, "not checked", f"{module} is not installed: pip install 'tangere[fmu]'")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, str(fmu.path.resolve())], capture_output=True, text=True,
            errors="replace", timeout=remaining(SECONDS), check=False,
            preexec_fn=lambda: limits(4 << 30),  # numpy alone maps one
        )  # fmt: skip
    except (subprocess.TimeoutExpired, DriverFailed):
        return Finding(TOOLS, what, "bad", f"ended after {SECONDS:g} s")
    complaints = [foreign.clean(line[2:]) for line in done.stdout.splitlines() if line.startswith("! ")]
    if done.returncode != 0 and not complaints:
        last = foreign.clean((done.stderr.strip().splitlines() or [""])[-1][:300])
        return Finding(TOOLS, what, "bad", f"it {ending(done.returncode)}: {last}")
    return judged(TOOLS, what, complaints, "no complaint")


def _symbols(fmu: Opened) -> Finding:
    """What the library needs of the host."""
    if not fmu.library.is_file():
        return Finding(TOOLS, "symbols", "not checked", "there is no binary for this machine")
    tools = [t for t in ("nm", "objdump") if shutil.which(t) is None]
    if tools:
        return Finding(TOOLS, "symbols", "not checked", f"{' and '.join(tools)} not installed (Debian: binutils)")

    def lines(*command: str) -> list[str]:
        command = (*command, str(fmu.library))
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=SECONDS)
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
        return Finding(TOOLS, "symbols", outcome, f"{said}; {'; '.join(extra)}")  # type: ignore[arg-type]
    return Finding(TOOLS, "symbols", "good", said)


def check_tools(fmu: Opened) -> list[Finding]:
    """fmpy, fmutool, nm."""
    return [
        _child("fmpy validation", "fmpy", _FMPY, fmu),
        _child("fmutool -check", "fmu_manipulation_toolbox", _FMUTOOL, fmu),
        _symbols(fmu),
    ]
