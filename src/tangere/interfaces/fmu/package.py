"""Puts an FMU together: description, sources, binaries, start values, documentation and icon in one zip file."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from numpy.typing import ArrayLike

from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.interfaces.fmu.build import LINUX, PLATFORMS, Platform, binary, compiler_of
from tangere.interfaces.fmu.description import description_text
from tangere.interfaces.fmu.kinds import Kind, kind_of
from tangere.interfaces.fmu.numbers import Arm, arm_of
from tangere.interfaces.fmu.sources import sources_of
from tangere.interfaces.fmu.variables import Table
from tangere.robot import Robot

_DATE = (1980, 1, 1, 0, 0, 0)  # the zip format's zero: identical input, identical file
_UNKNOWN = "{00000000-0000-0000-0000-000000000000}"
# beside SourceFiles in modelDescription.xml, which says what to compile but not how
_CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(NAME C)
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
    arm: Arm
    table: Table
    guid: str
    platforms: tuple[str, ...]  # folders of its binaries
    size: int  # bytes


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
    """A GUID from the content, so that it changes if and only if anything in the file does."""
    digest = hashlib.sha256()
    for name, data in sorted(content.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    h = digest.hexdigest()
    return f"{{{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}}}"


def fmu_bytes(
    kind: Kind, arm: Arm, platforms: Sequence[Platform], tell: Callable[[str], None] | None = None
) -> tuple[bytes, str]:
    """The file's content and its GUID. tell: is told what takes time."""
    from tangere import __version__
    from tangere.interfaces.fmu.icon import icon_png
    from tangere.interfaces.fmu.pages import documentation_html, licence_text

    table, identifier = kind.table(arm), kind.identifier(arm)
    sources = sources_of(kind, table)
    content = {f"sources/{name}": text.encode() for name, text in sources.items()}
    content["sources/CMakeLists.txt"] = _CMAKE.replace("NAME", identifier).encode()
    for platform in platforms:
        if tell is not None:
            tell(f"{identifier}: binary for {platform.folder}")
        content[f"binaries/{platform.folder}/{identifier}{platform.ending}"] = binary(sources, platform)
    content["documentation/index.html"] = documentation_html(kind, arm, table, __version__).encode()
    content["documentation/licenses/license.txt"] = licence_text().encode()
    content["model.png"] = icon_png(kind)

    draft = {
        "modelDescription.xml": description_text(kind, arm, table, _UNKNOWN, __version__),
        "resources/parameters.txt": parameters_text(kind, table, _UNKNOWN),
    }
    guid = _guid(content | {name: text.encode() for name, text in draft.items()})
    content |= {name: text.replace(_UNKNOWN, guid).encode() for name, text in draft.items()}
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in ("modelDescription.xml", *sorted(set(content) - {"modelDescription.xml"})):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            archive.writestr(info, content[name])
    return buffer.getvalue(), guid


def available_platforms() -> tuple[Platform, ...]:
    """Linux, and whatever else this machine can compile for."""
    return tuple(p for p in PLATFORMS if p is LINUX or compiler_of(p) is not None)


def write_fmu(
    kind: str,
    robot: Robot,
    out: str | os.PathLike[str] | None = None,
    *,
    friction: JointFriction | None = None,
    q_start: ArrayLike | None = None,
    platforms: Sequence[Platform] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Written:
    """Write the FMU of that kind for a UR arm, with its payload, tool, gravity and rotor inertia as start values.

    out: a file *.fmu, else a folder for NAME.fmu; None: NAME.fmu here. friction: of the joints, None for none.
    q_start (6,) [rad]: where it begins. platforms: what to compile for, None for all that this machine can.
    tell: is told what takes time.
    """
    chosen = kind_of(kind)
    arm = arm_of(robot, friction, q_start)
    wanted = available_platforms() if platforms is None else tuple(platforms)
    content, guid = fmu_bytes(chosen, arm, wanted, tell)
    path = Path(out) if out is not None else Path()
    if path.suffix != ".fmu" or path.is_dir():
        path = path / f"{chosen.identifier(arm)}.fmu"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise InvalidValue(f"{path} cannot be written: {error.strerror}") from None
    folders = tuple(p.folder for p in wanted)
    return Written(path, chosen, arm, chosen.table(arm), guid, folders, len(content))
