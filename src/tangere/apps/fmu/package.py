"""Puts an FMU together: description, sources, binaries, start values, documentation and icon in one zip file.

A catalogue is a folder of them, every kind for every arm, with a data sheet each and an index page. A system is one
file after SSP 1.0: controller, arm and observer, connected, ready to be stepped.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from tangere import foreign
from tangere.apps.fmu.build import Platform, binaries, default_platforms
from tangere.apps.fmu.description import build_text, description_text
from tangere.apps.fmu.kinds import KINDS, kind_of
from tangere.apps.fmu.part import ArmNumbers, Kind, arm_of
from tangere.apps.fmu.sources import sources_of
from tangere.apps.fmu.variables import TYPES, UNITS, Group, Table
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.logs.files import replacing, write_text
from tangere.model.loading import names
from tangere.model.urdf_tree import element
from tangere.robots import Robot, as_robot

_DATE = (1980, 1, 1, 0, 0, 0)  # the zip format's zero: identical input, identical file
_UNKNOWN = "{00000000-0000-0000-0000-000000000000}"
# beside SourceFiles in modelDescription.xml, which says what to compile but not how
_CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(NAME C)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release) # without one it would not be optimised at all
endif()
add_library(NAME SHARED fmu.c)
set_target_properties(NAME PROPERTIES PREFIX "" C_STANDARD 99 C_VISIBILITY_PRESET hidden)
if(NOT MSVC)
  # one IEEE operation per C operation, as the library computes
  target_compile_options(NAME PRIVATE -ffp-contract=off)
  target_link_libraries(NAME PRIVATE m)
endif()
"""


@dataclass(frozen=True)
class Written:
    """An FMU on disk."""

    path: Path
    kind: Kind
    arm: ArmNumbers
    table: Table
    guid: str
    platforms: tuple[str, ...]  # folders of its binaries
    size: int  # [bytes]


def parameters_text(kind: Kind, table: Table, guid: str) -> str:
    """resources/parameters.txt: the start values, doubles as the sixteen hexadecimal digits of their bits."""
    lines = ["tangere-fmu 1", f"kind {kind.name}", f"guid {guid}"]
    for base in ("Real", "Integer", "Boolean"):
        lines.append(f"{base.lower()} {table.count[base]}")
        for p in table:
            g = p.group
            if g.kind != base:
                continue
            for name, value in zip(g.names(), g.start or (0,) * g.size, strict=True):
                if base == "Real":
                    lines.append(f"{struct.pack('>d', float(value)).hex()} {name} {float(value)!r}")
                else:
                    lines.append(f"{int(value)} {name}")
    return "\n".join(lines) + "\n"


def _guid(content: dict[str, bytes]) -> str:
    """A GUID from the content: it changes if and only if anything but the documentation does."""
    digest = hashlib.sha256()
    for name, data in sorted(content.items()):
        if name.startswith("documentation/"):
            continue
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    h = digest.hexdigest()
    return f"{{{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}}}"


def fmu_bytes(
    kind: Kind, arm: ArmNumbers, platforms: Sequence[Platform], tell: Callable[[str], None] | None = None, fmi: int = 2
) -> tuple[bytes, str]:
    """The file's content and its GUID. tell: is told what takes time. fmi: version of the standard, 2 or 3."""
    from tangere import __version__
    from tangere.apps.fmu.drawings import icon_png
    from tangere.apps.fmu.pages import documentation_html, licence_text

    table, identifier = kind.table(arm), kind.identifier(arm)
    sources = sources_of(kind, table, arm.family, fmi)
    content = {f"sources/{name}": text.encode() for name, text in sources.items()}
    cmake = _CMAKE.replace("fmu.c", "fmu3.c") if fmi == 3 else _CMAKE
    content["sources/CMakeLists.txt"] = cmake.replace("NAME", identifier).encode()
    if fmi == 3:
        content["sources/buildDescription.xml"] = build_text(identifier).encode()
    say = tell or (lambda text: None)
    made = binaries(sources, platforms, fmi, lambda folder: say(f"{identifier}: binary for {folder}"))
    content |= {f"binaries/{folder}/{identifier}{ending}": data for (folder, ending), data in made.items()}
    content["documentation/index.html"] = documentation_html(kind, arm, table, __version__, fmi).encode()
    content["documentation/licenses/license.txt"] = licence_text().encode()
    content["terminalsAndIcons/icon.png" if fmi == 3 else "model.png"] = icon_png(kind)

    draft = {
        "modelDescription.xml": description_text(kind, arm, table, _UNKNOWN, __version__, fmi),
        "resources/parameters.txt": parameters_text(kind, table, _UNKNOWN),
    }
    guid = _guid(content | {name: text.encode() for name, text in draft.items()})
    content |= {name: text.replace(_UNKNOWN, guid).encode() for name, text in draft.items()}
    return zipped(content, "modelDescription.xml"), guid


def zipped(content: dict[str, bytes], first: str) -> bytes:
    """A zip file, the same bytes whenever and wherever it is made; `first` is the name that stands first."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in (first, *sorted(set(content) - {first})):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            archive.writestr(info, content[name])
    return buffer.getvalue()


@contextmanager
def folders(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; where the block ends with an error, those that were made and are empty go."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidValue(f"{folder} cannot be written: {error.strerror}") from None
        yield
    except BaseException:
        for p in missing:  # the innermost first
            with suppress(OSError):  # not made, or not empty
                p.rmdir()
        raise


def _target(out: str | os.PathLike[str] | None, name: str) -> Path:
    """The file that `out` means."""
    if out is None:
        return Path(name)
    text, path = os.fspath(out), Path(out)
    if path.is_dir() or text.endswith(("/", os.sep)):
        return path / name
    if path.suffix.lower() != ".fmu":
        raise InvalidValue(f"{text}: neither a file *.fmu nor a folder that exists; for a new folder write {text}/")
    return path


def write_fmu(
    kind: str,
    robot: Robot | str,
    out: str | os.PathLike[str] | None = None,
    *,
    friction: JointFriction | None = None,
    q_start: ArrayLike | None = None,
    platforms: Sequence[Platform] | None = None,
    tell: Callable[[str], None] | None = None,
    fmi: int = 2,
) -> Written:
    """Write the FMU of that kind for a serial arm, with its payload, tool, gravity and rotor inertia as start values.

    robot: the arm, or its name.
    out: a file *.fmu, or a folder for NAME.fmu: one that exists, or a name that ends in "/"; None: NAME.fmu here. The
    file appears whole or not at all, an older one stays where anything goes wrong.
    friction: of the joints, None for none. q_start (n,) [rad, m]: where it begins, within the limits. platforms: what
    to compile for, None for linux64 and, where there is a compiler, win64. tell: is told what takes time. fmi: version
    of the standard, 2 (2.0, which every tool reads) or 3 (3.0: arrays are arrays).
    """
    if fmi not in (2, 3):
        raise InvalidValue(f"fmi: 2 or 3, got {fmi!r}")
    chosen = kind_of(kind)
    arm = arm_of(as_robot(robot), friction, q_start)
    path = _target(out, f"{chosen.identifier(arm)}.fmu")
    wanted = default_platforms() if platforms is None else tuple(platforms)
    content, guid = fmu_bytes(chosen, arm, wanted, tell, fmi)
    with folders(path.parent), replacing(path) as temporary:
        temporary.write_bytes(content)
    made = tuple(dict.fromkeys(p.folder_of(fmi) for p in wanted))
    return Written(path, chosen, arm, chosen.table(arm), guid, made, len(content))


def arms() -> list[str]:
    """Names of the arms that every kind can be made for: those of a catalogue where none are named."""
    return [name for name in names() if ur.is_ur(as_robot(name).model)]


def write_catalogue(
    folder: str | Path,
    robots: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    *,
    platforms: Sequence[Platform] | None = None,
    tell: Callable[[int, int, str], None] | None = None,
) -> tuple[Path, list[Written]]:
    """Write FMUs, their data sheets and index.html into a folder; the page, and what was written.

    robots, kinds: names, None for all kinds of all UR arms; an arm is left out of kinds that cannot serve it.
    platforms: as for write_fmu. tell: is told how many are done, how many there
    are, and which is next.
    """
    from tangere import __version__
    from tangere.apps.fmu.pages import catalogue_html, documentation_html

    wanted = [kind_of(k).name for k in dict.fromkeys(kinds or KINDS)]
    target = Path(folder)
    done: list[Written] = []
    made = [as_robot(name) for name in dict.fromkeys(robots or arms())]
    fitting = [(arm, kind) for arm in made for kind in wanted if arm_of(arm).family.closed or not kind_of(kind).closed]
    if not fitting:
        kind_of(wanted[0]).table(arm_of(made[0]))  # says why it fits none
    page = target / "index.html"
    with folders(target / "sheets"):
        for arm, kind in fitting:
            if tell is not None:
                tell(len(done), len(fitting), f"{arm.name} {kind}")
            w = write_fmu(kind, arm, target, platforms=platforms)
            sheet = documentation_html(w.kind, w.arm, w.table, __version__)
            write_text(target / "sheets" / f"{w.path.stem}.html", sheet)
            done.append(w)
        write_text(page, catalogue_html(done, __version__))
    return page, done


BLOCKS = {"controller": "controller", "arm": "dynamics", "observer": "observer"}  # element: kind, in order of stepping
# from (element, group) to (element, group); no element: a connector of the system
WIRES = (
    (("", "q_des"), ("controller", "q_des")),
    (("", "qd_des"), ("controller", "qd_des")),
    (("", "qdd_des"), ("controller", "qdd_des")),
    (("arm", "q"), ("controller", "q")),
    (("arm", "qd"), ("controller", "qd")),
    (("controller", "tau"), ("arm", "tau")),
    (("", "tau_ext"), ("arm", "tau_ext")),
    (("arm", "q"), ("observer", "q")),
    (("arm", "qd"), ("observer", "qd")),
    (("controller", "tau"), ("observer", "tau")),
    (("arm", "q"), ("", "q")),
    (("arm", "qd"), ("", "qd")),
    (("controller", "tau"), ("", "tau")),
    (("observer", "residual"), ("", "residual")),
    (("observer", "contact"), ("", "contact")),
    (("observer", "contact_joint"), ("", "contact_joint")),
)
_SSD = "http://ssp-standard.org/SSP1/SystemStructureDescription"
_SSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"


def _group(table: Table, name: str) -> Group:
    return next(p.group for p in table if p.group.name == name)


def _connectors(group: Group, kind: str) -> list[list[str]]:
    """One connector for each number of a group: SSP 1.0 knows no arrays."""
    out = []
    for i, name in enumerate(group.names()):
        declared = group.type_of(i)
        unit = {"unit": TYPES[declared].unit} if group.kind == "Real" and declared in TYPES else {}
        out.append(element("ssd:Connector", {"name": name, "kind": kind}, [element(f"ssc:{group.kind}", dict(unit))]))
    return out


def structure_text(tables: dict[str, Table], files: dict[str, str], name: str, version: str) -> str:
    """SystemStructure.ssd: the elements, their connectors, and what is connected with what."""
    outer: dict[tuple[str, str], list[list[str]]] = {}
    own: dict[str, dict[str, list[list[str]]]] = {block: {} for block in tables}
    wires: list[list[str]] = []
    units = set()
    for (source, left), (target, right) in WIRES:
        group = _group(tables[source or target], left if source else right)
        units |= {TYPES[group.type_of(i)].unit for i in range(group.size) if group.type_of(i) in TYPES}
        if source:
            own[source].setdefault(left, _connectors(_group(tables[source], left), "output"))
        else:
            outer.setdefault(("input", left), _connectors(group, "input"))
        if target:
            own[target].setdefault(right, _connectors(_group(tables[target], right), "input"))
        else:
            outer.setdefault(("output", right), _connectors(group, "output"))
        for one in group.names():
            ends = {"startElement": source or None, "startConnector": one, "endElement": target or None}
            wires.append(element("ssd:Connection", ends | {"endConnector": one}))
    blocks = [
        element(
            "ssd:Component",
            {"name": block, "type": "application/x-fmu-sharedlibrary", "source": f"resources/{files[block]}"},
            [element("ssd:Connectors", {}, [line for lines in own[block].values() for line in lines])],
        )
        for block in tables
    ]
    system = element("ssd:System", {"name": "system"}, [
        element("ssd:Connectors", {}, [line for lines in outer.values() for line in lines]),
        element("ssd:Elements", {}, blocks),
        element("ssd:Connections", {}, wires),
    ])  # fmt: skip
    listed = [
        element("ssc:Unit", {"name": unit}, [element("ssc:BaseUnit", {k: str(v) for k, v in UNITS[unit][0].items()})])
        for unit in UNITS if unit in units
    ]  # fmt: skip
    root: dict[str, str | None] = {
        "xmlns:ssd": _SSD, "xmlns:ssc": _SSC, "version": "1.0", "name": name, "generationTool": f"Tangere {version}",
    }  # fmt: skip
    children = [
        system, element("ssd:Units", {}, listed), element("ssd:DefaultExperiment", {"startTime": "0", "stopTime": "2"})
    ]  # fmt: skip
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', *element("ssd:SystemStructureDescription", root, children)]
    return "\n".join(lines) + "\n"


def write_system(
    robot: Robot | str,
    out: str | os.PathLike[str] | None = None,
    *,
    friction: JointFriction | None = None,
    q_start: ArrayLike | None = None,
    platforms: Sequence[Platform] | None = None,
    tell: Callable[[str], None] | None = None,
) -> tuple[Path, int]:
    """Write controller, arm and observer of a robot as one SSP package; the file, and how many connections it has.

    The blocks are FMI 2.0, which every simulator of SSP takes. Inputs of the system: q_des, qd_des, qdd_des, tau_ext (a
    push); outputs: q, qd, tau, residual, contact, contact_joint. q_start (n,) [rad, m]: where arm and reference begin;
    default zero, since simulators start every connector at zero and the reference would otherwise jump.
    """
    from tangere import __version__

    made = as_robot(robot)
    arm = arm_of(made, friction, np.zeros(made.dof) if q_start is None else q_start)
    path = Path(f"{foreign.file_name(arm.name)}.ssp" if out is None else out)
    if path.suffix.lower() != ".ssp":
        raise InvalidValue(f"{path}: a system is written as *.ssp")
    wanted = default_platforms() if platforms is None else tuple(platforms)
    tables: dict[str, Table] = {}
    files: dict[str, str] = {}
    content: dict[str, bytes] = {}
    for block, kind_name in BLOCKS.items():
        kind = kind_of(kind_name)
        tables[block] = kind.table(arm)
        files[block] = f"{kind.identifier(arm)}.fmu"
        content[f"resources/{files[block]}"] = fmu_bytes(kind, arm, wanted, tell)[0]
    text = structure_text(tables, files, f"{arm.name}_system", __version__)
    content["SystemStructure.ssd"] = text.encode()
    with folders(path.parent), replacing(path) as temporary:
        temporary.write_bytes(zipped(content, "SystemStructure.ssd"))
    return path, text.count("<ssd:Connection ")
