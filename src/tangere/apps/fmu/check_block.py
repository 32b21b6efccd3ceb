"""What modelDescription.xml says against what the binary does, driven in a child process; for FMUs of anyone."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from tangere.apps.fmu.build import WINDOWS, CompilerMissing
from tangere.apps.fmu.check_file import effective_initial
from tangere.apps.fmu.driver import DISCARD, OK, WARNING, DriverFailed, NotLoaded, Talk, narrow, wine
from tangere.apps.fmu.opened import Finding, Opened, Variable, judged

PART = "block"
STEPS = 50  # long enough for a memory that was not restored to show
LONGEST, LEVELS = 2e-3, 4  # of the differences: an error of order h^8, and rounding of 1e-13 becomes 1e-9
SLOPE = 1e-7  # of max(1, slope): what the differences are good for
SAME = 1e-9  # of max(1, value): two builds whose C libraries round differently, over STEPS
BEND = 0.05  # of max(1, slope): slopes to the left and right that differ by more are a corner, not a curve
_EXCHANGE = (
    "EnterEventMode", "NewDiscreteStates", "EnterContinuousTimeMode", "CompletedIntegratorStep", "SetTime",
    "SetContinuousStates", "GetDerivatives", "GetEventIndicators", "GetContinuousStates",
    "GetNominalsOfContinuousStates",
)  # fmt: skip
_STEPPING = (
    "SetRealInputDerivatives", "GetRealOutputDerivatives", "DoStep", "CancelStep", "GetStatus", "GetRealStatus",
    "GetIntegerStatus", "GetBooleanStatus", "GetStringStatus",
)  # fmt: skip


def step_of(fmu: Opened) -> float:
    """Step of the default experiment, 1 ms where it names none."""
    experiment = fmu.root.find("DefaultExperiment")
    try:
        h = float(experiment.get("stepSize", "")) if experiment is not None else 1e-3
    except ValueError:
        return 1e-3
    return h if math.isfinite(h) and h > 0.0 else 1e-3


def values(talk: Talk, variables: list[Variable]) -> dict[str, float]:
    """Values by name; what is refused is left out."""
    found: dict[str, float] = {}
    for kind in ("Real", "Integer", "Boolean", "Enumeration"):
        wanted = [v for v in variables if v.kind == kind]
        if wanted:
            status, got = talk.get(kind, (v.reference for v in wanted))
            if status <= WARNING:
                found |= {v.name: x for v, x in zip(wanted, got, strict=True)}
    return found


def _functions(fmu: Opened) -> Finding:
    with Talk(fmu) as talk:
        absent = set(talk.absent)
        for interface, names in (("ModelExchange", _EXCHANGE), ("CoSimulation", _STEPPING)):
            if fmu.interface(interface) is None:
                absent -= {f"fmi2{name}" for name in names}  # of FMI 3.0 all must be there
        wrong = [f"{name} is absent" for name in sorted(absent)]
        said = [("Version", talk.version, fmu.version)]
        said += [] if fmu.arrays else [("TypesPlatform", talk.platform, "default")]
        wrong += [f"fmi{fmu.version[:1]}Get{what} says {got!r}" for what, got, want in said if got != want]
    return judged(PART, "functions", wrong, f"all that its interfaces need; version {fmu.version}")


def _first_values(fmu: Opened) -> Finding:
    wrong, seen = [], 0
    with Talk(fmu) as talk:
        talk.begin()
        got = values(talk, [v for v in fmu.variables if v.kind != "String"])
        wrong += [f"{v.name} cannot be read" for v in fmu.variables if v.kind != "String" and v.name not in got]
        wrong += [f"{name} is {x}" for name, x in got.items() if not math.isfinite(x)]
        for v in fmu.variables:
            exact = v.causality in ("parameter", "input") or effective_initial(v) == "exact"
            if v.start is None or v.name not in got or not exact:
                continue
            if v.number != got[v.name]:
                wrong.append(f"{v.name} is {got[v.name]!r}, the file says {v.start}")
            seen += 1
    return judged(PART, "start values", wrong, f"{seen} as in the file, {len(got)} values finite")


def _movable(fmu: Opened) -> list[Variable]:
    """Inputs that can be changed around a known value."""
    return [v for v in fmu.of("input", "Real") if v.start is not None and math.isfinite(v.number)]


def _moved(talk: Talk, fmu: Opened, first: int, h: float, count: int = STEPS) -> list[dict[str, float]]:
    """Outputs over steps, with inputs that change a little around their start values."""
    inputs, outputs, seen = _movable(fmu), fmu.of("output"), []
    for k in range(first, first + count):
        if inputs:
            wanted = [v.within(v.number + 1e-3 * math.sin(0.7 * k + v.index)) for v in inputs]
            talk.set("Real", (v.reference for v in inputs), wanted)
        status, _ = talk.ask("step", k * h, h)
        if status > WARNING:
            raise DriverFailed(f"step {k + 1} was refused ({status}): {talk.said or 'without a message'}")
        seen.append(values(talk, outputs))
    return seen


def _steps(fmu: Opened) -> Finding:
    h, wrong = step_of(fmu), []
    with Talk(fmu) as talk:
        talk.begin()
        first = _moved(talk, fmu, 0, h)
        wrong += sorted({f"{n} became {x}" for row in first for n, x in row.items() if not math.isfinite(x)})
        loud = [m for s, _, m in talk.messages if s >= DISCARD]
        wrong += [f"it said: {m}" for m in loud[:2]]
        try:
            talk.begin(1)
        except DriverFailed as problem:
            return Finding(PART, "steps", "note", f"{STEPS} of {h:g} s; a second instance is refused: {problem}")
        if _moved(talk, fmu, 0, h) != first:
            wrong.append("a second instance gives other values")
        status, _ = talk.ask("reset")
        again = status <= WARNING and all(talk.ask(*w)[0] <= WARNING for w in (("setup", 0.0), ("enter",), ("exit",)))
        if not again or _moved(talk, fmu, 0, h) != first:
            wrong.append("after a reset it gives other values")
    return judged(PART, "steps", wrong, f"{STEPS} of {h:g} s; a second instance and a reset one agree bit by bit")


def _says(fmu: Opened, interface: str, word: str) -> bool:
    """Whether it says that it can; FMI 3.0 writes the words of 2.0 otherwise (FMUState, Derivatives)."""
    element = fmu.interface(interface)
    said = {} if element is None else {key.lower().removesuffix("s"): x for key, x in element.attrib.items()}
    return said.get(word.lower().removesuffix("s")) in ("true", "1")


def _state(fmu: Opened) -> Finding:
    what = "state"
    if not _says(fmu, "CoSimulation", "canGetAndSetFMUstate"):
        return Finding(PART, what, "note", "it does not offer to keep its state")
    h, wrong = step_of(fmu), []
    serial = _says(fmu, "CoSimulation", "canSerializeFMUstate")
    with Talk(fmu) as talk:
        talk.begin()
        _moved(talk, fmu, 0, h, 7)
        if talk.ask("keep", 0)[0] > WARNING:
            return Finding(PART, what, "bad", "its state cannot be kept")
        first = _moved(talk, fmu, 7, h)
        if talk.ask("restore", 0)[0] > WARNING or _moved(talk, fmu, 7, h) != first:
            wrong.append("restored, it goes on otherwise")
        size = 0.0
        if serial:
            status, told = talk.ask("bytes", 0, 1)
            size = told[0] if told else 0.0
            if status > WARNING or talk.ask("restore", 1)[0] > WARNING or _moved(talk, fmu, 7, h) != first:
                wrong.append("restored from bytes, it goes on otherwise")
    by = f", also through its {size:.0f} bytes" if serial else ""
    return judged(PART, what, wrong, f"restored, {STEPS} steps are the same bit by bit{by}")


def _dependencies(fmu: Opened) -> Finding:
    """An input is moved: outputs that do not name it must keep their bits."""
    wrong, tried = [], 0
    named = {u.index: u.dependencies for u in fmu.structure["Outputs"]}
    outputs = fmu.of("output")
    with Talk(fmu) as talk:
        talk.begin()
        before = values(talk, outputs)
        for v in _movable(fmu):
            if talk.set("Real", [v.reference], [v.number + 1e-3]) > WARNING:
                continue
            after = values(talk, outputs)
            tried += 1
            for o in outputs:
                depends = named.get(o.index)
                if depends is not None and v.index not in depends and after.get(o.name) != before.get(o.name):
                    wrong.append(f"{o.name} follows {v.name} and does not name it")
            talk.set("Real", [v.reference], [v.number])
    return judged(PART, "dependencies", wrong, f"{tried} inputs moved: only outputs that name them follow")


def _slopes(fmu: Opened) -> Finding:
    """Directional derivatives of the outputs in the inputs against differences of the outputs themselves."""
    what = "derivatives"
    if not _says(fmu, "CoSimulation", "providesDirectionalDerivative"):
        return Finding(PART, what, "note", "it does not offer directional derivatives")
    named = {u.index: u.dependencies for u in fmu.structure["Outputs"]}
    outputs = [v for v in fmu.of("output", "Real") if v.variability == "continuous"]
    worst, tried, compared, left = 0.0, 0, 0, 0
    with Talk(fmu) as talk:
        talk.begin()

        talk.ask("step", 0.0, step_of(fmu))  # what goes on from the step before has one now

        def at(v: Variable, x: float, wanted: list[Variable]) -> list[float]:
            status = talk.set("Real", [v.reference], [x])
            told, got = talk.get("Real", (o.reference for o in wanted))
            return got if status == told == OK else []  # a warning: no value that could be compared

        for v in _movable(fmu):
            followers = [o for o in outputs if v.index in (named.get(o.index) or (v.index,))]
            status, got = talk.ask("slope", len(followers), *(o.reference for o in followers), 1, v.reference, 1.0)
            x = v.number
            steps = [LONGEST / 2**k for k in range(LEVELS)]
            sides = [(at(v, x + h, followers), at(v, x - h, followers)) for h in steps]
            middle = at(v, x, followers)
            if status > WARNING or not middle or not all(up and down for up, down in sides):
                left += len(followers)
                continue
            tried += 1
            for i, slope in enumerate(got):
                found, error = _limit(
                    [(up[i] - down[i]) / (2.0 * h) for (up, down), h in zip(sides, steps, strict=True)]
                )
                bend = abs(sides[-1][0][i] + sides[-1][1][i] - 2.0 * middle[i]) / (2.0 * steps[-1])
                if error > SLOPE * max(1.0, abs(found)) or bend > BEND * max(1.0, abs(found)):
                    left += 1  # a jump or a corner: an angle that wraps, a sign that is chosen
                else:
                    compared += 1
                    worst = max(worst, abs(slope - found) / max(1.0, abs(found)))
    text = f"{compared} in {tried} inputs, within {worst:.0e} of differences"
    text += f"; {left} have none here" if left else ""
    return Finding(PART, what, "good" if worst <= SLOPE and compared else "bad" if compared else "note", text)


def _limit(rows: list[float]) -> tuple[float, float]:
    """Differences of h, h/2, h/4, ... extrapolated to none at all (Romberg), and how far the last step moved."""
    before = rows[-1]
    for k in range(1, len(rows)):
        before = rows[-1]
        rows = [(4**k * b - a) / (4**k - 1) for a, b in pairwise(rows)]
    return rows[-1], abs(rows[-1] - before)


def _refusals(fmu: Opened) -> Finding:
    wrong = []
    with Talk(fmu, guid="{not-the-guid}") as talk:
        if talk.ask("new", 0, 1, "check")[0] <= WARNING:
            wrong.append("a wrong GUID is accepted")
    with Talk(fmu) as talk:
        talk.begin()
        used = {v.reference for v in fmu.variables if v.kind == "Real"} | {a.reference for a in fmu.arrays}
        free = next(i for i in range(1_000_000, 2_000_000) if i not in used)
        told = len(talk.messages)
        if talk.get("Real", [free])[0] <= WARNING:
            wrong.append("an unknown value reference is answered")
        elif len(talk.messages) == told:
            wrong.append("an unknown value reference is refused without a message")
        if talk.ask("step", 0.0, -1e-3)[0] <= WARNING:
            wrong.append("a step of negative length is accepted")
    finding = judged(PART, "refusals", wrong, "wrong GUID, unknown reference and negative step are refused")
    if wrong and fmu.kind is None:
        return Finding(PART, "refusals", "note", finding.text)
    return finding


def _windows(fmu: Opened) -> Finding:
    """The library for Windows, under wine, over the same steps."""
    h, wrong, worst, bits = step_of(fmu), [], 0.0, 0
    if wine() is None:
        return Finding(PART, "win64", "not checked", "wine is not installed (Debian: apt install wine64)")
    if narrow():
        return Finding(PART, "win64", "not checked", "wine needs more address space than may be used here (ulimit -v)")
    with Talk(fmu) as here, Talk(fmu, windows=True) as there:
        rows = [_moved(talk.begin(), fmu, 0, h) for talk in (here, there)]
    for mine, other in zip(*rows, strict=True):
        if set(mine) != set(other):
            wrong.append("the two do not read the same variables")
            break
        bits += sum(mine[name] != other[name] for name in mine)
        worst = max(worst, *(abs(x - other[name]) / max(1.0, abs(x)) for name, x in mine.items()), 0.0)
    if not worst <= SAME:
        wrong.append(f"outputs differ by {worst:.1e} from those of linux64")
    same = f"within {worst:.0e} of linux64" if bits else "the numbers of linux64 to the last bit"
    return judged(PART, "win64", wrong, f"{STEPS} steps under wine: {same}")


def check_block(fmu: Opened) -> list[Finding]:
    """Everything above; a crash of the FMU is a finding, not an end."""
    if fmu.interface("CoSimulation") is None:
        return [Finding(PART, "driven", "not checked", "it has no co-simulation interface, and no other is driven")]
    if not fmu.library.is_file():
        return [Finding(PART, "driven", "not checked", "there is no linux64 binary")]
    checks: tuple[tuple[str, Callable[[Opened], Finding]], ...] = (
        ("functions", _functions), ("start values", _first_values), ("steps", _steps), ("state", _state),
        ("dependencies", _dependencies), ("derivatives", _slopes), ("refusals", _refusals),
        *([("win64", _windows)] if fmu.library_of(WINDOWS).is_file() else []),
    )  # fmt: skip
    found = []
    for what, make in checks:
        try:
            found.append(make(fmu))
        except CompilerMissing as error:
            found.append(Finding(PART, "win64" if what == "win64" else "driven", "not checked", str(error)))
            break
        except NotLoaded as error:
            found.append(Finding(PART, what if what == "win64" else "driven", "bad", str(error)))
            break
        except DriverFailed as error:
            found.append(Finding(PART, what, "bad", str(error)))
    return found
