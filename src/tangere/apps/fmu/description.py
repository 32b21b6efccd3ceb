"""modelDescription.xml of an FMU, after FMI 2.0 and 3.0; buildDescription.xml, which the latter has.

Both versions name the same variables: FMI 2.0 one by one, with their place in the file to point at, FMI 3.0 as arrays,
with their value references. A scalar is an Array3 of one element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tangere.apps.fmu.part import ArmNumbers, Kind
from tangere.apps.fmu.variables import CHOICES, KINDS, TIME, TYPES, UNITS, Array3, Placed, Table, arrays_of
from tangere.model.urdf_tree import element

AUTHOR = "The Tangere authors"  # of blocks, their data sheets and the catalogue
STEP = 1e-3  # [s] a period of the control loop, what a master takes if it is told nothing
LOG_CATEGORIES = (
    ("logEvents", "samples"),
    ("logStatusWarning", "a pose without solution"),
    ("logStatusDiscard", "a value that cannot be taken"),
    ("logStatusError", "misuse and failed steps"),
    ("logStatusFatal", "nothing, kept for tools that ask for it"),
    ("logAll", "everything"),
)


def number(x: float) -> str:
    """A number in the shortest form that reads back exactly."""
    return repr(int(x)) if isinstance(x, int) else repr(float(x))


def _units(used: set[str]) -> list[list[str]]:
    """The units that are used, with those they may be shown in."""
    return [
        element("Unit", {"name": unit}, [
            element("BaseUnit", {k: str(v) for k, v in exponents.items()}),
            *(element("DisplayUnit", {"name": name, "factor": number(factor)}) for name, factor in displays),
        ])
        for unit, (exponents, displays) in UNITS.items() if unit in used
    ]  # fmt: skip


def _types(used: set[str], fmi: int) -> list[list[str]]:
    found: list[tuple[str, str, str, dict[str, str | None]]] = []
    for name, t in TYPES.items():
        attributes = {"quantity": t.quantity or None, "unit": t.unit, "displayUnit": t.display or None}
        found.append(("Real", name, t.text, attributes))
    for name, choice in CHOICES.items():
        bounds: dict[str, str | None] = {"min": "1", "max": str(len(choice.items))}
        found.append(("Integer", name, f"{choice.text}. {choice.meaning}", bounds))
    out = []
    for kind, name, text, attributes in found:
        said: dict[str, str | None] = {"name": name, "description": text}
        if name in used and fmi == 2:
            out.append(element("SimpleType", said, [element(kind, attributes)]))
        elif name in used:
            out.append(element(f"{KINDS[kind]}Type", said | attributes))
    return out


def _variables(p: Placed, fmi: int) -> list[Array3]:
    """What a group is made of."""
    if fmi == 3:
        return arrays_of(p)
    return [Array3(p, name, (), i) for i, name in enumerate(p.group.names())]


def _place(a: Array3, fmi: int) -> int:
    """What others point at a variable by: its place in the file, or its value reference."""
    return a.placed.index + a.offset if fmi == 2 else a.reference


def _start(a: Array3) -> str | None:
    g = a.placed.group
    if g.start is None:
        return None
    values = g.start[a.offset : a.offset + a.size]
    if g.kind == "Boolean":
        return " ".join("true" if value else "false" for value in values)
    return " ".join(number(float(value)) if g.kind == "Real" else str(int(value)) for value in values)


def _bound(a: Array3, low: bool) -> str | None:
    """The bound that holds for every element; None where one has none."""
    values = [a.placed.group.bound("low" if low else "high", i) for i in range(a.offset, a.offset + a.size)]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return number(min(known) if low else max(known))


def _variable(table: Table, a: Array3, fmi: int) -> list[str]:
    g = a.placed.group
    said: dict[str, str | None] = {
        "name": a.name, "valueReference": str(a.reference), "description": g.text, "causality": g.causality,
        "variability": g.variability, "initial": g.initial,
    }  # fmt: skip
    bounded: dict[str, str | None] = {
        "declaredType": a.declared or None, "min": _bound(a, True), "max": _bound(a, False),
        "nominal": None if g.nominal is None else number(g.nominal),
    }  # fmt: skip
    of = table[g.derivative_of] if g.derivative_of else None
    derivative = None if of is None else str(_place(Array3(of, "", a.shape, a.offset), fmi))
    if fmi == 2:
        bounded |= {"start": _start(a), "derivative": derivative}
        return element("ScalarVariable", said, [element(g.kind, bounded)])
    if g.kind == "Boolean":
        bounded |= {"min": None, "max": None, "nominal": None}
    sizes = [element("Dimension", {"start": str(n)}) for n in a.shape]
    return element(KINDS[g.kind], said | bounded | {"derivative": derivative, "start": _start(a)}, sizes)


def _now(table: Table, a: Array3, fmi: int) -> dict[int, str]:
    """What a variable depends on at an instant: places with FMI's kind of dependency."""
    found: dict[int, str] = {}
    for key in a.placed.group.depends:
        of = table[key.lstrip("=")]
        if of.group.causality == "output" and not of.group.state:
            continue  # held by the block itself: not known to the host
        for one in _variables(of, fmi):
            if not key.startswith("="):
                found[_place(one, fmi)] = "dependent"
            elif one.offset < a.offset + a.size and a.offset < one.offset + one.size:  # the same element only
                found.setdefault(_place(one, fmi), "constant")
    return found


def _known(table: Table, p: Placed) -> list[Placed]:
    """What the first value of a group depends on: inputs, parameters, and the start values of states."""
    keys: list[str] = []
    wanted = [*p.group.depends, *p.group.initially]
    while wanted:
        key = wanted.pop(0).lstrip("=")
        if key in keys:
            continue
        keys.append(key)
        g = table[key].group
        if g.causality in ("output", "local"):
            wanted += [k for k in (*g.depends, *g.initially) if k.lstrip("=") != key]
    return [table[k] for k in keys if table[k].group.causality in ("input", "parameter")]


def _first(table: Table, a: Array3, fmi: int) -> dict[int, str]:
    return {_place(one, fmi): "dependent" for of in _known(table, a.placed) for one in _variables(of, fmi)}


def _structure(table: Table, fmi: int) -> list[list[str]]:
    local = table.with_causality("output", "local")
    if fmi == 3:
        local = [p for p in local if p.group.causality == "output" or p.group.state or p.group.derivative_of]
    parts: tuple[tuple[str, str, Iterable[Placed], Any], ...] = (
        ("Outputs", "Output", table.with_causality("output"), _now),
        ("Derivatives", "ContinuousStateDerivative", [p for p in table if p.group.derivative_of], _now),
        ("InitialUnknowns", "InitialUnknown", local, _first),
    )
    out = []
    for group, tag, wanted, depends in parts:
        entries = []
        for a in (a for p in wanted for a in _variables(p, fmi)):
            found = dict(sorted(depends(table, a, fmi).items()))
            named = {"dependencies": " ".join(map(str, found)), "dependenciesKind": " ".join(found.values())}
            where = {"index" if fmi == 2 else "valueReference": str(_place(a, fmi))}
            entries.append(element("Unknown" if fmi == 2 else tag, where | named))
        out += entries if fmi == 3 else [element(group, {}, entries)] if entries else []
    return out


def description_text(kind: Kind, arm: ArmNumbers, table: Table, key: str, version: str, fmi: int = 2) -> str:
    """The whole file; key: what the host must show to make an instance (of FMI 2.0 the guid, in braces)."""
    yes = "true" if kind.directional else "false"
    variables = [a for p in table for a in _variables(p, fmi)]
    used = {a.declared for a in variables} - {""}
    units = {TYPES[name].unit for name in used if name in TYPES}
    root: dict[str, str | None] = {
        "fmiVersion": f"{fmi}.0",
        "modelName": kind.identifier(arm),
        "guid" if fmi == 2 else "instantiationToken": key,
        "description": f"{arm.model.title}: {kind.title.lower()}. {kind.text}",
        "author": AUTHOR,
        "version": version,
        "copyright": "Copyright the Tangere authors",
        "license": "Apache-2.0",
        "generationTool": f"Tangere {version}",
        "variableNamingConvention": "structured",
    }
    common: dict[str, str | None] = {"modelIdentifier": kind.identifier(arm)}
    if fmi == 2:
        root["numberOfEventIndicators"] = "0"
        common |= {"canGetAndSetFMUstate": "true", "canSerializeFMUstate": "true", "providesDirectionalDerivative": yes}
        exchange = common | {"completedIntegratorStepNotNeeded": "false" if kind.memory else "true"}
        sources = [element("SourceFiles", {}, [element("File", {"name": "fmu.c"})])]
        time = []
    else:
        common |= {"canGetAndSetFMUState": "true", "canSerializeFMUState": "true"}
        common |= {"providesDirectionalDerivatives": yes, "providesAdjointDerivatives": yes}
        exchange = common | {"needsCompletedIntegratorStep": "true" if kind.memory else "false"}
        sources = []
        said = {"name": "time", "valueReference": str(TIME), "description": "simulated time"}
        time = [element("Float64", said | {"causality": "independent", "variability": "continuous", "unit": "s"})]
        units |= {"s"}
    simulation = common | {"canHandleVariableCommunicationStepSize": "true", "maxOutputDerivativeOrder": "0"}
    types = _types(used, fmi)
    return _file("fmiModelDescription", root, [
        element("ModelExchange", exchange, sources),
        element("CoSimulation", simulation, sources),
        element("UnitDefinitions", {}, _units(units)),
        *([element("TypeDefinitions", {}, types)] if types or fmi == 2 else []),
        element("LogCategories", {}, [element("Category", {"name": n, "description": t}) for n, t in LOG_CATEGORIES]),
        element("DefaultExperiment", {"startTime": "0", "stopTime": "1", "stepSize": number(STEP)}),
        element("ModelVariables", {}, [*time, *(_variable(table, a, fmi) for a in variables)]),
        element("ModelStructure", {}, _structure(table, fmi)),
    ])  # fmt: skip


def build_text(identifier: str) -> str:
    """sources/buildDescription.xml of FMI 3.0: which file to compile."""
    files = element("SourceFileSet", {"language": "C99"}, [element("SourceFile", {"name": "fmu3.c"})])
    inside = element("BuildConfiguration", {"modelIdentifier": identifier}, [files])
    return _file("fmiBuildDescription", {"fmiVersion": "3.0"}, [inside])


def _file(name: str, root: Mapping[str, str | None], children: Iterable[list[str]]) -> str:
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *element(name, root, children)]) + "\n"
