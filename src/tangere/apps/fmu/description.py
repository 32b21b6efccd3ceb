"""modelDescription.xml of an FMU, after FMI 2.0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tangere.apps.fmu.part import ArmNumbers, Kind
from tangere.apps.fmu.variables import CHOICES, TYPES, UNITS, Group, Placed, Table
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


def units_text(used: set[str]) -> list[list[str]]:
    """The units that are used, with those they may be shown in."""
    return [
        element("Unit", {"name": unit}, [
            element("BaseUnit", {k: str(v) for k, v in exponents.items()}),
            *(element("DisplayUnit", {"name": name, "factor": number(factor)}) for name, factor in displays),
        ])
        for unit, (exponents, displays) in UNITS.items() if unit in used
    ]  # fmt: skip


def _types(used: set[str]) -> list[list[str]]:
    found = []
    for name, t in TYPES.items():
        attributes = {"quantity": t.quantity or None, "unit": t.unit, "displayUnit": t.display or None}
        found.append((name, t.text, element("Real", attributes)))
    for name, choice in CHOICES.items():
        bounds: dict[str, str | None] = {"min": "1", "max": str(len(choice.items))}
        found.append((name, f"{choice.text}. {choice.meaning}", element("Integer", bounds)))
    return [element("SimpleType", {"name": n, "description": t}, [e]) for n, t, e in found if n in used]


def _start(g: Group, element: int) -> str | None:
    if g.start is None:
        return None
    value = g.start[element]
    if g.kind == "Boolean":
        return "true" if value else "false"
    return number(float(value)) if g.kind == "Real" else str(int(value))


def _variable(table: Table, p: Placed, i: int, name: str) -> list[str]:
    """Element i of a group."""
    g = p.group
    low, high = (None if (x := g.bound(which, i)) is None else number(x) for which in ("low", "high"))
    attributes: dict[str, str | None] = {
        "declaredType": g.type_of(i) or None, "min": low, "max": high,
        "nominal": None if g.nominal is None else number(g.nominal), "start": _start(g, i),
        "derivative": str(table[g.derivative_of].index + i) if g.derivative_of else None,
    }  # fmt: skip
    scalar = {
        "name": name, "valueReference": str(p.reference + i), "description": g.text,
        "causality": g.causality, "variability": g.variability, "initial": g.initial,
    }  # fmt: skip
    return element("ScalarVariable", scalar, [element(g.kind, attributes)])


def _unknown(index: int, dependencies: dict[int, str]) -> list[str]:
    known = sorted(dependencies)
    kinds = " ".join(dependencies[k] for k in known)
    named = {"index": str(index), "dependencies": " ".join(map(str, known)), "dependenciesKind": kinds}
    return element("Unknown", dict(named))


def _now(table: Table, p: Placed, i: int) -> dict[int, str]:
    """What element i depends on at an instant: indices with FMI's kind of dependency."""
    found: dict[int, str] = {}
    for key in p.group.depends:
        of = table[key.lstrip("=")]
        if of.group.causality == "output" and not of.group.state:
            continue  # held by the block itself: not known to the host
        if key.startswith("="):
            found[of.index + i] = "constant"
        else:
            found |= dict.fromkeys(range(of.index, of.index + of.group.size), "dependent")
    return found


def first_known(table: Table, p: Placed) -> list[Placed]:
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


def _first(table: Table, p: Placed) -> dict[int, str]:
    known = first_known(table, p)
    return {i: "dependent" for of in known for i in range(of.index, of.index + of.group.size)}


def _structure(table: Table) -> list[list[str]]:
    def unknowns(wanted: list[Placed], depends: Callable[[Placed, int], dict[int, str]]) -> list[list[str]]:
        return [_unknown(p.index + i, depends(p, i)) for p in wanted for i in range(p.group.size)]

    parts = {
        "Outputs": unknowns(table.with_causality("output"), partial(_now, table)),
        "Derivatives": unknowns([p for p in table if p.group.derivative_of], partial(_now, table)),
        "InitialUnknowns": unknowns(table.with_causality("output", "local"), lambda p, i: _first(table, p)),
    }
    return [element(name, {}, entries) for name, entries in parts.items() if entries]


def log_and_experiment() -> list[list[str]]:
    """What both versions say about messages and the default experiment."""
    categories = [element("Category", {"name": n, "description": t}) for n, t in LOG_CATEGORIES]
    return [
        element("LogCategories", {}, categories),
        element("DefaultExperiment", {"startTime": "0", "stopTime": "1", "stepSize": number(STEP)}),
    ]


def root_of(fmi: str, key: dict[str, str], kind: Kind, arm: ArmNumbers, version: str) -> dict[str, str | None]:
    """Attributes of the whole file, which both versions have; key: what the host must show to make an instance."""
    return {
        "fmiVersion": fmi,
        "modelName": kind.identifier(arm),
        **key,
        "description": f"{arm.model.title}: {kind.title.lower()}. {kind.text}",
        "author": AUTHOR,
        "version": version,
        "copyright": "Copyright the Tangere authors",
        "license": "Apache-2.0",
        "generationTool": f"Tangere {version}",
        "variableNamingConvention": "structured",
    }


def description_text(kind: Kind, arm: ArmNumbers, table: Table, guid: str, version: str) -> str:
    """The whole file; guid in braces."""
    identifier = kind.identifier(arm)
    used = {g.type_of(i) for g in (p.group for p in table) for i in range(g.size)} - {""}
    units = {TYPES[name].unit for name in used if name in TYPES}
    root = root_of("2.0", {"guid": guid}, kind, arm, version) | {"numberOfEventIndicators": "0"}
    common: dict[str, str | None] = {
        "modelIdentifier": identifier,
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true" if kind.directional else "false",
    }
    sources = [element("SourceFiles", {}, [element("File", {"name": "fmu.c"})])]
    exchange = common | {"completedIntegratorStepNotNeeded": "false" if kind.memory else "true"}
    simulation = common | {"canHandleVariableCommunicationStepSize": "true", "maxOutputDerivativeOrder": "0"}
    variables = [_variable(table, p, i, name) for p in table for i, name in enumerate(p.group.names())]
    children = [
        element("ModelExchange", exchange, sources),
        element("CoSimulation", simulation, sources),
        element("UnitDefinitions", {}, units_text(units)),
        element("TypeDefinitions", {}, _types(used)),
        *log_and_experiment(),
        element("ModelVariables", {}, variables),
        element("ModelStructure", {}, _structure(table)),
    ]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *element("fmiModelDescription", root, children)]
    return "\n".join(lines) + "\n"
