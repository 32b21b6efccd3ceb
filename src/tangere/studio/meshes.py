"""Meshes of an arm: parametric shapes turned on a lathe, with bevelled rims, or those of UR's description package."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere import foreign
from tangere.errors import InvalidValue, MissingExtra, extra
from tangere.model.frames import rotation_rpy, transform
from tangere.model.link_shapes import Segment, base_shape, link_shapes
from tangere.model.model import Model
from tangere.types import Array

SIDES = 32  # of a round part: no corner is seen at the size of a page
BEVEL = 0.010  # [m] of a housing's rim, by eye
GROOVE = 0.0025  # [m] depth and half width of the groove around a housing, where two castings meet
# red, green, blue of each kind of part, by eye: light metal, blue caps
COLOURS = {"tube": (214, 219, 225), "joint": (158, 167, 178), "cap": (63, 140, 201), "pen": (42, 43, 48)}

# Parts of UR's description package: name in visual_parameters.yaml, then the file and how it is turned in the part's
# frame by older packages, which do not say it: roll, pitch, yaw [rad]
PARTS = {
    "base": ("base", (0.0, 0.0, math.pi)),
    "shoulder": ("shoulder", (0.0, 0.0, math.pi)),
    "upper_arm": ("upperarm", (math.pi / 2, 0.0, -math.pi / 2)),
    "forearm": ("forearm", (math.pi / 2, 0.0, -math.pi / 2)),
    "wrist_1": ("wrist1", (math.pi / 2, 0.0, 0.0)),
    "wrist_2": ("wrist2", (0.0, 0.0, 0.0)),
    "wrist_3": ("wrist3", (math.pi / 2, 0.0, 0.0)),
}
ENDINGS = (".dae", ".glb", ".obj", ".stl")  # of a mesh, the one with most colours first
MESH_MAX = 50_000_000  # [bytes] of a mesh file: UR's have 0.1 to 3 MB

Faces = NDArray[np.uint32]


@dataclass(frozen=True)
class Mesh:
    """Triangles of one colour in the frame of a link's joint."""

    vertices: Array  # (v, 3) m
    faces: Faces  # (f, 3)


def arm_meshes(model: Model) -> list[dict[str, Mesh]]:
    """For the base, then each link: colour -> mesh, in the frame of its joint after the motion (the base: its own)."""
    bodies = []
    tool = model.T_flange_tcp[:3, 3]
    shapes = [[base_shape(model)], *link_shapes(model)]
    if float(np.linalg.norm(tool)) > 0.01:
        T = model.joints[-1].T_joint_link
        shapes[-1].append(Segment("pen", T[:3, 3], T[:3, 3] + T[:3, :3] @ tool, 0.012, round=True))
    for segments in shapes:
        found: dict[str, list[Mesh]] = {}
        for segment in segments:
            found.setdefault(segment.colour, []).append(_mesh(segment))
        bodies.append({colour: _joined(parts) for colour, parts in found.items()})
    return bodies


def _mesh(segment: Segment) -> Mesh:
    along = segment.end - segment.start
    length = float(np.linalg.norm(along))
    z = along / length
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    R = np.stack((x, np.cross(z, x), z), axis=1)
    mesh = _lathe(_profile(segment, length))
    return Mesh(mesh.vertices @ R.T + segment.start, mesh.faces)


def _profile(segment: Segment, length: float) -> Array:
    """(k, 2) radius and height along a part; a point that stands twice is an edge."""
    r = segment.radius
    if segment.round:
        return np.array([*_arc(0.0, 0.0, r, -0.5, 0.0, 10), *_arc(0.0, length, r, 0.0, 0.5, 10)])
    b = min(0.002 if segment.colour == "cap" else BEVEL, 0.45 * length, 0.45 * r)
    low, high = _arc(r - b, b, b, -0.5, 0.0, 6), _arc(r - b, length - b, b, 0.0, 0.5, 6)
    middle: list[tuple[float, float]] = []
    if segment.colour == "joint" and length > 8.0 * BEVEL:
        at = 0.5 * length
        for z, depth in ((-GROOVE, 0.0), (-0.5 * GROOVE, GROOVE), (0.5 * GROOVE, GROOVE), (GROOVE, 0.0)):
            middle += [(r - depth, at + z)] * 2
    return np.array([(0.0, 0.0), low[0], *low, *middle, *high, high[-1], (0.0, length)])


def _arc(r: float, z: float, radius: float, start: float, stop: float, count: int) -> list[tuple[float, float]]:
    """Points on a circle about (r, z), from start to stop [half turns]."""
    angles = np.linspace(start * math.pi, stop * math.pi, count)
    return [(max(r + radius * math.cos(a), 0.0), z + radius * math.sin(a)) for a in angles.tolist()]


def _lathe(profile: Array) -> Mesh:
    angle = np.arange(SIDES) * (2.0 * math.pi / SIDES)
    around = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    rings = [np.column_stack((r * around, np.full(SIDES, z))) for r, z in profile.tolist()]
    this, after = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES
    faces = []
    for i in range(len(profile) - 1):
        if not np.array_equal(profile[i], profile[i + 1]):
            a, b, c, d = i * SIDES + this, i * SIDES + after, (i + 1) * SIDES + this, (i + 1) * SIDES + after
            faces += [np.stack((a, b, d), axis=1), np.stack((a, d, c), axis=1)]
    vertices, index = np.concatenate(rings), np.concatenate(faces)
    a, b, c = (vertices[index[:, i]] for i in range(3))
    whole = np.linalg.norm(np.cross(b - a, c - a), axis=1) > 1e-14  # at a pole every other triangle is a line
    return Mesh(vertices, index[whole].astype(np.uint32))


def _joined(parts: list[Mesh]) -> Mesh:
    offset = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    faces = [part.faces + np.uint32(shift) for part, shift in zip(parts, offset.tolist(), strict=True)]
    return Mesh(np.concatenate([part.vertices for part in parts]), np.concatenate(faces).astype(np.uint32))


def colour(name: str) -> tuple[int, int, int]:
    """Red, green, blue of a kind of part, or of a colour that a mesh file names as #rrggbb."""
    if name.startswith("#"):
        return int(name[1:3], 16), int(name[3:5], 16), int(name[5:7], 16)
    return COLOURS[name]


def package_meshes(folder: str | os.PathLike[str], model: Model) -> list[dict[str, Mesh]]:
    """As arm_meshes, of the meshes in UR's description package (`ur_description`), in whose folder meshes/NAME is."""
    place = Path(folder)
    found = place / "meshes" / model.name
    if model.dof != len(PARTS) - 1 or not found.is_dir():
        known = sorted(one.name for one in (place / "meshes").glob("*") if one.is_dir())
        has = f"it has meshes of {foreign.names(known, 20)}" if known else "there is no folder meshes in it"
        raise InvalidValue(f"--meshes: no meshes of {model.name} in {place}; {has}; give UR's package ur_description")
    offsets = _offsets(place / "config" / model.name)
    bodies = []
    for i, (part, (file, _)) in enumerate(PARTS.items()):
        folders = (found / "visual", found / "collision", found)
        files = [one for place in folders for ending in ENDINGS if (one := place / f"{file}{ending}").is_file()]
        if not files:
            raise InvalidValue(f"--meshes: no {file}{' or '.join(ENDINGS)} in {found / 'visual'}")
        T = transform(rotation_rpy(*offsets[part][3:]), offsets[part][:3])
        if i:  # the package's frames stand at the end of a joint's offset along its axis, ours at its beginning
            T = transform(np.eye(3), (0.0, 0.0, float(model.joints[i - 1].T_joint_link[2, 3]))) @ T
        bodies.append({
            name: Mesh(mesh.vertices @ T[:3, :3].T + T[:3, 3], mesh.faces) for name, mesh in read_mesh(files[0]).items()
        })  # fmt: skip
    return bodies


def _offsets(config: Path) -> dict[str, tuple[float, ...]]:
    """x, y, z, roll, pitch, yaw [m, rad] of each part's mesh in the part's frame."""
    visual = _mapping(_yaml(config / "visual_parameters.yaml").get("mesh_files"))
    shifts = _mapping(_yaml(config / "physical_parameters.yaml").get("offsets"))
    out = {}
    for part, (_, usual) in PARTS.items():
        told = _mapping(visual.get(part))
        place = _mapping(told.get("mesh_offset"))
        if place:
            out[part] = tuple(_number(place.get(key)) for key in ("x", "y", "z", "roll", "pitch", "yaw"))
            continue
        along = {"upper_arm": shifts.get("shoulder_offset"), "forearm": shifts.get("elbow_offset")}.get(
            part, told.get("visual_offset")
        )
        out[part] = (0.0, 0.0, _number(along), *usual)
    return out


def _yaml(path: Path) -> dict[str, Any]:
    """A file of the package; empty where it is not there."""
    if not path.is_file():
        return {}
    with extra("--meshes: the package's files need PyYAML: pip install 'tangere[calibration]'"):
        module = import_module("yaml")
    text = foreign.read_bytes(path, foreign.YAML_MAX).decode("utf-8", "replace")
    degrees = r"!degrees\s+(-?[\d.]+)"
    plain = re.sub(degrees, lambda found: repr(math.radians(float(found[1]))), re.sub("!radians", "", text))
    return _mapping(foreign.yaml(plain, path, module))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def read_mesh(path: Path) -> dict[str, Mesh]:
    """The triangles of a mesh file [m], by colour."""
    if path.stat().st_size > MESH_MAX:
        raise foreign.too_large(path, path.stat().st_size, MESH_MAX)
    try:
        trimesh = import_module("trimesh")
        parts: dict[str, list[Mesh]] = {}
        with foreign.reading(path, path.stat().st_size):
            for one in trimesh.load_scene(path).dump():
                if hasattr(one, "faces"):
                    mesh = Mesh(np.array(one.vertices), np.array(one.faces, np.uint32))
                    parts.setdefault(_tint(one), []).append(mesh)
    except ImportError as problem:
        raise MissingExtra(f"--meshes: {path.name} needs {problem.name}: pip install trimesh pycollada") from None
    except InvalidValue as problem:
        raise InvalidValue(f"--meshes: {problem}") from problem
    if not parts:
        raise InvalidValue(f"--meshes: {path} has no triangles")
    return {name: _joined(meshes) for name, meshes in parts.items()}


def _tint(mesh: Any) -> str:
    """The colour of a mesh as #rrggbb; that of a tube where it has none."""
    material = getattr(mesh.visual, "material", None)
    found = getattr(material, "main_color", None) if material is not None else None
    rgb = COLOURS["tube"] if found is None or not mesh.visual.defined else found[:3]  # an STL has no colour
    return "#" + "".join(f"{int(c):02x}" for c in rgb)
