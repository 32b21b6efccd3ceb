"""modelDescription.xml and buildDescription.xml of an FMU, after FMI 3.0."""

from __future__ import annotations

from tangere.apps.fmu.arrays import KINDS, TIME, Array3, all_arrays, arrays_of
from tangere.apps.fmu.description import first_known, log_and_experiment, number, root_of, units_text
from tangere.apps.fmu.part import ArmNumbers, Kind
from tangere.apps.fmu.variables import CHOICES, TYPES, Placed, Table
from tangere.model.urdf_tree import element


def _types(used: set[str]) -> list[list[str]]:
    found = []
    for name, t in TYPES.items():
        if name in used:
            quantity = {"quantity": t.quantity or None, "unit": t.unit, "displayUnit": t.display or None}
            found.append(element("Float64Type", {"name": name, "description": t.text, **quantity}))
    for name, choice in CHOICES.items():
        if name in used:
            text = f"{choice.text}. {choice.meaning}"
            bounds = {"min": "1", "max": str(len(choice.items))}
            found.append(element("Int32Type", {"name": name, "description": text, **bounds}))
    return found


def _start(a: Array3) -> str | None:
    g = a.placed.group
    if g.start is None:
        return None
    values = g.start[a.offset : a.offset + a.size]
    if g.kind == "Boolean":
        return " ".join("true" if value else "false" for value in values)
    return " ".join(number(float(v)) if g.kind == "Real" else str(int(v)) for v in values)


def _bound(a: Array3, which: str) -> str | None:
    """The bound that holds for every element; None where one has none."""
    g = a.placed.group
    values = [g.bound("low" if which == "min" else "high", i) for i in range(a.offset, a.offset + a.size)]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return number(min(known) if which == "min" else max(known))


def _variable(table: Table, a: Array3) -> list[str]:
    g = a.placed.group
    of = table[g.derivative_of] if g.derivative_of else None
    attributes: dict[str, str | None] = {
        "name": a.name, "valueReference": str(a.reference), "description": g.text, "causality": g.causality,
        "variability": g.variability, "initial": g.initial, "declaredType": a.declared or None,
        "min": _bound(a, "min"), "max": _bound(a, "max"),
        "nominal": None if g.nominal is None else number(g.nominal),
        "derivative": str(of.reference + a.offset) if of is not None else None, "start": _start(a),
    }  # fmt: skip
    if g.kind == "Boolean":
        attributes |= {"min": None, "max": None, "nominal": None}
    return element(KINDS[g.kind], attributes, [element("Dimension", {"start": str(n)}) for n in a.shape])


def _now(table: Table, p: Placed, a: Array3) -> dict[int, str]:
    """What a variable depends on at an instant: value references with FMI's kind of dependency."""
    found: dict[int, str] = {}
    for key in p.group.depends:
        of = table[key.lstrip("=")]
        if of.group.causality == "output" and not of.group.state:
            continue  # held by the block itself: not known to the host
        for one in arrays_of(of):
            if key.startswith("="):  # the same element only: an array of the same place, or nothing of it
                if one.offset < a.offset + a.size and a.offset < one.offset + one.size:
                    found.setdefault(one.reference, "constant")
            else:
                found[one.reference] = "dependent"
    return found


def _first(table: Table, p: Placed) -> dict[int, str]:
    return {one.reference: "dependent" for of in first_known(table, p) for one in arrays_of(of)}


def _unknown(tag: str, reference: int, dependencies: dict[int, str]) -> list[str]:
    known = sorted(dependencies)
    named = {
        "valueReference": str(reference), "dependencies": " ".join(map(str, known)),
        "dependenciesKind": " ".join(dependencies[k] for k in known),
    }  # fmt: skip
    return element(tag, named)


def _structure(table: Table) -> list[list[str]]:
    out = []
    for tag, wanted in (
        ("Output", table.with_causality("output")),
        ("ContinuousStateDerivative", [p for p in table if p.group.derivative_of]),
    ):
        out += [_unknown(tag, a.reference, _now(table, p, a)) for p in wanted for a in arrays_of(p)]
    first = [
        p for p in table.with_causality("output", "local")
        if p.group.causality == "output" or p.group.state or p.group.derivative_of
    ]  # fmt: skip
    return out + [_unknown("InitialUnknown", a.reference, _first(table, p)) for p in first for a in arrays_of(p)]


def description_text(kind: Kind, arm: ArmNumbers, table: Table, token: str, version: str) -> str:
    """The whole file; token: what the host must show when it makes an instance."""
    identifier = kind.identifier(arm)
    used = {a.declared for a in all_arrays(table)} - {""}
    units = {TYPES[name].unit for name in used if name in TYPES} | {"s"}
    root = root_of("3.0", {"instantiationToken": token}, kind, arm, version)
    common: dict[str, str | None] = {
        "modelIdentifier": identifier,
        "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true" if kind.directional else "false",
        "providesAdjointDerivatives": "true" if kind.directional else "false",
    }
    exchange = common | {"needsCompletedIntegratorStep": "true" if kind.memory else "false"}
    simulation = common | {"canHandleVariableCommunicationStepSize": "true", "maxOutputDerivativeOrder": "0"}
    time = {"name": "time", "valueReference": str(TIME), "description": "simulated time", "causality": "independent",
            "variability": "continuous", "unit": "s"}  # fmt: skip
    children = [
        element("ModelExchange", exchange),
        element("CoSimulation", simulation),
        element("UnitDefinitions", {}, units_text(units)),
        *([element("TypeDefinitions", {}, types)] if (types := _types(used)) else []),
        *log_and_experiment(),
        element("ModelVariables", {}, [element("Float64", time), *(_variable(table, a) for a in all_arrays(table))]),
        element("ModelStructure", {}, _structure(table)),
    ]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *element("fmiModelDescription", root, children)]
    return "\n".join(lines) + "\n"


def build_text(identifier: str) -> str:
    """sources/buildDescription.xml: which file to compile."""
    files = element("SourceFileSet", {"language": "C99"}, [element("SourceFile", {"name": "fmu3.c"})])
    inside = element("BuildConfiguration", {"modelIdentifier": identifier}, [files])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *element("fmiBuildDescription", {"fmiVersion": "3.0"}, [inside])]
    return "\n".join(lines) + "\n"
