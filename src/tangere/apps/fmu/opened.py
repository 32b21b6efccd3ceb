"""An FMU file of anyone's, opened: unpacked with care, its description read into plain values; findings about it."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tangere import foreign
from tangere.apps.fmu.build import LINUX, Platform
from tangere.errors import InvalidValue

LARGEST = 1 << 30  # bytes unpacked: beyond it a file is not opened
Outcome = Literal["good", "bad", "not checked", "note"]
WORDS = 5  # complaints of one check that are spelled out; the rest is counted
LETTERS = 160  # of one complaint; some checkers list every variable
TYPES = ("Real", "Integer", "Boolean", "String", "Enumeration")


class NotAnFmu(InvalidValue):
    """The file cannot be opened as an FMU."""


@dataclass(frozen=True)
class Variable:
    """A ScalarVariable."""

    index: int  # from 1, as ModelStructure counts
    name: str
    reference: int
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
        """Start value as a number, 0 where there is none."""
        start = self.start or "0"
        return float({"true": "1", "false": "0"}.get(start, start))

    def within(self, value: float) -> float:
        """The value, or the bound that it lies beyond."""
        low, high = float(self.attributes.get("min", "-inf")), float(self.attributes.get("max", "inf"))
        return min(max(value, low), high)


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
    def kind(self) -> str | None:
        """Which of our kinds it is, None for an FMU of others."""
        try:
            lines = (self.folder / "resources" / "parameters.txt").read_text(encoding="utf-8").split("\n", 2)
        except (OSError, UnicodeDecodeError):
            return None
        ours = len(lines) > 2 and lines[0] == "tangere-fmu 1" and lines[1].startswith("kind ")
        return lines[1][5:].strip() if ours else None

    @property
    def groups(self) -> dict[str, list[Variable]]:
        """Variables by the name of their vector or matrix (q of q[3], der(q) of der(q[3])), in row order."""
        found: dict[str, list[Variable]] = {}
        for v in self.variables:
            found.setdefault(re.sub(r"\[[0-9,]+\]", "", v.name), []).append(v)
        return found

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
