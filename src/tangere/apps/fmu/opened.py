"""An FMU file of anyone's, opened: unpacked with care, its description read into plain values; findings about it."""

from __future__ import annotations

import itertools
import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tangere import foreign
from tangere.apps.fmu.build import LINUX, Platform
from tangere.apps.fmu.variables import whole_name
from tangere.errors import InvalidValue

LARGEST = 1 << 30  # bytes unpacked: beyond it a file is not opened
ELEMENTS = 1 << 20  # of all arrays of FMI 3.0 together
Outcome = Literal["good", "bad", "not checked", "note"]
WORDS = 5  # complaints of one check that are spelled out; the rest is counted
LETTERS = 160  # of one complaint; some checkers list every variable
TYPES = ("Real", "Integer", "Boolean", "String", "Enumeration")
# types of FMI 3.0: what they are called in 2.0, and their letter in driver_calls3.h
TYPES_3 = {
    "Float64": ("Real", "r"), "Float32": ("Real", "f"), "Boolean": ("Boolean", "b"),
    "Enumeration": ("Enumeration", "l"),
    "Int8": ("Integer", "a"), "UInt8": ("Integer", "A"), "Int16": ("Integer", "s"), "UInt16": ("Integer", "S"),
    "Int32": ("Integer", "i"), "UInt32": ("Integer", "I"), "Int64": ("Integer", "l"), "UInt64": ("Integer", "L"),
}  # fmt: skip


class NotAnFmu(InvalidValue):
    """The file cannot be opened as an FMU."""


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


@dataclass(frozen=True)
class Variable:
    """A ScalarVariable, or an element of an array of FMI 3.0."""

    index: int  # from 1, as ModelStructure counts
    name: str
    reference: int  # of FMI 2.0; of FMI 3.0 a number of our own (Array.first)
    kind: str  # Real, Integer, Boolean, String, Enumeration
    causality: str
    variability: str
    initial: str | None
    text: str
    attributes: dict[str, str]  # of its type

    @property
    def start(self) -> str | None:
        """Start value as written."""
        return self.attributes.get("start")

    @property
    def number(self) -> float:
        """Start value as a number, 0 where there is none, nan where it is no number."""
        start = self.start or "0"
        return _number({"true": "1", "false": "0"}.get(start, start), math.nan)

    def within(self, value: float) -> float:
        """The value, or the bound that it lies beyond."""
        low, high = (_number(self.attributes.get(k, ""), x) for k, x in (("min", -math.inf), ("max", math.inf)))
        return min(max(value, low), high)


@dataclass(frozen=True)
class Array:
    """A variable of FMI 3.0: `size` elements, the first of which has the reference `first` here."""

    letter: str
    first: int
    reference: int  # the file's
    size: int


@dataclass(frozen=True)
class Unknown:
    """An entry of ModelStructure; dependencies None: on everything."""

    index: int
    dependencies: tuple[int, ...] | None
    kinds: tuple[str, ...] | None


@dataclass(frozen=True)
class Opened:
    """An unpacked FMU."""

    path: Path
    folder: Path
    names: tuple[str, ...]  # in the zip file
    root: ET.Element
    variables: tuple[Variable, ...]
    structure: dict[str, tuple[Unknown, ...]] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()  # of FMI 3.0

    @property
    def version(self) -> str:
        """Of FMI."""
        return self.root.get("fmiVersion", "")

    @property
    def guid(self) -> str:
        """GUID, or what FMI 3 has in its place."""
        return self.root.get("guid") or self.root.get("instantiationToken") or ""

    def interface(self, name: str) -> ET.Element | None:
        """The element CoSimulation or ModelExchange."""
        return self.root.find(name)

    @property
    def identifier(self) -> str:
        """Model identifier; co-simulation first."""
        found = (self.interface(name) for name in ("CoSimulation", "ModelExchange"))
        return next((e.get("modelIdentifier", "") for e in found if e is not None), "")

    @property
    def library(self) -> Path:
        """Shared library for Linux."""
        return self.library_of(LINUX)

    def library_of(self, platform: Platform) -> Path:
        """Shared library for a platform."""
        folder = platform.folder_of(3 if self.version.startswith("3") else 2)
        return self.folder / "binaries" / folder / f"{self.identifier}{platform.ending}"

    @property
    def resources_uri(self) -> str:
        """The resource folder as a URI."""
        return (self.folder / "resources").as_uri()

    @property
    def resources(self) -> str:
        """The resource folder as its version names it: a URI, or a path."""
        return f"{self.folder / 'resources'}/" if self.version.startswith("3") else self.resources_uri

    @property
    def kind(self) -> str | None:
        """Which of our kinds it is, None for an FMU of others."""
        try:
            lines = foreign.read_text(self.folder / "resources" / "parameters.txt").split("\n", 2)
        except InvalidValue:
            return None
        ours = len(lines) > 2 and lines[0] == "tangere-fmu 1" and lines[1].startswith("kind ")
        return lines[1][5:].strip() if ours else None

    @property
    def groups(self) -> dict[str, list[Variable]]:
        """Variables by the name of their vector or matrix (q of q[3], der(q) of der(q[3])), in row order.

        Of our blocks in FMI 3.0 also those that are several arrays there (wrench of wrench.force and wrench.torque).
        """
        found: dict[str, list[Variable]] = {}
        joined: dict[str, list[Variable]] = {}
        for v in self.variables:
            name = re.sub(r"\[[0-9,]+\]", "", v.name)
            found.setdefault(name, []).append(v)
            if self.arrays and (whole := whole_name(name, v.attributes.get("declaredType", ""))):
                joined.setdefault(whole, []).append(v)
        return joined | found

    def of(self, causality: str, kind: str | None = None) -> list[Variable]:
        """Variables by causality and type."""
        return [v for v in self.variables if v.causality == causality and (kind is None or v.kind == kind)]


def _variables(root: ET.Element) -> tuple[Variable, ...]:
    found = []
    for i, element in enumerate(root.findall("ModelVariables/ScalarVariable"), 1):
        typed = next((e for e in element if e.tag in TYPES), None)
        try:
            reference = int(element.get("valueReference", ""))
        except ValueError:
            raise NotAnFmu(f"variable {i} ({element.get('name')!r}) has no value reference that is a number") from None
        if typed is None:
            raise NotAnFmu(f"variable {i} ({element.get('name')!r}) has no type")
        found.append(
            Variable(
                i, element.get("name", ""), reference, typed.tag, element.get("causality", "local"),
                element.get("variability", "continuous"), element.get("initial"), element.get("description", ""),
                dict(typed.attrib),
            )
        )  # fmt: skip
    return tuple(found)


def _structure(root: ET.Element) -> dict[str, tuple[Unknown, ...]]:
    def read(part: str, e: ET.Element) -> Unknown:
        depends, kinds = e.get("dependencies"), e.get("dependenciesKind")
        try:
            index, known = int(e.get("index", "")), None if depends is None else tuple(map(int, depends.split()))
        except ValueError:
            raise NotAnFmu(f"ModelStructure/{part}: an index is not a number") from None
        return Unknown(index, known, None if kinds is None else tuple(kinds.split()))

    return {
        part: tuple(read(part, e) for e in root.findall(f"ModelStructure/{part}/Unknown"))
        for part in ("Outputs", "Derivatives", "InitialUnknowns")
    }


def _length(dimension: ET.Element, numbers: dict[int, ET.Element]) -> int:
    """Of one dimension: said, or the start value of a parameter."""
    said = dimension.get("start")
    return int(said if said is not None else numbers[int(dimension.get("valueReference", ""))].get("start", ""))


def _variables3(root: ET.Element) -> tuple[tuple[Variable, ...], tuple[Array, ...]]:
    """Elements of all arrays of numbers, and the arrays; texts, bytes and clocks are left out."""
    listed = [e for e in root.findall("ModelVariables/*") if e.tag in TYPES_3]
    try:
        numbers = {int(e.get("valueReference", "")): e for e in listed}
        sizes = [[_length(d, numbers) for d in e.findall("Dimension")] for e in listed]
    except (ValueError, KeyError):
        raise NotAnFmu("a value reference or the size of an array is not a number") from None
    found: list[Variable] = []
    arrays = []
    for e, shape in zip(listed, sizes, strict=True):
        kind, letter = TYPES_3[e.tag]
        size, first = math.prod(shape), len(found)
        if not 0 < size <= ELEMENTS or first + size > ELEMENTS:
            raise NotAnFmu(f"variable {foreign.shown(e.get('name'))} has {size} elements")
        starts = (e.get("start") or "").split()
        if len(starts) not in (0, 1, size):
            raise NotAnFmu(f"variable {foreign.shown(e.get('name'))} has {size} elements, {len(starts)} start values")
        variability = e.get("variability", "continuous" if kind == "Real" else "discrete")
        arrays.append(Array(letter, first, int(e.get("valueReference", "")), size))
        for i, place in enumerate(itertools.product(*(range(1, n + 1) for n in shape))):
            name = e.get("name", "")
            if place:
                at = f"[{','.join(map(str, place))}]"
                name = f"{name[:-1]}{at})" if name.startswith("der(") else name + at
            own = {k: x for k, x in e.attrib.items() if k != "start"}
            own |= {"start": starts[i % len(starts)]} if starts else {}
            found.append(Variable(first + i + 1, name, first + i, kind, e.get("causality", "local"), variability,
                                  e.get("initial"), e.get("description", ""), own))  # fmt: skip
    return tuple(found), tuple(arrays)


def _structure3(root: ET.Element, arrays: tuple[Array, ...]) -> dict[str, tuple[Unknown, ...]]:
    """Entries for elements; an array that depends on another depends on all its elements."""
    elements = {a.reference: range(a.first + 1, a.first + a.size + 1) for a in arrays}

    def read(e: ET.Element) -> list[Unknown]:
        depends = e.get("dependencies")
        try:
            own = elements.get(int(e.get("valueReference", "")), ())
            known = None if depends is None else [i for r in depends.split() for i in elements.get(int(r), ())]
        except ValueError:
            raise NotAnFmu("ModelStructure: a value reference is not a number") from None
        return [Unknown(i, None if known is None else tuple(known), None) for i in own]

    parts = {"Outputs": "Output", "Derivatives": "ContinuousStateDerivative", "InitialUnknowns": "InitialUnknown"}
    return {
        part: tuple(u for e in root.findall(f"ModelStructure/{tag}") for u in read(e)) for part, tag in parts.items()
    }


def opened(path: str | os.PathLike[str], folder: Path) -> Opened:
    """Unpack an FMU into a folder and read its description.

    Refuses what is no zip file, names that lead out of the folder, and what would unpack to more than a gigabyte.
    """
    file = Path(path)
    if file.is_dir():
        raise NotAnFmu(f"{file} is a folder: name the .fmu files in it, as in {file}/*.fmu")
    if not file.is_file():
        raise NotAnFmu(f"{file}: there is no such file")
    with foreign.archive(file, most=LARGEST, kind=NotAnFmu) as archive:
        names = tuple(archive.namelist())
        if "modelDescription.xml" not in names:
            raise NotAnFmu(f"{file}: holds no modelDescription.xml")
        try:
            archive.extractall(folder)
            (folder / "resources").mkdir(exist_ok=True)
        except Exception as error:  # each kind of compression has errors of its own
            raise NotAnFmu(f"{file}: not a zip file that can be read ({foreign.shown(error)})") from None
    text = foreign.read_bytes(folder / "modelDescription.xml", foreign.TEXT_MAX * 3, NotAnFmu)
    root = foreign.xml(text, f"{file}: modelDescription.xml", kind=NotAnFmu)
    if root.tag != "fmiModelDescription":
        raise NotAnFmu(f"{file}: modelDescription.xml begins with <{foreign.shown(root.tag)[1:-1]}>")
    for part in root.iter():
        identifier = part.get("modelIdentifier")
        if identifier is not None and not re.fullmatch(r"[A-Za-z_]\w{0,200}", identifier, re.ASCII):
            raise NotAnFmu(f"{file}: the model identifier {foreign.shown(identifier)} is no name of C")
    if root.get("fmiVersion", "").startswith("3."):
        variables, arrays = _variables3(root)
        return Opened(file, folder, names, root, variables, _structure3(root, arrays), arrays)
    if root.get("fmiVersion") != "2.0":
        return Opened(file, folder, names, root, ())
    return Opened(file, folder, names, root, _variables(root), _structure(root))


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: where, what, how it is, and in what words."""

    part: str
    what: str
    outcome: Outcome
    text: str = ""


def judged(part: str, what: str, complaints: Sequence[str], good: str = "") -> Finding:
    """Good where there is no complaint."""
    if not complaints:
        return Finding(part, what, "good", good)
    more = f"; and {len(complaints) - WORDS} more" if len(complaints) > WORDS else ""
    short = [c if len(c) <= LETTERS else c[: LETTERS - 3] + "..." for c in complaints[:WORDS]]
    return Finding(part, what, "bad", "; ".join(short) + more)
