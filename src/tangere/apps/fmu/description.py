"""modelDescription.xml of an FMU, after FMI 2.0."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from tangere.apps.fmu.numbers import ArmNumbers
from tangere.apps.fmu.part import Kind
from tangere.apps.fmu.variables import CHOICES, TYPES, UNITS, Group, Placed, Table

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


def _tag(name: str, attributes: dict[str, str | None], *, close: bool = True) -> str:
    words = "".join(f" {k}={quoteattr(v)}" for k, v in attributes.items() if v is not None)
    return f"<{name}{words}{'/' if close else ''}>"


def _units(used: set[str]) -> list[str]:
    lines = ["  <UnitDefinitions>"]
    for unit, (exponents, displays) in UNITS.items():
        if unit not in used:
            continue
        lines.append(f"    <Unit name={quoteattr(unit)}>")
        lines.append("      " + _tag("BaseUnit", {k: str(v) for k, v in exponents.items()}))
        for name, factor in displays:
            lines.append("      " + _tag("DisplayUnit", {"name": name, "factor": number(factor)}))
        lines.append("    </Unit>")
    return [*lines, "  </UnitDefinitions>"]


def _types(used: set[str]) -> list[str]:
    lines = ["  <TypeDefinitions>"]
    for name, t in TYPES.items():
        if name in used:
            lines.append(f"    <SimpleType name={quoteattr(name)} description={quoteattr(t.text)}>")
            attributes = {"quantity": t.quantity or None, "unit": t.unit, "displayUnit": t.display or None}
            lines.append("      " + _tag("Real", attributes))
            lines.append("    </SimpleType>")
    for name, choice in CHOICES.items():
        if name in used:
            text = f"{choice.text}. {choice.meaning}"
            lines.append(f"    <SimpleType name={quoteattr(name)} description={quoteattr(text)}>")
            lines.append("      " + _tag("Integer", {"min": "1", "max": str(len(choice.items))}))
            lines.append("    </SimpleType>")
    return [*lines, "  </TypeDefinitions>"]


def _start(g: Group, element: int) -> str | None:
    if g.start is None:
        return None
    value = g.start[element]
    if g.kind == "Boolean":
        return "true" if value else "false"
    return number(float(value)) if g.kind == "Real" else str(int(value))


def _variables(table: Table) -> list[str]:
    lines = ["  <ModelVariables>"]
    for p in table:
        g = p.group
        for i, name in enumerate(g.names()):
            declared = g.type_of(i) or None
            low, high = g.bound("low", i), g.bound("high", i)
            bounds = {
                "min": None if low is None else number(low),
                "max": None if high is None else number(high),
            }
            attributes: dict[str, str | None] = {"declaredType": declared}
            if g.kind in ("Real", "Integer"):
                attributes |= bounds
            if g.kind == "Real" and g.nominal is not None:
                attributes["nominal"] = number(g.nominal)
            attributes["start"] = _start(g, i)
            if g.derivative_of:
                attributes["derivative"] = str(table[g.derivative_of].index + i)
            scalar = {
                "name": name, "valueReference": str(p.reference + i), "description": g.text,
                "causality": g.causality, "variability": g.variability, "initial": g.initial,
            }  # fmt: skip
            lines.append("    " + _tag("ScalarVariable", scalar, close=False))
            lines.append("      " + _tag(g.kind, attributes))
            lines.append("    </ScalarVariable>")
    return [*lines, "  </ModelVariables>"]


def _unknown(indent: str, index: int, dependencies: dict[int, str]) -> str:
    known = sorted(dependencies)
    return indent + _tag(
        "Unknown",
        {
            "index": str(index),
            "dependencies": " ".join(map(str, known)),
            "dependenciesKind": " ".join(dependencies[k] for k in known),
        },
    )


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


def _first(table: Table, p: Placed) -> dict[int, str]:
    """What the first value depends on: inputs, parameters, and the start values of states."""
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
    known = [table[k] for k in keys if table[k].group.causality in ("input", "parameter")]
    return {i: "dependent" for of in known for i in range(of.index, of.index + of.group.size)}


def _structure(table: Table) -> list[str]:
    lines = ["  <ModelStructure>", "    <Outputs>"]
    for p in table.with_causality("output"):
        lines += [_unknown("      ", p.index + i, _now(table, p, i)) for i in range(p.group.size)]
    lines.append("    </Outputs>")
    derivatives = [p for p in table if p.group.derivative_of]
    if derivatives:
        lines.append("    <Derivatives>")
        for p in derivatives:
            lines += [_unknown("      ", p.index + i, _now(table, p, i)) for i in range(p.group.size)]
        lines.append("    </Derivatives>")
    lines.append("    <InitialUnknowns>")
    for p in table.with_causality("output", "local"):
        first = _first(table, p)
        lines += [_unknown("      ", p.index + i, first) for i in range(p.group.size)]
    return [*lines, "    </InitialUnknowns>", "  </ModelStructure>"]


def description_text(kind: Kind, arm: ArmNumbers, table: Table, guid: str, version: str) -> str:
    """The whole file; guid in braces."""
    identifier = kind.identifier(arm)
    used = {g.type_of(i) for g in (p.group for p in table) for i in range(g.size)} - {""}
    units = {TYPES[name].unit for name in used if name in TYPES}
    root = {
        "fmiVersion": "2.0",
        "modelName": identifier,
        "guid": guid,
        "description": f"{arm.title}: {kind.title.lower()}. {kind.text}",
        "author": "The Tangere authors",
        "version": version,
        "copyright": "Copyright the Tangere authors",
        "license": "Apache-2.0",
        "generationTool": f"Tangere {version}",
        "variableNamingConvention": "structured",
        "numberOfEventIndicators": "0",
    }
    common = {
        "modelIdentifier": identifier,
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true" if kind.directional else "false",
    }
    sources = ["    <SourceFiles>", '      <File name="fmu.c"/>', "    </SourceFiles>"]
    exchange = common | {"completedIntegratorStepNotNeeded": "false" if kind.memory else "true"}
    simulation = common | {"canHandleVariableCommunicationStepSize": "true", "maxOutputDerivativeOrder": "0"}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        _tag("fmiModelDescription", dict(root), close=False),
        "  " + _tag("ModelExchange", dict(exchange), close=False), *sources, "  </ModelExchange>",
        "  " + _tag("CoSimulation", dict(simulation), close=False), *sources, "  </CoSimulation>",
        *_units(units), *_types(used),
        "  <LogCategories>",
        *("    " + _tag("Category", {"name": n, "description": t}) for n, t in LOG_CATEGORIES),
        "  </LogCategories>",
        "  " + _tag("DefaultExperiment", {"startTime": "0", "stopTime": "1", "stepSize": number(STEP)}),
        *_variables(table), *_structure(table),
        "</fmiModelDescription>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
