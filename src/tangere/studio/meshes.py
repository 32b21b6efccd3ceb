"""Meshes of an arm from its parametric shapes: housings and tubes turned on a lathe, with bevelled rims."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.model.link_shapes import Segment, base_shape, link_shapes
from tangere.model.model import Model
from tangere.types import Array

SIDES = 32  # of a round part: no corner is seen at the size of a page
BEVEL = 0.010  # [m] of a housing's rim, by eye
GROOVE = 0.0025  # [m] depth and half width of the groove around a housing, where two castings meet
# red, green, blue of each kind of part, by eye: light metal, blue caps
COLOURS = {"tube": (214, 219, 225), "joint": (158, 167, 178), "cap": (63, 140, 201), "pen": (42, 43, 48)}

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
